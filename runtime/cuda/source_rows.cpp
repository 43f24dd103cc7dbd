// Functions of rows, softmax and the norms, with what is computed of elements before and after: several passes of a
// team over each row.
#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "runtime/cuda/source_steps.h"

namespace taso::cuda {
namespace {

using Numbers = std::vector<std::int64_t>;

/// Elements of a row that a thread keeps: rows that need more are read once more for every pass.
constexpr std::int64_t most_held = 32;

/// A function of every row of a box of `extents`: of what lines before `row_begins` leave in `value`; those from there
/// on, which alone store, find its result in `result`.
struct RowKernel : LineKernel {
  Numbers inner;  ///< Extents of one row.
  std::size_t row_begins = 0;
  int value = 0, result = 0;
  RowFunction function = RowFunction::softmax;
  float epsilon = 0;
  TeamShape team = TeamShape::warp;

  /// Lines from here on are behind the function, which is of the value.
  void begin_row(int of) {
    value = of;
    row_begins = code.all().size();
    result = code.given();
  }
  [[nodiscard]] std::span<const ElementLine> before() const { return code.all().first(row_begins); }
  [[nodiscard]] std::span<const ElementLine> behind() const { return code.all().subspan(row_begins); }
};

Numbers joined(Numbers outer, const Numbers& inner) {
  outer.insert(outer.end(), inner.begin(), inner.end());
  return outer;
}

/// The lines before the function that those behind it need once more.
std::vector<ElementLine> needed_again(const RowKernel& kernel) {
  std::set<int> needed;
  for (const ElementLine& line : kernel.behind()) needed.insert(line.reads.begin(), line.reads.end());
  const std::span<const ElementLine> before = kernel.before();
  std::vector<ElementLine> lines;
  for (std::size_t i = before.size(); i-- > 0;) {
    if (!needed.contains(before[i].value)) continue;
    needed.insert(before[i].reads.begin(), before[i].reads.end());
    lines.insert(lines.begin(), before[i]);
  }
  return lines;
}

/// The same where nothing reads the function of rows.
ElementKernel without_rows(const RowKernel& kernel) {
  ElementKernel made;
  made.element = kernel.element;
  made.extents = joined(kernel.extents, kernel.inner);
  made.code = kernel.code;
  for (const PlacedOperand& source : kernel.sources)
    made.sources.push_back({source.slot, joined(source.strides, source.along), {}});
  for (const PlacedOperand& target : kernel.targets)
    made.targets.push_back({target.slot, joined(target.strides, target.along), {}});
  return made;
}

/// Writes a kernel of rows. With x the value of an element and n a row's elements, `scale` is the sum of e^(x -
/// center), `center` the maximum, for softmax; else the root of the mean of (x - center)^2, plus epsilon, where
/// `center` is the mean, or there is none. A thread keeps its elements, number k in held[k], where they are few: x and
/// then, for softmax, the power.
class RowText {
 public:
  RowText(KernelWriter& writer, const RowKernel& kernel)
      : writer_(writer),
        kernel_(kernel),
        count_(elements_in(kernel.inner)),
        is_softmax_(kernel.function == RowFunction::softmax),
        has_center_(kernel.function != RowFunction::divide_by_root) {}

  void write() {
    begin();
    if (has_center_) write_center();
    write_scale();
    write_results();
  }

 private:
  /// Up to what a row's passes share.
  void begin() {
    for (const auto* operands : {&kernel_.sources, &kernel_.targets})
      for (const PlacedOperand& operand : *operands)
        writer_.span_over(joined(kernel_.extents, kernel_.inner), joined(operand.strides, operand.along));
    const std::vector<std::string> parameters = name_operands(writer_, kernel_);
    writer_.begin_team(elements_in(kernel_.extents), count_, kernel_.team, !kernel_.extents.empty());
    const auto coordinates = writer_.coordinates("r", "row", kernel_.extents);
    // Each operand from where its row begins.
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const bool is_source = i < kernel_.sources.size();
      const PlacedOperand& operand = is_source ? kernel_.sources[i] : kernel_.targets[i - kernel_.sources.size()];
      names_.push_back((is_source ? "p" : "q") + std::to_string(i));
      writer_.line(std::string(is_source ? "const " : "") + type_of(kernel_.element) + "* const " + names_.back() +
                   " = " + parameters[i] + " + (" + writer_.sum(coordinates, operand.strides) + ");");
    }
    per_thread_ = (count_ + writer_.team_step() - 1) / writer_.team_step();
    holds_ = per_thread_ <= most_held;
    if (holds_) writer_.line("float held[" + std::to_string(per_thread_) + "];");
  }

