// Convolutions by cuDNN. What its engines do not fuse follows as a pass of our own: padding before, the activation and
// the sum after.
#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/device_kernel.h"
#include "runtime/cuda/launch.h"
#include "runtime/strides.h"

namespace taso::cuda {
namespace {

cudnnDataType_t type_of(ElementType element) {
  if (element == ElementType::f16) return CUDNN_DATA_HALF;
  if (element == ElementType::bf16) return CUDNN_DATA_BFLOAT16;
  return CUDNN_DATA_FLOAT;
}

/// How a request is divided between cuDNN and our own passes.
struct Division {
  ConvolutionGraph graph;
  std::vector<std::int64_t> padding;  ///< By a pass before, if not empty: top, left, bottom, right.
  bool zero_bias = false;             ///< The graph has a bias that the request has not.
  /// What is left for the pass after.
  bool bias_left = false, residual_left = false;
  Function act_left = Function::identity;
  [[nodiscard]] bool has_rest() const { return bias_left || residual_left || act_left != Function::identity; }
};

/// What of a request decides about divisions.
struct Asked {
  ConvolutionGraph plain;
  std::vector<std::int64_t> pads;
  bool bias = false, residual = false, residual_fits = false;
  Function act = Function::identity;
};

/// Where the pads at both ends differ but the end needs no more than the begin has, equal pads give the same result:
/// what the last windows leave over may be anything less than a stride.
void even_out(ConvolutionGraph& graph) {
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t window = (graph.w[2 + i] - 1) * graph.dilations[i] + 1;
    const std::int64_t needed = (graph.y[2 + i] - 1) * graph.strides[i] + window - graph.x[2 + i] - graph.before[i];
    if (graph.before[i] >= needed && graph.before[i] < needed + graph.strides[i]) graph.after[i] = graph.before[i];
  }
}

/// All divisions, best first: as much as possible in cuDNN's engine, then with less of it, then with padding before.
std::vector<Division> divisions_of(const Asked& asked) {
  std::vector<Division> list;
  const auto add = [&](bool padded, bool bias, bool residual, bool relu) {
    Division division;
    division.graph = asked.plain;
    if (padded) {
      division.padding = asked.pads;
      division.graph.x[2] += asked.pads[0] + asked.pads[2];
      division.graph.x[3] += asked.pads[1] + asked.pads[3];
      division.graph.before = division.graph.after = {0, 0};
    } else {
      even_out(division.graph);
    }
    division.graph.residual = residual;
    division.graph.relu = relu;
    // The engines have residual and activation only together with a bias.
    division.graph.bias = bias || residual || relu;
    division.zero_bias = division.graph.bias && !asked.bias;
    division.bias_left = asked.bias && !division.graph.bias;
    division.residual_left = asked.residual && !residual;
    division.act_left = relu ? Function::identity : asked.act;
    list.push_back(std::move(division));
  };
  const bool relu = asked.act == Function::relu, residual = asked.residual && asked.residual_fits;
  for (const bool padded : {false, true}) {
    if (padded && asked.pads == std::vector<std::int64_t>{0, 0, 0, 0}) continue;
    if (residual) {
      if (relu) add(padded, asked.bias, true, true);
      if (!relu) add(padded, asked.bias, true, false);
    }
    if (relu && !asked.residual) add(padded, asked.bias, false, true);
    if (asked.bias) add(padded, true, false, false);
    add(padded, false, false, false);
  }
  return list;
}

class Convolution final : public DeviceKernel {
 public:
  Convolution(std::shared_ptr<Context> context, const KernelRequest& request)
      : DeviceKernel(std::move(context), request, "cudnn"), request_(request) {
    align_operands();
  }

