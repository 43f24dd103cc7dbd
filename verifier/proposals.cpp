#include "verifier/proposals.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>

namespace taso {
namespace {

using ExpressionKind = AttributeExpression::Kind;
using Integers = std::vector<std::int64_t>;

// Assignments of names to sizes that are remembered: the search returns to few of them.
constexpr std::size_t max_sizes = 4096;

// Whether a list has this number everywhere by default.
bool default_list(const AttributeSpec& spec, std::int64_t value) {
  if (!spec.default_value) return false;
  const auto* list = std::get_if<Integers>(&*spec.default_value);
  return list != nullptr && !list->empty() && *list == Integers(list->size(), value);
}

// Whether a variable occurs outside of lists: as q in q - m, not as i in [i, i].
bool outside_lists(const AttributeExpression& expression, std::uint32_t v) {
  if (expression.kind == ExpressionKind::variable) return expression.index == v;
  if (expression.kind == ExpressionKind::list) return false;
  return std::any_of(expression.operands.begin(), expression.operands.end(),
                     [&](const AttributeExpression& operand) { return outside_lists(operand, v); });
}

bool mentions(const AttributeExpression& expression, std::uint32_t v) {
  return (expression.kind == ExpressionKind::variable && expression.index == v) ||
         std::any_of(expression.operands.begin(), expression.operands.end(),
                     [&](const AttributeExpression& operand) { return mentions(operand, v); });
}

// A shape, the shapes with two neighbouring axes made one, and all axes made one.
void add_regrouped(const Shape& shape, std::set<Integers>& lists) {
  lists.insert(shape);
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) {
    Integers merged = shape;
    merged[i] *= merged[i + 1];
    merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    lists.insert(std::move(merged));
  }
  lists.insert({volume(shape)});
}

// A list of one number, and with one element changed to another number.
void add_with_one_changed(const Integers& list, std::int64_t changed, std::set<Integers>& lists) {
  lists.insert(list);
  for (std::size_t i = 0; i < list.size(); ++i) {
    Integers other = list;
    other[i] = changed;
    lists.insert(std::move(other));
  }
}

std::vector<AttributeValue> as_values(const std::set<Integers>& lists) { return {lists.begin(), lists.end()}; }

}  // namespace

Proposals::Proposals(PartialInstance& partial, const Domain& domain, LoweredCache& cache)
    : partial_(partial), domain_(domain), shared_(cache.answers()), universe_(all_shapes(domain)) {
  for (const std::int64_t number : {domain.bound, domain.composite, static_cast<std::int64_t>(domain.max_rank),
                                    domain.wide_extents, static_cast<std::int64_t>(domain.attributes)})
    append_to_key(domain_key_, number);
  find_uses();
  find_shaping_variables();
}

// Per node the variables of attributes that its axis lists name.
void Proposals::find_shaping_variables() {
  for (const bool target : {false, true})
    for (const NodeState& state : partial_.side(target)) {
      if (shaping_.size() <= state.number) shaping_.resize(state.number + 1);
      if (state.definition == nullptr) continue;
      std::set<std::string> names;
      const std::function<void(const Expression&)> add = [&](const Expression& expression) {
        names.insert(expression.name);
        for (const Expression& operand : expression.operands) add(operand);
      };
      for (const InputSpec& input : state.definition->inputs)
        for (const AxisSpec& axis : input.axes) {
          for (const Expression& factor : axis.factors) add(factor);
          if (axis.length) add(*axis.length);
        }
      shaping_[state.number].names = names;
      ExpressionVariables& shaping = shaping_[state.number].variables;
      for (const auto& [name, expression] : state.node->attributes) {
        if (!names.contains(name)) continue;
        const ExpressionVariables variables = variables_of(expression);
        shaping.attributes.insert(shaping.attributes.end(), variables.attributes.begin(), variables.attributes.end());
        shaping.tensors.insert(shaping.tensors.end(), variables.tensors.begin(), variables.tensors.end());
      }
    }
}

