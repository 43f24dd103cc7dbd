#include "graph/pattern.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/constant.h"
#include "graph/size_arithmetic.h"

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;
using Integers = std::vector<std::int64_t>;

const char* symbol_of(Kind kind) {
  switch (kind) {
    case Kind::add:
      return "+";
    case Kind::subtract:
      return "-";
    case Kind::multiply:
      return "*";
    case Kind::floor_divide:
      return "//";
    case Kind::literal:
    case Kind::variable:
    case Kind::dimension:
    case Kind::rank:
    case Kind::length:
    case Kind::elements:
    case Kind::list:
    case Kind::element:
      break;
  }
  return "?";
}

// What arithmetic on reals is for: elements are 32-bit floats, and infinity and nan do not obey the laws of numbers.
bool is_finite(double value) { return std::abs(value) <= std::numeric_limits<float>::max(); }

// Whether a result that is not zero is zero as a 32-bit float, or too small to keep its digits, so that it is no
// divisor.
bool underflows(Kind kind, double left, double right, double result) {
  if (result == 0) return kind == Kind::multiply && left != 0 && right != 0;
  return std::abs(static_cast<float>(result)) < std::numeric_limits<float>::min();
}

// Integer arithmetic that reports what would be undefined.
Expected<std::int64_t> combine(Kind kind, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (kind) {
    case Kind::add:
      overflow = __builtin_add_overflow(a, b, &result);
      break;
    case Kind::subtract:
      overflow = __builtin_sub_overflow(a, b, &result);
      break;
    case Kind::multiply:
      overflow = __builtin_mul_overflow(a, b, &result);
      break;
    default:
      if (b == 0) return bad_input("division of " + std::to_string(a) + " by zero");
      if (b == -1) {
        overflow = __builtin_sub_overflow(std::int64_t{0}, a, &result);
        break;
      }
      result = a / b;
      if (a % b != 0 && (a < 0) != (b < 0)) --result;
  }
  if (overflow)
    return bad_input(std::to_string(a) + " " + symbol_of(kind) + " " + std::to_string(b) + " does not fit 64 bits");
  return result;
}

// The same of sizes that may be no numbers.
Expected<std::int64_t> combine(Kind kind, std::int64_t a, std::int64_t b, const SizeArithmetic* sizes) {
  if (sizes == nullptr || (sizes->is_number(a) && sizes->is_number(b))) return combine(kind, a, b);
  using Operation = SizeArithmetic::Operation;
  const Operation operation = kind == Kind::add        ? Operation::add
                              : kind == Kind::subtract ? Operation::subtract
                              : kind == Kind::multiply ? Operation::multiply
                                                       : Operation::floor_divide;
  return sizes->combine(operation, a, b);
}

// A real number where one is needed; nothing for a size that is no number.
std::optional<double> real_of(const AttributeValue& value, const SizeArithmetic* sizes) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  if (integer == nullptr) return std::get<double>(value);
  if (sizes != nullptr && !sizes->is_number(*integer)) return std::nullopt;
  return static_cast<double>(*integer);
}

Error no_number() { return bad_input("a size that is not one number at all sizes is used as a real number"); }

