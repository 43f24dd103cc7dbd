#include "runtime/aligned_buffer.h"

#include <algorithm>
#include <new>

namespace taso {

AlignedBuffer::AlignedBuffer(std::size_t bytes)
    : data_(static_cast<std::byte*>(::operator new (std::max<std::size_t>(bytes, 64), std::align_val_t{64}))),
      size_(bytes) {}

void AlignedBuffer::Free::operator()(std::byte* pointer) const { ::operator delete (pointer, std::align_val_t{64}); }

}  // namespace taso