void Proposals::find_uses() {
  const Substitution& rule = partial_.rule();
  uses_.resize(rule.attribute_variables.size());
  integers_.assign(rule.tensor_variables.size(), false);
  ranks_.assign(rule.tensor_variables.size(), std::vector<bool>(domain_.max_rank + 1, true));
  for (const bool target : {false, true})
    for (const NodeState& state : partial_.side(target)) {
      if (state.definition == nullptr) continue;
      for (const auto& [name, expression] : state.node->attributes) {
        const AttributeSpec* spec = state.definition->find_attribute(name);
        for (const std::uint32_t variable : variables_of(expression).attributes) {
          Use& use = uses_[variable];
          const bool direct = expression.kind == ExpressionKind::variable;
          // A list that is computed with is a list; an element of one is a number.
          if (use.spec == nullptr || (direct && !use.direct)) use = {state.definition, spec, direct};
        }
      }
      for (std::size_t i = 0; i < state.node->inputs.size(); ++i) {
        const PatternValue& input = state.node->inputs[i];
        if (!input.is_variable) continue;
        const InputSpec& spec = state.definition->inputs[state.definition->variadic() ? 0 : i];
        if (spec.integers()) integers_[input.index] = true;
        std::size_t fixed = 0;
        for (const AxisSpec& axis : spec.axes) fixed += axis.kind != AxisSpec::Kind::rest;
        for (std::size_t rank = 0; rank < ranks_[input.index].size(); ++rank)
          if (fixed == spec.axes.size() ? rank != fixed : rank < fixed) ranks_[input.index][rank] = false;
      }
    }
}

bool Proposals::is_free_list(std::uint32_t v) const {
  return uses_[v].direct && uses_[v].spec != nullptr && uses_[v].spec->kind == AttributeKind::integers &&
         !uses_[v].spec->length;
}

bool Proposals::is_pads(std::uint32_t v) const { return uses_[v].spec != nullptr && default_list(*uses_[v].spec, 0); }

// What is known of an operator's operands and attributes, for a question of the given number.
const Key& Proposals::node_key(const NodeState& state, const Side& side, std::uint32_t question) {
  key_.clear();
  key_.push_back(state.number);
  key_.push_back(question);
  for (const PatternValue& value : state.node->inputs) key_.push_back(partial_.type_id(value, side));
  for (const std::uint32_t v : state.attributes) key_.push_back(partial_.attribute(v));
  for (const std::uint32_t v : state.tensors) key_.push_back(partial_.tensor(v));
  return key_;
}

// The same without the attributes that say nothing about shapes of inputs (strides, pads).
const Key& Proposals::shapes_key(const NodeState& state, const Side& side, std::uint32_t question) {
  key_.clear();
  key_.push_back(state.number);
  key_.push_back(question);
  for (const PatternValue& value : state.node->inputs) key_.push_back(partial_.type_id(value, side));
  const ExpressionVariables& shaping = shaping_[state.number].variables;
  for (const std::uint32_t v : shaping.attributes) key_.push_back(partial_.attribute(v));
  for (const std::uint32_t v : shaping.tensors) key_.push_back(partial_.tensor(v));
  return key_;
}

void Proposals::add_type(std::uint32_t variable, const Shape& shape, std::vector<std::uint32_t>& types) {
  const std::vector<bool>& ranks = ranks_[variable];
  if (shape.size() >= ranks.size() || ranks[shape.size()])
    types.push_back(partial_.intern({integers_[variable] ? ElementType::i64 : ElementType::f32, shape, true}));
}

std::vector<std::uint32_t> Proposals::any_types(std::uint32_t variable) {
  std::vector<std::uint32_t> types;
  for (const Shape& shape : universe_) add_type(variable, shape, types);
  return types;
}

// Appends to the key of a question what is known of the inputs.
void Proposals::append_inputs(const NodeState& state, const Side& side, std::optional<std::size_t> except,
                              std::string& key) const {
  for (std::size_t i = 0; i < state.node->inputs.size(); ++i) {
    const TensorType* type = except == i ? nullptr : partial_.type_of(state.node->inputs[i], side);
    key += type == nullptr ? '?' : '!';
    if (type != nullptr) append_to_key(key, *type);
  }
}

// The same of an attribute; false if its expression has no value although its variables have.
bool Proposals::append_attribute(const NodeState& state, std::size_t attribute, std::string& key) const {
  const ExpressionVariables& variables = state.expressions[attribute];
  if (!partial_.bound(variables.attributes, variables.tensors)) {
    key += '?';
    return true;
  }
  const Expected<AttributeValue> value = taso::evaluate(state.node->attributes[attribute].second, partial_.bindings());
  if (!value) return false;
  append_to_key(key, *value);
  return true;
}

