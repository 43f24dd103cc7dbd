/// SoyBean's tilings of a graph over 2^k devices: Algorithm 1 of its paper (partition/soybean_tiling.h has the source),
/// and the best of all k-cut tilings, to which it is compared.
///
/// One cut: every tensor gets a basic tiling; an operator costs what it takes to bring its operands into one of its
/// aligned forms, and its results from that form into their tilings, whichever form takes least (equation 2). As a
/// problem of elimination the form is a decision of its own, next to the tilings of its tensors, so that costs are of
/// pairs, however many operands there are.
///
/// Several cuts: each divides every group of devices into two, and costs as much in each group. An operator of a group
/// is the piece that its forms so far leave to it; a tensor is the tile. What the next cut converts is what the group
/// needs: of an operand, what its piece reads; of a result, what its piece makes or the tile, whichever is larger. (The
/// paper does not say; with these sizes its example costs exactly (n - 1) / n of what it counts.) The total is
/// c_k = sum of 2^i times the cost of cut i, i = 0 for the first (Theorem 1).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "partition/mesh.h"
#include "partition/solve_exact.h"
#include "partition/soybean_tiling.h"
#include "support/status.h"

namespace taso {

/// A tiling of T^k: what each cut does with the tiles of the one before, first cut first.
using Tiling = std::vector<BasicTiling>;

/// "RrC": the cuts one after the other.
[[nodiscard]] std::string to_string(const Tiling& tiling, std::size_t rank);
/// The same with the cuts in the order of axes, r last: equal for tilings that differ in order only (Theorem 2).
[[nodiscard]] Tiling in_order_of_axes(Tiling tiling);

/// The cuts of a mesh into two, slowest links first. Fails for an axis whose size is no power of two.
[[nodiscard]] Expected<std::vector<MeshAxis>> binary_cuts(const Mesh& mesh);

/// How a conversion from or to a tiling is priced over several cuts.
enum class SoybeanPrice : std::uint8_t {
  cut_by_cut,  ///< Theorem 1: each cut by itself.
  payload,     ///< Bytes received, boxes on a mesh of axes of two devices (partition/placement.h). Not by Algorithm 1.
};

struct SoybeanOptions {
  /// Values that are one tensor: a weight and what it is after the step.
  std::vector<std::pair<Value, Value>> same;
  /// Which tilings a value may have; empty: all. A value none of whose tilings is allowed may have any.
  std::function<bool(Value, const Tiling&)> allowed;
  /// Which aligned forms an operator, or a piece of it, may have; empty: all. One none of whose forms is allowed may
  /// have any.
  std::function<bool(NodeId, const AlignedForm&)> allowed_forms;
  ExactOptions solver;
};

struct SoybeanPlan {
  std::size_t cuts = 0;
  std::map<Value, Tiling> tilings;                   ///< Of all values.
  std::map<NodeId, std::vector<std::string>> forms;  ///< Of all operators: the variable that each cut cuts.
  std::vector<double> cut_bytes;                     ///< Cost of each cut in one group, first cut first.
  double bytes = 0;                                  ///< c_k, or what `price` says.
  double lower_bound = 0;                            ///< Where not exact: no tiling takes less.
  bool exact = true;                                 ///< Every problem was solved exactly.
};

/// A graph prepared for tilings.
class SoybeanTiler {
 public:
  /// All are referred to. Fails where a node is no operator, or types are not known.
  [[nodiscard]] static Expected<SoybeanTiler> make(const Graph& graph, StrategyTable& strategies,
                                                   SoybeanOptions options = {});

  /// Algorithm 1: the best tiling of one cut, then the same of the tiles, `cuts` times.
  [[nodiscard]] SoybeanPlan recursive(std::size_t cuts);
  /// The best of all tilings of so many cuts, and all sequences of forms.
  [[nodiscard]] SoybeanPlan exact(std::size_t cuts, SoybeanPrice price = SoybeanPrice::cut_by_cut);
  /// What the tilings and forms of a plan cost at another price.
  [[nodiscard]] double price(const SoybeanPlan& plan, SoybeanPrice price);
  /// What a device computes of every operator; all devices' pieces are alike.
  [[nodiscard]] std::vector<OperatorPiece> pieces(const SoybeanPlan& plan);

 private:
  class Problem;
  /// An operator node, or the piece of it that a group computes.
  struct Applied {
    NodeId node = 0;
    OperatorPiece piece;
    std::vector<std::size_t> inputs, outputs;  ///< Numbers of tensors.
  };
  /// One tensor: values that are the same.
  struct Tensor {
    std::vector<Value> values;
    TensorType type;
  };
  const Graph* graph_ = nullptr;
  StrategyTable* strategies_ = nullptr;
  SoybeanOptions options_;
  std::vector<Applied> operators_;
  std::vector<Tensor> tensors_;
};

/// Bytes of data, model and hybrid parallelism of layers alike, as section 2.2 of the paper counts: weights are summed
/// and sent again among groups, activations and their gradients exchanged within each, `groups` groups of
/// devices / groups. Each device counts as one copy that moves (`all`), or one of them does not (`others`: exact).
/// groups = devices: data parallelism; 1: model parallelism.
enum class CountedCopies : std::uint8_t { all, others };
[[nodiscard]] double parallelism_bytes(double weight_bytes, double activation_bytes, double groups, double devices,
                                       CountedCopies copies);

}  // namespace taso
