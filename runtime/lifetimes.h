/// How long the tensors of a lowered graph live and where they lie: the one plan of memory that executors run on, on
/// the host and on a device, and that `--cost memory` prices.
///
/// A tensor lies in memory of its own, or in that of another, its root: a view in what it looks at, a piece in its
/// concatenation, and on the host the result of a sum in the residual that is added, where no other tensor of that
/// memory is read in the same step or later. (A device's kernels may add in a pass of their own, after they have
/// written the result.)
///
/// Roots that kernels write lie in one arena, from the first step that touches one of their tensors to the last;
/// outputs are read after all steps. Graph inputs lie where the caller has them. On a device they lie in the arena, all
/// through the run: they are uploaded before it, and the run may be repeated on them. Constants lie elsewhere; what no
/// step and no output touches lies nowhere.
///
/// Where steps may run at the same time (runtime/step_order.h), two roots may share memory only if all steps that touch
/// the one are over before any that touches the other begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/arena.h"
#include "runtime/lowering.h"
#include "runtime/step_order.h"

namespace taso {

/// Whose memory is planned.
enum class MemoryOf : std::uint8_t {
  host,
  device,  ///< Of a backend.
};

/// What offsets in the arena are multiples of, in bytes, unless they are of views or pieces: the width of cache lines
/// and vectors, or what a device's vector loads, and libraries' tensors, like.
[[nodiscard]] constexpr std::size_t arena_alignment(MemoryOf memory) { return memory == MemoryOf::host ? 64 : 256; }

/// A lowered graph's tensors in memory.
struct MemoryPlan {
  /// Where a tensor lies.
  struct Place {
    TensorIndex root = 0;    ///< Of source input, weight, kernel or pieces.
    std::size_t offset = 0;  ///< In bytes, from the start of the arena if the root lies there, else of the root.
  };
  std::vector<Place> places;  ///< Per tensor.
  /// Per tensor, for roots: the steps that touch its memory, the number of steps standing for the outputs (first > last
  /// if none does); the bytes are 0 where it has none in the arena.
  std::vector<BufferLifetime> lifetimes;
  std::size_t bytes = 0;  ///< Size of the arena.

  /// Whether a step or an output touches memory that `tensor` lies in.
  [[nodiscard]] bool is_used(TensorIndex tensor) const {
    const BufferLifetime& lifetime = lifetimes[places[tensor].root];
    return lifetime.first <= lifetime.last;
  }
};

/// The one plan of a lowered graph for that memory. Deterministic.
[[nodiscard]] MemoryPlan plan_memory(const LoweredGraph& lowered, MemoryOf memory);
/// The same where steps are only in this order: of a device.
[[nodiscard]] MemoryPlan plan_memory(const LoweredGraph& lowered, const StepOrder& order);

}  // namespace taso
