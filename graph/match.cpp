#include <algorithm>
#include <atomic>
#include <iterator>

#include "graph/rewrite.h"
#include "graph/symmetry.h"
#include "graph/uniform.h"

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;

constexpr std::uint32_t no_operator = static_cast<std::uint32_t>(-1);
constexpr NodeId no_node = static_cast<NodeId>(-1);

}  // namespace

namespace {

// What a rule's source needs of a graph and a graph has, as bits: operators, how many of them, operators that read
// others. Different things may share a bit.
struct Traits {
  std::uint64_t counts = 0, edges = 0;

  static constexpr std::uint32_t most = 4;  // Operators are counted up to this.
  void add_operator(std::uint32_t op, std::size_t count) {
    counts |= std::uint64_t{1} << ((op * most + std::min<std::size_t>(count, most) - 1) % 64);
  }
  void add_edge(std::uint32_t producer, std::uint32_t consumer) {
    edges |= std::uint64_t{1} << ((producer * 11 + consumer) % 64);
  }
  [[nodiscard]] bool covers(const Traits& other) const {
    return (other.counts & ~counts) == 0 && (other.edges & ~edges) == 0;
  }
};

}  // namespace

// A rule prepared for matching.
struct RuleIndex::Plan {
  struct PlanNode {
    std::uint32_t op = no_operator;  // Number of the operator in the index.
    bool commutative = false;
    bool sublist = false;  // An associative output: may match adjacent operands of a longer one.
    // Outputs of a split of a variable that nothing else reads, which may match adjacent outputs of a longer one; or 0.
    std::size_t pieces = 0;
    PieceAttributes piece_attributes;  // Where `pieces` is not 0.
    bool any_length = false;           // Its sizes are a variable: the whole longer split matches too.
    bool fills = false;                // A filling operator: constants whose elements are one number match, too.
  };
  std::vector<PlanNode> nodes;
  std::uint32_t root = 0;  // Source node at which matches are anchored.
  bool matchable = false;
  // Source nodes hang together by edges and shared variables: from any of them matching reaches all.
  bool connected = false;
  std::vector<std::uint32_t> operators;  // Of the source, ascending.
  Traits needed;                         // Of the source.
  // Attributes of the source that are computed: compared when everything is bound.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> computed;
  std::vector<RuleSymmetry> symmetries;
};

namespace {

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

// The parts of a graph that matching needs: nodes by operator, and consumers in one array.
struct GraphView {
  const Graph& graph;
  std::vector<std::uint32_t> op;  // Per node id; no_operator if no rule speaks of it.
  Traits traits;
  std::vector<std::uint32_t> position;        // Per node id, in topological order.
  std::vector<std::vector<NodeId>> nodes_of;  // Per operator number.
  Consumers consumers;

  GraphView(const Graph& g, const std::unordered_map<std::string, std::uint32_t>& numbers) : graph(g), consumers(g) {
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

  [[nodiscard]] std::span<const std::pair<NodeId, std::uint32_t>> uses_of(NodeId id) const { return consumers.of(id); }
};

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

bool is_first_of_symmetric(const Match& match, const RuleIndex::Plan& plan, const GraphView& view) {
  return std::none_of(plan.symmetries.begin(), plan.symmetries.end(),
                      [&](const RuleSymmetry& symmetry) { return exchanged_is_less(match, symmetry, view.position); });
}

// A match, and whether it is reported: of matches that exchange symmetric roles only the first is.
struct Candidate {
  Match match;
  bool reported = true;
};

// Backtracking search for one rule. Bindings are kept in a trail and undone on return.
class Matcher {
 public:
  // With `keep_symmetric`, those that are not reported are candidates too.
  Matcher(const GraphView& view, const Substitution& rule, const RuleIndex::Plan& plan, const OperatorCatalog& catalog,
          bool keep_symmetric)
      : view_(view), rule_(rule), plan_(plan), catalog_(catalog), keep_symmetric_(keep_symmetric) {
    state_.variables.resize(rule.tensor_variables.size());
    bound_.assign(rule.tensor_variables.size(), 0);
    state_.attributes.resize(rule.attribute_variables.size());
    state_.nodes.assign(rule.source.nodes.size(), no_node);
    state_.operand_begin.assign(rule.source.nodes.size(), -1);
    state_.port_begin.assign(rule.source.nodes.size(), -1);
  }

