// Schedules of transfers: they do what is asked for, and take what is stated.
#include "partition/transfer_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "support/random.h"
#include "tests/partition/drawn_plans.h"

namespace taso::test {
namespace {

using Offsets = std::vector<std::int64_t>;

/// The elements of a box, by their places in the tensor.
Offsets elements_of(const IndexBox& box, const Shape& shape) {
  Offsets all;
  for (std::int64_t element = 0; element < volume(shape); ++element) {
    std::int64_t left = element;
    bool inside = true;
    for (std::size_t axis = shape.size(); axis-- > 0; left /= shape[axis])
      inside = inside && box[axis].begin <= left % shape[axis] && left % shape[axis] < box[axis].end;
    if (inside) all.push_back(element);
  }
  return all;
}

/// Times instead of rates, drawn by themselves for every kind.
void measure(Mesh& mesh, Random& random) {
  const auto table = [&] {
    std::vector<TimeTable::Point> points;
    for (double bytes = 1; bytes < 1000; bytes *= 10) points.push_back({bytes, static_cast<double>(random.below(100))});
    return TimeTable::of(std::move(points));
  };
  for (MeshAxis& axis : mesh.axes)
    for (const CollectiveKind& kind : collective_kinds) axis.times.*kind.table = table();
  mesh.transport = "drawn";
  mesh.copy = table();
}

/// Cuts along mesh axes; those in `not_cut` repeat.
Placement drawn_placement(const Shape& shape, const Mesh& mesh, const std::vector<std::size_t>& not_cut,
                          Random& random) {
  Placement placement = everywhere(shape, mesh);
  std::vector<std::size_t> cut(mesh.axes.size());
  for (std::size_t m = 0; m < cut.size(); ++m) {
    cut[m] = random.below(shape.size() + 1);
    if (std::count(not_cut.begin(), not_cut.end(), m) > 0) cut[m] = shape.size();
  }
  const std::int64_t halo = static_cast<std::int64_t>(random.below(2));
  for (std::size_t d = 0; d < placement.boxes.size(); ++d)
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      RangePiece piece{shape[axis], 0, 1};
      const std::vector<std::int64_t> place = mesh.coordinates(static_cast<std::int64_t>(d));
      for (std::size_t m = 0; m < cut.size(); ++m)
        if (cut[m] == axis)
          piece = {piece.n, piece.index * mesh.axes[m].size + place[m], piece.pieces * mesh.axes[m].size};
      const IndexRange range = piece.range();
      placement.boxes[d][axis] = {std::max<std::int64_t>(0, range.begin - halo),
                                  std::min(shape[axis], range.end + halo)};
    }
  return placement;
}

/// What devices know of an element: the devices whose summands are in it.
using Summands = std::map<std::int64_t, std::multiset<std::size_t>>;

/// Follows a schedule element by element; what devices have in the end.
std::vector<Summands> followed(const TransferSchedule& schedule, const Placement& have, const Shape& shape) {
  std::vector<Summands> known(have.boxes.size());
  for (std::size_t d = 0; d < known.size(); ++d)
    for (const std::int64_t element : elements_of(have.boxes[d], shape)) known[d][element] = {d};
  for (const TransferStep& step : schedule.steps) {
    std::vector<Summands> next(known.size());
    for (std::size_t d = 0; d < known.size(); ++d) {
      if (step.kind == TransferStep::Kind::fetch) next[d] = known[d];
      for (const IndexBox& box : step.holds[d])
        if (step.kind == TransferStep::Kind::combine)
          for (const std::int64_t element : elements_of(box, shape)) next[d][element] = known[d].at(element);
      for (const ReceivedBox& one : step.received[d]) {
        EXPECT_NE(one.from, d);
        EXPECT_GT(volume_of(one.box), 0);
        for (const std::int64_t element : elements_of(one.box, shape)) {
          const auto& summands = known[one.from].at(element);
          if (step.kind == TransferStep::Kind::fetch) {
            EXPECT_FALSE(next[d].contains(element)) << "what is there is not received";
          }
          next[d][element].insert(summands.begin(), summands.end());
        }
      }
    }
    known = std::move(next);
  }
  return known;
}

TEST(TransferSchedules, BringWhatIsNeededAndTakeWhatIsStated) {
  const std::vector<std::vector<std::int64_t>> meshes = {{2}, {3}, {4}, {2, 2}, {2, 3}, {4, 2}, {2, 2, 2}, {3, 1, 2}};
  Random random(5);
  std::size_t moved = 0, sums = 0, scattered_sums = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    Mesh mesh = mesh_of_sizes(meshes[static_cast<std::size_t>(trial) % meshes.size()]);
    for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis)
      mesh.axes[axis].bandwidth = random.below(2) == 0 ? 1 : 1 + 8 * static_cast<double>(axis);
    if (trial % 3 == 0) measure(mesh, random);
    Shape shape;
    for (std::size_t axis = random.below(4); axis > 0; --axis)
      shape.push_back(1 + static_cast<std::int64_t>(random.below(7)));
    std::vector<std::size_t> partial, kept;
    for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis)
      if (random.below(2) == 0) {
        partial.push_back(axis);
        if (random.below(3) == 0) kept.push_back(axis);
      }
    Placement have = drawn_placement(shape, mesh, partial, random);
    Placement need = drawn_placement(shape, mesh, kept, random);
    have.partial = partial;
    need.partial = kept;
    if (!partial.empty()) have.reducer = "sum";
    if (!kept.empty()) need.reducer = "sum";
    const Transfer price = transfer(have, need, 4, mesh);
    const auto schedule = transfer_schedule(have, need, 4, mesh);
    ASSERT_EQ(schedule.has_value(), price.possible);
    ASSERT_TRUE(price.possible);
    std::int64_t received = 0;
    for (const TransferStep& step : schedule->steps)
      for (const auto& of_device : step.received)
        for (const ReceivedBox& one : of_device) received += volume_of(one.box);
    ASSERT_EQ(schedule->elements, received);
    ASSERT_EQ(static_cast<double>(4 * received), price.bytes) << trial;
    const std::vector<Summands> known = followed(*schedule, have, shape);
    for (std::size_t d = 0; d < known.size(); ++d) {
      std::size_t combined = 1;
      for (const std::size_t axis : schedule->reduction.axes)
        combined *= static_cast<std::size_t>(mesh.axes[axis].size);
      const std::vector<std::int64_t> place = mesh.coordinates(static_cast<std::int64_t>(d));
      for (const std::int64_t element : elements_of(need.boxes[d], shape)) {
        ASSERT_TRUE(known[d].contains(element)) << trial;
        const auto& summands = known[d].at(element);
        ASSERT_EQ(summands.size(), combined) << trial;
        ASSERT_EQ(std::set<std::size_t>(summands.begin(), summands.end()).size(), combined) << trial;
        for (const std::size_t e : summands)
          for (const std::size_t axis : kept)
            ASSERT_EQ(mesh.coordinates(static_cast<std::int64_t>(e))[axis], place[axis]) << "another summand";
      }
    }
    moved += received > 0 ? 1 : 0;
    sums += schedule->reduction.axes.empty() ? 0 : 1;
    scattered_sums += !schedule->reduction.axes.empty() && !schedule->reduction.gathered ? 1 : 0;
  }
  EXPECT_GT(moved, 900U);
  EXPECT_GT(sums, 500U);
  EXPECT_GT(scattered_sums, 100U);
  EXPECT_LT(scattered_sums, sums);
}