  std::size_t launches() const override { return 1 + (padding_ ? 1 : 0) + (reorder_ ? 1 : 0) + (epilogue_ ? 1 : 0); }
  std::string packed_format(std::size_t index) const override { return index == 1 ? packed_format_ : ""; }
  std::size_t packed_bytes(std::size_t) const override {
    return static_cast<std::size_t>(request_.inputs[1].type.bytes());
  }
  void pack(std::size_t index, const std::byte* plain, std::byte* packed) const override {
    TASO_CHECK(index == 1 && !packed_format_.empty(), "packing an input that is not packed");
    const Operand& w = request_.inputs[1];
    const std::size_t width = size_of(w.type.element);
    const auto from = strides_of(w.type.shape, w.layout), to = strides_of(w.type.shape, Layout::channels_last);
    const Shape& shape = w.type.shape;
    for (std::int64_t k = 0; k < shape[0]; ++k)
      for (std::int64_t r = 0; r < shape[2]; ++r)
        for (std::int64_t s = 0; s < shape[3]; ++s)
          for (std::int64_t c = 0; c < shape[1]; ++c) {
            const std::int64_t source = k * from[0] + c * from[1] + r * from[2] + s * from[3];
            const std::int64_t target = k * to[0] + c * to[1] + r * to[2] + s * to[3];
            std::memcpy(packed + static_cast<std::size_t>(target) * width,
                        plain + static_cast<std::size_t>(source) * width, width);
          }
  }

  /// Finds engines and takes one. A reason if there is none.
  Expected<std::string> prepare() {
    std::string reason;
    Asked asked;
    TASO_ASSIGN(reason, examine(asked));
    if (!reason.empty()) return reason;
    const std::scoped_lock lock(context_->mutex);
    const PlanningTarget target{context_->cudnn, context_->can_run ? nullptr : &context_->device_descriptor};
    const std::string key = tuning_key(request_);
    std::vector<Division> divisions = divisions_of(asked);
    if (const auto known = context_->choices.find(key); known != context_->choices.end()) {
      const Choice& choice = known->second;
      division_ = std::move(divisions.at(choice.division));
      Engines engines = convolution_engines(target, division_.graph, context_->math, workspace_limit, choice.engine);
      if (engines.usable.empty()) return "cuDNN no longer has the engine that it had (" + engines.last_error + ")";
      TASO_RETURN_IF_ERROR(place());
      take(std::move(engines.usable[0]), choice.description);
      return std::string();
    }
    for (std::size_t i = 0; i < divisions.size(); ++i) {
      Engines engines = convolution_engines(target, divisions[i].graph, context_->math, workspace_limit);
      if (engines.usable.empty()) {
        // The first division is what one wanted to have: its reason is the one to tell.
        if (reason.empty())
          reason = "cuDNN has no engine (" + std::to_string(engines.unsupported) + " without a plan, " +
                   std::to_string(engines.other_arithmetic) + " of other arithmetic" +
                   (engines.last_error.empty() ? "" : "; " + engines.last_error) + ")";
        continue;
      }
      division_ = std::move(divisions[i]);
      TASO_RETURN_IF_ERROR(place());
      Choice choice{0, i, "first of " + std::to_string(engines.usable.size())};
      if (context_->can_run) {
        TASO_ASSIGN(choice, tuned(engines));
        choice.division = i;
      }
      if (engines.unsupported > 0) choice.description += ", " + std::to_string(engines.unsupported) + " left out";
      Engine& chosen = engines.usable[choice.engine];
      choice.engine = chosen.position;
      if (context_->can_run) context_->choices[key] = choice;
      take(std::move(chosen), choice.description);
      return std::string();
    }
    return reason;
  }

