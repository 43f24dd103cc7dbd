/// How element-wise kernels go over their operands: the output's axes in memory order, those along which all operands
/// advance regularly merged, and the innermost of what remains at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "operators/instance.h"
#include "runtime/cpu/block_evaluator.h"
#include "runtime/cpu/loops.h"
#include "runtime/cpu/parallel.h"
#include "runtime/kernel.h"

namespace taso::cpu {

struct ElementWalk {
  std::vector<std::int64_t> extents;               ///< Of the merged axes, outermost first; at least one.
  std::vector<std::vector<std::int64_t>> strides;  ///< Per input, per axis, in elements. The output is dense.
  /// How many times the innermost axis is gone along.
  [[nodiscard]] std::int64_t rows() const;
};

/// Of a request for an element-wise operator whose inputs broadcast to its one output. Blocks of channels: of an input,
/// only where the output has them and the same shape.
[[nodiscard]] ElementWalk element_walk(const KernelRequest& request);

/// Why there is no walk of the request; empty if there is one.
[[nodiscard]] std::string no_element_walk(const KernelRequest& request);

/// Calls f(where the row begins in each input, row) for the rows in [begin, end), in order.
template <class F>
void for_rows(const ElementWalk& walk, std::int64_t begin, std::int64_t end, F&& f) {
  const std::size_t outer = walk.extents.size() - 1;
  std::vector<std::int64_t> index(outer), offsets(walk.strides.size(), 0);
  std::int64_t rest = begin;
  for (std::size_t axis = outer; axis-- > 0;) {
    index[axis] = rest % walk.extents[axis];
    rest /= walk.extents[axis];
    for (std::size_t i = 0; i < offsets.size(); ++i) offsets[i] += index[axis] * walk.strides[i][axis];
  }
  for (std::int64_t row = begin; row < end; ++row) {
    f(std::span<const std::int64_t>(offsets), row);
    for (std::size_t axis = outer; axis-- > 0;) {
      const bool carry = ++index[axis] == walk.extents[axis];
      for (std::size_t i = 0; i < offsets.size(); ++i)
        offsets[i] += walk.strides[i][axis] * (carry ? 1 - walk.extents[axis] : 1);
      if (!carry) break;
      index[axis] = 0;
    }
  }
}

/// The loop that an element-wise operator of one or two operands is, if there is one.
struct ElementLoop {
  const UnaryEntry* unary = nullptr;
  const BinaryEntry* binary = nullptr;
  float p = 0, q = 0;  ///< Of the unary function.
};
[[nodiscard]] ElementLoop element_loop(const KernelRequest& request, const OperatorRegistry& registry);

/// The definition of an element-wise operator on a block: its one stage, in which inputs with axes are blocks of
/// elements and inputs without are one.
class BlockDefinition {
 public:
  /// Nothing, and the reason, where the definition is not that of one stage.
  [[nodiscard]] static Expected<BlockDefinition> create(const KernelRequest& request, const OperatorRegistry& registry);
  [[nodiscard]] const StagePlan& plan() const { return *plan_; }

 private:
  explicit BlockDefinition(OperatorInstance instance)
      : instance_(std::make_unique<OperatorInstance>(std::move(instance))),
        plan_(std::make_unique<StagePlan>(instance_->body().stages[0], StagePlan::Operator{})) {}
  std::unique_ptr<OperatorInstance> instance_;
  std::unique_ptr<StagePlan> plan_;
};

/// Goes over all rows of a walk, or over parts of its only one, with threads. Each has a worker of its own, which
/// make() gives; worker.go_to(offsets) says where the next row begins in each input, and
/// worker.compute(begin, end, row) computes elements of the row, which begins at element `row` of the output.
/// `work`: of an element, in additions. `unit`: so many elements of a row are not parted; it is made of whole units.
template <class Make>
void go_over(const ElementWalk& walk, int threads, double work, const Make& make, std::int64_t unit = 1) {
  constexpr double work_of_a_thread = 16384;
  const std::int64_t inner = walk.extents.back(), rows = walk.rows();
  const auto grain = [&](double of_one) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(work_of_a_thread / std::max(of_one, 1.0)));
  };
  if (rows == 1)
    return parallel_chunks(threads, inner / unit, grain(work * static_cast<double>(unit)),
                           [&](std::int64_t begin, std::int64_t end) {
                             auto worker = make();
                             worker->compute(begin * unit, end * unit, 0);
                           });
  parallel_chunks(threads, rows, grain(work * static_cast<double>(inner)), [&](std::int64_t begin, std::int64_t end) {
    auto worker = make();
    for_rows(walk, begin, end, [&](std::span<const std::int64_t> offsets, std::int64_t row) {
      worker->go_to(offsets);
      worker->compute(0, inner, row * inner);
    });
  });
}

}  // namespace taso::cpu
