#include "tools/memory_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>

namespace taso::tools {
namespace {

/// The number in a file; nothing for "max", or what a group without a limit says.
std::optional<std::uint64_t> limit_in(const std::string& file) {
  constexpr std::uint64_t unlimited = std::uint64_t{1} << 60;
  std::ifstream stream(file);
  std::string text;
  std::uint64_t value = 0;
  if (!(stream >> text) ||
      std::from_chars(text.data(), text.data() + text.size(), value).ptr != text.data() + text.size())
    return std::nullopt;
  return value < unlimited ? std::optional(value) : std::nullopt;
}

/// The least limit of a group and those around it.
std::optional<std::uint64_t> limit_along(const std::string& folder, std::string group, const std::string& file) {
  std::optional<std::uint64_t> least;
  for (;;) {
    if (const auto limit = limit_in(folder + group + "/" + file)) least = std::min(least.value_or(*limit), *limit);
    const std::size_t slash = group.rfind('/');
    if (slash == std::string::npos) return least;
    group.resize(slash);
  }
}

}  // namespace

std::optional<std::uint64_t> group_memory_limit(std::string_view membership, const std::string& root) {
  std::optional<std::uint64_t> least;
  while (!membership.empty()) {
    const std::string_view line = membership.substr(0, membership.find('\n'));
    membership.remove_prefix(std::min(membership.size(), line.size() + 1));
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    std::string group(line.substr(second + 1));
    if (group == "/") group.clear();
    std::optional<std::uint64_t> limit;
    if (controllers.empty()) limit = limit_along(root, group, "memory.max");
    if (controllers == "memory") limit = limit_along(root + "/memory", group, "memory.limit_in_bytes");
    if (limit) least = std::min(least.value_or(*limit), *limit);
  }
  return least;
}

void respect_group_memory_limit() {
  std::ifstream stream("/proc/self/cgroup");
  const std::string membership((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  const std::optional<std::uint64_t> bytes = group_memory_limit(membership, "/sys/fs/cgroup");
  rlimit limit{};
  if (!bytes || getrlimit(RLIMIT_DATA, &limit) != 0) return;
  if (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur <= *bytes) return;
  limit.rlim_cur = *bytes;
  (void)setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace taso::tools
