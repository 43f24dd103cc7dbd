#include "partition/plan_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace taso {
namespace {

/// The part of a value that is partial along these mesh axes as a device has it.
Part part_at(Value value, const IndexBox& box, const Piece& piece, const std::vector<std::size_t>& axes) {
  Part part{value, box, {}, axes, {}};
  if (axes.empty()) return part;
  part.reducer = piece.reducer();
  Place place;
  for (const std::size_t axis : axes) place.push_back(piece.place[axis]);
  part.summands.insert(std::move(place));
  return part;
}

/// The pieces of one operator.
class PieceCutter {
 public:
  PieceCutter(const Graph& graph, NodeId id, const Mesh& mesh, const std::vector<AxisUse>& axes,
              StrategyTable& strategies)
      : graph_(graph), id_(id), mesh_(mesh), axes_(axes), strategies_(strategies), all_(all_of(graph, id)) {}

  Status run(std::vector<Piece>& pieces) {
    if (axes_.size() != mesh_.axes.size()) return refused("it names another number of mesh axes");
    TASO_RETURN_IF_ERROR(find_cuts());
    for (std::int64_t device = 0; device < mesh_.devices(); ++device) {
      const Place place = mesh_.coordinates(device);
      TASO_ASSIGN(OperatorPiece piece, piece_of(place));
      std::vector<std::size_t> operands = given_operands(piece);
      pieces.push_back({id_, std::move(piece), std::move(operands), place, &axes_});
    }
    return {};
  }

 private:
  [[nodiscard]] Error refused(const std::string& why) const {
    return {
        ErrorCode::not_proved, fmt::format("{} cannot be cut as the plan says: {}", describe(graph_, id_), why), {}};
  }

  Status find_cuts() {
    for (const PieceCut& one : cuts_of(all_, strategies_))
      cuts_.emplace(one.name, std::pair(one.extent, one.strategy->reducer));
    std::set<std::string> reducers;
    for (const AxisUse& use : axes_) {
      if (use.kind == AxisUse::Kind::cut) {
        const auto known = cuts_.find(use.variable);
        if (known == cuts_.end() || known->second.second != use.reducer)
          return refused(fmt::format("no proved strategy cuts {}", use.variable));
      }
      if (!use.reducer.empty()) reducers.insert(use.reducer);
    }
    if (reducers.size() > 1) return refused("its results would be partial in two ways");
    return {};
  }

  /// Where several mesh axes cut a variable, it is cut into as many pieces as their product.
  Expected<OperatorPiece> piece_of(const Place& place) {
    std::map<std::string, RangePiece> wanted;
    for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
      if (axes_[axis].kind != AxisUse::Kind::cut) continue;
      RangePiece& range =
          wanted.try_emplace(axes_[axis].variable, RangePiece{cuts_.at(axes_[axis].variable).first, 0, 1})
              .first->second;
      range = {range.n, range.index * mesh_.axes[axis].size + place[axis], range.pieces * mesh_.axes[axis].size};
    }
    OperatorPiece piece = all_;
    for (const auto& [variable, range] : wanted) {
      Expected<OperatorPiece> part = piece_at(piece, variable, range, {range.n, 0, 1}, strategies_);
      if (!part) return refused(part.error().message);
      piece = std::move(*part);
    }
    for (const AxisUse& use : axes_)
      if (use.kind == AxisUse::Kind::partial && !passes(piece, use))
        return refused(fmt::format("it does not pass partial {} on", use.reducer));
    return piece;
  }

  bool passes(const OperatorPiece& piece, const AxisUse& use) {
    const std::vector<PartialPassage>& passages = strategies_.passages_of(piece.op);
    return std::any_of(passages.begin(), passages.end(), [&](const PartialPassage& passage) {
      return passage.inputs == use.inputs && passage.reducer == use.reducer && applies(passage, piece);
    });
  }

