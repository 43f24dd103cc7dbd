/// Devices as a mesh: an ordered list of axes, each with a size and the link over which devices that differ in that
/// axis alone reach each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace taso {

struct MeshAxis {
  std::int64_t size = 1;
  std::string link;      ///< Its name in the topology.
  double bandwidth = 0;  ///< Bytes per second that a device sends, and at the same time receives, along this axis.
  double latency = 0;    ///< Seconds until the first byte of a message arrives.
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

  [[nodiscard]] std::int64_t devices() const;
  /// The place of a device along each axis; the last axis runs fastest.
  [[nodiscard]] std::vector<std::int64_t> coordinates(std::int64_t number) const;
  /// "4x8", or "1" without an axis.
  [[nodiscard]] std::string to_string() const;
};

}  // namespace taso
