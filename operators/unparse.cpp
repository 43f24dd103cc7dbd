#include "operators/unparse.h"

#include "graph/attributes.h"

namespace taso {
namespace {

using Kind = Expression::Kind;

/// How tightly an expression binds, in steps of 10: operands of a lower level need parentheses.
int level(const Expression& e) {
  switch (e.kind) {
    case Kind::conditional:
      return 0;
    case Kind::disjunction:
      return 10;
    case Kind::conjunction:
      return 20;
    case Kind::equal:
    case Kind::not_equal:
    case Kind::less:
    case Kind::less_equal:
    case Kind::greater:
    case Kind::greater_equal:
    case Kind::all:
      return 30;
    case Kind::add:
    case Kind::subtract:
      return 40;
    case Kind::reduce:
      return 45;  // It would take a factor that follows into its body.
    case Kind::multiply:
    case Kind::divide:
    case Kind::floor_divide:
    case Kind::modulo:
      return 50;
    case Kind::negate:
    case Kind::negation:
      return 60;
    case Kind::read:
      return e.fallback == nullptr ? 70 : 45;
    case Kind::integer:
    case Kind::real:
    case Kind::infinity:
    case Kind::name:
    case Kind::piece:
    case Kind::list:
    case Kind::element:
    case Kind::call:
    case Kind::valid:
    case Kind::tuple:
      return 70;
  }
  return 70;
}

std::string operand(const Expression& e, int minimum) {
  return level(e) < minimum ? "(" + to_text(e) + ")" : to_text(e);
}

std::string binary(const Expression& e, const char* symbol) {
  const int own = level(e);
  return operand(e.operands[0], own) + symbol + operand(e.operands[1], own + 10);
}

std::string joined(const std::vector<Expression>& list) {
  std::string text;
  for (const Expression& element : list) {
    text += text.empty() ? "" : ", ";
    text += element.rest ? operand(element, 70) + ".." : to_text(element);
  }
  return text;
}

std::string ranges(const Expression& e) {
  std::string text;
  for (const Expression::Range& range : e.ranges)
    text += (text.empty() ? "" : ", ") + range.name + (range.rest ? ".." : "") + " < " + to_text(*range.extent);
  return text;
}

std::string kind(const AttributeSpec& attribute) {
  switch (attribute.kind) {
    case AttributeKind::integer:
      return "int";
    case AttributeKind::real:
      return "real";
    case AttributeKind::integers:
      return "int[" + (attribute.length ? to_text(*attribute.length) : "") + "]";
    case AttributeKind::symbol:
      return attribute.element_type ? "type" : "function";
  }
  return "?";
}

/// The word before a tensor's name or axes.
std::string word(ElementDomain domain) {
  return domain == ElementDomain::real ? "" : std::string(to_string(domain)) + " ";
}

}  // namespace

std::string to_text(const Expression& e) {
  switch (e.kind) {
    case Kind::integer:
      return std::to_string(e.integer);
    case Kind::real:
      return to_string(AttributeValue(e.real));
    case Kind::infinity:
      return "inf";
    case Kind::name:
      return e.name;
    case Kind::piece:
      return e.name + "." + to_text(e.operands[0]);
    case Kind::list:
      return "[" + joined(e.operands) + "]";
    case Kind::element:
      return operand(e.operands[0], 70) + "[" + to_text(e.operands[1]) + "]";
    case Kind::call:
      return e.name + "(" + joined(e.operands) + ")";
    case Kind::negate:
      return "-" + operand(e.operands[0], 60);
    case Kind::negation:
      return "!" + operand(e.operands[0], 60);
    case Kind::add:
      return binary(e, " + ");
    case Kind::subtract:
      return binary(e, " - ");
    case Kind::multiply:
      return binary(e, e.sort == Sort::real ? " * " : "*");
    case Kind::divide:
      return binary(e, " / ");
    case Kind::floor_divide:
      return binary(e, " // ");
    case Kind::modulo:
      return binary(e, " % ");
    case Kind::equal:
      return binary(e, " == ");
    case Kind::not_equal:
      return binary(e, " != ");
    case Kind::less:
      return binary(e, " < ");
    case Kind::less_equal:
      return binary(e, " <= ");
    case Kind::greater:
      return binary(e, " > ");
    case Kind::greater_equal:
      return binary(e, " >= ");
    case Kind::conjunction:
      return binary(e, " && ");
    case Kind::disjunction:
      return binary(e, " || ");
    case Kind::conditional:
      return "if " + to_text(e.operands[0]) + " then " + to_text(e.operands[1]) + " else " + to_text(e.operands[2]);
    case Kind::read:
      return e.name + (e.flat ? ".flat" : "") + (e.piece != nullptr ? "." + to_text(*e.piece) : "") + "[" +
             joined(e.operands) + "]" + (e.fallback != nullptr ? " or " + operand(*e.fallback, 60) : "");
    case Kind::valid:
      return "valid(" + joined(e.operands) + ")";
    case Kind::reduce:
      return e.name + "(" + ranges(e) + ") " + operand(e.operands[0], 50);
    case Kind::all:
      return "all(" + ranges(e) + ") " + operand(e.operands[0], 30);
    case Kind::tuple:
      return "(" + joined(e.operands) + ")";
  }
  return "?";
}

std::string to_text(const FunctionLaw& law) {
  using Relation = FunctionLaw::Condition::Relation;
  std::string text = to_text(law.left) + " = " + to_text(law.right);
  for (std::size_t i = 0; i < law.conditions.size(); ++i) {
    const Relation relation = law.conditions[i].relation;
    text += (i == 0 ? " where " : ", ") + law.variables[law.conditions[i].variable] +
            (relation == Relation::positive      ? " > 0"
             : relation == Relation::nonnegative ? " >= 0"
             : relation == Relation::negative    ? " < 0"
             : relation == Relation::nonpositive ? " <= 0"
                                                 : " != 0");
  }
  return text;
}

std::string to_text(const AxisSpec& axis) {
  switch (axis.kind) {
    case AxisSpec::Kind::size:
      return to_text(axis.factors[0]);
    case AxisSpec::Kind::rest:
      return to_text(axis.factors[0]) + ".." + (axis.length ? "(" + to_text(*axis.length) + ")" : "");
    case AxisSpec::Kind::composite:
      break;
  }
  std::string text;
  for (const Expression& factor : axis.factors) text += (text.empty() ? "" : "*") + operand(factor, 60);
  return "(" + text + ")";
}

std::string to_text(std::span<const AxisSpec> axes) {
  std::string text;
  for (const AxisSpec& axis : axes) text += (text.empty() ? "" : ", ") + to_text(axis);
  return "[" + text + "]";
}

std::string to_text(const Application& application) {
  std::string text = application.op + "(";
  for (std::size_t i = 0; i < application.operands.size(); ++i) {
    const Application::Operand& operand = application.operands[i];
    text += (i == 0 ? "" : ", ") + (operand.application != nullptr ? to_text(*operand.application) : operand.tensor);
  }
  for (std::size_t i = 0; i < application.attributes.size(); ++i)
    text += (i == 0 ? "; " : ", ") + application.attributes[i].first + "=" + to_text(application.attributes[i].second);
  return text + ")" + (application.output ? "." + std::to_string(*application.output) : "");
}

std::string to_text(const InputSpec& input) {
  return word(input.domain) + input.name + (input.variadic() ? "." + input.piece : "") + to_text(input.axes);
}

std::string to_text(const OperatorDefinition& definition) {
  std::string text = definition.name + "(";
  for (std::size_t i = 0; i < definition.inputs.size(); ++i)
    text += (i == 0 ? "" : ", ") + to_text(definition.inputs[i]);
  for (std::size_t i = 0; i < definition.attributes.size(); ++i) {
    const AttributeSpec& attribute = definition.attributes[i];
    text += (i == 0 ? "; " : ", ") + attribute.name + ": " + kind(attribute);
    if (attribute.default_value) text += " = " + to_string(*attribute.default_value);
  }
  const std::string& type = definition.output.type;
  text += ") -> " + (type.empty() ? word(definition.output.domain) : type + " ") + to_text(definition.output.axes);
  if (definition.output.count) text += " for " + definition.output.piece + " < " + to_text(*definition.output.count);
  return text;
}

std::string typing_text(const OperatorDefinition& definition) {
  std::string text = to_text(definition) + "\n";
  for (const SizeStatement& statement : definition.statements)
    text += (statement.name.empty() ? "require " : statement.name + " = ") + to_text(statement.value) + "\n";
  return text;
}

}  // namespace taso
