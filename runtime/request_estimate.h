/// What computing a request is believed to cost, from the request alone: by what kernels are chosen that nobody has
/// measured, and too many to be measured. A model, not a measurement.
#pragma once

#include <map>
#include <string>

#include "operators/registry.h"
#include "runtime/kernel.h"

namespace taso {

/// Of a machine, in picoseconds.
struct CostRates {
  double launch = 0;     ///< Of a kernel besides what it does.
  double byte = 0;       ///< Read or written.
  double operation = 0;  ///< Of arithmetic on one element, where several are computed at a time.
};
inline constexpr CostRates host_rates{.launch = 1e6, .byte = 50, .operation = 30};
inline constexpr CostRates device_rates{.launch = 2e6, .byte = 0.5, .operation = 0.25};

/// launch + bytes + operations, the latter of element-wise operators: what others compute is the same in whichever
/// kernel, as none computes it again. Of an operand of which parts only move elements, what these move is read. So a
/// kernel for several operators costs no more than kernels that compute them together. Not thread-safe; the registry
/// must outlive it.
class RequestEstimate {
 public:
  RequestEstimate(const OperatorRegistry& registry, CostRates rates) : registry_(&registry), rates_(rates) {}

  /// Whole picoseconds.
  [[nodiscard]] double cost(const KernelRequest& request);
  /// Of an element-wise operator: arithmetic for one element of the result, a call of a function as 16 operations; 0 of
  /// others.
  [[nodiscard]] double operations(const KernelRequest& request);
  /// Whether computing it again may cost less than reading its result: little arithmetic, and one operand at most that
  /// is as large as the result.
  [[nodiscard]] bool is_cheap(const KernelRequest& request);

 private:
  const OperatorRegistry* registry_;
  CostRates rates_;
  std::map<std::string, double> known_;  ///< Operations by operator.
};

}  // namespace taso
