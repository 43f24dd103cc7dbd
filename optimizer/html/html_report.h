/// The report of an optimization as one HTML page: what changed, the rules used and where, and both graphs, to be
/// looked at, with what each of their nodes costs. The page needs nothing from elsewhere.
///
/// The page is made of text that stands in it (numbers, charts), of data for its script (optimizer/html/page_data.h),
/// and of the style and the script, which are files of their own: report.css, report.js.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "optimizer/changed_regions.h"
#include "optimizer/optimize.h"
#include "optimizer/report.h"
#include "optimizer/run_profile.h"

namespace taso {

/// A graph to be drawn, and a run of it.
struct ReportedGraph {
  const Graph* graph = nullptr;
  RunProfile run;
};

/// An operator of the model that is carried as it is: how often, and why its first occurrence is.
struct CarriedOperator {
  std::string op;  ///< As Node::op of opaque nodes.
  std::size_t count = 0;
  std::string reason;
};

/// What a page tells. What is referred to must outlive it.
struct HtmlReport {
  const OptimizeResult* result = nullptr;
  const ReportContext* context = nullptr;
  ReportedGraph original, optimized;   ///< The original in normal form, and result->graph.
  std::vector<ChangedRegion> regions;  ///< By changed_regions() for these two.
  std::vector<CarriedOperator> carried;
  std::string plan;  ///< A section about a plan for several devices, as HTML; empty: there is none.
};

/// The page. Equal reports give equal bytes.
[[nodiscard]] std::string report_html(const HtmlReport& report);

}  // namespace taso
