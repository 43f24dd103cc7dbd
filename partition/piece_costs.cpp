#include "partition/piece_costs.h"

#include <algorithm>
#include <array>

#include "elimination/elimination.h"
#include "operators/instance.h"

namespace taso {
namespace {

struct KnownCost {
  PlanCost cost;
  std::string_view name, source;
  CostUnit unit;
};
constexpr std::array<KnownCost, 4> known_costs = {{
    {PlanCost::roofline, "roofline", "the rates that the topology states", CostUnit::seconds},
    {PlanCost::time, "time", "times of kernels, and the links that the topology states", CostUnit::seconds},
    {PlanCost::flops, "flops", "scalar operations, and those that a device does while a link passes a byte",
     CostUnit::flops},
    {PlanCost::bytes, "bytes", "bytes that are read, written and received", CostUnit::bytes},
}};

const KnownCost& known(PlanCost cost) { return known_costs[static_cast<std::size_t>(cost)]; }

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

std::string_view name_of(CostUnit unit) {
  constexpr std::array<std::string_view, 3> names = {"seconds", "flops", "bytes"};
  return names[static_cast<std::size_t>(unit)];
}

std::string_view name_of(PlanCost cost) { return known(cost).name; }

std::optional<PlanCost> plan_cost_named(std::string_view name) {
  for (const KnownCost& one : known_costs)
    if (one.name == name) return one.cost;
  return std::nullopt;
}

CostUnit unit_of(PlanCost cost) { return known(cost).unit; }

std::string source_of(PlanCost cost, const Mesh& mesh) {
  if (cost == PlanCost::time && mesh.measured()) return "times of kernels, and of transfers by " + mesh.transport;
  return std::string(known(cost).source);
}

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
    axis.times = {};
  }
  priced.transport.clear();
  priced.copy = {};
  return priced;
}

}  // namespace taso
