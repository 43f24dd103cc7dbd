#include "operators/node_maps.h"

#include <algorithm>
#include <cmath>

#include "graph/reals.h"

namespace taso {
namespace {

using Syntax = ExpressionSyntax::Kind;

/// The attributes of a node, defaults filled in, and its inputs: what expressions of a mapping speak of.
struct NodeScope {
  const NodeMapping* mapping = nullptr;
  std::map<std::string, AttributeValue, std::less<>> attributes;
  const std::vector<std::optional<MappedOperand>>* inputs = nullptr;

  [[nodiscard]] const std::optional<MappedOperand>& input(const std::string& name) const {
    const std::vector<std::string>& names = mapping->inputs;
    return (*inputs)[static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin())];
  }

  /// What an attribute's value stands for; nothing if it stands for nothing.
  [[nodiscard]] std::optional<AttributeValue> meaning(const std::string& name) const {
    const auto given = attributes.find(name);
    if (given == attributes.end()) return std::nullopt;
    const NodeMapping::Attribute& attribute = *mapping->find_attribute(name);
    if (attribute.table.empty()) return given->second;
    for (const auto& [from, to] : attribute.table)
      if (from == given->second) return to;
    return std::nullopt;
  }
};

std::optional<std::int64_t> integer_arithmetic(AttributeExpression::Kind operation, std::int64_t x, std::int64_t y) {
  std::int64_t result = 0;
  switch (operation) {
    case AttributeExpression::Kind::add:
      return __builtin_add_overflow(x, y, &result) ? std::nullopt : std::optional(result);
    case AttributeExpression::Kind::subtract:
      return __builtin_sub_overflow(x, y, &result) ? std::nullopt : std::optional(result);
    case AttributeExpression::Kind::multiply:
      return __builtin_mul_overflow(x, y, &result) ? std::nullopt : std::optional(result);
    case AttributeExpression::Kind::floor_divide:
      if (y == 0 || (y == -1 && x == std::numeric_limits<std::int64_t>::min())) return std::nullopt;
      return x / y - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0);
    default:
      return std::nullopt;
  }
}

/// The value of a checked expression; nothing where it has none. `mapped`: attributes are what they stand for.
std::optional<AttributeValue> value_of(const ExpressionSyntax& e, const NodeScope& scope, bool mapped) {
  const auto integer = [&](const ExpressionSyntax& operand) -> std::optional<std::int64_t> {
    const std::optional<AttributeValue> value = value_of(operand, scope, mapped);
    if (!value || !std::holds_alternative<std::int64_t>(*value)) return std::nullopt;
    return std::get<std::int64_t>(*value);
  };
  switch (e.kind) {
    case Syntax::integer:
      return AttributeValue(e.integer);
    case Syntax::real:
      return AttributeValue(e.real);
    case Syntax::name: {
      if (scope.mapping->find_attribute(e.name) == nullptr) return AttributeValue(SymbolValue{e.name});
      if (mapped) return scope.meaning(e.name);
      const auto given = scope.attributes.find(e.name);
      return given == scope.attributes.end() ? std::nullopt : std::optional(given->second);
    }
    case Syntax::list: {
      std::vector<std::int64_t> list;
      for (const ExpressionSyntax& entry : e.operands) {
        const std::optional<std::int64_t> value = integer(entry);
        if (!value) return std::nullopt;
        list.push_back(*value);
      }
      return AttributeValue(std::move(list));
    }
    case Syntax::rank: {
      const std::optional<MappedOperand>& input = scope.input(e.name);
      return AttributeValue(input && input->type.known ? static_cast<std::int64_t>(input->type.shape.size()) : -1);
    }
    case Syntax::value: {
      const std::optional<MappedOperand>& input = scope.input(e.name);
      return input && input->number ? std::optional(AttributeValue(*input->number)) : std::nullopt;
    }
    case Syntax::dimension: {
      const std::optional<MappedOperand>& input = scope.input(e.name);
      if (!input || !input->constant || !input->type.known) return std::nullopt;
      const auto rank = static_cast<std::int64_t>(input->type.shape.size());
      const std::optional<std::int64_t> axis = integer(e.operands[0]);
      if (!axis || *axis < -rank || *axis >= rank) return std::nullopt;
      return AttributeValue(input->type.shape[static_cast<std::size_t>(*axis < 0 ? *axis + rank : *axis)]);
    }
    case Syntax::length:
    case Syntax::element: {
      const std::optional<AttributeValue> value = value_of(e.operands[0], scope, mapped);
      if (!value || !std::holds_alternative<std::vector<std::int64_t>>(*value)) return std::nullopt;
      const auto& list = std::get<std::vector<std::int64_t>>(*value);
      const auto length = static_cast<std::int64_t>(list.size());
      if (e.kind == Syntax::length) return AttributeValue(length);
      if (e.integer < 0 || e.integer >= length) return std::nullopt;
      return AttributeValue(list[static_cast<std::size_t>(e.integer)]);
    }
    case Syntax::binary: {
      const std::optional<std::int64_t> left = integer(e.operands[0]), right = integer(e.operands[1]);
      if (!left || !right) return std::nullopt;
      const std::optional<std::int64_t> result = integer_arithmetic(e.operation, *left, *right);
      return result ? std::optional(AttributeValue(*result)) : std::nullopt;
    }
  }
  return std::nullopt;
}

