// The main job on small variants of the example models, through the programs: optimize, count, run, compare.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "examples/models/models.h"
#include "onnx_io/model.h"
#include "runtime/executor.h"
#include "support/file.h"
#include "tests/acceptance/process.h"
#include "tests/support/shipped.h"

namespace taso::acceptance {
namespace {

namespace fs = std::filesystem;

using test::registry;

Model load(const fs::path& path) {
  auto model = Model::load(path.string(), registry());
  TASO_CHECK(model.ok(), model.ok() ? "" : model.error().to_string());
  EXPECT_TRUE(model->ill_typed_nodes().empty());
  return std::move(*model);
}

// How many nodes of the file have one of these operators.
std::int64_t count(const Model& model, const std::vector<std::string>& op_types) {
  const auto& nodes = model.original_nodes();
  return std::count_if(nodes.begin(), nodes.end(), [&](const OriginalNode& node) {
    return std::find(op_types.begin(), op_types.end(), node.op_type) != op_types.end();
  });
}

// An example, what its contractions are, and how many the small variant has before and after. A kernel launch is saved
// for every further product or convolution that reads the same tensor, which makes:
struct Expected {
  std::string model;
  std::vector<std::string> counted;
  std::int64_t before = 0;
  std::int64_t after_at_most = 0;
  std::vector<std::string> options = {};
};

const std::vector<Expected> expectations = {
    // Two layers of eight products (query, key, value, scores, context, output, up, down); query, key and value merge.
    {"bert_base", {"MatMul", "Gemm"}, 16, 12},
    // Two layers of two convolutions in each of four blocks, three transitions, a stem; each reads a tensor of its own.
    {"densenet121", {"Conv"}, 20, 20},
    // One product for query, key and value, as the file has it; scores and context; the output and two more.
    {"gpt2_block", {"MatMul", "Gemm"}, 6, 6},
    // Of the 1 x 1 siblings of a module one remains: two fewer in 5b, in the block of 35 and in 7a, one fewer in the
    // block of 17 and in two of 8.
    {"inception_resnet_v2", {"Conv"}, 46, 37},
    // One block of each kind with 7, 4, 10, 6 and 9 convolutions after a stem of 5. Of the three 1 x 1 siblings of the
    // blocks a, b and c one remains, of the two of the second reduction one.
    {"inception_v3", {"Conv"}, 41, 34},
    // Query, key and value merge, and the two products that the gate joins.
    {"llama_block", {"MatMul", "Gemm"}, 9, 7},
    // Separable convolutions that start with the same rectified tensor; most siblings take a residual of their own
    // instead.
    {"nasnet_a_mobile", {"Conv"}, 158, 156, {"--steps", "3"}},
    // Two steps of eight products of the input and eight of the state: one each remains.
    {"nasrnn", {"MatMul", "Gemm"}, 32, 4},
    // Four blocks of three convolutions, two of a gate and one of a shortcut, and a stem.
    {"regnet_y_400mf", {"Conv"}, 25, 25},
    // Eight blocks of three convolutions, a stem and four shortcuts; in the first stage the shortcut reads what the
    // first convolution reads, without stride.
    {"resnet50", {"Conv"}, 29, 29},
    // As resnet50.
    {"resnext50_32x4d", {"Conv"}, 29, 29},
    // Eight fire modules of three convolutions between the first and the last; the two that expand merge.
    {"squeezenet1_1", {"Conv"}, 26, 18},
    // Five pairs of convolutions and a last one; two transposed ones. One after the other.
    {"unet", {"Conv", "ConvTranspose"}, 13, 13},
    // Three pairs of convolutions, two of them with a shortcut, a first one, a last one, and one that goes up.
    {"unet_resize", {"Conv"}, 11, 11},
    // A layer of eight products. Keys have no bias: only queries and values could merge, and to split them is a launch.
    {"whisper_encoder", {"MatMul", "Gemm"}, 8, 8},
};

class Example : public testing::TestWithParam<Expected> {
 protected:
  void SetUp() override {
    // A folder of its own: tests may run at the same time.
    std::string own = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(own.begin(), own.end(), '/', '.');
    folder_ = fs::path(testing::TempDir()) / ("taso-example-" + own);
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    model_ = folder_ / "model.onnx";
    const examples::ExampleModel* example = examples::find_example_model(GetParam().model);
    ASSERT_NE(example, nullptr);
    ASSERT_TRUE(example->build(example->small).save(model_.string()));
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path optimize(const std::string& name, const std::vector<std::string>& options = {}) {
    fs::path out = folder_ / name;
    std::vector<std::string> arguments = {program("taso-opt"), model_.string(), "-o",
                                          out.string(),        "--costs",       (folder_ / "costs.sqlite").string()};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), GetParam().options.begin(), GetParam().options.end());
    const ProcessResult result = run_process(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return out;
  }

