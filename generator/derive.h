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

#include "generator/generalize.h"
#include "graph/rewrite.h"

namespace taso {

/// One application of a rule.
struct DerivationStep {
  std::uint32_t rule = 0;
  /// The rule is used from right to left: applying it to the graph after the step gives the graph before.
  bool backwards = false;
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
  as_they_stand,       ///< From left to right: a path that an optimizer which has the rules can go.
  lowering_backwards,  ///< Also those that lower the number of operators from right to left.
  both,                ///< All of them both ways: equational reasoning.
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

/// The rule read from right to left, if its target binds everything that the source needs.
[[nodiscard]] std::optional<Substitution> reversed(const Substitution& rule);

/// A set of rules, able to derive others. Rules have numbers in the order in which they came; one that is removed
/// leaves its number unused.
class RuleBasis {
 public:
  explicit RuleBasis(const OperatorCatalog& catalog) : catalog_(&catalog) {}
  /// For reasoning in both directions.
  RuleBasis(const OperatorCatalog& catalog, const std::vector<Substitution>& rules);

  /// `lowering`: the target runs fewer operators than the source.
  std::uint32_t add(const Substitution& rule, bool lowering);
  void remove(std::uint32_t rule);

  /// Makes `derive` safe to call from several threads, until the next change of the set.
  void prepare() const {
    if (index_ == nullptr) rebuild();
  }

  /// A derivation within the limits, the shortest there is; `is_weight` tells which inputs are weights.
  [[nodiscard]] std::optional<Derivation> derive(Graph source, Graph target, const std::vector<bool>& is_weight,
                                                 const DerivationLimits& limits) const;

 private:
  /// A rule in one direction, as the index has it.
  struct Move {
    std::uint32_t rule = 0;
    bool backwards = false;
  };
  void rebuild() const;

  const OperatorCatalog* catalog_;
  struct Rule {
    Substitution rule;
    bool lowering = false;
  };
  std::vector<std::optional<Rule>> rules_;
  mutable std::shared_ptr<const RuleIndex> index_;  ///< All moves; made when needed.
  mutable std::vector<Move> moves_;
};

/// Operators that run: those that depend on an input that is not a weight.
[[nodiscard]] int running_operators(const Graph& graph, const std::vector<bool>& is_weight);

}  // namespace taso
