#include "verifier/bounded.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <utility>

#include "operators/ring.h"
#include "support/hash.h"
#include "support/random.h"
#include "verifier/enumerate.h"
#include "verifier/polynomial.h"
#include "verifier/running_error.h"

namespace taso {
namespace {

// Numbers tried at an instance where canonical forms differ, and at one of a landmark, which is larger.
constexpr int number_trials = 24, landmark_trials = 8;
// Up to here an extent is made smaller by every step, above it by half and by one.
constexpr std::int64_t small_extent = 16;
// So many elements of a tensor's axis are printed.
constexpr std::int64_t printed_elements = 32;
// Counterexamples with more elements are shrunk by shape only.
constexpr std::size_t max_shrunk_elements = 256;
// Small instances have extents up to here.
constexpr std::int64_t covered_extent = 3;
// Instances whose extents are nowhere larger than a counterexample's are all tried where there are so many.
constexpr std::size_t max_dominated = 1024;

template <class Element>
using Tensors = std::vector<RingTensor<Element>>;

// Integer inputs (indices): 0, -1 and 1 where that exists everywhere.
void fill_integers(RingTensor<double>& tensor, const Instance& instance, Random& random) {
  std::int64_t least = 2;
  for (const TensorType& type : instance.variables)
    if (type.element == ElementType::f32)
      for (const std::int64_t extent : type.shape) least = std::min(least, extent);
  tensor.integers.resize(static_cast<std::size_t>(volume(tensor.shape)));
  for (std::int64_t& value : tensor.integers) value = static_cast<std::int64_t>(random.below(least > 1 ? 3 : 2)) - 1;
}

// Inputs of another ring with the integers of `model` and elements made by `make`.
template <class Element, class Make>
Tensors<Element> make_inputs(const Instance& instance, const Tensors<double>& model, Make make) {
  Tensors<Element> inputs;
  for (std::size_t i = 0; i < instance.variables.size(); ++i) {
    RingTensor<Element> tensor;
    tensor.shape = instance.variables[i].shape;
    tensor.integers = model[i].integers;
    if (instance.variables[i].element == ElementType::f32) {
      const auto size = static_cast<std::size_t>(volume(tensor.shape));
      tensor.elements.reserve(size);
      for (std::size_t e = 0; e < size; ++e) tensor.elements.push_back(make(i, e));
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

Tensors<double> integer_model(const Instance& instance, Random& random) {
  Tensors<double> model;
  for (const TensorType& type : instance.variables) {
    RingTensor<double> tensor;
    tensor.shape = type.shape;
    if (type.element != ElementType::f32) fill_integers(tensor, instance, random);
    model.push_back(std::move(tensor));
  }
  return model;
}

enum class Agreement : std::uint8_t { equal, different, unknown };

template <class Element, class Same>
Agreement compare(const Tensors<Element>& a, const Tensors<Element>& b, Same same, std::size_t* output = nullptr) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t e = 0; e < a[i].elements.size(); ++e)
      if (!same(a[i].elements[e], b[i].elements[e])) {
        if (output != nullptr) *output = i;
        return Agreement::different;
      }
    if (a[i].integers != b[i].integers) {
      if (output != nullptr) *output = i;
      return Agreement::different;
    }
  }
  return Agreement::equal;
}

Agreement field_agreement(const TypedInstance& typed, std::uint64_t seed) {
  for (std::uint64_t attempt = 0; attempt < 3; ++attempt) {
    Random random(seed + attempt, "field points");
    FieldRing ring(random.next());
    const Tensors<double> model = integer_model(typed.instance, random);
    const auto inputs = make_inputs<Mod61>(typed.instance, model,
                                           [&](std::size_t, std::size_t) { return Mod61::from_bits(random.next()); });
    const auto left = typed.source.run(ring, inputs);
    const auto right = typed.target.run(ring, inputs);
    if (!left || !right || !ring.status()) continue;  // an index out of range, or a divisor that is zero by accident
    return compare(*left, *right, [](Mod61 a, Mod61 b) { return a == b; });
  }
  return Agreement::unknown;
}

struct PolynomialFacts {
  bool divided = false;       // by something that is not a number
  bool divides_more = false;  // the target by something that the source does not divide by
  bool special = false;       // some result of the source is infinite or undefined: nothing is claimed there
  bool defined = false;       // some result of the source is defined
  std::string why;            // if nothing can be said
};

Agreement polynomial_agreement(const TypedInstance& typed, std::uint64_t seed, std::uint64_t* steps,
                               PolynomialFacts& facts) {
  std::string& why = facts.why;
  for (std::uint64_t attempt = 0; attempt < 3; ++attempt) {
    Random random(seed + attempt, "integer inputs");
    PolynomialRing ring(steps);
    const Tensors<double> model = integer_model(typed.instance, random);
    const auto inputs = make_inputs<PolynomialRing::Element>(typed.instance, model,
                                                             [&](std::size_t, std::size_t) { return ring.variable(); });
    const auto left = typed.source.run(ring, inputs);
    const std::size_t source_divisors = ring.divisors().size() + ring.partial_calls().size();
    const auto right = typed.target.run(ring, inputs);
    // Where there is no output element nothing can be undefined.
    const bool empty =
        !left || std::all_of(left->begin(), left->end(), [](const auto& output) { return output.elements.empty(); });
    if (!empty && ring.status() && ring.divisors().size() + ring.partial_calls().size() > source_divisors)
      facts.divides_more = true;
    if (!left || !right) {
      why = (!left ? left.error() : right.error()).to_string();
      continue;
    }
    if (!ring.status()) {
      why = ring.status().error().to_string();
      return Agreement::unknown;
    }
    const Agreement agreement =
        compare(*left, *right, [&](const PolynomialRing::Element& a, const PolynomialRing::Element& b) {
          const bool special = ring.is_special(a);
          (special ? facts.special : facts.defined) = true;
          return special || ring.equal(a, b);
        });
    if (!ring.status()) {
      why = ring.status().error().to_string();
      return Agreement::unknown;
    }
    facts.divided = facts.divided || ring.divided();
    return agreement;
  }
  return Agreement::unknown;
}

template <class Element, class Value>
Tensors<double> to_doubles(const Tensors<Element>& tensors, Value value) {
  Tensors<double> result;
  for (const RingTensor<Element>& tensor : tensors) {
    RingTensor<double> copy{tensor.shape, {}, tensor.integers};
    for (const Element& element : tensor.elements) copy.elements.push_back(value(element));
    result.push_back(std::move(copy));
  }
  return result;
}

// Both results at given numbers; empty if they agree or cannot be computed.
struct Difference {
  std::size_t output = 0;
  Tensors<double> left, right;
};
std::optional<Difference> difference(const TypedInstance& typed, const Tensors<double>& inputs) {
  const bool whole = std::all_of(inputs.begin(), inputs.end(), [](const RingTensor<double>& tensor) {
    return std::all_of(tensor.elements.begin(), tensor.elements.end(),
                       [](double value) { return value == std::floor(value) && std::abs(value) < 1e9; });
  });
  if (whole) {
    IntegerRing ring;
    const auto exact = make_inputs<IntegerRing::Element>(
        typed.instance, inputs, [&](std::size_t i, std::size_t e) { return ring.number(inputs[i].elements[e]); });
    const auto left = typed.source.run(ring, exact);
    const auto right = typed.target.run(ring, exact);
    if (left && right && ring.status()) {
      Difference result;
      if (compare(
              *left, *right, [](auto a, auto b) { return a == b; }, &result.output) == Agreement::equal)
        return std::nullopt;
      const auto value = [](const IntegerRing::Element& number) { return static_cast<double>(number); };
      result.left = to_doubles(*left, value);
      result.right = to_doubles(*right, value);
      return result;
    }
  }
  RunningErrorRing ring;
  const auto rounded = make_inputs<Rounded>(
      typed.instance, inputs, [&](std::size_t i, std::size_t e) { return ring.number(inputs[i].elements[e]); });
  const auto left = typed.source.run(ring, rounded);
  const auto right = typed.target.run(ring, rounded);
  if (!left || !right) return std::nullopt;
  Difference result;
  if (compare(
          *left, *right, [](Rounded a, Rounded b) { return !differ(a, b); }, &result.output) == Agreement::equal)
    return std::nullopt;
  const auto value = [](Rounded number) { return number.value; };
  result.left = to_doubles(*left, value);
  result.right = to_doubles(*right, value);
  return result;
}

// Whether a number may be an element of a variable: what the rule's conditions on elements leave.
bool may_be_element(const Substitution& rule, std::size_t variable, double value) {
  using Relation = Condition::Relation;
  return std::all_of(rule.conditions.begin(), rule.conditions.end(), [&](const Condition& condition) {
    if (!condition.of_elements() || condition.left.index != variable) return true;
    return condition.relation == Relation::positive      ? value > 0
           : condition.relation == Relation::nonnegative ? value >= 0
                                                         : value != 0;
  });
}

// The number, or one near it that may be an element.
double nearest_element(const Substitution& rule, std::size_t variable, double value) {
  for (const double other : {value, -value, 1 - value, 1.0})
    if (may_be_element(rule, variable, other)) return other;
  return value;
}

std::optional<Tensors<double>> find_numbers(const Substitution& rule, const TypedInstance& typed,
                                            const NumberOptions& options) {
  for (int trial = 0; trial < options.trials; ++trial) {
    Random random(options.seed + static_cast<std::uint64_t>(trial), "numbers");
    Tensors<double> model = integer_model(typed.instance, random);
    const double step = trial % 3 == 2 ? 0.5 : 1.0;
    const std::int64_t reach = trial < 4 ? 1 : 3;
    const auto small = [&] {
      const auto count = static_cast<std::uint64_t>(2 * reach + 1);
      return step * static_cast<double>(static_cast<std::int64_t>(random.below(count)) - reach);
    };
    const bool at_landmarks = !options.reals.empty() && trial % 2 == 1;
    for (std::size_t i = 0; i < model.size(); ++i)
      if (typed.instance.variables[i].element == ElementType::f32)
        for (std::int64_t e = 0; e < volume(model[i].shape); ++e)
          model[i].elements.push_back(nearest_element(
              rule, i,
              at_landmarks && random.below(2) == 0 ? options.reals[random.below(options.reals.size())] : small()));
    if (difference(typed, model)) return model;
  }
  return std::nullopt;
}

// Takes `smaller` instead of the instance if the two sides differ there, too.
bool take(const OperatorRegistry& registry, const Substitution& rule, const NumberOptions& options,
          const Instance& smaller, TypedInstance& typed, Tensors<double>& numbers) {
  TypeCheck check = check_types(registry, rule, smaller);
  if (!check.typed) return false;
  std::optional<Tensors<double>> found = find_numbers(rule, *check.typed, options);
  if (!found) return false;
  typed = std::move(*check.typed);
  numbers = std::move(*found);
  return true;
}

// Extents to put in the place of one.
std::vector<std::int64_t> smaller_extents(std::int64_t extent) {
  const bool small = extent <= small_extent;
  std::vector<std::int64_t> result;
  for (std::int64_t to = 1; to < (small ? extent : small_extent / 4); ++to) result.push_back(to);
  if (!small)
    for (const std::int64_t to : {extent / 2, extent - 1}) result.push_back(to);
  return result;
}

// One extent that several axes have, or one axis, made smaller.
bool shrink_extents(const OperatorRegistry& registry, const Substitution& rule, const NumberOptions& options,
                    TypedInstance& typed, Tensors<double>& numbers) {
  std::int64_t largest = 1;
  for (const TensorType& type : typed.instance.variables)
    for (const std::int64_t extent : type.shape) largest = std::max(largest, extent);
  for (std::int64_t from = largest; from > 1; --from) {
    const bool present =
        std::any_of(typed.instance.variables.begin(), typed.instance.variables.end(), [&](const TensorType& type) {
          return std::find(type.shape.begin(), type.shape.end(), from) != type.shape.end();
        });
    for (const std::int64_t to : present ? smaller_extents(from) : std::vector<std::int64_t>{}) {
      Instance smaller = typed.instance;
      for (TensorType& type : smaller.variables) std::replace(type.shape.begin(), type.shape.end(), from, to);
      if (take(registry, rule, options, smaller, typed, numbers)) return true;
    }
  }
  for (std::size_t v = 0; v < typed.instance.variables.size(); ++v)
    for (std::size_t axis = 0; axis < typed.instance.variables[v].shape.size(); ++axis) {
      Instance smaller = typed.instance;
      if (smaller.variables[v].shape[axis] <= 1) continue;
      --smaller.variables[v].shape[axis];
      if (take(registry, rule, options, smaller, typed, numbers)) return true;
    }
  return false;
}

// Where there are few instances whose extents are nowhere larger: the smallest of them.
bool shrink_to_least(const OperatorRegistry& registry, const Substitution& rule, const NumberOptions& options,
                     TypedInstance& typed, Tensors<double>& numbers) {
  std::vector<std::int64_t> extents;
  std::size_t count = 1;
  for (const TensorType& type : typed.instance.variables)
    for (const std::int64_t extent : type.shape) {
      extents.push_back(extent);
      count *= static_cast<std::size_t>(std::max<std::int64_t>(1, extent));
      if (count > max_dominated) return false;
    }
  // Number n stands for one of the combinations; the last is the instance itself.
  std::vector<std::pair<std::int64_t, Instance>> all;
  for (std::size_t n = 0; n + 1 < count; ++n) {
    std::size_t rest = n;
    Instance smaller = typed.instance;
    std::int64_t elements = 0;
    for (TensorType& type : smaller.variables) {
      for (std::int64_t& extent : type.shape) {
        if (extent < 1) continue;
        const auto choices = static_cast<std::size_t>(extent);
        extent = static_cast<std::int64_t>(rest % choices) + 1;
        rest /= choices;
      }
      elements += type.elements();
    }
    all.emplace_back(elements, std::move(smaller));
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return std::any_of(all.begin(), all.end(), [&](const auto& smaller) {
    return take(registry, rule, options, smaller.second, typed, numbers);
  });
}

// An attribute, or an element of a list, nearer to 0.
bool shrink_attributes(const OperatorRegistry& registry, const Substitution& rule, const NumberOptions& options,
                       TypedInstance& typed, Tensors<double>& numbers) {
  const auto nearer = [](std::int64_t value) {
    std::vector<std::int64_t> result;
    if (value != 0) result.push_back(0);
    if (value > 1) result.push_back(1);
    if (std::abs(value) > 1) result.push_back(value > 0 ? value - 1 : value + 1);
    return result;
  };
  for (std::size_t a = 0; a < typed.instance.attributes.size(); ++a) {
    if (!typed.instance.attributes[a]) continue;
    const AttributeValue value = *typed.instance.attributes[a];
    const auto tried = [&](const AttributeValue& simpler) {
      Instance smaller = typed.instance;
      smaller.attributes[a] = simpler;
      return take(registry, rule, options, smaller, typed, numbers);
    };
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      for (const std::int64_t simpler : nearer(*number))
        if (tried(simpler)) return true;
    } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
      for (std::size_t i = 0; i < list->size(); ++i)
        for (const std::int64_t simpler : nearer((*list)[i])) {
          std::vector<std::int64_t> changed = *list;
          changed[i] = simpler;
          if (tried(changed)) return true;
        }
    } else if (const auto* real = std::get_if<double>(&value)) {
      for (const double simpler : {0.0, 1.0})
        if (*real != 0.0 && *real != simpler && tried(simpler)) return true;
    }
  }
  return false;
}

// Makes the instance smaller as long as the two sides still differ somewhere. What is left cannot be made smaller by
// one of these steps.
void shrink_instance(const OperatorRegistry& registry, const Substitution& rule, const NumberOptions& options,
                     TypedInstance& typed, Tensors<double>& numbers) {
  while (shrink_extents(registry, rule, options, typed, numbers) ||
         shrink_attributes(registry, rule, options, typed, numbers) ||
         shrink_to_least(registry, rule, options, typed, numbers)) {
  }
}

// Replaces numbers by simpler ones (0, 1, -1, half) as long as the two sides still differ.
void shrink_numbers(const Substitution& rule, const TypedInstance& typed, Tensors<double>& numbers) {
  std::size_t total = 0;
  for (const auto& tensor : numbers) total += tensor.elements.size() + tensor.integers.size();
  if (total > max_shrunk_elements) return;
  const auto simpler = [](double value) {
    std::vector<double> result;
    if (value != 0) result.push_back(0);
    if (value != 0 && value != 1) result.push_back(1);
    if (std::abs(value) > 1) result.insert(result.end(), {-1, std::trunc(value / 2)});
    return result;
  };
  for (bool progress = true; progress;) {
    progress = false;
    for (std::size_t v = 0; v < numbers.size(); ++v) {
      RingTensor<double>& tensor = numbers[v];
      for (double& value : tensor.elements)
        for (const double other : simpler(value)) {
          if (!may_be_element(rule, v, other)) continue;
          const double old = std::exchange(value, other);
          if (difference(typed, numbers)) {
            progress = true;
            break;
          }
          value = old;
        }
      for (std::int64_t& index : tensor.integers) {
        if (index == 0) continue;
        const std::int64_t old = std::exchange(index, 0);
        if (difference(typed, numbers))
          progress = true;
        else
          index = old;
      }
    }
  }
}

std::string number_text(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return std::to_string(static_cast<std::int64_t>(value));
  return to_string(AttributeValue(value));
}

// Row-major with brackets: [[1, 2], [3, 4]].
std::string tensor_text(const RingTensor<double>& tensor) {
  const bool integers = tensor.elements.empty() && !tensor.integers.empty();
  std::size_t at = 0;
  const std::function<std::string(std::size_t)> write = [&](std::size_t axis) -> std::string {
    if (axis == tensor.shape.size()) {
      const std::size_t here = at++;
      return integers ? std::to_string(tensor.integers[here]) : number_text(tensor.elements[here]);
    }
    std::string text = "[";
    const std::int64_t extent = tensor.shape[axis], printed = extent > printed_elements ? printed_elements / 4 : extent;
    for (std::int64_t i = 0; i < printed; ++i) text += (i == 0 ? "" : ", ") + write(axis + 1);
    if (printed == extent) return text + "]";
    std::int64_t inner = extent - printed;
    for (std::size_t i = axis + 1; i < tensor.shape.size(); ++i) inner *= tensor.shape[i];
    at += static_cast<std::size_t>(inner);
    return text + ", and " + std::to_string(extent - printed) + " more]";
  };
  return write(0);
}

std::string variables_text(const Substitution& rule, const Instance& instance, const Tensors<double>* numbers) {
  std::string text;
  for (std::size_t i = 0; i < rule.tensor_variables.size(); ++i) {
    text += rule.tensor_variables[i] + ": " + to_string(instance.variables[i]);
    if (numbers != nullptr) text += " = " + tensor_text((*numbers)[i]);
    text += "\n";
  }
  for (std::size_t i = 0; i < rule.attribute_variables.size(); ++i)
    if (instance.attributes[i]) text += rule.attribute_variables[i] + " = " + to_string(*instance.attributes[i]) + "\n";
  return text;
}

Counterexample make_counterexample(const Substitution& rule, const TypedInstance& typed, const Tensors<double>& numbers,
                                   const Difference& found) {
  Counterexample result;
  result.variables = typed.instance.variables;
  result.attributes = typed.instance.attributes;
  for (const RingTensor<double>& tensor : numbers) {
    result.elements.push_back(tensor.elements);
    result.integers.push_back(tensor.integers);
  }
  result.output = found.output;
  result.text = variables_text(rule, typed.instance, &numbers);
  const std::string output = found.left.size() > 1 ? " output " + std::to_string(found.output) : "";
  result.text += "source" + output + " = " + tensor_text(found.left[found.output]) + "\n";
  result.text += "target" + output + " = " + tensor_text(found.right[found.output]) + "\n";
  return result;
}

// Domains that are searched for a difference before the sample: first products of groups and channels with many
// divisors, everything else as small as it can be, then small shapes with all values of attributes.
constexpr Domain search_domains[] = {
    {.bound = 1, .composite = 4, .attributes = false},
    {.bound = 1, .composite = 12, .attributes = false},
    {.bound = 2, .composite = 4, .attributes = true},
};
constexpr std::size_t search_instances = 4'000, search_steps = 80'000;

// Whether some operator has an axis that is a product, as groups times channels.
bool has_composite_axis(const OperatorRegistry& registry, const Substitution& rule) {
  for (const Pattern* pattern : {&rule.source, &rule.target})
    for (const PatternNode& node : pattern->nodes)
      if (const OperatorDefinition* definition = registry.find(node.op))
        for (const InputSpec& input : definition->inputs)
          for (const AxisSpec& axis : input.axes)
            if (axis.factors.size() > 1) return true;
  return false;
}

// An instance at which the two sides differ at the points of the field, found by solving the typing rules of both
// sides, those of the source of `order` first: the rule, or the same with its sides exchanged. The search is limited,
// so that the two orders find different instances; a domain that is too large for it is searched in several rounds,
// each with another part of its instances.
std::optional<TypedInstance> find_difference(const OperatorRegistry& registry, const Substitution& rule,
                                             const Substitution& order, std::uint64_t seed, std::size_t round,
                                             std::set<const void*>& searched, LoweredCache& cache) {
  for (const Domain& domain : search_domains) {
    if (searched.contains(&domain) || (domain.bound == 1 && !has_composite_axis(registry, rule))) continue;
    Enumeration enumeration(registry, order, cache,
                            {.domain = domain,
                             .seed = round == 0 ? seed : Hasher().add(seed).add(std::uint64_t{round}).finish().low,
                             .max_instances = search_instances,
                             .max_steps = search_steps,
                             .thin_above = search_instances});
    std::optional<TypedInstance> found;
    enumeration.run([&] {
      if (enumeration.field_agreement() != Enumeration::Field::different) return true;
      // A difference of oracles may be none of functions: numbers decide.
      TypeCheck check = check_types(registry, rule, enumeration.instance());
      if (!check.typed || !find_numbers(rule, *check.typed, {.seed = seed, .trials = number_trials, .reals = {}}))
        return true;
      found = std::move(check.typed);
      return false;
    });
    if (found) return found;
    if (enumeration.complete()) searched.insert(&domain);
  }
  return std::nullopt;
}

// The same for both orders, if they are worth it, and all rounds.
std::optional<TypedInstance> find_difference(const OperatorRegistry& registry, const Substitution& rule,
                                             const InstanceOptions& options, LoweredCache& cache,
                                             const std::optional<FirstRound>& first) {
  Substitution reversed = rule;
  std::swap(reversed.source, reversed.target);
  std::set<const void*> searched, searched_reversed;  // to their ends: no other round finds more
  const bool has_first = first && !first->refuted;
  if (has_first) searched = first->searched;
  for (std::size_t round = 0; round < options.search_rounds; ++round) {
    std::optional<TypedInstance> found;
    if (round > 0 || !has_first) found = find_difference(registry, rule, rule, options.seed, round, searched, cache);
    if (!found && options.search_both_ways && has_composite_axis(registry, rule))
      found = find_difference(registry, rule, reversed, options.seed, round, searched_reversed, cache);
    if (found) return found;
  }
  return std::nullopt;
}

// Numbers at which the two sides differ, with instance and numbers made as simple as they can be.
std::optional<Counterexample> simplest_counterexample(const OperatorRegistry& registry, const Substitution& rule,
                                                      TypedInstance typed, const NumberOptions& options) {
  std::optional<Tensors<double>> numbers = find_numbers(rule, typed, options);
  if (!numbers) return std::nullopt;
  shrink_instance(registry, rule, options, typed, *numbers);
  shrink_numbers(rule, typed, *numbers);
  const std::optional<Difference> found = difference(typed, *numbers);
  TASO_CHECK(found.has_value(), "a counterexample must replay");
  return make_counterexample(rule, typed, *numbers, *found);
}

}  // namespace

