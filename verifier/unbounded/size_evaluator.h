/// Size and index expressions of specifications over polynomials: operators/index_value.h with symbols for numbers.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operators/definition.h"
#include "verifier/unbounded/facts.h"

namespace taso::unbounded {

/// A scalar (one component) or a vector.
struct Sizes {
  bool vector = false;
  std::vector<Polynomial> components;
  [[nodiscard]] static Sizes of(Polynomial value) { return {false, {std::move(value)}}; }
  [[nodiscard]] static Sizes of(std::vector<Polynomial> values) { return {true, std::move(values)}; }
};

/// What names stand for; inner declarations are at the back. Names are those of a definition, which outlives this.
class SizeEnvironment {
 public:
  [[nodiscard]] const Sizes* find(std::string_view name) const;
  [[nodiscard]] Sizes* find(std::string_view name);
  void bind(std::string_view name, Sizes value) { entries_.emplace_back(name, std::move(value)); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  void shrink(std::size_t size) {
    entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(size), entries_.end());
  }

 private:
  std::vector<std::pair<std::string_view, Sizes>> entries_;
};

/// Why an elaboration cannot go on as it stands.
struct Obstacle {
  enum class Kind : std::uint8_t {
    none,
    ill_typed,     ///< The operators do not accept this; nothing is claimed here.
    alternatives,  ///< One of `alternatives` holds: each is to be assumed in turn.
    rank,          ///< The rank of tensor variable `variable` is needed.
    length,        ///< The length of list variable `variable` is needed.
    unsupported,   ///< `reason` names what is not understood.
  };
  Kind kind = Kind::none;
  std::vector<std::vector<Atom>> alternatives;
  std::uint32_t variable = 0;
  std::string reason;
  [[nodiscard]] bool any() const { return kind != Kind::none; }
};

/// The two sides of a condition, each a list of alternatives that exclude one another, each a conjunction.
struct Alternatives {
  std::vector<std::vector<Atom>> yes, no;
  [[nodiscard]] static Alternatives known(bool value);
  [[nodiscard]] static Alternatives of(const Atom& atom);
  [[nodiscard]] static Alternatives both(const Alternatives& a, const Alternatives& b);
  [[nodiscard]] static Alternatives either(const Alternatives& a, const Alternatives& b);
  [[nodiscard]] Alternatives negated() const { return {no, yes}; }
};

/// Evaluates checked expressions. The first obstacle is kept; values after it are meaningless but harmless.
class SizeEvaluator {
 public:
  using SizeFunctions = std::map<std::string, SizeFunction, std::less<>>;
  /// `context`: what holds besides the facts where the expression stands.
  SizeEvaluator(const SizeFunctions& functions, const SizeEnvironment& environment, Facts& facts,
                const std::vector<Atom>& context)
      : functions_(functions), environment_(&environment), facts_(facts), context_(context) {}

  [[nodiscard]] Sizes value(const Expression& expression);
  /// A scalar.
  [[nodiscard]] Polynomial scalar(const Expression& expression);
  /// A condition on sizes and indices. `required`: where it does not hold, the operator does not apply.
  [[nodiscard]] Alternatives condition(const Expression& expression, bool required = false);
  /// The conditions that together are a required condition, each to be assumed in turn.
  [[nodiscard]] std::vector<Alternatives> requirements(const Expression& expression);
  /// The number that a polynomial is. Outside of [low, high], and only there, the definition does not apply.
  [[nodiscard]] std::int64_t number(const Polynomial& p, std::int64_t low, std::int64_t high, const Expression& where);
  [[nodiscard]] Obstacle& obstacle() { return obstacle_; }
  void ill_typed();
  void unsupported(const std::string& reason);

 private:
  [[nodiscard]] Sizes call(const Expression& expression);
  [[nodiscard]] Sizes arithmetic(const Expression& expression);
  [[nodiscard]] Polynomial combine(const Expression& expression, const Polynomial& a, const Polynomial& b);
  [[nodiscard]] std::int64_t small_number(const Polynomial& p, const Expression& where);
  /// The condition of an `all` at each value of its ranges.
  [[nodiscard]] std::vector<Alternatives> instances(const Expression& expression, bool required);
  [[nodiscard]] Alternatives comparison(const Expression& expression);

  const SizeFunctions& functions_;
  const SizeEnvironment* environment_;
  Facts& facts_;
  const std::vector<Atom>& context_;
  Obstacle obstacle_;
};

}  // namespace taso::unbounded
