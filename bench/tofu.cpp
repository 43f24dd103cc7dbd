// Tofu's search: how long it takes and what it finds, recursion and all steps at once.
// bench/partition.md has the figures.
//
//   tofu [--devices N]... [--replicate] [--weights]
//   tofu --plans TOPOLOGY.json MESH MODEL ...
//
// --replicate: tensors may also be kept whole along a step, as SoyBean's. --weights: the sizes of weights of the
// networks alone, as Table 2 of the paper counts them (weights, gradients and history of 4 bytes each; GB are GiB
// there). --plans: the planner's own space and costs, exact and axis by axis; models as plan_models has them.
#include "partition/tofu.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "bench/read_model.h"
#include "bench/training_networks.h"
#include "graph/rewrite.h"
#include "partition/proved_strategies.h"
#include "partition/recursive.h"
#include "partition/topology.h"
#include "tools/specs.h"

namespace {

using namespace taso;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Status row(const std::string& name, const TrainingNetwork& network, std::int64_t devices,
           const OperatorRegistry& registry, const TofuOptions& options) {
  StrategyTable strategies(
      registry, [&](std::string_view op) { return derive_strategies(registry, op).strategies; },
      [](std::string_view) { return std::vector<PartialPassage>(); });
  const TilingSteps steps = recursion_steps(devices);
  auto start = std::chrono::steady_clock::now();
  TASO_ASSIGN(const TofuCoarsening coarsening, coarsen(network.step.graph, registry, network.groups));
  const double coarsening_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  const TofuPlan recursive = tofu_recursive(network.step.graph, coarsening, steps, strategies, options);
  const double recursive_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  const TofuPlan exact = tofu_exact(network.step.graph, coarsening, steps, strategies, options, recursive.decisions);
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

Status print_weights(const GradientSpecifications& specifications) {
  fmt::print("| network | weights | GB |\n|---|---:|---:|\n");
  const auto print = [](const std::string& name, double weights) {
    const double gib = std::round(weights * 4 / (1 << 30) * 10) / 10;
    fmt::print("| {} | {:.0f} | {:.1f} |\n", name, weights, 3 * gib);
  };
  for (const std::int64_t layers : {50, 101, 152})
    for (const std::int64_t width : {1, 4, 6, 8, 10}) {
      TASO_ASSIGN(const TrainingNetwork network, wide_resnet_in_training(layers, width, 8, specifications));
      print(fmt::format("WResNet-{}-{}", layers, width), network.weights);
    }
  for (const std::int64_t layers : {6, 8, 10})
    for (const std::int64_t units : {4096, 6144, 8192}) {
      TASO_ASSIGN(const TrainingNetwork network, lstm_in_training(layers, units, 8, 1, specifications));
      print(fmt::format("RNN-{}-{}K", layers, units / 1024), network.weights);
    }
  return {};
}

Status plan_row(const Mesh& mesh, const std::string& file, const OperatorRegistry& registry,
                const ProvedStrategies& proved) {
  TASO_ASSIGN(const Model model, read_model(file, registry));
  Graph graph = model.graph();
  normalize(graph, registry);
  StrategyTable strategies(
      registry, [&](std::string_view op) { return proved.of(op); },
      [&](std::string_view op) { return proved.passages_of(op); });
  auto start = std::chrono::steady_clock::now();
  TASO_ASSIGN(const PartitionPlan recursive, plan_recursively(graph, mesh, strategies));
  const double recursive_seconds = seconds_since(start);
  start = std::chrono::steady_clock::now();
  Planner planner(graph, mesh, strategies, {});
  TASO_ASSIGN(const PartitionPlan exact, planner.plan());
  fmt::print("| {} | {} | {:.1f} | {:.2f} | {} | {:.1f} | {:.2f} | {} | {:.1f} % |\n",
             std::filesystem::path(file).stem().string(), mesh.to_string(), recursive.seconds * 1e6, recursive_seconds,
             recursive.ways, exact.seconds * 1e6, seconds_since(start), exact.ways,
             100 * (recursive.seconds - exact.seconds) / exact.seconds);
  std::fflush(stdout);
  return {};
}

Status print_plans(const std::vector<std::string>& words) {
  tools::CommonOptions common;
  common.specs = tools::default_specs();
  TASO_ASSIGN(const OperatorRegistry registry, tools::load_operators(common));
  TASO_ASSIGN(const std::vector<std::string> files, tools::strategy_files(common));
  TASO_ASSIGN(const ProvedStrategies proved, ProvedStrategies::load(files, registry));
  TASO_ASSIGN(const Topology topology, load_topology(words[0]));
  TASO_ASSIGN(const Mesh mesh, parse_mesh(words[1], topology));
  fmt::print(
      "| model | mesh | us, axis by axis | s to plan | ways | us, exact | s to plan | ways | above |\n"
      "|---|---|---:|---:|---:|---:|---:|---:|---:|\n");
  for (std::size_t i = 2; i < words.size(); ++i) TASO_RETURN_IF_ERROR(plan_row(mesh, words[i], registry, proved));
  return {};
}

Status run(const std::vector<std::int64_t>& devices, bool weights, const TofuOptions& options) {
  tools::CommonOptions common;
  common.specs = tools::default_specs();
  TASO_ASSIGN(const OperatorRegistry shipped, tools::load_operators(common));
  TASO_ASSIGN(const auto loaded, GradientSpecifications::load(common.specs + "/gradients", shipped));
  const GradientSpecifications& specifications = *loaded;
  if (weights) return print_weights(specifications);
  fmt::print(
      "| network | devices | operators | tensors | decisions | M | s to coarsen | s, recursion | GB, recursion | "
      "s, all steps | GB, all steps | bound, GB | recursion above |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
  for (const std::int64_t count : devices) {
    TASO_ASSIGN(const TrainingNetwork resnet, wide_resnet_in_training(152, 10, 32, specifications));
    TASO_RETURN_IF_ERROR(row("WResNet-152-10", resnet, count, specifications.registry, options));
    TASO_ASSIGN(const TrainingNetwork lstm, lstm_in_training(10, 8192, 512, 20, specifications));
    TASO_RETURN_IF_ERROR(row("RNN-10-8K", lstm, count, specifications.registry, options));
  }
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 4 && arguments[1] == std::string_view("--plans")) {
    const Status status = print_plans({arguments + 2, arguments + count});
    if (!status) fmt::print(stderr, "{}\n", status.error().to_string());
    return status ? 0 : status.error().exit_code();
  }
  std::vector<std::int64_t> devices;
  bool weights = false;
  TofuOptions options;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = arguments[i];
    if (word == "--weights") {
      weights = true;
    } else if (word == "--replicate") {
      options.replicate = true;
    } else if (word == "--devices" && i + 1 < count && std::atoll(arguments[i + 1]) >= 1) {
      devices.push_back(std::atoll(arguments[++i]));
    } else {
      std::fputs("usage: tofu [--devices N]... [--replicate] [--weights] | --plans TOPOLOGY.json MESH MODEL ...\n",
                 stderr);
      return 2;
    }
  }
  if (devices.empty()) devices = {8};
  const Status status = run(devices, weights, options);
  if (status) return 0;
  fmt::print(stderr, "{}\n", status.error().to_string());
  return status.error().exit_code();
}
