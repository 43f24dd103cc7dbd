#include "partition/placement.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace taso {
namespace {

IndexBox common(const IndexBox& a, const IndexBox& b) {
  IndexBox box = a;
  for (std::size_t axis = 0; axis < box.size(); ++axis) {
    box[axis].begin = std::max(box[axis].begin, b[axis].begin);
    box[axis].end = std::min(box[axis].end, b[axis].end);
  }
  return box;
}

void grow(IndexBox& hull, const IndexBox& box) {
  for (std::size_t axis = 0; axis < hull.size(); ++axis) {
    hull[axis].begin = std::min(hull[axis].begin, box[axis].begin);
    hull[axis].end = std::max(hull[axis].end, box[axis].end);
  }
}

/// Devices of one group at a level of the mesh, those that differ in the axes from `axis` on only, are numbered one
/// after the other.
std::int64_t group_size(const Mesh& mesh, std::size_t axis) {
  std::int64_t size = 1;
  for (; axis < mesh.axes.size(); ++axis) size *= mesh.axes[axis].size;
  return size;
}

/// Gets what devices lack; nothing is partial.
Transfer fetch(const std::vector<IndexBox>& have, const std::vector<IndexBox>& need, std::int64_t element_bytes,
               const Mesh& mesh) {
  Transfer total;
  const auto devices = static_cast<std::int64_t>(have.size());
  std::vector<std::int64_t> covered(have.size());
  for (std::size_t d = 0; d < have.size(); ++d) covered[d] = volume_of(common(need[d], have[d]));
  for (std::size_t axis = mesh.axes.size(); axis-- > 0;) {
    const MeshAxis& link = mesh.axes[axis];
    const std::int64_t size = group_size(mesh, axis);
    std::int64_t most = 0;
    double messages = 0;
    for (std::int64_t first = 0; first < devices; first += size) {
      IndexBox hull = have[static_cast<std::size_t>(first)];
      for (std::int64_t d = first; d < first + size; ++d) grow(hull, have[static_cast<std::size_t>(d)]);
      for (std::int64_t d = first; d < first + size; ++d) {
        const auto at = static_cast<std::size_t>(d);
        const std::int64_t now = volume_of(common(need[at], hull)), more = now - covered[at];
        if (more <= 0) continue;
        covered[at] = now;
        most = std::max(most, more);
        total.bytes += static_cast<double>(more * element_bytes);
        const double owned = static_cast<double>(std::max<std::int64_t>(1, volume_of(have[at])));
        messages = std::max(messages,
                            std::min(static_cast<double>(link.size - 1), std::ceil(static_cast<double>(more) / owned)));
      }
    }
    if (most > 0) total.seconds += messages * link.latency + static_cast<double>(most * element_bytes) / link.bandwidth;
  }
  for (std::size_t d = 0; d < have.size(); ++d) total.possible = total.possible && covered[d] == volume_of(need[d]);
  return total;
}

/// A reduce-scatter along the given axes, inner ones first, of `bytes` on every device; or, with `gather`, an
/// all-reduce.
Transfer reduce(const std::vector<std::size_t>& axes, double bytes, bool gather, const Mesh& mesh) {
  Transfer total;
  double left = bytes;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const MeshAxis& link = mesh.axes[*axis];
    const auto size = static_cast<double>(link.size);
    const double moved = left * (size - 1) / size, times = gather ? 2 : 1;
    total.bytes += times * moved * static_cast<double>(mesh.devices());
    total.seconds += times * ((size - 1) * link.latency + moved / link.bandwidth);
    left /= size;
  }
  return total;
}

/// What devices hold after a reduce-scatter along a tensor axis.
std::vector<IndexBox> scattered(const std::vector<IndexBox>& boxes, const std::vector<std::size_t>& axes,
                                std::size_t tensor_axis, const Mesh& mesh) {
  std::vector<IndexBox> parts = boxes;
  for (std::size_t d = 0; d < boxes.size(); ++d) {
    const std::vector<std::int64_t> place = mesh.coordinates(static_cast<std::int64_t>(d));
    std::int64_t index = 0, pieces = 1;
    for (const std::size_t axis : axes) {
      index = index * mesh.axes[axis].size + place[axis];
      pieces *= mesh.axes[axis].size;
    }
    IndexRange& range = parts[d][tensor_axis];
    const std::int64_t size = range.size(), begin = range.begin;
    range = {begin + piece_begin(size, index, pieces), begin + piece_begin(size, index + 1, pieces)};
  }
  return parts;
}

}  // namespace

Transfer transfer(const Placement& have, const Placement& need, std::int64_t element_bytes, const Mesh& mesh) {
  std::vector<std::size_t> axes;
  std::set_difference(have.partial.begin(), have.partial.end(), need.partial.begin(), need.partial.end(),
                      std::back_inserter(axes));
  const bool kept = std::includes(have.partial.begin(), have.partial.end(), need.partial.begin(), need.partial.end()) &&
                    (need.partial.empty() || need.reducer == have.reducer);
  if (!kept) return {0, 0, false};
  if (axes.empty()) return fetch(have.boxes, need.boxes, element_bytes, mesh);
  std::int64_t largest = 0;
  for (const IndexBox& box : have.boxes) largest = std::max(largest, volume_of(box));
  const double bytes = static_cast<double>(largest * element_bytes);
  Transfer best = reduce(axes, bytes, true, mesh);
  best += fetch(have.boxes, need.boxes, element_bytes, mesh);
  const Transfer scatter = reduce(axes, bytes, false, mesh);
  for (std::size_t axis = 0; axis < have.boxes[0].size(); ++axis) {
    if (have.boxes[0][axis].size() < 2) continue;
    Transfer other = scatter;
    other += fetch(scattered(have.boxes, axes, axis, mesh), need.boxes, element_bytes, mesh);
    if (other.possible && (!best.possible || other.seconds < best.seconds)) best = other;
  }
  return best;
}

Placement everywhere(const Shape& shape, const Mesh& mesh) {
  return {std::vector<IndexBox>(static_cast<std::size_t>(mesh.devices()), whole_box(shape)), {}, ""};
}

}  // namespace taso
