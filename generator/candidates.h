/// From equalities between terms to candidate rules.
///
/// Every hit of the bank gives `term => representative`; where both run the same number of operators, the
/// reverse as well. Rules with several outputs come from joins: if every output of `split(t)` is a known value, the
/// terms of those values together are equal to `split(t)`: siblings that can be merged into one operator; and from
/// values that run fewer operators where they are computed by larger terms that share work (generator/joint.h).
///
/// Two prunings are done on the way, with the rows of Table 2.3 of Jia's thesis: rules equal up to renaming of
/// variables, and rules whose two sides share a subterm that a variable can stand for (the more general rule is kept
/// instead).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generator/bank.h"

namespace taso {

/// A value inside a candidate.
struct DraftValue {
  bool is_variable = true;
  std::uint32_t index = 0;  ///< Of the variable or the node.
  std::uint32_t port = 0;
  bool operator==(const DraftValue&) const = default;
};

struct DraftNode {
  std::uint32_t op = 0;  ///< Index into ProfileGroup::operators.
  std::vector<DraftValue> inputs;
};

struct DraftSide {
  std::vector<DraftNode> nodes;  ///< Arguments before their users.
  std::vector<DraftValue> outputs;
  int ops = 0, weight_ops = 0;
};

/// A candidate rule whose attributes are still those of the profile. A variable stands for any value of the type of
/// a class: an input, or a subterm that both sides share.
struct Draft {
  std::vector<ClassId> variables;  ///< In order of first use in the source.
  DraftSide source, target;
  bool joint = false;  ///< Several values that share work in the target (generator/joint.h).
};

/// Numbers of candidates; each count follows from the one before.
struct CandidateCounts {
  std::uint64_t joint = 0;           ///< Of the initial ones, those of several values that share work.
  std::uint64_t initial = 0;         ///< Pairs of terms of equal value, in a direction that can pay.
  std::uint64_t after_renaming = 0;  ///< Distinct up to the names of variables.
  std::uint64_t after_subgraph = 0;  ///< ... after shared subterms were replaced by variables.
};

/// All candidates of a bank, smallest first, in a fixed order.
[[nodiscard]] std::vector<Draft> make_candidates(Bank& bank, CandidateCounts& counts);

}  // namespace taso
