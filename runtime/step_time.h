/// When a step of a run was computed.
#pragma once

#include <chrono>

namespace taso {

struct StepTime {
  std::chrono::steady_clock::time_point start, end;
};

}  // namespace taso
