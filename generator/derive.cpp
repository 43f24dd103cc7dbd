#include "generator/derive.h"

#include <algorithm>
#include <unordered_map>

namespace taso {

int running_operators(const Graph& graph, const std::vector<bool>& is_weight) {
  std::vector<char> runs(graph.id_bound(), 0);
  for (std::size_t i = 0; i < graph.inputs().size(); ++i)
    runs[graph.inputs()[i]] = i < is_weight.size() && is_weight[i] ? 0 : 1;
  int count = 0;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::op) continue;
    for (const Value& input : node.inputs) runs[id] = runs[id] || runs[input.node] ? 1 : 0;
    count += runs[id];
  }
  return count;
}

namespace {

using Kind = AttributeExpression::Kind;

/// Marks the attribute variables that an attribute of a source binds: those that stand alone, or as elements of a list.
void bind(const AttributeExpression& value, std::vector<bool>& attributes) {
  if (value.kind == Kind::variable) attributes[value.index] = true;
  if (value.kind == Kind::list)
    for (const AttributeExpression& element : value.operands)
      if (element.kind == Kind::variable) attributes[element.index] = true;
}

/// Whether all variables of an expression are bound.
bool is_bound(const AttributeExpression& value, const std::vector<bool>& tensors, const std::vector<bool>& attributes) {
  if (value.kind == Kind::variable && !attributes[value.index]) return false;
  if (value.names_tensor() && !tensors[value.index]) return false;
  return std::all_of(value.operands.begin(), value.operands.end(),
                     [&](const AttributeExpression& operand) { return is_bound(operand, tensors, attributes); });
}

}  // namespace

std::optional<Substitution> reversed(const Substitution& rule) {
  const Pattern& target = rule.target;
  if (std::any_of(target.outputs.begin(), target.outputs.end(),
                  [](const PatternValue& output) { return output.is_variable; }))
    return std::nullopt;
  std::vector<bool> tensors(rule.tensor_variables.size()), attributes(rule.attribute_variables.size());
  for (const PatternNode& node : target.nodes) {
    for (const PatternValue& input : node.inputs)
      if (input.is_variable) tensors[input.index] = true;
    for (const auto& [name, value] : node.attributes) bind(value, attributes);
  }
  if (std::find(tensors.begin(), tensors.end(), false) != tensors.end()) return std::nullopt;
  auto known = [&](const AttributeExpression& value) { return is_bound(value, tensors, attributes); };
  for (const Pattern* side : {&rule.source, &rule.target})
    for (const PatternNode& node : side->nodes)
      for (const auto& [name, value] : node.attributes)
        if (!known(value)) return std::nullopt;
  for (const Condition& condition : rule.conditions)
    if (!known(condition.left) || !known(condition.right)) return std::nullopt;
  Substitution result = rule;
  std::swap(result.source, result.target);
  return canonical(result);
}

void normalize_operands(Graph& graph, const OperatorCatalog& catalog) {
  normalize(graph, catalog);
  // By hash of what computes them; equal products of sums become one node only after that.
  for (bool changed = true; changed;) {
    changed = false;
    std::unordered_map<NodeId, Hash128> hashes;
    for (const NodeId id : graph.topological_order()) {
      const Node& node = graph.node(id);
      auto hash_of = [&](const Value& value) { return Hasher().add(hashes.at(value.node)).add(value.port).finish(); };
      std::vector<Value> inputs = node.inputs;
      if (node.kind == NodeKind::op && inputs.size() == 2 && catalog.is_commutative(node.op) &&
          hash_of(inputs[1]) < hash_of(inputs[0])) {
        std::swap(inputs[0], inputs[1]);
        graph.set_inputs(id, inputs);
        changed = true;
      }
      Hasher hasher;
      hasher.add(graph.node(id).label);
      for (const Value& input : inputs) hasher.add(hash_of(input));
      hashes[id] = hasher.finish();
    }
    if (changed) normalize(graph, catalog);
  }
}

