/// The numbers at which a rule may change what it does.
///
/// A rule that says 50 may hold at all extents below 50 and at none above: small instances do not tell. Landmarks are
/// read off the rule and the definitions that it uses: every number that occurs, with its neighbours, and the values of
/// a single size at which a quotient of the rule, or one of its conditions, first changes (found by bisection:
/// `(3 * dim(x, -1)) // 100` does at 34). The instances made from them (find_landmark_instances) have one large size
/// mostly, so that they cost little.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"
#include "verifier/instances.h"

namespace taso {

/// Ascending, each number once.
struct Landmarks {
  std::vector<std::int64_t> sizes;  ///< Of extents, integer attributes and elements of lists.
  std::vector<std::size_t> ranks;
  std::vector<double> reals;  ///< Of real attributes and of elements of tensors.
  [[nodiscard]] bool empty() const { return sizes.empty() && ranks.empty() && reals.empty(); }
};

/// The landmarks of a rule that instances with extents up to `covered` and ranks up to 4 do not reach anyway.
[[nodiscard]] Landmarks find_landmarks(const OperatorRegistry& registry, const Substitution& rule,
                                       std::int64_t covered);

/// Adds extents in which all that the rule's numbers measure has room: windows in windows, strides of strides. For
/// rules that have no smaller instance.
void add_room(const Substitution& rule, Landmarks& landmarks);

/// What is spent on instances at landmarks.
struct LandmarkOptions {
  std::uint64_t seed = 1;
  std::size_t samples_per_landmark = 40;  ///< Attempts for each, of which types decide.
  std::size_t max_samples = 2'000;        ///< And for all.
  std::size_t instances_per_landmark = 4;
  double max_work = 200'000;    ///< Scalar operations of both sides of one instance.
  double total_work = 600'000;  ///< And of all.
  bool with_room = false;       ///< Also at the extents of add_room().
};

/// Instances of a rule at its landmarks, the same for the same seed: both sides well-typed, outputs of equal types.
[[nodiscard]] std::vector<TypedInstance> find_landmark_instances(const OperatorRegistry& registry,
                                                                 const Substitution& rule, const Landmarks& landmarks,
                                                                 const LandmarkOptions& options, LoweredCache& cache);

}  // namespace taso
