#include "certificate/sampled_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "graph/reals.h"
#include "support/one_line.h"

namespace taso {
namespace {

using Integers = std::vector<std::int64_t>;

/// Times that a graph is made anew because more is known of its sizes.
constexpr std::size_t most_passes = 16;

Error not_for_all_sizes(std::string message) { return Error{ErrorCode::not_proved, one_line(std::move(message)), {}}; }

bool all_equal(const Integers& values) {
  return std::all_of(values.begin(), values.end(), [&](std::int64_t value) { return value == values[0]; });
}

/// The integers of a model as sizes.
class IntegerSizes {
 public:
  IntegerSizes(const std::vector<SymbolicInteger>& integers, const SymbolicSizes& sizes)
      : integers_(integers), sizes_(sizes) {}

  /// The size that one is, `graph` so far as it has what that follows from.
  [[nodiscard]] const Expected<std::int64_t>& of(std::size_t integer, const Graph& graph) {
    while (known_.size() <= integer) known_.push_back(next(integers_.at(known_.size()), graph));
    return known_[integer];
  }

 private:
  [[nodiscard]] Expected<std::int64_t> next(const SymbolicInteger& integer, const Graph& graph) const {
    using Kind = SymbolicInteger::Kind;
    using Operation = SizeArithmetic::Operation;
    const auto combined = [&](Operation operation) -> Expected<std::int64_t> {
      TASO_ASSIGN(const std::int64_t a, known_[integer.a]);
      TASO_ASSIGN(const std::int64_t b, known_[integer.b]);
      return sizes_.combine(operation, a, b);
    };
    switch (integer.kind) {
      case Kind::extent:
        return graph.type(integer.tensor).shape.at(integer.axis);
      case Kind::number:
        return integer.value;
      case Kind::add:
        return combined(Operation::add);
      case Kind::subtract:
        return combined(Operation::subtract);
      case Kind::multiply:
        return combined(Operation::multiply);
      case Kind::divide:
        return combined(Operation::floor_divide);
    }
    return internal_error("an integer of no kind");
  }

