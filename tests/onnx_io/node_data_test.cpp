// The ONNX project's own tests of its operators, as Debian's libonnx-testdata stores them: every model is read; what is
// understood entirely is evaluated by the reference semantics and compared with the stored outputs, before and after it
// is written with original nodes and with all nodes lowered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "graph/rewrite.h"
#include "onnx_io/model.h"
#include "onnx_io/tensor_file.h"
#include "operators/evaluate.h"
#include "support/file.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

namespace fs = std::filesystem;

using test::registry;
using Tensor = RingTensor<double>;

std::optional<Tensor> read_tensor(const fs::path& path) {
  const auto data = load_tensor(path);
  if (!data) return std::nullopt;
  Tensor tensor;
  tensor.shape = (*data)->type().shape;
  switch ((*data)->type().element) {
    case ElementType::f32: {
      const std::vector<float> values = (*data)->to_floats();
      tensor.elements.assign(values.begin(), values.end());
      return tensor;
    }
    case ElementType::i32:
    case ElementType::i64:
      tensor.integers = (*data)->to_integers();
      return tensor;
    default:
      return std::nullopt;
  }
}

bool is_understood(const Model& model) {
  if (!model.carried_nodes().empty()) return false;
  return std::all_of(model.outputs().begin(), model.outputs().end(),
                     [](const TensorDeclaration& d) { return d.type.known && d.type.element == ElementType::f32; });
}

/// The largest difference from the expected outputs, relative to 1 + |expected|.
double difference(const std::vector<Tensor>& results, const std::vector<Tensor>& expected) {
  if (results.size() != expected.size()) return INFINITY;
  double largest = 0;
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (results[k].shape != expected[k].shape || results[k].elements.size() != expected[k].elements.size())
      return INFINITY;
    for (std::size_t i = 0; i < expected[k].elements.size(); ++i) {
      const double want = expected[k].elements[i], got = results[k].elements[i];
      if (std::isnan(want) && std::isnan(got)) continue;
      if (want == got) continue;
      const double error = std::abs(want - got) / (1 + std::abs(want));
      largest = std::isnan(error) ? INFINITY : std::max(largest, error);
    }
  }
  return largest;
}

std::vector<Tensor> evaluate_model(const Model& model, const std::vector<Tensor>& inputs) {
  DoubleRing ring;
  auto results = evaluate(model.graph(), registry(), ring, inputs);
  EXPECT_TRUE(results.ok()) << (results.ok() ? "" : results.error().to_string());
  return results.ok() ? *results : std::vector<Tensor>{};
}

/// One stored test.
struct Case {
  std::string name;
  std::string model;  ///< Bytes of the ONNX file.
  std::vector<fs::path> inputs, outputs;
};

std::vector<fs::path> data_files(const fs::path& folder, const std::string& stem) {
  std::vector<fs::path> files;
  for (int i = 0;; ++i) {
    const fs::path file = folder / "test_data_set_0" / (stem + std::to_string(i) + ".pb");
    if (!fs::exists(file)) return files;
    files.push_back(file);
  }
}

std::vector<Case> stored_cases() {
  const fs::path root = "/usr/lib/python3/dist-packages/onnx/backend/test/data";
  std::vector<Case> cases;
  for (const char* part : {"node", "simple", "pytorch-operator", "pytorch-converted"}) {
    if (!fs::exists(root / part)) continue;
    for (const auto& entry : fs::directory_iterator(root / part)) {
      const fs::path file = entry.path() / "model.onnx";
      if (!fs::exists(file)) continue;
      cases.push_back({entry.path().filename(), read_file(file).value(), data_files(entry.path(), "input_"),
                       data_files(entry.path(), "output_")});
    }
  }
  std::sort(cases.begin(), cases.end(), [](const Case& a, const Case& b) { return a.name < b.name; });
  return cases;
}

/// The test with every input but the first stored in the model, as shapes, axes and weights usually are.
std::optional<Case> with_initializers(const Case& stored) {
  Case bound = stored;
  onnx::ModelProto model;
  if (!model.ParseFromString(stored.model) || model.ir_version() < 4 || stored.inputs.size() < 2 ||
      model.graph().input_size() != static_cast<int>(stored.inputs.size()))
    return std::nullopt;
  while (model.graph().input_size() > 1) {
    const auto& input = model.graph().input(model.graph().input_size() - 1);
    auto& tensor = *model.mutable_graph()->add_initializer();
    if (!input.type().has_tensor_type() || !tensor.ParseFromString(read_file(bound.inputs.back()).value()))
      return std::nullopt;
    tensor.set_name(input.name());
    model.mutable_graph()->mutable_input()->RemoveLast();
    bound.inputs.pop_back();
  }
  bound.name += " (bound)";
  bound.model = model.SerializeAsString();
  return bound;
}

/// The test without its outputs but the first, such as statistics and masks.
std::optional<Case> with_first_output(const Case& stored) {
  Case first = stored;
  onnx::ModelProto model;
  if (!model.ParseFromString(stored.model) || model.graph().output_size() < 2) return std::nullopt;
  while (model.graph().output_size() > 1) model.mutable_graph()->mutable_output()->RemoveLast();
  first.outputs.resize(1);
  first.name += " (first output)";
  first.model = model.SerializeAsString();
  return first;
}

