/// What moves when a tensor goes from one placement to another, box by box: what a plan states, what a plan written out
/// as a graph does, and what devices send each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "partition/placement.h"

namespace taso {

/// A box that a device gets from another one: one message.
struct ReceivedBox {
  std::size_t from = 0;
  IndexBox box;
  auto operator<=>(const ReceivedBox&) const = default;
};

/// What all devices do at the same time. Boxes that are sent lie in one box that the sender holds before the step.
struct TransferStep {
  enum class Kind : std::uint8_t {
    /// Of every box that a device holds afterwards it gets a summand from each device of its group, and combines them
    /// with its own in the order of devices.
    combine,
    fetch,  ///< What is received and what was there is put together.
  };
  Kind kind = Kind::fetch;
  std::size_t mesh_axis = 0;                       ///< Of combine: along which devices are a group.
  std::vector<std::vector<ReceivedBox>> received;  ///< Per device. No box is empty.
  /// Per device: what it holds afterwards, without overlaps. Of fetch one box, which may be empty.
  std::vector<std::vector<IndexBox>> holds;
};

struct TransferSchedule {
  Reduction reduction;              ///< How partial results are combined.
  std::vector<TransferStep> steps;  ///< The last one is a fetch; after it devices hold what they need.
  std::int64_t elements = 0;        ///< Received, by all devices together.
};

/// The schedule of the fastest way from `have` to `need`, whose price TransferSource::to gives: bytes are `elements`
/// times `element_bytes`. Partial results are combined by direct exchange among the devices that differ in one mesh
/// axis, then along the next, inner axes first; where each is to have all of it, pieces are gathered along the same
/// axes, outer ones first. Then every device fetches what it lacks, each element once, from devices that have it
/// nearby: that differ from it along inner axes only, if there are, and among these in as few axes as possible. Nothing
/// where that is not possible (placement.h).
[[nodiscard]] std::optional<TransferSchedule> transfer_schedule(const Placement& have, const Placement& need,
                                                                std::int64_t element_bytes, const Mesh& mesh);

}  // namespace taso
