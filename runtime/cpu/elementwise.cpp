// Element-wise operators of one and two operands: the innermost axis of a walk (cpu/element_walk.h) is one call of a
// loop of cpu/loops.h.
#include <algorithm>
#include <array>
#include <span>

#include "operators/registry.h"
#include "runtime/cpu/element_walk.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/loops.h"
#include "runtime/cpu/parallel.h"
#include "runtime/strides.h"

namespace taso::cpu {
namespace {

constexpr std::int64_t grain_elements = 16384;
constexpr std::int64_t buffer_elements = 512;

class Elementwise final : public Kernel {
 public:
  Elementwise(const KernelRequest& request, const ElementLoop& loop)
      : Kernel(std::string("own elementwise ") + loops().instruction_set),
        walk_(element_walk(request)),
        loop_(loop),
        threads_(request.threads) {}

  Status execute(const KernelArguments& arguments) const override {
    std::array<const float*, 2> in{};
    for (std::size_t i = 0; i < arguments.inputs.size(); ++i)
      in[i] = reinterpret_cast<const float*>(arguments.inputs[i]);
    auto* y = reinterpret_cast<float*>(arguments.outputs[0]);
    const std::int64_t inner = walk_.extents.back();
    const std::int64_t rows = walk_.rows();
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
    for_rows(walk_, begin, end, [&](std::span<const std::int64_t> offsets, std::int64_t r) {
      std::array<const float*, 2> from = in;
      for (std::size_t i = 0; i < offsets.size(); ++i) from[i] += offsets[i];
      row(from, y + r * walk_.extents.back(), walk_.extents.back());
    });
  }

  /// One run along the innermost axis.
  void row(std::array<const float*, 2> in, float* y, std::int64_t count) const {
    const std::int64_t sa = walk_.strides[0].back();
    if (loop_.unary != nullptr) {
      if (sa == 1) return loop_.unary->loop(in[0], y, count, loop_.p, loop_.q);
      gathered(in[0], sa, y, count);
      return loop_.unary->loop(y, y, count, loop_.p, loop_.q);
    }
    const std::int64_t sb = walk_.strides[1].back();
    if (sa == 1 && sb == 1) return loop_.binary->both(in[0], in[1], y, count);
    if (sa == 1 && sb == 0) return loop_.binary->second_scalar(in[0], in[1], y, count);
    if (sa == 0 && sb == 1) return loop_.binary->first_scalar(in[0], in[1], y, count);
    std::array<float, buffer_elements> b;
    for (std::int64_t done = 0; done < count; done += buffer_elements) {
      const std::int64_t some = std::min(buffer_elements, count - done);
      gathered(in[0] + done * sa, sa, y + done, some);
      gathered(in[1] + done * sb, sb, b.data(), some);
      loop_.binary->both(y + done, b.data(), y + done, some);
    }
  }

  static void gathered(const float* from, std::int64_t stride, float* to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
  }

  ElementWalk walk_;
  ElementLoop loop_;
  int threads_;
};

}  // namespace

/// The loop that an element-wise operator is, as its definition says: a function of its operands, in their order.
static std::string loop_of(const KernelRequest& request, const OperatorRegistry& registry) {
  using Kind = Expression::Kind;
  const OperatorDefinition* definition = registry.find(request.op);
  if (definition == nullptr || !definition->elementwise) return "";
  const Expression& value = definition->equations[0].value;
  if (value.operands.size() != definition->inputs.size()) return request.op == "clip" ? "clip" : "";
  // Its function has the divisor first.
  if (value.kind == Kind::call && value.name == "remainder_by" && value.operands[0].kind == Kind::read &&
      value.operands[1].kind == Kind::read && value.operands[0].name == definition->inputs[1].name &&
      value.operands[1].name == definition->inputs[0].name)
    return "remainder";
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

ElementLoop element_loop(const KernelRequest& request, const OperatorRegistry& registry) {
  const std::string name = loop_of(request, registry);
  ElementLoop loop;
  if (request.inputs.size() == 2) loop.binary = find_binary(name);
  if (request.inputs.size() == 1) loop.unary = find_unary(name);
  if (request.op == "clip" && loop.unary != nullptr) {
    loop.p = static_cast<float>(request.attributes.real("min"));
    loop.q = static_cast<float>(request.attributes.real("max"));
  }
  return loop;
}

KernelOffer elementwise(const KernelRequest& request, const OperatorRegistry& registry) {
  if (!is_all_floats(request)) return decline("only f32");
  if (request.inputs.empty() || request.inputs.size() > 2) return decline("one or two inputs are needed");
  if (std::string reason = no_element_walk(request); !reason.empty()) return decline(std::move(reason));
  const ElementLoop loop = element_loop(request, registry);
  if (loop.unary == nullptr && loop.binary == nullptr) return decline("no loop for " + request.op);
  return {std::make_unique<Elementwise>(request, loop), ""};
}

}  // namespace taso::cpu
