#include "generator/generalize.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>

#include "operators/evaluate.h"
#include "support/random.h"

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;
using Symbols = std::vector<std::optional<AttributeValue>>;

AttributeExpression literal_of(AttributeValue value) {
  AttributeExpression result;
  result.literal = std::move(value);
  return result;
}

AttributeExpression variable_of(std::size_t index) {
  AttributeExpression result;
  result.kind = Kind::variable;
  result.index = static_cast<std::uint32_t>(index);
  return result;
}

AttributeExpression dimension_of(std::size_t tensor, std::int64_t axis) {
  AttributeExpression result;
  result.kind = Kind::dimension;
  result.index = static_cast<std::uint32_t>(tensor);
  result.axis = axis;
  return result;
}

bool mentions_symbol(const AttributeExpression& expression) {
  return expression.kind == Kind::variable ||
         std::any_of(expression.operands.begin(), expression.operands.end(), mentions_symbol);
}

/// Values of an expression over the group's symbols, one per assignment of these.
std::optional<std::vector<AttributeValue>> values_of(const AttributeExpression& expression,
                                                     const std::vector<Symbols>& assignments) {
  std::vector<AttributeValue> result;
  for (const Symbols& symbols : assignments) {
    auto value = evaluate_symbolic(expression, symbols);
    if (!value) return std::nullopt;
    result.push_back(std::move(value).value());
  }
  return result;
}

/// Draws instances of a form: symbols at random, then sometimes a change that the profile does not foresee.
class Sampler {
 public:
  Sampler(Bank& bank, const Draft& draft, const std::vector<AttributeExpression>& bases, std::uint64_t seed)
      : bank_(bank), draft_(draft), bases_(bases), random_(seed, "samples") {}

  bool draw(std::vector<TensorType>& types, std::vector<std::optional<AttributeValue>>& attributes, bool& declared,
            bool only_grouped) {
    const std::uint64_t kind = only_grouped ? 4 : random_.below(8);
    declared = kind == 0;
    const bool grouped = kind >= 4;
    Symbols symbols;
    if (!draw_symbols(symbols, grouped) || !variable_types(symbols, types)) return false;
    attributes.clear();
    for (const AttributeExpression& base : bases_) {
      auto value = evaluate_symbolic(base, symbols);
      if (!value) return false;
      attributes.emplace_back(std::move(value).value());
    }
    if (declared) return true;
    if (grouped) return multiply_one(types);
    // Literals of the profile are the same in every sample otherwise, and derived values are always as derived.
    for (std::size_t i = 0; i < bases_.size(); ++i) {
      const bool derived =
          bases_[i].kind == Kind::variable && bank_.group().symbols[bases_[i].index].definition.has_value();
      if ((derived || !mentions_symbol(bases_[i])) && random_.below(2) == 0) change(*attributes[i]);
    }
    for (std::uint64_t i = 0, count = random_.below(3); i < count; ++i) mutate(types, attributes);
    return true;
  }

  /// Random values of all symbols; false if a derived extent is not positive.
  bool draw_symbols(Symbols& symbols, bool grouped = false) {
    symbols.clear();
    for (const ProfileSymbol& symbol : bank_.group().symbols) {
      if (symbol.definition) {
        auto value = evaluate_symbolic(*symbol.definition, symbols);
        if (!value) return false;
        if (symbol.is_extent && std::get<std::int64_t>(*value) < 1) return false;
        symbols.emplace_back(std::move(value).value());
      } else {
        symbols.emplace_back(random_value(symbol));
        // Extents that often divide each other, so that one that is multiplied alone may make groups.
        if (grouped && symbol.is_extent && symbol.low <= 1)
          symbols.back() = std::array<std::int64_t, 5>{1, 2, 3, 4, 6}[random_.below(symbol.high < 4 ? 3 : 5)];
      }
    }
    return true;
  }

  /// The types of the draft's variables; false if one is ill-typed.
  bool variable_types(const Symbols& symbols, std::vector<TensorType>& types) {
    types.clear();
    for (const ClassId id : draft_.variables) {
      auto type = type_of(id, symbols);
      if (!type) return false;
      types.push_back(std::move(*type));
    }
    return true;
  }

