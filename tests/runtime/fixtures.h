/// What the tests of the runtime share: the shipped operators, the kernels, graphs from text, the reference values.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "graph/reals.h"
#include "operators/evaluate.h"
#include "operators/registry.h"
#include "runtime/executor.h"
#include "runtime/kernel.h"
#include "runtime/tensor.h"
#include "tests/support/graphs.h"

namespace taso::testing {

using test::graph_of;
using test::registry;
using test::value_of;

inline const KernelLibrary& library(KernelSet set = KernelSet::cpu) {
  static const KernelLibrary cpu(registry(), KernelSet::cpu);
  static const KernelLibrary reference(registry(), KernelSet::reference);
  return set == KernelSet::cpu ? cpu : reference;
}

/// Random inputs that fit an executor of the graph.
inline std::vector<HostTensor> inputs_for(const Graph& graph, std::uint64_t seed) {
  return value_of(Executor::create(graph, library())).random_inputs(seed);
}

/// The outputs by the operators' definitions, in double, independent of everything in runtime.
inline std::vector<std::vector<double>> reference_outputs(const Graph& graph, const std::vector<HostTensor>& inputs,
                                                          const OperatorRegistry& operators = registry()) {
  std::vector<RingTensor<double>> tensors;
  for (const HostTensor& input : inputs) {
    RingTensor<double> tensor;
    tensor.shape = input.type().shape;
    if (is_real(input.type().element))
      tensor.elements = input.to_doubles();
    else
      tensor.integers = input.to_integers();
    tensors.push_back(std::move(tensor));
  }
  DoubleRing ring;
  std::vector<std::vector<double>> outputs;
  for (RingTensor<double>& tensor : value_of(evaluate(graph, operators, ring, tensors))) {
    outputs.push_back(std::move(tensor.elements));
    for (const std::int64_t word : tensor.integers) outputs.back().push_back(static_cast<double>(word));
  }
  return outputs;
}

/// Expects outputs within `tolerance`, or some roundings to their type, of the reference, relative to the largest of 1
/// and the reference's maximum.
inline void expect_near(const std::vector<HostTensor>& actual, const std::vector<std::vector<double>>& expected,
                        double tolerance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t output = 0; output < actual.size(); ++output) {
    const std::vector<double> values = actual[output].to_doubles();
    ASSERT_EQ(values.size(), expected[output].size()) << what;
    const ElementType element = actual[output].type().element;
    const double allowed = is_real(element) ? std::max(tolerance, 8 * unit_roundoff(element)) : 0;
    double largest = 1;
    for (const double value : expected[output]) largest = std::max(largest, std::fabs(value));
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_NEAR(values[i], expected[output][i], allowed * largest)
          << what << ", output " << output << ", element " << i;
  }
}

}  // namespace taso::testing
