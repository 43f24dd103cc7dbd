/// Lowering a definition at concrete shapes to loops (operators/lowered_body.h). Private to the folder.
#pragma once

#include <span>

#include "operators/instance.h"
#include "operators/instantiate.h"
#include "operators/lowered_body.h"

namespace taso {

/// Fails if the definition reads outside a tensor without a default, uses an index that is not affine, or does not
/// write every element of its outputs exactly once. `placements`: see OperatorInstance::create; none: row after row.
[[nodiscard]] Expected<LoweredBody> lower(const OperatorRegistry& registry, const OperatorDefinition& definition,
                                          const Attributes& attributes, std::span<const TensorType> inputs,
                                          Instantiation instantiation,
                                          std::span<const StridedPlacement> placements = {});

/// Scalar operations that the body performs, out-of-range window positions included.
[[nodiscard]] double count_flops(const LoweredBody& body);

}  // namespace taso
