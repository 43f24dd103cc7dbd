/// What transfers of a plan take, from the record of measured costs.
#pragma once

#include <string>
#include <vector>

#include "optimizer/cost_database.h"
#include "partition/mesh.h"
#include "session/cost_files.h"
#include "support/status.h"

namespace taso {

struct MeasuredTransfers {
  Mesh mesh;  ///< With times of its axes, if they are recorded.
  std::vector<CostDatabase::Entry> used;
};

/// The mesh with times of communication between as many ranks, of a device with this identity each, that were recorded
/// with this transport (taso-run --measure-collectives); of several versions the last by name. `transport`: "mpi" or
/// "threads"; "any", the first of these that is recorded, or else the mesh as it is; "none", the mesh as it is. Fails
/// with cost_missing where a named transport was not measured with so many ranks over these links, and as
/// CostDatabase::open does.
[[nodiscard]] Expected<MeasuredTransfers> measured_transfers(const Mesh& mesh, const CostFiles& files,
                                                             const std::string& device, const std::string& transport);

}  // namespace taso
