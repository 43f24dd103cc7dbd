#include "partition/expansion_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "operators/evaluate.h"
#include "operators/ring.h"
#include "operators/rounding_ring.h"

namespace taso {
namespace {

using Place = std::vector<std::int64_t>;

/// A part of a value of the original.
struct Part {
  Value value;
  IndexBox box;
  std::string reducer;            ///< Empty: all of it, else...
  std::vector<std::size_t> axes;  ///< ...the mesh axes, ascending, along which results are combined,
  std::set<Place> summands;       ///< and those that are in it, by their places along these axes.
  auto operator<=>(const Part&) const = default;
};

/// A tensor that has a part in it, besides what is of no use.
struct Kept {
  IndexBox where;
  Part part;
  [[nodiscard]] bool has(const IndexBox& box) const {
    for (std::size_t axis = 0; axis < box.size(); ++axis)
      if (box[axis].begin < where[axis].begin || box[axis].end > where[axis].end) return false;
    return true;
  }
  /// What a box of the tensor is, all of which lies in `where`.
  [[nodiscard]] Part at(const IndexBox& box) const {
    Part taken = part;
    for (std::size_t axis = 0; axis < box.size(); ++axis) {
      const std::int64_t begin = part.box[axis].begin + box[axis].begin - where[axis].begin;
      taken.box[axis] = {begin, begin + box[axis].size()};
    }
    return taken;
  }
};

/// A piece of an operator of the original, and which summand it makes.
struct Piece {
  NodeId node = 0;
  OperatorPiece piece;
  std::vector<std::size_t> operands;  ///< Those that are given: none without elements, of an associative operator.
  Place place;                        ///< Of a device that has it, along all mesh axes.
  std::vector<AxisUse> const* axes = nullptr;
};

/// Elements of a weight.
struct WeightElements {
  RingTensor<double> exact;
  /// By how much each may be off if it was computed in 32 bits, and stored; empty: nothing is computed.
  std::vector<double> tolerances;
};

/// Elements of weights of a graph.
class Weights {
 public:
  Weights(const Graph& graph, const OperatorRegistry& registry) : graph_(graph), registry_(registry) {}

  Expected<const WeightElements*> of(Value value) {
    if (const auto known = known_.find(value); known != known_.end()) return &known->second;
    Graph cone;
    std::map<NodeId, NodeId> copies;
    copy(value.node, cone, copies);
    cone.add_output({copies.at(value.node), value.port});
    for (const NodeId id : cone.topological_order())
      if (cone.node(id).constant) TASO_RETURN_IF_ERROR(cone.node(id).constant->require_data());
    WeightElements elements;
    if (rounds(value.node)) {
      RoundingRing ring;
      TASO_ASSIGN(std::vector<RingTensor<RoundedNumber>> tensors, evaluate(cone, registry_, ring, {}));
      elements.exact.shape = std::move(tensors[0].shape);
      elements.exact.integers = std::move(tensors[0].integers);
      for (const RoundedNumber& number : tensors[0].elements) {
        elements.exact.elements.push_back(number.value);
        // Beyond all bounds nothing is known of the error: then only the element itself is accepted.
        const double tolerance = most_deviations * ring.unit() * number.deviation();
        elements.tolerances.push_back(std::isfinite(tolerance) ? tolerance : 0);
      }
    } else {
      DoubleRing ring;
      TASO_ASSIGN(std::vector<RingTensor<double>> tensors, evaluate(cone, registry_, ring, {}));
      elements.exact = std::move(tensors[0]);
    }
    return &known_.emplace(value, std::move(elements)).first->second;
  }

 private:
  /// An error so many times its standard deviation does not happen.
  static constexpr double most_deviations = 8;

  /// Whether a value is computed: more than elements of constants in other places.
  [[nodiscard]] bool rounds(NodeId id) const {
    const Node& node = graph_.node(id);
    if (node.kind != NodeKind::op) return false;
    const OperatorSignature* const signature = registry_.signature(node.op);
    const bool copies = signature != nullptr && (signature->copies || registry_.is_associative(node.op));
    return !copies ||
           std::any_of(node.inputs.begin(), node.inputs.end(), [&](const Value& input) { return rounds(input.node); });
  }