InstanceOutcome examine_instance(const OperatorRegistry& registry, const Substitution& rule, TypedInstance typed,
                                 std::uint64_t seed, std::uint64_t* steps) {
  InstanceOutcome outcome;
  PolynomialFacts facts;
  const Agreement canonical = polynomial_agreement(typed, seed, steps, facts);
  outcome.divided = facts.divided;
  outcome.divides_more = facts.divides_more;
  outcome.undefined = facts.special;
  outcome.defined = facts.defined;
  if (canonical == Agreement::equal) {
    outcome.kind = BoundedOutcome::Kind::agrees;
    return outcome;
  }
  if (canonical == Agreement::different || field_agreement(typed, seed) == Agreement::different) {
    if (std::optional<Counterexample> found =
            simplest_counterexample(registry, rule, typed, {.seed = seed, .trials = number_trials, .reals = {}})) {
      outcome.kind = BoundedOutcome::Kind::differs;
      outcome.counterexample = std::move(found);
      return outcome;
    }
    outcome.kind = BoundedOutcome::Kind::forms_differ;
    outcome.reason = "canonical forms differ, yet no numbers were found at which the two sides do, at " +
                     to_string(rule, typed.instance);
    return outcome;
  }
  outcome.out_of_steps = steps != nullptr && *steps == 0;
  outcome.reason = "no canonical form (" + (facts.why.empty() ? std::string("evaluation failed") : facts.why) +
                   ") at " + to_string(rule, typed.instance);
  return outcome;
}

