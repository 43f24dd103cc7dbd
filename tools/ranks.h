/// The processes that `mpirun` started together, for a program whose parts are gathered by one of them.
///
/// Rank 0 is the program; the others do parts of its work and send it what they found, without waiting. Only one rank
/// speaks: an error of any ends all, and is said once.
#pragma once

#include <memory>
#include <string>

#include "runtime/transport.h"
#include "support/status.h"

namespace taso::tools {

class Ranks {
 public:
  /// Joins the others if `mpirun` started this process; else it is the only one, and MPI is not touched. `program` is
  /// what the line begins with that says an error of fail() or a rank that is lost. Errors: those of
  /// open_mpi_transport.
  [[nodiscard]] static Expected<Ranks> join(int& argc, char**& argv, const std::string& program);

  [[nodiscard]] int rank() const { return transport_ == nullptr ? 0 : transport_->rank(); }
  [[nodiscard]] int size() const { return transport_ == nullptr ? 1 : transport_->size(); }
  /// On every rank: whether it is good on all of them (agree in runtime/transport.h).
  [[nodiscard]] Status agree(const Status& own) const;
  /// To rank 0, after what was sent before; returns at once. Nothing where there is only one rank.
  [[nodiscard]] Status send(const std::string& bytes) const;
  /// At rank 0: the next bytes of another rank.
  [[nodiscard]] Expected<std::string> receive(int rank) const;
  /// Says an error of this rank and ends all. Returns its exit code, with which main returns.
  [[nodiscard]] int fail(const Error& error) const;

 private:
  Ranks(std::unique_ptr<Transport> transport, std::string program)
      : transport_(std::move(transport)), program_(std::move(program)) {}
  std::unique_ptr<Transport> transport_;  ///< Null where MPI is not used.
  std::string program_;
};

}  // namespace taso::tools
