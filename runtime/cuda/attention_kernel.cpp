// Attention by cuDNN. Its engines for it are compiled when they are planned, up to a second each: the first few are
// compared, once for all requests that differ in nothing that matters to them.
#include <chrono>

#include "runtime/access.h"
#include "runtime/cuda/attention.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/device_kernel.h"

namespace taso::cuda {
namespace {

/// Fewer than of other engines, as each is compiled.
constexpr EngineLimits few_engines{workspace_limit, 3, 3, true};
constexpr const char* work_name = "attention";

cudnnDataType_t type_of(const KernelRequest& request) {
  return request.outputs[0].type.element == ElementType::f16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
}

/// Queues an engine on a stream. The caller holds the context's mutex.
Status queue_engine(const Context& context, const AttentionPlan& plan, const Engine& engine, std::int64_t width,
                    const Buffers& buffers, cudaStream_t stream) {
  std::vector<std::pair<std::int64_t, const void*>> operands;
  const auto add = [&](AttentionTensor number, const std::byte* begin, std::int64_t offset) {
    operands.emplace_back(static_cast<std::int64_t>(number), begin + offset * width);
  };
  add(AttentionTensor::q, buffers.inputs[plan.q.input], plan.q.offset);
  add(AttentionTensor::k, buffers.inputs[plan.k.input], plan.k.offset);
  add(AttentionTensor::v, buffers.inputs[plan.v.input], plan.v.offset);
  add(AttentionTensor::y, buffers.outputs[0], plan.y.offset);
  if (plan.scale) add(AttentionTensor::scale, buffers.inputs[*plan.scale], 0);
  if (plan.mask) add(AttentionTensor::mask, buffers.inputs[plan.mask->input], plan.mask->offset);
  TASO_RETURN_IF_ERROR(check(cudnnSetStream(context.cudnn, stream), "cuDNN cannot use a stream"));
  return cuda::execute(context.cudnn, engine, operands, engine.workspace > 0 ? buffers.workspace : nullptr);
}

class Attention final : public DeviceKernel {
 public:
  Attention(std::shared_ptr<Context> context, const KernelRequest& request, AttentionPlan plan, PlannedEngine engine)
      : DeviceKernel(std::move(context), request, "cudnn attention, " + engine.description),
        plan_(std::move(plan)),
        engine_(std::move(engine.engine)),
        width_(static_cast<std::int64_t>(size_of(request.outputs[0].type.element))) {
    align_operands();
    if (engine_) reserve(static_cast<std::size_t>(engine_->workspace));
  }

 private:
  Status queue(const Buffers& buffers, cudaStream_t stream) const override {
    if (!engine_) return internal_error("attention that was planned without a device is run");
    const std::scoped_lock lock(context_->mutex);
    return queue_engine(*context_, plan_, *engine_, width_, buffers, stream);
  }

  AttentionPlan plan_;
  std::shared_ptr<const Engine> engine_;  ///< Null without a device.
  std::int64_t width_;
};

/// Plans and chooses engines. The caller holds the context's mutex.
class EngineOfAttention {
 public:
  EngineOfAttention(Context& context, const KernelRequest& request, const AttentionPlan& plan)
      : context_(context), request_(request), plan_(plan), key_(tuning_key(request)) {}

  /// The engine, planned once for all requests with this key.
  PlannedEngine find() {
    if (const auto known = context_.attention.find(key_); known != context_.attention.end()) return known->second;
    PlannedEngine planned = chosen();
    if (planned.description.empty()) planned = chosen_now();
    return context_.attention[key_] = std::move(planned);
  }

 private:
  [[nodiscard]] PlanningTarget target() const {
    return {context_.cudnn, context_.can_run ? nullptr : &context_.device_descriptor};
  }

  static std::string described(const EngineConfiguration& configuration, const std::string& how) {
    return "engine " + std::to_string(configuration.index) + " (" + how + ")";
  }

