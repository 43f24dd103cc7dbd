/// What specifications declare of scalar functions, tried on numbers. Private to the folder.
#pragma once

#include <map>
#include <set>
#include <string>

#include "operators/definition.h"
#include "support/status.h"

namespace taso {

/// Fails if an added primitive has no value somewhere in its declared domain, or a declared fact or law of an added
/// function is false at one of many points (trial_points.h). What rounding, overflow or underflow may have made, by the
/// bounds of NumberProgram, is passed over.
[[nodiscard]] Status check_function_facts(const std::map<std::string, FunctionDefinition, std::less<>>& functions,
                                          const std::set<std::string>& added);

}  // namespace taso
