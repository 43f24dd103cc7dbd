/// What kinds of values attributes are: of operators, and of a rule's variables from where they occur.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"

namespace taso {

enum class Kindness : std::uint8_t { unknown, integer, real, list, symbol };

/// A kind; of a list also the length, where a definition declares it.
struct AttributeShape {
  Kindness kind = Kindness::unknown;
  std::optional<std::size_t> length;
};

/// Of an operator's attribute; unknown if there is no such operator or attribute.
[[nodiscard]] AttributeShape shape_of(const OperatorRegistry& registry, const std::string& op, const std::string& name);

/// The kinds of a rule's attribute variables; what nothing determines is an integer.
class AttributeKinds {
 public:
  AttributeKinds(const OperatorRegistry& registry, const Substitution& rule);
  [[nodiscard]] const AttributeShape& operator[](std::size_t variable) const { return shapes_[variable]; }

 private:
  /// A variable that stands alone, or in a list, has the kind that is asked for there, whatever it meets elsewhere.
  void bind(const AttributeExpression& expression, const AttributeShape& shape);
  void expect(const AttributeExpression& expression, const AttributeShape& shape);
  [[nodiscard]] AttributeShape kind(const AttributeExpression& expression) const;

  std::vector<AttributeShape> shapes_;
};

}  // namespace taso
