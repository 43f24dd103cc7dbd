// What layouts gain that are chosen together with what is fused (optimizer/layout_moves.h): the cost of a model's graph
// as it is in the layouts that are best for kernels by themselves, in those of the rule, and after moves, by how much
// any other plan could be cheaper, and what whole runs take before and after moves; kernels on the processor, one
// thread. What is not in the database of costs is measured and recorded. bench/optimizer.md has the
// figures.
//
//   layout_moves COSTS MODEL.onnx...
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>

#include "onnx_io/model.h"
#include "operators/registry.h"
#include "optimizer/cost_database.h"
#include "optimizer/cost_model.h"
#include "optimizer/planned_graph.h"
#include "optimizer/runtime_target.h"
#include "runtime/kernel.h"
#include "tools/specs.h"

namespace {

using namespace taso;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

Status rows(const std::string& costs, const std::vector<std::string>& files) {
  tools::CommonOptions common;
  common.specs = tools::default_specs();
  TASO_ASSIGN(const OperatorRegistry registry, tools::load_operators(common));
  const KernelLibrary library(registry);
  RuntimeTarget target(library, {});
  TASO_ASSIGN(CostDatabase database, CostDatabase::open(costs, target.identity(), CostDatabase::Mode::read_write));
  MeasuredCosts measured(target, database, true);
  TASO_ASSIGN(const CostFormula formula, parse_cost_formula("time"));
  std::puts(
      "| model | kernels | by themselves, ms | by the rule, ms | after moves, ms | gain | kept of tried | left out "
      "| others at most cheaper by | s | whole runs before, ms | after | noise |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
  for (const std::string& file : files) {
    TASO_ASSIGN(const Model model, Model::load(file, registry, {}));
    const Graph& graph = model.graph();
    const auto cost = make_cost_model(formula, measured);
    TASO_ASSIGN(KernelPlan by_rule, target.plan(graph));
    TASO_ASSIGN(const double rule, cost->cost(graph, by_rule));
    TASO_ASSIGN(KernelPlan plan, target.open_plan(graph));
    TASO_ASSIGN(const double before, cost->cost(graph, plan));
    PlannedGraph without{graph, plan, before, {}};
    TASO_ASSIGN(double after, cost->improve(graph, plan, before));
    // Again, with nothing left to measure.
    TASO_ASSIGN(plan, target.open_plan(graph));
    TASO_ASSIGN(after, cost->cost(graph, plan));
    const LayoutStatistics first = cost->layout_statistics();
    const double start = now();
    TASO_ASSIGN(after, cost->improve(graph, plan, after));
    const double seconds = now() - start;
    const LayoutStatistics second = cost->layout_statistics();
    TASO_ASSIGN(const std::optional<double> least, cost->least(graph));
    std::string whole = "- | - | -";
    if (second.moves_kept > first.moves_kept) {
      const PlannedGraph with{graph, plan, after, {}};
      const std::vector<TimedGraph> both = {to_be_timed(without), to_be_timed(with)};
      TASO_ASSIGN(const GraphTimes times, measured.graph_seconds(both));
      whole = fmt::format("{:.3f} | {:.3f} | {:.1f} %", 1e3 * times.seconds[0], 1e3 * times.seconds[1],
                          100 * (times.final ? times.final->noise : times.noise));
    }
    std::puts(fmt::format("| {} | {} | {} | {:.3f} | {:.3f} | {:.2f} % | {} of {} | {} | {} | {:.2f} | {} |",
                          std::filesystem::path(file).stem().string(), plan.launches.size(),
                          before < rule ? fmt::format("{:.3f}", before / 1e3) : "not less than by the rule", rule / 1e3,
                          after / 1e3, 100 * (1 - after / before), second.moves_kept - first.moves_kept,
                          second.moves_tried - first.moves_tried, second.moves_ended > first.moves_ended ? "some" : "",
                          least ? fmt::format("{:.1f} %", 100 * (1 - *least / after)) : "?", seconds, whole)
                  .c_str());
    std::fflush(stdout);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: layout_moves COSTS MODEL.onnx...\n", stderr);
    return 2;
  }
  const Status status = rows(argv[1], std::vector<std::string>(argv + 2, argv + argc));
  if (status) return 0;
  std::fprintf(stderr, "layout_moves: %s\n", status.error().to_string().c_str());
  return static_cast<int>(status.error().code);
}
