#include "partition/expansion_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "partition/constant_parts.h"
#include "partition/plan_parts.h"
#include "partition/weight_elements.h"

namespace taso {
namespace {

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

/// Summands of a value, and weights that are more of them: it is not known yet which.
struct OpenSum {
  Part part;
  std::vector<Value> weights;  ///< Of the expanded graph.
  auto operator<=>(const OpenSum&) const = default;
};

class ExpansionCheck {
 public:
  /// `pieces`: of the original, by the plan.
  ExpansionCheck(const Graph& original, const Graph& expanded, const Mesh& mesh, const std::vector<Piece>& pieces,
                 StrategyTable& strategies)
      : original_(original),
        expanded_(expanded),
        mesh_(mesh),
        strategies_(strategies),
        pieces_(pieces),
        constants_(original, mesh, strategies.registry(), pieces),
        expanded_weights_(expanded, strategies.registry()) {
    for (const char* reducer : {"sum", "max", "min", "prod"})
      if (const std::string op = combining_operator(strategies.registry(), reducer); !op.empty())
        combining_.emplace(op, reducer);
  }

  Status run() {
    find_carried();
    find_readers();
    if (expanded_.inputs().size() != original_.inputs().size() ||
        expanded_.outputs().size() != original_.outputs().size())
      return differs(fmt::format("it has {} inputs and {} outputs, not {} and {}", expanded_.inputs().size(),
                                 expanded_.outputs().size(), original_.inputs().size(), original_.outputs().size()));
    for (std::size_t i = 0; i < expanded_.inputs().size(); ++i) {
      const Value from{original_.inputs()[i], 0}, to{expanded_.inputs()[i], 0};
      if (original_.type(from) != expanded_.type(to))
        return differs(fmt::format("its input '{}' has another type", expanded_.node(to.node).name));
      parts_[to].insert(whole_part(original_, from));
      add_lone(to);
    }
    find_equal_weights();
    for (const NodeId id : expanded_.topological_order()) {
      const Node& node = expanded_.node(id);
      // Pieces may read weights alone where the whole does not.
      if (node.kind == NodeKind::op || node.kind == NodeKind::opaque) TASO_RETURN_IF_ERROR(understand(id));
    }
    for (std::size_t i = 0; i < expanded_.outputs().size(); ++i) {
      TASO_ASSIGN(const bool equal, holds(expanded_.outputs()[i], whole_part(original_, original_.outputs()[i])));
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
        for (std::uint32_t port = 0; port < node.outputs.size(); ++port)
          parts_[{id, port}].insert(whole_part(original_, {one, port}));
    }
  }

  void find_carried() {
    for (const NodeId id : original_.topological_order())
      if (const Node& node = original_.node(id);
          node.kind == NodeKind::opaque || (node.kind == NodeKind::op && !types_known(original_, node)))
        carried_.emplace(node.name.empty() ? node.op : node.name, id);
  }

  void find_readers() {
    for (std::size_t number = 0; number < pieces_.size(); ++number) {
      const Piece& piece = pieces_[number];
      const std::vector<Value>& inputs = original_.node(piece.node).inputs;
      std::vector<TensorType> types;
      for (const std::size_t operand : piece.operands) types.push_back(piece.piece.inputs[operand]);
      const std::string key = shape_key(piece.piece.op, piece.piece.attributes, types);
      if (piece.operands.size() == 1 && changes_nothing(piece.piece) &&
          piece.reads(original_, piece.operands[0]).axes == piece.combined())
        lone_[inputs[piece.operands[0]]].push_back(number);
      for (std::size_t given = 0; given < piece.operands.size(); ++given)
        readers_[{key, given, inputs[piece.operands[given]]}].push_back(number);
    }
  }

