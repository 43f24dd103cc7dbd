#include "partition/node_configurations.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace taso {
namespace {

double work_of(const OperatorPiece& piece) {
  double elements = 0;
  for (const auto* types : {&piece.inputs, &piece.outputs})
    for (const TensorType& type : *types) elements += static_cast<double>(type.elements());
  return elements;
}

class Maker {
 public:
  Maker(const Graph& graph, NodeId id, const Mesh& mesh, StrategyTable& strategies, const ConfigurationOptions& options)
      : mesh_(mesh), strategies_(strategies), options_(options), all_(all_of(graph, id)) {}

  Expected<std::vector<OperatorPiece>> pieces(const std::vector<AxisUse>& axes) {
    for (const PieceCut& cut : cuts_of(all_, strategies_)) extents_.emplace(cut.name, cut.extent);
    std::vector<OperatorPiece> made;
    for (std::int64_t device = 0; device < mesh_.devices(); ++device) {
      const bool known =
          axes.size() == mesh_.axes.size() && std::all_of(axes.begin(), axes.end(), [&](const AxisUse& use) {
            return use.kind != AxisUse::Kind::cut || extents_.contains(use.variable);
          });
      const OperatorPiece* piece = known ? piece_of_device(axes, mesh_.coordinates(device)) : nullptr;
      if (piece == nullptr)
        return bad_input(all_.op + " cannot be cut so: " + NodeConfiguration{axes, {}, {}, {}}.to_string());
      made.push_back(*piece);
    }
    return made;
  }

  Expected<NodeConfiguration> one(const std::vector<AxisUse>& axes) {
    TASO_RETURN_IF_ERROR(check(axes));
    if (std::optional<NodeConfiguration> made = make(axes)) return std::move(*made);
    return bad_input(all_.op + " cannot be cut so: " + NodeConfiguration{axes, {}, {}, {}}.to_string());
  }

  NodeConfigurations run() {
    uses_.emplace_back();
    for (const PieceCut& cut : cuts_of(all_, strategies_)) {
      const AxisUse use{AxisUse::Kind::cut, cut.name, {}, cut.strategy->reducer};
      if (std::find(uses_.begin(), uses_.end(), use) != uses_.end()) continue;
      uses_.push_back(use);
      extents_.emplace(cut.name, cut.extent);
    }
    const std::size_t without_passages = uses_.size();
    for (const PartialPassage& passage : strategies_.passages_of(all_.op))
      if (applies(passage, all_)) uses_.push_back({AxisUse::Kind::partial, "", passage.inputs, passage.reducer});
    if (count(uses_.size()) > options_.most && uses_.size() > without_passages) {
      uses_.resize(without_passages);
      made_.complete = false;
    }
    std::vector<AxisUse> axes = options_.decided;
    choose(axes);
    return std::move(made_);
  }

 private:
  [[nodiscard]] std::size_t count(std::size_t uses) const {
    std::size_t count = 1;
    for (std::size_t axis = options_.decided.size(); axis < mesh_.axes.size() && count <= options_.most; ++axis)
      count *= uses;
    return count;
  }

  /// Whether uses are such as run() makes, each by itself.
  [[nodiscard]] Status check(const std::vector<AxisUse>& axes) {
    if (axes.size() != mesh_.axes.size())
      return bad_input(std::to_string(axes.size()) + " uses of a mesh of " + std::to_string(mesh_.axes.size()) +
                       " axes");
    std::map<std::string, std::string> reducers;
    for (const PieceCut& cut : cuts_of(all_, strategies_)) {
      extents_.emplace(cut.name, cut.extent);
      reducers.emplace(cut.name, cut.strategy->reducer);
    }
    std::string combined;
    for (const AxisUse& use : axes) {
      if (!combined.empty() && !use.reducer.empty() && use.reducer != combined)
        return bad_input("results of " + all_.op + " would be partial in two ways, " + combined + " and " +
                         use.reducer);
      if (!use.reducer.empty()) combined = use.reducer;
      if (use.kind == AxisUse::Kind::repeat && use != AxisUse()) return bad_input("what repeats has nothing else");
      if (use.kind == AxisUse::Kind::partial && !passes({use}, all_))
        return bad_input(all_.op + " does not pass such partial operands on");
      if (use.kind != AxisUse::Kind::cut) continue;
      const auto reducer = reducers.find(use.variable);
      if (reducer == reducers.end())
        return bad_input("no proved strategy cuts " + use.variable + " of this " + all_.op);
      if (reducer->second != use.reducer)
        return bad_input("what combines the pieces of " + use.variable + " of " + all_.op + " is " +
                         (reducer->second.empty() ? "nothing" : reducer->second) + ", not " +
                         (use.reducer.empty() ? "nothing" : use.reducer));
    }
    return {};
  }

