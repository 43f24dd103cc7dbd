/// Collectives in the words of the programs that run them.
#pragma once

#include "graph/graph.h"
#include "operators/registry.h"
#include "partition/transfer_collectives.h"
#include "support/status.h"

namespace taso {

/// The operators of a program that reads a model per rank: what it can say, and how.
struct CollectiveDialect {
  const char* program;  ///< Its name.
  CollectiveVocabulary vocabulary;
  /// Of a collective (partition/collective_graph.h) of a graph, adds the operators that stand for it to `graph`, which
  /// has its input. bad_input where the program has none for tensors of that type.
  Expected<Value> (*write)(Graph& graph, const Node& collective, const OperatorRegistry& registry);
};

/// ONNX Runtime: AllReduce, AllGather and AllToAll of the domain com.microsoft, among all ranks.
[[nodiscard]] const CollectiveDialect& onnx_runtime_collectives();

/// TensorRT: DistCollective, among groups of ranks.
[[nodiscard]] const CollectiveDialect& tensorrt_collectives();

/// The graph of a rank with the operators of a dialect instead of collectives. They are named "domain::OpType", as
/// Model::save writes them.
[[nodiscard]] Expected<Graph> in_dialect(const Graph& rank, const CollectiveDialect& dialect,
                                         const OperatorRegistry& registry);

}  // namespace taso
