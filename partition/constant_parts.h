/// Parts of values that depend on weights alone where the values do not: what a piece of a concatenation makes that
/// reads nothing but a weight, of a pad that has nothing but its border, and what further pieces make of such parts.
/// Private to the folder.
///
/// Whoever writes a plan out may compute these parts, as it may compute weights; then nothing tells of the pieces but
/// the elements. They are computed here from the pieces, with bounds for rounding, so that they can be compared.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "graph/graph.h"
#include "operators/registry.h"
#include "partition/mesh.h"
#include "partition/plan_parts.h"
#include "partition/weight_elements.h"
#include "support/status.h"

namespace taso {

class ConstantParts {
 public:
  /// All are referred to. `pieces`: of all operators of the graph, in topological order (plan_pieces).
  ConstantParts(const Graph& graph, const Mesh& mesh, const OperatorRegistry& registry, std::span<const Piece> pieces);

  /// Whether a part, of weights too, depends on weights alone.
  [[nodiscard]] bool contains(const Part& part) const;
  /// Whether a tensor, as a file may have it, is a part; no part that depends on inputs is. bad_input where a weight
  /// has no data.
  [[nodiscard]] Expected<bool> are(const RingTensor<double>& elements, const Part& part);
  /// Whether it is what these parts make if they are combined, at least one. All are of one value and box.
  [[nodiscard]] Expected<bool> are_combined(const RingTensor<double>& elements, const std::vector<Part>& parts);

 private:
  /// Something that a piece makes of weights alone.
  struct Made {
    std::size_t piece = 0;
    Part part;
  };
  /// Of a part: per summand in it, what is in its box.
  using Sources = std::vector<std::vector<const Made*>>;

  [[nodiscard]] bool reads_constants(const Piece& piece) const;
  [[nodiscard]] std::optional<Sources> sources(const Part& part) const;
  /// The summands of a value, along all axes along which it is combined, that are in a part.
  [[nodiscard]] std::optional<std::set<Place>> summands_in(const Part& part, const Part& made) const;
  Status compute_pieces(const Part& part);
  Status compute(std::size_t piece);
  Expected<WeightElements> elements_of(const Part& part);
  Expected<WeightElements> combined(const Part& part, WeightElements sum, WeightElements summand);

  const Graph& graph_;
  const Mesh& mesh_;
  const OperatorRegistry& registry_;
  std::span<const Piece> pieces_;
  Weights weights_;
  std::set<NodeId> computable_;  ///< What depends on constants alone, through operators.
  std::map<Value, std::vector<Made>> made_;
  std::map<std::size_t, std::vector<WeightElements>> results_;  ///< Of pieces, per output, as far as they are kept.
};

}  // namespace taso
