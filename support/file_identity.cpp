#include "support/file_identity.h"

#include <filesystem>

#include "support/file.h"

namespace taso {

Expected<FileIdentity> identify_file(const std::string& path) {
  TASO_ASSIGN(const std::shared_ptr<const MappedFile> file, MappedFile::open(path));
  FileIdentity result;
  result.name = std::filesystem::path(path).filename().string();
  result.bytes = file->bytes().size();
  // A model may be larger than memory.
  constexpr std::size_t part_bytes = std::size_t{4} << 20;
  result.hash = hash_in_parts(file->bytes(), part_bytes, release_pages);
  return result;
}

std::optional<Hash128> hash_from_text(std::string_view text) {
  if (text.size() != 32 || text.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  const std::string digits(text);
  return Hash128{std::stoull(digits.substr(0, 16), nullptr, 16), std::stoull(digits.substr(16), nullptr, 16)};
}

}  // namespace taso