bool compare(const std::string& comparison, auto left, auto right) {
  if (comparison == "==") return left == right;
  if (comparison == "!=") return left != right;
  if (comparison == "<") return left < right;
  if (comparison == "<=") return left <= right;
  if (comparison == ">") return left > right;
  return left >= right;
}

/// A real condition is about what a file holds, a float.
double as_float(const AttributeValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return static_cast<double>(*integer);
  return static_cast<double>(static_cast<float>(std::get<double>(value)));
}

/// The input of which an expression wants to know an extent, though it is no constant.
const std::string* unknown_extent(const ExpressionSyntax& e, const NodeScope& scope) {
  if (e.kind == Syntax::dimension && !(scope.input(e.name) && scope.input(e.name)->constant)) return &e.name;
  for (const ExpressionSyntax& operand : e.operands)
    if (const std::string* found = unknown_extent(operand, scope)) return found;
  return nullptr;
}

/// The input of which an expression wants the number, though it is no constant of one.
const std::string* unknown_number(const ExpressionSyntax& e, const NodeScope& scope) {
  if (e.kind == Syntax::value && !(scope.input(e.name) && scope.input(e.name)->number)) return &e.name;
  for (const ExpressionSyntax& operand : e.operands)
    if (const std::string* found = unknown_number(operand, scope)) return found;
  return nullptr;
}

std::string no_number(const std::string& input) { return "input " + input + " is no constant of one 32-bit float"; }

bool condition_holds(const NodeMapping::Condition& condition, const NodeScope& scope) {
  const std::optional<AttributeValue> left = value_of(condition.left, scope, false);
  if (!left) return false;
  if (condition.text) return (*left == AttributeValue(SymbolValue{*condition.text})) == (condition.comparison == "==");
  const std::optional<AttributeValue> right = value_of(condition.right, scope, false);
  if (!right) return false;
  if (kind_of(*left) == AttributeKind::integer && kind_of(*right) == AttributeKind::integer)
    return compare(condition.comparison, std::get<std::int64_t>(*left), std::get<std::int64_t>(*right));
  if (kind_of(*left) == AttributeKind::integers) return (*left == *right) == (condition.comparison == "==");
  return compare(condition.comparison, as_float(*left), as_float(*right));
}

std::optional<Shape> common_shape(std::span<const TensorType> types) {
  Shape common;
  for (const TensorType& type : types) {
    const Shape& shape = type.shape;
    if (shape.size() > common.size()) common.insert(common.begin(), shape.size() - common.size(), 1);
    for (std::size_t i = 0; i < shape.size(); ++i) {
      std::int64_t& extent = common[common.size() - shape.size() + i];
      if (extent == shape[i] || shape[i] == 1) continue;
      if (extent != 1) return std::nullopt;
      extent = shape[i];
    }
  }
  return common;
}

