#include "partition/transfer_collectives.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace taso {
namespace {

using Device = std::size_t;
using MeshAxes = std::vector<std::size_t>;

std::int64_t size_of_group(const MeshAxes& axes, const Mesh& mesh) {
  std::int64_t size = 1;
  for (const std::size_t axis : axes) size *= mesh.axes[axis].size;
  return size;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool contains(const MeshAxes& axes, std::size_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

bool begins_with(const MeshAxes& axes, const MeshAxes& start) {
  return axes.size() >= start.size() && std::equal(start.begin(), start.end(), axes.begin());
}

/// What stands behind the first `count`.
MeshAxes without_first(const MeshAxes& axes, std::size_t count) {
  return {axes.begin() + static_cast<std::ptrdiff_t>(count), axes.end()};
}

/// Whether a range lies in another one; an empty one does.
bool is_within(const IndexRange& inner, const IndexRange& outer) {
  return inner.size() == 0 || (outer.begin <= inner.begin && inner.end <= outer.end);
}

bool is_within(const IndexBox& inner, const IndexBox& outer) {
  if (volume_of(inner) == 0) return true;
  for (std::size_t axis = 0; axis < inner.size(); ++axis)
    if (!is_within(inner[axis], outer[axis])) return false;
  return true;
}

/// The device at place 1 along a mesh axis and 0 along all others.
Device next_along(std::size_t mesh_axis, const Mesh& mesh) {
  Device stride = 1;
  for (std::size_t axis = mesh_axis + 1; axis < mesh.axes.size(); ++axis)
    stride *= static_cast<Device>(mesh.axes[axis].size);
  return stride;
}

class CollectivePlanner {
 public:
  CollectivePlanner(const Placement& have, const Placement& need, const Shape& shape, const Mesh& mesh,
                    const CollectiveVocabulary& vocabulary)
      : have_(have), need_(need), shape_(shape), mesh_(mesh), vocabulary_(vocabulary) {
    transfer_.has = have;
    std::set_difference(have.partial.begin(), have.partial.end(), need.partial.begin(), need.partial.end(),
                        std::back_inserter(transfer_.reduced));
    std::erase_if(transfer_.reduced, [&](std::size_t axis) { return mesh.axes[axis].size == 1; });
  }

  CollectiveTransfer run() {
    if (transfer_.reduced.empty() ? nobody_lacks(have_.boxes) : nobody_needs()) return std::move(transfer_);
    if (!find_steps()) return gather_parts();
    transfer_.has.boxes = boxes_cut_by(cuts_, shape_, mesh_);
    transfer_.has.partial = need_.partial;
    if (need_.partial.empty()) transfer_.has.reducer.clear();
    TASO_CHECK(nobody_lacks(transfer_.has.boxes), "collectives do not bring what is needed");
    return std::move(transfer_);
  }

 private:
  [[nodiscard]] bool nobody_lacks(const std::vector<IndexBox>& boxes) const {
    for (Device d = 0; d < boxes.size(); ++d)
      if (!is_within(need_.boxes[d], boxes[d])) return false;
    return true;
  }

  [[nodiscard]] bool nobody_needs() const {
    return std::all_of(need_.boxes.begin(), need_.boxes.end(), [](const IndexBox& box) { return volume_of(box) == 0; });
  }

  /// Whether the vocabulary has what it takes.
  bool find_steps() {
    std::optional<AxisCuts> cuts = axis_cuts(have_, shape_, mesh_);
    if (!cuts) return false;
    cuts_ = std::move(*cuts);
    wanted_ = axis_cuts(need_, shape_, mesh_);
    if (!reduce()) return false;
    exchange();
    gather();
    return vocabulary_.groups ||
           std::all_of(transfer_.steps.begin(), transfer_.steps.end(),
                       [&](const Collective& step) { return size_of_group(step.mesh_axes, mesh_) == mesh_.devices(); });
  }

  /// Elements that a device has now.
  [[nodiscard]] std::int64_t held() const {
    std::int64_t elements = volume_of(whole_box(shape_));
    for (const MeshAxes& axes : cuts_) elements /= size_of_group(axes, mesh_);
    return elements;
  }

  /// `received`: elements, by all devices of a group together.
  void add(Collective step, std::int64_t received) {
    std::sort(step.mesh_axes.begin(), step.mesh_axes.end());
    step.elements = received * (mesh_.devices() / size_of_group(step.mesh_axes, mesh_));
    transfer_.steps.push_back(std::move(step));
  }

  bool reduce() {
    MeshAxes left = transfer_.reduced;
    if (left.empty()) return true;
    if (contains(vocabulary_.reduce_scatter, have_.reducer)) scatter(left);
    if (left.empty()) return true;
    if (!contains(vocabulary_.all_reduce, have_.reducer)) return false;
    // A piece of everybody's, and then the pieces of everybody's combination.
    add({Collective::Kind::all_reduce, left, 0, 0, have_.reducer, 0}, 2 * (size_of_group(left, mesh_) - 1) * held());
    return true;
  }

  /// Axes that are to cut an axis of the tensor within its cuts are done with.
  void scatter(MeshAxes& left) {
    if (!wanted_) return;
    for (std::size_t axis = 0; axis < cuts_.size(); ++axis) {
      if (!begins_with((*wanted_)[axis], cuts_[axis])) continue;
      MeshAxes behind = without_first((*wanted_)[axis], cuts_[axis].size());
      const auto end = std::find_if(behind.begin(), behind.end(), [&](std::size_t m) { return !contains(left, m); });
      behind.erase(end, behind.end());
      if (behind.empty() || !std::is_sorted(behind.begin(), behind.end())) continue;
      add({Collective::Kind::reduce_scatter, behind, axis, 0, have_.reducer, 0},
          (size_of_group(behind, mesh_) - 1) * held());
      cuts_[axis].insert(cuts_[axis].end(), behind.begin(), behind.end());
      std::erase_if(left, [&](std::size_t m) { return contains(behind, m); });
    }
  }

  /// Mesh axes that are to cut another axis of the tensor.
  void exchange() {
    if (!wanted_ || !vocabulary_.all_to_all) return;
    for (std::size_t from = 0; from < cuts_.size(); ++from)
      for (std::size_t to = 0; to < cuts_.size(); ++to) {
        if (from == to || !begins_with(cuts_[from], (*wanted_)[from])) continue;
        const MeshAxes moved = without_first(cuts_[from], (*wanted_)[from].size());
        MeshAxes then = cuts_[to];
        then.insert(then.end(), moved.begin(), moved.end());
        if (moved.empty() || then != (*wanted_)[to] || !std::is_sorted(moved.begin(), moved.end())) continue;
        add({Collective::Kind::all_to_all, moved, from, to, {}, 0}, (size_of_group(moved, mesh_) - 1) * held());
        cuts_[from] = (*wanted_)[from];
        cuts_[to] = std::move(then);
      }
  }

  /// As much as anybody lacks.
  void gather() {
    for (std::size_t axis = 0; axis < cuts_.size(); ++axis) {
      const MeshAxes before = cuts_[axis];
      while (!cuts_[axis].empty() && !suffices(axis)) cuts_[axis].pop_back();
      const MeshAxes gathered = without_first(before, cuts_[axis].size());
      const MeshAxes after = std::exchange(cuts_[axis], before);
      if (std::is_sorted(gathered.begin(), gathered.end())) {
        gather_along(axis, gathered);
      } else {  // The pieces are not in the order of devices.
        for (std::size_t i = gathered.size(); i-- > 0;) gather_along(axis, {gathered[i]});
      }
      cuts_[axis] = after;
    }
  }

  void gather_along(std::size_t axis, const MeshAxes& mesh_axes) {
    if (mesh_axes.empty()) return;
    const std::int64_t group = size_of_group(mesh_axes, mesh_);
    add({Collective::Kind::all_gather, mesh_axes, axis, 0, {}, 0}, group * (group - 1) * held());
    cuts_[axis].resize(cuts_[axis].size() - mesh_axes.size());
  }

  /// Whether everybody has what it needs along an axis of the tensor.
  [[nodiscard]] bool suffices(std::size_t axis) const {
    const std::vector<IndexBox> boxes = boxes_cut_by(cuts_, shape_, mesh_);
    for (Device d = 0; d < boxes.size(); ++d)
      if (volume_of(need_.boxes[d]) > 0 && !is_within(need_.boxes[d][axis], boxes[d][axis])) return false;
    return true;
  }

  CollectiveTransfer gather_parts() {
    Collective step{Collective::Kind::gather_parts, {}, 0, 0, {}, 0};
    for (std::size_t axis = 0; axis < mesh_.axes.size(); ++axis)
      if (mesh_.axes[axis].size > 1 && (!vocabulary_.groups || contains(transfer_.reduced, axis) || differ_along(axis)))
        step.mesh_axes.push_back(axis);
    std::int64_t part = 1;
    for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
      std::int64_t most = 0;
      for (const IndexBox& box : have_.boxes) most = std::max(most, box[axis].size());
      part *= most;
    }
    const std::int64_t group = size_of_group(step.mesh_axes, mesh_);
    transfer_.has = have_;
    transfer_.steps.clear();
    add(std::move(step), group * (group - 1) * part);
    return std::move(transfer_);
  }

  /// Whether devices that differ along a mesh axis alone have different boxes.
  [[nodiscard]] bool differ_along(std::size_t mesh_axis) const {
    for (Device d = 0; d < have_.boxes.size(); ++d)
      for (const Device e : group_of(d, {mesh_axis}, mesh_))
        if (have_.boxes[d] != have_.boxes[e]) return true;
    return false;
  }

  const Placement& have_;
  const Placement& need_;
  const Shape& shape_;
  const Mesh& mesh_;
  const CollectiveVocabulary& vocabulary_;
  AxisCuts cuts_;  ///< Now.
  std::optional<AxisCuts> wanted_;
  CollectiveTransfer transfer_;
};

}  // namespace

std::vector<IndexBox> boxes_cut_by(const AxisCuts& cuts, const Shape& shape, const Mesh& mesh) {
  std::vector<IndexBox> boxes;
  for (std::int64_t device = 0; device < mesh.devices(); ++device) {
    const std::vector<std::int64_t> places = mesh.coordinates(device);
    IndexBox& box = boxes.emplace_back();
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      std::int64_t piece = 0;
      for (const std::size_t m : cuts[axis]) piece = piece * mesh.axes[m].size + places[m];
      box.push_back(RangePiece{shape[axis], piece, size_of_group(cuts[axis], mesh)}.range());
    }
  }
  return boxes;
}

