/// What collective operations take among devices of a mesh: payload of every device, exactly, and time.
///
/// A tensor is `elements` of `element_bytes` each; among k devices it has k pieces, piece i from floor(n*i/k) to
/// floor(n*(i+1)/k) (piece_begin), device i's own being piece i. A message of b bytes takes alpha + b / beta seconds:
/// latency and bandwidth of the axis; a device sends and receives at the same time, one message each (Hockney's model,
/// as in Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations in MPICH, 2005, section
/// 3). No message is sent for an empty piece. Adding elements up takes no time here, and nothing else uses the links.
/// An axis of size 1 and an empty tensor are free.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/mesh.h"

namespace taso {

/// Payload and time of a collective in one group of devices.
struct CollectiveCost {
  /// Bytes, per device of the group; of several axes the last runs fastest. Exact up to 2^53.
  std::vector<double> sent, received;
  double seconds = 0;  ///< Until the last device has finished.
};

/// Every device has a summand of the whole tensor; device i gets piece i of the sum. Ring: k - 1 steps, in each of
/// which every device sends one piece of partial sums on (Patarasuk and Yuan, Bandwidth Optimal All-Reduce, 2009).
/// Device i sends all pieces but its own, and receives all but that of the device before it.
/// (k - 1) (alpha + p / beta) seconds, p the bytes of the largest piece.
[[nodiscard]] CollectiveCost reduce_scatter(std::int64_t elements, std::int64_t element_bytes, const MeshAxis& axis);

/// Device i has piece i; every device gets the whole tensor. Ring (Thakur et al.): device i receives all pieces but its
/// own, and sends all but that of the device behind it. Time as reduce_scatter.
[[nodiscard]] CollectiveCost all_gather(std::int64_t elements, std::int64_t element_bytes, const MeshAxis& axis);

/// Every device has a summand of the whole tensor and gets the sum: reduce_scatter, then all_gather
/// (Rabenseifner's composition, in Thakur et al.).
[[nodiscard]] CollectiveCost all_reduce(std::int64_t elements, std::int64_t element_bytes, const MeshAxis& axis);

/// The same among the devices of several axes, slowest first: reduce_scatter along the last axis; all_reduce along the
/// others, of the piece that a device then has, groups side by side; all_gather along the last. Every stage waits for
/// the slowest group of the one before. No axes: free, for one device.
[[nodiscard]] CollectiveCost all_reduce(std::int64_t elements, std::int64_t element_bytes,
                                        const std::vector<MeshAxis>& axes);

/// The device numbered `root` has the tensor and every device gets it. A pipeline around the ring (Watts and van de
/// Geijn, A Pipelined Broadcast for Multidimensional Meshes, 1995): the pieces travel from the root to the device
/// before it, each sent on as soon as it is there. Every device but the root receives the tensor once. With b bytes in
/// m pieces that are not empty, and p in the largest: m alpha + b / beta + (k - 2) (alpha + p / beta) seconds. 0 <=
/// root < k.
[[nodiscard]] CollectiveCost broadcast(std::int64_t elements, std::int64_t element_bytes, std::int64_t root,
                                       const MeshAxis& axis);

/// The cut of a tensor moves from one of its axes to another: device i has piece i along the one, of extent `from`, and
/// gets piece i along the other, of extent `to`; `pair_bytes` are the bytes of one pair of indices. Pairwise exchange
/// (Thakur et al.): k - 1 steps, in step s device i sends to i + s; a step ends when its largest message has arrived.
[[nodiscard]] CollectiveCost all_to_all(std::int64_t from, std::int64_t to, std::int64_t pair_bytes,
                                        const MeshAxis& axis);

}  // namespace taso
