/// The third step of an optimization: which of the graphs becomes the result.
#pragma once

#include "optimizer/contenders.h"
#include "optimizer/optimize.h"
#include "optimizer/planned_graph.h"
#include "optimizer/prepare.h"
#include "support/status.h"

namespace taso {

/// The graphs that compete: baseline, original, and what was found, in its order.
[[nodiscard]] std::vector<Competitor*> competitors_of(Prepared& prepared, Findings& found);

/// Lets baseline, original and what was found compete: by their times whole, or where these do not count, cannot be had
/// (a note says why) or an interrupt ends the timing (result.search.stop), by their costs. Fills in what `result` says
/// of the graphs and the search, and the summaries of the winner and of all times.
[[nodiscard]] Status choose(Prepared& prepared, Findings& found, const GraphPlanner& planner,
                            const OptimizeOptions& options, OptimizeResult& result);

}  // namespace taso