FirstRound search_first_round(const OperatorRegistry& registry, const Substitution& rule,
                              const InstanceOptions& options, LoweredCache& cache) {
  FirstRound first;
  first.refuted = find_difference(registry, rule, rule, options.seed, 0, first.searched, cache).has_value();
  return first;
}

BoundedOutcome validate_bounded(const OperatorRegistry& registry, const Substitution& rule,
                                const InstanceOptions& options) {
  LoweredCache cache(registry);
  return validate_bounded(registry, rule, options, cache);
}

BoundedOutcome validate_bounded(const OperatorRegistry& registry, const Substitution& rule,
                                const InstanceOptions& options, LoweredCache& cache,
                                const std::optional<FirstRound>& first) {
  BoundedOutcome outcome;
  if (options.search) {
    std::optional<TypedInstance> found = find_difference(registry, rule, options, cache, first);
    if (found) {
      InstanceOutcome examined = examine_instance(registry, rule, std::move(*found), options.seed);
      if (examined.kind == BoundedOutcome::Kind::differs) {
        outcome.kind = examined.kind;
        outcome.counterexample = std::move(examined.counterexample);
        outcome.instances = 1;
        return outcome;
      }
    }
  }
  InstanceSet set = find_instances(registry, rule, options, cache);
  outcome.ill_typed_target = set.ill_typed_target;
  outcome.complete = set.complete;
  if (set.instances.empty()) {
    if (set.shapes_differ) {
      outcome.kind = BoundedOutcome::Kind::differs;
      Counterexample counterexample;
      counterexample.variables = set.shapes_differ->variables;
      counterexample.attributes = set.shapes_differ->attributes;
      counterexample.text = variables_text(rule, *set.shapes_differ, nullptr);
      Typer typer(registry, rule, cache);
      const auto source = Program::create(typer, false, *set.shapes_differ);
      const auto target = Program::create(typer, true, *set.shapes_differ);
      for (std::size_t i = 0; source && target && i < source->output_types().size(); ++i)
        if (source->output_types()[i] != target->output_types()[i]) {
          counterexample.output = i;
          counterexample.text += "source: " + to_string(source->output_types()[i]) + "\n" +
                                 "target: " + to_string(target->output_types()[i]) + "\n";
          break;
        }
      outcome.counterexample = std::move(counterexample);
      return outcome;
    }
    outcome.kind = BoundedOutcome::Kind::vacuous;
    outcome.reason = set.ill_typed_target > 0 ? "vacuous: the target is not well-typed at any of " +
                                                    std::to_string(set.ill_typed_target) + " instances of the source"
                                              : "vacuous: no well-typed instance within the bound";
    return outcome;
  }
  std::string undecided;
  bool defined = false;
  std::uint64_t steps = options.max_steps;
  for (const TypedInstance& typed : set.instances) {
    if (outcome.instances >= options.max_canonical && field_agreement(typed, options.seed) == Agreement::equal) {
      ++outcome.instances;
      continue;
    }
    InstanceOutcome examined = examine_instance(registry, rule, typed, options.seed, &steps);
    if (examined.out_of_steps && outcome.instances > 0) {
      // The smaller ones must do.
      outcome.complete = false;
      break;
    }
    ++outcome.instances;
    outcome.divided = outcome.divided || examined.divided;
    outcome.divides_more = outcome.divides_more || examined.divides_more;
    outcome.undefined = outcome.undefined || examined.undefined;
    defined = defined || examined.defined;
    if (examined.kind == BoundedOutcome::Kind::agrees) continue;
    if (examined.kind == BoundedOutcome::Kind::differs) {
      outcome.kind = BoundedOutcome::Kind::differs;
      outcome.counterexample = std::move(examined.counterexample);
      return outcome;
    }
    if (undecided.empty()) {
      outcome.kind = examined.kind;
      undecided = std::move(examined.reason);
    }
  }
  if (!undecided.empty()) {
    outcome.reason = undecided;
    return outcome;
  }
  if (!defined) {
    outcome.kind = BoundedOutcome::Kind::vacuous;
    outcome.reason =
        "vacuous: the source has no defined element at any of " + std::to_string(outcome.instances) + " instances";
    return outcome;
  }
  outcome.kind = BoundedOutcome::Kind::agrees;
  set.instances.erase(set.instances.begin() + static_cast<std::ptrdiff_t>(outcome.instances), set.instances.end());
  outcome.typed = std::move(set.instances);
  return outcome;
}

