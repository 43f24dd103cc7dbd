// Collectives: numbers computed by hand, and a simulation that passes elements from device to device, counts bytes and
// knows which summands each element holds.
#include "partition/collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "partition/operator_piece.h"

namespace taso {
namespace {

using testing::ElementsAre;

MeshAxis axis_of(std::int64_t size, double bandwidth = 8, double latency = 1) {
  return {.size = size, .link = "link", .bandwidth = bandwidth, .latency = latency};
}

// Ten elements of 4 bytes on 4 devices: pieces of 2, 3, 2, 3 elements; the largest takes 1 + 12 / 8 seconds.
TEST(Collectives, ReduceScatterByHand) {
  const CollectiveCost cost = reduce_scatter(10, 4, axis_of(4));
  EXPECT_THAT(cost.sent, ElementsAre(32, 28, 32, 28));
  EXPECT_THAT(cost.received, ElementsAre(28, 32, 28, 32));
  EXPECT_DOUBLE_EQ(cost.seconds, 7.5);
}

TEST(Collectives, AllGatherByHand) {
  const CollectiveCost cost = all_gather(10, 4, axis_of(4));
  EXPECT_THAT(cost.sent, ElementsAre(28, 32, 28, 32));
  EXPECT_THAT(cost.received, ElementsAre(32, 28, 32, 28));
  EXPECT_DOUBLE_EQ(cost.seconds, 7.5);
}

TEST(Collectives, AllReduceByHand) {
  const CollectiveCost cost = all_reduce(10, 4, axis_of(4));
  EXPECT_THAT(cost.sent, ElementsAre(60, 60, 60, 60));
  EXPECT_THAT(cost.received, ElementsAre(60, 60, 60, 60));
  EXPECT_DOUBLE_EQ(cost.seconds, 15);
  // 2 (k - 1) / k of the data where k divides it: 3 / 2 of a megabyte, as in the literature.
  EXPECT_THAT(all_reduce(250000, 4, axis_of(4)).sent, ElementsAre(1.5e6, 1.5e6, 1.5e6, 1.5e6));
}

TEST(Collectives, BroadcastByHand) {
  const CollectiveCost cost = broadcast(10, 4, 1, axis_of(4));
  EXPECT_THAT(cost.sent, ElementsAre(0, 40, 40, 40));
  EXPECT_THAT(cost.received, ElementsAre(40, 0, 40, 40));
  EXPECT_DOUBLE_EQ(cost.seconds, 4 + 5 + 2 * 2.5);
  // Two elements are two messages.
  EXPECT_DOUBLE_EQ(broadcast(2, 4, 0, axis_of(4)).seconds, 2 + 1 + 2 * 1.5);
  EXPECT_DOUBLE_EQ(broadcast(10, 4, 0, axis_of(2)).seconds, 2 + 5);
}

TEST(Collectives, AllToAllByHand) {
  // Rows 1 and 2, columns 2 and 3: device 0 sends 1 x 3 pairs, device 1 sends 2 x 2.
  const CollectiveCost cost = all_to_all(3, 5, 4, axis_of(2));
  EXPECT_THAT(cost.sent, ElementsAre(12, 16));
  EXPECT_THAT(cost.received, ElementsAre(16, 12));
  EXPECT_DOUBLE_EQ(cost.seconds, 1 + 2);
}

TEST(Collectives, HierarchicalAllReduceByHand) {
  // Inner 1 + 8 / 8 each way, between them 8 bytes on the slow link of two: 2 (10 + 4).
  const CollectiveCost cost = all_reduce(4, 4, {axis_of(2, 1, 10), axis_of(2)});
  EXPECT_THAT(cost.sent, ElementsAre(24, 24, 24, 24));
  EXPECT_THAT(cost.received, ElementsAre(24, 24, 24, 24));
  EXPECT_DOUBLE_EQ(cost.seconds, 2 + 28 + 2);
}

TEST(Collectives, OneDeviceAndEmptyTensorsAreFree) {
  const auto is_free = [](const CollectiveCost& cost, std::size_t devices) {
    const std::vector<double> nothing(devices);
    return cost.sent == nothing && cost.received == nothing && cost.seconds == 0;
  };
  for (const auto& [elements, axis] :
       {std::pair{std::int64_t{10}, MeshAxis()}, std::pair{std::int64_t{0}, axis_of(3)}}) {
    const auto devices = static_cast<std::size_t>(axis.size);
    EXPECT_TRUE(is_free(reduce_scatter(elements, 4, axis), devices));
    EXPECT_TRUE(is_free(all_gather(elements, 4, axis), devices));
    EXPECT_TRUE(is_free(all_reduce(elements, 4, axis), devices));
    EXPECT_TRUE(is_free(broadcast(elements, 4, 0, axis), devices));
    EXPECT_TRUE(is_free(all_to_all(elements, 5, 4, axis), devices));
    EXPECT_TRUE(is_free(all_reduce(elements, 4, {axis, axis}), devices * devices));
  }
  EXPECT_TRUE(is_free(all_reduce(10, 4, std::vector<MeshAxis>()), 1));
  EXPECT_FALSE(is_free(all_reduce(1, 1, axis_of(2)), 2));
}

TEST(Collectives, AxesOfOneChangeNothing) {
  const CollectiveCost plain = all_reduce(11, 4, axis_of(3));
  for (const auto& axes : {std::vector<MeshAxis>{axis_of(3)}, {axis_of(1), axis_of(3)}, {axis_of(3), axis_of(1)}}) {
    const CollectiveCost cost = all_reduce(11, 4, axes);
    EXPECT_EQ(cost.sent, plain.sent);
    EXPECT_EQ(cost.received, plain.received);
    EXPECT_EQ(cost.seconds, plain.seconds);
  }
}

/// Which of the devices' summands an element holds, one bit each.
using Summands = std::uint32_t;

/// Devices that pass elements on. A message that has begun occupies its sender and its receiver; no element is sent in
/// an empty message.
struct Devices {
  std::int64_t element_bytes;
  std::vector<std::vector<Summands>> held;  ///< Per device, per element.
  std::vector<double> sent, received;

