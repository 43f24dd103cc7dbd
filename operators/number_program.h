/// Scalar expressions of functions, evaluated at numbers with a bound on what rounding does. Private to the folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "operators/definition.h"

namespace taso {

/// What an expression is at some numbers, as far as doubles tell.
struct Measured {
  enum class Kind : std::uint8_t {
    number,     ///< The value is within `error` of `value`.
    undefined,  ///< A division by 0, a logarithm of 0: there is no value.
    large,      ///< Beyond doubles, with the sign of `value`.
    lost,       ///< Some number on the way is not known, or rounding decides: nothing is known.
  };
  Kind kind = Kind::number;
  double value = 0;
  double error = 0;
  [[nodiscard]] bool is_number() const { return kind == Kind::number; }
};

/// Scalar expressions as one list of operations, calls of defined functions unfolded. Equal operations are one.
class NumberProgram {
 public:
  using Functions = std::map<std::string, FunctionDefinition, std::less<>>;
  /// Where an operation may change what it does: where step `left` has the value of step `right` (of 0 if that is
  /// negative), or its negative; or, of a jump, where `left` has another value than beside it.
  struct Switch {
    enum class Kind : std::uint8_t { equal, opposite, jump };
    int left = 0, right = -1;
    Kind kind = Kind::equal;
  };

  /// Of so many variables. The functions must outlive the program.
  NumberProgram(const Functions& functions, std::size_t variables) : functions_(&functions), variables_(variables) {
    for (std::size_t v = 0; v < variables; ++v) (void)add({.kind = Step::Kind::variable, .a = static_cast<int>(v)});
  }

  /// The step that has the expression's value, whose names stand for these steps; nothing if it is no scalar
  /// expression, or unfolds to very many operations.
  [[nodiscard]] std::optional<int> add(const Expression& e, const std::vector<std::string>& names,
                                       const std::vector<int>& values);
  [[nodiscard]] std::optional<int> call(const FunctionDefinition& function, const std::vector<int>& arguments);
  [[nodiscard]] std::vector<int> variables() const;

  /// The values of all steps; not numbers where they are undefined. Whether all are finite.
  bool run(std::span<const double> numbers, std::vector<double>& values) const;
  /// The steps from 0 to the last of `results`, with bounds.
  void measure(std::span<const double> numbers, std::vector<Measured>& values) const;

  [[nodiscard]] const std::vector<Switch>& switches() const { return switches_; }
  /// The numbers that expressions name.
  [[nodiscard]] const std::vector<double>& literals() const { return literals_; }

 private:
  struct Step {
    enum class Kind : std::uint8_t {
      variable,
      number,
      negate,
      add,
      subtract,
      multiply,
      divide,
      maximum,
      minimum,
      call,
      call_of_two
    };
    Kind kind = Kind::number;
    int a = 0, b = 0;
    double number = 0;
    const FunctionDefinition* function = nullptr;
    auto operator<=>(const Step&) const = default;
  };

  [[nodiscard]] std::optional<int> add(const Step& step);
  void add_switch(int left, int right = -1, Switch::Kind kind = Switch::Kind::equal);
  [[nodiscard]] static Measured with_large(Step::Kind kind, const Measured& a, const Measured& b);
  [[nodiscard]] static Measured call(const Step& step, const Measured& x, const Measured& y);

  const Functions* functions_;
  std::size_t variables_;
  std::vector<Step> steps_;
  std::map<Step, int> known_;
  std::vector<Switch> switches_;
  std::vector<double> literals_;
};

}  // namespace taso
