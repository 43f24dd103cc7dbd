#include "runtime/cuda/element_lines.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace taso::cuda {

std::string of_value(int value) { return "v" + std::to_string(value); }

int ElementLines::add(ElementLine line) {
  lines_.push_back(std::move(line));
  return made_++;
}

int ElementLines::load(std::size_t source) { return add({ElementLine::Kind::load, made_, source, "", {}}); }

int ElementLines::compute(std::string text, std::vector<int> reads) {
  return add({ElementLine::Kind::compute, made_, 0, std::move(text), std::move(reads)});
}

int ElementLines::unary(Function function, int x, float p, float q) {
  return compute(text_of(function, of_value(x), p, q), {x});
}

int ElementLines::binary(Binary function, int x, int y) {
  return compute(text_of(function, of_value(x), of_value(y)), {x, y});
}

void ElementLines::store(std::size_t target, int value) {
  lines_.push_back({ElementLine::Kind::store, value, target, "", {value}});
}

void ElementLines::add(const ElementCode& code, int first, int last, std::array<int, max_registers>& place) {
  for (int i = first; i < last; ++i) {
    const Instruction& one = code.instructions[i];
    switch (one.kind) {
      case Instruction::Kind::load:
        place[one.to] = load(one.a);
        break;
      case Instruction::Kind::store:
        store(one.to, place[one.a]);
        break;
      case Instruction::Kind::unary:
        place[one.to] = unary(static_cast<Function>(one.function), place[one.a], one.p, one.q);
        break;
      case Instruction::Kind::binary:
        place[one.to] = binary(static_cast<Binary>(one.function), place[one.a], place[one.b]);
        break;
    }
  }
}

void ElementLines::prune(std::set<int> read, std::size_t& keeps) {
  std::vector<ElementLine> kept;
  const std::size_t begin = keeps;
  for (std::size_t i = lines_.size(); i-- > 0;) {
    const bool is_kept = lines_[i].kind == ElementLine::Kind::store || read.contains(lines_[i].value);
    if (is_kept) {
      read.insert(lines_[i].reads.begin(), lines_[i].reads.end());
      kept.insert(kept.begin(), std::move(lines_[i]));
    } else if (i < begin) {
      --keeps;
    }
  }
  lines_ = std::move(kept);
}

std::vector<std::size_t> ElementLines::renumber_sources() {
  std::vector<std::size_t> used;
  for (ElementLine& line : lines_) {
    if (line.kind != ElementLine::Kind::load) continue;
    const auto known = std::find(used.begin(), used.end(), line.operand);
    const auto number = static_cast<std::size_t>(known - used.begin());
    if (known == used.end()) used.push_back(line.operand);
    line.operand = number;
  }
  return used;
}

void LineKernel::place(const ChainOperands& operands, const ElementCode& strides, int rank) {
  const auto placed = [&](const Slot& slot, std::size_t operand) {
    return PlacedOperand{slot, {strides.strides[operand], strides.strides[operand] + rank}, {strides.along[operand]}};
  };
  for (std::size_t i = 0; i < operands.sources.size(); ++i) sources.push_back(placed(operands.sources[i], i));
  for (std::size_t i = 0; i < operands.targets.size(); ++i)
    targets.push_back(placed(operands.targets[i], max_sources + i));
}

void LineKernel::keep_used_sources() {
  std::vector<PlacedOperand> used;
  for (const std::size_t source : code.renumber_sources()) used.push_back(sources[source]);
  sources = std::move(used);
}

std::vector<std::string> name_operands(KernelWriter& writer, const LineKernel& kernel, bool packed) {
  std::vector<std::string> names;
  const auto alignment = [&](const PlacedOperand& operand) -> std::size_t {
    return packed && operand.strides.back() != 0 ? 16 : 1;
  };
  for (const PlacedOperand& source : kernel.sources)
    names.push_back(writer.reads(source.slot, type_of(kernel.element), alignment(source)));
  for (const PlacedOperand& target : kernel.targets)
    names.push_back(writer.writes(target.slot, type_of(kernel.element), alignment(target)));
  return names;
}

void write_lines(KernelWriter& writer, std::span<const ElementLine> lines,
                 const std::function<std::string(std::size_t)>& loaded,
                 const std::function<std::string(std::size_t, const std::string&)>& storing) {
  for (const ElementLine& line : lines) {
    const std::string value = of_value(line.value);
    switch (line.kind) {
      case ElementLine::Kind::load:
        writer.line("const float " + value + " = " + loaded(line.operand) + ";");
        break;
      case ElementLine::Kind::compute:
        writer.line("const float " + value + " = " + line.text + ";");
        break;
      case ElementLine::Kind::store:
        writer.line(storing(line.operand, value) + ";");
        break;
    }
  }
}

void write_lines(KernelWriter& writer, std::span<const ElementLine> lines, const LineKernel& kernel,
                 const std::vector<std::string>& names, const std::function<std::string(const PlacedOperand&)>& at) {
  const auto element = [&](std::size_t operand, const PlacedOperand& placed) {
    return names[operand] + "[" + at(placed) + "]";
  };
  write_lines(
      writer, lines,
      [&](std::size_t source) { return widened(kernel.element, element(source, kernel.sources[source])); },
      [&](std::size_t target, const std::string& value) {
        return element(kernel.sources.size() + target, kernel.targets[target]) + " = " +
               narrowed(kernel.element, value);
      });
}

std::int64_t elements_in(std::span<const std::int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace taso::cuda
