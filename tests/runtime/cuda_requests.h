/// Random requests for kernels of the CUDA backend, and what the operators' definitions say about them. Shared by the
/// tests that run the kernels' functions on the host and those that need a device.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/access.h"
#include "runtime/cuda/scalar.h"
#include "runtime/storage.h"
#include "runtime/strides.h"
#include "support/random.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {

/// Draws requests of one operator: types, layouts, attributes.
class RequestMaker {
 public:
  explicit RequestMaker(std::uint64_t seed) : random_(seed, "requests") {}

  /// Operators that make() knows.
  [[nodiscard]] static std::vector<std::string> operators() {
    return {"add",
            "sub",
            "mul",
            "div",
            "pow",
            "maximum",
            "remainder",
            "variadic_sum",
            "smul",
            "neg",
            "abs",
            "sqrt",
            "exp",
            "log",
            "erf",
            "tanh",
            "sin",
            "cos",
            "tan",
            "atan",
            "sinh",
            "cosh",
            "asinh",
            "floor",
            "ceil",
            "round",
            "sign",
            "sigmoid",
            "relu",
            "gelu",
            "gelu_tanh",
            "silu",
            "quick_gelu",
            "hard_swish",
            "hard_sigmoid",
            "clip",
            "apply",
            "concat",
            "split",
            "slice",
            "transpose",
            "reshape",
            "broadcast",
            "pad",
            "enlarge",
            "pad_channels",
            "regroup",
            "reorder",
            "gather",
            "max_pool2d",
            "avg_pool2d_include",
            "avg_pool2d_exclude",
            "global_avg_pool",
            "reduce_sum",
            "reduce_mean",
            "reduce_max",
            "softmax",
            "layer_norm",
            "rms_norm",
            "batch_norm",
            "group_norm",
            "lrn",
            "rotary_embedding"};
  }

