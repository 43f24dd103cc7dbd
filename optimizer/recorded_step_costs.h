/// Costs of steps for streams in a cost database.
///
/// Rows of the device that Backend::identity names. Of kind "step", with the key of a request: seconds of one execution
/// behind another. Of kind "concurrency", with that key: the share of the device that it keeps busy; with the key
/// "wait": seconds of a wait between streams.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>

#include "optimizer/cost_database.h"
#include "runtime/step_cost.h"
#include "support/status.h"

namespace taso {

class RecordedStepCosts final : public StepCosts {
 public:
  /// The costs that the database has, and will have.
  explicit RecordedStepCosts(CostDatabase database);

  /// A share that is none (0, or more than 1) is not believed.
  [[nodiscard]] std::optional<StepCost> find(const std::string& key) override;
  [[nodiscard]] Status record(const std::string& key, const StepCost& cost) override;
  [[nodiscard]] std::optional<double> wait_seconds() override;
  [[nodiscard]] Status record_wait(double seconds) override;

 private:
  std::mutex mutex_;
  CostDatabase database_;
};

}  // namespace taso