// Slow links carry what is left after fast ones, and bring the sum back before these do.
TEST(TransferSchedules, AnAllReduceIsHierarchical) {
  Mesh mesh = mesh_of_sizes({2, 4});
  mesh.axes[0].bandwidth = 1;
  mesh.axes[1].bandwidth = 100;
  Placement partial = everywhere({8, 3}, mesh);
  partial.partial = {0, 1};
  partial.reducer = "sum";
  const auto schedule = transfer_schedule(partial, everywhere({8, 3}, mesh), 4, mesh);
  ASSERT_TRUE(schedule.has_value());
  EXPECT_EQ(schedule->reduction, (Reduction{{0, 1}, 0, true}));
  ASSERT_EQ(schedule->steps.size(), 5U);
  const std::size_t axes[] = {1, 0, 0, 1};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(schedule->steps[i].mesh_axis, axes[i]);
  EXPECT_EQ(schedule->steps[0].received[5],
            (std::vector<ReceivedBox>{{4, {{2, 4}, {0, 3}}}, {6, {{2, 4}, {0, 3}}}, {7, {{2, 4}, {0, 3}}}}));
  EXPECT_EQ(schedule->steps[1].received[5], (std::vector<ReceivedBox>{{1, {{3, 4}, {0, 3}}}}));
  EXPECT_EQ(schedule->steps[2].received[5], (std::vector<ReceivedBox>{{1, {{2, 3}, {0, 3}}}}));
  EXPECT_EQ(schedule->elements, 2 * 8 * (18 + 3));
}

// Where nothing can be divided one device adds, and the others fetch.
TEST(TransferSchedules, OfScalars) {
  const Mesh mesh = mesh_of_sizes({3});
  const Placement whole = everywhere({}, mesh);
  Placement partial = whole;
  partial.partial = {0};
  partial.reducer = "max";
  const auto schedule = transfer_schedule(partial, whole, 8, mesh);
  ASSERT_TRUE(schedule.has_value());
  EXPECT_EQ(schedule->steps[0].received[2], (std::vector<ReceivedBox>{{0, {}}, {1, {}}}));
  EXPECT_EQ(schedule->elements, 4);
  EXPECT_EQ(transfer(partial, whole, 8, mesh).bytes, 32);
  EXPECT_FALSE(transfer_schedule(whole, partial, 8, mesh).has_value());
}

}  // namespace
}  // namespace taso::test
