/// Where a rule occurs in a model, and where nearly: what `taso-opt --why` tells.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "operators/registry.h"
#include "session/message.h"
#include "session/session.h"
#include "support/status.h"

namespace taso {

/// A place of a model at which a rule nearly matches.
struct RuleMiss {
  std::vector<std::string> nodes;  ///< What was found of the rule's source, as people call it: "relu 'n5'".
  std::string obstacle;            ///< Why matching, or applying the rule, ended there.
};

struct RuleReport {
  std::string model, rule;
  std::size_t operators = 0;         ///< Of the rule's source.
  std::size_t matches = 0;           ///< In the model as imported (normal form).
  std::size_t baseline_matches = 0;  ///< In the baseline, from which the search starts.
  std::string unused;                ///< Why neither baseline nor search may use the rule; empty if they may.
  bool not_in_f16 = false;           ///< The model has values in f16, whose range the rule may leave (may_leave_f16).
  std::vector<std::string> absent;   ///< Operators of the source that the imported model does not have.
  std::size_t near_misses = 0;       ///< All of them; `best` has the first few.
  std::vector<RuleMiss> best;        ///< Those first where most operators of the source were found.
};

/// Reads rules and model as a session with these options would, and looks for one rule. `most` limits RuleReport::best.
/// No costs are needed. Fails as load_rule_sets and SizedModel::load do, and with usage where no rule has the name; the
/// message says which one may be meant.
[[nodiscard]] Expected<RuleReport> report_on_rule(const SessionOptions& options, const std::string& rule,
                                                  std::size_t most, const OperatorRegistry& registry,
                                                  const MessageSink& message);

/// For people, and with the same facts for programs.
[[nodiscard]] std::string to_text(const RuleReport& report);
[[nodiscard]] std::string to_json(const RuleReport& report);

}  // namespace taso