 private:
  /// Fills in `asked`, or says why there is no kernel.
  Expected<std::string> examine(Asked& asked) {
    std::string reason;
    if (!is_plain(request_, reason)) return reason;
    const std::size_t inputs = request_.inputs.size();
    if (inputs < 2 || inputs > 4) return std::string("two to four inputs are needed");
    const Operand& x = request_.inputs[0];
    const Operand& w = request_.inputs[1];
    const Operand& y = request_.outputs[0];
    if (x.type.shape.size() != 4 || w.type.shape.size() != 4 || y.type.shape.size() != 4)
      return std::string("images of rank 4 are needed");
    for (const Operand* image : {&x, &y})
      if (image->layout != Layout::row_major && image->layout != Layout::channels_last)
        return std::string("only images in row and nhwc");
    if (same_bytes(x.type.shape, x.layout, y.layout))
      layout_ = y.layout;
    else if (same_bytes(y.type.shape, y.layout, x.layout))
      layout_ = x.layout;
    else
      return std::string("input and output in different layouts");
    asked.bias = inputs >= 3;
    asked.residual = inputs == 4;
    if (asked.bias && request_.inputs[2].type.shape != Shape{y.type.shape[1]})
      return std::string("a bias that is not one number for every channel");
    if (asked.residual) {
      const Operand& residual = request_.inputs[3];
      if (residual.type.shape != y.type.shape) return std::string("a residual of another shape than the output");
      asked.residual_fits = same_bytes(y.type.shape, residual.layout, layout_);
    }
    const std::optional<Function> act = activation_of(request_);
    if (!act) return std::string("no such activation");
    asked.act = *act;
    const auto& pads = request_.attributes.integers("pads");
    asked.pads = pads;
    ConvolutionGraph& graph = asked.plain;
    graph.type = type_of(y.type.element);
    graph.x = x.type.shape;
    graph.w = w.type.shape;
    graph.y = y.type.shape;
    graph.channels_last = layout_ == Layout::channels_last;
    graph.before = {pads[0], pads[1]};
    graph.after = {pads[2], pads[3]};
    graph.strides = request_.attributes.integers("strides");
    graph.dilations = request_.attributes.integers("dilations");
    if (!same_bytes(w.type.shape, w.layout, layout_)) {
      if (w.weight && layout_ == Layout::channels_last)
        packed_format_ = "krsc";
      else
        reorders_weight_ = true;
    }
    return std::string();
  }

  /// Makes the passes before and after the engine.
  Status place() {
    const Operand& x = request_.inputs[0];
    const Operand& w = request_.inputs[1];
    const Operand& y = request_.outputs[0];
    const ElementType element = y.type.element;
    if (!division_.padding.empty()) {
      const std::int64_t offset = reserve(static_cast<std::size_t>(volume(division_.graph.x)) * size_of(element));
      // the bytes of the image are those of the layout that the engines work in
      padding_ = padding_step({x.type, layout_, false}, division_.padding, input(0), workspace(offset));
    }
    if (reorders_weight_) {
      const std::int64_t offset = reserve(static_cast<std::size_t>(w.type.bytes()));
      reorder_ = reorder_step(w.type, w.layout, layout_, input(1), workspace(offset));
      if (!reorder_) return internal_error("a kernel with too many axes");
    }
    if (division_.has_rest()) {
      epilogue_ = epilogue_step({y.type, layout_, false}, 1, division_.bias_left ? input(2) : Slot{},
                                division_.residual_left ? input(3) : Slot{},
                                division_.residual_left ? request_.inputs[3].layout : layout_, division_.act_left);
      if (!epilogue_) return internal_error("an image with too many axes");
    }
    if (context_->can_run && division_.zero_bias) {
      const std::size_t bytes = static_cast<std::size_t>(y.type.shape[1]) * size_of(element);
      TASO_ASSIGN(zeros_, DeviceMemory::create(bytes));
      TASO_RETURN_IF_ERROR(
          check(cudaMemsetAsync(zeros_.data(), 0, bytes, context_->tuning_stream), "CUDA cannot write to the device"));
      TASO_RETURN_IF_ERROR(check(cudaStreamSynchronize(context_->tuning_stream), "CUDA cannot write to the device"));
    }
    return {};
  }

  void take(Engine engine, const std::string& description) {
    engine_ = std::move(engine);
    engine_offset_ = reserve(static_cast<std::size_t>(engine_.workspace));
    implementation_ = "cudnn engine " + std::to_string(engine_.index) + (padding_ ? " after own pad" : "") +
                      (epilogue_ ? " and own epilogue" : "") + " (" + description + ")";
  }

