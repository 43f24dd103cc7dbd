/// Times of single kernels, for tables.
#pragma once

#include "runtime/kernel.h"

namespace taso {

/// Median microseconds of an execution, on random numbers (weights are positive, as a variance is), operands in the
/// caches as they fall; -1 where it fails.
[[nodiscard]] double kernel_microseconds(const Kernel& kernel, const KernelRequest& request);

}  // namespace taso