std::optional<AxisCuts> axis_cuts(const Placement& placement, const Shape& shape, const Mesh& mesh) {
  AxisCuts cuts(shape.size());
  std::vector<std::int64_t> stride(mesh.axes.size(), 0);
  for (std::size_t m = 0; m < mesh.axes.size(); ++m) {
    if (mesh.axes[m].size == 1) continue;
    const IndexBox& first = placement.boxes[0];
    const IndexBox& next = placement.boxes[next_along(m, mesh)];
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (first[axis] == next[axis]) continue;
      stride[m] = next[axis].begin - first[axis].begin;
      cuts[axis].push_back(m);
    }
  }
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    std::stable_sort(cuts[axis].begin(), cuts[axis].end(),
                     [&](std::size_t a, std::size_t b) { return stride[a] > stride[b]; });
    if (shape[axis] % size_of_group(cuts[axis], mesh) != 0) return std::nullopt;
  }
  if (boxes_cut_by(cuts, shape, mesh) != placement.boxes) return std::nullopt;
  return cuts;
}

std::string_view name_of(Collective::Kind kind) {
  switch (kind) {
    case Collective::Kind::all_reduce:
      return "all_reduce";
    case Collective::Kind::reduce_scatter:
      return "reduce_scatter";
    case Collective::Kind::all_gather:
      return "all_gather";
    case Collective::Kind::all_to_all:
      return "all_to_all";
    case Collective::Kind::gather_parts:
      return "gather_parts";
  }
  return "?";
}

