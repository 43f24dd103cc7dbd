#include "operators/documentation.h"

#include <algorithm>

#include "operators/unparse.h"

namespace taso {
namespace {

std::string ranges(const std::vector<Expression::Range>& list) {
  std::string text;
  for (const Expression::Range& range : list)
    text += (text.empty() ? "" : ", ") + range.name + (range.rest ? ".." : "") + " < " + to_text(*range.extent);
  return text;
}

std::string equation_text(const OperatorDefinition& definition, const Equation& equation) {
  const IntermediateSpec* const intermediate = definition.find_intermediate(equation.target);
  std::string left = intermediate != nullptr && intermediate->domain != ElementDomain::real
                         ? to_string(intermediate->domain) + std::string(" ")
                         : "";
  left += equation.target + (equation.piece.empty() ? "" : "." + equation.piece) + "[";
  for (std::size_t i = 0; i < equation.coordinates.size(); ++i) {
    const Expression& coordinate = equation.coordinates[i];
    left += (i == 0 ? "" : ", ") + to_text(coordinate) + (coordinate.rest ? ".." : "");
    if (intermediate != nullptr) left += " < " + to_text(intermediate->axes[i].factors[0]);
  }
  std::string text = left + "] = " + to_text(equation.value);
  if (!equation.ranges.empty()) text += " where " + ranges(equation.ranges);
  return text;
}

std::string section(const OperatorDefinition& definition) {
  std::string text =
      "## " + definition.name + "\n\n" + definition.documentation + "\n\n```\n" + to_text(definition) + "\n";
  const OperatorDefinition& written = definition.written != nullptr ? *definition.written : definition;
  for (const SizeStatement& statement : written.statements)
    if (!statement.name.empty()) text += "  " + statement.name + " = " + to_text(statement.value) + "\n";
  std::size_t equation = 0;
  for (const Application& application : written.applications) {
    for (; equation < application.equations; ++equation)
      text += "  " + equation_text(written, written.equations[equation]) + "\n";
    text += "  " + application.target + (application.axes ? to_text(*application.axes) : "") + " = " +
            to_text(application) + "\n";
  }
  for (; equation < written.equations.size(); ++equation)
    text += "  " + equation_text(written, written.equations[equation]) + "\n";
  text += "```\n\n";
  std::string laws;
  for (const auto& [holds, name] :
       {std::pair(definition.commutative, "commutative"), std::pair(definition.associative, "associative"),
        std::pair(definition.coassociative.has_value(), "coassociative")})
    if (holds) laws += (laws.empty() ? "" : ", ") + std::string(name);
  if (!laws.empty()) text += "Laws: " + laws + ".\n\n";
  auto item = [&](int number, const std::string& what) { text += "- C" + std::to_string(number) + ": " + what + "\n"; };
  for (std::size_t i = 0; i < definition.inputs.size(); ++i)
    item(static_cast<int>(i) + 1, "`" + to_text(definition.inputs[i]) + "`");
  for (const AttributeSpec& attribute : definition.attributes)
    if (attribute.constraint != 0)
      item(attribute.constraint, "`" + attribute.name + "` has `" + to_text(*attribute.length) + "` elements");
  for (const SizeStatement& statement : definition.statements)
    if (statement.constraint != 0)
      item(statement.constraint, statement.message + ": `" + to_text(statement.value) + "`");
  return text + "\n";
}

}  // namespace

std::string document_operators(const OperatorRegistry& registry) {
  std::string text =
      "# Operators\n\n"
      "Generated from `specs/operators` by `operator_docs`; the notation is that of the [specification "
      "language](spec-language.md).\nC1, C2, ... are the constraints as error messages number them.\n\n";
  for (const std::string& name : registry.names()) text += section(*registry.find(name));
  text += "## Scalar functions\n\n| function | facts |\n|---|---|\n";
  for (const auto& [name, function] : registry.functions()) {
    std::string parameters, facts;
    for (const std::string& parameter : function.parameters) parameters += (parameters.empty() ? "" : ", ") + parameter;
    for (const auto& [holds, fact] :
         {std::pair(function.zero_at_zero, "f(0) = 0"), std::pair(function.monotone, "monotone"),
          std::pair(function.idempotent, "f(f(x)) = f(x)"), std::pair(function.positive, "positive"),
          std::pair(function.nonnegative, "not negative")})
      if (holds) facts += (facts.empty() ? "" : "; ") + std::string(fact);
    if (function.domain != ArgumentDomain::all)
      facts += (facts.empty() ? "" : "; ") + std::string("defined where ") + function.parameters[0] + " is " +
               to_string(function.domain);
    for (const FunctionLaw& law : function.laws) facts += (facts.empty() ? "" : "; ") + ("`" + to_text(law) + "`");
    text += "| `" + name + "(" + parameters + ")" + (function.definition ? " = " + to_text(*function.definition) : "") +
            "` | " + facts + " |\n";
  }
  return text;
}

}  // namespace taso
