/// The parsed form of a specification: operators and scalar functions. See docs/spec-language.md.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/attributes.h"
#include "support/status.h"

namespace taso {

/// A scalar function that is not a polynomial (relu, exp, ...), with the facts provers may use.
struct FunctionDefinition {
  std::string name;
  int arity = 1;
  bool zero_at_zero = false;  ///< f(0) = 0.
  bool monotone = false;      ///< x <= y implies f(x) <= f(y).
  bool idempotent = false;    ///< f(f(x)) = f(x).
  std::string documentation;
};

/// The parsed definition of one operator.
struct OperatorDefinition {
  std::string name;
  std::string documentation;
  SourceLocation where;
};

}  // namespace taso