  const std::vector<SymbolicInteger>& integers_;
  const SymbolicSizes& sizes_;
  std::vector<Expected<std::int64_t>> known_;
};

/// Makes the graph for all sizes from the graphs at the samples, node by node, with the same numbers.
///
/// An extent of which no formula is known is a symbol of its own. What is computed from it cannot be told from what it
/// equals at the samples by chance or because of a formula that holds there only: no attribute of what a node of the
/// file became that reads it is a polynomial (nor a number, if the extent is one number at all samples).
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
        first_(*samples[0].graph),
        decisions_(samples[0].decisions),
        integers_(decisions_ == nullptr ? no_integers : decisions_->integers, sizes) {
    if (decisions_ == nullptr) return;
    const std::size_t first = sizes.symbol_count() - decisions_->free.size();
    for (std::size_t i = 0; i < decisions_->free.size(); ++i) {
      const FreeExtent& extent = decisions_->free[i];
      free_.emplace(std::tuple(extent.value.node, extent.value.port, extent.axis), sizes.symbol(first + i));
    }
  }

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
          const bool told = !is_real(node.outputs[0].element) || !doubt_of(id).any;
          node.constant = constants_.unify(all, told);
        }
      }
      graph_.add(std::move(node));
    }
    graph_.set_outputs(first_.outputs());
    return std::move(graph_);
  }

  /// The nodes that have an extent of which no formula is known, by its name.
  [[nodiscard]] const std::map<std::int64_t, NodeId>& unknowns() const { return unknowns_; }

 private:
  inline static const std::vector<SymbolicInteger> no_integers;

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

  /// Sizes near a node: the extents of what it reads, and integers of the model in lists that its origin reads.
  [[nodiscard]] Integers near(NodeId id, const Node& node) {
    Integers result;
    for (const Value& input : node.inputs) {
      const Shape& shape = graph_.type(input).shape;
      result.insert(result.end(), shape.begin(), shape.end());
    }
    const ReadNode* const reading = decisions_ == nullptr ? nullptr : decisions_->reading_of(id);
    if (reading == nullptr) return result;
    for (const std::size_t integer : reading->integers)
      if (const Expected<std::int64_t>& size = integers_.of(integer, graph_)) result.push_back(*size);
    return result;
  }

  /// What a node's numbers may have been computed from.
  struct Doubt {
    bool any = false;     ///< An extent of which no formula is known,
    bool number = false;  ///< and which is one number at all samples.
  };
  /// That is what the node of the file read that it came of, and what this became before.
  [[nodiscard]] Doubt doubt_of(NodeId id) const {
    Doubt doubt;
    if (!unknown_ || *unknown_ >= id) return doubt;
    const ReadNode* const reading = decisions_ == nullptr ? nullptr : decisions_->reading_of(id);
    if (reading == nullptr) return {true, unknown_number_};
    const auto look_at = [&](const TensorType& type) {
      if (!type.known) return;
      for (const std::int64_t extent : type.shape) {
        if (sizes_.is_known(extent)) continue;
        doubt.any = true;
        Integers values;
        for (std::size_t k = 0; k < samples_.size(); ++k) values.push_back(sizes_.at(extent, k).value_or(0));
        doubt.number = doubt.number || all_equal(values);
      }
    };
    for (const Value& value : reading->values)
      if (value.node < id) look_at(graph_.type(value));
    for (NodeId before = reading->begin; before < id; ++before)
      if (graph_.contains(before))
        for (const TensorType& type : graph_.node(before).outputs) look_at(type);
    return doubt;
  }

  /// The size that has these values at the samples, as a node may have it; nothing if none is known to be it.
  [[nodiscard]] std::optional<std::int64_t> fit(Doubt doubt, const Integers& values, const Integers& close) const {
    if (doubt.any && (!all_equal(values) || doubt.number)) return std::nullopt;
    return sizes_.fit(values, close);
  }

  /// Attributes for all sizes, from those at the samples.
  /// `pinned`: the operator's requirements leave no choice, so that a size is one of `close` if it can be.
  Expected<Attributes> unify(NodeId id, const std::vector<const Attributes*>& all, const Integers& close,
                             bool pinned = false) const {
    Attributes attributes;
    const Doubt doubt = doubt_of(id);
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
        auto size = fit(doubt, values, close);
        if (!size && pinned && !doubt.number) size = sizes_.fit_of(values, close);
        if (!size)
          return bad_input(name + (doubt.any ? " may depend on extents that are not known at all sizes"
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
          if (!sizes_.is_number(shape[axis]) || doubt_of(id).any)
            return bad_input("it rounds extents that are not one number");
      }
    for (const std::size_t axis : strided_axes(id))
      if (!sizes_.is_number(graph_.type(node.inputs[0]).shape.at(axis)))
        return bad_input("it takes every so many places of an extent that is not one number");
    std::vector<const Attributes*> all;
    for (const SampledGraph& sample : samples_) all.push_back(&sample.graph->node(id).attributes);
    Attributes attributes;
    if (const std::optional<Shape> beside = shape_beside(id)) {
      attributes = node.attributes;
      attributes.set("shape", *beside);
    } else {
      // A reshape has as many elements as what it reads.
      TASO_ASSIGN(attributes, unify(id, all, near(id, node), node.op == "reshape"));
    }
    std::vector<TensorType> inputs;
    for (const Value& input : node.inputs) inputs.push_back(graph_.type(input));
    const SizeDecisions* decisions = samples_[0].decisions;
    const bool has_elements = decisions != nullptr && live_[id] && decisions->windows.contains(id);
    Expected<std::vector<TensorType>> inferred = has_elements
                                                     ? catalog_.infer_with_elements(node.op, attributes, inputs)
                                                     : catalog_.infer_of_model(node.op, attributes, inputs);
    if (!inferred && node.op == "slice")
      if (auto sliced = types_of_slice(attributes, inputs[0])) inferred = std::move(*sliced);
    TASO_ASSIGN(std::vector<TensorType> outputs, std::move(inferred));
    if (outputs.size() != node.outputs.size()) return internal_error("another number of outputs");
    if (inputs.empty())
      for (std::size_t port = 0; port < outputs.size(); ++port) outputs[port].element = node.outputs[port].element;
    for (std::size_t port = 0; port < node.outputs.size(); ++port)
      if (!is_at_samples(id, port, outputs[port])) return bad_input("its type is another at a sample");
    if (decisions != nullptr && decisions->copying.contains(id) && !copies_zeros(inputs.at(0), outputs.at(0)))
      return bad_input("it copies an extent where another one is 0");
    node.attributes = std::move(attributes);
    node.outputs = std::move(outputs);
    return {};
  }

  /// A slice takes all of some axes, of which there may be none: what it takes of the others alone.
  [[nodiscard]] std::optional<std::vector<TensorType>> types_of_slice(const Attributes& attributes,
                                                                      const TensorType& input) const {
    const Integers &starts = attributes.integers("starts"), &steps = attributes.integers("steps");
    Integers sizes = attributes.integers("sizes");
    TensorType part = input;
    std::set<std::size_t> whole;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (starts[axis] != 0 || steps[axis] != 1 || sizes[axis] != input.shape[axis]) continue;
      whole.insert(axis);
      sizes[axis] = part.shape[axis] = 1;
    }
    Attributes others = attributes;
    others.set("sizes", std::move(sizes));
    Expected<std::vector<TensorType>> types = catalog_.infer_of_model("slice", others, std::span(&part, 1));
    if (!types) return std::nullopt;
    for (const std::size_t axis : whole) types->at(0).shape[axis] = input.shape[axis];
    return std::move(*types);
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
    const CarriedShape shape = as_carried(id, node);
    node.op = fmt::format("untouched {}", node.op);
    std::vector<const Attributes*> attributes;
    for (const SampledGraph& sample : samples_) attributes.push_back(&sample.graph->node(id).attributes);
    unify_shape(id, node, shape, attributes);
    node.attributes.set("node", static_cast<std::int64_t>(id));
    return node;
  }

  /// What the extents of an operator are where its requirements do not follow: those of the model's own operator, which
  /// broadcasts, or takes what there is.
  [[nodiscard]] CarriedShape as_carried(NodeId id, const Node& node) const {
    CarriedShape shape;
    if (const std::set<std::size_t> strided = strided_axes(id); !strided.empty()) {
      shape.rule = CarriedShape::Rule::same;
      const Shape& before = first_.type(node.inputs[0]).shape;
      for (std::size_t axis = 0; axis < before.size(); ++axis)
        if (strided.contains(axis) || is_cut(id, axis)) shape.changed.insert(axis);
    } else if (node.op == "slice") {
      shape.rule = CarriedShape::Rule::op;
      shape.op = node.op;
      shape.operands = {{0, ElementType::f32}};
    } else if (node.op == "reshape" && !may_be_empty(id)) {
      shape.rule = CarriedShape::Rule::polynomial;
    } else if (catalog_.is_elementwise(node.op)) {
      shape.rule = CarriedShape::Rule::broadcast;
    }
    return shape;
  }

  [[nodiscard]] std::set<std::size_t> strided_axes(NodeId id) const {
    if (decisions_ == nullptr) return {};
    const auto place = decisions_->strided.find(id);
    return place == decisions_->strided.end() ? std::set<std::size_t>{} : place->second;
  }
  /// Whether a slice does not take all of an axis, at some sample.
  [[nodiscard]] bool is_cut(NodeId id, std::size_t axis) const {
    return std::ranges::any_of(samples_, [&](const SampledGraph& sample) {
      const Node& node = sample.graph->node(id);
      return node.outputs[0].shape[axis] != sample.graph->type(node.inputs[0]).shape[axis];
    });
  }

  /// Whether a reshape, where its list has 0, makes that extent 0 by what it copies.
  [[nodiscard]] bool copies_zeros(const TensorType& from, const TensorType& to) const {
    for (std::size_t axis = 0; axis < to.shape.size(); ++axis)
      if (!is_positive(to.shape[axis]) &&
          (axis >= from.shape.size() || !sizes_.is_zero_where(from.shape[axis], to.shape[axis])))
        return false;
    return true;
  }
  [[nodiscard]] bool is_positive(std::int64_t extent) const {
    return sizes_.follows(Condition::Relation::less_equal, 1, extent);
  }
  /// Whether a reshape may read a tensor without elements: then it may copy an extent.
  [[nodiscard]] bool may_be_empty(NodeId id) const {
    const std::vector<Value>& inputs = first_.node(id).inputs;
    return decisions_ != nullptr && decisions_->copying.contains(id) && !inputs.empty() &&
           !std::ranges::all_of(graph_.type(inputs[0]).shape, [&](std::int64_t extent) { return is_positive(extent); });
  }

  void unify_carried(NodeId id, Node& node) {
    CarriedShape shape;
    std::vector<const Attributes*> attributes;
    for (const SampledGraph& sample : samples_) {
      if (sample.decisions == nullptr) break;
      const auto known = sample.decisions->carried.find(id);
      if (known == sample.decisions->carried.end()) break;
      if (attributes.empty()) {
        shape = known->second;
      } else if (!known->second.alike(shape)) {
        // A slice takes what it asks for at some sizes, and at others something else along the same axes.
        if (shape.changed.empty() || known->second.changed != shape.changed) break;
        shape = {};
        shape.rule = CarriedShape::Rule::same;
        shape.changed = known->second.changed;
      }
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
      case CarriedShape::Rule::stated:
        for (std::size_t port = 0; port < std::min(known.size(), shape.stated.size()); ++port)
          if (known[port].size() == shape.stated[port].size()) set_stated(node, shape.stated[port], known[port]);
        break;
      case CarriedShape::Rule::listed:
      case CarriedShape::Rule::expanded:
        if (one && shape.extents.size() <= known[0].size()) set_listed(node, shape, known[0]);
        break;
      case CarriedShape::Rule::same:
        if (const TensorType* type = input(node, shape.input); one && type != nullptr) {
          set(0, type->shape);
          for (const std::size_t axis : shape.changed)
            if (axis < known[0].size()) known[0][axis].reset();
        }
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
    const Integers close = near(id, node);
    const Doubt doubt = doubt_of(id);
    for (std::size_t port = 0; port < node.outputs.size(); ++port) {
      if (!node.outputs[port].known) continue;
      for (std::size_t axis = 0; axis < node.outputs[port].shape.size(); ++axis) {
        Integers values = at_samples(id, port, axis);
        std::optional<std::int64_t> size = known[port][axis];
        if (const auto own = free_.find({id, static_cast<std::uint32_t>(port), axis}); own != free_.end())
          size = own->second;
        const bool follows = shape.rule == CarriedShape::Rule::polynomial;
        if (!size && port == 0 && follows && (!doubt.number || !all_equal(values)))
          size = node.kind == NodeKind::op ? fit(doubt, values, close) : sizes_.fit_of(values, close);
        for (std::size_t k = 0; size && k < values.size(); ++k)
          if (sizes_.at(*size, k) != values[k]) size.reset();
        node.outputs[port].shape[axis] = size ? *size : unknown(id, axis, std::move(values));
      }
    }
  }

  /// Extents of which a node says one by one what they are.
  void set_stated(const Node& node, const std::vector<StatedExtent>& stated,
                  std::vector<std::optional<std::int64_t>>& known) const {
    for (std::size_t axis = 0; axis < known.size(); ++axis) {
      known[axis] = stated[axis].number;
      if (!stated[axis].of_input) continue;
      const auto& [position, place] = *stated[axis].of_input;
      if (const TensorType* const type = input(node, position); type != nullptr && place < type->shape.size())
        known[axis] = type->shape[place];
    }
  }

  /// Extents that are integers of the model, and at least 1: a list that has 0 says something else there.
  void set_listed(const Node& node, const CarriedShape& shape, std::vector<std::optional<std::int64_t>>& known) {
    const std::size_t more = known.size() - shape.extents.size();
    const bool expanded = shape.rule == CarriedShape::Rule::expanded;
    const TensorType* const type = expanded ? input(node, shape.input) : nullptr;
    if (expanded ? type == nullptr || type->shape.size() > known.size() : more > 0) return;
    for (std::size_t axis = 0; axis < known.size(); ++axis) {
      std::optional<std::int64_t> size = 1;
      if (axis >= more) {
        const Expected<std::int64_t>& listed = integers_.of(shape.extents[axis - more], graph_);
        if (!listed || !sizes_.follows(Condition::Relation::less_equal, 1, *listed)) continue;
        size = *listed;
      }
      if (expanded && axis + type->shape.size() >= known.size())
        size = common_extent(*size, type->shape[axis + type->shape.size() - known.size()]);
      known[axis] = size;
    }
  }
  /// What two extents become that are broadcast against each other: the larger one, as the other is equal or 1.
  [[nodiscard]] std::optional<std::int64_t> common_extent(std::int64_t a, std::int64_t b) const {
    if (a == 1 || a == b) return b;
    if (b == 1 || sizes_.follows(Condition::Relation::less_equal, b, a)) return a;
    if (sizes_.follows(Condition::Relation::less_equal, a, b)) return b;
    return std::nullopt;
  }

  /// A symbol for an extent of which nothing is known.
  std::int64_t unknown(NodeId id, std::size_t axis, Integers values) {
    note_unknown(id, values);
    const std::int64_t size = sizes_.unknown(fmt::format("extent {} of node {}", axis, id), std::move(values));
    unknowns_.emplace(size, id);
    return size;
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
        common = common_extent(*common, extent);
      }
      known[axis] = common;
    }
    return known;
  }

  /// The types of an operator that stands for a carried node, where its requirements follow.
  [[nodiscard]] std::optional<std::vector<TensorType>> types_of(NodeId id, const Node& node, const CarriedShape& shape,
                                                                const std::vector<const Attributes*>& attributes) {
    const Expected<Attributes> unified = unify(id, attributes, near(id, node));
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

  /// Axis by axis: a slice in steps of 1 from a place that lies inside takes as much as it asks for, or what there is
  /// from there on.
  std::vector<std::optional<std::int64_t>> extents_of_slice(NodeId id, const Node& node, const CarriedShape& shape,
                                                            const std::vector<const Attributes*>& attributes) {
    std::vector<std::optional<std::int64_t>> known(node.outputs[0].shape.size());
    const TensorType* type = shape.operands.size() == 1 ? input(node, shape.operands[0].first) : nullptr;
    if (type == nullptr || type->shape.size() != known.size()) return known;
    const Integers close = near(id, node);
    const Doubt doubt = doubt_of(id);
    const auto along = [&](const char* name, std::size_t axis) {
      Integers values;
      for (const Attributes* there : attributes) values.push_back(there->integers(name).at(axis));
      return fit(doubt, values, close);
    };
    for (std::size_t axis = 0; axis < known.size(); ++axis) {
      const auto start = along("starts", axis), size = along("sizes", axis), step = along("steps", axis);
      if (!start || !size || !step) continue;
      const std::int64_t extent = type->shape[axis];
      if (*start == 0 && *size == extent && *step == 1) known[axis] = extent;
      if (known[axis] || *step != 1) continue;
      const auto end = sizes_.combine(SizeArithmetic::Operation::add, *start, *size);
      const auto rest = sizes_.combine(SizeArithmetic::Operation::subtract, extent, *start);
      const auto lies_inside = [&](std::int64_t place) {
        return sizes_.follows(Condition::Relation::less_equal, 0, place);
      };
      if (!end || !rest || !lies_inside(*start) || !lies_inside(*end)) continue;
      Integers values = at_samples(id, 0, axis);
      note_unknown(id, values);
      known[axis] = sizes_.minimum(fmt::format("extent {} of node {}", axis, id), *size, *rest, std::move(values));
      unknowns_.emplace(*known[axis], id);
    }
    return known;
  }

  /// Extents of inputs and constants.
  void unify_outputs(NodeId id, Node& node) {
    const Integers close = near(id, node);
    const Doubt doubt = doubt_of(id);
    for (std::size_t port = 0; port < node.outputs.size(); ++port) {
      if (!node.outputs[port].known) continue;
      for (std::size_t axis = 0; axis < node.outputs[port].shape.size(); ++axis) {
        Integers values = at_samples(id, port, axis);
        const bool given = node.kind == NodeKind::input || (node.kind == NodeKind::constant && !differs(id));
        const auto size = given ? sizes_.fit(values, close) : fit(doubt, values, close);
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
  const SizeDecisions* decisions_;
  IntegerSizes integers_;
  std::map<std::tuple<NodeId, std::uint32_t, std::size_t>, std::int64_t> free_;  ///< Names of free extents.
  std::map<std::int64_t, NodeId> unknowns_;
  std::optional<NodeId> unknown_;  ///< The first node with an extent of which no formula is known.
  bool unknown_number_ = false;    ///< One of these is one number at all samples.
  Graph graph_;
};

std::optional<std::int64_t> extent_from_end(const Graph& graph, Value value, std::size_t axis) {
  const Shape& shape = graph.type(value).shape;
  return axis > shape.size() ? std::nullopt : std::optional(shape[shape.size() - axis]);
}

/// Nodes that outputs need.
std::vector<bool> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.id_bound(), false);
  for (const Value& output : graph.outputs()) live[output.node] = true;
  for (NodeId id = graph.id_bound(); id-- > 0;)
    if (live[id] && graph.contains(id))
      for (const Value& input : graph.node(id).inputs) live[input.node] = true;
  return live;
}

/// One integer of the model at all sizes, which must be known. What is computed with it later is told by its values at
/// the samples, so that these must tell it.
Status check_integer(std::span<const SampledGraph> samples, const SymbolicSizes& sizes,
                     const Expected<std::int64_t>& size, std::size_t i) {
  const SymbolicInteger& integer = samples[0].decisions->integers[i];
  if (!size) return not_for_all_sizes(size.error().message);
  if (integer.kind == SymbolicInteger::Kind::extent && !sizes.is_known(*size)) {
    const Node& node = samples[0].graph->node(integer.tensor.node);
    return not_for_all_sizes(
        fmt::format("what node {} ({}) computes has extents that are not known at all sizes, and "
                    "integers of the model follow from them",
                    integer.tensor.node, node.op.empty() ? node.name : node.op));
  }
  const std::vector<std::size_t>& lengths = samples[0].decisions->lengths;
  if (std::find(lengths.begin(), lengths.end(), i) != lengths.end() &&
      !sizes.follows(Condition::Relation::less_equal, 0, *size))
    return not_for_all_sizes(
        fmt::format("a list has length {}, and that this is not negative does not follow", sizes.to_string(*size)));
  Integers values;
  for (const SampledGraph& sample : samples) values.push_back(sample.decisions->integers[i].value);
  for (std::size_t k = 0; k < values.size(); ++k)
    if (sizes.at(*size, k) != values[k])
      return not_for_all_sizes(
          fmt::format("{}, an integer of the model, is another at some sizes", sizes.to_string(*size)));
  const std::optional<std::int64_t> told = sizes.fit(values, {});
  if (!told || (*told != *size && !sizes.follows(Condition::Relation::equal, *told, *size)))
    return not_for_all_sizes(
        fmt::format("{}, an integer of the model, is not told by its values at the samples", sizes.to_string(*size)));
  return {};
}

/// Collects extents from which integers follow, and that are not known.
class UnknownExtents {
 public:
  /// `unknowns`: the nodes that have such extents, by name.
  UnknownExtents(const SizeDecisions& decisions, const SymbolicSizes& sizes, const Graph& graph,
                 const std::map<std::int64_t, NodeId>& unknowns)
      : decisions_(decisions), sizes_(sizes), graph_(graph), unknowns_(unknowns) {}

  [[nodiscard]] bool any() const { return !unknowns_.empty(); }
  [[nodiscard]] bool is_known(const TensorType& type) const {
    return !type.known || std::ranges::all_of(type.shape, [&](std::int64_t extent) { return sizes_.is_known(extent); });
  }

  /// A size that is not known.
  void add(std::int64_t size) {
    for (const std::int64_t name : sizes_.unknowns_of(size))
      if (const auto place = unknowns_.find(name); place != unknowns_.end())
        if (const ReadNode* const reading = decisions_.reading_of(place->second))
          found_.emplace(reading->begin, reading);
  }

  void add_all() {
    for (const auto& [name, node] : unknowns_) add(name);
  }

  /// Where they come from: what nodes of the file make of known extents, and of others maybe only because of these. If
  /// there is none, the first one.
  [[nodiscard]] FreeExtents sources() {
    FreeExtents sources;
    // Back from node to node.
    std::vector<const ReadNode*> left;
    for (const auto& [begin, reading] : found_) left.push_back(reading);
    while (!left.empty()) {
      const ReadNode* const reading = left.back();
      left.pop_back();
      const std::map<NodeId, const ReadNode*> before = found_;
      for (const Value& value : reading->values) {
        const TensorType& type = graph_.type(value);
        for (std::size_t axis = 0; type.known && axis < type.shape.size(); ++axis) add(type.shape[axis]);
      }
      for (const auto& [begin, one] : found_)
        if (!before.contains(begin)) left.push_back(one);
    }
    for (const auto& [begin, reading] : found_)
      if (std::ranges::all_of(reading->values, [&](const Value& value) { return is_known(graph_.type(value)); }))
        add_extents(*reading, sources);
    if (sources.empty() && !found_.empty()) add_extents(*found_.begin()->second, sources);
    return sources;
  }

 private:
  void add_extents(const ReadNode& reading, FreeExtents& extents) const {
    for (const auto& [tensor, value] : reading.makes) {
      const TensorType& type = graph_.type(value);
      for (std::size_t axis = 0; type.known && axis < type.shape.size(); ++axis)
        if (!sizes_.is_known(type.shape[axis])) extents[tensor].emplace(axis, 0);
    }
  }

  const SizeDecisions& decisions_;
  const SymbolicSizes& sizes_;
  const Graph& graph_;
  const std::map<std::int64_t, NodeId>& unknowns_;
  std::map<NodeId, const ReadNode*> found_;
};

/// The integers of the model at all sizes: the first error, in `inexact` the nodes that compute those that have one,
/// and in `unknown` the extents from which these follow.
Status check_integers(std::span<const SampledGraph> samples, const SymbolicSizes& sizes, const Graph& graph,
                      UnknownExtents& unknown, std::map<std::string, std::string>& inexact) {
  const std::vector<SymbolicInteger>& integers = samples[0].decisions->integers;
  IntegerSizes all(integers, sizes);
  for (const SampledGraph& sample : samples)
    if (!std::ranges::equal(integers, sample.decisions->integers,
                            [](const auto& a, const auto& b) { return a.alike(b); }) ||
        sample.decisions->lengths != samples[0].decisions->lengths)
      return not_for_all_sizes("integers that follow from extents are computed in another way at other sizes");
  Status first;
  for (std::size_t i = 0; i < integers.size(); ++i) {
    if (!integers[i].computed) continue;
    Status known = check_integer(samples, sizes, all.of(i, graph), i);
    if (known) continue;
    for (const std::string& maker : integers[i].makers) inexact.emplace(maker, known.error().message);
    if (const Expected<std::int64_t>& size = all.of(i, graph); size && !sizes.is_known(*size)) unknown.add(*size);
    if (first) first = std::move(known);
  }
  return first;
}

/// Whether what the importer decided by extents, and the graph does not show, follows from extents that are known:
/// integers of the model, and that a node is another name because its extents are those of what it reads.
Status check_decisions(std::span<const SampledGraph> samples, const SymbolicSizes& sizes, const Graph& graph,
                       UnknownExtents& unknown, std::map<std::string, std::string>& inexact) {
  if (samples[0].decisions->imported != nullptr)
    TASO_RETURN_IF_ERROR(check_integers(samples, sizes, graph, unknown, inexact));
  if (!unknown.any()) return {};
  Status first;
  for (const SampledGraph& sample : samples)
    for (const std::size_t place : sample.decisions->renamed)
      for (const Value& value : sample.decisions->readings[place].values) {
        if (unknown.is_known(graph.type(value))) continue;
        for (const std::int64_t extent : graph.type(value).shape) unknown.add(extent);
        const Node& node = graph.node(value.node);
        if (first)
          first = not_for_all_sizes(
              fmt::format("what node {} ({}) computes has extents that are not known at all sizes, and a node may be "
                          "another name of what it reads there",
                          value.node, node.op.empty() ? node.name : node.op));
      }
  return first;
}

}  // namespace