const std::vector<std::uint32_t>& Proposals::types_for(const NodeState& state, const Side& side, std::size_t input) {
  const Key& key = shapes_key(state, side, static_cast<std::uint32_t>(input));
  if (const auto it = types_.find(key); it != types_.end()) return it->second;
  const Key own = key;
  // The same question is asked for other nodes and statements.
  std::string shared = "types " + state.node->op + '\0' + domain_key_;
  append_to_key(shared, static_cast<std::int64_t>(input));
  bool sharable = true;
  for (std::size_t i = 0; i < state.node->attributes.size(); ++i)
    if (const std::string& name = state.node->attributes[i].first; shaping_[state.number].names.contains(name)) {
      (shared += name) += '\0';
      sharable = sharable && append_attribute(state, i, shared);
    }
  append_inputs(state, side, input, shared);
  const std::uint32_t variable = state.node->inputs[input].index;
  std::vector<std::uint32_t> types;
  if (sharable) {
    const std::shared_ptr<const LoweredCache::Values> shapes = shared_.find(shared, [&] {
      auto found = std::make_shared<LoweredCache::Values>();
      for (Shape& shape : shapes_of(state, side, input)) found->emplace_back(std::move(shape));
      return found;
    });
    for (const AttributeValue& shape : *shapes) add_type(variable, std::get<Integers>(shape), types);
  } else {
    for (const Shape& shape : shapes_of(state, side, input)) add_type(variable, shape, types);
  }
  return types_.emplace(own, std::move(types)).first->second;
}

std::vector<Shape> Proposals::shapes_of(const NodeState& state, const Side& side, std::size_t input) const {
  std::set<Shape> shapes;
  if (state.definition->variadic()) {
    const TensorType* model = nullptr;
    for (const PatternValue& value : state.node->inputs)
      if (model == nullptr) model = partial_.type_of(value, side);
    if (model == nullptr) return universe_;
    shapes.insert(model->shape);
    for (std::size_t axis = 0; axis < model->shape.size(); ++axis)
      for (std::int64_t extent = 1; extent <= std::max(domain_.bound, domain_.composite); ++extent) {
        Shape shape = model->shape;
        shape[axis] = extent;
        shapes.insert(std::move(shape));
      }
  } else {
    for (const NamedSizes& sizes : partial_.known_sizes(state, side, input))
      for (Shape& shape : propose_shapes(state.definition->inputs[input], sizes, domain_))
        shapes.insert(std::move(shape));
  }
  return {shapes.begin(), shapes.end()};
}

std::optional<std::vector<std::uint32_t>> Proposals::shapes_wanted(const NodeState& state, const Side& side,
                                                                   std::uint32_t v) {
  const std::vector<AxisSpec>& axes = state.definition->output.axes;
  if (axes.size() != 1 || axes[0].kind != AxisSpec::Kind::rest || axes[0].factors.empty()) return std::nullopt;
  const bool is_shape = std::any_of(state.node->attributes.begin(), state.node->attributes.end(), [&](const auto& a) {
    return a.first == axes[0].factors[0].name && a.second.kind == ExpressionKind::variable && a.second.index == v;
  });
  if (!is_shape) return std::nullopt;
  const auto index = static_cast<std::uint32_t>(&state - side.data());
  const bool is_target = partial_.is_target(side);
  const Substitution& rule = partial_.rule();
  const Pattern &own = is_target ? rule.target : rule.source, &other = is_target ? rule.source : rule.target;
  for (std::size_t i = 0; i < own.outputs.size(); ++i)
    if (own.outputs[i] == PatternValue{false, index, 0})
      if (const TensorType* type = partial_.type_of(other.outputs[i], partial_.side(!is_target)))
        return std::vector<std::uint32_t>{partial_.values().id(type->shape)};
  for (const NodeState& user : side) {
    if (user.typing || user.definition->variadic()) continue;
    for (std::size_t i = 0; i < user.node->inputs.size(); ++i) {
      if (user.node->inputs[i] != PatternValue{false, index, 0}) continue;
      bool others = false;
      for (std::size_t j = 0; j < user.node->inputs.size(); ++j)
        others = others || (j != i && partial_.type_id(user.node->inputs[j], side) != 0);
      if (!others) continue;
      std::set<Shape> shapes;
      for (const NamedSizes& sizes : partial_.known_sizes(user, side, i))
        for (Shape& shape : propose_shapes(user.definition->inputs[i], sizes, domain_)) shapes.insert(std::move(shape));
      std::vector<std::uint32_t> values;
      values.reserve(shapes.size());
      for (const Shape& shape : shapes) values.push_back(partial_.values().id(shape));
      return values;
    }
  }
  return std::nullopt;
}

