/// taso-verify --strategies: the partition strategies of operators, each as a rule, with its verdict.
#pragma once

#include <string>
#include <vector>

#include "operators/registry.h"
#include "support/status.h"
#include "tools/common.h"
#include "verifier/verify.h"

namespace taso::tools {

struct StrategyArguments {
  bool print = false;                  ///< --strategies.
  std::vector<std::string> operators;  ///< Of these only; empty: all.
  std::string store;                   ///< --store: the proved rules.
};

/// Derives, proves and prints; the exit code: 0 where all that was derived is proved, 5 otherwise.
[[nodiscard]] Expected<int> run_strategies(const OperatorRegistry& registry, const CommonOptions& common,
                                           const VerifierOptions& options, const StrategyArguments& arguments,
                                           bool print);

}  // namespace taso::tools
