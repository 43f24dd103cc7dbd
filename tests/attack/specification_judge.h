/// Looks for a falsehood in what a specification that was accepted declares of its scalar functions.
///
/// Facts, domains and laws are evaluated in extended precision, by an evaluator and a table of primitives of its own,
/// at far more numbers than the loader tries: random ones of all magnitudes, all that the definitions name, places at
/// which the mutator has hidden something, and what lies about these.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operators/registry.h"

namespace taso::testing {

struct FunctionFalsehood {
  std::string function;
  const FunctionLaw* law = nullptr;  ///< Null: a fact or the domain.
  std::string text;
};

/// A falsehood about one of the functions of these names, nothing if none is found. `numbers`:
/// how many random ones are tried for each variable.
[[nodiscard]] std::optional<FunctionFalsehood> judge_functions(const OperatorRegistry& registry,
                                                               const std::vector<std::string>& names,
                                                               const std::vector<double>& places, std::uint64_t seed,
                                                               std::size_t numbers);

}  // namespace taso::testing
