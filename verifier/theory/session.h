/// One solver in which a part of the theory is asserted, and the questions to it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"
#include "verifier/shape_facts.h"
#include "verifier/smt/solver.h"
#include "verifier/theory/encoder.h"
#include "verifier/theory/vocabulary.h"

namespace taso::theory {

/// What `dim(v, -3)` supposes, that v has three axes, where no operator that reads v says it. Extents of other axes are
/// numbers, too, in the logic, which nothing is known of: an axiom would give them a meaning.
[[nodiscard]] std::vector<Condition> rank_conditions(const OperatorRegistry& registry, const Substitution& rule,
                                                     const Pattern& source, const Pattern& target);

/// A solver with the theory asserted, made anew after a check that a limit ended: what such a one leaves behind costs
/// memory, and may make the next goal, which no limit holds before its check begins, cost more than there is. Sessions
/// of one thread may share a vocabulary, and so a context.
class Session {
 public:
  /// What the definitions say of extents and shapes is asserted of these operators; without any, of all.
  Session(std::shared_ptr<Vocabulary> vocabulary, const smt::SolverOptions& options,
          const std::set<std::string>& operators = {});

  /// Adds an axiom; the text says why it cannot be used, if so.
  [[nodiscard]] std::string add_axiom(const Substitution& axiom, const ShapeFacts& shapes);

  /// Whether the solver derives every output of the rule, from hypotheses in which it finds no contradiction; empty if
  /// so, else the reason. `rlimit` replaces the solver's limit unless it is 0.
  [[nodiscard]] std::optional<std::string> prove(const Substitution& rule, std::uint64_t rlimit = 0);
  /// Whether the solver finds that the theory contradicts what the rule supposes: its conditions, both sides
  /// well-typed, equal shapes.
  [[nodiscard]] bool contradictory(const Substitution& rule, std::uint64_t rlimit);
  /// The negated goals, one output at a time, with the theory, as SMT-LIB 2.
  [[nodiscard]] std::string smt2(const Substitution& rule);

 private:
  [[nodiscard]] smt::Solver& solver();
  void assert_formula(Expr formula);
  /// Checks what assert_goal() asserts; nothing if a negated goal cannot be said.
  [[nodiscard]] std::optional<smt::Result> check_goal(const Substitution& rule, std::size_t output, bool negated,
                                                      std::uint64_t rlimit);

  /// What an application supposes and, with `negated`, that the outputs differ; false if it cannot be said.
  [[nodiscard]] bool assert_goal(const Substitution& rule, std::size_t output, bool negated);

  /// "conditions => source = target", matched on one side; false if that side leaves a variable open.
  [[nodiscard]] bool add_direction(const Substitution& axiom, bool from_source, std::size_t output,
                                   const ShapeFacts& shapes);
  [[nodiscard]] static Pattern one_output(const Pattern& pattern, std::size_t output);
  void assert_lists();
  void assert_shapes();
  void assert_products();
  void assert_function_names();
  [[nodiscard]] std::vector<Expr> integers(const std::string& prefix, std::size_t count);
  [[nodiscard]] std::vector<Expr> tensors(std::size_t count);

  /// Arbitrary attributes of an operator: values in name order, and the variables in them.
  struct AnyAttributes {
    std::vector<std::pair<Kindness, Expr>> values;
    std::vector<Expr> variables;
    std::optional<std::size_t> integer, list;  // the first of that kind
    std::map<std::string, std::size_t> places;
    std::map<std::string, std::vector<Expr>> elements;  // of lists of declared length
  };
  [[nodiscard]] AnyAttributes any_attributes(const std::string& op);
  void assert_equation(const std::vector<Expr>& variables, const Expr& trigger, const Expr& body,
                       const std::string& name);
  void assert_definition(const OperatorDefinition& definition);
  void assert_commutative(const OperatorDefinition& definition);

  /// concat(x.., concat(y..), z..) = concat(x.., y.., z..), and the extents of a concatenation.
  void assert_associative(const OperatorDefinition& definition);

  /// Splits of the first or the second piece of a split in two are splits; extents of pieces.
  void assert_coassociative(const OperatorDefinition& definition);
  [[nodiscard]] static std::vector<std::string> outer_names(const std::vector<AxisSpec>& axes, int axis);

  /// dim(op(..), i) in terms of extents of the inputs.
  void assert_extents(const OperatorDefinition& definition);

  /// The value of an extent made of integers, attributes, elements of list attributes, and extents of inputs.
  [[nodiscard]] std::optional<Expr> extent_of(const Expression& expression, const OperatorDefinition& definition,
                                              const AnyAttributes& any, const std::vector<Expr>& x);

  /// Where the output's shape is an attribute: shape(op(..; s)) = s, and its extents are the elements of s.
  void assert_given_shape(const OperatorDefinition& definition, const AnyAttributes& any, const std::vector<Expr>& x);

  std::shared_ptr<Vocabulary> shared_vocabulary_;
  Vocabulary& vocabulary_;
  const OperatorRegistry& registry_;
  smt::SolverOptions options_;
  std::vector<Expr> theory_;
  std::optional<smt::Solver> solver_;
};

}  // namespace taso::theory
