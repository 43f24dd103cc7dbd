/// Nodes of a file that compute the same. Internal to onnx_io: includes protobuf.
#pragma once

#include "onnx_io/export.h"

namespace taso {

/// Takes out nodes of ONNX's own operators that read and say what an earlier node does: exporters ask for one shape
/// again and again. The graph's normal form has seen to operators that are understood; these are the carried ones, and
/// what computes lists of extents. What draws random numbers or has subgraphs stays, and so does what makes an output
/// of the graph or is read in a subgraph.
void drop_equal_nodes(const Document& document, const ImportedModel& imported, ExportedGraph& exported);

}  // namespace taso