  /// Passes pieces of a range around a ring: each device sends the pieces `order(place)` of the range to the next one,
  /// each as soon as it may: those of which `has(place, piece)` is true at once, others when they have come. Returns
  /// the time when all is done.
  double pass(const std::vector<std::size_t>& group, IndexRange range, const MeshAxis& axis,
              const std::function<std::vector<std::int64_t>(std::int64_t)>& order,
              const std::function<bool(std::int64_t, std::int64_t)>& has) {
    const auto k = static_cast<std::int64_t>(group.size());
    std::vector<std::vector<double>> ready(group.size(), std::vector<double>(group.size(), -1));
    for (std::size_t i = 0; i < group.size(); ++i)
      for (std::size_t j = 0; j < group.size(); ++j)
        if (has(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j))) ready[i][j] = 0;
    std::vector<double> sender_free(group.size()), receiver_free(group.size());
    std::vector<std::size_t> done(group.size());
    double end = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t i = 0; i < group.size(); ++i) {
        const std::vector<std::int64_t> pieces = order(static_cast<std::int64_t>(i));
        if (done[i] == pieces.size()) continue;
        const std::int64_t piece = pieces[done[i]];
        const double from = ready[i][static_cast<std::size_t>(piece)];
        if (from < 0) continue;
        const std::size_t next = (i + 1) % group.size();
        const std::int64_t n = range.size();
        const IndexRange part{range.begin + n * piece / k, range.begin + n * (piece + 1) / k};
        const double start = std::max({from, sender_free[i], receiver_free[next]});
        const double arrived = part.size() == 0 ? from : start + send(group[i], group[next], part, axis);
        if (part.size() > 0) sender_free[i] = receiver_free[next] = arrived;
        ready[next][static_cast<std::size_t>(piece)] = arrived;
        end = std::max(end, arrived);
        ++done[i];
        moved = true;
      }
    }
    for (std::size_t i = 0; i < group.size(); ++i) EXPECT_EQ(done[i], order(static_cast<std::int64_t>(i)).size());
    return end;
  }

  double send(std::size_t from, std::size_t to, IndexRange part, const MeshAxis& axis) {
    for (auto e = static_cast<std::size_t>(part.begin); e < static_cast<std::size_t>(part.end); ++e)
      held[to][e] |= held[from][e];
    const auto bytes = static_cast<double>(part.size() * element_bytes);
    sent[from] += bytes;
    received[to] += bytes;
    return axis.latency + bytes / axis.bandwidth;
  }

  double scatter_sums(const std::vector<std::size_t>& group, IndexRange range, const MeshAxis& axis) {
    const auto k = static_cast<std::int64_t>(group.size());
    return pass(
        group, range, axis,
        [k](std::int64_t i) {
          std::vector<std::int64_t> pieces;
          for (std::int64_t s = 0; s < k - 1; ++s) pieces.push_back((i - 1 - s + 2 * k) % k);
          return pieces;
        },
        [k](std::int64_t i, std::int64_t piece) { return (piece + 1) % k == i; });
  }
  double gather(const std::vector<std::size_t>& group, IndexRange range, const MeshAxis& axis) {
    const auto k = static_cast<std::int64_t>(group.size());
    return pass(
        group, range, axis,
        [k](std::int64_t i) {
          std::vector<std::int64_t> pieces;
          for (std::int64_t s = 0; s < k - 1; ++s) pieces.push_back((i - s + k) % k);
          return pieces;
        },
        [](std::int64_t i, std::int64_t piece) { return piece == i; });
  }
};

