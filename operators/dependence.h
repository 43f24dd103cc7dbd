/// How the outputs of an operator depend on the elements of some of its inputs: what a partition of the inputs into
/// partial results, and a rewrite of sums and maxima, may rely on. Derived from the definition by abstract
/// interpretation: every scalar expression has a value of a small lattice, of which the operators of the language are
/// monotone functions. A claim is a theorem over the real numbers (-inf among them, where a maximum is of nothing), for
/// all shapes and attributes that the operator accepts; what is not claimed is not known.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "graph/attributes.h"

namespace taso {

class OperatorRegistry;  // operators/registry.h

/// What holds of every output element as a function f of all elements of the chosen inputs together, for all values of
/// the other inputs. Sums, maxima and comparisons of inputs are element by element.
struct Dependence {
  /// f(a x + b y) = a f(x) + b f(y): the output of a sum of partial inputs is the sum of their outputs.
  bool linear = false;
  /// f(x) = g(x) + c with g linear and c without x: the output of a mean of partial inputs is the mean of their
  /// outputs.
  bool affine = false;
  /// x <= y implies f(x) <= f(y), or f(y) <= f(x).
  bool nondecreasing = false, nonincreasing = false;
  /// f(max(x, y)) = max(f(x), f(y)): the output of a maximum of partial inputs is the maximum of their outputs. More
  /// than nondecreasing, of which a sum of two elements is an example that does not have it.
  bool preserves_maxima = false;

  bool operator==(const Dependence&) const = default;
};

/// The dependence of the outputs of `op`, which the registry must have, on the inputs whose numbers in the definition
/// are `inputs`; a variadic input means all of its tensors. With `attributes` (complete) what holds for these values;
/// otherwise what holds for all. Of the order of real numbers the declared facts of functions are used
/// (docs/spec-language.md, "Scalar functions"). On an input of integers, which are coordinates, nothing depends in any
/// of these ways.
[[nodiscard]] Dependence dependence(const OperatorRegistry& registry, std::string_view op,
                                    std::span<const std::size_t> inputs, const Attributes* attributes = nullptr);

/// Dependence::linear in one input.
[[nodiscard]] bool linear_in(const OperatorRegistry& registry, std::string_view op, std::size_t input,
                             const Attributes* attributes = nullptr);

/// Dependence::nondecreasing in one input.
[[nodiscard]] bool monotone_in(const OperatorRegistry& registry, std::string_view op, std::size_t input,
                               const Attributes* attributes = nullptr);

}  // namespace taso