std::optional<Counterexample> find_counterexample(const OperatorRegistry& registry, const Substitution& rule,
                                                  const TypedInstance& typed, const NumberOptions& options) {
  // A difference of oracles may be none of functions: numbers decide.
  if (field_agreement(typed, options.seed) != Agreement::different) return std::nullopt;
  return simplest_counterexample(registry, rule, typed, options);
}

LandmarkOutcome examine_landmarks(const OperatorRegistry& registry, const Substitution& rule,
                                  const LandmarkOptions& options, LoweredCache& cache) {
  LandmarkOutcome outcome;
  Landmarks landmarks = find_landmarks(registry, rule, covered_extent);
  if (options.with_room) add_room(rule, landmarks);
  for (const TypedInstance& typed : find_landmark_instances(registry, rule, landmarks, options, cache)) {
    outcome.instances.push_back(typed.instance);
    outcome.counterexample = find_counterexample(
        registry, rule, typed, {.seed = options.seed, .trials = landmark_trials, .reals = landmarks.reals});
    if (!outcome.counterexample) continue;
    outcome.where = to_string(rule, Instance{outcome.counterexample->variables, outcome.counterexample->attributes});
    break;
  }
  return outcome;
}

Expected<bool> differs(const OperatorRegistry& registry, const Substitution& rule, const GivenInputs& given) {
  const Instance instance{given.variables, given.attributes};
  const TypeCheck check = check_types(registry, rule, instance);
  if (!check.source) return bad_input("the source is not well-typed or a condition fails");
  if (!check.target) return bad_input("the target is not well-typed");
  if (!check.typed) return true;
  return difference(*check.typed, given.inputs).has_value();
}

}  // namespace taso
