// Operators that move elements and compute nothing: boxes copied between strided tensors.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "runtime/access.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/parallel.h"
#include "runtime/cpu/strided_copy.h"
#include "runtime/moves.h"
#include "runtime/strides.h"

namespace taso::cpu {
namespace {

/// One box from an input to an output.
struct Piece {
  std::size_t input, output;
  std::int64_t from_offset, to_offset;  ///< In bytes.
  StridedCopy copy;
};

class Copying final : public Kernel {
 public:
  Copying(std::vector<Piece> pieces, int threads) : Kernel("own copy"), pieces_(std::move(pieces)), threads_(threads) {}
  /// Fills output 0 with `value` before the pieces are copied.
  void fill_with(float value, std::int64_t elements) {
    fill_ = value;
    fill_elements_ = elements;
  }

  void describe_as(std::string code) { code_ = std::move(code); }

  std::string code() const override { return code_; }

  Status execute(const KernelArguments& arguments) const override {
    if (fill_elements_ > 0) {
      auto* target = reinterpret_cast<float*>(arguments.outputs[0]);
      parallel_chunks(threads_, fill_elements_, 16384,
                      [&](std::int64_t begin, std::int64_t end) { std::fill(target + begin, target + end, fill_); });
    }
    for (const Piece& piece : pieces_)
      piece.copy.run(arguments.inputs[piece.input] + piece.from_offset,
                     arguments.outputs[piece.output] + piece.to_offset, threads_);
    return {};
  }

 private:
  std::vector<Piece> pieces_;
  int threads_;
  float fill_ = 0;
  std::int64_t fill_elements_ = 0;
  std::string code_;
};

using Strides = std::vector<std::int64_t>;

KernelOffer copy_of(const KernelRequest& request, const Strides& from, std::int64_t from_offset) {
  const Operand& output = request.outputs[0];
  const std::size_t width = size_of(output.type.element);
  std::vector<Piece> pieces;
  pieces.push_back({0, 0, from_offset * static_cast<std::int64_t>(width), 0,
                    StridedCopy(output.type.shape, from, strides_of(output), width)});
  return {std::make_unique<Copying>(std::move(pieces), request.threads), ""};
}

/// The axes and strides of pieces of tensors, which are four and in blocks of channels five.
class Pieces {
 public:
  explicit Pieces(const KernelRequest& request) {
    std::vector<Layout> layouts;
    for (const Operand& operand : request.inputs) layouts.push_back(operand.layout);
    for (const Operand& operand : request.outputs) layouts.push_back(operand.layout);
    block_ = block_among(layouts);
    for (const std::vector<Operand>* operands : {&request.inputs, &request.outputs})
      for (const Operand& operand : *operands)
        possible_ =
            possible_ && (block_ == 0 || (operand.type.shape.size() == 4 && operand.type.shape[1] % block_ == 0 &&
                                          (block_of(operand.layout) == 0 || block_of(operand.layout) == block_)));
  }
  /// Every operand consists of whole blocks of one size.
  [[nodiscard]] bool possible() const { return possible_; }
  [[nodiscard]] Strides strides(const Operand& operand) const {
    return strides_split(operand.type.shape, operand.layout, block_);
  }
  [[nodiscard]] Shape extents(const Operand& operand) const {
    Shape extents = operand.type.shape;
    split_channels(extents, block_);
    return extents;
  }
  /// How far position `start` of logical axis `axis` (of c: the start of a block) lies from the tensor's begin.
  [[nodiscard]] std::int64_t offset(const Strides& strides, std::size_t axis, std::int64_t start) const {
    if (block_ == 0) return start * strides[axis];
    if (axis == 1) return start / block_ * strides[1];
    return start * strides[axis < 1 ? axis : axis + 1];
  }

 private:
  std::int64_t block_ = 0;
  bool possible_ = true;
};

KernelOffer concat(const KernelRequest& request) {
  const Operand& output = request.outputs[0];
  const Pieces axes(request);
  if (!axes.possible()) return decline("an operand is not whole blocks of channels");
  const Strides to = axes.strides(output);
  const std::size_t axis = axis_position(request.attributes.integer("axis"), output.type.shape.size());
  const std::size_t width = size_of(output.type.element);
  std::vector<Piece> pieces;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const Operand& input = request.inputs[i];
    pieces.push_back({i, 0, 0, axes.offset(to, axis, start) * static_cast<std::int64_t>(width),
                      StridedCopy(axes.extents(input), axes.strides(input), to, width)});
    start += input.type.shape[axis];
  }
  return {std::make_unique<Copying>(std::move(pieces), request.threads), ""};
}

KernelOffer split(const KernelRequest& request) {
  const Operand& input = request.inputs[0];
  const Pieces axes(request);
  if (!axes.possible()) return decline("an operand is not whole blocks of channels");
  const Strides from = axes.strides(input);
  const std::size_t axis = axis_position(request.attributes.integer("axis"), input.type.shape.size());
  const std::size_t width = size_of(input.type.element);
  std::vector<Piece> pieces;
  std::int64_t start = 0;
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    const Operand& output = request.outputs[i];
    pieces.push_back({0, i, axes.offset(from, axis, start) * static_cast<std::int64_t>(width), 0,
                      StridedCopy(axes.extents(output), from, axes.strides(output), width)});
    start += output.type.shape[axis];
  }
  return {std::make_unique<Copying>(std::move(pieces), request.threads), ""};
}

