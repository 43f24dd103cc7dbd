// Plans for models on a mesh of devices, as a table: plan_models MESH MODEL.onnx ..., MESH as 2x2x2.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <map>

#include "graph/rewrite.h"
#include "onnx_io/model.h"
#include "partition/planner.h"
#include "partition/proved_strategies.h"
#include "tools/specs.h"

namespace {

using namespace taso;

int run(const Mesh& mesh, const std::string& file, const OperatorRegistry& registry) {
  auto model = Model::load(file, registry);
  if (!model) return fmt::print(stderr, "{}\n", model.error().to_string()), 1;
  Graph graph = model->graph();
  normalize(graph, registry);
  StrategyTable strategies(
      registry, [&](std::string_view op) { return derive_strategies(registry, op).strategies; },
      [&](std::string_view op) { return derive_passages(registry, op); });
  const auto start = std::chrono::steady_clock::now();
  Planner planner(graph, mesh, strategies, {});
  const auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  const double prepared = seconds();
  const auto plan = planner.plan();
  if (!plan) return fmt::print(stderr, "{}\n", plan.error().to_string()), 1;
  const double planned = seconds();
  fmt::print(
      "{} on {}: {:.3f} ms (compute {:.3f}, move {:.3f}; {:.3f} MB), bound {:.3f}, exact {}, M {}, {} decisions, "
      "{} ways, weights {:.1f} MB per device; {:.2f} s to prepare, {:.2f} s to solve\n",
      file, mesh.to_string(), plan->seconds * 1e3, plan->compute_seconds * 1e3, plan->transfer_seconds * 1e3,
      plan->transfer_bytes * 1e-6, plan->lower_bound * 1e3, plan->exact, plan->order.width, plan->decisions, plan->ways,
      plan->weight_bytes * 1e-6, prepared, planned - prepared);
  for (const auto& [name, filter] :
       {std::pair("one device", only_repeat()), {"data parallel", only_data_parallel(graph)}}) {
    const auto other = planner.plan(filter);
    if (other) fmt::print("  {}: {:.3f} ms\n", name, other->seconds * 1e3);
  }
  std::map<std::string, int> uses;
  for (const PlannedNode& node : plan->nodes) ++uses[graph.node(node.node).op + ": " + node.configuration.to_string()];
  for (const auto& [use, count] : uses) fmt::print("  {:4} {}\n", count, use);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) return fmt::print(stderr, "usage: plan_models MESH MODEL.onnx ...\n"), 2;
  tools::CommonOptions common;
  common.specs = tools::default_specs();
  const auto registry = tools::load_operators(common);
  if (!registry) return fmt::print(stderr, "{}\n", registry.error().to_string()), 1;
  Mesh mesh;
  mesh.device = {std::int64_t{80} << 30, 60e12, 3.3e12};
  for (const char* at = arguments[1]; *at != 0; ++at) {
    char* end = nullptr;
    mesh.axes.push_back({std::strtol(at, &end, 10), "link", 450e9 / 2, 3e-6});
    at = end;
    if (*at == 0) break;
  }
  int code = 0;
  for (int i = 2; i < count; ++i) code = std::max(code, run(mesh, arguments[i], *registry));
  return code;
}
