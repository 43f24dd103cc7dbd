#include "onnx_io/symbol_flow.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "graph/reals.h"

namespace taso {
namespace {

/// Of every element of a constant whose shape follows from extents.
constexpr std::int64_t shape_mark = -1;

/// Operators whose outputs have rounded extents, or whose pads follow from extents: what they do at a few sizes of
/// images says little of others.
bool rounds_extents(const std::string& op_type) {
  static const std::set<std::string> some = {"AveragePool", "Col2Im",      "Conv",   "ConvInteger", "ConvTranspose",
                                             "DeformConv",  "GridSample",  "LpPool", "MaxPool",     "MaxRoiPool",
                                             "MaxUnpool",   "QLinearConv", "Resize", "RoiAlign",    "Upsample"};
  return some.contains(op_type);
}

std::shared_ptr<const ConstantData> marks(const Shape& shape) {
  std::vector<std::byte> element(sizeof shape_mark);
  std::memcpy(element.data(), &shape_mark, sizeof shape_mark);
  return shape.empty() ? ConstantData::of_integers({}, std::span(&shape_mark, 1))
                       : ConstantData::splat({ElementType::i64, shape, true}, std::move(element));
}

/// Whether a Range counts up from 0: it has as many elements as its limit says.
bool in_steps_of_one(const std::vector<NodeContext::Input>& inputs) {
  const auto is = [&](std::size_t i, std::int64_t number) {
    return i < inputs.size() && inputs[i].constant != nullptr &&
           inputs[i].constant->to_integers() == std::vector{number};
  };
  return is(0, 0) && is(2, 1);
}

}  // namespace

void SymbolFlow::begin(const std::vector<Symbol>& symbols, const ImportOptions& options, bool rounding) {
  if (options.symbol_sizes.empty() && options.free_extents.empty()) return;
  quotients_ = options.quotients;
  unfolded_ = &options.unfolded;
  const bool beyond_batch =
      std::ranges::any_of(
          symbols,
          [&](const Symbol& symbol) { return symbol.axis > 0 && options.symbol_sizes.contains(symbol.name); }) ||
      std::ranges::any_of(options.free_extents, [](const auto& free) { return free.second.rbegin()->first > 0; });
  const auto& nodes = document_->graph().node();
  rounding = rounding || std::any_of(nodes.begin(), nodes.end(),
                                     [](const onnx::NodeProto& node) { return rounds_extents(node.op_type()); });
  sizes_ = beyond_batch && rounding ? NodeContext::Sizes::rounded : NodeContext::Sizes::some;
}

std::string SymbolFlow::fold(const NodeContext& context, const ConstantData& folded) {
  if (sizes_ == NodeContext::Sizes::all) return "";
  const std::string& op = context.proto().op_type();
  const auto& inputs = context.inputs();
  maker_ = context.proto().output(0);
  std::optional<Flow> flow;
  const bool asks = op == "Shape" || op == "Size";
  const bool follows =
      asks || std::any_of(inputs.begin(), inputs.end(), [](const auto& input) { return input.from_symbols; });
  if (const auto known = unfolded_->find(maker_); follows && known != unfolded_->end())
    return "it computes what is not known at all sizes: " + known->second;
  if (asks) {
    if (context.is_constant(0) && !flow_of(context, 0).shaped()) return "";
    if (sizes_ == NodeContext::Sizes::rounded && !quotients_)
      return "extents that may be rounded are not known at all sizes";
    flow = of_extents(context, folded);
  } else {
    bool any = false, beyond_first = false, shaped = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].from_symbols) continue;
      any = true;
      beyond_first = beyond_first || i > 0;
      shaped = shaped || flow_of(context, i).shaped();
    }
    if (!any) return "";
    const auto flows_from = [&](std::size_t i) { return i < inputs.size() && inputs[i].from_symbols; };
    static const std::set<std::string> moving = {"Concat",  "Gather",  "Slice",    "Unsqueeze",
                                                 "Squeeze", "Reshape", "Identity", "Transpose"};
    static const std::set<std::string> arithmetic = {"Add", "Sub", "Mul", "Neg", "Div"};
    const bool integers = folded.type().element == ElementType::i64;
    if (moving.contains(op) || (op == "Cast" && integers)) {
      // Of a list whose length is symbolic, positions are not known.
      const bool known = !shaped || op == "Unsqueeze" || op == "Reshape" || op == "Identity";
      if (known && (!beyond_first || op == "Concat")) flow = moved(context);
    } else if (arithmetic.contains(op) && integers) {
      flow = computed(context, folded);
    } else if (op == "Equal" && !shaped) {
      if (is_decided(context, folded)) return "";
    } else if (op == "Where" && !shaped && !flows_from(0) && integers) {
      flow = chosen(context, folded);
    } else if (op == "ConstantOfShape" || (op == "Expand" && !flows_from(0)) ||
               (op == "Range" && !flows_from(0) && !flows_from(2) && integers && in_steps_of_one(inputs))) {
      flow = repeated(context, folded);
    }
  }
  if (!flow) return op + " of symbolic extents is not known at all sizes";
  const int tensor = document_->find(context.proto().output(0));
  const std::vector<std::int64_t> each = flow->shaped() ? std::vector<std::int64_t>{1} : flow->elements->to_integers();
  if (std::all_of(each.begin(), each.end(), [](std::int64_t element) { return element == 0; })) return "";
  if (tensor >= 0) flows_[static_cast<std::size_t>(tensor)] = std::move(*flow);
  return "";
}

