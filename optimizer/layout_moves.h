/// Layouts that are chosen together with what is fused.
///
/// choose_layouts (optimizer/layout_choice.h) finds the best layouts for kernels as they are by themselves. Where the
/// target fuses, other layouts may be better: a kernel for several operators may read rows only, and a conversion may
/// cost nothing within one. The sum of fused launches is no sum over pairs of nodes, so no elimination finds its
/// minimum. It is approached by moves, as in local search. A move makes all nodes of a kind (equal operators with equal
/// configurations, such as the transposes of all layers) work in one of these; around that, layouts are chosen anew,
/// and then groups (runtime/groups.h), both at least cost. A move that makes the launches cheaper stays, and the next
/// ones are made on top of it, until none is left that does, or so many were tried.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "graph/graph.h"
#include "optimizer/layout_choice.h"
#include "optimizer/target.h"
#include "support/status.h"

namespace taso {

/// A plan and its cost.
struct PricedPlan {
  KernelPlan plan;  ///< Fused, with its layouts.
  double cost = 0;
};

struct MoveOptions {
  /// Most plans that are fused and priced (bench/optimizer.md: what that takes).
  std::size_t most_tried = 64;
  /// A move has to make a plan cheaper by this share: less is what the prices of single kernels are wrong by.
  double least_gain = 0.001;
};

/// A plan that is cheaper than `limit` by MoveOptions::least_gain, if moves from the best layouts for kernels by
/// themselves lead to one. `cost_of` prices the launches of a fused plan: any number from a limit up where they do not
/// cost less. A plan that has no price (cost_missing, device_unavailable), or whose elimination was not exact, is left
/// out; an interrupt ends the moves, and what they have reached counts. The same prices give the same plan, however
/// many of them were known before. The order of the graph's nodes decides only between layouts of equal price.
[[nodiscard]] Expected<std::optional<PricedPlan>> cheaper_by_moves(
    const Graph& graph, const Target& target, const PriceList& prices,
    const std::function<Expected<double>(const KernelPlan&, double limit)>& cost_of, double limit,
    EliminationCache& cache, LayoutStatistics& statistics, const MoveOptions& options = {});

}  // namespace taso
