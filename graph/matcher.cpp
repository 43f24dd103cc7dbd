#include "graph/matcher.h"

#include <fmt/format.h>

#include "graph/size_arithmetic.h"
#include "graph/uniform.h"

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;

/// Whether a node makes reals of weights that are kept in integers of few bits (Node::weight_only), or moves or
/// converts these, up to `more` nodes further. No rule is about it: runtimes know an operator on such weights by the
/// nodes that it reads them of.
bool is_unpacked(const Graph& graph, NodeId id, int more = 3) {
  const Node& node = graph.node(id);
  return node.kind == NodeKind::op && !node.weight_only && !node.inputs.empty() &&
         std::all_of(node.inputs.begin(), node.inputs.end(), [&](Value input) {
           return graph.node(input.node).weight_only || (more > 0 && is_unpacked(graph, input.node, more - 1));
         });
}

// Whether matching an expression with a value binds or compares all of it.
bool binds_alone(const AttributeExpression& value) {
  return value.kind == Kind::literal || value.kind == Kind::variable ||
         (value.kind == Kind::list &&
          std::all_of(value.operands.begin(), value.operands.end(),
                      [](const AttributeExpression& e) { return e.kind == Kind::variable; }));
}

// Whether the source nodes hang together by edges and shared variables. (Nodes that read outputs of a third one hang
// together by that one.)
bool is_connected(const Pattern& source) {
  std::vector<std::vector<PatternValue>> read(source.nodes.size());  // A node's own value, and what it reads.
  for (std::uint32_t p = 0; p < source.nodes.size(); ++p) {
    read[p].push_back({false, p, 0});
    for (const PatternValue& input : source.nodes[p].inputs) read[p].push_back({input.is_variable, input.index, 0});
  }
  std::vector<std::uint32_t> reached = {0};
  std::vector<char> seen(source.nodes.size(), 0);
  seen[0] = 1;
  for (std::size_t i = 0; i < reached.size(); ++i)
    for (std::uint32_t p = 0; p < source.nodes.size(); ++p) {
      const std::vector<PatternValue>& mine = read[reached[i]];
      if (seen[p] != 0 || std::find_first_of(read[p].begin(), read[p].end(), mine.begin(), mine.end()) == read[p].end())
        continue;
      seen[p] = 1;
      reached.push_back(p);
    }
  return reached.size() == source.nodes.size();
}

AttributeValue sizes_in_window(const Node& node, const PieceAttributes& names, std::int32_t begin, std::size_t pieces) {
  const auto& sizes = node.attributes.integers(names.sizes);
  return std::vector<std::int64_t>(sizes.begin() + begin, sizes.begin() + begin + static_cast<std::ptrdiff_t>(pieces));
}

TensorType type_of_window(const Graph& graph, const Node& node, const PieceAttributes& names, std::int32_t begin,
                          std::size_t pieces) {
  TensorType type = graph.type(node.inputs[0]);
  const AttributeValue sizes = sizes_in_window(node, names, begin, pieces);
  std::int64_t total = 0;
  for (const std::int64_t size : std::get<std::vector<std::int64_t>>(sizes)) total += size;
  type.shape.at(static_cast<std::size_t>(static_cast<std::int64_t>(type.shape.size()) +
                                         node.attributes.integer(names.axis))) = total;
  return type;
}

// Whether a pattern's split may be a part of a longer one, and how many outputs it then has.
void find_pieces(const Pattern& source, std::uint32_t p, const OperatorCatalog& catalog,
                 RuleIndex::Plan::PlanNode& plan) {
  const PatternNode& node = source.nodes[p];
  const PieceAttributes* const names = catalog.pieces(node.op);
  if (names == nullptr || names->axis.empty() || node.inputs.size() != 1 || !node.inputs[0].is_variable) return;
  std::size_t uses = 0, ports = 0;
  auto look = [&](const PatternValue& value) {
    if (value == node.inputs[0]) ++uses;
    if (!value.is_variable && value.index == p) ports = std::max<std::size_t>(ports, value.port + 1);
  };
  for (const PatternNode& other : source.nodes) std::for_each(other.inputs.begin(), other.inputs.end(), look);
  std::for_each(source.outputs.begin(), source.outputs.end(), look);
  std::size_t pieces = 0;
  for (const auto& [name, value] : node.attributes) {
    if (name != names->sizes) continue;
    plan.any_length = value.kind == Kind::variable;
    if (plan.any_length) pieces = ports;
    if (value.kind == Kind::list) pieces = value.operands.size();
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value.literal);
        value.kind == Kind::literal && list != nullptr)
      pieces = list->size();
  }
  if (uses != 1 || pieces < 2) return;
  plan.pieces = pieces;
  plan.piece_attributes = *names;
}