  void copy(NodeId id, Graph& cone, std::map<NodeId, NodeId>& copies) {
    if (copies.contains(id)) return;
    Node node = graph_.node(id);
    for (Value& input : node.inputs) {
      copy(input.node, cone, copies);
      input.node = copies.at(input.node);
    }
    copies[id] = cone.add(std::move(node));
  }

  const Graph& graph_;
  const OperatorRegistry& registry_;
  std::map<Value, WeightElements> known_;
};

/// Whether an element may be what another one is when it is computed in 32 bits.
bool is_same(double element, double exact, double tolerance) {
  return element == exact || std::abs(element - exact) <= tolerance || (std::isnan(element) && std::isnan(exact)) ||
         (tolerance > 0 && element == static_cast<double>(static_cast<float>(exact)));
}

/// Whether a tensor is the part `box` of a weight.
bool is_part(const RingTensor<double>& part, const WeightElements& weight, const IndexBox& box) {
  const RingTensor<double>& whole = weight.exact;
  Shape shape;
  for (const IndexRange& range : box) shape.push_back(range.size());
  if (part.shape != shape || whole.shape.size() != box.size()) return false;
  Place index(box.size(), 0);
  const auto count = static_cast<std::size_t>(volume_of(box));
  for (std::size_t at = 0; at < count; ++at) {
    std::size_t from = 0;
    for (std::size_t axis = 0; axis < box.size(); ++axis)
      from =
          from * static_cast<std::size_t>(whole.shape[axis]) + static_cast<std::size_t>(box[axis].begin + index[axis]);
    const bool same = whole.elements.empty() ? part.integers[at] == whole.integers[from]
                                             : is_same(part.elements[at], whole.elements[from],
                                                       weight.tolerances.empty() ? 0 : weight.tolerances[from]);
    if (!same) return false;
    for (std::size_t axis = box.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
  return true;
}

class ExpansionCheck {
 public:
  ExpansionCheck(const Graph& original, const Graph& expanded, const Mesh& mesh, StrategyTable& strategies)
      : original_(original),
        expanded_(expanded),
        mesh_(mesh),
        strategies_(strategies),
        weights_(original, strategies.registry()),
        expanded_weights_(expanded, strategies.registry()) {
    for (const char* reducer : {"sum", "max", "min", "prod"})
      if (const std::string op = combining_operator(strategies.registry(), reducer); !op.empty())
        combining_.emplace(op, reducer);
  }

  Status run(const PlannedUses& uses) {
    TASO_RETURN_IF_ERROR(find_pieces(uses));
    if (expanded_.inputs().size() != original_.inputs().size() ||
        expanded_.outputs().size() != original_.outputs().size())
      return differs(fmt::format("it has {} inputs and {} outputs, not {} and {}", expanded_.inputs().size(),
                                 expanded_.outputs().size(), original_.inputs().size(), original_.outputs().size()));
    for (std::size_t i = 0; i < expanded_.inputs().size(); ++i) {
      const Value from{original_.inputs()[i], 0}, to{expanded_.inputs()[i], 0};
      if (original_.type(from) != expanded_.type(to))
        return differs(fmt::format("its input '{}' has another type", expanded_.node(to.node).name));
      parts_[to].insert(whole(from));
      add_lone(to);
    }
    find_equal_weights();
    for (const NodeId id : expanded_.topological_order()) {
      const Node& node = expanded_.node(id);
      // Pieces may read weights alone where the whole does not.
      if (node.kind == NodeKind::op || node.kind == NodeKind::opaque) TASO_RETURN_IF_ERROR(understand(id));
    }
    for (std::size_t i = 0; i < expanded_.outputs().size(); ++i) {
      TASO_ASSIGN(const bool equal, holds(expanded_.outputs()[i], whole(original_.outputs()[i])));
      if (!equal) return differs(fmt::format("its output {} is not that of the model{}", i, suspect()));
    }
    return {};
  }

 private:
  static Error differs(const std::string& what) {
    return {ErrorCode::not_proved, "the plan as one model: " + what, {}};
  }
  /// The first operator of which nothing is known.
  [[nodiscard]] std::string suspect() const {
    return suspect_ ? fmt::format("; the first operator that is no piece of it is {}", describe(expanded_, *suspect_))
                    : std::string();
  }
  static std::string describe(const Graph& graph, NodeId id) {
    const Node& node = graph.node(id);
    std::string types;
    for (const Value& input : node.inputs) types += (types.empty() ? "" : ", ") + to_string(graph.type(input));
    return fmt::format("{}({}) = {}", node.op, types, id);
  }

  [[nodiscard]] Part whole(Value value) const {
    const TensorType& type = original_.type(value);
    return {value, type.known ? whole_box(type.shape) : IndexBox(), {}, {}, {}};
  }
  static std::string shape_key(const std::string& op, const Attributes& attributes,
                               const std::vector<TensorType>& inputs) {
    std::string key = op + to_string(attributes);
    for (const TensorType& type : inputs) key += " " + to_string(type);
    return key;
  }

  /// Weights that are computed in the same way from the same constants: these need not be looked into.
  void find_equal_weights() {
    using Key = std::tuple<Hash128, std::vector<Value>>;
    const auto key_of = [](const Node& node, const std::map<NodeId, NodeId>& representatives) {
      std::vector<Value> inputs;
      for (const Value& input : node.inputs) inputs.push_back({representatives.at(input.node), input.port});
      return Key{node.label, inputs};
    };
    std::map<Key, NodeId> known;  // The first one of equal ones, in which keys are told.
    std::map<NodeId, std::vector<NodeId>> equal;
    std::map<NodeId, NodeId> of_original, of_expanded;
    for (const NodeId id : original_.topological_order())
      if (const Node& node = original_.node(id); node.weight_only) {
        of_original[id] = known.emplace(key_of(node, of_original), id).first->second;
        equal[of_original[id]].push_back(id);
      }
    for (const NodeId id : expanded_.topological_order()) {
      const Node& node = expanded_.node(id);
      if (!node.weight_only || !std::all_of(node.inputs.begin(), node.inputs.end(),
                                            [&](const Value& input) { return of_expanded.contains(input.node); }))
        continue;
      const auto found = known.find(key_of(node, of_expanded));
      if (found == known.end()) continue;
      of_expanded[id] = found->second;
      for (const NodeId one : equal.at(found->second))
        for (std::uint32_t port = 0; port < node.outputs.size(); ++port) parts_[{id, port}].insert(whole({one, port}));
    }
  }

  Status find_pieces(const PlannedUses& uses) {
    for (const NodeId id : original_.topological_order()) {
      const Node& node = original_.node(id);
      if (node.kind == NodeKind::opaque || (node.kind == NodeKind::op && !types_known(original_, node)))
        carried_.emplace(node.name.empty() ? node.op : node.name, id);
      if (node.kind != NodeKind::op || node.weight_only || !types_known(original_, node)) continue;
      const auto planned = uses.find(id);
      if (planned == uses.end())
        return Error{ErrorCode::not_proved, "the plan says nothing of " + describe(original_, id), {}};
      TASO_RETURN_IF_ERROR(cut(id, planned->second));
    }
    return {};
  }

  /// The pieces of all devices: where several mesh axes cut a variable, into as many as their product.
  Status cut(NodeId id, const std::vector<AxisUse>& axes) {
    const OperatorPiece all = all_of(original_, id);
    const auto fail = [&](const std::string& why) {
      return Error{ErrorCode::not_proved,
                   fmt::format("{} cannot be cut as the plan says: {}", describe(original_, id), why),
                   {}};
    };
    if (axes.size() != mesh_.axes.size()) return fail("it names another number of mesh axes");
    std::map<std::string, std::pair<std::int64_t, std::string>> cuts;  // Extents and reducers.
    for (const PieceCut& one : cuts_of(all, strategies_))
      cuts.emplace(one.name, std::pair(one.extent, one.strategy->reducer));
    std::set<std::string> reducers;
    for (const AxisUse& use : axes) {
      if (use.kind == AxisUse::Kind::cut) {
        const auto known = cuts.find(use.variable);
        if (known == cuts.end() || known->second.second != use.reducer)
          return fail(fmt::format("no proved strategy cuts {}", use.variable));
      }
      if (!use.reducer.empty()) reducers.insert(use.reducer);
    }
    if (reducers.size() > 1) return fail("its results would be partial in two ways");
    for (std::int64_t device = 0; device < mesh_.devices(); ++device) {
      const Place place = mesh_.coordinates(device);
      std::map<std::string, RangePiece> wanted;
      for (std::size_t axis = 0; axis < axes.size(); ++axis) {
        if (axes[axis].kind != AxisUse::Kind::cut) continue;
        RangePiece& range =
            wanted.try_emplace(axes[axis].variable, RangePiece{cuts.at(axes[axis].variable).first, 0, 1}).first->second;
        range = {range.n, range.index * mesh_.axes[axis].size + place[axis], range.pieces * mesh_.axes[axis].size};
      }
      OperatorPiece piece = all;
      for (const auto& [variable, range] : wanted) {
        Expected<OperatorPiece> part = piece_at(piece, variable, range, {range.n, 0, 1}, strategies_);
        if (!part) return fail(part.error().message);
        piece = std::move(*part);
      }
      for (const AxisUse& use : axes)
        if (use.kind == AxisUse::Kind::partial && !passes(piece, use))
          return fail(fmt::format("it does not pass partial {} on", use.reducer));
      add(id, std::move(piece), place, axes);
    }
    return {};
  }

  void add(NodeId id, OperatorPiece piece, const Place& place, const std::vector<AxisUse>& axes) {
    std::vector<std::size_t> operands(piece.inputs.size());
    std::iota(operands.begin(), operands.end(), 0);
    if (strategies_.registry().is_associative(piece.op)) {
      std::erase_if(operands, [&](std::size_t i) { return piece.inputs[i].elements() == 0; });
      if (operands.empty()) operands.push_back(0);
    }
    std::vector<TensorType> types;
    for (const std::size_t i : operands) types.push_back(piece.inputs[i]);
    const std::string key = shape_key(piece.op, piece.attributes, types);
    if (operands.size() == 1 && changes_nothing(piece) &&
        std::all_of(axes.begin(), axes.end(), [](const AxisUse& use) { return use.reducer.empty(); }))
      lone_[original_.node(id).inputs[operands[0]]].push_back(pieces_.size());
    for (std::size_t given = 0; given < operands.size(); ++given)
      readers_[{key, given, original_.node(id).inputs[operands[given]]}].push_back(pieces_.size());
    pieces_.push_back({id, std::move(piece), std::move(operands), place, &axes});
  }

  bool passes(const OperatorPiece& piece, const AxisUse& use) {
    const std::vector<PartialPassage>& passages = strategies_.passages_of(piece.op);
    return std::any_of(passages.begin(), passages.end(), [&](const PartialPassage& passage) {
      return passage.inputs == use.inputs && passage.reducer == use.reducer && applies(passage, piece);
    });
  }

  /// What the values of a node are.
  Status understand(NodeId id) {
    const Node& node = expanded_.node(id);
    if (node.kind == NodeKind::opaque || !types_known(expanded_, node)) return understand_carried(id);
    if (node.is_op("slice")) slice(id);
    if (node.is_op("concat")) concatenate(id);
    if (const auto reducer = combining_.find(node.op); reducer != combining_.end()) combine(id, reducer->second);
    std::vector<TensorType> types;
    for (const Value& input : node.inputs) types.push_back(expanded_.type(input));
    TASO_RETURN_IF_ERROR(apply_pieces(id, shape_key(node.op, node.attributes, types)));
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port) add_lone({id, port});
    if (!suspect_ && !node.weight_only && parts_[{id, 0}].empty() && !kept_.contains({id, 0})) suspect_ = id;
    return {};
  }

  /// Whether a piece with one operand that has elements makes that.
  [[nodiscard]] bool changes_nothing(const OperatorPiece& piece) const {
    if (strategies_.registry().is_associative(piece.op)) return true;
    if (piece.inputs.size() != 1 || piece.outputs.size() != 1 || piece.inputs[0] != piece.outputs[0] ||
        piece.keeps[0] != whole_box(piece.outputs[0].shape))
      return false;
    // Of the type of their operand these are all of it, whatever their other attributes say.
    return piece.op == "reshape" || piece.op == "broadcast" ||
           (piece.op == "slice" && all_equal(piece.attributes.integers("steps"), 1)) ||
           (piece.op == "pad" && all_equal(piece.attributes.integers("before"), 0));
  }
  static bool all_equal(const std::vector<std::int64_t>& numbers, std::int64_t number) {
    return std::all_of(numbers.begin(), numbers.end(), [=](std::int64_t one) { return one == number; });
  }

  /// A piece that makes its one operand need not stand in the graph.
  void add_lone(Value value) {
    std::vector<Part> unseen(parts_[value].begin(), parts_[value].end());
    while (!unseen.empty()) {
      const Part part = std::move(unseen.back());
      unseen.pop_back();
      const auto pieces = lone_.find(part.value);
      if (pieces == lone_.end() || !part.axes.empty()) continue;
      for (const std::size_t number : pieces->second) {
        const Piece& piece = pieces_[number];
        if (piece.piece.reads[piece.operands[0]] != part.box) continue;
        Part joined{{piece.node, 0}, piece.piece.makes[0], {}, {}, {}};
        if (parts_[value].insert(joined).second) unseen.push_back(std::move(joined));
      }
    }
  }

  /// The pieces that a node may be are those that read what one of its operands is.
  Status apply_pieces(NodeId id, const std::string& key) {
    const std::vector<Value>& inputs = expanded_.node(id).inputs;
    const auto runs = std::find_if(inputs.begin(), inputs.end(),
                                   [&](const Value& input) { return !expanded_.node(input.node).weight_only; });
    const auto given = static_cast<std::size_t>(runs == inputs.end() ? 0 : runs - inputs.begin());
    if (inputs.empty()) return {};
    std::set<Value> values;
    for (const Part& part : parts_[inputs[given]]) values.insert(part.value);
    if (runs == inputs.end())  // A weight may be equal to a part of another one.
      for (auto at = readers_.lower_bound({key, given, Value{}});
           at != readers_.end() && std::get<0>(at->first) == key && std::get<1>(at->first) == given; ++at)
        values.insert(std::get<2>(at->first));
    for (const Value& value : values)
      if (const auto found = readers_.find({key, given, value}); found != readers_.end())
        for (const std::size_t piece : found->second) TASO_RETURN_IF_ERROR(apply(id, pieces_[piece]));
    return {};
  }

  Status understand_carried(NodeId id) {
    const Node& node = expanded_.node(id);
    const auto [first, last] = carried_.equal_range(node.name.empty() ? node.op : node.name);
    for (auto at = first; at != last; ++at) {
      const Node& other = original_.node(at->second);
      if (other.op != node.op || other.attributes != node.attributes || other.inputs.size() != node.inputs.size())
        continue;
      bool equal = true;
      for (std::size_t i = 0; equal && i < node.inputs.size(); ++i) {
        TASO_ASSIGN(equal, holds(node.inputs[i], whole(other.inputs[i])));
      }
      for (std::uint32_t port = 0; equal && port < node.outputs.size(); ++port)
        parts_[{id, port}].insert(whole({at->second, port}));
    }
    if (!suspect_ && parts_.find({id, 0}) == parts_.end()) suspect_ = id;
    return {};
  }

  /// Whether a value of the expanded graph is this part.
  Expected<bool> holds(Value value, const Part& part) {
    // All tensors of a shape without elements are equal.
    if (const TensorType& type = expanded_.type(value); type.known && type.elements() == 0 && has_shape(type, part.box))
      return true;
    if (const auto known = parts_.find(value); known != parts_.end() && known->second.contains(part)) return true;
    const Node& node = original_.node(part.value.node);
    if (!node.weight_only || !expanded_.node(value.node).weight_only || !part.axes.empty()) return false;
    if (!original_.type(part.value).known)
      return original_.node(part.value.node).label == expanded_.node(value.node).label;
    const auto key = std::tuple(value, part.value, part.box);
    if (const auto known = compared_.find(key); known != compared_.end()) return known->second;
    TASO_ASSIGN(const WeightElements* whole_weight, weights_.of(part.value));
    TASO_ASSIGN(const WeightElements* weight, expanded_weights_.of(value));
    return compared_[key] = is_part(weight->exact, *whole_weight, part.box);
  }

  static bool has_shape(const TensorType& type, const IndexBox& box) {
    return std::equal(type.shape.begin(), type.shape.end(), box.begin(), box.end(),
                      [](std::int64_t extent, const IndexRange& range) { return extent == range.size(); });
  }

  void slice(NodeId id) {
    const Node& node = expanded_.node(id);
    const auto& starts = node.attributes.integers("starts");
    const auto& sizes = node.attributes.integers("sizes");
    const auto& steps = node.attributes.integers("steps");
    if (std::any_of(steps.begin(), steps.end(), [](std::int64_t step) { return step != 1; })) return;
    IndexBox taken;
    for (std::size_t axis = 0; axis < starts.size(); ++axis)
      taken.push_back({starts[axis], starts[axis] + sizes[axis]});
    for (const Part& part : parts_[node.inputs[0]]) {
      Kept kept{whole_box(expanded_.type(node.inputs[0]).shape), part};
      parts_[{id, 0}].insert(kept.at(taken));
    }
    for (const Kept& kept : kept_[node.inputs[0]])
      if (kept.has(taken)) parts_[{id, 0}].insert(kept.at(taken));
  }

  void concatenate(NodeId id) {
    const Node& node = expanded_.node(id);
    const auto rank = static_cast<std::int64_t>(node.outputs[0].shape.size());
    const auto axis = static_cast<std::size_t>(rank + node.attributes.integer("axis"));
    std::set<Part> joined = parts_[node.inputs[0]];
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      std::set<Part> longer;
      for (Part part : joined)
        for (const Part& next : parts_[node.inputs[i]]) {
          Part expected = part;
          expected.box[axis] = {part.box[axis].end, part.box[axis].end + next.box[axis].size()};
          if (next != expected) continue;
          Part both = part;
          both.box[axis].end = next.box[axis].end;
          longer.insert(std::move(both));
        }
      joined = std::move(longer);
    }
    parts_[{id, 0}].insert(joined.begin(), joined.end());
  }

  void combine(NodeId id, const std::string& reducer) {
    const Node& node = expanded_.node(id);
    for (const Part& left : parts_[node.inputs[0]])
      for (const Part& right : parts_[node.inputs[1]]) {
        if (left.reducer != reducer || right.reducer != reducer || left.value != right.value || left.box != right.box)
          continue;
        std::vector<std::size_t> axes;
        std::set_union(left.axes.begin(), left.axes.end(), right.axes.begin(), right.axes.end(),
                       std::back_inserter(axes));
        Part both = spread(left, axes);
        const Part other = spread(right, axes);
        const bool disjoint = std::all_of(other.summands.begin(), other.summands.end(),
                                          [&](const Place& place) { return both.summands.insert(place).second; });
        // What is added twice counts twice; the larger one of a maximum may be looked at twice.
        if (disjoint || reducer == "max" || reducer == "min") parts_[{id, 0}].insert(simplified(std::move(both)));
      }
  }

  /// The same part, with all summands along more axes named.
  [[nodiscard]] Part spread(const Part& part, const std::vector<std::size_t>& axes) const {
    Part wide = part;
    for (std::size_t i = 0; i < axes.size(); ++i) {
      if (i < wide.axes.size() && wide.axes[i] == axes[i]) continue;
      wide.axes.insert(wide.axes.begin() + static_cast<std::ptrdiff_t>(i), axes[i]);
      std::set<Place> summands;
      for (Place place : wide.summands) {
        place.insert(place.begin() + static_cast<std::ptrdiff_t>(i), 0);
        for (; place[i] < mesh_.axes[axes[i]].size; ++place[i]) summands.insert(place);
      }
      wide.summands = std::move(summands);
    }
    return wide;
  }

  /// Without the axes along which all summands are there.
  [[nodiscard]] Part simplified(Part part) const {
    for (std::size_t i = part.axes.size(); i-- > 0;) {
      std::map<Place, std::size_t> without;
      for (Place place : part.summands) {
        place.erase(place.begin() + static_cast<std::ptrdiff_t>(i));
        ++without[place];
      }
      const auto size = static_cast<std::size_t>(mesh_.axes[part.axes[i]].size);
      if (!std::all_of(without.begin(), without.end(), [&](const auto& group) { return group.second == size; }))
        continue;
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

  /// The part of a value that is partial along these mesh axes as a device has it.
  static Part partial_at(Value value, const IndexBox& box, const Piece& piece, const std::vector<std::size_t>& axes,
                         const std::string& reducer) {
    Part part{value, box, {}, axes, {}};
    if (axes.empty()) return part;
    part.reducer = reducer;
    Place place;
    for (const std::size_t axis : axes) place.push_back(piece.place[axis]);
    part.summands.insert(std::move(place));
    return part;
  }

  /// If a node reads what a piece of the original reads, it makes what that makes.
  Status apply(NodeId id, const Piece& piece) {
    const Node& node = expanded_.node(id);
    const Node& of = original_.node(piece.node);
    std::vector<std::size_t> combined;
    std::string reducer;
    for (std::size_t axis = 0; axis < piece.axes->size(); ++axis)
      if (const AxisUse& use = (*piece.axes)[axis]; !use.reducer.empty()) {
        combined.push_back(axis);
        reducer = use.reducer;
      }
    // Weights last: comparing them takes longest.
    for (const bool weights : {false, true})
      for (std::size_t given = 0; given < node.inputs.size(); ++given) {
        if (expanded_.node(node.inputs[given].node).weight_only != weights) continue;
        const std::size_t i = piece.operands[given];
        std::vector<std::size_t> partial;
        for (std::size_t axis = 0; axis < piece.axes->size(); ++axis) {
          const AxisUse& use = (*piece.axes)[axis];
          if (use.kind == AxisUse::Kind::partial &&
              std::find(use.inputs.begin(), use.inputs.end(), i) != use.inputs.end())
            partial.push_back(axis);
        }
        TASO_ASSIGN(const bool reads,
                    holds(node.inputs[given], partial_at(of.inputs[i], piece.piece.reads[i], piece, partial, reducer)));
        if (!reads) return {};
      }
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port) {
      Part part = simplified(partial_at({piece.node, port}, piece.piece.makes[port], piece, combined, reducer));
      const IndexBox& kept = piece.piece.keeps[port];
      if (kept == whole_box(node.outputs[port].shape)) {
        parts_[{id, port}].insert(std::move(part));
      } else {
        kept_[{id, port}].push_back({kept, std::move(part)});
      }
    }
    return {};
  }

  const Graph& original_;
  const Graph& expanded_;
  const Mesh& mesh_;
  StrategyTable& strategies_;
  Weights weights_, expanded_weights_;
  std::vector<Piece> pieces_;
  /// By what an application of them looks like, and which value of the original is its operand of that number.
  std::map<std::tuple<std::string, std::size_t, Value>, std::vector<std::size_t>> readers_;
  std::map<Value, std::vector<std::size_t>> lone_;  ///< Pieces that make their one operand, by what it is of.
  std::map<std::string, std::string> combining_;    ///< Operators of two inputs, and which reducer they repeat.
  std::multimap<std::string, NodeId> carried_;      ///< By name, or else by operator.
  std::map<Value, std::set<Part>> parts_;           ///< Of the expanded graph.
  std::map<Value, std::vector<Kept>> kept_;
  std::map<std::tuple<Value, Value, IndexBox>, bool> compared_;
  std::optional<NodeId> suspect_;
};

}  // namespace

Status check_expansion(const Graph& original, const Graph& expanded, const Mesh& mesh, const PlannedUses& uses,
                       StrategyTable& strategies) {
  return ExpansionCheck(original, expanded, mesh, strategies).run(uses);
}

}  // namespace taso
