#include "runtime/lifetimes.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "runtime/configuration.h"

namespace taso {
namespace {

using Source = LoweredTensor::Source;
using Places = std::vector<MemoryPlan::Place>;

/// Replaces places in a tensor that lies in another itself by places in the root.
void resolve(Places& places) {
  for (MemoryPlan::Place& place : places)
    while (places[place.root].root != place.root) {
      place.offset += places[place.root].offset;
      place.root = places[place.root].root;
    }
}

/// Of the roots, without bytes.
std::vector<BufferLifetime> lifetimes_in(const LoweredGraph& lowered, const Places& places) {
  std::vector<BufferLifetime> lifetimes(places.size(), {0, std::numeric_limits<std::uint32_t>::max(), 0});
  const auto touch = [&](TensorIndex tensor, std::size_t step) {
    BufferLifetime& lifetime = lifetimes[places[tensor].root];
    lifetime.first = std::min(lifetime.first, static_cast<std::uint32_t>(step));
    lifetime.last = std::max(lifetime.last, static_cast<std::uint32_t>(step));
  };
  for (std::size_t step = 0; step < lowered.steps.size(); ++step) {
    for (const TensorIndex tensor : lowered.steps[step].inputs) touch(tensor, step);
    for (const TensorIndex tensor : lowered.steps[step].outputs) touch(tensor, step);
  }
  for (const TensorIndex tensor : lowered.outputs) touch(tensor, lowered.steps.size());
  return lifetimes;
}

/// Places results over the residuals that are added to them: their kernels then copy nothing. `plan` has the places and
/// lifetimes without that; says whether any place has changed.
bool write_over_residuals(const LoweredGraph& lowered, MemoryPlan& plan) {
  std::vector<std::pair<TensorIndex, TensorIndex>> moves;
  for (std::size_t i = 0; i < lowered.steps.size(); ++i) {
    const LoweredStep& step = lowered.steps[i];
    const std::size_t residual = residual_of(step.kernel->request.op);
    if (residual == 0) continue;
    const TensorIndex memory = plan.places[step.inputs[residual]].root, output = step.outputs[0];
    const LoweredTensor& entry = lowered.tensors[memory];
    const bool is_temporary = entry.source == Source::kernel || entry.source == Source::pieces;
    const auto readers = std::count_if(step.inputs.begin(), step.inputs.end(),
                                       [&](TensorIndex input) { return plan.places[input].root == memory; });
    if (is_temporary && plan.lifetimes[memory].last == i && readers == 1 && plan.places[output].root == output &&
        entry.type.bytes() == lowered.tensors[output].type.bytes())
      moves.emplace_back(output, memory);
  }
  for (const auto& [output, memory] : moves) plan.places[output].root = memory;
  return !moves.empty();
}

/// Which tensors lie where, and how long, without offsets in the arena.
MemoryPlan plan_places(const LoweredGraph& lowered, MemoryOf memory) {
  MemoryPlan plan;
  for (TensorIndex i = 0; i < lowered.tensors.size(); ++i) {
    const LoweredTensor& tensor = lowered.tensors[i];
    const bool lies_in_another = tensor.source == Source::view || tensor.source == Source::piece;
    plan.places.push_back(lies_in_another ? MemoryPlan::Place{tensor.index, static_cast<std::size_t>(tensor.offset)}
                                          : MemoryPlan::Place{i, 0});
  }
  resolve(plan.places);
  plan.lifetimes = lifetimes_in(lowered, plan.places);
  if (memory == MemoryOf::host && write_over_residuals(lowered, plan)) {
    resolve(plan.places);
    plan.lifetimes = lifetimes_in(lowered, plan.places);
  }
  return plan;
}

/// The roots that lie in the arena, with their lifetimes in the plan completed.
std::vector<TensorIndex> roots_in_arena(const LoweredGraph& lowered, MemoryOf memory, MemoryPlan& plan) {
  std::vector<TensorIndex> roots;
  for (TensorIndex i = 0; i < lowered.tensors.size(); ++i) {
    const LoweredTensor& tensor = lowered.tensors[i];
    const bool is_input = tensor.source == Source::input;
    const bool is_placed = plan.places[i].root == i && tensor.source != Source::weight && plan.is_used(i) &&
                           (!is_input || memory == MemoryOf::device);
    if (!is_placed) continue;
    BufferLifetime& lifetime = plan.lifetimes[i];
    lifetime.bytes = static_cast<std::size_t>(tensor.type.bytes());
    if (is_input) lifetime = {lifetime.bytes, 0, static_cast<std::uint32_t>(lowered.steps.size())};
    roots.push_back(i);
  }
  return roots;
}

std::vector<BufferLifetime> lifetimes_of(const std::vector<TensorIndex>& roots, const MemoryPlan& plan) {
  std::vector<BufferLifetime> buffers;
  for (const TensorIndex root : roots) buffers.push_back(plan.lifetimes[root]);
  return buffers;
}

void place_roots(const std::vector<TensorIndex>& roots, const ArenaPlan& arena, MemoryPlan& plan) {
  plan.bytes = arena.bytes;
  std::vector<std::size_t> starts(plan.places.size(), 0);
  for (std::size_t i = 0; i < roots.size(); ++i) starts[roots[i]] = arena.offsets[i];
  for (MemoryPlan::Place& place : plan.places) place.offset += starts[place.root];
}

/// The steps that touch a root's memory, and those that begin when all of these are over. What outputs and inputs are
/// is touched by more than steps: they have no steps after them, or before.
struct Touches {
  std::vector<std::uint32_t> steps;
  StepSet after;
  bool from_start = false;  ///< In use before all steps...
  bool to_end = false;      ///< ...or after all.

