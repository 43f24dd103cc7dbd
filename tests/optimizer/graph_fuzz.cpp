// Differential fuzzing of the optimizer: random graphs over all operators, all shipped rules, random costs.
//
//   graph_fuzz [--graphs N] [--seed S] [--rules FILE] [--expect-applied PERCENT] [--one SEED] [--verbose]
//
// Graph number i is drawn from seed S + i; every second one has in it an instance of the rule that was applied least
// so far. Each graph is
//   - optimized by optimizer/optimize.h with all rules, under costs that are random numbers keyed by seed and
//     kernel, so that rules pay in either direction;
//   - rewritten at the planted rule's matches, and along a walk of random applications of all rules. The matches at
//     each step, made from those of a graph before, must be what is found anew.
// Results are compared on the sample inputs of the generator (random_graph.h): the definitions evaluated over doubles,
// and the executor. How far values may differ is measured, not guessed: the definitions evaluated with a random error
// of one unit of float after each operation (Parker's Monte Carlo arithmetic) give the error that rounding can make in
// each output, of both graphs. Every opaque node must be left, every output, every input, and the optimizer's own check
// must not object. Nothing depends on time or address: equal arguments give equal output.
//
// What is wrong is printed with its seed (--one repeats it) and the smallest graph of that seed that shows it. Exit
// code: 0, 1 if something is wrong (or too few rules were applied), 2 for wrong usage.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "graph/graph_text.h"
#include "graph/rewrite.h"
#include "optimizer/check.h"
#include "optimizer/cost_database.h"
#include "optimizer/optimize.h"
#include "optimizer/runtime_target.h"
#include "runtime/executor.h"
#include "runtime/lowering.h"
#include "tests/graph/same_matches.h"
#include "tests/optimizer/random_graph.h"

namespace taso::testing {
namespace {

constexpr double unit_of_f32 = 0x1.0p-24;  // Of rounding to float.
constexpr double error_margin = 60;        // Allowed error, in multiples of that of a run with random errors.
constexpr double relative_tolerance =
    2e-6;  // Besides, relative to the largest element: what operators round in their own way.
constexpr double ill_conditioned = 0.02;  // Where more is allowed, nothing is shown.
constexpr int walk_steps = 6;             // Applications of random rules.
constexpr int planted_matches = 2;

/// Doubles with a random relative error after each operation.
class RoundingRing {
 public:
  using Element = double;
  static constexpr bool folds_extrema = true;
  RoundingRing(std::uint64_t seed, double unit) : random_(seed, "rounding"), unit_(unit) {}
  static double number(double value) { return value; }
  double add(double a, double b) { return round(a + b); }
  double subtract(double a, double b) { return round(a - b); }
  double multiply(double a, double b) { return round(a * b); }
  double divide(double a, double b) { return round(a / b); }
  double call(const FunctionDefinition& function, double x) { return round(function.real(x)); }
  double call(const FunctionDefinition& function, double x, double y) { return round(function.real2(x, y)); }
  static double extremum(bool maximum, std::span<const double> values) { return DoubleRing::extremum(maximum, values); }
  static double infinity(bool negative) { return DoubleRing::infinity(negative); }
  [[nodiscard]] static Status status() { return {}; }

 private:
  double round(double value) { return value * (1 + unit_ * (2 * random_.uniform() - 1)); }
  Random random_;
  double unit_;
};

/// A random number for each kernel, the same for the same seed: rules pay in either direction.
class RandomCost final : public CostModel {
 public:
  explicit RandomCost(std::uint64_t seed) : seed_(seed) {}
  [[nodiscard]] Expected<double> cost(const Graph& graph, KernelPlan& plan, double limit) override {
    static_cast<void>(graph), static_cast<void>(limit);
    double sum = 0.01;
    for (const Launch& launch : plan.launches) sum += 0.1 + Random(seed_ ^ launch.kernel->hash.low).uniform();
    return sum;
  }
  [[nodiscard]] Expected<double> improve(const Graph&, KernelPlan&, double cost) override { return cost; }
  [[nodiscard]] Expected<std::optional<double>> least(const Graph&) override { return std::optional<double>(); }
  void prepare(std::span<const Unpriced>) override {}
  [[nodiscard]] LayoutStatistics layout_statistics() const override { return statistics_; }
  [[nodiscard]] std::string name() const override { return "random"; }
  [[nodiscard]] bool uses_time() const override { return false; }

