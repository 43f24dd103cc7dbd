#include "runtime/cuda/program.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "runtime/access.h"
#include "runtime/strides.h"

namespace taso::cuda {
namespace {

using Strides = std::vector<std::int64_t>;

PlannedProgram no_program(std::string reason) { return {std::nullopt, std::move(reason)}; }
PlannedProgram one_step(std::string name, Step step) { return {Program{std::move(name), {std::move(step)}}, ""}; }
PlannedProgram too_many_axes() { return no_program("more than " + std::to_string(max_axes) + " axes"); }

Strides strides_of(const Operand& operand) { return access_of(operand).strides; }

std::size_t position_of(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

bool is_float(ElementType element) {
  return element == ElementType::f32 || element == ElementType::f16 || element == ElementType::bf16;
}

/// All operands are of one floating-point type.
bool is_one_float(const KernelRequest& request) {
  const ElementType element = request.outputs[0].type.element;
  const auto same = [&](const Operand& operand) { return operand.type.element == element; };
  return is_float(element) && std::all_of(request.inputs.begin(), request.inputs.end(), same) &&
         std::all_of(request.outputs.begin(), request.outputs.end(), same);
}

/// A vector that is 1 on one axis: the walk's function is then the coordinate.
Strides coordinate(std::size_t rank, std::size_t axis) {
  Strides strides(rank, 0);
  strides[axis] = 1;
  return strides;
}

/// A number as the bytes of one element, in the low bytes.
std::uint64_t bytes_of(double value, ElementType element) {
  const auto integer = [&] { return static_cast<std::uint64_t>(static_cast<std::int64_t>(value)); };
  switch (element) {
    case ElementType::f32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(value));
    case ElementType::f64:
      return std::bit_cast<std::uint64_t>(value);
    case ElementType::f16:
      return narrow<Half>(static_cast<float>(value)).bits;
    case ElementType::bf16:
      return narrow<BFloat16>(static_cast<float>(value)).bits;
    case ElementType::i8:
    case ElementType::u8:
      return integer() & 0xff;
    case ElementType::i16:
    case ElementType::u16:
      return integer() & 0xffff;
    case ElementType::i32:
    case ElementType::u32:
      return integer() & 0xffffffff;
    case ElementType::i64:
    case ElementType::u64:
      return integer();
    case ElementType::boolean:
      return value != 0 ? 1 : 0;
    case ElementType::other:
      return 0;
  }
  return 0;
}

PlannedProgram elementwise(const KernelRequest& request) {
  if (!is_one_float(request)) return no_program("only f32, f16 or bf16");
  if (request.outputs.size() != 1 || request.inputs.empty() || request.inputs.size() > 2)
    return no_program("one output and one or two inputs are needed");
  const Operand& y = request.outputs[0];
  std::array<Strides, 3> strides = {strides_of(y), Strides(y.type.shape.size(), 0), Strides(y.type.shape.size(), 0)};
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const Operand& x = request.inputs[i];
    if (!is_broadcastable(x.type.shape, y.type.shape)) return no_program("an input does not broadcast to the output");
    strides[i + 1] = broadcast_strides(x.type.shape, strides_of(x), y.type.shape);
  }
  const auto walk = walk_of<3>(y.type.shape, strides);
  if (!walk) return too_many_axes();
  if (request.inputs.size() == 2) {
    const auto function = binary_named(request.op == "smul" ? "mul" : request.op);
    if (!function) return no_program("no function of two numbers is named " + request.op);
    return one_step("own elementwise", BinaryStep{y.type.element, input(0), input(1), output(0), *walk, *function});
  }
  UnaryStep step{y.type.element, input(0), output(0), *walk, Function::identity, 0, 0};
  const auto function = function_named(request.op == "apply" ? request.attributes.symbol("act") : request.op);
  if (!function || (request.op == "apply" && (*function == Function::clip || *function == Function::neg)))
    return no_program("no function of one number is named " +
                      (request.op == "apply" ? request.attributes.symbol("act") : request.op));
  step.function = *function;
  if (request.op == "clip") {
    step.p = static_cast<float>(request.attributes.real("min"));
    step.q = static_cast<float>(request.attributes.real("max"));
  }
  return one_step("own elementwise", step);
}

/// A box of `extents` from input `from_index` to output `to_index`; offsets in elements.
bool add_copy(Program& program, const Shape& extents, const Strides& to, const Strides& from, std::size_t width,
              Slot source, Slot target) {
  const auto walk = walk_of<2>(extents, {to, from});
  if (!walk) return false;
  if (walk->elements > 0) program.steps.push_back(CopyStep{width, source, target, *walk});
  return true;
}

PlannedProgram copied(const KernelRequest& request, const Strides& from, std::int64_t offset) {
  const Operand& y = request.outputs[0];
  const std::size_t width = size_of(y.type.element);
  Program program{"own copy", {}};
  if (!add_copy(program, y.type.shape, strides_of(y), from, width, input(0, offset * static_cast<std::int64_t>(width)),
                output(0)))
    return too_many_axes();
  return {std::move(program), ""};
}

/// Copies of one width, as few launches as there can be.
void join_copies(Program& program) {
  std::vector<Step> copies = std::move(program.steps);
  program.steps.clear();
  for (std::size_t first = 0; first < copies.size(); first += max_pieces) {
    const std::size_t last = std::min(first + max_pieces, copies.size());
    if (last - first == 1) {
      program.steps.push_back(copies[first]);
      continue;
    }
    CopiesStep joined;
    for (std::size_t i = first; i < last; ++i) {
      const auto& one = std::get<CopyStep>(copies[i]);
      joined.width = one.width;
      joined.pieces.push_back({one.from, one.to, one.walk});
    }
    program.steps.push_back(std::move(joined));
  }
}

PlannedProgram pieces(const KernelRequest& request, bool concat) {
  const Operand& whole = concat ? request.outputs[0] : request.inputs[0];
  const std::vector<Operand>& parts = concat ? request.inputs : request.outputs;
  const Strides strides = strides_of(whole);
  const std::size_t axis = position_of(request.attributes.integer("axis"), whole.type.shape.size());
  const std::size_t width = size_of(whole.type.element);
  Program program{"own copy", {}};
  std::int64_t start = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t offset = start * strides[axis] * static_cast<std::int64_t>(width);
    const Strides own = strides_of(parts[i]);
    const bool added = concat
                           ? add_copy(program, parts[i].type.shape, strides, own, width, input(i), output(0, offset))
                           : add_copy(program, parts[i].type.shape, own, strides, width, input(0, offset), output(i));
    if (!added) return too_many_axes();
    start += parts[i].type.shape[axis];
  }
  const auto like_whole = [&](const Operand& part) { return part.layout == whole.layout; };
  if (std::all_of(parts.begin(), parts.end(), like_whole)) join_copies(program);
  return {std::move(program), ""};
}