  [[nodiscard]] std::vector<std::size_t> given_operands(const OperatorPiece& piece) const {
    std::vector<std::size_t> operands(piece.inputs.size());
    std::iota(operands.begin(), operands.end(), 0);
    if (strategies_.registry().is_associative(piece.op)) {
      std::erase_if(operands, [&](std::size_t i) { return piece.inputs[i].elements() == 0; });
      if (operands.empty()) operands.push_back(0);
    }
    return operands;
  }

  const Graph& graph_;
  NodeId id_;
  const Mesh& mesh_;
  const std::vector<AxisUse>& axes_;
  StrategyTable& strategies_;
  OperatorPiece all_;
  std::map<std::string, std::pair<std::int64_t, std::string>> cuts_;  ///< Extents and reducers.
};

}  // namespace

Part whole_part(const Graph& graph, Value value) {
  const TensorType& type = graph.type(value);
  return {value, type.known ? whole_box(type.shape) : IndexBox(), {}, {}, {}};
}

Part spread(const Part& part, const std::vector<std::size_t>& axes, const Mesh& mesh) {
  Part wide = part;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (i < wide.axes.size() && wide.axes[i] == axes[i]) continue;
    wide.axes.insert(wide.axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]);
    std::set<Place> summands;
    for (Place place : wide.summands) {
      place.insert(place.begin() + static_cast<std::ptrdiff_t>(i), 0);
      for (; place[i] < mesh.axes[axes[i]].size; ++place[i]) summands.insert(place);
    }
    wide.summands = std::move(summands);
  }
  return wide;
}

Part simplified(Part part, const Mesh& mesh) {
  for (std::size_t i = part.axes.size(); i-- > 0;) {
    std::map<Place, std::size_t> without;
    for (Place place : part.summands) {
      place.erase(place.begin() + static_cast<std::ptrdiff_t>(i));
      ++without[place];
    }
    const auto size = static_cast<std::size_t>(mesh.axes[part.axes[i]].size);
    if (!std::all_of(without.begin(), without.end(), [&](const auto& group) { return group.second == size; })) continue;
    part.axes.erase(part.axes.begin() + static_cast<std::ptrdiff_t>(i));
    part.summands.clear();
    for (const auto& [place, count] : without) part.summands.insert(place);
  }
  if (part.axes.empty()) {
    part.reducer.clear();
    part.summands.clear();
  }
  return part;
}

std::vector<std::size_t> Piece::combined() const {
  std::vector<std::size_t> combined;
  for (std::size_t axis = 0; axis < axes->size(); ++axis)
    if (!(*axes)[axis].reducer.empty()) combined.push_back(axis);
  return combined;
}

std::string Piece::reducer() const {
  for (const AxisUse& use : *axes)
    if (!use.reducer.empty()) return use.reducer;
  return {};
}

Part Piece::reads(const Graph& graph, std::size_t operand) const {
  std::vector<std::size_t> partial;
  for (std::size_t axis = 0; axis < axes->size(); ++axis) {
    const AxisUse& use = (*axes)[axis];
    if (use.kind == AxisUse::Kind::partial &&
        std::find(use.inputs.begin(), use.inputs.end(), operand) != use.inputs.end())
      partial.push_back(axis);
  }
  return part_at(graph.node(node).inputs[operand], piece.reads[operand], *this, partial);
}

Part Piece::makes(std::uint32_t output) const {
  return part_at({node, output}, piece.makes[output], *this, combined());
}

Expected<std::vector<Piece>> plan_pieces(const Graph& graph, const Mesh& mesh, const PlannedUses& uses,
                                         StrategyTable& strategies) {
  std::vector<Piece> pieces;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::op || node.weight_only || !types_known(graph, node)) continue;
    const auto planned = uses.find(id);
    if (planned == uses.end())
      return Error{ErrorCode::not_proved, "the plan says nothing of " + describe(graph, id), {}};
    TASO_RETURN_IF_ERROR(PieceCutter(graph, id, mesh, planned->second, strategies).run(pieces));
  }
  return pieces;
}

std::string describe(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::string types;
  for (const Value& input : node.inputs) types += (types.empty() ? "" : ", ") + to_string(graph.type(input));
  return fmt::format("{}({}) = {}", node.op, types, id);
}

}  // namespace taso
