/// Patterns and substitutions: terms over tensor variables, with attributes that may be expressions.
///
/// Text format (rule files, axiom files; '#' starts a comment; a statement ends where the next begins):
///
///   rule merge_matmul_by_weight:
///     matmul(x, w1), matmul(x, w2) => s.0, s.1
///     where s = split(matmul(x, concat(w1, w2; axis=-1)); axis=-1, sizes=[dim(w1, -1), dim(w2, -1)])
///     if rank(w1) == 2, rank(w2) == 2
///     proof axioms, bounded 3
///     class exact
///
///   axiom add_commutes: add(x, y) = add(y, x)
///
/// `where` names subterms (sharing); equal subterms are one node anyway. `.i` selects output i of an operator with
/// several. After ';' come attributes; an attribute left out has its default. In attribute position an
/// identifier is a variable bound by the source, unless it is the name of a declared function (`act=relu`).
/// Expressions: integers, reals, lists, `dim(x, axis)` (axis counted from the end; a variable serves too), `rank(x)`,
/// `length(p)`, list elements `p[0]`, `+ - * //` (element by element on lists). Conditions compare by `== != < <= >
/// >=`, or speak of values: `positive(x)`, `nonnegative(x)`, `nonzero(x)` of all elements of a tensor variable,
/// `finite(a)` of a real attribute. `for m` declares integer variables that the target and the conditions alone have: a
/// rule says something of all their values for which the conditions hold, and who applies it gives them
/// (with_given_values). docs/rules.md has the whole grammar.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace taso {

/// An attribute value computed from the bindings of a match.
struct AttributeExpression {
  enum class Kind : std::uint8_t {
    literal,    ///< `literal`.
    variable,   ///< Attribute variable `index`.
    dimension,  ///< Extent of an axis of tensor variable `index`: `axis` (negative: from the end), or the value
                ///< of operands[0] if there is one, as in dim(x, a).
    rank,       ///< Rank of tensor variable `index`.
    length,     ///< Number of elements of operands[0], a list.
    elements,   ///< All elements of tensor variable `index`: what conditions on values speak of, and nothing else.
    list,       ///< [operands...], each an integer.
    element,    ///< Element `axis` (negative: from the end) of operands[0], a list.
    add,
    subtract,
    multiply,
    floor_divide,  ///< operands[0] op operands[1].
  };
  Kind kind = Kind::literal;
  AttributeValue literal = std::int64_t{0};
  std::uint32_t index = 0;
  std::int64_t axis = 0;
  std::vector<AttributeExpression> operands;

  bool operator==(const AttributeExpression&) const = default;
  /// Whether `index` is a tensor variable.
  [[nodiscard]] bool names_tensor() const {
    return kind == Kind::dimension || kind == Kind::rank || kind == Kind::elements;
  }
};

/// The kind of a sum, difference, product or quotient of values of two kinds; nothing where it has no meaning. Operands
/// become reals where one of them is a real, and only then: what an attribute wants does not reach into arithmetic
/// (`value=dim(x, -1) // 50` is integer division). `//` is for integers.
[[nodiscard]] std::optional<AttributeKind> kind_of_arithmetic(AttributeExpression::Kind operation, AttributeKind left,
                                                              AttributeKind right);

/// A tensor in a pattern: a variable, or an output of a pattern node.
struct PatternValue {
  bool is_variable = true;
  std::uint32_t index = 0;  ///< Of the variable or the node.
  std::uint32_t port = 0;   ///< Of the node.
  auto operator<=>(const PatternValue&) const = default;
};

/// An operator application in a pattern; every attribute of the operator is present (defaults filled in).
struct PatternNode {
  std::string op;
  std::vector<PatternValue> inputs;
  std::vector<std::pair<std::string, AttributeExpression>> attributes;  ///< Sorted by name.
  bool operator==(const PatternNode&) const = default;
};

/// A DAG of operator applications: nodes are in topological order and pairwise different.
struct Pattern {
  std::vector<PatternNode> nodes;
  std::vector<PatternValue> outputs;
  bool operator==(const Pattern&) const = default;
};

/// Whether two values are written alike: outputs of equal number of equal operators with equal attributes, applied to
/// what is written alike.
[[nodiscard]] bool same_term(const Pattern& a, const PatternValue& x, const Pattern& b, const PatternValue& y);

/// A comparison of attribute expressions, or what is asked of the value of `left` alone.
struct Condition {
  enum class Relation : std::uint8_t {
    equal,
    not_equal,
    less,
    less_equal,
    positive,     ///< Every element of `left`, the elements of a tensor variable, is finite and > 0.
    nonnegative,  ///< ... finite and >= 0.
    nonzero,      ///< ... finite and not 0.
    finite,       ///< `left` is a number that a 32-bit float can hold.
  };
  Relation relation = Relation::equal;
  AttributeExpression left, right;
  bool operator==(const Condition&) const = default;
  /// Whether `right` means something.
  [[nodiscard]] bool compares() const { return relation < Relation::positive; }
  /// Whether this speaks of elements of tensors: types and attributes do not decide it.
  [[nodiscard]] bool of_elements() const { return !compares() && relation != Relation::finite; }
};

/// How a rule's rounding differs from the source's, from harmless to harmful (docs/verification.md).
enum class NumericClass : std::uint8_t { exact, reassociation, accumulation, distribution };
[[nodiscard]] const char* to_string(NumericClass numeric_class);

