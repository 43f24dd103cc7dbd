/// Local edits that keep a graph in normal form.
#pragma once

#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace taso {

/// Edits one graph: replaces values, then restores the normal form around what changed, at a cost that grows with the
/// change and not with the graph (apart from a pass over the nodes at the beginning, if their consumers are not known).
///
/// Representation. `old_users_` are the consumers of each node as they were at the beginning, `extra_` those added
/// since; an entry may be out of date, so that readers check it against the node.
class GraphEditor {
 public:
  /// `consumers` are those of the graph, and outlive the editor; without them, the editor lists them itself.
  GraphEditor(Graph& graph, const OperatorCatalog& catalog, const Consumers* consumers = nullptr);
  GraphEditor(const GraphEditor&) = delete;
  GraphEditor& operator=(const GraphEditor&) = delete;

  /// The application of an operator: an equal node that exists, or a new one.
  [[nodiscard]] Expected<NodeId> add_op(std::string_view op, const Attributes& attributes, std::vector<Value> inputs,
                                        const NodePlace& place);
  /// Makes all consumers of the left values use the right ones, at once; nodes of `except` keep their inputs.
  void replace(const std::vector<std::pair<Value, Value>>& replacements, const std::vector<NodeId>& except);
  /// True if a node can be reached from itself, looking at the ancestors of `nodes`.
  [[nodiscard]] bool has_cycle_above(const std::vector<NodeId>& nodes) const;
  /// Asks for a node to be looked at by normalize().
  void touch(NodeId id);
  /// Asks for a node to be erased by normalize() if nothing uses it.
  void suspect(NodeId id) { suspects_.push_back(id); }
  /// Brings touched nodes, and what changes with them, into normal form; erases dead nodes among the suspects and
  /// above.
  void normalize();

  /// Ids that existed at the beginning and differ now, or are gone; in no order, with repetitions.
  [[nodiscard]] const std::vector<NodeId>& changed() const { return changed_; }
  [[nodiscard]] const std::vector<NodeId>& removed() const { return removed_; }
  /// What replaced what, in order: equal values all, if those given to replace() were.
  [[nodiscard]] const std::vector<std::pair<Value, Value>>& replaced() const { return replaced_; }

 private:
  /// Live consumers of a node, ascending, each once.
  [[nodiscard]] std::vector<NodeId> users(NodeId id) const;
  [[nodiscard]] bool is_output(Value value) const;
  [[nodiscard]] bool same_application(const Node& a, const Node& b) const;
  [[nodiscard]] std::optional<NodeId> find_equal(const Node& node, NodeId self) const;
  void change_inputs(NodeId id, std::vector<Value> inputs);
  void propagate_weight_only(NodeId id);
  void merge(NodeId from, NodeId to);
  bool flatten_associative(NodeId id);
  bool flatten_coassociative(NodeId id);
  /// A concatenation inside one along the same axis is absorbed by it unless others read it too; one that is
  /// weight-only always is, being free.
  [[nodiscard]] bool can_absorb(const Node& user, NodeId id) const;
  /// A split of an output of a split that nothing else reads is one split.
  [[nodiscard]] bool flattens_into(NodeId id, NodeId outer_id) const;
  void erase_dead();

  Graph& graph_;
  const OperatorCatalog& catalog_;
  NodeId old_bound_;
  Consumers own_;  ///< Where none were given.
  const Consumers& old_users_;
  std::unordered_map<NodeId, std::vector<NodeId>> extra_;
  std::deque<NodeId> pending_;
  std::vector<NodeId> suspects_, changed_, removed_;
  std::vector<std::pair<Value, Value>> replaced_;
  /// Nodes without inputs by label (built at the first question).
  mutable std::unordered_map<Hash128, NodeId> leaves_;
  mutable bool leaves_known_ = false;
};

}  // namespace taso