  /// A request; nothing where the attributes drawn do not fit (draw again).
  std::optional<KernelRequest> make(const std::string& op, ElementType element = ElementType::f32) {
    element_ = element;
    Attributes attributes;
    std::vector<TensorType> inputs;
    const bool images = op.find("pool2d") != std::string::npos || op == "lrn" || op == "batch_norm" ||
                        op == "group_norm" || op == "global_avg_pool" || op == "enlarge" || op == "pad_channels" ||
                        op == "regroup";
    const Shape shape = images ? image() : any(op == "apply" || is_pointwise(op) || op == "broadcast" ? 0 : 1);
    const auto rank = static_cast<std::int64_t>(shape.size());
    inputs.push_back(of(shape));
    if (is_binary(op)) return pointwise(op, shape);
    if (op == "smul") inputs.push_back(of({}));
    if (op == "clip") attributes = {{"min", -0.25}, {"max", 0.5}};
    if (op == "apply") {
      const std::vector<std::string> names = {"identity", "square", "gelu", "hard_swish", "relu", "silu"};
      attributes = {{"act", SymbolValue{names[random_.below(names.size())]}}};
    }
    if (op == "reorder") {
      KernelRequest request{op, {}, {operand(inputs[0])}, {operand(inputs[0])}, 1};
      return request;
    }
    if (op == "concat") {
      const std::int64_t axis = -1 - below(rank);
      for (std::int64_t more = below(3); more > 0; --more) {
        Shape next = shape;
        next[static_cast<std::size_t>(rank + axis)] = 1 + below(6);
        inputs.push_back(of(next));
      }
      attributes = {{"axis", axis}};
    }
    if (op == "split") {
      const std::int64_t axis = -1 - below(rank);
      const std::int64_t extent = shape[static_cast<std::size_t>(rank + axis)], first = below(extent + 1);
      attributes = {{"axis", axis}, {"sizes", std::vector<std::int64_t>{first, extent - first}}};
    }
    if (op == "slice") {
      std::vector<std::int64_t> starts, sizes, steps;
      for (const std::int64_t extent : shape) {
        const std::int64_t start = below(extent), step = random_.below(3) == 0 ? -1 : 1 + below(2);
        const std::int64_t most = step > 0 ? (extent - 1 - start) / step + 1 : start + 1;
        starts.push_back(start);
        steps.push_back(step);
        sizes.push_back(1 + below(most));
      }
      attributes = {{"starts", starts}, {"sizes", sizes}, {"steps", steps}};
    }
    if (op == "transpose") {
      std::vector<std::int64_t> perm;
      for (std::int64_t i = 0; i < rank; ++i) perm.insert(perm.begin() + below(i + 1), i);
      attributes = {{"perm", perm}};
    }
    if (op == "reshape") attributes = {{"shape", std::vector<std::int64_t>{volume(shape)}}};
    if (op == "broadcast") {
      inputs[0] = of(narrowed(shape));
      attributes = {{"shape", std::vector<std::int64_t>(shape)}};
    }
    if (op == "pad") {
      std::vector<std::int64_t> before, after;
      for (std::size_t i = 0; i < shape.size(); ++i) {
        before.push_back(below(4) - 1);
        after.push_back(below(4) - 1);
      }
      attributes = {{"before", before}, {"after", after}, {"value", 0.75}};
    }
    if (op == "enlarge") attributes = {{"margin", std::vector<std::int64_t>{below(3), below(3), below(3), below(3)}}};
    if (op == "pad_channels") attributes = {{"outputs", below(3)}, {"inputs", 1 + below(3)}};
    if (op == "regroup") {
      const std::int64_t groups = 1 + below(3), factor = 2 + below(2);
      inputs[0] = of({groups * factor * (1 + below(3)), shape[1], shape[2], shape[3]});
      attributes = {{"groups", groups}, {"factor", factor}};
    }
    if (op == "gather") {
      const std::int64_t axis = -1 - below(rank);
      Shape index;
      for (std::int64_t more = below(3); more > 0; --more) index.push_back(1 + below(4));
      attributes = {{"axis", axis}};
      inputs.push_back({random_.below(2) == 0 ? ElementType::i64 : ElementType::i32, index});
    }
    if (op.find("pool2d") != std::string::npos) {
      attributes = {{"kernel", pair(1, 3)},
                    {"strides", pair(1, 2)},
                    {"pads", std::vector<std::int64_t>{below(2), below(2), below(2), below(2)}}};
      if (op == "max_pool2d") attributes.set("dilations", pair(1, 2));
    }
    if (op.rfind("reduce_", 0) == 0) {
      std::vector<std::int64_t> axes;
      for (std::int64_t axis = -rank; axis < 0; ++axis)
        if (random_.below(2) == 0) axes.push_back(axis);
      attributes = {{"axes", axes}};
    }
    if (op == "softmax") attributes = {{"axis", -1 - below(rank)}};
    if (op == "layer_norm")
      for (int i = 0; i < 2; ++i) inputs.push_back(of({shape.back()}));
    if (op == "rms_norm") inputs.push_back(of({shape.back()}));
    if (op == "batch_norm")
      for (int i = 0; i < 4; ++i) inputs.push_back(of({shape[1]}));
    if (op == "group_norm") {
      const std::vector<std::string> names = {"identity", "silu", "quick_gelu"};
      std::int64_t groups = 1 + below(4);
      if (shape[1] % groups != 0) groups = random_.below(2) == 0 ? 1 : shape[1];
      for (int i = 0; i < 2; ++i) inputs.push_back(of({shape[1]}));
      attributes = {{"groups", groups}, {"act", SymbolValue{names[random_.below(names.size())]}}};
    }
    if (op == "rotary_embedding") {
      // The tables may have a first axis of their own.
      const std::int64_t pairs = 1 + below(5), columns = 1 + below(2), axis = -2 - below(2);
      const Shape heads = {1 + below(3), 1 + below(4), 1 + below(4), 2 * pairs + below(3)};
      const std::int64_t positions = heads[static_cast<std::size_t>(4 + axis)];
      Shape table = {positions, columns * pairs};
      if (random_.below(2) == 0) table.insert(table.begin(), heads[0]);
      inputs = {of(heads), of(table), of(table)};
      attributes = {{"axis", axis}, {"columns", columns}};
    }
    if (op == "lrn") attributes = {{"size", 1 + below(6)}, {"alpha", 0.3}, {"beta", 0.75}, {"bias", 1.5}};
    return complete(op, attributes, inputs);
  }

  /// Operators that word() knows: on integers, truth values, and several types.
  [[nodiscard]] static std::vector<std::string> word_operators() {
    return {"bitwise_and",     "bitwise_not", "bitwise_or",  "bitwise_xor",        "cast",
            "equal",           "integer_abs", "integer_add", "integer_equal",      "integer_less",
            "integer_neg",     "integer_sub", "integer_mul", "integer_less_equal", "integer_maximum",
            "integer_minimum", "is_nan",      "less",        "less_equal",         "logical_and",
            "logical_equal",   "logical_not", "logical_or",  "logical_xor",        "select"};
  }