  Expected<Choice> tuned(const Engines& engines) const {
    TASO_RETURN_IF_ERROR(context_->enter());
    const ElementType element = request_.outputs[0].type.element;
    const cudaStream_t stream = context_->tuning_stream;
    const std::int64_t outputs = request_.outputs[0].type.elements();
    TASO_ASSIGN(const DeviceMemory x, random_operand(element, volume(division_.graph.x), 1, stream));
    TASO_ASSIGN(const DeviceMemory w, random_operand(element, request_.inputs[1].type.elements(), 2, stream));
    TASO_ASSIGN(const DeviceMemory bias, random_operand(element, request_.outputs[0].type.shape[1], 3, stream));
    TASO_ASSIGN(const DeviceMemory residual,
                random_operand(element, division_.graph.residual ? outputs : 1, 4, stream));
    TASO_ASSIGN(const DeviceMemory y, DeviceMemory::create(static_cast<std::size_t>(outputs) * size_of(element)));
    std::int64_t most = 0;
    for (const Engine& engine : engines.usable) most = std::max(most, engine.workspace);
    TASO_ASSIGN(const DeviceMemory space, DeviceMemory::create(static_cast<std::size_t>(most)));
    TASO_RETURN_IF_ERROR(check(cudnnSetStream(context_->cudnn, stream), "cuDNN cannot use a stream"));
    Expected<Choice> choice = context_->tune(engines.usable.size(), [&](std::size_t i, cudaStream_t) -> Status {
      return run(engines.usable[i], x.data(), w.data(), y.data(), bias.data(), residual.data(), space.data());
    });
    TASO_RETURN_IF_ERROR(check(cudnnSetStream(context_->cudnn, context_->stream), "cuDNN cannot use a stream"));
    return choice;
  }

  Status run(const Engine& engine, const std::byte* x, const std::byte* w, std::byte* y, const std::byte* bias,
             const std::byte* residual, std::byte* space) const {
    std::vector<std::pair<ConvolutionOperand, const void*>> operands = {
        {ConvolutionOperand::x, x}, {ConvolutionOperand::w, w}, {ConvolutionOperand::y, y}};
    if (division_.graph.bias) operands.emplace_back(ConvolutionOperand::bias, bias);
    if (division_.graph.residual) operands.emplace_back(ConvolutionOperand::residual, residual);
    return cuda::execute(context_->cudnn, engine, operands, space);
  }

  Status queue(const Buffers& buffers, cudaStream_t stream) const override {
    const std::byte* x = buffers.inputs[0];
    const std::byte* w = buffers.inputs[1];
    if (padding_) {
      TASO_RETURN_IF_ERROR(launch(*padding_, buffers, stream));
      x = buffers.workspace + padding_->to.offset;
    }
    if (reorder_) {
      TASO_RETURN_IF_ERROR(launch(*reorder_, buffers, stream));
      w = buffers.workspace + reorder_->to.offset;
    }
    const std::byte* bias = division_.zero_bias ? zeros_.data() : division_.graph.bias ? buffers.inputs[2] : nullptr;
    const std::byte* residual = division_.graph.residual ? buffers.inputs[3] : nullptr;
    std::byte* space = engine_.workspace > 0 ? buffers.workspace + engine_offset_ : nullptr;
    {
      const std::scoped_lock lock(context_->mutex);
      TASO_RETURN_IF_ERROR(run(engine_, x, w, buffers.outputs[0], bias, residual, space));
    }
    if (epilogue_) TASO_RETURN_IF_ERROR(launch(*epilogue_, buffers, stream));
    return {};
  }

  KernelRequest request_;
  Layout layout_ = Layout::row_major;  ///< In which the engines work; the images' bytes are that.
  std::string packed_format_;
  bool reorders_weight_ = false;
  Division division_;
  Engine engine_;
  std::int64_t engine_offset_ = 0;
  DeviceMemory zeros_;
  std::optional<PaddingStep> padding_;
  std::optional<CopyStep> reorder_;
  std::optional<EpilogueStep> epilogue_;
};

}  // namespace

KernelOffer convolution(const std::shared_ptr<Context>& context, const KernelRequest& request) {
  auto kernel = std::make_unique<Convolution>(context, request);
  Expected<std::string> reason = kernel->prepare();
  if (!reason) return decline(reason.error().message);
  if (!reason->empty()) return decline(*reason);
  return {std::move(kernel), ""};
}

}  // namespace taso::cuda
