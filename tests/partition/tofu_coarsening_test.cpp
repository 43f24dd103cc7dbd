#include "partition/tofu_coarsening.h"

#include <gtest/gtest.h>

#include <set>

#include "partition/tofu.h"
#include "tests/partition/training_graphs.h"

namespace taso {
namespace {

using test::layers_in_training;
using test::product_registry;
using test::product_strategies;
using test::TrainingGraph;
using test::value_of;

Graph parsed(const std::string& text) { return value_of(parse_graph(text, "test", product_registry())); }

TofuCoarsening coarse(const Graph& graph, const TofuGroups& groups = {}) {
  return value_of(coarsen(graph, product_registry(), groups));
}

/// Names of inputs, by which tests find values.
Value input_named(const Graph& graph, const std::string& name) {
  for (const NodeId id : graph.inputs())
    if (graph.node(id).name == name) return {id, 0};
  throw std::runtime_error("no input " + name);
}

// An optimizer's step is one tensor with the weight; a bias of another shape stays apart.
TEST(TofuCoarsening, ElementwiseOperatorsAreNotDecided) {
  const Graph graph = parsed(
      "input w f32[8, 4]\ninput m f32[8, 4]\ninput g f32[8, 4]\ninput r f32[]\n"
      "s = add(smul(m, r), g)\noutput sub(w, smul(s, r)), s\n");
  const TofuCoarsening coarsening = coarse(graph);
  EXPECT_EQ(coarsening.nodes, 4U);
  EXPECT_EQ(coarsening.merged, 4U);
  EXPECT_TRUE(coarsening.classes.empty());
  EXPECT_EQ(coarsening.first.size(), 2U);  // of the shape of the weight, and the rate
  EXPECT_EQ(coarsening.tensors.at(input_named(graph, "w")), coarsening.tensors.at(graph.outputs()[0]));
  EXPECT_NE(coarsening.tensors.at(input_named(graph, "w")), coarsening.tensors.at(input_named(graph, "r")));
}

std::string unrolled(int steps) {
  std::string text = "weight w f32[16, 16]\nweight u f32[16, 16]\nweight v f32[16, 16]\ninput h0 f32[4, 16]\n";
  for (int t = 1; t <= steps; ++t) {
    const std::string now = std::to_string(t), before = std::to_string(t - 1);
    text += "input x" + now + " f32[4, 16]\n";
    text += "h" + now + " = tanh(add(matmul(x" + now + ", w), matmul(h" + before + ", u)))\n";
    text += "y" + now + " = softmax(matmul(h" + now + ", v); axis=-1)\noutput y" + now + "\n";
  }
  return text;
}

// What follows from attributes alone is read by operators that have nothing to do with each other.
TEST(TofuCoarsening, OnesAreNoWeights) {
  const Graph graph = parsed(
      "input x f32[4, 4]\ninput y f32[4, 4]\ninput s f32[4, 4]\ninput t f32[4, 4]\nweight w f32[4, 4]\n"
      "e = matrix_identity(; size=4)\nv = add(w, e)\n"
      "output matmul(x, e), matmul(y, e), softmax(matmul(s, v)), softmax(matmul(t, v))\n");
  const TofuCoarsening coarsening = coarse(graph);
  const auto decided = [&](std::size_t output) { return coarsening.operators.at(graph.outputs()[output].node); };
  EXPECT_NE(decided(0), decided(1));
  EXPECT_EQ(decided(2), decided(3));
}

TEST(TofuCoarsening, TimeStepsAreDecidedTogether) {
  const Graph graph = parsed(unrolled(5));
  const TofuCoarsening coarsening = coarse(graph);
  EXPECT_EQ(coarsening.nodes, 30U);
  // Products with w, u and v, and the softmax.
  ASSERT_EQ(coarsening.classes.size(), 4U);
  for (const TofuCoarsening::OperatorClass& one : coarsening.classes) EXPECT_EQ(one.count, 5U);
  // Three weights; x; what is added, and the state; y before and after the softmax.
  std::set<std::size_t> classes;
  for (const auto& [value, c] : coarsening.tensors) classes.insert(c);
  EXPECT_EQ(classes.size(), coarsening.first.size());
  EXPECT_EQ(coarsening.first.size(), 7U);
  EXPECT_EQ(coarsening.tensors.at(input_named(graph, "x1")), coarsening.tensors.at(input_named(graph, "x4")));
  EXPECT_NE(coarsening.tensors.at(input_named(graph, "x1")), coarsening.tensors.at(input_named(graph, "h0")));
  // One step costs a fifth of five.
  StrategyTable strategies = product_strategies();
  const Graph single = parsed(unrolled(1));
  EXPECT_EQ(tofu_exact(graph, coarsening, {2}, strategies).bytes,
            5 * tofu_exact(single, coarse(single), {2}, strategies).bytes);
}

// Layers with weights of their own stay apart, equal as they are.
TEST(TofuCoarsening, LayersAreNotTimeSteps) {
  const Graph graph =
      parsed("input x f32[4, 16]\nweight w f32[16, 16]\nweight v f32[16, 16]\noutput matmul(matmul(x, w), v)\n");
  EXPECT_EQ(coarse(graph).classes.size(), 2U);
}

TEST(TofuCoarsening, InputsMayBeWeights) {
  const Graph graph = parsed("input x f32[4, 16]\ninput w f32[16, 16]\noutput matmul(matmul(x, w), w)\n");
  EXPECT_EQ(coarse(graph).classes.size(), 2U);
  TofuGroups groups;
  groups.weights = {input_named(graph, "w")};
  EXPECT_EQ(coarse(graph, groups).classes.size(), 1U);
}

TEST(TofuCoarsening, GroupsAreKept) {
  const Graph graph = parsed(
      "input x f32[4, 16]\ninput w f32[16, 16]\ninput v f32[16, 16]\n"
      "output matmul(x, w), matmul(x, v), tanh(x)\n");
  const std::vector<Value>& made = graph.outputs();
  TofuGroups groups;
  groups.together = {{made[0].node, made[1].node}};
  const TofuCoarsening coarsening = coarse(graph, groups);
  EXPECT_EQ(coarsening.classes.size(), 1U);
  EXPECT_EQ(coarsening.tensors.at(input_named(graph, "w")), coarsening.tensors.at(input_named(graph, "v")));
}

TEST(TofuCoarsening, GroupsMustFit) {
  const Graph graph = parsed("input x f32[4, 16]\ninput w f32[16, 16]\noutput matmul(x, w), tanh(x)\n");
  const NodeId product = graph.outputs()[0].node, other = graph.outputs()[1].node;
  TofuGroups groups;
  groups.together = {{product, other}};
  EXPECT_EQ(
      coarsen(graph, product_registry(), groups).error().message,
      "operators that are decided together differ: node " + std::to_string(product) + " and " + std::to_string(other));
  groups.together = {{graph.id_bound() + 7}};
  EXPECT_EQ(coarsen(graph, product_registry(), groups).error().code, ErrorCode::bad_input);
  groups.together.clear();
  groups.placed_alike = {{input_named(graph, "x"), input_named(graph, "w")}};
  EXPECT_EQ(coarsen(graph, product_registry(), groups).error().message,
            "tensors that are kept in one placement differ in type: output 0 of node 0 and output 0 of node 1");
}

}  // namespace
}  // namespace taso
