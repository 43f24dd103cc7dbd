#include "certificate/symbolic_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "certificate/occurrence.h"
#include "certificate/replay.h"
#include "support/hash.h"
#include "support/random.h"

namespace taso {
namespace {

using Integers = std::vector<std::int64_t>;

/// At so many sizes a model is imported, where it exists at so many; at no fewer than the least.
constexpr std::size_t wanted_samples = 14, least_samples = 4;
/// Attempts to find one sample.
constexpr std::size_t sample_attempts = 8;
/// Times that a graph is made anew because more is known of its sizes.
constexpr std::size_t most_passes = 16;
/// Far sizes, each tried for each symbol.
constexpr std::int64_t far_sizes[] = {700, 3000, 20000};

Error unproved(std::string message) { return Error{ErrorCode::not_proved, std::move(message), {}}; }

/// Sizes that are tried: of first axes (batches) and of others, which are multiples of `unit`.
struct Scale {
  std::int64_t batch_most, least, most, unit;
};
/// Ranges of fewer sizes are narrow.
constexpr std::int64_t narrow_range = 16;
/// Not every model exists at every size: tables of positions end, networks of several scales need multiples.
constexpr Scale symbol_scales[] = {{40, 3, 120, 1}, {40, 40, 400, 1}, {12, 64, 512, 32}, {12, 8, 76, 8}};

/// Chooses sizes within the ranges; different symbols have different sizes where there are enough.
SymbolSizes draw_sizes(const std::vector<Symbol>& symbols, const SymbolRanges& ranges, const Scale& scale,
                       Random& random) {
  SymbolSizes sizes;
  for (const Symbol& symbol : symbols) {
    const SizeRange& range = ranges.at(symbol.name);
    const bool batch = symbol.axis == 0;
    // Of a narrow range, all sizes; of others, those at which most models exist and are what they are elsewhere.
    const bool narrow = range.most && *range.most - range.least < narrow_range;
    std::int64_t least = narrow ? range.least : std::max(range.least, batch ? std::int64_t{2} : scale.least);
    std::int64_t most = std::min(range.most.value_or(INT64_MAX / 4), std::max(batch ? scale.batch_most : scale.most,
                                                                              narrow ? range.least + narrow_range : 0));
    if (least > most) {
      least = range.least;
      most = range.most.value_or(range.least + 200);
      most = std::min(most, least + 400);
    }
    const std::int64_t unit = batch ? 1 : scale.unit;
    std::int64_t size = least;
    for (int attempt = 0; attempt < 20; ++attempt) {
      size = least + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
      const std::int64_t rounded = size / unit * unit;
      if (rounded >= least) size = rounded;
      if (std::none_of(sizes.begin(), sizes.end(), [&](const auto& other) { return other.second == size; })) break;
    }
    sizes[symbol.name] = size;
  }
  return sizes;
}

bool all_equal(const Integers& values) {
  return std::all_of(values.begin(), values.end(), [&](std::int64_t value) { return value == values[0]; });
}

/// Operators that are understood and computed at run time.
std::size_t working_operators(const Graph& graph) {
  std::size_t count = 0;
  for (NodeId id = 0; id < graph.id_bound(); ++id)
    if (graph.contains(id) && graph.node(id).kind == NodeKind::op && !graph.node(id).weight_only) ++count;
  return count;
}

/// Why two graphs are not the same nodes up to extents; empty if they are.
std::string difference(const Graph& a, const Graph& b) {
  if (a.id_bound() != b.id_bound() || a.inputs() != b.inputs() || a.outputs() != b.outputs())
    return "there are other nodes";
  for (NodeId id = 0; id < a.id_bound(); ++id) {
    const std::string place = "node " + std::to_string(id);
    if (a.contains(id) != b.contains(id)) return place + " is not there";
    if (!a.contains(id)) continue;
    const Node &x = a.node(id), &y = b.node(id);
    bool same = x.kind == y.kind && x.op == y.op && x.name == y.name && x.inputs == y.inputs &&
                x.outputs.size() == y.outputs.size();
    for (std::size_t port = 0; same && port < x.outputs.size(); ++port)
      same = x.outputs[port].known == y.outputs[port].known && x.outputs[port].element == y.outputs[port].element &&
             x.outputs[port].shape.size() == y.outputs[port].shape.size();
    if (!same) return place + (x.op.empty() ? "" : " (" + x.op + ")") + " is another";
  }
  return "";
}

/// Makes the graph for all sizes from the graphs at the samples, node by node, with the same numbers.
///
/// An extent of which no formula is known is a symbol of its own. What follows in the file may have been computed from
/// it, and cannot be told from what it equals at the samples by chance or because of a formula that holds there only:
/// no attribute of a later node is a polynomial then (nor a number, if the extent is one number at all samples).
class Unifier {
 public:
  /// `live`: nodes that outputs of the model need; others need not exist where the model does.
  Unifier(std::span<const SampledGraph> samples, const std::vector<bool>& live, SymbolicSizes& sizes,
          const SymbolicCatalog& catalog, SymbolicConstants& constants)
      : samples_(samples),
        live_(live),
        sizes_(sizes),
        catalog_(catalog),
        constants_(constants),
        first_(*samples[0].graph) {}

