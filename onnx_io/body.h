/// Subgraphs of control flow as documents of their own. Internal to onnx_io: includes protobuf.
///
/// A body is a model like the one that it stands in: what it reads from outside is a graph input, or, where it is
/// constant there, an initializer whose bytes are shared. So all that is done to models is done to it, and only the way
/// in and the way back are special: types of its inputs follow from what its node reads, and what stands for the
/// outside is taken away again.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "onnx_io/export.h"
#include "onnx_io/import.h"

namespace taso {

/// A subgraph of a document: an attribute of a node, by their positions.
struct SubgraphPlace {
  int node = 0, attribute = 0;
};

/// The subgraphs of If, Loop and Scan in the main graph, in an order in which nodes can run. Of other operators nobody
/// knows what they do with theirs.
[[nodiscard]] std::vector<SubgraphPlace> bodies_of(const Document& document);

/// A subgraph that was read.
struct Body {
  std::shared_ptr<const Document> document;
  ImportedModel imported;
};

/// Reads a subgraph of the document that `imported` was read from. An input whose shape the file does not state has
/// that of what its node gives to it; what is carried from one iteration to the next one only where, all of it taken
/// so, the body makes it of the same shape again.
[[nodiscard]] Expected<Body> read_body(const Document& document, const ImportedModel& imported,
                                       const OperatorRegistry& registry, const ImportOptions& options,
                                       SubgraphPlace place);

/// What Loop and Scan give to the inputs of their subgraph; of If nothing.
struct IterationInputs {
  std::vector<TensorType> types;  ///< Of the first inputs.
  /// Those that an iteration hands to the next one: [first_state, first_state + states), made by the body's outputs
  /// from `first_output` on.
  int first_state = 0, states = 0, first_output = 0;
  [[nodiscard]] bool is_state(std::size_t input) const {
    return input >= static_cast<std::size_t>(first_state) && input < static_cast<std::size_t>(first_state + states);
  }
};
[[nodiscard]] IterationInputs inputs_of_iteration(const Document& document, const ImportedModel& imported, int node);

/// What the tensors are that a subgraph reads: extents that are `open` are symbols in it.
struct BodyExtents {
  struct Input {
    TensorType type;
    std::set<std::size_t> open;  ///< Axes.
  };
  std::function<bool(const std::string&)> follows;  ///< Of a tensor from outside: its extents may be open.
  std::vector<Input> inputs = {};                   ///< Of the subgraph's own.
  /// Whether an extent of such a tensor is another at other sizes; none: each is.
  std::function<bool(const std::string&, std::size_t)> varies = {};
  /// Nothing is known of the shapes of tensors that follow: the subgraph may not exist where all extents differ.
  bool untyped = false;
};

/// Reads a subgraph for what it makes at all sizes of open extents, those that depend on elements of its own included.
/// What the file states of shapes in it is not believed.
[[nodiscard]] Expected<Body> read_open_body(const Document& document, const ImportedModel& imported,
                                            const OperatorRegistry& registry, const ImportOptions& options,
                                            SubgraphPlace place, const BodyExtents& extents);

/// Types of the outputs of If, Loop or Scan, those that follow from its subgraphs: what both branches make of one type,
/// what iterations hand on and keep, the parts that a Scan collects. Not of nodes that are themselves in two subgraphs
/// or more: nested loops would be read again and again.
[[nodiscard]] std::vector<std::optional<TensorType>> types_by_bodies(const Document& document,
                                                                     const ImportedModel& imported,
                                                                     const OperatorRegistry& registry,
                                                                     const ImportOptions& options, int node);

/// `document` with `exported`, from the body's graph, in the place of the subgraph; null if that is what stands there.
[[nodiscard]] Expected<std::shared_ptr<const Document>> with_body(const Document& document, SubgraphPlace place,
                                                                  const Document& body, const ImportedModel& imported,
                                                                  const ExportedGraph& exported);

}  // namespace taso
