/// Memory for elements of tensors.
#pragma once

#include <cstddef>
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

}  // namespace taso
