/// Pieces of an operator application: what a device computes of it. A piece is an application of the same operator; it
/// is reached by cuts into two, each the use of a strategy, whose conditions are checked at the shapes of what is cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "operators/registry.h"
#include "partition/strategy.h"
#include "support/status.h"

namespace taso {

/// A half-open range of indices.
struct IndexRange {
  std::int64_t begin = 0, end = 0;
  [[nodiscard]] std::int64_t size() const { return end > begin ? end - begin : 0; }
  auto operator<=>(const IndexRange&) const = default;
};

/// A box of a tensor: a range per axis.
using IndexBox = std::vector<IndexRange>;

/// All of a tensor.
[[nodiscard]] IndexBox whole_box(const Shape& shape);
/// Number of elements.
[[nodiscard]] std::int64_t volume_of(const IndexBox& box);

/// Where piece `piece` of `pieces` begins in a range of n indices: floor(n * piece / pieces). Pieces are as equal as
/// they can be, and the bounds of few pieces are among those of a multiple of as many.
[[nodiscard]] constexpr std::int64_t piece_begin(std::int64_t n, std::int64_t piece, std::int64_t pieces) {
  return n / pieces * piece + n % pieces * piece / pieces;
}

/// An application of an operator, and which part of a whole one it is.
struct OperatorPiece {
  std::string op;
  Attributes attributes;
  std::vector<TensorType> inputs, outputs;
  std::vector<IndexBox> reads;  ///< Per input: of the whole's input.
  std::vector<IndexBox> makes;  ///< Per output: of the whole's output.
  /// Per output: which of the application's results these are. All, but where it has to make more than its part
  /// (PartitionStrategy::behind_first).
  std::vector<IndexBox> keeps;
};

/// Whether all types of what a node reads and makes are known.
[[nodiscard]] bool types_known(const Graph& graph, const Node& node);

/// A node as the piece that is all of it. The node is an operator, all of whose types are known (TASO_CHECK).
[[nodiscard]] OperatorPiece all_of(const Graph& graph, NodeId id);

/// The strategies and passages that may be used, by operator, each asked for once. Not thread-safe.
class StrategyTable {
 public:
  using Strategies = std::function<std::vector<PartitionStrategy>(std::string_view op)>;
  using Passages = std::function<std::vector<PartialPassage>(std::string_view op)>;
  /// The registry is referred to. `strategies` and `passages` give what is proved (ProvedStrategies).
  StrategyTable(const OperatorRegistry& registry, Strategies strategies, Passages passages)
      : registry_(registry), strategies_(std::move(strategies)), passages_(std::move(passages)) {}
  /// Of an operator that the registry has.
  [[nodiscard]] const std::vector<std::shared_ptr<const PartitionStrategy>>& of(std::string_view op);
  [[nodiscard]] const std::vector<PartialPassage>& passages_of(std::string_view op);
  [[nodiscard]] const OperatorRegistry& registry() const { return registry_; }

 private:
  const OperatorRegistry& registry_;
  Strategies strategies_;
  Passages passages_;
  std::map<std::string, std::vector<std::shared_ptr<const PartitionStrategy>>, std::less<>> known_;
  std::map<std::string, std::vector<PartialPassage>, std::less<>> known_passages_;
};

/// A strategy at a piece: its numbers but for the cut point.
struct PieceCut {
  std::shared_ptr<const PartitionStrategy> strategy;
  /// The variable as the definition calls it, and where parts lie side by side the axis of the output, counted from the
  /// end: "i@-2". Pieces of one operator have cuts of equal names; strategies for different circumstances share one.
  std::string name;
  std::int64_t extent = 0;  ///< Of the range of the variable; at least 2.
  /// The axis of every output along which parts lie side by side, from the front; nothing where they are combined by
  /// the strategy's reducer.
  std::optional<std::size_t> output_axis;
  std::vector<std::optional<AttributeValue>> attributes;  ///< Of the rule's variables.
  /// Where the strategy speaks of two inputs or outputs and there are more: the cuts of the operator of all but the
  /// first one (partition/folded_piece.h).
  std::shared_ptr<const std::vector<PieceCut>> of_rest;
};

/// The cuts of a piece, in the order of the strategies, and of one that stands for several axes from the front; with
/// `name`, those of that name only.
[[nodiscard]] std::vector<PieceCut> cuts_of(const OperatorPiece& piece, StrategyTable& strategies,
                                            std::string_view name = "");

/// Whether the conditions of a passage hold at a piece, so that it makes partial results of partial operands.
[[nodiscard]] bool applies(const PartialPassage& passage, const OperatorPiece& piece);

/// One of the two parts of a piece at a cut point, 0 < point < extent, which is among the values for which the piece
/// keeps results. Fails where a condition of the strategy does not hold there.
[[nodiscard]] Expected<OperatorPiece> part_of(const OperatorPiece& piece, const PieceCut& cut, std::int64_t point,
                                              bool second, const OperatorRegistry& registry);

/// Piece number `index` of `pieces` of a range of n indices.
struct RangePiece {
  std::int64_t n = 0, index = 0, pieces = 1;
  [[nodiscard]] IndexRange range() const { return {piece_begin(n, index, pieces), piece_begin(n, index + 1, pieces)}; }
  auto operator<=>(const RangePiece&) const = default;
};

/// Of `piece`, whose range of the variable `cut` (PieceCut::name) is `have`, the piece whose range is `wanted`, which
/// lies in it: at most two cuts. Fails where the variable cannot be cut there, or a piece would be empty.
[[nodiscard]] Expected<OperatorPiece> piece_at(const OperatorPiece& piece, const std::string& cut,
                                               const RangePiece& wanted, const RangePiece& have,
                                               StrategyTable& strategies);

}  // namespace taso
