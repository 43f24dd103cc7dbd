// Attention by cuDNN. Its engines for it are compiled when they are planned, up to a second each: once for all requests
// that differ in nothing that matters to it.
#include "runtime/cuda/attention.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/device_kernel.h"

namespace taso::cuda {
namespace {

/// The first one that plans: there are few.
constexpr EngineLimits limits{workspace_limit, 1, 1, true};

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
    std::vector<std::pair<std::int64_t, const void*>> operands;
    const auto add = [&](AttentionTensor number, const std::byte* begin, std::int64_t offset) {
      operands.emplace_back(static_cast<std::int64_t>(number), begin + offset * width_);
    };
    add(AttentionTensor::q, buffers.inputs[plan_.q.input], plan_.q.offset);
    add(AttentionTensor::k, buffers.inputs[plan_.k.input], plan_.k.offset);
    add(AttentionTensor::v, buffers.inputs[plan_.v.input], plan_.v.offset);
    add(AttentionTensor::y, buffers.outputs[0], plan_.y.offset);
    if (plan_.scale) add(AttentionTensor::scale, buffers.inputs[*plan_.scale], 0);
    if (plan_.mask) add(AttentionTensor::mask, buffers.inputs[plan_.mask->input], plan_.mask->offset);
    const std::scoped_lock lock(context_->mutex);
    TASO_RETURN_IF_ERROR(check(cudnnSetStream(context_->cudnn, stream), "cuDNN cannot use a stream"));
    return cuda::execute(context_->cudnn, *engine_, operands, engine_->workspace > 0 ? buffers.workspace : nullptr);
  }

  AttentionPlan plan_;
  std::shared_ptr<const Engine> engine_;  ///< Null without a device.
  std::int64_t width_;
};

/// The engine for a request, planned once. The caller holds the context's mutex.
PlannedEngine planned_engine(Context& context, const KernelRequest& request, const AttentionPlan& plan) {
  const std::string key = tuning_key(request);
  if (const auto known = context.attention.find(key); known != context.attention.end()) return known->second;
  const cudnnDataType_t type =
      request.outputs[0].type.element == ElementType::f16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
  const PlanningTarget target{context.cudnn, context.can_run ? nullptr : &context.device_descriptor};
  Engines engines = attention_engines(target, plan, type, limits);
  PlannedEngine planned;
  if (!engines.usable.empty()) {
    planned.engine = std::make_shared<const Engine>(std::move(engines.usable[0]));
    planned.description = "engine " + std::to_string(planned.engine->configuration.index);
  } else if (!context.can_run && engines.unloadable > 0) {
    planned.description = "compiled for a device that is not there";
  } else {
    planned.reason = "cuDNN has no engine for this attention: " + engines.last_error;
  }
  return context.attention[key] = std::move(planned);
}

}  // namespace

KernelOffer attention(const std::shared_ptr<Context>& context, const KernelRequest& request) {
  PlannedAttention planned = plan_attention(request);
  if (!planned.plan) return decline(std::move(planned.reason));
  PlannedEngine engine;
  {
    const std::scoped_lock lock(context->mutex);
    engine = planned_engine(*context, request, *planned.plan);
  }
  if (!engine.reason.empty()) return decline(engine.reason);
  return {std::make_unique<Attention>(context, request, std::move(*planned.plan), std::move(engine)), ""};
}

bool plans_attention(Context& context, const KernelRequest& request) {
  const PlannedAttention planned = plan_attention(request);
  if (!planned.plan || (context.can_run && !context.enter())) return false;
  const std::scoped_lock lock(context.mutex);
  return planned_engine(context, request, *planned.plan).reason.empty();
}

}  // namespace taso::cuda
