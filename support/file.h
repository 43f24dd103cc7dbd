/// Whole-file reading, atomic writing, and memory-mapped regions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "support/status.h"

namespace taso {

/// The bytes of a file; bad_input with the system's reason if it cannot be read.
[[nodiscard]] Expected<std::string> read_file(const std::string& path);

/// Writes `contents` to a temporary file beside `path` and renames it, so that no half-written file is ever seen.
[[nodiscard]] Status write_file_atomically(const std::string& path, std::string_view contents);

/// Lets `write` fill a temporary file beside `path`, then renames it to `path`; on error the temporary file is
/// removed and `path` is untouched.
[[nodiscard]] Status replace_file(const std::string& path,
                                  const std::function<Status(const std::string& temporary)>& write);

/// A read-only memory mapping of a whole file, shared by the constants that lie in it.
class MappedFile {
 public:
  [[nodiscard]] static Expected<std::shared_ptr<const MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  MappedFile() = default;
  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace taso
