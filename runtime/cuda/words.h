/// Elements that are no reals, or of several types: one kernel of the kind *each* (elements.h) for all functions and
/// types, which looks at both for every element. Masks are small; what is computed with reals has kernels of its type.
#pragma once

#include <cmath>
#include <cstdint>

#include "runtime/cuda/scalar.h"
#include "runtime/cuda/walk.h"

namespace taso::cuda {

/// How an operand of Words stores its elements.
enum class WordType : std::uint8_t { boolean, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32 };

/// What Words computes of its operands a, b and c, in this order.
enum class WordFunction : std::uint8_t {
  convert,  ///< As the operator cast.
  select,   ///< b where a is true, else c.
  less,     ///< Of reals or integers, as the two that follow.
  less_equal,
  equal,
  is_nan,
  add,  ///< From here on of integers, which wrap around, and truth values.
  sub,
  mul,
  minimum,
  maximum,
  negate,
  absolute,
  bit_and,
  bit_or,
  bit_xor,
  bit_not,
  logical_not,
};

TASO_BOTH bool is_real_word(WordType type) { return type >= WordType::f16; }

/// An element on its way: a real as a float, an integer as the 64 bits that hold it.
struct Register {
  std::uint64_t word = 0;
  float real = 0;
};

template <class T>
TASO_BOTH Register word_register(const void* from, std::int64_t at) {
  return {static_cast<std::uint64_t>(static_cast<const T*>(from)[at]), 0};
}
template <class T>
TASO_BOTH Register real_register(const void* from, std::int64_t at) {
  return {0, widen(static_cast<const T*>(from)[at])};
}

TASO_BOTH Register load_word(WordType type, const void* from, std::int64_t at) {
  switch (type) {
    case WordType::boolean:
      return {static_cast<const std::uint8_t*>(from)[at] != 0 ? 1U : 0U, 0};
    case WordType::i8:
      return word_register<std::int8_t>(from, at);
    case WordType::i16:
      return word_register<std::int16_t>(from, at);
    case WordType::i32:
      return word_register<std::int32_t>(from, at);
    case WordType::u8:
      return word_register<std::uint8_t>(from, at);
    case WordType::u16:
      return word_register<std::uint16_t>(from, at);
    case WordType::u32:
      return word_register<std::uint32_t>(from, at);
    case WordType::i64:
    case WordType::u64:
      return word_register<std::uint64_t>(from, at);
    case WordType::f16:
      return real_register<Half>(from, at);
    case WordType::bf16:
      return real_register<BFloat16>(from, at);
    case WordType::f32:
      return real_register<float>(from, at);
  }
  return {};
}

TASO_BOTH void store_word(WordType type, void* to, std::int64_t at, const Register& value) {
  switch (type) {
    case WordType::boolean:
    case WordType::i8:
    case WordType::u8:
      static_cast<std::uint8_t*>(to)[at] = static_cast<std::uint8_t>(value.word);
      return;
    case WordType::i16:
    case WordType::u16:
      static_cast<std::uint16_t*>(to)[at] = static_cast<std::uint16_t>(value.word);
      return;
    case WordType::i32:
    case WordType::u32:
      static_cast<std::uint32_t*>(to)[at] = static_cast<std::uint32_t>(value.word);
      return;
    case WordType::i64:
    case WordType::u64:
      static_cast<std::uint64_t*>(to)[at] = value.word;
      return;
    case WordType::f16:
      static_cast<Half*>(to)[at] = narrow<Half>(value.real);
      return;
    case WordType::bf16:
      static_cast<BFloat16*>(to)[at] = narrow<BFloat16>(value.real);
      return;
    case WordType::f32:
      static_cast<float*>(to)[at] = value.real;
      return;
  }
}

/// The whole number towards 0; of what does not fit, the number that processors of the x86 kind make.
TASO_BOTH std::uint64_t whole_word(float value, WordType to) {
  const float cut = truncf(value);
  if (to == WordType::u64 && cut >= 0x1p63F && cut < 0x1p64F) return static_cast<std::uint64_t>(cut);
  const bool wide = to == WordType::i64 || to == WordType::u64 || to == WordType::u32;
  const float end = wide ? 0x1p63F : 0x1p31F;
  if (cut >= -end && cut < end) return static_cast<std::uint64_t>(static_cast<std::int64_t>(cut));
  return wide ? std::uint64_t{1} << 63 : ~std::uint64_t{0} << 31;
}

TASO_BOTH Register converted_word(const Register& x, WordType from, WordType to) {
  if (to == WordType::boolean) return {is_real_word(from) ? (x.real != 0 ? 1U : 0U) : (x.word != 0 ? 1U : 0U), 0};
  if (!is_real_word(to)) return {is_real_word(from) ? whole_word(x.real, to) : x.word, 0};
  if (is_real_word(from)) return x;
  return {0,
          from == WordType::u64 ? static_cast<float>(x.word) : static_cast<float>(static_cast<std::int64_t>(x.word))};
}

/// Elements that are no reals, or of several types: masks, comparisons, choices, conversions. The walk goes over the
/// output: y, a, b, c; operands that the function does not have are not read.
struct Words {
  const void *a, *b, *c;
  void* y;
  Walk<4> walk;
  WordType operands;  ///< Of what is computed with: of a, or of b and c of a choice.
  WordType result;
  WordFunction function;

