/// The numeric check of an optimized graph against the original: both run on the same seeded random inputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "support/status.h"

namespace taso {

struct CheckOptions {
  double rtol = 1e-4;  ///< Allowed difference relative to the largest magnitude of the tensor compared.
  double atol = 1e-6;  ///< Allowed absolute difference besides.
  int inputs = 3;      ///< Number of random inputs.
  std::uint64_t seed = 0;
  int threads = 1;
};

/// One tensor compared.
struct CheckedTensor {
  std::string name;          ///< Output name or position; "input of softmax ..." for layers looked at besides.
  double max_difference = 0; ///< Largest |result - reference| over all inputs.
  double magnitude = 0;      ///< Largest |reference|.
  /// Relative change of the reference between different inputs: near 0 the comparison says little.
  double sensitivity = 0;
  bool within = true;
};

struct CheckReport {
  std::vector<CheckedTensor> tensors;
  bool passed = true;
  bool vacuous = false;      ///< Hardly any compared tensor depends on the inputs.
  double worst = 0;          ///< Largest max_difference / magnitude.
  /// One line for people, e.g. "3 inputs, 1 output: largest relative difference 2.1e-07".
  [[nodiscard]] std::string summary() const;
};

/// Runs both graphs. Their inputs and outputs correspond by position, their opaque nodes by name: what an opaque
/// node produces becomes a random input, what it consumes is compared.
[[nodiscard]] Expected<CheckReport> check(const Graph& reference, const Graph& result, const CheckOptions& options);

}  // namespace taso
