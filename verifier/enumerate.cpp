#include "verifier/enumerate.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "support/random.h"

namespace taso {
namespace {

using ExpressionKind = AttributeExpression::Kind;
using Integers = std::vector<std::int64_t>;
using FieldTensor = RingTensor<Mod61>;

// Random paths by which the number of instances is estimated.
constexpr int probes = 400;

void variables_of(const AttributeExpression& expression, std::set<std::uint32_t>& attributes,
                  std::set<std::uint32_t>& tensors) {
  if (expression.kind == ExpressionKind::variable) attributes.insert(expression.index);
  if (expression.kind == ExpressionKind::dimension || expression.kind == ExpressionKind::rank)
    tensors.insert(expression.index);
  for (const AttributeExpression& operand : expression.operands) variables_of(operand, attributes, tensors);
}

// A node of one side with what is known of it at the current partial instance.
struct NodeState {
  const PatternNode* node = nullptr;
  const OperatorDefinition* definition = nullptr;
  std::vector<std::uint32_t> attributes, tensors;  // variables of its attribute expressions
  std::shared_ptr<LoweredCache::Entry> entry;      // if typed
  bool valued = false;
  std::vector<FieldTensor> values;
  std::unordered_map<std::string, std::shared_ptr<LoweredCache::Entry>> known;  // by values of variables
};

struct ConditionState {
  const Condition* condition = nullptr;
  std::vector<std::uint32_t> attributes, tensors;
  bool holds = false;
};

// How an attribute variable is used first: directly as an attribute, or inside an expression.
struct Use {
  const AttributeSpec* spec = nullptr;
  bool direct = false;
};

}  // namespace

class Enumeration::Search {
 public:
  Search(const OperatorRegistry& registry, const Substitution& rule, LoweredCache& cache,
         const EnumerationOptions& options)
      : registry_(registry),
        rule_(rule),
        cache_(cache),
        options_(options),
        random_(options.seed, "thinning " + rule.name),
        points_(Random(options.seed, "points of the field").next()) {
    for (const bool target : {false, true}) {
      const Pattern& pattern = target ? rule.target : rule.source;
      for (const PatternNode& node : pattern.nodes) {
        NodeState state;
        state.node = &node;
        state.definition = registry.find(node.op);
        std::set<std::uint32_t> attributes, tensors;
        for (const auto& [name, expression] : node.attributes) variables_of(expression, attributes, tensors);
        state.attributes.assign(attributes.begin(), attributes.end());
        state.tensors.assign(tensors.begin(), tensors.end());
        sides_[target].push_back(std::move(state));
      }
    }
    for (const Condition& condition : rule.conditions) {
      ConditionState state;
      state.condition = &condition;
      std::set<std::uint32_t> attributes, tensors;
      variables_of(condition.left, attributes, tensors);
      variables_of(condition.right, attributes, tensors);
      state.attributes.assign(attributes.begin(), attributes.end());
      state.tensors.assign(tensors.begin(), tensors.end());
      conditions_.push_back(std::move(state));
    }
    find_uses();
    instance_.variables.resize(rule.tensor_variables.size());
    instance_.attributes.resize(rule.attribute_variables.size());
    assigned_.assign(rule.tensor_variables.size(), false);
    inputs_.resize(rule.tensor_variables.size());
    universe_ = all_shapes(options.domain);
  }

  void run(const std::function<bool()>& visit) {
    if (options_.thin_above > 0) {
      double total = 0;
      for (int i = 0; i < probes; ++i) {
        probing_ = true;
        weight_ = 1;
        reached_ = 0;
        depth_ = 0;
        steps_ = 0;
        extend([&] {
          reached_ = weight_;
          ++probes_reached_;
          levels_ += depth_;
          return false;
        });
        stopped_ = false;
        total += reached_;
      }
      probing_ = false;
      estimate_ = total / probes;
      if (estimate_ > static_cast<double>(options_.thin_above) && levels_ > 0) {
        thinned_ = true;
        keep_ = std::pow(static_cast<double>(options_.thin_above) / estimate_,
                         static_cast<double>(probes_reached_) / static_cast<double>(levels_));
      }
      steps_ = 0;
    }
    const auto counted = [&] {
      ++visited_;
      if (!visit()) {
        cut_ = true;
        return false;
      }
      if (options_.max_instances > 0 && visited_ >= options_.max_instances) {
        cut_ = true;
        return false;
      }
      return true;
    };
    extend(counted);
    if (thinned_ && visited_ == 0) {
      // Instances lie too sparsely for thinning: the smallest ones.
      keep_ = 1;
      steps_ = 0;
      stopped_ = false;
      extend(counted);
    }
  }

