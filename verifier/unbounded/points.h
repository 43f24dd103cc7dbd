/// Integer points at which hypotheses hold. What fails at one of them does not follow from the hypotheses, so that most
/// questions that have no proof are answered without looking for one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "verifier/unbounded/budget.h"
#include "verifier/unbounded/index_polynomial.h"

namespace taso::unbounded {

/// Values of symbols. Symbols that nobody chose have small ones which depend on the point's seed alone; quotients,
/// maxima and lookups have those of their definitions.
class Point {
 public:
  explicit Point(std::uint64_t seed) : seed_(seed) {}
  /// Chooses the value of a symbol, before anything that depends on it is evaluated.
  void choose(SymbolId symbol, std::int64_t value);
  /// What has been chosen or computed so far; undo() forgets what came after.
  [[nodiscard]] std::size_t mark() const { return trail_.size(); }
  void undo(std::size_t mark);
  /// Forgets what was computed from values that are going to change: quotients, maxima and lookups.
  void forget_computed(const Symbols& symbols);
  /// The value; nothing beyond 64 bits and where a divisor is not positive.
  [[nodiscard]] std::optional<std::int64_t> evaluate(const Symbols& symbols, const Polynomial& p);
  /// Whether the atom holds here, as far as it can be evaluated.
  [[nodiscard]] bool satisfies(const Symbols& symbols, const Atom& atom);
  /// The value of one monomial.
  [[nodiscard]] std::optional<std::int64_t> evaluate(const Symbols& symbols, const Monomial& monomial);

 private:
  [[nodiscard]] std::optional<std::int64_t> value(const Symbols& symbols, SymbolId symbol);

  enum class State : std::uint8_t { open, known, undefined };
  struct Value {
    std::int64_t number = 0;
    State state = State::open;
  };
  std::uint64_t seed_;
  std::vector<Value> values_;    // per symbol; open beyond the end
  std::vector<SymbolId> trail_;  // symbols in the order in which they ceased to be open
};

/// Some points at which all atoms hold; few or none where they are hard to find. Deterministic.
[[nodiscard]] std::vector<Point> find_points(const Symbols& symbols, std::span<const Atom> atoms, Budget& budget);

}  // namespace taso::unbounded
