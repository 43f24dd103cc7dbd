/// Side conditions found from instances: the weakest that exclude all at which a rule fails.
///
/// Candidates are *atoms*: statements of a few kinds (two extents are equal, an extent is 1, a tensor has rank r, an
/// attribute is what the profile defines it to be) that hold at every instance that the profile declares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "generator/sampler.h"

namespace taso {

/// An instance of a rule, and whether its two sides are equal there.
struct TestedSample {
  Sample sample;
  bool equal = false;
};

[[nodiscard]] AttributeExpression literal_of(AttributeValue value);
/// dim(tensor, axis).
[[nodiscard]] AttributeExpression dimension_of(std::size_t tensor, std::int64_t axis);

/// Statements about extents and ranks that hold for all of these: `shapes[variable][assignment]`.
[[nodiscard]] std::vector<Condition> shape_atoms(const std::vector<std::vector<Shape>>& shapes);
/// Whether a condition holds at an instance; one about an axis that the instance lacks does not.
[[nodiscard]] bool satisfied(const Condition& condition, const Sample& sample);
/// Whether all of them do: then no choice among them excludes the instance.
[[nodiscard]] bool all_satisfied(const std::vector<Condition>& conditions, const Sample& sample);

/// Chooses atoms that exclude all failures, greedily: the atom that excludes most failures, and among equals keeps most
/// successes. False if that needs more than three, or is impossible, or a failure was declared.
[[nodiscard]] bool exclude_failures(std::vector<Condition> atoms, const std::vector<TestedSample>& tested,
                                    std::vector<Condition>& chosen);
/// Atoms other than the chosen ones that hold at every success at which these do.
[[nodiscard]] std::vector<Condition> implied_conditions(std::vector<Condition> atoms,
                                                        const std::vector<TestedSample>& tested,
                                                        const std::vector<Condition>& chosen);

}  // namespace taso
