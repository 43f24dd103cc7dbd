// Tofu's search: how long it takes and what it finds, recursion and all steps at once, each in a process of its own
// limits (tables as in bench/planner). bench/partition.md has the figures.
//
//   tofu [--devices N]... [--weights]
//
// --weights: the sizes of weights of the networks alone, as Table 2 of the paper counts them (weights, gradients and
// history of 4 bytes each; GB are GiB there).
#include "partition/tofu.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "bench/tofu_networks.h"
#include "partition/recursive.h"
#include "tools/specs.h"

namespace {

using namespace taso;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Status row(const std::string& name, const TofuNetwork& network, std::int64_t devices,
           const OperatorRegistry& registry) {
  StrategyTable strategies(
      registry, [&](std::string_view op) { return derive_strategies(registry, op).strategies; },
      [](std::string_view) { return std::vector<PartialPassage>(); });
  const TilingSteps steps = recursion_steps(devices);
  auto start = std::chrono::steady_clock::now();
  TASO_ASSIGN(const TofuCoarsening coarsening, coarsen(network.graph, registry, network.groups));
  const double coarsening_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  const TofuPlan recursive = tofu_recursive(network.graph, coarsening, steps, strategies);
  const double recursive_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  const TofuPlan exact = tofu_exact(network.graph, coarsening, steps, strategies, {}, recursive.decisions);
  const double exact_seconds = seconds_since(start);
  std::string deltas;
  for (const double delta : recursive.steps)
    deltas += fmt::format("{}{:.1f}", deltas.empty() ? "" : " + ", delta / 1e9);
  fmt::print("| {} | {} | {} | {} | {} | {} | {:.2f} | {:.2f} | {:.1f} = {} | {:.2f} | {:.1f} | {:.1f} | {:.1f} % |\n",
             name, devices, coarsening.nodes, coarsening.values, recursive.decided, recursive.order.width,
             coarsening_seconds, recursive_seconds, recursive.bytes / 1e9, deltas, exact_seconds, exact.bytes / 1e9,
             exact.lower_bound / 1e9, exact.bytes > 0 ? 100 * (recursive.bytes - exact.bytes) / exact.bytes : 0);
  std::fflush(stdout);
  return {};
}

Status print_weights(const OperatorRegistry& registry) {
  fmt::print("| network | weights | GB |\n|---|---:|---:|\n");
  const auto print = [](const std::string& name, double weights) {
    const double gib = std::round(weights * 4 / (1 << 30) * 10) / 10;
    fmt::print("| {} | {:.0f} | {:.1f} |\n", name, weights, 3 * gib);
  };
  for (const std::int64_t layers : {50, 101, 152})
    for (const std::int64_t width : {1, 4, 6, 8, 10}) {
      TASO_ASSIGN(const TofuNetwork network, wide_resnet_in_training(layers, width, 8, registry));
      print(fmt::format("WResNet-{}-{}", layers, width), network.weights);
    }
  for (const std::int64_t layers : {6, 8, 10})
    for (const std::int64_t units : {4096, 6144, 8192}) {
      TASO_ASSIGN(const TofuNetwork network, lstm_in_training(layers, units, 8, 1, registry));
      print(fmt::format("RNN-{}-{}K", layers, units / 1024), network.weights);
    }
  return {};
}

Status run(const std::vector<std::int64_t>& devices, bool weights) {
  tools::CommonOptions common;
  common.specs = tools::default_specs();
  TASO_ASSIGN(const OperatorRegistry shipped, tools::load_operators(common));
  TASO_ASSIGN(const OperatorRegistry registry,
              OperatorRegistry::load(std::string(TASO_SOURCE_DIR) + "/tests/partition/products", &shipped));
  if (weights) return print_weights(registry);
  fmt::print(
      "| network | devices | operators | tensors | decisions | M | s to coarsen | s, recursion | GB, recursion | "
      "s, all steps | GB, all steps | bound, GB | recursion above |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const std::int64_t count : devices) {
    TASO_ASSIGN(const TofuNetwork resnet, wide_resnet_in_training(152, 10, 32, registry));
    TASO_RETURN_IF_ERROR(row("WResNet-152-10", resnet, count, registry));
    TASO_ASSIGN(const TofuNetwork lstm, lstm_in_training(10, 8192, 512, 20, registry));
    TASO_RETURN_IF_ERROR(row("RNN-10-8K", lstm, count, registry));
  }
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::int64_t> devices;
  bool weights = false;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = arguments[i];
    if (word == "--weights") {
      weights = true;
    } else if (word == "--devices" && i + 1 < count && std::atoll(arguments[i + 1]) >= 1) {
      devices.push_back(std::atoll(arguments[++i]));
    } else {
      std::fputs("usage: tofu [--devices N]... [--weights]\n", stderr);
      return 2;
    }
  }
  if (devices.empty()) devices = {8};
  const Status status = run(devices, weights);
  if (status) return 0;
  fmt::print(stderr, "{}\n", status.error().to_string());
  return status.error().exit_code();
}
