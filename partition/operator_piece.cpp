#include "partition/operator_piece.h"

#include <algorithm>

#include "partition/folded_piece.h"

namespace taso {
namespace {

using Form = AttributeExpression::Kind;

bool mentions(const AttributeExpression& e, std::uint32_t variable) {
  if (e.kind == Form::variable && e.index == variable) return true;
  return std::any_of(e.operands.begin(), e.operands.end(),
                     [&](const AttributeExpression& operand) { return mentions(operand, variable); });
}

bool mentions(const Condition& condition, std::uint32_t variable) {
  return mentions(condition.left, variable) || (condition.compares() && mentions(condition.right, variable));
}

std::optional<std::int64_t> integer(const AttributeExpression& e, const Bindings& bindings) {
  const Expected<AttributeValue> value = evaluate(e, bindings);
  const auto* number = value ? std::get_if<std::int64_t>(&*value) : nullptr;
  return number == nullptr ? std::nullopt : std::optional(*number);
}

/// Binds the variables in an attribute of the source; false if the value is not of that form.
bool bind_attribute(const AttributeExpression& e, const AttributeValue& value,
                    std::vector<std::optional<AttributeValue>>& bound) {
  if (e.kind == Form::variable) {
    if (bound[e.index]) return *bound[e.index] == value;
    bound[e.index] = value;
    return true;
  }
  if (e.kind == Form::literal) return e.literal == value;
  const auto* list = std::get_if<std::vector<std::int64_t>>(&value);
  if (e.kind != Form::list || list == nullptr || list->size() != e.operands.size()) return false;
  for (std::size_t i = 0; i < list->size(); ++i)
    if (!bind_attribute(e.operands[i], (*list)[i], bound)) return false;
  return true;
}

Bindings bindings_of(const OperatorPiece& piece) {
  Bindings bindings;
  for (const TensorType& type : piece.inputs) bindings.tensors.push_back(&type);
  return bindings;
}

std::size_t largest_rank(const OperatorPiece& piece) {
  std::size_t rank = 0;
  for (const auto* types : {&piece.inputs, &piece.outputs})
    for (const TensorType& type : *types) rank = std::max(rank, type.shape.size());
  return rank;
}

/// Finds the numbers for which a strategy holds at a piece.
class Finder {
 public:
  Finder(std::shared_ptr<const PartitionStrategy> strategy, const OperatorPiece& piece,
         std::shared_ptr<const std::vector<PieceCut>> of_rest, std::vector<PieceCut>& found)
      : strategy_(std::move(strategy)),
        piece_(piece),
        of_rest_(std::move(of_rest)),
        found_(found),
        bindings_(bindings_of(piece)) {}

  /// False where the strategy speaks of another number of inputs, or of elements of an attribute.
  bool run() {
    const Substitution& rule = strategy_->rule;
    const PatternNode& source = rule.source.nodes.at(0);
    if (source.inputs.size() != piece_.inputs.size()) return false;
    bindings_.attributes.assign(rule.attribute_variables.size(), std::nullopt);
    for (const auto& [name, expression] : source.attributes) {
      const AttributeValue* value = piece_.attributes.find(name);
      if (value == nullptr || !bind_attribute(expression, *value, bindings_.attributes)) return false;
    }
    given_ = given_variables(rule);
    std::erase(given_, strategy_->cut);
    choose(0);
    return true;
  }

 private:
  /// Gives the given variables values: the one that an equation tells, or every axis there may be.
  void choose(std::size_t place) {
    if (place == given_.size()) return finish();
    const std::uint32_t variable = given_[place];
    std::optional<AttributeValue>& value = bindings_.attributes[variable];
    for (const Condition& condition : strategy_->rule.conditions) {
      if (condition.relation != Condition::Relation::equal || !mentions(condition.left, variable) ||
          mentions(condition, strategy_->cut))
        continue;
      value = std::int64_t{1};
      const auto for_one = integer(condition.left, bindings_), whole = integer(condition.right, bindings_);
      value.reset();
      if (!for_one || !whole || *for_one <= 0 || *whole % *for_one != 0) continue;
      value = *whole / *for_one;
      choose(place + 1);
      value.reset();
      return;
    }
    for (auto axis = -static_cast<std::int64_t>(largest_rank(piece_)); axis < 0; ++axis) {
      value = axis;
      choose(place + 1);
    }
    value.reset();
  }

