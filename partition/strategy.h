/// Partition strategies of operators: ways to compute an operator in two parts, derived from its definition.
///
/// A strategy cuts the range of one index variable at a symbolic point m (Tofu, Wang et al. 2019, section 4: the
/// partition-n-reduce strategies of a tensor description). The variable is a digit of an output axis: then the parts of
/// the output lie side by side; or it belongs to a reduction: then they are combined element by element. Which part of
/// each input a piece needs, and which attributes it is applied with, follows from the reads of the definition. Each
/// strategy is a rule "whole => pieces" of the rule language, whose cut point is a given variable; the verifier proves
/// it like any other. What is derived here is a proposal: only a proved strategy may be used.
///
/// More than two parts: a cut at m, then one of the second piece, and so on; by induction the parts at any cut points
/// make the whole (docs/partitioning.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"

namespace taso {

/// What a piece is given of one axis of an input: the first piece [0, first_end), the second one [second_begin,
/// extent). Where the first ends behind where the second begins there is a halo.
struct InputCut {
  std::size_t input = 0;  ///< Number of the operand.
  AttributeExpression axis;
  AttributeExpression first_end, second_begin;
  /// What it reads of that, where it does not read all: [read_begin, read_end) of the first piece and of the second,
  /// not clipped to the axis (a window may stand over its ends).
  std::array<AttributeExpression, 2> read_begin, read_end;
};

/// What an attribute is in the pieces, where it is not what it is in the whole.
struct LocalAttribute {
  std::string name;
  AttributeExpression first, second;
};

/// One way to compute an operator in two parts. Expressions speak of the variables of `rule`.
struct PartitionStrategy {
  std::string op;
  std::string variable;          ///< As the definition calls it.
  std::string reducer;           ///< "sum", "max", ...: the parts are combined by it. Empty: they are concatenated.
  AttributeExpression axis;      ///< Concatenation: the axis of every output.
  std::uint32_t cut = 0;         ///< The attribute variable of `rule` that is the cut point.
  AttributeExpression extent;    ///< Of the range that is cut: 0 < cut < extent.
  std::vector<InputCut> inputs;  ///< Axes that are cut; all others are read whole.
  std::vector<LocalAttribute> attributes;
  /// Results that are cut off a piece, since it has to make them to make its part: so many behind the part of the first
  /// one, and before that of the second.
  AttributeExpression behind_first, before_second;
  Substitution rule;

  [[nodiscard]] bool concatenates() const { return reducer.empty(); }
};

/// An index variable that no strategy cuts.
struct UncutVariable {
  std::string variable;
  bool reduction = false;
  std::string reason;
};

struct OperatorStrategies {
  std::vector<PartitionStrategy> strategies;
  std::vector<UncutVariable> uncut;  ///< Each variable once.
};

/// What the definition of `op`, which the registry must have, gives. An operator that is not understood has one uncut
/// variable, "*". Rules are named "OP_cut_VARIABLE", with a number where there are several.
[[nodiscard]] OperatorStrategies derive_strategies(const OperatorRegistry& registry, std::string_view op);

/// Partial results that travel through an operator: an operator that is linear in some inputs makes partial sums of its
/// results of partial sums of them, one that keeps maxima does the same with maxima (operators/dependence.h). Each is a
/// rule "operator of combined parts => combined operators of parts".
struct PartialPassage {
  std::string op;
  std::vector<std::size_t> inputs;  ///< The operands that are partial; all others are the same in both parts.
  std::string reducer;              ///< "sum" or "max".
  Substitution rule;
};

/// One for each single input and one for all inputs together, as far as the definition shows it.
[[nodiscard]] std::vector<PartialPassage> derive_passages(const OperatorRegistry& registry, std::string_view op);

/// The element-wise operator of two inputs that a reduction repeats: `add` for "sum"; empty if there is none.
[[nodiscard]] std::string combining_operator(const OperatorRegistry& registry, std::string_view reducer);

}  // namespace taso
