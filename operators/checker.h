/// Well-formedness of parsed definitions: every name is declared, every expression has a sort, reads and
/// equations fit the axes they speak of, every size can be computed. Private to the folder.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "operators/definition.h"
#include "support/status.h"

namespace taso {

/// The functions that definitions may use.
struct Declarations {
  const std::map<std::string, FunctionDefinition, std::less<>>& functions;
  const std::map<std::string, SizeFunction, std::less<>>& size_functions;
};

/// Checks all functions of `functions` and `size_functions` together: sorts, names, no recursion. Assigns sorts.
[[nodiscard]] Status check_functions(std::map<std::string, FunctionDefinition, std::less<>>& functions,
                                     std::map<std::string, SizeFunction, std::less<>>& size_functions);

/// Checks one operator, assigns the sorts of its expressions and numbers its constraints: C0 is the number of
/// inputs, C1.. the shapes of the inputs, then the lists whose length depends on shapes, then the
/// requirements, each in the order of the definition.
[[nodiscard]] Status check_operator(OperatorDefinition& definition, const Declarations& declarations);

}  // namespace taso
