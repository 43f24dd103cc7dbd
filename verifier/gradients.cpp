#include "verifier/gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "gradients/node_adder.h"
#include "gradients/node_gradients.h"
#include "operators/evaluate.h"
#include "support/random.h"
#include "verifier/dual_ring.h"
#include "verifier/instances.h"
#include "verifier/sampler.h"

namespace taso {
namespace {

using Outcome = GradientVerdict::Kind;
using Dual = DualRing<FieldRing>;
using FieldTensor = RingTensor<Mod61>;
using DualTensor = RingTensor<Dual::Element>;

/// The application of an operator to variables, as a rule "it is itself": what instances are found of. Of a variadic
/// operator with `pieces` inputs, of one of several outputs with so many.
std::string application(const OperatorDefinition& op, std::size_t pieces) {
  std::string inputs, attributes;
  const auto separate = [](std::string& list) { list += list.empty() ? "" : ", "; };
  for (std::size_t i = 0; i < (op.variadic() ? pieces : op.inputs.size()); ++i) {
    separate(inputs);
    inputs += "x" + std::to_string(i);
  }
  for (const AttributeSpec& attribute : op.attributes) {
    separate(attributes);
    attributes += attribute.name + "=";
    if (op.coassociative && attribute.name == op.coassociative->sizes) {
      for (std::size_t i = 0; i < pieces; ++i) attributes += (i == 0 ? "[s" : ", s") + std::to_string(i);
      attributes += "]";
    } else {
      attributes += "a_" + attribute.name;
    }
  }
  const std::string term = op.name + "(" + inputs + (attributes.empty() ? "" : "; " + attributes) + ")";
  if (!op.several_outputs()) return "rule r: " + term + " => " + term + "\n";
  std::string outputs;
  for (std::size_t i = 0; i < pieces; ++i) {
    separate(outputs);
    outputs += "p." + std::to_string(i);
  }
  return "rule r: " + outputs + " => " + outputs + "\n  where p = " + term + "\n";
}

/// An application with concrete types and attributes.
struct Applied {
  std::vector<TensorType> inputs;
  Attributes attributes;  ///< Complete.
  std::string text;
};

Expected<std::vector<Applied>> instances_of(const OperatorRegistry& registry, const OperatorDefinition& op,
                                            const GradientCheckOptions& options) {
  std::vector<Applied> result;
  const bool counted = op.variadic() || op.several_outputs();
  for (std::size_t pieces = 1; pieces <= (counted ? 3 : 1); ++pieces) {
    TASO_ASSIGN(const std::vector<Substitution> rules,
                parse_rules(application(op, pieces), "gradients of " + op.name, registry));
    InstanceOptions limits;
    limits.seed = options.seed;
    limits.max_instances = options.max_instances;
    limits.search = false;
    limits.bound = options.bound;
    for (const TypedInstance& one : find_instances(registry, rules[0], limits).instances) {
      TASO_ASSIGN(const Attributes attributes,
                  evaluate_attributes(rules[0].source.nodes[0], bindings_of(one.instance), registry));
      result.push_back({one.instance.variables, attributes, to_string(rules[0], one.instance)});
    }
  }
  return result;
}

/// Whether something compares values, or calls what does.
bool compares(const LoweredBody& body) {
  using Node = LoweredNode;
  for (const LoweredStage& stage : body.stages)
    for (const Node& node : stage.nodes) {
      if (node.kind == Node::Kind::maximum || node.kind == Node::Kind::minimum) return true;
      if (node.kind == Node::Kind::call && node.function->whole != nullptr) return true;
      if (node.kind == Node::Kind::reduce &&
          (node.reduction == Node::Reduction::maximum || node.reduction == Node::Reduction::minimum))
        return true;
    }
  return false;
}

/// One application, with the gradients that the table gives it.
class Trial {
 public:
  Trial(const OperatorRegistry& registry, const GradientTable& table, const std::string& op, const Applied& applied)
      : registry_(registry), table_(table), op_(op), applied_(applied) {}

  /// Builds the gradients; verdicts on what cannot be built go to `report`.
  template <class Report>
  Status build(const Report& report) {
    TASO_ASSIGN(OperatorInstance instance,
                OperatorInstance::create(registry_, op_, applied_.attributes, applied_.inputs));
    instance_.emplace(std::move(instance));
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < applied_.inputs.size(); ++i)
      inputs.push_back({graph_.add_input("x" + std::to_string(i), applied_.inputs[i]), 0});
    NodeAdder adder(graph_, registry_);
    TASO_ASSIGN(const NodeId node, adder.add(op_, applied_.attributes, inputs));
    std::vector<std::optional<Value>> output_gradients;
    for (const TensorType& type : instance_->output_types())
      output_gradients.push_back(Value{graph_.add_input("d" + std::to_string(output_gradients.size()), type), 0});
    NodeGradients gradients(adder, registry_, table_, node, output_gradients);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const GradientEntry* entry = gradients.entry(i);
      if (entry == nullptr) continue;
      const Expected<Value> value = gradients.of(i);
      if (!value) {
        report(*entry, value.error().to_string() + " at " + applied_.text);
        continue;
      }
      graph_.add_output(*value);
      entries_.emplace_back(i, entry);
    }
    return {};
  }

