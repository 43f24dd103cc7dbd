/// Type inference that holds at all sizes: what an operator requires must follow from what is known of the symbols.
///
/// symbolic_types.h takes the requirements of a rule's operators as hypotheses; here nothing is taken for granted, so
/// that what is inferred is true of a model at every size of its symbolic extents.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "operators/registry.h"
#include "support/status.h"
#include "verifier/unbounded/size_evaluator.h"

namespace taso::unbounded {

/// Integer and list attributes by name.
using SizeAttributes = std::map<std::string, Sizes, std::less<>>;

/// The shapes of an application's outputs. An error names the requirement that does not follow from the facts, or what
/// is not understood. Requirements on real attributes and element types are not looked at.
[[nodiscard]] Expected<std::vector<std::vector<Polynomial>>> infer_shapes(
    const OperatorRegistry& registry, const OperatorDefinition& definition, const SizeAttributes& attributes,
    std::span<const std::vector<Polynomial>> inputs, Facts& facts);

/// The same where the outputs have elements: that their extents are at least 1 is added to the facts if the
/// requirements then follow. Else the facts stay as they are. Extents that it only passes on, which may be 0 (of a
/// batch), are left out.
[[nodiscard]] Expected<std::vector<std::vector<Polynomial>>> infer_shapes_with_elements(
    const OperatorRegistry& registry, const OperatorDefinition& definition, const SizeAttributes& attributes,
    std::span<const std::vector<Polynomial>> inputs, Facts& facts);

}  // namespace taso::unbounded
