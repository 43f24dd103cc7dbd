/// Seeded random numbers that are the same on every platform.
#pragma once

#include <cstdint>
#include <string_view>

#include "support/hash.h"

namespace taso {

/// SplitMix64 (Steele, Lea, Flood 2014). The standard library's distributions differ between
/// implementations; these do not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  /// A generator for one named purpose, independent of how many numbers others have drawn.
  Random(std::uint64_t seed, std::string_view purpose) : state_(hash_text(purpose, seed).low) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, bound), bound > 0.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Standard normal (Box-Muller).
  double normal();

 private:
  std::uint64_t state_;
};

}  // namespace taso
