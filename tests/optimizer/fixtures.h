/// What the tests of the optimizer share: the shipped operators, test rules, text graphs and a target with made-up
/// costs.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "graph/rewrite.h"
#include "operators/registry.h"
#include "optimizer/cost_model.h"
#include "optimizer/optimize.h"
#include "optimizer/runtime_target.h"
#include "optimizer/target.h"
#include "runtime/kernel.h"
#include "tests/support/graphs.h"

namespace taso::testing {

inline std::string source_path(const std::string& path) { return std::string(TASO_SOURCE_DIR) + "/" + path; }

using test::graph_of;
using test::registry;
using test::value_of;

inline Rounding rounding_of(const std::string& fp) {
  return fp == "exact" ? Rounding::exact : fp == "fast" ? Rounding::fast : Rounding::reassoc;
}

inline const KernelLibrary& library() {
  static const KernelLibrary made(registry());
  return made;
}

inline const std::vector<Substitution>& test_rules() {
  static const std::vector<Substitution> loaded =
      value_of(load_rules(source_path("tests/data/rules/optimizer.rules"), registry()));
  return loaded;
}

/// Plans like the CPU target in counting mode; kernel costs come from a function and are counted.
class FakeTarget : public Target {
 public:
  FakeTarget() : plans_(library(), {.threads = 1, .counting = true, .cancelled = {}}) {}
  [[nodiscard]] const std::string& identity() const override { return identity_; }
  [[nodiscard]] Expected<KernelPlan> plan(const Graph& graph) const override { return plans_.plan(graph); }
  [[nodiscard]] Expected<double> peak_bytes(const Graph& graph, const LayoutAssignment* layouts) const override {
    return plans_.peak_bytes(graph, layouts);
  }
  [[nodiscard]] Expected<double> measure(const KernelInfo& kernel) override {
    measured.push_back(kernel.key);
    if (seconds_per_flop_squared > 0) return seconds_per_flop_squared * kernel.flops * kernel.flops;
    const auto place = seconds_of_op.find(kernel.op);
    return place == seconds_of_op.end() ? 1e-6 : place->second;
  }
  [[nodiscard]] int cached_tenths(double /*bytes*/) override {
    ++caches_measured;
    return tenths;
  }
  [[nodiscard]] Expected<GraphTimes> measure_graphs(std::span<const TimedGraph> graphs) override {
    ++timed;
    GraphTimes times;
    times.noise = noise;
    times.final = final;
    times.cut_short = cut_short;
    for (std::size_t i = 0; graph_seconds_from_inside && i < graphs.size(); ++i) {
      double sum = 0;
      for (const Launch& launch : test::value_of(plan(*graphs[i].graph)).launches) sum += inside(*launch.kernel);
      times.seconds.push_back(sum);
    }
    for (std::size_t i = times.seconds.size(); i < graphs.size(); ++i)
      times.seconds.push_back(i < graph_seconds.size() ? graph_seconds[i] : 1.0);
    return times;
  }

  [[nodiscard]] Expected<std::map<std::string, double>> profile(const TimedGraph& graph) override {
    if (profile_fails) return Error{*profile_fails, "no profile here", {}};
    std::map<std::string, double> seconds;
    TASO_ASSIGN(const KernelPlan planned, plan(*graph.graph));
    for (const Launch& launch : planned.launches) seconds[launch.kernel->key] = inside(*launch.kernel);
    return seconds;
  }

  /// Seconds of a kernel inside of a graph.
  [[nodiscard]] double inside(const KernelInfo& kernel) const {
    if (const auto place = seconds_inside.find(kernel.op); place != seconds_inside.end()) return place->second;
    const auto place = seconds_of_op.find(kernel.op);
    return place == seconds_of_op.end() ? 1e-6 : place->second;
  }

  std::map<std::string, double> seconds_of_op;
  std::map<std::string, double> seconds_inside;  ///< By operator, where it is not seconds_of_op.
  bool graph_seconds_from_inside = false;        ///< Instead of graph_seconds: sums of inside().
  double seconds_per_flop_squared = 0;           ///< If above 0, all kernels cost this: merging never seems to pay.
  std::vector<double> graph_seconds;             ///< By position; 1 where missing.
  std::optional<ErrorCode> profile_fails;        ///< With this code.
  double noise = 0.02;
  std::optional<GraphTimes::Final> final;
  std::optional<Error> cut_short;
  std::vector<std::string> measured;
  int timed = 0;
  int tenths = 7, caches_measured = 0;

 private:
  RuntimeTarget plans_;
  std::string identity_ = "fake device";
};

/// A cost model over a fake target, and the database it fills.
struct Costs {
  explicit Costs(const std::string& formula)
      : database(CostDatabase::in_memory(target.identity())),
        measured(target, database, true),
        model(make_cost_model(value_of(parse_cost_formula(formula)), measured)) {}
  FakeTarget target;
  CostDatabase database;
  MeasuredCosts measured;
  std::unique_ptr<CostModel> model;

  double of(const Graph& graph) {
    KernelPlan plan = value_of(target.plan(graph));
    return value_of(model->cost(graph, plan));
  }
};

/// A folder that is removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "taso_optimizer_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline void write_file(const std::string& path, const std::string& text) {
  std::ofstream stream(path, std::ios::binary);
  stream << text;
}

/// A case of tests/data/optimizer: how a graph is searched, and what is expected of the result (optimize_test.cpp).
///
///   cost FORMULA, fp CLASS, alpha A, max_steps N    as the options of taso-opt
///   original C, baseline C, result C                costs
///   choice NAME, stop REASON                        what is chosen; why the search stopped
///   uses RULE N                                     the rule is applied N times
///   exhaustive                                      all reachable graphs can be enumerated
///   graph:
inline std::vector<test::TextCase> optimizer_cases() {
  static const test::CaseKeys keys = {{"cost", test::CaseValue::words, test::CaseCount::optional},
                                      {"fp", test::CaseValue::words, test::CaseCount::optional},
                                      {"alpha", test::CaseValue::number, test::CaseCount::optional},
                                      {"max_steps", test::CaseValue::integer, test::CaseCount::optional},
                                      {"exhaustive", test::CaseValue::none, test::CaseCount::optional},
                                      {"original", test::CaseValue::number, test::CaseCount::optional},
                                      {"baseline", test::CaseValue::number, test::CaseCount::optional},
                                      {"result", test::CaseValue::number, test::CaseCount::optional},
                                      {"choice", test::CaseValue::words, test::CaseCount::optional},
                                      {"stop", test::CaseValue::words, test::CaseCount::optional},
                                      {"uses", test::CaseValue::words, test::CaseCount::repeated},
                                      {"graph", test::CaseValue::section, test::CaseCount::once}};
  return test::load_cases("tests/data/optimizer", keys);
}

inline std::string cost_of(const test::TextCase& test) { return test.text("cost", "launches"); }
inline double alpha_of(const test::TextCase& test) { return test.number("alpha", 1.05); }

}  // namespace taso::testing
