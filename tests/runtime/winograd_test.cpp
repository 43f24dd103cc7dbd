// Convolutions by tiles (runtime/cpu/winograd.cpp) against the operators' definitions in double.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <vector>

#include "graph/graph_text.h"
#include "runtime/aligned_buffer.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/tile_transforms.h"
#include "runtime/executor.h"
#include "support/random.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

/// The request of a graph's convolution, of images with their channels last.
KernelRequest convolution_of(const std::string& graph, int threads = 1) {
  const LoweredGraph lowered = value_of(lower(graph_of(graph), registry(), {.threads = threads}));
  for (const LoweredStep& step : lowered.steps)
    if (step.kernel && step.kernel->request.op.starts_with("conv2d")) return step.kernel->request;
  ADD_FAILURE() << "no convolution in " << graph;
  return {};
}

/// What a kernel computes of random numbers, weights packed; the residual, if there is one, lies where the result does.
/// `infinite`: an element of the image that is so.
std::vector<float> result_of(const Kernel& kernel, const KernelRequest& request, bool in_place = false,
                             std::optional<std::int64_t> infinite = {}) {
  Random random(3, request.key());
  std::vector<AlignedBuffer> inputs;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const std::int64_t elements = request.inputs[i].type.elements();
    AlignedBuffer plain(static_cast<std::size_t>(elements) * sizeof(float));
    for (std::int64_t k = 0; k < elements; ++k)
      reinterpret_cast<float*>(plain.data())[k] = static_cast<float>(random.normal());
    if (i == 0 && infinite) reinterpret_cast<float*>(plain.data())[*infinite] = INFINITY;
    if (!kernel.packed_format(i).empty()) {
      AlignedBuffer packed(kernel.packed_bytes(i));
      kernel.pack(i, plain.data(), packed.data());
      plain = std::move(packed);
    }
    inputs.push_back(std::move(plain));
  }
  std::vector<float> result(static_cast<std::size_t>(request.outputs[0].type.elements()), NAN);
  std::vector<const std::byte*> from;
  for (const AlignedBuffer& input : inputs) from.push_back(input.data());
  auto* to = reinterpret_cast<std::byte*>(result.data());
  if (in_place) {
    std::memcpy(to, inputs[3].data(), result.size() * sizeof(float));
    from[3] = to;
  }
  AlignedBuffer workspace(kernel.workspace_bytes());
  std::memset(workspace.data(), 0xff, kernel.workspace_bytes());  // NaN where nothing is written
  EXPECT_TRUE(kernel.execute({from, std::span(&to, 1), workspace.data()})) << request.key();
  return result;
}

struct TiledExample {
  std::string operands, call;
};

const std::vector<TiledExample>& tiled_examples() {
  static const std::string of_images = "input x f32[2, 5, 7, 9]\nweight w f32[3, 5, 3, 3]\n";
  static const std::vector<TiledExample> examples = {
      {of_images, "conv2d(x, w)"},
      {of_images, "conv2d(x, w; pads=[1, 1, 1, 1])"},
      {of_images, "conv2d(x, w; pads=[2, 0, 1, 3])"},
      // Rows of zeros of which whole tiles are made.
      {of_images, "conv2d(x, w; pads=[5, 6, 7, 4])"},
      {"input x f32[1, 1, 3, 3]\nweight w f32[1, 1, 3, 3]\n", "conv2d(x, w)"},
      {"input x f32[3, 2, 1, 1]\nweight w f32[17, 2, 3, 3]\n", "conv2d(x, w; pads=[1, 1, 1, 1])"},
      {of_images + "weight b f32[3]\n", "conv2d_bias_act(x, w, b; act=relu, pads=[1, 1, 1, 1])"},
      {of_images + "weight b f32[3]\n", "conv2d_bias_act(x, w, b; act=silu, pads=[1, 1, 1, 1])"},
      {of_images + "weight b f32[3]\n", "conv2d_bias_act(x, w, b; act=identity)"},
      {of_images + "weight b f32[3]\ninput r f32[2, 3, 7, 9]\n",
       "conv2d_bias_add_act(x, w, b, r; act=relu, pads=[1, 1, 1, 1])"},
      {of_images + "weight b f32[3]\ninput r f32[2, 3, 5, 7]\n", "conv2d_bias_add_act(x, w, b, r; act=tanh)"},
      {"input x f32[1, 48, 6, 5]\nweight w f32[40, 48, 3, 3]\nweight b f32[40]\ninput r f32[1, 40, 6, 5]\n",
       "conv2d_bias_add_act(x, w, b, r; act=gelu, pads=[1, 1, 1, 1])"},
      {"input x f32[1, 33, 4, 12]\nweight w f32[20, 33, 3, 3]\n", "conv2d(x, w; pads=[1, 1, 1, 1])"},
  };
  return examples;
}