std::vector<Substitution> merged_instances(const Substitution& rule, const OperatorCatalog& catalog) {
  std::vector<Substitution> result;
  const std::vector<PatternNode>& nodes = rule.source.nodes;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (std::size_t j = i + 1; j < nodes.size(); ++j) {
      if (nodes[i].op != nodes[j].op || nodes[i].inputs.size() != nodes[j].inputs.size()) continue;
      // The later node's variables, and its attributes, become those of the earlier one.
      Substitution instance = rule;
      bool equal = true;
      for (std::size_t k = 0; k < nodes[i].inputs.size(); ++k) {
        const PatternValue &left = nodes[i].inputs[k], &right = nodes[j].inputs[k];
        equal = equal && (left == right || (left.is_variable && right.is_variable));
        if (left.is_variable && right.is_variable)
          instance.tensor_variables[right.index] = instance.tensor_variables[left.index];
      }
      for (std::size_t k = 0; k < nodes[i].attributes.size(); ++k) {
        const AttributeExpression &left = nodes[i].attributes[k].second, &right = nodes[j].attributes[k].second;
        equal = equal && (left == right || (left.kind == Kind::variable && right.kind == Kind::variable));
        if (left.kind == Kind::variable && right.kind == Kind::variable)
          instance.attribute_variables[right.index] = instance.attribute_variables[left.index];
      }
      if (!equal) continue;
      // Reading the text makes one variable of equal names and one node of equal terms.
      auto read = parse_rules(to_string(instance, catalog), "instance of " + rule.name, catalog);
      if (read.ok() && read->size() == 1) result.push_back(std::move(read->front()));
    }
  return result;
}

RuleBasis::RuleBasis(const OperatorCatalog& catalog, const std::vector<Substitution>& rules) : RuleBasis(catalog) {
  for (const Substitution& rule : rules) add(rule, false);
}

std::uint32_t RuleBasis::add(const Substitution& rule, bool lowering) {
  const auto number = static_cast<std::uint32_t>(rules_.size());
  rules_.emplace_back(Rule{rule, lowering});
  auto add_moves = [&](const Substitution& form, bool merged) {
    index_.add(form);
    moves_.push_back({number, false, merged});
    auto back = reversed(form);
    if (!back) return;
    index_.add(std::move(*back));
    moves_.push_back({number, true, merged});
  };
  add_moves(rule, false);
  for (const Substitution& instance : merged_instances(rule, *catalog_)) add_moves(instance, true);
  return number;
}

void RuleBasis::remove(std::uint32_t rule) { rules_.at(rule).reset(); }

bool RuleBasis::leads(std::uint32_t number, const Graph& from, const Graph& to) const {
  const auto move = static_cast<std::uint32_t>(
      std::find_if(moves_.begin(), moves_.end(),
                   [&](const Move& m) { return m.rule == number && !m.backwards && !m.merged; }) -
      moves_.begin());
  const auto matches = index_.find(from, move);
  return std::any_of(matches.begin(), matches.end(), [&](const Match& match) {
    auto result = apply(from, index_.rules()[move], match, *catalog_);
    if (!result) return false;
    normalize_operands(*result, *catalog_);
    return result->equals(to);
  });
}

