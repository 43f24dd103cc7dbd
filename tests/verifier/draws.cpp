#include "tests/verifier/draws.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace taso::testing {
namespace {

using Kind = AttributeExpression::Kind;
using Integers = std::vector<std::int64_t>;

constexpr std::size_t max_rank = 4;
constexpr int attempts_per_node = 12;
constexpr std::int64_t max_elements = 2000;
// Inputs over doubles that are tried where the field does not decide.
constexpr int number_trials = 6;

// Attribute variables in an expression; `nested` where they are elements of a list or parts of a sum.
void variables_of(const AttributeExpression& expression, bool nested,
                  std::vector<std::pair<std::uint32_t, bool>>& found) {
  if (expression.kind == Kind::variable) found.emplace_back(expression.index, nested);
  for (const AttributeExpression& operand : expression.operands)
    variables_of(operand, nested || expression.kind == Kind::list, found);
}

bool close(double a, double b) {
  if (!std::isfinite(a) || !std::isfinite(b)) return true;  // nothing is claimed there
  return std::abs(a - b) <= 1e-6 * (1 + std::max(std::abs(a), std::abs(b)));
}

// Doubles; what has lost its digits because it is so small is no number.
class NormalRing : public DoubleRing {
 public:
  static double multiply(double a, double b) { return normal(a * b); }
  static double divide(double a, double b) { return normal(a / b); }
  static double call(const FunctionDefinition& function, double x) { return normal(function.real(x)); }
  static double call(const FunctionDefinition& function, double x, double y) { return normal(function.real2(x, y)); }

 private:
  static double normal(double x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::numeric_limits<double>::quiet_NaN() : x;
  }
};

}  // namespace

std::string text_of(const Substitution& rule, const Draw& draw) {
  std::string text;
  for (std::size_t v = 0; v < draw.variables.size(); ++v)
    text += rule.tensor_variables[v] + ": " + to_string(draw.variables[v]) + "; ";
  for (std::size_t a = 0; a < draw.attributes.size(); ++a)
    if (draw.attributes[a]) text += rule.attribute_variables[a] + " = " + to_string(*draw.attributes[a]) + "; ";
  return text;
}

RuleDraws::RuleDraws(const OperatorRegistry& registry, const Substitution& rule, std::uint64_t seed)
    : registry_(registry), rule_(rule), random_(seed, "draws of " + rule.name) {
  ranks_.assign(rule.tensor_variables.size(), {0, 1, 2, 3, 4});
  integers_.assign(rule.tensor_variables.size(), false);
  uses_.resize(rule.attribute_variables.size());
  for (const auto& [name, function] : registry.functions())
    if (registry.is_total_function(name)) functions_.push_back(name);
  for (const Pattern* pattern : {&rule.source, &rule.target})
    for (const PatternNode& node : pattern->nodes) {
      const OperatorDefinition& definition = *registry.find(node.op);
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (!node.inputs[i].is_variable) continue;
        const InputSpec& input = definition.inputs[definition.variadic() ? 0 : i];
        if (input.integers()) integers_[node.inputs[i].index] = true;
        std::size_t fixed = 0;
        for (const AxisSpec& axis : input.axes) fixed += axis.kind != AxisSpec::Kind::rest ? 1U : 0U;
        const bool open = fixed < input.axes.size();
        std::erase_if(ranks_[node.inputs[i].index],
                      [&](std::size_t rank) { return open ? rank < fixed : rank != fixed; });
      }
      for (const auto& [name, expression] : node.attributes) {
        const AttributeSpec* spec = definition.find_attribute(name);
        std::vector<std::pair<std::uint32_t, bool>> found;
        variables_of(expression, false, found);
        for (const auto& [variable, nested] : found) {
          Use& use = uses_[variable];
          if (use.known || spec == nullptr) continue;
          use.known = true;
          if (nested) continue;  // an integer
          use.kind = spec->kind;
          if (spec->length && spec->length->kind == Expression::Kind::integer)
            use.length = static_cast<std::size_t>(spec->length->integer);
          if (spec->default_value)
            if (const auto* list = std::get_if<Integers>(&*spec->default_value); list != nullptr && !list->empty())
              use.usual = list->front();
        }
      }
    }
}

