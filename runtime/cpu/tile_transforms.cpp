#include "runtime/cpu/tile_transforms.h"

#include "runtime/cpu/loops.h"

namespace taso::cpu {

// One per instruction set; see cpu/tile_transforms_body.h.
const TileTransforms* tile_transforms_for_generic();
#if TASO_X86_LOOPS
const TileTransforms* tile_transforms_for_avx2();
const TileTransforms* tile_transforms_for_avx512();
#endif

const TileTransforms* generic_tile_transforms() { return tile_transforms_for_generic(); }

const TileTransforms* avx2_tile_transforms() {
#if TASO_X86_LOOPS
  if (avx2_loops() != nullptr) return tile_transforms_for_avx2();
#endif
  return nullptr;
}

const TileTransforms* avx512_tile_transforms() {
#if TASO_X86_LOOPS
  if (avx512_loops() != nullptr) return tile_transforms_for_avx512();
#endif
  return nullptr;
}

const TileTransforms& tile_transforms() {
  static const TileTransforms& best = [&]() -> const TileTransforms& {
    if (const TileTransforms* table = avx512_tile_transforms()) return *table;
    if (const TileTransforms* table = avx2_tile_transforms()) return *table;
    return *generic_tile_transforms();
  }();
  return best;
}

}  // namespace taso::cpu