  [[nodiscard]] const std::vector<std::pair<std::size_t, const GradientEntry*>>& entries() const { return entries_; }

  /// The derivative at a random point, and what an entry gives; an error where it has no value.
  struct Sides {
    Mod61 derivative;
    Expected<Mod61> given;
  };
  /// Of each entry; an error where the operator has no derivative.
  Expected<std::vector<Sides>> sides(Random& random) {
    FieldRing field(random.next(), compares(instance_->body()));
    const std::vector<FieldTensor> inputs =
        random_tensors(applied_.inputs, [&] { return field.element(random.next()); });
    const auto any = [&] { return Mod61::from_bits(random.next()); };
    const std::vector<FieldTensor> directions = random_tensors(applied_.inputs, any);
    const std::vector<FieldTensor> output_gradients = random_tensors(instance_->output_types(), any);
    std::vector<FieldTensor> all = inputs;
    all.insert(all.end(), output_gradients.begin(), output_gradients.end());
    std::vector<Sides> result;
    for (std::size_t e = 0; e < entries_.size(); ++e) {
      const std::size_t position = entries_[e].first;
      TASO_ASSIGN(const Mod61 derivative, along(field, inputs, directions, position, output_gradients));
      result.push_back({derivative, given(e, field, all, directions[position])});
    }
    return result;
  }

 private:
  template <class Draw>
  static std::vector<FieldTensor> random_tensors(const std::vector<TensorType>& types, const Draw& draw) {
    std::vector<FieldTensor> result;
    for (const TensorType& type : types) {
      FieldTensor& tensor = result.emplace_back();
      tensor.shape = type.shape;
      for (std::int64_t i = 0; i < type.elements(); ++i) tensor.elements.push_back(draw());
    }
    return result;
  }

  /// < direction, value of an entry >
  Expected<Mod61> given(std::size_t number, const FieldRing& field, const std::vector<FieldTensor>& inputs,
                        const FieldTensor& direction) const {
    Graph alone = graph_;
    alone.set_outputs({graph_.outputs()[number]});
    FieldRing own = field;
    TASO_ASSIGN(const std::vector<FieldTensor> values, evaluate(alone, registry_, own, inputs));
    TASO_RETURN_IF_ERROR(own.status());
    return product(direction, values[0]);
  }

  static Mod61 product(const FieldTensor& a, const FieldTensor& b) {
    Mod61 sum;
    for (std::size_t i = 0; i < a.elements.size(); ++i) sum += a.elements[i] * b.elements[i];
    return sum;
  }

  /// The derivative of < outputs, output gradients > where one input moves along its direction.
  Expected<Mod61> along(FieldRing& field, const std::vector<FieldTensor>& inputs,
                        const std::vector<FieldTensor>& directions, std::size_t moved,
                        const std::vector<FieldTensor>& output_gradients) {
    Dual ring(field, [&](const std::string& function) -> const std::vector<OperatorInstance>* {
      const auto found = table_.derivatives().find(function);
      return found == table_.derivatives().end() ? nullptr : &found->second.partial;
    });
    std::vector<DualTensor> duals;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      DualTensor& tensor = duals.emplace_back();
      tensor.shape = inputs[i].shape;
      for (std::size_t k = 0; k < inputs[i].elements.size(); ++k)
        tensor.elements.push_back({inputs[i].elements[k], i == moved ? directions[i].elements[k] : Mod61()});
    }
    std::vector<const DualTensor*> pointers;
    for (const DualTensor& tensor : duals) pointers.push_back(&tensor);
    TASO_ASSIGN(const std::vector<DualTensor> outputs,
                evaluate(*instance_, ring, std::span<const DualTensor* const>(pointers)));
    TASO_RETURN_IF_ERROR(ring.status());
    Mod61 sum;
    for (std::size_t o = 0; o < outputs.size(); ++o)
      for (std::size_t k = 0; k < outputs[o].elements.size(); ++k)
        sum += outputs[o].elements[k].slope * output_gradients[o].elements[k];
    return sum;
  }

  const OperatorRegistry& registry_;
  const GradientTable& table_;
  const std::string& op_;
  const Applied& applied_;
  Graph graph_;  // Inputs of the operator and gradients of its outputs; its outputs are the entries' values.
  std::optional<OperatorInstance> instance_;
  std::vector<std::pair<std::size_t, const GradientEntry*>> entries_;  // Input positions, and what counts for them.
};

