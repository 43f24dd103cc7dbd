#include "partition/planner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "graph/rewrite.h"
#include "partition/plan_baselines.h"
#include "partition/proved_strategies.h"
#include "support/random.h"
#include "tests/partition/strategy_tables.h"
#include "tests/support/graphs.h"

namespace taso {
namespace {

using test::every_strategy;
using test::graph_of;
using test::registry;
using test::value_of;

Mesh mesh_of(std::initializer_list<std::int64_t> sizes, double bandwidth = 1e9) {
  Mesh mesh;
  mesh.device = {std::int64_t{1} << 30, 1e9, 1e12};
  for (const std::int64_t size : sizes) mesh.axes.push_back({size, "link", bandwidth, 0});
  return mesh;
}

Graph normal_graph(const std::string& text) {
  Graph graph = graph_of(text);
  normalize(graph, registry());
  return graph;
}

/// What a plan with one configuration per node costs, by transfers from made to read or, of values with several readers
/// and outputs, by the best placement to keep them in: the definition of the problem, written without tables.
double least_by_trying(const Graph& graph, const Mesh& mesh, Planner& planner, StrategyTable& strategies) {
  std::vector<NodeId> nodes;
  for (const NodeId id : graph.topological_order())
    if (graph.node(id).kind == NodeKind::op && !graph.node(id).weight_only) nodes.push_back(id);
  const PieceCost cost = roofline(strategies.registry(), mesh.device);
  std::map<NodeId, std::size_t> way;
  double best = HUGE_VAL;
  const auto evaluate_choice = [&] {
    double total = 0;
    for (const NodeId id : nodes) {
      const NodeConfiguration& mine = planner.configurations(id)[way[id]];
      // What is supplied is no part of a sum.
      for (std::size_t i = 0; i < mine.reads.size(); ++i) {
        const Node& producer = graph.node(graph.node(id).inputs[i].node);
        if (!mine.reads[i].partial.empty() && (producer.weight_only || producer.kind != NodeKind::op)) return;
      }
      total += value_of(cost(mine.largest, {}));
      for (std::uint32_t port = 0; port < graph.node(id).outputs.size(); ++port) {
        const Value value{id, port};
        std::vector<const Placement*> needs, places;
        for (const NodeId reader : nodes)
          for (std::size_t i = 0; i < graph.node(reader).inputs.size(); ++i)
            if (graph.node(reader).inputs[i] == value)
              needs.push_back(&planner.configurations(reader)[way[reader]].reads[i]);
        const bool output = std::count(graph.outputs().begin(), graph.outputs().end(), value) > 0;
        const auto seconds = [&](const Placement& from, const Placement& to) {
          const Transfer moved = transfer(from, to, 4, mesh);
          return moved.possible ? moved.seconds : HUGE_VAL;
        };
        if (needs.size() == 1 && !output) {
          total += seconds(mine.makes[port], *needs[0]);
          continue;
        }
        // Whatever anybody makes or reads may be where it is kept.
        for (const NodeId other : nodes)
          for (const NodeConfiguration& configuration : planner.configurations(other)) {
            if (other == id) places.push_back(&configuration.makes[port]);
            for (std::size_t i = 0; i < graph.node(other).inputs.size(); ++i)
              if (graph.node(other).inputs[i] == value) places.push_back(&configuration.reads[i]);
          }
        double least = HUGE_VAL;
        for (const Placement* place : places) {
          if (output && !place->partial.empty()) continue;
          double sum = seconds(mine.makes[port], *place);
          for (const Placement* need : needs) sum += seconds(*place, *need);
          least = std::min(least, sum);
        }
        total += least;
      }
    }
    best = std::min(best, total);
  };
  const std::function<void(std::size_t)> choose = [&](std::size_t place) {
    if (place == nodes.size()) return evaluate_choice();
    for (way[nodes[place]] = 0; way[nodes[place]] < planner.configurations(nodes[place]).size(); ++way[nodes[place]])
      choose(place + 1);
  };
  choose(0);
  return best;
}

TEST(Planner, IsAsGoodAsTryingEverything) {
  const char* graphs[] = {
      "input x f32[4, 6]\nweight w f32[6, 8]\nweight v f32[8, 2]\noutput matmul(relu(matmul(x, w)), v)\n",
      "input x f32[8, 4]\nweight w f32[4, 4]\ny = matmul(x, w)\noutput add(y, tanh(y))\n",
      "input x f32[2, 4, 6, 6]\nweight k f32[4, 4, 3, 3]\ny = conv2d(x, k; pads=[1, 1, 1, 1])\noutput add(y, x)\n",
      "input x f32[6, 6]\noutput softmax(transpose(x; perm=[1, 0]); axis=-1)\n",
  };
  for (const char* text : graphs)
    for (const double bandwidth : {1e6, 1e8, 1e10}) {
      const Graph graph = normal_graph(text);
      const Mesh mesh = mesh_of({2}, bandwidth);
      StrategyTable strategies = every_strategy();
      Planner planner(graph, mesh, strategies, {});
      const PartitionPlan plan = value_of(planner.plan());
      EXPECT_TRUE(plan.exact);
      const double tried = least_by_trying(graph, mesh, planner, strategies);
      EXPECT_NEAR(plan.seconds, tried, 1e-9 * tried) << text << bandwidth;
      EXPECT_NEAR(plan.seconds, plan.lower_bound, 1e-9 * plan.seconds);
      EXPECT_NEAR(plan.seconds, plan.compute_seconds + plan.transfer_seconds, 1e-12);
      const PartitionPlan alone = value_of(planner.plan(only_repeat()));
      EXPECT_EQ(alone.transfer_bytes, 0);
      EXPECT_LE(plan.seconds, alone.seconds * (1 + 1e-12));
      EXPECT_LE(plan.seconds, value_of(planner.plan(only_data_parallel(graph))).seconds * (1 + 1e-12));
    }
}

std::string uses(const Graph& graph, const PartitionPlan& plan) {
  std::string text;
  for (const PlannedNode& node : plan.nodes)
    text += graph.node(node.node).op + " " + node.configuration.to_string() + "; ";
  return text;
}

// Column, then row: one all-reduce for both products (Shoeybi et al., Megatron-LM, 2019). Comes out by itself.
TEST(Planner, TwoProductsNeedOneReduction) {
  const Graph graph = normal_graph(
      "input x f32[1, 512]\nweight w f32[512, 2048]\nweight v f32[2048, 512]\noutput matmul(relu(matmul(x, w)), v)\n");
  const Mesh mesh = mesh_of({4}, 1e9);
  StrategyTable strategies = every_strategy();
  Planner planner(graph, mesh, strategies, {});
  const PartitionPlan plan = value_of(planner.plan());
  EXPECT_EQ(uses(graph, plan), "matmul j@-1; relu I@-1; matmul t (sum); ");
  ASSERT_EQ(plan.transfers.size(), 1U);
  // A quarter of the output is left on every device: a reduce-scatter of 3/4 of it.
  EXPECT_EQ(plan.transfer_bytes, 4 * 512 * 4 * 3 / 4);
  EXPECT_EQ(plan.weight_bytes, 2 * 512 * 2048 * 4 / 4);
}

// With many rows and links as slow, the rows are cut: nothing moves.
TEST(Planner, ManyRowsAreDataParallel) {
  const Graph graph = normal_graph(
      "input x f32[4096, 64]\nweight w f32[64, 64]\nweight v f32[64, 64]\noutput matmul(relu(matmul(x, w)), v)\n");
  const Mesh mesh = mesh_of({4}, 1e7);
  StrategyTable strategies = every_strategy();
  Planner planner(graph, mesh, strategies, {});
  const PartitionPlan plan = value_of(planner.plan());
  EXPECT_EQ(uses(graph, plan), "matmul i@-2; relu I@-2; matmul i@-2; ");
  EXPECT_EQ(plan.transfer_bytes, 0);
}

// What is carried stays whole: around it values are gathered.
TEST(Planner, WhatIsCarriedReadsAndMakesEverythingOnTheFirstDevice) {
  const Graph graph = normal_graph("input x f32[8, 8]\ny = relu(x)\no = opaque mystery(y) f32[8, 8]\noutput tanh(o)\n");
  const Mesh mesh = mesh_of({2}, 1e9);
  StrategyTable strategies = every_strategy();
  Planner planner(graph, mesh, strategies, {});
  const PartitionPlan plan = value_of(planner.plan());
  ASSERT_EQ(plan.nodes.size(), 3U);
  EXPECT_EQ(plan.nodes[1].configuration.makes[0], on_first({8, 8}, mesh));
}

// Partial sums travel through what is linear, with the conditions that their proofs ask for: one reduction for two
// products, not two.
TEST(Planner, PartialSumsAreAddedBeforeTheyAreReduced) {
  const Graph graph = normal_graph(
      "input x f32[1, 512]\ninput y f32[1, 512]\nweight w f32[512, 512]\nweight v f32[512, 512]\n"
      "output tanh(add(matmul(relu(x), w), matmul(relu(y), v)))\n");
  const Mesh mesh = mesh_of({4}, 1e7);
  const ProvedStrategies proved =
      value_of(ProvedStrategies::load({std::string(TASO_SOURCE_DIR) + "/specs/strategies/default.rules"}, registry()));
  StrategyTable strategies(
      registry(), [&](std::string_view op) { return proved.of(op); },
      [&](std::string_view op) { return proved.passages_of(op); });
  Planner planner(graph, mesh, strategies, {});
  const PartitionPlan plan = value_of(planner.plan([&](NodeId id, const NodeConfiguration& configuration) {
    return !graph.node(id).is_op("matmul") || configuration.to_string() == "t (sum)";
  }));
  EXPECT_NE(uses(graph, plan).find("add partial sum; "), std::string::npos) << uses(graph, plan);
  // What is left on every device is a quarter of the sum.
  ASSERT_EQ(plan.transfers.size(), 1U) << uses(graph, plan);
  EXPECT_EQ(plan.transfer_bytes, 4 * 512 * 4 * 3 / 4);
}

TEST(Planner, SaysWhereWaysWereLeftOut) {
  const Graph graph = normal_graph("input x f32[8, 8]\noutput relu(x)\n");
  const Mesh mesh = mesh_of({2, 2});
  StrategyTable strategies = every_strategy();
  PlannerOptions options;
  options.configurations.most = 3;
  Planner planner(graph, mesh, strategies, options);
  EXPECT_FALSE(value_of(planner.plan()).complete);
  Planner all(graph, mesh, strategies, {});
  EXPECT_TRUE(value_of(all.plan()).complete);
}

// A strategy that is not proved is used by no plan.
TEST(Planner, WhatIsSuppliedIsNoPartOfASum) {
  // A product passes partial sums of either operand on, but nobody has parts of a sum that is a weight or an input.
  const Graph graph = normal_graph("input x f32[4, 6]\nweight w f32[6, 8]\noutput matmul(x, w)\n");
  const Mesh mesh = mesh_of({2});
  StrategyTable strategies = every_strategy();
  Planner planner(graph, mesh, strategies, {});
  std::size_t passages = 0;
  const PartitionPlan plan = value_of(planner.plan([&](NodeId, const NodeConfiguration& configuration) {
    const bool passes = configuration.axes[0].kind == AxisUse::Kind::partial;
    passages += passes ? 1 : 0;
    return passes;
  }));
  EXPECT_EQ(plan.nodes.at(0).configuration.axes[0].kind, AxisUse::Kind::repeat);
  const auto& all = planner.configurations(plan.nodes[0].node);
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const NodeConfiguration& one) { return one.axes[0].kind == AxisUse::Kind::partial; }),
            2);
  EXPECT_EQ(passages, 0U);  // They are not even asked for.
}