/// A rewrite rule source => target, or an axiom (an equation used in both directions).
struct Substitution {
  std::string name;
  bool is_axiom = false;
  std::vector<std::string> tensor_variables;     ///< In order of first use in the source.
  std::vector<std::string> attribute_variables;  ///< Likewise; then the given ones (given_variables).
  Pattern source, target;                        ///< Output i of one equals output i of the other.
  std::vector<Condition> conditions;
  std::vector<std::string> proofs;  ///< "axioms", "bounded 3", ...; empty if unproved.
  std::optional<NumericClass> numeric_class;
  std::optional<std::string> expect;  ///< Test corpora: the expected verdict.
  std::string facts;  ///< Axioms: what is recorded of their shapes (verifier/shape_facts.h), if anything.
  SourceLocation where;
};

/// What stands for a substitution's variables.
struct Bindings {
  std::vector<const TensorType*> tensors = {};                 ///< Types of the tensor variables; null if unbound.
  std::vector<std::optional<AttributeValue>> attributes = {};  ///< Values of the attribute variables.
  /// The tensors that are constants; null for others, and empty where none is known.
  std::vector<const ConstantData*> constants = {};
};

/// What Bindings::constants is for values of a graph.
[[nodiscard]] std::vector<const ConstantData*> constants_of(const Graph& graph, const std::vector<Value>& values);

/// The value of an expression; an error says what does not fit (rank too small, unequal list lengths, ...).
[[nodiscard]] Expected<AttributeValue> evaluate(const AttributeExpression& expression, const Bindings& bindings);
/// Whether a condition holds. Fails where it has no value: a part of it has none, or elements are asked for of what is
/// no constant. This is the one place that decides conditions: of matches, of steps of certificates, of instances.
[[nodiscard]] Expected<bool> holds(const Condition& condition, const Bindings& bindings);

/// The attributes of a pattern node under bindings; an integer where the operator declares a real becomes one.
[[nodiscard]] Expected<Attributes> evaluate_attributes(const PatternNode& node, const Bindings& bindings,
                                                       const OperatorCatalog& catalog);
/// The values that a pattern node reads when variables and earlier pattern nodes stand for these; fails where a port
/// is out of range.
[[nodiscard]] Expected<std::vector<Value>> resolve_inputs(const Graph& graph, const PatternNode& node,
                                                          const std::vector<Value>& variables,
                                                          const std::vector<NodeId>& nodes);

/// Parses a rule or axiom file. Errors name file, line, column. The catalog supplies operators, defaults and function
/// names; every attribute variable of the target must occur in the source.
[[nodiscard]] Expected<std::vector<Substitution>> parse_rules(std::string_view text, const std::string& file,
                                                              const OperatorCatalog& catalog);
[[nodiscard]] Expected<std::vector<Substitution>> load_rules(const std::string& path, const OperatorCatalog& catalog);

/// The canonical text of a rule; parse_rules(to_string(r)) gives r again. Attributes with default values are left
/// out; multi-output subterms are named by `where`.
[[nodiscard]] std::string to_string(const Substitution& rule, const OperatorCatalog& catalog);

/// The attribute variables that do not occur in the source, ascending: integers that who applies the rule gives.
/// RuleIndex finds no match of a rule that has any.
[[nodiscard]] std::vector<std::uint32_t> given_variables(const Substitution& rule);
/// The rule for these values of its given variables, one for each in their order: an ordinary rule, which can be
/// matched. Its proof marks are those of the rule for all values; the seal is not valid for it.
[[nodiscard]] Expected<Substitution> with_given_values(const Substitution& rule,
                                                       const std::vector<std::int64_t>& values);

/// A condition in the spelling of rules.
[[nodiscard]] std::string to_string(const Condition& condition, const Substitution& rule);

/// The last entry of a `proof` clause, "seal N": N is a hash of all that was proved (both sides and all conditions, up
/// to names), so that a mark does not outlive a change of its rule. No signature: it tells oversight, not malice.
[[nodiscard]] std::string proof_seal(const Substitution& rule, const OperatorCatalog& catalog);
/// Whether a rule carries proofs, sealed for what it says now.
[[nodiscard]] bool carries_proof(const Substitution& rule, const OperatorCatalog& catalog);
/// Puts the seal behind the rule's proofs, in place of another one; nothing without proofs.
void seal_proofs(Substitution& rule, const OperatorCatalog& catalog);

/// Renames variables in order of first use (x, y, z, ... for tensors), so that equal rules have equal text.
[[nodiscard]] Substitution canonical(const Substitution& rule);
/// Also orders the outputs and the operands of commutative operators, so that rules that differ only in these get equal
/// text: the least text over all orders, or over a fixed part of them where there are very many.
[[nodiscard]] Substitution canonical(const Substitution& rule, const OperatorCatalog& catalog);

/// A pattern as a Graph: variables become inputs of the given types, attributes are evaluated. Fails where a shape
/// constraint of an operator fails. `variables[i]` is the graph input of tensor variable i. Used by provers
/// and tests.
[[nodiscard]] Expected<Graph> instantiate(const Substitution& rule, const Pattern& pattern,
                                          const std::vector<TensorType>& variable_types,
                                          const std::vector<std::optional<AttributeValue>>& attribute_values,
                                          const OperatorCatalog& catalog);

}  // namespace taso
