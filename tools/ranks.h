/// The processes that `mpirun` started together: the one door to MPI (ranks_mpi.cpp; ranks_single.cpp without it).
///
/// Rank 0 is the program; the others do parts of its work and send it what they found, without waiting. Only rank 0
/// speaks: an error of another rank travels to it like a part and ends all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "support/status.h"

namespace taso::tools {

class Ranks {
 public:
  /// Joins the others if `mpirun` started this process; else it is the only one, and MPI is not touched.
  Ranks(int& argc, char**& argv);
  /// Waits until all that was sent has arrived.
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  /// On every rank: whether it is good on all of them. To be called by all at the same place. Of several errors the one
  /// of the first rank is returned, everywhere.
  [[nodiscard]] Status agree(const Status& own) const;
  /// To rank 0, after what was sent before; returns at once.
  void send(std::string bytes);
  /// The same for an error, instead of what rank 0 waits for.
  void send(const Error& error);
  /// To be called now and then while something may be on its way.
  void advance();
  /// At rank 0: the next bytes of another rank, or its error.
  [[nodiscard]] Expected<std::string> receive(int rank) const;
  /// Ends all ranks at once. Returns where there is only one.
  void end_all(int exit_code) const;

 private:
  struct Messages;
  std::unique_ptr<Messages> messages_;  ///< On their way; null where MPI is not used.
  int rank_ = 0, size_ = 1;
};

}  // namespace taso::tools
