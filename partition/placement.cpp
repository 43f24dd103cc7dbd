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

bool is_empty(const IndexBox& box) {
  return std::any_of(box.begin(), box.end(), [](const IndexRange& range) { return range.size() == 0; });
}

/// Elements of `boxes`, which may overlap, in slabs along the axes from `axis` on.
std::int64_t volume_of_union(const std::vector<const IndexBox*>& boxes, std::size_t axis) {
  if (boxes.empty()) return 0;
  if (axis == boxes[0]->size()) return 1;
  std::vector<std::int64_t> bounds;
  for (const IndexBox* box : boxes) {
    bounds.push_back((*box)[axis].begin);
    bounds.push_back((*box)[axis].end);
  }
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  std::int64_t volume = 0;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    std::vector<const IndexBox*> inside;
    for (const IndexBox* box : boxes)
      if ((*box)[axis].begin <= bounds[i] && bounds[i + 1] <= (*box)[axis].end) inside.push_back(box);
    volume += (bounds[i + 1] - bounds[i]) * volume_of_union(inside, axis + 1);
  }
  return volume;
}

/// What the devices of a group have together: boxes that differ.
class Holdings {
 public:
  Holdings(const std::vector<IndexBox>& boxes, std::int64_t first, std::int64_t size) {
    for (std::int64_t d = first; d < first + size; ++d) {
      const IndexBox& box = boxes[static_cast<std::size_t>(d)];
      const auto equal = [&](const IndexBox* other) { return *other == box; };
      if (!is_empty(box) && std::none_of(boxes_.begin(), boxes_.end(), equal)) boxes_.push_back(&box);
    }
    for (std::size_t i = 0; i < boxes_.size() && disjoint_; ++i)
      for (std::size_t j = 0; j < i && disjoint_; ++j) disjoint_ = is_empty(common(*boxes_[i], *boxes_[j]));
  }
  /// How many elements of a box are among them.
  [[nodiscard]] std::int64_t among(const IndexBox& box) const {
    std::vector<IndexBox> parts;
    std::int64_t sum = 0;
    for (const IndexBox* held : boxes_) {
      parts.push_back(common(box, *held));
      sum += volume_of(parts.back());
    }
    if (disjoint_) return sum;
    std::vector<const IndexBox*> pointers;
    for (const IndexBox& part : parts)
      if (!is_empty(part)) pointers.push_back(&part);
    return volume_of_union(pointers, 0);
  }

 private:
  std::vector<const IndexBox*> boxes_;
  bool disjoint_ = true;
};

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
      const Holdings holdings(have, first, size);
      for (std::int64_t d = first; d < first + size; ++d) {
        const auto at = static_cast<std::size_t>(d);
        const std::int64_t now = holdings.among(need[at]), more = now - covered[at];
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

/// A reduce-scatter along the given axes, inner ones first, of `elements` on every device; or, with `gather`, an
/// all-reduce. Steps take what the largest piece takes.
Transfer reduce(const std::vector<std::size_t>& axes, std::int64_t elements, std::int64_t element_bytes, bool gather,
                const Mesh& mesh) {
  Transfer total;
  auto held = static_cast<double>(elements);  // On average; the largest piece has `largest`.
  std::int64_t largest = elements;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    const MeshAxis& link = mesh.axes[*axis];
    const auto size = static_cast<double>(link.size), bytes = static_cast<double>(element_bytes);
    const double times = gather ? 2 : 1;
    largest = (largest + link.size - 1) / link.size;
    total.bytes += times * held * (size - 1) / size * bytes * static_cast<double>(mesh.devices());
    total.seconds += times * (size - 1) * (link.latency + static_cast<double>(largest) * bytes / link.bandwidth);
    held /= size;
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
  Transfer best = reduce(axes, largest, element_bytes, true, mesh);
  best += fetch(have.boxes, need.boxes, element_bytes, mesh);
  const Transfer scatter = reduce(axes, largest, element_bytes, false, mesh);
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
