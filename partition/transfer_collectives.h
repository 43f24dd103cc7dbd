/// A transfer as operations of a library of collectives (NCCL's all-reduce, all-gather, ...), for programs in which
/// every device runs the same sequence of them.
///
/// A transfer schedule (partition/transfer_schedule.h) says box by box who sends what to whom, which any placements
/// allow. Collectives want placements that are regular: every mesh axis cuts one axis of the tensor into equal pieces,
/// or repeats, or has partial results. From one such placement to another lead at most: a reduce-scatter or an
/// all-reduce along the mesh axes that are partial, all-to-alls along those that cut another axis than before,
/// all-gathers along those that cut no longer; what a device then has too much of it leaves out. Where the placement
/// that is needed is not regular (halos, a part of a tensor) devices gather as much as they need. Where the one that
/// there is is not (uneven pieces, devices that have nothing), or where a library lacks an operation, everybody gets
/// the parts of everybody in its group, filled up to one size, and combines them by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/tensor_type.h"
#include "partition/mesh.h"
#include "partition/placement.h"

namespace taso {

/// What a library of collectives can do. All have all-gathers.
struct CollectiveVocabulary {
  std::vector<std::string> all_reduce;      ///< The reducers of its all-reduce: "sum", "max".
  std::vector<std::string> reduce_scatter;  ///< Those of its reduce-scatter.
  bool all_to_all = true;
  bool groups = true;  ///< Whether some of the devices may be a group. False: an operation is among all of them.
};

/// The mesh axes that cut a tensor, per axis of the tensor, outer ones first: a device has the piece whose number is
/// the device's places along these axes, the first one most significant. All pieces are equal.
using AxisCuts = std::vector<std::vector<std::size_t>>;

/// Of a placement of a tensor of this shape; nothing where it is not regular. Axes along which it is partial cut
/// nothing.
[[nodiscard]] std::optional<AxisCuts> axis_cuts(const Placement& placement, const Shape& shape, const Mesh& mesh);

/// The boxes of devices whose tensor is cut like this.
[[nodiscard]] std::vector<IndexBox> boxes_cut_by(const AxisCuts& cuts, const Shape& shape, const Mesh& mesh);

/// One operation. Devices are in groups: those that differ along `mesh_axes` alone, in the order of their numbers.
struct Collective {
  enum class Kind : std::uint8_t {
    all_reduce,      ///< Everybody gets the combination of all tensors of the group.
    reduce_scatter,  ///< Device i of the group gets piece i of it, which is cut along `axis`.
    all_gather,      ///< Everybody gets the tensors of the group, concatenated along `axis`.
    all_to_all,  ///< Of what everybody cuts along `split_axis`, device i gets the pieces i, concatenated along `axis`.
    gather_parts,  ///< Everybody gets the tensors of the group, which need not be equal in size.
  };
  Kind kind = Kind::all_gather;
  std::vector<std::size_t> mesh_axes;  ///< Ascending.
  std::size_t axis = 0, split_axis = 0;
  std::string reducer;        ///< Of the first two.
  std::int64_t elements = 0;  ///< Received, by all devices together, where everybody sends directly to everybody.
  auto operator<=>(const Collective&) const = default;
};
/// "all_gather", ...
[[nodiscard]] std::string_view name_of(Collective::Kind kind);

/// A transfer as operations that follow each other.
struct CollectiveTransfer {
  std::vector<Collective> steps;  ///< gather_parts, if at all, is the only one. Empty: nobody lacks anything.
  /// What devices have then, of which they take what they need; of gather_parts what they had before.
  Placement has;
  std::vector<std::size_t> reduced;  ///< The mesh axes along which `have` is partial and `need` is not.
};

/// From `have` to `need`, by what a vocabulary has. The way exists: transfer_schedule gives one (TASO_CHECK).
[[nodiscard]] CollectiveTransfer collective_transfer(const Placement& have, const Placement& need, const Shape& shape,
                                                     const Mesh& mesh, const CollectiveVocabulary& vocabulary);

/// The devices of a group, ascending: those that differ from a device along these mesh axes alone, itself among them.
[[nodiscard]] std::vector<std::size_t> group_of(std::size_t device, const std::vector<std::size_t>& mesh_axes,
                                                const Mesh& mesh);

/// "all-reduce along mesh axis 1, then all-gather of axis 0 along mesh axes 0, 1": a transfer in words.
[[nodiscard]] std::string to_string(const CollectiveTransfer& transfer);

}  // namespace taso
