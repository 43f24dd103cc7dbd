/// Sorts of expressions: what stands where a size, an index, a scalar or a condition is needed. Private to the folder.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operators/checker.h"
#include "operators/definition.h"
#include "operators/size_functions.h"
#include "support/status.h"

namespace taso {

[[nodiscard]] bool is_vector(Sort sort);
[[nodiscard]] bool is_index(Sort sort);
/// Sizes, indices and vectors of them.
[[nodiscard]] bool is_whole(Sort sort);
/// "an integer", "a vector of indices".
[[nodiscard]] const char* describe(Sort sort);
/// The sort of a size or an index, or of a vector of them.
[[nodiscard]] Sort whole(bool vector, bool index);

/// A tensor that equations may read.
struct ReadableTensor {
  std::string name;
  std::vector<AxisSpec> axes;
  ElementDomain domain = ElementDomain::real;
  bool variadic = false;
  bool input = false;
};

/// Checks expressions and assigns their sorts. Names are found in a scope that who derives from this keeps.
class ExpressionChecker {
 protected:
  explicit ExpressionChecker(const Declarations& declarations) : declarations_(declarations) {}

  /// What stands under a name; null: nothing.
  [[nodiscard]] const Sort* find(std::string_view name) const;
  [[nodiscard]] const ReadableTensor* find_tensor(std::string_view name) const;
  [[nodiscard]] const AttributeSpec* function_attribute(std::string_view name) const;
  /// A new name in the scope; an error if it stands for something already.
  Status declare(const std::string& name, Sort sort, const SourceLocation& where);
  /// Checks an expression that must be of a sort; `what` it is, for the error.
  Status expect(Expression& expression, Sort sort, const std::string& what);
  /// A scalar: a real, or an integer that is one.
  Status real(Expression& expression);
  static Status real_operand(const Expression& expression);
  /// An element of a domain: what a function's parameter, or an element of a tensor, is.
  Status scalar(Expression& expression, ElementDomain domain);
  static Status scalar_operand(const Expression& expression, ElementDomain domain);
  /// Checks an expression and all below it.
  Status check(Expression& e);
  /// True for integers, and for reals made of literals and attributes.
  [[nodiscard]] bool is_known_number(const Expression& e) const;
  /// The extent of an index variable.
  Status range_extent(Expression::Range& range, const SourceLocation& where);

  const Declarations& declarations_;
  OperatorDefinition* op_ = nullptr;                 ///< Null in functions.
  std::vector<std::pair<std::string, Sort>> scope_;  ///< Innermost last.
  std::vector<ReadableTensor> tensors_;

 private:
  [[nodiscard]] Error unknown_name(const Expression& e) const;
  Status element(Expression& e);
  Status arithmetic(Expression& e);
  Status arity(const Expression& e, std::size_t expected);
  /// An argument of a function of sizes.
  static Status argument(const Expression& e, std::size_t i, SizeArgument wanted);
  /// A call of a function of sizes that the language has by itself.
  Status builtin(Expression& e, const SizeBuiltinSpec& spec);
  Status call(Expression& e);
  Status reduce(Expression& e);
  static bool is_infinity(const Expression* e);
  /// Checks a read; `extremum` if an infinite fallback is in place.
  Status read(Expression& e, bool extremum);
  Status coordinate(Expression& e, const AxisSpec& axis);
  [[nodiscard]] bool says_integers(const Expression& e) const;
  /// An element of a tensor of integers that is a coordinate.
  [[nodiscard]] Status plain_index(const Expression& read) const;
  Status indirect(Expression& e);
};

}  // namespace taso