  fs::path folder_, model_;
};

TEST_P(Example, HasFewerLaunches) {
  const Model before = load(model_);
  EXPECT_EQ(count(before, GetParam().counted), GetParam().before);
  const fs::path out = optimize("optimized.onnx", {"--cost", "launches"});
  ASSERT_TRUE(fs::exists(out));
  const Model after = load(out);
  EXPECT_LE(count(after, GetParam().counted), GetParam().after_at_most);
  EXPECT_GT(count(after, GetParam().counted), 0);

  // The interface is the same.
  ASSERT_EQ(after.inputs().size(), before.inputs().size());
  for (std::size_t i = 0; i < before.inputs().size(); ++i) {
    EXPECT_EQ(after.inputs()[i].name, before.inputs()[i].name);
    EXPECT_EQ(after.inputs()[i].type, before.inputs()[i].type);
  }
  ASSERT_EQ(after.outputs().size(), before.outputs().size());
  for (std::size_t i = 0; i < before.outputs().size(); ++i) {
    EXPECT_EQ(after.outputs()[i].name, before.outputs()[i].name);
    EXPECT_EQ(after.outputs()[i].type, before.outputs()[i].type);
  }
}

TEST_P(Example, ComputesTheSame) {
  const fs::path out = optimize("optimized.onnx", {"--cost", "launches"});
  const ProcessResult same = run_process({program("taso-run"), model_.string(), "--compare", out.string()});
  EXPECT_EQ(same.exit_code, 0) << same.errors << same.output;
}

// The test of the test: what is 5 % wrong in one weight is found.
TEST_P(Example, APerturbedWeightIsFound) {
  const fs::path out = optimize("optimized.onnx", {"--cost", "launches"});
  const Model model = load(out);
  Graph graph = model.graph();
  NodeId largest = 0;
  std::int64_t elements = 0;
  for (NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::constant || node.outputs[0].element != ElementType::f32) continue;
    if (node.outputs[0].elements() > elements) {
      largest = id;
      elements = node.outputs[0].elements();
    }
  }
  ASSERT_GT(elements, 0);
  Node wrong = graph.node(largest);
  std::vector<float> values = wrong.constant->to_floats();
  for (float& value : values) value *= 1.05F;
  wrong.constant = ConstantData::of_floats(wrong.outputs[0].shape, values);
  graph.replace_node(largest, wrong);
  const fs::path perturbed = folder_ / "perturbed.onnx";
  const auto saved = model.save(graph, perturbed.string());
  ASSERT_TRUE(saved) << saved.error().to_string();
  const ProcessResult result = run_process({program("taso-run"), model_.string(), "--compare", perturbed.string()});
  EXPECT_EQ(result.exit_code, 4) << result.errors << result.output;
}

TEST_P(Example, TwoRunsWriteTheSameBytes) {
  const auto first = read_file(optimize("first.onnx", {"--cost", "launches", "--seed", "7"}).string());
  const auto second = read_file(optimize("second.onnx", {"--cost", "launches", "--seed", "7", "-j", "1"}).string());
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(*first == *second);
}

// Models of few different kernels: measuring those of all takes minutes on a busy machine.
class MeasuredExample : public Example {};

TEST_P(MeasuredExample, FindsTheSameFromTheRecord) {
  const fs::path out = optimize("measured.onnx");
  const ProcessResult same = run_process({program("taso-run"), model_.string(), "--compare", out.string()});
  EXPECT_EQ(same.exit_code, 0) << same.errors << same.output;
  // Everything is recorded now: the same file results without measuring.
  const auto first = read_file(out.string());
  const auto second = read_file(optimize("recorded.onnx", {"--no-measure"}).string());
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(*first == *second);
}

std::vector<Expected> measured() {
  std::vector<Expected> some = expectations;
  std::erase_if(some, [](const Expected& each) {
    return each.model == "densenet121" || each.model == "inception_resnet_v2" || each.model == "nasnet_a_mobile" ||
           each.model == "resnext50_32x4d";
  });
  return some;
}

const auto name_of = [](const auto& parameter) { return parameter.param.model; };
INSTANTIATE_TEST_SUITE_P(Models, Example, testing::ValuesIn(expectations), name_of);
INSTANTIATE_TEST_SUITE_P(Models, MeasuredExample, testing::ValuesIn(measured()), name_of);

}  // namespace
}  // namespace taso::acceptance
