/// Fused requests on the host: their definition, one part after the other.
#pragma once

#include <memory>

#include "runtime/kernel.h"
#include "support/status.h"

namespace taso {

/// A kernel that runs the library's kernels of the parts, with what they pass on in its workspace. Fails where a part
/// has no kernel.
[[nodiscard]] Expected<std::unique_ptr<Kernel>> fused_kernel(const KernelRequest& request,
                                                             const KernelLibrary& library);

}  // namespace taso
