#include "operators/evaluate.h"

namespace taso {

bool copies_integers(const OperatorInstance& instance) {
  const std::vector<TensorType>& outputs = instance.output_types();
  // Of all operators only those that copy make integers.
  return !outputs.empty() && (outputs[0].element == ElementType::i32 || outputs[0].element == ElementType::i64);
}

Expected<std::vector<std::vector<std::int64_t>>> copy_integers(const OperatorInstance& instance,
                                                               std::span<const std::span<const std::int64_t>> inputs) {
  std::vector<RingTensor<WideInteger>> tensors;
  for (std::size_t i = 0; i < inputs.size() && i < instance.input_types().size(); ++i)
    tensors.push_back({instance.input_types()[i].shape, {inputs[i].begin(), inputs[i].end()}, {}});
  std::vector<const RingTensor<WideInteger>*> pointers;
  for (const RingTensor<WideInteger>& tensor : tensors) pointers.push_back(&tensor);
  IntegerRing ring;
  TASO_ASSIGN(const auto copied, detail::evaluate_elements(
                                     instance, ring, std::span<const RingTensor<WideInteger>* const>(pointers), true));
  std::vector<std::vector<std::int64_t>> outputs;
  for (const RingTensor<WideInteger>& tensor : copied) {
    std::vector<std::int64_t>& output = outputs.emplace_back();
    for (const WideInteger element : tensor.elements) output.push_back(static_cast<std::int64_t>(element));
  }
  return outputs;
}

}  // namespace taso