KernelOffer reorder(const KernelRequest& request) {
  const Operand& output = request.outputs[0];
  const Pieces axes(request);
  if (!axes.possible()) return decline("an operand is not whole blocks of channels");
  std::vector<Piece> pieces;
  pieces.push_back({0, 0, 0, 0,
                    StridedCopy(axes.extents(output), axes.strides(request.inputs[0]), axes.strides(output),
                                size_of(output.type.element))});
  return {std::make_unique<Copying>(std::move(pieces), request.threads), ""};
}

KernelOffer slice(const KernelRequest& request) {
  Strides from = strides_of(request.inputs[0]);
  const auto& starts = request.attributes.integers("starts");
  const auto& steps = request.attributes.integers("steps");
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    offset += starts[axis] * from[axis];
    from[axis] *= steps[axis];
  }
  return copy_of(request, from, offset);
}

KernelOffer transpose(const KernelRequest& request) {
  const Strides from = strides_of(request.inputs[0]);
  const auto& permutation = request.attributes.integers("perm");
  Strides permuted;
  for (const std::int64_t axis : permutation) permuted.push_back(from[axis_position(axis, from.size())]);
  return copy_of(request, permuted, 0);
}

KernelOffer padded(const KernelRequest& request, const std::vector<std::int64_t>& before, float value) {
  const Operand& output = request.outputs[0];
  const Operand& input = request.inputs[0];
  if (output.type.element != ElementType::f32) return decline("only f32");
  const Strides from = strides_of(input), to = strides_of(output);
  // A negative pad crops: the box starts inside the input.
  std::int64_t from_offset = 0, to_offset = 0;
  Shape box = input.type.shape;
  for (std::size_t axis = 0; axis < box.size(); ++axis) {
    const std::int64_t begin = std::max<std::int64_t>(0, -before[axis]);
    const std::int64_t end = std::min(input.type.shape[axis], output.type.shape[axis] - before[axis]);
    box[axis] = std::max<std::int64_t>(0, end - begin);
    from_offset += begin * from[axis];
    to_offset += (begin + before[axis]) * to[axis];
  }
  std::vector<Piece> pieces;
  if (volume(box) > 0) pieces.push_back({0, 0, from_offset * 4, to_offset * 4, StridedCopy(box, from, to, 4)});
  auto kernel = std::make_unique<Copying>(std::move(pieces), request.threads);
  kernel->fill_with(value, output.type.elements());
  return {std::move(kernel), ""};
}

}  // namespace

KernelOffer copying(const KernelRequest& request, const OperatorRegistry&) {
  if (request.inputs.empty() || request.outputs.empty()) return decline("inputs and outputs are needed");
  const ElementType element = request.outputs[0].type.element;
  for (const Operand& operand : request.inputs)
    if (operand.type.element != element) return decline("element types differ");
  if (size_of(element) == 0) return decline("elements have no size");
  if (request.op == "concat") return concat(request);
  if (request.op == "split") return split(request);
  if (request.op == reorder_op) return reorder(request);
  for (const std::vector<Operand>* operands : {&request.inputs, &request.outputs})
    for (const Operand& operand : *operands)
      if (block_of(operand.layout) != 0) return decline("no blocks of channels");
  if (request.op == "slice") return slice(request);
  if (request.op == "transpose") return transpose(request);
  if (request.op == "broadcast")
    return copy_of(
        request,
        broadcast_strides(request.inputs[0].type.shape, strides_of(request.inputs[0]), request.outputs[0].type.shape),
        0);
  if (request.op == "reshape") {
    if (request.inputs[0].layout != Layout::row_major || request.outputs[0].layout != Layout::row_major)
      return decline("reshape needs row-major tensors");
    return copy_of(request, strides_of(request.outputs[0]), 0);
  }
  if (request.op == "pad")
    return padded(request, request.attributes.integers("before"), static_cast<float>(request.attributes.real("value")));
  if (request.op == "enlarge") {
    const auto& margin = request.attributes.integers("margin");
    return padded(request, {0, 0, margin[0], margin[1]}, 0.0f);
  }
  return decline("not a copy");
}

