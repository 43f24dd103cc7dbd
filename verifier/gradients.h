/// Whether entries of a table of gradients are the gradients of the operators' definitions.
///
/// For an entry g of input x of an operator f, any direction dx and any gradient dy of the output,
///   < f'(x) dx, dy > = < dx, g(x, dy) >
/// must hold. The left side is computed by running f over dual numbers (verifier/dual_ring.h), the right side by
/// running the entry as a graph, both over GF(2^61-1), in which nothing is rounded; primitive functions are random
/// there, and their derivatives are what the table says (`derivative`). A false entry is equal at a random point with a
/// probability of about its degree / 2^61. Operators that compare (max, relu, abs, ...) are run over small random
/// integers of that field, whose order is the real one, away from ties.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gradients/table.h"
#include "operators/registry.h"
#include "support/status.h"

namespace taso {

/// What is found of an entry, or of a derivative.
struct GradientVerdict {
  enum class Kind : std::uint8_t {
    holds,    ///< At all instances tried.
    refuted,  ///< Not at one of them.
    unknown,  ///< It could not be tried.
  };
  Kind kind = Kind::unknown;
  std::string name;           ///< "matmul d_a", "derivative sigmoid".
  SourceLocation where;       ///< The entry's.
  std::size_t instances = 0;  ///< So many applications of the operator were tried.
  std::string reason;         ///< Of refuted: where, and both sides; of unknown: why.
};

struct GradientCheckOptions {
  std::uint64_t seed = 1;
  std::int64_t bound = 4;           ///< No extent is larger.
  std::size_t max_instances = 300;  ///< Of each operator.
};

/// Verdicts on all entries for an operator, in their order. An entry with a condition is tried where it counts. For
/// operators with inputs of integers all are unknown.
[[nodiscard]] std::vector<GradientVerdict> check_gradients(const OperatorRegistry& registry, const GradientTable& table,
                                                           const std::string& op,
                                                           const GradientCheckOptions& options = {});

/// Verdicts on the derivatives of a function by its parameters: compared in doubles with differences of the function at
/// points of many magnitudes. Points where differences of two widths disagree tell nothing and are left out.
[[nodiscard]] std::vector<GradientVerdict> check_derivatives(const OperatorRegistry& registry,
                                                             const FunctionDerivative& derivative);

}  // namespace taso
