#include "runtime/aligned_buffer.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace taso {

AlignedBuffer::AlignedBuffer(std::size_t bytes)
    : data_(static_cast<std::byte*>(::operator new (std::max<std::size_t>(bytes, 64), std::align_val_t{64}))),
      size_(bytes) {}

void AlignedBuffer::Free::operator()(std::byte* pointer) const { ::operator delete (pointer, std::align_val_t{64}); }

AlignedBuffer BufferPool::take(std::size_t bytes) {
  const auto fits = [&](const AlignedBuffer& buffer) { return buffer.size() == bytes; };
  const auto found = std::find_if(kept_.rbegin(), kept_.rend(), fits);  // the last one is the likeliest in a cache
  if (found == kept_.rend()) return AlignedBuffer(bytes);
  AlignedBuffer buffer = std::move(*found);
  kept_.erase(std::next(found).base());
  kept_bytes_ -= bytes;
  return buffer;
}

void BufferPool::give(AlignedBuffer buffer) {
  if (buffer.size() < least_bytes || buffer.size() > most_bytes) return;
  kept_bytes_ += buffer.size();
  kept_.push_back(std::move(buffer));
  for (; kept_bytes_ > most_bytes; kept_.pop_front()) kept_bytes_ -= kept_.front().size();
}

}  // namespace taso