std::int64_t RuleDraws::between(std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(high - low + 1)));
}
bool RuleDraws::chance(int percent) { return random_.below(100) < static_cast<std::uint64_t>(percent); }
std::int64_t RuleDraws::extent() { return palette_[random_.below(palette_.size())]; }

std::size_t RuleDraws::some_rank(std::uint32_t variable) {
  const std::vector<std::size_t>& ranks = ranks_[variable];
  if (ranks.empty()) return max_rank;
  if (chance(75) && std::find(ranks.begin(), ranks.end(), common_rank_) != ranks.end()) return common_rank_;
  return ranks[random_.below(ranks.size())];
}

Bindings RuleDraws::bindings() const {
  Bindings result;
  for (std::size_t v = 0; v < draw_.variables.size(); ++v)
    result.tensors.push_back(known_[v] ? &draw_.variables[v] : nullptr);
  result.attributes = draw_.attributes;
  return result;
}

const TensorType* RuleDraws::type_of(const PatternValue& value,
                                     const std::vector<std::vector<TensorType>>& types) const {
  if (value.is_variable) return known_[value.index] ? &draw_.variables[value.index] : nullptr;
  const std::vector<TensorType>& outputs = types[value.index];
  return value.port < outputs.size() ? &outputs[value.port] : nullptr;
}

// Sizes that an operator's definition names, from an operand of known shape. Axes before the first open list of axes
// and after the last one are read, and that list if there is only one; what is not learnt is left to chance.
void RuleDraws::learn(const InputSpec& input, const Shape& shape, std::map<std::string, Integers>& sizes) {
  const auto is_open = [](const AxisSpec& axis) { return axis.kind == AxisSpec::Kind::rest; };
  const auto open = static_cast<std::size_t>(std::count_if(input.axes.begin(), input.axes.end(), is_open));
  const std::size_t fixed = input.axes.size() - open;
  if (shape.size() < fixed || (open == 0 && shape.size() != fixed)) return;
  const auto first =
      static_cast<std::size_t>(std::find_if(input.axes.begin(), input.axes.end(), is_open) - input.axes.begin());
  std::size_t last = input.axes.size();  // of the axes after the last open list
  while (last > 0 && open > 0 && !is_open(input.axes[last - 1])) --last;
  if (open == 1) {
    const std::size_t after = input.axes.size() - last;
    sizes.try_emplace(input.axes[first].factors[0].name, shape.begin() + static_cast<std::ptrdiff_t>(first),
                      shape.end() - static_cast<std::ptrdiff_t>(after));
  }
  for (std::size_t i = 0; i < input.axes.size(); ++i) {
    const AxisSpec& axis = input.axes[i];
    if (open > 0 && i >= first && i < last) continue;
    std::int64_t left = i < first ? shape[i] : shape[shape.size() - (input.axes.size() - i)];
    for (std::size_t f = 0; f < axis.factors.size(); ++f) {
      const Expression& factor = axis.factors[f];
      if (factor.kind != Expression::Kind::name) continue;
      const auto known = sizes.find(factor.name);
      std::int64_t value = left;
      if (known != sizes.end() && known->second.size() == 1) {
        value = known->second[0];
      } else if (f + 1 < axis.factors.size()) {
        Integers divisors;
        for (std::int64_t d = 1; d <= left; ++d)
          if (left % d == 0) divisors.push_back(d);
        value = divisors.empty() || chance(50) ? 1 : divisors[random_.below(divisors.size())];
      }
      sizes.try_emplace(factor.name, Integers{value});
      if (value > 0) left /= value;
    }
  }
}