  TASO_BOTH static bool before(const Register& p, const Register& q, WordType type) {
    if (is_real_word(type)) return p.real < q.real;
    if (type == WordType::u64) return p.word < q.word;
    return static_cast<std::int64_t>(p.word) < static_cast<std::int64_t>(q.word);
  }
  TASO_BOTH static bool same(const Register& p, const Register& q, WordType type) {
    return is_real_word(type) ? p.real == q.real : p.word == q.word;
  }

  TASO_BOTH void operator()(std::int64_t i) const {
    std::int64_t at[4];
    walk.at(i, at);
    if (function == WordFunction::select) {
      const bool first = static_cast<const std::uint8_t*>(a)[at[1]] != 0;
      store_word(result, y, at[0], load_word(operands, first ? b : c, first ? at[2] : at[3]));
      return;
    }
    const Register p = load_word(operands, a, at[1]);
    Register q, z;
    if (b != nullptr) q = load_word(operands, b, at[2]);
    const auto truth = [&](bool value) { z.word = value ? 1 : 0; };
    switch (function) {
      case WordFunction::convert:
        z = converted_word(p, operands, result);
        break;
      case WordFunction::select:
        break;
      case WordFunction::less:
        truth(before(p, q, operands));
        break;
      case WordFunction::less_equal:
        truth(before(p, q, operands) || same(p, q, operands));
        break;
      case WordFunction::equal:
        truth(same(p, q, operands));
        break;
      case WordFunction::is_nan:
        truth(p.real != p.real);
        break;
      case WordFunction::add:
        z.word = p.word + q.word;
        break;
      case WordFunction::sub:
        z.word = p.word - q.word;
        break;
      case WordFunction::mul:
        z.word = p.word * q.word;
        break;
      case WordFunction::minimum:
        z = before(q, p, operands) ? q : p;
        break;
      case WordFunction::maximum:
        z = before(p, q, operands) ? q : p;
        break;
      case WordFunction::negate:
        z.word = 0 - p.word;
        break;
      case WordFunction::absolute:
        z.word = before(p, Register{}, operands) ? 0 - p.word : p.word;
        break;
      case WordFunction::bit_and:
        z.word = p.word & q.word;
        break;
      case WordFunction::bit_or:
        z.word = p.word | q.word;
        break;
      case WordFunction::bit_xor:
        z.word = p.word ^ q.word;
        break;
      case WordFunction::bit_not:
        z.word = ~p.word;
        break;
      case WordFunction::logical_not:
        z.word = p.word ^ 1;
        break;
    }
    store_word(result, y, at[0], z);
  }
};

}  // namespace taso::cuda
