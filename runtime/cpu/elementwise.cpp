// Element-wise operators of one and two operands. The output's axes are taken in memory order, axes along which all
// operands advance regularly are merged, and the innermost merged axis is one call of a loop of cpu/loops.h.
#include <algorithm>
#include <array>
#include <numeric>

#include "operators/registry.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/loops.h"
#include "runtime/cpu/parallel.h"
#include "runtime/strides.h"

namespace taso::cpu {
namespace {

constexpr std::int64_t grain_elements = 16384;
constexpr std::int64_t buffer_elements = 512;

/// An operand's strides along the merged axes, outermost first.
struct Walk {
  std::vector<std::int64_t> extents;
  std::vector<std::vector<std::int64_t>> strides;  ///< Per operand (inputs), per axis. The output is dense.
};

Walk merge_axes(const KernelRequest& request) {
  const Operand& output = request.outputs[0];
  const std::int64_t block = block_of(output.layout);
  Shape shape = output.type.shape;
  const std::vector<std::int64_t> out = strides_split(shape, output.layout, block);
  std::vector<std::vector<std::int64_t>> in;
  for (const Operand& operand : request.inputs) {
    if (block_of(operand.layout) != 0) {
      in.push_back(strides_split(operand.type.shape, operand.layout, block));
    } else {
      in.push_back(broadcast_strides(operand.type.shape, strides_of(operand), shape));
      split_strides(in.back(), block);
    }
  }
  split_channels(shape, block);
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; axis < out.size(); ++axis)
    if (shape[axis] != 1) axes.push_back(axis);
  std::stable_sort(axes.begin(), axes.end(), [&](std::size_t a, std::size_t b) { return out[a] > out[b]; });
  Walk walk;
  walk.strides.resize(in.size());
  for (const std::size_t axis : axes) {
    const std::int64_t extent = shape[axis];
    bool merges = !walk.extents.empty();
    for (std::size_t i = 0; i < in.size(); ++i) merges = merges && walk.strides[i].back() == in[i][axis] * extent;
    if (merges) {
      walk.extents.back() *= extent;
      for (std::size_t i = 0; i < in.size(); ++i) walk.strides[i].back() = in[i][axis];
    } else {
      walk.extents.push_back(extent);
      for (std::size_t i = 0; i < in.size(); ++i) walk.strides[i].push_back(in[i][axis]);
    }
  }
  if (walk.extents.empty()) {
    walk.extents.push_back(1);
    for (auto& strides : walk.strides) strides.push_back(1);
  }
  return walk;
}

class Elementwise final : public Kernel {
 public:
  Elementwise(const KernelRequest& request, const UnaryEntry* unary, const BinaryEntry* binary, float p, float q)
      : Kernel(std::string("own elementwise ") + loops().instruction_set),
        walk_(merge_axes(request)),
        unary_(unary),
        binary_(binary),
        p_(p),
        q_(q),
        threads_(request.threads) {}

  Status execute(const KernelArguments& arguments) const override {
    std::array<const float*, 2> in{};
    for (std::size_t i = 0; i < arguments.inputs.size(); ++i)
      in[i] = reinterpret_cast<const float*>(arguments.inputs[i]);
    auto* y = reinterpret_cast<float*>(arguments.outputs[0]);
    const std::int64_t inner = walk_.extents.back();
    std::int64_t rows = 1;
    for (std::size_t axis = 0; axis + 1 < walk_.extents.size(); ++axis) rows *= walk_.extents[axis];
    if (rows == 1) {
      parallel_chunks(threads_, inner, grain_elements, [&](std::int64_t begin, std::int64_t end) {
        std::array<const float*, 2> from = in;
        for (std::size_t i = 0; i < walk_.strides.size(); ++i) from[i] += begin * walk_.strides[i].back();
        row(from, y + begin, end - begin);
      });
      return {};
    }
    parallel_chunks(threads_, rows, std::max<std::int64_t>(1, grain_elements / inner),
                    [&](std::int64_t begin, std::int64_t end) { some_rows(in, y, begin, end); });
    return {};
  }

 private:
  void some_rows(std::array<const float*, 2> in, float* y, std::int64_t begin, std::int64_t end) const {
    const std::size_t outer = walk_.extents.size() - 1;
    const std::int64_t inner = walk_.extents.back();
    std::vector<std::int64_t> index(outer);
    for (std::int64_t rest = begin, axis = static_cast<std::int64_t>(outer); axis-- > 0;) {
      const auto a = static_cast<std::size_t>(axis);
      index[a] = rest % walk_.extents[a];
      rest /= walk_.extents[a];
      for (std::size_t i = 0; i < walk_.strides.size(); ++i) in[i] += index[a] * walk_.strides[i][a];
    }
    for (std::int64_t r = begin; r < end; ++r) {
      row(in, y + r * inner, inner);
      for (std::size_t axis = outer; axis-- > 0;) {
        const bool carry = ++index[axis] == walk_.extents[axis];
        for (std::size_t i = 0; i < walk_.strides.size(); ++i)
          in[i] += walk_.strides[i][axis] * (carry ? 1 - walk_.extents[axis] : 1);
        if (!carry) break;
        index[axis] = 0;
      }
    }
  }

