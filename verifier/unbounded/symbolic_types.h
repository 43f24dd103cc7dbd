/// Type inference at symbolic shapes and attributes.
///
/// Ranks and lengths of lists are numbers, chosen by the caller; extents, integer attributes and elements of lists are
/// symbols. The sizes of a definition are solved as at concrete shapes (operators/size_solver.h): equations and
/// requirements become facts. Where a number must be known (an axis, a permutation) or a case must be distinguished, an
/// Obstacle says which.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"
#include "verifier/unbounded/normal_form.h"
#include "verifier/unbounded/size_evaluator.h"

namespace taso::unbounded {

/// What is known of a rule's variables before any shape is.
struct VariableKinds {
  std::vector<AttributeKind> attributes;              ///< Kind of each attribute variable.
  std::vector<std::optional<std::size_t>> lengths;    ///< Of list variables, where definitions fix it.
  std::vector<bool> integers;                         ///< Tensor variables that hold integers.
  std::vector<std::size_t> least_rank;                ///< Per tensor variable.
  std::vector<std::optional<std::size_t>> only_rank;  ///< Where definitions fix it.
};
[[nodiscard]] VariableKinds kinds_of_variables(const OperatorRegistry& registry, const Substitution& rule);

/// One way to go on: ranks, lengths of lists, and what is assumed of values.
struct Assumptions {
  std::vector<std::optional<std::size_t>> ranks;    ///< Per tensor variable.
  std::vector<std::optional<std::size_t>> lengths;  ///< Per attribute variable.
  std::vector<Atom> atoms;
};

/// The value of an attribute.
struct AttributeTerm {
  AttributeKind kind = AttributeKind::integer;
  Sizes sizes;           ///< Integer or list.
  NormalForm real;       ///< Real.
  std::string function;  ///< Name of a declared function, or "?name" of a variable.
};

/// An operator application with its sizes.
struct TypedNode {
  const OperatorDefinition* definition = nullptr;
  std::vector<PatternValue> inputs;
  std::vector<std::vector<Polynomial>> input_shapes;
  SizeEnvironment environment;
  std::map<std::string, AttributeTerm, std::less<>> attributes;
  std::vector<std::vector<Polynomial>> outputs;
  bool integers = false;  ///< It copies integers (OperatorSignature::copies).
};

/// One side of a rule.
struct TypedSide {
  const Pattern* pattern = nullptr;
  std::vector<TypedNode> nodes;
};

/// Something that the target asks for and the source does not give.
struct TargetCondition {
  enum class Kind : std::uint8_t {
    relation,     ///< `atom`.
    multiple,     ///< `extent` is a multiple of `divisor`.
    requirement,  ///< A requirement of an operator that is no single relation: `what` says which.
  };
  Kind kind = Kind::relation;
  Atom atom = {};
  Polynomial extent = {}, divisor = {};
  std::string what = {};  ///< "conv2d: strides are positive": a requirement in the words of its definition.
  bool operator==(const TargetCondition&) const = default;
};

/// The hypotheses under which a rule claims something, and its sides.
class Typing {
 public:
  Typing(const OperatorRegistry& registry, const Substitution& rule, const VariableKinds& kinds, Facts& facts,
         const Assumptions& assumptions);

  /// The rule's conditions, source, then target and equality of output types, in this order. An obstacle ends it.
  Obstacle run();
  /// A condition more, before run(): it counts as one of the rule's.
  void require(const Condition& condition) { extra_.push_back(condition); }

