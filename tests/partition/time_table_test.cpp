// Measured times of communication, and prices made of them.
#include "partition/time_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "partition/mesh.h"
#include "partition/placement.h"

namespace taso {
namespace {

TEST(TimeTable, LinesGoThroughWhatWasMeasured) {
  const TimeTable table = TimeTable::of({{1024, 3e-6}, {4, 1e-6}, {2048, 7e-6}});
  EXPECT_DOUBLE_EQ(table.seconds(4), 1e-6);
  EXPECT_DOUBLE_EQ(table.seconds(514), 2e-6);
  EXPECT_DOUBLE_EQ(table.seconds(1024), 3e-6);
  EXPECT_DOUBLE_EQ(table.seconds(1536), 5e-6);
}

TEST(TimeTable, BelowIsAnEmptyMessageAndAboveTheLastLineGoesOn) {
  const TimeTable table = TimeTable::of({{4, 1e-6}, {1024, 3e-6}, {2048, 7e-6}});
  EXPECT_DOUBLE_EQ(table.seconds(0), 1e-6);
  EXPECT_DOUBLE_EQ(table.seconds(4096), 15e-6);
  EXPECT_DOUBLE_EQ(TimeTable::of({{8, 2e-6}}).seconds(1e9), 2e-6);
}

TEST(TimeTable, MoreBytesNeverTakeLess) {
  const TimeTable table = TimeTable::of({{1, 1}, {2, 5}, {3, 4}, {4, 3}, {5, 6}, {6, 5.5}});
  // 5, 4 and 3 have the mean 4, 6 and 5.5 the mean 5.75.
  const std::vector<TimeTable::Point> expected = {{1, 1}, {2, 4}, {3, 4}, {4, 4}, {5, 5.75}, {6, 5.75}};
  EXPECT_EQ(table.points(), expected);
  EXPECT_EQ(TimeTable::of(table.points()), table);
  double before = 0;
  for (double bytes = 0; bytes < 20; bytes += 0.125) {
    EXPECT_GE(table.seconds(bytes), before);
    before = table.seconds(bytes);
  }
}

/// Four ranks, with times that tell kinds apart.
Mesh measured_mesh() {
  const auto table = [](double first) { return TimeTable::of({{4, first}, {1004, first + 1}}); };
  MeshAxis axis{4, "wire", 1, 1};
  axis.times = {table(10), table(20), table(30), table(40), table(1)};
  return {{axis}, {}, "threads", table(100)};
}

TEST(MeasuredMesh, TransfersTakeWhatTheirKindTakes) {
  const Mesh mesh = measured_mesh();
  const Placement whole = everywhere({8, 8}, mesh);
  Placement rows = whole, columns = whole, partial = whole, next = whole;
  for (std::int64_t d = 0; d < 4; ++d) {
    const auto at = static_cast<std::size_t>(d);
    rows.boxes[at][0] = {2 * d, 2 * d + 2};
    columns.boxes[at][1] = {2 * d, 2 * d + 2};
    next.boxes[at][0] = {2 * ((d + 1) % 4), 2 * ((d + 1) % 4) + 2};
  }
  partial.partial = {0};
  partial.reducer = "sum";
  const auto seconds = [&](const Placement& from, const Placement& to) { return transfer(from, to, 4, mesh).seconds; };
  // Rows of 64 bytes: three are received, and the own one is copied.
  EXPECT_DOUBLE_EQ(seconds(rows, whole), mesh.axes[0].times.all_gather.seconds(192) + mesh.copy.seconds(64));
  EXPECT_DOUBLE_EQ(seconds(columns, whole), mesh.axes[0].times.all_to_all.seconds(192) + mesh.copy.seconds(64));
  EXPECT_DOUBLE_EQ(seconds(rows, next), mesh.axes[0].times.neighbor.seconds(64));
  EXPECT_DOUBLE_EQ(seconds(partial, rows), mesh.axes[0].times.reduce_scatter.seconds(64));
  EXPECT_DOUBLE_EQ(seconds(partial, whole), mesh.axes[0].times.reduce_scatter.seconds(64) +
                                                mesh.axes[0].times.all_gather.seconds(192) + mesh.copy.seconds(64));
  EXPECT_EQ(seconds(whole, rows), 0);
  // Bytes are those of the schedules, as without measured times.
  EXPECT_EQ(transfer(rows, whole, 4, mesh).bytes, 4 * 192);
}

TEST(MeasuredMesh, BetweenOneMessageAndOneFromEverybody) {
  MeshAxis axis = measured_mesh().axes[0];
  axis.times.neighbor = TimeTable::of({{4, 10}, {1004, 11}});
  const double one = axis.times.neighbor.seconds(64), all = axis.times.all_gather.seconds(64);
  EXPECT_DOUBLE_EQ(axis.fetch_seconds(64, 1, false), one);
  EXPECT_DOUBLE_EQ(axis.fetch_seconds(64, 2, false), (one + all) / 2);
  EXPECT_DOUBLE_EQ(axis.fetch_seconds(64, 3, false), all);
}

}  // namespace
}  // namespace taso