TEST(Planner, OutputsAreKeptWhole) {
  // Two readers leave every second column out: to keep what they read would be cheapest, but y is an output.
  const Graph graph = normal_graph(R"(
input x f32[4, 8]
y = relu(x)
output y
output tanh(slice(y; starts=[0, 0], sizes=[4, 4], steps=[1, 2]))
output slice(y; starts=[0, 0], sizes=[3, 4], steps=[1, 2])
)");
  const Mesh mesh = mesh_of({2}, 1e6);
  StrategyTable strategies = every_strategy();
  Planner planner(graph, mesh, strategies, {});
  std::size_t gaps = 0;
  const PartitionPlan plan = value_of(planner.plan([&](NodeId id, const NodeConfiguration& configuration) {
    const Node& node = graph.node(id);
    if (node.is_op("slice")) {
      const bool cut = configuration.to_string() == "I@-1";
      gaps += cut && !covers(configuration.reads[0], {4, 8}) ? 1 : 0;
      return cut;
    }
    return configuration.to_string() == (node.is_op("relu") ? "I@-2" : "I@-1");
  }));
  EXPECT_EQ(gaps, 2U);
  for (const auto& [value, placement] : plan.kept)
    EXPECT_TRUE(covers(placement, graph.type(value).shape)) << graph.node(value.node).op;
}