const SymbolFlow::Flow& SymbolFlow::flow_of(const NodeContext& context, std::size_t i) const {
  static const Flow none;
  const int tensor = i < context.inputs().size() ? context.inputs()[i].tensor : -1;
  return tensor < 0 ? none : flows_[static_cast<std::size_t>(tensor)];
}

/// The elements of a constant of integers.
std::vector<SymbolFlow::Term> SymbolFlow::terms_of(const NodeContext& context, std::size_t i) const {
  std::vector<Term> terms;
  for (const std::int64_t value : context.inputs()[i].constant->to_integers()) terms.push_back({0, value});
  const Flow& flow = flow_of(context, i);
  if (flow.elements == nullptr || flow.shaped()) return terms;
  const std::vector<std::int64_t> integers = flow.elements->to_integers();
  for (std::size_t k = 0; k < terms.size(); ++k) terms[k].integer = static_cast<std::size_t>(integers[k]);
  return terms;
}

/// The extents of an input.
std::vector<SymbolFlow::Term> SymbolFlow::extents_of(const NodeContext& context, std::size_t i) {
  const NodeContext::Input& input = context.inputs()[i];
  if (flow_of(context, i).shaped()) return flow_of(context, i).shape;
  std::vector<Term> terms;
  for (std::size_t axis = 0; axis < input.type.shape.size(); ++axis) {
    const std::int64_t extent = input.type.shape[axis];
    if (input.constant || !input.value)
      terms.push_back({0, extent});
    else
      terms.push_back(note({SymbolicInteger::Kind::extent, *input.value, axis, 0, 0, extent}));
  }
  return terms;
}

/// Integers that are made in the same way are one.
SymbolFlow::Term SymbolFlow::note(SymbolicInteger integer) {
  const std::int64_t number = integer.kind == SymbolicInteger::Kind::number ? integer.value : 0;
  const Key key{integer.kind, integer.tensor.node, integer.tensor.port, integer.axis, integer.a, integer.b, number};
  const auto [place, added] = known_.try_emplace(key, decisions_->integers.size());
  integer.computed = false;
  if (added) decisions_->integers.push_back(integer);
  if (!describing_) {
    decisions_->integers[place->second].makers.insert(maker_);
    mark_computed(place->second);
  }
  return {place->second + 1, integer.value};
}

void SymbolFlow::mark_computed(std::size_t integer) {
  SymbolicInteger& entry = decisions_->integers[integer];
  if (entry.computed) return;
  entry.computed = true;
  entry.makers.insert(maker_);
  if (entry.kind == SymbolicInteger::Kind::extent || entry.kind == SymbolicInteger::Kind::number) return;
  mark_computed(entry.a);
  mark_computed(entry.b);
}

/// The position of an integer; a number becomes one.
std::size_t SymbolFlow::integer_of(Term term) {
  if (term.integer == 0) term = note({SymbolicInteger::Kind::number, {}, 0, 0, 0, term.value});
  return term.integer - 1;
}

SymbolFlow::Term SymbolFlow::combine(SymbolicInteger::Kind kind, Term a, Term b, std::int64_t value) {
  if (a.integer == 0 && b.integer == 0) return {0, value};
  const std::size_t left = integer_of(a), right = integer_of(b);
  return note({kind, {}, 0, left, right, value});
}