  Expected<Graph> run(std::vector<std::string>& untouched) {
    for (NodeId id = 0; id < first_.id_bound(); ++id) {
      if (!first_.contains(id)) {
        Node nothing;
        nothing.kind = NodeKind::opaque;
        graph_.erase(graph_.add(std::move(nothing)));
        continue;
      }
      for (const Value& input : first_.node(id).inputs)
        if (input.node >= id) return internal_error("an imported node reads a later one");
      Node node = first_.node(id);
      if (node.kind == NodeKind::op) {
        if (const Status typed = unify(id, node); !typed) {
          untouched.push_back(fmt::format("node {} ({}): {}", id, node.op, typed.error().message));
          node = untouchable(id);
        }
      } else if (node.kind == NodeKind::opaque) {
        unify_carried(id, node);
      } else {
        unify_outputs(id, node);
        if (node.kind == NodeKind::constant) {
          std::vector<SymbolicConstants::Data> all;
          for (const SampledGraph& sample : samples_) all.push_back(sample.graph->node(id).constant);
          // Integers are the model's own, which follow from extents that are known (check_decisions); floats may be
          // a handler's.
          const bool told = node.outputs[0].element != ElementType::f32 || !unknown_ || *unknown_ > id;
          node.constant = constants_.unify(all, told);
        }
      }
      graph_.add(std::move(node));
    }
    graph_.set_outputs(first_.outputs());
    return std::move(graph_);
  }

  /// The first node that has an extent of which no formula is known.
  [[nodiscard]] std::optional<NodeId> first_unknown() const { return unknown_; }

 private:
  [[nodiscard]] bool differs(NodeId id) const {
    return std::any_of(samples_.begin(), samples_.end(), [&](const SampledGraph& sample) {
      return sample.graph->node(id).constant->identity() != first_.node(id).constant->identity();
    });
  }

  /// An extent at all samples.
  [[nodiscard]] Integers at_samples(NodeId id, std::size_t port, std::size_t axis) const {
    Integers values;
    for (const SampledGraph& sample : samples_) values.push_back(sample.graph->node(id).outputs[port].shape[axis]);
    return values;
  }

  /// Sizes near a node: the extents of what it reads.
  [[nodiscard]] Integers near(const Node& node) const {
    Integers result;
    for (const Value& input : node.inputs) {
      const Shape& shape = graph_.type(input).shape;
      result.insert(result.end(), shape.begin(), shape.end());
    }
    return result;
  }

  /// The size that has these values at the samples, as node `id` may have it; nothing if none is known to be it.
  [[nodiscard]] std::optional<std::int64_t> fit(NodeId id, const Integers& values, const Integers& close) const {
    if (unknown_ && *unknown_ < id && (!all_equal(values) || unknown_number_)) return std::nullopt;
    return sizes_.fit(values, close);
  }

  /// Attributes for all sizes, from those at the samples.
  /// `pinned`: the operator's requirements leave no choice, so that a size is one of `close` if it can be.
  Expected<Attributes> unify(NodeId id, const std::vector<const Attributes*>& all, const Integers& close,
                             bool pinned = false) const {
    Attributes attributes;
    for (const auto& [name, value] : all[0]->entries()) {
      std::vector<Integers> lists;
      for (const Attributes* there : all) {
        const AttributeValue* other = there->find(name);
        if (other == nullptr || other->index() != value.index()) return bad_input(name + " is another at other sizes");
        if (const auto* list = std::get_if<Integers>(other))
          lists.push_back(*list);
        else if (const auto* integer = std::get_if<std::int64_t>(other))
          lists.push_back({*integer});
        else if (*other != value)
          return bad_input(name + " is another at other sizes");
        if (!lists.empty() && lists.back().size() != lists[0].size())
          return bad_input(name + " is longer at other sizes");
      }
      if (lists.empty()) {
        attributes.set(name, value);
        continue;
      }
      Integers unified;
      for (std::size_t i = 0; i < lists[0].size(); ++i) {
        Integers values;
        for (const Integers& list : lists) values.push_back(list[i]);
        auto size = fit(id, values, close);
        if (!size && pinned && !(unknown_ && *unknown_ < id && unknown_number_)) size = sizes_.fit_of(values, close);
        if (!size)
          return bad_input(name + (unknown_ && *unknown_ < id ? " may depend on extents that are not known at all sizes"
                                                              : " is no polynomial of the symbolic extents"));
        unified.push_back(*size);
      }
      if (std::holds_alternative<Integers>(value))
        attributes.set(name, std::move(unified));
      else
        attributes.set(name, unified[0]);
    }
    return attributes;
  }

