/// What the tests of the optimizer share: the shipped operators, test rules, text graphs and a target with made-up
/// costs.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph_text.h"
#include "graph/rewrite.h"
#include "operators/registry.h"
#include "optimizer/cost_model.h"
#include "optimizer/optimize.h"
#include "optimizer/runtime_target.h"
#include "optimizer/target.h"
#include "runtime/kernel.h"

namespace taso::testing {

inline std::string source_path(const std::string& path) { return std::string(TASO_SOURCE_DIR) + "/" + path; }

/// The value of an Expected; the test ends with its message if there is none.
template <class T>
T value_of(Expected<T> expected) {
  if (!expected) {
    ADD_FAILURE() << expected.error().to_string();
    throw std::runtime_error(expected.error().to_string());
  }
  return std::move(expected).value();
}

inline const OperatorRegistry& registry() {
  static const OperatorRegistry loaded = value_of(OperatorRegistry::load(source_path("specs/operators")));
  return loaded;
}

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

inline Graph graph_of(const std::string& text) { return value_of(parse_graph(text, "test", registry())); }

/// Plans like the CPU target in counting mode; kernel costs come from a function and are counted.
class FakeTarget final : public Target {
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
    for (std::size_t i = 0; i < graphs.size(); ++i)
      times.seconds.push_back(i < graph_seconds.size() ? graph_seconds[i] : 1.0);
    return times;
  }

  std::map<std::string, double> seconds_of_op;
  double seconds_per_flop_squared = 0;  ///< If above 0, all kernels cost this: merging never seems to pay.
  std::vector<double> graph_seconds;    ///< By position; 1 where missing.
  double noise = 0.02;
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

/// A test of the data folder: directives, then a graph.
struct OptimizerCase {
  std::string name, cost = "launches", fp = "reassoc", graph;
  double alpha = 1.05;
  std::size_t steps = 1000;
  bool exhaustive = false;
  std::vector<std::vector<std::string>> expectations;  ///< Words after "expect".
};

inline std::vector<OptimizerCase> optimizer_cases() {
  std::set<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(source_path("tests/data/optimizer")))
    if (entry.path().extension() == ".opt") paths.insert(entry.path());
  std::vector<OptimizerCase> cases;
  for (const std::filesystem::path& path : paths) {
    OptimizerCase test;
    test.name = path.stem().string();
    std::ifstream stream(path);
    for (std::string line; std::getline(stream, line);) {
      std::istringstream words(line);
      std::vector<std::string> list;
      for (std::string word; words >> word;) list.push_back(word);
      if (list.empty() || list[0][0] == '#') continue;
      if (list[0] == "graph") {
        test.graph.assign(std::istreambuf_iterator<char>(stream), {});
      } else if (list[0] == "exhaustive") {
        test.exhaustive = true;
      } else if (list[0] == "expect" && list.size() > 2) {
        test.expectations.emplace_back(list.begin() + 1, list.end());
      } else if (list.size() == 2 && list[0] == "cost") {
        test.cost = list[1];
      } else if (list.size() == 2 && list[0] == "fp") {
        test.fp = list[1];
      } else if (list.size() == 2 && list[0] == "alpha") {
        test.alpha = std::stod(list[1]);
      } else if (list.size() == 2 && list[0] == "steps") {
        test.steps = std::stoul(list[1]);
      } else {
        ADD_FAILURE() << path << ": unknown directive '" << line << "'";
      }
    }
    EXPECT_FALSE(test.graph.empty()) << path;
    EXPECT_FALSE(test.expectations.empty()) << path;
    cases.push_back(std::move(test));
  }
  return cases;
}

inline std::string case_name(const ::testing::TestParamInfo<OptimizerCase>& info) { return info.param.name; }
inline void PrintTo(const OptimizerCase& test, std::ostream* stream) { *stream << test.name; }

}  // namespace taso::testing