  void finish() {
    for (const Condition& condition : strategy_->rule.conditions) {
      if (mentions(condition, strategy_->cut)) continue;
      const Expected<bool> holding = holds(condition, bindings_);
      if (!holding || !*holding) return;
    }
    PieceCut cut{strategy_, strategy_->variable, 0, std::nullopt, bindings_.attributes, of_rest_};
    const auto extent = integer(strategy_->extent, bindings_);
    if (!extent || *extent < 2) return;
    cut.extent = *extent;
    if (strategy_->concatenates()) {
      const auto axis = integer(strategy_->axis, bindings_);
      if (!axis || *axis >= 0) return;
      for (const TensorType& output : piece_.outputs) {
        const auto rank = static_cast<std::int64_t>(output.shape.size());
        if (-*axis > rank) return;
        cut.output_axis = static_cast<std::size_t>(rank + *axis);
      }
      cut.name += "@" + std::to_string(*axis);
    }
    found_.push_back(std::move(cut));
  }

  std::shared_ptr<const PartitionStrategy> strategy_;
  const OperatorPiece& piece_;
  std::shared_ptr<const std::vector<PieceCut>> of_rest_;
  std::vector<PieceCut>& found_;
  Bindings bindings_;
  std::vector<std::uint32_t> given_;
};

Error no_number(const PartitionStrategy& strategy) {
  return internal_error("an expression of the strategy " + strategy.rule.name + " is no number");
}

/// The part of a piece that a strategy makes of it as it is.
Expected<OperatorPiece> direct_part(const OperatorPiece& piece, const PieceCut& cut, std::int64_t point, bool second,
                                    const OperatorRegistry& registry);

/// What a part keeps of its results along an axis: `part` has the results of the part, and otherwise what holds of the
/// piece. `whole` is the shape of the piece's, `surplus` how many the part makes beyond the cut.
void cut_results(OperatorPiece& part, const Shape& whole, std::size_t output, std::size_t axis, bool second,
                 std::int64_t surplus) {
  IndexRange& made = part.makes[output][axis];
  IndexRange& kept = part.keeps[output][axis];
  const std::int64_t size = part.outputs[output].shape[axis];
  const std::int64_t begin = second ? whole[axis] - size : 0;
  // Where the cut is among the results of the piece.
  const std::int64_t place = second ? begin + surplus : size - surplus;
  (second ? made.begin : made.end) = made.begin + place - kept.begin;
  (second ? kept.begin : kept.end) = place;
  kept = {kept.begin - begin, kept.end - begin};
}

/// The part of what is folded, where the operator of two has the part `part`.
Expected<OperatorPiece> rest_part(const FoldedPiece& folded, const std::vector<PieceCut>& cuts,
                                  const OperatorPiece& part, bool second, const OperatorRegistry& registry) {
  const std::optional<RestCut> cut = cut_of_rest(folded, part, second);
  if (!cut) return folded.rest;
  const bool single = (folded.of_inputs ? folded.rest.inputs.size() : folded.rest.outputs.size()) == 1;
  const bool empty = cut->point == (second ? cut->extent : 0);
  if (single || empty) return plain_part(folded.rest, *cut, second, registry);
  Expected<OperatorPiece> made = bad_input("the other inputs or outputs cannot be cut so");
  for (const PieceCut& one : cuts) {
    if (one.output_axis != cut->axis || one.extent != cut->extent) continue;
    made = part_of(folded.rest, one, cut->point, second, registry);
    if (made) break;
  }
  return made;
}

}  // namespace

IndexBox whole_box(const Shape& shape) {
  IndexBox box;
  for (const std::int64_t extent : shape) box.push_back({0, extent});
  return box;
}

std::int64_t volume_of(const IndexBox& box) {
  std::int64_t volume = 1;
  for (const IndexRange& range : box) volume *= range.size();
  return volume;
}

bool types_known(const Graph& graph, const Node& node) {
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](const Value& v) { return graph.type(v).known; }) &&
         std::all_of(node.outputs.begin(), node.outputs.end(), [](const TensorType& type) { return type.known; });
}

