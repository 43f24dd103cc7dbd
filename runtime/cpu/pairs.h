/// Loops over contiguous floats that take two operations of arithmetic at once, one on the result of the other, so that
/// it need not go through memory. Compiled once per instruction set, as those of cpu/loops.h. Every element is what the
/// loops of the two operations by themselves compute, to the bit: neither is contracted with the other.
#pragma once

#include <cstdint>

namespace taso::cpu {

enum class Arithmetic : std::uint8_t { add, subtract, multiply, divide };
inline constexpr int arithmetic_count = 4;

/// y[i] = second(first(a[i], b[i]), c[i]), or second(c[i], first(a[i], b[i])). y may be any of the operands.
using PairLoop = void (*)(const float* a, const float* b, const float* c, float* y, std::int64_t count);

/// The loops of one pair of operations, by which of the operands are one number for all elements. Where a and b both
/// are, the first operation is no loop.
struct PairLoops {
  PairLoop of[6];
  [[nodiscard]] PairLoop find(bool a_is_one, bool b_is_one, bool c_is_one) const {
    return of[(a_is_one ? 4 : b_is_one ? 2 : 0) + (c_is_one ? 1 : 0)];
  }
};

/// The pairs of one first operation: [second][1: its result is the second one's right operand].
struct PairsOfFirst {
  PairLoops of[arithmetic_count][2];
};

/// y[i] = ((a[i] first b) * c) * d[i] fourth e[i], where b and c are one number each: how normalisations end. y may be
/// a, d or e.
using ChainLoop = void (*)(const float* a, const float* b, const float* c, const float* d, const float* e, float* y,
                           std::int64_t count);

/// The pairs and chains of one instruction set.
struct PairTable {
  PairsOfFirst of[arithmetic_count];
  ChainLoop chains[2][2][2];  ///< [first is a difference][fourth is one][d and e are one number each].
  [[nodiscard]] ChainLoop find_chain(Arithmetic first, Arithmetic fourth, bool d_and_e_are_one) const {
    return chains[first == Arithmetic::subtract ? 1 : 0][fourth == Arithmetic::subtract ? 1 : 0]
                 [d_and_e_are_one ? 1 : 0];
  }
  [[nodiscard]] const PairLoops& find(Arithmetic first, Arithmetic second, bool on_right) const {
    return of[static_cast<int>(first)].of[static_cast<int>(second)][on_right ? 1 : 0];
  }
};

/// The best table for this processor.
[[nodiscard]] const PairTable& pairs();

/// The tables themselves (tests compare them). Null where not compiled for this architecture or not runnable here.
[[nodiscard]] const PairTable* generic_pairs();
[[nodiscard]] const PairTable* avx2_pairs();
[[nodiscard]] const PairTable* avx512_pairs();

}  // namespace taso::cpu
