/// Ranks as processes that mpirun started: the one door to MPI. Without MPI at build it can only say so.
///
/// Beside the program's threads each rank has one that tells all others twice a second that it lives, and moves on what
/// was sent: a rank that computes is heard, one that is stopped, killed or cut off is not. Who has not been heard of
/// for some seconds is lost. A run with a lost rank, or one that called Transport::fail, is over: all calls of the
/// others fail, the lowest living rank reports the error, and all processes are ended with its exit code.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "runtime/transport.h"
#include "support/status.h"

namespace taso {

struct MpiOptions {
  /// Called at most once, on the lowest living rank, with what ends all ranks: to be said to the user, who hears it of
  /// nobody else. From any thread; calls nothing of the transport.
  std::function<void(const Error&)> report = [](const Error&) {};
  std::chrono::milliseconds pulse{500};        ///< From one sign of life to the next.
  std::chrono::milliseconds lost_after{5000};  ///< Who has given none for so long is lost.
};

/// Whether this process is one of those that mpirun (or another starter of MPI programs) started, by its environment.
[[nodiscard]] bool started_by_mpi();

/// Joins the others: once in a process, on all of them. device_unavailable where the program was built without MPI, or
/// MPI cannot be used by programs with threads.
/// Destroying the transport waits until all ranks do, and takes leave of MPI. After a failure it does not return,
/// since the process is ended; where there is only one rank, it does.
[[nodiscard]] Expected<std::unique_ptr<Transport>> open_mpi_transport(int& argc, char**& argv, MpiOptions options);

}  // namespace taso
