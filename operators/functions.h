/// The real functions that specifications may declare as primitives. Private to the folder.
#pragma once

#include <string>

#include "operators/definition.h"

namespace taso {

/// Fills in `real` or `real2` of a primitive; fails, naming what there is, if its name is not known here.
[[nodiscard]] Status bind_real_function(FunctionDefinition& function);

}  // namespace taso