// Of matches that exchange symmetric roles the first in topological order counts: it is depth first from the outputs,
// so that what is merged comes in the order in which a concatenation reads it.
bool exchanged_is_less(const Match& match, const RuleSymmetry& symmetry, const std::vector<std::uint32_t>& position) {
  for (std::size_t i = 0; i < match.nodes.size(); ++i) {
    const NodeId other = match.nodes[symmetry.nodes[i]];
    if (other != match.nodes[i]) return position[other] < position[match.nodes[i]];
  }
  for (std::size_t i = 0; i < match.operand_begin.size(); ++i) {
    const std::int32_t other = match.operand_begin[symmetry.nodes[i]];
    if (other != match.operand_begin[i]) return other < match.operand_begin[i];
  }
  for (std::size_t i = 0; i < match.port_begin.size(); ++i) {
    const std::int32_t other = match.port_begin[symmetry.nodes[i]];
    if (other != match.port_begin[i]) return other < match.port_begin[i];
  }
  for (std::size_t i = 0; i < match.variables.size(); ++i) {
    const Value other = match.variables[symmetry.tensors[i]];
    if (other != match.variables[i]) return other < match.variables[i];
  }
  for (std::size_t i = 0; i < match.attributes.size(); ++i) {
    const auto& other = match.attributes[symmetry.attributes[i]];
    if (other != match.attributes[i]) return other < match.attributes[i];
  }
  return false;
}

}  // namespace

bool is_first_of_symmetric(const Match& match, const RuleIndex::Plan& plan, const GraphView& view) {
  return std::none_of(plan.symmetries.begin(), plan.symmetries.end(),
                      [&](const RuleSymmetry& symmetry) { return exchanged_is_less(match, symmetry, view.position); });
}

bool precedes(const Match& a, const Match& b) {
  if (a.nodes != b.nodes) return a.nodes < b.nodes;
  if (a.operand_begin != b.operand_begin) return a.operand_begin < b.operand_begin;
  if (a.port_begin != b.port_begin) return a.port_begin < b.port_begin;
  if (a.variables != b.variables) return a.variables < b.variables;
  return a.attributes < b.attributes;
}

RuleIndex::Plan::Plan(const Substitution& rule, const OperatorCatalog& catalog, OperatorNumbers& numbers) {
  const Pattern& source = rule.source;
  matchable = !source.nodes.empty() && !source.outputs.empty() && given_variables(rule).empty();
  for (const PatternValue& output : source.outputs) matchable = matchable && !output.is_variable;
  for (std::uint32_t p = 0; p < source.nodes.size(); ++p) {
    const PatternNode& node = source.nodes[p];
    PlanNode entry;
    entry.op = numbers.emplace(node.op, static_cast<std::uint32_t>(numbers.size())).first->second;
    const OperatorSignature* const signature = catalog.signature(node.op);
    entry.fills = signature != nullptr && !signature->fill_value.empty();
    if (entry.fills) {
      // Constants stand for it: what a graph has of its operators tells nothing.
      for (std::uint32_t a = 0; a < node.attributes.size(); ++a)
        if (!binds_alone(node.attributes[a].second)) computed.emplace_back(p, a);
      nodes.push_back(entry);
      for (const PatternValue& output : source.outputs)
        matchable = matchable && (output.is_variable || output.index != p);
      continue;
    }
    needed.add_operator(
        entry.op, 1 + static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(),
                                                             [&](const auto& other) { return other.op == entry.op; })));
    for (const PatternValue& input : node.inputs)
      if (!input.is_variable && !nodes[input.index].fills) needed.add_edge(nodes[input.index].op, entry.op);
    operators.push_back(entry.op);
    find_pieces(source, p, catalog, entry);
    entry.commutative = node.inputs.size() == 2 && catalog.is_commutative(node.op);
    entry.sublist =
        catalog.is_associative(node.op) && node.inputs.size() >= 2 &&
        std::find(source.outputs.begin(), source.outputs.end(), PatternValue{false, p, 0}) != source.outputs.end();
    for (const PatternNode& other : source.nodes)
      for (const PatternValue& input : other.inputs)
        if (!input.is_variable && input.index == p) entry.sublist = false;
    nodes.push_back(entry);
    for (std::uint32_t a = 0; a < node.attributes.size(); ++a) {
      if (!binds_alone(node.attributes[a].second)) computed.emplace_back(p, a);
    }
  }
  if (matchable) {
    root = source.outputs[0].index;
    connected = is_connected(source);
    std::sort(operators.begin(), operators.end());
    operators.erase(std::unique(operators.begin(), operators.end()), operators.end());
    symmetries = find_symmetries(rule, catalog);
  }
}

