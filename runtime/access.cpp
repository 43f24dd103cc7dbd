#include "runtime/access.h"

#include <algorithm>

#include "runtime/strides.h"

namespace taso {
namespace {

std::size_t position_of(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}

/// Axes longer than 1, with neighbours merged that lie as one.
Access merged(const Access& access) {
  Access result;
  result.offset = access.offset;
  for (std::size_t axis = 0; axis < access.shape.size(); ++axis) {
    const std::int64_t extent = access.shape[axis], stride = access.strides[axis];
    if (extent == 1) continue;
    if (!result.shape.empty() && result.strides.back() == stride * extent) {
      result.shape.back() *= extent;
      result.strides.back() = stride;
    } else {
      result.shape.push_back(extent);
      result.strides.push_back(stride);
    }
  }
  return result;
}

/// The same elements in another shape: each merged axis must be a product of neighbouring new ones.
std::optional<Access> reshaped(const Access& access, const Shape& shape) {
  const Access whole = merged(access);
  Access result{shape, std::vector<std::int64_t>(shape.size(), 0), access.offset};
  std::size_t axis = shape.size();
  for (std::size_t from = whole.shape.size(); from-- > 0;) {
    std::int64_t left = whole.shape[from], stride = whole.strides[from];
    while (left > 1) {
      if (axis == 0) return std::nullopt;
      --axis;
      if (left % shape[axis] != 0) return std::nullopt;
      result.strides[axis] = stride;
      stride *= shape[axis];
      left /= shape[axis];
    }
  }
  for (; axis > 0; --axis)
    if (shape[axis - 1] != 1) return std::nullopt;
  return result;
}

}  // namespace

Access access_of(const Operand& operand) {
  Shape whole = operand.type.shape;
  if (operand.within) whole[operand.within.axis] = operand.within.extent;
  return {operand.type.shape, strides_of(whole, operand.layout), 0};
}

ByteRuns runs_of(const Operand& operand) {
  const auto bytes = static_cast<std::size_t>(operand.type.bytes());
  if (!operand.within || bytes == 0) return {bytes, bytes, 1};
  const std::size_t axis = operand.within.axis;
  const std::size_t step = static_cast<std::size_t>(access_of(operand).strides[axis]) * size_of(operand.type.element);
  const std::size_t run = step * static_cast<std::size_t>(operand.type.shape[axis]);
  return {run, step * static_cast<std::size_t>(operand.within.extent), bytes / run};
}

std::int64_t spanned_bytes(const Operand& operand) {
  const ByteRuns runs = runs_of(operand);
  return static_cast<std::int64_t>((runs.count - 1) * runs.distance + runs.bytes);
}

void gather_runs(const Operand& operand, const std::byte* place, std::byte* one_run) {
  const ByteRuns runs = runs_of(operand);
  for (std::size_t i = 0; i < runs.count; ++i)
    std::copy_n(place + i * runs.distance, runs.bytes, one_run + i * runs.bytes);
}

void scatter_runs(const Operand& operand, const std::byte* one_run, std::byte* place) {
  const ByteRuns runs = runs_of(operand);
  for (std::size_t i = 0; i < runs.count; ++i)
    std::copy_n(one_run + i * runs.bytes, runs.bytes, place + i * runs.distance);
}

bool only_moves(const KernelRequest& request) {
  constexpr std::string_view movers[] = {"reshape", "transpose", "split", "slice", "broadcast", reorder_op};
  return request.inputs.size() == 1 && std::find(std::begin(movers), std::end(movers), request.op) != std::end(movers);
}

std::optional<Access> access_through(const KernelRequest& request, std::size_t port, const Access& input) {
  const Shape& shape = request.outputs[port].type.shape;
  const std::size_t rank = input.shape.size();
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return std::nullopt;
  Access result{shape, {}, input.offset};
  if (request.op == "reshape") return reshaped(input, shape);
  if (request.op == reorder_op) {
    result.strides = input.strides;
  } else if (request.op == "broadcast") {
    result.strides = broadcast_strides(input.shape, input.strides, shape);
  } else if (request.op == "transpose") {
    for (const std::int64_t axis : request.attributes.integers("perm"))
      result.strides.push_back(input.strides[position_of(axis, rank)]);
  } else if (request.op == "split") {
    const std::size_t axis = position_of(request.attributes.integer("axis"), rank);
    result.strides = input.strides;
    for (std::size_t before = 0; before < port; ++before)
      result.offset += request.outputs[before].type.shape[axis] * input.strides[axis];
  } else if (request.op == "slice") {
    const auto& starts = request.attributes.integers("starts");
    const auto& steps = request.attributes.integers("steps");
    for (std::size_t axis = 0; axis < rank; ++axis) {
      result.offset += starts[axis] * input.strides[axis];
      result.strides.push_back(steps[axis] * input.strides[axis]);
    }
  } else {
    return std::nullopt;
  }
  return result;
}

}  // namespace taso
