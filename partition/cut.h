/// A cut of one index variable of a model: what each input and attribute is in the pieces. Private to the folder.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "partition/operator_model.h"

namespace taso {

/// One axis of one tensor.
struct AxisCut {
  std::size_t tensor = 0, axis = 0;
  SizePolynomial first_end, second_begin;
  /// What is read of it: places from here on (first piece, second piece), and up to there; not clipped to the axis.
  std::array<SizePolynomial, 2> read_begin, read_end;

  /// A cut at a place, without a halo.
  [[nodiscard]] static AxisCut at(std::size_t tensor, std::size_t axis, const SizePolynomial& place,
                                  const SizePolynomial& extent) {
    return {tensor, axis, place, place, {SizePolynomial(), place}, {place, extent}};
  }
};

struct VariableCut {
  OperatorModel model;  ///< With the cut point, and what else is given, among its variables.
  std::size_t variable = 0;
  std::uint32_t point = 0;  ///< The attribute variable that is the cut point.
  SizePolynomial extent;    ///< Of the range.
  std::vector<AxisCut> axes;
  std::map<SizeAtomId, std::pair<SizePolynomial, SizePolynomial>> attributes;  ///< Elements that differ in the pieces.
  std::vector<Condition> conditions;
  /// Results that pieces make besides their parts, since no attribute says where reads begin: the first one so many
  /// behind its part, the second one so many before it.
  SizePolynomial behind_first, before_second;
};

/// What a remainder `i % n` of the variable is taken to be.
enum class RemainderCase : std::uint8_t {
  index,  ///< i, where n is the extent of the variable.
  zero,   ///< 0, where n is 1.
};

/// The cuts of a variable of a model; or why there is none.
struct CutResult {
  std::vector<VariableCut> cuts;
  std::string obstacle;
  bool lacks_begin = false;  ///< The obstacle: a piece reads before its part, and no attribute says where reads begin.
  /// The factor of a composite axis that is found by division and would have to be 1.
  std::optional<std::string> unit;
};
[[nodiscard]] CutResult cut_variable(const OperatorModel& model, std::size_t variable, RemainderCase remainders);

/// The same where an input is read at a row-major position (`x.flat[position(I, shape)]`): an axis of the input is cut
/// where as many elements come before. Shapes must have digits in common: what stands before both axes must be equal,
/// axis by axis or an axis the product of several; what stands behind them likewise, or one shape has more axes there,
/// and a piece of the other one has as many times more elements.
[[nodiscard]] CutResult cut_of_position(const OperatorModel& model, std::size_t variable);

/// The same for a variable of a row of segments (SegmentRow), where the cut is in its segment: what is before it is all
/// of the first piece, what is behind it all of the second one, where pieces of other segments have no elements.
[[nodiscard]] CutResult cut_of_segment(const OperatorModel& model, std::size_t variable);

/// Whether a remainder by something else than 1 is taken of the variable.
[[nodiscard]] bool has_remainder(const OperatorModel& model, std::size_t variable);

}  // namespace taso
