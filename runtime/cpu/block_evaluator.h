/// Definitions evaluated over floats, many elements at a time: no operator needs code of its own to run.
///
/// A stage of a lowered definition (operators/lowered_body.h) is computed by blocks of one of its own loops, its *run*:
/// every operation of the definition is one loop of cpu/loops.h over a block, and what they pass on stays in the
/// first-level cache. Where the elements of a reduction lie together and those of the result do not, blocks go along
/// a loop of the reduction, and its sum is that of the block. What a stage costs either way is estimated from the
/// strides of what it reads, and the cheaper way is taken.
///
/// What lies apart along the run may lie together along a loop inside of it, as rows do where blocks go across them. A
/// tape (cpu/block_tape.h) then reads a block for all steps of that loop at once, transposed, and so it writes. Rows
/// that are not that short are computed several at once (cpu/row_tape.h).
///
/// Two operations of arithmetic, one on the result of the other, are one loop (cpu/pairs.h), as are a sum and the
/// product or square that it adds up. Every element is what operations by themselves make of it, with one exception: a
/// quotient by one number for all elements that an earlier stage of the same operator has computed (a total), or that
/// is computed (a root, a sum), is a product with its reciprocal, unless the operator has a function that jumps.
#pragma once

#include <absl/container/inlined_vector.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "operators/lowered_body.h"
#include "runtime/cpu/block.h"
#include "runtime/cpu/loops.h"
#include "runtime/cpu/pairs.h"

namespace taso::cpu {

/// How a stage is computed; immutable. The stage must outlive it.
class StagePlan {
 public:
  /// What the stages of the same operator have computed before, and whether one of them has a function that jumps.
  struct Operator {
    std::vector<std::uint32_t> computed;  ///< Buffers.
    bool jumps = false;
  };
  /// `by_rows`: whether several rows may be computed at once, rather than be transposed.
  StagePlan(const LoweredStage& stage, const Operator& of, bool by_rows = true);

  [[nodiscard]] const LoweredStage& stage() const { return *stage_; }
  /// The own loop that blocks go along; nothing where each element is computed alone, by blocks of reductions.
  [[nodiscard]] std::optional<std::uint32_t> run() const { return run_; }
  /// The coefficient of a form along a loop variable.
  [[nodiscard]] std::int64_t coefficient(std::uint32_t form, std::uint32_t variable) const {
    return coefficients_[variable * stage_->forms.size() + form];
  }
  /// The loop along which a tape reads an access for all steps at once, and writes.
  [[nodiscard]] std::optional<std::uint32_t> turned(std::uint32_t access) const {
    return run_ ? turned_along(stage_->accesses[access].offset, around_[access], *run_) : std::nullopt;
  }
  [[nodiscard]] std::optional<std::uint32_t> written_turned() const {
    return run_ ? turned_along(stage_->write, {}, *run_) : std::nullopt;
  }
  /// Elements of a block along the run, but for the last.
  [[nodiscard]] std::int64_t block() const { return block_; }
  /// The own loop of which a tape takes several steps at once (cpu/row_tape.h), and how many at most: rows, which the
  /// run goes along, or a reduction where there is no run.
  [[nodiscard]] std::optional<std::uint32_t> rows() const { return rows_.loop; }
  [[nodiscard]] std::int64_t rows_at_once() const { return rows_.at_once; }
  /// Whether a tape reads or writes something transposed.
  [[nodiscard]] bool turns() const;
  /// Registers of a block each that an evaluation needs.
  [[nodiscard]] std::size_t registers() const { return registers_; }
  /// Estimate for one element, in additions of elements that lie together.
  [[nodiscard]] double work() const { return work_; }

