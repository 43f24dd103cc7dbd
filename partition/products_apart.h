/// Graphs in which products stand by themselves, so that all their strategies can be used.
///
/// A product to which a bias is added and on which a function is computed cannot be cut along what it sums up: the
/// partial results would have to be added before the function. And of a product whose columns are split afterwards
/// (queries, keys and values computed at once) no even cut of the columns fits the parts. Both are how a model was
/// written or fused, not what it computes. What is taken apart reads and writes more than before: whether a plan of it
/// takes less time only a plan says.
#pragma once

#include "graph/graph.h"
#include "partition/operator_piece.h"
#include "support/status.h"

namespace taso {

/// The graph with operators that hide a product as their definitions have them: that apply one, and have no strategy
/// that cuts its sum. Fails where a definition cannot be unfolded (operators/unfold.h).
[[nodiscard]] Expected<Graph> products_apart(const Graph& graph, StrategyTable& strategies);

/// The graph with a product for each part of a split that is all that reads a product with weights: the pieces of the
/// product, by its strategy for that axis, have slices of the weights. Operators between the two (a reshape, a bias)
/// are cut with it where each has a strategy for the axis and one reader.
[[nodiscard]] Graph split_products_apart(const Graph& graph, StrategyTable& strategies);

}  // namespace taso