 private:
  std::uint64_t seed_;
  LayoutStatistics statistics_;  // None: a counting target leaves no layouts open.
};

using Tensors = std::vector<RingTensor<double>>;

/// Outputs by name: those of the graph, and what opaque nodes read.
struct Values {
  std::map<std::string, RingTensor<double>> exact;
  std::map<std::string, double> error;  ///< What rounding to float can make of it.
  std::string fault;
};

Tensors inputs_of(const Graph& graph, const RandomGraph& drawn) {
  Tensors inputs;
  for (const NodeId id : graph.inputs()) inputs.push_back(drawn.inputs.at(graph.node(id).name));
  return inputs;
}

double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double value : values) result = std::max(result, std::abs(value));
  return result;
}

/// The largest difference; infinite where one is not finite and the other is.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double result = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double difference = std::abs(a[i] - b[i]);
    result = std::isfinite(difference) ? std::max(result, difference) : HUGE_VAL;
  }
  return result;
}

Values evaluate_exactly(const OperatorRegistry& registry, const CutGraph& cut, const RandomGraph& drawn) {
  Values values;
  const Tensors inputs = inputs_of(cut.graph, drawn);
  DoubleRing ring;
  auto exact = evaluate(cut.graph, registry, ring, inputs);
  if (!exact) {
    values.fault = exact.error().to_string();
    return values;
  }
  for (std::uint64_t run = 0; run < 3; ++run) {
    RoundingRing noisy(run, unit_of_f32);
    const auto moved = evaluate(cut.graph, registry, noisy, inputs);
    for (std::size_t i = 0; moved && i < exact->size(); ++i) {
      double& error = values.error[cut.output_names[i]];
      error = std::max(error, distance((*moved)[i].elements, (*exact)[i].elements));
    }
  }
  for (std::size_t i = 0; i < exact->size(); ++i) values.exact[cut.output_names[i]] = std::move((*exact)[i]);
  return values;
}

class Fuzzer {
 public:
  Fuzzer(const OperatorRegistry& registry, std::vector<Substitution> rules)
      : registry_(registry),
        rules_(std::move(rules), registry),
        library_(registry),
        target_(library_, {.threads = 1, .counting = true, .cancelled = {}}),
        database_(CostDatabase::in_memory(target_.identity())),
        measured_(target_, database_, false) {
    for (std::size_t i = 0; i < rules_.rules().size(); ++i) numbers_[rules_.rules()[i].name] = i;
    applied_.resize(rules_.rules().size());
    planted_.resize(rules_.rules().size());
  }

  struct Counts {
    std::size_t graphs = 0, operators = 0, opaque = 0, changed = 0, outputs = 0, ill_conditioned = 0, empty = 0;
    std::map<std::string, std::size_t> by_operator;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }
  /// Applications per rule: by the search, by the walk or where it was planted.
  [[nodiscard]] const std::vector<std::size_t>& applied() const { return applied_; }
  [[nodiscard]] const RuleIndex& rules() const { return rules_; }

  /// The rule for the next graph with an instance: of those applied least, the one planted least.
  std::size_t neglected() {
    std::size_t best = 0;
    for (std::size_t i = 1; i < applied_.size(); ++i)
      if (std::pair(applied_[i] + planted_[i], i) < std::pair(applied_[best] + planted_[best], best)) best = i;
    return best;
  }

  [[nodiscard]] RandomGraph draw(std::uint64_t seed, std::optional<std::size_t> rule, int operators) const {
    GraphGenerator generator(registry_, seed);
    if (rule) generator.plant(rules_.rules()[*rule]);
    return generator.finish(operators);
  }

