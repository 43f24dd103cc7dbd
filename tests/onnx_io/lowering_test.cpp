// Every operator of ours is written as ONNX and read back: the values are the same. The graphs are those of
// lowering.cases:
//
//   from_opset N    from which opset on ONNX can express them; 7 if it is not there
//   graph:
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "graph/graph_text.h"
#include "graph/reals.h"
#include "operators/evaluate.h"
#include "operators/node_maps.h"
#include "support/random.h"
#include "tests/onnx_io/carrier.h"
#include "tests/onnx_io/fixture.h"
#include "tests/support/cases.h"

namespace taso {
namespace {

using Tensor = RingTensor<double>;

std::vector<test::TextCase> lowering_cases() {
  using test::CaseCount;
  using test::CaseValue;
  return test::load_cases("tests/onnx_io/lowering.cases", {{"from_opset", CaseValue::integer, CaseCount::optional},
                                                           {"graph", CaseValue::section, CaseCount::once}});
}

std::vector<Tensor> random_inputs(const Graph& graph, std::uint64_t seed) {
  Random random(seed);
  std::vector<Tensor> inputs;
  for (NodeId id : graph.inputs()) {
    const TensorType& type = graph.node(id).outputs[0];
    Tensor tensor;
    tensor.shape = type.shape;
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      if (is_real(type.element))
        tensor.elements.push_back(rounded(random.normal(), type.element));
      else
        tensor.integers.push_back(
            static_cast<std::int64_t>(random.below(type.element == ElementType::boolean ? 2 : 4)));
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

void expect_equal_values(const Graph& expected, const Graph& actual, std::uint64_t seed) {
  const std::vector<Tensor> inputs = random_inputs(expected, seed);
  DoubleRing ring;
  const auto want = evaluate(expected, test::registry(), ring, inputs);
  const auto got = evaluate(actual, test::registry(), ring, inputs);
  ASSERT_TRUE(want.ok()) << want.error().to_string();
  ASSERT_TRUE(got.ok()) << got.error().to_string();
  ASSERT_EQ(want->size(), got->size());
  for (std::size_t k = 0; k < want->size(); ++k) {
    ASSERT_EQ((*want)[k].shape, (*got)[k].shape) << "output " << k;
    ASSERT_EQ((*want)[k].integers, (*got)[k].integers) << "output " << k;
    for (std::size_t i = 0; i < (*want)[k].elements.size(); ++i) {
      const double a = (*want)[k].elements[i], b = (*got)[k].elements[i];
      ASSERT_NEAR(a, b, 1e-5 * (1 + std::abs(a))) << "output " << k << ", element " << i;
    }
  }
}

class LoweringTest : public test::FolderTest {};

TEST_F(LoweringTest, EveryGraphAtEveryOpset) {
  std::set<std::string> written;
  for (const test::TextCase& one : lowering_cases()) {
    const auto graph = parse_graph(one.placed("graph"), one.file, test::registry());
    ASSERT_TRUE(graph.ok()) << graph.error().to_string();
    for (NodeId id : graph->topological_order())
      if (graph->node(id).kind == NodeKind::op) written.insert(graph->node(id).op);
    for (const int opset : {7, 8, 9, 10, 11, 12, 13, 14, 17, 18, 20, 21, 23}) {
      SCOPED_TRACE(one.place() + " " + one.name + " at opset " + std::to_string(opset));
      const Model model = test::carrier(*graph, opset);
      const auto saved = model.save(*graph, path("lowered.onnx"));
      if (opset < one.integer("from_opset", 7)) {
        EXPECT_FALSE(saved.ok()) << "the case could name an older opset";
        continue;
      }
      ASSERT_TRUE(saved.ok()) << saved.error().to_string();
      const auto again = Model::load(path("lowered.onnx"), test::registry());
      ASSERT_TRUE(again.ok()) << again.error().to_string();
      const auto in_memory = model.read_again(*graph);
      ASSERT_TRUE(in_memory.ok()) << in_memory.error().to_string();
      EXPECT_EQ(to_string(in_memory->graph()), to_string(again->graph()));
      test::expect_well_typed(*again);
      for (const CarriedNode& summary : again->carried_nodes())
        ADD_FAILURE() << summary.op << " is not understood: " << summary.reason;
      if (again->carried_nodes().empty()) expect_equal_values(*graph, again->graph(), 1);
    }
  }
  std::vector<std::string> names = test::registry().names();
  // Operators of a runtime's own are written for models that have them, or may.
  std::erase_if(names, [](const std::string& name) {
    const auto& maps = test::registry().node_maps().of_operator(name);
    return name != "gelu" && !maps.empty() &&
           std::all_of(maps.begin(), maps.end(), [](const auto& mapping) { return !mapping->domain.empty(); });
  });
  EXPECT_EQ(exported_operators(test::registry()), names) << "the export table and the specifications differ";
  EXPECT_EQ(std::vector<std::string>(written.begin(), written.end()), names) << "an operator occurs in no case";
}

TEST_F(LoweringTest, WhatAnOpsetCannotExpress) {
  const auto error = [&](const std::string& text, int opset) {
    const auto graph = parse_graph(text, "test", test::registry());
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : graph.error().to_string());
    const auto saved = test::carrier(*graph, opset).save(*graph, path("lowered.onnx"));
    return saved.ok() ? "" : saved.error().message;
  };
  EXPECT_EQ(error("input x f32[4]\noutput broadcast(x; shape=[2, 4])\n", 7),
            "cannot write broadcast as ONNX: Expand is not in opset 7");
  EXPECT_EQ(error("input x f32[4]\noutput gelu(x)\n", 8), "cannot write gelu as ONNX: Erf is not in opset 8");
  EXPECT_EQ(error("input x f32[1, 1, 5, 5]\noutput max_pool2d(x; kernel=[2, 2], dilations=[2, 2])\n", 9),
            "cannot write max_pool2d as ONNX: MaxPool has no dilations before opset 10");
  EXPECT_EQ(error("input x f32[4]\noutput slice(x; starts=[0], sizes=[2], steps=[2])\n", 9),
            "cannot write slice as ONNX: Slice has no steps before opset 10");
  EXPECT_EQ(error("input x f32[4]\noutput relu(x)\n", 6), "operator relu cannot be written before opset 7");
}

TEST(ImportTable, IsSortedAndDocumented) {
  const std::vector<ImportedOperator> rows = imported_operators(test::registry());
  EXPECT_TRUE(
      std::is_sorted(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.op_type < b.op_type; }));
  const std::string page = read_file(std::string(TASO_SOURCE_DIR) + "/docs/onnx.md").value();
  for (const ImportedOperator& row : rows) {
    const std::string line = "| `" + row.op_type + "` | " + row.form + " | " + row.conditions + " |";
    EXPECT_THAT(page, testing::HasSubstr(line)) << "docs/onnx.md lacks this line";
  }
}

}  // namespace
}  // namespace taso
