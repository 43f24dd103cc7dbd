/// The functions of machine numbers that specifications may declare as primitives. Private to the folder.
#pragma once

#include "operators/definition.h"

namespace taso {

/// Fills in `machine` of a primitive that is no function of reals; fails, naming what there is, if its name, with these
/// domains, is not known here.
[[nodiscard]] Status bind_machine_function(FunctionDefinition& function);

}  // namespace taso
