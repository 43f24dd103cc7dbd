/// Compares a list of matches that was made from another one with the matches found anew.
#pragma once

#include <algorithm>
#include <string>

#include "graph/rewrite.h"

namespace taso {

/// Equal, the sign of zeros included.
inline bool same_match(const Match& a, const Match& b) {
  if (a != b) return false;
  for (std::size_t i = 0; i < a.attributes.size(); ++i)
    if (a.attributes[i] && to_string(*a.attributes[i]) != to_string(*b.attributes[i])) return false;
  return true;
}

/// The first place where `list` differs from what `index` finds in `graph`; empty if there is none.
inline std::string wrong_match(const RuleIndex& index, const MatchList& list, const Graph& graph) {
  const auto expected = index.find_all(graph);
  const auto actual = list.matches();
  const auto describe = [&](const std::string& what, std::uint32_t rule, const Match& match) {
    std::string text = what + " of " + index.rules()[rule].name + " at";
    for (const NodeId id : match.nodes) text += " %" + std::to_string(id);
    return text + " in\n" + to_string(graph);
  };
  for (std::size_t i = 0; i < std::max(expected.size(), actual.size()); ++i) {
    if (i == expected.size()) return describe("a match too many", actual[i].first, *actual[i].second);
    const auto& [rule, match] = expected[i];
    if (i == actual.size() || actual[i].first != rule || !same_match(*actual[i].second, match))
      return describe("match " + std::to_string(i) + " is not that", rule, match);
  }
  return "";
}

}  // namespace taso
