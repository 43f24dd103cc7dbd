/// Programs (program.h) as CUDA C++ of their own: what is a number in a step is a number in the text, and what the
/// precompiled kernels (elements.h) look up for every element is decided while the text is written. Knows nothing of
/// CUDA: the text is compiled by whoever has a compiler for it, for a device by NVRTC (compiler.h), in tests also for
/// the host.
///
/// The text needs no header. Equal programs give equal text, byte by byte: it is what compiled kernels are kept by.
///
/// Numbers are those of elements.h up to the order of rounding that a compiler may choose (fused multiply-adds): values
/// in between are floats, and sums go in the same fixed order: thread t of a team of n adds elements t, t + n, t + 2n,
/// ... one after the other, then a warp adds by exchanging with lane xor 16, 8, 4, 2, 1, then a block adds its warps',
/// or its slices', sums from the first to the last. A team is a warp, a block of 256 threads, or, for rows whose
/// elements lie apart, 8 threads (TeamShape).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda/program.h"

namespace taso::cuda {

/// Threads of a block of every generated kernel.
inline constexpr int generated_threads = 256;

/// One kernel of a generated text.
struct GeneratedKernel {
  std::string name;  ///< In the text, where it has C linkage.
  /// What its parameters point to, in order, and what they are multiples of (1: whatever they are).
  std::vector<Slot> operands;
  std::vector<std::size_t> alignments;
  bool notes_errors = false;  ///< Two more parameters: Buffers::error and Buffers::number.
  bool has_barriers = false;  ///< Threads of a block, or of a warp, wait for each other.
  std::int64_t blocks = 0;    ///< At least 1, at most 2^31 - 1.
};

/// The kernels for one step: the first that is for operands where they lie is launched. The last one is for any
/// operands. Empty: there is nothing to compute.
struct GeneratedStep {
  std::vector<GeneratedKernel> kernels;
};

/// A program as text, and what to launch of it.
struct GeneratedProgram {
  std::string name;  ///< "generated elementwise", ...
  std::string source;
  std::vector<GeneratedStep> steps;
};

/// A generated program, or the reason why there is none.
struct GeneratedOffer {
  std::optional<GeneratedProgram> program;
  std::string reason;
};

/// The text for a program. Declines where a step needs more blocks than a launch can have.
[[nodiscard]] GeneratedOffer generate_source(const Program& program);

/// The kernel of a step for operands where they lie; null if there is nothing to compute.
[[nodiscard]] const GeneratedKernel* kernel_for(const GeneratedStep& step, const Buffers& buffers);

/// The address that a slot means.
[[nodiscard]] const std::byte* address_of(const Slot& slot, const Buffers& buffers);

}  // namespace taso::cuda