  /// A request of one of these, of random types.
  std::optional<KernelRequest> word(const std::string& op) {
    static const std::vector<ElementType> integers = {ElementType::i8,  ElementType::i16, ElementType::i32,
                                                      ElementType::i64, ElementType::u8,  ElementType::u16,
                                                      ElementType::u32, ElementType::u64};
    const auto any_type = [&] {
      const std::int64_t choice = below(10);
      return choice < 8    ? integers[static_cast<std::size_t>(choice)]
             : choice == 8 ? ElementType::boolean
                           : ElementType::f32;
    };
    element_ = integers[static_cast<std::size_t>(below(8))];
    if (op.starts_with("logical")) element_ = ElementType::boolean;
    if (op == "less" || op == "less_equal" || op == "equal" || op == "is_nan") element_ = ElementType::f32;
    if (op == "cast" || op == "select") element_ = any_type();
    const Shape shape = any(0);
    Attributes attributes;
    std::vector<TensorType> inputs = {of(shape)};
    if (op == "select") inputs = {{ElementType::boolean, shape}, of(shape), of(shape)};
    const bool unary = op == "cast" || op == "is_nan" || op == "integer_abs" || op == "integer_neg" ||
                       op == "bitwise_not" || op == "logical_not";
    if (!unary && op != "select") inputs.push_back(of(shape));
    if (op == "cast") attributes = {{"to", SymbolValue{to_string(any_type())}}};
    return complete(op, attributes, inputs);
  }

  /// A convolution with random parameters.
  std::optional<KernelRequest> convolution(const std::string& op, ElementType element) {
    element_ = element;
    const std::int64_t groups = std::vector<std::int64_t>{1, 1, 2, 4}[random_.below(4)];
    const std::int64_t c = 1 + below(5), o = 1 + below(5);
    const std::int64_t r = 1 + below(3), s = 1 + below(3);
    std::vector<TensorType> inputs = {of({1 + below(2), groups * c, 6 + below(6), 6 + below(6)}),
                                      of({groups * o, c, r, s})};
    Attributes attributes = {{"strides", pair(1, 2)},
                             {"pads", std::vector<std::int64_t>{below(3), below(3), below(3), below(3)}},
                             {"dilations", pair(1, 2)}};
    if (op != "conv2d") {
      inputs.push_back(of({groups * o}));
      const std::vector<std::string> acts = {"identity", "relu", "gelu", "sigmoid"};
      attributes.set("act", SymbolValue{acts[random_.below(acts.size())]});
    }
    if (op == "conv2d_bias_add_act") {
      const auto without = registry().infer("conv2d_bias_act", attributes, inputs);
      if (!without) return std::nullopt;
      inputs.push_back((*without)[0]);
    }
    auto request = complete(op, attributes, inputs);
    if (!request) return std::nullopt;
    const Layout layout = random_.below(2) == 0 ? Layout::row_major : Layout::channels_last;
    request->inputs[0].layout = request->outputs[0].layout = layout;
    request->inputs[1].layout = Layout::row_major;
    if (op == "conv2d_bias_add_act") request->inputs[3].layout = random_.below(4) == 0 ? Layout::row_major : layout;
    request->inputs[1].weight = random_.below(2) == 0;
    return request;
  }

