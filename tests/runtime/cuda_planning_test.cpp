// Which of cuDNN's engines are asked for what, planned for a device that is only described.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/division.h"

namespace taso::cuda {
namespace {

PlanningTarget described_device() {
  static const Expected<Descriptor> device = [] {
    std::ifstream file(std::string(TASO_SOURCE_DIR) + "/tests/data/cuda/h200_by_hand.json");
    return device_from_json({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
  }();
  if (!device) throw std::runtime_error(device.error().message);
  return {nullptr, &*device};
}

ConvolutionGraph graph(bool channels_last, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
  ConvolutionGraph result;
  result.type = type;
  result.x = {16, 64, 56, 56};
  result.w = {64, 64, 3, 3};
  result.y = {16, 64, 56, 56};
  result.channels_last = channels_last;
  result.before = result.after = result.strides = result.dilations = {1, 1};
  return result;
}

constexpr std::size_t no_limit = std::size_t{1} << 40;

/// All that cuDNN has without compiling.
Engines engines_for(const ConvolutionGraph& graph, MathMode math, std::size_t workspace_bytes = no_limit) {
  EngineLimits limits = all_engines(workspace_bytes);
  limits.compiled = false;
  return convolution_engines(described_device(), graph, math, limits);
}

TEST(CudnnEngines, StrictArithmeticLeavesTensorCoresOut) {
  for (const bool channels_last : {false, true}) {
    const Engines strict = engines_for(graph(channels_last), MathMode::strict);
    const Engines tf32 = engines_for(graph(channels_last), MathMode::tf32);
    EXPECT_FALSE(strict.usable.empty()) << strict.last_error;
    EXPECT_GT(strict.other_arithmetic, 0);
    EXPECT_GT(tf32.usable.size(), strict.usable.size());
    for (const Engine& engine : strict.usable) EXPECT_FALSE(engine.tensor_core) << engine.configuration.index;
    EXPECT_TRUE(std::any_of(tf32.usable.begin(), tf32.usable.end(), [](const Engine& one) { return one.tensor_core; }));
  }
}

TEST(CudnnEngines, HalvesUseTensorCoresInEitherMode) {
  for (const MathMode math : {MathMode::strict, MathMode::tf32}) {
    const Engines engines = engines_for(graph(true, CUDNN_DATA_HALF), math);
    EXPECT_TRUE(std::any_of(engines.usable.begin(), engines.usable.end(), [](const Engine& one) {
      return one.tensor_core;
    })) << engines.last_error;
  }
}

TEST(CudnnEngines, WorkspaceIsLimited) {
  const Engines all = engines_for(graph(true), MathMode::tf32);
  const Engines few = engines_for(graph(true), MathMode::tf32, 0);
  EXPECT_LT(few.usable.size(), all.usable.size());
  EXPECT_GT(few.unsupported, all.unsupported);
  for (const Engine& engine : few.usable) EXPECT_EQ(engine.workspace, 0);
}

/// 32 groups of 4 channels, as ResNeXt has them, with all that an engine may compute besides.
ConvolutionGraph grouped_graph() {
  ConvolutionGraph grouped = graph(true);
  grouped.x = grouped.y = {1, 128, 56, 56};
  grouped.w = {128, 4, 3, 3};
  grouped.bias = grouped.relu = true;
  return grouped;
}

TEST(CudnnEngines, AreFoundAgainByTheirConfigurations) {
  for (const ConvolutionGraph& of : {graph(true), grouped_graph()})
    for (const MathMode math : {MathMode::strict, MathMode::tf32}) {
      const Engines all = engines_for(of, math);
      ASSERT_GT(all.usable.size(), 1U);
      for (const Engine& engine : all.usable) {
        const std::string text = to_string(engine.configuration);
        const auto configuration = parse_configuration(text);
        ASSERT_TRUE(configuration.has_value()) << text;
        EXPECT_EQ(*configuration, engine.configuration) << text;
        const auto again = configured_engine(described_device(), of, math, no_limit, *configuration);
        ASSERT_TRUE(again.ok()) << text << ": " << again.error().message;
        EXPECT_EQ(again->configuration, engine.configuration);
        EXPECT_EQ(again->workspace, engine.workspace) << text;
        EXPECT_EQ(again->tensor_core, engine.tensor_core) << text;
      }
    }
}

TEST(CudnnEngines, ChoicesAreReadAsTheyAreWritten) {
  const ChosenEngine chosen{"pad, conv+bias", {44, {{2, 1}, {14, 3}}}, "best of 8, 1 failed"};
  EXPECT_EQ(chosen.text(), "pad, conv+bias; engine 44; knobs 2=1 14=3; best of 8, 1 failed");
  const auto read = ChosenEngine::parse(chosen.text());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->work, chosen.work);
  EXPECT_EQ(read->configuration, chosen.configuration);
  EXPECT_EQ(read->description, chosen.description);
  for (const char* wrong : {"", "attention; engine 5; knobs", "attention; engine x; knobs; best of 3", "; best of 3",
                            "best of 3; engine 5; knobs"})
    EXPECT_FALSE(ChosenEngine::parse(wrong).has_value()) << wrong;
}

TEST(CudnnEngines, ConfigurationsThatAreNoMoreAreRefused) {
  const auto configured = [](const EngineConfiguration& configuration, MathMode math, std::size_t workspace_bytes) {
    return configured_engine(described_device(), graph(true), math, workspace_bytes, configuration);
  };
  const auto unknown = configured({1'000'000, {}}, MathMode::strict, no_limit);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::device_unavailable);
  const Engines tf32 = engines_for(graph(true), MathMode::tf32);
  const auto fast =
      std::find_if(tf32.usable.begin(), tf32.usable.end(), [](const Engine& one) { return one.tensor_core; });
  ASSERT_NE(fast, tf32.usable.end());
  const auto strict = configured(fast->configuration, MathMode::strict, no_limit);
  ASSERT_FALSE(strict.ok());
  EXPECT_NE(strict.error().message.find("has other arithmetic"), std::string::npos) << strict.error().message;
  const auto large =
      std::find_if(tf32.usable.begin(), tf32.usable.end(), [](const Engine& one) { return one.workspace > 0; });
  ASSERT_NE(large, tf32.usable.end());
  const auto without = configured(large->configuration, MathMode::tf32, 0);
  ASSERT_FALSE(without.ok());
  EXPECT_EQ(without.error().message, "the workspace would be " + std::to_string(large->workspace) + " bytes");
  for (const char* wrong : {"", "engine", "engine x; knobs", "engine 1", "engine 1; knobs 2",
                            "engine 1; knobs 2=", "engine 1; knobs 2=3 x"})
    EXPECT_FALSE(parse_configuration(wrong).has_value()) << wrong;
}

TEST(CudnnEngines, NoneTwiceAndFewIfNotAllAreAskedFor) {
  for (const MathMode math : {MathMode::strict, MathMode::tf32}) {
    const Engines all = convolution_engines(described_device(), graph(true), math, all_engines(no_limit));
    for (std::size_t i = 0; i < all.usable.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        EXPECT_NE(all.usable[i].configuration, all.usable[j].configuration) << to_string(all.usable[i].configuration);
    EXPECT_EQ(all.compiled, 0);
    EngineLimits limits;
    limits.workspace_bytes = no_limit;
    const Engines few = convolution_engines(described_device(), graph(true), math, limits);
    EXPECT_LE(few.usable.size(), limits.all);
    EXPECT_LE(few.usable.size(), all.usable.size());
    for (std::size_t i = 0; i < std::min(few.usable.size(), limits.heuristic); ++i)
      EXPECT_TRUE(std::any_of(all.usable.begin(), all.usable.end(),
                              [&](const Engine& one) { return one.configuration == few.usable[i].configuration; }));
  }
  ConvolutionGraph depthwise = grouped_graph();
  depthwise.w = {128, 1, 3, 3};
  depthwise.bias = depthwise.relu = false;
  EngineLimits limits;
  limits.workspace_bytes = no_limit;
  EXPECT_EQ(convolution_engines(described_device(), depthwise, MathMode::tf32, limits).usable.size(), limits.all)
      << "where the heuristics name few, there are more of those that always work";
  const Engines many = engines_for(graph(true), MathMode::tf32);
  EXPECT_GT(many.usable.size(), 9U) << "the limits above mean something";
}

AskedConvolution asked_for(const ConvolutionGraph& plain, bool bias, bool residual, Function act) {
  AskedConvolution asked;
  asked.plain = plain;
  asked.plain.bias = asked.plain.relu = asked.plain.residual = false;
  asked.pads = {1, 1, 1, 1};
  asked.bias = bias;
  asked.residual = asked.residual_fits = residual;
  asked.act = act;
  return asked;
}

std::vector<std::string> names_of(const std::vector<Division>& divisions) {
  std::vector<std::string> names;
  for (const Division& division : divisions) names.push_back(division.name());
  return names;
}

TEST(Divisions, BeginWithWhatIsFusedMost) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of(divisions_of(asked_for(graph(true), true, false, Function::relu))),
            (Names{"conv+bias+relu", "conv+bias", "conv", "pad, conv+bias+relu", "pad, conv+bias", "pad, conv"}));
  EXPECT_EQ(names_of(divisions_of(asked_for(graph(true), true, true, Function::relu))),
            (Names{"conv+bias+residual+relu", "conv+bias", "conv", "pad, conv+bias+residual+relu", "pad, conv+bias",
                   "pad, conv"}));
  EXPECT_EQ(
      names_of(divisions_of(asked_for(graph(true), true, true, Function::sigmoid))),
      (Names{"conv+bias+residual", "conv+bias", "conv", "pad, conv+bias+residual", "pad, conv+bias", "pad, conv"}));
  AskedConvolution without_pads = asked_for(graph(true), false, false, Function::relu);
  without_pads.pads = {0, 0, 0, 0};
  const std::vector<Division> list = divisions_of(without_pads);
  EXPECT_EQ(names_of(list), (Names{"conv+bias+relu", "conv"}));
  EXPECT_TRUE(list[0].zero_bias);
  EXPECT_FALSE(list[0].has_rest());
  EXPECT_EQ(list[1].act_left, Function::relu);
}

TEST(Divisions, OfGroupsAreCompared) {
  using Rounds = std::vector<std::vector<std::size_t>>;
  const auto rounds = [](const ConvolutionGraph& plain, bool bias) {
    return rounds_of(divisions_of(asked_for(plain, bias, false, Function::relu)));
  };
  EXPECT_EQ(rounds(graph(true), true), (Rounds{{0}, {1}, {2}, {3}, {4}, {5}}));
  EXPECT_EQ(rounds(grouped_graph(), true), (Rounds{{0, 2}, {1}, {3}, {4}, {5}}));
  EXPECT_EQ(rounds(grouped_graph(), false), (Rounds{{0, 1}, {2}, {3}}));
  EXPECT_EQ(rounds_of(divisions_of(asked_for(grouped_graph(), false, false, Function::identity))), (Rounds{{0}, {1}}))
      << "nothing is fused";
  EXPECT_EQ(rounds_of({}), Rounds{});
  // What makes the comparison worth it: without what is fused there are more engines.
  ConvolutionGraph plain = grouped_graph();
  plain.bias = plain.relu = false;
  EXPECT_GT(engines_for(plain, MathMode::strict).usable.size(),
            engines_for(grouped_graph(), MathMode::strict).usable.size());
}

TEST(CudnnEngines, FusedGraphsHaveEngines) {
  for (const bool channels_last : {false, true})
    for (const bool residual : {false, true})
      for (const bool relu : {false, true}) {
        ConvolutionGraph fused = graph(channels_last);
        fused.bias = true;
        fused.residual = residual;
        fused.relu = relu;
        const Engines engines = engines_for(fused, MathMode::strict);
        EXPECT_FALSE(engines.usable.empty()) << engines.last_error;
      }
}

TEST(CudnnEngines, WrongGraphsAreRefusedInOneLine) {
  ConvolutionGraph wrong = graph(false);
  wrong.y[2] = 55;
  const Engines engines = engines_for(wrong, MathMode::strict);
  EXPECT_TRUE(engines.usable.empty());
  EXPECT_EQ(engines.last_error.rfind("cuDNN refuses a descriptor: CUDNN_STATUS_BAD_PARAM", 0), 0U)
      << engines.last_error;
  EXPECT_EQ(engines.last_error.find('\n'), std::string::npos);
}

TEST(CudnnDescriptors, SettersKeepTheFirstError) {
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2).set(CUDNN_ATTR_TENSOR_UNIQUE_ID, 1);
  const Status status = tensor.finalize();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::device_unavailable);
  EXPECT_EQ(status.error().message.rfind("cuDNN refuses an attribute: ", 0), 0U) << status.error().message;
}

