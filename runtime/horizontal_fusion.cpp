#include "runtime/horizontal_fusion.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "runtime/independent_requests.h"
#include "runtime/streamed_graph.h"
#include "support/hash.h"

namespace taso {
namespace {

using Steps = std::vector<std::size_t>;

class ListScheduler {
 public:
  ListScheduler(const LoweredGraph& lowered, const HorizontalFusion& how)
      : how_(how), readers_(lowered.steps.size()), awaited_(lowered.steps.size(), 0) {
    const std::vector<StreamTask> tasks = stream_tasks(lowered, std::vector<PlacedStep>(lowered.steps.size()));
    for (std::size_t step = 0; step < tasks.size(); ++step) {
      awaited_[step] = tasks[step].producers.size();
      for (const std::uint32_t producer : tasks[step].producers) readers_[producer].push_back(step);
      stands_beside_.push_back(static_cast<char>(how.stands_beside(lowered.steps[step].kernel->request)));
    }
  }

  /// The steps of each launch, in order.
  std::vector<Steps> launches() {
    std::vector<Steps> launches;
    for (std::size_t step = 0; step < awaited_.size(); ++step)
      if (awaited_[step] == 0) ready(step);
    while (!alone_.empty() || !beside_.empty()) {
      launches.push_back(next());
      for (const std::size_t step : launches.back())
        for (const std::size_t reader : readers_[step])
          if (--awaited_[reader] == 0) ready(reader);
    }
    return launches;
  }

 private:
  void ready(std::size_t step) { (stands_beside_[step] != 0 ? beside_ : alone_).insert(step); }

  Steps next() {
    const bool alone_is_next = beside_.empty() || (!alone_.empty() && *alone_.begin() <= *beside_.begin() + how_.reach);
    if (alone_is_next) return {alone_.extract(alone_.begin()).value()};
    Steps steps;
    const std::size_t last = *beside_.begin() + how_.reach;
    while (!beside_.empty() && *beside_.begin() <= last && steps.size() < how_.most)
      steps.push_back(beside_.extract(beside_.begin()).value());
    return steps;
  }

  const HorizontalFusion& how_;
  std::vector<Steps> readers_;
  std::vector<std::size_t> awaited_;  ///< Per step: producers that have not run.
  std::vector<char> stands_beside_;
  std::set<std::size_t> alone_, beside_;  ///< Ready.
};

/// One step for several; nothing where there is no kernel for it.
std::optional<LoweredStep> joined(const LoweredGraph& lowered, const Steps& steps, const HorizontalFusion& how) {
  std::vector<NamedRequest> requests;
  for (const std::size_t step : steps)
    requests.push_back({&lowered.steps[step].kernel->request, lowered.steps[step].inputs});
  JoinedRequest all = join_requests(requests);
  if (!how.stands_beside(all.request)) return std::nullopt;
  LoweredStep made;
  auto kernel = std::make_shared<PlannedKernel>();
  kernel->request = std::move(all.request);
  kernel->key = kernel->request.key();
  kernel->key_hash = hash_text(kernel->key);
  made.kernel = std::move(kernel);
  made.inputs = std::move(all.names);
  for (const std::size_t number : steps) {
    const LoweredStep& step = lowered.steps[number];
    made.node = step.node;
    made.outputs.insert(made.outputs.end(), step.outputs.begin(), step.outputs.end());
    if (step.fused.empty())
      made.fused.push_back(step.node);
    else
      made.fused.insert(made.fused.end(), step.fused.begin(), step.fused.end());
  }
  return made;
}

}  // namespace

LoweredGraph fuse_horizontally(LoweredGraph lowered, const HorizontalFusion& how) {
  std::vector<LoweredStep> steps;
  const std::function<void(const Steps&)> add = [&](const Steps& launch) {
    if (launch.size() == 1) return steps.push_back(lowered.steps[launch[0]]);
    if (std::optional<LoweredStep> one = joined(lowered, launch, how)) return steps.push_back(std::move(*one));
    const auto middle = launch.begin() + static_cast<std::ptrdiff_t>(launch.size() / 2);
    add({launch.begin(), middle});
    add({middle, launch.end()});
  };
  for (const Steps& launch : ListScheduler(lowered, how).launches()) add(launch);
  if (steps.size() == lowered.steps.size()) return lowered;
  lowered.steps = std::move(steps);
  for (std::uint32_t number = 0; number < lowered.steps.size(); ++number)
    for (const TensorIndex output : lowered.steps[number].outputs) lowered.tensors[output].step = number;
  return lowered;
}

}  // namespace taso
