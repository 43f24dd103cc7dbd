#include "operators/instance.h"

#include "operators/instantiate.h"
#include "operators/lower.h"

namespace taso {

Expected<OperatorInstance> OperatorInstance::create(const OperatorRegistry& registry, std::string_view op,
                                                    const Attributes& attributes, std::span<const TensorType> inputs) {
  const OperatorDefinition* definition = registry.find(op);
  if (definition == nullptr) return bad_input("unknown operator '" + std::string(op) + "'");
  TASO_ASSIGN(const Attributes completed, registry.complete(op, attributes));
  return create(registry, *definition, completed, inputs, Reasons::told);
}

Expected<OperatorInstance> OperatorInstance::create(const OperatorRegistry& registry, std::string_view op,
                                                    const Attributes& attributes, std::span<const TensorType> inputs,
                                                    std::span<const StridedPlacement> placements) {
  const OperatorDefinition* definition = registry.find(op);
  if (definition == nullptr) return bad_input("unknown operator '" + std::string(op) + "'");
  TASO_ASSIGN(const Attributes completed, registry.complete(op, attributes));
  return create(registry, *definition, completed, inputs, Reasons::told, placements);
}

std::optional<OperatorInstance> OperatorInstance::create_if_typed(const OperatorRegistry& registry, std::string_view op,
                                                                  const Attributes& attributes,
                                                                  std::span<const TensorType> inputs) {
  const OperatorDefinition* definition = registry.find(op);
  if (definition == nullptr) return std::nullopt;
  Expected<OperatorInstance> instance = create(registry, *definition, attributes, inputs, Reasons::none);
  if (!instance) return std::nullopt;
  return std::move(*instance);
}

Expected<OperatorInstance> OperatorInstance::create(const OperatorRegistry& registry,
                                                    const OperatorDefinition& definition, const Attributes& attributes,
                                                    std::span<const TensorType> inputs, Reasons reasons,
                                                    std::span<const StridedPlacement> placements) {
  TASO_ASSIGN(Instantiation instantiation, instantiate(registry, definition, attributes, inputs, reasons));
  OperatorInstance instance;
  instance.inputs_.assign(inputs.begin(), inputs.end());
  instance.outputs_ = taso::output_types(definition, attributes, inputs, instantiation.outputs);
  TASO_ASSIGN(LoweredBody body, lower(registry, definition, attributes, inputs, std::move(instantiation), placements));
  instance.work_.flops = count_flops(body);
  for (const TensorType& type : instance.inputs_) instance.work_.bytes_read += static_cast<double>(type.bytes());
  for (const TensorType& type : instance.outputs_) instance.work_.bytes_written += static_cast<double>(type.bytes());
  instance.body_ = std::make_shared<const LoweredBody>(std::move(body));
  return instance;
}

}  // namespace taso