PlannedProgram sliced(const KernelRequest& request) {
  Strides from = strides_of(request.inputs[0]);
  const auto& starts = request.attributes.integers("starts");
  const auto& steps = request.attributes.integers("steps");
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < from.size(); ++axis) {
    offset += starts[axis] * from[axis];
    from[axis] *= steps[axis];
  }
  return copied(request, from, offset);
}

/// Fills in the geometry: axes in the memory order of the output. False if there are too many.
bool shape_padding(PaddingStep& step, const Operand& x, const Shape& padded, const Strides& to,
                   const std::vector<std::int64_t>& before) {
  if (padded.size() > max_axes) return false;
  std::vector<std::size_t> order(padded.size());
  for (std::size_t axis = 0; axis < order.size(); ++axis) order[axis] = axis;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return to[a] > to[b]; });
  const Strides from = strides_of(x);
  step.shape.rank = static_cast<std::int32_t>(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t axis = order[i];
    step.shape.extents[i] = padded[axis];
    step.shape.inside[i] = x.type.shape[axis];
    step.shape.before[i] = before[axis];
    step.shape.to_strides[i] = to[axis];
    step.shape.from_strides[i] = from[axis];
  }
  step.count = volume(padded);
  return true;
}

PlannedProgram padded(const KernelRequest& request, const std::vector<std::int64_t>& before, double value) {
  const Operand& y = request.outputs[0];
  PaddingStep step;
  step.width = size_of(y.type.element);
  step.from = input(0);
  step.to = output(0);
  step.value = bytes_of(value, y.type.element);
  if (!shape_padding(step, request.inputs[0], y.type.shape, strides_of(y), before)) return too_many_axes();
  return one_step("own pad", step);
}

