// Which steps become one, for devices that fuse this and that.
#include "runtime/fusion.h"

#include <algorithm>

#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

/// The kernels of a graph on a device that fuses everything but products, in order: "tanh", "add+relu", ...
std::vector<std::string> fused(const std::string& text) {
  const auto no_product = [](const KernelRequest& request) {
    const auto& parts = request.fused->parts;
    return std::none_of(parts.begin(), parts.end(), [](const FusedPart& part) { return part.request.op == "matmul"; });
  };
  const Graph graph = graph_of(text);
  std::vector<std::string> kernels;
  for (const LoweredStep& step : fuse_steps(value_of(lower(graph, registry())), {.fuses = no_product}).steps) {
    const KernelRequest& request = step.kernel->request;
    EXPECT_EQ(request.inputs.size(), step.inputs.size());
    EXPECT_EQ(request.outputs.size(), step.outputs.size());
    std::string name = request.fused ? "" : request.op;
    if (request.fused)
      for (const FusedPart& part : request.fused->parts) name += (name.empty() ? "" : "+") + part.request.op;
    kernels.push_back(name);
  }
  return kernels;
}

using Names = std::vector<std::string>;

constexpr const char* two_matrices = "input x f32[4, 4]\nweight w f32[4, 4]\n";

TEST(Fusion, OfAChain) {
  EXPECT_EQ(fused(std::string(two_matrices) + "output relu(add(tanh(x), x))\n"), (Names{"tanh+add+relu"}));
}

TEST(Fusion, NotRoundWhatStandsBetween) {
  EXPECT_EQ(fused(std::string(two_matrices) + "a = tanh(x)\noutput relu(add(a, matmul(a, w)))\n"),
            (Names{"tanh", "matmul", "add+relu"}));
}

TEST(Fusion, WhatOthersReadIsAResult) {
  EXPECT_EQ(fused(std::string(two_matrices) + "a = tanh(x)\nb = relu(a)\noutput matmul(a, w)\noutput b\n"),
            (Names{"tanh+relu", "matmul"}));
}

TEST(Fusion, WhatMovesIsLeftOutWhereAllReadersComputeIt) {
  const std::string transposed = std::string(two_matrices) + "t = transpose(x; perm=[1, 0])\n";
  EXPECT_EQ(fused(transposed + "output relu(add(t, matmul(tanh(t), w)))\n"),
            (Names{"transpose+tanh", "matmul", "transpose+add+relu"}));
  EXPECT_EQ(fused(transposed + "output add(t, matmul(t, w))\n"), (Names{"transpose", "matmul", "transpose+add"}));
}

TEST(Fusion, OfWhatLiesInAnotherShape) {
  EXPECT_EQ(fused(std::string(two_matrices) + "output tanh(reshape(relu(x); shape=[16]))\n"),
            (Names{"relu+reshape+tanh"}));
}

TEST(Fusion, NotOfWhatReadsAPartOfItself) {
  EXPECT_EQ(
      fused(
          std::string(two_matrices) +
          "a = tanh(x)\np = slice(a; starts=[1, 0], sizes=[2, 4], steps=[1, 1])\noutput relu(concat(p, a; axis=-2))\n"),
      (Names{"tanh", "concat+relu"}));
}

// What is computed once more in the kernel that reads a part of it, too, is in memory all the same.
TEST(Fusion, NotOfWhatReadsAPartOfWhatItComputesOnceMore) {
  EXPECT_EQ(fused(std::string(two_matrices) +
                  "t = transpose(x; perm=[1, 0])\np = slice(t; starts=[1, 0], sizes=[2, 4], steps=[1, 1])\n"
                  "output relu(concat(p, t; axis=-2))\n"),
            (Names{"transpose", "transpose+concat+relu"}));
}

}  // namespace
}  // namespace taso::testing
