/// Which stream of a device runs which step of a graph, and in what order.
///
/// The model. A step takes StepCost::seconds alone, and StepCost::share of the device. Steps of different streams that
/// run at the same time go on as fast as alone while their shares add up to at most 1, and all slow down alike beyond
/// that. A step that waits for one of another stream begins later by a constant. What host steps take passes while the
/// device does nothing.
///
/// List scheduling (Graham 1966) in that model: whenever a stream is idle, of the steps whose producers are over the
/// one begins from which the longest path leads to the end, on the stream of the producer that ended last where that is
/// idle. Any assignment gives right results, as steps wait for their producers; the model decides on time only.
///
/// Host steps stand between parts: all steps before one are over when it begins, and none after it has begun.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/step_cost.h"

namespace taso {

/// The largest number of streams that are used.
inline constexpr std::size_t most_streams = 8;
/// How many are used at most unless the user says so: few models have more branches that small at a time.
inline constexpr std::size_t default_streams = 4;

/// A step to be placed.
struct StreamTask {
  StepCost cost;
  bool on_device = true;
  std::vector<std::uint32_t> producers;  ///< Earlier tasks whose results it reads; ascending.
};

/// A task in its place.
struct ScheduledStep {
  std::uint32_t task = 0;
  bool on_device = true;
  std::uint32_t stream = 0;  ///< 0 for host steps.
  /// Positions of steps of other streams that it waits for, besides what follows from the order in its stream and from
  /// the waits of earlier steps; ascending. Host steps are waited for by all, and wait for all, without being here.
  std::vector<std::uint32_t> waits;
  double begin_s = 0, end_s = 0;  ///< As the model has it, from the beginning of the run.
};

struct StreamSchedule {
  std::size_t streams = 1;           ///< That are used.
  std::vector<ScheduledStep> steps;  ///< In the order in which they are queued, which is one of execution.
  double seconds = 0;                ///< Of a run.

  /// Per position, the positions of steps that are over before it begins; others follow from them.
  [[nodiscard]] std::vector<std::vector<std::uint32_t>> predecessors() const;
};

/// The tasks on at most so many streams. With one they stay in their order.
[[nodiscard]] StreamSchedule schedule_streams(std::span<const StreamTask> tasks, std::size_t streams,
                                              double wait_seconds);

/// The best schedule on at most `most` streams: more of them are taken where that saves more than 2 % of the time.
/// Deterministic.
[[nodiscard]] StreamSchedule choose_streams(std::span<const StreamTask> tasks, std::size_t most, double wait_seconds);

}  // namespace taso