// Element by element; a number meets every element of a list.
Expected<AttributeValue> combine(Kind kind, const AttributeValue& a, const AttributeValue& b,
                                 const SizeArithmetic* sizes) {
  const std::optional<AttributeKind> result_kind =
      kind_of_arithmetic(kind, static_cast<AttributeKind>(a.index()), static_cast<AttributeKind>(b.index()));
  if (!result_kind) return bad_input(to_string(a) + " " + symbol_of(kind) + " " + to_string(b) + " has no meaning");
  const auto* left = std::get_if<Integers>(&a);
  const auto* right = std::get_if<Integers>(&b);
  if (left == nullptr && right == nullptr) {
    const auto* x = std::get_if<std::int64_t>(&a);
    const auto* y = std::get_if<std::int64_t>(&b);
    if (x != nullptr && y != nullptr) {
      TASO_ASSIGN(const std::int64_t result, combine(kind, *x, *y, sizes));
      return AttributeValue(result);
    }
    const std::optional<double> left_real = real_of(a, sizes), right_real = real_of(b, sizes);
    if (!left_real || !right_real) return no_number();
    const double u = *left_real, v = *right_real;
    const double result = kind == Kind::add ? u + v : kind == Kind::subtract ? u - v : u * v;
    if (!is_finite(u) || !is_finite(v) || !is_finite(result) || underflows(kind, u, v, result))
      return bad_input(to_string(a) + " " + symbol_of(kind) + " " + to_string(b) +
                       " leaves the numbers that a 32-bit float can hold");
    return AttributeValue(result);
  }
  if (left != nullptr && right != nullptr && left->size() != right->size())
    return bad_input(to_string(a) + " " + symbol_of(kind) + " " + to_string(b) + ": the lists have different lengths");
  Integers result(left != nullptr ? left->size() : right->size());
  for (std::size_t i = 0; i < result.size(); ++i) {
    TASO_ASSIGN(result[i], combine(kind, left != nullptr ? (*left)[i] : std::get<std::int64_t>(a),
                                   right != nullptr ? (*right)[i] : std::get<std::int64_t>(b), sizes));
  }
  return AttributeValue(std::move(result));
}

Expected<const TensorType*> tensor_of(const AttributeExpression& expression, const Bindings& bindings) {
  if (expression.index >= bindings.tensors.size() || bindings.tensors[expression.index] == nullptr)
    return bad_input("the shape of a tensor variable is not known");
  return bindings.tensors[expression.index];
}

}  // namespace

std::optional<AttributeKind> kind_of_arithmetic(AttributeExpression::Kind operation, AttributeKind left,
                                                AttributeKind right) {
  const bool real = left == AttributeKind::real || right == AttributeKind::real;
  const bool list = left == AttributeKind::integers || right == AttributeKind::integers;
  if (left == AttributeKind::symbol || right == AttributeKind::symbol || (real && list) ||
      (real && operation == Kind::floor_divide))
    return std::nullopt;
  return list ? AttributeKind::integers : real ? AttributeKind::real : AttributeKind::integer;
}

std::vector<std::uint32_t> given_variables(const Substitution& rule) {
  std::vector<bool> bound(rule.attribute_variables.size(), false);
  const auto visit = [&](const auto& self, const AttributeExpression& e) -> void {
    if (e.kind == Kind::variable) bound[e.index] = true;
    for (const AttributeExpression& operand : e.operands) self(self, operand);
  };
  for (const PatternNode& node : rule.source.nodes)
    for (const auto& [name, value] : node.attributes) visit(visit, value);
  std::vector<std::uint32_t> given;
  for (std::uint32_t v = 0; v < bound.size() && !rule.is_axiom; ++v)
    if (!bound[v]) given.push_back(v);
  return given;
}

Expected<Substitution> with_given_values(const Substitution& rule, const std::vector<std::int64_t>& values) {
  const std::vector<std::uint32_t> given = given_variables(rule);
  if (given.size() != values.size())
    return bad_input("rule " + rule.name + " asks for " + std::to_string(given.size()) + " values, not " +
                     std::to_string(values.size()));
  Substitution result = rule;
  std::vector<std::uint32_t> numbers(rule.attribute_variables.size());  // of the variables that stay
  result.attribute_variables.clear();
  for (std::uint32_t v = 0; v < numbers.size(); ++v) {
    if (std::find(given.begin(), given.end(), v) != given.end()) continue;
    numbers[v] = static_cast<std::uint32_t>(result.attribute_variables.size());
    result.attribute_variables.push_back(rule.attribute_variables[v]);
  }
  const auto substitute = [&](const auto& self, AttributeExpression& e) -> void {
    for (AttributeExpression& operand : e.operands) self(self, operand);
    if (e.kind != Kind::variable) return;
    const auto place = std::find(given.begin(), given.end(), e.index);
    if (place == given.end()) {
      e.index = numbers[e.index];
    } else {
      e = {};
      e.literal = values[static_cast<std::size_t>(place - given.begin())];
    }
  };
  for (Pattern* side : {&result.source, &result.target})
    for (PatternNode& node : side->nodes)
      for (auto& [name, value] : node.attributes) substitute(substitute, value);
  for (Condition& condition : result.conditions) {
    substitute(substitute, condition.left);
    substitute(substitute, condition.right);
  }
  return result;
}

