/// The record of rule applications that leads from one graph to another.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/rewrite.h"

namespace taso {

/// Says whether the result of a rewrite may be used; safe to call from several threads. Empty: every one.
using RewriteFilter = std::function<bool(const RewriteResult&)>;
/// Says whether a rule may be applied at a match in a graph; safe to call from several threads. Empty: at every one.
using MatchFilter = std::function<bool(const Graph&, const Substitution&, const Match&)>;

/// One application of a rule.
struct RuleApplication {
  std::string rule;                    ///< The rule's name.
  std::vector<std::string> operators;  ///< Operators of the matched nodes.
  /// The user's original nodes that they stand for (Node::origin), ascending, without repetition.
  std::vector<std::int32_t> origins;
  double cost_before = 0;  ///< Of the whole graph, in the cost model's unit (0 in the baseline).
  double cost_after = 0;
  Match match;  ///< In the graph before; for the certificate.
};

/// The record of applying `rule` at `match`; costs are left at 0.
[[nodiscard]] RuleApplication describe_application(const Graph& graph, const Substitution& rule, const Match& match);

/// Where it was applied, for people: "conv2d, relu of features.0, features.1". `node_names` are those of the user's
/// nodes, by origin.
[[nodiscard]] std::string place_of(const RuleApplication& application, const std::vector<std::string>& node_names);

/// True if every node of a match that was found in `found_in` is the same in `graph`, a graph derived from it.
[[nodiscard]] bool still_matches(const Graph& found_in, const Graph& graph, const Match& match);

}  // namespace taso
