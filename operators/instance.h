/// An operator's definition lowered to concrete numbers, ready to be evaluated over any ring of scalars.
///
/// The symbolic body (operators/definition.h) is specialised once for given attributes and input types: index
/// expressions become affine functions of loop variables with known coefficients, guards become affine
/// inequalities, extents become numbers. What remains is a small loop nest per output that the template
/// evaluate() (operators/evaluate.h) runs over doubles, over GF(2^61-1), over exact integers, over
/// polynomials or over solver terms: one semantics, many evaluations.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/attributes.h"
#include "graph/tensor_type.h"
#include "operators/registry.h"
#include "support/status.h"

namespace taso {

struct LoweredBody;                 // operators/lowered_body.h
enum class Reasons : std::uint8_t;  // operators/instantiate.h

/// Where the elements of a tensor lie in its buffer: (i, j, ..) at offset + i * strides[0] + j * strides[1] + .., in
/// elements.
struct StridedPlacement {
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
};

class OperatorInstance {
 public:
  /// Fails where infer() fails.
  [[nodiscard]] static Expected<OperatorInstance> create(const OperatorRegistry& registry, std::string_view op,
                                                         const Attributes& attributes,
                                                         std::span<const TensorType> inputs);
  /// The same with complete attributes (OperatorRegistry::complete), without a reason where it fails.
  [[nodiscard]] static std::optional<OperatorInstance> create_if_typed(const OperatorRegistry& registry,
                                                                       std::string_view op,
                                                                       const Attributes& attributes,
                                                                       std::span<const TensorType> inputs);
  /// The same where tensors lie otherwise than row after row: per input, then per output. Strides of 0 are for inputs.
  /// Loops go through the memory of the outputs in order. Fails also where the definition reads a tensor as one row
  /// that is none.
  [[nodiscard]] static Expected<OperatorInstance> create(const OperatorRegistry& registry, std::string_view op,
                                                         const Attributes& attributes,
                                                         std::span<const TensorType> inputs,
                                                         std::span<const StridedPlacement> placements);
  [[nodiscard]] const std::vector<TensorType>& input_types() const { return inputs_; }
  [[nodiscard]] const std::vector<TensorType>& output_types() const { return outputs_; }
  [[nodiscard]] const Work& work() const { return work_; }
  [[nodiscard]] const LoweredBody& body() const { return *body_; }
  [[nodiscard]] const std::shared_ptr<const LoweredBody>& shared_body() const { return body_; }

 private:
  static Expected<OperatorInstance> create(const OperatorRegistry& registry, const OperatorDefinition& definition,
                                           const Attributes& attributes, std::span<const TensorType> inputs,
                                           Reasons reasons, std::span<const StridedPlacement> placements = {});

  std::vector<TensorType> inputs_, outputs_;
  Work work_;
  std::shared_ptr<const LoweredBody> body_;
};

}  // namespace taso
