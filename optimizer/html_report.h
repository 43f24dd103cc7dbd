/// The report of an optimization as one HTML page: the numbers, the rules used and where, and both graphs drawn with
/// what each of their nodes costs. The page needs nothing from elsewhere and runs no program.
#pragma once

#include <map>
#include <string>

#include "graph/graph.h"
#include "optimizer/optimize.h"
#include "optimizer/report.h"

namespace taso {

/// A graph to be drawn. Costs are per node that launches kernels: seconds, or numbers of launches (price_nodes).
struct PricedGraph {
  const Graph* graph = nullptr;
  std::map<NodeId, double> costs;
};

/// What each node of a graph costs: the seconds of its kernels where the cost model uses time, else their number.
/// Layouts are those of the runtime's rule, or chosen by `model` if `open`.
[[nodiscard]] Expected<PricedGraph> price_nodes(const Graph& graph, MeasuredCosts& measured, CostModel& model,
                                                bool open);

/// The page. `original` and `result` are drawn beside each other; the same arguments give the same bytes.
[[nodiscard]] std::string report_html(const OptimizeResult& result, const ReportContext& context,
                                      const PricedGraph& original, const PricedGraph& optimized, bool time);

/// A graph as SVG. Inputs and operators are drawn in layers, producers above consumers; what is computed from weights
/// alone is not. Node::origin is looked up in `context.node_names`.
[[nodiscard]] std::string graph_svg(const PricedGraph& graph, const ReportContext& context, bool time);

}  // namespace taso