  /// The attributes and types of an operator for all sizes.
  Status unify(NodeId id, Node& node) {
    if (const SizeDecisions* decided = samples_[0].decisions)
      if (const auto image = decided->rounded.find(id); image != decided->rounded.end()) {
        const Shape& shape = graph_.type(image->second).shape;
        for (std::size_t axis = 2; axis < shape.size(); ++axis)
          if (!sizes_.is_number(shape[axis]) || unknown_) return bad_input("it rounds extents that are not one number");
      }
    std::vector<const Attributes*> all;
    for (const SampledGraph& sample : samples_) all.push_back(&sample.graph->node(id).attributes);
    Attributes attributes;
    if (const std::optional<Shape> beside = shape_beside(id)) {
      attributes = node.attributes;
      attributes.set("shape", *beside);
    } else {
      // A reshape has as many elements as what it reads.
      TASO_ASSIGN(attributes, unify(id, all, near(node), node.op == "reshape"));
    }
    std::vector<TensorType> inputs;
    for (const Value& input : node.inputs) inputs.push_back(graph_.type(input));
    const SizeDecisions* decisions = samples_[0].decisions;
    const bool has_elements = decisions != nullptr && live_[id] && decisions->windows.contains(id);
    TASO_ASSIGN(std::vector<TensorType> outputs, has_elements
                                                     ? catalog_.infer_with_elements(node.op, attributes, inputs)
                                                     : catalog_.infer_of_model(node.op, attributes, inputs));
    if (outputs.size() != node.outputs.size()) return internal_error("another number of outputs");
    for (std::size_t port = 0; port < node.outputs.size(); ++port)
      if (!is_at_samples(id, port, outputs[port])) return bad_input("its type is another at a sample");
    node.attributes = std::move(attributes);
    node.outputs = std::move(outputs);
    return {};
  }

  /// What the importer broadcasts for an element-wise operator, it broadcasts to the shape of the other operand.
  [[nodiscard]] std::optional<Shape> shape_beside(NodeId id) const {
    const Node& node = first_.node(id);
    if (node.op != "broadcast" || node.origin < 0 || id + 1 >= first_.id_bound() || !first_.contains(id + 1))
      return std::nullopt;
    const Node& user = first_.node(id + 1);
    if (user.origin != node.origin || !catalog_.is_elementwise(user.op) || user.inputs.size() != 2 ||
        std::count(user.inputs.begin(), user.inputs.end(), Value{id, 0}) != 1)
      return std::nullopt;
    const Value other = user.inputs[user.inputs[0] == Value{id, 0} ? 1 : 0];
    if (other.node >= id || first_.node(other.node).origin == node.origin) return std::nullopt;
    const Shape& shape = graph_.type(other).shape;
    for (std::size_t k = 0; k < samples_.size(); ++k)
      if (const auto there = catalog_.at({ElementType::f32, shape, true}, k);
          !there || there->shape != samples_[k].graph->node(id).outputs[0].shape)
        return std::nullopt;
    return shape;
  }

  [[nodiscard]] bool is_at_samples(NodeId id, std::size_t port, const TensorType& type) const {
    for (std::size_t k = 0; k < samples_.size(); ++k)
      if (catalog_.at(type, k) != samples_[k].graph->node(id).outputs[port]) return false;
    return true;
  }

  /// The node under a name that no operator has, and no other node: what it is at other sizes is not known.
  Node untouchable(NodeId id) {
    Node node = first_.node(id);
    const CarriedShape shape = as_carried(node);
    node.op = fmt::format("untouched {}", node.op);
    std::vector<const Attributes*> attributes;
    for (const SampledGraph& sample : samples_) attributes.push_back(&sample.graph->node(id).attributes);
    unify_shape(id, node, shape, attributes);
    node.attributes.set("node", static_cast<std::int64_t>(id));
    return node;
  }

  /// What the extents of an operator are where its requirements do not follow: those of the model's own operator, which
  /// broadcasts, or takes what there is.
  [[nodiscard]] CarriedShape as_carried(const Node& node) const {
    CarriedShape shape;
    if (node.op == "slice") {
      shape.rule = CarriedShape::Rule::op;
      shape.op = node.op;
      shape.operands = {{0, ElementType::f32}};
    } else if (node.op == "reshape") {
      shape.rule = CarriedShape::Rule::polynomial;
    } else if (catalog_.is_elementwise(node.op)) {
      shape.rule = CarriedShape::Rule::broadcast;
    }
    return shape;
  }

  void unify_carried(NodeId id, Node& node) {
    CarriedShape shape;
    std::vector<const Attributes*> attributes;
    for (const SampledGraph& sample : samples_) {
      if (sample.decisions == nullptr) break;
      const auto known = sample.decisions->carried.find(id);
      if (known == sample.decisions->carried.end() || (!attributes.empty() && !known->second.alike(shape))) break;
      if (attributes.empty()) shape = known->second;
      attributes.push_back(&known->second.attributes);
    }
    if (attributes.size() < samples_.size()) shape = {};
    unify_shape(id, node, shape, attributes);
  }

