/// Samples as tensors that an executor takes.
#pragma once

#include <vector>

#include "operators/evaluate.h"
#include "runtime/tensor.h"

namespace taso::test {

/// A sample of f32 elements, or of 64-bit integers, as its type says.
inline HostTensor host_tensor(const TensorType& type, const RingTensor<double>& sample) {
  if (type.element != ElementType::f32) return HostTensor::of_integers(sample.shape, sample.integers);
  return HostTensor::of_floats(sample.shape, std::vector<float>(sample.elements.begin(), sample.elements.end()));
}

}  // namespace taso::test