Devices devices_of(std::int64_t devices, std::int64_t elements, std::int64_t element_bytes,
                   const std::function<Summands(std::int64_t, std::int64_t)>& held) {
  const std::vector<double> nothing(static_cast<std::size_t>(devices));
  Devices result{element_bytes, {}, nothing, nothing};
  for (std::int64_t i = 0; i < devices; ++i) {
    result.held.emplace_back();
    for (std::int64_t e = 0; e < elements; ++e) result.held.back().push_back(held(i, e));
  }
  return result;
}

void expect_same(const CollectiveCost& cost, const Devices& devices, double seconds) {
  EXPECT_EQ(cost.sent, devices.sent);
  EXPECT_EQ(cost.received, devices.received);
  EXPECT_NEAR(cost.seconds, seconds, 1e-9 * (1 + seconds));
}

std::vector<std::size_t> all_of_them(std::int64_t k) {
  std::vector<std::size_t> group;
  for (std::int64_t i = 0; i < k; ++i) group.push_back(static_cast<std::size_t>(i));
  return group;
}

void for_sizes(const std::function<void(std::int64_t, std::int64_t, const MeshAxis&)>& test) {
  for (std::int64_t k = 1; k <= 7; ++k)
    for (std::int64_t n = 0; n <= 23; ++n)
      for (const double latency : {0.0, 0.25, 50.0}) {
        SCOPED_TRACE(testing::Message() << n << " elements, " << k << " devices, latency " << latency);
        test(n, k, axis_of(k, 3, latency));
      }
}

TEST(CollectivesSimulated, ReduceScatter) {
  for_sizes([](std::int64_t n, std::int64_t k, const MeshAxis& axis) {
    Devices devices = devices_of(k, n, 4, [](std::int64_t i, std::int64_t) { return Summands{1} << i; });
    const double seconds = devices.scatter_sums(all_of_them(k), {0, n}, axis);
    expect_same(reduce_scatter(n, 4, axis), devices, seconds);
    for (std::int64_t i = 0; i < k; ++i)
      for (std::int64_t e = n * i / k; e < n * (i + 1) / k; ++e)
        EXPECT_EQ(devices.held[static_cast<std::size_t>(i)][static_cast<std::size_t>(e)], (Summands{1} << k) - 1);
  });
}

TEST(CollectivesSimulated, AllGather) {
  for_sizes([](std::int64_t n, std::int64_t k, const MeshAxis& axis) {
    Devices devices = devices_of(
        k, n, 2, [n, k](std::int64_t i, std::int64_t e) { return Summands{n * i / k <= e && e < n * (i + 1) / k}; });
    const double seconds = devices.gather(all_of_them(k), {0, n}, axis);
    expect_same(all_gather(n, 2, axis), devices, seconds);
    for (const auto& elements : devices.held)
      EXPECT_EQ(elements, std::vector<Summands>(static_cast<std::size_t>(n), 1));
  });
}

TEST(CollectivesSimulated, Broadcast) {
  for_sizes([](std::int64_t n, std::int64_t k, const MeshAxis& axis) {
    for (std::int64_t root = 0; root < k; ++root) {
      Devices devices = devices_of(k, n, 4, [root](std::int64_t i, std::int64_t) { return Summands{i == root}; });
      const double seconds = devices.pass(
          all_of_them(k), {0, n}, axis,
          [k, root](std::int64_t i) {
            std::vector<std::int64_t> pieces;
            for (std::int64_t piece = 0; piece < k && (i + 1) % k != root; ++piece) pieces.push_back(piece);
            return pieces;
          },
          [root](std::int64_t i, std::int64_t) { return i == root; });
      expect_same(broadcast(n, 4, root, axis), devices, seconds);
      for (const auto& elements : devices.held)
        EXPECT_EQ(elements, std::vector<Summands>(static_cast<std::size_t>(n), 1));
    }
  });
}