  /// The types of what is no operator here: what its rule makes of those of the inputs, where that follows. What such
  /// nodes compute is taken to have elements (docs/optimizing.md).
  void unify_shape(NodeId id, Node& node, const CarriedShape& shape, const std::vector<const Attributes*>& attributes) {
    std::vector<std::vector<std::optional<std::int64_t>>> known;  // of each port
    for (const TensorType& type : node.outputs) known.emplace_back(type.known ? type.shape.size() : 0);
    const auto set = [&](std::size_t port, const Shape& extents) {
      for (std::size_t axis = 0; axis < std::min(known[port].size(), extents.size()); ++axis)
        known[port][axis] = extents[axis];
    };
    const bool one = !node.outputs.empty() && node.outputs[0].known;
    switch (shape.rule) {
      case CarriedShape::Rule::unknown:
      case CarriedShape::Rule::polynomial:
        break;
      case CarriedShape::Rule::same:
        if (const TensorType* type = input(node, shape.input); one && type != nullptr) set(0, type->shape);
        break;
      case CarriedShape::Rule::broadcast:
        if (one) known[0] = common_extents(node, known[0].size());
        break;
      case CarriedShape::Rule::op:
        if (const std::optional<std::vector<TensorType>> types = types_of(id, node, shape, attributes)) {
          for (std::size_t port = 0; port < std::min(known.size(), types->size()); ++port)
            set(port, (*types)[port].shape);
        } else if (one && shape.op == "slice") {
          known[0] = extents_of_slice(id, node, shape, attributes);
        }
        break;
    }
    const Integers close = near(node);
    for (std::size_t port = 0; port < node.outputs.size(); ++port) {
      if (!node.outputs[port].known) continue;
      for (std::size_t axis = 0; axis < node.outputs[port].shape.size(); ++axis) {
        Integers values = at_samples(id, port, axis);
        std::optional<std::int64_t> size = known[port][axis];
        if (!size && port == 0 && shape.rule == CarriedShape::Rule::polynomial &&
            (!unknown_number_ || !all_equal(values)))
          size = node.kind == NodeKind::op ? fit(id, values, close) : sizes_.fit_of(values, close);
        for (std::size_t k = 0; size && k < values.size(); ++k)
          if (sizes_.at(*size, k) != values[k]) size.reset();
        node.outputs[port].shape[axis] = size ? *size : unknown(id, axis, std::move(values));
      }
    }
  }

  /// A symbol for an extent of which nothing is known.
  std::int64_t unknown(NodeId id, std::size_t axis, Integers values) {
    note_unknown(id, values);
    return sizes_.unknown(fmt::format("extent {} of node {}", axis, id), std::move(values));
  }
  void note_unknown(NodeId id, const Integers& values) {
    if (!unknown_) unknown_ = id;
    unknown_number_ = unknown_number_ || all_equal(values);
  }

  [[nodiscard]] const TensorType* input(const Node& node, std::size_t i) const {
    if (i >= node.inputs.size()) return nullptr;
    const TensorType& type = graph_.type(node.inputs[i]);
    return type.known ? &type : nullptr;
  }

  /// Extents that the inputs have in common, where they are alike or 1.
  [[nodiscard]] std::vector<std::optional<std::int64_t>> common_extents(const Node& node, std::size_t rank) const {
    std::vector<std::optional<std::int64_t>> known(rank);
    for (std::size_t axis = 0; axis < rank; ++axis) {
      std::optional<std::int64_t> common = 1;
      for (std::size_t i = 0; i < node.inputs.size() && common; ++i) {
        const TensorType* type = input(node, i);
        if (type == nullptr || type->shape.size() > rank) {
          common.reset();
          break;
        }
        if (type->shape.size() + axis < rank) continue;
        const std::int64_t extent = type->shape[type->shape.size() + axis - rank];
        if (extent == 1 || extent == *common) continue;
        if (*common == 1)
          common = extent;
        else
          common.reset();
      }
      known[axis] = common;
    }
    return known;
  }

  /// The types of an operator that stands for a carried node, where its requirements follow.
  [[nodiscard]] std::optional<std::vector<TensorType>> types_of(
      NodeId id, const Node& node, const CarriedShape& shape, const std::vector<const Attributes*>& attributes) const {
    const Expected<Attributes> unified = unify(id, attributes, near(node));
    std::vector<TensorType> inputs;
    for (const auto& [i, element] : shape.operands) {
      const TensorType* type = input(node, i);
      if (type == nullptr) return std::nullopt;
      inputs.push_back({element, type->shape, true});
    }
    if (!unified) return std::nullopt;
    Expected<std::vector<TensorType>> types = catalog_.infer(shape.op, *unified, inputs);
    return types ? std::optional(std::move(*types)) : std::nullopt;
  }