/// The block-diagonal kernel: zeros, then block p of every group from part p of its outputs.
PlannedProgram regrouped(const KernelRequest& request) {
  const Operand& y = request.outputs[0];
  const Operand& x = request.inputs[0];
  if (y.within) return no_program("zeros within a wider tensor");
  const std::int64_t groups = request.attributes.integer("groups"), factor = request.attributes.integer("factor");
  const std::int64_t outputs = x.type.shape[0] / (groups * factor), inputs = x.type.shape[1];
  const Strides to = strides_of(y), from = strides_of(x);
  const std::size_t width = size_of(y.type.element);
  Program program{"own regroup", {}};
  program.steps.push_back(FillStep{width, output(0), y.type.elements(), 0});
  if (!add_copy(program, {groups, factor, outputs, inputs, x.type.shape[2], x.type.shape[3]},
                {factor * outputs * to[0], outputs * to[0] + inputs * to[1], to[0], to[1], to[2], to[3]},
                {factor * outputs * from[0], outputs * from[0], from[0], from[1], from[2], from[3]}, width, input(0),
                output(0)))
    return too_many_axes();
  return {std::move(program), ""};
}

PlannedProgram moved(const KernelRequest& request) {
  const ElementType element = request.outputs[0].type.element;
  for (const std::vector<Operand>* operands : {&request.inputs, &request.outputs})
    for (const Operand& operand : *operands)
      if (operand.type.element != element) return no_program("element types differ");
  if (size_of(element) == 0) return no_program("elements have no size");
  const Operand& x = request.inputs[0];
  const Operand& y = request.outputs[0];
  if (request.op == "concat") return pieces(request, true);
  if (request.op == "split") return pieces(request, false);
  if (request.op == reorder_op) return copied(request, strides_of(x), 0);
  if (request.op == "slice") return sliced(request);
  if (request.op == "transpose") {
    const Strides from = strides_of(x);
    Strides permuted;
    for (const std::int64_t axis : request.attributes.integers("perm"))
      permuted.push_back(from[position_of(axis, from.size())]);
    return copied(request, permuted, 0);
  }
  if (request.op == "broadcast")
    return copied(request, broadcast_strides(x.type.shape, strides_of(x), y.type.shape), 0);
  if (request.op == "reshape") {
    if (x.layout != Layout::row_major || y.layout != Layout::row_major)
      return no_program("reshape needs row-major tensors");
    return copied(request, strides_of(y), 0);
  }
  if (request.op == "pad")
    return padded(request, request.attributes.integers("before"), request.attributes.real("value"));
  if (request.op == "enlarge") {
    const auto& margin = request.attributes.integers("margin");
    return padded(request, {0, 0, margin[0], margin[1]}, 0);
  }
  if (request.op == "pad_channels") return padded(request, {0, 0, 0, 0}, 0);
  return regrouped(request);
}

PlannedProgram gathered(const KernelRequest& request) {
  if (request.inputs.size() != 2) return no_program("two inputs are needed");
  const Operand& x = request.inputs[0];
  const Operand& index = request.inputs[1];
  const Operand& y = request.outputs[0];
  if (index.type.element != ElementType::i64 && index.type.element != ElementType::i32)
    return no_program("only i32 and i64 indices");
  if (x.type.element != y.type.element) return no_program("element types differ");
  if (size_of(x.type.element) == 0) return no_program("elements have no size");
  const std::size_t rank = x.type.shape.size(), named = index.type.shape.size();
  const std::size_t axis = position_of(request.attributes.integer("axis"), rank);
  const Strides from = strides_of(x), of_index = strides_of(index);
  if (x.type.shape[axis] == 0) return no_program("nothing to choose from");
  if (request.attributes.integer("before") != 0 || request.attributes.integer("after") != 0)
    return no_program("a part of a table");
  // The output's axes: those of x before `axis`, those of the index, those of x behind.
  Strides source(y.type.shape.size(), 0), place(y.type.shape.size(), 0);
  for (std::size_t i = 0; i < axis; ++i) source[i] = from[i];
  for (std::size_t i = 0; i < named; ++i) place[axis + i] = of_index[i];
  for (std::size_t i = axis + 1; i < rank; ++i) source[i + named - 1] = from[i];
  const auto walk = walk_of<3>(y.type.shape, {strides_of(y), source, place});
  if (!walk) return too_many_axes();
  return one_step("own gather", GatheringStep{size_of(x.type.element), index.type.element == ElementType::i64, input(0),
                                              input(1), output(0), *walk, x.type.shape[axis], from[axis]});
}

