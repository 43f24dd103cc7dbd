#include "runtime/cpu/row_tape.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/cpu/block_fold.h"

namespace taso::cpu {

using Kind = TapeStep::Kind;
using Place = RowValue::Place;

namespace {

/// As reciprocal() asks for, without branches.
bool is_normal(float x) {
  const float size = std::fabs(x);
  return (size >= std::numeric_limits<float>::min()) & (size <= std::numeric_limits<float>::max());
}

}  // namespace

/// Goes along a tape and keeps which of its registers differ from row to row.
class RowTapeBuilder {
 public:
  RowTapeBuilder(const StagePlan& plan, const BlockTape& tape)
      : plan_(&plan), tape_(&tape), elements_by_row_(tape.blocks_), number_by_row_(tape.scalars_.size()) {}

  std::optional<RowTape> build() {
    if (!plan_->rows()) return std::nullopt;
    const LoweredStage& stage = plan_->stage();
    rows_.plan_ = plan_;
    rows_.width_ = plan_->run() ? stage.extents[*plan_->run()] : 1;
    rows_.written_stride_ = plan_->coefficient(stage.write, *plan_->rows());
    rows_.blocks_ = 2 * tape_->blocks_;
    rows_.numbers_ = tape_->scalars_;
    if (!add(0, tape_->steps_.size(), rows_.width_)) return std::nullopt;
    const auto root = value(tape_->root_, rows_.width_);
    if (!root) return std::nullopt;
    rows_.root_ = *root;
    if (rows_.written_stride_ == rows_.width_) rows_.last_ = last();
    return std::move(rows_);
  }

 private:
  /// Adds steps of a tape whose blocks have so many elements. One after the other, as those of the tape.
  bool add(std::size_t begin, std::size_t end, std::int64_t width) {
    for (std::size_t i = begin; i < end; ++i) {
      const TapeStep& step = tape_->steps_[i];
      if (step.kind == Kind::turn || step.kind == Kind::totals || step.once) return false;
      const bool total = step.kind == Kind::total;
      // Of a reduction: its place is before its body, whose registers it reads.
      rows_.steps_.emplace_back();
      const std::int64_t of_body = total ? plan_->stage().extents[step.along] : width;
      if (total) {
        if (width != 1 || !is_simple(step) || !add(i + 1, step.end, of_body)) return false;
      }
      std::optional<RowStep> of_rows = this->step(step, total ? of_body : step.result.one ? 1 : width);
      if (!of_rows) return false;
      rows_.steps_[i] = *of_rows;
      if (total) i = step.end - 1;
    }
    return true;
  }

  /// The step that makes the result, of each row, if it is the last one.
  [[nodiscard]] std::optional<std::size_t> last() const {
    std::optional<std::size_t> last = tape_->last_;
    // Numbers have a register each; with a run one is all elements of the row.
    const bool of_number = rows_.root_.place == Place::number && !plan_->run();
    for (std::size_t i = 0; i < rows_.steps_.size() && of_number; ++i)
      if (rows_.steps_[i].result.place == Place::number && rows_.steps_[i].result.index == rows_.root_.index) last = i;
    if (!last || !rows_.steps_[*last].by_row) return std::nullopt;
    const TapeStep& step = tape_->steps_[*last];
    const std::size_t end = step.kind == Kind::total ? step.end : *last + 1;
    return end == tape_->steps_.size() ? last : std::nullopt;
  }

  /// Whether a reduction goes along one loop, in one block, and none is inside of it.
  [[nodiscard]] bool is_simple(const TapeStep& step) const {
    return plan_->stage().nodes[step.node].loops.size() == 1 && plan_->stage().extents[step.along] <= block_elements;
  }

