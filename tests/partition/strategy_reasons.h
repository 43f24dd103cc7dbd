/// Why a changed strategy is true: what its pieces are at instances, computed and compared with the pieces of all
/// strategies of the operator.
#pragma once

#include <cstddef>
#include <string>

#include "graph/pattern.h"
#include "operators/registry.h"

namespace taso::test {

/// At how many instances its pieces are what.
struct StrategyReasons {
  std::size_t the_strategy = 0;  ///< Those of the strategy that was changed, at its cut point.
  std::size_t another_cut =
      0;                  ///< Those of that strategy or of another one, at another cut point or along another axis.
  std::size_t empty = 0;  ///< One is the whole, the other one reads nothing.
  std::size_t reads_more = 0;  ///< Those of a strategy, with more of an input than they need.
  /// Those of a strategy, with another attribute that makes no difference to what is read: the pieces have equal values
  /// at random points of GF(2^61-1).
  std::size_t no_difference = 0;
  std::size_t none = 0;       ///< None of these.
  std::size_t ill_typed = 0;  ///< There are none: they do not fit together.
  std::string unexplained;    ///< The first instance without a reason.

  [[nodiscard]] bool explained() const {
    return none == 0 && the_strategy + another_cut + empty + reads_more + no_difference > 0;
  }
  /// "another cut (31), a piece is empty (9)".
  [[nodiscard]] std::string text() const;
};

/// Of a rule "whole => pieces" that a change of the strategy named `changed` has made.
[[nodiscard]] StrategyReasons strategy_reasons(const Substitution& rule, const std::string& changed,
                                               const OperatorRegistry& registry);

}  // namespace taso::test
