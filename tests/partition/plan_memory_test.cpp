#include "partition/plan_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "graph/rewrite.h"
#include "partition/priced_problem.h"
#include "support/random.h"
#include "tests/partition/strategy_tables.h"
#include "tests/support/graphs.h"

namespace taso {
namespace {

using test::every_strategy;
using test::graph_of;
using test::registry;
using test::value_of;

Mesh small_mesh(std::initializer_list<std::int64_t> sizes) {
  Mesh mesh;
  mesh.device = {std::int64_t{1} << 30, 1e9, 1e9};
  for (const std::int64_t size : sizes) mesh.axes.push_back({size, "link", 2e8, 0});
  return mesh;
}

Graph normal(const std::string& text) {
  Graph graph = graph_of(text);
  normalize(graph, registry());
  return graph;
}

const char* const small_graphs[] = {
    "input x f32[6, 5]\nweight w f32[5, 7]\nweight v f32[7, 3]\noutput matmul(relu(matmul(x, w)), v)\n",
    "input x f32[5, 4]\nweight w f32[4, 4]\ny = matmul(x, w)\noutput add(y, tanh(y))\n",
    "input x f32[3, 6]\nweight w f32[6, 6]\noutput matmul(matmul(x, w), w)\n",
    "input x f32[4, 6]\ny = relu(x)\noutput y\noutput tanh(x)\n",
};

/// A problem with all that it refers to.
struct Problem {
  Graph graph;
  Mesh mesh;
  StrategyTable strategies = every_strategy();
  PlanProblem::Prepared prepared;
  std::unique_ptr<PlanProblem> plan;

  Problem(const std::string& text, Mesh on) : graph(normal(text)), mesh(std::move(on)) {
    const PieceCost cost = roofline(registry(), mesh.device);
    for (const NodeId id : graph.topological_order()) {
      if (!is_planned(graph.node(id))) continue;
      auto node = std::make_shared<PreparedNode>();
      node->configurations = configurations_of(graph, id, mesh, strategies).list;
      for (const NodeConfiguration& one : node->configurations) node->costs.push_back(value_of(cost(one.largest, {})));
      prepared[id] = std::move(node);
    }
    plan = std::make_unique<PlanProblem>(graph, mesh, prepared, std::vector<StatePair>(), ConfigurationFilter());
  }