  void choose(std::vector<AxisUse>& axes) {
    // Most ways of many axes cannot be made: of those, too, only so many are tried.
    if (made_.list.size() >= options_.most || tried_ >= 4 * options_.most) {
      made_.complete = false;
      return;
    }
    if (axes.size() == mesh_.axes.size()) {
      ++tried_;
      if (std::optional<NodeConfiguration> made = make(axes)) made_.list.push_back(std::move(*made));
      return;
    }
    for (const AxisUse& use : uses_) {
      axes.push_back(use);
      choose(axes);
      axes.pop_back();
    }
  }

  /// Nothing if a piece cannot be made, or results are partial in two ways.
  [[nodiscard]] std::optional<NodeConfiguration> make(const std::vector<AxisUse>& axes) {
    NodeConfiguration made{axes, {}, {}, {}};
    std::string reducer;
    std::vector<std::size_t> partial;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      if (axes[axis].reducer.empty()) continue;
      if (!reducer.empty() && reducer != axes[axis].reducer) return std::nullopt;
      reducer = axes[axis].reducer;
      partial.push_back(axis);
    }
    for (std::size_t i = 0; i < all_.inputs.size(); ++i) made.reads.push_back(read_placement(axes, i));
    made.makes.assign(all_.outputs.size(), {{}, partial, reducer});
    for (std::int64_t device = 0; device < mesh_.devices(); ++device) {
      const OperatorPiece* piece = piece_of_device(axes, mesh_.coordinates(device));
      if (piece == nullptr || !passes(axes, *piece)) return std::nullopt;
      for (std::size_t i = 0; i < piece->reads.size(); ++i) made.reads[i].boxes.push_back(piece->reads[i]);
      for (std::size_t i = 0; i < piece->makes.size(); ++i) made.makes[i].boxes.push_back(piece->makes[i]);
      if (device == 0 || work_of(*piece) > work_of(made.largest)) made.largest = *piece;
    }
    return made;
  }

  /// Whether the passages that are used hold for a piece as they do for the whole.
  [[nodiscard]] bool passes(const std::vector<AxisUse>& axes, const OperatorPiece& piece) {
    return std::all_of(axes.begin(), axes.end(), [&](const AxisUse& use) {
      if (use.kind != AxisUse::Kind::partial) return true;
      const std::vector<PartialPassage>& passages = strategies_.passages_of(piece.op);
      return std::any_of(passages.begin(), passages.end(), [&](const PartialPassage& passage) {
        return passage.inputs == use.inputs && passage.reducer == use.reducer && applies(passage, piece);
      });
    });
  }