std::vector<std::uint32_t> Proposals::values_for(const NodeState& state, const Side& side, std::uint32_t v) {
  const Key& key = node_key(state, side, 2 * v + (wide() ? 1 : 0));
  auto it = values_.find(key);
  if (it == values_.end()) {
    const Key own = key;
    std::vector<std::uint32_t> ids;
    auto add = [&](const LoweredCache::Values& values) {
      for (const AttributeValue& value : values) ids.push_back(partial_.values().id(value));
    };
    if (const std::optional<std::string> shared = shared_key(state, side, v))
      add(*shared_.find(*shared, [&] {
        return std::make_shared<const LoweredCache::Values>(well_typed(state, side, v, new_values(state, side, v)));
      }));
    else
      add(well_typed(state, side, v, new_values(state, side, v)));
    it = values_.emplace(own, std::move(ids)).first;
  }
  if (!is_free_list(v)) return it->second;
  std::vector<std::uint32_t> ids = it->second;
  for (const AttributeValue& value : well_typed(state, side, v, lists_of_other_operators())) {
    const std::uint32_t id = partial_.values().id(value);
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  }
  return ids;
}

// The only attribute of a node that is, or reads, the variable, if it is the variable itself.
const std::string* Proposals::own_attribute(const NodeState& state, std::uint32_t v) {
  const std::string* own = nullptr;
  for (const auto& [name, expression] : state.node->attributes) {
    if (!mentions(expression, v)) continue;
    if (own != nullptr || expression.kind != ExpressionKind::variable) return nullptr;
    own = &name;
  }
  return own;
}

// The question for values of a variable, for all statements, if the answer depends on the operator alone: the variable
// is one attribute of it, and occurs in no other one.
std::optional<std::string> Proposals::shared_key(const NodeState& state, const Side& side, std::uint32_t v) const {
  const Use& use = uses_[v];
  if (!use.direct || use.spec == nullptr) return std::nullopt;
  std::string key =
      "values " + state.node->op + '\0' + use.definition->name + '\0' + use.spec->name + '\0' + domain_key_;
  key += wide() ? 'w' : 'n';
  const std::string* own = own_attribute(state, v);
  if (own == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < state.node->attributes.size(); ++i) {
    const std::string& name = state.node->attributes[i].first;
    (key += name) += '\0';
    if (&name == own)
      key += '=';
    else if (!append_attribute(state, i, key))
      return std::nullopt;
  }
  append_inputs(state, side, std::nullopt, key);
  return key;
}

// Leaves out lists with which the operator is not well-typed, if everything else is known of it: of those that are
// long or have any length only few fit.
std::vector<AttributeValue> Proposals::well_typed(const NodeState& state, const Side& side, std::uint32_t v,
                                                  std::vector<AttributeValue> values) const {
  const AttributeSpec* spec = uses_[v].spec;
  const std::string* own = own_attribute(state, v);
  if (values.empty() || own == nullptr || spec == nullptr || spec->kind != AttributeKind::integers ||
      (spec->length && spec->length->kind == Expression::Kind::integer))
    return values;
  std::vector<TensorType> inputs;
  for (const PatternValue& input : state.node->inputs) {
    const TensorType* type = partial_.type_of(input, side);
    if (type == nullptr) return values;
    inputs.push_back(*type);
  }
  for (const std::uint32_t tensor : state.tensors)
    if (partial_.tensor(tensor) == 0) return values;
  for (const std::uint32_t other : state.attributes)
    if (other != v && partial_.attribute(other) == 0) return values;
  Bindings bindings = partial_.bindings();
  bindings.attributes[v] = values[0];
  std::vector<AttributeValue> fitting;
  const Expected<Attributes> given = evaluate_attributes(*state.node, bindings, partial_.registry());
  if (!given) return fitting;
  const std::vector<bool> accepted = partial_.registry().accepted(state.node->op, *given, inputs, *own, values);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (accepted[i]) fitting.push_back(std::move(values[i]));
  return fitting;
}