  [[nodiscard]] const Instance& instance() const { return instance_; }
  [[nodiscard]] bool complete() const { return !cut_ && !thinned_ && !too_large_; }
  [[nodiscard]] double estimate() const { return estimate_; }

  Field field_agreement() {
    FieldRing ring(points_);
    for (std::vector<NodeState>& side : sides_)
      for (NodeState& state : side)
        if (!state.valued && !evaluate_node(state, side, ring)) return Field::unknown;
    for (std::size_t i = 0; i < rule_.source.outputs.size(); ++i) {
      const FieldTensor &a = value(rule_.source.outputs[i], sides_[0]), &b = value(rule_.target.outputs[i], sides_[1]);
      if (a.elements != b.elements || a.integers != b.integers) return Field::different;
    }
    return Field::equal;
  }

 private:
  void find_uses() {
    uses_.resize(rule_.attribute_variables.size());
    integers_.assign(rule_.tensor_variables.size(), false);
    ranks_.assign(rule_.tensor_variables.size(), std::vector<bool>(options_.domain.max_rank + 1, true));
    for (const std::vector<NodeState>& side : sides_)
      for (const NodeState& state : side) {
        if (state.definition == nullptr) continue;
        for (const auto& [name, expression] : state.node->attributes) {
          std::set<std::uint32_t> attributes, tensors;
          variables_of(expression, attributes, tensors);
          const AttributeSpec* spec = state.definition->find_attribute(name);
          for (const std::uint32_t variable : attributes) {
            Use& use = uses_[variable];
            const bool direct = expression.kind == ExpressionKind::variable;
            // A list that is computed with is a list; an element of one is a number.
            if (use.spec == nullptr || (direct && !use.direct)) use = {spec, direct};
          }
        }
        for (std::size_t i = 0; i < state.node->inputs.size(); ++i) {
          const PatternValue& input = state.node->inputs[i];
          if (!input.is_variable) continue;
          const InputSpec& spec = state.definition->inputs[state.definition->variadic() ? 0 : i];
          if (spec.integers) integers_[input.index] = true;
          std::size_t fixed = 0;
          for (const AxisSpec& axis : spec.axes) fixed += axis.kind != AxisSpec::Kind::rest;
          for (std::size_t rank = 0; rank < ranks_[input.index].size(); ++rank)
            if (fixed == spec.axes.size() ? rank != fixed : rank < fixed) ranks_[input.index][rank] = false;
        }
      }
  }

  const TensorType* type_of(const PatternValue& value, const std::vector<NodeState>& side) const {
    if (value.is_variable) return assigned_[value.index] ? &instance_.variables[value.index] : nullptr;
    const NodeState& state = side[value.index];
    if (!state.entry || value.port >= state.entry->instance->output_types().size()) return nullptr;
    return &state.entry->instance->output_types()[value.port];
  }

  bool bound(const std::vector<std::uint32_t>& attributes, const std::vector<std::uint32_t>& tensors) const {
    return std::all_of(attributes.begin(), attributes.end(),
                       [&](std::uint32_t v) { return instance_.attributes[v].has_value(); }) &&
           std::all_of(tensors.begin(), tensors.end(), [&](std::uint32_t v) { return assigned_[v]; });
  }

  Bindings bindings() const {
    Bindings result;
    for (std::size_t v = 0; v < assigned_.size(); ++v)
      result.tensors.push_back(assigned_[v] ? &instance_.variables[v] : nullptr);
    result.attributes = instance_.attributes;
    return result;
  }

  // The attributes of a node whose variables are bound.
  Expected<Attributes> attributes_of(const PatternNode& node) const {
    TASO_ASSIGN(const Attributes given, evaluate_attributes(node, bindings(), registry_));
    return registry_.complete(node.op, given);
  }

