/// At which numbers a statement on scalar expressions is tried. Private to the folder.
///
/// A statement may be false in a narrow interval only, or far away. So besides numbers of all magnitudes it is tried
/// where its expressions change what they do: where the operands of a max or min are equal, a sum or an argument is 0,
/// a floor has a step. Such places are found along lines, between two numbers at which the sign of a difference is not
/// the same, by bisection; where a difference comes close to 0 and turns round, by the search for its least value.
#pragma once

#include <array>
#include <vector>

#include "operators/number_program.h"

namespace taso {

/// A statement has at most so many variables.
inline constexpr std::size_t max_trial_variables = 3;
/// A number for each variable, then zeros.
using TrialPoint = std::array<double, max_trial_variables>;

/// Points for so many variables; of one variable they ascend.
[[nodiscard]] std::vector<TrialPoint> trial_points(const NumberProgram& program, std::size_t variables);

}  // namespace taso
