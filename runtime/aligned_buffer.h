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
  /// Bytes that the memory has room for.
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  /// Changes what size() says; `bytes` is at most the capacity.
  void resize(std::size_t bytes);

 private:
  struct Free {
    void operator()(std::byte* pointer) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0, capacity_ = 0;
};

/// Large buffers that are used again: memory that is fresh from the system costs about as much as copying into it. Not
/// thread-safe.
class BufferPool {
 public:
  /// A buffer of this size: of those that were given back the smallest that has room for it, but not more than
  /// most_room times as much as is needed; else a new one, in place of smaller ones that take no more memory together,
  /// so that what is kept is about what is in use at once. Its contents are unspecified.
  [[nodiscard]] AlignedBuffer take(std::size_t bytes);
  /// Whether take() would give one that was given back.
  [[nodiscard]] bool has(std::size_t bytes) const;
  /// Keeps a buffer for take(). Small ones are freed, and the oldest where more than most_bytes are kept.
  void give(AlignedBuffer buffer);

  static constexpr std::size_t least_bytes = std::size_t{1} << 16, most_bytes = std::size_t{1} << 29, most_room = 4;

 private:
  using Kept = std::list<AlignedBuffer>;
  [[nodiscard]] Kept::const_iterator find(std::size_t bytes) const;
  void drop_outgrown(std::size_t bytes);

  Kept kept_;                   ///< The oldest first.
  std::size_t kept_bytes_ = 0;  ///< Of their capacities.
};

}  // namespace taso
