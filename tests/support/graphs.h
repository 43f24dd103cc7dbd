/// Graphs of tests, over the shipped operators.
#pragma once

#include <string>

#include "graph/graph_text.h"
#include "tests/support/cases.h"
#include "tests/support/shipped.h"

namespace taso::test {

/// The graph that a text says; without one an exception with the error, which ends the test.
inline Graph graph_of(const std::string& text, const std::string& file = "test") {
  return value_of(parse_graph(text, file, registry()));
}

/// The section `graph` of a case, or another one.
inline Graph graph_of(const TextCase& one, std::string_view section = "graph") {
  return graph_of(one.placed(section), one.file);
}

}  // namespace taso::test