PlannedProgram pooled(const KernelRequest& request) {
  if (!is_one_float(request)) return no_program("only f32, f16 or bf16");
  const Operand& x = request.inputs[0];
  const Operand& y = request.outputs[0];
  const Strides from = strides_of(x);
  PoolingStep step;
  step.element = y.type.element;
  step.x = input(0);
  step.y = output(0);
  const auto walk =
      walk_of<4>(y.type.shape, {strides_of(y), {from[0], from[1], 0, 0}, coordinate(4, 2), coordinate(4, 3)});
  if (!walk) return too_many_axes();
  Pooling<float>& shape = step.shape;
  shape.walk = *walk;
  shape.kind = request.op == "max_pool2d"           ? PoolKind::maximum
               : request.op == "avg_pool2d_include" ? PoolKind::average_include
                                                    : PoolKind::average_exclude;
  shape.height = x.type.shape[2];
  shape.width = x.type.shape[3];
  shape.row_stride = from[2];
  shape.column_stride = from[3];
  for (std::size_t i = 0; i < 2; ++i) {
    shape.kernel[i] = request.attributes.integers("kernel")[i];
    shape.strides[i] = request.attributes.integers("strides")[i];
    shape.pads[i] = request.attributes.integers("pads")[i];
    shape.dilations[i] =
        request.attributes.find("dilations") != nullptr ? request.attributes.integers("dilations")[i] : 1;
  }
  return one_step("own pool", step);
}

/// Threads side by side read and write neighbouring elements: of a row where its elements lie together, else of
/// neighbouring rows where those do.
TeamShape team_for(std::int64_t count, std::int64_t stride, const Walk<2>& rows) {
  const bool rows_adjoin = rows.rank > 0 && rows.strides[1][rows.rank - 1] == 1;
  if (stride != 1 && rows_adjoin) return TeamShape::columns;
  return count > 1024 ? TeamShape::block : TeamShape::warp;
}

PlannedProgram reduced(const KernelRequest& request) {
  if (!is_one_float(request)) return no_program("only f32, f16 or bf16");
  const Operand& x = request.inputs[0];
  const Operand& y = request.outputs[0];
  const std::size_t rank = x.type.shape.size();
  std::vector<bool> gone(rank, false);
  if (request.op == "global_avg_pool") {
    for (std::size_t axis = 2; axis < rank; ++axis) gone[axis] = true;
  } else {
    for (const std::int64_t axis : request.attributes.integers("axes")) gone[position_of(axis, rank)] = true;
  }
  const Strides from = strides_of(x), to = strides_of(y);
  Shape kept, summed;
  Strides kept_to, kept_from, summed_from;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (gone[axis]) {
      summed.push_back(x.type.shape[axis]);
      summed_from.push_back(from[axis]);
    } else {
      kept.push_back(x.type.shape[axis]);
      kept_to.push_back(to[axis]);
      kept_from.push_back(from[axis]);
    }
  }
  const auto kept_walk = walk_of<2>(kept, {kept_to, kept_from});
  const auto reduced_walk = walk_of<1>(summed, {summed_from});
  if (!kept_walk || !reduced_walk) return too_many_axes();
  ReductionStep step;
  step.element = y.type.element;
  step.kept = *kept_walk;
  step.reduced = *reduced_walk;
  step.kind = request.op == "reduce_sum"   ? ReductionKind::sum
              : request.op == "reduce_max" ? ReductionKind::maximum
                                           : ReductionKind::mean;
  const std::int64_t inner = reduced_walk->rank == 0 ? 0 : reduced_walk->strides[0][reduced_walk->rank - 1];
  step.team = team_for(reduced_walk->elements, inner, *kept_walk);
  return one_step("own reduce", step);
}

/// The rows of two equally shaped tensors: all axes but one.
std::optional<Walk<2>> rows_of(const Operand& y, const Operand& x, std::size_t axis) {
  Shape extents = y.type.shape;
  extents[axis] = 1;
  return walk_of<2>(extents, {strides_of(y), strides_of(x)});
}

PlannedProgram softmaxed(const KernelRequest& request) {
  if (!is_one_float(request)) return no_program("only f32, f16 or bf16");
  const Operand& x = request.inputs[0];
  const Operand& y = request.outputs[0];
  const std::size_t axis = position_of(request.attributes.integer("axis"), x.type.shape.size());
  const auto rows = rows_of(y, x, axis);
  if (!rows) return too_many_axes();
  SoftmaxStep step{y.type.element, *rows, x.type.shape[axis], strides_of(x)[axis], strides_of(y)[axis], {}};
  step.team = team_for(step.count, step.x_stride, *rows);
  return one_step("own softmax", step);
}

