#include "support/hash.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <memory>

namespace taso {
namespace {

Hash128 xxh(const void* data, std::size_t size, std::uint64_t seed) {
  const XXH128_hash_t hash = XXH3_128bits_withSeed(data, size, seed);
  return {hash.high64, hash.low64};
}

}  // namespace

std::string Hash128::to_string() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
  return text;
}

Hash128 hash_bytes(std::span<const std::byte> bytes, std::uint64_t seed) {
  return xxh(bytes.data(), bytes.size(), seed);
}

Hash128 hash_in_parts(std::span<const std::byte> bytes, std::size_t part_bytes,
                      const std::function<void(std::span<const std::byte>)>& done) {
  const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(), XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for (std::size_t at = 0; at < bytes.size(); at += part_bytes) {
    const auto part = bytes.subspan(at, std::min(part_bytes, bytes.size() - at));
    XXH3_128bits_update(state.get(), part.data(), part.size());
    done(part);
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return {hash.high64, hash.low64};
}

Hash128 hash_text(std::string_view text, std::uint64_t seed) { return xxh(text.data(), text.size(), seed); }

Hasher& Hasher::add(std::uint64_t value) {
  const std::size_t size = bytes_.size();
  bytes_.resize(size + sizeof value);
  std::memcpy(bytes_.data() + size, &value, sizeof value);
  return *this;
}

Hasher& Hasher::add(double value) { return add(std::bit_cast<std::uint64_t>(value)); }

Hasher& Hasher::add(std::string_view text) {
  add(static_cast<std::uint64_t>(text.size()));
  bytes_.insert(bytes_.end(), text.begin(), text.end());
  return *this;
}

Hasher& Hasher::add(const Hash128& hash) { return add(hash.high).add(hash.low); }

Hash128 Hasher::finish(std::uint64_t seed) const { return xxh(bytes_.data(), bytes_.size(), seed); }

}  // namespace taso
