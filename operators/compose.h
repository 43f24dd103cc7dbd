/// Composition: definitions that apply other operators. An application is replaced by the statements and equations of
/// the applied definition, with its sizes, attributes and index variables renamed to those of the definition around it.
/// Everything that reads definitions - inference, lowering, provers - sees the result. Private to the folder.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "operators/definition.h"
#include "support/status.h"

namespace taso {

/// The definition of an operator, composed and checked; nullptr if there is none of that name.
using DefinitionLookup = std::function<const OperatorDefinition*(std::string_view)>;

/// The names of what comes from applications begin with a prefix of each, "relu.", "relu2."; no name that is written
/// has a '.' in it. An attribute that is computed is a `let` of the composed definition: "relu.axis".
class ApplicationPrefixes {
 public:
  /// Of the next application, in the order in which they stand; one comes before its operands.
  [[nodiscard]] std::string next(const Application& application);

 private:
  std::set<std::string> given_;
};

/// Replaces the applications of a parsed definition. Operands are matched with the inputs of the applied operator by
/// how their axes are written: `(g*c)` with `(g*c)`, `B..` with `B..`, a rest of unknown length with all axes that are
/// left. Extents that must agree and are not written alike become requirements; where axes cannot be told apart before
/// sizes are known, that is an error.
[[nodiscard]] Status compose(OperatorDefinition& definition, const DefinitionLookup& find);

}  // namespace taso
