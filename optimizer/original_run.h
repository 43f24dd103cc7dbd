/// The original of a numeric check, as it runs: on random inputs, on small changes of them, and up to where rules have
/// rewritten it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "runtime/configuration.h"
#include "runtime/executor.h"
#include "runtime/kernel.h"
#include "runtime/tensor.h"
#include "support/status.h"

namespace taso {

/// Largest change between two tensors of one type, relative to the largest element of the second, where both are
/// finite; nothing if that is nowhere.
[[nodiscard]] std::optional<double> relative_change(const HostTensor& a, const HostTensor& b);

struct OriginalRunOptions {
  int inputs = 3;  ///< Number of random inputs, at least 1: uniform in [-1, 1), the last of several in [0, 1).
  std::uint64_t seed = 0;
  int threads = 1;
  std::shared_ptr<const LayoutAssignment> layouts;  ///< Null: by the runtime's rule.
};

class OriginalRun {
 public:
  /// `cut`: `whole` cut at its opaque nodes (cut_alike), perhaps with further outputs. It runs in working types
  /// (Graph::in_working_types), on inputs that the graph's own types have. `host` is referred to.
  OriginalRun(const Graph& whole, const Graph& cut, const KernelLibrary& host, OriginalRunOptions options);

  /// Makes the inputs, and runs the original on them.
  [[nodiscard]] Status run();
  /// Finds out more, for deviations(): at every input several small changes, and the original in double precision. What
  /// one input shows then counts at all: of an output of few elements one change may show little by chance. Slow.
  [[nodiscard]] Status look_closer();
  /// Computes the original in double precision at the first `inputs` inputs, for deviations(). Slow: element by
  /// element, by the definitions. Nothing is learnt where it is not of real numbers alone.
  [[nodiscard]] Status compare_with_doubles(std::size_t inputs);

  /// Per input, those of `cut`, in its types.
  [[nodiscard]] const std::vector<std::vector<HostTensor>>& inputs() const { return inputs_; }
  /// Per input, in working types.
  [[nodiscard]] const std::vector<std::vector<HostTensor>>& outputs() const { return outputs_; }
  /// Per input and output: by how much it changes where inputs are changed by about two roundings of their largest
  /// elements (of f32 by 1e-7), or how
  /// far it is from itself in double precision; the larger, relative to its largest element. At inputs where the first
  /// was not tried, as at the first input.
  [[nodiscard]] const std::vector<std::vector<double>>& deviations() const { return deviations_; }

  /// What the original computes at values of `whole`: on the first input, or (`attempt` > 0) on a positive one. In the
  /// values' types.
  [[nodiscard]] Expected<std::vector<HostTensor>> activations(std::span<const Value> values, int attempt) const;

 private:
  [[nodiscard]] Status deviate(Executor& executor, std::size_t input, std::uint64_t draw);

  std::optional<ElementType> narrowest_;
  std::vector<TensorType> input_types_;  ///< Of the graph that was given.
  Graph given_;                          ///< The whole graph in its own types.
  Graph whole_, cut_;                    ///< In working types.
  const KernelLibrary& host_;
  OriginalRunOptions options_;
  ExecutorOptions executor_options_;
  std::vector<std::vector<HostTensor>> inputs_;       ///< In the types of the graph that was given.
  std::vector<std::vector<HostTensor>> wide_inputs_;  ///< The same numbers in working types.
  std::vector<std::vector<HostTensor>> outputs_;
  std::vector<std::vector<double>> deviations_;
};

}  // namespace taso
