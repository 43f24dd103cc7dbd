#include "partition/placement.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "partition/scatter.h"

namespace taso {
namespace {

/// `b` has as many ranges as `a`.
std::int64_t volume_of_common(const IndexBox& a, const IndexRange* b) {
  std::int64_t volume = 1;
  for (std::size_t axis = 0; axis < a.size() && volume > 0; ++axis)
    volume *= std::max<std::int64_t>(0, std::min(a[axis].end, b[axis].end) - std::max(a[axis].begin, b[axis].begin));
  return volume;
}

/// The union of boxes as boxes that do not overlap, in their axes from `axis` on: slab by slab between the bounds along
/// an axis; slabs that go on alike are one.
std::vector<IndexBox> disjoint_boxes(const std::vector<const IndexBox*>& boxes, std::size_t axis) {
  if (boxes.empty()) return {};
  if (axis == boxes[0]->size()) return {IndexBox()};
  std::vector<std::int64_t> bounds;
  for (const IndexBox* box : boxes) {
    bounds.push_back((*box)[axis].begin);
    bounds.push_back((*box)[axis].end);
  }
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  std::vector<std::pair<IndexRange, std::vector<IndexBox>>> slabs;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    std::vector<const IndexBox*> inside;
    for (const IndexBox* box : boxes)
      if ((*box)[axis].begin <= bounds[i] && bounds[i + 1] <= (*box)[axis].end) inside.push_back(box);
    std::vector<IndexBox> rest = disjoint_boxes(inside, axis + 1);
    if (!slabs.empty() && slabs.back().first.end == bounds[i] && slabs.back().second == rest)
      slabs.back().first.end = bounds[i + 1];
    else
      slabs.push_back({{bounds[i], bounds[i + 1]}, std::move(rest)});
  }
  std::vector<IndexBox> result;
  for (const auto& [range, rest] : slabs)
    for (const IndexBox& box : rest) {
      IndexBox& whole = result.emplace_back(IndexBox{range});
      whole.insert(whole.end(), box.begin(), box.end());
    }
  return result;
}

/// What the devices of a group have together, as boxes that do not overlap.
class Holdings {
 public:
  Holdings(const std::vector<IndexBox>& boxes, std::int64_t first, std::int64_t size) {
    std::vector<const IndexBox*> different;
    for (std::int64_t d = first; d < first + size; ++d) {
      const IndexBox& box = boxes[static_cast<std::size_t>(d)];
      const auto equal = [&](const IndexBox* other) { return *other == box; };
      if (volume_of(box) > 0 && std::none_of(different.begin(), different.end(), equal)) different.push_back(&box);
    }
    for (const IndexBox& box : disjoint_boxes(different, 0)) {
      ranges_.insert(ranges_.end(), box.begin(), box.end());
      ++count_;
    }
  }
  /// How many elements of a box are among them.
  [[nodiscard]] std::int64_t among(const IndexBox& box) const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < count_; ++i) sum += volume_of_common(box, ranges_.data() + i * box.size());
    return sum;
  }

 private:
  std::vector<IndexRange> ranges_;  ///< Box by box.
  std::size_t count_ = 0;
};

/// Devices of one group at a level of the mesh, those that differ in the axes from `axis` on only, are numbered one
/// after the other.
std::int64_t group_size(const Mesh& mesh, std::size_t axis) {
  std::int64_t size = 1;
  for (; axis < mesh.axes.size(); ++axis) size *= mesh.axes[axis].size;
  return size;
}

/// Whether what a box lacks of another one is no range of bytes there: along the first axis in which they differ others
/// come before it.
bool arrives_scattered(const IndexBox& need, const IndexBox& have) {
  for (std::size_t axis = 0; axis < need.size() && need[axis] == have[axis]; ++axis)
    if (need[axis].size() > 1) return true;
  return false;
}

/// A reduce-scatter, and the gather that goes back the way.
struct ThereAndBack {
  Transfer scatter, gather;
};

/// Of what devices have.
ThereAndBack scatter_cost(const std::vector<IndexBox>& boxes, const Reduction& reduction,
                          const std::vector<std::vector<std::int64_t>>& places, std::int64_t element_bytes,
                          const Mesh& mesh) {
  ThereAndBack total;
  for (std::size_t stage = 1; stage <= reduction.axes.size(); ++stage) {
    const MeshAxis& link = mesh.axes[reduction.axes[reduction.axes.size() - stage]];
    std::int64_t largest = 0, sum = 0, messages = 0;
    for (std::size_t d = 0; d < boxes.size(); ++d) {
      const KeptPieces pieces = kept_pieces(places[d], reduction, stage, mesh);
      const std::int64_t extent = boxes[d][reduction.tensor_axis].size(), volume = volume_of(boxes[d]);
      std::int64_t kept = 0, count = 0;
      for (std::int64_t i = 0; i < pieces.count && volume > 0; ++i) {
        const std::int64_t size = pieces.range(extent, i).size();
        kept += volume / extent * size;
        count += size > 0 ? 1 : 0;
      }
      largest = std::max(largest, kept);
      messages = std::max(messages, count);
      sum += kept;
    }
    if (messages == 0) continue;
    const auto others = static_cast<double>(link.size - 1);
    const auto piece = static_cast<double>(largest * element_bytes), count = static_cast<double>(messages);
    const double bytes = others * static_cast<double>(sum * element_bytes),
                 seconds = link.scatter_seconds(piece, count);
    total.scatter += {bytes, seconds};
    if (!link.times.measured())
      total.gather += {bytes, seconds};
    else
      total.gather += {bytes, link.fetch_seconds(others * piece, others, false) + mesh.copy.seconds(piece)};
  }
  return total;
}