/// Attention of heads side by side in rows, as projections leave them.
AttentionPlan attention_of(std::int64_t heads, std::int64_t queries, std::int64_t keys, std::int64_t width) {
  AttentionPlan plan;
  plan.q = plan.y = {0, {1, heads, queries, width}, {queries * heads * width, width, heads * width, 1}, 0};
  plan.k = {1, {1, heads, width, keys}, {keys * heads * width, width, 1, heads * width}, 0};
  plan.v = {2, {1, heads, keys, width}, {keys * heads * width, width, heads * width, 1}, 0};
  return plan;
}

struct AttentionShape {
  std::string name;
  AttentionPlan plan;
  bool has_engine = true;
};

/// Of blocks of BERT, GPT-2 and LLaMA: what cuDNN has an engine for has heads of 64 numbers.
std::vector<AttentionShape> attention_shapes() {
  AttentionShape bert{"bert", attention_of(12, 128, 128, 64), true}, masked = bert, gpt2 = bert;
  bert.plan.scale = 3;
  bert.plan.divides = true;
  masked.name = "bert_with_padding";
  masked.plan.scale = 3;
  masked.plan.mask = AttentionOperand{4, {1, 1, 1, 128}, {128, 128, 128, 1}, 0};
  gpt2.name = "gpt2";
  gpt2.plan = attention_of(12, 64, 64, 64);
  gpt2.plan.scale = 3;
  gpt2.plan.mask = AttentionOperand{4, {1, 1, 64, 64}, {4096, 4096, 64, 1}, 0};
  return {bert,
          masked,
          gpt2,
          {"plain", attention_of(8, 100, 100, 64), true},
          {"llama", attention_of(32, 128, 128, 128), false},
          {"long", attention_of(12, 1024, 1024, 64), false}};
}

// Engines for attention are compiled when they are planned. Where the driver's library is only there to be linked with,
// all is done but to load the code; where it is not there, cuDNN names none.
TEST(CudaPlanning, Attention) {
  const bool is_compiled = std::getenv("TASO_TEST_DRIVER_STUB") != nullptr;
  for (const AttentionShape& shape : attention_shapes())
    for (const cudnnDataType_t type : {CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16}) {
      SCOPED_TRACE(shape.name);
      if (is_compiled && type == CUDNN_DATA_BFLOAT16 && shape.name != "bert") continue;  // it takes a second each
      const Engines engines = attention_engines(described_device(), shape.plan, type, {no_limit, 1, 1, true});
      EXPECT_EQ(engines.last_error.find("refuses an attribute"), std::string::npos) << engines.last_error;
      EXPECT_EQ(engines.other_arithmetic, 0);
      EXPECT_EQ(engines.unsupported, 0) << engines.last_error;
      if (!is_compiled) continue;
      EXPECT_EQ(!engines.usable.empty() || engines.unloadable > 0, shape.has_engine);
    }
}

}  // namespace
}  // namespace taso::cuda
