#include "optimizer/recorded_choices.h"

#include <algorithm>
#include <string_view>

namespace taso {
namespace {

constexpr std::string_view engine_kind = "engine", tuning_kind = "tuning", failed_kind = "failed";
constexpr std::string_view before_engine = " => ";

/// Engines that fail at once, or are timed by a clock that is too coarse, take 0 seconds and not less.
double at_least_nothing(double seconds) { return std::max(seconds, 0.0); }

}  // namespace

RecordedChoices::RecordedChoices(CostDatabase database) : database_(std::move(database)) {
  for (const CostDatabase::Entry& entry : database_.entries()) {
    const std::size_t end = entry.kind == engine_kind ? entry.key.rfind(before_engine) : std::string::npos;
    if (end != std::string::npos && !database_.find(failed_kind, entry.key))
      choices_[entry.key.substr(0, end)].emplace(entry.value, entry.key.substr(end + before_engine.size()));
  }
}

std::optional<std::string> RecordedChoices::find(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const auto known = choices_.find(key);
  if (known == choices_.end()) return std::nullopt;
  used_.insert(key);
  return known->second.begin()->second;
}

Status RecordedChoices::record(const std::string& key, const EngineChoice& choice) {
  const std::scoped_lock lock(mutex_);
  ++tuning_.choices;
  tuning_.seconds += choice.took_s;
  TASO_ASSIGN(const double seconds, database_.record(engine_kind, key + std::string(before_engine) + choice.engine,
                                                     at_least_nothing(choice.seconds)));
  choices_[key].emplace(seconds, choice.engine);
  used_.insert(key);
  return database_.replace(tuning_kind, key, at_least_nothing(choice.took_s));
}

Status RecordedChoices::withdraw(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const auto known = choices_.find(key);
  if (known == choices_.end()) return {};
  const std::string engine = known->second.begin()->second;
  known->second.erase(known->second.begin());
  if (known->second.empty()) {
    choices_.erase(known);
    used_.erase(key);
  }
  return database_.replace(failed_kind, key + std::string(before_engine) + engine, 1);
}

RecordedChoices::Tuning RecordedChoices::tuning() const {
  const std::scoped_lock lock(mutex_);
  return tuning_;
}

std::vector<CostDatabase::Entry> RecordedChoices::used() const {
  const std::scoped_lock lock(mutex_);
  std::vector<CostDatabase::Entry> entries;
  for (const std::string& key : used_) {
    const auto& [seconds, engine] = *choices_.at(key).begin();
    entries.push_back(
        {database_.device(), std::string(engine_kind), key + std::string(before_engine) + engine, seconds});
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace taso
