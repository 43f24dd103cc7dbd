#include "partition/operator_piece.h"

#include <gtest/gtest.h>

#include <cmath>

#include "operators/evaluate.h"
#include "support/random.h"
#include "tests/partition/strategy_tables.h"
#include "tests/support/graphs.h"

namespace taso {
namespace {

using test::every_strategy;
using test::graph_of;
using test::registry;
using test::value_of;

using Tensor = RingTensor<double>;

/// The part of a tensor in a box.
Tensor cropped(const Tensor& whole, const IndexBox& box) {
  Tensor part;
  for (const IndexRange& range : box) part.shape.push_back(range.size());
  const std::int64_t count = volume(part.shape);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i, offset = 0, stride = 1;
    for (std::size_t axis = box.size(); axis-- > 0;) {
      offset += (box[axis].begin + rest % part.shape[axis]) * stride;
      rest /= part.shape[axis];
      stride *= whole.shape[axis];
    }
    if (!whole.elements.empty()) part.elements.push_back(whole.elements[static_cast<std::size_t>(offset)]);
    if (!whole.integers.empty()) part.integers.push_back(whole.integers[static_cast<std::size_t>(offset)]);
  }
  return part;
}

std::vector<Tensor> run(const OperatorPiece& piece, const std::vector<Tensor>& whole_inputs) {
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < whole_inputs.size(); ++i) inputs.push_back(cropped(whole_inputs[i], piece.reads[i]));
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  const OperatorInstance instance =
      value_of(OperatorInstance::create(registry(), piece.op, piece.attributes, piece.inputs));
  DoubleRing ring;
  std::vector<Tensor> outputs = value_of(evaluate(instance, ring, std::span<const Tensor* const>(pointers)));
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = cropped(outputs[i], piece.keeps[i]);
  return outputs;
}

/// Pieces of the range of a cut, each reached by cuts into two.
Expected<std::vector<OperatorPiece>> pieces_of(const OperatorPiece& all, const PieceCut& cut, std::int64_t pieces,
                                               StrategyTable& strategies) {
  std::vector<OperatorPiece> list;
  for (std::int64_t i = 0; i < pieces; ++i) {
    TASO_ASSIGN(OperatorPiece piece, piece_at(all, cut.name, {cut.extent, i, pieces}, {cut.extent, 0, 1}, strategies));
    list.push_back(std::move(piece));
  }
  return list;
}

/// Cuts the operator that makes the graph's output in every way, and compares. The names of the cuts, each with how
/// many pieces could be made.
std::string compare(const std::string& text) {
  const Graph graph = graph_of(text);
  const OperatorPiece all = all_of(graph, graph.outputs().at(0).node);
  Random random(5);
  std::vector<Tensor> inputs;
  for (const TensorType& type : all.inputs) {
    Tensor& tensor = inputs.emplace_back();
    tensor.shape = type.shape;
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      if (type.element == ElementType::i64)
        tensor.integers.push_back(static_cast<std::int64_t>(random.below(9)) - 4);
      else
        tensor.elements.push_back(0.1 + random.uniform());
    }
  }
  const std::vector<Tensor> whole = run(all, inputs);
  StrategyTable strategies = every_strategy();
  std::string names;
  for (const PieceCut& cut : cuts_of(all, strategies)) {
    std::string made;
    for (const std::int64_t pieces : {2, 3, 4}) {
      if (pieces > cut.extent) continue;
      const auto list = pieces_of(all, cut, pieces, strategies);
      if (!list) continue;
      made += std::to_string(pieces);
      std::vector<std::vector<double>> sum(whole.size());
      for (std::size_t i = 0; i < whole.size(); ++i) sum[i].assign(whole[i].elements.size(), 0);
      for (std::size_t number = 0; number < list->size(); ++number) {
        const OperatorPiece& piece = (*list)[number];
        const std::vector<Tensor> part = run(piece, inputs);
        for (std::size_t i = 0; i < whole.size(); ++i) {
          if (!cut.output_axis) {
            EXPECT_EQ(piece.makes[i], whole_box(whole[i].shape));
            for (std::size_t k = 0; k < sum[i].size(); ++k)
              sum[i][k] = cut.strategy->reducer == "max" && number > 0 ? std::max(sum[i][k], part[i].elements[k])
                          : cut.strategy->reducer == "max"             ? part[i].elements[k]
                                                                       : sum[i][k] + part[i].elements[k];
            continue;
          }
          const Tensor expected = cropped(whole[i], piece.makes[i]);
          EXPECT_EQ(part[i].shape, expected.shape);
          for (std::size_t k = 0; k < expected.elements.size(); ++k)
            EXPECT_NEAR(part[i].elements[k], expected.elements[k], 1e-12)
                << cut.name << " " << number << " of " << pieces;
        }
      }
      for (std::size_t i = 0; !cut.output_axis && i < whole.size(); ++i)
        for (std::size_t k = 0; k < sum[i].size(); ++k) EXPECT_NEAR(sum[i][k], whole[i].elements[k], 1e-12) << cut.name;
    }
    names += cut.name + ":" + made + " ";
  }
  return names;
}

