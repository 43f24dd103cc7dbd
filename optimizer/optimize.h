/// The whole of taso-opt between import and export: baseline, search, choice by whole-graph time, numeric check.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/rewrite.h"
#include "operators/registry.h"
#include "optimizer/baseline.h"
#include "optimizer/check.h"
#include "optimizer/cost_model.h"
#include "optimizer/search.h"
#include "support/status.h"

namespace taso {

/// Which of the graphs became the result.
enum class Choice : std::uint8_t { original, baseline, optimized };
[[nodiscard]] const char* to_string(Choice choice);

struct OptimizeOptions {
  SearchOptions search;
  std::optional<CheckOptions> check = CheckOptions{};  ///< No check if empty.
};

/// One of the graphs that competed for being the result.
struct Contender {
  std::string name;  ///< "original", "baseline", "candidate 1", ...
  double cost = 0;   ///< By the cost model.
  std::optional<double> seconds;  ///< Timed whole, where the cost model uses time.
};

/// Counts that a person compares before and after.
struct GraphSummary {
  std::vector<std::pair<std::string, std::size_t>> operators;  ///< Not weight-only, by name.
  std::size_t operator_count = 0, opaque_count = 0, kernels = 0;
  double flops = 0, bytes = 0, peak_bytes = 0, cost = 0;
  std::optional<double> predicted_seconds;  ///< Sum of kernel times, where the cost model uses time.
  std::optional<double> measured_seconds;   ///< Timed whole.
};

struct OptimizeResult {
  Graph graph;
  Choice choice = Choice::original;
  /// The result is better than the baseline: cheaper, and where time counts, faster beyond the noise.
  bool gain = false;
  std::vector<RuleApplication> applications;  ///< From the original to the result.
  std::size_t baseline_applications = 0;      ///< So many of them, the first ones, made the baseline.
  GraphSummary original, baseline, result;
  std::vector<Contender> contenders;
  std::optional<double> noise;  ///< Relative, of the whole-graph times.
  SearchResult search;          ///< Statistics; its graphs are moved out.
  std::optional<CheckReport> check;
  std::string cost_model, target;
  std::vector<std::string> notes;  ///< For people: what could not be timed or checked, and why.
};

/// Optimizes one graph. A failed numeric check is an error of code check_failed.
[[nodiscard]] Expected<OptimizeResult> optimize(const Graph& original, const RuleIndex& rules,
                                                const OperatorRegistry& registry, MeasuredCosts& measured,
                                                CostModel& model, const OptimizeOptions& options);

}  // namespace taso
