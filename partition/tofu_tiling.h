/// Tilings of tensors: along which axis each step of a recursion cuts a tensor (Tofu, Wang, Huang, Li 2019,
/// section 5.2; SoyBean, Wang et al. 2018, section 4), and how many elements devices receive where a tensor is not as
/// it is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "graph/tensor_type.h"
#include "partition/operator_piece.h"

namespace taso {

/// Numbers of groups that the devices are divided into, step by step; their product is the number of devices. The place
/// of a device in the last step runs fastest.
using TilingSteps = std::vector<std::int64_t>;

/// Per step, the axis that it cuts; nothing where all groups of the step have the same.
using TensorTiling = std::vector<std::optional<std::size_t>>;

/// The tilings that begin with `first`, in a fixed order. Every step cuts an axis that has as many indices as pieces
/// then; with `replicate` it may also leave the tensor whole. A step that cannot cut any axis leaves it whole.
[[nodiscard]] std::vector<TensorTiling> tilings_of(const Shape& shape, const TilingSteps& steps, bool replicate,
                                                   const TensorTiling& first = {});

/// The number of tilings that differ in the pieces, not only in the order of steps of one size: C(3 + 3, 3) = 20 for
/// four axes and three steps of 2.
[[nodiscard]] std::size_t count_flat_tilings(const Shape& shape, const TilingSteps& steps, bool replicate);

/// The box of every device. An axis that several steps cut is cut once, into as many pieces as their product
/// (piece_begin).
[[nodiscard]] std::vector<IndexBox> boxes_of(const Shape& shape, const TensorTiling& tiling, const TilingSteps& steps);

/// Elements in both boxes.
[[nodiscard]] std::int64_t overlap_of(const IndexBox& a, const IndexBox& b);

/// Elements that all devices together receive so that each has `need` where it owns `own`: needed minus owned.
[[nodiscard]] double fetched(const std::vector<IndexBox>& need, const std::vector<IndexBox>& own);

/// Elements that all devices together receive so that each owns all of `own` where each has made `made`, a summand of
/// as many as `summands` to every element: of each summand what it has not made itself (partition-n-reduce: partial
/// results are reduced where they are kept, section 4.1).
[[nodiscard]] double reduced(const std::vector<IndexBox>& made, std::int64_t summands,
                             const std::vector<IndexBox>& own);

}  // namespace taso
