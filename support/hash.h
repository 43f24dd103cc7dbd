/// 128-bit hashing (XXH3) for structural hashes, fingerprints and cost keys.
#pragma once

#include <absl/container/inlined_vector.h>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace taso {

/// A 128-bit hash value. Equal on every machine for equal input.
struct Hash128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Hash128&) const = default;
  /// 32 lower-case hexadecimal digits.
  [[nodiscard]] std::string to_string() const;
};

/// XXH3-128 of a byte range.
[[nodiscard]] Hash128 hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed = 0);
/// The same; `done` is called with one part of the bytes after the other, of at most `part_bytes`, when it has been
/// read.
[[nodiscard]] Hash128 hash_in_parts(std::span<const std::byte> bytes, std::size_t part_bytes,
                                    const std::function<void(std::span<const std::byte>)>& done);
/// XXH3-128 of text.
[[nodiscard]] Hash128 hash_text(std::string_view text, std::uint64_t seed = 0);

/// Collects fields and hashes them; every field is length- or width-delimited, so that different
/// sequences of fields give different byte strings.
class Hasher {
 public:
  Hasher& add(std::uint64_t value);
  Hasher& add(std::int64_t value) { return add(static_cast<std::uint64_t>(value)); }
  Hasher& add(int value) { return add(static_cast<std::uint64_t>(static_cast<std::int64_t>(value))); }
  Hasher& add(std::uint32_t value) { return add(static_cast<std::uint64_t>(value)); }
  Hasher& add(double value);
  Hasher& add(std::string_view text);
  Hasher& add(const Hash128& hash);
  [[nodiscard]] Hash128 finish(std::uint64_t seed = 0) const;

 private:
  absl::InlinedVector<char, 256> bytes_;
};

}  // namespace taso

template <>
struct std::hash<taso::Hash128> {
  std::size_t operator()(const taso::Hash128& value) const noexcept { return static_cast<std::size_t>(value.low); }
};