  /// What the values of a node are.
  Status understand(NodeId id) {
    const Node& node = expanded_.node(id);
    if (node.kind == NodeKind::opaque || !types_known(expanded_, node)) return understand_carried(id);
    if (node.is_op("slice")) slice(id);
    if (node.is_op("reshape")) reshape_back(id);
    if (node.is_op("concat")) TASO_RETURN_IF_ERROR(concatenate(id));
    if (const auto reducer = combining_.find(node.op); reducer != combining_.end())
      TASO_RETURN_IF_ERROR(combine(id, reducer->second));
    TASO_RETURN_IF_ERROR(apply_pieces(id, node.attributes, node.inputs));
    if (node.is_op("gather")) TASO_RETURN_IF_ERROR(gather(id));
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port) add_lone({id, port});
    if (!suspect_ && !node.weight_only && parts_[{id, 0}].empty() && !kept_.contains({id, 0}) &&
        !open_.contains({id, 0}))
      suspect_ = id;
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
      if (pieces == lone_.end()) continue;
      for (const std::size_t number : pieces->second) {
        const Piece& piece = pieces_[number];
        if (piece.reads(original_, piece.operands[0]) != part) continue;
        Part joined = simplified(piece.makes(0), mesh_);
        if (parts_[value].insert(joined).second) unseen.push_back(std::move(joined));
      }
    }
  }

  /// ONNX has no gather from a part of a table, which is written as one from the part with a border of zeros.
  Status gather(NodeId id) {
    const Node& node = expanded_.node(id);
    const Node& pad = expanded_.node(node.inputs[0].node);
    if (!pad.is_op("pad") || pad.attributes.real("value") != 0) return {};
    const Shape &before = pad.attributes.integers("before"), &after = pad.attributes.integers("after");
    const auto axis =
        static_cast<std::size_t>(static_cast<std::int64_t>(before.size()) + node.attributes.integer("axis"));
    for (std::size_t i = 0; i < before.size(); ++i)
      if (i != axis && (before[i] != 0 || after[i] != 0)) return {};
    Attributes attributes = node.attributes;
    attributes.set("before", attributes.integer("before") + before[axis]);
    attributes.set("after", attributes.integer("after") + after[axis]);
    return apply_pieces(id, attributes, {pad.inputs[0], node.inputs[1]});
  }

  /// The pieces that a node may be, which applies its operator to `inputs`, are those that read what one of these is.
  Status apply_pieces(NodeId id, const Attributes& attributes, const std::vector<Value>& inputs) {
    if (inputs.empty()) return {};
    std::vector<TensorType> types;
    for (const Value& input : inputs) types.push_back(expanded_.type(input));
    const std::string key = shape_key(expanded_.node(id).op, attributes, types);
    const auto runs = std::find_if(inputs.begin(), inputs.end(),
                                   [&](const Value& input) { return !expanded_.node(input.node).weight_only; });
    const auto given = static_cast<std::size_t>(runs == inputs.end() ? 0 : runs - inputs.begin());
    std::set<Value> values;
    for (const Part& part : parts_[inputs[given]]) values.insert(part.value);
    if (runs == inputs.end())  // A weight may be equal to a part of another one.
      for (auto at = readers_.lower_bound({key, given, Value{}});
           at != readers_.end() && std::get<0>(at->first) == key && std::get<1>(at->first) == given; ++at)
        values.insert(std::get<2>(at->first));
    for (const Value& value : values)
      if (const auto found = readers_.find({key, given, value}); found != readers_.end())
        for (const std::size_t piece : found->second) TASO_RETURN_IF_ERROR(apply(id, inputs, pieces_[piece]));
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
        TASO_ASSIGN(equal, holds(node.inputs[i], whole_part(original_, other.inputs[i])));
      }
      for (std::uint32_t port = 0; equal && port < node.outputs.size(); ++port)
        parts_[{id, port}].insert(whole_part(original_, {at->second, port}));
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
    if (!expanded_.node(value.node).weight_only) return false;
    if (const Node& node = original_.node(part.value.node); node.weight_only && !original_.type(part.value).known)
      return node.label == expanded_.node(value.node).label;
    if (!constants_.contains(part)) return false;
    const auto key = std::pair(value, part);
    if (const auto known = compared_.find(key); known != compared_.end()) return known->second;
    TASO_ASSIGN(const WeightElements* weight, expanded_weights_.of(value));
    TASO_ASSIGN(const bool equal, constants_.are(weight->exact, part));
    return compared_[key] = equal;
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

  /// Some operators have results of shapes that ONNX's have not: a part of one is written, and read, with a reshape
  /// there and back, of which the plan has no piece.
  void reshape_back(NodeId id) {
    const Node& there = expanded_.node(expanded_.node(id).inputs[0].node);
    if (!there.is_op("reshape") || expanded_.type(there.inputs[0]) != expanded_.node(id).outputs[0]) return;
    const Value from = there.inputs[0], to{id, 0};
    parts_[to].insert(parts_[from].begin(), parts_[from].end());
    kept_[to] = kept_[from];
    open_[to] = open_[from];
  }