/// The test at opset 7, for operators that have not changed since before it.
std::optional<Case> at_opset_7(const Case& stored) {
  Case raised = stored;
  onnx::ModelProto model;
  if (!model.ParseFromString(stored.model) || model.opset_import_size() != 1 || model.graph().node_size() != 1 ||
      !(model.graph().node(0).op_type().starts_with("Global") ||
        model.graph().node(0).op_type() == "InstanceNormalization"))
    return std::nullopt;
  model.mutable_opset_import(0)->set_version(7);
  raised.name += " (opset 7)";
  raised.model = model.SerializeAsString();
  return raised;
}

/// What became of a case.
struct Outcome {
  bool evaluated = false;
  std::vector<CarriedNode> carried;
  std::vector<OriginalNode> nodes;
};

void check_equal_after_saving(const Model& model, const fs::path& written, bool verbatim, Expected<Model>& again) {
  SaveOptions options;
  options.verbatim = verbatim;
  const auto saved = model.save(model.graph(), written, options);
  ASSERT_TRUE(saved.ok()) << saved.error().to_string();
  again = Model::load(written, registry());
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  if (!verbatim || saved->folded_constants > 0) return;
  Graph before = model.graph(), after = again->graph();
  normalize(before, registry());  // Equal constants are stored once.
  normalize(after, registry());
  // Moves in a row are written as one.
  if (after.topological_order().size() < before.topological_order().size()) return;
  EXPECT_TRUE(after.equals(before)) << to_string(before) << to_string(after);
}

Outcome run_case(const Case& stored) {
  Outcome outcome;
  const fs::path written = fs::path(testing::TempDir()) / "taso_node_data_test.onnx";
  const auto model = Model::parse(stored.model, stored.name, registry());
  if (!model.ok()) {
    // Files of bf16 are of u16 in this version of ONNX; operator_tests reads their bits.
    EXPECT_NE(stored.name.find("BFLOAT16"), std::string::npos) << model.error().to_string();
    return outcome;
  }
  for (const IllTypedNode& node : model->ill_typed_nodes()) ADD_FAILURE() << node.node << ": " << node.reason;
  outcome.carried = model->carried_nodes();
  outcome.nodes = model->original_nodes();
  Expected<Model> original = *model, lowered = *model;
  check_equal_after_saving(*model, written, true, original);
  check_equal_after_saving(*model, written, false, lowered);
  if (!original.ok() || !lowered.ok() || !is_understood(*model)) return outcome;
  std::vector<Tensor> inputs, expected;
  for (const fs::path& file : stored.inputs)
    if (auto tensor = read_tensor(file)) inputs.push_back(std::move(*tensor));
  for (const fs::path& file : stored.outputs)
    if (auto tensor = read_tensor(file)) expected.push_back(std::move(*tensor));
  if (inputs.size() != model->inputs().size() || expected.size() != model->outputs().size()) return outcome;
  outcome.evaluated = true;
  EXPECT_LT(difference(evaluate_model(*model, inputs), expected), 1e-4) << to_string(model->graph());
  EXPECT_LT(difference(evaluate_model(*original, inputs), expected), 1e-4) << to_string(original->graph());
  EXPECT_TRUE(is_understood(*lowered)) << "a lowered model has operators that are not understood";
  if (is_understood(*lowered)) {
    EXPECT_LT(difference(evaluate_model(*lowered, inputs), expected), 1e-4) << to_string(lowered->graph());
  }
  return outcome;
}

TEST(NodeData, EveryStoredTest) {
  const std::vector<Case> cases = stored_cases();
  if (cases.empty()) GTEST_SKIP() << "libonnx-testdata is not installed";
  std::set<std::string> evaluated;
  std::map<std::string, std::string> carried;
  int count = 0;
  auto run = [&](const Case& stored) {
    SCOPED_TRACE(stored.name);
    const Outcome outcome = run_case(stored);
    for (const CarriedNode& node : outcome.carried) carried.emplace(node.op, stored.name + ": " + node.reason);
    if (!outcome.evaluated) return;
    ++count;
    for (const OriginalNode& node : outcome.nodes) evaluated.insert(node.op_type);
  };
  for (const Case& stored : cases) {
    run(stored);
    for (const auto& variant : {with_initializers(stored), with_first_output(stored), at_opset_7(stored)})
      if (variant) run(*variant);
  }
  // Every operator of the table must have been evaluated somewhere, but for those without stored tests in f32
  // (composed_test.cpp, lowering).
  const std::set<std::string> without_data = {
      "Attention", "CumSum", "Einsum", "Gelu", "GlobalLpPool", "GroupNormalization", "LpNormalization", "LpPool",
      "Mish", "OneHot", "RMSNormalization", "ReduceLogSumExp", "RotaryEmbedding", "Selu",
      "SimplifiedLayerNormalization", "Softplus", "Softsign", "Swish", "Trilu", "Where",
      // On words (tests/acceptance/operator_tests.cpp).
      "And", "ArgMax", "ArgMin", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "DequantizeLinear",
      "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual", "Mod", "Not", "Or", "QuantizeLinear",
      "Xor"};
  for (const ImportedOperator& row : imported_operators(registry()))
    EXPECT_TRUE(evaluated.contains(row.op_type) || without_data.contains(row.op_type))
        << row.op_type << " was never evaluated: " << carried[row.op_type];
  EXPECT_GE(count, 600);
  RecordProperty("evaluated", count);
}

}  // namespace
}  // namespace taso