TEST(Transfers, PlacementsThatCover) {
  const Shape shape = {4, 6};
  EXPECT_TRUE(covers({{{{0, 2}, {0, 6}}, {{2, 4}, {0, 6}}}, {}, ""}, shape));
  EXPECT_TRUE(covers({{{{0, 3}, {0, 6}}, {{1, 4}, {0, 6}}}, {}, ""}, shape));  // Overlapping.
  EXPECT_FALSE(covers({{{{0, 2}, {0, 6}}, {{2, 4}, {0, 5}}}, {}, ""}, shape));
  EXPECT_FALSE(covers({{{{0, 2}, {0, 6}}, {{3, 4}, {0, 6}}}, {}, ""}, shape));
  EXPECT_TRUE(covers({{{{0, 0}, {0, 6}}}, {}, ""}, {0, 6}));
}

TEST(Planner, WhatIsAllowedMustBeAPlan) {
  // The sum is an output, so that nobody can read parts of it.
  const Graph graph = normal_graph("input x f32[4, 6]\ny = reduce_sum(x; axes=[-1])\noutput y\noutput neg(y)\n");
  const Mesh mesh = mesh_of({2});
  StrategyTable strategies = every_strategy();
  Planner planner(graph, mesh, strategies, {});
  const auto plan = planner.plan([&](NodeId id, const NodeConfiguration& configuration) {
    return !graph.node(id).is_op("neg") || configuration.axes[0].kind == AxisUse::Kind::partial;
  });
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::not_proved);
  EXPECT_EQ(plan.error().message, "no plan was found that does only what is allowed");
}

