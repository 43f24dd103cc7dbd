#include "runtime/streamed_graph.h"

#include <algorithm>
#include <map>
#include <utility>

namespace taso {
namespace {

using Source = LoweredTensor::Source;

/// The steps that write what a tensor shows, by tensor.
class Writers {
 public:
  explicit Writers(const LoweredGraph& lowered) : lowered_(lowered) {
    for (const LoweredTensor& tensor : lowered.tensors)
      if (tensor.source == Source::piece) of_pieces_[tensor.index].push_back(tensor.step);
  }
  void add(TensorIndex tensor, std::vector<std::uint32_t>& steps) const {
    while (lowered_.tensors[tensor].source == Source::view) tensor = lowered_.tensors[tensor].index;
    const LoweredTensor& written = lowered_.tensors[tensor];
    if (written.source == Source::kernel || written.source == Source::piece) steps.push_back(written.step);
    if (const auto pieces = of_pieces_.find(tensor); pieces != of_pieces_.end())
      steps.insert(steps.end(), pieces->second.begin(), pieces->second.end());
  }

 private:
  const LoweredGraph& lowered_;
  std::map<TensorIndex, std::vector<std::uint32_t>> of_pieces_;
};

}  // namespace

std::vector<StreamTask> stream_tasks(const LoweredGraph& lowered, std::span<const PlacedStep> placed) {
  TASO_CHECK(placed.size() == lowered.steps.size(), "costs of other steps");
  const Writers writers(lowered);
  std::vector<StreamTask> tasks;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    StreamTask& task = tasks.emplace_back();
    task.cost = placed[i].cost;
    task.on_device = placed[i].on_device;
    for (const TensorIndex input : lowered.steps[i].inputs) writers.add(input, task.producers);
    std::sort(task.producers.begin(), task.producers.end());
    task.producers.erase(std::unique(task.producers.begin(), task.producers.end()), task.producers.end());
  }
  return tasks;
}

void order_steps(LoweredGraph& lowered, const StreamSchedule& schedule) {
  std::vector<LoweredStep> steps;
  for (const ScheduledStep& scheduled : schedule.steps) {
    const auto position = static_cast<std::uint32_t>(steps.size());
    LoweredStep& step = steps.emplace_back(std::move(lowered.steps[scheduled.task]));
    for (const TensorIndex output : step.outputs) lowered.tensors[output].step = position;
  }
  lowered.steps = std::move(steps);
}

}  // namespace taso
