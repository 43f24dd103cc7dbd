/// The integer element types i8 to u64, which wrap around, and truth values: their elements as 64-bit words.
///
/// A word holds an element extended to 64 bits, by its sign where the type has one; of u64 it is the same bits, so that
/// large ones look negative. A truth value is 0 or 1.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/tensor_type.h"

namespace taso {

/// i8 to u64.
[[nodiscard]] bool is_integer(ElementType type);
/// Integers and truth values: what words hold.
[[nodiscard]] bool is_word(ElementType type);
/// Whether integers of the type have no sign.
[[nodiscard]] bool is_unsigned(ElementType type);
/// The element of the type that a word is modulo 2^n, as a word; of truth values: whether it is not 0. The type is one
/// of words (TASO_CHECK), here and below.
[[nodiscard]] std::int64_t wrapped(std::int64_t word, ElementType type);
/// Whether a number is an element of the type, which may be real: then to its nearest, where that is finite.
[[nodiscard]] bool has_number(ElementType type, double number);

/// Element `index` of an array of the type; any byte other than 0 is a true one.
[[nodiscard]] std::int64_t load_word(const std::byte* elements, ElementType type, std::size_t index);
/// Writes element `index`, wrapped.
void store_word(std::byte* elements, ElementType type, std::size_t index, std::int64_t word);

}  // namespace taso
