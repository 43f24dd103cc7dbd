/// Choices of engines in a cost database.
///
/// A choice is two rows of the device that Backend::identity names. Of kind "engine", with the key "REQUEST => ENGINE":
/// seconds of one execution by the engine that was chosen for the request. Of kind "tuning", with the key "REQUEST":
/// seconds that it took to find that out. An engine that failed when it ran has a row of kind "failed" with the key of
/// its "engine" row, and is not taken again. So they are carried as text and looked at as all costs are.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/cost_database.h"
#include "runtime/engine_choices.h"
#include "support/status.h"

namespace taso {

class RecordedChoices final : public EngineChoices {
 public:
  /// The choices that the database has, and will have.
  explicit RecordedChoices(CostDatabase database);

  /// Of several engines that processes recorded for a key at the same time, the fastest.
  [[nodiscard]] std::optional<std::string> find(const std::string& key) override;
  [[nodiscard]] Status record(const std::string& key, const EngineChoice& choice) override;
  [[nodiscard]] Status withdraw(const std::string& key) override;

  /// How many were found out by timing in this process, and in how many seconds.
  struct Tuning {
    std::size_t choices = 0;
    double seconds = 0;
  };
  [[nodiscard]] Tuning tuning() const;
  /// The rows of kind "engine" that were found or recorded so far, and not withdrawn, ordered.
  [[nodiscard]] std::vector<CostDatabase::Entry> used() const;

 private:
  mutable std::mutex mutex_;
  CostDatabase database_;
  /// By the request's key: seconds and engine, the fastest first.
  std::map<std::string, std::set<std::pair<double, std::string>>> choices_;
  std::set<std::string> used_;  ///< Keys.
  Tuning tuning_;
};

}  // namespace taso
