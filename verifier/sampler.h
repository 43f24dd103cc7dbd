/// Random instances of a rule, proposed from the definitions of its operators. Private to the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "verifier/instances.h"
#include "verifier/landmarks.h"
#include "verifier/typer.h"

namespace taso {

/// The values of a rule's variables at an instance.
[[nodiscard]] Bindings bindings_of(const Instance& instance);
/// Whether the conditions of a rule hold, those on elements apart.
[[nodiscard]] bool conditions_hold(const Substitution& rule, const Bindings& bindings);

/// What a sample at a landmark has: mostly sizes 1 and 2, and somewhere this size or this rank.
struct Focus {
  std::int64_t size = 1;
  std::optional<std::size_t> rank;
  int percent = 0;  ///< Of the sizes that are the large one.
};

/// Samples instances of one rule: well-typed sources at which its conditions hold. Which proposal is right is decided
/// by type inference.
class Sampler {
 public:
  /// Registry and typer must outlive the sampler, and so must `landmarks` (null: none).
  Sampler(const OperatorRegistry& registry, Typer& typer, const InstanceOptions& options,
          const Landmarks* landmarks = nullptr);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// One attempt; `style` selects the distribution of extents.
  [[nodiscard]] std::optional<Instance> sample(std::size_t style);
  /// One attempt at a landmark.
  [[nodiscard]] std::optional<Instance> sample_at(const Focus& focus, std::size_t style);
  /// Ranks that every direct use of a tensor variable allows, and its conditions.
  [[nodiscard]] const std::vector<std::set<std::size_t>>& ranks() const;
  /// Tensor variables that hold integers.
  [[nodiscard]] const std::vector<bool>& integers() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace taso
