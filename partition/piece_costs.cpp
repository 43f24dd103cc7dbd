#include "partition/piece_costs.h"

#include <algorithm>

#include "elimination/elimination.h"
#include "operators/instance.h"

namespace taso {
namespace {

/// What `of` makes of the work of a piece; what cannot be instantiated must not be.
template <class Of>
PieceCost by_work(const OperatorRegistry& registry, Of of) {
  return [&registry, of](const OperatorPiece& piece, const std::vector<bool>&) -> Expected<double> {
    const Expected<OperatorInstance> instance =
        OperatorInstance::create(registry, piece.op, piece.attributes, piece.inputs);
    if (!instance) return EliminationProblem::forbidden_cost;
    return of(instance->work());
  };
}

}  // namespace

PieceCost roofline(const OperatorRegistry& registry, const DeviceRates& rates) {
  return by_work(registry, [rates](const Work& work) {
    return std::max(work.flops / rates.flops, (work.bytes_read + work.bytes_written) / rates.memory_bandwidth);
  });
}

PieceCost flops_of_pieces(const OperatorRegistry& registry) {
  return by_work(registry, [](const Work& work) { return work.flops; });
}

PieceCost bytes_of_pieces(const OperatorRegistry& registry) {
  return by_work(registry, [](const Work& work) { return work.bytes_read + work.bytes_written; });
}

Mesh in_unit(const Mesh& mesh, CostUnit unit) {
  Mesh priced = mesh;
  if (unit == CostUnit::seconds) return priced;
  for (MeshAxis& axis : priced.axes) {
    axis.bandwidth = unit == CostUnit::bytes ? 1 : axis.bandwidth / mesh.device.flops;
    axis.latency = 0;
  }
  return priced;
}

}  // namespace taso