  void write_row_lines(std::span<const ElementLine> lines, const std::vector<std::string>& inner) {
    write_lines(writer_, lines, kernel_, names_,
                [&](const PlacedOperand& operand) { return writer_.sum(inner, operand.along); });
  }

  /// Goes over a thread's elements, number `i` of the row: what the value is called.
  std::string open_pass() {
    if (holds_) {
      writer_.line("#pragma unroll");
      writer_.open("for (int k = 0; k < " + std::to_string(per_thread_) + "; ++k)");
      writer_.line(std::string("const ") + writer_.index_type() + " i = begin + k * " +
                   std::to_string(writer_.team_step()) + ";");
      if (!is_held_) writer_.line("held[k] = 0.0f;");
      writer_.open("if (i < " + writer_.number(count_) + ")");
    } else {
      writer_.open_row(count_);
    }
    if (is_held_) return "held[k]";
    inner_ = writer_.coordinates("c", "i", kernel_.inner);
    write_row_lines(kernel_.before(), inner_);
    if (!holds_) return of_value(kernel_.value);
    writer_.line("held[k] = " + of_value(kernel_.value) + ";");
    is_held_ = true;
    return "held[k]";
  }
  void close_pass() {
    writer_.close();
    if (holds_) writer_.close();
  }

  void write_center() {
    writer_.line("float center = " + literal(is_softmax_ ? -std::numeric_limits<float>::infinity() : 0.0F) + ";");
    const std::string value = open_pass();
    writer_.line(is_softmax_ ? "center = fmaxf(center, " + value + ");" : "center += " + value + ";");
    close_pass();
    writer_.line("center = " +
                 (is_softmax_ ? writer_.team_maximum("center") : writer_.team_sum("center") + " / " + count_literal()) +
                 ";");
  }

  void write_scale() {
    writer_.line("float scale = 0.0f;");
    const std::string value = open_pass();
    if (is_softmax_ && holds_) {
      writer_.line("held[k] = " + power_of(value) + ";");
      writer_.line("scale += held[k];");
    } else if (is_softmax_) {
      writer_.line("scale += " + power_of(value) + ";");
    } else {
      writer_.line("const float distance = " + value + (has_center_ ? " - center" : "") + ";");
      writer_.line("scale += distance * distance;");
    }
    close_pass();
    const std::string sum = writer_.team_sum("scale");
    writer_.line(
        "scale = " +
        (is_softmax_ ? sum : "sqrtf(" + sum + " / " + count_literal() + " + " + literal(kernel_.epsilon) + ")") + ";");
  }

  void write_results() {
    const std::string value = open_pass();
    if (holds_) {
      inner_ = writer_.coordinates("c", "i", kernel_.inner);
      write_row_lines(needed_again(kernel_), inner_);
    }
    const std::string numerator = is_softmax_   ? (holds_ ? value : power_of(value))
                                  : has_center_ ? "(" + value + " - center)"
                                                : value;
    writer_.line("const float " + of_value(kernel_.result) + " = " + numerator + " / scale;");
    write_row_lines(kernel_.behind(), inner_);
    close_pass();
  }

  static std::string power_of(const std::string& value) { return "expf(" + value + " - center)"; }
  [[nodiscard]] std::string count_literal() const { return literal(static_cast<float>(count_)); }

