/// Uses of an axiom that make terms which mean nothing.
///
/// The proof from axioms matches one side of an equation and concludes that the other side is the same tensor. It takes
/// every term for well-typed; that the side which it makes is well-typed wherever the matched one is has to be known,
/// or it derives anything: add(slice(x), slice(y)) = slice(add(x, y)) is true where all of it means something, and
/// makes add(x, y) of any two tensors of which pieces of one shape have been cut.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "graph/pattern.h"
#include "operators/registry.h"
#include "verifier/lowered_cache.h"
#include "verifier/shape_facts.h"

namespace taso {

/// The nodes that one output needs.
[[nodiscard]] Pattern only_output(const Pattern& pattern, std::size_t output);

/// The types of a small instance ("x: f32[2], b: f32[2], a = -1") at which the side that is matched is well-typed and
/// the conditions hold, and the other side is not well-typed or has another type; nothing if there is none among so
/// many instances. Of `shapes` the result shapes and may_differ are used.
[[nodiscard]] std::optional<std::string> ill_typed_use(const OperatorRegistry& registry, const Substitution& axiom,
                                                       const ShapeFacts& shapes, bool left_to_right, std::size_t output,
                                                       std::size_t instances, LoweredCache& cache);

}  // namespace taso