 private:
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(high - low + 1)));
  }

  AttributeValue random_value(const ProfileSymbol& symbol) {
    const AttributeValue& example = symbol.values[random_.below(symbol.values.size())];
    if (std::holds_alternative<std::int64_t>(example)) return between(symbol.low, symbol.high);
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&example)) {
      std::vector<std::int64_t> result;
      for (std::size_t i = 0; i < list->size(); ++i) result.push_back(between(symbol.low, symbol.high));
      return result;
    }
    if (std::holds_alternative<SymbolValue>(example))
      return SymbolValue{symbol.choices[random_.below(symbol.choices.size())]};
    return example;
  }

  /// The type of a class's representative under other values of the symbols.
  std::optional<TensorType> type_of(ClassId id, const Symbols& symbols) {
    const ValueClass& value = bank_.classes()[id];
    if (value.is_input) {
      auto shape = evaluate_symbolic(bank_.group().inputs[value.index].shape, symbols);
      if (!shape) return std::nullopt;
      TensorType type{ElementType::f32, std::get<std::vector<std::int64_t>>(*shape), true};
      for (const std::int64_t extent : type.shape)
        if (extent < 1) return std::nullopt;
      return type;
    }
    const Term& term = bank_.terms()[value.index];
    std::vector<TensorType> arguments;
    for (const ClassId argument : term.inputs()) {
      auto type = type_of(argument, symbols);
      if (!type) return std::nullopt;
      arguments.push_back(std::move(*type));
    }
    const ProfileOperator& op = bank_.group().operators[term.op];
    Attributes attributes;
    for (const auto& [name, expression] : op.attributes) {
      auto number = evaluate_symbolic(expression, symbols);
      if (!number) return std::nullopt;
      attributes.set(name, std::move(number).value());
    }
    auto outputs = bank_.registry().infer(op.op, attributes, arguments);
    if (!outputs || value.port >= outputs->size()) return std::nullopt;
    return (*outputs)[value.port];
  }

  /// Multiplies one extent of one tensor, or of all tensors of its shape; all extents and factors take their turn.
  bool multiply_one(std::vector<TensorType>& types) {
    std::size_t axes = 0;
    for (const TensorType& type : types) axes += type.shape.size();
    if (axes == 0) return false;
    std::size_t axis = turn_ / 6 % axes;
    const auto factor = static_cast<std::int64_t>(2 + turn_ % 3);
    const bool alike = turn_ / 3 % 2 == 1;
    ++turn_;
    std::size_t chosen = 0;
    while (axis >= types[chosen].shape.size()) axis -= types[chosen++].shape.size();
    const Shape before = types[chosen].shape;
    for (std::size_t i = 0; i < types.size(); ++i)
      if (i == chosen || (alike && types[i].shape == before)) types[i].shape[axis] *= factor;
    return true;
  }

  void mutate(std::vector<TensorType>& types, std::vector<std::optional<AttributeValue>>& attributes) {
    const std::uint64_t kind = random_.below(attributes.empty() ? 4 : 6);
    if (kind <= 1) {  // one extent of one tensor, or of all tensors that have the same one there
      Shape& shape = types[random_.below(types.size())].shape;
      if (shape.empty()) return;
      const std::size_t axis = random_.below(shape.size());
      const std::int64_t old = shape[axis];
      const std::int64_t fresh = kind == 0 ? between(1, 4) : old * between(2, 3);
      if (random_.below(2) == 0) {
        shape[axis] = fresh;
      } else {
        for (TensorType& type : types)
          for (std::int64_t& extent : type.shape)
            if (extent == old) extent = fresh;
      }
    } else if (kind == 2) {  // another rank: an outer axis more or less, for one tensor or for all
      const bool all = random_.below(3) != 0;
      const bool more = random_.below(2) == 0;
      const std::int64_t extent = between(1, 3);
      const std::size_t only = random_.below(types.size());
      for (std::size_t i = 0; i < types.size(); ++i) {
        Shape& shape = types[i].shape;
        if (!all && i != only) continue;
        if (more && shape.size() < 5)
          shape.insert(shape.begin(), extent);
        else if (!more && !shape.empty())
          shape.erase(shape.begin());
      }
    } else if (kind == 3) {  // grouped channels, divisible extents
      for (TensorType& type : types)
        for (std::int64_t& extent : type.shape)
          if (random_.below(3) == 0 && extent < 4) extent *= 2;
    } else {
      change(*attributes[random_.below(attributes.size())]);
    }
  }

  void change(AttributeValue& value) {
    if (auto* integer = std::get_if<std::int64_t>(&value)) {
      *integer = between(*integer < 0 ? -4 : 0, *integer < 0 ? -1 : 4);
    } else if (auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
      if (list->empty()) return;
      const std::uint64_t kind = random_.below(3);
      std::int64_t& one = (*list)[random_.below(list->size())];
      std::int64_t& other = (*list)[random_.below(list->size())];
      if (kind == 0) {
        one = between(0, 3);
      } else if (kind == 1) {
        // The same sum: paddings that move an image without changing its extents.
        if (one < 1) return;
        --one;
        ++other;
      } else {
        // A permutation stays one.
        std::swap(one, other);
      }
    } else if (auto* symbol = std::get_if<SymbolValue>(&value)) {
      std::vector<std::string> functions;
      for (const auto& [name, definition] : bank_.registry().functions())
        if (definition.arity == 1) functions.push_back(name);
      symbol->name = functions[random_.below(functions.size())];
    } else if (auto* real = std::get_if<double>(&value)) {
      *real = static_cast<double>(between(-4, 4)) / 2;
    }
  }

  Bank& bank_;
  const Draft& draft_;
  const std::vector<AttributeExpression>& bases_;
  Random random_;
  std::size_t turn_ = 0;
};

}  // namespace

