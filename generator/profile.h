/// Generator profiles: which tensors, attribute values and operators a search for rules ranges over.
///
/// A profile is a list of groups; terms are enumerated within one group. All sizes and attribute values of a group are
/// given by symbols that take one value per *world*. A world is one assignment of concrete shapes and attributes;
/// two terms count as equal only if they agree in every world, so that an accident of one shape (two axes of equal
/// extent, a stride of 1) does not look like a law. Grammar: docs/generation.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"
#include "support/status.h"

namespace taso {

/// A named extent or attribute value.
struct ProfileSymbol {
  std::string name;
  bool is_extent = false;              ///< A positive integer that tensor shapes are made of.
  std::vector<AttributeValue> values;  ///< One per world.
  /// A derived symbol is computed from earlier ones: `h1 = h + p[0] + p[2] - r + 1`.
  std::optional<AttributeExpression> definition;
  /// Values drawn by random tests lie in low..high (element by element), or among `choices` (function names).
  std::int64_t low = 1, high = 4;
  std::vector<std::string> choices;
};

/// What may stand at an argument of an operator.
enum class ArgumentRole : std::uint8_t {
  any,
  activation,
  weight,
  input,  ///< A tensor variable itself, not something computed.
};

/// A tensor variable.
struct ProfileInput {
  std::string name;
  bool is_weight = false;
  AttributeExpression shape;  ///< A list; variables number the group's symbols.
};

/// An operator with attribute values, as enumerated.
struct ProfileOperator {
  std::string op;
  /// Applied to weights only; costs nothing at run time and does not count towards the size of a term.
  bool on_weights = false;
  std::vector<ArgumentRole> arguments;
  std::vector<std::pair<std::string, AttributeExpression>> attributes;  ///< All of them, sorted by name.
  SourceLocation where;
};

struct ProfileGroup {
  std::string name;
  int max_ops = 3;         ///< Operators of a term that are not on weights.
  int max_weight_ops = 2;  ///< Operators of a term that are on weights.
  /// Operators on weights in the source of a rule. Weights of a model are constants: what is made of them appears only
  /// where an importer or another rule puts it.
  int source_weight_ops = 0;
  /// Whether the parts of a source with several outputs may have no tensor in common. Such a source matches every pair
  /// of places in a program.
  bool unconnected = false;
  /// Keep only rules that lower the number of operators.
  bool lowering = false;
  /// Functions and extrema by order (relu, abs, max are the real ones) instead of random oracles.
  bool ordered = false;
  std::size_t worlds = 0;
  std::vector<ProfileSymbol> symbols;
  std::vector<ProfileInput> inputs;
  std::vector<ProfileOperator> operators;

  /// Values of all symbols in one world.
  [[nodiscard]] std::vector<std::optional<AttributeValue>> world(std::size_t index) const;
};

struct Profile {
  std::string name;
  std::vector<ProfileGroup> groups;
};

/// Parses a profile; errors name file, line, column. The registry supplies operators, attributes and defaults.
[[nodiscard]] Expected<Profile> parse_profile(std::string_view text, const std::string& file,
                                              const OperatorRegistry& registry);
[[nodiscard]] Expected<Profile> load_profile(const std::string& path, const OperatorRegistry& registry);

/// The value of an expression over a group's symbols.
[[nodiscard]] Expected<AttributeValue> evaluate_symbolic(const AttributeExpression& expression,
                                                         const std::vector<std::optional<AttributeValue>>& symbols);

}  // namespace taso
