/// Prices that whole-graph times contradict.
///
/// A kernel is measured by itself, in caches that are made to look like those of a run. Some take another time inside
/// of a graph, and then the search goes the wrong way. It shows where a graph that should be faster than another one is
/// slower, or faster by much less: then both are profiled, and the kernels whose time inside of them explains it get
/// that time as their price.
#pragma once

#include <vector>

#include "optimizer/contenders.h"
#include "optimizer/optimize.h"
#include "optimizer/planned_graph.h"

namespace taso {

/// So often prices are corrected in one optimization.
inline constexpr int most_corrections = 2;

/// Corrects the recorded prices of what `result.contenders` ran, where their times, which were taken now, contradict
/// the predicted ones beyond the noise. The value says which: nothing where nothing is to be corrected, or where
/// nothing may be measured.
[[nodiscard]] Expected<std::vector<CorrectedPrice>> correct_prices(Prepared& prepared, Findings& found,
                                                                   const GraphPlanner& planner,
                                                                   const OptimizeResult& result);

}  // namespace taso
