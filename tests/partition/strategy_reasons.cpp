#include "tests/partition/strategy_reasons.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "operators/evaluate.h"
#include "partition/operator_piece.h"
#include "support/random.h"
#include "verifier/instances.h"

namespace taso::test {
namespace {

using Boxes = std::vector<IndexBox>;

/// What a target is at an instance: two applications of the operator, and what makes one value of them.
struct Parts {
  std::string combine;
  Attributes combine_attributes;
  std::vector<Attributes> attributes;
  std::vector<Boxes> reads;
  std::vector<IndexBox> keeps;  ///< Of the first output of each.
};

class PartsReader {
 public:
  PartsReader(const Substitution& rule, const Instance& instance, const OperatorRegistry& registry)
      : rule_(rule), instance_(instance), registry_(registry) {
    for (const TensorType& type : instance.variables) bindings_.tensors.push_back(&type);
    bindings_.attributes = instance.attributes;
  }

  std::optional<OperatorPiece> whole() const {
    const PatternNode& node = rule_.source.nodes[0];
    const auto attributes = attributes_of(node);
    if (!attributes) return std::nullopt;
    OperatorPiece piece;
    piece.op = node.op;
    piece.attributes = *attributes;
    for (const PatternValue& input : node.inputs) {
      piece.inputs.push_back(instance_.variables[input.index]);
      piece.reads.push_back(whole_box(piece.inputs.back().shape));
    }
    auto outputs = registry_.infer(piece.op, piece.attributes, piece.inputs);
    if (!outputs) return std::nullopt;
    piece.outputs = std::move(*outputs);
    for (const TensorType& type : piece.outputs) piece.makes.push_back(whole_box(type.shape));
    piece.keeps = piece.makes;
    return piece;
  }

  std::optional<Parts> parts() const {
    const PatternValue& output = rule_.target.outputs[0];
    if (output.is_variable) return std::nullopt;
    const PatternNode& combine = rule_.target.nodes[output.index];
    Parts result;
    result.combine = combine.op;
    const auto how = attributes_of(combine);
    if (!how || combine.inputs.size() != 2) return std::nullopt;
    result.combine_attributes = *how;
    for (const PatternValue& part : combine.inputs) {
      // A piece, or a part of it.
      PatternValue made = part;
      const std::string& op = rule_.source.nodes[0].op;
      if (!made.is_variable && rule_.target.nodes[made.index].op == "split" && op != "split")
        made = rule_.target.nodes[made.index].inputs[0];
      if (made.is_variable || rule_.target.nodes[made.index].op != op) return std::nullopt;
      const PatternNode& node = rule_.target.nodes[made.index];
      const auto attributes = attributes_of(node);
      if (!attributes) return std::nullopt;
      result.attributes.push_back(*attributes);
      Boxes& reads = result.reads.emplace_back();
      for (const PatternValue& input : node.inputs) {
        const auto box = box_of(input);
        if (!box) return std::nullopt;
        reads.push_back(*box);
      }
      const auto kept = kept_box(part, made, *attributes, reads);
      if (!kept) return std::nullopt;
      result.keeps.push_back(*kept);
    }
    return result;
  }

 private:
  std::optional<Attributes> attributes_of(const PatternNode& node) const {
    Attributes attributes;
    for (const auto& [name, expression] : node.attributes) {
      auto value = evaluate(expression, bindings_);
      if (!value) return std::nullopt;
      attributes.set(name, std::move(*value));
    }
    auto complete = registry_.complete(node.op, attributes);
    return complete ? std::optional(std::move(*complete)) : std::nullopt;
  }

  /// What of a piece's results `made` the value `part` is.
  std::optional<IndexBox> kept_box(const PatternValue& part, const PatternValue& made, const Attributes& attributes,
                                   const Boxes& reads) const {
    std::vector<TensorType> types;
    for (const PatternValue& input : rule_.source.nodes[0].inputs) types.push_back(instance_.variables[input.index]);
    for (std::size_t i = 0; i < types.size(); ++i)
      for (std::size_t axis = 0; axis < reads[i].size(); ++axis) types[i].shape[axis] = reads[i][axis].size();
    const auto outputs = registry_.infer(rule_.source.nodes[0].op, attributes, types);
    if (!outputs) return std::nullopt;
    const IndexBox whole = whole_box((*outputs)[0].shape);
    return part == made ? whole : part_of_box(whole, part);
  }

