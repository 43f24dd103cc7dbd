/// A lowered graph in the order and on the streams in which a device runs it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/lowering.h"
#include "runtime/step_cost.h"
#include "runtime/stream_schedule.h"

namespace taso {

/// A step of a lowered graph, by what matters for where it runs.
struct PlacedStep {
  StepCost cost;
  bool on_device = true;
};

/// The tasks of a graph's steps: what each reads of others, as it is, through views or in pieces.
[[nodiscard]] std::vector<StreamTask> stream_tasks(const LoweredGraph& lowered, std::span<const PlacedStep> placed);

/// Puts the graph's steps into the order of the schedule, made of its tasks.
void order_steps(LoweredGraph& lowered, const StreamSchedule& schedule);

}  // namespace taso
