/// Carries out a step: the kernel of elements.h for its element type, with its pointers, handed to a runner.
///
/// A runner has `each(f, count)`, `team(f, rows, shape)` and `tiles(f, blocks)`, which call f as elements.h says.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "runtime/cuda/elements.h"
#include "runtime/cuda/program.h"

namespace taso::cuda {

template <class Runner>
void run_step(const Step& step, const Buffers& buffers, Runner& runner);

namespace dispatch {

template <class T>
[[nodiscard]] const T* source(const Slot& slot, const Buffers& buffers) {
  switch (slot.place) {
    case Slot::Place::none:
      return nullptr;
    case Slot::Place::input:
      return reinterpret_cast<const T*>(buffers.inputs[slot.index] + slot.offset);
    case Slot::Place::output:
      return reinterpret_cast<const T*>(buffers.outputs[slot.index] + slot.offset);
    case Slot::Place::workspace:
      return reinterpret_cast<const T*>(buffers.workspace + slot.offset);
  }
  return nullptr;
}
template <class T>
[[nodiscard]] T* target(const Slot& slot, const Buffers& buffers) {
  if (slot.place == Slot::Place::workspace) return reinterpret_cast<T*>(buffers.workspace + slot.offset);
  return reinterpret_cast<T*>(buffers.outputs[slot.index] + slot.offset);
}

[[nodiscard]] inline bool is_aligned(const void* pointer, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

/// Calls f with a null pointer of the type in which numbers of the element type are stored.
template <class F>
void with_float(ElementType element, F&& f) {
  if (element == ElementType::f16)
    f(static_cast<Half*>(nullptr));
  else if (element == ElementType::bf16)
    f(static_cast<BFloat16*>(nullptr));
  else
    f(static_cast<float*>(nullptr));
}

/// The same with an integer of that many bytes, or Wide.
template <class F>
void with_width(std::size_t width, F&& f) {
  switch (width) {
    case 1:
      return f(static_cast<std::uint8_t*>(nullptr));
    case 2:
      return f(static_cast<std::uint16_t*>(nullptr));
    case 4:
      return f(static_cast<std::uint32_t*>(nullptr));
    case 8:
      return f(static_cast<std::uint64_t*>(nullptr));
    default:
      return f(static_cast<Wide*>(nullptr));
  }
}

/// Dense in y, and in every operand dense or one number.
[[nodiscard]] inline bool is_flat(const Walk<3>& walk, int operands) {
  if (walk.rank > 1) return false;
  for (int k = 0; k <= operands && walk.rank == 1; ++k)
    if (walk.strides[k][0] != 1 && (k == 0 || walk.strides[k][0] != 0)) return false;
  return true;
}

template <class Runner>
void run(const UnaryStep& step, const Buffers& buffers, Runner& runner) {
  with_float(step.element, [&]<class T>(T*) {
    const T* x = source<T>(step.x, buffers);
    T* y = target<T>(step.y, buffers);
    const bool dense = is_flat(step.walk, 1) && (step.walk.rank == 0 || step.walk.strides[1][0] == 1);
    if (dense && is_aligned(x, 16) && is_aligned(y, 16)) {
      const std::int64_t packs = (step.walk.elements + Pack<T>::size - 1) / Pack<T>::size;
      runner.each(FlatUnary<T>{x, y, step.walk.elements, step.function, step.p, step.q}, packs);
    } else {
      runner.each(StridedUnary<T>{x, y, step.walk, step.function, step.p, step.q}, step.walk.elements);
    }
  });
}

template <class Runner>
void run(const BinaryStep& step, const Buffers& buffers, Runner& runner) {
  with_float(step.element, [&]<class T>(T*) {
    const T* a = source<T>(step.a, buffers);
    const T* b = source<T>(step.b, buffers);
    T* y = target<T>(step.y, buffers);
    const bool a_varies = step.walk.rank > 0 && step.walk.strides[1][0] != 0;
    const bool b_varies = step.walk.rank > 0 && step.walk.strides[2][0] != 0;
    if (is_flat(step.walk, 2) && is_aligned(y, 16) && (!a_varies || is_aligned(a, 16)) &&
        (!b_varies || is_aligned(b, 16))) {
      const std::int64_t packs = (step.walk.elements + Pack<T>::size - 1) / Pack<T>::size;
      runner.each(FlatBinary<T>{a, b, y, step.walk.elements, step.function, a_varies, b_varies}, packs);
    } else {
      runner.each(StridedBinary<T>{a, b, y, step.walk, step.function}, step.walk.elements);
    }
  });
}

/// A walk whose elements are `factor` neighbours along the innermost axis, in the tensors that vary along it.
template <int K>
[[nodiscard]] Walk<K> enlarged_by(Walk<K> walk, std::int64_t factor) {
  if (factor == 1) return walk;
  const int last = walk.rank - 1;
  walk.extents[last] /= factor;
  for (int k = 0; k < K; ++k)
    for (int axis = 0; axis < last; ++axis)
      if (walk.strides[k][last] == 1) walk.strides[k][axis] /= factor;
  walk.finish();
  return walk;
}

/// A tensor that is read or written by packs: its number in the walk, and where it begins (null: it is not there).
struct Packed {
  int number = 0;
  const void* begin = nullptr;
};

/// Lets a walk count packs of `size` neighbours along its innermost axis, if the tensors lie so that there are any.
template <int K>
[[nodiscard]] bool as_packs(Walk<K>& walk, std::int64_t size, std::initializer_list<Packed> tensors) {
  if (walk.rank == 0 || walk.extents[walk.rank - 1] % size != 0) return false;
  const int last = walk.rank - 1;
  for (const Packed& tensor : tensors) {
    if (tensor.begin == nullptr) continue;
    if (walk.strides[tensor.number][last] != 1 || !is_aligned(tensor.begin, 16)) return false;
    for (int axis = 0; axis < last; ++axis)
      if (walk.strides[tensor.number][axis] % size != 0) return false;
  }
  walk = enlarged_by(walk, size);
  return true;
}

template <class Runner>
void run(const EpilogueStep& step, const Buffers& buffers, Runner& runner) {
  with_float(step.element, [&]<class T>(T*) {
    Epilogue<T> kernel{source<T>(step.bias, buffers), source<T>(step.residual, buffers), target<T>(step.y, buffers),
                       step.walk, step.function};
    if (as_packs(kernel.walk, Pack<T>::size, {{0, kernel.y}, {1, kernel.bias}, {2, kernel.residual}}))
      runner.each(PackedEpilogue<T>{kernel}, kernel.walk.elements);
    else
      runner.each(kernel, step.walk.elements);
  });
}

/// Merges elements of the innermost axis, where it is contiguous on all sides, into larger ones of at most 16 bytes:
/// the factor by which the width grows. `stretch` is a further stride that must stay whole.
template <int K>
std::int64_t enlarge(Walk<K>& walk, int tensors, std::size_t width, std::int64_t stretch,
                     const void* const (&pointers)[2]) {
  if (walk.rank == 0 || walk.elements == 0) return 1;
  const int last = walk.rank - 1;
  for (int k = 0; k < K; ++k)
    if (walk.strides[k][last] != (k < tensors ? 1 : 0)) return 1;
  for (std::int64_t factor = static_cast<std::int64_t>(16 / width); factor > 1; factor /= 2) {
    const std::size_t bytes = width * static_cast<std::size_t>(factor);
    bool fits = walk.extents[last] % factor == 0 && stretch % factor == 0 && is_aligned(pointers[0], bytes) &&
                is_aligned(pointers[1], bytes);
    for (int k = 0; k < tensors && fits; ++k)
      for (int axis = 0; axis < last; ++axis) fits = fits && walk.strides[k][axis] % factor == 0;
    if (!fits) continue;
    walk = enlarged_by(walk, factor);
    return factor;
  }
  return 1;
}

/// A copy by tiles, if the two sides are contiguous along different axes long enough to gain by it.
template <class T>
[[nodiscard]] bool as_tiles(const Walk<2>& walk, TiledCopy<T>& tiled) {
  if (walk.rank < 2) return false;
  const int v = walk.rank - 1;
  int u = -1;
  for (int axis = 0; axis < v; ++axis)
    if (walk.strides[1][axis] == 1) u = axis;
  if (u < 0 || walk.strides[0][v] != 1 || walk.strides[1][v] == 1) return false;
  constexpr std::int64_t shortest = 4, few = 64;
  if (walk.extents[u] < shortest || walk.extents[v] < shortest || walk.extents[u] * walk.extents[v] < few) return false;
  tiled.us = walk.extents[u];
  tiled.vs = walk.extents[v];
  tiled.to_stride = walk.strides[0][u];
  tiled.from_stride = walk.strides[1][v];
  tiled.outer = {};
  for (int axis = 0; axis < v; ++axis) {
    if (axis == u) continue;
    tiled.outer.extents[tiled.outer.rank] = walk.extents[axis];
    for (int k = 0; k < 2; ++k) tiled.outer.strides[k][tiled.outer.rank] = walk.strides[k][axis];
    ++tiled.outer.rank;
  }
  tiled.outer.finish();
  return tiled.blocks() <= std::numeric_limits<std::int32_t>::max();
}

template <class Runner>
void run(const CopyStep& step, const Buffers& buffers, Runner& runner) {
  const std::byte* from = source<std::byte>(step.from, buffers);
  std::byte* to = target<std::byte>(step.to, buffers);
  Walk<2> walk = step.walk;
  const auto factor = static_cast<std::size_t>(enlarge(walk, 2, step.width, 0, {from, to}));
  with_width(step.width * factor, [&]<class T>(T*) {
    const T* x = reinterpret_cast<const T*>(from);
    T* y = reinterpret_cast<T*>(to);
    if constexpr (!std::is_same_v<T, Wide>) {
      TiledCopy<T> tiled{};
      if (as_tiles(walk, tiled)) {
        tiled.from = x;
        tiled.to = y;
        return runner.tiles(tiled, tiled.blocks());
      }
    }
    runner.each(StridedCopy<T>{x, y, walk}, walk.elements);
  });
}

template <class Runner>
void run(const FillStep& step, const Buffers& buffers, Runner& runner) {
  with_width(step.width, [&]<class T>(T*) {
    if constexpr (!std::is_same_v<T, Wide>)
      runner.each(Fill<T>{target<T>(step.to, buffers), static_cast<T>(step.value)}, step.count);
  });
}

template <class Runner>
void run(const PaddingStep& step, const Buffers& buffers, Runner& runner) {
  with_width(step.width, [&]<class T>(T*) {
    if constexpr (!std::is_same_v<T, Wide>) {
      Padding<T> kernel{};
      kernel.from = source<T>(step.from, buffers);
      kernel.to = target<T>(step.to, buffers);
      kernel.value = static_cast<T>(step.value);
      kernel.rank = step.shape.rank;
      for (int axis = 0; axis < max_axes; ++axis) {
        kernel.extents[axis] = step.shape.extents[axis];
        kernel.inside[axis] = step.shape.inside[axis];
        kernel.before[axis] = step.shape.before[axis];
        kernel.to_strides[axis] = step.shape.to_strides[axis];
        kernel.from_strides[axis] = step.shape.from_strides[axis];
      }
      runner.each(kernel, step.count);
    }
  });
}

template <class Runner>
void run(const GatheringStep& step, const Buffers& buffers, Runner& runner) {
  const std::byte* from = source<std::byte>(step.x, buffers);
  std::byte* to = target<std::byte>(step.y, buffers);
  Walk<3> walk = step.walk;  // y, x, index
  const std::int64_t factor = enlarge(walk, 2, step.width, step.stride, {from, to});
  with_width(step.width * static_cast<std::size_t>(factor), [&]<class T>(T*) {
    const auto gather = [&]<class I>(I*) {
      runner.each(
          Gathering<T, I>{reinterpret_cast<const T*>(from), source<I>(step.index, buffers), reinterpret_cast<T*>(to),
                          walk, step.extent, step.stride / factor, buffers.error, buffers.number},
          walk.elements);
    };
    if (step.wide_index)
      gather(static_cast<std::int64_t*>(nullptr));
    else
      gather(static_cast<std::int32_t*>(nullptr));
  });
}

template <class Runner>
void run(const WordsStep& step, const Buffers& buffers, Runner& runner) {
  Words words = step.shape;
  words.a = source<std::byte>(step.a, buffers);
  words.b = source<std::byte>(step.b, buffers);
  words.c = source<std::byte>(step.c, buffers);
  words.y = target<std::byte>(step.y, buffers);
  runner.each(words, words.walk.elements);
}

template <class Runner>
void run(const PoolingStep& step, const Buffers& buffers, Runner& runner) {
  with_float(step.element, [&]<class T>(T*) {
    const Pooling<float>& shape = step.shape;
    Pooling<T> kernel{};
    kernel.x = source<T>(step.x, buffers);
    kernel.y = target<T>(step.y, buffers);
    kernel.walk = shape.walk;
    kernel.kind = shape.kind;
    kernel.height = shape.height;
    kernel.width = shape.width;
    kernel.row_stride = shape.row_stride;
    kernel.column_stride = shape.column_stride;
    for (int i = 0; i < 2; ++i) {
      kernel.kernel[i] = shape.kernel[i];
      kernel.strides[i] = shape.strides[i];
      kernel.pads[i] = shape.pads[i];
      kernel.dilations[i] = shape.dilations[i];
    }
    constexpr std::int64_t size = Pack<T>::size;
    const bool whole_packs = kernel.row_stride % size == 0 && kernel.column_stride % size == 0;
    if (whole_packs && as_packs(kernel.walk, size, {{0, kernel.y}, {1, kernel.x}}))
      runner.each(PackedPooling<T>{kernel}, kernel.walk.elements);
    else
      runner.each(kernel, shape.walk.elements);
  });
}

template <class Runner>
void run(const DepthwiseStep& step, const Buffers& buffers, Runner& runner) {
  with_float(step.element, [&]<class T>(T*) {
    const Depthwise<float>& shape = step.shape;
    Depthwise<T> kernel{};
    kernel.x = source<T>(step.x, buffers);
    kernel.w = source<T>(step.w, buffers);
    kernel.bias = source<T>(step.bias, buffers);
    kernel.residual = source<T>(step.residual, buffers);
    kernel.y = target<T>(step.y, buffers);
    kernel.walk = shape.walk;
    kernel.height = shape.height;
    kernel.width = shape.width;
    kernel.row_stride = shape.row_stride;
    kernel.column_stride = shape.column_stride;
    for (int i = 0; i < 2; ++i) {
      kernel.kernel[i] = shape.kernel[i];
      kernel.strides[i] = shape.strides[i];
      kernel.pads[i] = shape.pads[i];
      kernel.dilations[i] = shape.dilations[i];
    }
    kernel.channel_of_w = shape.channel_of_w;
    kernel.row_of_w = shape.row_of_w;
    kernel.column_of_w = shape.column_of_w;
    kernel.function = shape.function;
    constexpr std::int64_t size = Pack<T>::size;
    const bool whole_packs = kernel.row_stride % size == 0 && kernel.column_stride % size == 0;
    // The channels have to be along the innermost axis, as packs of the bias or, without one, by their numbers.
    const bool along_channels = kernel.walk.rank > 0 && kernel.walk.strides[4][kernel.walk.rank - 1] == 1;
    if (whole_packs && along_channels &&
        as_packs(kernel.walk, size, {{0, kernel.y}, {1, kernel.x}, {4, kernel.bias}, {5, kernel.residual}}))
      runner.each(PackedDepthwise<T>{kernel}, kernel.walk.elements);
    else
      runner.each(kernel, shape.walk.elements);
  });
}

template <class Runner>
void run(const BatchNormStep& step, const Buffers& buffers, Runner& runner) {
  with_float(step.element, [&]<class T>(T*) {
    runner.each(BatchNorm<T>{source<T>(input(0), buffers), source<T>(input(1), buffers), source<T>(input(2), buffers),
                             source<T>(input(3), buffers), source<T>(input(4), buffers), target<T>(output(0), buffers),
                             step.walk, step.epsilon},
                step.walk.elements);
  });
}

template <class Runner>
void run(const LrnStep& step, const Buffers& buffers, Runner& runner) {
  with_float(step.element, [&]<class T>(T*) {
    const Lrn<float>& shape = step.shape;
    runner.each(Lrn<T>{source<T>(input(0), buffers), target<T>(output(0), buffers), shape.walk, shape.channels,
                       shape.channel_stride, shape.size, shape.alpha, shape.beta, shape.bias},
                shape.walk.elements);
  });
}

template <class Runner>
void run(const TurnedPairsStep& step, const Buffers& buffers, Runner& runner) {
  with_float(step.element, [&]<class T>(T*) {
    const TurnedPairs<float>& shape = step.shape;
    runner.each(TurnedPairs<T>{source<T>(input(0), buffers), source<T>(input(1), buffers), source<T>(input(2), buffers),
                               target<T>(output(0), buffers), shape.walk, shape.pairs, shape.apart, shape.second,
                               shape.step_of_cosines, shape.step_of_sines},
                shape.walk.elements);
  });
}

template <class Runner>
void run(const ReductionStep& step, const Buffers& buffers, Runner& runner) {
  with_float(step.element, [&]<class T>(T*) {
    runner.team(
        Reduction<T>{source<T>(input(0), buffers), target<T>(output(0), buffers), step.kept, step.reduced, step.kind},
        step.kept.elements, step.team);
  });
}

template <class Runner>
void run(const ThinProductStep& step, const Buffers& buffers, Runner& runner) {
  with_float(step.element, [&]<class T>(T*) {
    const ThinProduct<float>& shape = step.shape;
    runner.team(ThinProduct<T>{source<T>(step.wide, buffers), source<T>(step.thin, buffers),
                               source<T>(step.bias, buffers), target<T>(step.y, buffers), shape.depth, shape.thin_count,
                               shape.wide_step, shape.wide_depth, shape.thin_step, shape.thin_depth, shape.y_wide,
                               shape.y_thin, shape.bias_wide, shape.bias_thin, shape.function},
                step.wide_count, step.team);
  });
}

template <class Runner>
void run(const SoftmaxStep& step, const Buffers& buffers, Runner& runner) {
  with_float(step.element, [&]<class T>(T*) {
    runner.team(Softmax<T>{source<T>(input(0), buffers), target<T>(output(0), buffers), step.rows, step.count,
                           step.x_stride, step.y_stride},
                step.rows.elements, step.team);
  });
}

template <class Runner>
void run(const RowNormStep& step, const Buffers& buffers, Runner& runner) {
  with_float(step.element, [&]<class T>(T*) {
    const T* bias = step.centers ? source<T>(input(2), buffers) : nullptr;
    runner.team(
        RowNorm<T>{source<T>(input(0), buffers), source<T>(input(1), buffers), bias, target<T>(output(0), buffers),
                   step.rows, step.count, step.x_stride, step.y_stride, step.epsilon},
        step.rows.elements, step.team);
  });
}

template <class Runner>
void run(const GroupNormStep& step, const Buffers& buffers, Runner& runner) {
  with_float(step.element, [&]<class T>(T*) {
    const GroupNorm<float>& shape = step.shape;
    runner.team(GroupNorm<T>{source<T>(input(0), buffers), source<T>(input(1), buffers), source<T>(input(2), buffers),
                             target<T>(output(0), buffers), shape.groups, shape.members, shape.epsilon, shape.act},
                shape.groups.elements, step.team);
  });
}

template <class Runner>
void run(const CopiesStep& step, const Buffers& buffers, Runner& runner) {
  std::vector<Walk<2>> walks;
  // One width for all: the largest that every piece allows.
  std::int64_t factor = static_cast<std::int64_t>(16 / step.width);
  for (const CopiesStep::Piece& piece : step.pieces) {
    Walk<2> walk = piece.walk;
    factor = std::min(factor, enlarge(walk, 2, step.width, 0,
                                      {source<std::byte>(piece.from, buffers), target<std::byte>(piece.to, buffers)}));
  }
  for (const CopiesStep::Piece& piece : step.pieces) walks.push_back(enlarged_by(piece.walk, factor));
  with_width(step.width * static_cast<std::size_t>(factor), [&]<class T>(T*) {
    StridedCopies<T> copies{};
    copies.count = static_cast<std::int32_t>(step.pieces.size());
    for (std::size_t k = 0; k < step.pieces.size(); ++k) {
      copies.from[k] = source<T>(step.pieces[k].from, buffers);
      copies.to[k] = target<T>(step.pieces[k].to, buffers);
      copies.walks[k] = walks[k];
      copies.begin[k + 1] = copies.begin[k] + walks[k].elements;
    }
    runner.each(copies, copies.begin[copies.count]);
  });
}

/// Fills in the pointers of a chain.
template <class T, class ChainOf>
void point(ChainOf& chain, const ChainOperands& operands, const Buffers& buffers) {
  for (std::size_t i = 0; i < operands.sources.size(); ++i) chain.sources[i] = source<T>(operands.sources[i], buffers);
  for (std::size_t i = 0; i < operands.targets.size(); ++i) chain.targets[i] = target<T>(operands.targets[i], buffers);
}

template <class Runner>
void run(const ChainStep& step, const Buffers& buffers, Runner& runner) {
  with_float(step.element, [&]<class T>(T*) {
    Chain<T> chain{};
    point<T>(chain, step.operands, buffers);
    chain.box = step.box;
    chain.code = step.code;
    runner.each(chain, step.box.elements);
  });
}

template <class Runner>
void run(const RowChainStep& step, const Buffers& buffers, Runner& runner) {
  with_float(step.element, [&]<class T>(T*) {
    const RowChain<float>& shape = step.shape;
    RowChain<T> chain{};
    point<T>(chain, step.operands, buffers);
    chain.rows = shape.rows;
    chain.code = shape.code;
    chain.count = shape.count;
    chain.before = shape.before;
    chain.value = shape.value;
    chain.result = shape.result;
    chain.function = shape.function;
    chain.epsilon = shape.epsilon;
    runner.team(chain, shape.rows.elements, step.team);
  });
}

template <class Runner>
void run(const DefinitionStep&, const Buffers&, Runner&) {
  TASO_CHECK(false, "a definition is no precompiled kernel");
}

template <class Runner>
void run(const BesideStep& step, const Buffers& buffers, Runner& runner) {
  for (const BesideStep::Part& part : step.parts) {
    const PartBuffers own(part, buffers);
    for (const Step& one : part.program->steps) run_step(one, own.buffers(), runner);
  }
}

}  // namespace dispatch

/// Carries out one step.
template <class Runner>
void run_step(const Step& step, const Buffers& buffers, Runner& runner) {
  std::visit([&](const auto& one) { dispatch::run(one, buffers, runner); }, step);
}

}  // namespace taso::cuda