std::vector<AttributeValue> Proposals::new_values(const NodeState& state, const Side& side, std::uint32_t v) {
  const Use& use = uses_[v];
  std::vector<AttributeValue> values;
  if (use.spec == nullptr) return {std::int64_t{1}};
  if (!use.direct && (use.spec->kind != AttributeKind::integers || !is_list_variable(v))) {
    // A number in an expression, mostly an element of a list.
    std::size_t numbers = 0;
    for (const Use& other : uses_) numbers += other.spec != nullptr && !other.direct;
    const std::int64_t most = numbers <= 4 ? std::max<std::int64_t>(domain_.bound, 2) : 2;
    // Where the list may have any length it may be one of axes, which are negative.
    const bool axis = use.spec->kind == AttributeKind::integers && !use.spec->length;
    const std::int64_t least = axis ? -static_cast<std::int64_t>(domain_.max_rank) : 0;
    for (std::int64_t value = least; value <= most; ++value) values.emplace_back(value);
    return values;
  }
  switch (use.spec->kind) {
    case AttributeKind::integer:
      for (std::int64_t value = -static_cast<std::int64_t>(domain_.max_rank); value <= domain_.bound; ++value)
        values.emplace_back(value);
      return values;
    case AttributeKind::real:
      for (const double value : {0.0, 1.0, -1.0, 0.5}) values.emplace_back(value);
      return values;
    case AttributeKind::symbol: {
      // A primitive without a declared value at 0 is an oracle like any other function; all where there is room.
      const bool all = wide() && domain_.attributes;
      for (const auto& [name, function] : partial_.registry().functions())
        if (partial_.registry().is_total_function(name) &&
            (all || (values.empty() && !function.definition && !function.zero_at_zero && !function.idempotent)))
          values.emplace_back(SymbolValue{name});
      return values;
    }
    case AttributeKind::integers:
      break;
  }
  const TensorType* first = state.node->inputs.empty() ? nullptr : partial_.type_of(state.node->inputs[0], side);
  if (!use.spec->length) return free_lists(first);
  if (use.spec->length->kind != Expression::Kind::integer) return lists_per_axis(first, use);
  return lists_of_length(state, side, v, static_cast<std::size_t>(use.spec->length->integer));
}

// Lists of so many numbers: strides, pads, kernels, margins.
std::vector<AttributeValue> Proposals::lists_of_length(const NodeState& state, const Side& side, std::uint32_t v,
                                                       std::size_t length) {
  const Use& use = uses_[v];
  const bool ones = default_list(*use.spec, 1), zeros = default_list(*use.spec, 0);
  if (!domain_.attributes && (ones || zeros)) return {Integers(length, ones ? 1 : 0)};
  const bool all = wide() && domain_.attributes;
  std::set<Integers> lists;
  if (ones) {
    lists.insert(Integers(length, 1));
    if (all) add_with_one_changed(Integers(length, 1), 2, lists);
    if (all || window_role(*use.definition, use.spec->name) != WindowRole::dilation) lists.insert(Integers(length, 2));
  } else if (zeros) {
    lists.insert(Integers(length, 0));
    for (const Integers& pads : same_lists(state, side, v)) {
      lists.insert(pads);
      if (!all || pads.size() != length) continue;
      for (std::size_t i = 0; i < length; ++i) {
        Integers list = pads;
        ++list[i];
        lists.insert(std::move(list));
      }
    }
    if (all) lists.insert(Integers(length, 1));
  } else if (length <= 2) {
    Integers list(length, domain_.bound > 0 ? 1 : 0);
    for (;;) {
      lists.insert(list);
      std::size_t i = 0;
      while (i < length && list[i] == domain_.bound) list[i++] = 1;
      if (i == length) break;
      ++list[i];
    }
  } else {
    lists.insert(Integers(length, 1));
    add_with_one_changed(Integers(length, 0), 1, lists);
  }
  return as_values(lists);
}