bool same_term(const Pattern& a, const PatternValue& x, const Pattern& b, const PatternValue& y) {
  if (x.is_variable || y.is_variable) return x.is_variable && y.is_variable && x.index == y.index;
  if (x.port != y.port) return false;
  const PatternNode &m = a.nodes[x.index], &n = b.nodes[y.index];
  if (m.op != n.op || m.attributes != n.attributes || m.inputs.size() != n.inputs.size()) return false;
  for (std::size_t i = 0; i < m.inputs.size(); ++i)
    if (!same_term(a, m.inputs[i], b, n.inputs[i])) return false;
  return true;
}

const char* to_string(NumericClass numeric_class) {
  switch (numeric_class) {
    case NumericClass::exact:
      return "exact";
    case NumericClass::reassociation:
      return "reassociation";
    case NumericClass::accumulation:
      return "accumulation";
    case NumericClass::distribution:
      return "distribution";
  }
  return "?";
}

std::vector<const ConstantData*> constants_of(const Graph& graph, const std::vector<Value>& values) {
  std::vector<const ConstantData*> result;
  result.reserve(values.size());
  for (const Value& value : values) result.push_back(graph.node(value.node).constant.get());
  return result;
}

Expected<AttributeValue> evaluate(const AttributeExpression& expression, const Bindings& bindings) {
  return evaluate(expression, bindings, nullptr);
}

namespace {

// A value, and how far it may be from what exact arithmetic gives.
struct Rounded {
  AttributeValue value;
  double error = 0;
};

// Sums and products of reals round, and carry on what their operands were off by. Where that leaves fewer digits than a
// 32-bit float has, there is no value: conditions such as `b != 0` speak of exact arithmetic.
Expected<Rounded> rounded(const AttributeExpression& expression, const Bindings& bindings,
                          const SizeArithmetic* sizes) {
  constexpr double digits = 1 << 24;
  const Kind kind = expression.kind;
  if (kind != Kind::add && kind != Kind::subtract && kind != Kind::multiply) {
    TASO_ASSIGN(AttributeValue value, evaluate(expression, bindings, sizes));
    return Rounded{std::move(value)};
  }
  TASO_ASSIGN(const Rounded left, rounded(expression.operands[0], bindings, sizes));
  TASO_ASSIGN(const Rounded right, rounded(expression.operands[1], bindings, sizes));
  TASO_ASSIGN(AttributeValue value, combine(kind, left.value, right.value, sizes));
  const auto* const result = std::get_if<double>(&value);
  if (result == nullptr) return Rounded{std::move(value)};
  const double a = *real_of(left.value, sizes), b = *real_of(right.value, sizes);
  double error = 0;
  if (kind == Kind::multiply) {
    error = std::abs(a) * right.error + std::abs(b) * left.error + left.error * right.error +
            std::abs(std::fma(a, b, -*result));
  } else {
    // What a sum of two numbers loses is a number (Knuth, The Art of Computer Programming 2, 4.2.2).
    const double other = kind == Kind::subtract ? -b : b, part = *result - a;
    error = left.error + right.error + std::abs((a - (*result - part)) + (other - part));
  }
  if (std::abs(*result) < error * digits)
    return bad_input(to_string(left.value) + " " + symbol_of(kind) + " " + to_string(right.value) +
                     " keeps fewer digits than a 32-bit float has");
  return Rounded{std::move(value), error};
}

}  // namespace