  [[nodiscard]] const Substitution& rule() const { return rule_; }
  [[nodiscard]] const TypedSide& source() const { return source_; }
  [[nodiscard]] const TypedSide& target() const { return target_; }
  [[nodiscard]] const std::vector<std::vector<Polynomial>>& variable_shapes() const { return shapes_; }
  /// The shape of a value of a side.
  [[nodiscard]] const std::vector<Polynomial>& shape(const TypedSide& side, const PatternValue& value) const;
  /// What the target asks for and the source does not give.
  [[nodiscard]] const std::vector<TargetCondition>& target_conditions() const { return target_conditions_; }
  /// Those that are relations, as hypotheses.
  [[nodiscard]] const std::vector<Atom>& target_atoms() const { return target_atoms_; }
  /// A factor of a composite axis that is no polynomial of extents: extent // product, without remainder.
  struct FactorOfAxis {
    SymbolId symbol = 0;
    Polynomial extent, product;
  };
  [[nodiscard]] const std::vector<FactorOfAxis>& factors() const { return factors_; }
  /// A condition on real attributes: how 0 and a form, the right side less the left one, are related.
  struct RealCondition {
    Condition::Relation relation = Condition::Relation::equal;
    NormalForm difference;
  };
  [[nodiscard]] const std::vector<RealCondition>& real_conditions() const { return real_conditions_; }
  [[nodiscard]] bool integers(std::uint32_t tensor) const { return kinds_.integers[tensor]; }
  /// Whether a value of a side holds integers.
  [[nodiscard]] bool integers(const TypedSide& side, const PatternValue& value) const {
    return value.is_variable ? kinds_.integers[value.index] : side.nodes[value.index].integers;
  }
  /// The length that was chosen for an attribute variable, a list whose length no definition fixes; else nothing.
  [[nodiscard]] std::optional<std::size_t> chosen_length(std::uint32_t attribute) const {
    return kinds_.lengths[attribute] ? std::nullopt : assumptions_.lengths[attribute];
  }

 private:
  class Solver;

  [[nodiscard]] bool variables();
  [[nodiscard]] bool side(const Pattern& pattern, TypedSide& typed, const std::string& name);
  [[nodiscard]] bool conditions();
  [[nodiscard]] bool divisible(const Polynomial& difference);
  [[nodiscard]] bool outputs();
  /// The value of an expression; an integer becomes a real where that is wanted, of the whole alone.
  [[nodiscard]] AttributeTerm evaluate(const AttributeExpression& expression, AttributeKind wanted);
  [[nodiscard]] AttributeTerm evaluate(const AttributeExpression& expression);
  [[nodiscard]] AttributeTerm variable(std::uint32_t index);
  [[nodiscard]] AttributeTerm arithmetic(const AttributeExpression& expression);
  /// Adds a hypothesis; false if it contradicts what is known.
  bool assume(const Atom& atom);
  bool assume(const Alternatives& alternatives, const std::string& what);
  /// Drops conditions of the target that the others imply, given what was known before it.
  void drop_implied(const Facts& before);
  /// The alternatives that do not contradict the facts; nothing if one of them holds.
  [[nodiscard]] std::optional<std::vector<std::vector<Atom>>> possible(const Alternatives& alternatives);
  /// Whether the rank of a variable is chosen; its axes then exist.
  [[nodiscard]] bool ranked(std::uint32_t variable);
  bool decide_pending();
  /// A requirement that is for the one who applies the rule.
  void note_requirement(const std::string& what);
  void unsupported(const std::string& reason);
  void ill_typed();

  const OperatorRegistry& registry_;
  const Substitution& rule_;
  const VariableKinds& kinds_;
  Facts& facts_;
  const Assumptions& assumptions_;
  FormBuilder builder_;
  std::vector<Condition> extra_;
  Obstacle obstacle_;
  bool in_target_ = false;
  /// Disjunctions that nothing has decided yet: later hypotheses may, and ill-typed choices are seen first.
  std::vector<std::pair<Alternatives, std::string>> pending_;
  std::vector<std::vector<Polynomial>> shapes_;  // of tensor variables
  std::vector<bool> ranked_;
  TypedSide source_, target_;
  std::vector<FactorOfAxis> factors_;
  std::vector<RealCondition> real_conditions_;
  std::vector<TargetCondition> target_conditions_;
  std::vector<Atom> target_atoms_;
  std::vector<std::size_t> target_places_;  ///< Of each atom: the number of its condition.
};

/// "dim(x, -1) == dim(y, -1)", "pads[0] >= 1".
[[nodiscard]] std::string to_string(const Symbols& symbols, const Atom& atom);
/// The same; "dim(x, -3) is a multiple of dim(a, -3)"; the words of a requirement.
[[nodiscard]] std::string to_string(const Symbols& symbols, const TargetCondition& condition);

}  // namespace taso::unbounded