  /// A product with random batches and layouts.
  std::optional<KernelRequest> product(const std::string& op, ElementType element) {
    element_ = element;
    Shape batch_a, batch_b;
    for (std::int64_t more = below(3); more > 0; --more) batch_b.push_back(1 + below(3));
    for (std::int64_t more = below(2); more > 0; --more) batch_a.push_back(1 + below(3));
    batch_a.insert(batch_a.end(), batch_b.begin(), batch_b.end());
    const std::int64_t m = 1 + below(7), k = 1 + below(7), n = 1 + below(7);
    for (const std::int64_t extent : {m, k}) batch_a.push_back(extent);
    for (const std::int64_t extent : {k, n}) batch_b.push_back(extent);
    std::vector<TensorType> inputs = {of(batch_a), of(batch_b)};
    Attributes attributes;
    if (op == "matmul_bias_act") {
      inputs.push_back(of({n}));
      const std::vector<std::string> acts = {"identity", "relu", "gelu", "tanh"};
      attributes.set("act", SymbolValue{acts[random_.below(acts.size())]});
    }
    auto request = complete(op, attributes, inputs);
    if (!request) return std::nullopt;
    for (Operand* operand : {&request->inputs[0], &request->inputs[1], &request->outputs[0]}) {
      const std::vector<Layout> layouts = {Layout::row_major, Layout::column_major, Layout::rows_outer,
                                           Layout::columns_outer};
      const Layout drawn = layouts[random_.below(layouts.size())];
      operand->layout = fits(drawn, operand->type.shape) ? drawn : Layout::row_major;
    }
    return request;
  }

  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(bound)));
  }

 private:
  static bool is_binary(const std::string& op) {
    return op == "add" || op == "sub" || op == "mul" || op == "div" || op == "pow" || op == "maximum" ||
           op == "remainder" || op == "variadic_sum";
  }
  static bool is_pointwise(const std::string& op) {
    const auto names = operators();
    return std::find(names.begin(), names.end(), op) - names.begin() < 33;
  }
  [[nodiscard]] TensorType of(Shape shape) const { return {element_, std::move(shape)}; }
  std::int64_t extent() {
    const std::int64_t choice = below(8);
    return choice == 0 ? 1 : choice == 1 ? 33 + below(8) : choice == 2 ? 4 * (1 + below(4)) : 1 + below(7);
  }
  Shape any(std::int64_t least_rank) {
    Shape shape;
    for (std::int64_t rank = least_rank + below(6 - least_rank); rank > 0; --rank) shape.push_back(extent());
    while (volume(shape) > 20000) *std::max_element(shape.begin(), shape.end()) = 2;
    return shape;
  }
  Shape image() { return {1 + below(2), extent(), 1 + below(9), 3 + below(9)}; }
  std::vector<std::int64_t> pair(std::int64_t least, std::int64_t most) {
    return {least + below(most - least + 1), least + below(most - least + 1)};
  }
  /// A shape that broadcasts to `shape`.
  Shape narrowed(const Shape& shape) {
    Shape result;
    for (const std::int64_t one : shape) result.push_back(random_.below(3) == 0 ? 1 : one);
    result.erase(result.begin(), result.begin() + below(static_cast<std::int64_t>(result.size()) + 1));
    return random_.below(2) == 0 ? shape : result;
  }
  Operand operand(const TensorType& type) {
    std::vector<Layout> possible;
    for (const Layout layout :
         {Layout::row_major, Layout::channels_last, Layout::column_major, Layout::rows_outer, Layout::columns_outer})
      if (fits(layout, type.shape)) possible.push_back(layout);
    return {type, random_.below(3) == 0 ? Layout::row_major : possible[random_.below(possible.size())], false};
  }
  std::optional<KernelRequest> pointwise(const std::string& op, const Shape& shape) {
    KernelRequest request{op, {}, {}, {operand(of(shape))}, 1};
    const bool swapped = random_.below(2) == 0;
    for (const bool whole : {!swapped, swapped}) request.inputs.push_back(operand(of(whole ? shape : narrowed(shape))));
    return request;
  }
  std::optional<KernelRequest> complete(const std::string& op, const Attributes& attributes,
                                        const std::vector<TensorType>& inputs) {
    const auto completed = registry().complete(op, attributes);
    if (!completed) return std::nullopt;
    const auto outputs = registry().infer(op, *completed, inputs);
    if (!outputs) return std::nullopt;
    KernelRequest request{op, *completed, {}, {}, 1};
    for (const TensorType& type : inputs) request.inputs.push_back(operand(type));
    for (const TensorType& type : *outputs) request.outputs.push_back(operand(type));
    if (op == "reshape") request.inputs[0].layout = request.outputs[0].layout = Layout::row_major;
    return request;
  }

  Random random_;
  ElementType element_ = ElementType::f32;
};