Expected<AttributeValue> evaluate(const AttributeExpression& expression, const Bindings& bindings,
                                  const SizeArithmetic* sizes) {
  switch (expression.kind) {
    case Kind::literal:
      return expression.literal;
    case Kind::variable:
      if (expression.index >= bindings.attributes.size() || !bindings.attributes[expression.index])
        return bad_input("an attribute variable has no value");
      return *bindings.attributes[expression.index];
    case Kind::dimension: {
      TASO_ASSIGN(const TensorType* type, tensor_of(expression, bindings));
      std::int64_t axis = expression.axis;
      if (!expression.operands.empty()) {
        TASO_ASSIGN(const AttributeValue value, evaluate(expression.operands[0], bindings, sizes));
        if (!std::holds_alternative<std::int64_t>(value))
          return bad_input("axis " + to_string(value) + " is not an integer");
        axis = std::get<std::int64_t>(value);
      }
      const auto rank = static_cast<std::int64_t>(type->shape.size());
      if (axis >= 0 || axis < -rank)
        return bad_input("a tensor of type " + to_string(*type) + " has no axis " + std::to_string(axis));
      return AttributeValue(type->shape[static_cast<std::size_t>(rank + axis)]);
    }
    case Kind::rank: {
      TASO_ASSIGN(const TensorType* type, tensor_of(expression, bindings));
      return AttributeValue(static_cast<std::int64_t>(type->shape.size()));
    }
    case Kind::length: {
      TASO_ASSIGN(const AttributeValue value, evaluate(expression.operands[0], bindings, sizes));
      const auto* list = std::get_if<Integers>(&value);
      if (list == nullptr) return bad_input(to_string(value) + " is no list and has no length");
      return AttributeValue(static_cast<std::int64_t>(list->size()));
    }
    case Kind::elements:
      return internal_error("the elements of a tensor are no attribute value");
    case Kind::list: {
      Integers result;
      result.reserve(expression.operands.size());
      for (const AttributeExpression& operand : expression.operands) {
        TASO_ASSIGN(const AttributeValue value, evaluate(operand, bindings, sizes));
        if (!std::holds_alternative<std::int64_t>(value))
          return bad_input("list element " + to_string(value) + " is not an integer");
        result.push_back(std::get<std::int64_t>(value));
      }
      return AttributeValue(std::move(result));
    }
    case Kind::element: {
      TASO_ASSIGN(const AttributeValue value, evaluate(expression.operands[0], bindings, sizes));
      const auto* list = std::get_if<Integers>(&value);
      const std::int64_t length = list == nullptr ? 0 : static_cast<std::int64_t>(list->size());
      const std::int64_t place = expression.axis < 0 ? length + expression.axis : expression.axis;
      if (place < 0 || place >= length)
        return bad_input(to_string(value) + " has no element " + std::to_string(expression.axis));
      return AttributeValue((*list)[static_cast<std::size_t>(place)]);
    }
    case Kind::add:
    case Kind::subtract:
    case Kind::multiply: {
      TASO_ASSIGN(Rounded result, rounded(expression, bindings, sizes));
      return std::move(result.value);
    }
    case Kind::floor_divide: {
      TASO_ASSIGN(const AttributeValue left, evaluate(expression.operands[0], bindings, sizes));
      TASO_ASSIGN(const AttributeValue right, evaluate(expression.operands[1], bindings, sizes));
      return combine(expression.kind, left, right, sizes);
    }
  }
  return internal_error("unknown kind of attribute expression");
}