std::string count_of(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

/// Why inputs, outputs and attributes are not those of a mapping's node; empty if they are.
std::string node_misfit(const NodeMapping& mapping, const MappedNode& node) {
  if (node.version < mapping.first || node.version > mapping.last)
    return "version " + std::to_string(node.version) + " is not mapped";
  if (mapping.variadic ? node.inputs.size() < mapping.inputs.size() : node.inputs.size() != mapping.inputs.size())
    return "it has " + count_of(node.inputs.size(), "input");
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const bool wanted = i >= mapping.inputs.size() || mapping.inputs[i] != NodeMapping::nothing;
    if (node.inputs[i].has_value() != wanted)
      return "input " + std::to_string(i) + (wanted ? " is absent" : " is given");
  }
  if (node.outputs.size() > mapping.outputs.size()) return "it has " + count_of(node.outputs.size(), "output");
  for (std::size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i] && mapping.outputs[i] == NodeMapping::nothing)
      return "output " + std::to_string(i) + " is not modelled";
  for (const auto& [name, value] : node.attributes) {
    const NodeMapping::Attribute* attribute = mapping.find_attribute(name);
    if (attribute == nullptr) return "attribute \"" + name + "\" is not understood";
    if (attribute->kind != kind_of(value)) return "attribute \"" + name + "\" is of another kind";
  }
  for (const std::string& name : node.other_attributes)
    return mapping.find_attribute(name) == nullptr ? "attribute \"" + name + "\" is not understood"
                                                   : "attribute \"" + name + "\" is of another kind";
  return "";
}

/// "acme.map:3"
std::string place_of(const SourceLocation& where) {
  return where.file.substr(where.file.rfind('/') + 1) + ":" + std::to_string(where.line);
}

/// Reads a node by one mapping; a text is why it does not apply.
std::string read_by(const OperatorRegistry& registry, const NodeMapping& mapping, const MappedNode& node,
                    NodeReading& reading) {
  if (std::string reason = node_misfit(mapping, node); !reason.empty()) return reason;
  NodeScope scope{&mapping, {}, &node.inputs};
  for (const NodeMapping::Attribute& attribute : mapping.attributes) {
    const auto given = node.attributes.find(attribute.name);
    if (given == node.attributes.end() && !attribute.default_value)
      return "attribute \"" + attribute.name + "\" is absent";
    scope.attributes.emplace(attribute.name, given == node.attributes.end() ? *attribute.default_value : given->second);
    if (!scope.meaning(attribute.name))
      return "attribute \"" + attribute.name + "\" is " + to_string(scope.attributes.at(attribute.name));
  }
  const OperatorDefinition& definition = *registry.find(mapping.op);
  std::vector<TensorType> types;
  for (const std::size_t argument : mapping.arguments) {
    const std::size_t count =
        mapping.variadic && argument + 1 == mapping.inputs.size() ? node.inputs.size() : argument + 1;
    for (std::size_t i = argument; i < count; ++i) {
      reading.arguments.push_back(i);
      types.push_back(node.inputs[i]->type);
    }
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    const ElementType element = types[i].element;
    if (element == ElementType::other || definition.takes(i, element)) continue;
    reading.misfit = NodeReading::Misfit::element_type;
    return std::string("its elements are ") + to_string(element);
  }
  for (const TensorType& type : types) {
    if (!type.known) {
      reading.misfit = NodeReading::Misfit::unknown_type;
      return "the shape of an input is not known before run time";
    }
    if (volume(type.shape) == 0) return "an input is empty";
  }
  for (const NodeMapping::Condition& condition : mapping.conditions)
    if (!condition_holds(condition, scope)) {
      const std::string place = place_of(condition.where) + ":" + std::to_string(condition.where.column);
      const std::string* number = unknown_number(condition.left, scope);
      if (number == nullptr && !condition.text) number = unknown_number(condition.right, scope);
      if (number != nullptr) return "the condition at " + place + " does not hold: " + no_number(*number);
      const std::string* open = unknown_extent(condition.left, scope);
      if (open == nullptr && !condition.text) open = unknown_extent(condition.right, scope);
      return open == nullptr
                 ? "the condition at " + place + " does not hold"
                 : "the condition at " + place + " looks at an extent of " + *open + ", which is no constant";
    }
  if (mapping.broadcasting) {
    reading.common = common_shape(types);
    if (!reading.common || !is_reasonable(*reading.common)) return "its inputs do not broadcast";
    for (TensorType& type : types) type.shape = *reading.common;
  }
  Attributes attributes;
  for (const auto& [name, expression] : mapping.values) {
    std::optional<AttributeValue> value = value_of(expression, scope, true);
    if (const std::string* input = unknown_number(expression, scope); !value && input != nullptr)
      return no_number(*input) + ", which attribute " + name + " of " + mapping.op + " is";
    if (!value) return "attribute " + name + " of " + mapping.op + " has no value";
    attributes.set(name, std::move(*value));
  }
  Expected<Attributes> complete = registry.complete(mapping.op, attributes);
  if (!complete) return complete.error().message;
  reading.attributes = std::move(complete).value();
  const Expected<std::vector<TensorType>> results = registry.infer(mapping.op, reading.attributes, types);
  if (!results) return results.error().message;
  for (std::size_t i = 0, port = 0; i < node.outputs.size(); ++i) {
    reading.outputs.emplace_back();
    if (mapping.outputs[i] == NodeMapping::nothing) continue;
    if (port == results->size()) return mapping.op + " has " + count_of(results->size(), "output");
    const Shape& shape = (*results)[port].shape;
    if (!is_reasonable(shape)) return "an output has more than 2^40 elements";
    if (volume(shape) == 0) return "an output is empty";
    reading.outputs.back() = static_cast<std::uint32_t>(port++);
  }
  reading.mapping = &mapping;
  return "";
}

