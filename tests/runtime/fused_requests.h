/// Random requests of several operators at once, as a device's planner is asked about them.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/cuda_requests.h"

namespace taso::testing {

/// Draws fused requests: element-wise operators over one index space, at most one function of rows among them, on
/// inputs that are broadcast, cut, transposed, reshaped; or products of such inputs with a result that is moved.
class FusedMaker {
 public:
  explicit FusedMaker(std::uint64_t seed) : random_(seed, "fused requests") {}

  /// Element-wise operators, with a softmax, layer_norm or rms_norm if `rows`.
  KernelRequest chain(ElementType element, bool rows) {
    begin(element);
    Shape shape;
    for (std::int64_t rank = rows ? 1 + below(3) : below(5); rank > 0; --rank) shape.push_back(1 + below(7));
    std::vector<Source> values;
    for (std::int64_t leaves = 1 + below(4); leaves > 0; --leaves) values.push_back(moved(shape));
    const std::int64_t operators = 1 + below(8), row_at = rows ? below(operators) : -1;
    for (std::int64_t i = 0; i < operators; ++i)
      values.push_back(i == row_at ? row_function(shape, pick(values)) : pointwise(shape, values));
    yield(values.back());
    for (const Source& value : values)
      if (!value.is_input && is_computed(value) && !(value == values.back()) && fused_.results.size() < 4 &&
          below(4) == 0)
        yield(value);
    return finish();
  }

  /// Operators that only move elements, and perhaps a concatenation of what they make.
  KernelRequest copies(ElementType element) {
    begin(element);
    Shape shape;
    for (std::int64_t rank = 1 + below(4); rank > 0; --rank) shape.push_back(1 + below(7));
    Source made = moved(shape);
    while (made.is_input) made = moved(shape);
    if (below(2) == 0) {
      std::vector<Source> pieces = {made};
      for (std::int64_t more = 1 + below(3); more > 0; --more) pieces.push_back(moved(shape));
      made = add("concat", {{"axis", -1 - below(static_cast<std::int64_t>(shape.size()))}}, pieces);
    }
    yield(made);
    return finish();
  }

