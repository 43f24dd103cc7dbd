#include "runtime/cpu/loops.h"

namespace taso::cpu {

// One per instruction set; see cpu/loops_body.h.
const LoopTable* loops_for_generic();
#if TASO_X86_LOOPS
const LoopTable* loops_for_avx2();
const LoopTable* loops_for_avx512();
#endif

const LoopTable* generic_loops() { return loops_for_generic(); }

const LoopTable* avx2_loops() {
#if TASO_X86_LOOPS
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return loops_for_avx2();
#endif
  return nullptr;
}

const LoopTable* avx512_loops() {
#if TASO_X86_LOOPS
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return loops_for_avx512();
#endif
  return nullptr;
}

const LoopTable& loops() {
  static const LoopTable& best = [&]() -> const LoopTable& {
    if (const LoopTable* table = avx512_loops()) return *table;
    if (const LoopTable* table = avx2_loops()) return *table;
    return *generic_loops();
  }();
  return best;
}

const UnaryEntry* find_unary(std::string_view name) {
  const LoopTable& table = loops();
  for (int i = 0; i < table.unary_count; ++i)
    if (table.unary[i].name == name) return &table.unary[i];
  return nullptr;
}

const BinaryEntry* find_binary(std::string_view name) {
  const LoopTable& table = loops();
  for (int i = 0; i < table.binary_count; ++i)
    if (table.binary[i].name == name) return &table.binary[i];
  return nullptr;
}

}  // namespace taso::cpu
