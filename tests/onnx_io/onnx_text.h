/// Graphs in ONNX's textual syntax (https://onnx.ai/onnx/repo-docs/Syntax.html), as onnx.printer.to_text prints them:
/// for cases of the importer. Includes protobuf.
///
///   name (float[N, 3] x, float[3, 4] w) => (float[N, 4] y)
///   <int64[2] shape = {2, -1}, float[4] b>
///   {
///     [first] t = MatMul(x, w)
///     y = com.acme.Scale <factor = 2.0, axes = [0, 1], mode = "up"> (t, , b)
///   }
///
/// Beyond the standard, so that cases are short: a name in <...> without a value that no node defines is an initializer
/// whose contents are made from its name, as those of `weight NAME` in graph/graph_text.h; and a list of fewer values
/// than the type has elements is repeated. An operator's domain may contain dots.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>
#include <string_view>

#include "support/status.h"

namespace taso::test {

/// The graph that a text says. Errors name file, line and column. What the graph means is not looked at: a node may be
/// wrong in every way that its syntax allows.
[[nodiscard]] Expected<onnx::GraphProto> parse_onnx_graph(std::string_view text, const std::string& file);

}  // namespace taso::test
