/// Steps of a lowered graph that one kernel of a device computes: fewer launches, and what only such steps pass on to
/// each other is never in memory.
///
/// Every step begins as a kernel of its own. A step and the producer of one of its operands become one kernel if the
/// device wants that (Backend::fuses), and if no step outside would have to run both after the one and before the
/// other; where two are no kernel, three may be, of which the first and the last are products (attention). Steps that
/// only move elements (runtime/access.h) are computed by each of their readers that can; one that all
/// readers compute is left out. The order of attempts is that of execution, so that equal graphs are fused alike.
#pragma once

#include <functional>

#include "runtime/lowering.h"

namespace taso {

/// `fuses`: Backend::fuses. `joins`: whether a step can be part of a fused one at all, which saves asking; empty: all
/// may. The steps keep an order in which each is run after those whose results it reads; a fused step has the node of
/// the last of its own.
[[nodiscard]] LoweredGraph fuse_steps(LoweredGraph lowered, const std::function<bool(const KernelRequest&)>& fuses,
                                      const std::function<bool(const KernelRequest&)>& joins = {});

}  // namespace taso
