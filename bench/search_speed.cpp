// How long the search takes and what it finds, apart from measuring: kernels have made-up prices (a roofline, and up to
// a fifth more by the kernel's key), so that runs are comparable on any machine and under any load. One model a run,
// since the greatest memory is that of the process. bench/optimizer.md has the figures.
//
//   search_speed [--strategy S] [-j N] [--alpha A] [--steps N] [--part-size N] [--beam WIDTH] [--rules FILE]
//   [--no-header] MODEL.onnx
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "onnx_io/model.h"
#include "operators/registry.h"
#include "optimizer/cost_database.h"
#include "optimizer/cost_model.h"
#include "optimizer/optimize.h"
#include "optimizer/runtime_target.h"
#include "runtime/kernel.h"
#include "tools/specs.h"

namespace {

using namespace taso;

/// The processor's kernels at made-up prices; nothing is executed.
class PricedTarget final : public Target {
 public:
  explicit PricedTarget(const KernelLibrary& library) : plans_(library, {}) {}
  const std::string& identity() const override { return identity_; }
  Expected<KernelPlan> plan(const Graph& graph) const override { return plans_.plan(graph); }
  Expected<KernelPlan> open_plan(const Graph& graph) const override { return plans_.open_plan(graph); }
  Expected<double> peak_bytes(const Graph& graph, const LayoutAssignment* layouts) const override {
    return plans_.peak_bytes(graph, layouts);
  }
  Expected<double> measure(const KernelInfo& kernel) override {
    const double more = static_cast<double>(kernel.hash.low % 1024) / 1024 / 5;
    return 1e-6 + std::max(kernel.flops / 40e9, kernel.bytes / 10e9) * (1 + more);
  }
  Expected<GraphTimes> measure_graphs(std::span<const TimedGraph>) override {
    return Error{ErrorCode::cost_missing, "made-up prices know no graphs", {}};
  }

 private:
  RuntimeTarget plans_;
  std::string identity_ = "made-up prices";
};

Expected<std::string> row(const std::string& file, const tools::CommonOptions& common, const OptimizeOptions& options,
                          std::vector<std::string> rule_files) {
  TASO_ASSIGN(const OperatorRegistry registry, tools::load_operators(common));
  if (rule_files.empty()) {
    TASO_ASSIGN(rule_files, tools::rule_files(common));
  }
  std::vector<Substitution> substitutions;
  for (const std::string& rule_file : rule_files) {
    TASO_ASSIGN(const std::vector<Substitution> more, load_rules(rule_file, registry));
    substitutions.insert(substitutions.end(), more.begin(), more.end());
  }
  const RuleIndex rules(std::move(substitutions), registry);
  TASO_ASSIGN(const Model model, Model::load(file, registry, {}));
  const KernelLibrary library(registry);
  PricedTarget target(library);
  CostDatabase database = CostDatabase::in_memory(target.identity());
  MeasuredCosts measured(target, database, true);
  TASO_ASSIGN(const CostFormula formula, parse_cost_formula("time"));
  const auto cost = make_cost_model(formula, measured);
  OptimizeOptions all = options;
  all.check.reset();
  all.writable = [&](const RewriteResult& rewrite) {
    std::vector<NodeId> nodes = rewrite.added;
    nodes.insert(nodes.end(), rewrite.changed.begin(), rewrite.changed.end());
    return model.can_save(rewrite.graph, nodes);
  };
  const auto start = std::chrono::steady_clock::now();
  TASO_ASSIGN(const OptimizeResult result, optimize(model.graph(), rules, library, measured, *cost, all));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  double found = result.baseline.cost;
  for (const Contender& contender : result.contenders) found = std::min(found, contender.cost);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double processor =
      static_cast<double>(usage.ru_utime.tv_sec) + 1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
  return fmt::format("| {} | {} | {} | {:.3f} | {:.3f} | {} | {} | {:.2f} | {:.2f} | {:.2f} | {} | {} |",
                     std::filesystem::path(file).stem().string(), model.graph().size(), result.baseline.operator_count,
                     result.baseline.cost / 1e3, found / 1e3, result.search.steps, result.search.candidates, seconds,
                     processor, result.layouts.seconds, result.layouts.largest_table, usage.ru_maxrss / 1024);
}

}  // namespace

int main(int argc, char** argv) {
  tools::CommonOptions common;
  common.specs = tools::default_specs();
  OptimizeOptions options;
  std::vector<std::string> rules;
  std::string model;
  bool header = true;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto value = [&] { return std::string(i + 1 < argc ? argv[++i] : ""); };
    if (word == "--strategy") {
      const std::string name = value();
      for (const Strategy strategy : {Strategy::joint, Strategy::graph, Strategy::layout, Strategy::sequential})
        if (name == to_string(strategy)) options.strategy = strategy;
    } else if (word == "-j") {
      options.search.threads = std::atoi(value().c_str());
    } else if (word == "--alpha") {
      options.search.alpha = std::atof(value().c_str());
    } else if (word == "--beam") {
      options.search.method = SearchMethod::beam;
      options.search.beam_width = std::strtoul(value().c_str(), nullptr, 10);
    } else if (word == "--part-size") {
      options.search.part_size = std::strtoul(value().c_str(), nullptr, 10);
    } else if (word == "--steps") {
      options.search.max_steps = std::strtoul(value().c_str(), nullptr, 10);
    } else if (word == "--rules") {
      rules.push_back(value());
    } else if (word == "--no-header") {
      header = false;
    } else {
      model = word;
    }
  }
  const Expected<std::string> line = row(model, common, options, rules);
  if (!line) {
    std::fprintf(stderr, "search_speed: %s\n", line.error().to_string().c_str());
    return static_cast<int>(line.error().code);
  }
  if (header)
    std::puts(
        "| model | nodes | operators | baseline, ms | found, ms | steps | candidates | s | processor s | layouts s | "
        "MB |\n"
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
  std::puts(line->c_str());
  return 0;
}