  /// One run along the innermost axis.
  void row(std::array<const float*, 2> in, float* y, std::int64_t count) const {
    const std::int64_t sa = walk_.strides[0].back();
    if (unary_ != nullptr) {
      if (sa == 1) return unary_->loop(in[0], y, count, p_, q_);
      gathered(in[0], sa, y, count);
      return unary_->loop(y, y, count, p_, q_);
    }
    const std::int64_t sb = walk_.strides[1].back();
    if (sa == 1 && sb == 1) return binary_->both(in[0], in[1], y, count);
    if (sa == 1 && sb == 0) return binary_->second_scalar(in[0], in[1], y, count);
    if (sa == 0 && sb == 1) return binary_->first_scalar(in[0], in[1], y, count);
    std::array<float, buffer_elements> b;
    for (std::int64_t done = 0; done < count; done += buffer_elements) {
      const std::int64_t some = std::min(buffer_elements, count - done);
      gathered(in[0] + done * sa, sa, y + done, some);
      gathered(in[1] + done * sb, sb, b.data(), some);
      binary_->both(y + done, b.data(), y + done, some);
    }
  }

  static void gathered(const float* from, std::int64_t stride, float* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
  }

  Walk walk_;
  const UnaryEntry* unary_;
  const BinaryEntry* binary_;
  float p_, q_;
  int threads_;
};

/// The loop that an element-wise operator is, as its definition says: a function of its operands, in their order.
std::string loop_of(const KernelRequest& request, const OperatorRegistry& registry) {
  using Kind = Expression::Kind;
  const OperatorDefinition* definition = registry.find(request.op);
  if (definition == nullptr || !definition->elementwise) return "";
  const Expression& value = definition->equations[0].value;
  if (value.operands.size() != definition->inputs.size()) return request.op == "clip" ? "clip" : "";
  for (std::size_t i = 0; i < value.operands.size(); ++i)
    if (value.operands[i].kind != Kind::read || value.operands[i].name != definition->inputs[i].name)
      return request.op == "clip" ? "clip" : "";
  switch (value.kind) {
    case Kind::negate:
      return "neg";
    case Kind::add:
      return "add";
    case Kind::subtract:
      return "sub";
    case Kind::multiply:
      return "mul";
    case Kind::divide:
      return "div";
    case Kind::call: {
      const std::string function =
          definition->find_attribute(value.name) != nullptr ? request.attributes.symbol(value.name) : value.name;
      // These loops are named after operators.
      if (function == "neg" || function == "clip" || function == "maximum") return "";
      if (function == "max" && value.operands.size() == 2) return "maximum";
      return value.operands.size() == 1 || function == "pow" ? function : "";
    }
    default:
      return "";
  }
}

}  // namespace

KernelOffer elementwise(const KernelRequest& request, const OperatorRegistry& registry) {
  if (!is_all_floats(request)) return decline("only f32");
  if (request.outputs.size() != 1 || request.inputs.empty() || request.inputs.size() > 2)
    return decline("one output and one or two inputs are needed");
  for (const Operand& input : request.inputs)
    if (!is_broadcastable(input.type.shape, request.outputs[0].type.shape))
      return decline("an input does not broadcast to the output");
  for (const Operand& input : request.inputs)
    if (block_of(input.layout) != 0 &&
        (input.layout != request.outputs[0].layout || input.type.shape != request.outputs[0].type.shape))
      return decline("blocks of channels of another shape than the output's");
  const std::string loop = loop_of(request, registry);
  if (request.inputs.size() == 2) {
    const BinaryEntry* entry = find_binary(loop);
    if (entry == nullptr) return decline("no loop for " + request.op);
    return {std::make_unique<Elementwise>(request, nullptr, entry, 0.0f, 0.0f), ""};
  }
  const UnaryEntry* entry = find_unary(loop);
  if (entry == nullptr) return decline("no loop for " + request.op);
  float p = 0, q = 0;
  if (request.op == "clip") {
    p = static_cast<float>(request.attributes.real("min"));
    q = static_cast<float>(request.attributes.real("max"));
  }
  return {std::make_unique<Elementwise>(request, entry, nullptr, p, q), ""};
}

}  // namespace taso::cpu