SymbolFlow::Term SymbolFlow::product(const std::vector<Term>& terms) {
  Term result{0, 1};
  for (const Term& term : terms)
    result = combine(SymbolicInteger::Kind::multiply, result, term, result.value * term.value);
  return result;
}

std::optional<SymbolFlow::Flow> SymbolFlow::of_extents(const NodeContext& context, const ConstantData& folded) {
  const std::vector<Term> extents = extents_of(context, 0);
  if (context.proto().op_type() == "Size") {
    const auto integer = static_cast<std::int64_t>(product(extents).integer);
    return Flow{ConstantData::of_integers({}, std::span(&integer, 1)), {}, {}, 0};
  }
  // What Shape makes of a tensor whose extents are the integers.
  std::vector<NodeContext::Input> inputs = context.inputs();
  for (std::size_t axis = 0; axis < extents.size(); ++axis)
    inputs[0].type.shape[axis] = static_cast<std::int64_t>(extents[axis].integer);
  NodeContext of_integers = context.with_inputs(std::move(inputs));
  Data elements = fold_integers(of_integers);
  if (!elements || elements->type().shape != folded.type().shape) return std::nullopt;
  return Flow{std::move(elements), {}, {}, 0};
}

/// What an operator that moves elements makes of the integers that they are.
std::optional<SymbolFlow::Flow> SymbolFlow::moved(const NodeContext& context) {
  const std::string& op = context.proto().op_type();
  std::vector<NodeContext::Input> inputs = context.inputs();
  for (std::size_t i = 0; i < inputs.size() && (i == 0 || op == "Concat"); ++i) {
    if (!inputs[i].constant) return std::nullopt;
    const Data& known = flow_of(context, i).elements;
    const Shape shape = inputs[i].constant->type().shape;
    const std::vector<std::int64_t> none(static_cast<std::size_t>(inputs[i].constant->type().elements()), 0);
    inputs[i].constant = known ? known : ConstantData::of_integers(shape, none);
    inputs[i].type = inputs[i].constant->type();
  }
  Flow flow;
  if (flow_of(context, 0).shaped()) {
    auto shape = shape_of_moved(context);
    if (!shape) return std::nullopt;
    flow = flow_of(context, 0);
    flow.shape = std::move(*shape);
    const auto is_one = [](const Term& term) { return term.integer == 0 && term.value == 1; };
    if (flow.step != 0 && std::count_if(flow.shape.begin(), flow.shape.end(), std::not_fn(is_one)) > 1)
      return std::nullopt;
  }
  if (op == "Identity") {
    flow.elements = inputs[0].constant;
    return flow;
  }
  NodeContext of_integers = context.with_inputs(std::move(inputs));
  flow.elements = fold_integers(of_integers);
  if (!flow.elements || (flow.shaped() && flow.shape.size() != flow.elements->type().shape.size())) return std::nullopt;
  return flow;
}

/// The extents of a constant whose shape follows from extents, after Unsqueeze, Reshape or Identity.
std::optional<std::vector<SymbolFlow::Term>> SymbolFlow::shape_of_moved(const NodeContext& context) {
  const std::string& op = context.proto().op_type();
  const std::vector<Term>& extents = flow_of(context, 0).shape;
  if (op == "Identity") return extents;
  if (op == "Reshape") return reshaped(context, extents);
  NodeContext copy = context.with_inputs(context.inputs());
  std::vector<std::int64_t> axes = copy.opset() >= 13 ? copy.integers(1) : copy.integer_list("axes", {});
  const auto rank = static_cast<std::int64_t>(extents.size() + axes.size());
  for (std::int64_t& axis : axes) axis = copy.axis_from_front(axis, rank);
  if (copy.stopped()) return std::nullopt;
  std::sort(axes.begin(), axes.end());
  std::vector<Term> result = extents;
  for (const std::int64_t axis : axes) result.insert(result.begin() + axis, Term{0, 1});
  return result;
}

