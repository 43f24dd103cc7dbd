/// Devices as a mesh: an ordered list of axes, each with a size and the link over which devices that differ in that
/// axis alone reach each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "partition/time_table.h"

namespace taso {

struct MeshAxis {
  std::int64_t size = 1;
  std::string link;      ///< Its name in the topology.
  double bandwidth = 0;  ///< Bytes per second that a device sends, and at the same time receives, along this axis.
  double latency = 0;    ///< Seconds until the first byte of a message arrives.
  CollectiveTimes times = {};  ///< Of communication along this axis; where measured, they stand for the link's rates.

  /// Seconds until every device has got so many bytes at most from others of its group, in so many messages (at least
  /// 1). `scattered`: they are no range of bytes where they arrive.
  [[nodiscard]] double fetch_seconds(double bytes, double messages, bool scattered) const;
  /// Seconds of a reduce-scatter by direct exchange, of which every device gets so many bytes at most, in so many
  /// boxes (at least 1), each a message from every other device of its group.
  [[nodiscard]] double scatter_seconds(double bytes, double boxes) const;
};

/// What a device can do by itself.
struct DeviceRates {
  std::int64_t memory = 0;      ///< Bytes.
  double flops = 0;             ///< Scalar operations per second.
  double memory_bandwidth = 0;  ///< Bytes per second.
};

struct Mesh {
  std::vector<MeshAxis> axes;  ///< Slowest links first.
  DeviceRates device;          ///< All are alike.
  /// Where times along axes are measured, which all are or none: by which transport, and of what a device has itself of
  /// a tensor that is put together, the time to copy it there. Else empty.
  std::string transport = {};
  TimeTable copy = {};

  /// Whether times of transfers are measured, and not made of rates.
  [[nodiscard]] bool measured() const { return !transport.empty(); }
  [[nodiscard]] std::int64_t devices() const;
  /// The place of a device along each axis; the last axis runs fastest.
  [[nodiscard]] std::vector<std::int64_t> coordinates(std::int64_t number) const;
  /// "4x8", or "1" without an axis.
  [[nodiscard]] std::string to_string() const;
};

/// The name of the link between ranks of one host in topologies, and how many there are along the axes with this link.
inline constexpr const char* link_of_host = "shared memory";
[[nodiscard]] int ranks_of_host(const Mesh& mesh);

}  // namespace taso