Shape RuleDraws::propose_shape(std::uint32_t variable, const InputSpec& input, std::map<std::string, Integers>& sizes) {
  const std::size_t rank = some_rank(variable);
  // A shape that has been seen, changed in one axis or not at all: operands often differ in one axis.
  if (chance(40)) {
    std::vector<const Shape*> seen;
    for (const Shape& shape : shapes_)
      if (shape.size() == rank) seen.push_back(&shape);
    if (!seen.empty()) {
      Shape shape = *seen[random_.below(seen.size())];
      if (!shape.empty() && chance(60)) shape[random_.below(shape.size())] = extent();
      return shape;
    }
  }
  // The inner axes of a shape that has been seen, some of them 1: what can be repeated to it.
  if (input.axes.size() == 1 && input.axes[0].kind == AxisSpec::Kind::rest && !shapes_.empty() && chance(35)) {
    const Shape& whole = shapes_[random_.below(shapes_.size())];
    if (whole.size() >= rank) {
      Shape shape(whole.end() - static_cast<std::ptrdiff_t>(rank), whole.end());
      const bool vector = chance(50);  // one number for each channel
      for (std::size_t i = 0; i < shape.size(); ++i)
        if (vector ? i > 0 : chance(50)) shape[i] = 1;
      return shape;
    }
  }
  std::size_t fixed = 0;
  for (const AxisSpec& axis : input.axes) fixed += axis.kind != AxisSpec::Kind::rest ? 1U : 0U;
  std::size_t spare = rank > fixed ? rank - fixed : 0;
  const Shape* like = shapes_.empty() || chance(40) ? nullptr : &shapes_[random_.below(shapes_.size())];
  Shape shape;
  for (std::size_t i = 0; i < input.axes.size(); ++i) {
    const AxisSpec& axis = input.axes[i];
    if (axis.kind == AxisSpec::Kind::rest) {
      const auto known = sizes.find(axis.factors[0].name);
      const bool last = std::none_of(input.axes.begin() + static_cast<std::ptrdiff_t>(i) + 1, input.axes.end(),
                                     [](const AxisSpec& other) { return other.kind == AxisSpec::Kind::rest; });
      Integers rest(last ? spare : random_.below(spare + 1));
      for (std::size_t r = 0; r < rest.size(); ++r)  // batches as another tensor has them
        rest[r] = like != nullptr && r + shape.size() < like->size() ? (*like)[r + shape.size()] : extent();
      if (known != sizes.end()) rest = known->second;
      spare -= std::min(spare, rest.size());
      sizes.try_emplace(axis.factors[0].name, rest);
      shape.insert(shape.end(), rest.begin(), rest.end());
      continue;
    }
    std::int64_t product = 1;
    for (std::size_t f = 0; f < axis.factors.size(); ++f) {
      const Expression& factor = axis.factors[f];
      std::int64_t value = factor.kind == Expression::Kind::integer ? factor.integer : extent();
      if (factor.kind == Expression::Kind::name) {
        if (f + 1 < axis.factors.size()) value = chance(55) ? 1 : between(2, 3);  // a number of groups
        const auto known = sizes.find(factor.name);
        if (known != sizes.end() && known->second.size() == 1) value = known->second[0];
        sizes.try_emplace(factor.name, Integers{value});
      }
      product *= value;
    }
    shape.push_back(product);
  }
  return shape;
}

