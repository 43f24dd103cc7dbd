#include "verifier/definitions.h"

#include <optional>
#include <vector>

#include "operators/instance.h"
#include "verifier/any_attributes.h"
#include "verifier/enumerate.h"
#include "verifier/lowered_cache.h"

namespace taso {
namespace {

/// f(x0, x1, ..; a, b, ..), whose inputs and attributes are variables: the source, and the target.
Substitution any_application(const OperatorRegistry& registry, const std::string& op) {
  const OperatorDefinition& definition = *registry.find(op);
  Substitution statement;
  statement.name = op;
  statement.where = definition.where;
  PatternNode node{op, {}, {}};
  const std::size_t inputs = definition.variadic() ? 2 : definition.inputs.size();
  for (std::size_t i = 0; i < inputs; ++i) {
    statement.tensor_variables.push_back("x" + std::to_string(i));
    node.inputs.push_back({true, static_cast<std::uint32_t>(i), 0});
  }
  node.attributes = any_attributes(*registry.signature(op), statement);
  statement.source = {{std::move(node)}, {{false, 0, 0}}};
  statement.target = statement.source;
  return statement;
}

}  // namespace

Expected<std::size_t> try_definition(const OperatorRegistry& registry, const std::string& op,
                                     const DefinitionTrialOptions& options) {
  std::optional<Error> failure;
  LoweredCache cache(registry);
  cache.on_declined([&](const std::string& name, const Attributes& attributes, const std::vector<TensorType>& inputs) {
    if (failure || !registry.infer(name, attributes, inputs)) return;
    if (const auto instance = OperatorInstance::create(registry, name, attributes, inputs); !instance)
      failure = instance.error();
  });
  const Substitution statement = any_application(registry, op);
  Enumeration enumeration(registry, statement, cache,
                          {.domain = {.bound = options.bound, .composite = options.bound + 1},
                           .seed = options.seed,
                           .max_instances = 2 * options.max_instances,
                           .max_steps = 100 * options.max_instances,
                           .thin_above = options.max_instances,
                           .families = true});
  std::size_t count = 0;
  enumeration.run([&] {
    ++count;
    return !failure;
  });
  if (failure) return *failure;
  return count;
}

}  // namespace taso
