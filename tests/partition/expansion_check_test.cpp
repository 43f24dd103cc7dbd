// Plans as graphs are found to be right, and changed ones not.
#include "partition/expansion_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "graph/rewrite.h"
#include "operators/ring.h"
#include "partition/expand.h"
#include "support/random.h"
#include "tests/optimizer/random_graph.h"
#include "tests/partition/changed_graphs.h"
#include "tests/partition/drawn_plans.h"
#include "tests/partition/strategy_tables.h"
#include "tests/support/graphs.h"

namespace taso::test {
namespace {

TEST(ExpansionCheck, RandomPlansAreRightAndChangedOnesNot) {
  const std::vector<std::vector<std::int64_t>> meshes = {{2}, {3}, {4}, {2, 2}, {2, 3}};
  StrategyTable strategies = every_strategy();
  std::size_t right = 0, wrong = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    testing::GraphGenerator generator(registry(), seed);
    const testing::RandomGraph drawn_graph = generator.finish(8);
    const Graph& graph = drawn_graph.graph;
    const Mesh mesh = mesh_of_sizes(meshes[seed % meshes.size()]);
    Planner planner(graph, mesh, strategies, {});
    const PartitionPlan plan = value_of(planner.plan(drawn(seed, seed % 2 == 0 ? 1 : 3)));
    const Graph expanded = value_of(expand(graph, plan, strategies)).graph;
    const PlannedUses uses = uses_of(plan);
    const Status status = check_expansion(graph, expanded, mesh, uses, strategies);
    EXPECT_TRUE(status) << status.error().message << "\nseed " << seed << "\n" << to_text(graph);
    ++right;
    const auto order = graph.topological_order();
    if (std::any_of(order.begin(), order.end(), [&](NodeId id) { return graph.node(id).kind == NodeKind::opaque; }))
      continue;
    std::vector<RingTensor<double>> inputs;
    for (const NodeId id : graph.inputs()) inputs.push_back(drawn_graph.inputs.at(graph.node(id).name));
    const auto expected = outputs_of(graph, inputs);
    Random random(seed);
    for (int change = 0; change < 5; ++change) {
      const std::optional<Graph> changed = with_other_operand(expanded, random);
      if (!changed || equal(expected, outputs_of(*changed, inputs))) continue;
      const Status refuted = check_expansion(graph, *changed, mesh, uses, strategies);
      ASSERT_FALSE(refuted) << "seed " << seed << "\n" << to_text(*changed);
      EXPECT_EQ(refuted.error().code, ErrorCode::not_proved);
      ++wrong;
    }
  }
  EXPECT_GT(right, 50U);
  EXPECT_GT(wrong, 50U);
}

/// What is said of a text of an expansion, on devices along one axis; operators of a name use it alike.
std::string said(const std::string& original, const std::string& expanded, const std::map<std::string, AxisUse>& use,
                 std::int64_t devices) {
  const Graph graph = graph_of(original);
  StrategyTable strategies = every_strategy();
  PlannedUses uses;
  for (const NodeId id : graph.topological_order())
    if (const Node& node = graph.node(id); node.kind == NodeKind::op && !node.weight_only) uses[id] = {use.at(node.op)};
  const Status status = check_expansion(graph, graph_of(expanded), mesh_of_sizes({devices}), uses, strategies);
  return status ? "right" : status.error().message;
}

/// The same on two devices, where all operators use the mesh alike.
std::string said(const std::string& original, const std::string& expanded, const std::vector<AxisUse>& use) {
  const Graph graph = graph_of(original);
  StrategyTable strategies = every_strategy();
  PlannedUses uses;
  for (const NodeId id : graph.topological_order())
    if (graph.node(id).kind == NodeKind::op) uses[id] = use;
  const Status status = check_expansion(graph, graph_of(expanded), mesh_of_sizes({2}), uses, strategies);
  return status ? "right" : status.error().message;
}

const std::string product = "input x f32[4, 6]\ninput y f32[6, 8]\noutput matmul(x, y)\n";
std::string halves(const std::string& last) {
  return "input x f32[4, 6]\ninput y f32[6, 8]\n"
         "a = slice(x; starts=[0, 0], sizes=[4, 3], steps=[1, 1])\nb = slice(x; starts=[0, 3], sizes=[4, 3], steps=[1, "
         "1])\n"
         "c = slice(y; starts=[0, 0], sizes=[3, 8], steps=[1, 1])\nd = slice(y; starts=[3, 0], sizes=[3, 8], steps=[1, "
         "1])\n"
         "p = matmul(a, c)\nq = matmul(b, d)\noutput " +
         last + "\n";
}

TEST(ExpansionCheck, Sums) {
  const std::vector<AxisUse> sum = {{AxisUse::Kind::cut, "t", {}, "sum"}};
  EXPECT_EQ(said(product, halves("add(p, q)"), sum), "right");
  EXPECT_EQ(said(product, halves("add(q, p)"), sum), "right");
  EXPECT_NE(said(product, halves("add(p, p)"), sum).find("its output 0 is not that of the model"), std::string::npos);
  EXPECT_NE(said(product, halves("p"), sum).find("its output 0 is not that of the model"), std::string::npos);
  EXPECT_NE(said(product, halves("maximum(p, q)"), sum).find("the first operator that is no piece of it is maximum"),
            std::string::npos);
  EXPECT_NE(said(product, halves("add(matmul(a, d), q)"), sum).find("is matmul(f32[4, 3], f32[3, 8])"),
            std::string::npos);
}

// Summands are added one after the other, so that all of one axis are there before those of the other one.
TEST(ExpansionCheck, SumsOverTwoAxes) {
  const Graph graph = graph_of("input x f32[4, 8]\ninput y f32[8, 6]\noutput relu(matmul(x, y))\n");
  const Mesh mesh = mesh_of_sizes({2, 3});
  StrategyTable strategies = every_strategy();
  Planner planner(graph, mesh, strategies, {});
  const PartitionPlan plan = value_of(planner.plan([&](NodeId id, const NodeConfiguration& configuration) {
    return configuration.to_string() == (graph.node(id).is_op("relu") ? "repeat | repeat" : "t (sum) | t (sum)");
  }));
  ASSERT_EQ(plan.nodes[0].configuration.to_string(), "t (sum) | t (sum)");
  const Status status =
      check_expansion(graph, value_of(expand(graph, plan, strategies)).graph, mesh, uses_of(plan), strategies);
  EXPECT_TRUE(status) << status.error().message;
}

TEST(ExpansionCheck, PlansThatAreNone) {
  const auto message = [](const std::vector<AxisUse>& use) { return said(product, product, use); };
  EXPECT_EQ(message({{AxisUse::Kind::repeat, "", {}, ""}}), "right");
  EXPECT_NE(message({}).find("it names another number of mesh axes"), std::string::npos);
  EXPECT_NE(message({{AxisUse::Kind::cut, "z@-1", {}, ""}}).find("no proved strategy cuts z@-1"), std::string::npos);
  EXPECT_NE(message({{AxisUse::Kind::cut, "t", {}, "max"}}).find("no proved strategy cuts t"), std::string::npos);
  EXPECT_NE(message({{AxisUse::Kind::partial, "", {0}, "max"}}).find("it does not pass partial max on"),
            std::string::npos);
  const Graph graph = graph_of(product);
  StrategyTable strategies = every_strategy();
  const auto check = [&](const std::string& text, const PlannedUses& uses) {
    return check_expansion(graph, graph_of(text), mesh_of_sizes({2}), uses, strategies).error().message;
  };
  EXPECT_NE(check(product, {}).find("the plan says nothing of matmul"), std::string::npos);
  const PlannedUses repeat = {{graph.outputs()[0].node, {{AxisUse::Kind::repeat, "", {}, ""}}}};
  EXPECT_NE(check("input x f32[4, 6]\noutput relu(x)\n", repeat).find("it has 1 inputs and 1 outputs, not 2 and 1"),
            std::string::npos);
  EXPECT_NE(check("input x f32[4, 6]\ninput y f32[6, 9]\noutput matmul(x, y)\n", repeat)
                .find("its input 'y' has another type"),
            std::string::npos);
}

TEST(ExpansionCheck, WeightsAreCompared) {
  const std::string original = "input x f32[4, 2]\nweight w f32[2, 2] = [1, 2, 3, 4]\noutput matmul(x, w)\n";
  const std::vector<AxisUse> columns = {{AxisUse::Kind::cut, "j@-1", {}, ""}};
  const auto expanded = [](const std::string& a, const std::string& b) {
    return "input x f32[4, 2]\nweight a f32[2, 1] = [" + a + "]\nweight b f32[2, 1] = [" + b +
           "]\noutput concat(matmul(x, a), matmul(x, b); axis=-1)\n";
  };
  EXPECT_EQ(said(original, expanded("1, 3", "2, 4"), columns), "right");
  EXPECT_NE(said(original, expanded("1, 3", "2, 5"), columns), "right");
  EXPECT_NE(said(original, expanded("2, 4", "1, 3"), columns), "right");
}

// A piece that reads nothing but a weight, and what follows from it, may be written as numbers.
TEST(ExpansionCheck, PiecesOfWeightsAloneAreCompared) {
  const std::string original = "input x f32[2]\nweight w f32[2] = [1, -2]\noutput relu(concat(x, w; axis=-1))\n";
  const auto told = [&](const std::string& elements) {
    return said(original, "input x f32[2]\nweight c f32[2] = [" + elements + "]\noutput concat(relu(x), c; axis=-1)\n",
                {{"concat", {AxisUse::Kind::cut, "j@-1", {}, ""}}, {"relu", {AxisUse::Kind::cut, "I@-1", {}, ""}}}, 2);
  };
  EXPECT_EQ(told("1, 0"), "right");
  EXPECT_NE(told("1, -2"), "right");
  EXPECT_NE(told("2, 0"), "right");
}

// The border that a pad makes.
TEST(ExpansionCheck, PiecesOfBordersAreCompared) {
  const auto told = [&](const std::string& elements) {
    return said("input x f32[2]\noutput exp(pad(x; after=[2], before=[0], value=0.0))\n",
                "input x f32[2]\nweight c f32[2] = [" + elements + "]\noutput concat(exp(x), c; axis=-1)\n",
                {{"pad", {AxisUse::Kind::cut, "I@-1", {}, ""}}, {"exp", {AxisUse::Kind::cut, "I@-1", {}, ""}}}, 2);
  };
  EXPECT_EQ(told("1, 1"), "right");
  EXPECT_NE(told("1, 0"), "right");
}

// A piece of a pad without a border need not stand there, of partial results either.
TEST(ExpansionCheck, PiecesThatChangeNothingPassOn) {
  const auto told = [&](const std::string& last) {
    return said(
        "input x f32[2, 4]\noutput reshape(reduce_max(x; axes=[-1]); shape=[2, 1])\n",
        "input x f32[2, 4]\na = slice(x; starts=[0, 0], sizes=[2, 2], steps=[1, 1])\n"
        "b = slice(x; starts=[0, 2], sizes=[2, 2], steps=[1, 1])\np = reduce_max(a; axes=[-1])\n"
        "q = reduce_max(b; axes=[-1])\noutput " +
            last + "\n",
        {{"reduce_max", {AxisUse::Kind::cut, "J", {}, "max"}}, {"reshape", {AxisUse::Kind::partial, "", {0}, "max"}}},
        2);
  };
  EXPECT_EQ(told("maximum(p, q)"), "right");
  EXPECT_NE(told("p"), "right");
  EXPECT_NE(told("add(p, q)"), "right");
}

// Parts of results of shapes that ONNX's have not are written with a reshape there and back.
TEST(ExpansionCheck, ReshapesThereAndBackChangeNothing) {
  const auto told = [&](const std::string& shape, const std::string& last) {
    return said("input x f32[2, 4]\noutput sigmoid(x)\n",
                "input x f32[2, 4]\na = slice(x; starts=[0, 0], sizes=[2, 2], steps=[1, 1])\n"
                "b = slice(x; starts=[0, 2], sizes=[2, 2], steps=[1, 1])\np = reshape(sigmoid(a); shape=" +
                    shape + ")\nq = sigmoid(b)\noutput concat(" + last + "; axis=-1)\n",
                {{"sigmoid", {AxisUse::Kind::cut, "I@-1", {}, ""}}}, 2);
  };
  EXPECT_EQ(told("[4]", "reshape(p; shape=[2, 2]), q"), "right");
  EXPECT_NE(told("[4]", "q, reshape(p; shape=[2, 2])"), "right");
  EXPECT_NE(told("[1, 4]", "transpose(reshape(p; shape=[2, 2]); perm=[1, 0]), q"), "right");
}

// Several of the summands may be one weight.
TEST(ExpansionCheck, SummandsOfWeightsAloneAreCompared) {
  const std::string original =
      "input x f32[2, 1]\nweight w f32[2, 3] = [1, 2, 3, 4, 5, 6]\n"
      "output reduce_sum(concat(x, w; axis=-1); axes=[-1])\n";
  const auto told = [&](const std::string& a, const std::string& b, const std::string& sum) {
    return said(
        original,
        "input x f32[2, 1]\nweight a f32[2, 1] = [" + a + "]\nweight b f32[2, 1] = [" + b +
            "]\ns = reduce_sum(x; axes=[-1])\noutput " + sum + "\n",
        {{"concat", {AxisUse::Kind::cut, "j@-1", {}, ""}}, {"reduce_sum", {AxisUse::Kind::cut, "J", {}, "sum"}}}, 4);
  };
  EXPECT_EQ(told("3, 9", "3, 6", "add(add(s, a), b)"), "right");
  EXPECT_EQ(told("1, 4", "5, 11", "add(b, add(a, s))"), "right");
  EXPECT_NE(told("3, 9", "3, 7", "add(add(s, a), b)"), "right");
  EXPECT_NE(told("3, 9", "3, 6", "add(s, a)"), "right");
  EXPECT_NE(told("3, 9", "3, 6", "add(add(add(s, a), b), s)"), "right");
}

// Weights that are computed may be written as numbers, which are rounded: each by as much as it can be.
TEST(ExpansionCheck, ComputedWeightsAreComparedUpToRounding) {
  const std::string original =
      "input x f32[4, 2]\nweight u f32[2, 2] = [1, 1e9, 0.1, 0]\nweight v f32[2, 2] = [1, 1e-3, 3, 0]\n"
      "output matmul(x, mul(u, v))\n";
  const auto told = [&](const std::string& a, const std::string& b) {
    return said(original,
                "input x f32[4, 2]\nweight a f32[2, 1] = [" + a + "]\nweight b f32[2, 1] = [" + b +
                    "]\noutput concat(matmul(x, a), matmul(x, b); axis=-1)\n",
                {{AxisUse::Kind::cut, "j@-1", {}, ""}});
  };
  EXPECT_EQ(told("1, 0.3", "1e6, 0"), "right");
  EXPECT_EQ(told("1, 0.30000002", "1e6, 0"), "right");
  EXPECT_EQ(told("1, 0.3", "1000000.06, 0"), "right");
  EXPECT_NE(told("1, 0.30001", "1e6, 0"), "right");  // Small beside the largest one.
  EXPECT_NE(told("1, 0.3", "1000010, 0"), "right");
  EXPECT_NE(told("1, 0.3", "1e6, 1e-30"), "right");  // Nothing rounds to another number than 0.
}

// Numbers whose error has no bound, as squares of large ones, are no licence for others.
TEST(ExpansionCheck, UnboundedRoundingAcceptsNoOtherNumber) {
  std::string original =
      "input x f32[4, 1]\nweight u f32[1, 2] = [3e38, 3e38]\nweight d f32[1, 2] = [1e-38, 1e-38]\n"
      "u2 = mul(u, u)\nu4 = mul(u2, u2)\nu8 = mul(u4, u4)\nd2 = mul(d, d)\nd4 = mul(d2, d2)\n"
      "d8 = mul(d4, d4)\noutput matmul(x, mul(u8, d8))\n";
  const auto told = [&](const std::string& a, const std::string& b) {
    return said(original,
                "input x f32[4, 1]\nweight a f32[1, 1] = [" + a + "]\nweight b f32[1, 1] = [" + b +
                    "]\noutput concat(matmul(x, a), matmul(x, b); axis=-1)\n",
                {{AxisUse::Kind::cut, "j@-1", {}, ""}});
  };
  EXPECT_NE(told("7", "7"), "right");
  EXPECT_NE(told("6561", "0"), "right");
  EXPECT_NE(told("1e30", "-1e30"), "right");
}

}  // namespace
}  // namespace taso::test
