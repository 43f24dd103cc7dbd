// Built without MPI.
#include "runtime/mpi/transport_mpi.h"

namespace taso {

Expected<std::unique_ptr<Transport>> open_mpi_transport(int& argc, char**& argv, MpiOptions options) {
  (void)argc;
  (void)argv;
  (void)options;
  return Error{ErrorCode::device_unavailable,
               "started by mpirun, but built without MPI: build it where MPI is installed (Debian: libopenmpi-dev)",
               {}};
}

}  // namespace taso
