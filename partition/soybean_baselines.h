/// Data and model parallelism as restrictions of SoyBean's tilings, to be compared with: told from the structure of a
/// training graph. To restrict tilings is not enough (section 4.1 of the paper gives tilings alone): where weights are
/// replicated, an operator may still cut them at no cost, and then nobody would call it data parallelism.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "partition/soybean.h"

namespace taso {

/// The axis, from the front, along which a value has one part per example of the batch.
using ExampleAxes = std::map<Value, std::size_t>;

/// Of `inputs` (examples and what is wanted of them) it is the first one. Of what an operator makes it is the axis that
/// it cuts where all of its operands that have one are cut along theirs. What is made as a sum over examples, such as
/// the gradient of a weight, has none, nor has what depends on weights alone.
[[nodiscard]] ExampleAxes example_axes(const Graph& graph, StrategyTable& strategies, const std::vector<Value>& inputs);

/// The same options but for what is allowed: all that has examples is cut along them, in whatever it is read by, and
/// weights (SoybeanOptions::same) are whole. Their gradients and updates may be cut in any way: what is summed up is
/// scattered, and weights are gathered again, half of the 2 S of a sum each.
[[nodiscard]] SoybeanOptions data_parallelism(const Graph& graph, const ExampleAxes& axes, SoybeanOptions options);

/// Nothing is cut along examples. Which axes are cut instead is free, so that this costs no more than the paper's model
/// parallelism, that cuts weights by rows and activations by columns.
[[nodiscard]] SoybeanOptions model_parallelism(const Graph& graph, const ExampleAxes& axes, SoybeanOptions options);

}  // namespace taso