/// layer_norm, or without a bias rms_norm.
PlannedProgram row_normed(const KernelRequest& request) {
  if (!is_one_float(request)) return no_program("only f32, f16 or bf16");
  const Operand& x = request.inputs[0];
  const Operand& y = request.outputs[0];
  const std::size_t axis = x.type.shape.size() - 1;
  const auto rows = rows_of(y, x, axis);
  if (!rows) return too_many_axes();
  RowNormStep step;
  step.element = y.type.element;
  step.rows = *rows;
  step.count = x.type.shape[axis];
  step.x_stride = strides_of(x)[axis];
  step.y_stride = strides_of(y)[axis];
  step.epsilon = static_cast<float>(request.attributes.real("epsilon"));
  step.centers = request.op == "layer_norm";
  step.team = team_for(step.count, step.x_stride, *rows);
  return one_step("own " + request.op, step);
}

PlannedProgram group_normed(const KernelRequest& request) {
  if (!is_one_float(request)) return no_program("only f32, f16 or bf16");
  const Operand& x = request.inputs[0];
  const Operand& y = request.outputs[0];
  const auto act = function_named(request.attributes.symbol("act"));
  if (!act || *act == Function::clip) return no_program("no such function");
  const Shape& shape = x.type.shape;
  const std::int64_t groups = request.attributes.integer("groups"), count = shape[1] / groups;
  const std::vector<std::int64_t> from = strides_of(x), to = strides_of(y);
  const auto walk = walk_of<3>(
      {shape[0], groups}, {std::vector<std::int64_t>{to[0], to[1] * count}, {from[0], from[1] * count}, {0, count}});
  Shape extents = {count};
  std::array<std::vector<std::int64_t>, 3> strides = {std::vector<std::int64_t>{to[1]}, {from[1]}, {1}};
  for (std::size_t axis = 2; axis < shape.size(); ++axis) {
    extents.push_back(shape[axis]);
    strides[0].push_back(to[axis]);
    strides[1].push_back(from[axis]);
    strides[2].push_back(0);
  }
  const auto members = walk_of<3>(extents, strides);
  if (!walk || !members) return too_many_axes();
  GroupNormStep step;
  step.element = y.type.element;
  step.shape.groups = *walk;
  step.shape.members = *members;
  step.shape.epsilon = static_cast<float>(request.attributes.real("epsilon"));
  step.shape.act = *act;
  step.team = step.shape.members.elements > 1024 ? TeamShape::block : TeamShape::warp;
  return one_step("own group_norm", step);
}

PlannedProgram batch_normed(const KernelRequest& request) {
  if (!is_one_float(request)) return no_program("only f32, f16 or bf16");
  const Operand& x = request.inputs[0];
  const Operand& y = request.outputs[0];
  const auto walk = walk_of<3>(y.type.shape, {strides_of(y), strides_of(x), coordinate(y.type.shape.size(), 1)});
  if (!walk) return too_many_axes();
  return one_step("own batch_norm",
                  BatchNormStep{y.type.element, *walk, static_cast<float>(request.attributes.real("epsilon"))});
}

PlannedProgram response_normed(const KernelRequest& request) {
  if (!is_one_float(request)) return no_program("only f32, f16 or bf16");
  const Operand& x = request.inputs[0];
  const Operand& y = request.outputs[0];
  const auto walk = walk_of<3>(y.type.shape, {strides_of(y), strides_of(x), coordinate(y.type.shape.size(), 1)});
  if (!walk) return too_many_axes();
  LrnStep step;
  step.element = y.type.element;
  step.shape.walk = *walk;
  step.shape.channels = x.type.shape[1];
  step.shape.channel_stride = strides_of(x)[1];
  step.shape.size = request.attributes.integer("size");
  step.shape.alpha = static_cast<float>(request.attributes.real("alpha") / static_cast<double>(step.shape.size));
  step.shape.beta = static_cast<float>(request.attributes.real("beta"));
  step.shape.bias = static_cast<float>(request.attributes.real("bias"));
  return one_step("own lrn", step);
}

PlannedProgram turned(const KernelRequest& request) {
  if (!is_one_float(request)) return no_program("only f32, f16 or bf16");
  const Operand& x = request.inputs[0];
  const Operand& table = request.inputs[1];
  const Operand& y = request.outputs[0];
  const std::int64_t axis = request.attributes.integer("axis"), columns = request.attributes.integer("columns");
  const std::size_t rank = x.type.shape.size(), leading = table.type.shape.size() - 2;
  const std::size_t position = position_of(axis, rank);
  const Strides from = strides_of(x), of_cosines = strides_of(table), of_sines = strides_of(request.inputs[2]);
  // The tables' axes: those before the positions, which x has before the axis of heads, and the positions.
  const std::size_t first = position - leading - (axis == -2 ? 1 : 0);
  const auto rows = [&](const Strides& of_table) {
    Strides result(rank, 0);
    for (std::size_t i = 0; i < leading; ++i) result[first + i] = of_table[i];
    result[position] = of_table[leading];
    return result;
  };
  const auto walk =
      walk_of<5>(y.type.shape, {strides_of(y), from, rows(of_cosines), rows(of_sines), coordinate(rank, rank - 1)});
  if (!walk) return too_many_axes();
  TurnedPairsStep step;
  step.element = y.type.element;
  step.shape.walk = *walk;
  step.shape.pairs = table.type.shape.back() / columns;
  step.shape.apart = step.shape.pairs * from.back();
  step.shape.second = (columns - 1) * step.shape.pairs;
  step.shape.step_of_cosines = of_cosines.back();
  step.shape.step_of_sines = of_sines.back();
  return one_step("own rotary_embedding", step);
}