  /// A product whose operands are cut out of, or transposed from, larger ones, and whose result may be transposed.
  KernelRequest product(ElementType element) {
    begin(element);
    const std::int64_t batch = 1 + below(3), m = 1 + below(6), k = 1 + below(6), n = 1 + below(6);
    Source a, b;
    if (below(3) == 0) {  // two pieces of one tensor, as queries and keys are
      a = add("split", {{"axis", std::int64_t{-1}}, {"sizes", std::vector<std::int64_t>{k, k}}},
              {input({batch, m, 2 * k})});
      b = add("transpose", {{"perm", std::vector<std::int64_t>{0, 2, 1}}}, {Source{false, a.index, 1}});
    } else {
      a = moved({batch, m, k});
      b = moved(below(2) == 0 ? Shape{batch, k, n} : Shape{k, n});
    }
    Source y = add("matmul", {}, {a, b});
    if (below(2) == 0) y = add("transpose", {{"perm", permutation(3)}}, {y});
    yield(y);
    return finish();
  }

  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(bound)));
  }

 private:
  using Source = FusedPart::Source;

  void begin(ElementType element) {
    element_ = element;
    request_ = {};
    request_.op = fused_op;
    fused_ = {};
  }
  KernelRequest finish() {
    request_.fused = std::make_shared<const Fused>(std::move(fused_));
    return request_;
  }

  Layout layout_for(const Shape& shape) {
    std::vector<Layout> possible;
    for (const Layout layout : {Layout::row_major, Layout::row_major, Layout::channels_last, Layout::column_major,
                                Layout::rows_outer, Layout::columns_outer})
      if (fits(layout, shape)) possible.push_back(layout);
    return possible[static_cast<std::size_t>(below(static_cast<std::int64_t>(possible.size())))];
  }
  Source input(const Shape& shape, bool any_layout = true) {
    request_.inputs.push_back({{element_, shape}, any_layout ? layout_for(shape) : Layout::row_major, false});
    return {true, static_cast<std::uint32_t>(request_.inputs.size() - 1), 0};
  }
  [[nodiscard]] Operand operand(const Source& source) const {
    return source.is_input ? request_.inputs[source.index] : fused_.parts[source.index].request.outputs[source.port];
  }
  [[nodiscard]] bool is_computed(const Source& source) const {
    return fused_.parts[source.index].request.inputs.size() > 1 ||
           registry().find(fused_.parts[source.index].request.op)->elementwise ||
           fused_.parts[source.index].request.op == "softmax";
  }

  Source add(const std::string& op, const Attributes& attributes, const std::vector<Source>& sources) {
    FusedPart part;
    part.request.op = op;
    part.request.attributes = value_of(registry().complete(op, attributes));
    std::vector<TensorType> types;
    for (const Source& source : sources) {
      part.request.inputs.push_back(operand(source));
      types.push_back(operand(source).type);
    }
    part.sources = sources;
    const bool folds = sources.size() == 2 && registry().find(op)->elementwise;
    std::vector<TensorType> outputs =
        folds ? std::vector<TensorType>{types[0]} : value_of(registry().infer(op, part.request.attributes, types));
    for (TensorType& type : outputs) part.request.outputs.push_back({std::move(type), Layout::row_major, false});
    fused_.parts.push_back(std::move(part));
    return {false, static_cast<std::uint32_t>(fused_.parts.size() - 1), 0};
  }

  std::vector<std::int64_t> permutation(std::int64_t rank) {
    std::vector<std::int64_t> perm;
    for (std::int64_t i = 0; i < rank; ++i) perm.insert(perm.begin() + below(i + 1), i);
    return perm;
  }

  /// A tensor of that shape: an input, or made of one.
  Source moved(const Shape& shape) {
    const auto rank = static_cast<std::int64_t>(shape.size());
    const std::int64_t how = rank == 0 ? 0 : below(6);
    if (how == 1) {
      const std::int64_t axis = below(rank), extent = shape[static_cast<std::size_t>(axis)], other = 1 + below(3);
      Shape larger = shape;
      larger[static_cast<std::size_t>(axis)] += other;
      const bool second = below(2) == 0;
      std::vector<std::int64_t> sizes = {extent, other};
      if (second) std::swap(sizes[0], sizes[1]);
      Source made = add("split", {{"axis", axis - rank}, {"sizes", sizes}}, {moved(larger)});
      made.port = second ? 1 : 0;
      return made;
    }
    if (how == 2) {
      const std::vector<std::int64_t> perm = permutation(rank);
      Shape before(shape.size());
      for (std::size_t axis = 0; axis < shape.size(); ++axis)
        before[static_cast<std::size_t>(perm[axis])] = shape[axis];
      return add("transpose", {{"perm", perm}}, {moved(before)});
    }
    if (how == 3) {
      Shape larger;
      std::vector<std::int64_t> starts, steps;
      for (const std::int64_t extent : shape) {
        steps.push_back(1 + below(2));
        starts.push_back(below(3));
        larger.push_back(starts.back() + extent * steps.back());
      }
      return add("slice", {{"starts", starts}, {"sizes", std::vector<std::int64_t>(shape)}, {"steps", steps}},
                 {moved(larger)});
    }
    if (how == 4) return add("reshape", {{"shape", std::vector<std::int64_t>(shape)}}, {input({volume(shape)}, false)});
    return input(shape);
  }

  Source pick(const std::vector<Source>& values) {
    return values[static_cast<std::size_t>(below(static_cast<std::int64_t>(values.size())))];
  }

  Source pointwise(const Shape& shape, const std::vector<Source>& values) {
    if (below(3) == 0) {
      const std::vector<std::string> names = {"tanh", "sigmoid", "relu", "silu", "erf", "abs", "neg", "gelu_tanh"};
      return add(names[static_cast<std::size_t>(below(8))], {}, {pick(values)});
    }
    if (below(8) == 0) return add("clip", {{"min", -0.25}, {"max", 0.5}}, {pick(values)});
    const std::vector<std::string> names = {"add", "sub", "mul", "maximum"};
    Source other = pick(values);
    if (below(3) == 0) {
      Shape narrow = shape;
      for (std::int64_t& extent : narrow)
        if (below(2) == 0) extent = 1;
      narrow.erase(narrow.begin(), narrow.begin() + below(static_cast<std::int64_t>(narrow.size()) + 1));
      other = input(narrow);
    }
    return add(names[static_cast<std::size_t>(below(4))], {}, {pick(values), other});
  }

  Source row_function(const Shape& shape, const Source& x) {
    const auto rank = static_cast<std::int64_t>(shape.size());
    if (below(2) == 0) return add("softmax", {{"axis", -1 - below(rank)}}, {x});
    if (below(3) == 0) return add("rms_norm", {{"epsilon", 1e-3}}, {x, input({shape.back()})});
    return add("layer_norm", {{"epsilon", 1e-3}}, {x, input({shape.back()}), input({shape.back()})});
  }

  void yield(const Source& value) {
    fused_.results.push_back(value);
    Operand output = operand(value);
    output.layout = Layout::row_major;
    request_.outputs.push_back(output);
  }

  Random random_;
  ElementType element_ = ElementType::f32;
  KernelRequest request_;
  Fused fused_;
};

}  // namespace taso::testing
