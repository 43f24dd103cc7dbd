/// Stages of definitions as tapes: straight lists of loops over blocks, resolved before they run.
///
/// A stage that reads without guards and indices, and has no conditions (sums, maxima, norms, softmax, chains of
/// arithmetic), is the same loops over the same operands for every block; only where operands lie changes. A tape has
/// them in order, with the registers that they write and the operands that are one number known beforehand, so that
/// what a block costs besides its elements is small: rows of a few hundred elements are worth a loop. Steps that give
/// the same in all of the own loops inside of the run are taken once for these, and keep their registers. What it
/// computes is what BlockEvaluator does, to the bit; that is the general way, for all other stages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "runtime/cpu/block_evaluator.h"

namespace taso::cpu {

/// Where a value of a tape is.
struct TapeValue {
  enum class Place : std::uint8_t { memory, block, turned, scalar };
  Place place = Place::scalar;
  bool one = true;           ///< One number for the whole block.
  bool varies = false;       ///< With the own loops inside of the run.
  std::uint32_t index = 0;   ///< The register, or the form of the offset in memory.
  std::uint32_t buffer = 0;  ///< Of memory; of blocks that are transposed, the loop whose step says which.
};

/// One loop over a block, or a reduction: its body, the steps up to `end`, is gone through for each of its elements.
struct TapeStep {
  enum class Kind : std::uint8_t { unary, binary, pair, chain, strided, turn, total, totals };
  Kind kind = Kind::unary;
  bool on_right = false;             ///< Of a pair: its first operation is the right operand of its second.
  bool first_by_reciprocal = false;  ///< b as the divisor of a quotient (StagePlan::Operation).
  bool by_reciprocal = false;        ///< The divisor of a pair's second operation, c.
  bool once = false;                 ///< In all of the own loops inside of the run: nothing that it reads varies.
  Arithmetic first = Arithmetic::add, second = Arithmetic::add;  ///< Of a pair.
  bool product = false;                                          ///< Of a reduction: a sum of a * b, not of a.
  bool spread = false;                                           ///< Of a total: a sum of squares of a - b.
  UnaryLoop unary = nullptr;
  const BinaryEntry* binary = nullptr;
  std::optional<Arithmetic> of_numbers;  ///< What `binary` is, where both operands are one number.
  Arithmetic fourth = Arithmetic::add;   ///< Of a chain: of its first pair's result times d, and of e.
  TapeValue a, b, c, d, e, result;
  std::int64_t stride = 0;  ///< Of a strided load, or one that is transposed.
  std::uint32_t node = 0;   ///< Of a reduction.
  std::uint32_t along = 0;  ///< Of a total: the loop that blocks go along.
  std::uint32_t some = 0;   ///< Of totals: the register of those that are not yet added up.
  std::uint32_t end = 0;    ///< Of a reduction: after its body.
};

/// Blocks that lie apart in a buffer, transposed: those for successive steps of the loop along which they lie together.
struct TurnedAccess {
  std::uint32_t buffer = 0;
  std::int64_t stride = 0;  ///< Between elements of a block.
  std::int64_t steps = 0;
  std::int64_t block = 0;  ///< Elements of a block at most.
  bool operator==(const TurnedAccess&) const = default;
};

/// What stages read transposed, kept while they read the same. For one thread, and while nothing is written where
/// something was read.
class TurnedBlocks {
 public:
  struct Blocks {
    TurnedAccess access;
    std::vector<float> elements;
    const float* from = nullptr;  ///< What the first one was read from.
    std::int64_t count = 0;       ///< Elements of each.
  };
  /// The place for the accesses of a stage, in order; equal ones of another stage have the same.
  [[nodiscard]] std::vector<Blocks*> places(const std::vector<TurnedAccess>& accesses);
  /// What was read has been written anew.
  void forget() {
    for (Blocks& blocks : blocks_) blocks.from = nullptr;
  }