// Lists with a number for every axis: permutations, starts, steps.
std::vector<AttributeValue> Proposals::lists_per_axis(const TensorType* input, const Use& use) const {
  const std::size_t rank = input == nullptr ? 0 : input->shape.size();
  std::set<Integers> lists;
  const bool all = wide() && domain_.attributes;
  Integers order(rank);
  for (std::size_t i = 0; i < rank; ++i) order[i] = static_cast<std::int64_t>(i);
  if (must_be_permutation(*use.definition, use.spec->name)) {
    do lists.insert(order);
    while (std::next_permutation(order.begin(), order.end()));
    return as_values(lists);
  }
  if (all) lists.insert(order);
  std::vector<Integers> models{Integers(rank, 0), Integers(rank, 1)};
  lists.insert(Integers(rank, -1));
  if (all) models.insert(models.end(), {Integers(rank, -1), Integers(rank, 2)});
  if (input != nullptr) models.push_back(input->shape);
  for (const Integers& model : models) {
    lists.insert(model);
    for (std::size_t i = 0; i < rank; ++i)
      for (const std::int64_t change : {-1, 1}) {
        Integers list = model;
        list[i] += change;
        lists.insert(std::move(list));
      }
  }
  return as_values(lists);
}

// Lists of any length: shapes, axes, sizes.
std::vector<AttributeValue> Proposals::free_lists(const TensorType* input) const {
  const std::size_t rank = input == nullptr ? 0 : input->shape.size();
  std::set<Integers> lists(universe_.begin(), universe_.end());
  for (unsigned bits = 0; bits < 1U << rank; ++bits) {
    Integers axes;
    for (std::size_t i = 0; i < rank; ++i)
      if ((bits >> i & 1U) != 0) axes.push_back(static_cast<std::int64_t>(i) - static_cast<std::int64_t>(rank));
    lists.insert(std::move(axes));
  }
  return as_values(lists);
}

// Lists of any length that other operators suggest: the shapes of what is known, and these with axes merged.
// Those among the shapes of the domain have been tried with the others.
std::vector<AttributeValue> Proposals::lists_of_other_operators() const {
  std::set<Integers> lists;
  for (const bool target : {false, true})
    for (const NodeState& other : partial_.side(target))
      if (other.typing)
        for (const std::uint32_t type : other.typing->outputs) add_regrouped(partial_.type(type).shape, lists);
  for (const TensorType* type : partial_.bindings().tensors)
    if (type != nullptr) add_regrouped(type->shape, lists);
  std::erase_if(lists, [&](const Integers& list) { return in_universe(list); });
  return as_values(lists);
}

bool Proposals::in_universe(const Integers& list) const {
  return list.size() <= domain_.max_rank && std::all_of(list.begin(), list.end(), [&](std::int64_t extent) {
           return extent >= 1 && extent <= domain_.bound;
         });
}

// Whether a variable stands for a list, as q in q - m, or for a number, as i in [i, i].
bool Proposals::is_list_variable(std::uint32_t v) const {
  for (const bool target : {false, true})
    for (const NodeState& state : partial_.side(target))
      for (const auto& [name, expression] : state.node->attributes) {
        const AttributeSpec* spec = state.definition == nullptr ? nullptr : state.definition->find_attribute(name);
        if (spec != nullptr && spec->kind == AttributeKind::integers && outside_lists(expression, v)) return true;
      }
  return false;
}

// SAME pads of the operator, if it uses the variable directly and its other attributes are known.
std::vector<Integers> Proposals::same_lists(const NodeState& state, const Side& side, std::uint32_t v) {
  std::vector<Integers> lists;
  Attributes attributes;
  std::string pads;
  for (const auto& [name, expression] : state.node->attributes) {
    if (expression.kind == ExpressionKind::variable && expression.index == v) pads = name;
    if (const Expected<AttributeValue> value = taso::evaluate(expression, partial_.bindings()))
      attributes.set(name, *value);
  }
  if (pads.empty()) return lists;
  // What the sizes are does not depend on strides and dilations; the attributes above stand over those in `sizes`.
  if (sizes_.size() >= max_sizes) sizes_.clear();
  const auto [known, inserted] = sizes_.try_emplace(shapes_key(state, side, UINT32_MAX));
  if (inserted) known->second = partial_.known_sizes(state, side, std::nullopt);
  for (const NamedSizes& sizes : known->second)
    if (std::optional<Integers> list = same_pads(*state.definition, pads, sizes, attributes))
      lists.push_back(std::move(*list));
  return lists;
}

}  // namespace taso
