// Plans of models for several devices, as a table: plan_models TOPOLOGY.json MESH|default MODEL.onnx ...
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "graph/rewrite.h"
#include "onnx_io/model.h"
#include "partition/plan_baselines.h"
#include "partition/planner.h"
#include "partition/proved_strategies.h"
#include "partition/topology.h"
#include "tools/specs.h"

namespace {

using namespace taso;

Expected<std::string> row(const Mesh& mesh, const std::string& file, const OperatorRegistry& registry,
                          const ProvedStrategies& proved) {
  TASO_ASSIGN(const Model model, Model::load(file, registry, {}));
  Graph graph = model.graph();
  normalize(graph, registry);
  StrategyTable strategies(
      registry, [&](std::string_view op) { return proved.of(op); },
      [&](std::string_view op) { return proved.passages_of(op); });
  const auto start = std::chrono::steady_clock::now();
  Planner planner(graph, mesh, strategies, {});
  TASO_ASSIGN(const PartitionPlan plan, planner.plan());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  TASO_ASSIGN(const PartitionPlan repeated, planner.plan(only_repeat()));
  TASO_ASSIGN(const PartitionPlan data, planner.plan(only_data_parallel(graph)));
  return fmt::format("| {} | {} | {:.1f} | {:.1f} | {:.2f} | {:.1f} | {:.1f} | {} | {} | {} | {:.2f} |\n",
                     std::filesystem::path(file).stem().string(), mesh.to_string(), plan.seconds * 1e6,
                     plan.transfer_seconds * 1e6, plan.transfer_bytes * 1e-6, repeated.seconds * 1e6,
                     data.seconds * 1e6, plan.exact ? "yes" : "no", plan.order.width, plan.decisions, seconds);
}

Status run(int count, char** arguments) {
  tools::CommonOptions common;
  common.specs = tools::default_specs();
  TASO_ASSIGN(const OperatorRegistry registry, tools::load_operators(common));
  TASO_ASSIGN(const std::vector<std::string> files, tools::strategy_files(common));
  TASO_ASSIGN(const ProvedStrategies proved, ProvedStrategies::load(files, registry));
  TASO_ASSIGN(const Topology topology, load_topology(arguments[1]));
  Mesh mesh = default_mesh(topology);
  if (arguments[2] != std::string("default")) {
    TASO_ASSIGN(mesh, parse_mesh(arguments[2], topology));
  }
  fmt::print(
      "| model | mesh | us | of it moving | MB moved | all repeated, us | data parallel, us | exact | M | decisions | "
      "s to plan |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (int i = 3; i < count; ++i) {
    TASO_ASSIGN(const std::string text, row(mesh, arguments[i], registry, proved));
    fmt::print("{}", text);
  }
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    fmt::print(stderr, "usage: plan_models TOPOLOGY.json MESH|default MODEL.onnx ...\n");
    return 2;
  }
  const Status status = run(count, arguments);
  if (status) return 0;
  fmt::print(stderr, "{}\n", status.error().to_string());
  return status.error().exit_code();
}
