#include "runtime/arena.h"

#include <gtest/gtest.h>

#include "support/random.h"

namespace taso {
namespace {

void expect_valid(const std::vector<BufferLifetime>& buffers, const ArenaPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), buffers.size());
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % 64, 0u);
    EXPECT_LE(plan.offsets[i] + buffers[i].bytes, plan.bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const bool meet = buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
      const bool overlap =
          plan.offsets[i] < plan.offsets[j] + buffers[j].bytes && plan.offsets[j] < plan.offsets[i] + buffers[i].bytes;
      EXPECT_FALSE(meet && overlap) << "buffers " << i << " and " << j;
    }
  }
}

TEST(Arena, LiveBuffersNeverShareBytes) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed, "arena");
    std::vector<BufferLifetime> buffers(random.below(40));
    for (BufferLifetime& buffer : buffers) {
      buffer.bytes = random.below(4) == 0 ? 0 : random.below(1000);
      buffer.first = static_cast<std::uint32_t>(random.below(20));
      buffer.last = buffer.first + static_cast<std::uint32_t>(random.below(6));
    }
    expect_valid(buffers, plan_arena(buffers, 64));
  }
}

TEST(Arena, AChainNeedsTwoBuffers) {
  std::vector<BufferLifetime> buffers;
  for (std::uint32_t i = 0; i < 10; ++i) buffers.push_back({640, i, i + 1});
  const ArenaPlan plan = plan_arena(buffers, 64);
  expect_valid(buffers, plan);
  EXPECT_EQ(plan.bytes, 1280u);
}

TEST(Arena, FillsGaps) {
  // Large buffers at both ends of the time, small ones between them fit below.
  const std::vector<BufferLifetime> buffers = {{1000, 0, 2}, {1000, 3, 5}, {64, 2, 3}};
  const ArenaPlan plan = plan_arena(buffers, 64);
  expect_valid(buffers, plan);
  EXPECT_EQ(plan.bytes, 1024u + 64u);
}

TEST(Arena, NothingNeedsNothing) { EXPECT_EQ(plan_arena({}, 64).bytes, 0u); }

}  // namespace
}  // namespace taso