/// Extents after a Reshape of what has `extents`.
std::optional<std::vector<SymbolFlow::Term>> SymbolFlow::reshaped(const NodeContext& context,
                                                                  const std::vector<Term>& extents) {
  NodeContext copy = context.with_inputs(context.inputs());
  if (!copy.is_constant(1) || copy.type(1).element != ElementType::i64) return std::nullopt;
  const bool zero_is_zero = copy.integer("allowzero", 0) != 0;
  if (copy.stopped()) return std::nullopt;
  std::vector<Term> result = terms_of(context, 1);
  std::optional<std::size_t> rest;
  for (std::size_t axis = 0; axis < result.size(); ++axis) {
    Term& term = result[axis];
    if (term.integer != 0) {
      // What may be 0 or -1 somewhere says something else there.
      if (!is_not_negative(term) || term.value <= 0) return std::nullopt;
    } else if (term.value == 0 && (zero_is_zero || axis >= extents.size())) {
      return std::nullopt;
    } else if (term.value == 0) {
      term = extents[axis];
    } else if (term.value == -1) {
      rest = axis;
      term.value = 1;
    }
  }
  if (!rest) return result;
  const Term all = product(extents), others = product(result);
  if (others.value == 0) return std::nullopt;
  result[*rest] = combine(SymbolicInteger::Kind::divide, all, others, all.value / others.value);
  return result;
}

std::optional<std::vector<SymbolFlow::Term>> SymbolFlow::flattened(const NodeContext& context) {
  NodeContext copy = context.with_inputs(context.inputs());
  const std::int64_t axis = copy.integer("axis", 1);
  const std::vector<Term> extents = extents_of(context, 0);
  const auto rank = static_cast<std::int64_t>(extents.size());
  if (copy.stopped() || axis < -rank || axis > rank) return std::nullopt;
  const auto middle = extents.begin() + (axis < 0 ? axis + rank : axis);
  return std::vector{product({extents.begin(), middle}), product({middle, extents.end()})};
}

CarriedShape SymbolFlow::listed(const NodeContext& context) {
  const std::string& op = context.proto().op_type();
  CarriedShape shape;
  if (context.input_count() == 0 || !context.type(0).known) return shape;
  describing_ = true;
  std::optional<std::vector<Term>> terms;
  if (op == "Reshape" && context.input_count() > 1) terms = reshaped(context, extents_of(context, 0));
  if (op == "Flatten") terms = flattened(context);
  if (op == "Expand" && context.input_count() > 1 && context.is_constant(1) &&
      context.type(1).element == ElementType::i64)
    terms = terms_of(context, 1);
  for (const Term& term : terms.value_or(std::vector<Term>())) shape.extents.push_back(integer_of(term));
  if (terms) shape.rule = op == "Expand" ? CarriedShape::Rule::expanded : CarriedShape::Rule::listed;
  describing_ = false;
  return shape;
}

void SymbolFlow::note_expanded(const NodeContext& context, NodeId reader) {
  if (context.input_count() < 2 || !context.inputs()[0].value || !context.type(0).known || !context.is_constant(1) ||
      context.type(1).element != ElementType::i64)
    return;
  const std::vector<Term> list = terms_of(context, 1);
  const Shape& shape = context.shape(0);
  for (std::size_t back = 1; back <= std::min(list.size(), shape.size()); ++back) {
    const Term& term = list[list.size() - back];
    if (term.integer != 0 && term.value > 1 && term.value == shape[shape.size() - back])
      decisions_->equal.push_back({reader, *context.inputs()[0].value, {}, term.integer - 1, back, true});
  }
}

bool SymbolFlow::is_not_negative(Term term) const {
  if (term.integer == 0) return term.value >= 0;
  using Kind = SymbolicInteger::Kind;
  const SymbolicInteger& integer = decisions_->integers[term.integer - 1];
  switch (integer.kind) {
    case Kind::extent:
      return true;
    case Kind::number:
      return integer.value >= 0;
    case Kind::add:
    case Kind::multiply:
    case Kind::divide:
      return is_not_negative({integer.a + 1, 0}) && is_not_negative({integer.b + 1, 0});
    case Kind::subtract:
      return false;
  }
  return false;
}

/// Whether integers are equal, or not, at all sizes: as exporters ask which entries of a shape are -1.
bool SymbolFlow::is_decided(const NodeContext& context, const ConstantData& folded) const {
  const std::vector<Term> a = terms_of(context, 0), b = terms_of(context, 1);
  const auto count = static_cast<std::size_t>(folded.type().elements());
  for (std::size_t i = 0; i < count; ++i) {
    const Term &left = a[broadcast_index(i, folded.type().shape, context.shape(0))],
               &right = b[broadcast_index(i, folded.type().shape, context.shape(1))];
    const auto is_negative = [](const Term& term) { return term.integer == 0 && term.value < 0; };
    if (left.integer == right.integer) continue;  // The same integer, or two numbers.
    if (!(is_negative(left) && is_not_negative(right)) && !(is_negative(right) && is_not_negative(left))) return false;
  }
  return true;
}

