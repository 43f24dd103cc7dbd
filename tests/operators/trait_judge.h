/// Judges claims about how an operator's outputs depend on its inputs (operators/dependence.h, operators/injectivity.h)
/// by evaluating an application at random elements. It shares nothing with what makes the claims but the evaluator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "operators/dependence.h"
#include "operators/evaluate.h"
#include "operators/injectivity.h"
#include "support/random.h"

namespace taso::test {

/// One application of an operator.
class TraitJudge {
 public:
  /// Throws if the application is ill-typed.
  TraitJudge(const OperatorRegistry& registry, const std::string& op, const Attributes& attributes,
             std::vector<TensorType> types, std::uint64_t seed);

  /// What no evaluation contradicts, in `rounds` draws: more may be true than is claimed, but not less. `inputs` are
  /// counted in the definition.
  [[nodiscard]] Dependence not_refuted(std::span<const std::size_t> inputs, int rounds);
  /// Whether two tensors that differ in input `tensor`, by more than `claim` allows, gave equal outputs.
  [[nodiscard]] bool refutes(std::size_t tensor, Injectivity claim, int rounds);

  [[nodiscard]] const OperatorInstance& instance() const { return instance_; }
  /// The input of the definition that a tensor of the application belongs to.
  [[nodiscard]] std::size_t input_of(std::size_t tensor) const;

 private:
  using Tensors = std::vector<RingTensor<double>>;

  [[nodiscard]] Tensors draw(int style);
  /// The elements of all outputs; nothing if the application has no value there.
  [[nodiscard]] std::optional<std::vector<double>> evaluate_at(const Tensors& tensors) const;

  const OperatorDefinition& definition_;
  OperatorInstance instance_;
  std::vector<std::int64_t> bounds_;
  Random random_;
};

}  // namespace taso::test