  /// Neighbouring parts. What weights are among them follows from their neighbours.
  Status concatenate(NodeId id) {
    const std::vector<Value>& inputs = expanded_.node(id).inputs;
    auto known = std::find_if(inputs.begin(), inputs.end(),
                              [&](const Value& input) { return !expanded_.node(input.node).weight_only; });
    if (known == inputs.end()) known = inputs.begin();
    std::set<Part> joined = parts_[*known];
    for (auto next = known + 1; next != inputs.end(); ++next) TASO_RETURN_IF_ERROR(join(id, *next, true, joined));
    for (auto next = known; next != inputs.begin();) TASO_RETURN_IF_ERROR(join(id, *--next, false, joined));
    parts_[{id, 0}].insert(joined.begin(), joined.end());
    return {};
  }

  /// Those parts that a tensor lies next to along the axis of a concatenation, with it.
  Status join(NodeId id, Value next, bool behind, std::set<Part>& joined) {
    const Node& node = expanded_.node(id);
    const auto axis = static_cast<std::size_t>(static_cast<std::int64_t>(node.outputs[0].shape.size()) +
                                               node.attributes.integer("axis"));
    const std::int64_t size = expanded_.type(next).shape[axis];
    std::set<Part> longer;
    for (const Part& part : joined) {
      const IndexRange have = part.box[axis];
      Part other = part;
      other.box[axis] = behind ? IndexRange{have.end, have.end + size} : IndexRange{have.begin - size, have.begin};
      TASO_ASSIGN(const bool fits, holds(next, other));
      if (!fits) continue;
      other.box[axis] = {std::min(have.begin, other.box[axis].begin), std::max(have.end, other.box[axis].end)};
      longer.insert(std::move(other));
    }
    joined = std::move(longer);
    return {};
  }

  [[nodiscard]] std::vector<OpenSum> sums_of(Value value) {
    std::vector<OpenSum> sums(open_[value].begin(), open_[value].end());
    for (const Part& part : parts_[value]) sums.push_back({part, {}});
    return sums;
  }

  Status combine(NodeId id, const std::string& reducer) {
    const std::vector<Value>& inputs = expanded_.node(id).inputs;
    for (const OpenSum& left : sums_of(inputs[0]))
      for (const OpenSum& right : sums_of(inputs[1]))
        if (std::optional<OpenSum> both = sum_of(left, right, reducer))
          TASO_RETURN_IF_ERROR(add_sum({id, 0}, std::move(*both)));
    for (const bool first : {false, true}) {
      const Value weight = inputs[first ? 0 : 1];
      if (!expanded_.node(weight.node).weight_only) continue;
      for (OpenSum sum : sums_of(inputs[first ? 1 : 0])) {
        if (sum.part.reducer != reducer) continue;
        sum.weights.push_back(weight);
        TASO_RETURN_IF_ERROR(add_sum({id, 0}, std::move(sum)));
      }
    }
    return {};
  }

  /// Nothing where they are no summands of one value.
  [[nodiscard]] std::optional<OpenSum> sum_of(const OpenSum& a, const OpenSum& b, const std::string& reducer) const {
    const Part &left = a.part, &right = b.part;
    if (left.reducer != reducer || right.reducer != reducer || left.value != right.value || left.box != right.box)
      return std::nullopt;
    std::vector<std::size_t> axes;
    std::set_union(left.axes.begin(), left.axes.end(), right.axes.begin(), right.axes.end(), std::back_inserter(axes));
    OpenSum both{spread(left, axes, mesh_), a.weights};
    const Part other = spread(right, axes, mesh_);
    const bool disjoint = std::all_of(other.summands.begin(), other.summands.end(),
                                      [&](const Place& place) { return both.part.summands.insert(place).second; });
    // What is added twice counts twice; the larger one of a maximum may be looked at twice.
    if (!disjoint && reducer != "max" && reducer != "min") return std::nullopt;
    both.weights.insert(both.weights.end(), b.weights.begin(), b.weights.end());
    both.part = simplified(std::move(both.part), mesh_);
    return both;
  }

