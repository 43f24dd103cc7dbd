#include "runtime/aligned_buffer.h"

#include <algorithm>
#include <new>
#include <utility>

#include "support/status.h"

namespace taso {

AlignedBuffer::AlignedBuffer(std::size_t bytes)
    : data_(static_cast<std::byte*>(::operator new (std::max<std::size_t>(bytes, 64), std::align_val_t{64}))),
      size_(bytes),
      capacity_(bytes) {}

void AlignedBuffer::resize(std::size_t bytes) {
  TASO_CHECK(bytes <= capacity_, "a buffer has room for what it is to hold");
  size_ = bytes;
}

void AlignedBuffer::Free::operator()(std::byte* pointer) const { ::operator delete (pointer, std::align_val_t{64}); }

// Of several of one capacity the last is the likeliest to be in a cache.
BufferPool::Kept::const_iterator BufferPool::find(std::size_t bytes) const {
  auto best = kept_.end();
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept)
    if (kept->capacity() >= bytes && kept->capacity() <= bytes * most_room &&
        (best == kept_.end() || kept->capacity() <= best->capacity()))
      best = kept;
  return best;
}

bool BufferPool::has(std::size_t bytes) const { return find(bytes) != kept_.end(); }

void BufferPool::drop_outgrown(std::size_t bytes) {
  for (std::size_t left = bytes;;) {
    auto largest = kept_.end();
    for (auto kept = kept_.begin(); kept != kept_.end(); ++kept)
      if (kept->capacity() < bytes && kept->capacity() <= left &&
          (largest == kept_.end() || kept->capacity() > largest->capacity()))
        largest = kept;
    if (largest == kept_.end()) return;
    left -= largest->capacity();
    kept_bytes_ -= largest->capacity();
    kept_.erase(largest);
  }
}

AlignedBuffer BufferPool::take(std::size_t bytes) {
  const auto found = find(bytes);
  if (found == kept_.end()) {
    drop_outgrown(bytes);
    return AlignedBuffer(bytes);
  }
  Kept taken;
  taken.splice(taken.end(), kept_, found);
  AlignedBuffer buffer = std::move(taken.front());
  kept_bytes_ -= buffer.capacity();
  buffer.resize(bytes);
  return buffer;
}

void BufferPool::give(AlignedBuffer buffer) {
  if (buffer.capacity() < least_bytes || buffer.capacity() > most_bytes) return;
  kept_bytes_ += buffer.capacity();
  kept_.push_back(std::move(buffer));
  for (; kept_bytes_ > most_bytes; kept_.pop_front()) kept_bytes_ -= kept_.front().capacity();
}

}  // namespace taso
