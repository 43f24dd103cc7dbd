#include <algorithm>

#include "graph/editor.h"
#include "graph/reals.h"
#include "graph/rewrite.h"
#include "graph/size_arithmetic.h"

namespace taso {
namespace {

// The part of the source above each pattern value: does tensor variable `variable` occur in it?
bool depends_on(const Pattern& pattern, const PatternValue& value, std::uint32_t variable) {
  std::vector<char> above(pattern.nodes.size(), 0);
  if (value.is_variable) return value.index == variable;
  above[value.index] = 1;
  for (std::size_t i = value.index + 1; i-- > 0;) {
    if (above[i] == 0) continue;
    for (const PatternValue& input : pattern.nodes[i].inputs) {
      if (input.is_variable && input.index == variable) return true;
      if (!input.is_variable) above[input.index] = 1;
    }
  }
  return false;
}

// A cycle needs a variable of the target that depends on a replaced output. The inputs of an output's own pattern
// cannot.
bool may_close_a_cycle(const Substitution& rule) {
  std::vector<char> used(rule.tensor_variables.size(), 0);
  auto mark = [&](const PatternValue& value) {
    if (value.is_variable) used[value.index] = 1;
  };
  for (const PatternNode& node : rule.target.nodes)
    for (const PatternValue& input : node.inputs) mark(input);
  for (const PatternValue& output : rule.target.outputs) mark(output);
  for (std::uint32_t variable = 0; variable < used.size(); ++variable)
    for (const PatternValue& output : rule.source.outputs)
      if (used[variable] != 0 && !depends_on(rule.source, output, variable)) return true;
  return false;
}

Status check_match(const Graph& graph, const Substitution& rule, const Match& match) {
  const bool sizes =
      match.variables.size() == rule.tensor_variables.size() &&
      match.attributes.size() == rule.attribute_variables.size() && match.nodes.size() == rule.source.nodes.size() &&
      match.operand_begin.size() == rule.source.nodes.size() && match.port_begin.size() == rule.source.nodes.size();
  bool present = sizes;
  for (const Value& value : match.variables)
    present = present && graph.contains(value.node) && value.port < graph.node(value.node).outputs.size();
  for (const NodeId id : match.nodes) present = present && graph.contains(id);
  if (!present) return internal_error("the match of " + rule.name + " is not of this graph");
  return {};
}

// Where some pieces of a longer split were matched, makes them a split of their own, so that the match is a plain one.
Status separate_pieces(GraphEditor& editor, const Graph& graph, const Substitution& rule, Match& match,
                       const OperatorCatalog& catalog) {
  for (std::size_t p = 0; p < match.nodes.size(); ++p) {
    if (match.port_begin[p] < 0) continue;
    const NodeId whole_id = match.nodes[p];
    const Node& whole = graph.node(whole_id);
    const PieceAttributes* const names = catalog.pieces(whole.op);
    const AttributeValue* attribute = names == nullptr ? nullptr : whole.attributes.find(names->sizes);
    const auto* sizes = attribute == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(attribute);
    const PatternValue& input = rule.source.nodes[p].inputs.at(0);
    if (sizes == nullptr || !input.is_variable) return internal_error("pieces of what is not a split were matched");
    const auto begin = static_cast<std::uint32_t>(match.port_begin[p]);
    std::size_t pieces = 0;
    for (const auto& [name, value] : rule.source.nodes[p].attributes) {
      if (name != names->sizes) continue;
      const AttributeValue* list = value.kind == AttributeExpression::Kind::literal    ? &value.literal
                                   : value.kind == AttributeExpression::Kind::variable ? &*match.attributes[value.index]
                                                                                       : nullptr;
      pieces = list == nullptr ? value.operands.size() : std::get<std::vector<std::int64_t>>(*list).size();
    }
    if (begin + pieces > sizes->size()) return internal_error("the match of " + rule.name + " is not of this graph");
    const std::vector<std::int64_t> inner(sizes->begin() + begin,
                                          sizes->begin() + begin + static_cast<std::ptrdiff_t>(pieces));
    std::vector<std::int64_t> outer(sizes->begin(), sizes->begin() + begin);
    TASO_ASSIGN(const std::int64_t together, sum_of_sizes(inner, sizes_of(catalog)));
    outer.push_back(together);
    outer.insert(outer.end(), sizes->begin() + begin + static_cast<std::ptrdiff_t>(pieces), sizes->end());
    Attributes outer_attributes = whole.attributes, inner_attributes = whole.attributes;
    outer_attributes.set(names->sizes, outer);
    inner_attributes.set(names->sizes, inner);
    const auto count = static_cast<std::uint32_t>(whole.outputs.size());
    TASO_ASSIGN(const NodeId outer_id, editor.add_op(whole.op, outer_attributes, whole.inputs, {whole.origin}));
    TASO_ASSIGN(const NodeId inner_id,
                editor.add_op(whole.op, inner_attributes, {Value{outer_id, begin}}, {whole.origin}));
    std::vector<std::pair<Value, Value>> replacements;
    for (std::uint32_t port = 0; port < count; ++port) {
      const Value to = port < begin ? Value{outer_id, port}
                       : port < begin + inner.size()
                           ? Value{inner_id, port - begin}
                           : Value{outer_id, port - static_cast<std::uint32_t>(inner.size()) + 1};
      replacements.push_back({{whole_id, port}, to});
      for (Value& variable : match.variables)
        if (variable == Value{whole_id, port}) variable = to;
    }
    editor.replace(replacements, {outer_id, inner_id});
    editor.touch(outer_id);
    editor.touch(inner_id);
    match.nodes[p] = inner_id;
    match.port_begin[p] = -1;
    match.variables[input.index] = {outer_id, begin};
  }
  return {};
}

// The real type in which a rule computes at a match: that of what it replaces.
ElementType real_type(const Graph& graph, const Substitution& rule, const Match& match) {
  for (const PatternValue& output : rule.source.outputs) {
    const Node& node = graph.node(match.nodes[output.index]);
    if (output.port < node.outputs.size() && is_real(node.outputs[output.port].element))
      return node.outputs[output.port].element;
  }
  return ElementType::f32;
}

// A tensor of one number, which a rule makes, must be of numbers of its type.
Status check_number(std::string_view op, const Attributes& attributes, ElementType type, const Substitution& rule,
                    const OperatorCatalog& catalog) {
  const OperatorSignature* const signature = catalog.signature(op);
  if (signature == nullptr || signature->fill_value.empty()) return {};
  const AttributeValue* const number = attributes.find(signature->fill_value);
  const auto* const real = number == nullptr ? nullptr : std::get_if<double>(number);
  if (real == nullptr || is_in_range(*real, type)) return {};
  return bad_input(rule.name + " would make " + to_string(*number) + ", which is beyond the range of " +
                   to_string(type));
}

// Whether an extent is a number below 1, or may be 0 at some sizes.
bool is_zero(std::int64_t extent, const SizeArithmetic* sizes) {
  return extent < 1 && (sizes == nullptr || sizes->is_number(extent));
}
bool may_be_zero(std::int64_t extent, const SizeArithmetic& sizes) {
  return !sizes.is_number(extent) && !sizes.follows(Condition::Relation::less_equal, 1, extent);
}

// Proofs are of tensors with elements. Where one of those that a rule speaks of may have none, the rule changes nothing
// if its outputs have none then, either: tensors of one shape without elements are equal.
Status check_empty(const Graph& graph, const Substitution& rule, const Match& match, const Graph& result,
                   const std::vector<NodeId>& made, const std::vector<Value>& outputs, const SizeArithmetic& sizes) {
  std::vector<std::int64_t> extents;
  const auto look_at = [&](const TensorType& type) {
    for (const std::int64_t extent : type.shape)
      if (may_be_zero(extent, sizes)) extents.push_back(extent);
  };
  for (const Value& value : match.variables) look_at(graph.type(value));
  for (const NodeId id : match.nodes)
    for (const TensorType& type : graph.node(id).outputs) look_at(type);
  for (const NodeId id : made)
    for (const TensorType& type : result.node(id).outputs) look_at(type);
  for (const std::int64_t extent : extents)
    for (const Value& output : outputs) {
      const Shape& shape = result.type(output).shape;
      if (std::none_of(shape.begin(), shape.end(),
                       [&](std::int64_t other) { return sizes.is_zero_where(other, extent); }))
        return bad_input(rule.name + " says nothing of tensors without elements, and " + sizes.to_string(extent) +
                         " may be 0");
    }
  return {};
}

}  // namespace

Expected<RewriteResult> apply_with_changes(const Graph& original, const Substitution& rule, const Match& original_match,
                                           const OperatorCatalog& catalog, const Consumers* consumers) {
  TASO_RETURN_IF_ERROR(check_match(original, rule, original_match));
  RewriteResult result;
  result.graph = original;
  GraphEditor editor(result.graph, catalog, consumers);
  Match match = original_match;
  TASO_RETURN_IF_ERROR(separate_pieces(editor, result.graph, rule, match, catalog));
  // The graph that is matched, whatever becomes of result.graph.
  const bool separated = match.port_begin != original_match.port_begin;
  const Graph separated_graph = separated ? result.graph : Graph();
  const Graph& graph = separated ? separated_graph : original;
  Bindings bindings;
  const SizeArithmetic* sizes = sizes_of(catalog);
  for (const Value& value : match.variables) bindings.tensors.push_back(&graph.type(value));
  for (const TensorType* type : bindings.tensors)
    if (std::any_of(type->shape.begin(), type->shape.end(), [&](std::int64_t n) { return is_zero(n, sizes); }))
      return bad_input(rule.name + " says nothing of tensors without elements");
  bindings.attributes = match.attributes;
  for (const std::optional<AttributeValue>& value : bindings.attributes)
    if (const auto* function = value ? std::get_if<SymbolValue>(&*value) : nullptr;
        function != nullptr && !catalog.is_total_function(function->name))
      return bad_input(rule.name + " holds for functions that are defined for every number; " + function->name +
                       " is not");
  bindings.constants = constants_of(graph, match.variables);
  for (const Condition& condition : rule.conditions) {
    const Expected<bool> holding = holds(condition, bindings, sizes);
    if (!holding || !*holding)
      return bad_input("the condition " + to_string(condition, rule) + " of " + rule.name +
                       (sizes == nullptr ? " does not hold" : " does not follow for all sizes") +
                       (holding ? "" : ": " + holding.error().message));
  }

  NodePlace place;
  place.origin = match.nodes.empty() ? -1 : graph.node(match.nodes[0]).origin;
  place.element = real_type(graph, rule, match);
  std::vector<NodeId> nodes;
  for (const PatternNode& node : rule.target.nodes) {
    TASO_ASSIGN(const Attributes attributes, evaluate_attributes(node, bindings, catalog, sizes));
    TASO_ASSIGN(std::vector<Value> inputs, resolve_inputs(result.graph, node, match.variables, nodes));
    TASO_RETURN_IF_ERROR(check_number(node.op, attributes, place.element, rule, catalog));
    TASO_ASSIGN(const NodeId id, editor.add_op(node.op, attributes, std::move(inputs), place));
    nodes.push_back(id);
  }
  PatternNode outputs;
  outputs.inputs = rule.target.outputs;
  TASO_ASSIGN(std::vector<Value> targets, resolve_inputs(result.graph, outputs, match.variables, nodes));

  if (sizes != nullptr) TASO_RETURN_IF_ERROR(check_empty(graph, rule, match, result.graph, nodes, targets, *sizes));

  std::vector<std::pair<Value, Value>> replacements;
  std::vector<NodeId> touched = nodes;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const PatternValue& output = rule.source.outputs[i];
    const NodeId id = match.nodes[output.index];
    const Value from = {id, output.port};
    Value to = targets[i];
    if (const std::int32_t begin = match.operand_begin[output.index]; begin >= 0) {
      // The target stands for some adjacent operands of a longer concatenation.
      const Node& whole = graph.node(id);
      const auto first = whole.inputs.begin() + begin;
      const auto last = first + static_cast<std::ptrdiff_t>(rule.source.nodes[output.index].inputs.size());
      std::vector<Value> operands(whole.inputs.begin(), first);
      operands.push_back(to);
      operands.insert(operands.end(), last, whole.inputs.end());
      TASO_ASSIGN(const NodeId longer, editor.add_op(whole.op, whole.attributes, std::move(operands), {whole.origin}));
      touched.push_back(longer);
      to = {longer, 0};
    }
    if (graph.node(id).outputs.size() <= output.port)
      return bad_input("the matched " + graph.node(id).op + " has no output " + std::to_string(output.port));
    if (graph.type(from) != result.graph.type(to))
      return bad_input(rule.name + " would change the type of an output from " + to_string(graph.type(from), sizes) +
                       " to " + to_string(result.graph.type(to), sizes));
    if (from != to) replacements.emplace_back(from, to);
  }
  if (replacements.empty()) return bad_input(rule.name + " changes nothing here");
  const bool sublist =
      std::any_of(match.operand_begin.begin(), match.operand_begin.end(), [](int b) { return b >= 0; });
  if (may_close_a_cycle(rule) || (sublist && replacements.size() > 1)) {
    // What the target reads must not be what it replaces; has_cycle_above finds what depends on it by a detour.
    for (const PatternNode& node : rule.target.nodes)
      for (const PatternValue& input : node.inputs)
        for (const auto& [from, to] : replacements)
          if (input.is_variable && match.variables[input.index] == from)
            return bad_input(rule.name + " would close a cycle");
    editor.replace(replacements, nodes);
    std::vector<NodeId> roots = touched;
    for (const auto& [from, to] : replacements) roots.push_back(to.node);
    if (editor.has_cycle_above(roots)) return bad_input(rule.name + " would close a cycle");
  } else {
    editor.replace(replacements, nodes);
  }
  for (const NodeId id : touched) {
    editor.touch(id);
    editor.suspect(id);
  }
  for (const NodeId id : match.nodes) editor.suspect(id);
  editor.normalize();

  const NodeId bound = original.id_bound();
  for (NodeId id = bound; id < result.graph.id_bound(); ++id)
    if (result.graph.contains(id)) result.added.push_back(id);
  result.changed = editor.changed();
  result.removed = editor.removed();
  result.replaced = editor.replaced();
  for (auto* list : {&result.changed, &result.removed}) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  std::erase_if(result.changed, [&](NodeId id) { return !result.graph.contains(id); });
  return result;
}

Expected<Graph> apply(const Graph& graph, const Substitution& rule, const Match& match,
                      const OperatorCatalog& catalog) {
  TASO_ASSIGN(RewriteResult result, apply_with_changes(graph, rule, match, catalog));
  return std::move(result.graph);
}

void normalize(Graph& graph, const OperatorCatalog& catalog) {
  graph.remove_dead();
  GraphEditor editor(graph, catalog);
  for (const NodeId id : graph.topological_order()) editor.touch(id);
  editor.normalize();
}

}  // namespace taso