  template <class Of>
  void for_each(const Of& of) const {
    PlanProblem::Choice choice(plan->problem().decisions(), 0);
    while (true) {
      of(choice);
      std::size_t at = 0;
      while (at < choice.size() && ++choice[at] == plan->problem().ways(static_cast<PartitionProblem::Decision>(at)))
        choice[at++] = 0;
      if (at == choice.size()) return;
    }
  }
};

bool inside(const IndexBox& inner, const IndexBox& outer) {
  bool all = true;
  for (std::size_t axis = 0; axis < inner.size(); ++axis)
    all = all && inner[axis].begin >= outer[axis].begin && inner[axis].end <= outer[axis].end;
  return all;
}

/// What a device holds while operator number `at` runs: a list of boxes, as the header says it, counted by elements.
double elements_held(const PlanProblem& plan, const PlanProblem::Choice& choice, std::size_t device, std::size_t at) {
  std::vector<IndexBox> held;
  const auto of = [&](const ValueReader& reader) {
    return plan.read(reader, choice[plan.decision(reader.node)]).boxes[device];
  };
  for (const SuppliedValue& value : plan.supplied()) {
    if (!value.weight && plan.position(value.readers.back().node) < at) continue;
    std::set<IndexBox> parts;
    for (const ValueReader& reader : value.readers) parts.insert(of(reader));
    for (const IndexBox& part : parts)
      if (std::none_of(parts.begin(), parts.end(), [&](const auto& o) { return o != part && inside(part, o); }))
        held.push_back(part);
  }
  for (const PlannedValue& value : plan.values()) {
    const std::size_t begin = plan.position(value.value.node);
    std::size_t end = begin;
    for (const ValueReader& reader : value.readers) end = std::max(end, plan.position(reader.node));
    if (value.output) end = plan.order().size();
    if (at < begin || at > end) continue;
    const IndexBox& kept = plan.held(value, choice[plan.holder(value)]).boxes[device];
    const IndexBox& made = plan.configuration(value.value.node, choice[plan.decision(value.value.node)])
                               .makes[value.value.port]
                               .boxes[device];
    if (at == begin && value.kept && inside(kept, made)) {
      held.push_back(made);
    } else {
      held.push_back(kept);
      if (at == begin && value.kept) held.push_back(made);
    }
    std::set<IndexBox> fetched;
    for (const ValueReader& reader : value.readers)
      if (plan.position(reader.node) == at && !inside(of(reader), kept)) fetched.insert(of(reader));
    held.insert(held.end(), fetched.begin(), fetched.end());
  }
  double elements = 0;
  for (const IndexBox& box : held) {
    std::int64_t volume = 1;
    for (const IndexRange& range : box) volume *= range.end - range.begin;
    elements += static_cast<double>(volume);
  }
  return elements;
}

TEST(PlanMemory, IsWhatDevicesHold) {
  for (const char* text : small_graphs) {
    const Problem problem(text, small_mesh({2}));
    const PlanProblem& plan = *problem.plan;
    const PlanMemory memory(plan);
    std::size_t number = 0;
    problem.for_each([&](const PlanProblem::Choice& choice) {
      if (number++ % 7 != 0) return;
      const std::vector<double> bytes = memory.while_nodes_run(choice);
      ASSERT_EQ(bytes.size(), plan.order().size());
      for (std::size_t at = 0; at < bytes.size(); ++at) {
        const double most = std::max(elements_held(plan, choice, 0, at), elements_held(plan, choice, 1, at));
        ASSERT_DOUBLE_EQ(bytes[at], 4 * most) << text << at;
        const double least = PricedProblem::sum(memory.at_least(at), plan.problem(), choice);
        ASSERT_LE(least, bytes[at] + 1e-9) << text << at;
        // Only a weight of several readers may make it less than what the last device holds.
        if (text != small_graphs[2] && text != small_graphs[3]) {
          ASSERT_NEAR(least, 4 * elements_held(plan, choice, 1, at), 1e-9) << text << at;
        }
      }
    });
  }
}

TEST(PlanMemory, PlansWithALimitAreAsGoodAsTryingEverything) {
  int changed = 0, refused = 0;
  for (const char* text : small_graphs) {
    const Problem problem(text, small_mesh({2}));
    const PlanMemory memory(*problem.plan);
    std::map<double, double> best;  // By what is needed: the least cost.
    problem.for_each([&](const PlanProblem::Choice& choice) {
      const double cost = problem.plan->problem().cost(choice);
      if (cost >= EliminationProblem::forbidden_cost) return;
      const std::vector<double> bytes = memory.while_nodes_run(choice);
      double& least = best.try_emplace(*std::max_element(bytes.begin(), bytes.end()), cost).first->second;
      least = std::min(least, cost);
    });
    const double least = best.begin()->first, most = best.rbegin()->first;
    for (int step = -1; step <= 12; ++step) {
      const double limit = std::floor(least + (most - least) * step / 12);
      double expected = HUGE_VAL;
      for (const auto& [bytes, cost] : best)
        if (bytes <= limit) expected = std::min(expected, cost);
      Graph graph = problem.graph;
      Mesh mesh = problem.mesh;
      StrategyTable strategies = every_strategy();
      PlannerOptions options;
      options.memory = limit;
      Planner planner(graph, mesh, strategies, options);
      const Expected<PartitionPlan> plan = planner.plan();
      ASSERT_EQ(plan.ok(), expected < HUGE_VAL) << text << limit << (plan ? "" : plan.error().message);
      if (!plan) {
        EXPECT_EQ(plan.error().code, ErrorCode::not_proved);
        ++refused;
        continue;
      }
      EXPECT_NEAR(plan->seconds, expected, 1e-9 * expected) << text << limit;
      EXPECT_LE(plan->memory, limit);
      EXPECT_TRUE(plan->exact);
      EXPECT_LE(plan->lower_bound, plan->seconds * (1 + 1e-9));
      changed += plan->seconds > value_of(planner.plan(ConfigurationFilter())).seconds * (1 + 1e-9);
    }
  }
  EXPECT_GT(changed, 4);
  EXPECT_GT(refused, 3);
}

TEST(PlanMemory, WeightsThatDoNotFitAreSaidInOneLine) {
  const Graph graph = normal("input x f32[1, 1024]\nweight w f32[1024, 4096]\noutput matmul(x, w)\n");
  const Mesh mesh = small_mesh({4});
  StrategyTable strategies = every_strategy();
  PlannerOptions options;
  options.memory = 2 << 20;
  Planner planner(graph, mesh, strategies, options);
  const Expected<PartitionPlan> plan = planner.plan();
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().message, "no plan fits 2 MiB per device: the weights alone need at least 4 MiB on 4 devices");
  options.memory = (4 << 20) + 1024;
  Planner with_values(graph, mesh, strategies, options);
  const Expected<PartitionPlan> none = with_values.plan();
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "no plan fits 4 MiB per device: at least 4.01 MiB are needed on 4 devices");
  options.memory = (4 << 20) + 8192;
  Planner fits(graph, mesh, strategies, options);
  EXPECT_EQ(value_of(fits.plan()).weight_bytes, 4 << 20);
}