GraphView::GraphView(const Graph& g, const OperatorNumbers& numbers) : graph(g), consumers(g) {
  const NodeId bound = g.id_bound();
  op.assign(bound, no_operator);
  position.resize(bound);
  std::uint32_t count = 0;
  for (const NodeId id : g.topological_order()) position[id] = count++;
  nodes_of.resize(numbers.size());
  for (NodeId id = 0; id < bound; ++id) {
    if (!g.contains(id) || g.node(id).kind != NodeKind::op) continue;
    const auto number = numbers.find(g.node(id).op);
    if (number == numbers.end()) continue;
    op[id] = number->second;
    nodes_of[number->second].push_back(id);
    traits.add_operator(number->second, nodes_of[number->second].size());
  }
  for (NodeId id = 0; id < bound; ++id)
    if (op[id] != no_operator)
      for (const Value& input : g.node(id).inputs)
        if (op[input.node] != no_operator) traits.add_edge(op[input.node], op[id]);
}

GraphMatcher::GraphMatcher(const GraphView& view, const Substitution& rule, const RuleIndex::Plan& plan,
                           const OperatorCatalog& catalog, bool keep_symmetric, FurthestAttempt* furthest)
    : view_(view), rule_(rule), plan_(plan), catalog_(catalog), keep_symmetric_(keep_symmetric), furthest_(furthest) {
  state_.variables.resize(rule.tensor_variables.size());
  bound_.assign(rule.tensor_variables.size(), 0);
  state_.attributes.resize(rule.attribute_variables.size());
  state_.nodes.assign(rule.source.nodes.size(), no_node);
  state_.operand_begin.assign(rule.source.nodes.size(), -1);
  state_.port_begin.assign(rule.source.nodes.size(), -1);
}

void GraphMatcher::run() {
  for (const NodeId id : view_.nodes_of[plan_.nodes[plan_.root].op]) {
    if (full()) return;
    run_from(id);
  }
}

void GraphMatcher::run_at(std::uint32_t p, NodeId id, const std::vector<char>& same) {
  if (full()) return;
  first_new_ = p;
  same_ = &same;
  try_node(p, id);
}

std::vector<FoundMatch> GraphMatcher::take() {
  std::sort(found_.begin(), found_.end(),
            [](const FoundMatch& a, const FoundMatch& b) { return precedes(a.match, b.match); });
  return std::move(found_);
}

void GraphMatcher::try_node(std::uint32_t p, NodeId id, std::optional<std::int64_t> shift) {
  const RuleIndex::Plan::PlanNode& plan = plan_.nodes[p];
  const auto other_output = [&] { return fmt::format("another output of {} is expected", name(id)); };
  if (plan.fills) {
    if (shift.value_or(0) == 0) try_fill(p, id);
    return;
  }
  if (view_.op[id] != plan.op) return;
  const std::size_t outputs = view_.graph.node(id).outputs.size();
  if (plan.pieces == 0 || plan.pieces >= outputs) {
    if (shift.value_or(0) == 0)
      try_ports(p, id);
    else
      ends(other_output);
    return;
  }
  if (plan.any_length && shift.value_or(0) == 0) try_ports(p, id);
  for (std::size_t begin = 0; begin + plan.pieces <= outputs; ++begin) {
    if (shift && *shift != static_cast<std::int64_t>(begin)) continue;
    state_.port_begin[p] = static_cast<std::int32_t>(begin);
    try_ports(p, id);
  }
  state_.port_begin[p] = -1;
}

