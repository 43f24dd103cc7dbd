/// The memory that a control group leaves to a program, so that exceeding it is an error and not the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace taso::tools {

/// The least memory limit of the control groups that a process is in, in bytes. `membership` has the form of
/// /proc/self/cgroup; groups of version 2 lie under `root`, those of version 1 under `root`/memory. Nothing if there is
/// no limit.
[[nodiscard]] std::optional<std::uint64_t> group_memory_limit(std::string_view membership, const std::string& root);

/// Limits the data of this process to that, so that allocating more fails: by itself, exceeding the limit of a group
/// kills the process without a word. A lower limit stays (ulimit -d).
void respect_group_memory_limit();

}  // namespace taso::tools