AttributeValue RuleDraws::propose_attribute(std::uint32_t variable, const std::vector<const TensorType*>& operands) {
  const Use& use = uses_[variable];
  switch (use.kind) {
    case AttributeKind::integer:
      return chance(50) ? between(-4, -1) : chance(30) ? between(0, 1) : extent();
    case AttributeKind::real: {
      static constexpr double values[] = {1.0, 2.0, 0.5, -1.0, 0.0, 3.0, 0.25};
      return values[random_.below(std::size(values))];
    }
    case AttributeKind::symbol:
      return SymbolValue{functions_[random_.below(functions_.size())]};
    case AttributeKind::integers:
      break;
  }
  if (use.length > 0) {
    Integers list(use.length);
    const bool equal = chance(40);
    for (std::int64_t& e : list)
      e = use.usual == 1   ? (chance(60) ? 1 : between(1, 3))
          : use.usual == 0 ? (chance(45) ? 0 : between(0, 2))
                           : between(chance(30) ? 0 : 1, 3);
    if (equal) std::fill(list.begin(), list.end(), list[0]);
    return list;
  }
  const Shape shape =
      !operands.empty() && operands[0] != nullptr ? operands[0]->shape : Shape(random_.below(max_rank + 1), 2);
  Integers list;
  switch (random_.below(7)) {
    case 0:  // a shape that occurs
    case 1:
      return shapes_.empty() ? shape : shapes_[random_.below(shapes_.size())];
    case 2:  // a permutation
      for (std::size_t i = 0; i < shape.size(); ++i) list.push_back(static_cast<std::int64_t>(i));
      for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random_.below(i)]);
      return list;
    case 3:  // some axes from the end
      for (std::size_t i = shape.size(); i > 0; --i)
        if (chance(50)) list.push_back(-static_cast<std::int64_t>(i));
      return list;
    case 4: {  // an extent in parts
      std::int64_t left = shape.empty() ? 2 : shape[random_.below(shape.size())];
      for (std::size_t parts = chance(75) ? 2 : 3; parts > 1 && left > 1; --parts) {
        list.push_back(between(1, left - 1));
        left -= list.back();
      }
      list.push_back(left);
      return list;
    }
    case 5: {  // a larger shape, or one of as many elements
      list = shape;
      if (chance(50)) {
        for (std::int64_t& e : list)
          if (e == 1 && chance(60)) e = extent();
        while (list.size() < max_rank && chance(40)) list.insert(list.begin(), extent());
        return list;
      }
      for (std::size_t i = 1; i < list.size(); ++i)
        if (chance(40)) {
          list[i] *= list[i - 1];
          list[i - 1] = 1;
        }
      if (chance(50)) std::erase(list, 1);
      return list;
    }
    default:  // small numbers, one per axis
      for (std::size_t i = 0; i < shape.size(); ++i) list.push_back(between(chance(20) ? -1 : 0, 2));
      return list;
  }
}

