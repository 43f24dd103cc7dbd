#pragma once

// The loops of cpu/pairs.h, included once per instruction set with TASO_PAIRS_NAME defined as the function to define.
// Internal linkage and no library templates, as in cpu/loops_body.h. Compiled with -ffp-contract=off: each operation
// rounds as it does by itself.

#include <stdint.h>  // NOLINT(modernize-deprecated-headers)

#include "runtime/cpu/pairs.h"

namespace taso::cpu {
namespace {

struct AddPair {
  static float apply(float a, float b) { return a + b; }
};
struct SubtractPair {
  static float apply(float a, float b) { return a - b; }
};
struct MultiplyPair {
  static float apply(float a, float b) { return a * b; }
};
struct DividePair {
  static float apply(float a, float b) { return a / b; }
};

/// A, B, C: whether an operand differs from element to element.
template <class First, class Second, bool OnRight, bool A, bool B, bool C>
void pair_loop(const float* a, const float* b, const float* c, float* y, int64_t count) {
  const float a0 = *a, b0 = *b, c0 = *c;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float first = First::apply(A ? a[i] : a0, B ? b[i] : b0), other = C ? c[i] : c0;
    y[i] = OnRight ? Second::apply(other, first) : Second::apply(first, other);
  }
}

template <class First, class Second, bool OnRight>
constexpr PairLoops pair_loops() {
  return {{pair_loop<First, Second, OnRight, true, true, true>, pair_loop<First, Second, OnRight, true, true, false>,
           pair_loop<First, Second, OnRight, true, false, true>, pair_loop<First, Second, OnRight, true, false, false>,
           pair_loop<First, Second, OnRight, false, true, true>,
           pair_loop<First, Second, OnRight, false, true, false>}};
}

template <class First>
constexpr PairsOfFirst pairs_of_first() {
  return {{{pair_loops<First, AddPair, false>(), pair_loops<First, AddPair, true>()},
           {pair_loops<First, SubtractPair, false>(), pair_loops<First, SubtractPair, true>()},
           {pair_loops<First, MultiplyPair, false>(), pair_loops<First, MultiplyPair, true>()},
           {pair_loops<First, DividePair, false>(), pair_loops<First, DividePair, true>()}}};
}

/// D: whether d and e differ from element to element.
template <class First, class Fourth, bool D>
void chain_loop(const float* a, const float* b, const float* c, const float* d, const float* e, float* y,
                int64_t count) {
  const float b0 = *b, c0 = *c, d0 = *d, e0 = *e;
#pragma omp simd
  for (int64_t i = 0; i < count; ++i)
    y[i] = Fourth::apply(First::apply(a[i], b0) * c0 * (D ? d[i] : d0), D ? e[i] : e0);
}

}  // namespace

const PairTable* TASO_PAIRS_NAME();

const PairTable* TASO_PAIRS_NAME() {
  static constexpr PairTable table = {
      {pairs_of_first<AddPair>(), pairs_of_first<SubtractPair>(), pairs_of_first<MultiplyPair>(),
       pairs_of_first<DividePair>()},
      {{{chain_loop<AddPair, AddPair, true>, chain_loop<AddPair, AddPair, false>},
        {chain_loop<AddPair, SubtractPair, true>, chain_loop<AddPair, SubtractPair, false>}},
       {{chain_loop<SubtractPair, AddPair, true>, chain_loop<SubtractPair, AddPair, false>},
        {chain_loop<SubtractPair, SubtractPair, true>, chain_loop<SubtractPair, SubtractPair, false>}}}};
  return &table;
}

}  // namespace taso::cpu
