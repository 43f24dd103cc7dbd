/// The places that rules have rewritten, each checked by itself: computed in double precision from what the original
/// computes before it, as the original does it and as the result does it, and by the result's kernels. What a network
/// amplifies between its layers plays no part here, so that the tolerance can be that of the place's own arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "optimizer/changed_regions.h"
#include "runtime/configuration.h"
#include "runtime/kernel.h"
#include "runtime/tensor.h"
#include "support/status.h"

namespace taso {

struct RegionCheckOptions {
  std::uint64_t seed = 0;  ///< Of the choice of elements.
  int threads = 1;
  bool full = false;  ///< Every element is computed, whatever it takes.
  /// Otherwise: so many elements are read, in all regions together, to compute some elements of each.
  std::int64_t reads = 8'000'000;
  double rtol = 0;  ///< Allowed besides, relative to the largest element of a tensor that was compared.
  /// Likewise between kernels' results and what the original computes there, whose rounding may be large: a result that
  /// is without it (x, of (x + c) - c) computes something else.
  double original_rtol = 1e-4;
  /// How the result is computed; null: by the runtime's rule.
  std::shared_ptr<const LayoutAssignment> result_layouts;
};

/// The worst element of the first region, in the original's order, that computes something else.
struct WrongElement {
  std::size_t region = 0;  ///< In the list that was given.
  Value value;             ///< Of the original.
  std::vector<std::int64_t> index;
  double expected = 0, actual = 0, allowed = 0;  ///< `allowed`: largest difference.
  enum class Cause : std::uint8_t {
    rule,      ///< It is another number.
    kernels,   ///< Right in double precision: what is wrong are kernels or weights.
    rounding,  ///< Right in double precision, and not what the original computes: that is its rounding, `expected`.
  };
  Cause cause = Cause::rule;
};

struct RegionReport {
  std::size_t regions = 0;
  std::size_t checked = 0;             ///< At least one finite element of each of their outputs was compared.
  std::int64_t elements = 0;           ///< Compared.
  double worst = 0;                    ///< Largest difference, as a share of what was allowed.
  std::vector<std::size_t> unchecked;  ///< The other regions, unless one is wrong: ascending.
  std::optional<WrongElement> wrong;
};

/// What the original computes at these values, on one input. `attempt` 0 is any input; 1 is a positive one, for values
/// of which the first showed nothing finite.
using Activations = std::function<Expected<std::vector<HostTensor>>(std::span<const Value> values, int attempt)>;

/// Checks regions of `original` and `result` (changed_regions), until one is wrong. Allowed are, of the standard
/// deviation that independent roundings of all operations make in an element (operators/rounding_ring.h), 8 times where
/// both sides are computed in double precision (constants in a model are rounded, too) and 64 times where kernels
/// compute (they sum in other orders, and their functions are approximations), and of the largest element, a few
/// roundings. What kernels compute is also compared with what the original computes there itself. What cannot be
/// computed so (recurrences beyond the allowance) is not checked. Results of operators that are kept in 16 bits are
/// rounded to them besides; what is kept in 64 is allowed what 32 are. Fails if the activations do or
/// a graph cannot be executed.
[[nodiscard]] Expected<RegionReport> check_regions(const Graph& original, const Graph& result,
                                                   std::span<const ChangedRegion> regions,
                                                   const Activations& activations, const KernelLibrary& library,
                                                   const RegionCheckOptions& options);

}  // namespace taso
