/// What specifications declare of scalar functions, tried on numbers. Private to the folder.
#pragma once

#include <map>
#include <string>

#include "operators/definition.h"
#include "support/status.h"

namespace taso {

/// Fails if a primitive has no value somewhere in its declared domain, or a declared fact or law of a checked function
/// is false at one of many points: the numbers around 0 and 1, small and large ones, those around the literals of the
/// law, and some between them. A side that is infinite or undefined where only large numbers make it so is passed over.
[[nodiscard]] Status check_function_facts(const std::map<std::string, FunctionDefinition, std::less<>>& functions);

}  // namespace taso