std::optional<Derivation> RuleBasis::derive(Graph source, Graph target, const std::vector<bool>& is_weight,
                                            const DerivationLimits& limits) const {
  normalize_operands(source, *catalog_);
  normalize_operands(target, *catalog_);
  if (source.equals(target)) return Derivation{std::move(source), {}};
  const int ops =
      std::max(running_operators(source, is_weight), running_operators(target, is_weight)) + limits.extra_ops;
  const std::size_t nodes = std::max(source.size(), target.size()) + limits.extra_nodes;

  /// A graph seen from one end, and how it was reached from the graph before it on the way to that end.
  struct Seen {
    Graph graph;
    std::size_t before = 0;
    std::uint32_t rule = 0;
    bool backwards = false;
    int depth = 0;
  };
  struct End {
    std::vector<Seen> seen;
    std::unordered_multimap<Hash128, std::size_t> by_hash;
    std::size_t next = 0;  ///< Graphs from here on are not expanded yet.
    [[nodiscard]] std::optional<std::size_t> find(const Graph& graph, const Hash128& hash) const {
      const auto [first, last] = by_hash.equal_range(hash);
      for (auto it = first; it != last; ++it)
        if (seen[it->second].graph.equals(graph)) return it->second;
      return std::nullopt;
    }
    void add(Seen one, const Hash128& hash) {
      by_hash.emplace(hash, seen.size());
      seen.push_back(std::move(one));
    }
  };
  End ends[2];
  ends[0].add({source, 0, 0, false, 0}, source.structural_hash());
  ends[1].add({target, 0, 0, false, 0}, target.structural_hash());

  auto joined = [&](std::size_t left, std::size_t right) {
    Derivation result;
    result.source = ends[0].seen[0].graph;
    std::vector<std::size_t> path;
    for (std::size_t at = left; at != 0; at = ends[0].seen[at].before) path.push_back(at);
    for (auto it = path.rbegin(); it != path.rend(); ++it) {
      const Seen& seen = ends[0].seen[*it];
      result.steps.push_back({seen.rule, seen.backwards, seen.graph});
    }
    // From the target the moves were made the other way round.
    for (std::size_t at = right; at != 0; at = ends[1].seen[at].before) {
      const Seen& seen = ends[1].seen[at];
      result.steps.push_back({seen.rule, !seen.backwards, ends[1].seen[seen.before].graph});
    }
    return result;
  };

  // Some steps cannot be made from the target: reading a rule backwards needs its target as it stands, and normal forms
  // merge it with its surroundings. So the source's end goes on alone.
  for (int depth[2] = {0, 0};;) {
    const std::size_t left = ends[0].seen.size() - ends[0].next, right = ends[1].seen.size() - ends[1].next;
    const bool can_left = left != 0 && depth[0] < limits.max_steps;
    const bool can_right = right != 0 && depth[0] + depth[1] < limits.max_steps;
    if (!can_left && !can_right) break;
    // The end with fewer graphs to go on from.
    const std::size_t side = !can_right || (can_left && left <= right) ? 0 : 1;
    ++depth[side];
    End& end = ends[side];
    const std::size_t last = end.seen.size();
    for (; end.next < last; ++end.next) {
      const Graph graph = end.seen[end.next].graph;
      for (const auto& [number, match] : index_.find_all(graph)) {
        const Move& move = moves_[number];
        if (!rules_[move.rule] || limits.without == move.rule || (move.merged && limits.directions != Directions::both))
          continue;
        // The direction in which the step leads from the source to the target.
        const bool backwards = side == 0 ? move.backwards : !move.backwards;
        if (backwards && (limits.directions == Directions::as_they_stand ||
                          (limits.directions == Directions::lowering_backwards && !rules_[move.rule]->lowering)))
          continue;
        auto rewritten = apply(graph, index_.rules()[number], match, *catalog_);
        if (!rewritten) continue;
        normalize_operands(*rewritten, *catalog_);
        if (side == 1 && limits.directions == Directions::as_they_stand && !leads(move.rule, *rewritten, graph))
          continue;
        const Hash128 hash = rewritten->structural_hash();
        if (end.find(*rewritten, hash)) continue;
        Seen one{std::move(*rewritten), end.next, move.rule, move.backwards, depth[side]};
        const auto other = ends[1 - side].find(one.graph, hash);
        if (other && depth[side] + ends[1 - side].seen[*other].depth <= limits.max_steps) {
          end.add(std::move(one), hash);
          const std::size_t here = end.seen.size() - 1;
          return side == 0 ? joined(here, *other) : joined(*other, here);
        }
        if (end.seen.size() > limits.max_graphs || one.graph.size() > nodes ||
            running_operators(one.graph, is_weight) > ops)
          continue;
        end.add(std::move(one), hash);
      }
    }
  }
  return std::nullopt;
}

}  // namespace taso