// A weight that two operators read in different parts is stored in both.
TEST(PlanMemory, WhatIsStoredOfAWeightIsStated) {
  const Graph graph = normal("input x f32[8, 8]\nweight w f32[8, 8]\noutput matmul(matmul(x, w), w)\n");
  const Mesh mesh = small_mesh({2});
  StrategyTable strategies = every_strategy();
  Planner planner(graph, mesh, strategies, {});
  std::size_t number = 0;
  const NodeId last = graph.outputs()[0].node;
  const PartitionPlan plan = value_of(planner.plan([&](NodeId id, const NodeConfiguration& configuration) {
    ++number;
    return configuration.to_string() == (id == last ? "t (sum)" : "j@-1");
  }));
  ASSERT_EQ(plan.weights.size(), 1U);
  EXPECT_EQ(plan.weights[0].parts, 2U);
  EXPECT_EQ(plan.weights[0].readers.size(), 2U);
  EXPECT_EQ(plan.weights[0].bytes, 2 * 8 * 8 * 4 / 2);
  EXPECT_EQ(plan.weight_bytes, plan.weights[0].bytes);
}

// A weight and its next value stay in one placement: what reads it elsewhere, or makes it elsewhere, moves.
// A bias is read as a tensor of the size of what it is added to, and stored as it is.
TEST(PlanMemory, ABroadcastWeightIsStoredOnce) {
  const Problem problem(
      "input x f32[6, 8]\nweight w f32[8, 4]\nweight b f32[4]\n"
      "output add(matmul(x, w), broadcast(b; shape=[6, 4]))\n",
      small_mesh({2}));
  const PlanMemory memory(*problem.plan);
  double least = HUGE_VAL, most = 0;
  problem.for_each([&](const PlanProblem::Choice& choice) {
    double bytes = 0;
    static_cast<void>(memory.weights(choice, bytes));
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  });
  EXPECT_EQ(most, (8 * 4 + 4) * 4);
  EXPECT_EQ(least, (8 * 2 + 2) * 4);
  EXPECT_EQ(memory.weights_at_least(), least);
}

TEST(PlanState, IsKeptInOnePlacement) {
  const Graph graph =
      normal("input x f32[64, 32]\ninput w f32[32, 32]\ninput g f32[32, 32]\noutput matmul(x, w)\noutput sub(w, g)\n");
  const Mesh mesh = small_mesh({2});
  NodeId weight = 0;
  for (const NodeId id : graph.inputs())
    if (graph.node(id).name == "w") weight = id;
  StrategyTable strategies = every_strategy();
  PlannerOptions options;
  options.state = {{{weight, 0}, graph.outputs()[1]}};
  Planner planner(graph, mesh, strategies, options);
  const PartitionPlan plan = value_of(planner.plan());
  ASSERT_TRUE(plan.kept.contains({weight, 0}));
  EXPECT_EQ(plan.kept.at({weight, 0}), plan.kept.at(graph.outputs()[1]));
  // Rows of the product, and columns of the update: the weight is kept where one of the two has it.
  const auto forced = [&](NodeId id, const NodeConfiguration& configuration) {
    return graph.node(id).is_op("matmul") ? configuration.to_string() == "i@-2" : configuration.to_string() == "I@-1";
  };
  const PartitionPlan moved = value_of(planner.plan(forced));
  EXPECT_EQ(moved.transfer_bytes, 2 * 32 * 32 * 4 / 2) << "each device lacks half of the weight";
  Planner without(graph, mesh, strategies, {});
  EXPECT_EQ(value_of(without.plan(forced)).transfer_bytes, 0);
}

