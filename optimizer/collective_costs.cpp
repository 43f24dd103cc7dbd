#include "optimizer/collective_costs.h"

#include <fmt/format.h>

#include <charconv>

namespace taso {
namespace {

constexpr std::string_view row_kind = "collective", ranks_mark = "; ranks=", transport_mark = "; transport=";

/// Before the number of bytes, after which " bytes" stands.
std::string key_before(const MeasuredCollective& collective) {
  if (collective.group == 1) return collective.kind + ", ";
  return fmt::format("{} among {} over {}, ", collective.kind, collective.group, collective.link);
}

}  // namespace

std::string MeasuredRanks::identity() const {
  return fmt::format("{}{}{}{}{}; {}", device, ranks_mark, ranks, transport_mark, transport, version);
}

std::optional<MeasuredRanks> measured_ranks(std::string_view identity) {
  const std::size_t at_ranks = identity.rfind(ranks_mark), at_transport = identity.rfind(transport_mark);
  if (at_ranks == std::string_view::npos || at_transport == std::string_view::npos || at_transport < at_ranks)
    return std::nullopt;
  MeasuredRanks found;
  found.device = identity.substr(0, at_ranks);
  const std::string_view number =
      identity.substr(at_ranks + ranks_mark.size(), at_transport - at_ranks - ranks_mark.size());
  if (std::from_chars(number.data(), number.data() + number.size(), found.ranks).ptr != number.data() + number.size())
    return std::nullopt;
  const std::string_view transport = identity.substr(at_transport + transport_mark.size());
  const std::size_t end = transport.find("; ");
  if (end == std::string_view::npos) return std::nullopt;
  found.transport = transport.substr(0, end);
  found.version = transport.substr(end + 2);
  return found;
}

Status record_collective(CostDatabase& database, const MeasuredCollective& collective, double bytes, double seconds) {
  const CostDatabase::Entry entry = recorded_entry(database, collective, bytes, seconds);
  return database.replace(entry.kind, entry.key, entry.value);
}

CostDatabase::Entry recorded_entry(const CostDatabase& database, const MeasuredCollective& collective, double bytes,
                                   double seconds) {
  return {database.device(), std::string(row_kind), fmt::format("{}{:.0f} bytes", key_before(collective), bytes),
          seconds};
}

Expected<std::map<double, double>> recorded_collective(const CostDatabase& database,
                                                       const MeasuredCollective& collective) {
  const std::string before = key_before(collective);
  std::map<double, double> times;
  for (const CostDatabase::Entry& entry : database.entries()) {
    if (entry.kind != row_kind || !entry.key.starts_with(before)) continue;
    double bytes = 0;
    const char* const end = entry.key.data() + entry.key.size();
    const auto [rest, status] = std::from_chars(entry.key.data() + before.size(), end, bytes);
    if (status != std::errc{} || std::string_view(rest, end) != " bytes" || !(bytes > 0))
      return bad_input(fmt::format("a collective of the key '{}', which says no number of bytes", entry.key),
                       {database.path()});
    times[bytes] = entry.value;
  }
  return times;
}

}  // namespace taso