// Gives the variables that a node reads types and values such that it is well-typed.
bool RuleDraws::assign(const PatternNode& node, std::vector<std::vector<TensorType>>& types) {
  const OperatorDefinition& definition = *registry_.find(node.op);
  std::vector<std::uint32_t> new_tensors, new_attributes;
  for (const PatternValue& input : node.inputs)
    if (input.is_variable && !known_[input.index] &&
        std::find(new_tensors.begin(), new_tensors.end(), input.index) == new_tensors.end())
      new_tensors.push_back(input.index);
  for (const auto& [name, expression] : node.attributes) {
    std::vector<std::pair<std::uint32_t, bool>> found;
    variables_of(expression, false, found);
    for (const auto& [variable, nested] : found)
      if (!draw_.attributes[variable] &&
          std::find(new_attributes.begin(), new_attributes.end(), variable) == new_attributes.end())
        new_attributes.push_back(variable);
  }
  const int attempts = new_tensors.empty() && new_attributes.empty() ? 1 : attempts_per_node;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    for (const std::uint32_t v : new_tensors) known_[v] = false;
    for (const std::uint32_t a : new_attributes) draw_.attributes[a].reset();
    std::map<std::string, Integers> sizes;
    std::vector<const TensorType*> operands;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (const TensorType* type = type_of(node.inputs[i], types))
        if (!definition.variadic()) learn(definition.inputs[i], type->shape, sizes);
    const std::size_t shapes = shapes_.size();
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const PatternValue& input = node.inputs[i];
      if (input.is_variable && !known_[input.index]) {
        const Shape shape = propose_shape(input.index, definition.inputs[definition.variadic() ? 0 : i], sizes);
        draw_.variables[input.index] = {integers_[input.index] ? ElementType::i64 : ElementType::f32, shape, true};
        known_[input.index] = true;
        shapes_.push_back(shape);
      }
      operands.push_back(type_of(input, types));
    }
    for (const std::uint32_t a : new_attributes) draw_.attributes[a] = propose_attribute(a, operands);
    std::vector<TensorType> inputs;
    bool possible = true;
    for (const TensorType* type : operands) {
      possible = possible && type != nullptr && type->elements() <= max_elements;
      if (type != nullptr) inputs.push_back(*type);
    }
    if (possible) {
      const Expected<Attributes> given = evaluate_attributes(node, bindings(), registry_);
      if (given) {
        const Expected<Attributes> attributes = registry_.complete(node.op, *given);
        if (attributes) {
          Expected<std::vector<TensorType>> outputs = registry_.infer(node.op, *attributes, inputs);
          if (outputs) {
            for (const TensorType& type : *outputs) shapes_.push_back(type.shape);
            types.push_back(std::move(*outputs));
            return true;
          }
        }
      }
    }
    shapes_.resize(shapes);
  }
  return false;
}

bool RuleDraws::well_typed(const Pattern& pattern, std::vector<TensorType>& outputs) const {
  std::vector<std::vector<TensorType>> types;
  const Bindings values = bindings();
  for (const PatternNode& node : pattern.nodes) {
    std::vector<TensorType> inputs;
    for (const PatternValue& input : node.inputs) {
      const TensorType* type = type_of(input, types);
      if (type == nullptr || type->elements() > max_elements) return false;
      inputs.push_back(*type);
    }
    const Expected<Attributes> given = evaluate_attributes(node, values, registry_);
    if (!given) return false;
    const Expected<Attributes> attributes = registry_.complete(node.op, *given);
    if (!attributes) return false;
    Expected<std::vector<TensorType>> inferred = registry_.infer(node.op, *attributes, inputs);
    if (!inferred) return false;
    types.push_back(std::move(*inferred));
  }
  for (const PatternValue& output : pattern.outputs) {
    const TensorType* type = type_of(output, types);
    if (type == nullptr || type->elements() > max_elements) return false;
    outputs.push_back(*type);
  }
  return true;
}

std::optional<Draw> RuleDraws::attempt() {
  palette_.clear();
  for (std::int64_t n = between(1, 3); n > 0; --n) palette_.push_back(chance(8) ? between(5, 6) : between(1, 4));
  common_rank_ = static_cast<std::size_t>(between(1, 4));
  draw_ = {};
  draw_.variables.resize(rule_.tensor_variables.size());
  draw_.attributes.resize(rule_.attribute_variables.size());
  known_.assign(draw_.variables.size(), false);
  shapes_.clear();
  std::vector<std::vector<TensorType>> types;
  for (const PatternNode& node : rule_.source.nodes)
    if (!assign(node, types)) return std::nullopt;
  for (std::size_t v = 0; v < known_.size(); ++v)
    if (!known_[v]) {  // an axiom's side that is a variable
      Shape shape(some_rank(static_cast<std::uint32_t>(v)));
      for (std::int64_t& e : shape) e = extent();
      draw_.variables[v] = {integers_[v] ? ElementType::i64 : ElementType::f32, shape, true};
      known_[v] = true;
    }
  for (std::size_t a = 0; a < uses_.size(); ++a)
    if (!draw_.attributes[a]) draw_.attributes[a] = propose_attribute(static_cast<std::uint32_t>(a), {});
  const Bindings values = bindings();
  for (const Condition& condition : rule_.conditions) {
    if (condition.of_elements()) {
      draw_.elements.emplace_back(condition.left.index, condition.relation);
      continue;
    }
    const Expected<bool> result = holds(condition, values);
    if (!result || !*result) return std::nullopt;
  }
  std::vector<TensorType> target;
  if (!well_typed(rule_.target, target)) return std::nullopt;
  for (std::size_t o = 0; o < target.size(); ++o) {
    const TensorType* type = type_of(rule_.source.outputs[o], types);
    if (type == nullptr || *type != target[o] || type->elements() > max_elements) return std::nullopt;
  }
  return draw_;
}