 private:
  friend class BlockEvaluator;
  friend class TapeBuilder;
  friend class TapeRunner;
  /// What a node's operation is.
  struct Operation {
    const UnaryEntry* unary = nullptr;
    const BinaryEntry* binary = nullptr;
    std::optional<std::uint32_t> along;  ///< Of a reduction outside of a run: the loop that blocks go along.
    std::optional<Arithmetic> arithmetic;
    std::optional<std::uint32_t> inner;  ///< Of arithmetic: the operand that is computed in the same loop.
    bool square = false;
    bool by_reciprocal = false;  ///< Of a quotient: where the divisor is one number.
  };
  void find_operations(const Operator& of);
  void place_slots();
  void find_same();
  void find_pairs();
  /// Whether a value depends on what is read of some buffers; without: of any.
  [[nodiscard]] bool reads(std::uint32_t node, const std::vector<std::uint32_t>* of) const;
  /// Whether a value is rounded on the way from what is read.
  [[nodiscard]] bool rounds(std::uint32_t node) const;
  [[nodiscard]] bool are_same(std::uint32_t a, std::uint32_t b) const;
  /// Notes the loops of reductions around each access, and whether there is nothing but plain reads and arithmetic.
  void find_loops_around(std::uint32_t node, std::vector<std::uint32_t>& loops);
  /// The loop inside of the run, if there is one, along which `form` takes steps of one, but none in the loops inside
  /// of that, where it takes longer ones along the run. `around`: the loops of reductions where it is used.
  [[nodiscard]] std::optional<std::uint32_t> turned_along(std::uint32_t form, std::span<const std::uint32_t> around,
                                                          std::uint32_t run) const;
  /// The loop over rows, and how many are a block; without a loop one.
  struct Rows {
    std::optional<std::uint32_t> loop;
    std::int64_t at_once = 1;
  };
  [[nodiscard]] Rows rows_of(std::optional<std::uint32_t> run) const;
  /// Elements of the longest reduction, each of which is one loop with none inside of it; nothing where one is not, or
  /// there is none.
  [[nodiscard]] std::optional<std::int64_t> longest_reduction() const;
  [[nodiscard]] bool has_reduction(std::uint32_t node) const;
  void choose_run();
  void choose_block();
  /// Of a node, by blocks along a loop, of so many rows at once.
  [[nodiscard]] double estimate(std::uint32_t node, std::optional<std::uint32_t> along, std::int64_t rows = 1) const;
  [[nodiscard]] double estimate_access(std::uint32_t access, std::optional<std::uint32_t> along) const;
  [[nodiscard]] std::optional<std::uint32_t> best_loop(const LoweredNode& reduction) const;
  [[nodiscard]] std::size_t depth(std::uint32_t node) const;

  const LoweredStage* stage_;
  bool by_rows_;
  std::vector<std::int64_t> coefficients_;
  std::vector<Operation> operations_;  ///< Per node.
  std::vector<std::uint32_t> same_;    ///< Per node: the first one that has the same value wherever both are computed.
  std::vector<std::vector<std::uint32_t>> around_;  ///< Per access: loops of reductions, from the outermost on.
  bool plain_ = true;
  std::optional<std::uint32_t> run_;
  std::int64_t block_ = block_elements;
  Rows rows_;
  std::vector<std::size_t> slot_registers_;  ///< Per slot: the first of those in which its value is computed.
  std::size_t registers_ = 1;
  double work_ = 0;
};

/// Whether a stage calls a function of which a small error of the argument can be a large one of the result.
[[nodiscard]] bool has_jump(const LoweredStage& stage);

/// A buffer that a stage reads. An element's offset is `stride` times what the definition says.
struct BlockBuffer {
  const void* data = nullptr;
  std::int64_t stride = 1;
  bool wide = true;  ///< Of integers: i64, else i32.
};

/// Computes elements of one stage; for one thread.
class BlockEvaluator {
 public:
  /// `buffers` by number (LoweredBody), referred to; they may be changed between calls.
  BlockEvaluator(const StagePlan& plan, const std::vector<BlockBuffer>& buffers);

  /// Advances a loop variable.
  void step(std::uint32_t variable, std::int64_t count);
  /// Adds to a form.
  void shift(std::uint32_t form, std::int64_t elements) { values_[form] += elements; }
  /// The place in the output of the element at the current loop variables.
  [[nodiscard]] std::int64_t place() const { return values_[plan_->stage().write]; }
  /// Computes the `count` elements along the run from the current one on, at most a block (1 where there is no
  /// run), into memory where they lie together.
  void compute(std::int64_t count, float* elements);
  /// The first failure: an index out of range.
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  using Kind = LoweredNode::Kind;
  struct Slot {
    Block block;             ///< Where it was computed: in registers of its own (StagePlan::slot_registers_), or read.
    std::int64_t begin = 0;  ///< The position in the run at which it was bound.
  };
  struct Interval {
    std::int64_t begin = 0, end = 0;
  };
  using Intervals = absl::InlinedVector<Interval, 2>;  ///< Ascending, apart from each other.

