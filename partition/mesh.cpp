#include "partition/mesh.h"

#include <algorithm>

namespace taso {

double MeshAxis::fetch_seconds(double bytes, double messages, bool scattered) const {
  if (!times.measured()) return messages * latency + bytes / bandwidth;
  if (scattered) return times.all_to_all.seconds(bytes);
  const auto others = static_cast<double>(size - 1);
  if (messages >= others) return times.all_gather.seconds(bytes);
  // Between one message and one from everybody.
  const double one = times.neighbor.seconds(bytes), all = std::max(one, times.all_gather.seconds(bytes));
  return one + (all - one) * ((messages - 1) / (others - 1));
}

double MeshAxis::scatter_seconds(double bytes, double boxes) const {
  const auto others = static_cast<double>(size - 1);
  if (!times.measured()) return others * (boxes * latency + bytes / bandwidth);
  return times.reduce_scatter.seconds(bytes) + (boxes - 1) * times.reduce_scatter.seconds(0);
}

std::int64_t Mesh::devices() const {
  std::int64_t devices = 1;
  for (const MeshAxis& axis : axes) devices *= axis.size;
  return devices;
}

std::vector<std::int64_t> Mesh::coordinates(std::int64_t number) const {
  std::vector<std::int64_t> place(axes.size());
  for (std::size_t axis = axes.size(); axis-- > 0;) {
    place[axis] = number % axes[axis].size;
    number /= axes[axis].size;
  }
  return place;
}

int ranks_of_host(const Mesh& mesh) {
  std::int64_t ranks = 1;
  for (const MeshAxis& axis : mesh.axes)
    if (axis.link == link_of_host) ranks *= axis.size;
  return static_cast<int>(ranks);
}

std::string Mesh::to_string() const {
  std::string text;
  for (const MeshAxis& axis : axes) text += (text.empty() ? "" : "x") + std::to_string(axis.size);
  return text.empty() ? "1" : text;
}

}  // namespace taso
