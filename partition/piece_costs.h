/// What pieces of operators cost a device, and transfers in the same unit.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "operators/registry.h"
#include "partition/mesh.h"
#include "partition/operator_piece.h"
#include "support/status.h"

namespace taso {

/// In which unit the costs of a plan are.
enum class CostUnit : std::uint8_t {
  seconds,
  flops,  ///< Scalar operations: what PaSE counts (Elango 2021, section II).
  bytes,  ///< Read or written in the memory of a device, or received.
};

/// "seconds", "flops", "bytes".
[[nodiscard]] std::string_view name_of(CostUnit unit);

/// What operators of a plan cost.
enum class PlanCost : std::uint8_t {
  roofline,  ///< Seconds by the rates that the topology states.
  time,      ///< Seconds of the kernels of pieces: recorded, or measured on the device.
  flops,     ///< Scalar operations.
  bytes,     ///< Bytes read, written and received.
};

/// "roofline", "time", "flops", "bytes".
[[nodiscard]] std::string_view name_of(PlanCost cost);
/// The one of that name; nothing if there is none.
[[nodiscard]] std::optional<PlanCost> plan_cost_named(std::string_view name);
/// In which unit such costs are.
[[nodiscard]] CostUnit unit_of(PlanCost cost);
/// Where they are from, and the costs of transfers on the mesh: "the rates that the topology states".
[[nodiscard]] std::string source_of(PlanCost cost, const Mesh& mesh);

/// What a device pays for a piece. `weights` says which of its operands are (Node::weight_only): they lie in memory in
/// whatever layout a kernel likes. Fails where that cannot be found out.
using PieceCost = std::function<Expected<double>(const OperatorPiece&, const std::vector<bool>& weights)>;

/// Seconds by the rates of the device: arithmetic or traffic of memory, whichever takes longer (Williams, Waterman and
/// Patterson 2009). The registry is referred to; so below.
[[nodiscard]] PieceCost roofline(const OperatorRegistry& registry, const DeviceRates& rates);
/// Scalar operations.
[[nodiscard]] PieceCost flops_of_pieces(const OperatorRegistry& registry);
/// Bytes that are read and written, each operand once.
[[nodiscard]] PieceCost bytes_of_pieces(const OperatorRegistry& registry);

/// The mesh on which Transfer::seconds are in that unit. Flops: those that a device does in the time in which a byte
/// passes along the axis (the ratio r of PaSE). Bytes: those that pass along the axis. Of both, latencies are left out.
[[nodiscard]] Mesh in_unit(const Mesh& mesh, CostUnit unit);

}  // namespace taso