  [[nodiscard]] static Placement read_placement(const std::vector<AxisUse>& axes, std::size_t input) {
    Placement placement;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      const AxisUse& use = axes[axis];
      if (use.kind != AxisUse::Kind::partial ||
          std::find(use.inputs.begin(), use.inputs.end(), input) == use.inputs.end())
        continue;
      placement.partial.push_back(axis);
      placement.reducer = use.reducer;
    }
    return placement;
  }

  /// The piece of a device, remembered; null if there is none. A variable that is cut along several mesh axes is cut
  /// once, into as many pieces as their product.
  [[nodiscard]] const OperatorPiece* piece_of_device(const std::vector<AxisUse>& axes,
                                                     const std::vector<std::int64_t>& place) {
    std::map<std::string, RangePiece> wanted;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      if (axes[axis].kind != AxisUse::Kind::cut) continue;
      const std::int64_t n = extents_.at(axes[axis].variable);
      RangePiece& piece = wanted.try_emplace(axes[axis].variable, RangePiece{n, 0, 1}).first->second;
      piece.index = piece.index * mesh_.axes[axis].size + place[axis];
      piece.pieces *= mesh_.axes[axis].size;
    }
    std::vector<std::pair<std::string, RangePiece>> steps(wanted.begin(), wanted.end());
    return piece_after(steps, steps.size());
  }

  /// After the first `count` steps.
  [[nodiscard]] const OperatorPiece* piece_after(const std::vector<std::pair<std::string, RangePiece>>& steps,
                                                 std::size_t count) {
    if (count == 0) return &all_;
    const std::vector<std::pair<std::string, RangePiece>> key(steps.begin(),
                                                              steps.begin() + static_cast<std::ptrdiff_t>(count));
    if (const auto known = pieces_.find(key); known != pieces_.end()) return known->second ? &*known->second : nullptr;
    std::optional<OperatorPiece> piece;
    if (const OperatorPiece* before = piece_after(steps, count - 1)) {
      const auto& [variable, wanted] = steps[count - 1];
      Expected<OperatorPiece> cut = piece_at(*before, variable, wanted, {wanted.n, 0, 1}, strategies_);
      if (cut) piece = std::move(*cut);
    }
    const auto& stored = pieces_.emplace(key, std::move(piece)).first->second;
    return stored ? &*stored : nullptr;
  }

  const Mesh& mesh_;
  StrategyTable& strategies_;
  const ConfigurationOptions& options_;
  OperatorPiece all_;
  std::vector<AxisUse> uses_;
  std::map<std::string, std::int64_t> extents_;
  std::map<std::vector<std::pair<std::string, RangePiece>>, std::optional<OperatorPiece>> pieces_;
  NodeConfigurations made_;
  std::size_t tried_ = 0;
};

}  // namespace

std::string NodeConfiguration::to_string() const {
  std::string text;
  for (const AxisUse& use : axes) {
    if (!text.empty()) text += " | ";
    switch (use.kind) {
      case AxisUse::Kind::repeat:
        text += "repeat";
        break;
      case AxisUse::Kind::cut:
        text += use.variable + (use.reducer.empty() ? "" : " (" + use.reducer + ")");
        break;
      case AxisUse::Kind::partial:
        text += "partial " + use.reducer;
        break;
    }
  }
  return text.empty() ? "whole" : text;
}

NodeConfigurations configurations_of(const Graph& graph, NodeId id, const Mesh& mesh, StrategyTable& strategies,
                                     const ConfigurationOptions& options) {
  return Maker(graph, id, mesh, strategies, options).run();
}

Expected<NodeConfiguration> configuration_of(const Graph& graph, NodeId id, const Mesh& mesh,
                                             const std::vector<AxisUse>& axes, StrategyTable& strategies) {
  return Maker(graph, id, mesh, strategies, {}).one(axes);
}

std::vector<CutPoints> cut_points(const Graph& graph, NodeId id, const Mesh& mesh, const std::vector<AxisUse>& axes,
                                  StrategyTable& strategies) {
  std::map<std::string, std::int64_t> pieces;
  for (std::size_t axis = 0; axis < axes.size() && axis < mesh.axes.size(); ++axis)
    if (axes[axis].kind == AxisUse::Kind::cut)
      pieces.try_emplace(axes[axis].variable, 1).first->second *= mesh.axes[axis].size;
  std::vector<CutPoints> all;
  if (pieces.empty()) return all;
  std::map<std::string, std::int64_t> extents;
  for (const PieceCut& cut : cuts_of(all_of(graph, id), strategies)) extents.emplace(cut.name, cut.extent);
  for (const auto& [variable, count] : pieces) {
    const auto extent = extents.find(variable);
    if (extent == extents.end()) continue;
    CutPoints& cut = all.emplace_back(CutPoints{variable, extent->second, {}});
    for (std::int64_t piece = 1; piece < count; ++piece) cut.points.push_back(piece_begin(cut.extent, piece, count));
  }
  return all;
}

Expected<std::vector<OperatorPiece>> pieces_of(const Graph& graph, NodeId id, const Mesh& mesh,
                                               const std::vector<AxisUse>& axes, StrategyTable& strategies) {
  return Maker(graph, id, mesh, strategies, {}).pieces(axes);
}

}  // namespace taso
