#include "tests/attack/rule_judge.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "operators/evaluate_inline.h"
#include "operators/ring.h"
#include "support/random.h"
#include "tests/verifier/draws.h"
#include "verifier/bounded.h"
#include "verifier/running_error.h"

namespace taso::testing {
namespace {

constexpr std::size_t draw_attempts = 200;
// Scalar operations of both sides of an instance at which domains are tried.
constexpr double max_domain_work = 60'000;
// Of all comparisons in numbers of one rule.
constexpr double max_numbers_work = 400'000;

// Whether a number may be an element of a variable.
bool may_be_element(const Substitution& rule, std::size_t variable, double value) {
  using Relation = Condition::Relation;
  return std::all_of(rule.conditions.begin(), rule.conditions.end(), [&](const Condition& condition) {
    if (!condition.of_elements() || condition.left.index != variable) return true;
    return condition.relation == Relation::positive      ? value > 0
           : condition.relation == Relation::nonnegative ? value >= 0
                                                         : value != 0;
  });
}

// Elements that meet the edges of domains: zeros, negative numbers, and those that the rule names.
std::vector<RingTensor<double>> edge_inputs(const Substitution& rule, const Instance& instance,
                                            const std::vector<double>& reals, Random& random, bool distinct) {
  std::vector<RingTensor<double>> inputs;
  for (std::size_t v = 0; v < instance.variables.size(); ++v) {
    const TensorType& type = instance.variables[v];
    RingTensor<double> tensor;
    tensor.shape = type.shape;
    for (std::int64_t e = 0; e < volume(type.shape); ++e) {
      if (type.element != ElementType::f32) {
        tensor.integers.push_back(0);
        continue;
      }
      static constexpr double edges[] = {0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0};
      double value = edges[random.below(std::size(edges))];
      if (!reals.empty() && random.below(4) == 0) value = reals[random.below(reals.size())];
      // Nowhere zero, and no two equal: what vanishes by accident only makes nothing undefined.
      if (distinct) value = (random.below(2) == 0 ? -1 : 1) * (0.25 + 3 * random.uniform());
      for (const double other : {-value, 1.0})
        if (!may_be_element(rule, v, value)) value = other;
      tensor.elements.push_back(value);
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

// Doubles, and whether an operation had no value, or one that no double holds: 1/(1/0) is 0 for a computer only, and
// log(exp(1000)) is infinite, and log(exp(-1000)) is not defined, for it only.
class WatchfulRing : public DoubleRing {
 public:
  [[nodiscard]] bool undefined() const { return undefined_; }
  [[nodiscard]] bool rounded_away() const { return rounded_away_; }

  double add(double a, double b) { return of_numbers(a + b, a, b); }
  double subtract(double a, double b) { return of_numbers(a - b, a, b); }
  double multiply(double a, double b) {
    if (a != 0 && b != 0 && a * b == 0) rounded_away_ = true;
    return of_numbers(a * b, a, b);
  }
  double divide(double a, double b) {
    if (b == 0)
      undefined_ = true;
    else if (a != 0 && std::isfinite(b) && a / b == 0)
      rounded_away_ = true;
    return b == 0 ? a / b : of_numbers(a / b, a, b);
  }
  double call(const FunctionDefinition& function, double x) { return of_function(function.real(x), x, x); }
  double call(const FunctionDefinition& function, double x, double y) {
    return of_function(function.real2(x, y), x, y);
  }

 private:
  // Functions are 0 or infinite for arguments that are so large since no double is nearer; pow(0, y) is not.
  static constexpr double far = 20;
  double of_numbers(double result, double a, double b) {
    if (std::isfinite(a) && std::isfinite(b) && !std::isfinite(result)) rounded_away_ = true;
    return result;
  }
  double of_function(double result, double x, double y) {
    if (!std::isfinite(x) || !std::isfinite(y)) return result;
    const bool is_far = x != 0 && std::max(std::abs(x), std::abs(y)) >= far;
    if (is_far && (std::isinf(result) || result == 0))
      rounded_away_ = true;
    else if (!std::isfinite(result))
      undefined_ = true;
    return result;
  }

  bool undefined_ = false, rounded_away_ = false;
};

enum class Definedness { defined, undefined, rounded_away };

// Whether every operation has a value. What comes after a number that no double holds is not judged.
Definedness definedness(const Program& program, const std::vector<RingTensor<double>>& inputs) {
  WatchfulRing ring;
  if (!program.run(ring, inputs).ok()) return Definedness::undefined;
  if (ring.rounded_away()) return Definedness::rounded_away;
  return ring.undefined() ? Definedness::undefined : Definedness::defined;
}

std::string text_of_instance(const Substitution& rule, const Instance& instance) {
  return text_of(rule, Draw{instance.variables, instance.attributes});
}

// Inputs at which every element of the source is defined and one of the target is not.
std::optional<std::string> undefined_target(const Substitution& rule, const TypedInstance& typed,
                                            const std::vector<double>& reals, std::uint64_t seed) {
  if (typed.source.work() + typed.target.work() > max_domain_work) return std::nullopt;
  // Where there is no element there is nothing to be defined.
  const auto is_empty = [](const TensorType& type) { return type.elements() == 0; };
  const std::vector<TensorType>& outputs = typed.source.output_types();
  if (std::any_of(outputs.begin(), outputs.end(), is_empty)) return std::nullopt;
  Random random(seed, "edges");
  for (int trial = 0; trial < 4; ++trial) {
    const std::vector<RingTensor<double>> inputs = edge_inputs(rule, typed.instance, reals, random, trial % 2 == 1);
    if (definedness(typed.source, inputs) != Definedness::defined ||
        definedness(typed.target, inputs) != Definedness::undefined)
      continue;
    std::string text =
        "the target is undefined where the source is defined, at " + text_of_instance(rule, typed.instance);
    for (std::size_t v = 0; v < inputs.size(); ++v) {
      text += "\n" + rule.tensor_variables[v] + " =";
      for (std::size_t e = 0; e < std::min<std::size_t>(inputs[v].elements.size(), 8); ++e)
        text += " " + to_string(AttributeValue(inputs[v].elements[e]));
    }
    return text;
  }
  return std::nullopt;
}

// Numbers at which the sides differ by more than rounding explains. Other comparisons begin with random elements of a
// field, where functions have all that is declared of them.
std::optional<std::string> different_numbers(const Substitution& rule, const TypedInstance& typed,
                                             const std::vector<double>& reals, std::uint64_t seed, double& work) {
  constexpr double max_trials = 600;
  const double work_of_one = 1 + typed.source.work() + typed.target.work();
  if (work_of_one > max_domain_work) return std::nullopt;
  // An instance of many elements tries many numbers at once.
  const auto trials = static_cast<std::size_t>(std::min({max_trials, 10'000 / work_of_one + 2, work / work_of_one}));
  work -= static_cast<double>(trials) * work_of_one;
  Random random(seed, "numbers");
  RunningErrorRing ring;
  for (std::size_t trial = 0; trial < trials; ++trial) {
    std::vector<RingTensor<Rounded>> inputs;
    std::string text = "the sides differ at " + text_of_instance(rule, typed.instance);
    for (std::size_t v = 0; v < typed.instance.variables.size(); ++v) {
      const TensorType& type = typed.instance.variables[v];
      RingTensor<Rounded> tensor;
      tensor.shape = type.shape;
      text += "\n" + rule.tensor_variables[v] + " =";
      for (std::int64_t e = 0; e < volume(type.shape); ++e) {
        if (type.element != ElementType::f32) {
          tensor.integers.push_back(0);
          continue;
        }
        double value = (random.below(2) == 0 ? -1 : 1) * std::pow(10.0, 12 * random.uniform() - 6);
        if (!reals.empty() && random.below(3) != 0) value = reals[random.below(reals.size())];
        for (const double other : {-value, 1.0})
          if (!may_be_element(rule, v, value)) value = other;
        tensor.elements.push_back({value, 0});
        if (e < 8) text += " " + to_string(AttributeValue(value));
      }
      inputs.push_back(std::move(tensor));
    }
    const auto left = typed.source.run(ring, inputs), right = typed.target.run(ring, inputs);
    if (!left.ok() || !right.ok()) continue;
    for (std::size_t i = 0; i < left->size(); ++i)
      for (std::size_t e = 0; e < (*left)[i].elements.size(); ++e)
        if (differ((*left)[i].elements[e], (*right)[i].elements[e])) return text;
  }
  return std::nullopt;
}

// Inputs at which the sides of a rule of class `exact` round otherwise. The class speaks of finite values.
std::optional<std::string> different_roundings(const Substitution& rule, const TypedInstance& typed,
                                               const std::vector<double>& reals, std::uint64_t seed) {
  if (typed.source.work() + typed.target.work() > max_domain_work) return std::nullopt;
  Random random(seed, "roundings");
  DoubleRing ring;
  for (int trial = 0; trial < 4; ++trial) {
    const std::vector<RingTensor<double>> inputs = edge_inputs(rule, typed.instance, reals, random, trial % 2 == 1);
    const auto left = typed.source.run(ring, inputs), right = typed.target.run(ring, inputs);
    if (!left.ok() || !right.ok()) continue;
    for (std::size_t i = 0; i < left->size(); ++i)
      for (std::size_t e = 0; e < (*left)[i].elements.size(); ++e) {
        const double a = (*left)[i].elements[e], b = (*right)[i].elements[e];
        if (std::isfinite(a) && std::isfinite(b) && a != b)
          return "the sides round differently at " + text_of_instance(rule, typed.instance) + ": " +
                 to_string(AttributeValue(a)) + " and " + to_string(AttributeValue(b));
      }
  }
  return std::nullopt;
}

// The instance with other attributes where they may be these: 0 divides nothing, 3e6 + 0.1 takes digits of
// what is added to it (but not so many that the sum has no value), and 1e300 takes all.
std::vector<TypedInstance> at_edges_of_attributes(const OperatorRegistry& registry, const Substitution& rule,
                                                  const Instance& instance, bool exact) {
  std::vector<TypedInstance> result;
  const auto add = [&](std::size_t attribute, const AttributeValue& value) {
    Instance changed = instance;
    changed.attributes[attribute] = value;
    TypeCheck check = check_types(registry, rule, changed);
    if (check.typed) result.push_back(std::move(*check.typed));
  };
  for (std::size_t a = 0; a < instance.attributes.size(); ++a) {
    if (!instance.attributes[a]) continue;
    if (std::holds_alternative<std::int64_t>(*instance.attributes[a]))
      for (const std::int64_t value : {0, -1}) add(a, value);
    if (std::holds_alternative<double>(*instance.attributes[a])) {
      for (const double value : {0.0, -0.0, -1.5, 0.1}) add(a, value);
      // Rounding is what a class speaks of; exact rules have none.
      if (exact)
        for (const double value : {3e6 + 0.1, 1e300, -1e300, 3.4e38, 1e-40}) add(a, value);
    }
  }
  return result;
}

}  // namespace

Judgement judge(const OperatorRegistry& registry, const Substitution& rule, const JudgeOptions& options,
                LoweredCache& cache) {
  Judgement judgement;
  const Landmarks landmarks = find_landmarks(registry, rule, 3);
  std::vector<TypedInstance> instances = std::move(find_instances(registry, rule,
                                                                  {.seed = options.seed,
                                                                   .max_instances = options.small_instances,
                                                                   .search = false,
                                                                   .rare = false,
                                                                   .max_candidates = 0},
                                                                  cache)
                                                       .instances);
  const LandmarkOptions effort{
      .seed = options.seed, .samples_per_landmark = 80, .max_work = 400'000, .total_work = 2'000'000};
  for (TypedInstance& typed : find_landmark_instances(registry, rule, landmarks, effort, cache))
    instances.push_back(std::move(typed));
  const std::size_t examined = std::min<std::size_t>(instances.size(), 3);
  for (std::size_t i = 0; i < examined; ++i)
    for (TypedInstance& typed :
         at_edges_of_attributes(registry, rule, instances[i].instance, rule.numeric_class == NumericClass::exact))
      instances.push_back(std::move(typed));
  std::vector<double> reals = landmarks.reals;
  reals.insert(reals.end(), options.reals.begin(), options.reals.end());
  double work = max_numbers_work;
  for (const TypedInstance& typed : instances) {
    ++judgement.instances;
    if (options.doubts_functions) {
      judgement.falsehood = different_numbers(rule, typed, reals, options.seed, work);
      if (judgement.falsehood) return judgement;
    }
    if (const auto found =
            find_counterexample(registry, rule, typed, {.seed = options.seed, .trials = 6, .reals = reals})) {
      judgement.falsehood = "the sides differ at\n" + found->text;
      return judgement;
    }
    if (rule.numeric_class == NumericClass::exact) {
      judgement.falsehood = different_roundings(rule, typed, reals, options.seed);
      if (judgement.falsehood) return judgement;
    }
    if (!options.definedness) continue;
    if (auto undefined = undefined_target(rule, typed, reals, options.seed)) {
      judgement.falsehood = std::move(undefined);
      return judgement;
    }
  }
  RuleDraws draws(registry, rule, options.seed);
  for (std::size_t i = 0; i < options.draws; ++i) {
    const std::optional<Draw> draw = draws.next(draw_attempts);
    if (!draw) break;
    const Expected<DrawnGraphs> graphs = drawn_graphs(registry, rule, *draw);
    if (!graphs) continue;
    ++judgement.instances;
    if (evaluate_at(registry, *graphs, *draw, options.seed + i) == Agreement::different) {
      judgement.falsehood = "the sides differ at " + text_of(rule, *draw);
      return judgement;
    }
  }
  return judgement;
}

}  // namespace taso::testing