/// A literal attribute value that may become a variable, wherever it stands.
struct Generalizer::Group {
  std::string attribute;
  AttributeValue value;
  bool operator==(const Group&) const = default;
};

/// A form of the rule under test.
struct Generalizer::Form {
  GeneralRule rule;
  std::vector<AttributeExpression> bases;  ///< Per attribute variable, over the group's symbols.
  /// Values of the symbols: the worlds, and more at random. Two sizes are one if they are equal in all of these.
  std::vector<Symbols> assignments;
  std::vector<std::vector<AttributeValue>> values;  ///< Per attribute variable and assignment.
  std::vector<std::vector<Shape>> shapes;           ///< Per tensor variable and assignment.
};

/// A concrete instance of a form.
struct Generalizer::Sample {
  std::vector<TensorType> types;
  std::vector<std::optional<AttributeValue>> attributes;
  bool declared = true;  ///< As the profile declares: not mutated.
};

/// Literal attributes of the source, and where the target repeats them.
std::vector<Generalizer::Group> Generalizer::literal_groups(const Draft& draft) const {
  constexpr std::size_t max_groups = 5;
  std::vector<Group> groups;
  for (const DraftNode& node : draft.source.nodes)
    for (const auto& [name, expression] : bank_.group().operators[node.op].attributes) {
      if (mentions_symbol(expression)) continue;
      const auto value = values_of(expression, {bank_.group().world(0)});
      if (!value) continue;
      Group group{name, value->front()};
      if (groups.size() < max_groups && std::find(groups.begin(), groups.end(), group) == groups.end())
        groups.push_back(std::move(group));
    }
  return groups;
}