/// Where values are compared, real attributes become integers as the values are, so that the order of the field is the
/// real one and attributes lie among the values; where the operator does not take those, what they were, rounded.
void draw_real_attributes(const OperatorRegistry& registry, const std::string& op, Applied& applied, Random& random) {
  const auto instance = OperatorInstance::create(registry, op, applied.attributes, applied.inputs);
  if (!instance || !compares(instance->body())) return;
  Attributes drawn = applied.attributes, rounded = applied.attributes;
  for (const auto& [name, value] : applied.attributes.entries()) {
    const auto* real = std::get_if<double>(&value);
    if (real == nullptr) continue;
    constexpr double half = 1 << (FieldRing::ordered_bits - 1);
    drawn.set(name, std::nearbyint((2 * random.uniform() - 1) * half));
    rounded.set(name, std::nearbyint(*real));
  }
  const bool possible = registry.accepts(op, drawn, applied.inputs);
  if (!(drawn == applied.attributes)) applied.text += "; " + to_string(possible ? drawn : rounded);
  applied.attributes = possible ? std::move(drawn) : std::move(rounded);
}

/// Verdicts on the entries for one operator.
class Judge {
 public:
  Judge(const OperatorRegistry& registry, const GradientTable& table, const OperatorDefinition& op,
        const OperatorGradients& gradients)
      : registry_(registry), table_(table), op_(op), entries_(gradients.entries) {
    for (const GradientEntry& entry : entries_) {
      GradientVerdict verdict;
      verdict.name = op.name + " d_" + op.inputs[entry.input].name;
      verdict.where = entry.where;
      verdict.reason = "no instance was found at which it counts";
      verdicts_.push_back(std::move(verdict));
    }
  }

  std::vector<GradientVerdict> run(const GradientCheckOptions& options) {
    if (std::any_of(op_.inputs.begin(), op_.inputs.end(), [](const InputSpec& input) { return input.integers(); })) {
      for (GradientVerdict& verdict : verdicts_) verdict.reason = "operators that read integers are not tried";
      return std::move(verdicts_);
    }
    auto instances = instances_of(registry_, op_, options);
    if (!instances) {
      for (GradientVerdict& verdict : verdicts_) verdict.reason = instances.error().to_string();
      return std::move(verdicts_);
    }
    Random random(options.seed, "gradients of " + op_.name);
    for (Applied& applied : *instances) {
      draw_real_attributes(registry_, op_.name, applied, random);
      try_at(applied, random);
    }
    return std::move(verdicts_);
  }

 private:
  /// At some points there is no derivative: the largest elements are equal.
  static constexpr int attempts = 20;

  void try_at(const Applied& applied, Random& random) {
    Trial trial(registry_, table_, op_.name, applied);
    const Status built = trial.build([&](const GradientEntry& entry, const std::string& why) { refute(entry, why); });
    if (!built || trial.entries().empty()) return;
    Error last = bad_input("");
    for (int attempt = 0; attempt < attempts; ++attempt) {
      const auto sides = trial.sides(random);
      if (sides) return compare(trial, *sides, applied);
      last = sides.error();
    }
    for (const auto& [position, entry] : trial.entries())
      if (GradientVerdict& verdict = of(*entry); verdict.instances == 0 && verdict.kind == Outcome::unknown)
        verdict.reason = last.to_string();
  }

  void compare(const Trial& trial, const std::vector<Trial::Sides>& sides, const Applied& applied) {
    for (std::size_t e = 0; e < trial.entries().size(); ++e) {
      const GradientEntry& entry = *trial.entries()[e].second;
      GradientVerdict& verdict = of(entry);
      ++verdict.instances;
      const auto& [derivative, given] = sides[e];
      if (!given)
        refute(entry, "the operator has a derivative where the entry has no value (" + given.error().to_string() +
                          ") at " + applied.text);
      else if (derivative != *given)
        refute(entry, "the derivative is " + std::to_string(derivative.value()) + ", the entry gives " +
                          std::to_string(given->value()) + " at " + applied.text);
      if (verdict.kind != Outcome::unknown) continue;
      verdict.kind = Outcome::holds;
      verdict.reason.clear();
    }
  }

  /// Keeps the first reason.
  void refute(const GradientEntry& entry, const std::string& why) {
    GradientVerdict& verdict = of(entry);
    if (verdict.kind == Outcome::refuted) return;
    verdict.kind = Outcome::refuted;
    verdict.reason = why;
  }

