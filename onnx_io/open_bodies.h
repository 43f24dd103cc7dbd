/// What is known of what If, Loop and Scan make where branches make different extents, or iterations change them.
/// Internal to onnx_io: includes protobuf.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "onnx_io/open_extents.h"

namespace taso {

/// The outputs of a node, by position: the rank and element type that its subgraphs make at all sizes, the extents on
/// which branches agree, and those that every iteration keeps; others are open. An output of which that is not known
/// has no element type. Positions of inputs are those among what the node reads: its inputs, then what its subgraphs
/// capture. Empty: of other nodes, of subgraphs that cannot be read so, or are large. `follows`: of a tensor that the
/// document defines, whether it may follow from symbolic extents, or its shape may.
[[nodiscard]] std::vector<OpenOutput> open_outputs_of_bodies(const Document& document, const ImportedModel& imported,
                                                             const OperatorRegistry& registry,
                                                             const ImportOptions& options, int node,
                                                             const std::function<bool(const std::string&)>& follows);

}  // namespace taso