/// An attribute of the target in terms of what the source binds. `near` are the tensor variables below the node, in
/// order: extents are looked for there first.
std::optional<AttributeExpression> Generalizer::express(const AttributeExpression& expression, const Form& form,
                                                        const std::vector<std::uint32_t>& near,
                                                        std::size_t bound_variables) const {
  const ProfileGroup& group = bank_.group();
  const auto values = values_of(expression, form.assignments);
  if (!values) return std::nullopt;
  if (!mentions_symbol(expression)) return literal_of(values->front());
  for (std::size_t i = 0; i < form.values.size(); ++i)
    if (form.values[i] == *values && mentions_symbol(form.bases[i])) return variable_of(i);

  std::vector<std::uint32_t> order = near;
  for (std::uint32_t i = 0; i < bound_variables; ++i)
    if (std::find(order.begin(), order.end(), i) == order.end()) order.push_back(i);

  // The axis of a tensor that has this extent always; the first `count` tensors of the order are looked at.
  auto find_extent = [&](const std::vector<AttributeValue>& wanted,
                         std::size_t count) -> std::optional<AttributeExpression> {
    for (std::size_t position = 0; position < count; ++position) {
      const std::vector<Shape>& shapes = form.shapes[order[position]];
      const auto rank = static_cast<std::int64_t>(shapes[0].size());
      for (std::int64_t axis = -1; axis >= -rank; --axis) {
        bool equal = true;
        for (std::size_t i = 0; i < wanted.size(); ++i)
          equal = equal && shapes[i].size() == shapes[0].size() &&
                  shapes[i][static_cast<std::size_t>(rank + axis)] == std::get<std::int64_t>(wanted[i]);
        if (!equal) continue;
        AttributeExpression extent = dimension_of(order[position], axis);
        // The axis may be one that the source leaves open.
        for (std::size_t i = 0; i < form.bases.size(); ++i)
          if (!mentions_symbol(form.bases[i]) && form.values[i].front() == AttributeValue(axis)) {
            extent.axis = 0;
            extent.operands = {variable_of(i)};
            break;
          }
        return extent;
      }
    }
    return std::nullopt;
  };
  auto whole_shape = [&](std::size_t count) -> std::optional<AttributeExpression> {
    for (std::size_t position = 0; position < count; ++position) {
      const std::vector<Shape>& shapes = form.shapes[order[position]];
      bool equal = !shapes[0].empty();
      for (std::size_t i = 0; i < values->size(); ++i)
        equal = equal && shapes[i] == std::get<std::vector<std::int64_t>>((*values)[i]);
      if (!equal) continue;
      AttributeExpression list;
      list.kind = Kind::list;
      for (auto axis = -static_cast<std::int64_t>(shapes[0].size()); axis < 0; ++axis)
        list.operands.push_back(dimension_of(order[position], axis));
      return list;
    }
    return std::nullopt;
  };
  if (std::holds_alternative<std::int64_t>(values->front())) {
    if (auto extent = find_extent(*values, order.size())) return extent;
  } else if (std::holds_alternative<std::vector<std::int64_t>>(values->front())) {
    if (auto shape = whole_shape(near.size())) return shape;
    // Element by element from the tensors below, if these have them all.
    bool below = expression.kind == Kind::list;
    AttributeExpression list = expression;
    for (AttributeExpression& operand : list.operands) {
      if (!below) break;
      const auto wanted = values_of(operand, form.assignments);
      if (!wanted) return std::nullopt;
      if (!mentions_symbol(operand)) continue;
      auto extent = find_extent(*wanted, near.size());
      below = extent.has_value();
      if (below) operand = std::move(*extent);
    }
    if (below) return list;
    if (auto shape = whole_shape(order.size())) return shape;
  }
  if (expression.kind == Kind::variable) {
    const ProfileSymbol& symbol = group.symbols[expression.index];
    if (symbol.definition) return express(*symbol.definition, form, near, bound_variables);
    return std::nullopt;
  }
  AttributeExpression result = expression;
  for (AttributeExpression& operand : result.operands) {
    auto part = express(operand, form, near, bound_variables);
    if (!part) return std::nullopt;
    operand = std::move(*part);
  }
  return result;
}

