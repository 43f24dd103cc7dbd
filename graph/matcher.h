/// How a rule's source is found in a graph: what stands behind RuleIndex, and what explains near misses. For the
/// sources of this library only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/rewrite.h"
#include "graph/symmetry.h"

namespace taso {

inline constexpr std::uint32_t no_operator = static_cast<std::uint32_t>(-1);
inline constexpr NodeId no_node = static_cast<NodeId>(-1);

/// Operators by name, with numbers.
using OperatorNumbers = std::unordered_map<std::string, std::uint32_t>;

/// What a rule's source needs of a graph and a graph has, as bits: operators, how many of them, operators that read
/// others. Different things may share a bit.
struct SourceTraits {
  std::uint64_t counts = 0, edges = 0;

  static constexpr std::uint32_t most = 4;  ///< Operators are counted up to this.
  void add_operator(std::uint32_t op, std::size_t count) {
    counts |= std::uint64_t{1} << ((op * most + std::min<std::size_t>(count, most) - 1) % 64);
  }
  void add_edge(std::uint32_t producer, std::uint32_t consumer) {
    edges |= std::uint64_t{1} << ((producer * 11 + consumer) % 64);
  }
  [[nodiscard]] bool covers(const SourceTraits& other) const {
    return (other.counts & ~counts) == 0 && (other.edges & ~edges) == 0;
  }
};

/// A rule prepared for matching.
struct RuleIndex::Plan {
  struct PlanNode {
    std::uint32_t op = no_operator;  ///< Number of the operator in the index.
    bool commutative = false;
    bool sublist = false;  ///< An associative output: may match adjacent operands of a longer one.
    /// Outputs of a split of a variable that nothing else reads, which may match adjacent outputs of a longer one; or
    /// 0.
    std::size_t pieces = 0;
    PieceAttributes piece_attributes;  ///< Where `pieces` is not 0.
    bool any_length = false;           ///< Its sizes are a variable: the whole longer split matches too.
    bool fills = false;                ///< A filling operator: constants whose elements are one number match, too.
  };
  /// Numbers operators that `numbers` does not have yet.
  Plan(const Substitution& rule, const OperatorCatalog& catalog, OperatorNumbers& numbers);

  std::vector<PlanNode> nodes;
  std::uint32_t root = 0;  ///< Source node at which matches are anchored.
  bool matchable = false;
  /// Source nodes hang together by edges and shared variables: from any of them matching reaches all.
  bool connected = false;
  std::vector<std::uint32_t> operators;  ///< Of the source, ascending.
  SourceTraits needed;                   ///< Of the source.
  /// Attributes of the source that are computed: compared when everything is bound.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> computed;
  std::vector<RuleSymmetry> symmetries;
};

/// The parts of a graph that matching needs: nodes by operator, and consumers in one array.
struct GraphView {
  const Graph& graph;
  std::vector<std::uint32_t> op;  ///< Per node id; no_operator if no rule speaks of it.
  SourceTraits traits;
  std::vector<std::uint32_t> position;        ///< Per node id, in topological order.
  std::vector<std::vector<NodeId>> nodes_of;  ///< Per operator number.
  Consumers consumers;

  GraphView(const Graph& g, const OperatorNumbers& numbers);

  [[nodiscard]] std::span<const std::pair<NodeId, std::uint32_t>> uses_of(NodeId id) const { return consumers.of(id); }
};

/// Whether no match that exchanges symmetric roles comes before: of such matches the first in topological order counts.
[[nodiscard]] bool is_first_of_symmetric(const Match& match, const RuleIndex::Plan& plan, const GraphView& view);

/// The order of matches of one rule.
[[nodiscard]] bool precedes(const Match& a, const Match& b);

/// A match, and whether it is reported: of matches that exchange symmetric roles only the first is.
struct FoundMatch {
  Match match;
  bool reported = true;
};

/// How far attempts to match came, for people who wonder why a rule does not match. A matcher that is given one says at
/// each place where it gives up why; what counts is the attempt with most source nodes matched, of equal ones the
/// first.
class FurthestAttempt {
 public:
  /// `name` says what a person calls a value of the graph.
  explicit FurthestAttempt(std::function<std::string(Value)> name) : name_(std::move(name)) {}
  [[nodiscard]] std::string name(Value value) const { return name_(value); }
  /// An attempt with these nodes for the source's (no_node: none) ends; `obstacle` makes the text that says why.
  template <class Obstacle>
  void ends(const std::vector<NodeId>& nodes, const Obstacle& obstacle) {
    const std::size_t count = nodes.size() - static_cast<std::size_t>(std::count(nodes.begin(), nodes.end(), no_node));
    if (count <= matched_) return;
    matched_ = count;
    nodes_ = nodes;
    obstacle_ = obstacle();
  }
  [[nodiscard]] std::size_t matched() const { return matched_; }
  [[nodiscard]] const std::vector<NodeId>& nodes() const { return nodes_; }
  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }

 private:
  std::function<std::string(Value)> name_;
  std::size_t matched_ = 0;
  std::vector<NodeId> nodes_;
  std::string obstacle_;
};