  /// A slice in steps of 1 from a place that lies inside takes as much as it asks for, or what there is from there on.
  std::vector<std::optional<std::int64_t>> extents_of_slice(NodeId id, const Node& node, const CarriedShape& shape,
                                                            const std::vector<const Attributes*>& attributes) {
    std::vector<std::optional<std::int64_t>> known(node.outputs[0].shape.size());
    const Expected<Attributes> unified = unify(id, attributes, near(node));
    const TensorType* type = shape.operands.size() == 1 ? input(node, shape.operands[0].first) : nullptr;
    if (!unified || type == nullptr || type->shape.size() != known.size()) return known;
    const Integers &starts = unified->integers("starts"), &sizes = unified->integers("sizes"),
                   &steps = unified->integers("steps");
    for (std::size_t axis = 0; axis < known.size(); ++axis) {
      const std::int64_t extent = type->shape[axis], start = starts[axis], size = sizes[axis];
      if (start == 0 && size == extent) known[axis] = extent;
      if (known[axis] || steps[axis] != 1) continue;
      const auto end = sizes_.combine(SizeArithmetic::Operation::add, start, size);
      const auto rest = sizes_.combine(SizeArithmetic::Operation::subtract, extent, start);
      const auto lies_inside = [&](std::int64_t place) {
        return sizes_.follows(Condition::Relation::less_equal, 0, place);
      };
      if (!end || !rest || !lies_inside(start) || !lies_inside(*end)) continue;
      Integers values = at_samples(id, 0, axis);
      note_unknown(id, values);
      known[axis] = sizes_.minimum(fmt::format("extent {} of node {}", axis, id), size, *rest, std::move(values));
    }
    return known;
  }

  /// Extents of inputs and constants.
  void unify_outputs(NodeId id, Node& node) {
    const Integers close = near(node);
    for (std::size_t port = 0; port < node.outputs.size(); ++port) {
      if (!node.outputs[port].known) continue;
      for (std::size_t axis = 0; axis < node.outputs[port].shape.size(); ++axis) {
        Integers values = at_samples(id, port, axis);
        const bool given = node.kind == NodeKind::input || (node.kind == NodeKind::constant && !differs(id));
        const auto size = given ? sizes_.fit(values, close) : fit(id, values, close);
        node.outputs[port].shape[axis] = size ? *size : unknown(id, axis, std::move(values));
      }
    }
  }

  std::span<const SampledGraph> samples_;
  const std::vector<bool>& live_;
  SymbolicSizes& sizes_;
  const SymbolicCatalog& catalog_;
  SymbolicConstants& constants_;
  const Graph& first_;
  std::optional<NodeId> unknown_;  ///< The first node with an extent of which no formula is known.
  bool unknown_number_ = false;    ///< One of these is one number at all samples.
  Graph graph_;
};

}  // namespace

namespace {

/// Nodes that outputs need.
std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.id_bound(), false);
  for (const Value& output : graph.outputs()) live[output.node] = true;
  for (NodeId id = graph.id_bound(); id-- > 0;)
    if (live[id] && graph.contains(id))
      for (const Value& input : graph.node(id).inputs) live[input.node] = true;
  return live;
}

/// Whether what the importer decided by extents, and the graph does not show, follows from extents that are known:
/// integers of the model, and that a node is another name because its extents are those of what it reads.
Status check_decisions(std::span<const SampledGraph> samples, const SymbolicSizes& sizes, const Graph& graph,
                       std::optional<NodeId> first_unknown) {
  const auto refused = [&](NodeId id, const char* what) {
    const Node& node = samples[0].graph->node(id);
    return unproved(fmt::format("what node {} ({}) computes has extents that are not known at all sizes, and {}", id,
                                node.op.empty() ? node.name : node.op, what));
  };
  for (const SampledGraph& sample : samples) {
    if (sample.decisions == nullptr || !first_unknown) continue;
    for (const Value& value : sample.decisions->shapes) {
      if (!graph.contains(value.node)) continue;
      const Shape& shape = graph.type(value).shape;
      if (std::any_of(shape.begin(), shape.end(), [&](std::int64_t extent) { return !sizes.is_known(extent); }))
        return refused(value.node, "integers of the model follow from them");
    }
    for (const NodeId place : sample.decisions->renamed)
      if (*first_unknown < place) return refused(*first_unknown, "a node may be another name of what it reads there");
  }
  return {};
}

}  // namespace

Expected<Graph> graph_for_all_sizes(std::span<const SampledGraph> samples, SymbolicSizes& sizes,
                                    const SymbolicCatalog& catalog, std::shared_ptr<SymbolicConstants>& constants,
                                    std::vector<std::string>& untouched) {
  for (const SampledGraph& sample : samples)
    if (const std::string other = difference(*samples[0].graph, *sample.graph); !other.empty()) return unproved(other);
  const std::vector<bool> live = live_nodes(*samples[0].graph);
  for (std::size_t pass = 0;; ++pass) {
    untouched.clear();
    constants = std::make_shared<SymbolicConstants>(sizes);
    Unifier unifier(samples, live, sizes, catalog, *constants);
    TASO_ASSIGN(Graph graph, unifier.run(untouched));
    const SizeDecisions* decisions = samples[0].decisions;
    bool learned = false;
    if (decisions != nullptr && pass < most_passes)
      for (const EqualExtents& equal : decisions->equal) {
        if (!live[equal.reader] || !graph.contains(equal.a.node) || !graph.contains(equal.b.node)) continue;
        const Shape &a = graph.type(equal.a).shape, &b = graph.type(equal.b).shape;
        if (equal.axis > a.size() || equal.axis > b.size()) continue;
        learned = sizes.learn_equal(a[a.size() - equal.axis], b[b.size() - equal.axis], equal.broadcast) || learned;
      }
    if (learned) {
      catalog.forget();
      continue;
    }
    TASO_RETURN_IF_ERROR(check_decisions(samples, sizes, graph, unifier.first_unknown()));
    return graph;
  }
}