  /// One graph; what is wrong, or nothing.
  std::string run(std::uint64_t seed, std::optional<std::size_t> rule, int operators, bool counting) {
    const RandomGraph drawn = draw(seed, rule, operators);
    const Graph& graph = drawn.graph;
    if (const Status valid = graph.validate(); !valid) return "the generator made no graph: " + valid.error().message;
    if (counting) count(drawn, rule);
    original_ = &drawn;
    const CutGraph cut = cut_at_opaque(graph);
    expected_ = evaluate_exactly(registry_, cut, drawn);
    expected_names_ = cut.output_names;
    if (!expected_.fault.empty()) return "the original cannot be evaluated: " + expected_.fault;
    if (auto fault = compare_executor(cut, "the executor on the original"); !fault.empty()) return fault;
    Graph normal = graph;
    normalize(normal, registry_);
    if (auto fault = compare(normal, "the normal form", false); !fault.empty()) return fault;

    OptimizeOptions options;
    options.rounding = Rounding::fast;
    options.search.alpha = 1.3;
    options.search.max_steps = 6;
    options.search.patience = 6;
    options.search.max_candidate_nodes = 5000;
    options.search.keep = 1;
    options.search.threads = 1;
    options.search.part_size = seed % 3 == 0 ? 2 : 0;  // one graph in three in parts
    options.check.reset();
    RandomCost cost(seed);
    const auto result = optimize(graph, rules_, library_, measured_, cost, options);
    if (!result) return "optimize: " + result.error().to_string();
    std::string names;
    for (const RuleApplication& application : result->applications) {
      if (counting) ++applied_[numbers_.at(application.rule)];
      names += (names.empty() ? "" : ", ") + application.rule;
    }
    if (auto fault = compare(result->graph, "optimized by " + names, true); !fault.empty()) return fault;
    CheckOptions check_options;
    check_options.rtol = 0.5;  // On inputs of its own, where functions may be steep: that it can compare is the point.
    check_options.inputs = 1;
    if (const auto checked = check(graph, result->graph, library_, check_options); !checked)
      return "the optimizer's check after " + names + ": " + checked.error().to_string();

    if (rule && drawn.planted)
      if (auto fault = apply_planted(normal, static_cast<std::uint32_t>(*rule), counting); !fault.empty()) return fault;
    return walk(normal, seed, counting);
  }

 private:
  void count(const RandomGraph& drawn, std::optional<std::size_t> rule) {
    ++counts_.graphs;
    if (rule) ++planted_[*rule];
    bool empty = false;
    for (NodeId id = 0; id < drawn.graph.id_bound(); ++id) {
      if (!drawn.graph.contains(id)) continue;
      const Node& node = drawn.graph.node(id);
      for (const TensorType& type : node.outputs) empty = empty || type.elements() == 0;
      if (node.kind == NodeKind::opaque) ++counts_.opaque;
      if (node.kind != NodeKind::op) continue;
      ++counts_.operators;
      ++counts_.by_operator[node.op];
    }
    counts_.empty += empty ? 1 : 0;
  }

  /// All matches of the planted rule, one by one.
  std::string apply_planted(const Graph& graph, std::uint32_t number, bool counting) {
    int matches = 0;
    for (const Match& match : rules_.find(graph, number)) {
      if (matches == planted_matches) break;
      const auto result = taso::apply(graph, rules_.rules()[number], match, registry_);
      if (!result) continue;
      ++matches;
      if (counting) ++applied_[number];
      if (auto fault = compare(*result, "rule " + rules_.rules()[number].name, matches == 1); !fault.empty())
        return fault;
    }
    return "";
  }

  std::string walk(Graph graph, std::uint64_t seed, bool counting) {
    Random random(seed, "walk");
    std::string names;
    bool moved = false;
    MatchList list;
    for (int step = 0; step < walk_steps; ++step) {
      const MatchList next = rules_.update(list, graph);
      if (auto fault = wrong_match(rules_, next, graph); !fault.empty())
        return "matches made from others after " + names + ": " + fault;
      if (seed % 2 == 0 || step == 0) list = next;  // else from those of the first graph, after several steps
      const auto matches = next.matches();
      if (matches.empty()) break;
      // Rules in turn, not matches: a rule that occurs everywhere would drive out the others.
      std::vector<std::uint32_t> distinct;
      for (const auto& [number, match] : matches)
        if (distinct.empty() || distinct.back() != number) distinct.push_back(number);
      const std::uint32_t chosen = distinct[random.below(distinct.size())];
      std::vector<const Match*> places;
      for (const auto& [number, match] : matches)
        if (number == chosen) places.push_back(match);
      const auto result = taso::apply(graph, rules_.rules()[chosen], *places[random.below(places.size())], registry_);
      if (!result || result->size() > 200) continue;
      if (counting) ++applied_[chosen];
      names += (names.empty() ? "" : ", ") + rules_.rules()[chosen].name;
      if (auto fault = compare(*result, "the walk " + names, false); !fault.empty()) return fault;
      graph = *result;
      moved = true;
    }
    return moved ? compare(graph, "the walk " + names, true) : "";
  }

