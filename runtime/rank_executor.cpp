#include "runtime/rank_executor.h"

#include <iterator>
#include <utility>

namespace taso {

Expected<RankExecutor> RankExecutor::create(const RankGraph& graph, Transport& transport, const KernelLibrary& library,
                                            ExecutorOptions options) {
  RankExecutor made;
  made.sent_ = graph.sent.size();
  made.results_ = graph.graph.outputs().size() - made.sent_;
  for (const RankMessage& message : graph.sent) made.planned_[message.transfer].sent += message.bytes;
  for (const RankMessage& message : graph.received) made.planned_[message.transfer].received += message.bytes;
  made.communication_ = std::make_unique<Communication>(transport);
  options.more_kernels = made.communication_.get();
  TASO_ASSIGN(Executor executor, Executor::create(with_messages(graph), library, options));
  made.executor_ = std::make_unique<Executor>(std::move(executor));
  for (const TensorType& type : made.executor_->output_types()) made.outputs_.emplace_back(type);
  return made;
}

Status RankExecutor::set_inputs(std::span<const HostTensor> inputs) {
  if (inputs.size() + 1 != executor_->input_types().size())
    return bad_input("the model takes " + std::to_string(executor_->input_types().size() - 1) + " inputs, " +
                     std::to_string(inputs.size()) + " were given");
  inputs_.clear();
  for (const HostTensor& input : inputs) inputs_.push_back(input.copy());
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
