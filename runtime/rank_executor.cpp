#include "runtime/rank_executor.h"

#include <iterator>
#include <utility>

namespace taso {

Expected<RankExecutor> RankExecutor::create(const RankGraph& graph, Transport& transport, const KernelLibrary& library,
                                            ExecutorOptions options) {
  RankExecutor made;
  made.sent_ = graph.sent.size();
  made.results_ = graph.graph.outputs().size() - made.sent_;
  const auto planned = [&made](const RankMessage& message) -> MovedBytes& {
    if (message.transfer >= made.planned_.size()) made.planned_.resize(message.transfer + 1);
    return made.planned_[message.transfer];
  };
  for (const RankMessage& message : graph.sent) planned(message).sent += message.bytes;
  for (const RankMessage& message : graph.received) planned(message).received += message.bytes;
  made.communication_ = std::make_unique<Communication>(transport);
  options.more_kernels = made.communication_.get();
  TASO_ASSIGN(Executor executor, Executor::create(with_messages(graph), library, options));
  made.executor_ = std::make_unique<Executor>(std::move(executor));
  for (const TensorType& type : made.executor_->output_types()) made.outputs_.emplace_back(type);
  return made;
}

Status RankExecutor::set_inputs(std::vector<HostTensor> inputs) {
  if (inputs.size() + 1 != executor_->input_types().size())
    return bad_input("the model takes " + std::to_string(executor_->input_types().size() - 1) + " inputs, " +
                     std::to_string(inputs.size()) + " were given");
  inputs_ = std::move(inputs);
  inputs_.emplace_back(executor_->input_types().back());
  return {};
}

Expected<std::span<const HostTensor>> RankExecutor::run() {
  communication_->reset();
  TASO_RETURN_IF_ERROR(executor_->run_into(inputs_, outputs_));
  return std::span<const HostTensor>(outputs_).subspan(sent_, results_);
}

Expected<std::span<const HostTensor>> RankExecutor::run_timed(std::vector<StepTime>& times) {
  communication_->reset();
  TASO_ASSIGN(times, executor_->run_timed(inputs_, outputs_));
  return std::span<const HostTensor>(outputs_).subspan(sent_, results_);
}

RankMemory RankExecutor::memory() const {
  RankMemory memory{executor_->weight_bytes(), executor_->arena_bytes(), 0};
  for (const BufferLifetime& buffer : executor_->memory().lifetimes) memory.temporaries += buffer.bytes;
  return memory;
}

}  // namespace taso
