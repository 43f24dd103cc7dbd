/// Graphs as text, for tests, examples and bug reports:
///
///   input x f32[1, 4, 8, 8]            # a graph input; its name is x
///   weight w f32[8, 4, 3, 3]           # a constant with contents made from its name
///   weight k f32[2] = [0.5, -1.0]      # a constant with these contents
///   weight e f32[8] = 0.25             # one value repeated
///   weight s f32[4096, 4096] = ?       # a constant that is only a shape (ConstantData::shape_only); its name is s
///   y = conv2d(x, w; pads=[1, 1, 1, 1])
///   a, b = split(relu(y); axis=-3, sizes=[4, 4])
///   c = opaque custom_op(a, b) f32[1, 4, 8, 8], i64[1]    # carried untouched; types as given
///   output b, c.0
///   output relu(y)
///
/// Terms are those of rules (graph/pattern.h), attributes are numbers, lists or function names. `s.1` selects an
/// output. The name in the model of an input, or of what is only a shape, may follow in quotes where it is no
/// identifier: `input x "images:0" f32[1, 3]`, `weight s "layer.0.weight" f32[64, 64] = ?`.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "support/status.h"

namespace taso {

/// Parses a graph. Errors name file, line and column; a failing shape constraint is reported at its term.
[[nodiscard]] Expected<Graph> parse_graph(std::string_view text, const std::string& file,
                                          const OperatorCatalog& catalog);

/// The text of a graph, one node a line; parse_graph gives an equal graph again if all constants are written out.
/// Constants with data of more than 64 elements, or of other types than f32 and i64, are written as weights without
/// contents.
[[nodiscard]] std::string to_text(const Graph& graph);
/// The same with a comment at the end of a node's line where `remark` is not empty; it is also told whether the line
/// says all of the node (false: a constant without its contents).
[[nodiscard]] std::string to_text(const Graph& graph,
                                  const std::function<std::string(const Node& node, bool complete)>& remark);

}  // namespace taso