TEST(Planner, WithoutStrategiesEverythingRepeats) {
  const Graph graph = normal_graph("input x f32[8, 8]\noutput relu(relu(x))\n");
  const Mesh mesh = mesh_of({2, 2});
  StrategyTable none(
      registry(), [](std::string_view) { return std::vector<PartitionStrategy>(); },
      [](std::string_view) { return std::vector<PartialPassage>(); });
  Planner planner(graph, mesh, none, {});
  EXPECT_EQ(uses(graph, value_of(planner.plan())), "relu repeat | repeat; relu repeat | repeat; ");
}

TEST(Transfers, OfOneTensor) {
  const Mesh mesh = mesh_of({2, 2}, 1e6);
  const Placement whole = everywhere({8, 4}, mesh);
  Placement rows = whole, quarters = whole;
  for (std::size_t d = 0; d < 4; ++d) {
    rows.boxes[d][0] = {d < 2 ? 0 : 4, d < 2 ? 4 : 8};
    quarters.boxes[d][0] = {static_cast<std::int64_t>(2 * d), static_cast<std::int64_t>(2 * d + 2)};
  }
  EXPECT_EQ(transfer(whole, rows, 4, mesh).bytes, 0) << "each has it";
  EXPECT_EQ(transfer(rows, whole, 4, mesh).bytes, 4 * 4 * 4 * 4) << "every device lacks half of 32 elements";
  EXPECT_EQ(transfer(rows, quarters, 4, mesh).bytes, 0);
  // The fast axis brings 8 elements to each, the slow one 16.
  const Transfer gathered = transfer(quarters, whole, 4, mesh);
  EXPECT_EQ(gathered.bytes, 4 * (8 + 16) * 4);
  EXPECT_DOUBLE_EQ(gathered.seconds, (8 * 4 + 16 * 4) / 1e6);
  Placement partial = whole;
  partial.partial = {1};
  partial.reducer = "sum";
  // A ring all-reduce of two devices moves the tensor once in each direction; or half of it, if the halves stay.
  EXPECT_EQ(transfer(partial, whole, 4, mesh).bytes, 4 * 128);
  Placement halves = whole;
  for (std::size_t d = 0; d < 4; ++d) halves.boxes[d][0] = {d % 2 == 0 ? 0 : 4, d % 2 == 0 ? 4 : 8};
  EXPECT_EQ(transfer(partial, halves, 4, mesh).bytes, 4 * 64);
  EXPECT_FALSE(transfer(whole, partial, 4, mesh).possible) << "what is not partial is not made so";
  EXPECT_TRUE(transfer(partial, partial, 4, mesh).possible);
  EXPECT_EQ(transfer(partial, partial, 4, mesh).bytes, 0);
}

// The steps of a ring take what the largest piece takes.
TEST(Transfers, OfUnevenPieces) {
  const Mesh mesh = mesh_of({2}, 1);
  Placement partial = everywhere({3}, mesh);
  partial.partial = {0};
  partial.reducer = "sum";
  const Transfer reduced = transfer(partial, everywhere({3}, mesh), 1, mesh);
  EXPECT_EQ(reduced.bytes, 2 * 3);
  EXPECT_DOUBLE_EQ(reduced.seconds, 2 + 2);
}

