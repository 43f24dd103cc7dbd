// Meshes that fit a topology.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "partition/topology.h"

namespace taso {
namespace {

Error wrong_mesh(const std::string& text, const std::string& message) {
  constexpr std::size_t longest = 60;
  std::string shown = text.size() <= longest ? text : text.substr(0, longest) + "...";
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';  // a message is one line
  return {ErrorCode::usage, fmt::format("mesh \"{}\": {}", shown, message), {}};
}

/// A size of an axis; nothing if it is none.
std::optional<std::int64_t> size_of(std::string_view text) {
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size() || size < 1 || size > most_devices) return std::nullopt;
  return size;
}

Expected<std::vector<std::int64_t>> sizes_of(const std::string& text) {
  std::vector<std::int64_t> sizes;
  std::string_view rest = text;
  while (true) {
    const std::size_t end = rest.find('x');
    const std::optional<std::int64_t> size = size_of(rest.substr(0, end));
    if (!size)
      return wrong_mesh(text, fmt::format("size {} is not an integer from 1 to {}; a mesh is written as 4x8",
                                          sizes.size() + 1, most_devices));
    sizes.push_back(*size);
    if (end == std::string_view::npos) return sizes;
    rest.remove_prefix(end + 1);
  }
}

/// What the axes of a mesh must multiply to: "4 (InfiniBand), then 8 (NVSwitch)".
std::string fitting_products(const std::vector<MeshAxis>& levels) {
  std::vector<std::string> products;
  for (const MeshAxis& level : levels) products.push_back(fmt::format("{} ({})", level.size, level.link));
  return fmt::format("{}", fmt::join(products, ", then "));
}

}  // namespace

Mesh default_mesh(const Topology& topology) {
  Mesh mesh;
  mesh.device = topology.device;
  for (const MeshAxis& level : topology.levels)
    if (level.size > 1) mesh.axes.push_back(level);
  return mesh;
}

Expected<Mesh> parse_mesh(const std::string& text, const Topology& topology) {
  TASO_ASSIGN(const std::vector<std::int64_t> sizes, sizes_of(text));
  std::int64_t product = 1;
  for (const std::int64_t size : sizes)
    if (product <= most_devices) product *= size;  // up to the first excess: it cannot overflow
  if (product != topology.devices())
    return wrong_mesh(text, fmt::format("the sizes have the product {}, but {} has {} devices",
                                        product > most_devices ? fmt::format("of more than {}", most_devices)
                                                               : std::to_string(product),
                                        topology.name, topology.devices()));
  const std::vector<MeshAxis> levels = default_mesh(topology).axes;
  Mesh mesh;
  mesh.device = topology.device;
  std::size_t level = 0;
  std::int64_t filled = 1;  // product of the axes that lie within the level so far
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 1) continue;
    if (filled == levels[level].size) {
      ++level;
      filled = 1;
    }
    if (levels[level].size / filled % sizes[i] != 0)
      return wrong_mesh(text, fmt::format("axis {} of size {} does not lie within one level of {}; products that fit, "
                                          "slowest links first: {}",
                                          i + 1, sizes[i], topology.name, fitting_products(levels)));
    filled *= sizes[i];
    mesh.axes.push_back(levels[level]);
    mesh.axes.back().size = sizes[i];
  }
  return mesh;
}

}  // namespace taso