  std::optional<IndexBox> box_of(const PatternValue& value) const {
    if (value.is_variable) return whole_box(instance_.variables[value.index].shape);
    const PatternNode& node = rule_.target.nodes[value.index];
    if (node.op != "split") return std::nullopt;
    return part_of_box(box_of(node.inputs[0]), value);
  }

  /// An output of a split of a box.
  std::optional<IndexBox> part_of_box(std::optional<IndexBox> box, const PatternValue& value) const {
    const PatternNode& node = rule_.target.nodes[value.index];
    const auto attributes = attributes_of(node);
    if (!box || !attributes) return std::nullopt;
    const std::int64_t axis = attributes->integer("axis") + static_cast<std::int64_t>(box->size());
    const auto& sizes = attributes->integers("sizes");
    if (axis < 0 || axis >= static_cast<std::int64_t>(box->size()) || value.port >= sizes.size()) return std::nullopt;
    IndexRange& range = (*box)[static_cast<std::size_t>(axis)];
    for (std::uint32_t port = 0; port < value.port; ++port) range.begin += sizes[port];
    range.end = range.begin + sizes[value.port];
    return box;
  }

  const Substitution& rule_;
  const Instance& instance_;
  const OperatorRegistry& registry_;
  Bindings bindings_;
};

bool contains(const Boxes& outer, const Boxes& inner) {
  for (std::size_t i = 0; i < outer.size(); ++i)
    for (std::size_t axis = 0; axis < outer[i].size(); ++axis)
      if (outer[i][axis].begin > inner[i][axis].begin || outer[i][axis].end < inner[i][axis].end) return false;
  return true;
}

bool reads_nothing(const Boxes& boxes) {
  return std::any_of(boxes.begin(), boxes.end(), [](const IndexBox& box) { return volume_of(box) == 0; });
}

/// Whether the parts are combined as those of the cut are.
bool combined_alike(const Parts& parts, const OperatorPiece& whole, const PieceCut& cut,
                    const OperatorRegistry& registry) {
  if (!cut.output_axis) return parts.combine == combining_operator(registry, cut.strategy->reducer);
  if (parts.combine != "concat") return false;
  return parts.combine_attributes.integer("axis") + static_cast<std::int64_t>(whole.outputs[0].shape.size()) ==
         static_cast<std::int64_t>(*cut.output_axis);
}

std::optional<std::vector<RingTensor<Mod61>>> values_of(const std::string& op, const Attributes& attributes,
                                                        const std::vector<TensorType>& types,
                                                        const std::vector<RingTensor<Mod61>>& inputs,
                                                        const OperatorRegistry& registry) {
  const auto instance = OperatorInstance::create(registry, op, attributes, types);
  if (!instance) return std::nullopt;
  std::vector<const RingTensor<Mod61>*> pointers;
  for (const RingTensor<Mod61>& input : inputs) pointers.push_back(&input);
  FieldRing ring(1);
  auto outputs = evaluate(*instance, ring, std::span<const RingTensor<Mod61>* const>(pointers));
  return outputs ? std::optional(std::move(*outputs)) : std::nullopt;
}

/// Whether a piece with these attributes has the values of `part`, at random elements.
bool has_values_of(const OperatorPiece& part, const Attributes& attributes, const OperatorRegistry& registry) {
  Random random(1, "elements of pieces");
  FieldRing ring(1);
  std::vector<RingTensor<Mod61>> inputs;
  for (const TensorType& type : part.inputs) {
    RingTensor<Mod61>& tensor = inputs.emplace_back();
    tensor.shape = type.shape;
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      tensor.elements.push_back(ring.element(random.next()));
      tensor.integers.push_back(0);
    }
  }
  const auto here = values_of(part.op, attributes, part.inputs, inputs, registry);
  const auto there = values_of(part.op, part.attributes, part.inputs, inputs, registry);
  if (!here || !there || here->size() != there->size()) return false;
  for (std::size_t i = 0; i < here->size(); ++i)
    if ((*here)[i].shape != (*there)[i].shape || (*here)[i].elements != (*there)[i].elements) return false;
  return true;
}

/// Compares the pieces at one instance with those of every strategy.
void note(StrategyReasons& reasons, const Parts& parts, const OperatorPiece& whole, const std::string& changed,
          std::optional<std::int64_t> point_of_rule, StrategyTable& strategies, const std::string& where) {
  bool itself = false, other = false, more = false, alike = false;
  for (const PieceCut& cut : cuts_of(whole, strategies)) {
    if (!combined_alike(parts, whole, cut, strategies.registry())) continue;
    for (std::int64_t point = 1; point < cut.extent; ++point) {
      bool equal = true, wider = true, same_values = true;
      for (const bool second : {false, true}) {
        const auto part = part_of(whole, cut, point, second, strategies.registry());
        const std::size_t k = second ? 1 : 0;
        const bool same_attributes = part && part->attributes == parts.attributes[k];
        const bool same_reads = part && part->reads == parts.reads[k] && part->keeps[0] == parts.keeps[k];
        equal = equal && same_attributes && same_reads;
        wider = wider && same_attributes && contains(parts.reads[k], part->reads) &&
                part->keeps[0].size() == parts.keeps[k].size();
        same_values = same_values && same_reads &&
                      (same_attributes || has_values_of(*part, parts.attributes[k], strategies.registry()));
        if (!wider && !same_values) break;
      }
      if (equal && cut.strategy->rule.name == changed && point == point_of_rule) itself = true;
      other = other || equal;
      more = more || wider;
      alike = alike || same_values;
    }
  }
  bool empty = false;
  for (const std::size_t k : {0, 1})
    empty = empty || (reads_nothing(parts.reads[k]) && parts.reads[1 - k] == whole.reads &&
                      parts.attributes[1 - k] == whole.attributes);
  if (itself)
    ++reasons.the_strategy;
  else if (other)
    ++reasons.another_cut;
  else if (empty)
    ++reasons.empty;
  else if (more)
    ++reasons.reads_more;
  else if (alike)
    ++reasons.no_difference;
  else if (++reasons.none == 1)
    reasons.unexplained = where;
}

/// Where samples have no well-typed instance: those of the strategy with one attribute 0.
void add_neighbours(const Substitution& rule, const Substitution& strategy, const OperatorRegistry& registry,
                    InstanceSet& set) {
  if (rule.attribute_variables != strategy.attribute_variables) return;
  for (const TypedInstance& typed : find_instances(registry, strategy, {}).instances)
    for (std::size_t a = 0; a < typed.instance.attributes.size(); ++a) {
      Instance changed = typed.instance;
      if (!changed.attributes[a] || !std::holds_alternative<std::int64_t>(*changed.attributes[a])) continue;
      changed.attributes[a] = std::int64_t{0};
      TypeCheck check = check_types(registry, rule, changed);
      if (check.typed) set.instances.push_back(std::move(*check.typed));
    }
}

/// The value of the rule's cut point, which is called m.
std::optional<std::int64_t> point_of(const Substitution& rule, const Instance& instance) {
  const auto& names = rule.attribute_variables;
  const auto place = static_cast<std::size_t>(std::find(names.begin(), names.end(), "m") - names.begin());
  if (place == names.size() || !instance.attributes[place]) return std::nullopt;
  const auto* value = std::get_if<std::int64_t>(&*instance.attributes[place]);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

}  // namespace

std::string StrategyReasons::text() const {
  std::string result;
  const auto add = [&](std::size_t count, const std::string& what) {
    if (count > 0) result += (result.empty() ? "" : ", ") + what + " (" + std::to_string(count) + ")";
  };
  add(the_strategy, "where the pieces fit together it is the strategy itself");
  add(another_cut, "it is another cut");
  add(empty, "one piece is the whole, the other one is empty");
  add(reads_more, "a piece is given more than it reads");
  add(no_difference, "another attribute changes nothing that is read");
  add(none, "no reason found");
  add(ill_typed, "pieces do not fit together");
  return result;
}

StrategyReasons strategy_reasons(const Substitution& rule, const std::string& changed,
                                 const OperatorRegistry& registry) {
  StrategyReasons reasons;
  StrategyTable strategies(
      registry, [&](std::string_view op) { return derive_strategies(registry, op).strategies; },
      [](std::string_view) { return std::vector<PartialPassage>(); });
  InstanceSet set = find_instances(registry, rule, {});
  reasons.ill_typed = set.ill_typed_target + (set.shapes_differ ? 1 : 0);
  if (set.instances.empty())
    for (const auto& strategy : strategies.of(rule.source.nodes[0].op))
      if (strategy->rule.name == changed) add_neighbours(rule, strategy->rule, registry, set);
  for (const TypedInstance& typed : set.instances) {
    const PartsReader reader(rule, typed.instance, registry);
    const auto whole = reader.whole();
    const auto parts = reader.parts();
    const std::string where = to_string(rule, typed.instance);
    if (!whole || !parts) {
      if (++reasons.none == 1) reasons.unexplained = where;
      continue;
    }
    note(reasons, *parts, *whole, changed, point_of(rule, typed.instance), strategies, where);
  }
  return reasons;
}

}  // namespace taso::test