/// Bytes of an operand somewhere in a larger buffer, so that writes beside it show and addresses are not always aligned
/// to more than an element.
class Placed {
 public:
  Placed(const Operand& operand, std::size_t offset_elements)
      : operand_(operand),
        size_(static_cast<std::size_t>(spanned_bytes(operand))),
        offset_(margin + offset_elements * size_of(operand.type.element)),
        buffer_(offset_ + size_ + margin) {
    std::memset(buffer_.data(), 0xff, buffer_.size());
  }
  [[nodiscard]] std::byte* data() { return buffer_.data() + offset_; }
  [[nodiscard]] const std::byte* data() const { return buffer_.data() + offset_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  /// The elements one after the other.
  [[nodiscard]] AlignedBuffer elements() const {
    AlignedBuffer one_run(static_cast<std::size_t>(operand_.type.bytes()));
    gather_runs(operand_, data(), one_run.data());
    return one_run;
  }
  /// Whether nothing is written round the elements, nor between them.
  [[nodiscard]] bool is_clean_around() const {
    const ByteRuns runs = runs_of(operand_);
    for (std::size_t i = 0; i < buffer_.size(); ++i) {
      const bool is_own = i >= offset_ && i < offset_ + size_ && (i - offset_) % runs.distance < runs.bytes;
      if (!is_own && buffer_.data()[i] != std::byte{0xff}) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t margin = 256;
  Operand operand_;
  std::size_t size_, offset_;
  AlignedBuffer buffer_;
};

inline double element_at(const std::byte* bytes, std::size_t i, ElementType element) {
  if (element == ElementType::f16) {
    cuda::Half value{};
    std::memcpy(&value, bytes + 2 * i, 2);
    return cuda::widen(value);
  }
  if (element == ElementType::bf16) {
    cuda::BFloat16 value{};
    std::memcpy(&value, bytes + 2 * i, 2);
    return cuda::widen(value);
  }
  float value = 0;
  std::memcpy(&value, bytes + 4 * i, 4);
  return value;
}
inline void set_element(std::byte* bytes, std::size_t i, ElementType element, float value) {
  if (element == ElementType::f16) {
    const cuda::Half rounded = cuda::narrow<cuda::Half>(value);
    std::memcpy(bytes + 2 * i, &rounded, 2);
  } else if (element == ElementType::bf16) {
    const cuda::BFloat16 rounded = cuda::narrow<cuda::BFloat16>(value);
    std::memcpy(bytes + 2 * i, &rounded, 2);
  } else {
    std::memcpy(bytes + 4 * i, &value, 4);
  }
}

inline bool is_float(ElementType element) {
  return element == ElementType::f32 || element == ElementType::f16 || element == ElementType::bf16;
}

/// Lets the outputs of a request lie within wider tensors, along any axis.
inline void draw_wholes(KernelRequest& request, Random& random) {
  for (Operand& output : request.outputs) {
    const Shape& shape = output.type.shape;
    if (shape.empty()) continue;
    const auto axis = static_cast<std::uint32_t>(random.below(shape.size()));
    output.within = {axis, shape[axis] + static_cast<std::int64_t>(random.below(5))};
  }
}

/// A request with operands: values drawn, and the outputs that the reference kernel computes in f32.
struct Example {
  KernelRequest request;
  std::vector<Placed> inputs;
  std::vector<AlignedBuffer> expected;  ///< f32, or the outputs' integers; in the outputs' layouts.

  /// `shift`: by how many elements operands begin behind a multiple of 16 bytes; by 0 or 1 at random without it.
  Example(const KernelRequest& asked, std::uint64_t seed, std::optional<std::size_t> shift = {},
          const KernelLibrary& reference = library(KernelSet::reference))
      : request(asked) {
    Random random(seed, "values");
    KernelRequest wide = request;
    for (const ElementType narrow : {ElementType::f16, ElementType::bf16})
      replace_floats(wide, narrow, ElementType::f32);
    const bool positive = request.op == "log" || request.op == "sqrt" || request.op == "pow" || request.op == "div" ||
                          request.op == "remainder" || request.op == "batch_norm";
    std::vector<AlignedBuffer> wide_inputs;
    for (std::size_t i = 0; i < request.inputs.size(); ++i) {
      const Operand& operand = request.inputs[i];
      const std::size_t drawn = random.below(2);
      Placed bytes(operand, shift.value_or(drawn));
      AlignedBuffer same(static_cast<std::size_t>(wide.inputs[i].type.bytes()));
      const auto count = static_cast<std::size_t>(operand.type.elements());
      for (std::size_t k = 0; k < count; ++k) {
        if (is_float(operand.type.element)) {
          auto value = static_cast<float>(positive ? 0.1 + 2 * random.uniform() : 2 * random.uniform() - 1);
          if (request.op == "cast") value *= 300;
          if (request.op == "cast" && !is_float(request.outputs[0].type.element) && random.below(3) == 0) {
            constexpr float edge = std::numeric_limits<float>::infinity();
            constexpr float edges[] = {std::numeric_limits<float>::quiet_NaN(),
                                       edge,
                                       -edge,
                                       -0.0F,
                                       0x1p31F,
                                       -0x1p31F,
                                       0x1.fffffep30F,
                                       0x1p32F,
                                       0x1p63F,
                                       -0x1p63F,
                                       0x1.fffffep62F,
                                       0x1p64F,
                                       0x1.fffffep63F,
                                       255.5F,
                                       -0.75F};
            value = edges[random.below(std::size(edges))];
          }
          if (request.op == "is_nan" && random.below(3) == 0) value = std::numeric_limits<float>::quiet_NaN();
          if (request.op.find("less") != std::string::npos || request.op == "equal") value = std::round(value * 2);
          set_element(bytes.data(), k, operand.type.element, value);
          set_element(same.data(), k, ElementType::f32,
                      static_cast<float>(element_at(bytes.data(), k, operand.type.element)));
          continue;
        }
        std::int64_t value =
            static_cast<std::int64_t>(random.below(operand.type.element == ElementType::boolean ? 2 : 100));
        const std::vector<std::string> words = RequestMaker::word_operators();
        if (operand.type.element != ElementType::boolean &&
            std::find(words.begin(), words.end(), request.op) != words.end()) {
          // Numbers of any size, and small ones, which may be equal.
          value = random.below(2) == 0 ? static_cast<std::int64_t>(random.next())
                                       : static_cast<std::int64_t>(random.below(5)) - 2;
        }
        if (request.op == "gather" && i == 1) {
          const Shape& shape = request.inputs[0].type.shape;
          const std::int64_t axis = request.attributes.integer("axis");
          const std::int64_t extent = shape[shape.size() - static_cast<std::size_t>(-axis)];
          value = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(2 * extent))) - extent;
        }
        const std::size_t width = size_of(operand.type.element);
        std::memcpy(bytes.data() + k * width, &value, width);  // little-endian
        std::memcpy(same.data() + k * width, &value, width);
      }
      inputs.push_back(std::move(bytes));
      wide_inputs.push_back(std::move(same));
    }
    for (Operand& output : wide.outputs) output.within = {};
    const auto kernel = value_of(reference.create(wide));
    std::vector<const std::byte*> from;
    std::vector<std::byte*> to;
    for (const AlignedBuffer& buffer : wide_inputs) from.push_back(buffer.data());
    for (const Operand& output : wide.outputs) {
      expected.emplace_back(static_cast<std::size_t>(output.type.bytes()));
      to.push_back(expected.back().data());
    }
    AlignedBuffer workspace(kernel->workspace_bytes());
    if (const Status done = kernel->execute({from, to, workspace.data()}); !done)
      throw std::runtime_error(done.error().to_string());
  }

  /// The relative error of an output in the Euclidean norm; 0 or infinity for integers. Outputs of convolutions and
  /// products, sums of terms of either sign, count as of magnitude 0.3 at least: they may cancel.
  [[nodiscard]] double error(std::size_t output, const std::byte* actual) const {
    const ElementType element = request.outputs[output].type.element;
    const auto count = static_cast<std::size_t>(request.outputs[output].type.elements());
    if (!is_float(element))
      return std::memcmp(actual, expected[output].data(), count * size_of(element)) == 0
                 ? 0
                 : std::numeric_limits<double>::infinity();
    double distance = 0, norm = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const double a = element_at(actual, i, element), e = element_at(expected[output].data(), i, ElementType::f32);
      if (a == e) {  // infinities too
        norm += std::isfinite(e) ? e * e : 0;
        continue;
      }
      if (!std::isfinite(a) || !std::isfinite(e)) return std::numeric_limits<double>::infinity();
      distance += (a - e) * (a - e);
      norm += e * e;
    }
    bool sums = request.op.rfind("conv2d", 0) == 0 || request.op.rfind("matmul", 0) == 0;
    if (request.fused)
      for (const FusedPart& part : request.fused->parts) sums = sums || part.request.op == "matmul";
    const double least = sums ? 0.09 * static_cast<double>(count) : 1e-12;
    return distance == 0 ? 0 : std::sqrt(distance / std::max(norm, least));
  }
};

/// How far outputs of the type may be from the definition's, relative in the Euclidean norm.
inline double tolerance_of(ElementType element, bool tf32 = false) {
  if (element == ElementType::f16) return 1e-2;
  if (element == ElementType::bf16) return 3e-2;
  return tf32 ? 2e-3 : 1e-5;
}

}  // namespace taso::testing
