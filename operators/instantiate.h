/// Shape inference: finding the sizes of a definition for given attributes and input types. Private to the folder.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/tensor_type.h"
#include "operators/definition.h"
#include "operators/registry.h"
#include "operators/size_domains.h"
#include "support/status.h"

namespace taso {

/// A definition's names and output shapes at concrete inputs.
struct Instantiation {
  IntegerScope scope;  ///< Sizes, rests, integer attributes and lets.
  std::vector<Shape> outputs;
};

/// Whether a failure says what is wrong; a search that tries many types does not want to pay for the text.
enum class Reasons : std::uint8_t { told, none };

/// Solves the sizes and checks every numbered constraint. `attributes` are complete (else an error).
[[nodiscard]] Expected<Instantiation> instantiate(const OperatorRegistry& registry,
                                                  const OperatorDefinition& definition, const Attributes& attributes,
                                                  std::span<const TensorType> inputs, Reasons reasons = Reasons::told);

/// For each value whether instantiate() succeeds with it as attribute `name`, the others being as in `attributes`
/// (complete; what they hold for `name` does not matter). What does not depend on the attribute is done once.
[[nodiscard]] std::vector<bool> instantiable(const OperatorRegistry& registry, const OperatorDefinition& definition,
                                             Attributes attributes, std::span<const TensorType> inputs,
                                             const std::string& name, std::span<const AttributeValue> values);

/// The element type of the outputs is that of the real inputs, f32 where there is none.
[[nodiscard]] std::vector<TensorType> output_types(const OperatorDefinition& definition, const Attributes& attributes,
                                                   std::span<const TensorType> inputs, std::vector<Shape> shapes);

}  // namespace taso
