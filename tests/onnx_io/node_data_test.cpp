// The ONNX project's own tests of its operators, as Debian's libonnx-testdata stores them: every model is read; what is
// understood entirely is evaluated by the reference semantics and compared with the stored outputs, before and after it
// is written with original nodes and with all nodes lowered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "onnx_io/model.h"
#include "onnx_io/tensor_file.h"
#include "operators/evaluate.h"

namespace taso {
namespace {

namespace fs = std::filesystem;

const OperatorRegistry& registry() {
  static const OperatorRegistry loaded =
      OperatorRegistry::load(std::string(TASO_SOURCE_DIR) + "/specs/operators").value();
  return loaded;
}

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
  if (!model.opaque_operators().empty()) return false;
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

TEST(NodeData, EveryStoredTest) {
  const fs::path root = "/usr/lib/python3/dist-packages/onnx/backend/test/data";
  if (!fs::exists(root / "node")) GTEST_SKIP() << "libonnx-testdata is not installed";
  std::vector<fs::path> folders;
  for (const char* part : {"node", "simple", "pytorch-operator", "pytorch-converted"})
    for (const auto& entry : fs::directory_iterator(root / part))
      if (fs::exists(entry.path() / "model.onnx")) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  const fs::path written = fs::path(testing::TempDir()) / "taso_node_data_test.onnx";

  std::set<std::string> evaluated;
  std::map<std::string, int> carried;
  for (const fs::path& folder : folders) {
    SCOPED_TRACE(folder.filename().string());
    const auto model = Model::load(folder / "model.onnx", registry());
    ASSERT_TRUE(model.ok()) << model.error().to_string();
    for (const bool verbatim : {true, false}) {
      SaveOptions options;
      options.verbatim = verbatim;
      const auto saved = model->save(model->graph(), written, options);
      ASSERT_TRUE(saved.ok()) << saved.error().to_string();
      const auto again = Model::load(written, registry());
      ASSERT_TRUE(again.ok()) << again.error().to_string();
      if (verbatim) {
        EXPECT_TRUE(again->graph().equals(model->graph())) << to_string(again->graph());
      }
    }
    if (!is_understood(*model)) {
      for (const OpaqueSummary& summary : model->opaque_operators()) ++carried[summary.op];
      continue;
    }
    std::vector<Tensor> inputs, expected;
    for (std::size_t i = 0; fs::exists(folder / "test_data_set_0" / ("input_" + std::to_string(i) + ".pb")); ++i)
      if (auto tensor = read_tensor(folder / "test_data_set_0" / ("input_" + std::to_string(i) + ".pb")))
        inputs.push_back(std::move(*tensor));
    for (std::size_t i = 0; fs::exists(folder / "test_data_set_0" / ("output_" + std::to_string(i) + ".pb")); ++i)
      if (auto tensor = read_tensor(folder / "test_data_set_0" / ("output_" + std::to_string(i) + ".pb")))
        expected.push_back(std::move(*tensor));
    if (inputs.size() != model->inputs().size() || expected.size() != model->outputs().size()) continue;
    EXPECT_LT(difference(evaluate_model(*model, inputs), expected), 1e-4) << to_string(model->graph());
    const auto lowered = Model::load(written, registry());
    ASSERT_TRUE(lowered.ok());
    EXPECT_TRUE(is_understood(*lowered)) << "a lowered model has operators that are not understood";
    if (is_understood(*lowered)) {
      EXPECT_LT(difference(evaluate_model(*lowered, inputs), expected), 1e-4) << to_string(lowered->graph());
    }
    for (const OriginalNode& node : model->original_nodes()) evaluated.insert(node.op_type);
    RecordProperty(folder.filename().string(), "evaluated");
  }
  std::string text;
  for (const std::string& op : evaluated) text += op + " ";
  std::printf("evaluated: %s\n", text.c_str());
  for (const auto& [op, count] : carried) std::printf("carried: %s %d\n", op.c_str(), count);
}

}  // namespace
}  // namespace taso