std::vector<IndexBox> with_axes(const std::vector<IndexBox>& boxes) {
  std::vector<IndexBox> result;
  for (const IndexBox& box : boxes) result.push_back(with_axis(box));
  return result;
}

}  // namespace

/// What devices have, and what those of each group have together.
class TransferSource::Held {
 public:
  Held(std::vector<IndexBox> boxes, const Mesh& mesh) : mesh_(mesh), boxes_(std::move(boxes)) {
    const auto devices = static_cast<std::int64_t>(boxes_.size());
    for (const IndexBox& box : boxes_) volumes_.push_back(volume_of(box));
    for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
      sizes_.push_back(group_size(mesh, axis));
      std::vector<Holdings>& groups = groups_.emplace_back();
      for (std::int64_t first = 0; first < devices; first += sizes_[axis])
        groups.emplace_back(boxes_, first, sizes_[axis]);
    }
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  /// Gets what devices lack, after what took `before`; the sum. If results are partial, all along the same axes: owners
  /// with the same summand are as near. Not possible, either, where that takes `limit` seconds or more.
  [[nodiscard]] Transfer to(const std::vector<IndexBox>& need, std::int64_t element_bytes, const Transfer& before = {},
                            double limit = std::numeric_limits<double>::infinity()) const {
    Transfer total;
    absl::InlinedVector<std::int64_t, 32> covered(boxes_.size()), wanted(boxes_.size());
    std::size_t lacking = 0;  // Devices that do not have all.
    std::int64_t copied = 0;  // Elements that such a device has itself.
    bool scattered = false;
    for (std::size_t d = 0; d < boxes_.size(); ++d) {
      covered[d] = volume_of_common(need[d], boxes_[d].data());
      wanted[d] = volume_of(need[d]);
      if (covered[d] == wanted[d]) continue;
      ++lacking;
      copied = std::max(copied, covered[d]);
      scattered = scattered || arrives_scattered(need[d], boxes_[d]);
    }
    if (mesh_.measured() && copied > 0)
      total.seconds += mesh_.copy.seconds(static_cast<double>(copied * element_bytes));
    for (std::size_t axis = mesh_.axes.size(); axis-- > 0 && lacking > 0;) {
      const MeshAxis& link = mesh_.axes[axis];
      std::int64_t most = 0;
      double messages = 0;
      for (std::size_t d = 0; d < boxes_.size(); ++d) {
        if (covered[d] == wanted[d]) continue;
        const Holdings& group = groups_[axis][d / static_cast<std::size_t>(sizes_[axis])];
        const std::int64_t now = group.among(need[d]), more = now - covered[d];
        if (more <= 0) continue;
        covered[d] = now;
        if (now == wanted[d]) --lacking;
        most = std::max(most, more);
        total.bytes += static_cast<double>(more * element_bytes);
        const auto owned = static_cast<double>(std::max<std::int64_t>(1, volumes_[d]));
        messages = std::max(messages,
                            std::min(static_cast<double>(link.size - 1), std::ceil(static_cast<double>(more) / owned)));
      }
      if (most > 0) total.seconds += link.fetch_seconds(static_cast<double>(most * element_bytes), messages, scattered);
      if (before.seconds + total.seconds >= limit) return {0, 0, false};
    }
    total.possible = lacking == 0;
    total += before;
    return total;
  }
  [[nodiscard]] const std::vector<IndexBox>& boxes() const { return boxes_; }

 private:
  const Mesh& mesh_;
  std::vector<IndexBox> boxes_;
  std::vector<std::int64_t> volumes_, sizes_;  ///< Per device; per mesh axis.
  std::vector<std::vector<Holdings>> groups_;  ///< Per mesh axis.
};

/// Partial results along some axes, combined: everything everywhere, or a part of it each.
struct TransferSource::Reduced {
  struct Part {
    Reduction reduction;
    Transfer scatter;
    Held held;
  };
  Reduction whole;
  Transfer all;
  std::vector<std::unique_ptr<Part>> parts;  ///< After the scatter, per axis of the tensor that is considered.
};

