/// All ways to lower a graph: which layouts each node may work in, and which kernels each choice takes.
///
/// A variable is a node and its configurations, or the question whether a value is also kept in another layout
/// than the one it is made in. A factor says which kernel a choice (or a pair of choices) needs, or that they do
/// not go together. The kernels of an assignment are exactly those that Lowering::lower emits for it, each once, so
/// that the sum of their costs is the cost of the lowered graph; no cost is known here.
///
/// Configurations. Convolutions, poolings: row_major, channels_last, and the blocks of channels that the kernels know.
/// Followers (element-wise operators, copies, reductions): row_major and every layout in which an operand is there.
/// Products: operands in every layout in which they are there without conversion, the result as the transpose behind it
/// would have it. Transposes: from each such layout, a view where the bytes stay. Reshapes read rows. Concatenations:
/// written in place by the kernels of their operands, or copied.
///
/// One conversion for each value and layout, however many read it ("form" variables): a value with several readers that
/// may want layout L has a variable "exists in L", which costs the conversion unless L is the layout it is made in, and
/// which each reader in L requires. With one such reader the pair (producer, reader) says the same.
///
/// Concatenation in place needs every operand to be the whole output of a kernel that no other concatenation claims,
/// possibly seen through views; such views have two configurations, of which one claims their input likewise.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"
#include "runtime/configuration.h"
#include "support/status.h"

namespace taso {

struct LayoutSpace {
  /// What a combination needs: nothing, what cannot be, or the kernel `code - first_kernel`.
  using Code = std::uint32_t;
  static constexpr Code nothing = 0, impossible = 1, first_kernel = 2;

  struct Variable {
    NodeId node = 0;
    /// Of a node. Empty for a form: its values are 0 (is not there) and 1 (is there).
    std::vector<std::shared_ptr<const Configuration>> choices;
    [[nodiscard]] std::uint32_t size() const {
      return choices.empty() ? 2 : static_cast<std::uint32_t>(choices.size());
    }
  };
  struct Factor {
    std::uint32_t first = 0, second = 0;  ///< Variables; equal if there is only one.
    NodeId node = 0;                      ///< What its kernels compute, or the producer of what they convert.
    std::vector<Code> table;              ///< `first` runs slowest.
  };
  std::vector<Variable> variables;  ///< Producers before consumers.
  std::vector<Factor> factors;
  std::vector<std::shared_ptr<const PlannedKernel>> kernels;

  /// The code of a factor at values of all variables.
  [[nodiscard]] Code at(const Factor& factor, std::span<const std::uint32_t> values) const {
    return factor.first == factor.second
               ? factor.table[values[factor.first]]
               : factor.table[values[factor.first] * variables[factor.second].size() + values[factor.second]];
  }
  /// What Lowering::lower wants to know of values of all variables.
  [[nodiscard]] LayoutAssignment assignment(std::span<const std::uint32_t> values) const;
};

/// Makes spaces of many similar graphs; configurations are remembered. Not thread-safe.
class LayoutSpaces {
 public:
  /// `blocks`: the blocks of channels that the kernels know (KernelLibrary::blocks). `cached_tenths`: see
  /// KernelRequest. `float_storage`: as for LoweringOptions.
  LayoutSpaces(int threads, std::optional<Layout> blocks, int cached_tenths = 0,
               ElementType float_storage = ElementType::f32)
      : kernels_(threads, cached_tenths, float_storage), blocks_(blocks) {}
  /// Opaque nodes count as inputs of what they produce, as for Lowering::set_skip_opaque. Fails (bad_input) on tensors
  /// of unknown shape that an operator needs.
  [[nodiscard]] Expected<LayoutSpace> of(const Graph& graph);

 private:
  struct Builder;
  using Choices = std::vector<std::shared_ptr<const Configuration>>;
  PlannedKernels kernels_;
  std::optional<Layout> blocks_;
  std::unordered_map<Hash128, std::shared_ptr<const Choices>> choices_;
};

}  // namespace taso
