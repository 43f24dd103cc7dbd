#include "verifier/sampler.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;
using Integers = std::vector<std::int64_t>;

// Proposals for one operator before a sample is given up.
constexpr int proposals_per_node = 24;
// The same of a rule with given variables, whose lists are written element by element.
constexpr int proposals_with_given = 150;
// Divisors of extents that are proposed as factors of a composite axis, beside the extent itself.
constexpr std::int64_t max_divisor = 4096;

// Whether an expression speaks of nothing but the rank of one tensor variable.
bool is_of_rank(const AttributeExpression& expression, std::uint32_t variable) {
  if (expression.kind == Kind::rank) return expression.index == variable;
  return (expression.kind == Kind::literal || !expression.operands.empty()) && !expression.names_tensor() &&
         std::all_of(expression.operands.begin(), expression.operands.end(),
                     [&](const AttributeExpression& operand) { return is_of_rank(operand, variable); });
}

// In the order in which they occur.
void collect_variables(const AttributeExpression& expression, std::vector<std::uint32_t>& found) {
  if (expression.kind == Kind::variable && std::find(found.begin(), found.end(), expression.index) == found.end())
    found.push_back(expression.index);
  for (const AttributeExpression& operand : expression.operands) collect_variables(operand, found);
}

// How an attribute variable is used.
struct VariableUse {
  AttributeKind kind = AttributeKind::integer;
  std::optional<std::size_t> length;            // of a list
  std::optional<AttributeValue> default_value;  // of the operator's attribute
  bool known = false;
  bool element = false;  // a number in a list
};

}  // namespace

Bindings bindings_of(const Instance& instance) {
  Bindings bindings;
  for (const TensorType& type : instance.variables) bindings.tensors.push_back(&type);
  bindings.attributes = instance.attributes;
  return bindings;
}

bool conditions_hold(const Substitution& rule, const Bindings& bindings) {
  return std::all_of(rule.conditions.begin(), rule.conditions.end(), [&](const Condition& condition) {
    if (condition.of_elements()) return true;
    const Expected<bool> result = holds(condition, bindings);
    return result.ok() && *result;
  });
}

class Sampler::Implementation {
 public:
  Implementation(const OperatorRegistry& registry, Typer& typer, const InstanceOptions& options,
                 const Landmarks* landmarks)
      : registry_(registry),
        rule_(typer.rule()),
        typer_(typer),
        options_(options),
        landmarks_(landmarks),
        random_(random_for(registry, rule_, options.seed, landmarks == nullptr ? "instances" : "landmarks")),
        given_(given_variables(rule_)) {
    for (const auto& [name, function] : registry.functions())
      if (registry.is_total_function(name)) functions_.push_back(name);
    find_ranks();
    find_uses();
    find_order();
  }

  // One attempt; `style` selects the distribution of extents.
  std::optional<Instance> sample(std::size_t style) {
    style_ = style;
    tensors_.resize(rule_.tensor_variables.size());
    bindings_.tensors.assign(tensors_.size(), nullptr);
    bindings_.attributes.assign(rule_.attribute_variables.size(), std::nullopt);
    typed_.assign(rule_.source.nodes.size(), nullptr);
    for (const std::size_t node : order_)
      if (!assign_node(node)) return std::nullopt;
    // Variables that no operator of the source reads: outputs themselves.
    for (std::size_t v = 0; v < tensors_.size(); ++v)
      if (!is_assigned(v)) assign_tensor(v, any_shape(static_cast<std::uint32_t>(v)), ElementType::f32);
    if (!choose_given(0)) return std::nullopt;
    for (std::optional<AttributeValue>& value : bindings_.attributes)
      if (!value) value = std::int64_t{1};
    if (!conditions_hold(rule_, bindings_)) return std::nullopt;
    return Instance{tensors_, bindings_.attributes};
  }

  // One attempt at a landmark.
  std::optional<Instance> sample_at(const Focus& focus, std::size_t style) {
    focus_ = focus;
    return sample(style);
  }

  [[nodiscard]] const std::vector<std::set<std::size_t>>& ranks() const { return ranks_; }
  [[nodiscard]] const std::vector<bool>& integers() const { return integers_; }

 private:
  using Sizes = std::map<std::string, Integers>;  // names of sizes (one value) and of rests

