/// Whether an operator's outputs determine one of its inputs. Who compares two graphs that end in the same operator may
/// then compare what it is applied to as well: equal outputs come from equal operands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

namespace taso {

class OperatorInstance;  // operators/instance.h
class OperatorRegistry;  // operators/registry.h

/// How much of an input, any elements of which give outputs, these determine: all other inputs fixed, none of whose
/// elements that are factors is 0. A logarithm determines nothing: of negative numbers there is none.
enum class Injectivity : std::uint8_t {
  none,         ///< Nothing is known.
  up_to_shift,  ///< But for numbers, added to it, that are equal along at least one axis: softmax(x + 1) = softmax(x).
  injective,    ///< All of it.
};

/// Unary functions f for which f(x) = f(y) implies x = y, as their laws show: an unconditional law recovers x from f(x)
/// alone, log(exp(x)) = x, or says that f is made of such functions, sigmoid(x) = 1 / (1 + exp(-x)).
[[nodiscard]] std::set<std::string> injective_functions(const OperatorRegistry& registry);

/// Of an application's tensor `input`, counted as the application has them. It follows from the definition as it is
/// lowered for these shapes: every element of the input is read at some place by an output element that is an injective
/// function of it. A factor that is the same for all elements along an axis, and that may depend on the input, is
/// allowed behind an f with the law f(x + y) = f(x) * f(y).
[[nodiscard]] Injectivity injectivity(const OperatorInstance& instance, std::size_t input,
                                      const OperatorRegistry& registry);

}  // namespace taso