// ------------------------------------------------------------------------------------------------------- writing

bool is_same(const AttributeValue& x, const AttributeValue& y) {
  if (kind_of(x) == AttributeKind::real && kind_of(y) == AttributeKind::real) return as_float(x) == as_float(y);
  return x == y;
}

/// Finds what a node's attributes must be. Whatever it finds is checked by reading it back.
class AttributeSolver {
 public:
  explicit AttributeSolver(NodeScope& scope) : scope_(&scope) {}

  /// Makes an expression have a value; an expression that cannot be turned round is left to the check.
  void bind(const ExpressionSyntax& e, const AttributeValue& value) {
    if (e.kind == Syntax::name) return bind(e.name, value);
    if (e.kind == Syntax::list && kind_of(value) == AttributeKind::integers) {
      const auto& list = std::get<std::vector<std::int64_t>>(value);
      for (std::size_t i = 0; i < std::min(list.size(), e.operands.size()); ++i) bind(e.operands[i], list[i]);
      return;
    }
    if (e.kind != Syntax::binary || kind_of(value) != AttributeKind::integer) return;
    const std::optional<AttributeValue> left = value_of(e.operands[0], *scope_, true),
                                        right = value_of(e.operands[1], *scope_, true);
    const auto solve = [&](const ExpressionSyntax& operand, AttributeExpression::Kind operation, std::int64_t x,
                           std::int64_t y) {
      if (const std::optional<std::int64_t> result = integer_arithmetic(operation, x, y)) bind(operand, *result);
    };
    using Operation = AttributeExpression::Kind;
    const auto result = std::get<std::int64_t>(value);
    if (!left && right && std::holds_alternative<std::int64_t>(*right)) {
      const auto known = std::get<std::int64_t>(*right);
      if (e.operation == Operation::add) solve(e.operands[0], Operation::subtract, result, known);
      if (e.operation == Operation::subtract) solve(e.operands[0], Operation::add, result, known);
      if (e.operation == Operation::multiply) solve(e.operands[0], Operation::floor_divide, result, known);
    } else if (left && !right && std::holds_alternative<std::int64_t>(*left)) {
      const auto known = std::get<std::int64_t>(*left);
      if (e.operation == Operation::add) solve(e.operands[1], Operation::subtract, result, known);
      if (e.operation == Operation::subtract) solve(e.operands[1], Operation::subtract, known, result);
      if (e.operation == Operation::multiply) solve(e.operands[1], Operation::floor_divide, result, known);
    }
  }

  /// Makes a condition hold that says what an attribute is.
  void bind(const NodeMapping::Condition& condition) {
    if (condition.comparison != "==" || condition.left.kind != Syntax::name) return;
    const NodeMapping::Attribute* attribute = scope_->mapping->find_attribute(condition.left.name);
    if (attribute == nullptr || scope_->attributes.contains(attribute->name)) return;
    std::optional<AttributeValue> value = condition.text ? std::optional(AttributeValue(SymbolValue{*condition.text}))
                                                         : value_of(condition.right, *scope_, false);
    if (value) set(*attribute, std::move(*value));
  }