std::optional<Draw> RuleDraws::next(std::size_t attempts) {
  for (; attempts > 0; --attempts)
    if (std::optional<Draw> draw = attempt()) return draw;
  return std::nullopt;
}

std::vector<RingTensor<double>> random_inputs(const Draw& draw, Random& random, int style) {
  std::int64_t least = 2;
  for (const TensorType& type : draw.variables)
    if (type.element == ElementType::f32)
      for (const std::int64_t e : type.shape) least = std::min(least, e);
  std::vector<RingTensor<double>> inputs;
  for (std::uint32_t v = 0; v < draw.variables.size(); ++v) {
    const TensorType& type = draw.variables[v];
    RingTensor<double> tensor;
    tensor.shape = type.shape;
    for (std::int64_t e = 0; e < type.elements(); ++e) {
      if (type.element != ElementType::f32)  // an index that exists along every axis
        tensor.integers.push_back(static_cast<std::int64_t>(random.below(least > 1 ? 3 : 2)) - 1);
      else if (style % 3 == 0)
        tensor.elements.push_back(static_cast<double>(random.below(7)) - 3);
      else if (style % 3 == 1)
        tensor.elements.push_back(0.5 * static_cast<double>(random.below(9)) - 1);
      else
        tensor.elements.push_back(random.normal());
    }
    for (const auto& [variable, relation] : draw.elements)
      for (double& value : tensor.elements) {
        if (variable != v) break;
        if (relation != Condition::Relation::nonzero) value = std::abs(value);
        if (relation != Condition::Relation::nonnegative && value == 0) value = 1;
      }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

bool differs_in_numbers(const Graph& source, const Graph& target, const OperatorRegistry& registry,
                        const std::vector<RingTensor<double>>& inputs) {
  NormalRing ring;
  const auto left = evaluate(source, registry, ring, inputs);
  const auto right = evaluate(target, registry, ring, inputs);
  if (!left || !right) return false;
  for (std::size_t o = 0; o < left->size(); ++o) {
    const auto &a = (*left)[o], &b = (*right)[o];
    if (a.integers != b.integers || a.elements.size() != b.elements.size()) return true;
    for (std::size_t e = 0; e < a.elements.size(); ++e)
      if (!close(a.elements[e], b.elements[e])) return true;
  }
  return false;
}

Expected<DrawnGraphs> drawn_graphs(const OperatorRegistry& registry, const Substitution& rule, const Draw& draw) {
  DrawnGraphs graphs;
  TASO_ASSIGN(graphs.source, instantiate(rule, rule.source, draw.variables, draw.attributes, registry));
  TASO_ASSIGN(graphs.target, instantiate(rule, rule.target, draw.variables, draw.attributes, registry));
  return graphs;
}

std::optional<DrawnGraphs> legal_graphs(const OperatorRegistry& registry, const Substitution& rule, const Draw& draw) {
  Bindings values;
  for (const TensorType& type : draw.variables) values.tensors.push_back(&type);
  values.attributes = draw.attributes;
  for (const Condition& condition : rule.conditions) {
    if (condition.of_elements()) continue;  // the elements are drawn so
    const Expected<bool> result = holds(condition, values);
    if (!result || !*result) return std::nullopt;
  }
  Expected<DrawnGraphs> graphs = drawn_graphs(registry, rule, draw);
  if (!graphs || graphs->source.outputs().size() != graphs->target.outputs().size()) return std::nullopt;
  for (std::size_t o = 0; o < graphs->source.outputs().size(); ++o)
    if (graphs->source.type(graphs->source.outputs()[o]) != graphs->target.type(graphs->target.outputs()[o]))
      return std::nullopt;
  return std::move(*graphs);
}

Agreement evaluate_at(const OperatorRegistry& registry, const DrawnGraphs& graphs, const Draw& draw,
                      std::uint64_t seed) {
  Random random(seed, "inputs");
  const std::vector<RingTensor<double>> model = random_inputs(draw, random, 0);
  std::vector<RingTensor<Mod61>> points;
  for (const RingTensor<double>& tensor : model) {
    RingTensor<Mod61> point{tensor.shape, {}, tensor.integers};
    for (std::size_t e = 0; e < tensor.elements.size(); ++e) point.elements.push_back(Mod61::from_bits(random.next()));
    points.push_back(std::move(point));
  }
  FieldRing field(random.next());
  const auto left = evaluate(graphs.source, registry, field, points);
  const auto right = evaluate(graphs.target, registry, field, points);
  const bool decided = left && right && field.status();
  bool equal = decided;
  for (std::size_t o = 0; equal && o < left->size(); ++o)
    equal = (*left)[o].elements == (*right)[o].elements && (*left)[o].integers == (*right)[o].integers;
  if (equal) return Agreement::field;
  bool evaluated = false;
  for (int trial = 0; trial < number_trials; ++trial) {
    const std::vector<RingTensor<double>> inputs = random_inputs(draw, random, trial);
    if (differs_in_numbers(graphs.source, graphs.target, registry, inputs)) return Agreement::different;
    DoubleRing ring;
    evaluated = evaluated || evaluate(graphs.source, registry, ring, inputs).ok();
  }
  return decided && evaluated ? Agreement::numbers : Agreement::undefined;
}

DrawCounts draw_rule(const OperatorRegistry& registry, const Substitution& rule, std::size_t count,
                     std::uint64_t seed) {
  DrawCounts counts;
  RuleDraws draws(registry, rule, seed);
  std::set<std::string> seen;
  while (counts.draws < count) {
    const std::optional<Draw> draw = draws.next();
    if (!draw) break;
    ++counts.draws;
    counts.distinct += seen.insert(text_of(rule, *draw)).second ? 1U : 0U;
    const Expected<DrawnGraphs> graphs = drawn_graphs(registry, rule, *draw);
    TASO_CHECK(graphs.ok(), "both sides of a draw are well-typed");
    bool grouped = false, repeated = false;
    for (const Graph* graph : {&graphs->source, &graphs->target})
      for (const NodeId id : graph->topological_order()) {
        const Node& node = graph->node(id);
        if (node.op.starts_with("conv2d"))
          grouped = grouped || graph->type(node.inputs[0]).shape[1] != graph->type(node.inputs[1]).shape[1];
        if (node.op == "broadcast") repeated = repeated || graph->type(node.inputs[0]) != node.outputs[0];
        if (node.op == "matmul")
          repeated = repeated || graph->type(node.inputs[0]).shape.size() != graph->type(node.inputs[1]).shape.size();
      }
    counts.grouped += grouped ? 1U : 0U;
    counts.broadcast += repeated ? 1U : 0U;
    switch (evaluate_at(registry, *graphs, *draw, seed + counts.draws)) {
      case Agreement::field:
        ++counts.field;
        break;
      case Agreement::numbers:
        ++counts.numbers;
        break;
      case Agreement::undefined:
        ++counts.undefined;
        break;
      case Agreement::different:
        counts.difference = text_of(rule, *draw);
        return counts;
    }
  }
  return counts;
}

}  // namespace taso::testing
