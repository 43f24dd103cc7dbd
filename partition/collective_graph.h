/// Collectives as nodes of graphs, and the graph of one rank.
///
/// In a graph for several devices (Expansion with collectives, partition/expand.h) every collective is one node per
/// device, with the device's tensor as input and what the device gets as output. No specification defines these
/// operators: their names are those of Collective::Kind, gather_parts excepted, which is an all-gather of parts that
/// were padded. Their attributes: `number`, equal for the nodes of all devices and ascending in the order in which the
/// collectives run; `ranks`, the devices of the group; `mesh_axes`; `axis` and `split_axis`, from the front; `reducer`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "operators/registry.h"
#include "partition/mesh.h"
#include "partition/transfer_collectives.h"
#include "support/status.h"

namespace taso {

/// Whether a node is a collective.
[[nodiscard]] bool is_collective(const Node& node);

/// The node of one device, of a tensor of this type.
[[nodiscard]] Node collective_node(const Collective& collective, std::int64_t number, Value input,
                                   const TensorType& type, std::size_t device, const Mesh& mesh);

/// The graph of one rank: the nodes of its device and of none that its outputs need. Of the outputs of `whole`, which
/// are those of all devices, one device after the other, it has its own. Nodes have no device and keep their order of
/// ids, in which all ranks have their collectives alike.
[[nodiscard]] Graph graph_of_rank(const Graph& whole, std::size_t rank, std::size_t devices);

/// Whether every rank takes part in every collective of its groups: none may wait for one that has nothing to do with
/// the result. If not, the number of the first collective that not all of its group need.
[[nodiscard]] std::optional<std::int64_t> collective_that_not_all_need(const std::vector<Graph>& ranks);

/// What all devices compute together, as a graph for one: collectives are concatenations, slices and sums of the
/// tensors of their groups. Its outputs are those of one rank.
[[nodiscard]] Expected<Graph> without_collectives(const Graph& whole, std::size_t rank, std::size_t devices,
                                                  const OperatorRegistry& registry);

}  // namespace taso