std::string structural_difference(const Graph& a, const Graph& b) {
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

Expected<Graph> graph_for_all_sizes(std::span<const SampledGraph> samples, SymbolicSizes& sizes,
                                    const SymbolicCatalog& catalog, std::shared_ptr<SymbolicConstants>& constants,
                                    std::vector<std::string>& untouched, NotKnown& not_known) {
  std::vector<SampledGraph> whole(samples.begin(), samples.end());
  for (SampledGraph& sample : whole)
    if (sample.decisions != nullptr && sample.decisions->imported) sample.graph = sample.decisions->imported.get();
  samples = whole;
  for (const SampledGraph& sample : samples)
    if (const std::string other = structural_difference(*samples[0].graph, *sample.graph); !other.empty())
      return not_for_all_sizes(other);
  const std::vector<bool> live = live_nodes(*samples[0].graph);
  for (std::size_t pass = 0;; ++pass) {
    untouched.clear();
    constants = std::make_shared<SymbolicConstants>(sizes);
    Unifier unifier(samples, live, sizes, catalog, *constants);
    TASO_ASSIGN(Graph graph, unifier.run(untouched));
    const SizeDecisions* decisions = samples[0].decisions;
    bool learned = false;
    if (decisions != nullptr && pass < most_passes) {
      IntegerSizes integers(decisions->integers, sizes);
      for (const EqualExtents& equal : decisions->equal) {
        if (!live[equal.reader] || !graph.contains(equal.a.node) || !graph.contains(equal.b.node)) continue;
        const std::optional<std::int64_t> a = extent_from_end(graph, equal.a, equal.axis);
        std::optional<std::int64_t> b;
        if (!equal.integer)
          b = extent_from_end(graph, equal.b, equal.axis);
        else if (const Expected<std::int64_t>& size = integers.of(*equal.integer, graph))
          b = *size;
        if (a && b) learned = sizes.learn_equal(*a, *b, equal.broadcast) || learned;
      }
    }
    if (learned) {
      catalog.forget();
      continue;
    }
    if (decisions != nullptr) {
      UnknownExtents unknown(*decisions, sizes, graph, unifier.unknowns());
      const Status decided = check_decisions(samples, sizes, graph, unknown, not_known.integers);
      not_known.extents = unknown.sources();
      unknown.add_all();
      not_known.all_extents = unknown.sources();
      TASO_RETURN_IF_ERROR(decided);
    }
    if (whole[0].decisions != nullptr && whole[0].decisions->imported) graph.remove_dead();
    return graph;
  }
}

}  // namespace taso