TEST(Winograd, ComputesWhatTheDefinitionsSay) {
  if (cpu::onednn_version().empty()) GTEST_SKIP() << "built without oneDNN";
  const KernelLibrary reference(registry(), KernelSet::reference);
  for (const auto& [operands, call] : tiled_examples()) {
    const std::string graph = operands + "output " + call + "\n";
    for (const int threads : {1, 3})
      for (const std::int64_t tiles : {1, 3, 4, 1000}) {
        const KernelRequest request = convolution_of(graph, threads);
        const KernelOffer offer = cpu::winograd_by_blocks(request, registry(), tiles);
        ASSERT_NE(offer.kernel, nullptr) << call << ": " << offer.reason;
        EXPECT_TRUE(offer.kernel->implementation().starts_with("own winograd, onednn "));
        const std::vector<float> expected = result_of(*value_of(reference.create(request)), request);
        double largest = 0;
        for (const float value : expected) largest = std::max(largest, std::fabs(static_cast<double>(value)));
        for (const bool in_place : {false, true}) {
          if (in_place && request.inputs.size() < 4) continue;
          const std::vector<float> actual = result_of(*offer.kernel, request, in_place);
          for (std::size_t i = 0; i < actual.size(); ++i)
            ASSERT_NEAR(actual[i], expected[i], 3e-6 * largest) << call << ", " << tiles << " tiles, element " << i;
        }
      }
  }
}

// To the bit where oneDNN multiplies by brgemm (AVX-512); its products with AVX2 round by the number of rows.
void expect_same(const std::vector<float>& result, const std::vector<float>& first, const Kernel& kernel,
                 const std::string& what) {
  if (kernel.implementation().find("brg") != std::string::npos) {
    EXPECT_EQ(result, first) << what;
    return;
  }
  float largest = 0;
  for (const float value : first) largest = std::max(largest, std::fabs(value));
  ASSERT_EQ(result.size(), first.size());
  for (std::size_t i = 0; i < result.size(); ++i)
    ASSERT_NEAR(result[i], first[i], 3e-6 * std::max(largest, 1.0F)) << what << ", element " << i;
}

TEST(Winograd, BlocksAndThreadsChangeNothing) {
  if (cpu::onednn_version().empty()) GTEST_SKIP() << "built without oneDNN";
  for (const auto& [operands, call] : tiled_examples()) {
    const std::string graph = operands + "output " + call + "\n";
    std::vector<float> first;
    for (const int threads : {1, 2, 5})
      for (const std::int64_t tiles : {2, 8, 50}) {
        const KernelOffer offer = cpu::winograd_by_blocks(convolution_of(graph, threads), registry(), tiles);
        const std::vector<float> result = result_of(*offer.kernel, convolution_of(graph));
        if (first.empty()) first = result;
        expect_same(result, first, *offer.kernel, fmt::format("{}: {} threads, {} tiles", call, threads, tiles));
      }
  }
}

TEST(Winograd, BlocksAndThreadsAsTheyAreTakenChangeNothing) {
  if (cpu::onednn_version().empty()) GTEST_SKIP() << "built without oneDNN";
  for (const std::string sizes : {"64, 30, 30", "200, 15, 15", "19, 60, 60"}) {
    const std::string channels = sizes.substr(0, sizes.find(','));
    const std::string graph = "input x f32[1, " + sizes + "]\nweight w f32[96, " + channels +
                              ", 3, 3]\noutput conv2d(x, w; pads=[1, 1, 1, 1])\n";
    std::vector<float> first;
    for (const int threads : {1, 2, 3}) {
      const KernelOffer offer = cpu::winograd_convolution(convolution_of(graph, threads), registry());
      ASSERT_NE(offer.kernel, nullptr) << graph << offer.reason;
      const std::vector<float> result = result_of(*offer.kernel, convolution_of(graph));
      if (first.empty()) first = result;
      expect_same(result, first, *offer.kernel, fmt::format("{}{} threads", graph, threads));
    }
  }
}

// A pixel that is infinite makes NaN of the results that read it by the definition, and of no others.
TEST(Winograd, IsNotFiniteWhereTheDefinitionIsNot) {
  if (cpu::onednn_version().empty()) GTEST_SKIP() << "built without oneDNN";
  const KernelRequest request =
      convolution_of("input x f32[1, 2, 7, 6]\nweight w f32[3, 2, 3, 3]\noutput conv2d(x, w; pads=[1, 0, 1, 2])\n");
  const KernelLibrary reference(registry(), KernelSet::reference);
  const auto expected_by = value_of(reference.create(request));
  const KernelOffer offer = cpu::winograd_by_blocks(request, registry(), 3);
  ASSERT_NE(offer.kernel, nullptr) << offer.reason;
  for (std::int64_t pixel = 0; pixel < request.inputs[0].type.elements(); ++pixel) {
    const std::vector<float> expected = result_of(*expected_by, request, false, pixel);
    const std::vector<float> actual = result_of(*offer.kernel, request, false, pixel);
    for (std::size_t i = 0; i < actual.size(); ++i)
      ASSERT_EQ(std::isfinite(actual[i]), std::isfinite(expected[i])) << pixel << ": " << i;
  }
}