  /// A value is this sum; whether that is a part is found out as soon as it is.
  Status add_sum(Value value, OpenSum sum) {
    for (std::size_t axis = 0; axis < sum.part.axes.size() && !sum.weights.empty(); ++axis) {
      const std::vector<Part> missing = missing_summands(sum.part, axis);
      if (missing.empty() ||
          !std::all_of(missing.begin(), missing.end(), [&](const Part& part) { return constants_.contains(part); }))
        continue;
      TASO_ASSIGN(const RingTensor<double> elements, combined(sum.weights, sum.part.reducer));
      TASO_ASSIGN(const bool equal, constants_.are_combined(elements, missing));
      if (!equal) continue;
      for (const Part& part : missing) sum.part.summands.insert(*part.summands.begin());
      sum.weights.clear();
      sum.part = simplified(std::move(sum.part), mesh_);
    }
    if (sum.weights.empty()) {
      parts_[value].insert(std::move(sum.part));
    } else {
      open_[value].insert(std::move(sum));
    }
    return {};
  }

  /// The summands that are not in a part but have the same places along its other axes as one that is.
  [[nodiscard]] std::vector<Part> missing_summands(const Part& part, std::size_t axis) const {
    std::set<Place> places;
    for (Place place : part.summands)
      for (place[axis] = 0; place[axis] < mesh_.axes[part.axes[axis]].size; ++place[axis])
        if (!part.summands.contains(place)) places.insert(place);
    std::vector<Part> missing;
    for (const Place& place : places) missing.push_back({part.value, part.box, part.reducer, part.axes, {place}});
    return missing;
  }

  /// What weights of the expanded graph make together.
  Expected<RingTensor<double>> combined(const std::vector<Value>& weights, const std::string& reducer) {
    const OperatorRegistry& registry = strategies_.registry();
    TASO_ASSIGN(const WeightElements* first, expanded_weights_.of(weights[0]));
    WeightElements sum = *first;
    for (std::size_t i = 1; i < weights.size(); ++i) {
      TASO_ASSIGN(const WeightElements* next, expanded_weights_.of(weights[i]));
      const std::vector<WeightElements> operands = {std::move(sum), *next};
      TASO_ASSIGN(std::vector<WeightElements> both,
                  apply_to_weights(registry, combining_operator(registry, reducer), {},
                                   {expanded_.type(weights[0]), expanded_.type(weights[i])}, operands));
      sum = std::move(both[0]);
    }
    return std::move(sum.exact);
  }

  /// If a node is applied to what a piece of the original reads, it makes what that makes.
  Status apply(NodeId id, const std::vector<Value>& inputs, const Piece& piece) {
    const Node& node = expanded_.node(id);
    // Weights last: comparing them takes longest.
    for (const bool weights : {false, true})
      for (std::size_t given = 0; given < inputs.size(); ++given) {
        if (expanded_.node(inputs[given].node).weight_only != weights) continue;
        TASO_ASSIGN(const bool reads, holds(inputs[given], piece.reads(original_, piece.operands[given])));
        if (!reads) return {};
      }
    for (std::uint32_t port = 0; port < node.outputs.size(); ++port) {
      Part part = simplified(piece.makes(port), mesh_);
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
  const std::vector<Piece>& pieces_;
  ConstantParts constants_;
  Weights expanded_weights_;
  /// By what an application of them looks like, and which value of the original is its operand of that number.
  std::map<std::tuple<std::string, std::size_t, Value>, std::vector<std::size_t>> readers_;
  std::map<Value, std::vector<std::size_t>> lone_;  ///< Pieces that make their one operand, by what it is of.
  std::map<std::string, std::string> combining_;    ///< Operators of two inputs, and which reducer they repeat.
  std::multimap<std::string, NodeId> carried_;      ///< By name, or else by operator.
  std::map<Value, std::set<Part>> parts_;           ///< Of the expanded graph.
  std::map<Value, std::vector<Kept>> kept_;
  std::map<Value, std::set<OpenSum>> open_;
  std::map<std::pair<Value, Part>, bool> compared_;
  std::optional<NodeId> suspect_;
};

}  // namespace

Status check_expansion(const Graph& original, const Graph& expanded, const Mesh& mesh, const PlannedUses& uses,
                       StrategyTable& strategies) {
  TASO_ASSIGN(const std::vector<Piece> pieces, plan_pieces(original, mesh, uses, strategies));
  return ExpansionCheck(original, expanded, mesh, pieces, strategies).run();
}

}  // namespace taso
