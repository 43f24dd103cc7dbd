/// Parsing of specification files into definitions (operators/definition.h). Private to the folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operators/definition.h"
#include "support/status.h"

namespace taso {

/// What one specification file declares, in file order. Names are not yet looked up: see operators/checker.h.
struct ParsedSpecification {
  std::vector<FunctionDefinition> functions;
  std::vector<SizeFunction> size_functions;
  std::vector<OperatorDefinition> operators;
};

/// Parses a text; the first error names file, line and column.
[[nodiscard]] Expected<ParsedSpecification> parse_specification(std::string_view text, const std::string& file);

}  // namespace taso
