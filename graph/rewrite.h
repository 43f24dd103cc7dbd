/// Matching substitutions in a graph and applying them.
///
/// Matching is modulo the declared laws of operators: operands of a commutative operator in either order; a
/// pattern `concat(p, q)` at the root also matches two adjacent operands of a longer concatenation
/// (associativity); a pattern `split(x)` into two also matches two adjacent outputs of a longer split, where x is a
/// variable that occurs nowhere else in the source (coassociativity). Graphs are kept in normal form: concatenations of
/// concatenations along one axis are flat, splits of a split's output are flat, equal nodes are one node.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/pattern.h"

namespace taso {

/// One place where a substitution's source occurs.
struct Match {
  std::vector<Value> variables;  ///< Per tensor variable.
  std::vector<std::optional<AttributeValue>> attributes;
  std::vector<NodeId> nodes;  ///< Per source pattern node.
  /// For an associative root matched at operands [begin, begin + arity) of a longer concatenation: begin per
  /// source node, else -1.
  std::vector<std::int32_t> operand_begin;
  /// For a split matched at outputs [begin, begin + outputs) of a longer one: begin per source node, else -1. The
  /// tensor variable that it reads then stands for the matched pieces together; `variables` holds what the longer one
  /// reads.
  std::vector<std::int32_t> port_begin;
  bool operator==(const Match&) const = default;
};

/// The matches of all rules of an index in one graph, kept so that those in another version of the graph can be made
/// from them (RuleIndex::update). Immutable; copies and lists made from one another share what they have in common.
class MatchList {
 public:
  /// Of the empty graph.
  MatchList();
  [[nodiscard]] const Graph& graph() const;
  /// Of the graph: matching lists them anyway.
  [[nodiscard]] const Consumers& consumers() const;
  /// What RuleIndex::find_all gives for the graph. The matches live as long as the list or a copy of it.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, const Match*>> matches() const;
  /// The same of one rule: what RuleIndex::find gives.
  [[nodiscard]] std::vector<const Match*> matches(std::uint32_t rule) const;
  /// Bytes of all lists that live and were made, directly or not, from the same one as this; what they share counts
  /// once. Nodes of graphs do not count.
  [[nodiscard]] std::size_t family_bytes() const;

 private:
  friend class RuleIndex;
  class Counted;
  struct Found;
  struct OfRule;
  struct Contents;
  std::shared_ptr<const Contents> contents_;
};

/// Rules indexed by the operator at which a match is anchored. May be used from several threads, except while a rule is
/// added.
///
/// A match is anchored at the first output of the source and extended along edges: to producers, and through the
/// consumers of values that are bound already. Where the parts of a source share nothing, a further part is looked for
/// among the nodes that share a producer or a consumer with what is matched: others would have to be joined and split
/// again at a loss. Opaque nodes and tensors of unknown type are never matched, nor are places where all matched
/// nodes are weight-only: they cost nothing.
class RuleIndex {
 public:
  /// No more matches of one rule are reported for one graph.
  static constexpr std::size_t max_matches = 20000;
  struct Plan;

  RuleIndex(std::vector<Substitution> rules, const OperatorCatalog& catalog);
  /// Adds a rule; its number is that of rules before.
  void add(Substitution rule);
  [[nodiscard]] const std::vector<Substitution>& rules() const { return rules_; }
  [[nodiscard]] const OperatorCatalog& catalog() const { return *catalog_; }

  /// All matches of all rules, as (rule number, match), in a fixed order (rule, then node ids). Conditions on
  /// attributes and shapes hold. Matches that only exchange symmetric roles of a rule are reported once.
  [[nodiscard]] std::vector<std::pair<std::uint32_t, Match>> find_all(const Graph& graph) const;
  /// The same as a list. Exact whatever `before` is, a list of this index of any graph. Where that is another version
  /// of the graph (a copy of one and the same, each changed), matches that both have are taken over, and only those at
  /// nodes that differ are looked for; besides that an update takes a few passes over the nodes and over `before`.
  [[nodiscard]] MatchList update(const MatchList& before, const Graph& graph) const;
  /// Matches of one rule.
  [[nodiscard]] std::vector<Match> find(const Graph& graph, std::uint32_t rule) const;

 private:
  std::vector<Substitution> rules_;
  const OperatorCatalog* catalog_;
  std::unordered_map<std::string, std::uint32_t> numbers_;  // Operators of the sources.
  std::vector<std::shared_ptr<const Plan>> plans_;          // Per rule.
};

/// The graph after replacing a match, in normal form and without dead nodes. New nodes take the origin of the
/// first matched node. Fails, with the reason, if a side condition does not hold on the real tensors, a shape
/// constraint of the target fails, an output would change its type, or the result would have a cycle.
[[nodiscard]] Expected<Graph> apply(const Graph& graph, const Substitution& rule, const Match& match,
                                    const OperatorCatalog& catalog);

/// A rewritten graph and how its nodes differ from the graph it was made from; each list of nodes ascends.
struct RewriteResult {
  Graph graph;
  std::vector<NodeId> added;    ///< Nodes that the old graph does not have.
  std::vector<NodeId> changed;  ///< Nodes of both graphs whose inputs, attributes or `weight_only` differ.
  std::vector<NodeId> removed;  ///< Nodes that only the old graph has.
  /// Which values stand now for which others, in the order of the edits: of (a, b) and then (b, c), c stands for a. The
  /// right ones need not be in the new graph.
  std::vector<std::pair<Value, Value>> replaced;
};

/// The same as apply, with the difference, for costs that are kept incrementally. Faster if the consumers of `graph`
/// are known.
[[nodiscard]] Expected<RewriteResult> apply_with_changes(const Graph& graph, const Substitution& rule,
                                                         const Match& match, const OperatorCatalog& catalog,
                                                         const Consumers* consumers = nullptr);

/// Puts a graph into normal form (see above) and removes dead nodes. Idempotent.
void normalize(Graph& graph, const OperatorCatalog& catalog);

}  // namespace taso
