/// taso-run --measure-links: the topology of the ranks that run, by measuring them.
#pragma once

#include <string>

#include "operators/registry.h"
#include "partition/topology.h"
#include "runtime/transport.h"
#include "support/status.h"
#include "tools/run_model.h"

namespace taso::tools {

struct MeasuredTopology {
  Topology topology;
  int hosts = 1, per_host = 1;  ///< Which ranks there are.
  std::string table;            ///< What was measured, as text.
};

/// To be called by all ranks; all get the same. Ranks of one host are the last level, hosts the one before. On each
/// level all ranks send to the next one and receive from the one before at the same time; rates of a rank are those of
/// kernels of so many threads that run on all ranks at once. Errors, on all ranks alike: hosts with different numbers
/// of ranks, or whose ranks are not consecutive (usage), and those of kernels and of the transport.
[[nodiscard]] Expected<MeasuredTopology> measure_topology(Transport& transport, const OperatorRegistry& registry,
                                                          int threads);

/// The mode of the program: measures and writes options.measure_links, by rank 0, which prints the table; with
/// options.measure_collectives what transfers take (tools/measured_collectives.h), into the database of costs. A
/// process that is no rank (null) measures options.ranks threads. Returns the exit code, or an error that all ranks
/// have.
[[nodiscard]] Expected<int> measure_links(RunOptions& options, Transport* ranks);

}  // namespace taso::tools
