/// What the steps of a graph cost a device that may run several of them at a time: the numbers of the model by which
/// runtime/stream_schedule.h places steps onto streams, and where those are kept that a device has corrected.
#pragma once

#include <optional>
#include <string>

#include "support/status.h"

namespace taso {

/// One execution of a step.
struct StepCost {
  double seconds = 0;  ///< With the device to itself, right behind another step.
  /// Of the device's capacity, kept busy meanwhile: above 0, at most 1. Steps whose shares add up to at most 1 do not
  /// slow each other.
  double share = 1;
};

/// The costs that one device has been asked for, with these versions of its libraries and in this arithmetic
/// (Backend::identity). Thread-safe.
class StepCosts {
 public:
  virtual ~StepCosts() = default;
  /// The cost of a step, by KernelRequest::key().
  [[nodiscard]] virtual std::optional<StepCost> find(const std::string& key) = 0;
  [[nodiscard]] virtual Status record(const std::string& key, const StepCost& cost) = 0;
  /// Seconds by which a step begins later because it waits for one of another stream.
  [[nodiscard]] virtual std::optional<double> wait_seconds() = 0;
  [[nodiscard]] virtual Status record_wait(double seconds) = 0;
};

}  // namespace taso