  // Types a node if everything it needs is known: 1 typed now, 0 not yet, -1 not well-typed.
  int type_node(NodeState& state, const std::vector<NodeState>& side) {
    if (!bound(state.attributes, state.tensors)) return 0;
    key_.clear();
    inputs_of_node_.clear();
    for (const PatternValue& input : state.node->inputs) {
      const TensorType* type = type_of(input, side);
      if (type == nullptr) {
        // A port that a typed operator does not have.
        return !input.is_variable && side[input.index].entry ? -1 : 0;
      }
      inputs_of_node_.push_back(*type);
      append_to_key(key_, *type);
    }
    for (const std::uint32_t v : state.attributes) append_to_key(key_, *instance_.attributes[v]);
    for (const std::uint32_t v : state.tensors) append_to_key(key_, instance_.variables[v]);
    auto& entry = state.known[key_];
    if (!entry) {
      if (const Expected<Attributes> attributes = attributes_of(*state.node))
        entry = cache_.find(state.node->op, *attributes, inputs_of_node_);
      else
        entry = std::make_shared<LoweredCache::Entry>();
    }
    if (!entry->instance) return -1;
    for (const TensorType& type : entry->instance->output_types())
      if (type.elements() > options_.max_elements) {
        too_large_ = true;
        return -1;
      }
    state.entry = entry;
    state.valued = false;
    return 1;
  }

  // What a decision made known.
  struct Trail {
    std::vector<NodeState*> nodes;
    std::vector<ConditionState*> conditions;
  };

  // Types what can be typed and tests what can be tested; false if this branch holds no instance.
  bool propagate(Trail& trail) {
    for (ConditionState& state : conditions_) {
      if (state.holds || !bound(state.attributes, state.tensors)) continue;
      const Expected<bool> result = holds(*state.condition, bindings());
      if (!result || !*result) return false;
      state.holds = true;
      trail.conditions.push_back(&state);
    }
    for (std::vector<NodeState>& side : sides_)
      for (NodeState& state : side) {
        if (state.entry) continue;
        const int typed = type_node(state, side);
        if (typed < 0) return false;
        if (typed > 0) trail.nodes.push_back(&state);
      }
    for (std::size_t i = 0; i < rule_.source.outputs.size(); ++i) {
      const TensorType* a = type_of(rule_.source.outputs[i], sides_[0]);
      const TensorType* b = type_of(rule_.target.outputs[i], sides_[1]);
      if (a != nullptr && b != nullptr && *a != *b) return false;
    }
    return true;
  }

  static void undo(Trail& trail) {
    for (NodeState* state : trail.nodes) {
      state->entry.reset();
      state->valued = false;
      state->values.clear();
    }
    for (ConditionState* state : trail.conditions) state->holds = false;
  }

  template <class Visit>
  void extend(const Visit& visit) {
    if (stopped_) return;
    if (options_.max_steps > 0 && ++steps_ > options_.max_steps) {
      cut_ = stopped_ = true;
      return;
    }
    Trail trail;
    if (propagate(trail)) decide(visit);
    undo(trail);
  }

