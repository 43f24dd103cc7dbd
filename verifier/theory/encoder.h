/// Terms and conditions of rules in the logic of the theory (verifier/theory/theory.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/pattern.h"
#include "verifier/attribute_kinds.h"
#include "verifier/theory/vocabulary.h"

namespace taso::theory {

/// Extents are equated for this many axes where a definition has a rest.
inline constexpr int max_axes = 5;

/// "name" for an axis whose extent is that size, "g*c" for a composite one of names; empty for anything else.
[[nodiscard]] std::string extent_name(const AxisSpec& axis);
/// The names of all axes; equal lists of a definition are equal shapes. An axis without a name gets one of its own.
[[nodiscard]] std::vector<std::string> axis_names(const std::vector<AxisSpec>& axes);
/// The name of a rest.
[[nodiscard]] std::string rest_name(const AxisSpec& axis);

/// coefficient * atom + ... + constant over Int; atoms are solver terms. Meaningless once a number left 64 bits.
struct Linear {
  std::vector<std::pair<Expr, std::int64_t>> terms;
  std::int64_t constant = 0;
  bool overflow = false;

  void add(const Linear& other, std::int64_t factor);
  /// sum += a * b
  void accumulate(std::int64_t& sum, std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product) || __builtin_add_overflow(sum, product, &sum)) overflow = true;
  }
  void add(const Expr& atom, std::int64_t coefficient);
};

/// The value of an attribute expression.
struct EncodedValue {
  Kindness kind = Kindness::unknown;
  Linear integer;
  Expr term;                                      // real, symbol, or a list of unknown length
  std::optional<std::vector<Linear>> components;  // a list of known length
};

/// Encodes the terms of one rule.
class Encoder {
 public:
  Encoder(Vocabulary& vocabulary, const Substitution& rule, const std::string& prefix);

  /// All variables of the rule, as solver constants.
  [[nodiscard]] const std::vector<Expr>& constants() const { return constants_; }
  /// Those of the attribute variables that are single integers.
  [[nodiscard]] std::vector<Expr> integer_variables();
  /// Numbers that stand for arithmetic in a flattened encoding: number = value.
  struct Named {
    Expr number;
    Linear value;
  };

  /// The outputs of a pattern. With `flat`, arithmetic in attributes is named instead of written.
  [[nodiscard]] std::vector<Expr> outputs(const Pattern& pattern, std::vector<Named>* flat = nullptr);

  /// A condition as the logic has it, or nothing where the logic would say more than it does at a match: reals are
  /// exact here and rounded there, lists of different lengths are not equal. With `equivalent` also nothing where it
  /// would say less (hypotheses of an axiom).
  [[nodiscard]] std::optional<Expr> condition(const Condition& condition, bool equivalent);

  /// Whether a number in what was encoded does not fit 64 bits, or a value has another kind than its place: then the
  /// encoding means nothing.
  [[nodiscard]] bool meaningless() const { return meaningless_; }

  /// Whether a constant stands in a flattened encoding itself, not only within arithmetic.
  [[nodiscard]] bool is_used(const Expr& constant) const {
    return std::find(used_.begin(), used_.end(), constant) != used_.end();
  }

  /// Whether a constant occurs in anything that was encoded.
  [[nodiscard]] bool is_touched(const Expr& constant) const {
    return std::find(touched_.begin(), touched_.end(), constant) != touched_.end();
  }

  /// Writes `variable` as `value` from now on.
  void substitute(const Expr& variable, const Linear& value);
  /// Variables that are lists of unknown length.
  void substitute_list(const Expr& variable, const Expr& value);
  /// The list variable of a name, if it is one of unknown length.
  [[nodiscard]] std::optional<Expr> list_variable(std::size_t variable) const {
    if (attributes_[variable].kind != Kindness::list || attributes_[variable].components) return std::nullopt;
    return attributes_[variable].term;
  }
  static void replace(Linear& linear, const Expr& variable, const Linear& value);

  [[nodiscard]] Expr integer(const Linear& linear);

  /// Equations between extents without which an application of the pattern would not be well-typed.
  void typing(const Pattern& pattern, std::vector<Expr>& facts);

 private:
  void typing_of_pieces(const Pattern& pattern, const PatternNode& node, const OperatorDefinition& definition,
                        std::map<std::pair<std::uint32_t, std::uint32_t>, Expr>& done, std::vector<Expr>& facts);

  [[nodiscard]] static bool is_finite_literal_or_variable(const AttributeExpression& expression);

  [[nodiscard]] Expr integer_constant(const std::string& name);

  Expr real(const EncodedValue& value) {
    return value.kind == Kindness::integer ? v_.context().to_real(integer(value.integer)) : value.term;
  }

  [[nodiscard]] Linear component(const EncodedValue& value, std::size_t i);

  [[nodiscard]] EncodedValue encode(const AttributeExpression& expression);

  [[nodiscard]] Linear combine(AttributeExpression::Kind kind, const Linear& a, const Linear& b);

  static bool is_plain(const Linear& linear) {
    return linear.terms.empty() || (linear.terms.size() == 1 && linear.constant == 0 && linear.terms[0].second == 1);
  }

  /// An integer argument of a symbol: itself, or a name for it if it is arithmetic or an extent.
  [[nodiscard]] Expr argument(const Linear& linear, std::vector<Named>* flat);

  void touch(const Linear& linear) {
    for (const auto& [atom, coefficient] : linear.terms) touched_.push_back(atom);
  }

  void use(const Expr& term, std::vector<Named>* flat) {
    if (flat != nullptr && term.valid() && !is_used(term)) used_.push_back(term);
  }

  bool is_constant(const Expr& atom) const {
    return std::find(constants_.begin(), constants_.end(), atom) != constants_.end();
  }

  [[nodiscard]] std::pair<Kindness, Expr> attribute(const AttributeExpression& expression, const AttributeShape& shape,
                                                    std::vector<Named>* flat);

  [[nodiscard]] Expr value(const Pattern& pattern, const PatternValue& which,
                           std::map<std::pair<std::uint32_t, std::uint32_t>, Expr>& done, std::vector<Named>* flat);

  Vocabulary& v_;
  AttributeKinds kinds_;
  std::vector<Expr> tensors_;
  std::vector<EncodedValue> attributes_;
  std::vector<Expr> constants_;
  std::vector<Expr> used_, touched_;
  bool meaningless_ = false;
};

}  // namespace taso::theory
