/// Steps of programs, on the device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/tensor_type.h"
#include "runtime/cuda/program.h"
#include "support/status.h"

struct CUstream_st;

namespace taso::cuda {

/// Queues a step. Pointers are device memory; `error` is device memory too.
[[nodiscard]] Status launch(const Step& step, const Buffers& buffers, CUstream_st* stream);

/// Queues the filling of `count` elements of a floating-point type with numbers between 0.1 and 1.1, which keep
/// logarithms, roots and quotients finite. Equal seeds give equal numbers.
[[nodiscard]] Status launch_random(ElementType element, std::byte* to, std::int64_t count, std::uint64_t seed,
                                   CUstream_st* stream);

/// Queues a kernel that does nothing for so many cycles of the device's clock.
[[nodiscard]] Status launch_wait(std::int64_t cycles, CUstream_st* stream);

}  // namespace taso::cuda
