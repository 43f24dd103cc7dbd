/// Which ranks run on one host, for a topology whose levels are hosts and ranks of a host.
#pragma once

#include <span>
#include <string>

#include "support/status.h"

namespace taso {

struct HostGroups {
  int hosts = 1, per_host = 1;  ///< Ranks per_host * i and the per_host - 1 after it are on host i.
};

/// From the name of each rank's host, at least one. Errors (usage): hosts with different numbers of ranks, or whose
/// ranks are not consecutive.
[[nodiscard]] Expected<HostGroups> host_groups(std::span<const std::string> host_of_rank);

}  // namespace taso