  template <class Visit>
  void decide(const Visit& visit) {
    // The first operator that lacks only variables, those with lists of any length last.
    NodeState* chosen = nullptr;
    const std::vector<NodeState>* side_of_chosen = nullptr;
    bool chosen_is_late = true;
    for (std::vector<NodeState>& side : sides_)
      for (NodeState& state : side) {
        if (state.entry || (chosen != nullptr && !chosen_is_late)) continue;
        const bool ready = std::all_of(state.node->inputs.begin(), state.node->inputs.end(), [&](const auto& input) {
          return input.is_variable || side[input.index].entry != nullptr;
        });
        if (!ready) continue;
        bool late = false;
        for (const std::uint32_t v : state.attributes) late = late || (!instance_.attributes[v] && is_free_list(v));
        if (chosen == nullptr || !late) {
          chosen = &state;
          side_of_chosen = &side;
          chosen_is_late = late;
        }
      }
    if (chosen == nullptr) {
      for (std::uint32_t v = 0; v < assigned_.size(); ++v)
        if (!assigned_[v]) return assign_tensor(v, shapes_of_rank(v, universe_), visit);
      for (std::uint32_t v = 0; v < instance_.attributes.size(); ++v)
        if (!instance_.attributes[v]) return assign_attribute(v, {std::int64_t{1}}, visit);
      if (!visit()) stopped_ = true;
      return;
    }
    // Lists that are the shape of a result which another operator, or the other side, determines.
    for (const std::uint32_t v : chosen->attributes)
      if (!instance_.attributes[v] && is_free_list(v))
        if (std::optional<std::vector<AttributeValue>> shapes = shapes_wanted(*chosen, *side_of_chosen, v))
          return assign_attribute(v, *shapes, visit);
    for (std::size_t i = 0; i < chosen->node->inputs.size(); ++i) {
      const PatternValue& input = chosen->node->inputs[i];
      if (input.is_variable && !assigned_[input.index])
        return assign_tensor(input.index, shapes_for(*chosen, *side_of_chosen, i), visit);
    }
    for (const std::uint32_t v : chosen->tensors)
      if (!assigned_[v]) return assign_tensor(v, shapes_of_rank(v, universe_), visit);
    // Pads follow from the other lists: they come last.
    std::optional<std::uint32_t> last;
    for (const std::uint32_t v : chosen->attributes) {
      if (instance_.attributes[v]) continue;
      if (!is_pads(v)) return assign_attribute(v, values_for(*chosen, *side_of_chosen, v), visit);
      if (!last) last = v;
    }
    if (last) return assign_attribute(*last, values_for(*chosen, *side_of_chosen, *last), visit);
    // Typed as soon as everything is known, so that this is an operator that cannot be typed.
  }

  template <class Visit>
  void assign_tensor(std::uint32_t v, const std::vector<Shape>& shapes, const Visit& visit) {
    assigned_[v] = true;
    auto one = [&](const Shape& shape) {
      instance_.variables[v] = {integers_[v] ? ElementType::i64 : ElementType::f32, shape, true};
      inputs_[v].shape = {-1};  // made when first needed
      extend(visit);
    };
    choose(shapes, one);
    assigned_[v] = false;
  }

  template <class Visit>
  void assign_attribute(std::uint32_t v, const std::vector<AttributeValue>& values, const Visit& visit) {
    choose(values, [&](const AttributeValue& value) {
      instance_.attributes[v] = value;
      extend(visit);
    });
    instance_.attributes[v].reset();
  }

  // All choices, or a random one.
  template <class Value, class Take>
  void choose(const std::vector<Value>& values, const Take& take) {
    if (values.empty()) return;
    if (probing_) {
      weight_ *= static_cast<double>(values.size());
      if (values.size() > 1) ++depth_;
      return take(values[random_.below(values.size())]);
    }
    for (const Value& value : values) {
      if (stopped_) return;
      if (thinned_ && values.size() > 1 && random_.uniform() > keep_) continue;
      take(value);
    }
  }

  bool is_free_list(std::uint32_t v) const {
    return uses_[v].direct && uses_[v].spec != nullptr && uses_[v].spec->kind == AttributeKind::integers &&
           !uses_[v].spec->length;
  }
  bool is_pads(std::uint32_t v) const { return uses_[v].spec != nullptr && default_list(*uses_[v].spec, 0); }
  static bool default_list(const AttributeSpec& spec, std::int64_t value) {
    if (!spec.default_value) return false;
    const auto* list = std::get_if<Integers>(&*spec.default_value);
    return list != nullptr && !list->empty() && *list == Integers(list->size(), value);
  }

  std::vector<Shape> shapes_of_rank(std::uint32_t v, const std::vector<Shape>& shapes) const {
    std::vector<Shape> result;
    for (const Shape& shape : shapes)
      if (shape.size() >= ranks_[v].size() || ranks_[v][shape.size()]) result.push_back(shape);
    return result;
  }

