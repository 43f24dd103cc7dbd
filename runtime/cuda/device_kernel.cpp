#include "runtime/cuda/device_kernel.h"

#include <algorithm>
#include <array>

#include "runtime/cuda/launch.h"
#include "runtime/cuda/source.h"

namespace taso::cuda {
namespace {

/// The smallest multiple of 256 at or above.
std::byte* rounded_up(std::byte* pointer) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  return pointer + (aligned(address) - address);
}

bool is_aligned(const std::byte* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % operand_alignment == 0; }

class OwnKernel final : public DeviceKernel {
 public:
  OwnKernel(std::shared_ptr<Context> context, const KernelRequest& request, Program program)
      : DeviceKernel(std::move(context), request, program.name), program_(std::move(program)) {
    for (const Step& step : program_.steps)
      if (const auto* gathering = std::get_if<GatheringStep>(&step)) number_ = context_->index_check(gathering->extent);
  }
  std::size_t launches() const override {
    std::size_t launches = 0;
    for (const Step& step : program_.steps) launches += launches_of(step);
    return launches;
  }

 private:
  Status queue(const Buffers& buffers, cudaStream_t stream) const override {
    Buffers with_check = buffers;
    with_check.error = context_->error_slot();
    with_check.number = number_;
    for (const Step& step : program_.steps) TASO_RETURN_IF_ERROR(launch(step, with_check, stream));
    return {};
  }
  Program program_;
  unsigned long long number_ = 0;
};

/// A program whose kernels were generated for it.
class GeneratedOwnKernel final : public DeviceKernel {
 public:
  /// `loaded`: null where nothing runs.
  GeneratedOwnKernel(std::shared_ptr<Context> context, const KernelRequest& request, const Program& program,
                     GeneratedProgram generated, std::shared_ptr<const LoadedKernels> loaded)
      : DeviceKernel(std::move(context), request, generated.name),
        generated_(std::move(generated)),
        loaded_(std::move(loaded)) {
    if (program.workspace_bytes > 0) reserve(program.workspace_bytes);
    for (const Step& step : program.steps)
      if (const auto* gathering = std::get_if<GatheringStep>(&step)) number_ = context_->index_check(gathering->extent);
  }
  std::size_t launches() const override {
    return static_cast<std::size_t>(std::count_if(generated_.steps.begin(), generated_.steps.end(),
                                                  [](const GeneratedStep& step) { return !step.kernels.empty(); }));
  }
  std::string code() const override { return generated_.source; }

 private:
  Status queue(const Buffers& buffers, cudaStream_t stream) const override {
    Buffers with_check = buffers;
    with_check.error = context_->error_slot();
    with_check.number = number_;
    for (const GeneratedStep& step : generated_.steps)
      if (const GeneratedKernel* kernel = kernel_for(step, with_check))
        TASO_RETURN_IF_ERROR(loaded_->launch(*kernel, with_check, stream));
    return {};
  }
  GeneratedProgram generated_;
  std::shared_ptr<const LoadedKernels> loaded_;
  unsigned long long number_ = 0;
};

/// Null where the precompiled kernels are to do it: there is no compiler, it fails, or what it made failed before.
std::unique_ptr<Kernel> generated_kernel(const std::shared_ptr<Context>& context, const KernelRequest& request,
                                         const Program& program) {
  if (!context->builder || context->rejections(tuning_key(request)) > 0) return nullptr;
  GeneratedOffer offer = generate_source(program);
  if (!offer.program) return nullptr;
  std::shared_ptr<const LoadedKernels> loaded;
  if (context->can_run) {
    auto found = context->load(*offer.program);
    if (!found) return nullptr;
    loaded = std::move(*found);
  }
  return std::make_unique<GeneratedOwnKernel>(context, request, program, std::move(*offer.program), std::move(loaded));
}

}  // namespace

DeviceKernel::DeviceKernel(std::shared_ptr<Context> context, const KernelRequest& request, std::string implementation)
    : Kernel(std::move(implementation)),
      context_(std::move(context)),
      inputs_(request.inputs.size()),
      outputs_(request.outputs.size()) {
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    inputs_[i].bytes = static_cast<std::size_t>(request.inputs[i].type.bytes());
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    outputs_[i].bytes = static_cast<std::size_t>(request.outputs[i].type.bytes());
    outputs_[i].is_within = static_cast<bool>(request.outputs[i].within);
  }
}

std::int64_t DeviceKernel::reserve(std::size_t bytes) {
  const std::size_t offset = reserved_;
  reserved_ += aligned(bytes);
  // KernelArguments promise less than what libraries like to have: the begin is rounded up.
  workspace_bytes_ = reserved_ == 0 ? 0 : reserved_ + 256;
  return static_cast<std::int64_t>(offset);
}

