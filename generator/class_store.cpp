#include "generator/class_store.h"

#include <algorithm>

namespace taso {

Mod61* ElementArena::take(std::size_t count) {
  if (count > left_) {
    const std::size_t size = std::max(block, count);
    blocks_.push_back(std::make_unique<Mod61[]>(size));
    bytes_ += size * sizeof(Mod61);
    next_ = blocks_.back().get();
    left_ = size;
  }
  Mod61* const result = next_;
  next_ += count;
  left_ -= count;
  return result;
}

std::size_t FingerprintTable::slot(const Hash128& fingerprint) const {
  const std::size_t mask = ids_.size() - 1;
  std::size_t at = (fingerprint.low ^ (fingerprint.low >> 29)) & mask;
  while (ids_[at] != none && keys_[at] != fingerprint) at = (at + 1) & mask;
  return at;
}

ClassId FingerprintTable::find(const Hash128& fingerprint) const {
  return ids_.empty() ? none : ids_[slot(fingerprint)];
}

std::pair<ClassId, bool> FingerprintTable::insert(const Hash128& fingerprint, ClassId id) {
  if ((size_ + 1) * 3 > ids_.size() * 2) grow();
  const std::size_t at = slot(fingerprint);
  if (ids_[at] != none) return {ids_[at], false};
  keys_[at] = fingerprint;
  ids_[at] = id;
  ++size_;
  return {id, true};
}

void FingerprintTable::grow() {
  const std::vector<Hash128> keys = std::move(keys_);
  const std::vector<ClassId> ids = std::move(ids_);
  const std::size_t size = std::max<std::size_t>(1024, ids.size() * 2);
  keys_.assign(size, {});
  ids_.assign(size, none);
  for (std::size_t i = 0; i < ids.size(); ++i)
    if (ids[i] != none) {
      const std::size_t at = slot(keys[i]);
      keys_[at] = keys[i];
      ids_[at] = ids[i];
    }
}

}  // namespace taso
