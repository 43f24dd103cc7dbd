/// Topologies: which devices there are and how they reach each other, as files (docs/topologies.md), and the meshes
/// that fit them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "partition/mesh.h"
#include "support/status.h"

namespace taso {

/// How many devices a topology may have, and so a mesh.
constexpr std::int64_t most_devices = 4096;

/// Devices that are alike, in a hierarchy: the groups of a level consist of as many groups of the next one, the groups
/// of the last level of single devices.
struct Topology {
  std::string name;
  std::string source;            ///< Where its numbers are from.
  DeviceRates device;            ///< Of each.
  std::vector<MeshAxis> levels;  ///< Slowest links first; none for a device alone. Sizes are at least 1.

  [[nodiscard]] std::int64_t devices() const;
};

/// A topology from the text of a file. bad_input with its line, and the place in it as "levels[1].bandwidth", where it
/// is no JSON or not as docs/topologies.md says.
[[nodiscard]] Expected<Topology> parse_topology(const std::string& text, const std::string& file);

/// The same from a file; bad_input also if it cannot be read.
[[nodiscard]] Expected<Topology> load_topology(const std::string& path);

/// The text of a file with this topology, which parse_topology reads back where it is within the bounds of
/// docs/topologies.md.
[[nodiscard]] std::string topology_text(const Topology& topology);

/// The topology of so many devices: of the files *.json of a folder (specs/devices) that have this number the first by
/// name; if there is none, flat_topology. Errors: usage, unless 1 <= devices <= most_devices; bad_input, if the folder
/// cannot be read or one of its files is wrong.
[[nodiscard]] Expected<Topology> topology_of(std::int64_t devices, const std::string& folder);

/// What is assumed of devices of which nothing is said: one level, and the stated rates of the shipped ranks on one
/// host. 1 <= devices <= most_devices (TASO_CHECK).
[[nodiscard]] Topology flat_topology(std::int64_t devices);

/// The mesh whose axes are the levels, but for those of one group.
[[nodiscard]] Mesh default_mesh(const Topology& topology);

/// A mesh as the command line gives it: sizes of axes, slowest links first, with "x" between, as "4x8". An axis lies
/// within one level, whose link it has; a level may be several axes. Axes of size 1 are left out. Errors (usage): what
/// is no such list, a size that is not from 1 to most_devices, another number of devices than the topology's, an axis
/// across two levels.
[[nodiscard]] Expected<Mesh> parse_mesh(const std::string& text, const Topology& topology);

}  // namespace taso
