// What only moves: copies, by elements, by tiles and several in one launch, fills, paddings and gathers.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "runtime/cuda/dispatch.h"
#include "runtime/cuda/source_steps.h"

namespace taso::cuda {
namespace {

void write_copy(SourceText& text, const CopyStep& step, const Walk<2>& walk, std::size_t width) {
  KernelWriter writer = text.kernel(width > step.width);
  writer.span_over(walk);
  const std::size_t alignment = width > step.width ? width : 1;
  const std::string x = writer.reads(step.from, type_of_width(width), alignment);
  const std::string y = writer.writes(step.to, type_of_width(width), alignment);
  writer.begin_each(walk.elements);
  const auto coordinates = writer.coordinates("c", "i", extents_of(walk));
  writer.line(y + "[" + writer.sum(coordinates, walk, 0) + "] = " + x + "[" + writer.sum(coordinates, walk, 1) + "];");
  text.take(writer);
}

/// A block of 256 threads moves a tile of 32 x 32, of which one column more keeps columns apart in shared memory.
void write_tiles(SourceText& text, const CopyStep& step, const TiledCopy<std::uint8_t>& tiled) {
  KernelWriter writer = text.kernel();
  const std::vector<std::int64_t> outer = extents_of(tiled.outer);
  writer.span_over(outer, strides_of_walk(tiled.outer, 0), tiled.vs + tiled.us * std::abs(tiled.to_stride));
  writer.span_over(outer, strides_of_walk(tiled.outer, 1), tiled.us + tiled.vs * std::abs(tiled.from_stride));
  const std::string type = type_of_width(step.width), index = std::string("const ") + writer.index_type();
  const std::string x = writer.reads(step.from, type), y = writer.writes(step.to, type);
  writer.begin_blocks(tiled.blocks());
  const std::int64_t along_u = tiled.tiles_along(tiled.us), along_v = tiled.tiles_along(tiled.vs);
  writer.line("__shared__ " + type + " tile[32][33];");
  writer.line(index + " block = blockIdx.x;");
  writer.line(index + " first_u = block % " + writer.number(along_u) + " * 32;");
  writer.line(index + " first_v = block / " + writer.number(along_u) + " % " + writer.number(along_v) + " * 32;");
  std::vector<std::string> coordinates;
  if (!outer.empty()) {
    writer.line(index + " matrix = block / " + writer.number(along_u * along_v) + ";");
    coordinates = writer.coordinates("c", "matrix", outer);
  }
  writer.line("const " + type + "* const from = " + x + " + (" + writer.sum(coordinates, tiled.outer, 1) + ");");
  writer.line(type + "* const to = " + y + " + (" + writer.sum(coordinates, tiled.outer, 0) + ");");
  writer.line("const int lane = (int)threadIdx.x % 32, line = (int)threadIdx.x / 32;");
  writer.line("#pragma unroll");
  writer.open("for (int k = line; k < 32; k += 8)");
  writer.line(index + " u = first_u + lane, v = first_v + k;");
  writer.line("if (u < " + writer.number(tiled.us) + " && v < " + writer.number(tiled.vs) +
              ") tile[k][lane] = from[u + v * " + writer.number(tiled.from_stride) + "];");
  writer.close();
  writer.line("__syncthreads();");
  writer.line("#pragma unroll");
  writer.open("for (int k = line; k < 32; k += 8)");
  writer.line(index + " u = first_u + k, v = first_v + lane;");
  writer.line("if (u < " + writer.number(tiled.us) + " && v < " + writer.number(tiled.vs) + ") to[v + u * " +
              writer.number(tiled.to_stride) + "] = tile[lane][k];");
  writer.close();
  text.take(writer);
}

void write_copies(SourceText& text, const CopiesStep& step, std::int64_t factor) {
  KernelWriter writer = text.kernel(factor > 1);
  const std::size_t width = step.width * static_cast<std::size_t>(factor), alignment = factor > 1 ? width : 1;
  std::vector<Walk<2>> walks;
  std::vector<std::pair<std::string, std::string>> names;
  std::int64_t count = 0;
  for (const CopiesStep::Piece& piece : step.pieces) {
    walks.push_back(dispatch::enlarged_by(piece.walk, factor));
    count += walks.back().elements;
    writer.span_over(walks.back());
    names.emplace_back(writer.reads(piece.from, type_of_width(width), alignment),
                       writer.writes(piece.to, type_of_width(width), alignment));
  }
  writer.span_over(std::array{count}, std::array{std::int64_t{1}});
  if (count == 0) return;
  writer.begin_each(count);
  std::int64_t begin = 0;
  for (std::size_t k = 0; k < walks.size(); ++k) {
    const Walk<2>& walk = walks[k];
    if (walk.elements == 0) continue;
    const std::vector<std::int64_t> extents = extents_of(walk);
    writer.open("if (i >= " + writer.number(begin) + " && i < " + writer.number(begin + walk.elements) + ")");
    std::vector<std::string> coordinates;
    if (!extents.empty()) {
      writer.line(std::string("const ") + writer.index_type() + " j = i - " + writer.number(begin) + ";");
      coordinates = writer.coordinates("c", "j", extents);
    }
    writer.line(names[k].second + "[" + writer.sum(coordinates, walk, 0) + "] = " + names[k].first + "[" +
                writer.sum(coordinates, walk, 1) + "];");
    writer.close();
    begin += walk.elements;
  }
  text.take(writer);
}

void write_gathering(SourceText& text, const GatheringStep& step, const Walk<3>& walk, std::int64_t factor) {
  KernelWriter writer = text.kernel(factor > 1);
  writer.span_over(walk, step.extent * std::abs(step.stride));
  const std::size_t width = step.width * static_cast<std::size_t>(factor), alignment = factor > 1 ? width : 1;
  const std::string type = type_of_width(width);
  const std::string x = writer.reads(step.x, type, alignment);
  const std::string index = writer.reads(step.index, step.wide_index ? "long long" : "int");
  const std::string y = writer.writes(step.y, type, alignment);
  writer.note_errors();
  writer.begin_each(walk.elements);
  const auto coordinates = writer.coordinates("c", "i", extents_of(walk));
  const std::string extent = std::to_string(step.extent) + "ll", at = writer.sum(coordinates, walk, 2);
  writer.line("long long place = " + index + "[" + at + "];");
  writer.line("if (place < 0) place += " + extent + ";");
  writer.open("if (place < 0 || place >= " + extent + ")");
  writer.line("atomicMin(error, number << 40 | (unsigned long long)(" + at + "));");
  writer.line("place = 0;");
  writer.close();
  const std::int64_t stride = step.stride / factor;
  writer.line(y + "[" + writer.sum(coordinates, walk, 0) + "] = " + x + "[" + writer.sum(coordinates, walk, 1) +
              " + place * " + std::to_string(stride) + "];");
  text.take(writer);
}

}  // namespace

void write_step(SourceText& text, const CopyStep& step) {
  if (step.walk.elements == 0) return;
  Walk<2> walk = step.walk;
  const std::int64_t factor = dispatch::enlarge(walk, 2, step.width, 0, {nullptr, nullptr});
  if (factor > 1) {
    write_copy(text, step, walk, step.width * static_cast<std::size_t>(factor));
  } else if (step.width <= 8) {
    TiledCopy<std::uint8_t> tiled{};  // the shape is that of any width
    if (dispatch::as_tiles(walk, tiled)) {
      write_tiles(text, step, tiled);
      return;
    }
  }
  write_copy(text, step, step.walk, step.width);
}

void write_step(SourceText& text, const CopiesStep& step) {
  auto factor = static_cast<std::int64_t>(16 / step.width);
  for (const CopiesStep::Piece& piece : step.pieces) {
    Walk<2> walk = piece.walk;
    factor = std::min(factor, dispatch::enlarge(walk, 2, step.width, 0, {nullptr, nullptr}));
  }
  if (factor > 1) write_copies(text, step, factor);
  write_copies(text, step, 1);
}

void write_step(SourceText& text, const FillStep& step) {
  if (step.count == 0) return;
  KernelWriter writer = text.kernel();
  writer.span_over(std::array{step.count}, std::array{std::int64_t{1}});
  const std::string type = type_of_width(step.width);
  const std::string y = writer.writes(step.to, type);
  writer.begin_each(step.count);
  writer.line(y + "[i] = (" + type + ")" + std::to_string(step.value) + "ull;");
  text.take(writer);
}

void write_step(SourceText& text, const PaddingStep& step) {
  if (step.count == 0) return;
  const Padding<std::uint64_t>& of = step.shape;
  const std::vector<std::int64_t> extents = extents_of(of);
  const std::vector<std::int64_t> to(of.to_strides, of.to_strides + of.rank),
      from(of.from_strides, of.from_strides + of.rank);
  KernelWriter writer = text.kernel();
  writer.span_over(extents, to);
  for (int axis = 0; axis < of.rank; ++axis)
    writer.span_over(std::array{of.extents[axis] + std::abs(of.before[axis])},
                     std::array{from[static_cast<std::size_t>(axis)]});
  writer.span_over(extents, from);
  const std::string type = type_of_width(step.width);
  const bool is_read = std::all_of(of.inside, of.inside + of.rank, [](std::int64_t extent) { return extent > 0; });
  const std::string x = is_read ? writer.reads(step.from, type) : "";
  const std::string y = writer.writes(step.to, type);
  writer.begin_each(step.count);
  const auto coordinates = writer.coordinates("c", "i", extents);
  const std::string value = "(" + type + ")" + std::to_string(step.value) + "ull";
  std::string condition, source;
  for (std::size_t axis = 0; axis < extents.size() && is_read; ++axis) {
    const std::int64_t before = of.before[axis], inside = of.inside[axis];
    const std::string& place = coordinates[axis];
    const auto also = [&](const std::string& one) { condition += (condition.empty() ? "" : " && ") + one; };
    if (before > 0) also(place + " >= " + writer.number(before));
    if (before + inside < extents[axis]) also(place + " < " + writer.number(before + inside));
    if (from[axis] == 0) continue;
    source += (source.empty() ? "" : " + ") + ("(" + place + " - " + writer.number(before) + ") * ") +
              writer.number(from[axis]);
  }
  if (source.empty()) source = "0";
  const std::string read = x + "[" + source + "]";
  writer.line(y + "[" + writer.sum(coordinates, to) + "] = " +
              (!is_read            ? value
               : condition.empty() ? read
                                   : condition + " ? " + read + " : " + value) +
              ";");
  text.take(writer);
}

void write_step(SourceText& text, const GatheringStep& step) {
  if (step.walk.elements == 0) return;
  Walk<3> walk = step.walk;
  const std::int64_t factor = dispatch::enlarge(walk, 2, step.width, step.stride, {nullptr, nullptr});
  if (factor > 1) write_gathering(text, step, walk, factor);
  write_gathering(text, step, step.walk, 1);
}

}  // namespace taso::cuda