  std::optional<RowStep> step(const TapeStep& step, std::int64_t width) {
    RowStep rows;
    rows.of = step;
    rows.width = width;
    rows.together = true;
    const bool one = step.result.one;
    for (const auto& [from, to] :
         {std::pair(&step.a, &rows.a), std::pair(&step.b, &rows.b), std::pair(&step.c, &rows.c),
          std::pair(&step.d, &rows.d), std::pair(&step.e, &rows.e)}) {
      if (!reads(step, from)) continue;
      const std::optional<RowValue> operand = value(*from, width);
      if (!operand) return std::nullopt;
      *to = *operand;
      rows.by_row = rows.by_row || operand->stride != 0;
      const bool fits = one            ? operand->stride == 0 || operand->stride == 1
                        : operand->one ? operand->stride == 0
                                       : operand->stride == width;
      rows.together = rows.together && fits;
    }
    if (step.kind == Kind::strided) rows.together = false;
    // Of two numbers a tape takes the loop of two blocks; that of a block and one number may round otherwise.
    if (step.kind == Kind::binary && one && !step.of_numbers && rows.a.stride != rows.b.stride) rows.together = false;
    rows.together = rows.together || !rows.by_row;
    const bool elements = step.result.place == TapeValue::Place::block;
    (elements ? elements_by_row_ : number_by_row_)[step.result.index] = rows.by_row;
    rows.result = *value(step.result, width);
    return rows;
  }

  /// Whether a step reads that one of its operands.
  static bool reads(const TapeStep& step, const TapeValue* operand) {
    int count = 1;
    switch (step.kind) {
      case Kind::binary:
        count = 2;
        break;
      case Kind::pair:
        count = 3;
        break;
      case Kind::chain:
        count = 5;
        break;
      case Kind::total:
        count = step.product || step.spread ? 2 : 1;
        break;
      case Kind::unary:
      case Kind::strided:
      case Kind::turn:
      case Kind::totals:
        break;
    }
    const TapeValue* const operands[] = {&step.a, &step.b, &step.c, &step.d, &step.e};
    return std::find(operands, operands + count, operand) != operands + count;
  }

  [[nodiscard]] std::optional<RowValue> value(const TapeValue& value, std::int64_t width) const {
    switch (value.place) {
      case TapeValue::Place::memory:
        return RowValue{Place::memory, value.one, value.index, value.buffer,
                        plan_->coefficient(value.index, *plan_->rows())};
      case TapeValue::Place::block:
        // What is the same for all rows is in registers of its own: a step whose rows go into the register that it
        // reads must find it for each.
        return elements_by_row_[value.index]
                   ? RowValue{Place::elements, false, value.index, 0, width}
                   : RowValue{Place::elements, false, static_cast<std::uint32_t>(tape_->blocks_ + value.index), 0, 0};
      case TapeValue::Place::scalar:
        return RowValue{Place::number, true, value.index, 0, number_by_row_[value.index] ? 1 : 0};
      case TapeValue::Place::turned:
        break;
    }
    return std::nullopt;
  }

