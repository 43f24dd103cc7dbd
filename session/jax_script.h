/// A plan as a Python script that runs it on the host devices of JAX (shard_map), to see and to check what the plan
/// computes.
///
/// The graphs of ranks (partition/collective_graph.h) are taken apart at their collectives. What all ranks compute
/// between two of them is one function where it is the same on all, else one per kind of rank, of which each takes its
/// own (lax.switch). Tensors that go from one part to a later one have the same shape on all ranks, or are flat and as
/// long as the longest. A rank's weights lie one behind the other in one array per element type.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "operators/registry.h"
#include "partition/mesh.h"
#include "partition/transfer_collectives.h"
#include "runtime/tensor.h"
#include "support/status.h"

namespace taso {

/// The collectives that the script has.
[[nodiscard]] const CollectiveVocabulary& jax_collectives();

struct JaxScript {
  std::string text;
  std::map<std::string, HostTensor> weights;  ///< By element type, as NumPy spells it: [ranks, elements].
};

/// Of the graphs of all ranks. `inputs` and `outputs` are the names in the file. bad_input names an operator that the
/// script cannot write (session/jax/operators.py), or an element type that NumPy does not have.
[[nodiscard]] Expected<JaxScript> jax_script(const std::vector<Graph>& ranks, const Mesh& mesh,
                                             const std::vector<std::string>& inputs,
                                             const std::vector<std::string>& outputs, const OperatorRegistry& registry);

/// The file of the weights of an element type, beside the script.
[[nodiscard]] std::string jax_weights_file(const std::string& element);

}  // namespace taso
