#include "operators/functions.h"

#include <array>
#include <cmath>
#include <string_view>

namespace taso {
namespace {

struct Unary {
  std::string_view name;
  double (*function)(double);
  WideInteger (*whole)(WideInteger) = nullptr;  ///< If the function maps integers to integers.
};
struct Binary {
  std::string_view name;
  double (*function)(double, double);
};

/// A primitive is a function that cannot be written in the language; this table is all that C++ knows of scalar
/// functions.
constexpr std::array<Unary, 21> unary_functions = {{
    {"abs", [](double x) { return std::fabs(x); }, [](WideInteger x) { return x < 0 ? -x : x; }},
    {"asinh", [](double x) { return std::asinh(x); }},
    {"atan", [](double x) { return std::atan(x); }},
    {"cbrt", [](double x) { return std::cbrt(x); }},
    {"ceil", [](double x) { return std::ceil(x); }, [](WideInteger x) { return x; }},
    {"cos", [](double x) { return std::cos(x); }},
    {"cosh", [](double x) { return std::cosh(x); }},
    {"erf", [](double x) { return std::erf(x); }},
    {"exp", [](double x) { return std::exp(x); }},
    {"exp2", [](double x) { return std::exp2(x); }},
    {"floor", [](double x) { return std::floor(x); }, [](WideInteger x) { return x; }},
    {"log", [](double x) { return std::log(x); }},
    {"relu", [](double x) { return x > 0 || std::isnan(x) ? x : 0.0; },
     [](WideInteger x) { return x > 0 ? x : WideInteger{0}; }},
    {"round", [](double x) { return std::nearbyint(x); }, [](WideInteger x) { return x; }},
    {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"sign", [](double x) { return std::isnan(x) ? x : static_cast<double>(x > 0) - static_cast<double>(x < 0); },
     [](WideInteger x) { return static_cast<WideInteger>(x > 0) - static_cast<WideInteger>(x < 0); }},
    {"sin", [](double x) { return std::sin(x); }},
    {"sinh", [](double x) { return std::sinh(x); }},
    {"sqrt", [](double x) { return std::sqrt(x); }},
    {"tan", [](double x) { return std::tan(x); }},
    {"tanh", [](double x) { return std::tanh(x); }},
}};
constexpr std::array<Binary, 3> binary_functions = {{
    {"atan2", [](double y, double x) { return std::atan2(y, x); }},
    {"pow", [](double x, double y) { return std::pow(x, y); }},
    {"remainder_by", [](double y, double x) { return std::fmod(x, y); }},
}};

}  // namespace

Status bind_real_function(FunctionDefinition& function) {
  std::string known;
  if (function.arity == 1) {
    for (const Unary& candidate : unary_functions) {
      if (candidate.name == function.name) {
        function.real = candidate.function;
        function.whole = candidate.whole;
        return {};
      }
      known += (known.empty() ? "" : ", ") + std::string(candidate.name);
    }
  } else {
    for (const Binary& candidate : binary_functions) {
      if (candidate.name == function.name) {
        function.real2 = candidate.function;
        return {};
      }
      known += (known.empty() ? "" : ", ") + std::string(candidate.name);
    }
  }
  return bad_input("function '" + function.name + "' has no definition ('= ...') and is not one of the primitives of " +
                       std::to_string(function.arity) + (function.arity == 1 ? " parameter: " : " parameters: ") +
                       known,
                   function.where);
}

const char* to_string(ArgumentDomain domain) {
  switch (domain) {
    case ArgumentDomain::all:
      return "any number";
    case ArgumentDomain::nonnegative:
      return "nonnegative";
    case ArgumentDomain::nonzero:
      return "nonzero";
    case ArgumentDomain::positive:
      return "positive";
  }
  return "?";
}

}  // namespace taso