  // Assignments of names under which the known inputs of an operator, `except` left out, have their types.
  std::vector<NamedSizes> known_sizes(const NodeState& state, const std::vector<NodeState>& side,
                                      std::optional<std::size_t> except) const {
    NamedSizes start;
    for (const auto& [name, expression] : state.node->attributes) {
      std::set<std::uint32_t> attributes, tensors;
      variables_of(expression, attributes, tensors);
      if (!bound({attributes.begin(), attributes.end()}, {tensors.begin(), tensors.end()})) continue;
      const Expected<AttributeValue> value = taso::evaluate(expression, bindings());
      if (!value) continue;
      if (const auto* integer = std::get_if<std::int64_t>(&*value)) start[name] = {*integer};
      if (const auto* list = std::get_if<Integers>(&*value)) start["[]" + name] = *list;
    }
    std::vector<NamedSizes> all{start};
    if (state.definition->variadic()) return all;
    for (std::size_t i = 0; i < state.node->inputs.size(); ++i) {
      if (except == i) continue;
      const TensorType* type = type_of(state.node->inputs[i], side);
      if (type == nullptr) continue;
      std::vector<NamedSizes> next;
      for (const NamedSizes& sizes : all)
        for (NamedSizes& solved : solve_sizes(state.definition->inputs[i], type->shape, sizes))
          next.push_back(std::move(solved));
      all = std::move(next);
    }
    return all;
  }

  // What is known of an operator's operands and attributes, for a question of the given number.
  std::string node_key(const NodeState& state, const std::vector<NodeState>& side, std::int64_t question) const {
    std::string key;
    append_to_key(key, (&state - side.data()) * 2 + (&side == &sides_[1] ? 1 : 0));
    append_to_key(key, question);
    for (const PatternValue& value : state.node->inputs) {
      const TensorType* type = type_of(value, side);
      key += type == nullptr ? '?' : '!';
      if (type != nullptr) append_to_key(key, *type);
    }
    for (const std::uint32_t v : state.attributes) {
      key += instance_.attributes[v] ? '!' : '?';
      if (instance_.attributes[v]) append_to_key(key, *instance_.attributes[v]);
    }
    return key;
  }

  const std::vector<Shape>& shapes_for(const NodeState& state, const std::vector<NodeState>& side, std::size_t input) {
    auto [it, inserted] = proposals_.try_emplace(node_key(state, side, static_cast<std::int64_t>(input)));
    if (inserted) it->second = shapes_of_rank(state.node->inputs[input].index, new_shapes(state, side, input));
    return it->second;
  }

  std::vector<Shape> new_shapes(const NodeState& state, const std::vector<NodeState>& side, std::size_t input) const {
    if (state.definition->variadic()) {
      const TensorType* model = nullptr;
      for (const PatternValue& value : state.node->inputs)
        if (model == nullptr) model = type_of(value, side);
      if (model == nullptr) return universe_;
      std::set<Shape> shapes{model->shape};
      for (std::size_t axis = 0; axis < model->shape.size(); ++axis)
        for (std::int64_t extent = 1; extent <= std::max(options_.domain.bound, options_.domain.composite); ++extent) {
          Shape shape = model->shape;
          shape[axis] = extent;
          shapes.insert(std::move(shape));
        }
      return {shapes.begin(), shapes.end()};
    }
    std::set<Shape> shapes;
    for (const NamedSizes& sizes : known_sizes(state, side, input))
      for (Shape& shape : propose_shapes(state.definition->inputs[input], sizes, options_.domain))
        shapes.insert(std::move(shape));
    return {shapes.begin(), shapes.end()};
  }

