#include "partition/topology.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "partition/json_tree.h"
#include "support/file.h"
#include "support/nearest_word.h"

namespace taso {
namespace {

constexpr std::size_t most_levels = 8;
constexpr std::int64_t most_memory = std::int64_t{1} << 50;
constexpr double most_rate = 1e21, most_latency = 1e3;
constexpr std::size_t longest_name = 60, longest_source = 2000;

using Member = std::pair<std::string, JsonTree>;

/// Reads the members of one object and says what is wrong with them.
class MemberReader {
 public:
  /// The object stands at `place`: "" is the whole file. It must have the members `names`, and no others.
  static Expected<MemberReader> open(const JsonTree& tree, const std::string& place, const std::string& file,
                                     const std::vector<std::string>& names) {
    const auto* object = std::get_if<JsonTree::Object>(&tree.value);
    MemberReader reader(object, place, file);
    if (object == nullptr)
      return reader.wrong(place, tree,
                          fmt::format("expected an object with {}, found {}", fmt::join(names, ", "), tree.kind()));
    for (const auto& [name, member] : *object) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      const std::string nearest = name.size() <= longest_name ? nearest_word(name, names) : "";
      return reader.wrong(place, member,
                          fmt::format("unknown key {}; {}", JsonTree{name}.kind(),
                                      nearest.empty() ? fmt::format("known are {}", fmt::join(names, ", "))
                                                      : fmt::format("did you mean '{}'?", nearest)));
    }
    for (const std::string& name : names)
      if (reader.find(name) == nullptr) return reader.wrong(place, tree, fmt::format("'{}' is missing", name));
    return reader;
  }

  [[nodiscard]] const JsonTree& member(const std::string& name) const { return *find(name); }
  [[nodiscard]] std::string place_of(const std::string& name) const {
    return place_.empty() ? name : place_ + "." + name;
  }

  /// A text of one line that is not empty.
  [[nodiscard]] Expected<std::string> text(const std::string& name, std::size_t longest) const {
    const auto* text = std::get_if<std::string>(&member(name).value);
    const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
    if (text == nullptr || text->empty() || text->size() > longest ||
        std::any_of(text->begin(), text->end(), is_control))
      return expected(name, fmt::format("a text of one line and 1 to {} bytes", longest));
    return *text;
  }

  /// An integer from 1 to `most`, which is less than 2^53; 8e9 is one, too.
  [[nodiscard]] Expected<std::int64_t> integer(const std::string& name, std::int64_t most) const {
    const double number = number_of(name);
    if (!(number >= 1 && number <= static_cast<double>(most) && number == std::floor(number)))
      return expected(name, fmt::format("an integer from 1 to {}", most));
    return static_cast<std::int64_t>(number);
  }

  [[nodiscard]] Expected<double> rate(const std::string& name) const {
    const double number = number_of(name);
    if (!(number >= 1 && number <= most_rate)) return expected(name, fmt::format("a number from 1 to {}", most_rate));
    return number;
  }

  [[nodiscard]] Expected<double> seconds(const std::string& name) const {
    const double number = number_of(name);
    if (!(number >= 0 && number <= most_latency))
      return expected(name, fmt::format("a number of seconds from 0 to {}", most_latency));
    return number;
  }

  /// The error that something else was expected as this member's value.
  [[nodiscard]] Error expected(const std::string& name, const std::string& what) const {
    return wrong(place_of(name), member(name), fmt::format("expected {}, found {}", what, member(name).kind()));
  }
  [[nodiscard]] Error wrong(const std::string& place, const JsonTree& tree, const std::string& message) const {
    return bad_input(place.empty() ? message : place + ": " + message, {file_, tree.line});
  }

 private:
  MemberReader(const JsonTree::Object* object, std::string place, std::string file)
      : object_(object), place_(std::move(place)), file_(std::move(file)) {}

  [[nodiscard]] const JsonTree* find(const std::string& name) const {
    for (const Member& member : *object_)
      if (member.first == name) return &member.second;
    return nullptr;
  }
  /// Not a number if it is none.
  [[nodiscard]] double number_of(const std::string& name) const {
    const JsonTree& tree = member(name);
    if (const auto* integer = std::get_if<std::int64_t>(&tree.value)) return static_cast<double>(*integer);
    const auto* real = std::get_if<double>(&tree.value);
    return real == nullptr ? std::nan("") : *real;
  }

  const JsonTree::Object* object_;
  std::string place_, file_;
};

Expected<DeviceRates> device_of(const JsonTree& tree, const std::string& file) {
  TASO_ASSIGN(const MemberReader reader,
              MemberReader::open(tree, "device", file, {"memory", "flops", "memory_bandwidth"}));
  DeviceRates device;
  TASO_ASSIGN(device.memory, reader.integer("memory", most_memory));
  TASO_ASSIGN(device.flops, reader.rate("flops"));
  TASO_ASSIGN(device.memory_bandwidth, reader.rate("memory_bandwidth"));
  return device;
}

Expected<MeshAxis> level_of(const JsonTree& tree, const std::string& place, const std::string& file) {
  TASO_ASSIGN(const MemberReader reader,
              MemberReader::open(tree, place, file, {"size", "link", "bandwidth", "latency"}));
  MeshAxis level;
  TASO_ASSIGN(level.size, reader.integer("size", most_devices));
  TASO_ASSIGN(level.link, reader.text("link", longest_name));
  TASO_ASSIGN(level.bandwidth, reader.rate("bandwidth"));
  TASO_ASSIGN(level.latency, reader.seconds("latency"));
  return level;
}

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
    TASO_ASSIGN(MeshAxis level, level_of((*list)[i], place, file));
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
  TASO_ASSIGN(const std::int64_t devices, reader.integer("devices", most_devices));
  TASO_ASSIGN(topology.device, device_of(reader.member("device"), file));
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
