// tiled_convolutions: how long convolutions by tiles take (runtime/cpu/winograd.cpp) beside oneDNN's direct ones, each
// with bias and relu, on images with their channels last. Writes a markdown table; "-" where tiles are not taken.
// usage: tiled_convolutions [THREADS]
#include <fmt/core.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "bench/kernel_time.h"
#include "graph/graph_text.h"
#include "operators/registry.h"
#include "runtime/kernel.h"
#include "runtime/lowering.h"
#include "tools/specs.h"

namespace taso {
namespace {

struct Image {
  int images, channels, results, extent;
};

/// As in ResNet, VGG, DenseNet, Inception, SqueezeNet and YOLO; and some of few channels, or tiles.
constexpr Image images[] = {{1, 16, 16, 56},   {1, 16, 64, 56},   {1, 32, 32, 56},   {1, 64, 64, 56},
                            {1, 64, 64, 224},  {1, 128, 32, 56},  {1, 128, 32, 14},  {1, 128, 32, 7},
                            {1, 48, 192, 28},  {1, 128, 128, 28}, {1, 256, 256, 14}, {1, 256, 256, 28},
                            {1, 512, 512, 14}, {1, 512, 512, 7},  {8, 512, 512, 7},  {1, 160, 320, 7},
                            {1, 24, 64, 14},   {1, 32, 32, 147},  {1, 320, 384, 8},  {1, 256, 512, 13}};

int run(int threads) {
  tools::CommonOptions common;
  common.specs = tools::default_specs();
  const auto operators = tools::load_operators(common);
  if (!operators) return fmt::print(stderr, "tiled_convolutions: {}\n", operators.error().to_string()), 1;
  const KernelLibrary library(*operators, KernelSet::cpu);
  fmt::print(
      "| images | channels | results | extent | direct, us | by tiles, us | ratio "
      "|\n|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const auto& [count, channels, results, extent] : images) {
    const std::string text = fmt::format(
        "input x f32[{}, {}, {}, {}]\nweight w f32[{}, {}, 3, 3]\nweight b f32[{}]\n"
        "output conv2d_bias_act(x, w, b; act=relu, pads=[1, 1, 1, 1])\n",
        count, channels, extent, extent, results, channels, results);
    const auto graph = parse_graph(text, "graph", *operators);
    if (!graph) return fmt::print(stderr, "tiled_convolutions: {}\n", graph.error().to_string()), 1;
    const auto lowered = lower(*graph, *operators, {.threads = threads});
    if (!lowered) return fmt::print(stderr, "tiled_convolutions: {}\n", lowered.error().to_string()), 1;
    std::optional<double> direct, by_tiles;
    for (const LoweredStep& step : lowered->steps) {
      if (step.kernel->request.op != "conv2d_bias_act") continue;
      for (const auto& [name, offer] : library.offers(step.kernel->request)) {
        if (offer.kernel && name == "onednn convolution")
          direct = kernel_microseconds(*offer.kernel, step.kernel->request);
        if (offer.kernel && name == "own winograd") by_tiles = kernel_microseconds(*offer.kernel, step.kernel->request);
      }
    }
    const auto cell = [](const std::optional<double>& number, int places) {
      return number ? fmt::format("{:.{}f}", *number, places) : "-";
    };
    const std::optional<double> ratio = direct && by_tiles ? std::optional(*direct / *by_tiles) : std::nullopt;
    fmt::print("| {} | {} | {} | {} | {} | {} | {} |\n", count, channels, results, extent, cell(direct, 0),
               cell(by_tiles, 0), cell(ratio, 2));
  }
  return 0;
}

}  // namespace
}  // namespace taso

int main(int argc, char** argv) { return taso::run(argc > 1 ? std::atoi(argv[1]) : 1); }