  // If `v` is the shape of the only result of this operator and something determines that: the shapes it can be.
  std::optional<std::vector<AttributeValue>> shapes_wanted(const NodeState& state, const std::vector<NodeState>& side,
                                                           std::uint32_t v) const {
    const std::vector<AxisSpec>& axes = state.definition->output.axes;
    if (axes.size() != 1 || axes[0].kind != AxisSpec::Kind::rest || axes[0].factors.empty()) return std::nullopt;
    const bool is_shape = std::any_of(state.node->attributes.begin(), state.node->attributes.end(), [&](const auto& a) {
      return a.first == axes[0].factors[0].name && a.second.kind == ExpressionKind::variable && a.second.index == v;
    });
    if (!is_shape) return std::nullopt;
    const auto index = static_cast<std::uint32_t>(&state - side.data());
    const bool is_target = &side == &sides_[1];
    const Pattern &own = is_target ? rule_.target : rule_.source, &other = is_target ? rule_.source : rule_.target;
    for (std::size_t i = 0; i < own.outputs.size(); ++i)
      if (own.outputs[i] == PatternValue{false, index, 0})
        if (const TensorType* type = type_of(other.outputs[i], sides_[is_target ? 0 : 1]))
          return std::vector<AttributeValue>{type->shape};
    for (const NodeState& user : side) {
      if (user.entry || user.definition->variadic()) continue;
      for (std::size_t i = 0; i < user.node->inputs.size(); ++i) {
        if (user.node->inputs[i] != PatternValue{false, index, 0}) continue;
        bool others = false;
        for (std::size_t j = 0; j < user.node->inputs.size(); ++j)
          others = others || (j != i && type_of(user.node->inputs[j], side) != nullptr);
        if (!others) continue;
        std::set<Shape> shapes;
        for (const NamedSizes& sizes : known_sizes(user, side, i))
          for (Shape& shape : propose_shapes(user.definition->inputs[i], sizes, options_.domain))
            shapes.insert(std::move(shape));
        return std::vector<AttributeValue>(shapes.begin(), shapes.end());
      }
    }
    return std::nullopt;
  }

  bool wide() const {
    for (std::size_t v = 0; v < assigned_.size(); ++v)
      if (assigned_[v])
        for (const std::int64_t extent : instance_.variables[v].shape)
          if (extent > options_.domain.wide_extents) return false;
    return true;
  }

  // The values of an attribute variable at an operator whose inputs are known.
  std::vector<AttributeValue> values_for(const NodeState& state, const std::vector<NodeState>& side, std::uint32_t v) {
    if (is_free_list(v)) return new_values(state, side, v);  // depends on other operators, too
    auto [it, inserted] =
        values_.try_emplace(node_key(state, side, 2 * static_cast<std::int64_t>(v) + (wide() ? 1 : 0)));
    if (inserted) it->second = new_values(state, side, v);
    return it->second;
  }

