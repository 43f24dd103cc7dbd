#include "operators/table_expressions.h"

#include "operators/checker.h"
#include "operators/instantiate.h"
#include "operators/unparse.h"

namespace taso {
namespace {

// No name of a definition.
constexpr const char* result_name = "(result)";

SizeStatement named(std::string name, Expression value) {
  SizeStatement statement;
  statement.where = value.where;
  statement.name = std::move(name);
  statement.value = std::move(value);
  return statement;
}

}  // namespace

Expected<SizeQuery> SizeQuery::create(const OperatorRegistry& registry, std::string_view op, const SizeLets& lets,
                                      Expression expression) {
  return create(registry, op, lets, named(result_name, std::move(expression)));
}

Expected<SizeQuery> SizeQuery::condition(const OperatorRegistry& registry, std::string_view op, const SizeLets& lets,
                                         Expression expression) {
  SizeStatement requirement = named("", std::move(expression));
  requirement.message = "does not hold";
  return create(registry, op, lets, std::move(requirement));
}

Expected<SizeQuery> SizeQuery::create(const OperatorRegistry& registry, std::string_view op, const SizeLets& lets,
                                      SizeStatement asked) {
  const OperatorDefinition* known = registry.find(op);
  TASO_CHECK(known != nullptr, "no operator " + std::string(op));
  SizeQuery result;
  result.registry_ = &registry;
  result.where_ = asked.where;
  OperatorDefinition definition = *known;
  for (const auto& [name, value] : lets) definition.statements.push_back(named(name, value));
  definition.statements.push_back(std::move(asked));
  TASO_RETURN_IF_ERROR(check_operator(definition, {registry.functions(), registry.size_functions()}));
  result.definition_ = std::make_shared<const OperatorDefinition>(std::move(definition));
  return result;
}

bool SizeQuery::holds(const Attributes& attributes, std::span<const TensorType> inputs) const {
  return instantiate(*registry_, *definition_, attributes, inputs, Reasons::none).ok();
}

Expected<AttributeValue> SizeQuery::at(const Attributes& attributes, std::span<const TensorType> inputs) const {
  Expected<Instantiation> instantiation = instantiate(*registry_, *definition_, attributes, inputs);
  if (!instantiation) {
    Error error = instantiation.error();
    error.where = where_;
    return error;
  }
  const IntegerValue* value = std::as_const(instantiation->scope).find(result_name);
  TASO_CHECK(value != nullptr, "a size that was asked for is not bound");
  if (value->vector)
    return AttributeValue(std::vector<std::int64_t>(value->components.begin(), value->components.end()));
  return AttributeValue(value->components[0]);
}

Expected<OperatorRegistry> with_scalar_operator(const OperatorRegistry& registry, const std::string& name,
                                                const std::vector<std::string>& parameters,
                                                const Expression& expression, const SourceLocation& where) {
  std::string names, inputs, elements;
  for (const std::string& parameter : parameters) {
    const std::string separator = names.empty() ? "" : ", ";
    names += separator + parameter;
    inputs += separator + parameter + "[]";
  }
  const std::string text = "function " + name + "(" + names + ") = " + to_text(expression) + "\noperator " + name +
                           "(" + inputs + ") -> []\n  out[] = " + name + "(" + inputs + ")\n";
  Expected<OperatorRegistry> extended = OperatorRegistry::parse(text, where.file, &registry);
  if (extended) return extended;
  Error error = extended.error();
  error.where = where;
  return error;
}

}  // namespace taso