  KernelWriter& writer_;
  const RowKernel& kernel_;
  std::int64_t count_ = 0, per_thread_ = 0;
  bool is_softmax_ = false, has_center_ = false;
  bool holds_ = false;              ///< Threads keep their elements,
  bool is_held_ = false;            ///< and have them.
  std::vector<std::string> names_;  ///< Of operands, from where the row begins.
  std::vector<std::string> inner_;  ///< Coordinates in the row.
};

void write_rows(SourceText& text, RowKernel kernel) {
  if (elements_in(kernel.extents) == 0 || elements_in(kernel.inner) == 0) return;
  const auto reads_result = [&](const ElementLine& line) {
    return std::find(line.reads.begin(), line.reads.end(), kernel.result) != line.reads.end();
  };
  kernel.code.prune({kernel.value}, kernel.row_begins);
  if (std::none_of(kernel.code.all().begin(), kernel.code.all().end(), reads_result)) {
    write_elements(text, without_rows(kernel));
    return;
  }
  kernel.keep_used_sources();
  KernelWriter writer = text.kernel();
  RowText(writer, kernel).write();
  text.take(writer);
}

/// Rows of a box of `extents`, each a box of `inner`; what else there is to say of them is for the caller.
template <class RowStep>
RowKernel row_kernel(const RowStep& step, Numbers extents, Numbers inner) {
  RowKernel kernel;
  kernel.element = step.element;
  kernel.extents = std::move(extents);
  kernel.inner = std::move(inner);
  kernel.team = step.team;
  return kernel;
}

/// Rows of one axis, from input 0 to output 0, with a function of what is read: a SoftmaxStep's or a RowNormStep's.
template <class RowStep>
RowKernel single_row_kernel(const RowStep& step) {
  RowKernel kernel = row_kernel(step, extents_of(step.rows), {step.count});
  kernel.sources = {{input(0), strides_of_walk(step.rows, 1), {step.x_stride}}};
  kernel.targets = {{output(0), strides_of_walk(step.rows, 0), {step.y_stride}}};
  kernel.begin_row(kernel.code.load(0));
  return kernel;
}

}  // namespace

void write_step(SourceText& text, const SoftmaxStep& step) {
  RowKernel kernel = single_row_kernel(step);
  kernel.code.store(0, kernel.result);
  write_rows(text, std::move(kernel));
}

void write_step(SourceText& text, const RowNormStep& step) {
  RowKernel kernel = single_row_kernel(step);
  kernel.function = step.centers ? RowFunction::normalize : RowFunction::divide_by_root;
  kernel.epsilon = step.epsilon;
  const Numbers still(kernel.extents.size(), 0);
  kernel.sources.push_back({input(1), still, {1}});
  int value = kernel.code.binary(Binary::mul, kernel.result, kernel.code.load(1));
  if (step.centers) {
    kernel.sources.push_back({input(2), still, {1}});
    value = kernel.code.binary(Binary::add, value, kernel.code.load(2));
  }
  kernel.code.store(0, value);
  write_rows(text, std::move(kernel));
}

void write_step(SourceText& text, const GroupNormStep& step) {
  const GroupNorm<float>& shape = step.shape;
  RowKernel kernel = row_kernel(step, extents_of(shape.groups), extents_of(shape.members));
  kernel.function = RowFunction::normalize;
  kernel.epsilon = shape.epsilon;
  const auto placed = [&](const Slot& slot, int function) {
    return PlacedOperand{slot, strides_of_walk(shape.groups, function), strides_of_walk(shape.members, function)};
  };
  kernel.sources = {placed(input(0), 1), placed(input(1), 2), placed(input(2), 2)};
  kernel.targets = {placed(output(0), 0)};
  ElementLines& code = kernel.code;
  kernel.begin_row(code.load(0));
  const int scaled = code.binary(Binary::mul, kernel.result, code.load(1));
  const int shifted = code.binary(Binary::add, scaled, code.load(2));
  code.store(0, code.unary(shape.act, shifted));
  write_rows(text, std::move(kernel));
}

void write_step(SourceText& text, const RowChainStep& step) {
  const RowChain<float>& shape = step.shape;
  RowKernel kernel = row_kernel(step, extents_of(shape.rows), {shape.count});
  kernel.function = shape.function;
  kernel.epsilon = shape.epsilon;
  kernel.place(step.operands, shape.code, shape.rows.rank);
  std::array<int, max_registers> place{};
  kernel.code.add(shape.code, 0, shape.before, place);
  kernel.begin_row(place[static_cast<std::size_t>(shape.value)]);
  place[static_cast<std::size_t>(shape.result)] = kernel.result;
  kernel.code.add(shape.code, shape.before, shape.code.count, place);
  write_rows(text, std::move(kernel));
}

}  // namespace taso::cuda
