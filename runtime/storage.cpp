#include "runtime/storage.h"

#include <memory>
#include <utility>

namespace taso {

TensorType stored(TensorType type, ElementType float_storage) {
  if (type.element == ElementType::f32) type.element = float_storage;
  return type;
}

std::int64_t stored_bytes(const TensorType& type, ElementType float_storage) {
  const ElementType element = type.element == ElementType::f32 ? float_storage : type.element;
  return type.elements() * static_cast<std::int64_t>(size_of(element));
}

void replace_floats(KernelRequest& request, ElementType from, ElementType to) {
  if (request.fused) {
    Fused fused = *request.fused;
    for (FusedPart& part : fused.parts) replace_floats(part.request, from, to);
    request.fused = std::make_shared<const Fused>(std::move(fused));
  }
  for (auto* operands : {&request.inputs, &request.outputs})
    for (Operand& operand : *operands)
      if (operand.type.element == from) operand.type.element = to;
}

}  // namespace taso
