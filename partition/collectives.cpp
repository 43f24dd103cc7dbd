#include "partition/collectives.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "partition/operator_piece.h"
#include "support/status.h"

namespace taso {
namespace {

/// The extents of all pieces of a range.
std::vector<std::int64_t> pieces_of(std::int64_t n, std::int64_t pieces) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < pieces; ++i) sizes.push_back(RangePiece{n, i, pieces}.range().size());
  return sizes;
}

double bytes_of(std::int64_t elements, std::int64_t element_bytes) {
  return static_cast<double>(elements) * static_cast<double>(element_bytes);
}

double seconds_of(double bytes, const MeshAxis& axis) { return axis.latency + bytes / axis.bandwidth; }

CollectiveCost free_of_charge(std::int64_t devices) {
  const std::vector<double> nothing(static_cast<std::size_t>(devices));
  return {.sent = nothing, .received = nothing};
}

void check(std::int64_t elements, std::int64_t element_bytes, const MeshAxis& axis) {
  TASO_CHECK(elements >= 0 && element_bytes >= 0, "a tensor of negative size");
  TASO_CHECK(axis.size >= 1 && (axis.size == 1 || axis.bandwidth > 0), "an axis without devices or bandwidth");
}

/// A ring in which the pieces pass all devices, except that device i does not send the piece of the device `not_sent`
/// places before it and does not receive that of the device `not_received` places before it.
CollectiveCost ring(std::int64_t elements, std::int64_t element_bytes, const MeshAxis& axis, std::int64_t not_sent,
                    std::int64_t not_received) {
  check(elements, element_bytes, axis);
  const std::int64_t devices = axis.size;
  CollectiveCost cost = free_of_charge(devices);
  if (devices == 1 || elements == 0) return cost;
  const std::vector<std::int64_t> pieces = pieces_of(elements, devices);
  const auto all_but_piece_before = [&](std::int64_t device, std::int64_t places) {
    return bytes_of(elements - pieces[static_cast<std::size_t>((device - places + devices) % devices)], element_bytes);
  };
  for (std::int64_t device = 0; device < devices; ++device) {
    cost.sent[static_cast<std::size_t>(device)] = all_but_piece_before(device, not_sent);
    cost.received[static_cast<std::size_t>(device)] = all_but_piece_before(device, not_received);
  }
  // The largest piece makes devices - 1 hops, and no device has longer to send.
  const std::int64_t largest = *std::max_element(pieces.begin(), pieces.end());
  cost.seconds = static_cast<double>(devices - 1) * seconds_of(bytes_of(largest, element_bytes), axis);
  return cost;
}

void add(const CollectiveCost& next, CollectiveCost& cost) {
  for (std::size_t i = 0; i < cost.sent.size(); ++i) {
    cost.sent[i] += next.sent[i];
    cost.received[i] += next.received[i];
  }
  cost.seconds += next.seconds;
}

/// The cost of one group, for so many of them side by side.
CollectiveCost repeated(const CollectiveCost& cost, std::int64_t groups) {
  CollectiveCost result{.sent = {}, .received = {}, .seconds = cost.seconds};
  for (std::int64_t group = 0; group < groups; ++group) {
    result.sent.insert(result.sent.end(), cost.sent.begin(), cost.sent.end());
    result.received.insert(result.received.end(), cost.received.begin(), cost.received.end());
  }
  return result;
}

/// all_reduce along the first `count` axes.
CollectiveCost all_reduce_along(std::int64_t elements, std::int64_t element_bytes, const std::vector<MeshAxis>& axes,
                                std::size_t count) {
  if (count == 0) return free_of_charge(1);
  const MeshAxis& inner = axes[count - 1];
  std::int64_t groups = 1;
  for (std::size_t i = 0; i + 1 < count; ++i) groups *= axes[i].size;
  CollectiveCost cost = repeated(reduce_scatter(elements, element_bytes, inner), groups);
  CollectiveCost outer = free_of_charge(groups * inner.size);
  const std::vector<std::int64_t> pieces = pieces_of(elements, inner.size);
  // There are at most two sizes of pieces.
  std::vector<std::pair<std::int64_t, CollectiveCost>> known;
  for (std::size_t device = 0; device < pieces.size(); ++device) {
    const auto is_known = [&](const auto& entry) { return entry.first == pieces[device]; };
    auto found = std::find_if(known.begin(), known.end(), is_known);
    if (found == known.end())
      found =
          known.emplace(known.end(), pieces[device], all_reduce_along(pieces[device], element_bytes, axes, count - 1));
    for (std::size_t group = 0; group < found->second.sent.size(); ++group) {
      outer.sent[group * pieces.size() + device] = found->second.sent[group];
      outer.received[group * pieces.size() + device] = found->second.received[group];
    }
    outer.seconds = std::max(outer.seconds, found->second.seconds);
  }
  add(outer, cost);
  add(repeated(all_gather(elements, element_bytes, inner), groups), cost);
  return cost;
}

}  // namespace

