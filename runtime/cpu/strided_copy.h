/// Copies boxes of elements between tensors of any strides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace taso::cpu {

/// A prepared copy of a box. Axes are taken in the target's memory order and merged where both sides advance regularly.
class StridedCopy {
 public:
  /// Strides in elements; a source stride of 0 repeats. Target strides are positive.
  StridedCopy(std::span<const std::int64_t> extents, std::span<const std::int64_t> from_strides,
              std::span<const std::int64_t> to_strides, std::size_t element_bytes);
  void run(const std::byte* from, std::byte* to, int threads) const;

 private:
  struct Axis {
    std::int64_t extent, from, to;
  };
  enum class Inner : std::uint8_t { contiguous, repeated, strided, transposed };

  void run_inner(const std::byte* from, std::byte* to) const;

  std::vector<Axis> outer_;  ///< Outermost first.
  Axis inner_{1, 1, 1};
  Axis across_{1, 1, 1};  ///< Kind transposed: the axis along which the source is contiguous.
  Inner kind_ = Inner::contiguous;
  std::size_t bytes_ = 4;
  std::int64_t elements_ = 0;
};

}  // namespace taso::cpu
