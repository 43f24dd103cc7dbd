// Windows and what else looks at neighbours.
#include <array>
#include <cstdlib>
#include <limits>

#include "runtime/cuda/dispatch.h"
#include "runtime/cuda/source_steps.h"

namespace taso::cuda {
namespace {

/// Loops over the cells of a window that lie inside of the image: two blocks are left open, at `row` and `column`.
template <class Window>
void open_window(KernelWriter& writer, const Window& of, const std::vector<std::string>& coordinates) {
  const std::string type = std::string("const ") + writer.index_type();
  const auto along = [&](int axis) { return writer.sum(coordinates, of.walk, 2 + axis); };
  const std::string names[2] = {"top", "left"};
  for (int axis = 0; axis < 2; ++axis)
    writer.line(type + " " + names[axis] + " = (" + along(axis) + ") * " + writer.number(of.strides[axis]) + " - " +
                writer.number(of.pads[axis]) + ";");
  writer.open("for (int u = 0; u < " + std::to_string(of.kernel[0]) + "; ++u)");
  writer.line(type + " row = top + u * " + writer.number(of.dilations[0]) + ";");
  writer.line("if (row < 0 || row >= " + writer.number(of.height) + ") continue;");
  writer.open("for (int v = 0; v < " + std::to_string(of.kernel[1]) + "; ++v)");
  writer.line(type + " column = left + v * " + writer.number(of.dilations[1]) + ";");
  writer.line("if (column < 0 || column >= " + writer.number(of.width) + ") continue;");
}

/// Tells of the indices of a window's cells.
template <class Window>
void span_window(KernelWriter& writer, const Window& of) {
  const std::int64_t image = of.height * std::abs(of.row_stride) + of.width * std::abs(of.column_stride);
  writer.span_over(of.walk, image);
  for (int axis = 0; axis < 2; ++axis)
    writer.span_over(std::array{of.height + of.width, of.kernel[axis]},
                     std::array{of.strides[axis], of.dilations[axis]}, std::abs(of.pads[axis]));
}

/// Begins of tensors for as_packs, which asks whether they are aligned: they are where the kernel is chosen.
const void* aligned_begin(bool is_there = true) {
  alignas(16) static constexpr char begin[16] = {};
  return is_there ? begin : nullptr;
}

/// The first element of a pack: what the coordinates of packs lead to.
std::string begin_of(const KernelWriter& writer, const std::vector<std::string>& coordinates,
                     std::vector<std::int64_t> strides, std::int64_t pack) {
  for (std::int64_t& stride : strides) stride *= pack;
  return writer.sum(coordinates, strides);
}

/// Declares an array of floats, of `pack` elements from an address on; and stores one.
void load_neighbours(KernelWriter& writer, ElementType element, std::int64_t pack, const std::string& name,
                     const std::string& address) {
  writer.line("float " + name + "[" + std::to_string(pack) + "];");
  writer.line(pack > 1 ? loading_pack(element, address, name)
                       : name + "[0] = " + widened(element, "*(" + address + ")") + ";");
}
void store_neighbours(KernelWriter& writer, ElementType element, std::int64_t pack, const std::string& name,
                      const std::string& address) {
  writer.line(pack > 1 ? storing_pack(element, address, name)
                       : "*(" + address + ") = " + narrowed(element, name + "[0]") + ";");
}

void write_pooling(SourceText& text, const PoolingStep& step, const Pooling<float>& of, std::int64_t pack) {
  KernelWriter writer = text.kernel(pack > 1);
  span_window(writer, step.shape);
  const std::size_t alignment = pack > 1 ? 16 : 1;
  const std::string x = writer.reads(step.x, type_of(step.element), alignment);
  const std::string y = writer.writes(step.y, type_of(step.element), alignment);
  writer.begin_each(of.walk.elements);
  const auto coordinates = writer.coordinates("c", "i", extents_of(of.walk));
  const bool is_maximum = of.kind == PoolKind::maximum, counts = of.kind == PoolKind::average_exclude;
  const std::string size = std::to_string(pack);
  const std::string each = "for (int k = 0; k < " + size + "; ++k) ";
  writer.line("float total[" + size + "];");
  writer.line(each + "total[k] = " + literal(is_maximum ? -std::numeric_limits<float>::infinity() : 0.0F) + ";");
  if (counts) writer.line("int cells = 0;");
  open_window(writer, of, coordinates);
  load_neighbours(writer, step.element, pack, "value",
                  x + " + (" + begin_of(writer, coordinates, strides_of_walk(of.walk, 1), pack) + " + row * " +
                      writer.number(of.row_stride) + " + column * " + writer.number(of.column_stride) + ")");
  writer.line(each + (is_maximum ? "total[k] = fmaxf(total[k], value[k]);" : "total[k] += value[k];"));
  if (counts) writer.line("++cells;");
  writer.close();
  writer.close();
  if (counts) writer.line(each + "total[k] /= (float)cells;");
  if (of.kind == PoolKind::average_include)
    writer.line(each + "total[k] /= " + literal(static_cast<float>(of.kernel[0] * of.kernel[1])) + ";");
  store_neighbours(writer, step.element, pack, "total",
                   y + " + (" + begin_of(writer, coordinates, strides_of_walk(of.walk, 0), pack) + ")");
  text.take(writer);
}

void write_depthwise(SourceText& text, const DepthwiseStep& step, const Depthwise<float>& of, std::int64_t pack) {
  KernelWriter writer = text.kernel(pack > 1);
  span_window(writer, step.shape);
  writer.span_over(std::array{of.kernel[0], of.kernel[1]}, std::array{of.row_of_w, of.column_of_w},
                   std::abs(of.channel_of_w) * step.shape.walk.elements);
  const std::size_t alignment = pack > 1 ? 16 : 1;
  const char* type = type_of(step.element);
  const std::string x = writer.reads(step.x, type, alignment), w = writer.reads(step.w, type);
  const bool biased = step.bias.place != Slot::Place::none, adds = step.residual.place != Slot::Place::none;
  const std::string bias = biased ? writer.reads(step.bias, type, alignment) : "";
  const std::string residual = adds ? writer.reads(step.residual, type, alignment) : "";
  const std::string y = writer.writes(step.y, type, alignment);
  writer.begin_each(of.walk.elements);
  const auto coordinates = writer.coordinates("c", "i", extents_of(of.walk));
  const auto begin = [&](int function) {
    return begin_of(writer, coordinates, strides_of_walk(of.walk, function), pack);
  };
  const std::string size = std::to_string(pack);
  const std::string each = "for (int k = 0; k < " + size + "; ++k) ";
  writer.line("float total[" + size + "];");
  writer.line(each + "total[k] = 0.0f;");
  writer.line(std::string("const ") + type + "* const window = " + w + " + (" + begin(4) + ") * " +
              writer.number(of.channel_of_w) + ";");
  open_window(writer, of, coordinates);
  load_neighbours(writer, step.element, pack, "value",
                  x + " + (" + begin(1) + " + row * " + writer.number(of.row_stride) + " + column * " +
                      writer.number(of.column_stride) + ")");
  writer.line(each + "total[k] += value[k] * " +
              widened(step.element, "window[u * " + writer.number(of.row_of_w) + " + v * " +
                                        writer.number(of.column_of_w) + " + k * " + writer.number(of.channel_of_w) +
                                        "]") +
              ";");
  writer.close();
  writer.close();
  const auto plus = [&](const std::string& name, const std::string& address) {
    load_neighbours(writer, step.element, pack, name, address);
    writer.line(each + "total[k] += " + name + "[k];");
  };
  if (biased) plus("shift", bias + " + (" + begin(4) + ")");
  if (adds) plus("rest", residual + " + (" + begin(5) + ")");
  if (of.function != Function::identity) writer.line(each + "total[k] = " + text_of(of.function, "total[k]") + ";");
  store_neighbours(writer, step.element, pack, "total", y + " + (" + begin(0) + ")");
  text.take(writer);
}

}  // namespace

void write_step(SourceText& text, const PoolingStep& step) {
  if (step.shape.walk.elements == 0) return;
  const std::int64_t pack = pack_of(step.element);
  Pooling<float> packed = step.shape;
  const bool whole = packed.row_stride % pack == 0 && packed.column_stride % pack == 0;
  if (whole && dispatch::as_packs(packed.walk, pack, {{0, aligned_begin()}, {1, aligned_begin()}}))
    write_pooling(text, step, packed, pack);
  write_pooling(text, step, step.shape, 1);
}

void write_step(SourceText& text, const DepthwiseStep& step) {
  if (step.shape.walk.elements == 0) return;
  const std::int64_t pack = pack_of(step.element);
  Depthwise<float> packed = step.shape;
  const bool whole = packed.row_stride % pack == 0 && packed.column_stride % pack == 0;
  const bool along_channels = packed.walk.rank > 0 && packed.walk.strides[4][packed.walk.rank - 1] == 1;
  const bool biased = step.bias.place != Slot::Place::none, adds = step.residual.place != Slot::Place::none;
  if (whole && along_channels &&
      dispatch::as_packs(
          packed.walk, pack,
          {{0, aligned_begin()}, {1, aligned_begin()}, {4, aligned_begin(biased)}, {5, aligned_begin(adds)}}))
    write_depthwise(text, step, packed, pack);
  write_depthwise(text, step, step.shape, 1);
}

void write_step(SourceText& text, const LrnStep& step) {
  const Lrn<float>& of = step.shape;
  if (of.walk.elements == 0) return;
  KernelWriter writer = text.kernel();
  writer.span_over(of.walk, std::abs(of.channel_stride) * of.channels + of.size);
  const std::string x = writer.reads(input(0), type_of(step.element));
  const std::string y = writer.writes(output(0), type_of(step.element));
  writer.begin_each(of.walk.elements);
  const auto coordinates = writer.coordinates("c", "i", extents_of(of.walk));
  const std::string type = std::string("const ") + writer.index_type();
  const std::int64_t below = (of.size - 1) / 2, above = of.size / 2;
  writer.line(type + " channel = " + writer.sum(coordinates, of.walk, 2) + ";");
  writer.line(type + " at = " + writer.sum(coordinates, of.walk, 1) + ";");
  writer.line(type + " first = channel < " + writer.number(below) + " ? 0 : channel - " + writer.number(below) + ";");
  writer.line(type + " last = " + writer.number(of.channels - 1) + " - channel < " + writer.number(above) + " ? " +
              writer.number(of.channels - 1) + " : channel + " + writer.number(above) + ";");
  writer.line("float energy = 0.0f;");
  writer.open(std::string("for (") + writer.index_type() + " k = first; k <= last; ++k)");
  writer.line("const float value = " +
              widened(step.element, x + "[at + (k - channel) * " + writer.number(of.channel_stride) + "]") + ";");
  writer.line("energy += value * value;");
  writer.close();
  writer.line(y + "[" + writer.sum(coordinates, of.walk, 0) + "] = " +
              narrowed(step.element, widened(step.element, x + "[at]") + " / powf(" + literal(of.bias) + " + " +
                                         literal(of.alpha) + " * energy, " + literal(of.beta) + ")") +
              ";");
  text.take(writer);
}

void write_step(SourceText& text, const TurnedPairsStep& step) {
  const TurnedPairs<float>& of = step.shape;
  if (of.walk.elements == 0) return;
  KernelWriter writer = text.kernel();
  writer.span_over(of.walk, 2 * std::abs(of.apart));
  writer.span_over(std::array{2 * of.pairs + of.second},
                   std::array{std::abs(of.step_of_cosines) + std::abs(of.step_of_sines)});
  const char* type = type_of(step.element);
  const std::string x = writer.reads(input(0), type), cosines = writer.reads(input(1), type),
                    sines = writer.reads(input(2), type), y = writer.writes(output(0), type);
  writer.begin_each(of.walk.elements);
  const auto coordinates = writer.coordinates("c", "i", extents_of(of.walk));
  const auto at = [&](int function) { return writer.sum(coordinates, of.walk, function); };
  const std::string index = std::string("const ") + writer.index_type();
  writer.line(index + " place = " + at(4) + ";");
  writer.line(index + " from = " + at(1) + ";");
  writer.line("const float own = " + widened(step.element, x + "[from]") + ";");
  writer.open("if (place >= " + writer.number(2 * of.pairs) + ")");
  writer.line(y + "[" + at(0) + "] = " + narrowed(step.element, "own") + ";");
  writer.line("return;");
  writer.close();
  writer.line("const bool first = place < " + writer.number(of.pairs) + ";");
  writer.line("const float other = " +
              widened(step.element,
                      x + "[first ? from + " + writer.number(of.apart) + " : from - " + writer.number(of.apart) + "]") +
              ";");
  writer.line(index + " angle = first ? place : place + " + writer.number(of.second - of.pairs) + ";");
  writer.line("const float turned = (first ? -other : other) * " +
              widened(step.element, sines + "[" + at(3) + " + angle * " + writer.number(of.step_of_sines) + "]") + ";");
  writer.line(y + "[" + at(0) + "] = " +
              narrowed(step.element, "own * " +
                                         widened(step.element, cosines + "[" + at(2) + " + angle * " +
                                                                   writer.number(of.step_of_cosines) + "]") +
                                         " + turned") +
              ";");
  text.take(writer);
}

}  // namespace taso::cuda