/// Cuts some axes of a tensor along mesh axes; others are repeated.
Placement random_placement(const Shape& shape, const Mesh& mesh, Random& random, bool halos) {
  Placement placement = everywhere(shape, mesh);
  std::vector<std::size_t> cut_axis(mesh.axes.size());
  for (std::size_t& axis : cut_axis) axis = random.below(shape.size() + 1);  // The last: none.
  const std::int64_t halo = halos ? static_cast<std::int64_t>(random.below(3)) : 0;
  for (std::size_t d = 0; d < placement.boxes.size(); ++d) {
    const std::vector<std::int64_t> place = mesh.coordinates(static_cast<std::int64_t>(d));
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      RangePiece piece{shape[axis], 0, 1};
      for (std::size_t m = 0; m < mesh.axes.size(); ++m) {
        if (cut_axis[m] != axis) continue;
        piece.index = piece.index * mesh.axes[m].size + place[m];
        piece.pieces *= mesh.axes[m].size;
      }
      IndexRange range = piece.range();
      if (piece.pieces > 1)
        range = {std::max<std::int64_t>(0, range.begin - halo), std::min(shape[axis], range.end + halo)};
      placement.boxes[d][axis] = range;
    }
  }
  return placement;
}

bool holds_element(const IndexBox& box, std::int64_t offset, const Shape& shape) {
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    const std::int64_t index = offset % shape[axis];
    offset /= shape[axis];
    if (index < box[axis].begin || index >= box[axis].end) return false;
  }
  return true;
}

// Element by element: each comes from the nearest device that has it.
TEST(Transfers, AreThoseOfSingleElements) {
  Random random(11);
  for (int trial = 0; trial < 1000; ++trial) {
    Mesh mesh = trial % 2 == 0 ? mesh_of({2, 3}, 1) : mesh_of({2, 2, 2}, 1);
    for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis)
      mesh.axes[axis].bandwidth = 1 + 3 * static_cast<double>(axis);
    Shape shape;
    for (std::size_t axis = 0; axis < 1 + random.below(3); ++axis)
      shape.push_back(1 + static_cast<std::int64_t>(random.below(7)));
    const Placement have = random_placement(shape, mesh, random, trial % 3 == 0);
    const Placement need = random_placement(shape, mesh, random, true);
    std::vector<double> most(mesh.axes.size(), 0);
    double bytes = 0;
    for (std::size_t d = 0; d < have.boxes.size(); ++d) {
      std::vector<double> along(mesh.axes.size(), 0);
      for (std::int64_t element = 0; element < volume(shape); ++element) {
        if (!holds_element(need.boxes[d], element, shape) || holds_element(have.boxes[d], element, shape)) continue;
        std::size_t nearest = 0;
        bool found = false;
        for (std::size_t axis = mesh.axes.size(); axis-- > 0 && !found;) {
          std::int64_t group = 1;
          for (std::size_t m = axis; m < mesh.axes.size(); ++m) group *= mesh.axes[m].size;
          const std::int64_t first = static_cast<std::int64_t>(d) / group * group;
          for (std::int64_t other = first; other < first + group && !found; ++other)
            found = holds_element(have.boxes[static_cast<std::size_t>(other)], element, shape);
          nearest = axis;
        }
        ASSERT_TRUE(found);
        along[nearest] += 4;
        bytes += 4;
      }
      for (std::size_t axis = 0; axis < along.size(); ++axis) most[axis] = std::max(most[axis], along[axis]);
    }
    double seconds = 0;
    for (std::size_t axis = 0; axis < most.size(); ++axis) seconds += most[axis] / mesh.axes[axis].bandwidth;
    const Transfer moved = transfer(have, need, 4, mesh);
    ASSERT_TRUE(moved.possible);
    EXPECT_EQ(moved.bytes, bytes) << trial;
    EXPECT_NEAR(moved.seconds, seconds, 1e-9) << trial;
  }
}

// After a reduce-scatter along slow links, what devices along fast ones have together has gaps.
TEST(Transfers, OfWhatIsLeftAfterAReduceScatter) {
  Mesh mesh = mesh_of({2, 2}, 1);
  mesh.axes[1].bandwidth = 1000;
  Placement scattered = everywhere({8}, mesh);
  const std::int64_t begins[] = {0, 4, 2, 6};
  for (std::size_t d = 0; d < 4; ++d) scattered.boxes[d][0] = {begins[d], begins[d] + 2};
  const Transfer moved = transfer(scattered, everywhere({8}, mesh), 1, mesh);
  EXPECT_EQ(moved.bytes, 24);
  EXPECT_DOUBLE_EQ(moved.seconds, 2 / 1000.0 + 4);
}

}  // namespace
}  // namespace taso