/// Integers of two lists, as a mask that is the same at all sizes tells.
std::optional<SymbolFlow::Flow> SymbolFlow::chosen(const NodeContext& context, const ConstantData& folded) const {
  const std::vector<Term> a = terms_of(context, 1), b = terms_of(context, 2);
  const std::vector<std::int64_t> mask = context.inputs()[0].constant->to_integers();
  const Shape& shape = folded.type().shape;
  std::vector<std::int64_t> integers;
  for (std::size_t i = 0; i < static_cast<std::size_t>(folded.type().elements()); ++i) {
    const bool first = mask[broadcast_index(i, shape, context.shape(0))] != 0;
    const Term& term =
        first ? a[broadcast_index(i, shape, context.shape(1))] : b[broadcast_index(i, shape, context.shape(2))];
    integers.push_back(static_cast<std::int64_t>(term.integer));
  }
  return Flow{ConstantData::of_integers(shape, integers), {}, {}, 0};
}

/// Sums, differences, products and quotients, element by element.
std::optional<SymbolFlow::Flow> SymbolFlow::computed(const NodeContext& context, const ConstantData& folded) {
  using Kind = SymbolicInteger::Kind;
  const std::string& op = context.proto().op_type();
  const Shape& shape = folded.type().shape;
  const Kind kind = op == "Add"   ? Kind::add
                    : op == "Mul" ? Kind::multiply
                    : op == "Div" ? Kind::divide
                                  : Kind::subtract;
  const bool negates = op == "Neg";
  if (kind == Kind::divide && !quotients_) return std::nullopt;
  if (flow_of(context, 0).shaped() || flow_of(context, 1).shaped()) return counted(context, folded);
  const std::vector<Term> a = negates ? std::vector<Term>{{0, 0}} : terms_of(context, 0),
                          b = terms_of(context, negates ? 0 : 1);
  const Shape& shape_a = negates ? Shape() : context.shape(0);
  const Shape& shape_b = context.shape(negates ? 0 : 1);
  const std::vector<std::int64_t> values = folded.to_integers();
  std::vector<std::int64_t> integers;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Term &left = a[broadcast_index(i, shape, shape_a)], &right = b[broadcast_index(i, shape, shape_b)];
    // ONNX rounds towards zero, a quotient of extents down.
    if (kind == Kind::divide && !(is_not_negative(left) && is_not_negative(right))) return std::nullopt;
    integers.push_back(static_cast<std::int64_t>(combine(kind, left, right, values[i]).integer));
  }
  return Flow{ConstantData::of_integers(shape, integers), {}, {}, 0};
}

/// What an operand of arithmetic on constants whose shape follows from extents is, as one of these.
std::optional<SymbolFlow::Flow> SymbolFlow::count_of(const NodeContext& context, std::size_t i) const {
  const Flow& flow = flow_of(context, i);
  if (flow.shaped()) return flow;
  const std::vector<Term> terms = terms_of(context, i);
  const auto differs = [&](const Term& term) {
    return term.integer != terms[0].integer || term.value != terms[0].value;
  };
  if (terms.empty() || std::any_of(terms.begin(), terms.end(), differs)) return std::nullopt;
  return Flow{nullptr, {}, terms[0], 0};
}

/// The extents that two operands have in common, as far as these are one integer, or 1.
std::optional<std::vector<SymbolFlow::Term>> SymbolFlow::common_extents(const NodeContext& context, std::size_t rank) {
  std::vector<Term> common(rank, Term{0, 1});
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    const std::vector<Term> extents = extents_of(context, i);
    for (std::size_t back = 1; back <= extents.size(); ++back) {
      Term &known = common[rank - back], extent = extents[extents.size() - back];
      if (extent.integer == 0 && extent.value == 1) continue;
      const bool free = known.integer == 0 && known.value == 1;
      if (!free && (known.integer != extent.integer || known.value != extent.value)) return std::nullopt;
      known = extent;
    }
  }
  return common;
}

