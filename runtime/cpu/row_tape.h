/// Tapes over several rows at once.
///
/// A step of a tape (cpu/block_tape.h) takes some nanoseconds whatever its block, as long as a hundred elements do.
/// Where blocks are rows shorter than that, each step is taken for as many rows as make a block together: the innermost
/// own loop is the row and the one outside of it goes over rows, or a row is what a reduction goes along. What a step
/// makes of the rows lies one after the other. Where its operands do as well, or are one number for all rows, it is one
/// loop over all elements; where they are one number of each row (its mean, say) or the same row for all (weights), it
/// is one loop a row. What is one number of each row is computed for all rows by one loop, and what does not depend on
/// the row once. Elements are those of the tape, to the bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/cpu/block_tape.h"

namespace taso::cpu {

/// Where a value of several rows is.
struct RowValue {
  enum class Place : std::uint8_t { memory, elements, number };
  Place place = Place::number;
  bool one = true;           ///< One number for a row.
  std::uint32_t index = 0;   ///< The register, or the form of the offset in memory.
  std::uint32_t buffer = 0;  ///< Of memory.
  std::int64_t stride = 0;   ///< From row to row; 0: the same for all.
};

inline constexpr std::size_t operands_of_step = 5;

/// A step of a tape, for several rows.
struct RowStep {
  TapeStep of;
  std::int64_t width = 1;  ///< Elements of a row that it goes over.
  bool by_row = false;     ///< Rows differ in what it makes; else it is taken for one.
  bool together = false;   ///< It is one loop for all rows.
  RowValue a, b, c, d, e, result;
};

/// Immutable. The plan must outlive it.
class RowTape {
 public:
  /// Nothing where the plan computes no rows at once, or a step of its tape cannot be taken so.
  [[nodiscard]] static std::optional<RowTape> of(const StagePlan& plan, const BlockTape& tape);

 private:
  friend class RowRunner;
  friend class RowTapeBuilder;
  const StagePlan* plan_ = nullptr;
  std::vector<RowStep> steps_;
  RowValue root_;
  std::int64_t width_ = 1;           ///< Elements of a row of the result.
  std::int64_t written_stride_ = 1;  ///< Between rows of the result.
  std::optional<std::size_t> last_;  ///< The step that writes the result where it is wanted.
  std::size_t blocks_ = 0;           ///< Registers of a block each.
  std::vector<float> numbers_;       ///< What registers of one number of each row are at first.
};

/// Computes rows of one stage; for one thread.
class RowRunner {
 public:
  /// `buffers` by number (LoweredBody), referred to; of stride 1.
  RowRunner(const RowTape& tape, const std::vector<BlockBuffer>& buffers);

  void step(std::uint32_t variable, std::int64_t count) {
    for (const auto& [form, coefficient] : tape_->plan_->stage().steps[variable]) values_[form] += coefficient * count;
  }
  /// Adds to a form.
  void shift(std::uint32_t form, std::int64_t elements) { values_[form] += elements; }
  [[nodiscard]] std::int64_t place() const { return values_[tape_->plan_->stage().write]; }
  /// Computes so many rows from the current one on, at most StagePlan::rows_at_once(), in their places from `to` on.
  void compute(std::int64_t rows, float* to);

 private:
  [[nodiscard]] const float* at(const RowValue& value) const;
  void run(std::size_t begin, std::size_t end, float* last);
  /// What a step reads, and from row to row.
  struct Operand {
    const float* at = nullptr;
    std::int64_t stride = 0;
  };
  [[nodiscard]] std::array<Operand, operands_of_step> operands(const RowStep& step) const;
  /// Calls loop(a, b, c, d, e, y, count) for all rows at once, or row by row.
  template <class Loop>
  void go(const RowStep& step, const std::array<Operand, operands_of_step>& operands, float* y, const Loop& loop);
  using Reciprocals = std::array<float, elements_of_rows>;
  /// Makes the divisors of all rows their reciprocals, if all have one.
  bool invert(const RowStep& step, Operand& divisor, Reciprocals& reciprocals) const;
  using RowsLoop = void (*)(const float* x, const float* of_rows, std::int64_t stride, float* y, std::int64_t rows,
                            std::int64_t count);
  void with_number(const RowStep& step, const std::array<Operand, operands_of_step>& operands, float* y,
                   const BinaryEntry* entry, RowsLoop of_rows);
  void unary(const RowStep& step, float* y);
  void binary(const RowStep& step, float* y);
  void pair(const RowStep& step, float* y);
  void chain(const RowStep& step, float* y);
  void total(const RowStep& step, float* y);
  [[nodiscard]] float* result(const RowValue& value) const;

  const RowTape* tape_;
  const std::vector<BlockBuffer>* buffers_;
  const BinaryEntry *multiply_, *subtract_;
  std::vector<std::int64_t> values_;  ///< Per form, at the first element of the first row.
  // Registers, not initialized: a kernel of few elements should not pay for them.
  std::unique_ptr<float[]> blocks_;   ///< Of `elements_of_rows` each.
  std::unique_ptr<float[]> numbers_;  ///< Of StagePlan::rows_at_once() each.
  std::int64_t rows_ = 0;
};

}  // namespace taso::cpu