void GraphMatcher::try_fill(std::uint32_t p, NodeId id) {
  const std::optional<Attributes> attributes = as_fill(view_.graph, {id, 0}, rule_.source.nodes[p].op, catalog_);
  if (!attributes) {
    ends([&] { return fmt::format("expected a constant whose elements are one number, found {}", name(id)); });
    return;
  }
  const Mark mark = {trail_variables_.size(), trail_attributes_.size(), agenda_.size()};
  state_.nodes[p] = id;
  bool fits = true;
  const auto& expected = rule_.source.nodes[p].attributes;
  const ElementType type = view_.graph.type({id, 0}).element;
  const auto same = [type](const AttributeValue& said, const AttributeValue& held) {
    return same_rounded(said, held, type);
  };
  for (std::size_t i = 0; fits && i < expected.size(); ++i) {
    const AttributeValue& value = attributes->entries()[i].second;
    fits = bind_attribute(expected[i].second, value, same) || ends([&] {
             return fmt::format("{}: {} must be {}, is {}", name(id), expected[i].first,
                                asked(expected[i].second, value), to_string(value));
           });
  }
  if (fits) advance();
  state_.nodes[p] = no_node;
  undo(mark);
}

void GraphMatcher::try_ports(std::uint32_t p, NodeId id) {
  const RuleIndex::Plan::PlanNode& plan = plan_.nodes[p];
  if (std::find(state_.nodes.begin(), state_.nodes.end(), id) != state_.nodes.end()) {
    ends([&] { return fmt::format("{} would stand for two operators of the rule", name(id)); });
    return;
  }
  if (p < first_new_ && (*same_)[id] == 0) return;
  const PatternNode& pattern = rule_.source.nodes[p];
  const Node& node = view_.graph.node(id);
  const std::size_t arity = pattern.inputs.size();
  if (node.inputs.size() < arity || (node.inputs.size() > arity && !plan.sublist)) {
    ends([&] {
      return fmt::format("expected {} with {} operands, found {} with {}", pattern.op, arity, name(id),
                         node.inputs.size());
    });
    return;
  }
  for (const TensorType& type : node.outputs)
    if (!type.known) {
      ends([&] { return fmt::format("the shape of {} is not known", name(id)); });
      return;
    }
  const Mark mark = {trail_variables_.size(), trail_attributes_.size(), agenda_.size()};
  state_.nodes[p] = id;
  if (bind_attributes(p, id)) {
    if (node.inputs.size() > arity) {
      for (std::size_t begin = 0; begin + arity <= node.inputs.size(); ++begin) {
        state_.operand_begin[p] = static_cast<std::int32_t>(begin);
        try_operands(p, id, begin, false);
      }
      state_.operand_begin[p] = -1;
    } else {
      try_operands(p, id, 0, false);
      if (plan.commutative && node.inputs[0] != node.inputs[1]) try_operands(p, id, 0, true);
    }
  }
  state_.nodes[p] = no_node;
  undo(mark);
}

void GraphMatcher::try_operands(std::uint32_t p, NodeId id, std::size_t begin, bool swapped) {
  const Mark mark = {trail_variables_.size(), trail_attributes_.size(), agenda_.size()};
  const PatternNode& pattern = rule_.source.nodes[p];
  const Node& node = view_.graph.node(id);
  bool all_fit = true;
  for (std::size_t i = 0; all_fit && i < pattern.inputs.size(); ++i)
    all_fit = fits(pattern.inputs[i], node.inputs[begin + (swapped ? 1 - i : i)], id);
  if (all_fit) advance();
  undo(mark);
}

bool GraphMatcher::fits(const PatternValue& expected, Value value, NodeId reader) {
  if (expected.is_variable) {
    if (bind_variable(expected.index, value)) return true;
    return ends([&] {
      if (bound_[expected.index] == 0)
        return is_unpacked(view_.graph, value.node)
                   ? fmt::format("{} is weights of few bits, which stay as they are read", name(value))
                   : fmt::format("the shape of {} is not known", name(value));
      return fmt::format("{} must read {}, which is {} of the rule, where it reads {}", name(reader),
                         name(state_.variables[expected.index]), rule_.tensor_variables[expected.index], name(value));
    });
  }
  const std::string& op = rule_.source.nodes[expected.index].op;
  const RuleIndex::Plan::PlanNode& producer = plan_.nodes[expected.index];
  if (state_.nodes[expected.index] != no_node) {
    if (matched(expected) == value ||
        (producer.fills && same_fill(view_.graph, matched(expected), value, op, catalog_)))
      return true;
    return ends([&] {
      return fmt::format("{} must read {} where it reads {}", name(reader), name(matched(expected)), name(value));
    });
  }
  if (producer.fills ? !view_.graph.node(value.node).weight_only : view_.op[value.node] != producer.op)
    return ends([&] {
      return fmt::format("expected {}, found {}, which {} reads", producer.fills ? "a constant" : op, name(value),
                         name(reader));
    });
  agenda_.push_back(
      {expected.index, value.node, static_cast<std::int64_t>(value.port) - static_cast<std::int64_t>(expected.port)});
  return true;
}