  [[nodiscard]] bool are_before(const Touches& others) const {
    return !to_end && !others.from_start &&
           std::all_of(others.steps.begin(), others.steps.end(),
                       [&](std::uint32_t step) { return after.contains(step); });
  }
};

std::vector<Touches> touches_of(const LoweredGraph& lowered, const MemoryPlan& plan, const StepOrder& order) {
  std::vector<Touches> touches(plan.places.size(), {{}, StepSet(order.size(), true)});
  for (std::uint32_t step = 0; step < lowered.steps.size(); ++step)
    for (const std::vector<TensorIndex>* tensors : {&lowered.steps[step].inputs, &lowered.steps[step].outputs})
      for (const TensorIndex tensor : *tensors) {
        Touches& of_root = touches[plan.places[tensor].root];
        of_root.steps.push_back(step);
        of_root.after.intersect(order.after(step));
      }
  for (const TensorIndex output : lowered.outputs) touches[plan.places[output].root].to_end = true;
  for (TensorIndex i = 0; i < lowered.tensors.size(); ++i)
    if (lowered.tensors[i].source == Source::input) touches[i].from_start = touches[i].to_end = true;
  return touches;
}

}  // namespace

MemoryPlan plan_memory(const LoweredGraph& lowered, MemoryOf memory) {
  MemoryPlan plan = plan_places(lowered, memory);
  const std::vector<TensorIndex> roots = roots_in_arena(lowered, memory, plan);
  place_roots(roots, plan_arena(lifetimes_of(roots, plan), arena_alignment(memory)), plan);
  return plan;
}

MemoryPlan plan_memory(const LoweredGraph& lowered, const StepOrder& order) {
  TASO_CHECK(order.size() == lowered.steps.size(), "an order of other steps");
  MemoryPlan plan = plan_places(lowered, MemoryOf::device);
  const std::vector<TensorIndex> roots = roots_in_arena(lowered, MemoryOf::device, plan);
  const std::vector<Touches> touches = touches_of(lowered, plan, order);
  const auto meets = [&](std::size_t a, std::size_t b) {
    const Touches &first = touches[roots[a]], &second = touches[roots[b]];
    return !first.are_before(second) && !second.are_before(first);
  };
  place_roots(roots, plan_arena(lifetimes_of(roots, plan), arena_alignment(MemoryOf::device), meets), plan);
  return plan;
}

}  // namespace taso
