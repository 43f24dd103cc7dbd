/// An operator's definition read at shapes and attributes that are not known: which index variables there are, where
/// they stand in the output or which reduction they belong to, and where each read is, as polynomials over what a rule
/// can speak of. From this strategies are derived (partition/derive.cpp). Private to the folder.
///
/// Idea: what a definition says of all axes of a rest `D..` alike it says of one of them. So a rest has one axis in the
/// model, which stands for any (an open rest), as long as nothing but index vectors over it is read. Where attributes
/// have an entry per axis (`starts: int[length(D)]`, `shape: int[]`) ranks are numbers, and there is a model for each.
/// A list that names axes (`on(axes, ..)`, a permutation) has known values in the model, and what they name has the
/// elements of the list as numbers.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operators/registry.h"
#include "partition/size_polynomial.h"
#include "support/status.h"

namespace taso {

/// Largest rank, and length of a list with an entry per axis, where these are numbers.
inline constexpr std::size_t max_model_rank = 4;
/// Most axes that a list names.
inline constexpr std::size_t max_named_axes = 3;

/// What is chosen before a model is made.
struct ModelChoice {
  std::map<std::string, std::size_t> rests;  ///< Ranks that are numbers.
  std::map<std::string, std::size_t> lists;  ///< Lengths of lists.
  std::optional<std::string> unit;           ///< The factor of a composite axis that is 1.
};

struct ModelAxis {
  SizePolynomial number;  ///< As a rule counts it: negative.
  SizePolynomial extent;
  std::vector<SizePolynomial> factors;  ///< Outermost first: one, but for a composite axis.
  std::string rest;                     ///< The open rest of which this is any axis; else empty.
};

struct ModelTensor {
  std::string name;
  std::vector<ModelAxis> axes;
};

/// An index variable.
struct ModelVariable {
  std::string name;
  SizeAtomId index = 0;
  SizePolynomial extent;
  std::string reducer;    ///< "sum", ...; empty for a digit of the output.
  std::string obstacle;   ///< Why no piece of its range makes a piece or a part of the output; or empty.
  std::size_t axis = 0;   ///< Of the output.
  std::size_t digit = 0;  ///< Of that axis.
  std::optional<std::size_t> row = std::nullopt;  ///< Its segment is one of OperatorModel::rows.
};

/// What an index variable ranges over: a stretch of an output axis that an equation of its own writes, or the axis of
/// one of several outputs.
struct ModelSegment {
  std::size_t variable = 0;
  SizePolynomial offset, extent;  ///< Where it begins in the row, and how much it is.
};

/// Segments one behind the other, which are cut as one range: the axis of a concatenation, or the same axis of several
/// outputs whose extents differ.
struct SegmentRow {
  std::size_t axis = 0;  ///< Of the output, or of every output.
  bool of_outputs = false;
  std::vector<ModelSegment> segments;
};

/// A read of an input.
struct ModelRead {
  std::size_t tensor = 0;
  std::vector<std::vector<SizePolynomial>> coordinates;  ///< Digits per axis.
  std::optional<SizePolynomial> flat;                    ///< Instead: a row-major position.
  bool may_leave = false;                                ///< Something else stands for elements outside.
};

/// A size that is a scalar, or the difference of what a condition compares.
struct ModelSize {
  SizePolynomial value;
  std::string text;
};

/// An axis that is read where an input of integers says (operators/indirect_coordinate.h): the read is a sum over all
/// places of the axis, of which the one at `index % places - offset` counts, if it is one of them.
struct ModelIndirect {
  std::size_t variable = 0;  ///< That of the sum.
  SizePolynomial places, offset;
  std::string text;
};

/// An element of a recurrence is made of another one: coordinates of both.
struct ModelStep {
  std::vector<SizePolynomial> made, read;
};

/// A given variable that is a factor of an axis: factor * rest == axis.
struct ModelFactor {
  std::string name;  ///< In the definition.
  std::uint32_t variable = 0;
  SizePolynomial rest, axis;
};

/// An attribute of the source.
struct ModelAttribute {
  std::string name;
  AttributeExpression value;         ///< As the source writes it.
  std::vector<SizePolynomial> list;  ///< Its elements; of an integer one.
  bool names_axes = false;
};

/// The axes of an open rest, as the variable `variable` of a rule numbers them in the output.
struct ModelRest {
  std::uint32_t variable = 0;
  SizePolynomial least, most;
};

struct OperatorModel {
  const OperatorDefinition* definition = nullptr;
  SizeAtoms atoms;
  std::vector<std::string> attribute_variables;  ///< Of the rule: those of the source, then given ones.
  std::vector<ModelAttribute> attributes;
  std::vector<ModelTensor> tensors;
  std::vector<std::vector<ModelAxis>> outputs;
  std::vector<ModelVariable> variables;
  std::vector<SegmentRow> rows;
  std::vector<ModelRead> reads;
  std::vector<ModelSize> sizes, comparisons;
  std::vector<ModelStep> steps;
  std::vector<ModelIndirect> indirect;
  std::vector<ModelFactor> factors;
  std::map<std::string, ModelRest> rests;
  std::set<SizeAtomId> positive;      ///< Atoms that are at least 1.
  std::set<SizeAtomId> nonnegative;   ///< At least 0.
  std::vector<Condition> conditions;  ///< Of the choice: ranks, a factor that is 1.
};

/// The choices with which all of an operator is covered, as far as this goes.
[[nodiscard]] std::vector<ModelChoice> model_choices(const OperatorDefinition& definition);

/// The model; an error says what of the definition is not understood, or that the choice does not fit.
[[nodiscard]] Expected<OperatorModel> make_model(const OperatorRegistry& registry, const OperatorDefinition& definition,
                                                 const ModelChoice& choice);

}  // namespace taso
