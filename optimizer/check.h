/// The numeric check of an optimized graph against the original, in two parts.
///
/// Region by region: what rules have rewritten is computed by itself (optimizer/region_check.h). That says which rules
/// were wrong, and is as sharp in a network that amplifies rounding as in any other.
///
/// End to end: both run on the same seeded random inputs, the original on the host, the result where the library's
/// kernels run. Networks amplify rounding, some beyond all bounds. So the original also runs on inputs that are changed
/// by 1e-7: the result may be ten times as far off as that is. On a device the original runs there too: the result may
/// be twice as far off as that is, if that is not above 10 %.
///
/// Where values are kept in f16 or bf16, the reference is the original with f32 throughout, whose rounding is nothing
/// beside theirs, on inputs that the narrow types have; the original as it is runs besides, as on a device, and inputs
/// are changed by as many roundings of the narrow type.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "optimizer/changed_regions.h"
#include "optimizer/region_check.h"
#include "runtime/configuration.h"
#include "runtime/kernel.h"
#include "support/status.h"

namespace taso {

struct CheckOptions {
  /// Allowed difference relative to the largest magnitude of the tensor compared, end to end.
  double rtol = 1e-4;
  /// Where the graph's narrowest type takes more, that: f16 0.02, bf16 0.16.
  bool rtol_by_type = true;
  double atol = 1e-10;  ///< Allowed absolute difference besides.
  int inputs = 3;       ///< Number of random inputs; the last of several is positive.
  std::uint64_t seed = 0;
  int threads = 1;
  /// The type in which a device keeps what is f32 in the result; f32 without one.
  ElementType float_storage = ElementType::f32;
  std::vector<std::string> output_names;  ///< Of the graph's outputs, for messages; may be empty.
  std::vector<std::string> node_names;    ///< Of the user's nodes by origin, for messages; may be empty.
  /// Every element of every region is computed, and the original as a whole in double precision: what it is off by
  /// itself counts as much as what changed inputs make of it.
  bool full = false;
  double region_rtol = 0;  ///< Allowed besides in regions: of the largest element of a tensor.
  /// How the graphs are computed; null: by the runtime's rule.
  std::shared_ptr<const LayoutAssignment> reference_layouts, result_layouts;
};

/// One tensor compared.
struct CheckedTensor {
  std::string name;           ///< Output name, "behind NAME" for a layer looked at besides, "NODE:in0" at a cut.
  double max_difference = 0;  ///< Largest |result - reference| over all inputs, where both are finite.
  double magnitude = 0;       ///< Largest finite |reference|.
  /// Relative change of the reference between different inputs: near 0 the comparison says little.
  double sensitivity = 0;
  bool within = true;
  /// Elements, over all inputs, that are finite in the reference (they are compared), and that are not (a logarithm of
  /// a negative number, say: they are left out).
  std::int64_t compared = 0, not_finite = 0;
  std::int64_t became_not_finite = 0;  ///< Of those compared: NaN or infinite in the result. Never within tolerance.
  double finite_share = 0;             ///< Share of elements compared, at the input where it is largest.
  /// What becomes of the reference if its inputs change by 1e-7, and with CheckOptions::full, how far it is from itself
  /// in double precision: the larger, relative to `magnitude`. 0 if no input is of real numbers.
  double own_deviation = 0;
  bool excused = false;  ///< Outside the tolerance, but not in view of `own_deviation`.
};

struct CheckReport {
  std::vector<CheckedTensor> tensors;
  bool passed = true;
  bool vacuous = false;  ///< Hardly any compared tensor depends on the inputs.
  double worst = 0;      ///< Largest max_difference / magnitude.
  double rtol = 0;       ///< That was allowed.
  RegionReport regions = {};
  std::string not_checked = {};  ///< Where regions were not checked: the end of a message that says so.
  std::string wrong_region =
      {};  ///< Which tensor is wrong by itself, and what was applied before it; empty if none is.
  /// One line for people, e.g. "3 inputs, 1 output: largest relative difference 2.1e-07".
  [[nodiscard]] std::string summary() const;
  /// One line on the first region that is wrong, else on the first tensor that is outside the tolerance; empty if the
  /// check passed.
  [[nodiscard]] std::string failure() const;
  /// One line for every tensor of which less than half could be compared at every input, and one if the comparison end
  /// to end shows little because the model amplifies rounding.
  [[nodiscard]] std::vector<std::string> remarks() const;
};

/// What was rewritten: the regions and, for messages, the applications that made them.
struct Rewritten {
  std::vector<ChangedRegion> regions;
  std::vector<RuleApplication> applications;
};

/// Checks the regions and runs both graphs. Their inputs and outputs correspond by position, their opaque nodes by
/// name: what an opaque node produces becomes a random input, what it consumes is compared. Where both graphs end in
/// the same operators whose results determine what they are applied to (operators/injectivity.h: a softmax, a reshape),
/// the tensor they start from is compared besides: a softmax makes differences small. Inputs are uniform in [-1, 1),
/// and the last of several in [0, 1), so that logarithms and roots are seen where they have a value. On a device that
/// is only described nothing runs: both graphs run on the host, in f32. Regions are computed on the host. Fails if a
/// graph cannot be executed.
[[nodiscard]] Expected<CheckReport> check(const Graph& reference, const Graph& result, const KernelLibrary& library,
                                          const CheckOptions& options, const Rewritten& rewritten = {});

}  // namespace taso
