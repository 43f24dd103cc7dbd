#include "runtime/cpu/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/cpu/loops.h"
#include "runtime/cpu/parallel.h"

namespace taso::cpu {
namespace {

constexpr std::int64_t grain_bytes = 65536;

template <class T>
void strided_run(const std::byte* from, std::int64_t from_stride, std::byte* to, std::int64_t to_stride,
                 std::int64_t count) {
  const T* source = reinterpret_cast<const T*>(from);
  T* target = reinterpret_cast<T*>(to);
  for (std::int64_t i = 0; i < count; ++i) target[i * to_stride] = source[i * from_stride];
}

template <class T>
void repeated_run(const std::byte* from, std::byte* to, std::int64_t count) {
  std::fill_n(reinterpret_cast<T*>(to), count, *reinterpret_cast<const T*>(from));
}

}  // namespace

StridedCopy::StridedCopy(std::span<const std::int64_t> extents, std::span<const std::int64_t> from_strides,
                         std::span<const std::int64_t> to_strides, std::size_t element_bytes)
    : bytes_(element_bytes), elements_(1) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    elements_ *= extents[i];
    if (extents[i] != 1) axes.push_back({extents[i], from_strides[i], to_strides[i]});
  }
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.to > b.to; });
  for (const Axis& axis : axes) {
    if (!outer_.empty() && outer_.back().to == axis.to * axis.extent && outer_.back().from == axis.from * axis.extent)
      outer_.back() = {outer_.back().extent * axis.extent, axis.from, axis.to};
    else
      outer_.push_back(axis);
  }
  if (outer_.empty()) return;
  inner_ = outer_.back();
  outer_.pop_back();
  // Runs of two equal elements, as repeated pixels have, cost more to start than to write: strided runs of a longer
  // axis.
  constexpr std::int64_t short_run = 8;
  if (inner_.from == 0 && inner_.extent <= short_run && !outer_.empty() && outer_.back().extent > inner_.extent)
    std::swap(inner_, outer_.back());
  if (inner_.to == 1 && inner_.from == 1) {
    kind_ = Inner::contiguous;
  } else if (inner_.to == 1 && inner_.from == 0) {
    kind_ = Inner::repeated;
  } else {
    kind_ = Inner::strided;
    const auto across = std::find_if(outer_.begin(), outer_.end(), [](const Axis& axis) { return axis.from == 1; });
    if (inner_.to == 1 && bytes_ == 4 && across != outer_.end()) {
      across_ = *across;
      outer_.erase(across);
      kind_ = Inner::transposed;
    }
  }
}

void StridedCopy::run_inner(const std::byte* from, std::byte* to) const {
  switch (kind_) {
    case Inner::contiguous:
      std::memcpy(to, from, static_cast<std::size_t>(inner_.extent) * bytes_);
      return;
    case Inner::transposed:
      loops().transpose(reinterpret_cast<const float*>(from), inner_.from, reinterpret_cast<float*>(to), across_.to,
                        across_.extent, inner_.extent);
      return;
    case Inner::repeated:
      switch (bytes_) {
        case 1:
          return repeated_run<std::uint8_t>(from, to, inner_.extent);
        case 2:
          return repeated_run<std::uint16_t>(from, to, inner_.extent);
        case 4:
          return repeated_run<std::uint32_t>(from, to, inner_.extent);
        default:
          return repeated_run<std::uint64_t>(from, to, inner_.extent);
      }
    case Inner::strided:
      switch (bytes_) {
        case 1:
          return strided_run<std::uint8_t>(from, inner_.from, to, inner_.to, inner_.extent);
        case 2:
          return strided_run<std::uint16_t>(from, inner_.from, to, inner_.to, inner_.extent);
        case 4:
          return strided_run<std::uint32_t>(from, inner_.from, to, inner_.to, inner_.extent);
        default:
          return strided_run<std::uint64_t>(from, inner_.from, to, inner_.to, inner_.extent);
      }
  }
}

void StridedCopy::run(const std::byte* from, std::byte* to, int threads) const {
  if (elements_ == 0) return;
  const auto width = static_cast<std::int64_t>(bytes_);
  std::int64_t rows = 1;
  for (const Axis& axis : outer_) rows *= axis.extent;
  if (rows == 1 && kind_ == Inner::contiguous) {
    parallel_chunks(threads, inner_.extent, grain_bytes, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to + begin * width, from + begin * width, static_cast<std::size_t>((end - begin) * width));
    });
    return;
  }
  if (rows == 1 && kind_ == Inner::transposed) {
    const std::int64_t grain = std::max<std::int64_t>(16, grain_bytes / (inner_.extent * width));
    parallel_chunks(threads, across_.extent, grain, [&](std::int64_t begin, std::int64_t end) {
      loops().transpose(reinterpret_cast<const float*>(from) + begin, inner_.from,
                        reinterpret_cast<float*>(to) + begin * across_.to, across_.to, end - begin, inner_.extent);
    });
    return;
  }
  const std::int64_t row_bytes = elements_ / rows * width;
  parallel_chunks(threads, rows, std::max<std::int64_t>(1, grain_bytes / row_bytes),
                  [&](std::int64_t begin, std::int64_t end) {
                    std::vector<std::int64_t> index(outer_.size());
                    const std::byte* source = from;
                    std::byte* target = to;
                    std::int64_t rest = begin;
                    for (std::size_t axis = outer_.size(); axis-- > 0;) {
                      index[axis] = rest % outer_[axis].extent;
                      rest /= outer_[axis].extent;
                      source += index[axis] * outer_[axis].from * width;
                      target += index[axis] * outer_[axis].to * width;
                    }
                    for (std::int64_t row = begin; row < end; ++row) {
                      run_inner(source, target);
                      for (std::size_t axis = outer_.size(); axis-- > 0;) {
                        const bool carry = ++index[axis] == outer_[axis].extent;
                        const std::int64_t steps = carry ? 1 - outer_[axis].extent : 1;
                        source += steps * outer_[axis].from * width;
                        target += steps * outer_[axis].to * width;
                        if (!carry) break;
                        index[axis] = 0;
                      }
                    }
                  });
}

}  // namespace taso::cpu