 private:
  void bind(const std::string& name, const AttributeValue& value) {
    const NodeMapping::Attribute* attribute = scope_->mapping->find_attribute(name);
    if (attribute == nullptr || scope_->attributes.contains(name)) return;
    if (attribute->table.empty()) return set(*attribute, value);
    // The default first: another spelling of it is not needed.
    const auto stands_for = [&](const auto& entry) { return is_same(entry.second, value); };
    const auto found = std::find_if(attribute->table.begin(), attribute->table.end(), stands_for);
    if (found == attribute->table.end()) return;
    for (const auto& entry : attribute->table)
      if (attribute->default_value == entry.first && stands_for(entry)) return set(*attribute, entry.first);
    set(*attribute, found->first);
  }

  void set(const NodeMapping::Attribute& attribute, AttributeValue value) {
    if (attribute.kind == AttributeKind::real && kind_of(value) == AttributeKind::integer)
      value = static_cast<double>(std::get<std::int64_t>(value));
    if (attribute.kind == AttributeKind::integer && kind_of(value) == AttributeKind::real) {
      const double real = std::get<double>(value);
      constexpr double exact = 9007199254740992.0;  // 2^53
      if (real != std::floor(real) || std::abs(real) > exact) return;
      value = static_cast<std::int64_t>(real);
    }
    if (kind_of(value) != attribute.kind) return;
    if (attribute.kind == AttributeKind::real) value = as_float(value);
    scope_->attributes.emplace(attribute.name, std::move(value));
  }

  NodeScope* scope_;
};

bool same_attributes(const Attributes& x, const Attributes& y) {
  return std::equal(x.entries().begin(), x.entries().end(), y.entries().begin(), y.entries().end(),
                    [](const Attributes::Entry& a, const Attributes::Entry& b) {
                      return a.first == b.first && is_same(a.second, b.second);
                    });
}

/// A line that comes first, with nothing but operands, each once: what it writes means what it says.
bool is_plain(const OperatorRegistry& registry, const NodeMapping& mapping, std::span<const MappedOperand> operands) {
  const auto named = std::count_if(mapping.inputs.begin(), mapping.inputs.end(),
                                   [](const std::string& name) { return name != NodeMapping::nothing; });
  return mapping.attributes.empty() && mapping.conditions.empty() && !mapping.variadic &&
         registry.find(mapping.op)->attributes.empty() && static_cast<std::size_t>(named) == mapping.arguments.size() &&
         registry.node_maps().of_type(mapping.domain, mapping.type)[0].get() == &mapping &&
         std::all_of(operands.begin(), operands.end(), [](const MappedOperand& operand) {
           const TensorType& type = operand.type;
           return type.known && is_real(type.element) && volume(type.shape) > 0;
         });
}

}  // namespace

void NodeMaps::put_first(NodeMapFile file) {
  Mappings all;
  for (NodeMapping& mapping : file.mappings) all.push_back(std::make_shared<const NodeMapping>(std::move(mapping)));
  all.insert(all.end(), all_.begin(), all_.end());
  all_ = std::move(all);
  allowed_domains_.insert(file.allowed_domains.begin(), file.allowed_domains.end());
  by_type_.clear();
  by_operator_.clear();
  for (const auto& mapping : all_) {
    by_type_[type_name(mapping->domain, mapping->type)].push_back(mapping);
    by_operator_[mapping->op].push_back(mapping);
  }
}

Expected<OperatorRegistry> allow_domain(const std::string& domain, const std::string& file,
                                        const OperatorRegistry& registry) {
  return OperatorRegistry::parse_maps("allow \"" + domain + "\"", file, registry);
}

const NodeMaps::Mappings& NodeMaps::of_type(std::string_view domain, std::string_view type) const {
  static const Mappings none;
  const auto found = by_type_.find(type_name(domain, type));
  return found == by_type_.end() ? none : found->second;
}

const NodeMaps::Mappings& NodeMaps::of_operator(std::string_view op) const {
  static const Mappings none;
  const auto found = by_operator_.find(op);
  return found == by_operator_.end() ? none : found->second;
}

