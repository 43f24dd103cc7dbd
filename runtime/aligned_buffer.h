/// Memory for elements of tensors.
#pragma once

#include <cstddef>
#include <list>
#include <memory>

namespace taso {

/// Zero-initialised or raw memory aligned to 64 bytes (one cache line, one AVX-512 register).
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  /// `bytes` of memory; its contents are unspecified. Fails only by std::bad_alloc.
  explicit AlignedBuffer(std::size_t bytes);
  [[nodiscard]] std::byte* data() { return data_.get(); }
  [[nodiscard]] const std::byte* data() const { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* pointer) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

/// Large buffers that are used again: memory that is fresh from the system costs about as much as copying into it. Not
/// thread-safe.
class BufferPool {
 public:
  /// A buffer of this size: one that was given back, or a new one. Its contents are unspecified.
  [[nodiscard]] AlignedBuffer take(std::size_t bytes);
  /// Keeps a buffer for take(). Small ones are freed, and the oldest where more than most_bytes are kept.
  void give(AlignedBuffer buffer);

  static constexpr std::size_t least_bytes = std::size_t{1} << 16, most_bytes = std::size_t{1} << 29;

 private:
  std::list<AlignedBuffer> kept_;  ///< The oldest first.
  std::size_t kept_bytes_ = 0;
};

}  // namespace taso