/// Sums, differences and products of constants whose shape follows from extents, where these still count or repeat.
std::optional<SymbolFlow::Flow> SymbolFlow::counted(const NodeContext& context, const ConstantData& folded) {
  using Kind = SymbolicInteger::Kind;
  const std::string& op = context.proto().op_type();
  const std::optional<Flow> first = op == "Neg" ? Flow{nullptr, {}, {0, 0}, 0} : count_of(context, 0),
                            second = count_of(context, op == "Neg" ? 0 : 1);
  const auto shape = common_extents(context, folded.type().shape.size());
  if (!first || !second || !shape || op == "Div") return std::nullopt;
  const Kind kind = op == "Add" ? Kind::add : op == "Mul" ? Kind::multiply : Kind::subtract;
  const Term &a = first->start, &b = second->start;
  std::int64_t start = 0, step = 0;
  bool overflows = false;
  if (kind == Kind::multiply) {
    // Numbers of steps of numbers: others have no form in a file.
    if ((first->step != 0 && (second->step != 0 || b.integer != 0)) || (second->step != 0 && a.integer != 0))
      return std::nullopt;
    overflows = __builtin_mul_overflow(a.value, b.value, &start) ||
                __builtin_mul_overflow(first->step != 0 ? first->step : second->step,
                                       first->step != 0 ? b.value : a.value, &step);
  } else if (kind == Kind::add) {
    overflows =
        __builtin_add_overflow(a.value, b.value, &start) || __builtin_add_overflow(first->step, second->step, &step);
  } else {
    overflows =
        __builtin_sub_overflow(a.value, b.value, &start) || __builtin_sub_overflow(first->step, second->step, &step);
  }
  if (overflows) return std::nullopt;
  Flow flow{marks(folded.type().shape), *shape, combine(kind, a, b, start), step};
  const auto is_one = [](const Term& term) { return term.integer == 0 && term.value == 1; };
  const auto others = std::count_if(shape->begin(), shape->end(), [&](const Term& term) { return !is_one(term); });
  if (step == 0 ? flow.start.integer != 0 : others > 1) return std::nullopt;
  return flow;
}

/// A constant whose shape follows from extents.
std::optional<SymbolFlow::Flow> SymbolFlow::repeated(const NodeContext& context, const ConstantData& folded) {
  const std::string& op = context.proto().op_type();
  Flow flow{marks(folded.type().shape), {}, {}, 0};
  if (op == "Range") {
    const std::vector<Term> limit = terms_of(context, 1);
    decisions_->lengths.push_back(integer_of(limit.at(0)));
    flow.shape = limit;
    flow.step = 1;
  } else if (op == "ConstantOfShape") {
    flow.shape = terms_of(context, 0);
  } else {
    const Shape& own = context.shape(0);
    flow.shape = terms_of(context, 1);
    // An Expand broadcasts both ways.
    for (std::size_t back = 1; back <= own.size(); ++back) {
      if (back > flow.shape.size()) flow.shape.insert(flow.shape.begin(), Term{0, 1});
      if (const std::int64_t extent = own[own.size() - back]; extent != 1)
        flow.shape[flow.shape.size() - back] = {0, extent};
    }
  }
  if (folded.type().element == ElementType::i64 && op != "Range") {
    // What is one element, repeated, may have far more elements than there is memory for.
    const std::span<const std::byte> element = folded.splat_element();
    const Shape few = {std::min<std::int64_t>(1, folded.type().elements())};
    const std::vector<std::int64_t> elements =
        folded.is_dense()
            ? folded.to_integers()
            : ConstantData::splat({ElementType::i64, few}, {element.begin(), element.end()})->to_integers();
    if (std::any_of(elements.begin(), elements.end(), [&](std::int64_t element) { return element != elements[0]; }))
      return std::nullopt;
    flow.start = {0, elements.empty() ? 0 : elements[0]};
  }
  if (flow.shape.size() != folded.type().shape.size()) return std::nullopt;
  return flow;
}

std::vector<std::size_t> SymbolFlow::read_by(const NodeContext& context) const {
  std::set<std::size_t> integers;
  for (std::size_t i = 0; i < context.inputs().size(); ++i) {
    const Flow& flow = flow_of(context, i);
    if (flow.elements == nullptr || flow.shaped()) continue;
    for (const std::int64_t element : flow.elements->to_integers())
      if (element > 0) integers.insert(static_cast<std::size_t>(element) - 1);
  }
  return {integers.begin(), integers.end()};
}

std::string SymbolFlow::misuse(const NodeContext& context) {
  static const std::set<std::string> fit = {"Reshape", "Expand", "Slice", "Gather"};
  for (std::size_t i = 0; i < context.input_count(); ++i)
    if (context.inputs()[i].from_symbols && !is_real(context.type(i).element) &&
        (i == 0 || !fit.contains(context.proto().op_type())))
      return "input " + std::to_string(i) + " follows from symbolic extents";
  return "";
}

}  // namespace taso
