/// The parts of a graph that an external runtime is expected to run as one: what is measured of it, part by part.
///
/// A runtime fuses what follows a product or a convolution into it, and recognises chains (a GELU that is spelled out,
/// an addition before a normalization). So a part is a tree: operators, each the only reader of those before it, of
/// which all but one work element by element, or normalize; with what is folded into them as they stand in a file:
/// broadcasts, and transposes that nothing else reads. Reshapes cost nothing, and belong to no part.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "operators/registry.h"
#include "support/hash.h"
#include "support/status.h"

namespace taso {

/// One part: nodes of a graph, each after those that it reads. The last one's outputs are the part's.
struct RuntimePart {
  std::vector<NodeId> nodes;
  NodeId main = 0;  ///< The one that the part is named after: a product, if there is one.
};

/// A part by itself.
struct StandalonePart {
  enum class Role : std::uint8_t {
    activation,
    weight,  ///< Stands in a file as an initializer, with contents that do not matter.
  };
  Graph graph;                       ///< Its inputs are what the part reads; small weights are constants of it.
  std::vector<Role> roles;           ///< Per input.
  std::vector<std::int64_t> bounds;  ///< Per input: integers are below it.
  std::string text;                  ///< In one line; equal texts are equal parts.
  std::string op;                    ///< Of the node that it is named after.
  double flops = 0, bytes = 0;       ///< As KernelInfo.
};

/// The parts of a graph, in the order of their first nodes. What is weight-only or opaque belongs to none.
[[nodiscard]] std::vector<RuntimePart> parts_of(const Graph& graph, const OperatorRegistry& registry);

/// Tells parts apart as StandalonePart::text does, with less work.
[[nodiscard]] Hash128 signature_of(const Graph& graph, const RuntimePart& part);

[[nodiscard]] Expected<StandalonePart> standalone(const Graph& graph, const RuntimePart& part,
                                                  const OperatorRegistry& registry);

/// Where a runtime keeps a layout of its own from part to part, or fuses across their borders, a part takes another
/// time than by itself. It shows in a piece: a part with those whose results it reads and those that read its.
struct RuntimePiece {
  std::vector<std::size_t> parts;  ///< By their numbers, ascending; each once.
  std::vector<NodeId> nodes;       ///< Theirs, and the reshapes between them; each after those that it reads.
  /// What others read, ascending; without what they have folded into themselves as well.
  std::vector<Value> outputs;
};

/// The piece around each of the parts of a graph, which parts_of() gave. Of many neighbours the first few on each side.
[[nodiscard]] std::vector<RuntimePiece> pieces_of(const Graph& graph, std::span<const RuntimePart> parts);

/// A piece by itself.
[[nodiscard]] Expected<StandalonePart> standalone(const Graph& graph, const RuntimePiece& piece,
                                                  const OperatorRegistry& registry);

}  // namespace taso