CollectiveCost reduce_scatter(std::int64_t elements, std::int64_t element_bytes, const MeshAxis& axis) {
  // In step s, from 0, device i sends piece i - 1 - s on: its own comes to it last.
  return ring(elements, element_bytes, axis, 0, 1);
}

CollectiveCost all_gather(std::int64_t elements, std::int64_t element_bytes, const MeshAxis& axis) {
  // In step s, from 0, device i sends piece i - s on: its own first.
  return ring(elements, element_bytes, axis, axis.size - 1, 0);
}

CollectiveCost all_reduce(std::int64_t elements, std::int64_t element_bytes, const MeshAxis& axis) {
  CollectiveCost cost = reduce_scatter(elements, element_bytes, axis);
  add(all_gather(elements, element_bytes, axis), cost);
  return cost;
}

CollectiveCost all_reduce(std::int64_t elements, std::int64_t element_bytes, const std::vector<MeshAxis>& axes) {
  return all_reduce_along(elements, element_bytes, axes, axes.size());
}

CollectiveCost broadcast(std::int64_t elements, std::int64_t element_bytes, std::int64_t root, const MeshAxis& axis) {
  check(elements, element_bytes, axis);
  TASO_CHECK(root >= 0 && root < axis.size, "a root that is no device of the axis");
  CollectiveCost cost = free_of_charge(axis.size);
  if (axis.size == 1 || elements == 0) return cost;
  const double bytes = bytes_of(elements, element_bytes);
  for (std::int64_t device = 0; device < axis.size; ++device) {
    const bool is_last = (device + 1) % axis.size == root;
    if (!is_last) cost.sent[static_cast<std::size_t>(device)] = bytes;
    if (device != root) cost.received[static_cast<std::size_t>(device)] = bytes;
  }
  // A flow shop of axis.size - 1 equal links: the last piece leaves the first link when all have passed it, and the
  // largest waits for nobody on the others.
  const std::vector<std::int64_t> pieces = pieces_of(elements, axis.size);
  const std::int64_t largest = *std::max_element(pieces.begin(), pieces.end());
  const auto messages = static_cast<double>(std::min(elements, axis.size));
  cost.seconds = messages * axis.latency + bytes / axis.bandwidth +
                 static_cast<double>(axis.size - 2) * seconds_of(bytes_of(largest, element_bytes), axis);
  return cost;
}

CollectiveCost all_to_all(std::int64_t from, std::int64_t to, std::int64_t pair_bytes, const MeshAxis& axis) {
  check(from, pair_bytes, axis);
  check(to, pair_bytes, axis);
  CollectiveCost cost = free_of_charge(axis.size);
  const std::vector<std::int64_t> rows = pieces_of(from, axis.size), columns = pieces_of(to, axis.size);
  const std::size_t devices = rows.size();
  const auto message = [&](std::size_t sender, std::size_t receiver) {
    return static_cast<double>(rows[sender]) * bytes_of(columns[receiver], pair_bytes);
  };
  for (std::size_t step = 1; step < devices; ++step) {
    double largest = 0;
    for (std::size_t sender = 0; sender < devices; ++sender) {
      const std::size_t receiver = (sender + step) % devices;
      const double bytes = message(sender, receiver);
      cost.sent[sender] += bytes;
      cost.received[receiver] += bytes;
      largest = std::max(largest, bytes);
    }
    if (largest > 0) cost.seconds += seconds_of(largest, axis);
  }
  return cost;
}

}  // namespace taso