  const StagePlan* plan_;
  const BlockTape* tape_;
  RowTape rows_;
  std::vector<bool> elements_by_row_, number_by_row_;  ///< Per register.
};

std::optional<RowTape> RowTape::of(const StagePlan& plan, const BlockTape& tape) {
  return RowTapeBuilder(plan, tape).build();
}

RowRunner::RowRunner(const RowTape& tape, const std::vector<BlockBuffer>& buffers)
    : tape_(&tape),
      buffers_(&buffers),
      multiply_(find_binary("mul")),
      subtract_(find_binary("sub")),
      blocks_(std::make_unique_for_overwrite<float[]>(tape.blocks_ * elements_of_rows)),
      numbers_(std::make_unique_for_overwrite<float[]>(tape.numbers_.size() *
                                                       static_cast<std::size_t>(tape.plan_->rows_at_once()))) {
  values_.reserve(tape.plan_->stage().forms.size());
  for (const Affine& form : tape.plan_->stage().forms) values_.push_back(form.base);
  for (std::size_t i = 0; i < tape.numbers_.size(); ++i)
    numbers_[i * static_cast<std::size_t>(tape.plan_->rows_at_once())] = tape.numbers_[i];
}

const float* RowRunner::at(const RowValue& value) const {
  if (value.place != Place::memory) return result(value);
  return static_cast<const float*>((*buffers_)[value.buffer].data) + values_[value.index];
}

float* RowRunner::result(const RowValue& value) const {
  if (value.place == Place::elements) return blocks_.get() + value.index * elements_of_rows;
  return numbers_.get() + value.index * tape_->plan_->rows_at_once();
}

void RowRunner::compute(std::int64_t rows, float* to) {
  rows_ = rows;
  run(0, tape_->steps_.size(), to);
  if (tape_->last_) return;
  const RowValue& root = tape_->root_;
  const float* const from = at(root);
  for (std::int64_t row = 0; row < rows; ++row)
    store({from + row * root.stride, root.one}, tape_->width_, to + row * tape_->written_stride_);
}

void RowRunner::run(std::size_t begin, std::size_t end, float* last) {
  for (std::size_t i = begin; i < end; ++i) {
    const RowStep& step = tape_->steps_[i];
    float* const y = last != nullptr && tape_->last_ == i ? last : result(step.result);
    switch (step.of.kind) {
      case Kind::unary:
        unary(step, y);
        break;
      case Kind::binary:
        binary(step, y);
        break;
      case Kind::pair:
        pair(step, y);
        break;
      case Kind::chain:
        chain(step, y);
        break;
      case Kind::strided:
        go(step, operands(step), y, [&](const float* from, auto, auto, auto, auto, float* to, std::int64_t count) {
          for (std::int64_t k = 0; k < count; ++k) to[k] = from[k * step.of.stride];
        });
        break;
      case Kind::total:
        run(i + 1, step.of.end, nullptr);
        total(step, y);
        i = step.of.end - 1;
        break;
      case Kind::turn:
      case Kind::totals:
        break;  // RowTapeBuilder::add
    }
  }
}

template <class Loop>
void RowRunner::go(const RowStep& step, const std::array<Operand, operands_of_step>& operands, float* y,
                   const Loop& loop) {
  auto [a, b, c, d, e] = operands;
  const std::int64_t rows = step.by_row ? rows_ : 1;
  if (step.together) return loop(a.at, b.at, c.at, d.at, e.at, y, rows * step.width);
  for (std::int64_t row = 0; row < rows; ++row) {
    loop(a.at, b.at, c.at, d.at, e.at, y, step.width);
    for (Operand* const operand : {&a, &b, &c, &d, &e}) operand->at += operand->stride;
    y += step.result.one ? 1 : step.width;
  }
}

std::array<RowRunner::Operand, operands_of_step> RowRunner::operands(const RowStep& step) const {
  const auto of = [&](const RowValue& value) { return Operand{at(value), value.stride}; };
  return {of(step.a), of(step.b), of(step.c), of(step.d), of(step.e)};
}

bool RowRunner::invert(const RowStep& step, Operand& divisor, Reciprocals& reciprocals) const {
  const std::int64_t count = step.by_row && divisor.stride != 0 ? rows_ : 1;
  int normal = 1;
  for (std::int64_t i = 0; i < count; ++i) {
    const float of = divisor.at[i * divisor.stride], inverse = 1.0F / of;
    normal &= static_cast<int>(is_normal(of)) & static_cast<int>(is_normal(inverse));
    reciprocals[static_cast<std::size_t>(i)] = inverse;
  }
  if (normal == 0) return false;
  divisor = {reciprocals.data(), divisor.stride == 0 ? 0 : 1};
  return true;
}

void RowRunner::unary(const RowStep& step, float* y) {
  go(step, operands(step), y,
     [&](const float* x, auto, auto, auto, auto, float* to, std::int64_t count) { step.of.unary(x, to, count, 0, 0); });
}

// Of elements and one number of each row: by one loop over all rows, if these lie together.
void RowRunner::with_number(const RowStep& step, const std::array<Operand, operands_of_step>& operands, float* y,
                            const BinaryEntry* entry, RowsLoop of_rows) {
  if (!step.together && step.a.stride == step.width)
    return of_rows(operands[0].at, operands[1].at, operands[1].stride, y, rows_, step.width);
  go(step, operands, y, [&](const float* a, const float* b, auto, auto, auto, float* to, std::int64_t count) {
    entry->second_scalar(a, b, to, count);
  });
}

void RowRunner::binary(const RowStep& step, float* y) {
  auto operands = this->operands(step);
  Reciprocals reciprocals;
  if (step.of.by_reciprocal && invert(step, operands[1], reciprocals))
    return with_number(step, operands, y, multiply_, loops().multiply_by_rows);
  const bool of_numbers = step.b.one && !step.a.one && !step.of.by_reciprocal;
  if (of_numbers && step.of.binary == subtract_)
    return with_number(step, operands, y, subtract_, loops().subtract_of_rows);
  if (of_numbers && step.of.binary == multiply_)
    return with_number(step, operands, y, multiply_, loops().multiply_by_rows);
  // Numbers of rows are elements where there is one loop for all rows.
  const auto is_one = [&](const RowValue& operand) {
    return step.result.one ? step.together && step.by_row && operand.stride == 0 : operand.one;
  };
  const bool a_is_one = is_one(step.a), b_is_one = is_one(step.b);
  const BinaryLoop loop = a_is_one == b_is_one ? step.of.binary->both
                          : b_is_one           ? step.of.binary->second_scalar
                                               : step.of.binary->first_scalar;
  go(step, operands, y, [&](const float* a, const float* b, auto, auto, auto, float* to, std::int64_t count) {
    const std::optional<float> inverse = step.of.by_reciprocal ? reciprocal(*b) : std::nullopt;
    if (inverse)
      multiply_->second_scalar(a, &*inverse, to, count);
    else
      loop(a, b, to, count);
  });
}

void RowRunner::pair(const RowStep& step, float* y) {
  const TapeStep& of = step.of;
  const auto find = [&](Arithmetic first, Arithmetic second) {
    return pairs().find(first, second, of.on_right).find(step.a.one, step.b.one, step.c.one);
  };
  const PairLoop loop = find(of.first, of.second);
  go(step, operands(step), y,
     [&](const float* a, const float* b, const float* c, auto, auto, float* to, std::int64_t count) {
       const std::optional<float> of_first = of.first_by_reciprocal ? reciprocal(*b) : std::nullopt;
       const std::optional<float> of_second = of.by_reciprocal ? reciprocal(*c) : std::nullopt;
       if (!of_first && !of_second) return loop(a, b, c, to, count);
       find(of_first ? Arithmetic::multiply : of.first, of_second ? Arithmetic::multiply : of.second)(
           a, of_first ? &*of_first : b, of_second ? &*of_second : c, to, count);
     });
}

void RowRunner::chain(const RowStep& step, float* y) {
  const TapeStep& of = step.of;
  const ChainLoop loop = pairs().find_chain(of.first, of.fourth, step.d.one);
  auto operands = this->operands(step);
  Reciprocals reciprocals;
  if (of.second == Arithmetic::multiply || invert(step, operands[2], reciprocals)) return go(step, operands, y, loop);
  // One of the divisors has no reciprocal.
  go(step, operands, y,
     [&](const float* a, const float* b, const float* c, const float* d, const float* e, float* to,
         std::int64_t count) {
       if (const std::optional<float> inverse = reciprocal(*c)) return loop(a, b, &*inverse, d, e, to, count);
       pairs().find(of.first, of.second, false).find(false, true, true)(a, b, c, to, count);
       pairs().find(Arithmetic::multiply, of.fourth, false).find(false, step.d.one, step.e.one)(to, d, e, to, count);
     });
}

void RowRunner::total(const RowStep& step, float* y) {
  const Fold reduction = tape_->plan_->stage().nodes[step.of.node].reduction;
  const LoopTable& table = loops();
  const float *a = at(step.a), *b = at(step.b);
  const std::int64_t rows = step.by_row ? rows_ : 1;
  if (step.of.spread) return table.squares_rows(a, step.a.stride, b, step.b.stride, rows, step.width, y);
  if (step.of.product && !step.a.one && !step.b.one)
    return table.dot_rows(a, step.a.stride, b, step.b.stride, rows, step.width, y);
  const auto of_rows = step.of.product || step.a.one ? nullptr
                       : reduction == Fold::sum      ? table.sum_rows
                       : reduction == Fold::maximum  ? table.greatest_rows
                       : reduction == Fold::minimum  ? table.least_rows
                                                     : nullptr;
  if (of_rows != nullptr) return of_rows(a, step.a.stride, rows, step.width, y);
  for (std::int64_t row = 0; row < rows; ++row) {
    const Block x{a + row * step.a.stride, step.a.one};
    const double total = step.of.product ? sum_of_products(x, {b + row * step.b.stride, step.b.one}, step.width)
                                         : fold_block(reduction, x, step.width);
    y[row] = static_cast<float>(combine(reduction, neutral(reduction), total));
  }
}

}  // namespace taso::cpu
