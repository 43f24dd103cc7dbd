/// Costs of communication between ranks in a database of costs: rows of the kind "collective", of a device that is
/// those ranks together.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "optimizer/cost_database.h"
#include "support/status.h"

namespace taso {

/// Ranks whose communication was measured.
struct MeasuredRanks {
  std::string device;     ///< Of a rank, as costs of kernels name it: with the version of the program.
  int ranks = 1;          ///< All of them communicate at the same time.
  std::string transport;  ///< "mpi" or "threads",
  std::string version;    ///< and which.
  /// The name of the device in a database: "DEVICE; ranks=2; transport=mpi; Open MPI v4.1.4".
  [[nodiscard]] std::string identity() const;
};

/// The ranks of one of a database's devices, if it is some.
[[nodiscard]] std::optional<MeasuredRanks> measured_ranks(std::string_view identity);

/// What is done by all groups of ranks at the same time.
struct MeasuredCollective {
  std::string kind;  ///< CollectiveKind (partition/time_table.h), "copy".
  int group = 1;     ///< So many ranks are a group.
  std::string link;  ///< Between the ranks of a group.
};

/// Records seconds of a collective that moves so many bytes, in the place of those that are there.
[[nodiscard]] Status record_collective(CostDatabase& database, const MeasuredCollective& collective, double bytes,
                                       double seconds);

/// What stands in the database for that.
[[nodiscard]] CostDatabase::Entry recorded_entry(const CostDatabase& database, const MeasuredCollective& collective,
                                                 double bytes, double seconds);

/// What is recorded of a collective: seconds by bytes. bad_input where a key is none of record_collective's.
[[nodiscard]] Expected<std::map<double, double>> recorded_collective(const CostDatabase& database,
                                                                     const MeasuredCollective& collective);

}  // namespace taso