NodeReading read_node(const OperatorRegistry& registry, const MappedNode& node) {
  const NodeMaps::Mappings& mappings = registry.node_maps().of_type(node.domain, node.type);
  std::string reasons;
  NodeReading::Misfit misfit = NodeReading::Misfit::form;
  for (const auto& mapping : mappings) {
    NodeReading reading;
    const std::string reason = read_by(registry, *mapping, node, reading);
    if (reason.empty()) return reading;
    misfit = reading.misfit;
    reasons += (reasons.empty() ? "" : "; ") + (mappings.size() == 1 ? "" : place_of(mapping->where) + ": ") + reason;
  }
  NodeReading nothing;
  nothing.misfit = misfit;
  nothing.reason = reasons.empty() ? "no map has a line for it" : reasons;
  return nothing;
}

std::optional<NodeWriting> write_node(const OperatorRegistry& registry, const NodeMapping& mapping,
                                      std::int64_t version, const Attributes& attributes,
                                      std::span<const MappedOperand> operands, std::size_t outputs) {
  if (version < mapping.first || version > mapping.last) return std::nullopt;
  NodeWriting result;
  result.node = {mapping.domain, mapping.type, version, {}, {}, {}, {}};
  // Inputs.
  const std::size_t fixed = mapping.inputs.size();
  if (mapping.variadic ? operands.empty() : operands.size() != mapping.arguments.size()) return std::nullopt;
  result.inputs.resize(mapping.variadic ? fixed - 1 + operands.size() : fixed);
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const std::size_t place = mapping.variadic ? fixed - 1 + k : mapping.arguments[k];
    if (!result.inputs[place]) result.inputs[place] = k;
  }
  for (const std::optional<std::size_t>& operand : result.inputs)
    result.node.inputs.push_back(operand ? std::optional(operands[*operand]) : std::nullopt);
  // Attributes that are constant inputs of the node.
  result.numbers.resize(result.inputs.size());
  const auto be_number = [&](const ExpressionSyntax& e, const AttributeValue& value) {
    if (e.kind != Syntax::value) return;
    const auto input = std::find(mapping.inputs.begin(), mapping.inputs.end(), e.name);
    const auto place = static_cast<std::size_t>(input - mapping.inputs.begin());
    if (result.inputs[place] || result.numbers[place]) return;
    result.numbers[place] = as_float(value);
    result.node.inputs[place] = MappedOperand{{ElementType::f32, {}, true}, true, result.numbers[place]};
  };
  for (const auto& [name, expression] : mapping.values) be_number(expression, *attributes.find(name));
  for (const NodeMapping::Condition& condition : mapping.conditions) {
    const bool number = condition.right.kind == Syntax::integer || condition.right.kind == Syntax::real;
    if (condition.comparison != "==" || condition.text || !number) continue;
    be_number(condition.left, condition.right.kind == Syntax::integer ? AttributeValue(condition.right.integer)
                                                                      : AttributeValue(condition.right.real));
  }
  NodeScope scope{&mapping, {}, &result.node.inputs};
  // Outputs.
  std::uint32_t port = 0;
  for (const std::string& name : mapping.outputs) {
    if (port == outputs) break;
    const bool computed = name != NodeMapping::nothing;
    result.outputs.push_back(computed ? std::optional(port++) : std::nullopt);
    result.node.outputs.push_back(computed);
  }
  if (port < outputs) return std::nullopt;
  // Attributes: those that are the operator's, then those of arithmetic with them.
  AttributeSolver solver(scope);
  for (const bool arithmetic : {false, true})
    for (const auto& [name, expression] : mapping.values)
      if ((expression.kind == Syntax::binary) == arithmetic) solver.bind(expression, *attributes.find(name));
  for (const NodeMapping::Condition& condition : mapping.conditions) solver.bind(condition);
  for (auto& [name, value] : scope.attributes) result.node.attributes.emplace(name, value);
  if (is_plain(registry, mapping, operands)) return result;
  const NodeReading read = read_node(registry, result.node);
  bool same = read.mapping != nullptr && read.mapping->op == mapping.op &&
              same_attributes(read.attributes, attributes) && read.arguments.size() == operands.size() &&
              read.outputs == result.outputs;
  for (std::size_t k = 0; same && k < operands.size(); ++k) same = result.inputs[read.arguments[k]] == k;
  return same ? std::optional(std::move(result)) : std::nullopt;
}

}  // namespace taso
