/// What devices keep of partial results that are combined by a reduce-scatter: the geometry that prices
/// (partition/placement.h) and schedules (partition/transfer_schedule.h) share.
///
/// Devices are combined along some mesh axes, inner ones first (hierarchical), and what each device keeps is cut along
/// one axis of the tensor. After the stages along some of the axes, a device has pieces of the box that it had.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "partition/mesh.h"
#include "partition/operator_piece.h"

namespace taso {

/// How partial results are combined.
struct Reduction {
  std::vector<std::size_t> axes;  ///< Mesh axes, ascending, along which they are; empty: there is nothing to combine.
  std::size_t tensor_axis = 0;    ///< Along which what devices keep is cut. Of a tensor without axes 0.
  /// Whether every device gets all of it again: pieces are gathered along the mesh axes, outer ones first (all-reduce).
  bool gathered = false;
  auto operator<=>(const Reduction&) const = default;
};

/// A tensor without axes is one with an axis of extent 1: a device may have nothing of it.
[[nodiscard]] IndexBox with_axis(const IndexBox& box);

/// Whether a reduce-scatter along this axis of the tensor is one to consider: it can be divided, or none can and it is
/// the first one, so that one device of a group (the last one: piece_begin) has all. `boxes` are not without axes.
[[nodiscard]] bool may_scatter(const std::vector<IndexBox>& boxes, std::size_t tensor_axis);

/// Which pieces of a range a device keeps after the stages along the last `stages` axes of a reduction: of `count` runs
/// of `run` pieces each piece number `index`. If pieces stay as they are in the end, their numbers run fastest along
/// the inner axes, as everywhere on a mesh, so that before the last stage a device has one piece for every place along
/// the axes that are left; if they are gathered, fastest along the outer ones, so that it has one piece throughout.
struct KeptPieces {
  std::int64_t count = 1, run = 1, index = 0;
  /// Of n indices, those of the piece in run `i`.
  [[nodiscard]] IndexRange range(std::int64_t n, std::int64_t i) const {
    return RangePiece{n, i * run + index, count * run}.range();
  }
};
[[nodiscard]] KeptPieces kept_pieces(const std::vector<std::int64_t>& place, const Reduction& reduction,
                                     std::size_t stages, const Mesh& mesh);

/// The pieces of `box`, a box with axes that all devices of a group have, that are kept: those that are not empty, in
/// order.
[[nodiscard]] std::vector<IndexBox> scattered(const IndexBox& box, const std::vector<std::int64_t>& place,
                                              const Reduction& reduction, std::size_t stages, const Mesh& mesh);

/// Places of all devices.
[[nodiscard]] std::vector<std::vector<std::int64_t>> places_on(const Mesh& mesh);

}  // namespace taso