  // Ranks that every direct use of a variable allows.
  void find_ranks() {
    std::set<std::size_t> any = {0, 1, 2, 3, 4};
    if (landmarks_ != nullptr) any.insert(landmarks_->ranks.begin(), landmarks_->ranks.end());
    ranks_.assign(rule_.tensor_variables.size(), any);
    integers_.assign(rule_.tensor_variables.size(), false);
    for (const Pattern* pattern : {&rule_.source, &rule_.target})
      for (const PatternNode& node : pattern->nodes) {
        const OperatorDefinition* definition = registry_.find(node.op);
        if (definition == nullptr) continue;
        for (std::size_t i = 0; i < node.inputs.size(); ++i) {
          if (!node.inputs[i].is_variable) continue;
          const InputSpec& input = definition->inputs[definition->variadic() ? 0 : i];
          if (input.integers()) integers_[node.inputs[i].index] = true;
          const auto rests = std::count_if(input.axes.begin(), input.axes.end(),
                                           [](const AxisSpec& axis) { return axis.kind == AxisSpec::Kind::rest; });
          const std::size_t fixed = input.axes.size() - static_cast<std::size_t>(rests);
          std::erase_if(ranks_[node.inputs[i].index],
                        [&](std::size_t rank) { return rests == 0 ? rank != fixed : rank < fixed; });
          if (rests == 0 && fixed > max_instance_rank && ranks_[node.inputs[i].index].empty())
            ranks_[node.inputs[i].index].insert(fixed);
        }
      }
    for (const Condition& condition : rule_.conditions)
      for (std::uint32_t v = 0; v < ranks_.size(); ++v)
        if (condition.compares() && is_of_rank(condition.left, v) && is_of_rank(condition.right, v))
          std::erase_if(ranks_[v], [&](std::size_t rank) { return !holds_at_rank(condition, v, rank); });
  }

  // Whether a condition on the rank of one variable holds.
  [[nodiscard]] bool holds_at_rank(const Condition& condition, std::uint32_t variable, std::size_t rank) const {
    const TensorType type{ElementType::f32, Shape(rank, 1), true};
    Bindings bindings;
    bindings.tensors.assign(rule_.tensor_variables.size(), nullptr);
    bindings.tensors[variable] = &type;
    bindings.attributes.assign(rule_.attribute_variables.size(), std::nullopt);
    const Expected<bool> held = holds(condition, bindings);
    return !held || *held;
  }

  void find_uses() {
    uses_.resize(rule_.attribute_variables.size());
    for (const bool direct : {true, false})
      for (const Pattern* pattern : {&rule_.source, &rule_.target})
        for (const PatternNode& node : pattern->nodes) {
          const OperatorSignature* signature = registry_.signature(node.op);
          if (signature == nullptr) continue;
          for (const auto& [name, expression] : node.attributes) {
            if (direct != (expression.kind == Kind::variable)) continue;
            for (const AttributeSignature& attribute : signature->attributes) {
              if (attribute.name != name) continue;
              std::vector<std::uint32_t> variables;
              VariableUse number;
              number.known = true;
              collect_variables(expression, variables);
              for (const std::uint32_t variable : variables) {
                VariableUse& use = uses_[variable];
                if (use.known) continue;
                use.known = true;
                use.kind = attribute.kind;
                use.default_value = attribute.default_value;
                if (const AttributeSpec* spec = registry_.find(node.op)->find_attribute(name);
                    spec != nullptr && spec->length && spec->length->kind == Expression::Kind::integer)
                  use.length = static_cast<std::size_t>(spec->length->integer);
                if (is_list_element(expression, variable)) {
                  use = number;
                  use.element = true;
                }
              }
            }
          }
        }
  }

  // Producers first, and operators whose attributes are lists of any length (shapes) as late as possible: what they
  // must fit is then known.
  void find_order() {
    const std::vector<PatternNode>& nodes = rule_.source.nodes;
    std::vector<bool> done(nodes.size(), false);
    auto is_late = [&](const PatternNode& node) {
      return std::any_of(node.attributes.begin(), node.attributes.end(), [&](const auto& attribute) {
        return attribute.second.kind == Kind::variable &&
               uses_[attribute.second.index].kind == AttributeKind::integers && !uses_[attribute.second.index].length;
      });
    };
    while (order_.size() < nodes.size()) {
      std::optional<std::size_t> next;
      for (std::size_t i = 0; i < nodes.size(); ++i) {
        if (done[i]) continue;
        const bool ready = std::all_of(nodes[i].inputs.begin(), nodes[i].inputs.end(), [&](const PatternValue& input) {
          return input.is_variable || done[input.index];
        });
        if (ready && (!next || (is_late(nodes[*next]) && !is_late(nodes[i])))) next = i;
      }
      TASO_CHECK(next.has_value(), "pattern nodes are in topological order");
      done[*next] = true;
      order_.push_back(*next);
    }
  }