/// Backtracking search for one rule. Bindings are kept in a trail and undone on return.
class GraphMatcher {
 public:
  /// With `keep_symmetric`, those that are not reported are candidates too. All arguments must outlive the matcher;
  /// `furthest` may be null.
  GraphMatcher(const GraphView& view, const Substitution& rule, const RuleIndex::Plan& plan,
               const OperatorCatalog& catalog, bool keep_symmetric, FurthestAttempt* furthest = nullptr);

  /// All matches.
  void run();
  /// Of a connected source: the matches where source node `p` stands for node `id` and no source node before it for a
  /// node that is not `same`.
  void run_at(std::uint32_t p, NodeId id, const std::vector<char>& same);
  /// The matches anchored at a node: those where the first output of the source is one of its outputs.
  void run_from(NodeId id) { try_node(plan_.root, id); }

  /// No more matches are reported.
  [[nodiscard]] bool full() const { return reported_ >= RuleIndex::max_matches; }
  /// Nothing was left out but what is never reported.
  [[nodiscard]] bool complete() const { return !full() && others_ < RuleIndex::max_matches; }
  [[nodiscard]] std::size_t reported() const { return reported_; }
  /// What was found, in the order of find_all.
  [[nodiscard]] std::vector<FoundMatch> take();

 private:
  struct Mark {
    std::size_t variables, attributes, agenda;
  };

  struct Due {
    std::uint32_t pattern;
    NodeId node;
    std::int64_t shift;  // Port of the graph node less port of the pattern node.
  };

  // The bindings of a complete match, and what they refer to.
  struct Bound {
    Bindings bindings;
    std::vector<TensorType> together;  // What splits of some pieces read is those pieces together.
  };

  [[nodiscard]] Value matched(const PatternValue& value) const {
    const std::int32_t begin = state_.port_begin[value.index];
    return {state_.nodes[value.index], value.port + static_cast<std::uint32_t>(std::max(begin, 0))};
  }
  // The attempt ends; see FurthestAttempt. The value is false, for who says whether something fits.
  template <class Obstacle>
  bool ends(const Obstacle& obstacle) const {
    if (furthest_ != nullptr) furthest_->ends(state_.nodes, obstacle);
    return false;
  }
  [[nodiscard]] std::string name(Value value) const { return furthest_->name(value); }
  [[nodiscard]] std::string name(NodeId id) const { return furthest_->name({id, 0}); }

  // Binds pattern node `p` to graph node `id` in all ways and continues with what is left. With `shift`, the ports of
  // the graph node are those of the pattern node plus it.
  void try_node(std::uint32_t p, NodeId id, std::optional<std::int64_t> shift = std::nullopt);
  // The same for a filling operator, for which any constant of equal elements may stand: one constant for several, too.
  void try_fill(std::uint32_t p, NodeId id);
  void try_ports(std::uint32_t p, NodeId id);
  void try_operands(std::uint32_t p, NodeId id, std::size_t begin, bool swapped);
  // Whether a value can be what the pattern has in its place; what is to be looked at later goes to the agenda.
  bool fits(const PatternValue& expected, Value value, NodeId reader);
  // Continues with a producer that is due, else with a node that reads something bound, else with any node.
  void advance();
  void advance_to_due();
  // Continues with the nodes of a pattern node's operator that read a value.
  void advance_to_consumers(std::uint32_t p, Value value);
  // Nodes with operator `op` that read from a node from which a matched node reads, or are read with a matched node.
  [[nodiscard]] std::vector<NodeId> neighbours(std::uint32_t op) const;

  bool bind_variable(std::uint32_t variable, Value value);
  bool bind_attribute(std::uint32_t variable, const AttributeValue& value);
  bool bind_attributes(std::uint32_t p, NodeId id);
  // Binds what an expression binds by itself; literals are compared.
  template <class Same>
  bool bind_attribute(const AttributeExpression& expected, const AttributeValue& value, const Same& same);
  // What an expression that did not bind a value asks for: "[1, 1]".
  [[nodiscard]] std::string asked(const AttributeExpression& expected, const AttributeValue& value) const;
  void undo(const Mark& mark);

  // Everything is bound: side conditions, usefulness, one of each set of symmetric matches.
  void report();
  // Whether rules may speak of what is matched at all.
  [[nodiscard]] bool may_be_matched() const;
  [[nodiscard]] Bound bind_all() const;
  [[nodiscard]] bool computed_attributes_fit(const Bindings& bindings) const;
  [[nodiscard]] bool conditions_hold(const Bindings& bindings) const;
  // 0.0 and -0.0 are equal: a variable that stands for both is what the first source node says, wherever the search
  // began.
  void settle_sign_of_zero(std::uint32_t variable);

  const GraphView& view_;
  const Substitution& rule_;
  const RuleIndex::Plan& plan_;
  const OperatorCatalog& catalog_;
  const bool keep_symmetric_;
  FurthestAttempt* const furthest_;
  std::vector<FoundMatch> found_;
  std::size_t reported_ = 0, others_ = 0;  // Of what was found.
  std::uint32_t first_new_ = 0;
  const std::vector<char>* same_ = nullptr;  // Per node id; of use where first_new_ > 0.
  Match state_;
  std::vector<char> bound_;  // Per tensor variable.
  std::vector<std::uint32_t> trail_variables_, trail_attributes_;
  std::vector<Due> agenda_;  // Pattern nodes that graph nodes must match.
  AttributeValue sizes_;     // Of the pieces being matched.
};

}  // namespace taso
