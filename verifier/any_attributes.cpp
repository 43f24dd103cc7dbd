#include "verifier/any_attributes.h"

#include <algorithm>
#include <cstdint>

namespace taso {

std::vector<std::pair<std::string, AttributeExpression>> any_attributes(const OperatorSignature& signature,
                                                                        Substitution& statement) {
  std::vector<std::pair<std::string, AttributeExpression>> attributes;
  for (const AttributeSignature& attribute : signature.attributes) {
    AttributeExpression variable;
    variable.kind = AttributeExpression::Kind::variable;
    variable.index = static_cast<std::uint32_t>(statement.attribute_variables.size());
    statement.attribute_variables.push_back(attribute.name);
    attributes.emplace_back(attribute.name, std::move(variable));
  }
  std::sort(attributes.begin(), attributes.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return attributes;
}

}  // namespace taso
