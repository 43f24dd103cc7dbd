#include "runtime/arena.h"

#include <algorithm>
#include <numeric>

namespace taso {
namespace {

template <class Meets>
ArenaPlan place_by_size(std::span<const BufferLifetime> buffers, std::size_t alignment, const Meets& meets) {
  ArenaPlan plan;
  plan.offsets.assign(buffers.size(), 0);
  std::vector<std::uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return buffers[a].bytes > buffers[b].bytes; });
  auto padded = [&](std::uint32_t i) { return (buffers[i].bytes + alignment - 1) / alignment * alignment; };
  std::vector<std::uint32_t> placed;  // by offset
  for (const std::uint32_t buffer : order) {
    const std::size_t size = padded(buffer);
    std::size_t offset = 0;
    for (const std::uint32_t other : placed) {
      if (!meets(other, buffer)) continue;
      if (plan.offsets[other] >= offset + size) break;  // fits into the gap below `other`
      offset = std::max(offset, plan.offsets[other] + padded(other));
    }
    plan.offsets[buffer] = offset;
    plan.bytes = std::max(plan.bytes, offset + size);
    const auto position = std::upper_bound(placed.begin(), placed.end(), offset,
                                           [&](std::size_t value, std::uint32_t i) { return value < plan.offsets[i]; });
    placed.insert(position, buffer);
  }
  return plan;
}

}  // namespace

ArenaPlan plan_arena(std::span<const BufferLifetime> buffers, std::size_t alignment) {
  return place_by_size(buffers, alignment, [&](std::size_t a, std::size_t b) {
    return buffers[a].first <= buffers[b].last && buffers[b].first <= buffers[a].last;
  });
}

ArenaPlan plan_arena(std::span<const BufferLifetime> buffers, std::size_t alignment,
                     const std::function<bool(std::size_t, std::size_t)>& meets) {
  return place_by_size(buffers, alignment, meets);
}

}  // namespace taso