namespace {

// A condition on the value of one expression.
Expected<bool> holds_of_one(const Condition& condition, const Bindings& bindings, const SizeArithmetic* sizes) {
  using Relation = Condition::Relation;
  if (condition.relation == Relation::finite) {
    TASO_ASSIGN(const AttributeValue value, evaluate(condition.left, bindings, sizes));
    const auto* real = std::get_if<double>(&value);
    // A size that is no number is an integer all the same.
    if (real == nullptr && !std::holds_alternative<std::int64_t>(value))
      return bad_input(to_string(value) + " is no number");
    return real == nullptr || is_finite(*real);
  }
  const std::uint32_t tensor = condition.left.index;
  if (condition.left.kind != Kind::elements || tensor >= bindings.constants.size() ||
      bindings.constants[tensor] == nullptr)
    return bad_input("the elements of a tensor are not known: it is no constant");
  TASO_RETURN_IF_ERROR(bindings.constants[tensor]->require_data());
  const std::optional<ConstantData::Signs> signs = bindings.constants[tensor]->signs();
  if (!signs) return bad_input("the elements of a constant are no 32-bit or 64-bit floats");
  return condition.relation == Relation::positive      ? signs->positive
         : condition.relation == Relation::nonnegative ? signs->nonnegative
                                                       : signs->nonzero;
}

// Whether a relation holds of two integers, at all sizes.
bool holds(Condition::Relation relation, std::int64_t a, std::int64_t b, const SizeArithmetic* sizes) {
  const bool numbers = sizes == nullptr || (sizes->is_number(a) && sizes->is_number(b));
  switch (relation) {
    case Condition::Relation::equal:
      return numbers ? a == b : sizes->follows(Condition::Relation::equal, a, b);
    case Condition::Relation::not_equal:
      return numbers ? a != b : sizes->follows(Condition::Relation::not_equal, a, b);
    case Condition::Relation::less:
      return numbers ? a < b : sizes->follows(Condition::Relation::less, a, b);
    case Condition::Relation::less_equal:
      return numbers ? a <= b : sizes->follows(Condition::Relation::less_equal, a, b);
    case Condition::Relation::positive:
    case Condition::Relation::nonnegative:
    case Condition::Relation::nonzero:
    case Condition::Relation::finite:
      break;
  }
  return false;
}

}  // namespace

Expected<bool> holds(const Condition& condition, const Bindings& bindings) {
  return holds(condition, bindings, nullptr);
}

Expected<bool> holds(const Condition& condition, const Bindings& bindings, const SizeArithmetic* sizes) {
  if (!condition.compares()) return holds_of_one(condition, bindings, sizes);
  TASO_ASSIGN(const AttributeValue left, evaluate(condition.left, bindings, sizes));
  TASO_ASSIGN(const AttributeValue right, evaluate(condition.right, bindings, sizes));
  const Condition::Relation relation = condition.relation;
  const bool ordered = relation == Condition::Relation::less || relation == Condition::Relation::less_equal;
  const auto* a = std::get_if<Integers>(&left);
  const auto* b = std::get_if<Integers>(&right);
  const auto* x = std::get_if<std::int64_t>(&left);
  const auto* y = std::get_if<std::int64_t>(&right);
  if (x != nullptr && y != nullptr) return holds(relation, *x, *y, sizes);
  auto is_number = [](const AttributeValue& value) {
    return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
  };
  if (is_number(left) && is_number(right)) {
    const std::optional<double> u = real_of(left, sizes), v = real_of(right, sizes);
    if (!u || !v) return no_number();
    if (ordered) return relation == Condition::Relation::less ? *u < *v : *u <= *v;
    return (*u == *v) == (relation == Condition::Relation::equal);
  }
  if (!ordered && a != nullptr && b != nullptr && a->size() == b->size()) {
    // Lists are equal when all their elements are, and different when some are.
    for (std::size_t i = 0; i < a->size(); ++i)
      if (holds(relation, (*a)[i], (*b)[i], sizes) != (relation == Condition::Relation::equal))
        return relation == Condition::Relation::not_equal;
    return relation == Condition::Relation::equal;
  }
  if (!ordered) return (left == right) == (relation == Condition::Relation::equal);
  // Lists are ordered when all their elements are; a number stands for a list of it.
  if ((a == nullptr && x == nullptr) || (b == nullptr && y == nullptr) ||
      (a != nullptr && b != nullptr && a->size() != b->size()))
    return bad_input(to_string(left) + " and " + to_string(right) + " cannot be ordered");
  const std::size_t size = a != nullptr ? a->size() : b->size();
  for (std::size_t i = 0; i < size; ++i)
    if (!holds(relation, a != nullptr ? (*a)[i] : *x, b != nullptr ? (*b)[i] : *y, sizes)) return false;
  return true;
}