  /// The outputs of a rewritten graph against those of the original.
  std::string compare(const Graph& graph, const std::string& what, bool execute) {
    auto wrong = [&](const std::string& how) {
      return what + ": " + how + "\nthe original\n" + to_text(original_->graph) + "becomes\n" + to_text(graph);
    };
    if (const Status valid = graph.validate(); !valid) return wrong("it is no graph: " + valid.error().message);
    if (graph.outputs().size() != original_->graph.outputs().size()) return wrong("outputs are lost");
    if (graph.inputs().size() != original_->graph.inputs().size()) return wrong("inputs are lost");
    for (std::size_t i = 0; i < graph.outputs().size(); ++i)
      if (graph.type(graph.outputs()[i]) != original_->graph.type(original_->graph.outputs()[i]))
        return wrong(fmt::format("output {} has another type", i));
    const auto [before, cut] = cut_alike(original_->graph, graph);
    if (cut.opaque_nodes != before.opaque_nodes) return wrong("an opaque node is lost");
    if (before.output_names != expected_names_) {  // more edges of opaque nodes are to be compared
      expected_ = evaluate_exactly(registry_, before, *original_);
      expected_names_ = before.output_names;
    }
    const Values values = evaluate_exactly(registry_, cut, *original_);
    if (!values.fault.empty()) return wrong(values.fault);
    ++counts_.changed;
    for (const auto& [name, expected] : expected_.exact) {
      const auto actual = values.exact.find(name);
      if (actual == values.exact.end()) return wrong(name + " is not there");
      const double error = std::max(expected_.error.at(name), values.error.at(name)) * 0x1.0p-20;
      const double allowed = error_margin * error + 1e-9 * (1e-3 + largest(expected.elements));
      const double found = distance(actual->second.elements, expected.elements);
      if (actual->second.shape != expected.shape || !(found <= allowed))
        return wrong(fmt::format("{} differs by {:.3g} over doubles, {:.3g} is allowed", name, found, allowed));
    }
    if (!execute) return "";
    const std::string fault = compare_executor(cut, "", &values);
    return fault.empty() ? "" : wrong(fault);
  }

  /// What the executor computes against the original's values; `own` are the graph's, if it is another.
  std::string compare_executor(const CutGraph& cut, const std::string& what, const Values* own = nullptr) {
    auto executor = Executor::create(cut.graph, library_, {.threads = 1, .channels_last = true, .weights = nullptr});
    if (!executor) return what + " cannot be made: " + executor.error().to_string();
    std::vector<HostTensor> inputs;
    for (const RingTensor<double>& tensor : inputs_of(cut.graph, *original_)) {
      const std::vector<float> floats(tensor.elements.begin(), tensor.elements.end());
      inputs.push_back(tensor.integers.empty() && (!tensor.elements.empty() || volume(tensor.shape) == 0)
                           ? HostTensor::of_floats(tensor.shape, floats)
                           : HostTensor::of_integers(tensor.shape, tensor.integers));
    }
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (executor->input_types()[i].element == ElementType::i64 && volume(executor->input_types()[i].shape) == 0)
        inputs[i] = HostTensor::of_integers(executor->input_types()[i].shape, {});
    const auto outputs = executor->run(inputs);
    if (!outputs) return what + " fails: " + outputs.error().to_string();
    for (std::size_t i = 0; i < outputs->size(); ++i) {
      const std::string& name = cut.output_names[i];
      const RingTensor<double>& expected = expected_.exact.at(name);
      double error = expected_.error.at(name);
      if (own != nullptr) error = std::max(error, own->error.at(name));
      const double magnitude = largest(expected.elements);
      const double allowed = error_margin * error + relative_tolerance * (1e-3 + magnitude);
      ++counts_.outputs;
      if (allowed > ill_conditioned * (1e-3 + magnitude)) {
        ++counts_.ill_conditioned;
        continue;
      }
      const double found = distance((*outputs)[i].to_doubles(), expected.elements);
      if ((*outputs)[i].type().shape != expected.shape || !(found <= allowed))
        return fmt::format("{}: {} differs by {:.3g} as executed, {:.3g} is allowed\n{}", what, name, found, allowed,
                           what.empty() ? "" : to_text(cut.graph));
    }
    return "";
  }

  const OperatorRegistry& registry_;
  RuleIndex rules_;
  KernelLibrary library_;
  RuntimeTarget target_;
  CostDatabase database_;
  MeasuredCosts measured_;
  std::map<std::string, std::size_t> numbers_;
  std::vector<std::size_t> applied_, planted_;
  Counts counts_;
  // Of the graph at hand.
  const RandomGraph* original_ = nullptr;
  Values expected_;
  std::vector<std::string> expected_names_;
};

int size_of_graph(std::uint64_t seed) { return 3 + static_cast<int>(Random(seed, "size").below(14)); }

/// The smallest graph of a seed at which something is wrong, as text.
std::string smallest(Fuzzer& fuzzer, std::uint64_t seed, std::optional<std::size_t> rule, const std::string& fault) {
  for (int operators = rule ? 0 : 1; operators < size_of_graph(seed); ++operators)
    if (const std::string found = fuzzer.run(seed, rule, operators, false); !found.empty()) return found;
  return fault;
}

