/// What the way in which definitions are written tells of what they read.
#pragma once

#include "operators/definition.h"

namespace taso {

/// Whether the text of a checked definition tells that the operator can be applied wherever it is well-typed: it has no
/// intermediates, one equation writes all elements, what is read without `or` is read at index variables that range
/// over the axis that they read, and there are no quotients of sizes or elements of lists. Extents that are spelled
/// alike are equal: a name has one value throughout a definition.
[[nodiscard]] bool reads_plainly(const OperatorDefinition& definition);

/// Whether a checked definition is out[I..] = f(x[I..], y[I..], s[], ...) for tensors of any one shape and of whatever
/// elements, f a function that does not depend on the shape.
[[nodiscard]] bool reads_at_place_alone(const OperatorDefinition& definition);

}  // namespace taso