void GraphMatcher::advance() {
  if (full()) return;
  if (!agenda_.empty()) {
    advance_to_due();
    return;
  }
  std::uint32_t best = 0;
  Value through;
  std::size_t fewest = static_cast<std::size_t>(-1);
  bool missing = false;
  std::uint32_t last_missing = 0;
  for (std::uint32_t p = 0; p < state_.nodes.size(); ++p) {
    if (state_.nodes[p] != no_node) continue;
    missing = true;
    last_missing = p;
    for (const PatternValue& input : rule_.source.nodes[p].inputs) {
      Value value;
      if (input.is_variable ? bound_[input.index] == 0 : state_.nodes[input.index] == no_node) continue;
      value = input.is_variable ? state_.variables[input.index] : matched(input);
      const std::size_t count = view_.uses_of(value.node).size();
      if (count < fewest) {
        fewest = count;
        best = p;
        through = value;
      }
    }
  }
  if (!missing) {
    report();
  } else if (fewest != static_cast<std::size_t>(-1)) {
    advance_to_consumers(best, through);
  } else {
    // The last node in topological order is an output: its producers follow by edges.
    const std::vector<NodeId> near = neighbours(plan_.nodes[last_missing].op);
    if (near.empty())
      ends([&] {
        return fmt::format("no {} shares what it reads, or what reads it, with these",
                           rule_.source.nodes[last_missing].op);
      });
    for (const NodeId id : near) {
      try_node(last_missing, id);
      if (full()) return;
    }
  }
}

void GraphMatcher::advance_to_due() {
  const Due due = agenda_.back();
  agenda_.pop_back();
  if (state_.nodes[due.pattern] == no_node)
    try_node(due.pattern, due.node, due.shift);
  else if (state_.nodes[due.pattern] == due.node && std::max(state_.port_begin[due.pattern], 0) == due.shift)
    advance();
  else
    ends([&] {
      return fmt::format("one {} is expected where {} and {} are read", rule_.source.nodes[due.pattern].op,
                         name(state_.nodes[due.pattern]), name(due.node));
    });
  agenda_.push_back(due);
}

void GraphMatcher::advance_to_consumers(std::uint32_t p, Value value) {
  NodeId previous = no_node;
  bool any = false;
  for (const auto& [consumer, position] : view_.uses_of(value.node)) {
    if (consumer == previous || view_.graph.node(consumer).inputs[position] != value) continue;
    previous = consumer;  // A node that reads the value twice is tried once.
    any = any || view_.op[consumer] == plan_.nodes[p].op;
    try_node(p, consumer);
    if (full()) return;
  }
  if (any) return;
  ends([&] {
    return fmt::format("expected {} that reads {}, found {}", rule_.source.nodes[p].op, name(value),
                       previous == no_node ? "nothing that reads it" : name(previous));
  });
}

