/// Steps of a lowered graph that do not wait for each other, in one launch.
///
/// A small kernel takes hardly longer than its launch, and leaves most of a device idle. Several of them are one launch
/// in which each has blocks of threads of its own: horizontal fusion, as XLA calls it (Li et al., "Automatic Horizontal
/// Fusion for GPU Kernels", CGO 2022, interleave them further). Unlike fused steps (runtime/fusion.h) they need not
/// read anything in common, and pass nothing on.
///
/// Which steps: list scheduling. What stands alone runs in its order as long as some of it is ready; what may be beside
/// others waits until then, and all of it that is ready runs at once. So that what is kept in memory does not grow with
/// the graph, nothing waits for what comes more than `reach` steps behind it.
#pragma once

#include <cstddef>
#include <functional>

#include "runtime/lowering.h"

namespace taso {

/// What may be in one launch.
struct HorizontalFusion {
  /// Backend::stands_beside: of a step, and of a request for several.
  std::function<bool(const KernelRequest&)> stands_beside;
  std::size_t most = 16;   ///< Steps of one launch.
  std::size_t reach = 32;  ///< Steps.
};

/// The steps keep an order of execution. The request of a launch for several steps is that of join_requests; where
/// there is no kernel for it, its halves are tried. Steps without a device's kernel must not stand beside others. The
/// result is the graph itself where nothing is joined.
[[nodiscard]] LoweredGraph fuse_horizontally(LoweredGraph lowered, const HorizontalFusion& how);

}  // namespace taso