OperatorPiece all_of(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  OperatorPiece piece{node.op, node.attributes, {}, node.outputs, {}, {}, {}};
  for (const Value& input : node.inputs) piece.inputs.push_back(graph.type(input));
  for (const TensorType& type : piece.inputs) {
    TASO_CHECK(type.known, "a piece of a node of unknown types");
    piece.reads.push_back(whole_box(type.shape));
  }
  for (const TensorType& type : piece.outputs) piece.makes.push_back(whole_box(type.shape));
  piece.keeps = piece.makes;
  return piece;
}

const std::vector<std::shared_ptr<const PartitionStrategy>>& StrategyTable::of(std::string_view op) {
  const auto known = known_.find(op);
  if (known != known_.end()) return known->second;
  std::vector<std::shared_ptr<const PartitionStrategy>> list;
  for (PartitionStrategy& strategy : strategies_(op))
    list.push_back(std::make_shared<const PartitionStrategy>(std::move(strategy)));
  return known_.emplace(std::string(op), std::move(list)).first->second;
}

const std::vector<PartialPassage>& StrategyTable::passages_of(std::string_view op) {
  const auto known = known_passages_.find(op);
  if (known != known_passages_.end()) return known->second;
  return known_passages_.emplace(std::string(op), passages_(op)).first->second;
}

std::vector<PieceCut> cuts_of(const OperatorPiece& piece, StrategyTable& strategies, std::string_view name) {
  std::vector<PieceCut> found;
  const std::string_view variable = name.substr(0, name.find('@'));
  const std::optional<FoldedPiece> folded = fold(piece, strategies.registry());
  std::shared_ptr<const std::vector<PieceCut>> of_rest;
  if (folded) of_rest = std::make_shared<const std::vector<PieceCut>>(cuts_of(folded->rest, strategies));
  for (const auto& strategy : strategies.of(piece.op)) {
    if (!name.empty() && strategy->variable != variable) continue;
    if (!Finder(strategy, piece, nullptr, found).run() && folded) Finder(strategy, folded->two, of_rest, found).run();
  }
  if (!name.empty()) std::erase_if(found, [&](const PieceCut& cut) { return cut.name != name; });
  return found;
}

bool applies(const PartialPassage& passage, const OperatorPiece& piece) {
  const Substitution& rule = passage.rule;
  const PatternNode& applied = rule.source.nodes.at(rule.source.outputs.at(0).index);
  if (applied.op != piece.op || applied.inputs.size() != piece.inputs.size()) return false;
  Bindings bindings;
  bindings.tensors.assign(rule.tensor_variables.size(), nullptr);
  bindings.attributes.assign(rule.attribute_variables.size(), std::nullopt);
  for (std::size_t i = 0; i < applied.inputs.size(); ++i) {
    // An operand, or the two parts of which it is combined.
    const PatternValue& input = applied.inputs[i];
    const std::vector<PatternValue> parts =
        input.is_variable ? std::vector<PatternValue>{input} : rule.source.nodes[input.index].inputs;
    for (const PatternValue& part : parts)
      if (part.is_variable) bindings.tensors[part.index] = &piece.inputs[i];
  }
  for (const auto& [name, expression] : applied.attributes) {
    const AttributeValue* value = piece.attributes.find(name);
    if (value == nullptr || !bind_attribute(expression, *value, bindings.attributes)) return false;
  }
  return std::all_of(rule.conditions.begin(), rule.conditions.end(), [&](const Condition& condition) {
    const Expected<bool> holding = holds(condition, bindings);
    return holding && *holding;
  });
}

Expected<OperatorPiece> part_of(const OperatorPiece& piece, const PieceCut& cut, std::int64_t point, bool second,
                                const OperatorRegistry& registry) {
  if (cut.of_rest == nullptr) return direct_part(piece, cut, point, second, registry);
  const std::optional<FoldedPiece> folded = fold(piece, registry);
  TASO_CHECK(folded.has_value(), "a cut of an operator of more than two");
  TASO_ASSIGN(OperatorPiece two, direct_part(folded->two, cut, point, second, registry));
  TASO_ASSIGN(const OperatorPiece rest, rest_part(*folded, *cut.of_rest, two, second, registry));
  return unfold(piece, *folded, std::move(two), rest, registry);
}