  void run() {
    for (const NodeId id : view_.nodes_of[plan_.nodes[plan_.root].op]) {
      if (full()) return;
      try_node(plan_.root, id);
    }
  }

  // Of a connected source: the matches where source node `p` stands for node `id` and no source node before it for a
  // node that is not `same`.
  void run_at(std::uint32_t p, NodeId id, const std::vector<char>& same) {
    if (full()) return;
    first_new_ = p;
    same_ = &same;
    try_node(p, id);
  }

  // No more matches are reported.
  [[nodiscard]] bool full() const { return reported_ >= RuleIndex::max_matches; }
  // Nothing was left out but what is never reported.
  [[nodiscard]] bool complete() const { return !full() && others_ < RuleIndex::max_matches; }
  [[nodiscard]] std::size_t reported() const { return reported_; }
  // What was found, in the order of find_all.
  [[nodiscard]] std::vector<Candidate> take();

 private:
  struct Mark {
    std::size_t variables, attributes, agenda;
  };

  struct Due {
    std::uint32_t pattern;
    NodeId node;
    std::int64_t shift;  // Port of the graph node less port of the pattern node.
  };

  [[nodiscard]] Value matched(const PatternValue& value) const {
    const std::int32_t begin = state_.port_begin[value.index];
    return {state_.nodes[value.index], value.port + static_cast<std::uint32_t>(std::max(begin, 0))};
  }

