/// Derivations: sequences of rule applications that lead from one graph to another.
///
/// Rules are equations, so a step may use one in either direction. The search is breadth first from both ends: graphs
/// reached from the source meet graphs from which the target is reached. Each step of a derivation names the rule and
/// the graph after it, so that it can be checked without searching (tests do, by other means).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "generator/forms.h"
#include "graph/rewrite.h"

namespace taso {

/// One application of a rule. From left to right: the rule, applied to the graph before, gives the graph after; or the
/// rule read backwards, applied to the graph after, gives the graph before. (Equal parts of a graph are one: where two
/// parts of a rule meet in one, it may be applicable from one side only.) From right to left: the other way round.
struct DerivationStep {
  std::uint32_t rule = 0;
  bool backwards = false;  ///< From right to left.
  Graph after;
};

/// From `source` through the graphs of the steps to the last one, which equals the target. No step: source and target
/// have one normal form.
struct Derivation {
  Graph source;
  std::vector<DerivationStep> steps;
};

/// In which directions rules may be used.
enum class Directions : std::uint8_t {
  as_they_stand,       ///< From left to right, applied to the graph before: a path that an optimizer can go.
  lowering_backwards,  ///< Also those that lower the number of operators from right to left.
  both,                ///< All of them, and their merged instances, both ways: equational reasoning.
};

struct DerivationLimits {
  int max_steps = 2;
  std::size_t max_graphs = 400;  ///< Seen from either end.
  Directions directions = Directions::both;
  /// Graphs on the way may have so many more nodes than the larger end.
  std::size_t extra_nodes = 2;
  /// Graphs on the way must not run more operators than the larger end; `extra_ops` more are allowed.
  int extra_ops = 0;
  /// This rule is not used.
  std::optional<std::uint32_t> without;
};

/// Normal form (graph/rewrite.h), and the operands of commutative operators in an order of their own: graphs that
/// differ in these only become equal.
void normalize_operands(Graph& graph, const OperatorCatalog& catalog);

/// Instances of a rule in which two of its source's operators become one, because variables are equal: conv2d(concat(x,
/// y), concat(k, l)) at k = x, l = y. Matching wants different nodes for different operators, so that the rule itself
/// does not apply there.
[[nodiscard]] std::vector<Substitution> merged_instances(const Substitution& rule, const OperatorCatalog& catalog);

/// The rule read from right to left, if its target binds everything that the source needs.
[[nodiscard]] std::optional<Substitution> reversed(const Substitution& rule);

/// A set of rules, able to derive others. Rules have numbers in the order in which they came; one that is removed
/// leaves its number unused.
class RuleBasis {
 public:
  explicit RuleBasis(const OperatorCatalog& catalog) : catalog_(&catalog), index_({}, catalog) {}
  /// For reasoning in both directions.
  RuleBasis(const OperatorCatalog& catalog, const std::vector<Substitution>& rules);

  /// `lowering`: the target runs fewer operators than the source.
  std::uint32_t add(const Substitution& rule, bool lowering);
  void remove(std::uint32_t rule);

  /// A derivation within the limits, the shortest there is; `is_weight` tells which inputs are weights. May be called
  /// from several threads.
  [[nodiscard]] std::optional<Derivation> derive(Graph source, Graph target, const std::vector<bool>& is_weight,
                                                 const DerivationLimits& limits) const;

 private:
  /// A rule in one direction, as the index has it.
  struct Move {
    std::uint32_t rule = 0;
    bool backwards = false;
    bool merged = false;  ///< A merged instance of the rule.
  };
  /// Whether rule `number` as it stands leads from one graph to the other.
  [[nodiscard]] bool leads(std::uint32_t number, const Graph& from, const Graph& to) const;

  const OperatorCatalog* catalog_;
  struct Rule {
    Substitution rule;
    bool lowering = false;
  };
  std::vector<std::optional<Rule>> rules_;
  RuleIndex index_;  ///< All moves, those of removed rules as well.
  std::vector<Move> moves_;
};

/// Operators that run: those that depend on an input that is not a weight.
[[nodiscard]] int running_operators(const Graph& graph, const std::vector<bool>& is_weight);

}  // namespace taso
