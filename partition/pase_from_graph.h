/// A graph as PaSE sees it (pase_graph.h): layers with iteration domains, made from the definitions of its operators.
///
/// The domain of a layer are the index variables that its operator's strategies cut (partition/strategy.h), those of
/// the output's axes first. What a layer is follows from how they are used:
/// - a sum over variables that index two operands is a product; variables of both operands and the output are its
///   batch, of the first and the output m, of the second and the output n;
/// - windows that move over one operand are pooling; axes of one operand that are not in the output a mean;
/// - element-wise operators of one activation belong to the layer before them: functions count as its point-wise
///   operations, the addition of a weight does not count, a multiplication by a weight makes what follows a product a
///   layer of its own, PaSE's batch normalisation;
/// - other element-wise operators, concatenations (their axis is pinned) and reshapes as in PaSE.
///
/// PaSE's restrictions: what may have a halo in a product is pinned; pieces divide extents.
#pragma once

#include "graph/graph.h"
#include "partition/operator_piece.h"
#include "partition/pase_graph.h"
#include "support/status.h"

namespace taso {

struct PaseReading {
  std::int64_t cutoff = 4;  ///< PaseGraph::cutoff.
  /// Softmax and cross-entropy with labels after every output, which models that are deployed no longer have.
  bool loss = true;
};

/// Fails where a node is of no kind that PaSE has, with its name and operator. Nodes that weights alone lead to are no
/// layers.
[[nodiscard]] Expected<PaseGraph> pase_from_graph(const Graph& graph, StrategyTable& strategies,
                                                  const PaseReading& reading = {});

}  // namespace taso
