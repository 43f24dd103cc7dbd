// What is left of a model that is read and written: tidy.cases.
//
//   opset N      the version of the default operator set
//   onnx:        the model's graph (tests/onnx_io/onnx_text.h)
//   nodes TYPE.. the types of the nodes that are written, in order, but for Constant
//
// Where all of it is understood, the outputs are what they were.
#include <gmock/gmock.h>

#include "graph/rewrite.h"
#include "operators/evaluate.h"
#include "support/random.h"
#include "tests/onnx_io/fixture.h"
#include "tests/onnx_io/onnx_text.h"
#include "tests/support/cases.h"

namespace taso {
namespace {

const std::vector<test::TextCase>& tidy_cases() {
  using test::CaseCount;
  using test::CaseValue;
  static const std::vector<test::TextCase> cases =
      test::load_cases("tests/onnx_io/tidy.cases", {{"opset", CaseValue::integer, CaseCount::once},
                                                    {"onnx", CaseValue::section, CaseCount::once},
                                                    {"nodes", CaseValue::words, CaseCount::once}});
  return cases;
}

std::vector<RingTensor<double>> outputs_of(const Graph& graph) {
  Random random(1);
  std::vector<RingTensor<double>> inputs;
  for (const NodeId id : graph.inputs()) {
    const TensorType& type = graph.node(id).outputs[0];
    RingTensor<double> tensor;
    tensor.shape = type.shape;
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      if (is_real(type.element))
        tensor.elements.push_back(random.normal());
      else
        tensor.integers.push_back(
            static_cast<std::int64_t>(random.below(type.element == ElementType::boolean ? 2 : 9)));
    }
    inputs.push_back(std::move(tensor));
  }
  DoubleRing ring;
  auto outputs = evaluate(graph, test::registry(), ring, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.error().to_string();
  return outputs.ok() ? std::move(*outputs) : std::vector<RingTensor<double>>{};
}

class TidyCases : public test::FolderTest, public ::testing::WithParamInterface<test::TextCase> {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("taso_tidy_" + std::to_string(GetParam().line));
    std::filesystem::create_directories(folder_);
  }
};

TEST_P(TidyCases, LeaveTheseNodes) {
  const test::TextCase& one = GetParam();
  const Expected<onnx::GraphProto> graph = test::parse_onnx_graph(one.placed("onnx"), one.file);
  ASSERT_TRUE(graph.ok()) << graph.error().to_string();
  onnx::ModelProto proto;
  proto.set_ir_version(8);
  proto.add_opset_import()->set_version(one.integer("opset"));
  *proto.mutable_graph() = *graph;
  const Expected<Model> model = Model::parse(proto.SerializeAsString(), path("in.onnx"), test::registry());
  ASSERT_TRUE(model.ok()) << model.error().to_string();
  Graph normal = model->graph();
  normalize(normal, test::registry());
  const auto saved = model->save(normal, path("out.onnx"));
  ASSERT_TRUE(saved.ok()) << saved.error().to_string();
  std::vector<std::string> types = test::op_types(test::read_message(path("out.onnx")));
  std::erase(types, "Constant");
  EXPECT_THAT(types, ::testing::ElementsAreArray(test::words_of(one.text("nodes"))));
  const auto again = Model::load(path("out.onnx"), test::registry());
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  if (!model->carried_nodes().empty()) return;
  EXPECT_TRUE(again->carried_nodes().empty());
  const auto before = outputs_of(model->graph()), after = outputs_of(again->graph());
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t k = 0; k < before.size(); ++k) {
    EXPECT_EQ(before[k].shape, after[k].shape);
    EXPECT_EQ(before[k].integers, after[k].integers);
    EXPECT_EQ(before[k].elements, after[k].elements);
  }
}

class Tied : public test::FolderTest {};

// A transposed weight is not stored beside the weight.
TEST_F(Tied, WeightsAreStoredOnce) {
  for (const bool tied : {true, false}) {
    ModelBuilder builder(17, "tied");
    builder.add_input("token", {3}, ElementType::i64);
    builder.add_input("x", {3, 64});
    builder.add_initializer("embedding", {520, 64}, test::numbers(520 * 64));
    builder.add_node("Transpose", {"embedding"}, {"turned"}, {{"perm", std::vector<std::int64_t>{1, 0}}});
    builder.add_node("MatMul", {"x", "turned"}, {"logits"});
    builder.add_output("logits", {3, 520});
    if (tied) {
      builder.add_node("Gather", {"embedding", "token"}, {"row"});
      builder.add_output("row", {3, 64});
    }
    ASSERT_TRUE(builder.save(path("in.onnx")));
    const auto model = Model::load(path("in.onnx"), test::registry());
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    ASSERT_TRUE(model->save(model->graph(), path("out.onnx")).ok());
    const onnx::ModelProto written = test::read_message(path("out.onnx"));
    std::size_t bytes = 0;
    for (const auto& weight : written.graph().initializer()) bytes += weight.raw_data().size();
    EXPECT_EQ(bytes, 520U * 64 * 4);
    EXPECT_EQ(std::ranges::count(test::op_types(written), "Transpose"), tied ? 1 : 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, TidyCases, ::testing::ValuesIn(tidy_cases()), test::case_name);

}  // namespace
}  // namespace taso