  std::vector<AttributeValue> new_values(const NodeState& state, const std::vector<NodeState>& side,
                                         std::uint32_t v) const {
    const Use& use = uses_[v];
    std::vector<AttributeValue> values;
    if (use.spec == nullptr) return {std::int64_t{1}};
    if (!use.direct && (use.spec->kind != AttributeKind::integers || !is_list_variable(v))) {
      // A number in an expression, mostly an element of a list.
      std::size_t numbers = 0;
      for (std::size_t i = 0; i < uses_.size(); ++i) numbers += uses_[i].spec != nullptr && !uses_[i].direct;
      const std::int64_t most = numbers <= 4 ? options_.domain.bound : 2;
      for (std::int64_t value = 0; value <= most; ++value) values.emplace_back(value);
      return values;
    }
    switch (use.spec->kind) {
      case AttributeKind::integer:
        for (std::int64_t value = -static_cast<std::int64_t>(options_.domain.max_rank); value <= options_.domain.bound;
             ++value)
          values.emplace_back(value);
        return values;
      case AttributeKind::real:
        for (const double value : {0.0, 1.0, -1.0, 0.5}) values.emplace_back(value);
        return values;
      case AttributeKind::symbol: {
        // A primitive without a declared value at 0 is an oracle like any other function; all where there is room.
        const bool all = wide() && options_.domain.attributes;
        for (const auto& [name, function] : registry_.functions())
          if (function.arity == 1 &&
              (all || (values.empty() && !function.definition && !function.zero_at_zero && !function.idempotent)))
            values.emplace_back(SymbolValue{name});
        return values;
      }
      case AttributeKind::integers:
        break;
    }
    std::set<Integers> lists;
    const bool all = wide() && options_.domain.attributes;
    if (use.spec->length && use.spec->length->kind == Expression::Kind::integer) {
      const auto length = static_cast<std::size_t>(use.spec->length->integer);
      const bool ones = default_list(*use.spec, 1), zeros = default_list(*use.spec, 0);
      if (!options_.domain.attributes && (ones || zeros)) return {Integers(length, ones ? 1 : 0)};
      if (ones) {
        lists = {Integers(length, 1), Integers(length, 2)};
        if (use.spec->name == "dilations" && !all) lists.erase(Integers(length, 2));
        if (all)
          for (std::size_t i = 0; i < length; ++i) {
            Integers list(length, 1);
            list[i] = 2;
            lists.insert(std::move(list));
          }
      } else if (zeros) {
        lists = {Integers(length, 0)};
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
        Integers list(length, options_.domain.bound > 0 ? 1 : 0);
        for (;;) {
          lists.insert(list);
          std::size_t i = 0;
          while (i < length && list[i] == options_.domain.bound) list[i++] = 1;
          if (i == length) break;
          ++list[i];
        }
      } else {
        lists = {Integers(length, 0), Integers(length, 1)};
        for (std::size_t i = 0; i < length; ++i) {
          Integers list(length, 0);
          list[i] = 1;
          lists.insert(std::move(list));
        }
      }
    } else {
      const TensorType* first = state.node->inputs.empty() ? nullptr : type_of(state.node->inputs[0], side);
      const std::size_t rank = first == nullptr ? 0 : first->shape.size();
      if (use.spec->length) {  // as many numbers as axes
        Integers order(rank);
        for (std::size_t i = 0; i < rank; ++i) order[i] = static_cast<std::int64_t>(i);
        do lists.insert(order);
        while (std::next_permutation(order.begin(), order.end()));
        std::vector<Integers> models;
        for (const std::int64_t value : {-1, 0, 1, 2}) models.emplace_back(rank, value);
        if (first != nullptr) models.push_back(first->shape);
        for (const Integers& model : models) {
          lists.insert(model);
          for (std::size_t i = 0; i < rank; ++i)
            for (const std::int64_t change : {-1, 1}) {
              Integers list = model;
              list[i] += change;
              lists.insert(std::move(list));
            }
        }
      } else {  // shapes, axes, sizes
        lists.insert(universe_.begin(), universe_.end());
        for (unsigned bits = 0; bits < 1U << rank; ++bits) {
          Integers axes;
          for (std::size_t i = 0; i < rank; ++i)
            if ((bits >> i & 1U) != 0) axes.push_back(static_cast<std::int64_t>(i) - static_cast<std::int64_t>(rank));
          lists.insert(std::move(axes));
        }
        for (const std::vector<NodeState>& any : sides_)
          for (const NodeState& other : any)
            if (other.entry)
              for (const TensorType& type : other.entry->instance->output_types()) add_regrouped(type.shape, lists);
        for (std::size_t i = 0; i < assigned_.size(); ++i)
          if (assigned_[i]) add_regrouped(instance_.variables[i].shape, lists);
      }
    }
    for (const Integers& list : lists) values.emplace_back(list);
    return values;
  }

  bool is_list_variable(std::uint32_t v) const { return list_uses(v, rule_.source) || list_uses(v, rule_.target); }
  // Whether a variable stands for a list, as q in q - m, or for a number, as i in [i, i].
  bool list_uses(std::uint32_t v, const Pattern& pattern) const {
    for (const PatternNode& node : pattern.nodes)
      for (const auto& [name, expression] : node.attributes) {
        const OperatorDefinition* definition = registry_.find(node.op);
        const AttributeSpec* spec = definition == nullptr ? nullptr : definition->find_attribute(name);
        if (spec != nullptr && spec->kind == AttributeKind::integers && outside_lists(expression, v)) return true;
      }
    return false;
  }
  static bool outside_lists(const AttributeExpression& expression, std::uint32_t v) {
    if (expression.kind == ExpressionKind::variable) return expression.index == v;
    if (expression.kind == ExpressionKind::list) return false;
    return std::any_of(expression.operands.begin(), expression.operands.end(),
                       [&](const AttributeExpression& operand) { return outside_lists(operand, v); });
  }

