/// Which file a document speaks of.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "support/hash.h"
#include "support/status.h"

namespace taso {

/// A file as it was when it was named.
struct FileIdentity {
  std::string name;  ///< Without its folder.
  std::uint64_t bytes = 0;
  Hash128 hash;  ///< XXH3-128 of the bytes: tells files apart, and is no defence.
  bool operator==(const FileIdentity&) const = default;
};

/// bad_input if the file cannot be read.
[[nodiscard]] Expected<FileIdentity> identify_file(const std::string& path);

/// A hash from its 32 lower-case hexadecimal digits (Hash128::to_string); nothing if that is something else.
[[nodiscard]] std::optional<Hash128> hash_from_text(std::string_view text);

}  // namespace taso
