/// The baseline: what any runtime does before it runs a model. Gains are reported against it.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/rewrite.h"
#include "operators/registry.h"
#include "optimizer/trace.h"
#include "support/status.h"
#include "support/stop_signal.h"

namespace taso {

struct Baseline {
  Graph graph;
  std::vector<RuleApplication> applications;
};

/// Applies, until nothing changes, those rules that fold or fuse: a match whose operators form one chain with at
/// most one reduction (convolution, product, pooling, ...) in it, all others element by element, and whose
/// replacement leaves the graph with fewer operators and no more arithmetic. Where the chain is joined by further
/// tensors (a residual is added), the replacement is one operator that reads each of them as it was read. Likewise what
/// exporters spell out: operators that work element by element, broadcast, or reduce their only tensor, and together
/// are a function of one tensor for which there is an operator (x * sigmoid(x), a normalization of rows); or operators
/// that work element by element and move elements, of any number of tensors, where one operator reads the same ones (a
/// rotary embedding of halves), and those that move what one operator reads and makes, if it can do so itself. And
/// numbers that become part of weights: the operators stay, without some that worked element by element. Merging
/// siblings, enlarging kernels and the like are left to the search. Rules that cancel, as (x + y) - y = x, are left
/// out: they change what rounding makes of a model.
/// Rewrites that `writable` refuses, and matches that `applicable` refuses, are left out. Once `stop` is raised:
/// an error of code interrupted.
[[nodiscard]] Expected<Baseline> make_baseline(const Graph& graph, const RuleIndex& rules,
                                               const OperatorRegistry& registry, const RewriteFilter& writable = {},
                                               const StopSignal& stop = {}, const MatchFilter& applicable = {});

}  // namespace taso