 private:
  std::deque<Blocks> blocks_;
};

/// Immutable. The plan must outlive it.
class BlockTape {
 public:
  /// Nothing where the stage needs BlockEvaluator.
  [[nodiscard]] static std::optional<BlockTape> of(const StagePlan& plan);

 private:
  friend class TapeRunner;
  friend class TapeBuilder;
  friend class RowTapeBuilder;
  const StagePlan* plan_ = nullptr;
  std::vector<TapeStep> steps_;
  TapeValue root_;
  std::optional<std::size_t> last_;  ///< The step that may write the root where it is wanted.
  std::size_t blocks_ = 0;           ///< Registers of a block each.
  std::vector<TurnedAccess> turned_;
  std::vector<bool> outside_;   ///< Per loop variable: whether it is the run, or a loop outside of it.
  std::vector<float> scalars_;  ///< Registers of one number each, and what they are at first.
};

/// Computes elements of one stage, as BlockEvaluator does; for one thread.
class TapeRunner {
 public:
  /// `buffers` by number (LoweredBody), and `turned`, are referred to; of stride 1.
  TapeRunner(const BlockTape& tape, const std::vector<BlockBuffer>& buffers, TurnedBlocks& turned);

  void step(std::uint32_t variable, std::int64_t count) {
    for (const auto& [form, coefficient] : tape_->plan_->stage().steps[variable]) values_[form] += coefficient * count;
    if (!follows_) return;
    steps_[variable] += count;
    fresh_ = fresh_ || tape_->outside_[variable];
  }
  /// Adds to a form.
  void shift(std::uint32_t form, std::int64_t elements) { values_[form] += elements; }
  [[nodiscard]] std::int64_t place() const { return values_[tape_->plan_->stage().write]; }
  void compute(std::int64_t count, float* elements);

 private:
  [[nodiscard]] const float* at(const TapeValue& value) const {
    switch (value.place) {
      case TapeValue::Place::memory:
        return static_cast<const float*>((*buffers_)[value.buffer].data) + values_[value.index];
      case TapeValue::Place::block:
        return blocks_[value.index].data();
      case TapeValue::Place::turned:
        return turned_at(value);
      case TapeValue::Place::scalar:
        break;
    }
    return &scalars_[value.index];
  }
  [[nodiscard]] const float* turned_at(const TapeValue& value) const;
  [[nodiscard]] float* result(const TapeValue& value) {
    return value.place == TapeValue::Place::block ? blocks_[value.index].data() : &scalars_[value.index];
  }
  void run(std::size_t begin, std::size_t end, std::int64_t count, float* last);
  void binary(const TapeStep& step, std::int64_t count, float* y);
  void pair(const TapeStep& step, std::int64_t count, float* y);
  void chain(const TapeStep& step, std::int64_t count, float* y);
  void turn(const TapeStep& step, std::int64_t count);
  void total(const TapeStep& step, std::size_t body, float* y);
  void totals(const TapeStep& step, std::size_t body, std::int64_t count, float* y);
  template <class Body>
  void for_each(std::span<const std::uint32_t> variables, std::optional<std::uint32_t> left_out, const Body& body);

  const BlockTape* tape_;
  const std::vector<BlockBuffer>* buffers_;
  const BinaryEntry* multiply_;
  std::vector<std::int64_t> values_;  ///< Per form, at the block's first element.
  std::vector<std::int64_t> steps_;   ///< Per loop variable, at the block's first element.
  std::vector<std::array<float, block_elements>> blocks_;
  std::vector<TurnedBlocks::Blocks*> turned_;
  std::vector<float> scalars_;
  bool follows_;                 ///< Whether something is taken once, or transposed: loop variables matter.
  bool fresh_ = true;            ///< What is taken once is to be taken.
  std::int64_t last_count_ = 0;  ///< Elements of the block before.
};

}  // namespace taso::cpu
