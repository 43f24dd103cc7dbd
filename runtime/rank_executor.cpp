#include "runtime/rank_executor.h"

#include <iterator>
#include <map>
#include <utility>

#include "runtime/storage.h"

namespace taso {
namespace {

/// Why the devices with these endpoints cannot be connected; a rank without one has given the reason instead.
std::string not_connected(const std::vector<std::string>& answers) {
  std::map<std::string, std::size_t> ranks;
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    if (answers[rank].front() == '-') return "rank " + std::to_string(rank) + ": " + answers[rank].substr(1);
    const auto [other, added] = ranks.emplace(answers[rank], rank);
    if (!added)
      return "ranks " + std::to_string(other->second) + " and " + std::to_string(rank) + " have the same device";
  }
  return "";
}

MovedPayload payload_of(const RankGraph& graph, ElementType float_storage) {
  MovedPayload planned;
  const auto of_transfer = [&planned](const RankMessage& message) -> MovedBytes& {
    if (message.transfer >= planned.size()) planned.resize(message.transfer + 1);
    return planned[message.transfer];
  };
  const std::size_t own = graph.graph.inputs().size() - graph.received.size();
  for (std::size_t i = 0; i < graph.sent.size(); ++i)
    of_transfer(graph.sent[i]).sent += stored_bytes(graph.graph.type(graph.graph.outputs()[i]), float_storage);
  for (std::size_t i = 0; i < graph.received.size(); ++i)
    of_transfer(graph.received[i]).received +=
        stored_bytes(graph.graph.type({graph.graph.inputs()[own + i], 0}), float_storage);
  return planned;
}

}  // namespace

Expected<ConnectedDevices> connect_devices(Transport& transport, const KernelLibrary& library) {
  const std::shared_ptr<Backend>& backend = library.backend();
  const Expected<std::string> endpoint =
      backend ? backend->message_endpoint()
              : Expected<std::string>(Error{ErrorCode::device_unavailable, "its kernels are those of the host", {}});
  TASO_ASSIGN(const std::vector<std::string> answers,
              transport.all_gather(endpoint ? "+" + *endpoint : "-" + endpoint.error().message));
  if (std::string reason = not_connected(answers); !reason.empty()) return ConnectedDevices{nullptr, std::move(reason)};
  std::string group;
  const Status made = [&]() -> Status {
    if (transport.rank() != 0) return {};
    TASO_ASSIGN(group, backend->message_group());
    return {};
  }();
  TASO_RETURN_IF_ERROR(agree(transport, made));
  TASO_ASSIGN(const std::vector<std::string> groups, transport.all_gather(group));
  ConnectedDevices connected;
  const Status joined = [&]() -> Status {
    TASO_ASSIGN(connected.messages, backend->join_messages(groups[0], transport.rank(), transport.size()));
    return {};
  }();
  if (!joined) {
    // The others wait in join_messages for this rank and would not come to agree.
    transport.fail(joined.error());
    return joined.error();
  }
  TASO_RETURN_IF_ERROR(agree(transport, {}));
  transport.on_failure([messages = std::weak_ptr(connected.messages)] {
    if (const std::shared_ptr<DeviceMessages> living = messages.lock()) living->abort();
  });
  return connected;
}

Expected<RankExecutor> RankExecutor::create(const RankGraph& graph, Transport& transport, const KernelLibrary& library,
                                            ExecutorOptions options, DeviceMessages* device) {
  RankExecutor made;
  made.first_ = device != nullptr ? 1 : graph.sent.size();
  made.results_ = graph.graph.outputs().size() - graph.sent.size();
  // What the host sends it has widened before.
  made.planned_ = payload_of(graph, device != nullptr ? options.float_storage : ElementType::f32);
  made.communication_ = std::make_unique<Communication>(transport, device);
  options.more_kernels = made.communication_.get();
  if (device != nullptr) options.streams = 1;  // That in which the device's messages are queued.
  TASO_ASSIGN(Executor executor,
              Executor::create(device != nullptr ? with_exchanges(graph) : with_messages(graph), library, options));
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
  return std::span<const HostTensor>(outputs_).subspan(first_, results_);
}

Expected<std::span<const HostTensor>> RankExecutor::run_timed(std::vector<StepTime>& times) {
  communication_->reset();
  TASO_ASSIGN(times, executor_->run_timed(inputs_, outputs_));
  return std::span<const HostTensor>(outputs_).subspan(first_, results_);
}

RankMemory RankExecutor::memory() const {
  RankMemory memory{executor_->weight_bytes(), executor_->arena_bytes(), 0};
  for (const BufferLifetime& buffer : executor_->memory().lifetimes) memory.temporaries += buffer.bytes;
  return memory;
}

}  // namespace taso
