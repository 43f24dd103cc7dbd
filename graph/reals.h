/// The real element types f16, bf16, f32 and f64: their elements as numbers, and rounding.
///
/// Operators are defined over the reals, and rules are theorems about reals. In which type a tensor is kept is a
/// property of the tensor (TensorType::element): all real operands and results of one operator have the same.
#pragma once

#include <cstddef>

#include "graph/tensor_type.h"

namespace taso {

/// Whether the elements are floating-point numbers that operators compute with.
[[nodiscard]] bool is_real(ElementType type);
/// The type in which values of a type are computed where it has no arithmetic of its own: f32 for 16 bits, itself else.
[[nodiscard]] ElementType working_type(ElementType type);
/// Half of the distance from 1 to the next larger number: the largest relative error of rounding. Of f32: 2^-24. The
/// type is real (TASO_CHECK), here and below.
[[nodiscard]] double unit_roundoff(ElementType type);
/// The smallest positive number of full precision. Of f32: 2^-126.
[[nodiscard]] double least_normal(ElementType type);
/// The nearest number of the type, ties to even; infinite beyond the range.
[[nodiscard]] double rounded(double value, ElementType type);
/// Whether rounding keeps what a number is: neither does a finite one become infinite, nor one other than 0 become 0.
[[nodiscard]] bool is_in_range(double value, ElementType type);

/// Element `index` of an array of the type.
[[nodiscard]] double load_real(const std::byte* elements, ElementType type, std::size_t index);
/// Writes element `index`, rounded.
void store_real(std::byte* elements, ElementType type, std::size_t index, double value);
/// Converts `count` elements between two real types (equal ones: copies), to the nearest, ties to even; NaN stays NaN.
/// The ranges do not overlap.
void convert_reals(const std::byte* from, ElementType from_type, std::byte* to, ElementType to_type, std::size_t count);

}  // namespace taso