  // Binds pattern node `p` to graph node `id` in all ways and continues with what is left. With `shift`, the ports of
  // the graph node are those of the pattern node plus it.
  void try_node(std::uint32_t p, NodeId id, std::optional<std::int64_t> shift = std::nullopt) {
    const RuleIndex::Plan::PlanNode& plan = plan_.nodes[p];
    if (plan.fills) {
      if (shift.value_or(0) == 0) try_fill(p, id);
      return;
    }
    if (view_.op[id] != plan.op) return;
    const std::size_t outputs = view_.graph.node(id).outputs.size();
    if (plan.pieces == 0 || plan.pieces >= outputs) {
      if (shift.value_or(0) == 0) try_ports(p, id);
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

  // The same for a filling operator, for which any constant of equal elements may stand: one constant for several, too.
  void try_fill(std::uint32_t p, NodeId id) {
    const std::optional<Attributes> attributes = as_fill(view_.graph, {id, 0}, rule_.source.nodes[p].op, catalog_);
    if (!attributes) return;
    const Mark mark = {trail_variables_.size(), trail_attributes_.size(), agenda_.size()};
    state_.nodes[p] = id;
    bool fits = true;
    const auto& expected = rule_.source.nodes[p].attributes;
    for (std::size_t i = 0; fits && i < expected.size(); ++i)
      fits = bind_attribute(expected[i].second, attributes->entries()[i].second, same_rounded);
    if (fits) advance();
    state_.nodes[p] = no_node;
    undo(mark);
  }

  void try_ports(std::uint32_t p, NodeId id) {
    const RuleIndex::Plan::PlanNode& plan = plan_.nodes[p];
    if (std::find(state_.nodes.begin(), state_.nodes.end(), id) != state_.nodes.end()) return;
    if (p < first_new_ && (*same_)[id] == 0) return;
    const PatternNode& pattern = rule_.source.nodes[p];
    const Node& node = view_.graph.node(id);
    const std::size_t arity = pattern.inputs.size();
    if (node.inputs.size() < arity || (node.inputs.size() > arity && !plan.sublist)) return;
    for (const TensorType& type : node.outputs)
      if (!type.known) return;
    const Mark mark = {trail_variables_.size(), trail_attributes_.size(), agenda_.size()};
    state_.nodes[p] = id;
    if (bind_attributes(p, node)) {
      if (node.inputs.size() > arity) {
        for (std::size_t begin = 0; begin + arity <= node.inputs.size(); ++begin) {
          state_.operand_begin[p] = static_cast<std::int32_t>(begin);
          try_operands(pattern, node, begin, false);
        }
        state_.operand_begin[p] = -1;
      } else {
        try_operands(pattern, node, 0, false);
        if (plan.commutative && node.inputs[0] != node.inputs[1]) try_operands(pattern, node, 0, true);
      }
    }
    state_.nodes[p] = no_node;
    undo(mark);
  }

  void try_operands(const PatternNode& pattern, const Node& node, std::size_t begin, bool swapped) {
    const Mark mark = {trail_variables_.size(), trail_attributes_.size(), agenda_.size()};
    bool fits = true;
    for (std::size_t i = 0; fits && i < pattern.inputs.size(); ++i) {
      const PatternValue& expected = pattern.inputs[i];
      const Value value = node.inputs[begin + (swapped ? 1 - i : i)];
      if (expected.is_variable) {
        fits = bind_variable(expected.index, value);
      } else if (state_.nodes[expected.index] != no_node) {
        fits = matched(expected) == value ||
               (plan_.nodes[expected.index].fills &&
                same_fill(view_.graph, matched(expected), value, rule_.source.nodes[expected.index].op, catalog_));
      } else {
        const RuleIndex::Plan::PlanNode& producer = plan_.nodes[expected.index];
        fits = producer.fills ? view_.graph.node(value.node).weight_only : view_.op[value.node] == producer.op;
        if (fits)
          agenda_.push_back({expected.index, value.node,
                             static_cast<std::int64_t>(value.port) - static_cast<std::int64_t>(expected.port)});
      }
    }
    if (fits) advance();
    undo(mark);
  }

  // Continues with a producer that is due, else with a node that reads something bound, else with any node.
  void advance() {
    if (full()) return;
    if (!agenda_.empty()) {
      const Due due = agenda_.back();
      agenda_.pop_back();
      if (state_.nodes[due.pattern] == no_node)
        try_node(due.pattern, due.node, due.shift);
      else if (state_.nodes[due.pattern] == due.node && std::max(state_.port_begin[due.pattern], 0) == due.shift)
        advance();
      agenda_.push_back(due);
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
      NodeId previous = no_node;
      for (const auto& [consumer, position] : view_.uses_of(through.node)) {
        if (consumer == previous || view_.graph.node(consumer).inputs[position] != through) continue;
        previous = consumer;  // A node that reads the value twice is tried once.
        try_node(best, consumer);
        if (full()) return;
      }
    } else {
      // The last node in topological order is an output: its producers follow by edges.
      for (const NodeId id : neighbours(plan_.nodes[last_missing].op)) {
        try_node(last_missing, id);
        if (full()) return;
      }
    }
  }

  // Nodes with operator `op` that read from a node from which a matched node reads, or are read with a matched node.
  [[nodiscard]] std::vector<NodeId> neighbours(std::uint32_t op) const {
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

  bool bind_variable(std::uint32_t variable, Value value) {
    if (bound_[variable] != 0) return state_.variables[variable] == value;
    if (!view_.graph.type(value).known) return false;
    bound_[variable] = 1;
    state_.variables[variable] = value;
    trail_variables_.push_back(variable);
    return true;
  }

  bool bind_attribute(std::uint32_t variable, const AttributeValue& value) {
    auto& slot = state_.attributes[variable];
    if (slot) return *slot == value;
    slot = value;
    trail_attributes_.push_back(variable);
    return true;
  }

  bool bind_attributes(std::uint32_t p, const Node& node) {
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
      if (!bind_attribute(expected, value, std::equal_to<>())) return false;
    }
    return true;
  }

  // Binds what an expression binds by itself; literals are compared.
  template <class Same>
  bool bind_attribute(const AttributeExpression& expected, const AttributeValue& value, const Same& same) {
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

  void undo(const Mark& mark) {
    for (; trail_variables_.size() > mark.variables; trail_variables_.pop_back()) bound_[trail_variables_.back()] = 0;
    for (; trail_attributes_.size() > mark.attributes; trail_attributes_.pop_back())
      state_.attributes[trail_attributes_.back()].reset();
    agenda_.resize(mark.agenda);
  }

  // Everything is bound: side conditions, usefulness, one of each set of symmetric matches.
  void report() {
    bool costs = false;
    for (const NodeId id : state_.nodes) costs = costs || !view_.graph.node(id).weight_only;
    if (!costs) return;
    // Of tensors without elements a proof says nothing.
    for (const Value& value : state_.variables)
      if (view_.graph.type(value).elements() == 0) return;
    for (const auto& value : state_.attributes)
      if (const auto* function = value ? std::get_if<SymbolValue>(&*value) : nullptr;
          function != nullptr && !catalog_.is_total_function(function->name))
        return;
    const bool reported = is_first_of_symmetric(state_, plan_, view_);
    if (!reported && !keep_symmetric_) return;
    for (std::uint32_t a = 0; a < state_.attributes.size(); ++a) settle_sign_of_zero(a);
    if (!plan_.computed.empty() || !rule_.conditions.empty()) {
      Bindings bindings;
      for (const Value& value : state_.variables) bindings.tensors.push_back(&view_.graph.type(value));
      bindings.attributes = state_.attributes;
      bindings.constants = constants_of(view_.graph, state_.variables);
      // What a split of some pieces reads is those pieces together.
      std::vector<TensorType> together;
      together.reserve(state_.nodes.size());
      for (std::uint32_t p = 0; p < state_.nodes.size(); ++p) {
        if (state_.port_begin[p] < 0) continue;
        const Node& node = view_.graph.node(state_.nodes[p]);
        together.push_back(type_of_window(view_.graph, node, plan_.nodes[p].piece_attributes, state_.port_begin[p],
                                          plan_.nodes[p].pieces));
        bindings.tensors[rule_.source.nodes[p].inputs[0].index] = &together.back();
        bindings.constants[rule_.source.nodes[p].inputs[0].index] = nullptr;
      }
      for (const auto& [p, a] : plan_.computed) {
        const Expected<AttributeValue> value = evaluate(rule_.source.nodes[p].attributes[a].second, bindings);
        if (plan_.nodes[p].fills) {
          const auto held = as_fill(view_.graph, {state_.nodes[p], 0}, rule_.source.nodes[p].op, catalog_);
          if (!value || !held || !same_rounded(*value, held->entries()[a].second)) return;
          continue;
        }
        const Node& node = view_.graph.node(state_.nodes[p]);
        const auto& [name, actual] = node.attributes.entries()[a];
        const RuleIndex::Plan::PlanNode& plan = plan_.nodes[p];
        const bool part = state_.port_begin[p] >= 0 && name == plan.piece_attributes.sizes;
        if (!value ||
            *value != (part ? sizes_in_window(node, plan.piece_attributes, state_.port_begin[p], plan.pieces) : actual))
          return;
      }
      for (const Condition& condition : rule_.conditions) {
        const Expected<bool> holding = holds(condition, bindings);
        if (!holding || !*holding) return;
      }
    }
    std::size_t& count = reported ? reported_ : others_;
    if (count >= RuleIndex::max_matches) return;
    ++count;
    found_.push_back({state_, reported});
  }

  // 0.0 and -0.0 are equal: a variable that stands for both is what the first source node says, wherever the search
  // began.
  void settle_sign_of_zero(std::uint32_t variable) {
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

  const GraphView& view_;
  const Substitution& rule_;
  const RuleIndex::Plan& plan_;
  const OperatorCatalog& catalog_;
  const bool keep_symmetric_;
  std::vector<Candidate> found_;
  std::size_t reported_ = 0, others_ = 0;  // Of what was found.
  std::uint32_t first_new_ = 0;
  const std::vector<char>* same_ = nullptr;  // Per node id; of use where first_new_ > 0.
  Match state_;
  std::vector<char> bound_;  // Per tensor variable.
  std::vector<std::uint32_t> trail_variables_, trail_attributes_;
  std::vector<Due> agenda_;  // Pattern nodes that graph nodes must match.
  AttributeValue sizes_;     // Of the pieces being matched.
};

bool order(const Match& a, const Match& b) {
  if (a.nodes != b.nodes) return a.nodes < b.nodes;
  if (a.operand_begin != b.operand_begin) return a.operand_begin < b.operand_begin;
  if (a.port_begin != b.port_begin) return a.port_begin < b.port_begin;
  if (a.variables != b.variables) return a.variables < b.variables;
  return a.attributes < b.attributes;
}

std::vector<Candidate> Matcher::take() {
  std::sort(found_.begin(), found_.end(),
            [](const Candidate& a, const Candidate& b) { return order(a.match, b.match); });
  return std::move(found_);
}

// How a graph differs from another version of it. Nodes are immutable and versions share them, so that a node is the
// same where its address is. Ids are not used again: what a node that is the same reads has the same type, too.
struct Difference {
  std::vector<char> same;                               // Per node id: both graphs have this node.
  std::vector<std::pair<std::uint32_t, NodeId>> added;  // (operator, node) of the view's graph alone, ascending.
  // Per operator: one graph alone has such a node; or a node that one graph alone has reads of such a node.
  std::vector<char> at, near;
  bool large = false;  // More is new than is kept.

  Difference(const Graph& before, const GraphView& view, const std::unordered_map<std::string, std::uint32_t>& numbers)
      : same(std::max(before.id_bound(), view.graph.id_bound()), 0), at(numbers.size(), 0) {
    const Graph& after = view.graph;
    std::size_t kept = 0;
    near = at;
    const auto number_of = [&](const Node& node) {
      const auto number = node.kind == NodeKind::op ? numbers.find(node.op) : numbers.end();
      return number == numbers.end() ? no_operator : number->second;
    };
    const auto note = [&](const Graph& graph, NodeId id) {
      const Node& node = graph.node(id);
      if (const std::uint32_t op = number_of(node); op != no_operator) at[op] = near[op] = 1;
      for (const Value& input : node.inputs)
        if (const std::uint32_t op = number_of(graph.node(input.node)); op != no_operator) near[op] = 1;
    };
    for (NodeId id = 0; id < same.size(); ++id) {
      const bool old = before.contains(id), now = after.contains(id);
      if (old && now && &before.node(id) == &after.node(id)) {
        same[id] = 1;
        kept += view.op[id] != no_operator ? 1 : 0;
        continue;
      }
      if (old) note(before, id);
      if (now) note(after, id);
      if (now && view.op[id] != no_operator) added.emplace_back(view.op[id], id);
    }
    std::sort(added.begin(), added.end());
    large = added.size() > kept;
  }
};

}  // namespace

// Bytes that are counted while this lives.
class MatchList::Counted {
 public:
  explicit Counted(std::shared_ptr<std::atomic<std::size_t>> total, std::size_t bytes)
      : total_(std::move(total)), bytes_(bytes) {
    *total_ += bytes_;
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { *total_ -= bytes_; }
  [[nodiscard]] const std::shared_ptr<std::atomic<std::size_t>>& total() const { return total_; }

 private:
  std::shared_ptr<std::atomic<std::size_t>> total_;
  std::size_t bytes_;
};

// Matches found together.
struct MatchList::Found {
  std::vector<Match> matches;
  Counted counted;
};

// The matches of one rule; those that differ from others by an exchange of symmetric roles alone as well, since which
// of them is reported may change far away.
struct MatchList::OfRule {
  struct Entry {
    std::shared_ptr<const Match> match;
    bool reported = true;
  };
  std::vector<Entry> entries;  // In the order of find_all.
  bool complete = true;        // There are no others.
  Counted counted;
};

struct MatchList::Contents {
  Graph graph;
  Consumers consumers;
  std::size_t rules = 0;                                                       // Of the index, when the list was made.
  std::vector<std::pair<std::uint32_t, std::shared_ptr<const OfRule>>> found;  // By rule, those that have any.
  Counted counted;
};

namespace {

std::size_t bytes_of(const Match& match) {
  std::size_t bytes = sizeof(Match) + match.variables.size() * sizeof(Value) + match.nodes.size() * sizeof(NodeId) +
                      (match.operand_begin.size() + match.port_begin.size()) * sizeof(std::int32_t) +
                      match.attributes.size() * sizeof(match.attributes[0]);
  for (const auto& value : match.attributes)
    if (const auto* list = value ? std::get_if<std::vector<std::int64_t>>(&*value) : nullptr)
      bytes += list->size() * sizeof(std::int64_t);
  return bytes;
}

}  // namespace

MatchList::MatchList()
    : contents_(new Contents{{}, {}, 0, {}, Counted(std::make_shared<std::atomic<std::size_t>>(0), 0)}) {}

const Graph& MatchList::graph() const { return contents_->graph; }

const Consumers& MatchList::consumers() const { return contents_->consumers; }

std::vector<const Match*> MatchList::matches(std::uint32_t rule) const {
  std::vector<const Match*> result;
  const auto& all = contents_->found;
  const auto place = std::lower_bound(all.begin(), all.end(), rule,
                                      [](const auto& found, std::uint32_t number) { return found.first < number; });
  if (place == all.end() || place->first != rule) return result;
  for (const OfRule::Entry& entry : place->second->entries)
    if (entry.reported) result.push_back(entry.match.get());
  return result;
}

std::size_t MatchList::family_bytes() const { return contents_->counted.total()->load(); }

std::vector<std::pair<std::uint32_t, const Match*>> MatchList::matches() const {
  std::vector<std::pair<std::uint32_t, const Match*>> result;
  for (const auto& [rule, found] : contents_->found)
    for (const OfRule::Entry& entry : found->entries)
      if (entry.reported) result.emplace_back(rule, entry.match.get());
  return result;
}

RuleIndex::RuleIndex(std::vector<Substitution> rules, const OperatorCatalog& catalog) : catalog_(&catalog) {
  rules_.reserve(rules.size());
  for (Substitution& rule : rules) add(std::move(rule));
}

void RuleIndex::add(Substitution added) {
  rules_.push_back(std::move(added));
  const Substitution& rule = rules_.back();
  const OperatorCatalog& catalog = *catalog_;
  auto plan = std::make_shared<Plan>();
  const Pattern& source = rule.source;
  plan->matchable = !source.nodes.empty() && !source.outputs.empty();
  for (const PatternValue& output : source.outputs) plan->matchable = plan->matchable && !output.is_variable;
  for (std::uint32_t p = 0; p < source.nodes.size(); ++p) {
    const PatternNode& node = source.nodes[p];
    Plan::PlanNode entry;
    entry.op = numbers_.emplace(node.op, static_cast<std::uint32_t>(numbers_.size())).first->second;
    const OperatorSignature* const signature = catalog.signature(node.op);
    entry.fills = signature != nullptr && !signature->fill_value.empty();
    if (entry.fills) {
      // Constants stand for it: what a graph has of its operators tells nothing.
      for (std::uint32_t a = 0; a < node.attributes.size(); ++a)
        if (!binds_alone(node.attributes[a].second)) plan->computed.emplace_back(p, a);
      plan->nodes.push_back(entry);
      for (const PatternValue& output : source.outputs)
        plan->matchable = plan->matchable && (output.is_variable || output.index != p);
      continue;
    }
    plan->needed.add_operator(
        entry.op, 1 + static_cast<std::size_t>(std::count_if(plan->nodes.begin(), plan->nodes.end(),
                                                             [&](const auto& other) { return other.op == entry.op; })));
    for (const PatternValue& input : node.inputs)
      if (!input.is_variable && !plan->nodes[input.index].fills)
        plan->needed.add_edge(plan->nodes[input.index].op, entry.op);
    plan->operators.push_back(entry.op);
    find_pieces(source, p, catalog, entry);
    entry.commutative = node.inputs.size() == 2 && catalog.is_commutative(node.op);
    entry.sublist =
        catalog.is_associative(node.op) && node.inputs.size() >= 2 &&
        std::find(source.outputs.begin(), source.outputs.end(), PatternValue{false, p, 0}) != source.outputs.end();
    for (const PatternNode& other : source.nodes)
      for (const PatternValue& input : other.inputs)
        if (!input.is_variable && input.index == p) entry.sublist = false;
    plan->nodes.push_back(entry);
    for (std::uint32_t a = 0; a < node.attributes.size(); ++a) {
      if (!binds_alone(node.attributes[a].second)) plan->computed.emplace_back(p, a);
    }
  }
  if (plan->matchable) {
    plan->root = source.outputs[0].index;
    plan->connected = is_connected(source);
    std::sort(plan->operators.begin(), plan->operators.end());
    plan->operators.erase(std::unique(plan->operators.begin(), plan->operators.end()), plan->operators.end());
    plan->symmetries = find_symmetries(rule, catalog);
  }
  plans_.push_back(std::move(plan));
}

std::vector<std::pair<std::uint32_t, Match>> RuleIndex::find_all(const Graph& graph) const {
  const GraphView view(graph, numbers_);
  std::vector<std::pair<std::uint32_t, Match>> result;
  for (std::uint32_t rule = 0; rule < rules_.size(); ++rule) {
    if (!plans_[rule]->matchable || !view.traits.covers(plans_[rule]->needed)) continue;
    Matcher matcher(view, rules_[rule], *plans_[rule], *catalog_, false);
    matcher.run();
    for (Candidate& candidate : matcher.take()) result.emplace_back(rule, std::move(candidate.match));
  }
  return result;
}

std::vector<Match> RuleIndex::find(const Graph& graph, std::uint32_t rule) const {
  std::vector<Match> found;
  if (!plans_.at(rule)->matchable) return found;
  const GraphView view(graph, numbers_);
  Matcher matcher(view, rules_[rule], *plans_[rule], *catalog_, false);
  matcher.run();
  for (Candidate& candidate : matcher.take()) found.push_back(std::move(candidate.match));
  return found;
}

// What a rule's matches depend on, besides the order of symmetric ones: the nodes that match, and the types of what
// they read, which stay as long as the nodes do. So a match is lost with a node of it, and a new one has a new node:
// matching begins there. Where the parts of a source share nothing they also need a common producer or consumer; that
// stays as it is if no node that differs, and nothing that one reads, is of an operator of the source. At the cap it
// depends on the whole graph which matches are found.
MatchList RuleIndex::update(const MatchList& before, const Graph& graph) const {
  const MatchList::Contents& old = *before.contents_;
  const auto& total = old.counted.total();
  GraphView view(graph, numbers_);
  const Difference difference(old.graph, view, numbers_);
  std::vector<std::pair<std::uint32_t, std::shared_ptr<const MatchList::OfRule>>> result;
  auto next_old = old.found.begin();
  enum : char { lost, kept, reported };
  std::vector<char> fates;  // Of the old entries.
  for (std::uint32_t rule = 0; rule < rules_.size(); ++rule) {
    const Plan& plan = *plans_[rule];
    std::shared_ptr<const MatchList::OfRule> known;
    if (next_old != old.found.end() && next_old->first == rule) known = (next_old++)->second;
    if (!plan.matchable) continue;
    const std::vector<char>& where = plan.connected ? difference.at : difference.near;
    const bool affected =
        std::any_of(plan.operators.begin(), plan.operators.end(), [&](std::uint32_t op) { return where[op] != 0; });
    const bool may_match = view.traits.covers(plan.needed);
    bool anew = rule >= old.rules || (known && !known->complete) || (affected && (difference.large || !plan.connected));
    bool differs = false;
    std::size_t count = 0;
    fates.clear();
    if (!anew && known && (affected || !plan.symmetries.empty()))
      for (const MatchList::OfRule::Entry& entry : known->entries) {
        const Match& match = *entry.match;
        char fate = entry.reported ? reported : kept;
        if (affected &&
            std::any_of(match.nodes.begin(), match.nodes.end(), [&](NodeId id) { return difference.same[id] == 0; }))
          fate = lost;
        else if (!plan.symmetries.empty())
          fate = is_first_of_symmetric(match, plan, view) ? reported : kept;
        differs = differs || fate != (entry.reported ? reported : kept);
        count += fate == reported ? 1 : 0;
        fates.push_back(fate);
      }
    std::optional<Matcher> matcher;
    if (!anew && affected && may_match) {
      matcher.emplace(view, rules_[rule], plan, *catalog_, true);
      for (std::uint32_t p = 0; p < plan.nodes.size(); ++p) {
        if (plan.nodes[p].fills) continue;  // A node that reads it is new whenever it is.
        const std::uint32_t op = plan.nodes[p].op;
        for (auto place = std::lower_bound(difference.added.begin(), difference.added.end(), std::pair(op, NodeId{0}));
             place != difference.added.end() && place->first == op; ++place)
          matcher->run_at(p, place->second, difference.same);
      }
    }
    anew = anew || count + (matcher ? matcher->reported() : 0) >= max_matches || (matcher && !matcher->complete());
    if (anew) {
      matcher.emplace(view, rules_[rule], plan, *catalog_, true);
      if (may_match) matcher->run();
      differs = true;
    }
    std::vector<Candidate> candidates = matcher ? matcher->take() : std::vector<Candidate>();
    if (!differs && candidates.empty()) {
      if (known) result.emplace_back(rule, std::move(known));
      continue;
    }
    using Entry = MatchList::OfRule::Entry;
    std::vector<Entry> entries, fresh;
    if (!anew)
      for (std::size_t i = 0; i < fates.size(); ++i)
        if (fates[i] != lost) entries.push_back({known->entries[i].match, fates[i] == reported});
    if (!candidates.empty()) {
      std::vector<Match> matches;
      matches.reserve(candidates.size());
      std::size_t bytes = sizeof(MatchList::Found);
      for (Candidate& candidate : candidates) {
        bytes += bytes_of(candidate.match);
        matches.push_back(std::move(candidate.match));
      }
      const std::shared_ptr<const MatchList::Found> found(
          new MatchList::Found{std::move(matches), MatchList::Counted(total, bytes)});
      for (std::size_t i = 0; i < candidates.size(); ++i)
        fresh.push_back({{found, &found->matches[i]}, candidates[i].reported});
    }
    std::vector<Entry> all;
    all.reserve(entries.size() + fresh.size());
    std::merge(std::make_move_iterator(entries.begin()), std::make_move_iterator(entries.end()),
               std::make_move_iterator(fresh.begin()), std::make_move_iterator(fresh.end()), std::back_inserter(all),
               [](const Entry& a, const Entry& b) { return order(*a.match, *b.match); });
    if (all.empty()) continue;
    const std::size_t bytes = sizeof(MatchList::OfRule) + all.size() * sizeof(Entry);
    result.emplace_back(
        rule, new MatchList::OfRule{std::move(all), !anew || matcher->complete(), MatchList::Counted(total, bytes)});
  }
  const std::size_t bytes = sizeof(MatchList::Contents) + result.size() * sizeof(result[0]) +
                            graph.id_bound() * 2 * sizeof(void*) + view.consumers.bytes();
  MatchList list;
  list.contents_.reset(new MatchList::Contents{graph, std::move(view.consumers), rules_.size(), std::move(result),
                                               MatchList::Counted(total, bytes)});
  return list;
}

}  // namespace taso