  /// The engine that was chosen before; none if this version of cuDNN has it no more. Without a device it has a name
  /// only: its code could not be loaded.
  [[nodiscard]] PlannedEngine chosen() const {
    PlannedEngine planned;
    const std::optional<std::string> text = context_.chosen(key_);
    const std::optional<ChosenEngine> known = text ? ChosenEngine::parse(*text) : std::nullopt;
    if (!known || known->work != work_name) return planned;
    if (context_.can_run) {
      Expected<Engine> engine =
          configured_attention(target(), plan_, type_of(request_), workspace_limit, known->configuration);
      if (!engine) return planned;
      planned.engine = std::make_shared<const Engine>(std::move(*engine));
    }
    planned.description = described(known->configuration, known->description);
    return planned;
  }

  /// The fastest of those that plan; without a device the first.
  [[nodiscard]] PlannedEngine chosen_now() const {
    PlannedEngine planned;
    Engines engines = attention_engines(target(), plan_, type_of(request_),
                                        context_.all_engines ? all_engines(workspace_limit) : few_engines);
    if (engines.usable.empty()) {
      if (!context_.can_run && engines.unloadable > 0)
        planned.description = "compiled for a device that is not there";
      else
        planned.reason = "cuDNN has no engine for this attention: " + engines.last_error;
      return planned;
    }
    std::size_t best = 0;
    std::string how = "first of " + std::to_string(engines.usable.size());
    if (context_.can_run) {
      const auto start = std::chrono::steady_clock::now();
      const Expected<FastestCandidate> fastest = tuned(engines.usable);
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      Status kept;
      if (fastest) {
        best = fastest->index;
        how = fastest->description();
        const ChosenEngine text{work_name, engines.usable[best].configuration, how};
        kept = context_.choose(key_, {text.text(), fastest->seconds, took.count()});
      }
      if (!fastest || !kept) {
        planned.reason = (!fastest ? fastest.error() : kept.error()).message;
        return planned;
      }
    }
    planned.description = described(engines.usable[best].configuration, how);
    planned.engine = std::make_shared<const Engine>(std::move(engines.usable[best]));
    return planned;
  }

  /// Times the engines on random operands.
  [[nodiscard]] Expected<FastestCandidate> tuned(const std::vector<Engine>& engines) const {
    TASO_RETURN_IF_ERROR(context_.enter());
    std::vector<DeviceMemory> memory;
    std::vector<const std::byte*> inputs;
    for (const Operand& operand : request_.inputs) {
      TASO_ASSIGN(DeviceMemory one, random_operand(operand.type.element, operand.type.elements(), inputs.size() + 1,
                                                   context_.tuning_stream));
      inputs.push_back(one.data());
      memory.push_back(std::move(one));
    }
    TASO_ASSIGN(const DeviceMemory y,
                DeviceMemory::create(static_cast<std::size_t>(spanned_bytes(request_.outputs[0]))));
    std::int64_t most = 0;
    for (const Engine& engine : engines) most = std::max(most, engine.workspace);
    TASO_ASSIGN(const DeviceMemory space, DeviceMemory::create(static_cast<std::size_t>(most)));
    const std::vector<std::byte*> outputs = {y.data()};
    Buffers buffers;
    buffers.inputs = inputs;
    buffers.outputs = outputs;
    buffers.workspace = space.data();
    const auto width = static_cast<std::int64_t>(size_of(request_.outputs[0].type.element));
    return context_.tune(engines.size(), [&](std::size_t i, cudaStream_t on) {
      return queue_engine(context_, plan_, engines[i], width, buffers, on);
    });
  }

  Context& context_;
  const KernelRequest& request_;
  const AttentionPlan& plan_;
  std::string key_;
};

}  // namespace

KernelOffer attention(const std::shared_ptr<Context>& context, const KernelRequest& request) {
  PlannedAttention planned = plan_attention(request);
  if (!planned.plan) return decline(std::move(planned.reason));
  PlannedEngine engine;
  {
    const std::scoped_lock lock(context->mutex);
    engine = EngineOfAttention(*context, request, *planned.plan).find();
  }
  if (!engine.reason.empty()) return decline(engine.reason);
  return {std::make_unique<Attention>(context, request, std::move(*planned.plan), std::move(engine)), ""};
}

bool plans_attention(Context& context, const KernelRequest& request) {
  const PlannedAttention planned = plan_attention(request);
  if (!planned.plan || (context.can_run && !context.enter())) return false;
  const std::scoped_lock lock(context.mutex);
  return EngineOfAttention(context, request, *planned.plan).find().reason.empty();
}

}  // namespace taso::cuda
