/// From a graph to the sequence of kernels that computes it.
///
/// Every operator node becomes one of: nothing (weight-only: folded before the first run), a view of another
/// tensor's memory (no kernel), or one kernel. Between nodes that want different layouts stand explicit `reorder`
/// kernels, one per tensor and wanted layout.
///
/// Views. `reshape` always. `split`, `slice` (unit steps) along one axis whose outer extents, in the order of the
/// tensor's layout, are all 1; `concat` along such an axis if every operand is the whole output of some kernel
/// that can write straight into the result. An identity (same type, e.g. a `broadcast` or `transpose` that moves
/// nothing) is a view too.
///
/// Folded broadcasts. `broadcast` whose consumer is element-wise is part of the consumer's kernel.
///
/// Layouts are those of an assignment (runtime/layout_space.h), or follow a rule: Convolutions and poolings run in
/// channels_last; nodes that can work in either layout do so if an operand
/// has it; all else is row_major. Where both layouts of a tensor are
/// the same bytes (one channel, or 1x1 images) no conversion is needed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "runtime/configuration.h"
#include "runtime/kernel.h"
#include "support/status.h"

namespace taso {

struct LoweringOptions {
  /// False: every tensor is row_major (the counting mode of `--cost launches`).
  bool channels_last = true;
  /// False: a concatenation is one kernel, never written in place by the kernels of its operands (counting mode).
  bool concat_in_place = true;
  int threads = 1;
  int cached_tenths = 0;  ///< See KernelRequest.
  /// The type in which tensors that are f32 in the graph are kept: f32, f16 or bf16. Types and offsets of
  /// LoweredTensor, and requests, are those of the storage; shapes and values of the graph stay.
  ElementType float_storage = ElementType::f32;
};

/// What a step reads or writes: an index into LoweredGraph::tensors.
using TensorIndex = std::uint32_t;

/// One tensor of the lowered graph, in one layout.
struct LoweredTensor {
  enum class Source : std::uint8_t {
    input,   ///< Graph input number `index`.
    weight,  ///< The constant or weight-only value `value`, in `layout`.
    kernel,  ///< Written by step `index`.
    view,    ///< Bytes [offset, offset + bytes) of tensor `index`.
    piece,   ///< A kernel's output that begins at `offset` of the concatenation `index`, which is made of pieces; on a
             ///< device perhaps with others between its elements (Operand::within).
    pieces,  ///< A tensor that is the whole of its pieces: no kernel writes it as such.
  };
  Source source = Source::kernel;
  TensorType type;
  Layout layout = Layout::row_major;
  Value value;              ///< The graph's value it materialises.
  std::uint32_t index = 0;  ///< See Source. The writing step of a `piece` is `step`.
  std::int64_t offset = 0;  ///< In bytes.
  std::uint32_t step = 0;   ///< For kernel and piece: the step that writes it.
};

/// One launch.
struct LoweredStep {
  std::shared_ptr<const PlannedKernel> kernel;
  NodeId node = 0;  ///< The node computed, or for a reorder the producer of the tensor.
  std::vector<TensorIndex> inputs;
  std::vector<TensorIndex> outputs;
  std::vector<NodeId> fused = {};  ///< Of a fused step: the nodes of all that it computes, in order, `node` last.
};

struct LoweredGraph {
  std::vector<LoweredStep> steps;  ///< In execution order.
  std::vector<LoweredTensor> tensors;
  std::vector<TensorIndex> outputs;  ///< Per graph output; row_major.
  /// Number of kernels: what `--cost launches` counts.
  [[nodiscard]] std::size_t launches() const { return steps.size(); }
};

/// A step of a lowered graph without its tensors.
struct LoweredLaunch {
  std::shared_ptr<const PlannedKernel> kernel;
  NodeId node = 0;  ///< As in LoweredStep.
};

/// Lowers many similar graphs: requests are remembered, so that a graph of 500 nodes takes a fraction of a
/// millisecond. Not thread-safe: one per thread. The registry must outlive it.
class Lowering {
 public:
  Lowering(const OperatorRegistry& registry, LoweringOptions options);
  ~Lowering();
  Lowering(Lowering&&) noexcept;
  Lowering& operator=(Lowering&&) noexcept;
  /// Nodes are computed as `assignment` says (of choose_layouts for this graph, see runtime/layout_space.h), by the
  /// rule where it is null. Fails (bad_input) on opaque nodes and on tensors of unknown shape that an operator or
  /// output needs, naming them; see cut_at_opaque.
  [[nodiscard]] Expected<LoweredGraph> lower(const Graph& graph, const LayoutAssignment* assignment = nullptr);
  /// The steps of lower(graph) alone, in less time.
  [[nodiscard]] Expected<std::vector<LoweredLaunch>> launches(const Graph& graph);
  [[nodiscard]] const LoweringOptions& options() const;
  /// If set, opaque nodes are not errors: their outputs count as inputs and cost nothing (the search's view).
  void set_skip_opaque(bool skip);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One graph.
[[nodiscard]] Expected<LoweredGraph> lower(const Graph& graph, const OperatorRegistry& registry,
                                           const LoweringOptions& options = {},
                                           const LayoutAssignment* assignment = nullptr);

/// A graph whose opaque nodes are cut out: their outputs of known type become inputs named
/// "<node name>:out<port>" after the graph's own inputs, and their inputs (of known type, not weight-only) become
/// outputs after the graph's own, labelled "<node name>:in<position>", all in the order of the nodes' names. Two
/// graphs with the same opaque nodes can be compared on these. Graph outputs and inputs of unknown type are left out.
struct CutGraph {
  Graph graph;
  std::vector<std::string> output_names;        ///< One per output of `graph`.
  std::size_t own_outputs = 0;                  ///< How many of them are outputs of the original graph...
  std::vector<std::uint32_t> own_output_index;  ///< ...and which.
  std::size_t opaque_nodes = 0;
};
/// `output_names` names the original's outputs (may be empty: "output0", ...).
[[nodiscard]] CutGraph cut_at_opaque(const Graph& graph, const std::vector<std::string>& output_names = {});

/// The same for two graphs that are to be compared: an input of an opaque node becomes an output of both or of neither.
/// It does unless both graphs read there what is not computed: the same graph input, the same output of an opaque node,
/// a weight-only value.
[[nodiscard]] std::pair<CutGraph, CutGraph> cut_alike(const Graph& a, const Graph& b,
                                                      const std::vector<std::string>& names_of_a = {},
                                                      const std::vector<std::string>& names_of_b = {});

}  // namespace taso
