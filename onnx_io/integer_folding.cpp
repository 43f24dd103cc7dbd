/// Shape arithmetic: operators on small constant integer tensors, and on masks, computed while importing.
///
/// Exporters spell shapes as chains such as Shape -> Gather -> Unsqueeze -> Concat -> Reshape, and causal masks as
/// comparisons of Range with Range, slices of a triangle, or Trilu. Everything here is exact: what would overflow its
/// element type, or is not listed, is left as it is.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>

#include "graph/reals.h"
#include "onnx_io/import.h"
#include "onnx_io/import_handlers.h"
#include "support/reversed.h"

namespace taso {
namespace {

constexpr std::int64_t size_limit = 4096;
constexpr std::int64_t mask_limit = std::int64_t{1} << 20;

/// The most elements of a tensor that is read or made here.
std::int64_t limit_of(ElementType element) { return element == ElementType::boolean ? mask_limit : size_limit; }

bool is_integral(ElementType element) {
  switch (element) {
    case ElementType::i8:
    case ElementType::i16:
    case ElementType::i32:
    case ElementType::i64:
    case ElementType::u8:
    case ElementType::u16:
    case ElementType::u32:
    case ElementType::boolean:
      return true;
    case ElementType::u64:
    case ElementType::f32:
    case ElementType::f64:
    case ElementType::f16:
    case ElementType::bf16:
    case ElementType::other:
      return false;
  }
  return false;
}

/// True if `value` is a value of the element type.
bool in_range(ElementType element, std::int64_t value) {
  switch (element) {
    case ElementType::i8:
      return value >= -128 && value <= 127;
    case ElementType::i16:
      return value >= -32768 && value <= 32767;
    case ElementType::i32:
      return value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max();
    case ElementType::u8:
      return value >= 0 && value <= 255;
    case ElementType::u16:
      return value >= 0 && value <= 65535;
    case ElementType::u32:
      return value >= 0 && value <= 4294967295;
    case ElementType::boolean:
      return value == 0 || value == 1;
    default:
      return true;
  }
}

/// A small tensor of integers.
struct Integers {
  ElementType element = ElementType::i64;
  Shape shape;
  std::vector<std::int64_t> values;
};

std::shared_ptr<const ConstantData> make(const Integers& tensor) {
  if (static_cast<std::int64_t>(tensor.values.size()) != volume(tensor.shape)) return nullptr;
  const std::size_t width = size_of(tensor.element);
  std::vector<std::byte> bytes(tensor.values.size() * width);
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    if (!in_range(tensor.element, tensor.values[i])) return nullptr;
    std::memcpy(bytes.data() + i * width, &tensor.values[i], width);
  }
  return ConstantData::own({tensor.element, tensor.shape, true}, std::move(bytes));
}

std::optional<Integers> read(const NodeContext& context, std::size_t i, std::int64_t limit) {
  if (!context.is_constant(i)) return std::nullopt;
  const auto& constant = context.inputs()[i].constant;
  if (!is_integral(constant->type().element) || constant->type().elements() > limit) return std::nullopt;
  return Integers{constant->type().element, constant->type().shape, constant->to_integers()};
}

std::optional<Integers> read(const NodeContext& context, std::size_t i) {
  return context.is_constant(i) ? read(context, i, limit_of(context.inputs()[i].constant->type().element))
                                : std::nullopt;
}

using Binary = std::function<std::optional<std::int64_t>(std::int64_t, std::int64_t)>;

std::shared_ptr<const ConstantData> elementwise(NodeContext& context, ElementType result, const Binary& function) {
  const auto a = read(context, 0), b = read(context, 1);
  if (!a || !b || a->element != b->element) return nullptr;
  Integers out{result, context.common_shape({a->shape, b->shape}), {}};
  if (context.stopped() || volume(out.shape) > limit_of(result)) return nullptr;
  for (std::size_t i = 0; i < static_cast<std::size_t>(volume(out.shape)); ++i) {
    const auto value = function(a->values[broadcast_index(i, out.shape, a->shape)],
                                b->values[broadcast_index(i, out.shape, b->shape)]);
    if (!value) return nullptr;
    out.values.push_back(*value);
  }
  return make(out);
}

/// Add, Sub, ...: the element type stays.
Binary arithmetic(std::string_view op, NodeContext& context) {
  if (op == "Add")
    return [](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> {
      std::int64_t sum = 0;
      if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
      return sum;
    };
  if (op == "Sub")
    return [](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> {
      std::int64_t difference = 0;
      if (__builtin_sub_overflow(a, b, &difference)) return std::nullopt;
      return difference;
    };
  if (op == "Mul")
    return [](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> {
      std::int64_t product = 0;
      if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
      return product;
    };
  if (op == "Div")
    return [](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> {
      if (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min())) return std::nullopt;
      return a / b;
    };
  if (op == "Mod") {
    const bool c_sign = context.integer("fmod", 0) != 0;
    return [c_sign](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> {
      if (b == 0 || b == -1) return std::nullopt;
      const std::int64_t rest = a % b;
      return !c_sign && rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    };
  }
  if (op == "Min") return [](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> { return std::min(a, b); };
  if (op == "Max") return [](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> { return std::max(a, b); };
  return nullptr;
}

/// Equal, Less, And, ...: the result is boolean.
Binary comparison(std::string_view op) {
  if (op == "Equal") return [](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> { return a == b; };
  if (op == "Less") return [](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> { return a < b; };
  if (op == "LessOrEqual") return [](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> { return a <= b; };
  if (op == "Greater") return [](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> { return a > b; };
  if (op == "GreaterOrEqual")
    return [](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> { return a >= b; };
  if (op == "And")
    return [](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> { return a != 0 && b != 0; };
  if (op == "Or") return [](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> { return a != 0 || b != 0; };
  if (op == "Xor")
    return [](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> { return (a != 0) != (b != 0); };
  return nullptr;
}

std::shared_ptr<const ConstantData> shape_of_input(NodeContext& context) {
  if (!context.has_input(0) || !context.type(0).known) return nullptr;
  const auto rank = context.rank(0);
  auto clamp = [&](std::int64_t position) {
    return std::clamp<std::int64_t>(position < 0 ? position + rank : position, 0, rank);
  };
  const std::int64_t start = clamp(context.integer("start", 0));
  const std::int64_t end = clamp(context.integer("end", rank));
  if (context.stopped()) return nullptr;
  Integers out{ElementType::i64, {std::max<std::int64_t>(0, end - start)}, {}};
  for (std::int64_t i = start; i < end; ++i) out.values.push_back(context.shape(0)[static_cast<std::size_t>(i)]);
  return make(out);
}

std::shared_ptr<const ConstantData> cast(NodeContext& context) {
  if (!context.is_constant(0)) return nullptr;
  const ConstantData& input = *context.inputs()[0].constant;
  const auto code = context.integer("to", 0);
  if (context.stopped() || code < 1 || code > 26) return nullptr;
  const ElementType to = element_of(static_cast<std::int32_t>(code));
  const ElementType from = input.type().element;
  // A mask may become zeros and ones to multiply with; lists of numbers stay small.
  const bool is_mask = from == ElementType::boolean && (is_real(to) || to == ElementType::boolean);
  if (input.type().elements() > (is_mask ? mask_limit : size_limit)) return nullptr;
  if (is_real(from) && is_real(to)) return converted(context.inputs()[0].constant, to);
  if (is_real(from) && is_integral(to) && to != ElementType::boolean) {
    Integers out{to, input.type().shape, {}};
    for (const double value : input.to_reals()) {
      const double whole = std::trunc(value);
      if (!(std::abs(whole) < 9.0e18)) return nullptr;
      out.values.push_back(static_cast<std::int64_t>(whole));
    }
    return make(out);
  }
  if (!is_integral(from)) return nullptr;
  const std::vector<std::int64_t> values = input.to_integers();
  if (is_real(to)) {
    const std::vector<double> out(values.begin(), values.end());
    return ConstantData::of_reals({to, input.type().shape, true}, out);
  }
  if (!is_integral(to)) return nullptr;
  Integers out{to, input.type().shape, values};
  if (to == ElementType::boolean)
    for (std::int64_t& value : out.values) value = value != 0 ? 1 : 0;
  return make(out);
}

std::shared_ptr<const ConstantData> concat(NodeContext& context) {
  std::vector<Integers> parts;
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    auto part = read(context, i);
    if (!part || (!parts.empty() && (part->element != parts[0].element || part->shape.size() != parts[0].shape.size())))
      return nullptr;
    parts.push_back(std::move(*part));
  }
  if (parts.empty() || parts[0].shape.empty()) return nullptr;
  const auto rank = static_cast<std::int64_t>(parts[0].shape.size());
  const auto axis = static_cast<std::size_t>(context.axis_from_front(context.integer("axis", 0), rank));
  if (context.stopped()) return nullptr;
  Integers out{parts[0].element, parts[0].shape, {}};
  out.shape[axis] = 0;
  for (const Integers& part : parts) {
    Shape beside = part.shape;
    beside[axis] = out.shape[axis];
    if (beside != out.shape) return nullptr;
    out.shape[axis] += part.shape[axis];
  }
  if (volume(out.shape) > limit_of(out.element)) return nullptr;
  const std::int64_t outer = volume(std::span<const std::int64_t>(out.shape).first(axis));
  for (std::int64_t o = 0; o < outer; ++o)
    for (const Integers& part : parts) {
      const auto run = static_cast<std::ptrdiff_t>(volume(std::span<const std::int64_t>(part.shape).subspan(axis)));
      const auto begin = part.values.begin() + o * run;
      out.values.insert(out.values.end(), begin, begin + run);
    }
  return make(out);
}

std::shared_ptr<const ConstantData> gather(NodeContext& context) {
  const auto data = read(context, 0), index = read(context, 1);
  if (!data || !index || data->shape.empty()) return nullptr;
  const std::int64_t axis =
      context.axis_from_front(context.integer("axis", 0), static_cast<std::int64_t>(data->shape.size()));
  if (context.stopped()) return nullptr;
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t outer = volume(std::span(data->shape).first(at));
  const std::int64_t inner = volume(std::span(data->shape).subspan(at + 1));
  const std::int64_t extent = data->shape[at];
  Integers out{data->element, data->shape, {}};
  out.shape.erase(out.shape.begin() + axis);
  out.shape.insert(out.shape.begin() + axis, index->shape.begin(), index->shape.end());
  if (!is_reasonable(out.shape) || volume(out.shape) > size_limit) return nullptr;
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i : index->values) {
      if (i < -extent || i >= extent) {
        context.fail("index " + std::to_string(i) + " is outside an axis of extent " + std::to_string(extent));
        return nullptr;
      }
      for (std::int64_t k = 0; k < inner; ++k)
        out.values.push_back(
            data->values[static_cast<std::size_t>((o * extent + (i < 0 ? i + extent : i)) * inner + k)]);
    }
  return make(out);
}

std::shared_ptr<const ConstantData> slice(NodeContext& context) {
  const auto data = read(context, 0);
  if (!data) return nullptr;
  std::vector<std::int64_t> starts, ends, steps, axes;
  if (context.opset() < 10) {
    starts = context.integer_list("starts", {});
    ends = context.integer_list("ends", {});
    axes = context.integer_list("axes", {});
  } else {
    for (std::size_t i = 1; i < context.input_count(); ++i)
      if (context.has_input(i) && !read(context, i)) return nullptr;
    starts = context.integers(1);
    ends = context.integers(2);
    if (context.has_input(3)) axes = context.integers(3);
    if (context.has_input(4)) steps = context.integers(4);
  }
  const auto rank = static_cast<std::int64_t>(data->shape.size());
  if (axes.empty())
    for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (context.stopped() || ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size())
    return nullptr;
  // Positions along every axis.
  std::vector<std::vector<std::int64_t>> taken;
  for (const std::int64_t extent : data->shape) {
    taken.emplace_back(static_cast<std::size_t>(extent));
    std::iota(taken.back().begin(), taken.back().end(), 0);
  }
  std::vector<bool> cut(data->shape.size(), false);
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const std::int64_t axis = axes[k] < 0 ? axes[k] + rank : axes[k], step = steps[k];
    if (axis < 0 || axis >= rank || step == 0 || (step < 0 && import_handlers::stands_for_end(ends[k]))) return nullptr;
    const auto at = static_cast<std::size_t>(axis);
    if (cut[at]) return nullptr;
    cut[at] = true;
    const std::int64_t extent = data->shape[at];
    auto clamp = [&](std::int64_t position, std::int64_t low, std::int64_t high) {
      return std::clamp(position < 0 ? position + extent : position, low, std::max(low, high));
    };
    const std::int64_t begin = step > 0 ? clamp(starts[k], 0, extent) : clamp(starts[k], 0, extent - 1);
    const std::int64_t end =
        step > 0 ? clamp(ends[k], 0, extent) : (ends[k] < -extent ? -1 : clamp(ends[k], -1, extent - 1));
    taken[at].clear();
    for (std::int64_t i = begin; i >= 0 && i < extent && (step > 0 ? i < end : i > end);) {
      taken[at].push_back(i);
      if (__builtin_add_overflow(i, step, &i)) break;
    }
  }
  Integers out{data->element, {}, {}};
  for (const auto& positions : taken) out.shape.push_back(static_cast<std::int64_t>(positions.size()));
  const auto count = static_cast<std::size_t>(volume(out.shape));
  out.values.reserve(count);
  for (std::size_t flat = 0; flat < count; ++flat) {
    std::size_t rest = flat, from = 0, stride = 1;
    for (std::size_t axis = taken.size(); axis-- > 0;) {
      from += static_cast<std::size_t>(taken[axis][rest % taken[axis].size()]) * stride;
      rest /= taken[axis].size();
      stride *= static_cast<std::size_t>(data->shape[axis]);
    }
    out.values.push_back(data->values[from]);
  }
  return make(out);
}

/// The upper or lower triangle of matrices.
std::shared_ptr<const ConstantData> triangle(NodeContext& context) {
  auto data = read(context, 0);
  if (!data || data->shape.size() < 2 || volume(data->shape) == 0) return nullptr;
  std::int64_t diagonal = 0;
  if (context.has_input(1)) {
    const auto k = read(context, 1);
    if (!k || k->values.size() != 1) return nullptr;
    diagonal = k->values[0];
  }
  const bool upper = context.integer("upper", 1) != 0;
  if (context.stopped()) return nullptr;
  const std::int64_t rows = data->shape[data->shape.size() - 2], columns = data->shape.back();
  diagonal = std::clamp(diagonal, -rows, columns);  // Beyond the corners all diagonals are alike.
  for (std::size_t i = 0; i < data->values.size(); ++i) {
    const auto flat = static_cast<std::int64_t>(i);
    const std::int64_t distance = flat % columns - flat / columns % rows;
    if (upper ? distance < diagonal : distance > diagonal) data->values[i] = 0;
  }
  return make(*data);
}

std::shared_ptr<const ConstantData> transpose(NodeContext& context) {
  const auto data = read(context, 0);
  if (!data) return nullptr;
  const std::size_t rank = data->shape.size();
  std::vector<std::int64_t> reverse(rank);
  for (std::size_t i = 0; i < rank; ++i) reverse[i] = static_cast<std::int64_t>(rank - 1 - i);
  const std::vector<std::int64_t> perm = context.integer_list("perm", reverse);
  if (context.stopped() || !std::is_permutation(perm.begin(), perm.end(), reverse.begin(), reverse.end()))
    return nullptr;
  Integers out{data->element, {}, {}};
  std::vector<std::size_t> strides;  // In what is read, of each axis of the result.
  for (const std::int64_t axis : perm) {
    const auto from = static_cast<std::size_t>(axis);
    out.shape.push_back(data->shape[from]);
    strides.push_back(static_cast<std::size_t>(volume(std::span(data->shape).subspan(from + 1))));
  }
  for (std::size_t flat = 0; flat < data->values.size(); ++flat) {
    std::size_t rest = flat, source = 0;
    for (std::size_t axis = rank; axis-- > 0;) {
      const auto extent = static_cast<std::size_t>(out.shape[axis]);
      source += rest % extent * strides[axis];
      rest /= extent;
    }
    out.values.push_back(data->values[source]);
  }
  return make(out);
}

/// Slices of a constant of any elements replaced by others, at constant places: how exporters write a mask that is
/// filled region by region.
std::shared_ptr<const ConstantData> scatter_slices(NodeContext& context) {
  const auto places = read(context, 1, mask_limit);
  if (!places || places->shape.empty() || context.text("reduction", "none") != "none" || context.stopped())
    return nullptr;
  const auto &data = context.inputs()[0].constant, &updates = context.inputs()[2].constant;
  const TensorType& type = data->type();
  const auto depth = static_cast<std::size_t>(places->shape.back());
  if (type.element == ElementType::other || updates->type().element != type.element || type.elements() > mask_limit ||
      depth == 0 || depth > type.shape.size())
    return nullptr;
  const std::span<const std::int64_t> shape(type.shape);
  Shape expected(places->shape.begin(), places->shape.end() - 1);
  expected.insert(expected.end(), shape.begin() + static_cast<std::ptrdiff_t>(depth), shape.end());
  if (updates->type().shape != expected) return nullptr;
  const std::size_t slice_bytes = static_cast<std::size_t>(volume(shape.subspan(depth))) * size_of(type.element);
  std::vector<std::byte> bytes = data->to_bytes();
  const std::vector<std::byte> replacements = updates->to_bytes();
  std::set<std::int64_t> replaced;  // Twice: which one stays is not defined.
  for (std::size_t i = 0; i * depth < places->values.size(); ++i) {
    std::int64_t slice = 0;
    for (std::size_t axis = 0; axis < depth; ++axis) {
      const std::int64_t place = places->values[i * depth + axis], extent = shape[axis];
      if (place < -extent || place >= extent) {
        context.fail("index " + std::to_string(place) + " is outside an axis of extent " + std::to_string(extent));
        return nullptr;
      }
      slice = slice * extent + (place < 0 ? place + extent : place);
    }
    if (!replaced.insert(slice).second) return nullptr;
    std::copy_n(replacements.begin() + static_cast<std::ptrdiff_t>(i * slice_bytes), slice_bytes,
                bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(slice) * slice_bytes));
  }
  return ConstantData::own(type, std::move(bytes));
}

/// Reshape, Squeeze, Unsqueeze, Flatten, Identity: other shapes of the same values. Found by the float handlers' rules
/// on shapes, here for small integers only.
std::shared_ptr<const ConstantData> rearrange(NodeContext& context, std::string_view op) {
  auto data = read(context, 0);
  if (!data) return nullptr;
  const std::int64_t limit = limit_of(data->element);
  if (op == "Reshape") {
    if (!read(context, 1)) return nullptr;
    Shape shape = context.integers(1);
    const bool zero_is_zero = context.integer("allowzero", 0) != 0;
    std::int64_t known = 1, open = -1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] == 0 && !zero_is_zero && i < data->shape.size()) shape[i] = data->shape[i];
      if (shape[i] == -1) {
        if (open >= 0) return nullptr;
        open = static_cast<std::int64_t>(i);
      } else if (shape[i] < 0 || shape[i] > limit) {
        return nullptr;
      } else {
        known *= shape[i];
        if (known > limit) return nullptr;
      }
    }
    if (open >= 0) {
      if (known == 0 || volume(data->shape) % known != 0) return nullptr;
      shape[static_cast<std::size_t>(open)] = volume(data->shape) / known;
    }
    data->shape = shape;
  } else if (op == "Squeeze" || op == "Unsqueeze") {
    std::vector<std::int64_t> axes;
    if (context.opset() >= 13) {
      if (context.has_input(1)) {
        if (!read(context, 1)) return nullptr;
        axes = context.integers(1);
      }
    } else {
      axes = context.integer_list("axes", {});
    }
    const bool squeeze = op == "Squeeze";
    if (squeeze && axes.empty())
      for (std::size_t i = 0; i < data->shape.size(); ++i)
        if (data->shape[i] == 1) axes.push_back(static_cast<std::int64_t>(i));
    const auto rank = static_cast<std::int64_t>(data->shape.size() + (squeeze ? 0 : axes.size()));
    for (std::int64_t& axis : axes) axis = context.axis_from_front(axis, rank);
    if (context.stopped()) return nullptr;
    std::sort(axes.begin(), axes.end());
    if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) return nullptr;
    if (squeeze) {
      for (const std::int64_t axis : reversed(axes)) {
        if (data->shape[static_cast<std::size_t>(axis)] != 1) return nullptr;
        data->shape.erase(data->shape.begin() + axis);
      }
    } else {
      for (std::int64_t axis : axes) data->shape.insert(data->shape.begin() + axis, 1);
    }
  }
  if (context.stopped() || volume(data->shape) != static_cast<std::int64_t>(data->values.size())) return nullptr;
  return make(*data);
}

std::shared_ptr<const ConstantData> constant_of_shape(NodeContext& context) {
  if (!context.is_constant(0)) return nullptr;
  const Shape shape = context.integers(0);
  if (context.stopped()) return nullptr;
  if (!is_reasonable(shape)) {
    context.fail("shape " + shape_text(shape) + " is negative or has more than 2^40 elements");
    return nullptr;
  }
  TensorType type{ElementType::f32, shape, true};
  std::vector<std::byte> element(sizeof(float));
  for (const auto& attribute : context.proto().attribute()) {
    if (attribute.name() != "value") return nullptr;
    if (!attribute.has_t()) {
      context.fail("attribute \"value\" holds no tensor");
      return nullptr;
    }
    ExternalData none("");
    auto contents = read_contents(attribute.t(), nullptr, none, nullptr);
    if (!contents) {
      context.fail("attribute \"value\": " + contents.error().message);
      return nullptr;
    }
    if (contents->type.element == ElementType::other) return nullptr;
    if (contents->type.elements() != 1) {
      context.fail("attribute \"value\" must have one element, it is " + to_string(contents->type));
      return nullptr;
    }
    type.element = contents->type.element;
    element.assign(contents->bytes.bytes.begin(), contents->bytes.bytes.end());
  }
  // Small ones are spelled out, so that equal constants are recognised however they were made.
  if (type.elements() <= 16) {
    std::vector<std::byte> bytes;
    for (std::int64_t i = 0; i < type.elements(); ++i) bytes.insert(bytes.end(), element.begin(), element.end());
    return ConstantData::own(type, std::move(bytes));
  }
  return ConstantData::splat(type, std::move(element));
}

std::shared_ptr<const ConstantData> range(NodeContext& context) {
  const auto start = read(context, 0), limit = read(context, 1), delta = read(context, 2);
  if (!start || !limit || !delta || start->values.size() != 1 || limit->values.size() != 1 ||
      delta->values.size() != 1 || delta->values[0] == 0)
    return nullptr;
  Integers out{start->element, {0}, {}};
  const std::int64_t step = delta->values[0];
  for (std::int64_t i = start->values[0]; step > 0 ? i < limit->values[0] : i > limit->values[0];) {
    if (static_cast<std::int64_t>(out.values.size()) >= size_limit) return nullptr;
    out.values.push_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  out.shape[0] = static_cast<std::int64_t>(out.values.size());
  return make(out);
}

/// Floats that are whole numbers, so that it does not matter how they are added up.
std::shared_ptr<const ConstantData> range_of_floats(NodeContext& context) {
  constexpr double exact = 1 << 24;  // Up to here every whole number is an f32.
  const ElementType element = context.type(0).element;
  std::vector<double> numbers;
  for (std::size_t i = 0; i < 3; ++i) {
    if (context.type(i).element != element || context.type(i).elements() != 1) return nullptr;
    numbers.push_back(context.inputs()[i].constant->to_reals()[0]);
    if (!(std::abs(numbers.back()) < exact) || std::trunc(numbers.back()) != numbers.back()) return nullptr;
  }
  const double start = numbers[0], step = numbers[2];
  const double count = step == 0 ? -1 : std::max(std::ceil((numbers[1] - start) / step), 0.0);
  if (count < 0 || count > static_cast<double>(mask_limit)) return nullptr;
  std::vector<double> values;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i)
    values.push_back(start + static_cast<double>(i) * step);
  return ConstantData::of_reals({element, {static_cast<std::int64_t>(values.size())}, true}, values);
}

/// Elements of any type, as a mask tells.
std::shared_ptr<const ConstantData> where(NodeContext& context) {
  const auto condition = read(context, 0);
  if (!condition || condition->element != ElementType::boolean) return nullptr;
  const TensorType &a = context.type(1), &b = context.type(2);
  if (a.element != b.element || (!is_integral(a.element) && a.element != ElementType::f32)) return nullptr;
  const Shape shape = context.common_shape({condition->shape, a.shape, b.shape});
  const std::int64_t limit = a.element == ElementType::f32 ? mask_limit : size_limit;
  if (context.stopped() || volume(shape) > limit || a.elements() > limit || b.elements() > limit) return nullptr;
  const std::vector<std::byte> first = context.inputs()[1].constant->to_bytes(),
                               second = context.inputs()[2].constant->to_bytes();
  const std::size_t width = size_of(a.element);
  std::vector<std::byte> bytes(static_cast<std::size_t>(volume(shape)) * width);
  for (std::size_t i = 0; i < static_cast<std::size_t>(volume(shape)); ++i) {
    const bool chosen = condition->values[broadcast_index(i, shape, condition->shape)] != 0;
    const std::size_t from = broadcast_index(i, shape, chosen ? a.shape : b.shape);
    std::copy_n((chosen ? first : second).data() + from * width, width, bytes.data() + i * width);
  }
  return ConstantData::own({a.element, shape, true}, std::move(bytes));
}

/// Elements of small lists, each taken along an axis where an index of the same place says.
std::shared_ptr<const ConstantData> gather_elements(NodeContext& context) {
  const auto data = read(context, 0), index = read(context, 1);
  if (!data || !index || data->shape.empty() || data->shape.size() != index->shape.size()) return nullptr;
  const auto rank = static_cast<std::int64_t>(data->shape.size());
  const auto axis = static_cast<std::size_t>(context.axis_from_front(context.integer("axis", 0), rank));
  if (context.stopped()) return nullptr;
  for (std::size_t i = 0; i < data->shape.size(); ++i)
    if (i != axis && index->shape[i] > data->shape[i]) return nullptr;
  Integers out{data->element, index->shape, {}};
  for (std::size_t flat = 0; flat < index->values.size(); ++flat) {
    const std::int64_t extent = data->shape[axis], place = index->values[flat];
    if (place < -extent || place >= extent) return nullptr;
    std::size_t rest = flat, from = 0, stride = 1;
    for (std::size_t i = data->shape.size(); i-- > 0;) {
      const auto own = static_cast<std::size_t>(index->shape[i]);
      from += (i == axis ? static_cast<std::size_t>(place < 0 ? place + extent : place) : rest % own) * stride;
      rest /= own;
      stride *= static_cast<std::size_t>(data->shape[i]);
    }
    out.values.push_back(data->values[from]);
  }
  return make(out);
}

/// Comparisons of constant floats, which make masks.
std::shared_ptr<const ConstantData> compare_floats(NodeContext& context, std::string_view op) {
  if (context.type(1).element != ElementType::f32) return nullptr;
  Integers out{ElementType::boolean, context.common_shape({context.shape(0), context.shape(1)}), {}};
  if (context.stopped() || volume(out.shape) > mask_limit || context.type(0).elements() > mask_limit ||
      context.type(1).elements() > mask_limit)
    return nullptr;
  const std::vector<float> a = context.inputs()[0].constant->to_floats(), b = context.inputs()[1].constant->to_floats();
  for (std::size_t i = 0; i < static_cast<std::size_t>(volume(out.shape)); ++i) {
    const float x = a[broadcast_index(i, out.shape, context.shape(0))],
                y = b[broadcast_index(i, out.shape, context.shape(1))];
    const bool holds = op == "Equal"         ? x == y
                       : op == "Less"        ? x < y
                       : op == "LessOrEqual" ? x <= y
                       : op == "Greater"     ? x > y
                                             : x >= y;
    out.values.push_back(holds ? 1 : 0);
  }
  return make(out);
}

std::shared_ptr<const ConstantData> expand(NodeContext& context) {
  const auto data = read(context, 0);
  if (!data || !read(context, 1)) return nullptr;
  const Shape target = context.integers(1);
  if (context.stopped() || !is_reasonable(target)) return nullptr;
  Integers out{data->element, context.common_shape({data->shape, target}), {}};
  if (context.stopped() || volume(out.shape) > limit_of(out.element)) return nullptr;
  for (std::size_t i = 0; i < static_cast<std::size_t>(volume(out.shape)); ++i)
    out.values.push_back(data->values[broadcast_index(i, out.shape, data->shape)]);
  return make(out);
}

/// A list, to the one number that it makes.
std::shared_ptr<const ConstantData> reduce(NodeContext& context, std::string_view op) {
  const auto data = read(context, 0);
  if (!data || data->shape.size() > 1 || data->values.empty()) return nullptr;
  std::vector<std::int64_t> axes = {0};
  if (context.has_input(1)) {
    if (!read(context, 1)) return nullptr;
    axes = context.integers(1);
  } else {
    axes = context.integer_list("axes", {0});
    if (!context.has_attribute("axes") && context.integer("noop_with_empty_axes", 0) != 0) return make(*data);
  }
  const bool keep = context.integer("keepdims", 1) != 0;
  if (context.stopped() || axes.size() != 1 || (axes[0] != 0 && axes[0] != -1)) return nullptr;
  std::int64_t result = data->values[0];
  for (std::size_t i = 1; i < data->values.size(); ++i) {
    const std::int64_t value = data->values[i];
    if (op == "ReduceMax") {
      result = std::max(result, value);
    } else if (op == "ReduceMin") {
      result = std::min(result, value);
    } else if (op == "ReduceSum" ? __builtin_add_overflow(result, value, &result)
                                 : __builtin_mul_overflow(result, value, &result)) {
      return nullptr;
    }
  }
  return make({data->element, keep && !data->shape.empty() ? Shape{1} : Shape{}, {result}});
}

std::shared_ptr<const ConstantData> unary(NodeContext& context, std::string_view op) {
  auto data = read(context, 0);
  if (!data) return nullptr;
  for (std::int64_t& value : data->values) {
    if (value == std::numeric_limits<std::int64_t>::min()) return nullptr;
    value = op == "Neg" ? -value : op == "Abs" ? std::abs(value) : value == 0 ? 1 : 0;
  }
  return make(*data);
}

}  // namespace

std::size_t broadcast_index(std::size_t flat, const Shape& target, const Shape& shape) {
  std::size_t index = 0, stride = 1;
  for (std::size_t back = 1; back <= target.size(); ++back) {
    const auto extent = static_cast<std::size_t>(target[target.size() - back]);
    const std::size_t coordinate = flat % extent;
    flat /= extent;
    if (back > shape.size()) continue;
    const auto own = static_cast<std::size_t>(shape[shape.size() - back]);
    if (own != 1) index += coordinate * stride;
    stride *= own;
  }
  return index;
}

bool makes_masks(std::string_view op_type) {
  return op_type == "Where" || op_type == "ScatterND" || op_type == "Range" || comparison(op_type) != nullptr;
}

bool computes_constants(std::string_view op_type) {
  static const std::set<std::string_view> all = {"Abs",
                                                 "Add",
                                                 "And",
                                                 "Cast",
                                                 "Concat",
                                                 "ConstantOfShape",
                                                 "Div",
                                                 "Equal",
                                                 "Expand",
                                                 "Gather",
                                                 "GatherElements",
                                                 "Greater",
                                                 "GreaterOrEqual",
                                                 "Less",
                                                 "LessOrEqual",
                                                 "Max",
                                                 "Min",
                                                 "Mod",
                                                 "Mul",
                                                 "Neg",
                                                 "Not",
                                                 "Or",
                                                 "Range",
                                                 "ReduceMax",
                                                 "ReduceMin",
                                                 "ReduceProd",
                                                 "ReduceSum",
                                                 "Reshape",
                                                 "ScatterND",
                                                 "Shape",
                                                 "Size",
                                                 "Slice",
                                                 "Squeeze",
                                                 "Sub",
                                                 "Transpose",
                                                 "Trilu",
                                                 "Unsqueeze",
                                                 "Where",
                                                 "Xor"};
  return all.contains(op_type);
}

std::shared_ptr<const ConstantData> fold_integers(NodeContext& context) {
  if (!computes_constants(context.proto().op_type())) return nullptr;
  if (context.stopped() || context.output_count() != 1) return nullptr;
  const std::string& op = context.proto().op_type();
  if (op == "Shape") return shape_of_input(context);
  if (op == "Size") {
    if (!context.has_input(0) || !context.type(0).known) return nullptr;
    return make({ElementType::i64, {}, {context.type(0).elements()}});
  }
  if (op == "ConstantOfShape") return constant_of_shape(context);
  // All others need constant inputs.
  if (context.input_count() == 0) return nullptr;
  for (std::size_t i = 0; i < context.input_count(); ++i)
    if (context.has_input(i) && !context.is_constant(i)) return nullptr;
  if (op == "Cast") return cast(context);
  if (op == "Concat") return concat(context);
  if (op == "Gather") return gather(context);
  if (op == "GatherElements" && context.input_count() == 2) return gather_elements(context);
  if (op == "Slice") return slice(context);
  if (op == "Transpose") return transpose(context);
  if (op == "ScatterND" && context.input_count() == 3) return scatter_slices(context);
  if (op == "Trilu") return triangle(context);
  if (op == "Range" && context.input_count() == 3 && is_real(context.type(0).element)) return range_of_floats(context);
  if (op == "Range") return range(context);
  if (op == "Where" && context.input_count() == 3) return where(context);
  if (comparison(op) && context.input_count() == 2 && context.type(0).element == ElementType::f32)
    return compare_floats(context, op);
  if (op == "Expand") return expand(context);
  if (op.starts_with("Reduce")) return reduce(context, op);
  if (op == "Neg" || op == "Abs" || op == "Not") return unary(context, op);
  if (op == "Reshape" || op == "Squeeze" || op == "Unsqueeze") return rearrange(context, op);
  if (const Binary function = arithmetic(op, context); function && context.input_count() == 2)
    return elementwise(context, context.type(0).element, function);
  if (const Binary function = comparison(op); function && context.input_count() == 2)
    return elementwise(context, ElementType::boolean, function);
  return nullptr;
}

}  // namespace taso
