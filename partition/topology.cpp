#include "partition/topology.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "partition/json_tree.h"
#include "partition/member_reader.h"
#include "support/file.h"

namespace taso {
namespace {

constexpr std::size_t most_levels = 8;
constexpr std::size_t longest_name = 60, longest_source = 2000;

Expected<std::vector<MeshAxis>> levels_of(const MemberReader& reader, const std::string& file) {
  const JsonTree& tree = reader.member("levels");
  const auto* list = std::get_if<JsonTree::List>(&tree.value);
  if (list == nullptr || list->size() > most_levels) {
    const std::string what = fmt::format("a list of at most {} levels, slowest links first", most_levels);
    if (list == nullptr) return reader.expected("levels", what);
    return reader.wrong("levels", tree, fmt::format("expected {}, found {}", what, list->size()));
  }
  std::vector<MeshAxis> levels;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string place = fmt::format("levels[{}]", i);
    TASO_ASSIGN(MeshAxis level, read_mesh_axis((*list)[i], place, file));
    if (i > 0 && level.bandwidth < levels.back().bandwidth)
      return reader.wrong(place, (*list)[i],
                          fmt::format("{} bytes per second are less than the {} of levels[{}]; levels are listed "
                                      "slowest first",
                                      level.bandwidth, levels.back().bandwidth, i - 1));
    levels.push_back(std::move(level));
  }
  return levels;
}

Expected<Topology> topology_of(const JsonTree& tree, const std::string& file) {
  TASO_ASSIGN(const MemberReader reader,
              MemberReader::open(tree, "", file, {"name", "source", "devices", "device", "levels"}));
  Topology topology;
  TASO_ASSIGN(topology.name, reader.text("name", longest_name));
  TASO_ASSIGN(topology.source, reader.text("source", longest_source));
  TASO_ASSIGN(const std::int64_t devices, reader.integer("devices", 1, most_devices));
  TASO_ASSIGN(topology.device, reader.device("device"));
  TASO_ASSIGN(topology.levels, levels_of(reader, file));
  std::vector<std::int64_t> sizes;
  std::int64_t product = 1;  // up to the first excess: it cannot overflow
  for (const MeshAxis& level : topology.levels) {
    sizes.push_back(level.size);
    if (product <= most_devices) product *= level.size;
  }
  if (product != devices)
    return reader.wrong(
        "devices", reader.member("devices"),
        fmt::format("{}, but the sizes of the levels ({}) have the product {}", devices,
                    sizes.empty() ? "none" : fmt::format("{}", fmt::join(sizes, " x ")),
                    product > most_devices ? fmt::format("of more than {}", most_devices) : std::to_string(product)));
  return topology;
}

}  // namespace

std::int64_t Topology::devices() const {
  std::int64_t devices = 1;
  for (const MeshAxis& level : levels) devices *= level.size;
  return devices;
}

Expected<Topology> parse_topology(const std::string& text, const std::string& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    return bad_input("the file is empty; a topology is a JSON object (docs/topologies.md)", {file});
  TASO_ASSIGN(const JsonTree tree, parse_json_tree(text, file));
  return topology_of(tree, file);
}

std::string topology_text(const Topology& topology) {
  nlohmann::ordered_json levels = nlohmann::ordered_json::array();
  for (const MeshAxis& level : topology.levels)
    levels.push_back(
        {{"size", level.size}, {"link", level.link}, {"bandwidth", level.bandwidth}, {"latency", level.latency}});
  const nlohmann::ordered_json json{{"name", topology.name},
                                    {"source", topology.source},
                                    {"devices", topology.devices()},
                                    {"device",
                                     {{"memory", topology.device.memory},
                                      {"flops", topology.device.flops},
                                      {"memory_bandwidth", topology.device.memory_bandwidth}}},
                                    {"levels", levels}};
  return json.dump(2) + "\n";
}

Expected<Topology> load_topology(const std::string& path) {
  TASO_ASSIGN(const std::string text, read_file(path));
  return parse_topology(text, path);
}

Expected<Topology> topology_of(std::int64_t devices, const std::string& folder) {
  if (devices < 1 || devices > most_devices)
    return Error{
        ErrorCode::usage, fmt::format("{} devices: their number must be from 1 to {}", devices, most_devices), {}};
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".json") files.push_back(entry->path().string());
  if (error) return bad_input("cannot read the folder of topologies: " + error.message(), {folder});
  std::sort(files.begin(), files.end());
  std::optional<Topology> found;
  for (const std::string& file : files) {  // all of them: a wrong file is found whatever is asked for
    TASO_ASSIGN(Topology topology, load_topology(file));
    if (!found && topology.devices() == devices) found = std::move(topology);
  }
  return found ? *std::move(found) : flat_topology(devices);
}

Topology flat_topology(std::int64_t devices) {
  TASO_CHECK(devices >= 1 && devices <= most_devices, "a number of devices that is out of range");
  Topology topology;
  topology.name = fmt::format("flat-{}", devices);
  topology.source = "Stated, not measured: no shipped topology has this number of devices.";
  topology.device = {.memory = std::int64_t{4} << 30, .flops = 5e10, .memory_bandwidth = 1e10};
  if (devices > 1) topology.levels = {{.size = devices, .link = "shared memory", .bandwidth = 4e9, .latency = 2e-6}};
  return topology;
}

}  // namespace taso
