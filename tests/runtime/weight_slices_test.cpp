// Slices of weights move to the constants, and what they are slices of is not computed.
#include "runtime/weight_slices.h"

#include <gtest/gtest.h>

#include <cstring>

#include "runtime/weights.h"
#include "support/random.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

/// The operators that the outputs of a graph need, sliced ones with the extents of what they slice.
std::string operators_of(const Graph& graph) {
  std::string text;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::op) continue;
    text += (text.empty() ? "" : " ") + node.op;
    if (node.op == "slice") text += to_string(std::span(graph.type(node.inputs[0]).shape));
  }
  return text;
}

std::vector<std::vector<std::byte>> weights_of(const Graph& graph) {
  std::vector<std::vector<std::byte>> all;
  for (const auto& constant : value_of(evaluate_weights(graph, graph.outputs(), library())))
    all.push_back(constant->to_bytes());
  return all;
}

struct SliceCase {
  std::string graph, operators;
};

TEST(WeightSlices, MoveToTheConstants) {
  const std::vector<SliceCase> cases = {
      {"weight w f32[8, 6]\noutput slice(transpose(w; perm=[1, 0]); starts=[2, 0], sizes=[3, 8], steps=[1, 1])",
       "slice[8, 6] transpose"},
      {"weight w f32[6]\noutput slice(broadcast(w; shape=[4, 6]); starts=[1, 2], sizes=[2, 3], steps=[1, 1])",
       "slice[6] broadcast"},
      {"weight w f32[6, 1]\noutput slice(broadcast(w; shape=[6, 5]); starts=[0, 2], sizes=[6, 3], steps=[1, 1])",
       "broadcast"},
      {"weight w f32[64]\noutput slice(broadcast(reshape(w; shape=[64, 1, 1]); shape=[1, 64, 7, 7]); "
       "starts=[0, 16, 0, 3], sizes=[1, 16, 7, 4], steps=[1, 1, 1, 1])",
       "slice[64] reshape broadcast"},
      {"weight w f32[12, 5]\noutput slice(reshape(w; shape=[3, 4, 5]); starts=[1, 0, 1], sizes=[2, 4, 3], "
       "steps=[1, 1, 1])",
       "slice[12, 5] reshape"},
      {"weight w f32[12, 5]\noutput slice(reshape(w; shape=[3, 4, 5]); starts=[2, 1, 0], sizes=[1, 2, 5], "
       "steps=[1, 1, 1])",
       "slice[12, 5] reshape"},
      {"weight w f32[3, 4]\noutput slice(reshape(w; shape=[12]); starts=[4], sizes=[8], steps=[1])",
       "slice[3, 4] reshape"},
      // Neither a box of the rows: it begins in the middle of one, or is a part of several.
      {"weight w f32[3, 4]\noutput slice(reshape(w; shape=[12]); starts=[2], sizes=[4], steps=[1])",
       "reshape slice[12]"},
      {"weight w f32[12]\noutput slice(reshape(w; shape=[3, 4]); starts=[0, 1], sizes=[3, 2], steps=[1, 1])",
       "reshape slice[3, 4]"},
      {"weight v f32[2, 3]\nweight w f32[2, 5]\noutput slice(concat(v, w; axis=-1); starts=[0, 4], sizes=[2, 3], "
       "steps=[1, 1])",
       "slice[2, 5]"},
      {"weight v f32[2, 3]\nweight w f32[2, 5]\noutput slice(concat(v, w; axis=-1); starts=[1, 2], sizes=[1, 3], "
       "steps=[1, 1])",
       "slice[2, 3] slice[2, 5] concat"},
      {"weight w f32[2, 8]\na, b = split(w; axis=-1, sizes=[3, 5])\noutput slice(b; starts=[0, 1], sizes=[2, 2], "
       "steps=[1, 1])",
       "slice[2, 8]"},
      {"weight v f32[4, 6]\nweight w f32[6]\noutput slice(mul(v, broadcast(w; shape=[4, 6])); starts=[1, 0], "
       "sizes=[2, 6], steps=[1, 1])",
       "slice[4, 6] broadcast mul"},
      {"weight w f32[4, 6]\na = slice(w; starts=[1, 1], sizes=[3, 4], steps=[1, 1])\noutput slice(a; starts=[1, 2], "
       "sizes=[1, 2], steps=[1, 1])",
       "slice[4, 6]"},
      // Every second element, and what sums over rows, are computed as they stand.
      {"weight w f32[8, 6]\noutput slice(transpose(w; perm=[1, 0]); starts=[0, 0], sizes=[3, 8], steps=[2, 1])",
       "transpose slice[6, 8]"},
      {"weight w f32[8, 6]\noutput slice(reduce_sum(w; axes=[-1]); starts=[2, 0], sizes=[3, 1], steps=[1, 1])",
       "reduce_sum slice[8, 1]"},
  };
  for (const SliceCase& one : cases) {
    Graph graph = graph_of(one.graph + "\n");
    const auto before = weights_of(graph);
    slice_weights_first(graph, registry());
    EXPECT_TRUE(graph.validate()) << one.graph;
    EXPECT_EQ(operators_of(graph), one.operators) << one.graph;
    EXPECT_EQ(weights_of(graph), before) << one.graph;
  }
}

// What depends on an input stays as it is.
TEST(WeightSlices, OfActivationsStay) {
  Graph graph = graph_of(
      "input x f32[8, 6]\noutput slice(transpose(x; perm=[1, 0]); starts=[2, 0], sizes=[3, 8], steps=[1, 1])\n");
  slice_weights_first(graph, registry());
  EXPECT_EQ(operators_of(graph), "transpose slice[6, 8]");
}

// Boxes of constants, in memory and in one that begins at no multiple of an element.
TEST(WeightSlices, BoxesOfConstants) {
  Random rng(1);
  std::vector<float> values(3 * 4 * 5 * 2);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const TensorType type{ElementType::f32, {3, 4, 5, 2}, true};
  auto shifted = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(float) + 1);
  std::memcpy(shifted->data() + 1, values.data(), values.size() * sizeof(float));
  for (int round = 0; round < 200; ++round) {
    Shape starts, sizes;
    for (const std::int64_t extent : type.shape) {
      starts.push_back(static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(extent))));
      sizes.push_back(1 + static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(extent - starts.back()))));
      if (rng.below(2) == 0) {
        starts.back() = 0;
        sizes.back() = extent;
      }
    }
    std::vector<float> expected;
    for (std::int64_t i = 0; i < volume(sizes); ++i) {
      std::int64_t rest = i, at = 0, stride = 1;
      for (std::size_t axis = sizes.size(); axis-- > 0; stride *= type.shape[axis]) {
        at += (starts[axis] + rest % sizes[axis]) * stride;
        rest /= sizes[axis];
      }
      expected.push_back(values[static_cast<std::size_t>(at)]);
    }
    for (const auto& constant : {ConstantData::of_floats(type.shape, values),
                                 ConstantData::borrow(type, std::span(*shifted).subspan(1), shifted, "shifted")}) {
      Graph graph;
      const Value whole{graph.add_constant(constant), 0};
      Attributes attributes{{"starts", starts}, {"sizes", sizes}, {"steps", Shape(4, 1)}};
      graph.add_output({value_of(add_op(graph, registry(), "slice", attributes, {whole})), 0});
      const auto made = value_of(evaluate_weights(graph, graph.outputs(), library()));
      EXPECT_EQ(made[0]->to_floats(), expected);
    }
  }
}

}  // namespace
}  // namespace taso::testing