struct SymbolicModel::State {
  const OperatorRegistry* registry = nullptr;
  SymbolRanges ranges;
  std::vector<SymbolSizes> sizes;  ///< Of the samples.
  std::vector<Model> models;       ///< At the samples.
  std::vector<Graph> graphs;       ///< The same in normal form.
  std::unique_ptr<SymbolicSizes> symbolic;
  std::unique_ptr<SymbolicCatalog> catalog;
  Model at_all;  ///< For all sizes.
  Graph graph;   ///< The same in normal form.
  std::vector<std::string> untouched;

  Status choose_ranges(const Model& model, const SymbolRanges& given);
  Status find_samples(const Model& model);
  void find_far_samples(const Model& model, Random& random);
  /// Whether the graph for all sizes is, at sample k, the graph `there`.
  [[nodiscard]] Status compare(const Graph& all, const Graph& there, std::size_t k) const;
};

Status SymbolicModel::State::choose_ranges(const Model& model, const SymbolRanges& given) {
  for (const Symbol& symbol : model.symbols()) ranges[symbol.name] = {};
  const auto restrict = [&](const std::string& name, const SizeRange& range) -> Status {
    const auto known = ranges.find(name);
    if (known == ranges.end()) {
      std::string names;
      for (const Symbol& symbol : model.symbols()) names += (names.empty() ? "" : ", ") + symbol.name;
      return Error{ErrorCode::usage,
                   fmt::format("--range {}: the model's inputs have no symbolic extent '{}'; they have {}",
                               to_string(SymbolRanges{{name, range}}), name, names.empty() ? "none" : names),
                   {.file = model.path()}};
    }
    SizeRange& all = known->second;
    all.least = std::max(all.least, range.least);
    if (range.most) all.most = std::min(*range.most, all.most.value_or(*range.most));
    if (all.most && *all.most < all.least)
      return Error{ErrorCode::usage,
                   fmt::format("--range {}: the model was optimized for another range, and no size is in both",
                               to_string(SymbolRanges{{name, range}})),
                   {.file = model.path()}};
    return {};
  };
  for (const auto& [name, range] : given) TASO_RETURN_IF_ERROR(restrict(name, range));
  // What the model was optimized for before.
  std::string text = model.metadata(ranges_key);
  while (!text.empty()) {
    // A name with a comma or a quotation mark is quoted as in JSON.
    std::size_t name = 0;
    if (text[0] == '"')
      for (name = 1; name < text.size() && text[name] != '"'; ++name) name += text[name] == '\\' ? 1 : 0;
    const std::size_t end = text.find(", ", std::min(name, text.size()));
    const std::string written = text.substr(0, end);
    TASO_ASSIGN(auto entry, parse_range(written));
    if (written[0] == '"') {
      const auto quoted = nlohmann::json::parse(entry.first, nullptr, false);
      if (!quoted.is_string())
        return bad_input("the entry " + std::string(ranges_key) + " of the metadata: " + written);
      entry.first = quoted.get<std::string>();
    }
    if (ranges.contains(entry.first)) TASO_RETURN_IF_ERROR(restrict(entry.first, entry.second));
    text = end == std::string::npos ? "" : text.substr(end + 2);
  }
  return {};
}

Status SymbolicModel::State::find_samples(const Model& model) {
  TASO_ASSIGN(const FileIdentity file, identify_file(model.path()));
  Hasher hasher;
  hasher.add(file.hash).add(to_string(ranges));
  Random random(hasher.finish().low);
  std::string problem;
  // The first sample is one at which most is understood: others must have its form.
  std::size_t scale = 0, most = 0;
  for (std::size_t tried = 0; tried < 2 * std::size(symbol_scales); ++tried) {
    SymbolSizes drawn = draw_sizes(model.symbols(), ranges, symbol_scales[tried % std::size(symbol_scales)], random);
    Expected<Model> sized = model.with_sizes(drawn);
    if (!sized) {
      if (problem.empty()) problem = fmt::format("at {}: {}", to_string(drawn), sized.error().message);
      continue;
    }
    const std::size_t understood = working_operators(sized->graph());
    if (!models.empty() && understood <= most) continue;
    most = understood;
    scale = tried % std::size(symbol_scales);
    models.assign(1, std::move(*sized));
    sizes.assign(1, std::move(drawn));
  }
  if (models.empty()) return unproved(problem);
  for (std::size_t failures = 0; sizes.size() < wanted_samples && failures < sample_attempts * least_samples;) {
    SymbolSizes drawn = draw_sizes(model.symbols(), ranges, symbol_scales[scale], random);
    std::string wrong;
    if (std::find(sizes.begin(), sizes.end(), drawn) != sizes.end()) {
      wrong = "there are few sizes";
    } else if (Expected<Model> sized = model.with_sizes(drawn); !sized) {
      wrong = sized.error().message;
    } else {
      wrong = difference(models[0].graph(), sized->graph());
      if (wrong.empty()) models.push_back(std::move(*sized));
    }
    if (wrong.empty()) {
      sizes.push_back(std::move(drawn));
      continue;
    }
    if (problem.empty()) problem = fmt::format("at {}: {}", to_string(drawn), wrong);
    ++failures;
    scale = (scale + 1) % std::size(symbol_scales);
  }
  // Narrow ranges have few sizes.
  double possible = 1;
  for (const auto& [name, range] : ranges)
    possible *= range.most ? static_cast<double>(*range.most - range.least) + 1 : static_cast<double>(least_samples);
  if (static_cast<double>(sizes.size()) < std::min(possible, static_cast<double>(least_samples)))
    return unproved(problem);
  find_far_samples(model, random);
  // What is one number at all samples, or two, tells nothing of others.
  for (const auto& [name, range] : ranges) {
    std::set<std::int64_t> values;
    for (const SymbolSizes& sample : sizes) values.insert(sample.at(name));
    const std::int64_t largest = range.most.value_or(INT64_MAX);
    const auto wanted = static_cast<std::size_t>(std::min<std::int64_t>(largest - range.least, least_samples - 1)) + 1;
    if (values.size() < wanted)
      return unproved(
          fmt::format("{} sizes of {} were found at which the model exists and has one form, of {} that are "
                      "needed{}{}",
                      values.size(), name, wanted, problem.empty() ? "" : "; ", problem));
  }
  return {};
}

