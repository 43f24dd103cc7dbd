/// The kernel that every specified operator has: its definition evaluated in double.
#pragma once

#include "runtime/kernel.h"

namespace taso {

/// Declines what the definition does not accept, with its reason.
[[nodiscard]] KernelOffer reference_kernel(const KernelRequest& request, const OperatorRegistry& registry);

}  // namespace taso