  GradientVerdict& of(const GradientEntry& entry) {
    return verdicts_[static_cast<std::size_t>(&entry - entries_.data())];
  }

  const OperatorRegistry& registry_;
  const GradientTable& table_;
  const OperatorDefinition& op_;
  const std::vector<GradientEntry>& entries_;
  std::vector<GradientVerdict> verdicts_;
};

// ---- derivatives of functions ----

double value_of(const FunctionDefinition& function, const std::vector<double>& point) {
  return function.arity == 1 ? function.real(point[0]) : function.real2(point[0], point[1]);
}

double difference(const FunctionDefinition& function, std::vector<double> point, std::size_t parameter, double step) {
  // Steps as they are after rounding.
  const double above = point[parameter] + step, below = point[parameter] - step;
  point[parameter] = above;
  const double value = value_of(function, point);
  point[parameter] = below;
  return (value - value_of(function, point)) / (above - below);
}

/// Two central differences extrapolated to a step of 0 (Richardson): an error of the order of step^4.
double extrapolated(const FunctionDefinition& function, const std::vector<double>& point, std::size_t parameter,
                    double step) {
  return (4 * difference(function, point, parameter, step) - difference(function, point, parameter, 2 * step)) / 3;
}

double derivative_at(const OperatorInstance& derivative, const std::vector<double>& point) {
  std::vector<RingTensor<double>> inputs;
  for (const double x : point) inputs.push_back({{}, {x}, {}});
  std::vector<const RingTensor<double>*> pointers;
  for (const RingTensor<double>& input : inputs) pointers.push_back(&input);
  DoubleRing ring;
  const auto outputs = evaluate(derivative, ring, std::span<const RingTensor<double>* const>(pointers));
  return outputs ? (*outputs)[0].elements[0] : std::nan("");
}

bool lies_in(ArgumentDomain domain, double x) {
  return domain == ArgumentDomain::all || domain == ArgumentDomain::nonzero ? true : x > 0;
}

std::vector<std::vector<double>> points_of(const FunctionDefinition& function) {
  constexpr double magnitudes[] = {0.01, 0.1, 0.3, 0.5, 0.75, 1, 1.25, 2, 3, 7.3, 20};
  std::vector<std::vector<double>> points;
  for (const double magnitude : magnitudes)
    for (const double x : {magnitude, -magnitude}) {
      if (!lies_in(function.domain, x)) continue;
      if (function.arity == 1) {
        points.push_back({x});
        continue;
      }
      for (const double y : {-2.5, -1.0, -0.3, 0.7, 2.0, 3.1}) points.push_back({x, y});
    }
  return points;
}

}  // namespace

std::vector<GradientVerdict> check_gradients(const OperatorRegistry& registry, const GradientTable& table,
                                             const std::string& op, const GradientCheckOptions& options) {
  const OperatorGradients* gradients = table.find(op);
  if (gradients == nullptr) return {};
  return Judge(registry, table, *registry.find(op), *gradients).run(options);
}

std::vector<GradientVerdict> check_derivatives(const OperatorRegistry& registry, const FunctionDerivative& derivative) {
  const FunctionDefinition& function = *registry.find_function(derivative.function);
  std::vector<GradientVerdict> verdicts;
  for (std::size_t parameter = 0; parameter < derivative.partial.size(); ++parameter) {
    GradientVerdict& verdict = verdicts.emplace_back();
    verdict.name = "derivative " + function.name;
    if (function.arity > 1) verdict.name += " by parameter " + std::to_string(parameter);
    verdict.where = derivative.where;
    verdict.reason = "differences tell nothing at all points";
    for (const std::vector<double>& point : points_of(function)) {
      const double step = 5e-4 * std::fmin(std::fabs(point[parameter]), 1);
      const double narrow = extrapolated(function, point, parameter, step);
      const double wide = extrapolated(function, point, parameter, 2 * step);
      const double scale = std::fabs(value_of(function, point)) + std::fabs(narrow);
      if (!std::isfinite(narrow) || !(std::fabs(narrow - wide) <= 1e-9 * scale)) continue;
      ++verdict.instances;
      const double given = derivative_at(derivative.partial[parameter], point);
      if (std::fabs(given - narrow) <= 1e-8 * scale) {
        if (verdict.kind == Outcome::unknown) verdict.kind = Outcome::holds, verdict.reason.clear();
        continue;
      }
      verdict.kind = Outcome::refuted;
      verdict.reason = "differences give " + fmt::format("{:.9g}, the derivative is {:.9g}", narrow, given) + " at " +
                       std::to_string(point[0]) + (point.size() > 1 ? ", " + std::to_string(point[1]) : "");
      break;
    }
  }
  return verdicts;
}

}  // namespace taso
