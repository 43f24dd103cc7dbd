/// What Winograd's convolutions compute besides products: tiles of an image to and from the form in which a convolution
/// is a product per element. Compiled once per instruction set, as the loops of cpu/loops.h; channels lie together.
///
/// F(2x2, 3x3) of Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks" (CVPR 2016): y = A' ((G g G') *
/// (B' d B)) A for a tile d of 4 x 4, a window g of 3 x 3 and 2 x 2 results y.
#pragma once

#include <cstdint>

namespace taso::cpu {

/// Results along an axis of a tile, elements along an axis of what they are computed from, and all of these.
inline constexpr std::int64_t tile_results = 2, tile_extent = 4, tile_elements = 16;

/// The transforms of one instruction set.
struct TileTransforms {
  /// B' d B: v[i * stride + c] for the elements i of a tile whose pixels have `channels` numbers each.
  void (*input)(const float* const* pixels, float* v, std::int64_t stride, std::int64_t channels);
  /// A' m A of m[i * stride + c], plus bias[c] and added[j][c], for the results j of a tile; not below 0 if `relu`.
  /// `bias` and `added` may be null. What is added may lie where the result does.
  void (*output)(const float* m, std::int64_t stride, const float* bias, const float* const* added,
                 float* const* pixels, bool relu, std::int64_t channels);
};

/// The best ones for this processor.
[[nodiscard]] const TileTransforms& tile_transforms();

/// The tables themselves (tests compare them). Null where not compiled for this architecture or not runnable here.
[[nodiscard]] const TileTransforms* generic_tile_transforms();
[[nodiscard]] const TileTransforms* avx2_tile_transforms();
[[nodiscard]] const TileTransforms* avx512_tile_transforms();

}  // namespace taso::cpu
