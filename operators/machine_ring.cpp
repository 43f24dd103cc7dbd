#include "operators/machine_ring.h"

#include <algorithm>
#include <cmath>

#include "graph/reals.h"
#include "graph/words.h"
#include "operators/evaluate.h"
#include "operators/lowered_body.h"
#include "operators/machine_functions.h"

namespace taso {

MachineNumber MachineRing::number(double value) {
  return {value, std::abs(value) < 9.0e18 ? static_cast<std::int64_t>(value) : 0};
}

MachineNumber MachineRing::call(const FunctionDefinition& function, std::span<const MachineNumber> arguments) {
  if (function.machine != nullptr) {
    if (defined_ && status_ && is_undefined(function, arguments, types_))
      status_ = bad_input(function.name + " of these numbers is not defined");
    return function.machine(arguments, types_);
  }
  if (arguments.size() == 1) return {function.real(arguments[0].real), 0};
  return {function.real2(arguments[0].real, arguments[1].real), 0};
}

MachineNumber MachineRing::extremum(bool maximum, std::span<const MachineNumber> values) {
  std::vector<double> reals;
  for (const MachineNumber& value : values) reals.push_back(value.real);
  return {DoubleRing::extremum(maximum, reals), 0};
}

bool has_machine_numbers(const OperatorInstance& instance) {
  const std::vector<TensorType>& outputs = instance.output_types();
  return !instance.body().over_reals || (!outputs.empty() && is_word(outputs[0].element));
}

MachineNumber load_number(const std::byte* elements, ElementType type, std::size_t index) {
  return is_real(type) ? MachineNumber{load_real(elements, type, index), 0}
                       : MachineNumber{0, load_word(elements, type, index)};
}

void store_number(std::byte* elements, ElementType type, std::size_t index, const MachineNumber& number) {
  if (is_real(type))
    store_real(elements, type, index, number.real);
  else
    store_word(elements, type, index, number.word);
}

MachineTypes machine_types(const OperatorInstance& instance) {
  MachineTypes types;
  const std::vector<TensorType>&inputs = instance.input_types(), &outputs = instance.output_types();
  if (!inputs.empty()) types.from = inputs[0].element;
  if (!outputs.empty()) types.to = outputs[0].element;
  for (const std::vector<TensorType>* tensors : {&outputs, &inputs})
    for (const TensorType& type : *tensors)
      if (is_integer(type.element)) types.integers = type.element;
  return types;
}

namespace {

Expected<std::vector<RingTensor<double>>> evaluated(const OperatorInstance& instance, MachineRing ring,
                                                    std::span<const RingTensor<double>* const> inputs) {
  std::vector<RingTensor<MachineNumber>> tensors;
  for (const RingTensor<double>* input : inputs) {
    RingTensor<MachineNumber>& tensor = tensors.emplace_back();
    tensor.shape = input->shape;
    tensor.integers = input->integers;
    for (const double element : input->elements) tensor.elements.push_back({element, 0});
    for (const std::int64_t word : input->integers) tensor.elements.push_back({0, word});
  }
  std::vector<const RingTensor<MachineNumber>*> pointers;
  for (const RingTensor<MachineNumber>& tensor : tensors) pointers.push_back(&tensor);
  TASO_ASSIGN(
      const auto results,
      detail::evaluate_elements(instance, ring, std::span<const RingTensor<MachineNumber>* const>(pointers), true));
  std::vector<RingTensor<double>> outputs;
  for (std::size_t i = 0; i < results.size(); ++i) {
    RingTensor<double>& output = outputs.emplace_back();
    output.shape = results[i].shape;
    const ElementType type = instance.output_types()[i].element;
    for (const MachineNumber& element : results[i].elements) {
      if (is_word(type))
        output.integers.push_back(wrapped(element.word, type));
      else
        output.elements.push_back(element.real);
    }
  }
  return outputs;
}

}  // namespace

Expected<std::vector<RingTensor<double>>> evaluate_machine_numbers(const OperatorInstance& instance,
                                                                   std::span<const RingTensor<double>* const> inputs) {
  return evaluated(instance, MachineRing(machine_types(instance)), inputs);
}

Expected<std::vector<RingTensor<double>>> evaluate_defined(const OperatorInstance& instance,
                                                           std::span<const RingTensor<double>* const> inputs) {
  return evaluated(instance, MachineRing(machine_types(instance), true), inputs);
}

}  // namespace taso
