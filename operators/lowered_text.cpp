#include "operators/lowered_text.h"

#include <fmt/format.h>

namespace taso {
namespace {

/// Loop variables are a, b, ..., z, a1, b1, ...
std::string variable_name(std::uint32_t variable) {
  std::string name(1, static_cast<char>('a' + variable % 26));
  return variable < 26 ? name : name + std::to_string(variable / 26);
}

/// How tightly an operation binds.
enum class Binding : std::uint8_t { choice, sum, product, atom };

struct Piece {
  std::string text;
  Binding binding = Binding::atom;
};

class Printer {
 public:
  Printer(const LoweredStage& stage, std::span<const std::string> buffers) : stage_(stage), buffers_(buffers) {}

  [[nodiscard]] std::string value() const { return node(stage_.root).text; }

  [[nodiscard]] std::string form(std::uint32_t id) const {
    const Affine& form = stage_.forms[id];
    std::string text;
    for (const auto& [variable, coefficient] : form.terms) {
      const std::int64_t size = coefficient < 0 ? -coefficient : coefficient;
      text += text.empty() ? (coefficient < 0 ? "-" : "") : coefficient < 0 ? " - " : " + ";
      text += (size == 1 ? "" : std::to_string(size) + "*") + variable_name(variable);
    }
    if (text.empty()) return std::to_string(form.base);
    if (form.base != 0)
      text += fmt::format(" {} {}", form.base < 0 ? "-" : "+", form.base < 0 ? -form.base : form.base);
    return text;
  }

  template <class Variables>
  [[nodiscard]] std::string loops(const Variables& variables) const {
    std::string text;
    for (const std::uint32_t variable : variables)
      text += fmt::format("{}{} < {}", text.empty() ? "" : ", ", variable_name(variable), stage_.extents[variable]);
    return text;
  }

 private:
  using Kind = LoweredNode::Kind;

  [[nodiscard]] std::string within(std::uint32_t id, Binding binding) const {
    Piece piece = node(id);
    return piece.binding < binding ? "(" + piece.text + ")" : std::move(piece.text);
  }
  [[nodiscard]] Piece infix(const LoweredNode& node, const char* sign, Binding binding) const {
    // The second operand of - and / binds more tightly than the first.
    const bool is_inverse = node.kind == Kind::subtract || node.kind == Kind::divide;
    const auto tighter = is_inverse ? static_cast<Binding>(static_cast<int>(binding) + 1) : binding;
    return {within(node.operands[0], binding) + sign + within(node.operands[1], tighter), binding};
  }
  [[nodiscard]] std::string listed(const LoweredNode& node, const char* between) const {
    std::string text;
    for (const std::uint32_t operand : node.operands) text += (text.empty() ? "" : between) + this->node(operand).text;
    return text;
  }
  [[nodiscard]] std::string coordinate(const LoweredAccess::Indirect& index) const {
    const std::string read = fmt::format("{}[{}]", buffers_[index.buffer], form(index.form));
    return index.offset == 0 ? read : fmt::format("({} - {})", read, index.offset);
  }
  [[nodiscard]] std::string element(const LoweredAccess& access) const {
    std::string place = form(access.offset);
    for (const LoweredAccess::Indirect& index : access.indirect)
      place += fmt::format(" + {}{}", index.stride == 1 ? "" : fmt::format("{}*", index.stride), coordinate(index));
    return fmt::format("{}[{}]", buffers_[access.buffer], place);
  }
  [[nodiscard]] std::string inside(const LoweredAccess& access) const {
    std::string text;
    const auto add = [&](const std::string& one, std::int64_t extent) {
      text += fmt::format("{}0 <= {} < {}", text.empty() ? "" : " && ", one, extent);
    };
    for (const LoweredAccess::Guard& guard : access.guards) add(form(guard.form), guard.extent);
    for (const LoweredAccess::Indirect& index : access.indirect)
      if (index.may_leave()) add(coordinate(index), index.size);
    return text.empty() ? "true" : text;
  }
  [[nodiscard]] Piece read(const LoweredNode& node) const {
    const LoweredAccess& access = stage_.accesses[node.access];
    if (!access.may_leave()) return {element(access), Binding::atom};
    const std::string otherwise = node.operands.empty() ? "0" : this->node(node.operands[0]).text;
    return {fmt::format("{} ? {} : {}", inside(access), element(access), otherwise), Binding::choice};
  }
  /// A read of a set from which elements outside the tensor are left out.
  [[nodiscard]] std::string left_out(std::uint32_t id) const {
    const LoweredNode& operand = stage_.nodes[id];
    if (operand.kind != Kind::read || !stage_.accesses[operand.access].may_leave()) return node(id).text;
    const LoweredAccess& access = stage_.accesses[operand.access];
    return fmt::format("{} where {}", element(access), inside(access));
  }
  [[nodiscard]] std::string extremum(const LoweredNode& node) const {
    std::string text;
    for (const std::uint32_t operand : node.operands)
      text += (text.empty() ? "" : ", ") + (node.leave_out ? left_out(operand) : this->node(operand).text);
    return text;
  }
  [[nodiscard]] Piece reduction(const LoweredNode& node) const {
    constexpr const char* names[] = {"sum", "product", "max", "min"};
    return {fmt::format("{}({}: {})", names[static_cast<std::size_t>(node.reduction)], loops(node.loops),
                        node.leave_out ? left_out(node.operands[0]) : this->node(node.operands[0]).text),
            Binding::atom};
  }
  [[nodiscard]] Piece test(const LoweredNode& node) const {
    constexpr const char* signs[] = {"==", "!=", "<", "<="};
    return {fmt::format("{} {} 0", form(node.access), signs[static_cast<std::size_t>(node.comparison)]), Binding::sum};
  }

