/// Whether a graph is what a plan says, written out: a check that shares nothing with the planner and with what writes
/// plans out (partition/expand.h), but strategies.
///
/// Every value of the expanded graph is understood as parts of values of the original, from the inputs on: a slice of a
/// part is a smaller part, neighbouring parts concatenated are a larger one, parts of a sum added are more of the sum,
/// and an operator applied to what the piece of an original operator reads is what that piece makes. Which pieces there
/// are follows from the plan's uses of the mesh by proved strategies, whose conditions are checked at the shapes.
/// Weights are compared element by element: those that the file has, exactly; those that are computed of them, up to
/// the rounding of whoever computed them before the expanded graph was written. So equal outputs are a theorem, if
/// strategies are; what is not understood is not taken for right.
#pragma once

#include "graph/graph.h"
#include "partition/mesh.h"
#include "partition/node_configurations.h"
#include "partition/operator_piece.h"
#include "support/status.h"

namespace taso {

/// Nothing wrong: every output of `expanded` is that of `original`; inputs and outputs correspond by position. Errors
/// of code not_proved name what is not so: a node of `original` that the uses do not name or that cannot be cut as they
/// say, or the first value of `expanded` that no part of an original one was found to be. bad_input where a weight has
/// no data. The graphs are as they are read from files: nodes have no device.
[[nodiscard]] Status check_expansion(const Graph& original, const Graph& expanded, const Mesh& mesh,
                                     const PlannedUses& uses, StrategyTable& strategies);

}  // namespace taso