std::optional<Generalizer::Form> Generalizer::make_form(const Draft& draft, const std::vector<Group>& general) {
  const ProfileGroup& group = bank_.group();
  Form form;
  Substitution& rule = form.rule.rule;
  rule.name = "candidate";
  form.shapes.resize(draft.variables.size());
  constexpr int probes = 12;
  Sampler sampler(bank_, draft, form.bases, options_.seed);
  for (std::size_t i = 0; i < group.worlds + probes; ++i) {
    Symbols symbols;
    std::vector<TensorType> types;
    if (i < group.worlds)
      symbols = group.world(i);
    else if (!sampler.draw_symbols(symbols))
      continue;
    if (!sampler.variable_types(symbols, types)) continue;
    form.assignments.push_back(std::move(symbols));
    for (std::size_t variable = 0; variable < types.size(); ++variable)
      form.shapes[variable].push_back(types[variable].shape);
  }
  if (form.assignments.empty()) return std::nullopt;
  std::set<std::string> names;
  int fresh = 0;
  for (const ClassId id : draft.variables) {
    const ValueClass& value = bank_.classes()[id];
    std::string name =
        value.is_input ? group.inputs[value.index].name : (value.is_weight ? "v" : "u") + std::to_string(++fresh);
    while (!names.insert(name).second || bank_.registry().is_function(name)) name += "_";
    rule.tensor_variables.push_back(name);
    form.rule.is_weight.push_back(value.is_weight);
    form.rule.example_types.push_back({ElementType::f32, bank_.instances().shapes(value.type)[0], true});
  }

  auto add_variable = [&](const std::string& wanted, const AttributeExpression& base,
                          std::vector<AttributeValue> values) {
    std::string name = wanted;
    for (int suffix = 2; names.contains(name) || bank_.registry().is_function(name); ++suffix)
      name = wanted + std::to_string(suffix);
    names.insert(name);
    rule.attribute_variables.push_back(name);
    form.bases.push_back(base);
    form.values.push_back(std::move(values));
    return variable_of(form.bases.size() - 1);
  };

  // An attribute of the source: a variable, or a list of variables where some elements are given as literals. `name` is
  // used for what is not a symbol.
  std::function<std::optional<AttributeExpression>(const AttributeExpression&, const std::string&)> bind =
      [&](const AttributeExpression& expression, const std::string& name) -> std::optional<AttributeExpression> {
    auto values = values_of(expression, form.assignments);
    if (!values) return std::nullopt;
    if (!mentions_symbol(expression)) return literal_of(values->front());
    const auto given = [](const AttributeExpression& element) { return !mentions_symbol(element); };
    if (expression.kind == Kind::list && std::any_of(expression.operands.begin(), expression.operands.end(), given)) {
      AttributeExpression list = expression;
      for (AttributeExpression& element : list.operands) {
        auto bound = bind(element, name);
        if (!bound) return std::nullopt;
        element = std::move(*bound);
      }
      return list;
    }
    for (std::size_t known = 0; known < form.values.size(); ++known)
      if (form.values[known] == *values && mentions_symbol(form.bases[known])) return variable_of(known);
    const std::string& wanted = expression.kind == Kind::variable ? group.symbols[expression.index].name : name;
    return add_variable(wanted, expression, std::move(*values));
  };

  std::map<std::size_t, std::size_t> variable_of_group;
  auto group_index = [&](const std::string& name, const AttributeValue& value) -> std::optional<std::size_t> {
    const auto it = std::find(general.begin(), general.end(), Group{name, value});
    if (it == general.end()) return std::nullopt;
    return static_cast<std::size_t>(it - general.begin());
  };

  std::size_t bound_variables = 0;  // tensor variables that occur in the source
  auto note = [&](const DraftValue& value) {
    if (value.is_variable) bound_variables = std::max<std::size_t>(bound_variables, value.index + 1u);
  };
  for (const DraftNode& node : draft.source.nodes)
    for (const DraftValue& input : node.inputs) note(input);

  auto pattern_value = [](const DraftValue& value) { return PatternValue{value.is_variable, value.index, value.port}; };
  for (const bool is_source : {true, false}) {
    const DraftSide& side = is_source ? draft.source : draft.target;
    Pattern& pattern = is_source ? rule.source : rule.target;
    std::vector<std::vector<std::uint32_t>> below;  // tensor variables below each node
    for (const DraftNode& node : side.nodes) {
      PatternNode result;
      result.op = group.operators[node.op].op;
      std::vector<std::uint32_t> near;
      auto see = [&](std::uint32_t tensor) {
        if (std::find(near.begin(), near.end(), tensor) == near.end()) near.push_back(tensor);
      };
      for (const DraftValue& input : node.inputs) {
        result.inputs.push_back(pattern_value(input));
        if (input.is_variable)
          see(input.index);
        else
          for (const std::uint32_t tensor : below[input.index]) see(tensor);
      }
      for (const auto& [name, expression] : group.operators[node.op].attributes) {
        const auto values = values_of(expression, form.assignments);
        if (!values) return std::nullopt;
        AttributeExpression attribute;
        if (!mentions_symbol(expression)) {
          attribute = literal_of(values->front());
          if (const auto index = group_index(name, values->front())) {
            const auto it = variable_of_group.find(*index);
            if (it != variable_of_group.end()) {
              attribute = variable_of(it->second);
            } else if (is_source) {
              attribute = add_variable(name, expression, *values);
              variable_of_group[*index] = attribute.index;
            }
          }
        } else if (is_source) {
          auto bound = bind(expression, name);
          if (!bound) return std::nullopt;
          attribute = std::move(*bound);
        } else {
          auto expressed = express(expression, form, near, bound_variables);
          if (!expressed) return std::nullopt;
          attribute = std::move(*expressed);
        }
        result.attributes.emplace_back(name, std::move(attribute));
      }
      below.push_back(std::move(near));
      pattern.nodes.push_back(std::move(result));
    }
    for (const DraftValue& output : side.outputs) pattern.outputs.push_back(pattern_value(output));
  }
  for (const std::vector<AttributeValue>& values : form.values) form.rule.example_attributes.emplace_back(values[0]);
  form.rule.source_ops = draft.source.ops;
  form.rule.target_ops = draft.target.ops;
  form.rule.source_weight_ops = draft.source.weight_ops;
  form.rule.target_weight_ops = draft.target.weight_ops;
  return form;
}