/// How a kernel reads and writes elements of a type; nothing for f64 and what is narrower than a byte.
std::optional<WordType> word_type(ElementType element) {
  switch (element) {
    case ElementType::boolean:
      return WordType::boolean;
    case ElementType::i8:
      return WordType::i8;
    case ElementType::i16:
      return WordType::i16;
    case ElementType::i32:
      return WordType::i32;
    case ElementType::i64:
      return WordType::i64;
    case ElementType::u8:
      return WordType::u8;
    case ElementType::u16:
      return WordType::u16;
    case ElementType::u32:
      return WordType::u32;
    case ElementType::u64:
      return WordType::u64;
    case ElementType::f16:
      return WordType::f16;
    case ElementType::bf16:
      return WordType::bf16;
    case ElementType::f32:
      return WordType::f32;
    default:
      return std::nullopt;
  }
}

struct WordRow {
  std::string_view op;
  WordFunction function;
};
constexpr WordRow word_rows[] = {
    {"bitwise_and", WordFunction::bit_and},
    {"bitwise_not", WordFunction::bit_not},
    {"bitwise_or", WordFunction::bit_or},
    {"bitwise_xor", WordFunction::bit_xor},
    {"cast", WordFunction::convert},
    {"equal", WordFunction::equal},
    {"integer_abs", WordFunction::absolute},
    {"integer_add", WordFunction::add},
    {"integer_equal", WordFunction::equal},
    {"integer_less", WordFunction::less},
    {"integer_less_equal", WordFunction::less_equal},
    {"integer_maximum", WordFunction::maximum},
    {"integer_minimum", WordFunction::minimum},
    {"integer_mul", WordFunction::mul},
    {"integer_neg", WordFunction::negate},
    {"integer_sub", WordFunction::sub},
    {"is_nan", WordFunction::is_nan},
    {"less", WordFunction::less},
    {"less_equal", WordFunction::less_equal},
    {"logical_and", WordFunction::bit_and},
    {"logical_equal", WordFunction::equal},
    {"logical_not", WordFunction::logical_not},
    {"logical_or", WordFunction::bit_or},
    {"logical_xor", WordFunction::bit_xor},
    {"select", WordFunction::select},
};

std::vector<std::string_view> names_of_word_rows() {
  std::vector<std::string_view> names;
  for (const WordRow& row : word_rows) names.push_back(row.op);
  return names;
}

PlannedProgram words(const KernelRequest& request) {
  const auto* const row = std::find_if(std::begin(word_rows), std::end(word_rows),
                                       [&](const WordRow& one) { return one.op == request.op; });
  const std::size_t count = request.inputs.size(), first = row->function == WordFunction::select ? 1 : 0;
  if (request.outputs.size() != 1 || count <= first || count > 3) return no_program("other operands than it has");
  const Operand& y = request.outputs[0];
  WordsStep step;
  const auto operands = word_type(request.inputs[first].type.element), result = word_type(y.type.element);
  if (!operands || !result) return no_program("elements of a type that no kernel computes with");
  std::array<Strides, 4> strides;
  strides.fill(Strides(y.type.shape.size(), 0));
  strides[0] = strides_of(y);
  for (std::size_t i = 0; i < count; ++i) {
    const Operand& x = request.inputs[i];
    if (i >= first && x.type.element != request.inputs[first].type.element) return no_program("operands of two types");
    if (!is_broadcastable(x.type.shape, y.type.shape)) return no_program("an input does not broadcast to the output");
    strides[i + 1] = broadcast_strides(x.type.shape, strides_of(x), y.type.shape);
  }
  const auto walk = walk_of<4>(y.type.shape, strides);
  if (!walk) return too_many_axes();
  step.a = input(0);
  if (count > 1) step.b = input(1);
  if (count > 2) step.c = input(2);
  step.y = output(0);
  step.shape.walk = *walk;
  step.shape.operands = *operands;
  step.shape.result = *result;
  step.shape.function = row->function;
  return one_step("own words", step);
}