void SymbolicModel::State::find_far_samples(const Model& model, Random& random) {
  for (const auto& [name, range] : ranges)
    for (const std::int64_t far : far_sizes) {
      SymbolSizes drawn = sizes[random.below(least_samples) % sizes.size()];
      const std::int64_t size = far + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(far / 4)));
      drawn[name] = std::clamp(size, range.least, range.most.value_or(std::max(size, range.least)));
      if (std::find(sizes.begin(), sizes.end(), drawn) != sizes.end()) continue;
      Expected<Model> sized = model.with_sizes(drawn);
      if (!sized || !difference(models[0].graph(), sized->graph()).empty()) continue;
      models.push_back(std::move(*sized));
      sizes.push_back(std::move(drawn));
    }
}

Status SymbolicModel::State::compare(const Graph& all, const Graph& there, std::size_t k) const {
  for (NodeId id = 0; id < all.id_bound(); ++id) {
    if (!all.contains(id)) continue;
    const Node& node = all.node(id);
    if (node.kind != NodeKind::op && node.kind != NodeKind::opaque) continue;
    const bool defined = node.kind == NodeKind::op && catalog->defines(node.op);
    bool same = there.contains(id) && there.node(id).inputs == node.inputs;
    if (same && defined)
      same = there.node(id).op == node.op && catalog->at(node.attributes, k) == there.node(id).attributes;
    for (std::size_t port = 0; same && defined && port < node.outputs.size(); ++port)
      same = catalog->at(node.outputs[port], k) == there.node(id).outputs[port];
    if (!same) return unproved(fmt::format("node {} ({}) is another at {}", id, node.op, to_string(sizes[k])));
  }
  if (there.outputs() != all.outputs())
    return unproved(fmt::format("the outputs are others at {}", to_string(sizes[k])));
  return {};
}

Expected<SymbolicModel> SymbolicModel::load(const Model& model, const OperatorRegistry& registry,
                                            const SymbolRanges& ranges) {
  auto state = std::make_shared<State>();
  state->registry = &registry;
  TASO_RETURN_IF_ERROR(state->choose_ranges(model, ranges));
  if (state->ranges.empty()) return unproved("the model's inputs have no symbolic extents");
  TASO_RETURN_IF_ERROR(state->find_samples(model));

  std::vector<SampledSymbol> symbols;
  for (const auto& [name, range] : state->ranges) {
    symbols.push_back({name, range, {}});
    for (const SymbolSizes& sizes : state->sizes) symbols.back().samples.push_back(sizes.at(name));
  }
  state->symbolic = std::make_unique<SymbolicSizes>(symbols);
  state->catalog = std::make_unique<SymbolicCatalog>(registry, *state->symbolic);
  for (const Model& sample : state->models) state->graphs.push_back(sample.graph());
  std::vector<SampledGraph> sampled;
  for (const Model& sample : state->models) sampled.push_back({&sample.graph(), &sample.size_decisions()});
  std::shared_ptr<SymbolicConstants> constants;
  TASO_ASSIGN(state->graph,
              graph_for_all_sizes(sampled, *state->symbolic, *state->catalog, constants, state->untouched));
  state->at_all = Model::at_all_sizes(state->models, state->graph, *state->symbolic, std::move(constants));
  normalize(state->graph, *state->catalog);
  for (Graph& graph : state->graphs) normalize(graph, registry);
  SymbolicModel result;
  result.state_ = std::move(state);
  std::map<std::string, std::size_t> uses;
  TASO_ASSIGN(const SizedGraph unchanged, result.repeat({}, {}, uses));
  TASO_RETURN_IF_ERROR(result.can_save(unchanged));
  return result;
}

