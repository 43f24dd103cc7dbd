/// Strategies of the shipped operators for tests that do not need them proved.
#pragma once

#include <string_view>

#include "partition/operator_piece.h"
#include "tests/support/shipped.h"

namespace taso::test {

inline StrategyTable every_strategy() {
  return StrategyTable(
      registry(), [](std::string_view op) { return derive_strategies(registry(), op).strategies; },
      [](std::string_view op) { return derive_passages(registry(), op); });
}

}  // namespace taso::test