/// A conversion between reals that a device keeps alike changes nothing.
PlannedProgram converted(const KernelRequest& request) {
  if (request.inputs.size() != 1 || !is_one_float(request)) return words(request);
  KernelRequest same = request;
  same.op = "apply";
  same.attributes = {{"act", SymbolValue{"identity"}}};
  return elementwise(same);
}

struct Row {
  std::vector<std::string_view> operators;
  PlannedProgram (*plan)(const KernelRequest& request);
};

const std::vector<Row>& table() {
  static const std::vector<Row> rows = {
      {{"add",        "sub",          "mul",        "div",       "pow",         "smul",    "neg",   "abs",
        "sqrt",       "exp",          "log",        "erf",       "tanh",        "sigmoid", "relu",  "gelu",
        "hard_swish", "hard_sigmoid", "clip",       "apply",     "maximum",     "sin",     "cos",   "tan",
        "atan",       "sinh",         "cosh",       "asinh",     "floor",       "ceil",    "round", "sign",
        "gelu_tanh",  "silu",         "quick_gelu", "remainder", "variadic_sum"},
       elementwise},
      {{"transpose", reorder_op, "concat", "split", "slice", "broadcast", "reshape", "pad", "enlarge", "pad_channels",
        "regroup"},
       moved},
      {{"gather"}, gathered},
      {{"cast"}, converted},
      {names_of_word_rows(), words},
      {{"max_pool2d", "avg_pool2d_include", "avg_pool2d_exclude"}, pooled},
      {{"reduce_sum", "reduce_mean", "reduce_max", "global_avg_pool"}, reduced},
      {{"softmax"}, softmaxed},
      {{"layer_norm", "rms_norm"}, row_normed},
      {{"group_norm"}, group_normed},
      {{"batch_norm"}, batch_normed},
      {{"lrn"}, response_normed},
      {{"rotary_embedding"}, turned},
  };
  return rows;
}

}  // namespace

PlannedProgram plan_program(const KernelRequest& request) {
  if (request.fused) {
    PlannedProgram fused = plan_fused(request);
    if (fused.program) return fused;
    PlannedProgram beside = plan_beside(request);
    return beside.program ? std::move(beside) : std::move(fused);
  }
  if (request.inputs.empty() || request.outputs.empty()) return no_program("inputs and outputs are needed");
  for (const std::vector<Operand>* operands : {&request.inputs, &request.outputs})
    for (const Operand& operand : *operands) {
      if (!operand.type.known) return no_program("an operand's shape is not known");
      if (block_of(operand.layout) != 0) return no_program("no blocks of channels");
      if (!fits(operand.layout, operand.type.shape)) return no_program("a layout that the shape cannot have");
    }
  for (const Row& row : table())
    if (std::find(row.operators.begin(), row.operators.end(), request.op) != row.operators.end())
      return row.plan(request);
  return no_program("no kernel for " + request.op);
}

std::optional<CopyStep> reorder_step(const TensorType& type, Layout from, Layout to, Slot source, Slot target) {
  const auto walk = walk_of<2>(type.shape, {taso::strides_of(type.shape, to), taso::strides_of(type.shape, from)});
  if (!walk) return std::nullopt;
  return CopyStep{size_of(type.element), source, target, *walk};
}

PaddingStep padding_step(const Operand& image, const std::vector<std::int64_t>& pads, Slot source, Slot target) {
  Shape shape = image.type.shape;
  shape[2] += pads[0] + pads[2];
  shape[3] += pads[1] + pads[3];
  PaddingStep step;
  step.width = size_of(image.type.element);
  step.from = source;
  step.to = target;
  TASO_CHECK(shape_padding(step, image, shape, taso::strides_of(shape, image.layout), {0, 0, pads[0], pads[1]}),
             "an image has four axes");
  return step;
}

