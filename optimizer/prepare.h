/// The first step of an optimization: what the search starts from, and which rules it may use.
#pragma once

#include <string>
#include <vector>

#include "graph/rewrite.h"
#include "operators/registry.h"
#include "optimizer/optimize.h"
#include "optimizer/planned_graph.h"
#include "optimizer/trace.h"
#include "support/status.h"

namespace taso {

/// So often baseline and search are made again without steps that turned out not to hold at all sizes.
inline constexpr int most_rounds = 20;

/// A graph that may become the result.
struct Competitor {
  std::string name;  ///< As in Contender.
  PlannedGraph planned;
  std::vector<RuleApplication> applications;  ///< From the original to this graph.
  /// What is run of its file (OptimizeOptions::as_run), where that is asked for and can be had: it is what competes.
  std::optional<PlannedGraph> from_file;

  /// The graph that is run.
  [[nodiscard]] PlannedGraph& as_run() { return from_file ? *from_file : planned; }
  [[nodiscard]] const PlannedGraph& as_run() const { return from_file ? *from_file : planned; }
};

/// The two graphs that every other one competes with, with their summaries, and the rules to make others.
struct Prepared {
  Competitor original;  ///< In normal form.
  Competitor baseline;
  RuleIndex search_rules;  ///< Those that the options allow.

  /// Where the search starts: the baseline, or the original where that is clearly cheaper.
  [[nodiscard]] const Competitor& start() const {
    constexpr double clearly = 0.98;
    return original.planned.cost < clearly * baseline.planned.cost ? original : baseline;
  }
};

/// Makes, plans and summarises both graphs. A baseline that does not hold at all sizes is the original, with a note.
[[nodiscard]] Expected<Prepared> prepare(const Graph& original, const RuleIndex& rules,
                                         const OperatorRegistry& registry, const GraphPlanner& planner,
                                         const OptimizeOptions& options, std::vector<std::string>& notes);

/// What OptimizeOptions::at_all_sizes says of the applications; without it they hold.
[[nodiscard]] OptimizeOptions::AtAllSizes at_all_sizes(const std::vector<RuleApplication>& applications,
                                                       const OptimizeOptions& options);

}  // namespace taso
