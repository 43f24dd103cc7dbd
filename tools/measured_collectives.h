/// What communication takes among the ranks that run, as their programs carry it out.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "operators/registry.h"
#include "runtime/measure.h"
#include "runtime/rank_graph.h"
#include "runtime/transport.h"
#include "support/status.h"

namespace taso::tools {

/// Ranks that communicate: those whose numbers are equal but for the place within the group.
struct RankGroups {
  int size = 1;      ///< Of a group.
  int stride = 1;    ///< From a rank of a group to the next.
  std::string link;  ///< As a topology calls it.
  /// The place of a rank in its group, and the rank at another place.
  [[nodiscard]] int place(int rank) const { return rank / stride % size; }
  [[nodiscard]] int at(int rank, int other_place) const { return rank + (other_place - place(rank)) * stride; }
};

/// Of one kind (partition/time_table.h) in all groups at once, by bytes: times of the slowest rank.
struct CollectiveMeasurement {
  std::string kind;
  RankGroups groups;
  std::map<double, Measurement> times;
};

/// What a rank does of a collective, without anything before or after: the messages of a kind are those of a step of a
/// transfer (partition/transfer_schedule.h). A message has so many elements of 4 bytes, a power of two; `bytes` is by
/// what the kind is measured.
struct CollectiveProgram {
  RankGraph graph;
  double bytes = 0;
};
[[nodiscard]] Expected<CollectiveProgram> collective_program(const std::string& kind, std::int64_t elements,
                                                             const RankGroups& groups, int rank,
                                                             const OperatorRegistry& registry);

/// To be called by all ranks; all get the same. Per kind and groups, messages of 4 bytes to `most_bytes`; then "copy",
/// of a box that is no range of bytes, by every rank for itself, and "send", the part of "neighbor" that the sender
/// takes. A program is run again and again, and each run is a sample, from the first kernel to the last; samples are
/// taken again (up to three rounds, all counted) while those of a rank spread too much.
[[nodiscard]] Expected<std::vector<CollectiveMeasurement>> measure_collectives(Transport& transport,
                                                                               const OperatorRegistry& registry,
                                                                               int threads,
                                                                               const std::vector<RankGroups>& groups,
                                                                               std::size_t most_bytes);

/// All groups that a mesh axis may be made of, of ranks in so many hosts with so many ranks each: parts of a level.
[[nodiscard]] std::vector<RankGroups> mesh_groups(int hosts, int per_host);

/// As text.
[[nodiscard]] std::string collectives_table(const std::vector<CollectiveMeasurement>& measured);

}  // namespace taso::tools
