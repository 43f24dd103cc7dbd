/// The functions of machine numbers that specifications may declare as primitives. Private to the folder.
#pragma once

#include <span>

#include "operators/definition.h"

namespace taso {

/// Fills in `machine` of a primitive that is no function of reals; fails, naming what there is, if its name, with these
/// domains, is not known here.
[[nodiscard]] Status bind_machine_function(FunctionDefinition& function);

/// Whether ONNX leaves the value open that such a function has for these arguments, so that runtimes differ: quotients
/// by 0, conversions and shifts beyond a type, powers that are not exact in f64.
[[nodiscard]] bool is_undefined(const FunctionDefinition& function, std::span<const MachineNumber> arguments,
                                const MachineTypes& types);

}  // namespace taso
