#include "optimizer/recorded_step_costs.h"

#include <string_view>
#include <utility>

namespace taso {
namespace {

constexpr std::string_view seconds_kind = "step", share_kind = "concurrency";
constexpr std::string_view wait_key = "wait";

}  // namespace

RecordedStepCosts::RecordedStepCosts(CostDatabase database) : database_(std::move(database)) {}

std::optional<StepCost> RecordedStepCosts::find(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const std::optional<double> seconds = database_.find(seconds_kind, key), share = database_.find(share_kind, key);
  if (!seconds || !share || *share <= 0 || *share > 1) return std::nullopt;
  return StepCost{*seconds, *share};
}

Status RecordedStepCosts::record(const std::string& key, const StepCost& cost) {
  const std::scoped_lock lock(mutex_);
  TASO_RETURN_IF_ERROR(database_.replace(seconds_kind, key, cost.seconds));
  return database_.replace(share_kind, key, cost.share);
}

std::optional<double> RecordedStepCosts::wait_seconds() {
  const std::scoped_lock lock(mutex_);
  return database_.find(share_kind, wait_key);
}

Status RecordedStepCosts::record_wait(double seconds) {
  const std::scoped_lock lock(mutex_);
  return database_.replace(share_kind, wait_key, seconds);
}

}  // namespace taso
