// Models read from ONNX under PaSE's restrictions beside PaSE's own networks: pase_models MODEL alexnet|inception_v3
// (models as plan_models has them: alexnet:batch=128)
//
// The model's layers, domains and costs are made from the definitions of its operators (partition/pase_from_graph.h).
// The least costs of both for 4 to 64 devices; domains that only one of them has are listed after the table.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "bench/read_model.h"
#include "partition/pase_from_graph.h"
#include "partition/pase_problem.h"
#include "partition/proved_strategies.h"
#include "partition/solve_exact.h"
#include "tools/specs.h"

namespace {

using namespace taso;

double least_cost(const PaseGraph& graph, std::int64_t devices) {
  const PaseProblem problem = pase_problem(graph, devices);
  ExactOptions options;
  options.known = {pase_data_parallel(graph, problem)};
  return solve_exact(problem.problem, options).cost;
}

/// Extents above 1, in ascending order: what of a domain does not depend on how its axes are ordered.
std::vector<std::int64_t> extents(const PaseLayer& layer) {
  std::vector<std::int64_t> kept = layer.domain;
  std::erase(kept, 1);
  std::sort(kept.begin(), kept.end());
  return kept;
}

/// Domains that one graph has more often than the other.
void print_only_in(const PaseGraph& graph, const PaseGraph& other, const char* where) {
  std::map<std::vector<std::int64_t>, std::int64_t> counts;
  for (const PaseLayer& layer : graph.layers) ++counts[extents(layer)];
  for (const PaseLayer& layer : other.layers) --counts[extents(layer)];
  for (const auto& [domain, count] : counts)
    if (count > 0) fmt::print("only in {}: {} of [{}]\n", where, count, fmt::join(domain, ", "));
}

Status run(const std::string& file, const std::string& network) {
  tools::CommonOptions common;
  common.specs = tools::default_specs();
  TASO_ASSIGN(const OperatorRegistry registry, tools::load_operators(common));
  TASO_ASSIGN(const std::vector<std::string> files, tools::strategy_files(common));
  TASO_ASSIGN(const ProvedStrategies proved, ProvedStrategies::load(files, registry));
  StrategyTable strategies(
      registry, [&](std::string_view op) { return proved.of(op); },
      [&](std::string_view op) { return proved.passages_of(op); });
  TASO_ASSIGN(const Model model, read_model(file, registry));
  const Graph& graph = model.graph();
  TASO_ASSIGN(const PaseGraph read, pase_from_graph(graph, strategies));
  const std::int64_t batch = graph.node(graph.inputs().at(0)).outputs[0].shape.at(0);
  const std::int64_t classes = graph.type(graph.outputs().at(0)).shape.back();
  const PaseGraph own = network == "alexnet" ? pase_alexnet_with_classes(batch, classes) : pase_inception_v3(batch);
  fmt::print("{} layers, {} edges read from {}; {} layers, {} edges in PaSE's network\n\n", read.layers.size(),
             read.edges.size(), file, own.layers.size(), own.edges.size());
  fmt::print("| devices | cost of the model, FLOP | cost of PaSE's network, FLOP |\n|---:|---:|---:|\n");
  for (const std::int64_t devices : {4, 8, 16, 32, 64})
    fmt::print("| {} | {:.0f} | {:.0f} |\n", devices, least_cost(read, devices), least_cost(own, devices));
  std::fputs("\n", stdout);
  print_only_in(read, own, "the model");
  print_only_in(own, read, "PaSE's network");
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3 || (arguments[2] != std::string("alexnet") && arguments[2] != std::string("inception_v3"))) {
    fmt::print(stderr, "usage: pase_models MODEL.onnx alexnet|inception_v3\n");
    return 2;
  }
  const Status status = run(arguments[1], arguments[2]);
  if (status) return 0;
  fmt::print(stderr, "{}\n", status.error().to_string());
  return status.error().exit_code();
}