// Element by element: who has it, and who needs it; messages of one step side by side.
TEST(CollectivesSimulated, AllToAll) {
  for (std::int64_t k = 1; k <= 5; ++k)
    for (std::int64_t from = 0; from <= 9; ++from)
      for (std::int64_t to = 0; to <= 9; ++to) {
        SCOPED_TRACE(testing::Message() << from << " x " << to << ", " << k << " devices");
        const MeshAxis axis = axis_of(k, 3, 0.25);
        Devices devices = devices_of(k, 0, 4, {});
        const auto holder = [k](std::int64_t index, std::int64_t extent) {
          std::int64_t device = 0;
          while (extent * (device + 1) / k <= index) ++device;
          return device;
        };
        double seconds = 0;
        for (std::int64_t step = 1; step < k; ++step) {
          std::vector<double> messages(static_cast<std::size_t>(k));
          for (std::int64_t row = 0; row < from; ++row)
            for (std::int64_t column = 0; column < to; ++column) {
              const std::int64_t has = holder(row, from), needs = holder(column, to);
              if ((needs - has + k) % k != step) continue;
              messages[static_cast<std::size_t>(has)] += 4;
              devices.sent[static_cast<std::size_t>(has)] += 4;
              devices.received[static_cast<std::size_t>(needs)] += 4;
            }
          const double largest = *std::max_element(messages.begin(), messages.end());
          if (largest > 0) seconds += axis.latency + largest / axis.bandwidth;
        }
        expect_same(all_to_all(from, to, 4, axis), devices, seconds);
      }
}

/// All-reduce on `sizes`, slowest first, of a range that all devices of the mesh with the given inner coordinates hold.
/// `base` is the first such device, `stride` how far apart they are.
double reduce_all(Devices& devices, const std::vector<MeshAxis>& axes, std::size_t count, IndexRange range,
                  std::size_t base, std::size_t stride) {
  if (count == 0) return 0;
  const MeshAxis& inner = axes[count - 1];
  std::size_t groups = 1;
  for (std::size_t i = 0; i + 1 < count; ++i) groups *= static_cast<std::size_t>(axes[i].size);
  const auto k = static_cast<std::size_t>(inner.size);
  const auto in_each_group = [&](const auto& operation) {
    double seconds = 0;
    for (std::size_t g = 0; g < groups; ++g) {
      std::vector<std::size_t> group;
      for (std::size_t i = 0; i < k; ++i) group.push_back(base + stride * (g * k + i));
      seconds = std::max(seconds, operation(group));
    }
    return seconds;
  };
  double seconds = in_each_group([&](const auto& group) { return devices.scatter_sums(group, range, inner); });
  double between = 0;
  for (std::size_t i = 0; i < k; ++i) {
    const std::int64_t n = range.size(), place = static_cast<std::int64_t>(i);
    const IndexRange part{range.begin + n * place / inner.size, range.begin + n * (place + 1) / inner.size};
    between = std::max(between, reduce_all(devices, axes, count - 1, part, base + stride * i, stride * k));
  }
  seconds += between;
  return seconds + in_each_group([&](const auto& group) { return devices.gather(group, range, inner); });
}

TEST(CollectivesSimulated, AllReduceOnSeveralAxes) {
  const std::vector<std::vector<std::int64_t>> meshes{{1},    {4},          {2, 2},    {2, 3},
                                                      {3, 2}, {1, 3, 1, 2}, {2, 2, 3}, {3, 2, 4}};
  for (const std::vector<std::int64_t>& sizes : meshes)
    for (std::int64_t n = 0; n <= 37; ++n) {
      std::vector<MeshAxis> axes;
      std::int64_t k = 1;
      for (const std::int64_t size : sizes) {
        axes.push_back(axis_of(size, static_cast<double>(axes.size() + 1), 1.0 / static_cast<double>(axes.size() + 1)));
        k *= size;
      }
      SCOPED_TRACE(testing::Message() << n << " elements, " << testing::PrintToString(sizes));
      Devices devices = devices_of(k, n, 4, [](std::int64_t i, std::int64_t) { return Summands{1} << i; });
      const double seconds = reduce_all(devices, axes, axes.size(), {0, n}, 0, 1);
      expect_same(all_reduce(n, 4, axes), devices, seconds);
      for (const auto& elements : devices.held)
        EXPECT_EQ(elements, std::vector<Summands>(static_cast<std::size_t>(n), (Summands{1} << k) - 1));
      if (axes.size() == 1) expect_same(all_reduce(n, 4, axes[0]), devices, seconds);
    }
}

}  // namespace
}  // namespace taso