namespace {

Expected<OperatorPiece> direct_part(const OperatorPiece& piece, const PieceCut& cut, std::int64_t point, bool second,
                                    const OperatorRegistry& registry) {
  const PartitionStrategy& strategy = *cut.strategy;
  Bindings bindings = bindings_of(piece);
  bindings.attributes = cut.attributes;
  bindings.attributes[strategy.cut] = point;
  for (const Condition& condition : strategy.rule.conditions) {
    TASO_ASSIGN(const bool holding, holds(condition, bindings));
    if (!holding) return bad_input(to_string(condition, strategy.rule) + " does not hold");
  }
  OperatorPiece part = piece;
  for (const InputCut& input : strategy.inputs) {
    const auto axis = integer(input.axis, bindings);
    const auto place = integer(second ? input.second_begin : input.first_end, bindings);
    if (!axis || !place) return no_number(strategy);
    TensorType& type = part.inputs[input.input];
    const auto at = static_cast<std::size_t>(static_cast<std::int64_t>(type.shape.size()) + *axis);
    IndexRange& range = part.reads[input.input][at];
    (second ? range.begin : range.end) = range.begin + *place;
    type.shape[at] = range.size();
  }
  for (const LocalAttribute& attribute : strategy.attributes) {
    TASO_ASSIGN(AttributeValue value, evaluate(second ? attribute.second : attribute.first, bindings));
    part.attributes.set(attribute.name, std::move(value));
  }
  TASO_ASSIGN(part.attributes, registry.complete(piece.op, part.attributes));
  TASO_ASSIGN(part.outputs, registry.infer(piece.op, part.attributes, part.inputs));
  if (part.outputs.size() != piece.outputs.size()) return internal_error("a piece has another number of outputs");
  const auto surplus = integer(second ? strategy.before_second : strategy.behind_first, bindings);
  if (!surplus) return no_number(strategy);
  for (std::size_t i = 0; i < part.outputs.size(); ++i) {
    Shape expected = piece.outputs[i].shape;
    if (cut.output_axis) expected[*cut.output_axis] = part.outputs[i].shape[*cut.output_axis];
    if (part.outputs[i].shape != expected)
      return internal_error("the strategy " + strategy.rule.name + " makes pieces of another shape");
    if (cut.output_axis) cut_results(part, piece.outputs[i].shape, i, *cut.output_axis, second, *surplus);
  }
  return part;
}

}  // namespace

namespace {

/// The values of a variable for which a piece keeps results: all, but where it makes more along their axis than its
/// part.
IndexRange kept_of(const OperatorPiece& piece, const PieceCut& cut) {
  if (cut.output_axis) {
    const IndexRange kept = piece.keeps[0][*cut.output_axis];
    if (kept.size() != piece.outputs[0].shape[*cut.output_axis]) return kept;
  }
  return {0, cut.extent};
}

}  // namespace

Expected<OperatorPiece> piece_at(const OperatorPiece& piece, const std::string& cut, const RangePiece& wanted,
                                 const RangePiece& have, StrategyTable& strategies) {
  IndexRange left = have.range();
  const IndexRange range = wanted.range();
  TASO_CHECK(left.begin <= range.begin && range.end <= left.end, "a piece of a piece lies in it");
  if (range.size() == 0) return bad_input("there are more pieces than indices of " + cut);
  OperatorPiece result = piece;
  for (const bool second : {false, true}) {
    const std::int64_t point = (second ? range.begin : range.end) - left.begin;
    if (point == 0 || point == left.size()) continue;
    const std::vector<PieceCut> cuts = cuts_of(result, strategies, cut);
    // Of several strategies for one variable, the first whose conditions hold.
    Expected<OperatorPiece> part = bad_input(cut + " cannot be cut");
    for (const PieceCut& one : cuts) {
      const IndexRange kept = kept_of(result, one);
      if (kept.size() != left.size()) continue;
      part = part_of(result, one, kept.begin + point, second, strategies.registry());
      if (part) break;
    }
    if (!part) return part.error();
    result = std::move(*part);
    (second ? left.begin : left.end) = second ? range.begin : range.end;
  }
  return result;
}

}  // namespace taso
