/// Scalar functions on float, chosen by number: the bandwidth of memory leaves time for the branch, and one kernel per
/// element type does for all of them.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/cuda/scalar.h"

namespace taso::cuda {

/// Functions of one number, named as in specs/operators/functions.op; clip and neg are operators.
enum class Function : std::uint8_t {
  identity,
  abs,
  asinh,
  atan,
  ceil,
  clip,
  cos,
  cosh,
  erf,
  exp,
  floor,
  gelu,
  gelu_tanh,
  hard_sigmoid,
  hard_swish,
  log,
  neg,
  quick_gelu,
  relu,
  round,
  sigmoid,
  sign,
  silu,
  sin,
  sinh,
  sqrt,
  square,
  tan,
  tanh,
};

/// Functions of two numbers.
enum class Binary : std::uint8_t { add, sub, mul, div, pow, maximum, remainder };

/// By the name of a function, or of the operator that applies it; nothing if there is none.
[[nodiscard]] inline std::optional<Function> function_named(std::string_view name) {
  constexpr std::string_view names[] = {
      "identity", "abs",  "asinh",     "atan",         "ceil",       "clip", "cos",    "cosh",       "erf",  "exp",
      "floor",    "gelu", "gelu_tanh", "hard_sigmoid", "hard_swish", "log",  "neg",    "quick_gelu", "relu", "round",
      "sigmoid",  "sign", "silu",      "sin",          "sinh",       "sqrt", "square", "tan",        "tanh"};
  for (std::size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i)
    if (names[i] == name) return static_cast<Function>(i);
  return std::nullopt;
}
[[nodiscard]] inline std::optional<Binary> binary_named(std::string_view name) {
  constexpr std::string_view names[] = {"add", "sub", "mul", "div", "pow", "maximum", "remainder"};
  for (std::size_t i = 0; i < sizeof(names) / sizeof(names[0]); ++i)
    if (names[i] == name) return static_cast<Binary>(i);
  return name == "variadic_sum" ? std::optional(Binary::add) : std::nullopt;
}

/// f(x); p and q are clip's bounds.
TASO_BOTH float evaluate(Function function, float x, float p, float q) {
  switch (function) {
    case Function::identity:
      return x;
    case Function::abs:
      return fabsf(x);
    case Function::clip:
      return fminf(fmaxf(x, p), q);
    case Function::erf:
      return erff(x);
    case Function::exp:
      return expf(x);
    case Function::gelu:  // x / 2 * (1 + erf(x / sqrt(2))) without the cancellation at negative x
      return 0.5F * x * erfcf(-0.707106781186547524F * x);
    case Function::gelu_tanh:  // (1 + tanh(t)) / 2 = sigmoid(2 t)
      return x / (1.0F + expf(-1.5957691216057308F * (x + 0.044715F * (x * x * x))));
    case Function::hard_sigmoid:
      return fminf(fmaxf(x * (1.0F / 6.0F) + 0.5F, 0.0F), 1.0F);
    case Function::hard_swish:
      return x * fminf(fmaxf(x * (1.0F / 6.0F) + 0.5F, 0.0F), 1.0F);
    case Function::log:
      return logf(x);
    case Function::neg:
      return -x;
    case Function::quick_gelu:
      return x / (1.0F + expf(-1.702F * x));
    case Function::relu:  // NaN stays
      return x < 0.0F ? 0.0F : x;
    case Function::sigmoid:
      return 1.0F / (1.0F + expf(-x));
    case Function::silu:
      return x / (1.0F + expf(-x));
    case Function::asinh:
      return asinhf(x);
    case Function::atan:
      return atanf(x);
    case Function::ceil:
      return ceilf(x);
    case Function::cos:
      return cosf(x);
    case Function::cosh:
      return coshf(x);
    case Function::floor:
      return floorf(x);
    case Function::round:
      return rintf(x);
    case Function::sin:
      return sinf(x);
    case Function::sinh:
      return sinhf(x);
    case Function::tan:
      return tanf(x);
    case Function::sign:  // NaN stays
      return x > 0.0F ? 1.0F : x < 0.0F ? -1.0F : x == 0.0F ? 0.0F : x;
    case Function::sqrt:
      return sqrtf(x);
    case Function::square:
      return x * x;
    case Function::tanh:
      return tanhf(x);
  }
  return x;
}

TASO_BOTH float evaluate(Binary function, float x, float y) {
  switch (function) {
    case Binary::add:
      return x + y;
    case Binary::sub:
      return x - y;
    case Binary::mul:
      return x * y;
    case Binary::div:
      return x / y;
    case Binary::maximum:
      return x > y ? x : y;
    case Binary::pow:
      return powf(x, y);
    case Binary::remainder:  // of the sign of x
      return fmodf(x, y);
  }
  return x;
}

}  // namespace taso::cuda
