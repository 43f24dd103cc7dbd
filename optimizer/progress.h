/// How far an optimization has come, for people who wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "optimizer/search.h"

namespace taso {

/// Written by the optimization, read by another thread.
class OptimizeProgress {
 public:
  enum class Phase : std::uint8_t { pricing, searching, timing, checking, planning, writing };
  struct State {
    Phase phase = Phase::pricing;
    std::size_t searches = 0;   ///< Begun so far.
    SearchProgress search;      ///< Of the last one.
    std::size_t max_steps = 0;  ///< Of a search.
    std::size_t graphs = 0;     ///< That are timed.
  };

  /// A phase begins.
  void enter(Phase phase) {
    const std::lock_guard lock(mutex_);
    state_.phase = phase;
  }
  void begin_search(std::size_t max_steps) {
    const std::lock_guard lock(mutex_);
    state_.phase = Phase::searching;
    ++state_.searches;
    state_.search = {};
    state_.max_steps = max_steps;
  }
  void update(const SearchProgress& search) {
    const std::lock_guard lock(mutex_);
    state_.search = search;
  }
  void begin_timing(std::size_t graphs) {
    const std::lock_guard lock(mutex_);
    state_.phase = Phase::timing;
    state_.graphs = graphs;
  }
  [[nodiscard]] State state() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }

 private:
  mutable std::mutex mutex_;
  State state_;
};

}  // namespace taso
