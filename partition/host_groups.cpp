#include "partition/host_groups.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace taso {

Expected<HostGroups> host_groups(std::span<const std::string> host_of_rank) {
  const std::set<std::string> hosts(host_of_rank.begin(), host_of_rank.end());
  HostGroups groups{.hosts = static_cast<int>(hosts.size()),
                    .per_host = static_cast<int>(host_of_rank.size() / hosts.size())};
  const auto size = static_cast<std::size_t>(groups.per_host);
  for (std::size_t rank = 0; rank < host_of_rank.size(); ++rank)
    if (host_of_rank.size() != hosts.size() * size || host_of_rank[rank] != host_of_rank[rank / size * size])
      return Error{ErrorCode::usage,
                   fmt::format("ranks run on hosts {}, in this order; every host must have as many, with consecutive "
                               "numbers (mpirun --map-by ppr:N:node)",
                               fmt::join(host_of_rank, ", ")),
                   {}};
  return groups;
}

}  // namespace taso