std::optional<DepthwiseStep> depthwise_step(const KernelRequest& request, Function act) {
  const Operand &x = request.inputs[0], &w = request.inputs[1], &y = request.outputs[0];
  const std::size_t inputs = request.inputs.size();
  if (x.type.shape.size() != 4 || w.type.shape.size() != 4 || w.type.shape[1] != 1 ||
      x.type.shape[1] != w.type.shape[0])
    return std::nullopt;
  for (const std::vector<Operand>* operands : {&request.inputs, &request.outputs})
    for (const Operand& operand : *operands)
      if (block_of(operand.layout) != 0) return std::nullopt;
  const Strides from = strides_of(x), of_w = strides_of(w), to = strides_of(y);
  const auto walk = walk_of<6>(y.type.shape, {to,
                                              {from[0], from[1], 0, 0},
                                              coordinate(4, 2),
                                              coordinate(4, 3),
                                              coordinate(4, 1),
                                              inputs > 3 ? strides_of(request.inputs[3]) : Strides(4, 0)});
  if (!walk) return std::nullopt;
  DepthwiseStep step{y.type.element, input(0), input(1), {}, {}, output(0), {}};
  if (inputs > 2) step.bias = input(2);
  if (inputs > 3) step.residual = input(3);
  Depthwise<float>& shape = step.shape;
  shape.walk = *walk;
  shape.height = x.type.shape[2];
  shape.width = x.type.shape[3];
  shape.row_stride = from[2];
  shape.column_stride = from[3];
  for (std::size_t i = 0; i < 2; ++i) {
    shape.kernel[i] = w.type.shape[2 + i];
    shape.strides[i] = request.attributes.integers("strides")[i];
    shape.pads[i] = request.attributes.integers("pads")[i];
    shape.dilations[i] = request.attributes.integers("dilations")[i];
  }
  shape.channel_of_w = of_w[0];
  shape.row_of_w = of_w[2];
  shape.column_of_w = of_w[3];
  shape.function = act;
  return step;
}

std::optional<ThinProductStep> thin_product_step(const ProductPlan& plan, ElementType element, bool biased,
                                                 Function act) {
  constexpr std::int64_t long_depth = 1024;
  if (plan.batch != 1 || plan.offsets.size() != 1) return std::nullopt;
  // The result is first times second: rows of the one, columns of the other.
  const bool thin_second = plan.result.columns <= most_thin;
  if (!thin_second && plan.result.rows > most_thin) return std::nullopt;
  struct Side {
    std::int64_t step, depth;
  };
  const Side rows = plan.first.transposed ? Side{plan.first.leading, 1} : Side{1, plan.first.leading};
  const Side columns = plan.second.transposed ? Side{1, plan.second.leading} : Side{plan.second.leading, 1};
  const std::size_t of_first = plan.swapped ? plan.b : plan.a, of_second = plan.swapped ? plan.a : plan.b;
  const auto width = static_cast<std::int64_t>(size_of(element));
  const ProductPlan::Offsets& begin = plan.offsets[0];
  const Slot first = input(of_first, (plan.swapped ? begin.b : begin.a) * width);
  const Slot second = input(of_second, (plan.swapped ? begin.a : begin.b) * width);
  ThinProductStep step;
  step.element = element;
  step.wide = thin_second ? first : second;
  step.thin = thin_second ? second : first;
  if (biased) step.bias = input(plan.bias);
  step.y = output(0, begin.y * width);
  step.wide_count = thin_second ? plan.result.rows : plan.result.columns;
  const Side &wide = thin_second ? rows : columns, &thin = thin_second ? columns : rows;
  ThinProduct<float>& shape = step.shape;
  shape.depth = plan.first.transposed ? plan.first.rows : plan.first.columns;
  shape.thin_count = thin_second ? plan.result.columns : plan.result.rows;
  shape.wide_step = wide.step;
  shape.wide_depth = wide.depth;
  shape.thin_step = thin.step;
  shape.thin_depth = thin.depth;
  shape.y_wide = thin_second ? 1 : plan.result.leading;
  shape.y_thin = thin_second ? plan.result.leading : 1;
  // The bias goes along the columns of y, which are the rows of the library's result where it is swapped.
  const bool along_wide = plan.swapped == thin_second;
  shape.bias_wide = along_wide ? 1 : 0;
  shape.bias_thin = along_wide ? 0 : 1;
  shape.function = act;
  step.team = wide.depth != 1 && wide.step == 1 ? TeamShape::columns
              : shape.depth > long_depth        ? TeamShape::block
                                                : TeamShape::warp;
  return step;
}

std::optional<EpilogueStep> epilogue_step(const Operand& y, std::size_t bias_axis, Slot bias, Slot residual,
                                          Layout residual_layout, Function act) {
  const std::size_t rank = y.type.shape.size();
  const auto walk = walk_of<3>(
      y.type.shape, {strides_of(y), coordinate(rank, bias_axis), taso::strides_of(y.type.shape, residual_layout)});
  if (!walk) return std::nullopt;
  return EpilogueStep{y.type.element, bias, residual, output(0), *walk, act};
}

}  // namespace taso::cuda