const SymbolRanges& SymbolicModel::ranges() const { return state_->ranges; }
const std::vector<SymbolSizes>& SymbolicModel::samples() const { return state_->sizes; }
const std::vector<std::string>& SymbolicModel::untouched() const { return state_->untouched; }

Expected<Model> SymbolicModel::at(const SymbolSizes& sizes) const {
  Expected<Model> model = state_->models[0].with_sizes(sizes);
  if (!model) return unproved(fmt::format("at {}: {}", to_string(sizes), model.error().message));
  if (const std::string other = difference(state_->models[0].graph(), model->graph()); !other.empty())
    return unproved(fmt::format("the model has another form at {} than at {}: {}", to_string(sizes),
                                to_string(state_->sizes[0]), other));
  return model;
}

Expected<SizedGraph> SymbolicModel::repeat(const std::vector<Substitution>& rules,
                                           const std::vector<CertificateStep>& steps,
                                           std::map<std::string, std::size_t>& uses, std::size_t* failed) const {
  SizedGraph result;
  std::vector<Match> taken;
  TASO_ASSIGN(result.graph, repeat_steps(state_->graph, rules, steps, *state_->catalog, uses, &taken, failed));
  // What the certificate says: integers that are numbers.
  result.steps = steps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    result.steps[i].match = std::move(taken[i]);
    for (std::optional<AttributeValue>& value : result.steps[i].match.attributes) {
      if (!value) continue;
      if (auto* list = std::get_if<Integers>(&*value)) {
        for (std::int64_t& element : *list)
          if (!state_->symbolic->is_number(element)) element = unknown_size;
      } else if (const auto* integer = std::get_if<std::int64_t>(&*value);
                 integer != nullptr && !state_->symbolic->is_number(*integer)) {
        value.reset();
      }
    }
  }
  Status problem;
  for (std::size_t k = 0; k < state_->graphs.size(); ++k) {
    std::map<std::string, std::size_t> again;
    std::vector<Match> there;
    Expected<Graph> graph = repeat_steps(state_->graphs[k], rules, result.steps, *state_->registry, again, &there);
    const Status same =
        graph ? state_->compare(result.graph, *graph, k)
              : Status(unproved(fmt::format("at {}: {}", to_string(state_->sizes[k]), graph.error().message)));
    if (same) {
      result.samples.push_back(std::move(*graph));
      result.numbers.push_back(k);
    } else if (problem) {
      problem = same;
    }
  }
  // A size that is a number of the model by chance makes equal nodes of different ones; most sizes do not.
  if (2 * result.samples.size() < state_->graphs.size()) return problem.error();
  return result;
}

std::vector<Model::Sized> SymbolicModel::sized(const SizedGraph& graph) const {
  std::vector<Model::Sized> all;
  for (std::size_t i = 0; i < graph.samples.size(); ++i)
    all.push_back({&state_->models[graph.numbers[i]], &graph.samples[i], graph.numbers[i]});
  return all;
}

Status SymbolicModel::can_save(const SizedGraph& graph) const {
  return state_->at_all.can_save_at_all_sizes(graph.graph, sized(graph));
}

Expected<SaveReport> SymbolicModel::save(const SizedGraph& graph, const std::string& path,
                                         const SaveOptions& options) const {
  SaveOptions with_ranges = options;
  if (const std::string text = to_string(state_->ranges); !text.empty()) with_ranges.metadata[ranges_key] = text;
  return state_->at_all.save_at_all_sizes(graph.graph, sized(graph), path, with_ranges);
}

std::string to_string(const SymbolRanges& ranges) {
  std::string text;
  for (const auto& [name, range] : ranges) {
    if (range == SizeRange{}) continue;
    const bool plain = name.find_first_of("\",\\") == std::string::npos;
    text += fmt::format("{}{}={}:{}", text.empty() ? "" : ", ", plain ? name : nlohmann::json(name).dump(), range.least,
                        range.most ? std::to_string(*range.most) : "");
  }
  return text;
}

Expected<std::pair<std::string, SizeRange>> parse_range(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  const std::size_t colon = equals == std::string::npos ? equals : text.find(':', equals);
  SizeRange range;
  bool fits = equals != std::string::npos && equals > 0 && colon != std::string::npos;
  const auto number = [&](std::size_t begin, std::size_t end, std::int64_t& value) {
    const auto [next, failure] = std::from_chars(text.data() + begin, text.data() + end, value);
    fits = fits && failure == std::errc() && next == text.data() + end && value >= 1 && is_reasonable(Shape{value});
  };
  if (fits && colon > equals + 1) number(equals + 1, colon, range.least);
  if (fits && colon + 1 < text.size()) number(colon + 1, text.size(), range.most.emplace(0));
  if (fits && (!range.most || range.least <= *range.most)) return std::pair(text.substr(0, equals), range);
  return Error{ErrorCode::usage,
               "\"" + text + "\" is not SYMBOL=LEAST:MOST with sizes of at least 1 (either may be left out)",
               {}};
}

}  // namespace taso
