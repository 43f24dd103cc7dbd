/// How messages and listings name what a graph holds of the user's model.
#pragma once

#include <string>
#include <vector>

#include "graph/graph.h"
#include "onnx_io/model.h"

namespace taso {

/// The node of the file that a node of the graph stands for: "'n5' (Gemm)", "#3 (Gemm)" if it has no name; without the
/// type where that is what the node's own operator is called. Empty where there is none.
[[nodiscard]] std::string original_name(const Node& node, const std::vector<OriginalNode>& originals);

/// A graph as text (graph/graph_text.h), with a remark on each node: its type and the node of the file that it stands
/// for; of a constant that is not written out, a hash of its contents.
[[nodiscard]] std::string annotated_text(const Graph& graph, const std::vector<OriginalNode>& originals);

}  // namespace taso
