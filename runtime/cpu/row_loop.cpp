#include "runtime/cpu/row_loop.h"

#include <algorithm>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/loops.h"
#include "runtime/strides.h"

namespace taso::cpu {

std::optional<RowLoop> RowLoop::of(const KernelRequest& request, const OperatorRegistry& registry) {
  if (!registry.defines(request.op) || !is_all_floats(request) || request.outputs.size() != 1) return std::nullopt;
  const Shape& shape = request.outputs[0].type.shape;
  if (shape.empty() || request.outputs[0].type.elements() == 0) return std::nullopt;
  if (request.op == "softmax") {
    const std::size_t axis = axis_position(request.attributes.integer("axis"), shape.size());
    const Layout layout = request.outputs[0].layout;
    if (request.inputs[0].layout != layout || block_of(layout) != 0 || strides_of(request.outputs[0])[axis] != 1)
      return std::nullopt;
    return RowLoop(Kind::softmax, shape[axis], 0);
  }
  if (request.op != "layer_norm" && request.op != "rms_norm") return std::nullopt;
  const auto is_row_major = [](const Operand& operand) { return operand.layout == Layout::row_major; };
  if (!std::all_of(request.inputs.begin(), request.inputs.end(), is_row_major) || !is_row_major(request.outputs[0]))
    return std::nullopt;
  return RowLoop(request.op == "layer_norm" ? Kind::layer_norm : Kind::rms_norm, shape.back(),
                 static_cast<float>(request.attributes.real("epsilon")));
}

void RowLoop::compute(std::span<const float* const> operands, float* y, std::int64_t rows) const {
  switch (kind_) {
    case Kind::softmax:
      return loops().softmax(operands[0], y, rows, length_);
    case Kind::layer_norm:
      return loops().layer_norm(operands[0], operands[1], operands[2], y, rows, length_, epsilon_);
    case Kind::rms_norm:
      return loops().rms_norm(operands[0], operands[1], y, rows, length_, epsilon_);
  }
}

}  // namespace taso::cpu