struct Options {
  std::uint64_t graphs = 200, seed = 1;
  std::string rules = TASO_SOURCE_DIR "/specs/rules/default.rules";
  double expect_applied = 0;
  std::size_t faults = 10;
  bool verbose = false, trace = false;
};

int run(const Options& options) {
  const auto registry = OperatorRegistry::load(TASO_SOURCE_DIR "/specs/operators");
  if (!registry) return fmt::print(stderr, "{}\n", registry.error().to_string()), 1;
  auto rules = load_rules(options.rules, *registry);
  if (!rules) return fmt::print(stderr, "{}\n", rules.error().to_string()), 1;
  std::erase_if(*rules, [](const Substitution& rule) { return rule.is_axiom; });
  Fuzzer fuzzer(*registry, std::move(*rules));
  std::size_t faults = 0;
  for (std::uint64_t i = 0; i < options.graphs && faults < options.faults; ++i) {
    const std::uint64_t seed = options.seed + i;
    const auto rule = i % 2 == 1 ? std::optional(fuzzer.neglected()) : std::nullopt;
    if (options.trace)
      fmt::print("seed {}{}\n", seed, rule ? ", rule " + fuzzer.rules().rules()[*rule].name : ""), std::fflush(stdout);
    const std::string fault = fuzzer.run(seed, rule, size_of_graph(seed), true);
    if (fault.empty()) continue;
    ++faults;
    fmt::print("WRONG, seed {}{}: {}\n", seed, rule ? ", rule " + fuzzer.rules().rules()[*rule].name : "",
               smallest(fuzzer, seed, rule, fault));
    std::fflush(stdout);
  }
  const Fuzzer::Counts& counts = fuzzer.counts();
  std::size_t applied = 0, total = 0;
  std::string never;
  for (std::size_t i = 0; i < fuzzer.applied().size(); ++i) {
    total += fuzzer.applied()[i];
    applied += fuzzer.applied()[i] > 0 ? 1 : 0;
    if (fuzzer.applied()[i] == 0) never += " " + fuzzer.rules().rules()[i].name;
    if (options.verbose) fmt::print("{:8} x {}\n", fuzzer.applied()[i], fuzzer.rules().rules()[i].name);
  }
  for (const std::string& op : registry->names()) {
    const auto place = counts.by_operator.find(op);
    if (options.verbose) fmt::print("{:8} x operator {}\n", place == counts.by_operator.end() ? 0 : place->second, op);
  }
  const std::size_t operators = registry->names().size();
  fmt::print("{} graphs: {} operators of {} kinds (of {}), {} opaque nodes, {} graphs with empty tensors\n",
             counts.graphs, counts.operators, counts.by_operator.size(), operators, counts.opaque, counts.empty);
  fmt::print("{} rewritten graphs compared, {} tensors executed ({} too ill-conditioned to compare)\n", counts.changed,
             counts.outputs, counts.ill_conditioned);
  fmt::print("{} of {} rules applied, {} times{}{}\n", applied, fuzzer.applied().size(), total,
             never.empty() ? "" : "; never:", never);
  fmt::print("{} faults\n", faults);
  const double percent = 100.0 * static_cast<double>(applied) / static_cast<double>(fuzzer.applied().size());
  const bool few = percent < options.expect_applied;
  if (few) fmt::print("fewer than {} % of the rules were applied\n", options.expect_applied);
  return faults > 0 || few ? 1 : 0;
}

}  // namespace
}  // namespace taso::testing

int main(int argc, char** argv) {
  taso::testing::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    if (name == "--verbose") {
      options.verbose = true;
    } else if (name == "--trace") {
      options.trace = true;
    } else if (value == nullptr) {
      options.graphs = 0;
      break;
    } else {
      ++i;
      if (name == "--graphs")
        options.graphs = std::strtoull(value, nullptr, 10);
      else if (name == "--seed")
        options.seed = std::strtoull(value, nullptr, 10);
      else if (name == "--rules")
        options.rules = value;
      else if (name == "--faults")
        options.faults = std::strtoull(value, nullptr, 10);
      else if (name == "--expect-applied")
        options.expect_applied = std::strtod(value, nullptr);
      else
        options.graphs = 0;
    }
  }
  if (options.graphs == 0) {
    fmt::print(stderr,
               "usage: graph_fuzz [--graphs N] [--seed S] [--rules FILE] [--faults N] [--expect-applied PERCENT] "
               "[--verbose] [--trace]\n");
    return 2;
  }
  return taso::testing::run(options);
}
