// Example 3: a graph is optimized for the number of kernel launches.
//
// Costs are interchangeable: here every launch counts one, so that the result is the same on every machine. taso-opt
// takes measured times by default.
#include <cstdio>

#include "examples/program.h"
#include "graph/graph_text.h"
#include "optimizer/cost_database.h"
#include "optimizer/cost_model.h"
#include "optimizer/optimize.h"
#include "optimizer/runtime_target.h"
#include "runtime/kernel.h"

using namespace taso;

namespace {

// Three projections of one tensor, as attention has them; biases are per feature.
constexpr const char* graph_text = R"(
input x f32[8, 64]
weight q f32[64, 64]
weight k f32[64, 64]
weight v f32[64, 64]
weight bq f32[64]
weight bk f32[64]
weight bv f32[64]
output add(matmul(x, q), broadcast(bq; shape=[8, 64]))
output add(matmul(x, k), broadcast(bk; shape=[8, 64]))
output add(matmul(x, v), broadcast(bv; shape=[8, 64]))
)";

Status run() {
  TASO_ASSIGN(const OperatorRegistry registry, OperatorRegistry::load(examples::specs("operators")));
  TASO_ASSIGN(const Graph graph, parse_graph(graph_text, "example", registry));
  TASO_ASSIGN(std::vector<Substitution> substitutions,
              load_rules(examples::specs("rules") + "/default.rules", registry));
  const RuleIndex rules(std::move(substitutions), registry);

  const KernelLibrary library(registry);
  RuntimeTarget target(library, RuntimeTargetOptions{});
  CostDatabase database = CostDatabase::in_memory(target.identity());
  MeasuredCosts measured(target, database, true);
  TASO_ASSIGN(const CostFormula formula, parse_cost_formula("launches"));
  const std::unique_ptr<CostModel> model = make_cost_model(formula, measured);

  TASO_ASSIGN(const OptimizeResult result, optimize(graph, rules, library, measured, *model, {}));
  std::printf("before:\n%s\nafter:\n%s\n", to_string(graph).c_str(), to_string(result.graph).c_str());
  for (const RuleApplication& application : result.applications) std::printf("used: %s\n", application.rule.c_str());
  std::printf("launches: %zu, after fusion %zu, optimized %zu\n", result.original.kernels, result.baseline.kernels,
              result.result.kernels);
  if (result.check) std::printf("check: %s\n", result.check->summary().c_str());
  if (!result.gain || result.result.kernels >= result.baseline.kernels)
    return internal_error("the three products were not merged");
  return {};
}

}  // namespace

int main() { return examples::exit_code(run()); }
