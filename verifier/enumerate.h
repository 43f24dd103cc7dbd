/// All small instances of a rule, by backtracking over the typing rules of both its sides.
///
/// A decision gives one variable a value (verifier/proposals.h says which); after each, every operator of either side
/// whose operands and attributes are known is typed, and conditions whose variables are known are tested, so that a
/// branch ends at the first operator that is not well-typed. Lowered operators are kept in a cache that enumerations
/// share, values of operators at the field points on the path: an instance costs what its last decisions changed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "verifier/candidates.h"
#include "verifier/instances.h"
#include "verifier/lowered_cache.h"

namespace taso {

struct EnumerationOptions {
  Domain domain;
  std::uint64_t seed = 1;               ///< Of the field points and of thinning.
  std::size_t max_instances = 0;        ///< Stop after so many; 0: no limit.
  std::size_t max_steps = 0;            ///< Stop after so many decisions; 0: no limit.
  std::size_t thin_above = 0;           ///< If more instances are estimated, a random part of about so many; 0: never.
  bool families = false;                ///< Thin the first decisions only: instances that have most in common, cheaper.
  std::int64_t max_elements = 1 << 14;  ///< Branches with a larger tensor are left out (and the set is incomplete).
};

class Enumeration {
 public:
  Enumeration(const OperatorRegistry& registry, const Substitution& rule, LoweredCache& cache,
              const EnumerationOptions& options);
  ~Enumeration();
  Enumeration(const Enumeration&) = delete;
  Enumeration& operator=(const Enumeration&) = delete;

  /// Calls `visit` at every instance at which both sides are well-typed with outputs of equal types and all conditions
  /// hold, in a fixed order with small extents first, until it returns false.
  void run(const std::function<bool()>& visit);

  /// The instance that is being visited.
  [[nodiscard]] Instance instance() const;
  enum class Field : std::uint8_t { equal, different, unknown };
  /// Whether both sides agree at random points of GF(2^61-1), with scalar functions and extrema as random oracles; the
  /// points of an element of a variable are the same at every instance.
  [[nodiscard]] Field field_agreement();

  /// Whether every instance of the domain was visited: nothing was thinned, stopped or too large.
  [[nodiscard]] bool complete() const;
  /// The number of instances that a random sample of paths lets expect; only after thinning was considered.
  [[nodiscard]] double estimate() const;

 private:
  class Search;
  std::unique_ptr<Search> search_;
};

}  // namespace taso
