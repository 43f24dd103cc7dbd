/// A cut of one index variable of a model: what each input and attribute is in the pieces. Private to the folder.
#pragma once

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
};

struct VariableCut {
  OperatorModel model;  ///< With the cut point, and what else is given, among its variables.
  std::size_t variable = 0;
  std::uint32_t point = 0;  ///< The attribute variable that is the cut point.
  SizePolynomial extent;    ///< Of the range.
  std::vector<AxisCut> axes;
  std::map<SizeAtomId, std::pair<SizePolynomial, SizePolynomial>> attributes;  ///< Elements that differ in the pieces.
  std::vector<Condition> conditions;
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
};
[[nodiscard]] CutResult cut_variable(const OperatorModel& model, std::size_t variable, RemainderCase remainders);

/// Whether a remainder by something else than 1 is taken of the variable.
[[nodiscard]] bool has_remainder(const OperatorModel& model, std::size_t variable);

}  // namespace taso
