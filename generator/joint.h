/// Graphs that compute two or three values at once and share work: the raw material of rules with several outputs.
///
/// A value has several *ways* to be computed: its representative and its hits. Of a value by itself the smallest
/// way is best, and rules with one output lead there; of several values together a larger way may be better, because it
/// shares operators with the others: `transpose(y) * x` beside `transpose(x) * y` is `transpose(m)` with
/// m = transpose(x) * y, which alone has one operator more. So a joint rule is a choice of smallest ways as source and
/// a graph that runs fewer operators as target.
///
/// Targets are found as graphs: sets of up to three *sinks* (ways that no other one contains) that hang together by
/// operators that they share, which an index from operators to the ways that contain them supplies. Without a shared
/// operator nothing is gained. Outputs are the sinks and up to two values inside them. Both sides have at most as many
/// operators as a single term: the target is smaller, so that all ways lie below the last level of the enumeration,
/// where terms are stored. Of graphs that are equal up to renaming of inputs few are looked at: the first sink must be
/// the first of its orbit.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "generator/bank.h"

namespace taso {

/// One output of a term, or an input.
struct TermOutput {
  bool is_input = false;
  std::uint32_t id = 0;  ///< TermId, or the input's ClassId.
  std::uint32_t port = 0;
  auto operator<=>(const TermOutput&) const = default;
};

/// Receives a joint equality: output i of `source` equals output i of `target`, which runs fewer operators.
using JointSink = std::function<void(const std::vector<TermOutput>& source, const std::vector<TermOutput>& target)>;

/// Finds all joint equalities of a bank, in a fixed order. Left out is what follows in one step from another one: with
/// an output that is computed alike on both sides and is not needed to make the target smaller.
void find_joint_equalities(const Bank& bank, const JointSink& emit);

}  // namespace taso