std::vector<NodeId> GraphMatcher::neighbours(std::uint32_t op) const {
  std::vector<NodeId> result;
  auto consider = [&](NodeId id) {
    if (view_.op[id] == op) result.push_back(id);
  };
  for (const NodeId id : state_.nodes) {
    if (id == no_node) continue;
    for (const Value& input : view_.graph.node(id).inputs)
      for (const auto& [sibling, position] : view_.uses_of(input.node)) consider(sibling);
    for (const auto& [consumer, position] : view_.uses_of(id))
      for (const Value& input : view_.graph.node(consumer).inputs) consider(input.node);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

bool GraphMatcher::bind_variable(std::uint32_t variable, Value value) {
  if (bound_[variable] != 0) return state_.variables[variable] == value;
  if (!view_.graph.type(value).known || is_unpacked(view_.graph, value.node)) return false;
  bound_[variable] = 1;
  state_.variables[variable] = value;
  trail_variables_.push_back(variable);
  return true;
}

bool GraphMatcher::bind_attribute(std::uint32_t variable, const AttributeValue& value) {
  auto& slot = state_.attributes[variable];
  if (slot) return *slot == value;
  slot = value;
  trail_attributes_.push_back(variable);
  return true;
}

bool GraphMatcher::bind_attributes(std::uint32_t p, NodeId id) {
  const Node& node = view_.graph.node(id);
  const PatternNode& pattern = rule_.source.nodes[p];
  const std::int32_t window = state_.port_begin[p];
  const auto& entries = node.attributes.entries();
  if (entries.size() != pattern.attributes.size()) return false;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const AttributeExpression& expected = pattern.attributes[i].second;
    if (entries[i].first != pattern.attributes[i].first) return false;
    const RuleIndex::Plan::PlanNode& plan = plan_.nodes[p];
    const bool part = window >= 0 && entries[i].first == plan.piece_attributes.sizes;
    const AttributeValue& value =
        part ? (sizes_ = sizes_in_window(node, plan.piece_attributes, window, plan.pieces)) : entries[i].second;
    if (!bind_attribute(expected, value, std::equal_to<>()))
      return ends([&] {
        return fmt::format("{}: {} must be {}, is {}", name(id), entries[i].first, asked(expected, value),
                           to_string(value));
      });
  }
  return true;
}

template <class Same>
bool GraphMatcher::bind_attribute(const AttributeExpression& expected, const AttributeValue& value, const Same& same) {
  if (expected.kind == Kind::literal) return same(expected.literal, value);
  if (expected.kind == Kind::variable) return bind_attribute(expected.index, value);
  if (expected.kind != Kind::list) return true;
  const auto* list = std::get_if<std::vector<std::int64_t>>(&value);
  if (list == nullptr || list->size() != expected.operands.size()) return false;
  for (std::size_t k = 0; k < list->size(); ++k)
    if (expected.operands[k].kind == Kind::variable && !bind_attribute(expected.operands[k].index, (*list)[k]))
      return false;
  return true;
}

std::string GraphMatcher::asked(const AttributeExpression& expected, const AttributeValue& value) const {
  if (expected.kind == Kind::literal) return to_string(expected.literal);
  if (expected.kind == Kind::variable)
    return fmt::format("{} ({} of the rule)", to_string(*state_.attributes[expected.index]),
                       rule_.attribute_variables[expected.index]);
  const auto* list = std::get_if<std::vector<std::int64_t>>(&value);
  const std::vector<AttributeExpression>& operands = expected.operands;
  if (list == nullptr || list->size() != operands.size())
    return fmt::format("a list of {} {}", operands.size(), operands.size() == 1 ? "element" : "elements");
  std::string text;
  for (const AttributeExpression& operand : operands) {
    text += text.empty() ? "" : ", ";
    if (operand.kind != Kind::variable)
      text += "..";
    else if (const auto& slot = state_.attributes[operand.index]; slot)
      text += to_string(*slot);
    else
      text += rule_.attribute_variables[operand.index];
  }
  return "[" + text + "]";
}

void GraphMatcher::undo(const Mark& mark) {
  for (; trail_variables_.size() > mark.variables; trail_variables_.pop_back()) bound_[trail_variables_.back()] = 0;
  for (; trail_attributes_.size() > mark.attributes; trail_attributes_.pop_back())
    state_.attributes[trail_attributes_.back()].reset();
  agenda_.resize(mark.agenda);
}

void GraphMatcher::report() {
  if (!may_be_matched()) return;
  const bool reported = is_first_of_symmetric(state_, plan_, view_);
  if (!reported && !keep_symmetric_) return;
  for (std::uint32_t a = 0; a < state_.attributes.size(); ++a) settle_sign_of_zero(a);
  if (!plan_.computed.empty() || !rule_.conditions.empty()) {
    const Bound bound = bind_all();
    if (!computed_attributes_fit(bound.bindings) || !conditions_hold(bound.bindings)) return;
  }
  std::size_t& count = reported ? reported_ : others_;
  if (count >= RuleIndex::max_matches) return;
  ++count;
  found_.push_back({state_, reported});
}

bool GraphMatcher::may_be_matched() const {
  bool costs = false;
  for (const NodeId id : state_.nodes) costs = costs || !view_.graph.node(id).weight_only;
  if (!costs) return ends([] { return "all of it is computed once, when the model is written"; });
  // Of tensors without elements a proof says nothing.
  for (const Value& value : state_.variables)
    if (view_.graph.type(value).elements() == 0)
      return ends([&] { return fmt::format("{} has no elements", name(value)); });
  for (const auto& value : state_.attributes)
    if (const auto* function = value ? std::get_if<SymbolValue>(&*value) : nullptr;
        function != nullptr && !catalog_.is_total_function(function->name))
      return ends([&] { return fmt::format("{} is not defined for every number", function->name); });
  return true;
}

GraphMatcher::Bound GraphMatcher::bind_all() const {
  Bound bound;
  Bindings& bindings = bound.bindings;
  for (const Value& value : state_.variables) bindings.tensors.push_back(&view_.graph.type(value));
  bindings.attributes = state_.attributes;
  bindings.constants = constants_of(view_.graph, state_.variables);
  bound.together.reserve(state_.nodes.size());
  for (std::uint32_t p = 0; p < state_.nodes.size(); ++p) {
    if (state_.port_begin[p] < 0) continue;
    const Node& node = view_.graph.node(state_.nodes[p]);
    bound.together.push_back(type_of_window(view_.graph, node, plan_.nodes[p].piece_attributes, state_.port_begin[p],
                                            plan_.nodes[p].pieces));
    bindings.tensors[rule_.source.nodes[p].inputs[0].index] = &bound.together.back();
    bindings.constants[rule_.source.nodes[p].inputs[0].index] = nullptr;
  }
  return bound;
}

bool GraphMatcher::computed_attributes_fit(const Bindings& bindings) const {
  for (const auto& [place, number] : plan_.computed) {
    const std::size_t p = place, a = number;  // Lambdas of older compilers capture no structured bindings.
    const auto& [name_of_attribute, expression] = rule_.source.nodes[p].attributes[a];
    const NodeId id = state_.nodes[p];
    const Expected<AttributeValue> value = evaluate(expression, bindings);
    const Node& node = view_.graph.node(id);
    std::optional<Attributes> held;
    AttributeValue window;
    const AttributeValue* actual = nullptr;
    const RuleIndex::Plan::PlanNode& plan = plan_.nodes[p];
    if (plan.fills) {
      held = as_fill(view_.graph, {id, 0}, rule_.source.nodes[p].op, catalog_);
      if (held) actual = &held->entries()[a].second;
    } else if (state_.port_begin[p] >= 0 && name_of_attribute == plan.piece_attributes.sizes) {
      window = sizes_in_window(node, plan.piece_attributes, state_.port_begin[p], plan.pieces);
      actual = &window;
    } else {
      actual = &node.attributes.entries()[a].second;
    }
    const bool fits = value && actual != nullptr &&
                      (plan.fills ? same_rounded(*value, *actual, node.outputs[0].element) : *value == *actual);
    if (!fits)
      return ends([&] {
        return fmt::format("{}: {} must be {}{}", name(id), rule_.source.nodes[p].attributes[a].first,
                           value ? to_string(*value) : "what has no value here: " + value.error().message,
                           actual != nullptr ? ", is " + to_string(*actual) : "");
      });
  }
  return true;
}

bool GraphMatcher::conditions_hold(const Bindings& bindings) const {
  for (const Condition& condition : rule_.conditions) {
    const Expected<bool> holding = holds(condition, bindings);
    if (holding && *holding) continue;
    return ends([&] {
      const std::string text = fmt::format("the condition {} does not hold", to_string(condition, rule_));
      if (!holding) return text + ": " + holding.error().message;
      Condition instance = condition;
      for (AttributeExpression* side : {&instance.left, &instance.right}) {
        const Expected<AttributeValue> value = evaluate(*side, bindings);
        if (condition.of_elements() || !value) return text;
        *side = AttributeExpression();
        side->literal = *value;
      }
      return text + ": " + to_string(instance, rule_);
    });
  }
  return true;
}

void GraphMatcher::settle_sign_of_zero(std::uint32_t variable) {
  auto& slot = state_.attributes[variable];
  if (!slot || !std::holds_alternative<double>(*slot) || std::get<double>(*slot) != 0) return;
  for (std::size_t p = 0; p < state_.nodes.size(); ++p) {
    if (plan_.nodes[p].fills) continue;
    const auto& attributes = rule_.source.nodes[p].attributes;
    for (std::size_t i = 0; i < attributes.size(); ++i)
      if (attributes[i].second.kind == Kind::variable && attributes[i].second.index == variable) {
        slot = view_.graph.node(state_.nodes[p]).attributes.entries()[i].second;
        return;
      }
  }
}

}  // namespace taso