  [[nodiscard]] float* reg(std::size_t depth) { return depth == 0 ? target_ : registers_[depth].data(); }
  [[nodiscard]] std::int64_t along(std::uint32_t form) const { return along_ ? plan_->coefficient(form, *along_) : 0; }
  /// One number as a block.
  [[nodiscard]] Block number(std::size_t depth, float value);
  [[nodiscard]] Block value(std::uint32_t id, std::size_t depth);
  /// The two operands of a node; computed once if they are the same.
  [[nodiscard]] std::pair<Block, Block> operands(const LoweredNode& node, std::size_t depth);
  [[nodiscard]] Block unary(const LoweredNode& node, const StagePlan::Operation& operation, std::size_t depth);
  [[nodiscard]] Block binary(const LoweredNode& node, const StagePlan::Operation& operation, std::size_t depth);
  [[nodiscard]] Block pair(const LoweredNode& node, const StagePlan::Operation& operation, std::size_t depth);
  /// What a sum of products or squares adds up; nothing for others.
  [[nodiscard]] std::optional<std::pair<Block, Block>> factors(std::uint32_t id, std::size_t depth);

  [[nodiscard]] Block read(const LoweredNode& node, std::size_t depth);
  /// The elements of a part of the block, which must lie inside.
  [[nodiscard]] Block load(const LoweredAccess& access, Interval part, std::size_t depth);
  [[nodiscard]] Block valid(const LoweredAccess& access, std::size_t depth);
  /// The coordinate that is read for a position of the block; nothing, and a failure, where it is out of range.
  [[nodiscard]] std::optional<std::int64_t> index_at(const LoweredAccess::Indirect& indirect, std::int64_t position);
  /// The positions of the block at which the guards hold.
  [[nodiscard]] Interval guarded(const LoweredAccess& access) const;
  [[nodiscard]] bool indices_leave(const LoweredAccess& access, std::int64_t position);
  /// The positions at which the element lies inside.
  [[nodiscard]] Intervals inside(const LoweredAccess& access);

  [[nodiscard]] bool test(std::uint32_t id, std::int64_t position) const;
  /// A position after this one, or the end of the block, before which a condition is what it is at this one.
  [[nodiscard]] std::int64_t same_until(std::uint32_t id, std::int64_t position) const;
  [[nodiscard]] Block conditional(const LoweredNode& node, std::size_t depth);
  void bind(const LoweredNode& node);

  /// Per element of the block.
  [[nodiscard]] Block reduce_elements(const LoweredNode& node, std::size_t depth);
  void accumulate(const LoweredNode& node, float* totals, std::size_t depth);
  /// Of products of plain reads: no more than what lies inside.
  void accumulate_factors(const LoweredNode& node, float* totals, std::size_t depth);
  /// Of one element, by blocks along a loop of the reduction.
  [[nodiscard]] Block reduce_block(const LoweredNode& node, std::uint32_t variable, std::size_t depth);
  [[nodiscard]] double of_block(const LoweredNode& node, std::size_t depth);

  /// A part of the block, by itself, of a node's elements, to where they belong in `elements`.
  void copy_of(std::uint32_t id, Interval part, float* elements, std::size_t depth);
  /// Calls body() with a part of the block as the block.
  template <class Body>
  void within(Interval part, const Body& body);
  template <class Body>
  void for_each(std::span<const std::uint32_t> variables, std::optional<std::uint32_t> left_out, const Body& body);

  const StagePlan* plan_;
  const std::vector<BlockBuffer>* buffers_;
  std::vector<std::int64_t> values_;  ///< Per form, at the block's first element.
  std::vector<std::array<float, block_elements>> registers_;
  std::vector<Slot> slots_;
  float* target_ = nullptr;             ///< Register 0: where the elements are wanted.
  std::optional<std::uint32_t> along_;  ///< The loop that the current block goes along.
  std::int64_t begin_ = 0;              ///< Of the current block in the one in which slots are bound.
  std::int64_t count_ = 1;
  Status status_;
};

}  // namespace taso::cpu