Status DeviceKernel::execute(const KernelArguments& arguments) const {
  if (!context_->can_run)
    return Error{ErrorCode::device_unavailable,
                 "kernels for the description of a device cannot be run (" + implementation_ + ")",
                 {}};
  TASO_RETURN_IF_ERROR(context_->enter());
  Buffers buffers;
  buffers.inputs = arguments.inputs;
  buffers.outputs = arguments.outputs;
  buffers.workspace = workspace_bytes_ == 0 ? nullptr : rounded_up(arguments.workspace);
  TASO_CHECK(arguments.stream < context_->streams.size(), "a stream that there is not");
  const cudaStream_t stream = context_->streams[arguments.stream];
  return aligns_ ? queue_aligned(buffers, stream) : queue(buffers, stream);
}

Status DeviceKernel::queue_aligned(const Buffers& buffers, cudaStream_t stream) const {
  if (std::all_of(buffers.inputs.begin(), buffers.inputs.end(), is_aligned) &&
      std::all_of(buffers.outputs.begin(), buffers.outputs.end(), is_aligned))
    return queue(buffers, stream);
  const std::scoped_lock lock(staging_mutex_);
  const char* what = "CUDA cannot copy an operand";
  std::vector<const std::byte*> inputs(buffers.inputs.begin(), buffers.inputs.end());
  std::vector<std::byte*> outputs(buffers.outputs.begin(), buffers.outputs.end());
  const auto stage = [](const Stage& of) -> Expected<std::byte*> {
    if (of.memory.data() == nullptr) {
      TASO_ASSIGN(of.memory, DeviceMemory::create(of.bytes));
    }
    return of.memory.data();
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (is_aligned(inputs[i])) continue;
    TASO_ASSIGN(std::byte * copy, stage(inputs_[i]));
    TASO_RETURN_IF_ERROR(
        check(cudaMemcpyAsync(copy, inputs[i], inputs_[i].bytes, cudaMemcpyDeviceToDevice, stream), what));
    inputs[i] = copy;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (is_aligned(outputs[i])) continue;
    if (outputs_[i].is_within) return internal_error("a result within a wider tensor that does not begin where it may");
    TASO_ASSIGN(outputs[i], stage(outputs_[i]));
  }
  Buffers staged = buffers;
  staged.inputs = inputs;
  staged.outputs = outputs;
  TASO_RETURN_IF_ERROR(queue(staged, stream));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i] != buffers.outputs[i])
      TASO_RETURN_IF_ERROR(check(
          cudaMemcpyAsync(buffers.outputs[i], outputs[i], outputs_[i].bytes, cudaMemcpyDeviceToDevice, stream), what));
  return {};
}

namespace {

PlannedProgram plan_by_definition(const KernelRequest& request, const Operators& operators) {
  if (!operators.body) return {std::nullopt, "no definition"};
  Expected<LoweredBody> body = operators.body(request);
  if (!body) return {std::nullopt, body.error().message};
  return plan_definition(request, std::make_shared<const LoweredBody>(*std::move(body)));
}

}  // namespace

bool fuses_definitions(const Context& context, const KernelRequest& request, const Operators& operators) {
  if (!context.builder || context.rejections(tuning_key(request)) > 0) return false;
  bool is_needed = false;
  for (const FusedPart& part : request.fused->parts) {
    if (part.request.op.starts_with("conv2d") || part.request.op.starts_with("matmul")) return false;
    is_needed = is_needed || !plan_program(part.request).program;
  }
  if (!is_needed) return false;
  const PlannedProgram planned = plan_by_definition(request, operators);
  return planned.program && planned.program->steps.size() == 1;
}

KernelOffer own_kernel(const std::shared_ptr<Context>& context, const KernelRequest& request,
                       const Operators& operators) {
  PlannedProgram planned = plan_program(request);
  if (!planned.program) {
    PlannedProgram defined = plan_by_definition(request, operators);
    if (!defined.program) return decline(planned.reason + "; by its definition: " + defined.reason);
    if (auto kernel = generated_kernel(context, request, *defined.program)) return {std::move(kernel), ""};
    // What is fused is asked about again: it is computed part by part then.
    if (context->builder && context->rejections(tuning_key(request)) == 0) (void)context->reject(tuning_key(request));
    return decline(planned.reason + "; by its definition: no kernel is generated");
  }
  if (auto kernel = generated_kernel(context, request, *planned.program)) return {std::move(kernel), ""};
  return {std::make_unique<OwnKernel>(context, request, std::move(*planned.program)), ""};
}

std::string tuning_key(KernelRequest request) {
  request.threads = 1;
  request.cached_tenths = 0;
  return request.key();
}

Expected<DeviceMemory> random_operand(ElementType element, std::int64_t count, std::uint64_t seed,
                                      cudaStream_t stream) {
  TASO_ASSIGN(DeviceMemory memory, DeviceMemory::create(static_cast<std::size_t>(count) * size_of(element)));
  TASO_RETURN_IF_ERROR(launch_random(element, memory.data(), count, seed, stream));
  return memory;
}

}  // namespace taso::cuda