TransferSource::TransferSource(const Placement& have, std::int64_t element_bytes, const Mesh& mesh)
    : have_(have),
      element_bytes_(element_bytes),
      mesh_(mesh),
      held_(std::make_unique<Held>(with_axes(have.boxes), mesh)) {}

TransferSource::~TransferSource() = default;

TransferSource::Reduced& TransferSource::reduced_along(const std::vector<std::size_t>& axes) {
  std::unique_ptr<Reduced>& reduced = reduced_[axes];
  if (reduced) return *reduced;
  reduced = std::make_unique<Reduced>();
  const std::vector<IndexBox>& boxes = held_->boxes();
  const std::vector<std::vector<std::int64_t>> places = places_on(mesh_);
  for (std::size_t axis = 0; axis < boxes[0].size(); ++axis) {
    if (!may_scatter(boxes, axis)) continue;
    const Reduction whole{axes, axis, true}, part{axes, axis, false};
    const ThereAndBack kept_apart = scatter_cost(boxes, part, places, element_bytes_, mesh_);
    // Along one mesh axis pieces are numbered in one way.
    const ThereAndBack ways = axes.size() == 1 ? kept_apart : scatter_cost(boxes, whole, places, element_bytes_, mesh_);
    Transfer all = ways.scatter;
    all += ways.gather;
    if (reduced->parts.empty() || all.seconds < reduced->all.seconds) {
      reduced->all = all;
      reduced->whole = whole;
    }
    std::vector<IndexBox> kept = boxes;
    for (std::size_t d = 0; d < kept.size(); ++d) {
      const std::vector<IndexBox> pieces = scattered(boxes[d], places[d], part, axes.size(), mesh_);
      if (pieces.empty()) kept[d][axis].end = kept[d][axis].begin;
      if (!pieces.empty()) kept[d] = pieces[0];
    }
    reduced->parts.push_back(
        std::unique_ptr<Reduced::Part>(new Reduced::Part{part, kept_apart.scatter, Held(kept, mesh_)}));
  }
  return *reduced;
}

TransferSource::Way TransferSource::best_to(const Placement& need) {
  std::vector<std::size_t> axes;
  std::set_difference(have_.partial.begin(), have_.partial.end(), need.partial.begin(), need.partial.end(),
                      std::back_inserter(axes));
  const bool kept =
      std::includes(have_.partial.begin(), have_.partial.end(), need.partial.begin(), need.partial.end()) &&
      (need.partial.empty() || need.reducer == have_.reducer);
  if (!kept) return {{0, 0, false}, nullptr};
  std::vector<IndexBox> of_scalars;
  if (need.boxes[0].empty()) of_scalars = with_axes(need.boxes);
  const std::vector<IndexBox>& boxes = of_scalars.empty() ? need.boxes : of_scalars;
  if (axes.empty()) return {held_->to(boxes, element_bytes_), nullptr};
  const Reduced& reduced = reduced_along(axes);
  Way best{held_->to(boxes, element_bytes_, reduced.all), &reduced.whole};
  for (const std::unique_ptr<Reduced::Part>& part : reduced.parts) {
    const double limit = best.transfer.possible ? best.transfer.seconds : std::numeric_limits<double>::infinity();
    const Transfer other = part->held.to(boxes, element_bytes_, part->scatter, limit);
    if (other.possible && (!best.transfer.possible || other.seconds < best.transfer.seconds))
      best = {other, &part->reduction};
  }
  return best;
}

Transfer TransferSource::to(const Placement& need) { return best_to(need).transfer; }

std::optional<Reduction> TransferSource::reduction_to(const Placement& need) {
  const Way best = best_to(need);
  if (!best.transfer.possible) return std::nullopt;
  return best.reduction == nullptr ? Reduction() : *best.reduction;
}

Transfer transfer(const Placement& have, const Placement& need, std::int64_t element_bytes, const Mesh& mesh) {
  return TransferSource(have, element_bytes, mesh).to(need);
}

bool covers(const Placement& placement, const Shape& shape) {
  std::vector<const IndexBox*> boxes;
  for (const IndexBox& box : placement.boxes)
    if (volume_of(box) > 0) boxes.push_back(&box);
  std::int64_t held = 0;
  for (const IndexBox& box : disjoint_boxes(boxes, 0)) held += volume_of(box);
  return held == volume_of(whole_box(shape));
}

Placement everywhere(const Shape& shape, const Mesh& mesh) {
  return {std::vector<IndexBox>(static_cast<std::size_t>(mesh.devices()), whole_box(shape)), {}, ""};
}

Placement on_first(const Shape& shape, const Mesh& mesh) {
  Placement placement = everywhere(shape, mesh);
  for (std::size_t d = 1; d < placement.boxes.size(); ++d)
    for (IndexRange& range : placement.boxes[d]) range = {0, 0};
  return placement;
}

}  // namespace taso
