/// What kernels are believed to cost a device before anybody has measured them there: by the bytes that they move, the
/// products that they sum, and how many blocks of threads they can keep busy. Knows nothing of CUDA.
///
/// Figures of devices are assumptions from data sheets of H100 and H200, half of what is promised there; they decide
/// which steps are worth a stream of their own (runtime/stream_schedule.h), until a device's own are recorded.
#pragma once

#include <cstddef>

#include "runtime/kernel.h"
#include "runtime/step_cost.h"

namespace taso::cuda {

/// Multiprocessors of a device.
struct Processors {
  int count = 100;
  double clock_hz = 1.5e9;
  bool tf32 = false;  ///< Whether tensor cores are used for operands in f32.
};

/// Seconds from the end of a kernel to the beginning of one of another stream that waits for it, beyond those to the
/// next one of its own.
inline constexpr double assumed_wait_seconds = 1e-6;

/// Of an execution that is so many launches. Seconds: what each launch takes at least, and the longer of moving all
/// operands and computing all products, at the rate of the share. The share: how many of the blocks that the device can
/// hold at a time the result gives work to, by the tiles of products and convolutions, or the elements of others, such
/// as convolutions of every channel by itself; a total of many elements gives work to a block.
[[nodiscard]] StepCost estimate_cost(const KernelRequest& request, std::size_t launches, const Processors& processors);

}  // namespace taso::cuda
