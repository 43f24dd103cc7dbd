/// States of recurrences: elements that are computed step by step, each step from the one before.
///
/// To unfold all steps of a number that is a symbol has no end. So an element of a tensor of a recurrence that the next
/// step reads is a *state*: it is read under a number of its own, like an element of a tensor variable of which nothing
/// is known. What states of the two sides have to do with one another is proved by induction over the steps
/// (verifier/unbounded/induction.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "verifier/unbounded/symbolic_types.h"

namespace taso::unbounded {

/// One tensor of a recurrence of one operator of a side.
struct State {
  const TypedSide* side = nullptr;
  const TypedNode* node = nullptr;
  const IntermediateSpec* tensor = nullptr;
  std::size_t steps = 0;          ///< The axis along which the steps go.
  std::vector<Polynomial> shape;  ///< Its extents.
  bool divides = false;           ///< A step divides by something that is not a number or a size.
  std::string problem = {};       ///< Why nothing is said of it, if something is in the way.
};

/// The states that were met in one typing of a rule.
class States {
 public:
  /// States are read under numbers from this one on, which no tensor variable or value has.
  static constexpr std::uint32_t first = 1U << 30;
  [[nodiscard]] static bool is_state(const Factor& factor) {
    return factor.kind == Factor::Kind::read && factor.tensor >= first && factor.tensor < 2 * first;
  }

  /// The number of a state, and whether it is met for the first time.
  std::pair<std::uint32_t, bool> number(State state) {
    const auto known = std::find_if(states_.begin(), states_.end(), [&](const State& other) {
      return other.side == state.side && other.node == state.node && other.tensor == state.tensor;
    });
    const auto number = first + static_cast<std::uint32_t>(known - states_.begin());
    if (known != states_.end()) return {number, false};
    states_.push_back(std::move(state));
    return {number, true};
  }
  [[nodiscard]] bool empty() const { return states_.empty(); }
  [[nodiscard]] const State& operator[](std::uint32_t number) const { return states_[number - first]; }
  /// The number of a state that was met.
  [[nodiscard]] std::optional<std::uint32_t> find(const TypedSide& side, const TypedNode& node,
                                                  const IntermediateSpec& tensor) const {
    for (std::uint32_t i = 0; i < states_.size(); ++i)
      if (states_[i].side == &side && states_[i].node == &node && states_[i].tensor == &tensor) return first + i;
    return std::nullopt;
  }
  /// What was found about its steps.
  void checked(std::uint32_t number, std::string problem, bool divides) {
    states_[number - first].problem = std::move(problem);
    states_[number - first].divides = divides;
  }

 private:
  std::vector<State> states_;
};

}  // namespace taso::unbounded
