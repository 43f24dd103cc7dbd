// Training steps of small networks (gradient_descent.cases): gradients of all weights beside differences of the loss in
// doubles, and updated weights.
//
//   weights w b             the inputs that are trained; the loss is the only output of the graph
//   error MESSAGE           or why there is no step
#include "gradients/gradient_descent.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "operators/evaluate.h"
#include "support/random.h"
#include "tests/gradients/shipped_gradients.h"
#include "tests/support/graphs.h"

namespace taso {
namespace {

using test::gradient_registry;
using test::gradient_table;
using test::value_of;
using Tensor = RingTensor<double>;

const test::CaseKeys& step_keys() {
  using test::CaseCount;
  using test::CaseValue;
  static const test::CaseKeys keys = {{"weights", CaseValue::words, CaseCount::once},
                                      {"error", CaseValue::text, CaseCount::optional},
                                      {"graph", CaseValue::section, CaseCount::once}};
  return keys;
}

std::vector<Value> named(const Graph& graph, const std::vector<std::string>& names) {
  std::vector<Value> values;
  for (const std::string& name : names)
    for (const NodeId id : graph.inputs())
      if (graph.node(id).name == name) values.push_back({id, 0});
  return values;
}

std::vector<Tensor> random_inputs(const Graph& graph) {
  Random random(1, "inputs of a training step");
  std::vector<Tensor> inputs;
  for (const NodeId id : graph.inputs()) {
    Tensor& tensor = inputs.emplace_back();
    tensor.shape = graph.node(id).outputs[0].shape;
    for (std::int64_t i = 0; i < volume(tensor.shape); ++i) tensor.elements.push_back(random.normal());
  }
  return inputs;
}

std::vector<Tensor> values_of(Graph graph, const std::vector<Value>& outputs, const std::vector<Tensor>& inputs) {
  graph.set_outputs(outputs);
  DoubleRing ring;
  return value_of(evaluate(graph, gradient_registry(), ring, inputs));
}

double total(const Tensor& tensor) {
  double sum = 0;
  for (const double element : tensor.elements) sum += element;
  return sum;
}

class TrainingSteps : public ::testing::TestWithParam<test::TextCase> {};

TEST_P(TrainingSteps, DescendAlongTheDifferences) {
  const test::TextCase& one = GetParam();
  const Graph forward = value_of(parse_graph(one.placed("graph"), one.file, gradient_registry()));
  const std::vector<std::string> names = test::words_of(one.text("weights"));
  const Value loss = forward.outputs()[0];
  const auto made = gradient_descent_step(forward, loss, named(forward, names), gradient_registry(), gradient_table());
  if (one.has("error")) {
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().message, one.text("error"));
    return;
  }
  ASSERT_TRUE(made.ok()) << made.error().to_string();
  ASSERT_TRUE(made->graph.validate().ok());
  ASSERT_EQ(made->weights.size(), names.size());
  const std::vector<Tensor> inputs = random_inputs(made->graph);
  std::vector<Value> asked = {loss};
  for (const auto& [weight, updated] : made->weights) {
    asked.push_back(made->gradients.at(weight));
    asked.push_back(updated);
  }
  const std::vector<Tensor> values = values_of(made->graph, asked, inputs);
  const double rate = inputs.back().elements[0];
  constexpr double step = 1e-5;
  for (std::size_t w = 0; w < names.size(); ++w) {
    const NodeId id = made->weights[w].first.node;
    const auto position = static_cast<std::size_t>(
        std::find(made->graph.inputs().begin(), made->graph.inputs().end(), id) - made->graph.inputs().begin());
    const Tensor &gradient = values[1 + 2 * w], &updated = values[2 + 2 * w];
    ASSERT_EQ(gradient.shape, inputs[position].shape);
    for (std::size_t i = 0; i < gradient.elements.size(); ++i) {
      std::vector<Tensor> moved = inputs;
      double& element = moved[position].elements[i];
      const double before = element;
      element = before + step;
      const double above = total(values_of(made->graph, {loss}, moved)[0]);
      element = before - step;
      const double below = total(values_of(made->graph, {loss}, moved)[0]);
      EXPECT_NEAR(gradient.elements[i], (above - below) / (2 * step), 1e-6 * (1 + std::fabs(total(values[0]))))
          << names[w] << " " << i;
      EXPECT_NEAR(updated.elements[i], before - rate * gradient.elements[i], 1e-12 * (1 + std::fabs(before)));
    }
  }
}

/// Every node that was added for gradients is with one forward node; updates of weights are with none.
TEST_P(TrainingSteps, GroupsHoldEveryBackwardNodeOnce) {
  const test::TextCase& one = GetParam();
  if (one.has("error")) return;
  const Graph forward = value_of(parse_graph(one.placed("graph"), one.file, gradient_registry()));
  const std::vector<std::string> names = test::words_of(one.text("weights"));
  const GradientDescentStep step = value_of(gradient_descent_step(forward, forward.outputs()[0], named(forward, names),
                                                                  gradient_registry(), gradient_table()));
  std::multiset<NodeId> grouped;
  for (const auto& [node, group] : step.backward) {
    EXPECT_TRUE(forward.contains(node));
    grouped.insert(group.begin(), group.end());
  }
  std::set<NodeId> updates;
  for (const auto& [weight, updated] : step.weights) {
    updates.insert(updated.node);
    updates.insert(step.graph.node(updated.node).inputs[1].node);
  }
  for (NodeId id = forward.id_bound(); id < step.graph.id_bound(); ++id) {
    if (step.graph.node(id).kind != NodeKind::op) continue;
    EXPECT_EQ(grouped.count(id), updates.contains(id) ? 0U : 1U) << step.graph.node(id).op;
  }
}

INSTANTIATE_TEST_SUITE_P(Files, TrainingSteps,
                         ::testing::ValuesIn(test::load_cases("tests/gradients/gradient_descent.cases", step_keys())),
                         test::case_name);

TEST(GradientDescentStep, WeightsAreInputsGivenOnce) {
  const Graph graph = value_of(parse_graph("input x f32[2]\ny = neg(x)\noutput y\n", "test", gradient_registry()));
  const Value y = graph.outputs()[0], x{graph.inputs()[0], 0};
  EXPECT_EQ(gradient_descent_step(graph, y, {y}, gradient_registry(), gradient_table()).error().message,
            "a weight that is trained must be an input of the graph");
  EXPECT_EQ(gradient_descent_step(graph, y, {x, x}, gradient_registry(), gradient_table()).error().message,
            "weight 'x' is given twice");
}

TEST(TrainableGraph, HasWeightsAsInputsAndStatisticsOfTheBatch) {
  const Graph graph = value_of(
      parse_graph("input x f32[2, 3, 4, 4]\nweight k f32[5, 3, 1, 1]\nweight scale f32[5]\nweight bias f32[5]\n"
                  "weight mean f32[5]\nweight variance f32[5]\ny = batch_norm(conv2d(x, k), scale, bias, mean, "
                  "variance)\noutput y\n",
                  "test", gradient_registry()));
  const TrainableGraph made = value_of(trainable(graph, gradient_registry(), gradient_table()));
  ASSERT_TRUE(made.graph.validate().ok());
  std::vector<std::string> shapes;
  for (const Value weight : made.weights) shapes.push_back(to_string(made.graph.type(weight)));
  EXPECT_EQ(shapes, (std::vector<std::string>{"f32[5, 3, 1, 1]", "f32[5]", "f32[5]"}));
  EXPECT_EQ(made.graph.inputs().size(), 4U);
  // Every channel has mean `bias` and deviation `scale`.
  const std::vector<Tensor> inputs = random_inputs(made.graph);
  const Tensor y = values_of(made.graph, made.graph.outputs(), inputs)[0];
  for (std::size_t channel = 0; channel < 5; ++channel) {
    double sum = 0, squares = 0;
    for (std::size_t image = 0; image < 2; ++image)
      for (std::size_t i = 0; i < 16; ++i) {
        const double element = y.elements[(image * 5 + channel) * 16 + i];
        sum += element;
        squares += element * element;
      }
    const double mean = sum / 32;
    EXPECT_NEAR(mean, inputs[3].elements[channel], 1e-9);
    EXPECT_NEAR(std::sqrt(squares / 32 - mean * mean), std::fabs(inputs[2].elements[channel]), 1e-3);
  }
}

// A normalization of groups has no gradient of its own: it is one of rows.
TEST(TrainableGraph, TakesNormalizationsOfGroupsApart) {
  const Graph graph =
      value_of(parse_graph("input x f32[2, 4, 3, 5]\nweight scale f32[4]\nweight bias f32[4]\n"
                           "output group_norm(x, scale, bias; groups=2, epsilon=0.5)\n",
                           "test", gradient_registry()));
  const std::vector<Substitution> rules =
      value_of(load_rules(TASO_SOURCE_DIR "/specs/gradients/training.rules", gradient_registry()));
  const TrainableGraph made = value_of(trainable(graph, gradient_registry(), gradient_table(), rules));
  EXPECT_EQ(made.weights.size(), 2U);
  for (const NodeId id : made.graph.topological_order()) EXPECT_FALSE(made.graph.node(id).is_op("group_norm"));
}

}  // namespace
}  // namespace taso
