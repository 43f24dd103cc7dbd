#include <cstdlib>

#include "runtime/mpi/transport_mpi.h"

namespace taso {

// What the starters leave in the environment of a process: Open MPI, PMIx, MPICH and Intel, Slurm.
bool started_by_mpi() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr ||
         std::getenv("PMI_RANK") != nullptr || std::getenv("PMI_SIZE") != nullptr;
}

}  // namespace taso
