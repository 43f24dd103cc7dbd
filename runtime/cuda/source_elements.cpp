// The same for every element: by one thread each and, where neighbours lie together, by one thread for each 16 bytes.
#include <algorithm>
#include <array>
#include <utility>

#include "runtime/cuda/source_steps.h"

namespace taso::cuda {
namespace {

template <int K>
ElementKernel element_kernel(ElementType element, const Walk<K>& walk) {
  ElementKernel kernel;
  kernel.element = element;
  kernel.extents = extents_of(walk);
  return kernel;
}

/// An operand that lies as a function of a walk says.
template <int K>
PlacedOperand placed_by(const Slot& slot, const Walk<K>& walk, int function) {
  return {slot, strides_of_walk(walk, function), {}};
}

/// Whether neighbours along the innermost axis are read and written 16 bytes at a time: all that varies along it lies
/// together, and begins at multiples of that. A single axis may end in the middle.
bool has_packs(const ElementKernel& kernel) {
  if (kernel.extents.empty()) return false;
  const std::size_t last = kernel.extents.size() - 1;
  const std::int64_t pack = pack_of(kernel.element);
  if (kernel.extents[last] < pack || (last > 0 && kernel.extents[last] % pack != 0)) return false;
  const auto fits = [&](const PlacedOperand& operand, bool may_stay) {
    if (operand.strides[last] == 0 && may_stay) return true;
    const bool whole = std::all_of(operand.strides.begin(), operand.strides.end() - 1,
                                   [&](std::int64_t stride) { return stride % pack == 0; });
    return operand.strides[last] == 1 && whole;
  };
  return std::all_of(kernel.sources.begin(), kernel.sources.end(), [&](const auto& x) { return fits(x, true); }) &&
         std::all_of(kernel.targets.begin(), kernel.targets.end(), [&](const auto& y) { return fits(y, false); });
}

/// Tells of the indices of all operands.
void span_over_elements(KernelWriter& writer, const ElementKernel& kernel) {
  for (const auto* operands : {&kernel.sources, &kernel.targets})
    for (const PlacedOperand& operand : *operands) writer.span_over(kernel.extents, operand.strides);
}

/// All lines for the element at the coordinates.
void write_element(KernelWriter& writer, const ElementKernel& kernel, const std::vector<std::string>& names,
                   const std::vector<std::string>& coordinates) {
  write_lines(writer, kernel.code.all(), kernel, names,
              [&](const PlacedOperand& operand) { return writer.sum(coordinates, operand.strides); });
}

void write_each(KernelWriter& writer, const ElementKernel& kernel) {
  span_over_elements(writer, kernel);
  const std::vector<std::string> names = name_operands(writer, kernel);
  writer.begin_each(elements_in(kernel.extents));
  write_element(writer, kernel, names, writer.coordinates("c", "i", kernel.extents));
}

/// Source s is loaded into the array a0, a1, ..., or into one float where it stays the same along the innermost axis;
/// target t is stored from the array b0, b1, ...
void write_packs(KernelWriter& writer, const ElementKernel& kernel) {
  const std::int64_t pack = pack_of(kernel.element), count = elements_in(kernel.extents);
  const std::size_t last = kernel.extents.size() - 1;
  const std::string size = std::to_string(pack);
  span_over_elements(writer, kernel);
  const std::vector<std::string> names = name_operands(writer, kernel, true);
  writer.begin_each((count + pack - 1) / pack);
  std::vector<std::int64_t> extents = kernel.extents;
  extents[last] = (extents[last] + pack - 1) / pack;
  const auto coordinates = writer.coordinates("c", "i", extents);
  const auto at = [&](const PlacedOperand& operand) {
    std::vector<std::int64_t> strides = operand.strides;
    strides[last] *= pack;
    return writer.sum(coordinates, strides);
  };
  const bool has_rest = kernel.extents[last] % pack != 0;  // of the only axis
  if (has_rest) {
    writer.open("if (i == " + writer.number(count / pack) + ")");
    writer.open(std::string("for (") + writer.index_type() + " e = i * " + size + "; e < " + writer.number(count) +
                "; ++e)");
    write_element(writer, kernel, names, {"e"});
    writer.close();
    writer.line("return;");
    writer.close();
  }
  std::vector<std::string> loaded;
  for (std::size_t s = 0; s < kernel.sources.size(); ++s) {
    const PlacedOperand& source = kernel.sources[s];
    const std::string name = "a" + std::to_string(s);
    if (source.strides[last] == 0) {
      writer.line("const float " + name + " = " + widened(kernel.element, names[s] + "[" + at(source) + "]") + ";");
      loaded.push_back(name);
    } else {
      writer.line("float " + name + "[" + size + "];");
      writer.line(loading_pack(kernel.element, names[s] + " + (" + at(source) + ")", name));
      loaded.push_back(name + "[k]");
    }
  }
  const auto stored = [](std::size_t target) { return "b" + std::to_string(target); };
  for (std::size_t t = 0; t < kernel.targets.size(); ++t) writer.line("float " + stored(t) + "[" + size + "];");
  writer.line("#pragma unroll");
  writer.open("for (int k = 0; k < " + size + "; ++k)");
  write_lines(
      writer, kernel.code.all(), [&](std::size_t source) { return loaded[source]; },
      [&](std::size_t target, const std::string& value) { return stored(target) + "[k] = " + value; });
  writer.close();
  for (std::size_t t = 0; t < kernel.targets.size(); ++t)
    writer.line(storing_pack(kernel.element, names[kernel.sources.size() + t] + " + (" + at(kernel.targets[t]) + ")",
                             stored(t)));
}

}  // namespace

void write_elements(SourceText& text, ElementKernel kernel) {
  if (elements_in(kernel.extents) == 0) return;
  std::size_t none = 0;
  kernel.code.prune({}, none);
  kernel.keep_used_sources();
  if (has_packs(kernel)) {
    KernelWriter writer = text.kernel(true);
    write_packs(writer, kernel);
    text.take(writer);
  }
  KernelWriter writer = text.kernel();
  write_each(writer, kernel);
  text.take(writer);
}

void write_step(SourceText& text, const UnaryStep& step) {
  ElementKernel kernel = element_kernel(step.element, step.walk);
  kernel.sources = {placed_by(step.x, step.walk, 1)};
  kernel.targets = {placed_by(step.y, step.walk, 0)};
  kernel.code.store(0, kernel.code.unary(step.function, kernel.code.load(0), step.p, step.q));
  write_elements(text, std::move(kernel));
}

void write_step(SourceText& text, const BinaryStep& step) {
  ElementKernel kernel = element_kernel(step.element, step.walk);
  kernel.sources = {placed_by(step.a, step.walk, 1), placed_by(step.b, step.walk, 2)};
  kernel.targets = {placed_by(step.y, step.walk, 0)};
  const int a = kernel.code.load(0), b = kernel.code.load(1);
  kernel.code.store(0, kernel.code.binary(step.function, a, b));
  write_elements(text, std::move(kernel));
}

void write_step(SourceText& text, const EpilogueStep& step) {
  ElementKernel kernel = element_kernel(step.element, step.walk);
  kernel.sources = {placed_by(step.y, step.walk, 0)};
  kernel.targets = kernel.sources;
  int value = kernel.code.load(0);
  const auto plus = [&](const Slot& slot, int function) {
    if (slot.place == Slot::Place::none) return;
    kernel.sources.push_back(placed_by(slot, step.walk, function));
    value = kernel.code.binary(Binary::add, value, kernel.code.load(kernel.sources.size() - 1));
  };
  plus(step.bias, 1);
  plus(step.residual, 2);
  kernel.code.store(0, kernel.code.unary(step.function, value));
  write_elements(text, std::move(kernel));
}

void write_step(SourceText& text, const BatchNormStep& step) {
  ElementKernel kernel = element_kernel(step.element, step.walk);
  kernel.sources = {placed_by(input(0), step.walk, 1)};
  for (std::size_t i = 1; i < 5; ++i) kernel.sources.push_back(placed_by(input(i), step.walk, 2));
  kernel.targets = {placed_by(output(0), step.walk, 0)};
  ElementLines& code = kernel.code;
  const int x = code.load(0), scale = code.load(1), bias = code.load(2), mean = code.load(3), variance = code.load(4);
  const int factor = code.compute(
      of_value(scale) + " / sqrtf(" + of_value(variance) + " + " + literal(step.epsilon) + ")", {scale, variance});
  const int distance = code.binary(Binary::sub, x, mean);
  code.store(0, code.compute(of_value(distance) + " * " + of_value(factor) + " + " + of_value(bias),
                             {distance, factor, bias}));
  write_elements(text, std::move(kernel));
}

void write_step(SourceText& text, const ChainStep& step) {
  ElementKernel kernel;
  kernel.element = step.element;
  kernel.extents = extents_of(step.box);
  kernel.place(step.operands, step.code, step.box.rank);
  std::array<int, max_registers> place{};
  kernel.code.add(step.code, 0, step.code.count, place);
  write_elements(text, std::move(kernel));
}

}  // namespace taso::cuda
