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

/// Writes `contents` as replace_file does, so that no half-written file is ever seen.
[[nodiscard]] Status write_file_atomically(const std::string& path, std::string_view contents);

/// What a path that is to be written stands for. Symbolic links are followed: the link stays, what it names is written.
struct OutputFile {
  std::string path;              ///< The file itself, at the end of all links; it need not exist.
  bool written_through = false;  ///< A device, pipe or socket: written as it is, never replaced.
};

/// Where writing to `path` will go. bad_input, in one line, if it can be seen beforehand that it cannot be written: the
/// name is empty or that of a folder, its folder does not exist, or the user may not write there.
[[nodiscard]] Expected<OutputFile> find_output(const std::string& path);

/// Lets `write` fill a temporary file beside the file that `path` names, then renames it to that file, which keeps its
/// permissions; on error the temporary file is removed and the file is untouched. What is no regular file (a device, a
/// named pipe, which waits for its reader) is given to `write` itself. Links and errors: see find_output.
[[nodiscard]] Status replace_file(const std::string& path, const std::function<Status(const std::string& file)>& write);

/// Lets `write` fill a temporary folder beside `folder`, which is made if need be, and then moves its files there, each
/// by a rename; files of other names stay. On error of `write` nothing is moved. bad_input where the folder cannot be
/// made or its files cannot be moved.
[[nodiscard]] Status fill_folder(const std::string& folder,
                                 const std::function<Status(const std::string& temporary)>& write);

/// A read-only memory mapping of a whole file, shared by the constants that lie in it.
class MappedFile {
 public:
  /// bad_input if the file cannot be opened or is no regular file: a pipe or a device is refused, not waited for.
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

/// Takes the pages of a range of a mapped file that nobody writes to out of the process; reading them again brings them
/// back. So a model larger than memory can be hashed and copied.
void release_pages(std::span<const std::byte> mapped);

}  // namespace taso