namespace {

class Gathering final : public Kernel {
 public:
  explicit Gathering(const KernelRequest& request) : Kernel("own gather"), threads_(request.threads) {
    const Operand& data = request.inputs[0];
    const std::size_t axis = axis_position(request.attributes.integer("axis"), data.type.shape.size());
    for (std::size_t i = 0; i < axis; ++i) outer_ *= data.type.shape[i];
    extent_ = data.type.shape[axis];
    before_ = request.attributes.integer("before");
    places_ = before_ + extent_ + request.attributes.integer("after");
    row_bytes_ = static_cast<std::int64_t>(size_of(data.type.element));
    for (std::size_t i = axis + 1; i < data.type.shape.size(); ++i) row_bytes_ *= data.type.shape[i];
    count_ = request.inputs[1].type.elements();
    wide_ = request.inputs[1].type.element == ElementType::i64;
  }

  Status execute(const KernelArguments& arguments) const override {
    const std::byte* data = arguments.inputs[0];
    const std::byte* index = arguments.inputs[1];
    std::vector<std::int64_t> positions(static_cast<std::size_t>(count_));
    for (std::size_t i = 0; i < positions.size(); ++i) {
      std::int64_t position = 0;
      if (wide_) {
        std::memcpy(&position, index + i * 8, 8);
      } else {
        std::int32_t narrow = 0;
        std::memcpy(&narrow, index + i * 4, 4);
        position = narrow;
      }
      if (position < -places_ || position >= places_)
        return bad_input("gather: index " + std::to_string(position) + " at position " + std::to_string(i) +
                         " is outside an axis of " + std::to_string(places_));
      positions[i] = (position < 0 ? position + places_ : position) - before_;
    }
    const std::int64_t grain = std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(row_bytes_, 1));
    parallel_chunks(threads_, outer_ * count_, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t position = positions[static_cast<std::size_t>(row % count_)];
        std::byte* to = arguments.outputs[0] + row * row_bytes_;
        if (position < 0 || position >= extent_)
          std::memset(to, 0, static_cast<std::size_t>(row_bytes_));  // not in this part of the table
        else
          std::memcpy(to, data + (row / count_ * extent_ + position) * row_bytes_,
                      static_cast<std::size_t>(row_bytes_));
      }
    });
    return {};
  }

 private:
  std::int64_t outer_ = 1, extent_ = 0, row_bytes_ = 0, count_ = 0;
  std::int64_t before_ = 0, places_ = 0;  // Slices of the table before the part that is here; and all of them.
  bool wide_ = true;
  int threads_;
};

}  // namespace

bool is_fusable_move(const KernelRequest& part) {
  const auto has_strides = [](const Operand& operand) { return block_of(operand.layout) == 0 && !operand.within; };
  return only_moves(part) && size_of(part.inputs[0].type.element) > 0 && has_strides(part.inputs[0]) &&
         std::all_of(part.outputs.begin(), part.outputs.end(), has_strides);
}

KernelOffer fused_moves(const KernelRequest& request, const OperatorRegistry&) {
  if (!request.fused) return decline("nothing is fused");
  for (const FusedPart& part : request.fused->parts)
    if (!is_fusable_move(part.request)) return decline(part.request.op + " does more than to move elements");
  const std::optional<Moves::Copy> copy = Moves(request).copy();
  if (!copy) return decline("the moves are no copy between strided tensors");
  const Access &from = *copy->from.access, &to = copy->to;
  Shape extents;
  Strides from_strides, to_strides;
  std::string code = "for elements:\n  y0[" + std::to_string(to.offset);
  std::string read = "x" + std::to_string(copy->from.input) + "[" + std::to_string(from.offset);
  for (std::size_t axis = 0; axis < from.shape.size(); ++axis) {
    if (from.shape[axis] == 1) continue;
    const std::string index = " * i" + std::to_string(extents.size());
    code += " + " + std::to_string(to.strides[axis]) + index;
    read += " + " + std::to_string(from.strides[axis]) + index;
    extents.push_back(from.shape[axis]);
    from_strides.push_back(from.strides[axis]);
    to_strides.push_back(to.strides[axis]);
  }
  code += "] = " + read + "]\n";
  const std::size_t width = size_of(request.outputs[0].type.element);
  const auto in_bytes = [&](std::int64_t offset) { return offset * static_cast<std::int64_t>(width); };
  std::vector<Piece> pieces;
  pieces.push_back({copy->from.input, 0, in_bytes(from.offset), in_bytes(to.offset),
                    StridedCopy(extents, from_strides, to_strides, width)});
  auto kernel = std::make_unique<Copying>(std::move(pieces), request.threads);
  kernel->describe_as(std::move(code));
  return {std::move(kernel), ""};
}

KernelOffer gathering(const KernelRequest& request, const OperatorRegistry&) {
  if (request.inputs.size() != 2) return decline("two inputs are needed");
  const ElementType index = request.inputs[1].type.element;
  if (index != ElementType::i64 && index != ElementType::i32) return decline("only i32 and i64 indices");
  for (const Operand& operand : {request.inputs[0], request.inputs[1], request.outputs[0]})
    if (operand.layout != Layout::row_major) return decline("only row-major tensors");
  if (size_of(request.inputs[0].type.element) == 0) return decline("elements have no size");
  return {std::make_unique<Gathering>(request), ""};
}

}  // namespace taso::cpu