  // Whether no condition is false, as far as conditions have values.
  [[nodiscard]] bool may_hold() const {
    return std::all_of(rule_.conditions.begin(), rule_.conditions.end(), [&](const Condition& condition) {
      if (condition.of_elements()) return true;
      const Expected<bool> result = holds(condition, bindings_);
      return !result.ok() || *result;
    });
  }

  // Values for the given variables from `first` on with which the conditions hold, in a random order of small numbers,
  // those about the landmark among them.
  bool choose_given(std::size_t first) {
    if (first == given_.size()) return may_hold();
    Integers values;
    for (std::int64_t value = -static_cast<std::int64_t>(max_instance_rank); value <= 2 * options_.bound; ++value)
      values.push_back(value);
    if (focus_)
      for (const std::int64_t shift : {-1, 0, 1}) values.push_back(focus_->size + shift);
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random_.below(i)]);
    for (const std::int64_t value : values) {
      bindings_.attributes[given_[first]] = value;
      if (may_hold() && choose_given(first + 1)) return true;
    }
    bindings_.attributes[given_[first]].reset();
    return false;
  }

  // A tensor that could be broadcast to one of known shape: some of its innermost axes, some of them 1.
  std::optional<Shape> smaller_shape(std::uint32_t variable) {
    const std::optional<Shape> known = known_shape();
    if (!known || ranks_[variable].empty()) return std::nullopt;
    std::vector<std::size_t> ranks;
    for (const std::size_t rank : ranks_[variable])
      if (rank <= known->size()) ranks.push_back(rank);
    if (ranks.empty()) return std::nullopt;
    Shape shape(known->end() - static_cast<std::ptrdiff_t>(ranks[random_.below(ranks.size())]), known->end());
    const bool one_axis = chance(50);  // as a vector per channel has: [c, 1, 1]
    for (std::size_t i = 0; i < shape.size(); ++i)
      if (one_axis ? i > 0 : chance(40)) shape[i] = 1;
    return shape;
  }

  // The shape of a tensor that has been assigned or computed.
  std::optional<Shape> known_shape() {
    std::vector<const Shape*> known;
    for (const TensorType* type : bindings_.tensors)
      if (type != nullptr) known.push_back(&type->shape);
    for (const auto& typed : typed_) {
      if (typed == nullptr) continue;
      for (const TensorType& type : typed->output_types())
        // Results are likelier than variables to be what others must fit.
        known.insert(known.end(), 3, &type.shape);
    }
    if (known.empty()) return std::nullopt;
    return *known[random_.below(known.size())];
  }

  // Whether a variable is a number inside a list, as in sizes=[a, b].
  static bool is_list_element(const AttributeExpression& expression, std::uint32_t variable) {
    for (const AttributeExpression& operand : expression.operands) {
      std::vector<std::uint32_t> inside;
      collect_variables(operand, inside);
      const bool here = std::find(inside.begin(), inside.end(), variable) != inside.end();
      if (here && (expression.kind == Kind::list || is_list_element(operand, variable))) return true;
    }
    return false;
  }

  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(high - low + 1)));
  }
  bool chance(int percent) { return random_.below(100) < static_cast<std::uint64_t>(percent); }

  std::int64_t extent() {
    if (focus_) return chance(focus_->percent) ? focus_->size : pick(1, 2);
    switch (style_ % 4) {
      case 0:
        return style_ == 0 ? 1 : pick(1, 2);
      case 1:
        return pick(1, options_.bound);
      case 2:
        return pick(std::min<std::int64_t>(2, options_.bound), options_.bound);
      default:
        return chance(50) ? pick(1, options_.bound) : pick(1, 2);
    }
  }
  // The first factor of a composite axis: a number of groups.
  std::int64_t groups() {
    if (style_ == 0) return 1;
    if (focus_ && chance(focus_->percent / 2)) return focus_->size;
    return chance(style_ % 4 == 2 ? 30 : 55) ? 1 : pick(2, 3);
  }

  // One of these ranks; that of the landmark mostly, where it is among them.
  std::size_t choose_rank(const std::vector<std::size_t>& ranks) {
    if (focus_ && focus_->rank && chance(70) && std::find(ranks.begin(), ranks.end(), *focus_->rank) != ranks.end())
      return *focus_->rank;
    return ranks[random_.below(ranks.size())];
  }

  Shape any_shape(std::uint32_t variable) {
    std::vector<std::size_t> ranks(ranks_[variable].begin(), ranks_[variable].end());
    if (ranks.empty()) return {};
    Shape shape(choose_rank(ranks));
    for (std::int64_t& e : shape) e = extent();
    return shape;
  }

  // The value of an expression made of known names and numbers.
  static std::optional<std::int64_t> known_size(const Expression& expression, const Sizes& sizes) {
    if (expression.kind == Expression::Kind::integer) return expression.integer;
    if (expression.kind == Expression::Kind::name) {
      const auto it = sizes.find(expression.name);
      if (it != sizes.end() && it->second.size() == 1) return it->second[0];
    }
    return std::nullopt;
  }

  // Names of an input's axes from the type it has.
  void learn(const InputSpec& input, const Shape& shape, Sizes& sizes) {
    std::size_t fixed = 0, rests = 0;
    for (const AxisSpec& axis : input.axes) axis.kind == AxisSpec::Kind::rest ? ++rests : ++fixed;
    if (shape.size() < fixed || (rests == 0 && shape.size() != fixed)) return;
    std::size_t spare = shape.size() - fixed, at = 0;
    // A rest whose length is known takes it; the first other one takes what is left.
    std::size_t known = 0;
    for (const AxisSpec& axis : input.axes)
      if (axis.kind == AxisSpec::Kind::rest)
        if (const auto it = sizes.find(".." + axis.factors[0].name); it != sizes.end()) known += it->second.size();
    for (const AxisSpec& axis : input.axes) {
      if (axis.kind == AxisSpec::Kind::rest) {
        const std::string name = ".." + axis.factors[0].name;
        const auto it = sizes.find(name);
        const std::size_t length = it != sizes.end() ? it->second.size() : spare - std::min(spare, known);
        if (at + length > shape.size()) return;
        if (it == sizes.end()) {
          // Two open rests share what is left at random.
          std::size_t take = length;
          if (rests > 1 && length > 0) take = random_.below(length + 1);
          sizes[name] = Integers(shape.begin() + static_cast<std::ptrdiff_t>(at),
                                 shape.begin() + static_cast<std::ptrdiff_t>(at + take));
          at += take;
          spare -= take;
          --rests;
        } else {
          at += length;
        }
        continue;
      }
      if (at >= shape.size()) return;
      const std::int64_t here = shape[at++];
      std::int64_t left = here;
      const Expression* open = nullptr;
      std::size_t open_count = 0;
      for (const Expression& factor : axis.factors) {
        if (const auto value = known_size(factor, sizes)) {
          if (*value > 0 && left % *value == 0) left /= *value;
        } else if (factor.kind == Expression::Kind::name) {
          if (open == nullptr) open = &factor;
          ++open_count;
        }
      }
      for (const Expression& factor : axis.factors) {
        if (factor.kind != Expression::Kind::name || known_size(factor, sizes)) continue;
        std::int64_t value = left;
        if (--open_count > 0) {
          Integers divisors;
          for (std::int64_t d = 1; d <= std::min(left, max_divisor); ++d)
            if (left % d == 0) divisors.push_back(d);
          if (left > max_divisor) divisors.push_back(left);
          value = divisors.empty() ? 1 : divisors[random_.below(divisors.size())];
        }
        sizes[factor.name] = {value};
        left /= std::max<std::int64_t>(1, value);
      }
    }
  }

  // A shape for an input in which known names have their values.
  Shape propose(const InputSpec& input, std::uint32_t variable, Sizes& sizes) {
    Shape shape;
    std::size_t fixed = 0;
    for (const AxisSpec& axis : input.axes) fixed += axis.kind != AxisSpec::Kind::rest;
    std::vector<std::size_t> ranks(ranks_[variable].begin(), ranks_[variable].end());
    std::size_t rank = ranks.empty() ? fixed : choose_rank(ranks);
    std::size_t spare = rank > fixed ? rank - fixed : 0;
    for (const AxisSpec& axis : input.axes) {
      if (axis.kind == AxisSpec::Kind::rest) {
        const std::string name = ".." + axis.factors[0].name;
        auto it = sizes.find(name);
        if (it == sizes.end()) {
          Integers rest(axis.length                                                       ? random_.below(spare + 1)
                        : (&axis == &input.axes.back() || input.axes.size() == fixed + 1) ? spare
                                                                                          : random_.below(spare + 1));
          for (std::int64_t& e : rest) e = extent();
          spare -= std::min(spare, rest.size());
          it = sizes.emplace(name, std::move(rest)).first;
        }
        shape.insert(shape.end(), it->second.begin(), it->second.end());
        continue;
      }
      std::int64_t product = 1;
      for (std::size_t f = 0; f < axis.factors.size(); ++f) {
        const Expression& factor = axis.factors[f];
        std::optional<std::int64_t> value = known_size(factor, sizes);
        if (!value) {
          value = axis.factors.size() > 1 && f == 0 ? groups() : extent();
          // Numbers of channels with several divisors: other group counts may fit them by accident.
          if (axis.factors.size() > 1 && f > 0 && style_ > 0 && chance(12)) value = chance(50) ? 4 : 6;
          if (factor.kind == Expression::Kind::name) sizes[factor.name] = {*value};
        }
        product *= *value;
      }
      shape.push_back(product);
    }
    return shape;
  }

  void assign_tensor(std::size_t variable, Shape shape, ElementType element) {
    tensors_[variable] = {element, std::move(shape), true};
    bindings_.tensors[variable] = &tensors_[variable];
  }
  [[nodiscard]] bool is_assigned(std::size_t variable) const { return bindings_.tensors[variable] != nullptr; }

  const TensorType* type_of(const PatternValue& value) const {
    if (value.is_variable) return bindings_.tensors[value.index];
    const auto& typed = typed_[value.index];
    return typed != nullptr && value.port < typed->output_types().size() ? &typed->output_types()[value.port] : nullptr;
  }

  bool assign_node(std::size_t index) {
    const PatternNode& node = rule_.source.nodes[index];
    const OperatorDefinition* definition = registry_.find(node.op);
    if (definition == nullptr) return false;
    std::vector<std::uint32_t> open_tensors, open_attributes;
    for (const PatternValue& input : node.inputs)
      if (input.is_variable && !is_assigned(input.index) &&
          std::find(open_tensors.begin(), open_tensors.end(), input.index) == open_tensors.end())
        open_tensors.push_back(input.index);
    for (const auto& [name, expression] : node.attributes) collect_variables(expression, open_attributes);
    std::erase_if(open_attributes, [&](std::uint32_t v) { return bindings_.attributes[v].has_value(); });
    const bool open = !open_tensors.empty() || !open_attributes.empty();
    std::vector<const TensorType*> inputs(node.inputs.size());
    const int proposals = given_.empty() ? proposals_per_node : proposals_with_given;
    for (int attempt = 0; attempt < (open ? proposals : 1); ++attempt) {
      for (const std::uint32_t v : open_tensors) bindings_.tensors[v] = nullptr;
      for (const std::uint32_t v : open_attributes) bindings_.attributes[v].reset();
      propose_inputs(node, *definition, open_tensors);
      for (const std::uint32_t v : open_attributes) bindings_.attributes[v] = propose_attribute(v, node, index);
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        inputs[i] = type_of(node.inputs[i]);
        if (inputs[i] == nullptr) return false;
      }
      typed_[index] = typer_.type(false, index, inputs, bindings_);
      if (typed_[index] != nullptr) return true;
    }
    return false;
  }

  void propose_inputs(const PatternNode& node, const OperatorDefinition& definition,
                      const std::vector<std::uint32_t>& open) {
    if (open.empty()) return;
    Sizes sizes;
    if (definition.variadic()) {
      // Operands of a variadic operator mostly agree but for one axis.
      for (const PatternValue& input : node.inputs) {
        if (!input.is_variable || is_assigned(input.index)) continue;
        const TensorType* model = nullptr;
        for (const PatternValue& other : node.inputs)
          if (const TensorType* type = type_of(other)) model = type;
        Shape shape = model != nullptr ? model->shape : any_shape(input.index);
        if (model != nullptr && !shape.empty() && chance(70)) shape[random_.below(shape.size())] = extent();
        assign_tensor(input.index, std::move(shape), ElementType::f32);
      }
      return;
    }
    // What is known first, then the open inputs in order.
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (const TensorType* type = type_of(node.inputs[i])) learn(definition.inputs[i], type->shape, sizes);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].is_variable || is_assigned(node.inputs[i].index)) continue;
      const std::uint32_t variable = node.inputs[i].index;
      const InputSpec& input = definition.inputs[i];
      Shape shape;
      const bool any_rank = input.axes.size() == 1 && input.axes[0].kind == AxisSpec::Kind::rest &&
                            !sizes.contains(".." + input.axes[0].factors[0].name);
      if (any_rank && !node.attributes.empty() && chance(60)) {
        if (std::optional<Shape> smaller = smaller_shape(variable)) {
          assign_tensor(variable, std::move(*smaller), input.integers() ? ElementType::i64 : ElementType::f32);
          continue;
        }
      }
      std::vector<std::size_t> twins;
      for (std::size_t v = 0; v < tensors_.size(); ++v)
        if (is_assigned(v) && ranks_[v] == ranks_[variable]) twins.push_back(v);
      if (!twins.empty() && chance(style_ % 4 == 3 ? 70 : 40)) {
        shape = tensors_[twins[random_.below(twins.size())]].shape;
        if (chance(25) && !shape.empty()) shape[random_.below(shape.size())] = extent();
        learn(input, shape, sizes);
      } else {
        shape = propose(input, variable, sizes);
      }
      assign_tensor(variable, std::move(shape), input.integers() ? ElementType::i64 : ElementType::f32);
    }
  }

  AttributeValue propose_attribute(std::uint32_t variable, const PatternNode& node, std::size_t index) {
    const VariableUse& use = uses_[variable];
    switch (use.kind) {
      case AttributeKind::integer: {
        if (focus_ && chance(40)) return chance(25) ? -focus_->size : focus_->size;
        if (focus_ && focus_->rank && chance(50)) return pick(-static_cast<std::int64_t>(*focus_->rank), -1);
        // Of a rule with given variables: lists have an element for every axis, which are small numbers, or axes.
        if (!given_.empty() && use.element)
          return style_ % 2 == 0 ? pick(0, 3) : pick(-static_cast<std::int64_t>(max_instance_rank), -1);
        if (!use.known || chance(50)) return pick(1, options_.bound);
        return pick(-static_cast<std::int64_t>(max_instance_rank), -1);
      }
      case AttributeKind::real: {
        static constexpr double values[] = {1.0, 2.0, 0.5, -1.0, 0.0, 3.0};
        if (landmarks_ != nullptr && !landmarks_->reals.empty() && chance(60))
          return landmarks_->reals[random_.below(landmarks_->reals.size())];
        return values[random_.below(std::size(values))];
      }
      case AttributeKind::symbol:
        return SymbolValue{functions_.empty() ? "identity" : functions_[random_.below(functions_.size())]};
      case AttributeKind::integers:
        break;
    }
    if (use.length) {
      Integers list(*use.length);
      const bool ones = use.default_value && std::holds_alternative<Integers>(*use.default_value) &&
                        std::get<Integers>(*use.default_value) == Integers(*use.length, 1);
      const bool zeros = use.default_value && !ones;
      const bool plain = chance(30);
      for (std::int64_t& e : list)
        e = ones    ? (plain ? 1 : pick(1, 2 + (style_ % 8 == 5)))
            : zeros ? (plain ? 0 : pick(0, style_ % 4 == 0 ? 1 : 2))
                    : pick(style_ % 2 == 0 ? 1 : 0, style_ % 4 == 0 ? 2 : options_.bound);
      if (focus_ && !list.empty() && chance(focus_->percent)) list[random_.below(list.size())] = focus_->size;
      return list;
    }
    const TensorType* first = nullptr;
    for (const PatternValue& input : node.inputs)
      if (first == nullptr) first = type_of(input);
    const Shape shape = first != nullptr ? first->shape : Shape(random_.below(max_instance_rank + 1), 2);
    const std::size_t rank = shape.size();
    if (chance(45))
      if (const std::optional<Shape> known = known_shape()) return *known;
    switch (random_.below(6)) {
      case 0: {  // a permutation
        Integers list(rank);
        for (std::size_t i = 0; i < rank; ++i) list[i] = static_cast<std::int64_t>(i);
        for (std::size_t i = rank; i > 1; --i) std::swap(list[i - 1], list[random_.below(i)]);
        return list;
      }
      case 1: {  // some axes, ascending
        Integers list;
        for (std::size_t i = rank; i > 0; --i)
          if (chance(50)) list.push_back(-static_cast<std::int64_t>(i));
        return list;
      }
      case 2: {  // an extent in as many parts as outputs are used
        std::uint32_t parts = 2;
        for (const PatternNode& user : rule_.source.nodes)
          for (const PatternValue& input : user.inputs)
            if (!input.is_variable && input.index == index) parts = std::max(parts, input.port + 1);
        for (const PatternValue& output : rule_.source.outputs)
          if (!output.is_variable && output.index == index) parts = std::max(parts, output.port + 1);
        if (rank == 0) return Integers{};
        std::int64_t total = shape[random_.below(rank)];
        Integers list;
        for (std::uint32_t i = 0; i + 1 < parts; ++i) {
          const std::int64_t most = std::max<std::int64_t>(1, total - static_cast<std::int64_t>(parts - 1 - i));
          list.push_back(pick(1, most));
          total -= list.back();
        }
        list.push_back(total);
        return list;
      }
      case 3: {  // another factorisation of the same elements
        Integers list = shape;
        for (std::size_t i = 1; i < list.size(); ++i)
          if (chance(40)) {
            list[i] *= list[i - 1];
            list[i - 1] = 1;
          }
        if (chance(50)) std::erase(list, 1);
        if (chance(40) && list.size() < max_instance_rank)
          list.insert(list.begin() + static_cast<std::ptrdiff_t>(random_.below(list.size() + 1)), 1);
        for (std::size_t i = 0; i < list.size() && list.size() < max_instance_rank; ++i)
          for (const std::int64_t factor : {2, 3})
            if (list[i] > factor && list[i] % factor == 0 && chance(40)) {
              const std::int64_t other = list[i] / factor;
              list[i] = factor;
              list.insert(list.begin() + static_cast<std::ptrdiff_t>(i) + 1, other);
              break;
            }
        return list;
      }
      case 4: {  // a larger shape to broadcast to
        Integers list = shape;
        for (std::int64_t& e : list)
          if (e == 1 && chance(60)) e = extent();
        while (list.size() < max_instance_rank && chance(40)) list.insert(list.begin(), extent());
        return list;
      }
      default: {  // small numbers, one per axis
        Integers list(rank);
        for (std::int64_t& e : list) e = pick(0, 2);
        return list;
      }
    }
  }

  const OperatorRegistry& registry_;
  const Substitution& rule_;
  Typer& typer_;
  InstanceOptions options_;
  const Landmarks* landmarks_;
  std::optional<Focus> focus_;
  Random random_;
  std::vector<std::string> functions_;
  std::vector<std::set<std::size_t>> ranks_;
  std::vector<bool> integers_;
  std::vector<VariableUse> uses_;
  std::vector<std::size_t> order_;  // of the source's nodes
  std::vector<std::uint32_t> given_;
  std::size_t style_ = 0;
  // The attempt: types of variables, all values, and the source's operators typed so far.
  std::vector<TensorType> tensors_;
  Bindings bindings_;
  std::vector<std::shared_ptr<const OperatorInstance>> typed_;
};

Sampler::Sampler(const OperatorRegistry& registry, Typer& typer, const InstanceOptions& options,
                 const Landmarks* landmarks)
    : implementation_(std::make_unique<Implementation>(registry, typer, options, landmarks)) {}
Sampler::~Sampler() = default;
std::optional<Instance> Sampler::sample(std::size_t style) { return implementation_->sample(style); }
std::optional<Instance> Sampler::sample_at(const Focus& focus, std::size_t style) {
  return implementation_->sample_at(focus, style);
}
const std::vector<std::set<std::size_t>>& Sampler::ranks() const { return implementation_->ranks(); }
const std::vector<bool>& Sampler::integers() const { return implementation_->integers(); }

}  // namespace taso