  [[nodiscard]] Piece node(std::uint32_t id) const {
    const LoweredNode& node = stage_.nodes[id];
    const auto called = [&](std::string_view name) {
      return Piece{fmt::format("{}({})", name, listed(node, ", ")), Binding::atom};
    };
    switch (node.kind) {
      case Kind::number:
        return {fmt::format("{}", node.number), node.number < 0 ? Binding::sum : Binding::atom};
      case Kind::read:
        return read(node);
      case Kind::valid:
        return {fmt::format("{} ? 1 : 0", inside(stage_.accesses[node.access])), Binding::choice};
      case Kind::slot:
        return {"s" + std::to_string(node.slot), Binding::atom};
      case Kind::bind:
        return {fmt::format("let s{} = {} in {}", node.slot, this->node(node.operands[0]).text,
                            this->node(node.operands[1]).text),
                Binding::choice};
      case Kind::add:
        return infix(node, " + ", Binding::sum);
      case Kind::subtract:
        return infix(node, " - ", Binding::sum);
      case Kind::multiply:
        return infix(node, " * ", Binding::product);
      case Kind::divide:
        return infix(node, " / ", Binding::product);
      case Kind::negate:
        return {"-" + within(node.operands[0], Binding::product), Binding::sum};
      case Kind::call:
        return called(node.function->name);
      case Kind::maximum:
        return {"max(" + extremum(node) + ")", Binding::atom};
      case Kind::minimum:
        return {"min(" + extremum(node) + ")", Binding::atom};
      case Kind::infinity:
        return {node.number < 0 ? "-inf" : "inf", Binding::atom};
      case Kind::conditional:
        return {fmt::format("{} ? {} : {}", within(node.operands[0], Binding::sum),
                            within(node.operands[1], Binding::sum), this->node(node.operands[2]).text),
                Binding::choice};
      case Kind::test:
        return test(node);
      case Kind::all_of:
        return called("all");
      case Kind::any_of:
        return called("any");
      case Kind::none_of:
        return called("none");
      case Kind::reduce:
        return reduction(node);
    }
    return {};
  }

  const LoweredStage& stage_;
  std::span<const std::string> buffers_;
};

}  // namespace

std::string to_text(const LoweredStage& stage, std::span<const std::string> buffers, const std::string& indent) {
  const Printer printer(stage, buffers);
  std::string text;
  std::string inner = indent;
  if (const std::string loops = printer.loops(stage.outer); !loops.empty()) {
    text += fmt::format("{}for {}:\n", indent, loops);
    inner += "  ";
  }
  return text +
         fmt::format("{}{}[{}] = {}\n", inner, buffers[stage.buffer], printer.form(stage.write), printer.value());
}

std::string value_text(const LoweredStage& stage, std::span<const std::string> buffers) {
  return Printer(stage, buffers).value();
}

std::vector<std::string> buffer_names(const LoweredBody& body) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < body.inputs; ++i) names.push_back("x" + std::to_string(i));
  for (std::size_t i = 0; i < body.intermediates.size(); ++i) names.push_back("t" + std::to_string(i));
  for (std::size_t i = 0; i < body.outputs.size(); ++i) names.push_back("y" + std::to_string(i));
  return names;
}

}  // namespace taso
