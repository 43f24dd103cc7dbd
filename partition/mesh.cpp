#include "partition/mesh.h"

namespace taso {

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

std::string Mesh::to_string() const {
  std::string text;
  for (const MeshAxis& axis : axes) text += (text.empty() ? "" : "x") + std::to_string(axis.size);
  return text.empty() ? "1" : text;
}

}  // namespace taso