CollectiveTransfer collective_transfer(const Placement& have, const Placement& need, const Shape& shape,
                                       const Mesh& mesh, const CollectiveVocabulary& vocabulary) {
  return CollectivePlanner(have, need, shape, mesh, vocabulary).run();
}

std::vector<std::size_t> group_of(std::size_t device, const std::vector<std::size_t>& mesh_axes, const Mesh& mesh) {
  const std::vector<std::int64_t> places = mesh.coordinates(static_cast<std::int64_t>(device));
  std::vector<std::size_t> group;
  for (Device e = 0; e < static_cast<Device>(mesh.devices()); ++e) {
    const std::vector<std::int64_t> other = mesh.coordinates(static_cast<std::int64_t>(e));
    bool same = true;
    for (std::size_t axis = 0; axis < places.size(); ++axis)
      same = same && (places[axis] == other[axis] || contains(mesh_axes, axis));
    if (same) group.push_back(e);
  }
  return group;
}

std::string to_string(const CollectiveTransfer& transfer) {
  std::vector<std::string> steps;
  for (const Collective& step : transfer.steps) {
    std::string text(name_of(step.kind));
    if (!step.reducer.empty()) text += fmt::format("({})", step.reducer);
    if (step.kind == Collective::Kind::all_to_all)
      text += fmt::format(" of axis {} into axis {}", step.axis, step.split_axis);
    else if (step.kind == Collective::Kind::all_gather || step.kind == Collective::Kind::reduce_scatter)
      text += fmt::format(" of axis {}", step.axis);
    steps.push_back(
        fmt::format("{} along mesh axes {}: {} elements", text, fmt::join(step.mesh_axes, ","), step.elements));
  }
  return steps.empty() ? "nothing" : fmt::format("{}", fmt::join(steps, "; "));
}

}  // namespace taso
