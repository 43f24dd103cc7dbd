/// The second test of Algorithm 1 (Jia's thesis, section 2.3.2): both sides of a rule in single precision, at inputs in
/// [-1, 1]. Equal real functions may round differently; how much is told, with the rule's numeric class, by which
/// taso-opt --fp chooses.
#pragma once

#include <cstdint>
#include <vector>

#include "generator/forms.h"

namespace taso {

/// Differences beyond this are outliers.
inline constexpr double float_threshold = 1e-5;

/// A rule whose sides differ by more than the threshold.
struct FloatOutlier {
  std::size_t rule = 0;  ///< Index into the rules that were tested.
  double difference = 0;
};

/// The largest difference between elements of the two sides at the rule's example instance, over a few draws of inputs;
/// infinite where only one side is a finite number. Zero if the rule cannot be evaluated there.
[[nodiscard]] double float_difference(const GeneralRule& rule, const OperatorRegistry& registry, std::uint64_t seed);

/// The outliers among rules, in order.
[[nodiscard]] std::vector<FloatOutlier> float_outliers(const std::vector<GeneralRule>& rules,
                                                       const OperatorRegistry& registry, std::uint64_t seed);

}  // namespace taso