namespace {

enum class Outcome : std::uint8_t { ill_typed, equal, different };

bool is_small(const Graph& graph, std::int64_t max_elements) {
  for (const NodeId id : graph.topological_order())
    for (const TensorType& type : graph.node(id).outputs)
      if (!type.known || type.elements() > max_elements) return false;
  return true;
}

/// Whether an operator reads an axis that it takes for a pair of axes: how many groups there are follows from extents.
bool may_have_groups(const Substitution& rule, const OperatorRegistry& registry) {
  for (const Pattern* side : {&rule.source, &rule.target})
    for (const PatternNode& node : side->nodes)
      for (const InputSpec& input : registry.find(node.op)->inputs)
        for (const AxisSpec& axis : input.axes)
          if (axis.factors.size() > 1) return true;
  return false;
}

/// Compares the two sides at one instance.
Outcome compare(const Substitution& rule, const std::vector<TensorType>& types,
                const std::vector<std::optional<AttributeValue>>& attributes, const OperatorRegistry& registry,
                std::uint64_t seed, std::int64_t max_elements) {
  auto source = instantiate(rule, rule.source, types, attributes, registry);
  if (!source || !is_small(*source, max_elements)) return Outcome::ill_typed;
  auto target = instantiate(rule, rule.target, types, attributes, registry);
  if (!target || !is_small(*target, max_elements)) return Outcome::ill_typed;
  for (std::size_t i = 0; i < source->outputs().size(); ++i)
    if (source->type(source->outputs()[i]) != target->type(target->outputs()[i])) return Outcome::ill_typed;
  std::vector<RingTensor<Mod61>> inputs;
  Random random(seed, "elements");
  for (const TensorType& type : types) {
    RingTensor<Mod61> tensor;
    tensor.shape = type.shape;
    tensor.elements.resize(static_cast<std::size_t>(type.elements()));
    for (Mod61& element : tensor.elements) element = Mod61::from_bits(random.next());
    inputs.push_back(std::move(tensor));
  }
  FieldRing ring(seed);
  auto left = evaluate(*source, registry, ring, inputs);
  if (!left || !ring.status()) return Outcome::ill_typed;
  auto right = evaluate(*target, registry, ring, inputs);
  if (!right || !ring.status()) return Outcome::different;  // the target divides by zero where the source does not
  for (std::size_t i = 0; i < left->size(); ++i)
    if ((*left)[i].elements != (*right)[i].elements) return Outcome::different;
  return Outcome::equal;
}

}  // namespace