Expected<Graph> instantiate(const Substitution& rule, const Pattern& pattern,
                            const std::vector<TensorType>& variable_types,
                            const std::vector<std::optional<AttributeValue>>& attribute_values,
                            const OperatorCatalog& catalog) {
  Graph graph;
  Bindings bindings;
  std::vector<Value> variables;
  std::vector<NodeId> nodes;
  if (variable_types.size() != rule.tensor_variables.size())
    return internal_error("instantiate: " + std::to_string(variable_types.size()) + " types for " +
                          std::to_string(rule.tensor_variables.size()) + " tensor variables");
  for (std::size_t i = 0; i < variable_types.size(); ++i) {
    variables.push_back({graph.add_input(rule.tensor_variables[i], variable_types[i]), 0});
    bindings.tensors.push_back(&variable_types[i]);
  }
  bindings.attributes = attribute_values;
  for (const PatternNode& node : pattern.nodes) {
    TASO_ASSIGN(const Attributes attributes, evaluate_attributes(node, bindings, catalog));
    TASO_ASSIGN(std::vector<Value> inputs, resolve_inputs(graph, node, variables, nodes));
    TASO_ASSIGN(const NodeId id, add_op(graph, catalog, node.op, attributes, std::move(inputs)));
    nodes.push_back(id);
  }
  PatternNode outputs;
  outputs.inputs = pattern.outputs;
  TASO_ASSIGN(std::vector<Value> values, resolve_inputs(graph, outputs, variables, nodes));
  graph.set_outputs(std::move(values));
  return graph;
}

Expected<Attributes> evaluate_attributes(const PatternNode& node, const Bindings& bindings,
                                         const OperatorCatalog& catalog) {
  return evaluate_attributes(node, bindings, catalog, nullptr);
}

Expected<Attributes> evaluate_attributes(const PatternNode& node, const Bindings& bindings,
                                         const OperatorCatalog& catalog, const SizeArithmetic* sizes) {
  Attributes attributes;
  const OperatorSignature* signature = catalog.signature(node.op);
  for (const auto& [name, expression] : node.attributes) {
    TASO_ASSIGN(AttributeValue value, evaluate(expression, bindings, sizes));
    if (const auto* integer = std::get_if<std::int64_t>(&value); integer != nullptr && signature != nullptr) {
      const auto declared =
          std::find_if(signature->attributes.begin(), signature->attributes.end(),
                       [&key = name](const AttributeSignature& attribute) { return attribute.name == key; });
      if (declared != signature->attributes.end() && declared->kind == AttributeKind::real) {
        const std::optional<double> real = real_of(value, sizes);
        if (!real) return no_number();
        value = *real;
      }
    }
    attributes.set(name, std::move(value));
  }
  return attributes;
}

Expected<std::vector<Value>> resolve_inputs(const Graph& graph, const PatternNode& node,
                                            const std::vector<Value>& variables, const std::vector<NodeId>& nodes) {
  std::vector<Value> inputs;
  inputs.reserve(node.inputs.size());
  for (const PatternValue& input : node.inputs) {
    Value value = input.is_variable ? variables[input.index] : Value{nodes[input.index], input.port};
    if (!input.is_variable) {
      const Node& producer = graph.node(value.node);
      if (input.port >= producer.outputs.size())
        return bad_input(producer.op + " has " + std::to_string(producer.outputs.size()) + " outputs, no output " +
                         std::to_string(input.port));
    }
    inputs.push_back(value);
  }
  return inputs;
}

namespace {

constexpr std::string_view seal_name = "seal ";

}  // namespace

std::string proof_seal(const Substitution& rule, const OperatorCatalog& catalog) {
  Substitution plain = canonical(rule);
  plain.name = "r";
  plain.proofs.clear();
  plain.numeric_class.reset();
  plain.expect.reset();
  const std::string text = to_string(plain, catalog);
  return std::string(seal_name) +
         std::to_string(hash_bytes(std::as_bytes(std::span(text))).low % 1'000'000'000'000'000);
}

bool carries_proof(const Substitution& rule, const OperatorCatalog& catalog) {
  return rule.proofs.size() > 1 && rule.proofs.back() == proof_seal(rule, catalog);
}

void seal_proofs(Substitution& rule, const OperatorCatalog& catalog) {
  std::erase_if(rule.proofs, [](const std::string& proof) { return proof.starts_with(seal_name); });
  if (!rule.proofs.empty()) rule.proofs.push_back(proof_seal(rule, catalog));
}

}  // namespace taso
