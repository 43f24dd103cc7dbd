/// Values that are kept in 16 bits, computed in f32: what every kernel of the host falls back on that does not compute
/// in f16 or bf16 itself.
#pragma once

#include <memory>

#include "runtime/kernel.h"
#include "support/status.h"

namespace taso {

/// Whether an operand is kept in 16 bits.
[[nodiscard]] bool reads_or_makes_halves(const KernelRequest& request);

/// The library's kernel for the same request in f32, with conversions before and after it: of activations at every
/// execution, in its workspace, of weights once, when they are packed. Fails where there is no such kernel.
[[nodiscard]] Expected<std::unique_ptr<Kernel>> widened_kernel(const KernelRequest& request,
                                                               const KernelLibrary& library);

}  // namespace taso