TEST(PlanState, IsRefusedWhereItIsNone) {
  const Graph graph = normal(
      "input x f32[4, 4]\ninput y f32[4, 2]\nweight w f32[4, 4]\nz = relu(x)\noutput z\noutput relu(y)\noutput "
      "matmul(z, tanh(w))\n");
  const Mesh mesh = small_mesh({2});
  StrategyTable strategies = every_strategy();
  const Value x{graph.inputs()[0], 0}, y{graph.inputs()[1], 0};
  Value w;
  for (const NodeId id : graph.topological_order())
    if (graph.node(id).kind == NodeKind::constant) w = {id, 0};
  const auto message = [&](std::vector<StatePair> state) {
    PlannerOptions options;
    options.state = std::move(state);
    Planner planner(graph, mesh, strategies, options);
    const Expected<PartitionPlan> plan = planner.plan();
    return plan ? "none" : plan.error().message;
  };
  const auto& outputs = graph.outputs();
  EXPECT_EQ(message({{x, outputs[0]}}), "none");
  EXPECT_NE(message({{outputs[0], outputs[0]}}).find("it is made by an operator"), std::string::npos);
  EXPECT_EQ(message({{x, y}}), "state x: no operator makes its next value");
  EXPECT_EQ(message({{x, outputs[1]}}), "state x: its next value has another type");
  EXPECT_EQ(message({{x, outputs[0]}, {x, outputs[2]}}), "state x: it is that of two pairs");
  EXPECT_NE(message({{w, outputs[0]}}).find("what is computed ahead of runs depends on it"), std::string::npos);
}

// The next best way is what a plan without the way of the plan is; but values may still be kept as that way makes them.
TEST(PlanAlternatives, AreTheBestPlansWithoutAWay) {
  std::size_t equal = 0, better = 0;
  for (const char* text : small_graphs) {
    const Graph graph = normal(text);
    const Mesh mesh = small_mesh({2});
    StrategyTable strategies = every_strategy();
    Planner planner(graph, mesh, strategies, {});
    const PartitionPlan plan = value_of(planner.plan());
    for (const PlanAlternative& other : planner.alternatives(plan)) {
      ASSERT_TRUE(other.plan.has_value());
      const auto at =
          std::find_if(plan.nodes.begin(), plan.nodes.end(), [&](const auto& n) { return n.node == other.node; });
      const std::vector<AxisUse> axes = at->configuration.axes;
      const PartitionPlan without = value_of(planner.plan([&](NodeId id, const NodeConfiguration& configuration) {
        return id != other.node || configuration.axes != axes;
      }));
      EXPECT_LE(other.plan->seconds, without.seconds * (1 + 1e-9)) << text;
      ++(other.plan->seconds < without.seconds * (1 - 1e-9) ? better : equal);
      EXPECT_NE(other.configuration.axes, axes);
    }
  }
  EXPECT_GT(equal, 3 * better);
}

TEST(Planner, StopsWhenItIsTold) {
  const Graph graph = normal(small_graphs[0]);
  const Mesh mesh = small_mesh({2});
  StrategyTable strategies = every_strategy();
  PlannerOptions options;
  const std::atomic<bool> flag = true;
  options.stop.flag = &flag;
  Planner planner(graph, mesh, strategies, options);
  const PartitionPlan plan = value_of(planner.plan());
  EXPECT_TRUE(plan.stopped);
  EXPECT_FALSE(plan.complete);
  EXPECT_EQ(plan.transfer_bytes, 0) << "all repeats";
}

}  // namespace
}  // namespace taso
