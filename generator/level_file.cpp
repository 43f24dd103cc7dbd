#include "generator/level_file.h"

#include <cstring>
#include <span>

namespace taso {
namespace {

/// Begins every file; the last digit is the version of the format.
constexpr std::uint64_t level_magic = 0x74617367656e4c31ULL;

struct LevelHeader {
  std::uint64_t magic = 0, high = 0, low = 0, terms = 0, check = 0;
};

}  // namespace

std::string level_to_bytes(const Hash128& enumeration, const std::vector<FoundTerm>& terms) {
  // A term is a run of 32-bit words: operator, block, numbers, arguments, fingerprints.
  std::vector<std::uint32_t> words;
  for (const FoundTerm& found : terms) {
    words.push_back(found.term.op);
    words.push_back(found.block);
    words.push_back(static_cast<std::uint32_t>(found.term.count | found.weight_ops << 8) |
                    static_cast<std::uint32_t>(found.fingerprints.size()) << 16);
    for (const ClassId argument : found.term.inputs()) words.push_back(argument);
    for (const Hash128& fingerprint : found.fingerprints)
      for (const std::uint64_t half : {fingerprint.high, fingerprint.low}) {
        words.push_back(static_cast<std::uint32_t>(half >> 32));
        words.push_back(static_cast<std::uint32_t>(half));
      }
  }
  const LevelHeader header{level_magic, enumeration.high, enumeration.low, terms.size(),
                           hash_bytes(std::as_bytes(std::span(words))).low};
  std::string bytes(sizeof(header) + words.size() * sizeof(std::uint32_t), '\0');
  std::memcpy(bytes.data(), &header, sizeof(header));
  if (!words.empty()) std::memcpy(bytes.data() + sizeof(header), words.data(), words.size() * sizeof(std::uint32_t));
  return bytes;
}

Expected<std::vector<FoundTerm>> level_from_bytes(const std::string& bytes, const Hash128& enumeration,
                                                  const std::string& file) {
  const Error damaged =
      bad_input("not a whole level of taso-gen's enumeration (damaged or cut off); remove the file and make it again",
                {file, 0, 0});
  LevelHeader header;
  if (bytes.size() < sizeof(header)) return damaged;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != level_magic) return damaged;
  std::vector<std::uint32_t> words((bytes.size() - sizeof(header)) / sizeof(std::uint32_t));
  if (!words.empty()) std::memcpy(words.data(), bytes.data() + sizeof(header), words.size() * sizeof(std::uint32_t));
  if (header.check != hash_bytes(std::as_bytes(std::span(words))).low) return damaged;
  if (Hash128{header.high, header.low} != enumeration)
    return bad_input(
        "made from another profile, specifications, seed, size or version: give another folder to --checkpoint",
        {file, 0, 0});
  std::vector<FoundTerm> terms;
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < header.terms; ++i) {
    if (words.size() - at < 3) return damaged;
    FoundTerm found;
    found.term.op = words[at];
    found.block = words[at + 1];
    found.term.count = static_cast<std::uint8_t>(words[at + 2]);
    found.weight_ops = static_cast<std::uint8_t>(words[at + 2] >> 8);
    found.fingerprints.resize(words[at + 2] >> 16);
    at += 3;
    if (found.term.count > Term::max_arguments || words.size() - at < found.term.count + 4 * found.fingerprints.size())
      return damaged;
    for (std::size_t k = 0; k < found.term.count; ++k) found.term.arguments[k] = words[at++];
    for (Hash128& fingerprint : found.fingerprints)
      for (std::uint64_t* const half : {&fingerprint.high, &fingerprint.low}) {
        *half = std::uint64_t{words[at]} << 32 | words[at + 1];
        at += 2;
      }
    terms.push_back(std::move(found));
  }
  if (at != words.size()) return damaged;
  return terms;
}

}  // namespace taso
