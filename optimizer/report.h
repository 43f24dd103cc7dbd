/// Reports of an optimization for people and for programs.
#pragma once

#include <string>

#include "optimizer/optimize.h"

namespace taso {

/// Facts about the run that the optimizer itself does not know.
struct ReportContext {
  std::string model;    ///< Path of the input.
  std::string output;   ///< Path of the result.
  double seconds = 0;   ///< Of the whole run.
  std::size_t rules = 0;
  std::string costs;    ///< Path of the cost database.
  std::size_t measured_kernels = 0;
  std::string fp;
};

/// The before/after table with rules used, times and the verdict.
[[nodiscard]] std::string report_text(const OptimizeResult& result, const ReportContext& context);
/// Every rule application, one a line.
[[nodiscard]] std::string explain_text(const OptimizeResult& result);
/// The same facts as JSON, with sorted keys.
[[nodiscard]] std::string report_json(const OptimizeResult& result, const ReportContext& context);

}  // namespace taso
