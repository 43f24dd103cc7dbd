/// Reports of an optimization for people and for programs.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "operators/coverage.h"
#include "optimizer/optimize.h"
#include "optimizer/recorded_choices.h"

namespace taso {

/// Plans for several devices that were run whole on this machine, in turn with the graph that is best on one device.
struct PlanTimes {
  struct Plan {
    std::string name;
    std::size_t number = 0;  ///< Among those that were given.
    double predicted = 0;    ///< In seconds.
    double seconds = 0;
  };
  struct OneDevice {
    int threads = 1;
    double seconds = 0;
  };
  std::vector<Plan> plans;
  std::size_t chosen = 0;             ///< The plan that is the result.
  std::vector<OneDevice> one_device;  ///< With the threads of a rank, and with those of all ranks.
  double noise = 0;                   ///< Relative difference of two times that may be noise (an A/A pair).
  int date = 0;                       ///< When they were recorded, as 20261126; 0: just now.
};

/// What a plan for several devices costs that was searched together with the graph, beside others; all in one unit.
struct PlanSearchReport {
  std::string search;                ///< As --plan-search spells it.
  std::string unit;                  ///< "seconds", "flops", "bytes".
  double cost = 0;                   ///< Of the plan.
  std::optional<double> sequential;  ///< Of the plan of the graph that is best on one device, if it was looked at.
  std::optional<double> partition;   ///< Of the plan of the model without substitutions, if it was looked at.
  std::optional<double> one_device;  ///< Of one device, by the same costs: the better of this graph and of that.
  std::size_t graphs = 0;            ///< So many were looked at.
  bool stopped = false;              ///< The search ended early.
  std::map<std::string, int> rules;  ///< How much more often each rule was applied than for one device; none 0.
  std::optional<PlanTimes> timed;    ///< The best plans run whole, where they were.
  std::string not_timed;             ///< Why they were not; empty: nobody asked.
};

/// Facts about the run that the optimizer itself does not know.
struct ReportContext {
  std::string model;                    ///< Path of the input.
  std::string output;                   ///< Path of the result; empty if nothing was written.
  std::vector<std::string> node_names;  ///< Of the original nodes, by Node::origin; "Conv #12" for one without.
  double seconds = 0;                   ///< Of the whole run.
  std::size_t rules = 0;                ///< Number of rules that could be used.
  std::string numeric_classes;          ///< As --fp spells it.
  std::string costs;                    ///< Path of the cost database; empty if it was held in memory.
  std::size_t measured_kernels = 0;     ///< Kernels that were not in the database.
  /// Choices of engines that were not there, where there is a backend.
  std::optional<RecordedChoices::Tuning> tuning = {};
  std::size_t ill_typed_nodes = 0;            ///< Nodes that are carried as their import was ill-typed.
  std::optional<PlanSearchReport> plan = {};  ///< Where a plan for several devices was asked for.
  Coverage coverage = {};                     ///< How much of the model is understood, and why the rest is not.
};

/// The before/after table with rules used, times and the verdict.
[[nodiscard]] std::string report_text(const OptimizeResult& result, const ReportContext& context);
/// One line: "1.23x faster than the baseline (...)" or "no improvement over the baseline ...".
[[nodiscard]] std::string verdict(const OptimizeResult& result);
/// A date that is recorded as 20261126: "2026-11-26".
[[nodiscard]] std::string date_text(int date);
/// "2.352 ms", or below one millisecond "34.21 us".
[[nodiscard]] std::string duration_text(double seconds);
/// The heading and the cells of a row of times: in milliseconds, or where all are below one in microseconds. "-" stands
/// for one that is not known.
[[nodiscard]] std::vector<std::string> row_of_times(const std::string& name,
                                                    const std::vector<std::optional<double>>& seconds);
/// The unit of costs under a cost model of that name: "us" of "time", "launches", ...; a sum has its own text.
[[nodiscard]] std::string cost_unit(const std::string& cost_model);
/// Whether the costs of applications are those of the cost model, and lead to that of the result: not where it was
/// found by a search for something else (the fewest launches, or in other layouts).
[[nodiscard]] bool tells_costs(const OptimizeResult& result);
/// Every rule application, one a line; with its costs if these can be told.
[[nodiscard]] std::string explain_text(const OptimizeResult& result, const ReportContext& context);
/// The same facts as JSON with sorted keys (docs/optimizing.md lists them).
[[nodiscard]] std::string report_json(const OptimizeResult& result, const ReportContext& context);
/// What stands in its place where there is no result: an object with `model`, `error` and `exit_code`.
[[nodiscard]] std::string error_json(const Error& error, const std::string& model);

/// What is understood of a model as one line of JSON: what stands under "coverage" in the report.
[[nodiscard]] std::string coverage_json(const Coverage& coverage);

}  // namespace taso