/// Tests a form and adds conditions; false if it is wrong even where the profile declares it, or untestable.
bool Generalizer::test(const Draft& draft, Form& form, const std::vector<Counterexample>& failures) {
  struct Tested {
    Sample sample;
    bool equal;
  };
  std::vector<Tested> tested;
  Sampler sampler(bank_, draft, form.bases, options_.seed);
  int declared_equal = 0, different = 0;
  const bool grouped = may_have_groups(form.rule.rule, bank_.registry());
  for (int attempt = 0; attempt < options_.attempts; ++attempt) {
    Sample sample;
    // Groups are rare among the well-typed: where there may be some, all attempts go on looking for them.
    const bool enough = static_cast<int>(tested.size()) >= options_.enough;
    if (enough && !grouped) break;
    if (!sampler.draw(sample.types, sample.attributes, sample.declared, enough)) continue;
    const Outcome outcome = compare(form.rule.rule, sample.types, sample.attributes, bank_.registry(),
                                    options_.seed + static_cast<std::uint64_t>(attempt), options_.max_elements);
    if (outcome == Outcome::ill_typed) continue;
    const bool equal = outcome == Outcome::equal;
    if (equal && sample.declared) ++declared_equal;
    if (!equal && ++different > 40 && declared_equal == 0) return false;
    tested.push_back({std::move(sample), equal});
  }
  if (declared_equal < 3) return false;
  for (const Counterexample& failure : failures)
    tested.push_back({{failure.variables, failure.attributes, false}, false});
  std::vector<const Sample*> good, bad;
  for (const Tested& one : tested) (one.equal ? good : bad).push_back(&one.sample);
  for (const Sample* sample : bad)
    if (sample->declared) return false;

  // Atoms that hold in every world; an atom about an axis or variable that a sample lacks is false there.
  std::vector<Condition> atoms;
  const std::size_t worlds = form.assignments.size();
  auto extent = [&](std::size_t tensor, std::int64_t axis, std::size_t world) {
    const Shape& shape = form.shapes[tensor][world];
    return shape[shape.size() - static_cast<std::size_t>(-axis)];
  };
  for (std::size_t u = 0; u < form.shapes.size(); ++u) {
    const auto rank = static_cast<std::int64_t>(form.shapes[u][0].size());
    for (std::int64_t i = -1; i >= -rank; --i) {
      for (std::size_t v = u + 1; v < form.shapes.size(); ++v) {
        const auto other_rank = static_cast<std::int64_t>(form.shapes[v][0].size());
        for (std::int64_t j = -1; j >= -other_rank; --j) {
          bool equal = true, one = true;
          for (std::size_t world = 0; world < worlds; ++world) {
            equal = equal && extent(u, i, world) == extent(v, j, world);
            one = one && extent(u, i, world) == 1;
          }
          if (equal && !one) atoms.push_back({Condition::Relation::equal, dimension_of(u, i), dimension_of(v, j)});
        }
      }
      bool one = true;
      for (std::size_t world = 0; world < worlds; ++world) one = one && extent(u, i, world) == 1;
      if (one) atoms.push_back({Condition::Relation::equal, dimension_of(u, i), literal_of(std::int64_t{1})});
    }
    AttributeExpression rank_of;
    rank_of.kind = Kind::rank;
    rank_of.index = static_cast<std::uint32_t>(u);
    atoms.push_back({Condition::Relation::equal, rank_of, literal_of(rank)});
  }
  // An attribute in terms of extents, where the profile says so.
  Form bare = form;
  for (std::size_t i = 0; i < form.bases.size(); ++i)
    if (mentions_symbol(form.bases[i])) bare.values[i].clear();
  for (std::size_t i = 0; i < form.bases.size(); ++i) {
    if (!mentions_symbol(form.bases[i])) continue;
    if (auto definition = express(form.bases[i], bare, {}, form.shapes.size()))
      atoms.push_back({Condition::Relation::equal, variable_of(i), std::move(*definition)});
  }
  auto satisfied = [&](const Condition& atom, const Sample& sample) {
    Bindings bindings;
    for (const TensorType& type : sample.types) bindings.tensors.push_back(&type);
    bindings.attributes = sample.attributes;
    auto result = holds(atom, bindings);
    return result.ok() && *result;
  };
  std::erase_if(atoms, [&](const Condition& atom) {
    return std::any_of(good.begin(), good.end(),
                       [&](const Sample* sample) { return sample->declared && !satisfied(atom, *sample); });
  });
  // Greedy: the atom that excludes most failures, and among equals keeps most successes.
  while (!bad.empty()) {
    const Condition* best = nullptr;
    std::size_t best_excluded = 0, best_kept = 0;
    for (const Condition& atom : atoms) {
      std::size_t excluded = 0, kept = 0;
      for (const Sample* sample : bad) excluded += satisfied(atom, *sample) ? 0 : 1;
      for (const Sample* sample : good) kept += satisfied(atom, *sample) ? 1 : 0;
      if (excluded > best_excluded || (excluded == best_excluded && excluded > 0 && kept > best_kept)) {
        best = &atom;
        best_excluded = excluded;
        best_kept = kept;
      }
    }
    if (best == nullptr || form.rule.rule.conditions.size() >= 3) return false;
    form.rule.rule.conditions.push_back(*best);
    const Condition chosen = *best;
    std::erase_if(bad, [&](const Sample* sample) { return !satisfied(chosen, *sample); });
    std::erase_if(good, [&](const Sample* sample) { return !satisfied(chosen, *sample); });
  }
  for (Condition& atom : atoms) {
    const auto& chosen = form.rule.rule.conditions;
    if (std::find(chosen.begin(), chosen.end(), atom) == chosen.end() &&
        std::all_of(good.begin(), good.end(), [&](const Sample* sample) { return satisfied(atom, *sample); }))
      form.rule.implied.push_back(std::move(atom));
  }
  return true;
}