struct Cut {
  const char* graph;
  const char* cuts;  ///< Each with the numbers of pieces of 2, 3 and 4 that can be made.
};

TEST(OperatorPiece, PiecesMakeTheWhole) {
  const Cut cuts[] = {
      {"input a f32[5, 6]\ninput b f32[6, 7]\noutput matmul(a, b)\n", "i@-2:234 j@-1:234 t:234 "},
      {"input a f32[4, 3, 5, 6]\ninput b f32[3, 6, 7]\noutput matmul(a, b)\n",
       "I@-4:234 J@-3:23 i@-2:234 j@-1:234 t:234 "},
      // Two groups: of the outputs whole groups are cut, of the inputs of a group none.
      {"input x f32[2, 4, 9, 11]\ninput k f32[6, 2, 3, 3]\noutput conv2d(x, k; pads=[1, 1, 1, 1])\n",
       "b@-4:2 q@-3:2 y@-2:234 z@-1:234 u:23 v:23 "},
      {"input x f32[2, 4, 9, 11]\ninput k f32[6, 4, 3, 3]\noutput conv2d(x, k; strides=[2, 2], pads=[1, 1, 1, 1])\n",
       "b@-4:2 f@-3:234 y@-2:234 z@-1:234 i:234 u:23 v:23 "},
      {"input x f32[2, 3, 4]\noutput softmax(x; axis=-1)\n", "I@-3:2 I@-2:23 "},
      {"input x f32[2, 3, 8]\noutput reduce_sum(x; axes=[-2])\n", "I@-3:2 I@-1:234 J:23 "},
      {"input x f32[2, 3, 8]\noutput reduce_max(x; axes=[-1])\n", "I@-3:2 I@-2:23 J:234 "},
      {"input x f32[4, 6]\noutput reshape(x; shape=[4, 2, 3])\n", "I@-3:234 I@-2:2 "},
      {"input x f32[4, 6, 5]\noutput transpose(x; perm=[2, 0, 1])\n", "I@-3:234 I@-2:234 I@-1:234 "},
      {"input x f32[2, 4, 9, 9]\noutput max_pool2d(x; kernel=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])\n",
       "b@-4:2 i@-3:234 y@-2:234 z@-1:234 "},
      {"input x f32[4, 6]\ninput y f32[4, 6]\noutput add(x, y)\n", "I@-2:234 I@-1:234 "},
      {"input x f32[9, 6]\ninput i i64[5]\noutput gather(x, i; axis=-2)\n", "Q@-2:234 R@-1:234 n:234 "},
      {"input x f32[2, 3, 4, 4]\ninput s f32[3]\ninput b f32[3]\ninput m f32[3]\ninput v f32[3]\n"
       "output batch_norm(x, s, b, m, v)\n",
       "b@-4:2 i@-3:23 I@-2:234 I@-1:234 "},
      {"input x f32[2, 3, 4]\ninput s f32[4]\ninput b f32[4]\noutput layer_norm(x, s, b)\n", "I@-3:2 I@-2:23 "},
      {"input x f32[2, 6]\ninput y f32[3, 6]\noutput concat(x, y; axis=-2)\n", "j@-2:234 J@-1:234 j@-2:234 "},
      // Three and more are two, one of which is the others.
      {"input x f32[2, 6]\ninput y f32[3, 6]\ninput z f32[1, 6]\ninput u f32[4, 6]\n"
       "output concat(x, y, z, u; axis=-2)\n",
       "j@-2:234 J@-1:234 j@-2:234 "},
      {"input x f32[8, 6]\ns = split(x; axis=-1, sizes=[2, 4])\noutput s.0\noutput s.1\n",
       "I@-2:234 j@-1:234 j@-1:234 "},
      {"input x f32[2, 9]\ns = split(x; axis=-1, sizes=[3, 1, 3, 2])\noutput s.0\noutput s.1\noutput s.2\n"
       "output s.3\n",
       "I@-2:2 j@-1:234 j@-1:234 "},
      // Channels of the neighbourhood are made, too, and cut off: of few channels not all pieces can be made.
      {"input x f32[2, 16, 3]\noutput lrn(x; size=5)\n", "b@-3:2 i@-2:234 I@-1:23 "},
      {"input x f32[2, 4, 3]\noutput lrn(x; size=5)\n", "b@-3:2 i@-2:2 I@-1:23 "},
      {"input x f32[8, 6]\noutput slice(x; starts=[1, 0], sizes=[6, 3], steps=[1, 2])\n", "I@-2:234 I@-1:23 "},
      {"input x f32[6]\noutput broadcast(x; shape=[4, 6])\n", "I@-2:234 I@-1:234 "},
      {"input a f32[5, 6]\ninput b f32[6, 7]\ninput c f32[7]\noutput matmul_bias_act(a, b, c; act=relu)\n",
       "i@-2:234 j@-1:234 "},
  };
  for (const Cut& cut : cuts) EXPECT_EQ(compare(cut.graph), cut.cuts) << cut.graph;
}

}  // namespace
}  // namespace taso
