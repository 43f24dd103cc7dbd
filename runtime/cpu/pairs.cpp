#include "runtime/cpu/pairs.h"

#include "runtime/cpu/loops.h"

namespace taso::cpu {

// One per instruction set; see cpu/pairs_body.h.
const PairTable* pairs_for_generic();
#if TASO_X86_LOOPS
const PairTable* pairs_for_avx2();
const PairTable* pairs_for_avx512();
#endif

const PairTable* generic_pairs() { return pairs_for_generic(); }

const PairTable* avx2_pairs() {
#if TASO_X86_LOOPS
  if (avx2_loops() != nullptr) return pairs_for_avx2();
#endif
  return nullptr;
}

const PairTable* avx512_pairs() {
#if TASO_X86_LOOPS
  if (avx512_loops() != nullptr) return pairs_for_avx512();
#endif
  return nullptr;
}

const PairTable& pairs() {
  static const PairTable& best = [&]() -> const PairTable& {
    if (const PairTable* table = avx512_pairs()) return *table;
    if (const PairTable* table = avx2_pairs()) return *table;
    return *generic_pairs();
  }();
  return best;
}

}  // namespace taso::cpu
