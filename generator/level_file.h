/// The terms of one of the smaller levels as a file: what evaluation found, so that a run that was killed need not
/// evaluate them again. Values of classes are not in it; they are made again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generator/class_store.h"
#include "support/status.h"

namespace taso {

/// A term of a level and the fingerprint of each of its outputs.
struct FoundTerm {
  Term term;
  std::uint32_t block = 0;  ///< Of the enumerator of the level.
  std::uint8_t weight_ops = 0;
  std::vector<Hash128> fingerprints;
};

/// Bytes with a checksum, and back. `enumeration` is a hash of what is enumerated: terms of another are refused.
[[nodiscard]] std::string level_to_bytes(const Hash128& enumeration, const std::vector<FoundTerm>& terms);
[[nodiscard]] Expected<std::vector<FoundTerm>> level_from_bytes(const std::string& bytes, const Hash128& enumeration,
                                                                const std::string& file);

}  // namespace taso
