// Stages of definitions: every operation of an element as it stands in the definition, in loops of its own.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "runtime/cuda/source_steps.h"
#include "runtime/stage_rows.h"
#include "support/status.h"

namespace taso::cuda {
namespace {

using Kind = LoweredNode::Kind;
using Reduction = LoweredNode::Reduction;

class DefinitionWriter {
 public:
  DefinitionWriter(KernelWriter& writer, const DefinitionStep& step) : writer_(writer), step_(step) {}

  void write() {
    span_over_forms();
    name_operands();
    const auto rows = std::span(leader().outer).first(step_.prefix);
    std::vector<std::int64_t> extents;
    for (const std::uint32_t loop : rows) extents.push_back(leader().extents[loop]);
    if (step_.team)
      writer_.begin_team(step_.rows, 0, *step_.team, step_.prefix > 0, exchanges());
    else
      writer_.begin_each(step_.rows);
    if (step_.prefix > 0) rows_ = writer_.coordinates("r", step_.team ? "row" : "i", extents);
    keep_rows();
    for (std::size_t stage = step_.first; stage < step_.end; ++stage) write_stage(step_.body->stages[stage], stage);
  }

 private:
  [[nodiscard]] const LoweredStage& leader() const { return step_.body->stages[step_.first]; }

  /// Whether threads of a team compute an element together.
  [[nodiscard]] bool exchanges() const {
    for (std::size_t stage = step_.first; stage < step_.end; ++stage) {
      const LoweredStage& of = step_.body->stages[stage];
      std::int64_t inner = 1;
      for (std::size_t i = step_.prefix; i < of.outer.size(); ++i) inner *= of.extents[of.outer[i]];
      for (const LoweredNode& node : of.nodes)
        if (inner == 1 && node.kind == Kind::reduce && node.reduction != Reduction::product && !node.loops.empty())
          return true;
    }
    return false;
  }

  void span_over_forms() {
    for (std::size_t stage = step_.first; stage < step_.end; ++stage) {
      const LoweredStage& of = step_.body->stages[stage];
      for (const Affine& form : of.forms) {
        std::vector<std::int64_t> extents, strides;
        for (const auto& [variable, coefficient] : form.terms) {
          extents.push_back(of.extents[variable]);
          strides.push_back(coefficient);
        }
        writer_.span_over(extents, strides, std::abs(form.base));
      }
      for (const LoweredNode& node : of.nodes) {
        std::int64_t volume = 1;
        for (const std::uint32_t loop : node.loops) volume *= of.extents[loop];
        writer_.span_over(std::array{volume}, std::array{std::int64_t{1}});
      }
    }
    writer_.span_over(std::array{step_.rows}, std::array{std::int64_t{1}});
  }

  void name_operands() {
    names_.resize(step_.buffers.size());
    for (std::size_t buffer = 0; buffer < names_.size(); ++buffer) {
      const Slot& slot = step_.buffers[buffer];
      switch (slot.place) {
        case Slot::Place::none:
          break;
        case Slot::Place::input:
          names_[buffer] = writer_.reads(slot, type_of(step_.element));
          break;
        case Slot::Place::output:
          names_[buffer] = writer_.writes(slot, type_of(step_.element));
          break;
        case Slot::Place::workspace:
          names_[buffer] = writer_.writes(slot, "float");
          break;
      }
    }
  }

  /// Registers and shared memory for what is kept of a row.
  void keep_rows() {
    for (std::size_t buffer = 0; buffer < names_.size(); ++buffer) {
      const std::int64_t row = step_.kept[buffer];
      if (row == 0) continue;
      names_[buffer] = "k" + std::to_string(buffer);
      if (row == 1) {
        writer_.line("float " + names_[buffer] + ";");
        continue;
      }
      const bool warps = step_.team == TeamShape::warp;
      writer_.line("__shared__ float all_" + names_[buffer] + "[" + std::to_string(row * (warps ? 8 : 1)) + "];");
      writer_.line("float* const " + names_[buffer] + " = all_" + names_[buffer] +
                   (warps ? " + threadIdx.x / 32 * " + std::to_string(row) : "") + ";");
    }
  }