std::optional<GeneralRule> Generalizer::literal_form(const Draft& draft) {
  auto form = make_form(draft, {});
  if (!form) return std::nullopt;
  return std::move(form->rule);
}

std::optional<GeneralRule> Generalizer::refine(const Draft& draft, const GeneralRule& form,
                                               const std::vector<Counterexample>& failures) {
  const std::vector<Group> groups = literal_groups(draft);
  std::vector<Group> general;
  for (std::size_t i = 0; i < groups.size(); ++i)
    if ((form.generalized >> i & 1u) != 0) general.push_back(groups[i]);
  auto again = make_form(draft, general);
  if (!again || !test(draft, *again, failures)) return std::nullopt;
  again->rule.generalized = form.generalized;
  return std::move(again->rule);
}

std::vector<GeneralRule> Generalizer::general_forms(const Draft& draft) {
  const std::vector<Group> groups = literal_groups(draft);
  // All subsets, larger first.
  std::vector<std::uint32_t> subsets;
  for (std::uint32_t subset = 0; subset < (1u << groups.size()); ++subset) subsets.push_back(subset);
  std::stable_sort(subsets.begin(), subsets.end(),
                   [](std::uint32_t a, std::uint32_t b) { return __builtin_popcount(a) > __builtin_popcount(b); });
  std::vector<GeneralRule> result;
  std::vector<std::uint32_t> free_of_conditions;
  for (const std::uint32_t subset : subsets) {
    // A form that a more general one without conditions covers adds nothing.
    if (std::any_of(free_of_conditions.begin(), free_of_conditions.end(),
                    [&](std::uint32_t other) { return (subset & ~other) == 0; }) &&
        subset != 0)
      continue;
    std::vector<Group> general;
    for (std::size_t i = 0; i < groups.size(); ++i)
      if ((subset >> i & 1u) != 0) general.push_back(groups[i]);
    auto form = make_form(draft, general);
    if (!form) return {};
    if (!test(draft, *form, {})) continue;
    form->rule.generalized = subset;
    if (form->rule.rule.conditions.empty()) free_of_conditions.push_back(subset);
    result.push_back(std::move(form->rule));
  }
  // Fewest conditions first, then most general.
  std::stable_sort(result.begin(), result.end(), [](const GeneralRule& a, const GeneralRule& b) {
    return a.rule.conditions.size() < b.rule.conditions.size();
  });
  return result;
}

}  // namespace taso
