#include "partition/transfer_schedule.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace taso {
namespace {

using Device = std::size_t;
using Boxes = std::vector<IndexBox>;

IndexBox common_of(const IndexBox& a, const IndexBox& b) {
  IndexBox common;
  for (std::size_t axis = 0; axis < a.size(); ++axis)
    common.push_back({std::max(a[axis].begin, b[axis].begin), std::min(a[axis].end, b[axis].end)});
  return common;
}

/// What is left of `box` without `taken`, which lies in it, is added to `rest`: slabs along one axis after the other.
void add_without(IndexBox box, const IndexBox& taken, Boxes& rest) {
  for (std::size_t axis = 0; axis < box.size(); ++axis) {
    for (const IndexRange& range :
         {IndexRange{box[axis].begin, taken[axis].begin}, IndexRange{taken[axis].end, box[axis].end}}) {
      if (range.size() == 0) continue;
      IndexBox slab = box;
      slab[axis] = range;
      rest.push_back(std::move(slab));
    }
    box[axis] = taken[axis];
  }
}

class Scheduler {
 public:
  Scheduler(const Placement& need, Reduction reduction, const Mesh& mesh)
      : need_(need), mesh_(mesh), places_(places_on(mesh)) {
    schedule_.reduction = std::move(reduction);
  }

  TransferSchedule run(const Placement& have) {
    for (const IndexBox& box : have.boxes) held_.push_back({with_axis(box)});
    const Reduction& reduction = schedule_.reduction;
    if (!reduction.axes.empty()) {
      std::vector<std::vector<Boxes>> after;  // Per stage; first what there is before.
      after.push_back(held_);
      for (std::size_t stage = 1; stage <= reduction.axes.size(); ++stage) after.push_back(combine(stage));
      if (reduction.gathered)
        for (std::size_t stage = reduction.axes.size(); stage > 0; --stage)
          gather(reduction.axes[reduction.axes.size() - stage], after[stage - 1]);
    }
    fetch();
    if (need_.boxes[0].empty()) leave_out_axis();
    return std::move(schedule_);
  }

 private:
  /// The devices that differ from one in a mesh axis alone, itself among them, in order.
  [[nodiscard]] std::vector<Device> group_of(Device device, std::size_t axis) const {
    std::size_t stride = 1;
    for (std::size_t i = axis + 1; i < mesh_.axes.size(); ++i) stride *= static_cast<std::size_t>(mesh_.axes[i].size);
    const Device first = device - static_cast<std::size_t>(places_[device][axis]) * stride;
    std::vector<Device> group;
    for (std::int64_t i = 0; i < mesh_.axes[axis].size; ++i)
      group.push_back(first + static_cast<std::size_t>(i) * stride);
    return group;
  }

  TransferStep& add_step(TransferStep::Kind kind, std::size_t axis) {
    TransferStep& step = schedule_.steps.emplace_back();
    step.kind = kind;
    step.mesh_axis = axis;
    step.received.resize(held_.size());
    step.holds.resize(held_.size());
    return step;
  }
  void receive(TransferStep& step, Device device, Device from, const IndexBox& box) {
    schedule_.elements += volume_of(box);
    step.received[device].push_back({from, box});
  }

  const std::vector<Boxes>& combine(std::size_t stage) {
    const Reduction& reduction = schedule_.reduction;
    const std::size_t axis = reduction.axes[reduction.axes.size() - stage];
    if (stage == 1)
      for (const Boxes& boxes : held_) whole_.push_back(boxes[0]);
    TransferStep& step = add_step(TransferStep::Kind::combine, axis);
    for (Device d = 0; d < held_.size(); ++d) {
      step.holds[d] = scattered(whole_[d], places_[d], reduction, stage, mesh_);
      for (const IndexBox& box : step.holds[d])
        for (const Device e : group_of(d, axis))
          if (e != d) receive(step, d, e, box);
    }
    held_ = step.holds;
    return held_;
  }

