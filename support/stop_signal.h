/// When work is to end early.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>

namespace taso {

/// A user's flag, or a point in time. Copies watch the same flag. Safe to ask from several threads.
struct StopSignal {
  using Clock = std::chrono::steady_clock;
  const std::atomic<bool>* flag = nullptr;  ///< Null: nobody interrupts.
  std::optional<Clock::time_point> deadline;

  [[nodiscard]] bool by_user() const { return flag != nullptr && flag->load(std::memory_order_relaxed); }
  [[nodiscard]] bool out_of_time() const { return deadline && Clock::now() >= *deadline; }
  [[nodiscard]] bool raised() const { return by_user() || out_of_time(); }
};

}  // namespace taso
