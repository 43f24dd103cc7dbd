/// A plan as the sharding annotations of ONNX (onnx_io/device_annotations.h).
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "graph/graph.h"
#include "onnx_io/device_annotations.h"
#include "partition/placement.h"
#include "partition/planner.h"

namespace taso {

/// Of a placement of a tensor of this shape; nothing where the annotations cannot say it: partial results, pieces of
/// unequal size, pieces that overlap, a part of the tensor only.
[[nodiscard]] std::optional<TensorSharding> sharding_of(const Placement& placement, const Shape& shape);

/// Why there is no sharding, in two words: "partial results".
[[nodiscard]] std::string why_no_sharding(const Placement& placement, const Shape& shape);

struct ShardingPlan {
  DeviceAnnotations annotations;
  std::size_t tensors = 0;                    ///< That nodes of the plan read or make; each once per node.
  std::map<std::string, std::size_t> unsaid;  ///< Of these, those without annotation, by reason.
};

/// What every node of a plan reads and makes.
[[nodiscard]] ShardingPlan sharding_plan(const Graph& graph, const PartitionPlan& plan);

}  // namespace taso