  void write_stage(const LoweredStage& stage, std::size_t number) {
    stage_ = &stage;
    variables_.assign(stage.extents.size(), "");
    for (std::size_t i = 0; i < step_.prefix; ++i) variables_[stage.outer[i]] = rows_[i];
    const auto inner = std::span(stage.outer).subspan(step_.prefix);
    std::vector<std::int64_t> extents;
    std::int64_t count = 1;
    for (const std::uint32_t loop : inner) {
      extents.push_back(stage.extents[loop]);
      count *= extents.back();
    }
    if (count > 1)
      writer_.open_row(count);
    else
      writer_.open("");
    together_ = step_.team && count == 1;
    if (count > 1) {
      const std::vector<std::string> names = writer_.coordinates("c", "i", extents);
      for (std::size_t i = 0; i < inner.size(); ++i) variables_[inner[i]] = names[i];
    }
    const std::string value = emit(stage.root);
    const std::int64_t kept = step_.kept[stage.buffer];
    const bool is_typed = step_.buffers[stage.buffer].place == Slot::Place::output;
    if (kept == 1)
      writer_.line(names_[stage.buffer] + " = " + value + ";");
    else
      writer_.line((together_ ? "if (" + writer_.leads() + ") " : "") + names_[stage.buffer] + "[" +
                   place(stage.write, kept != 0) + "] = " + (is_typed ? narrowed(step_.element, value) : value) + ";");
    writer_.close();
    if (step_.team && kept != 1 && is_read_after(number))
      writer_.line(step_.team == TeamShape::warp ? "__syncwarp();" : "__syncthreads();");
  }

  [[nodiscard]] bool is_read_after(std::size_t stage) const {
    for (std::size_t after = stage + 1; after < step_.end; ++after)
      for (const LoweredAccess& access : step_.body->stages[after].accesses)
        if (access.buffer == step_.body->stages[stage].buffer) return true;
    return false;
  }

  // ---- Indices.

  /// A form as an index; `in_row`: from where the row begins.
  [[nodiscard]] std::string place(std::uint32_t form, bool in_row = false) const {
    const Affine& of = stage_->forms[form];
    std::string text;
    const auto rows = std::span(stage_->outer).first(step_.prefix);
    for (const auto& [variable, coefficient] : of.terms) {
      if (in_row && std::find(rows.begin(), rows.end(), variable) != rows.end()) continue;
      if (!text.empty()) text += " + ";
      text += variables_[variable];
      if (coefficient != 1) text += " * " + writer_.number(coefficient);
    }
    if (text.empty()) return writer_.number(of.base);
    return of.base == 0 ? text : text + " + " + writer_.number(of.base);
  }

  /// That an access lies inside; empty where it cannot lie elsewhere.
  [[nodiscard]] std::string inside(const LoweredAccess& access) const {
    std::string text;
    for (const LoweredAccess::Guard& guard : access.guards) {
      const std::string index = place(guard.form);
      text += (text.empty() ? "" : " && ") + index + " >= 0 && " + index + " < " + writer_.number(guard.extent);
    }
    return text;
  }

  [[nodiscard]] std::string element(const LoweredAccess& access) const {
    const std::int64_t kept = step_.kept[access.buffer];
    if (kept == 1) return names_[access.buffer];
    const std::string text = names_[access.buffer] + "[" + place(access.offset, kept != 0) + "]";
    const Slot::Place where = step_.buffers[access.buffer].place;
    const bool is_typed = where == Slot::Place::input || where == Slot::Place::output;
    return is_typed ? widened(step_.element, text) : text;
  }

  // ---- Values. Each is a name or a number; what it takes is written before it.

  std::string named(const std::string& value) {
    std::string name = "v" + std::to_string(values_++);
    writer_.line("const float " + name + " = " + value + ";");
    return name;
  }

  std::string emit(std::uint32_t id) {
    const LoweredNode& node = stage_->nodes[id];
    const auto operand = [&](std::size_t i) { return emit(node.operands[i]); };
    const auto infix = [&](const char* operation) {
      const std::string a = operand(0), b = operand(1);
      return named(a + operation + b);
    };
    switch (node.kind) {
      case Kind::number:
        return literal(static_cast<float>(node.number));
      case Kind::infinity:
        return literal(node.number < 0 ? -std::numeric_limits<float>::infinity()
                                       : std::numeric_limits<float>::infinity());
      case Kind::read: {
        const LoweredAccess& access = stage_->accesses[node.access];
        const std::string condition = inside(access);
        if (condition.empty()) return named(element(access));
        const std::string other = operand(0);
        return named(condition + " ? " + element(access) + " : " + other);
      }
      case Kind::valid: {
        const std::string condition = inside(stage_->accesses[node.access]);
        return condition.empty() ? literal(1) : named(condition + " ? 1.0f : 0.0f");
      }
      case Kind::slot:
        return "s" + std::to_string(node.slot);
      case Kind::bind: {
        const std::string value = operand(0);
        writer_.line("const float s" + std::to_string(node.slot) + " = " + value + ";");
        return operand(1);
      }
      case Kind::add:
        return infix(" + ");
      case Kind::subtract:
        return infix(" - ");
      case Kind::multiply:
        return infix(" * ");
      case Kind::divide:
        return infix(" / ");
      case Kind::negate:
        return named("-" + operand(0));
      case Kind::maximum:
      case Kind::minimum: {
        std::string best = operand(0);
        for (std::size_t i = 1; i < node.operands.size(); ++i) {
          const std::string other = operand(i);
          best = named(std::string(node.kind == Kind::maximum ? "larger_or_nan(" : "smaller_or_nan(") + best + ", " +
                       other + ")");
        }
        return best;
      }
      case Kind::call: {
        const std::string x = operand(0);
        if (node.operands.size() == 1) return named(text_of(*function_named(node.function->name), x));
        const std::string y = operand(1);
        if (node.function->name == "remainder_by") return named(text_of(Binary::remainder, y, x));
        return named(text_of(*binary_named(node.function->name), x, y));
      }
      case Kind::conditional: {
        const std::string a = operand(1), b = operand(2);
        return named(condition(node.operands[0]) + " ? " + a + " : " + b);
      }
      case Kind::reduce:
        return reduce(node);
      case Kind::test:
      case Kind::all_of:
      case Kind::any_of:
      case Kind::none_of:
        break;
    }
    TASO_CHECK(false, "a condition where a value is needed");
    return "";
  }

