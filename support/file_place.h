/// Which file a path stands for: the identity of files, whatever names them.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace taso {

/// Which file a path stands for, whatever its spelling: equal for two paths exactly if writing to the one changes what
/// the other reads. Symbolic and hard links, "..", slashes and mounts make no difference. A file that does not exist is
/// told by its deepest folder that does and the names below it.
struct FilePlace {
  std::uint64_t device = 0, node = 0;  ///< Of the file or the folder; of a device file, what it stands for.
  bool is_device = false;
  std::string below;  ///< Names below the folder, with slashes; empty for what exists.
  [[nodiscard]] auto operator<=>(const FilePlace&) const = default;
};
/// The place of a path; that of a link that leads nowhere is what it names.
[[nodiscard]] FilePlace place_of(const std::string& path);
/// The place of an open descriptor; nothing if it is closed.
[[nodiscard]] std::optional<FilePlace> place_of_descriptor(int descriptor);

}  // namespace taso
