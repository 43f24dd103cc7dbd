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
    std::span<const std::shared_ptr<const Configuration>> choices;
    [[nodiscard]] std::uint32_t size() const {
      return choices.empty() ? 2 : static_cast<std::uint32_t>(choices.size());
    }
  };
  struct Factor {
    std::uint32_t first = 0, second = 0;  ///< Variables; equal if there is only one.
    NodeId node = 0;                      ///< What its kernels compute, or the producer of what they convert.
    std::uint32_t begin = 0, size = 0;    ///< Its table in `codes`; `first` runs slowest.
  };
  std::vector<Variable> variables;  ///< Producers before consumers.
  std::vector<Factor> factors;
  std::vector<Code> codes;  ///< The tables of all factors.
  std::vector<std::shared_ptr<const PlannedKernel>> kernels;
  std::vector<NodeId> nodes;           ///< Per kernel: `node` of a factor that needs it.
  std::shared_ptr<const void> memory;  ///< Holds what `choices` refer to.

  [[nodiscard]] std::span<const Code> table(const Factor& factor) const {
    return {codes.data() + factor.begin, factor.size};
  }
  /// The code of a factor at values of all variables.
  [[nodiscard]] Code at(const Factor& factor, std::span<const std::uint32_t> values) const {
    return factor.first == factor.second
               ? codes[factor.begin + values[factor.first]]
               : codes[factor.begin + values[factor.first] * variables[factor.second].size() + values[factor.second]];
  }
  /// What Lowering::lower wants to know of values of all variables.
  [[nodiscard]] LayoutAssignment assignment(std::span<const std::uint32_t> values) const;
};

/// Makes spaces of many similar graphs. What a node or a value adds to a space depends on a few things around it: on
/// its type and label, on the layouts in which its operands may be there, on who reads it. Both are made once for each
/// such surrounding and looked up from then on, so that a graph that differs from an earlier one in a few nodes takes
/// one look-up per node and one per value besides what is new. Not thread-safe.
class LayoutSpaces {
 public:
  /// `blocks`: the blocks of channels that the kernels know (KernelLibrary::blocks). `cached_tenths`: see
  /// KernelRequest. `float_storage`: as for LoweringOptions. `maximum_memory`: rough number of words that may be
  /// remembered; beyond, all but kernels is forgotten. The registry must outlive it.
  LayoutSpaces(const OperatorRegistry& registry, int threads, std::optional<Layout> blocks, int cached_tenths = 0,
               ElementType float_storage = ElementType::f32, std::size_t maximum_memory = std::size_t{1} << 22);
  ~LayoutSpaces();
  LayoutSpaces(LayoutSpaces&&) noexcept;
  LayoutSpaces& operator=(LayoutSpaces&&) noexcept;
  /// Opaque nodes count as inputs of what they produce, as for Lowering::set_skip_opaque. Fails (bad_input) on tensors
  /// of unknown shape that an operator needs.
  [[nodiscard]] Expected<LayoutSpace> of(const Graph& graph);

 private:
  struct Memory;
  struct Builder;
  const OperatorRegistry* registry_;
  PlannedKernels kernels_;
  std::optional<Layout> blocks_;
  std::size_t maximum_memory_;
  std::shared_ptr<Memory> memory_;
  std::vector<LayoutSpace::Code> codes_;  ///< Per number of a kernel: its code in the space being made, or 0.
};

}  // namespace taso