  [[nodiscard]] std::string condition(std::uint32_t id) const {
    const LoweredNode& node = stage_->nodes[id];
    if (node.kind == Kind::test) {
      constexpr const char* comparisons[] = {" == 0", " != 0", " < 0", " <= 0"};
      return "(" + place(node.access) + ")" + comparisons[static_cast<std::size_t>(node.comparison)];
    }
    std::string text;
    for (const std::uint32_t operand : node.operands)
      text += (text.empty() ? "(" : node.kind == Kind::all_of ? ") && (" : ") || (") + condition(operand);
    if (text.empty()) return node.kind == Kind::any_of ? "false" : "true";
    return node.kind == Kind::none_of ? "!(" + text + "))" : "(" + text + "))";
  }

  /// A reduction; by all threads of a team, where they compute one element together.
  std::string reduce(const LoweredNode& node) {
    const bool maximum = node.reduction == Reduction::maximum, minimum = node.reduction == Reduction::minimum;
    const bool shared = together_ && node.reduction != Reduction::product && !node.loops.empty();
    const float infinity = std::numeric_limits<float>::infinity();
    const float neutral = maximum ? -infinity : minimum ? infinity : node.reduction == Reduction::product ? 1.0F : 0.0F;
    const std::string number = std::to_string(values_++), total = "v" + number;
    writer_.line("float " + total + " = " + literal(neutral) + ";");
    std::vector<std::int64_t> extents;
    std::int64_t volume = 1;
    for (const std::uint32_t loop : node.loops) {
      extents.push_back(stage_->extents[loop]);
      volume *= extents.back();
    }
    const bool before = together_;
    together_ = false;
    if (shared) {
      writer_.open_row(volume);
      const std::vector<std::string> names = writer_.coordinates("l" + number + "_", "i", extents);
      for (std::size_t i = 0; i < node.loops.size(); ++i) variables_[node.loops[i]] = names[i];
    } else {
      for (const std::uint32_t loop : node.loops) {
        const std::string name = "l" + number + "_" + std::to_string(loop);
        variables_[loop] = name;
        writer_.open(std::string("for (") + writer_.index_type() + " " + name + " = 0; " + name + " < " +
                     writer_.number(stage_->extents[loop]) + "; ++" + name + ")");
      }
    }
    const LoweredNode& body = stage_->nodes[node.operands[0]];
    std::string value, left_out;
    if (node.leave_out && body.kind == Kind::read) {
      left_out = inside(stage_->accesses[body.access]);
      value = element(stage_->accesses[body.access]);
    } else {
      value = emit(node.operands[0]);
    }
    const std::string combined = maximum                                ? "fmaxf(" + total + ", " + value + ")"
                                 : minimum                              ? "fminf(" + total + ", " + value + ")"
                                 : node.reduction == Reduction::product ? total + " * " + value
                                                                        : total + " + " + value;
    writer_.line((left_out.empty() ? "" : "if (" + left_out + ") ") + total + " = " + combined + ";");
    for (std::size_t i = 0; i < (shared ? 1 : node.loops.size()); ++i) writer_.close();
    together_ = before;
    if (shared)
      writer_.line(total + " = " +
                   (maximum   ? writer_.team_maximum(total)
                    : minimum ? "-" + writer_.team_maximum("-" + total)
                              : writer_.team_sum(total)) +
                   ";");
    return total;
  }

  KernelWriter& writer_;
  const DefinitionStep& step_;
  std::vector<std::string> names_;  ///< Per buffer.
  std::vector<std::string> rows_;   ///< Per own loop that is rows: the index.
  const LoweredStage* stage_ = nullptr;
  std::vector<std::string> variables_;  ///< Per loop variable of the stage: the index.
  bool together_ = false;               ///< All threads of a team compute one element.
  int values_ = 0;
};

}  // namespace

void write_step(SourceText& text, const DefinitionStep& step) {
  KernelWriter writer = text.kernel();
  DefinitionWriter(writer, step).write();
  text.take(writer);
}

}  // namespace taso::cuda