  static void add_regrouped(const Shape& shape, std::set<Integers>& lists) {
    lists.insert(shape);
    for (std::size_t i = 0; i + 1 < shape.size(); ++i) {
      Integers merged = shape;
      merged[i] *= merged[i + 1];
      merged.erase(merged.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      lists.insert(std::move(merged));
    }
    lists.insert({volume(shape)});
  }

  // SAME pads of the operators that use the variable and whose other attributes are known.
  std::vector<Integers> same_lists(const NodeState& state, const std::vector<NodeState>& side, std::uint32_t v) const {
    std::vector<Integers> lists;
    Attributes attributes;
    std::string pads;
    const Bindings known = bindings();
    for (const auto& [name, expression] : state.node->attributes) {
      if (expression.kind == ExpressionKind::variable && expression.index == v) pads = name;
      if (const Expected<AttributeValue> value = taso::evaluate(expression, known)) attributes.set(name, *value);
    }
    if (pads.empty()) return lists;
    for (const NamedSizes& sizes : known_sizes(state, side, std::nullopt))
      if (std::optional<Integers> list = same_pads(*state.definition, pads, sizes, attributes))
        lists.push_back(std::move(*list));
    return lists;
  }

  const FieldTensor& value(const PatternValue& value, const std::vector<NodeState>& side) {
    if (!value.is_variable) return side[value.index].values[value.port];
    FieldTensor& tensor = inputs_[value.index];
    const TensorType& type = instance_.variables[value.index];
    if (tensor.shape != type.shape) {
      tensor.shape = type.shape;
      Random random(points_ + value.index);
      const auto size = static_cast<std::size_t>(type.elements());
      tensor.elements.clear();
      tensor.integers.clear();
      if (type.element == ElementType::f32) {
        tensor.elements.reserve(size);
        for (std::size_t i = 0; i < size; ++i) tensor.elements.push_back(Mod61::from_bits(random.next()));
      } else {
        // Indices that are in range on every axis.
        for (std::size_t i = 0; i < size; ++i) tensor.integers.push_back(-static_cast<std::int64_t>(random.below(2)));
      }
    }
    return tensor;
  }

  bool evaluate_node(NodeState& state, const std::vector<NodeState>& side, FieldRing& ring) {
    arguments_.clear();
    for (const PatternValue& input : state.node->inputs) arguments_.push_back(&value(input, side));
    auto results = evaluate(*state.entry->instance, ring, std::span<const FieldTensor* const>(arguments_));
    if (!results || !ring.status()) return false;
    state.values = std::move(*results);
    state.valued = true;
    return true;
  }

  const OperatorRegistry& registry_;
  const Substitution& rule_;
  LoweredCache& cache_;
  EnumerationOptions options_;
  Random random_;
  std::uint64_t points_;
  std::vector<NodeState> sides_[2];
  std::vector<ConditionState> conditions_;
  std::vector<Use> uses_;
  std::vector<bool> integers_;
  std::vector<std::vector<bool>> ranks_;  // allowed ranks of each tensor variable
  std::vector<Shape> universe_;
  Instance instance_;
  std::vector<bool> assigned_;
  std::vector<FieldTensor> inputs_;
  std::unordered_map<std::string, std::vector<Shape>> proposals_;
  std::unordered_map<std::string, std::vector<AttributeValue>> values_;
  std::string key_;
  std::vector<TensorType> inputs_of_node_;
  std::vector<const FieldTensor*> arguments_;
  bool stopped_ = false, cut_ = false, thinned_ = false, too_large_ = false;
  bool probing_ = false;
  double weight_ = 1, reached_ = 0, estimate_ = 0;
  // Of the random paths that reached an instance: how many there were, and decisions with a choice on them.
  std::size_t probes_reached_ = 0, levels_ = 0, depth_ = 0;
  double keep_ = 1;  // the probability with which a choice is followed when thinned
  std::size_t visited_ = 0, steps_ = 0;
};

Enumeration::Enumeration(const OperatorRegistry& registry, const Substitution& rule, LoweredCache& cache,
                         const EnumerationOptions& options)
    : search_(std::make_unique<Search>(registry, rule, cache, options)) {}
Enumeration::~Enumeration() = default;
void Enumeration::run(const std::function<bool()>& visit) { search_->run(visit); }
const Instance& Enumeration::instance() const { return search_->instance(); }
Enumeration::Field Enumeration::field_agreement() { return search_->field_agreement(); }
bool Enumeration::complete() const { return search_->complete(); }
double Enumeration::estimate() const { return search_->estimate(); }

}  // namespace taso