  /// Every device gets what the others of its group have of its box of `whole`.
  void gather(std::size_t axis, const std::vector<Boxes>& whole) {
    TransferStep& step = add_step(TransferStep::Kind::fetch, axis);
    for (Device d = 0; d < held_.size(); ++d) {
      for (const Device e : group_of(d, axis))
        if (e != d)
          for (const IndexBox& box : held_[e]) receive(step, d, e, box);
      step.holds[d] = whole[d];
    }
    held_ = step.holds;
  }

  void fetch() {
    TransferStep& step = add_step(TransferStep::Kind::fetch, 0);
    for (Device d = 0; d < held_.size(); ++d) {
      const IndexBox box = with_axis(need_.boxes[d]);
      step.holds[d] = {box};
      Boxes lacking;
      if (volume_of(box) > 0) lacking.push_back(box);
      take_from(d, lacking, nullptr, d);
      for (const Device e : owners_for(d)) {
        if (lacking.empty()) break;
        take_from(e, lacking, &step, d);
      }
    }
    held_ = step.holds;
  }

  /// What `from` has of what is lacking is no longer; it is received, unless there is no step.
  void take_from(Device from, Boxes& lacking, TransferStep* step, Device device) {
    for (const IndexBox& held : held_[from]) {
      Boxes rest;
      for (IndexBox& box : lacking) {
        const IndexBox common = common_of(box, held);
        if (volume_of(common) == 0) {
          rest.push_back(std::move(box));
          continue;
        }
        if (step != nullptr) receive(*step, device, from, common);
        add_without(std::move(box), common, rest);
      }
      lacking = std::move(rest);
    }
  }

  /// The devices that may have what another one lacks, nearest first; of equally near ones everybody begins with
  /// another one.
  [[nodiscard]] std::vector<Device> owners_for(Device device) const {
    const std::size_t devices = held_.size();
    const auto distance = [&](Device e) {
      std::size_t first = mesh_.axes.size(), count = 0;  // The slowest axis along which they differ; how many.
      for (std::size_t axis = mesh_.axes.size(); axis-- > 0;)
        if (places_[e][axis] != places_[device][axis]) {
          first = axis;
          ++count;
        }
      return std::tuple(mesh_.axes.size() - first, count, (e + devices - device) % devices);
    };
    std::vector<Device> owners;
    for (Device e = 0; e < devices; ++e) {
      // Those that have the summand that the device is to have.
      const auto same = [&](std::size_t axis) { return places_[e][axis] == places_[device][axis]; };
      if (e != device && std::all_of(need_.partial.begin(), need_.partial.end(), same)) owners.push_back(e);
    }
    std::sort(owners.begin(), owners.end(), [&](Device a, Device b) { return distance(a) < distance(b); });
    return owners;
  }

  /// Boxes of a tensor without axes again.
  void leave_out_axis() {
    for (TransferStep& step : schedule_.steps) {
      for (std::vector<ReceivedBox>& received : step.received)
        for (ReceivedBox& one : received) one.box.clear();
      for (Boxes& holds : step.holds)
        for (IndexBox& box : holds) box.clear();
    }
  }

  const Placement& need_;
  const Mesh& mesh_;
  std::vector<std::vector<std::int64_t>> places_;
  std::vector<Boxes> held_;  ///< Per device, as of now, with axes.
  Boxes whole_;              ///< Before anything is combined.
  TransferSchedule schedule_;
};

}  // namespace

std::optional<TransferSchedule> transfer_schedule(const Placement& have, const Placement& need,
                                                  std::int64_t element_bytes, const Mesh& mesh) {
  std::optional<Reduction> reduction = TransferSource(have, element_bytes, mesh).reduction_to(need);
  if (!reduction) return std::nullopt;
  return Scheduler(need, std::move(*reduction), mesh).run(have);
}

}  // namespace taso