TEST(Winograd, DeclinesWhatItIsNotFor) {
  if (cpu::onednn_version().empty()) GTEST_SKIP() << "built without oneDNN";
  const auto reason = [](const std::string& operands, const std::string& call, Layout layout = Layout::channels_last) {
    KernelRequest request = convolution_of(operands + "output " + call + "\n");
    request.outputs[0].layout = layout;
    return cpu::winograd_by_blocks(request, registry(), 4).reason;
  };
  const std::string image = "input x f32[1, 8, 9, 9]\n", windows = "weight w f32[8, 8, 3, 3]\n";
  EXPECT_EQ(reason(image + windows, "conv2d(x, w)"), "");
  EXPECT_EQ(reason(image + windows, "conv2d(x, w; strides=[2, 2])"), "only windows of 3 x 3 in steps of one");
  EXPECT_EQ(reason(image + windows, "conv2d(x, w; dilations=[2, 2])"), "only windows of 3 x 3 in steps of one");
  EXPECT_EQ(reason(image + "weight w f32[8, 8, 1, 3]\n", "conv2d(x, w)"), "only windows of 3 x 3 in steps of one");
  EXPECT_EQ(reason(image + "weight w f32[8, 4, 3, 3]\n", "conv2d(x, w)"), "no groups");
  EXPECT_EQ(reason(image + "input w f32[8, 8, 3, 3]\n", "conv2d(x, w)"), "windows that are not constant");
  EXPECT_EQ(reason(image + windows, "conv2d(x, w)", Layout::row_major), "only images with their channels last");
  KernelRequest other =
      convolution_of(image + windows + "weight b f32[8]\noutput conv2d_bias_act(x, w, b; act=relu)\n");
  other.attributes.set("act", SymbolValue{"my_activation"});
  EXPECT_EQ(cpu::winograd_by_blocks(other, registry(), 4).reason, "no such activation");
}

// A kernel for few channels is not worth its transforms; for many it is.
TEST(Winograd, IsTakenWhereItPays) {
  if (cpu::onednn_version().empty()) GTEST_SKIP() << "built without oneDNN";
  const auto reason = [](int channels, int results, int extent, int threads = 1) {
    const std::string x = "input x f32[1, " + std::to_string(channels) + ", " + std::to_string(extent) + ", " +
                          std::to_string(extent) + "]\n";
    const std::string w = "weight w f32[" + std::to_string(results) + ", " + std::to_string(channels) + ", 3, 3]\n";
    const KernelRequest request = convolution_of(x + w + "output conv2d(x, w; pads=[1, 1, 1, 1])\n", threads);
    return cpu::winograd_convolution(request, registry()).reason;
  };
  EXPECT_EQ(reason(3, 64, 112), "tiles cost more than they spare");
  EXPECT_EQ(reason(8, 8, 56), "tiles cost more than they spare");
  EXPECT_EQ(reason(512, 512, 1), "tiles cost more than they spare");
  EXPECT_EQ(reason(64, 64, 56), "");
  EXPECT_EQ(reason(256, 256, 14), "");
  // Every thread reads all windows.
  EXPECT_EQ(reason(256, 256, 7, 1), "");
  EXPECT_EQ(reason(256, 256, 7, 2), "tiles cost more than they spare");
}

TEST(TileTransforms, AreTheSameWithEveryInstructionSet) {
  constexpr std::int64_t channels = 37, stride = 40;
  Random random(9, "tiles");
  std::vector<float> pixels(16 * channels), products(16 * stride), bias(channels), added(4 * channels);
  for (std::vector<float>* const numbers : {&pixels, &products, &bias, &added})
    for (float& number : *numbers) number = static_cast<float>(random.normal());
  std::vector<const float*> from, residual;
  for (std::int64_t i = 0; i < 16; ++i) from.push_back(pixels.data() + i * channels);
  for (std::int64_t i = 0; i < 4; ++i) residual.push_back(added.data() + i * channels);
  for (const cpu::TileTransforms* table : {cpu::avx2_tile_transforms(), cpu::avx512_tile_transforms()}) {
    if (table == nullptr) continue;
    std::vector<float> expected(16 * stride), actual(16 * stride);
    cpu::generic_tile_transforms()->input(from.data(), expected.data(), stride, channels);
    table->input(from.data(), actual.data(), stride, channels);
    EXPECT_EQ(actual, expected);
    for (const float* const biased : {static_cast<const float*>(nullptr), static_cast<const float*>(bias.data())})
      for (const float* const* const adds :
           {static_cast<const float* const*>(nullptr), static_cast<const float* const*>(residual.data())})
        for (const bool relu : {false, true}) {
          std::vector<float> results[2] = {std::vector<float>(4 * channels), std::vector<float>(4 * channels)};
          for (const bool fast : {false, true}) {
            std::vector<float*> to;
            for (std::int64_t i = 0; i < 4; ++i) to.push_back(results[fast ? 1 : 0].data() + i * channels);
            (fast ? table : cpu::generic_tile_transforms())
                ->output(products.data(), stride, biased, adds, to.data(), relu, channels);
          }
          EXPECT_EQ(results[0], results[1]);
        }
  }
}

}  // namespace
}  // namespace taso::testing
