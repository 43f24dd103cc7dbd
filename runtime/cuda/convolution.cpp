// Convolutions by cuDNN. What its engines do not fuse follows as a pass of our own: padding before, the activation and
// the sum after.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "runtime/access.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/device_kernel.h"
#include "runtime/cuda/division.h"
#include "runtime/cuda/launch.h"
#include "runtime/strides.h"

namespace taso::cuda {
namespace {

cudnnDataType_t type_of(ElementType element) {
  if (element == ElementType::f16) return CUDNN_DATA_HALF;
  if (element == ElementType::bf16) return CUDNN_DATA_BFLOAT16;
  return CUDNN_DATA_FLOAT;
}

const std::string own_work = "own depthwise";  ///< As the name of a division.

/// A division with its passes, all but the engine. Workspaces count from 0: the engine's is the last.
struct Placed {
  Division division;
  std::optional<PaddingStep> padding;
  std::optional<CopyStep> reorder;
  std::optional<EpilogueStep> epilogue;
  std::optional<DepthwiseStep> depthwise;  ///< All of it by our own kernel, in the place of an engine.
  DeviceMemory zeros;                      ///< The bias, where the division makes it up.
  std::int64_t workspace = 0;              ///< Of the passes; there begins the engine's.

  std::int64_t reserve(std::int64_t bytes) {
    const std::int64_t offset = workspace;
    workspace += static_cast<std::int64_t>(aligned(static_cast<std::size_t>(bytes)));
    return offset;
  }
};

/// An engine for one of several placed divisions.
struct Candidate {
  std::size_t placed = 0;
  Engine engine;
};

class Convolution final : public DeviceKernel {
 public:
  Convolution(std::shared_ptr<Context> context, const KernelRequest& request)
      : DeviceKernel(std::move(context), request, "cudnn"), request_(request) {
    align_operands();
  }

  std::size_t launches() const override {
    if (placed_.depthwise) return 1;
    return 1 + (placed_.padding ? 1 : 0) + (placed_.reorder ? 1 : 0) + (placed_.epilogue ? 1 : 0);
  }
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
    AskedConvolution asked;
    TASO_ASSIGN(reason, examine(asked));
    if (!reason.empty()) return reason;
    const std::scoped_lock lock(context_->mutex);
    std::vector<Division> divisions = divisions_of(asked);
    // Within a wider tensor, a pass of ours after the engine, or before it, would cost more than the copy that is
    // saved.
    if (request_.outputs[0].within)
      std::erase_if(divisions, [first = divisions[0]](const Division& one) {
        return one.has_rest() != first.has_rest() || one.residual_left != first.residual_left ||
               one.bias_left != first.bias_left || !one.padding.empty();
      });
    own_ = depthwise_step(request_, asked.act);
    const std::string key = tuning_key(request_);
    if (const std::optional<std::string> known = context_->chosen(key)) {
      TASO_ASSIGN(const bool taken, take_chosen(*known, divisions));
      if (taken) return std::string();
    }
    return find_engine(key, divisions);
  }

 private:
  [[nodiscard]] PlanningTarget target() const {
    return {context_->cudnn, context_->can_run ? nullptr : &context_->device_descriptor};
  }

  /// Takes the engine that was chosen before. False if this version of us or of cuDNN has it no more.
  Expected<bool> take_chosen(const std::string& text, const std::vector<Division>& divisions) {
    const std::optional<ChosenEngine> chosen = ChosenEngine::parse(text);
    if (!chosen) return false;
    if (chosen->work == own_work && own_) {
      take(placed_own(), {}, chosen->description);
      return true;
    }
    const auto division = std::find_if(divisions.begin(), divisions.end(),
                                       [&](const Division& one) { return one.name() == chosen->work; });
    if (division == divisions.end()) return false;
    const PlanningTarget planned_for = target();
    Expected<Engine> engine =
        configured_engine(planned_for, division->graph, context_->math, workspace_limit, chosen->configuration);
    if (!engine) return false;
    TASO_ASSIGN(Placed placed, place(*division));
    take(std::move(placed), std::move(*engine), chosen->description);
    return true;
  }

  /// The fastest engine of the first round of divisions in which any runs.
  Expected<std::string> find_engine(const std::string& key, const std::vector<Division>& divisions) {
    const std::vector<std::vector<std::size_t>> rounds = rounds_of(divisions);
    return take_first(rounds, [&](const std::vector<std::size_t>& round) {
      return take_fastest(key, divisions, round, &round == &rounds.front());
    });
  }

  /// Of the divisions of one round, or why there is none; our own kernel is compared in the first.
  Expected<std::string> take_fastest(const std::string& key, const std::vector<Division>& divisions,
                                     const std::vector<std::size_t>& round, bool is_first) {
    std::string reason;
    std::vector<Placed> placed;
    std::vector<Candidate> candidates;
    int left_out = 0;
    for (const std::size_t number : round) {
      Engines engines = engines_of(divisions[number]);
      left_out += engines.unsupported;
      if (engines.usable.empty()) {
        if (reason.empty()) reason = why_none(engines);
        continue;
      }
      TASO_ASSIGN(Placed one, place(divisions[number]));
      for (Engine& engine : engines.usable) candidates.push_back({placed.size(), std::move(engine)});
      placed.push_back(std::move(one));
    }
    if (own_ && is_first) {
      candidates.push_back({placed.size(), {}});
      placed.push_back(placed_own());
    }
    if (candidates.empty()) return reason;
    std::string description = "first of " + std::to_string(candidates.size());
    std::size_t fastest = 0;
    if (context_->can_run) {
      const auto start = std::chrono::steady_clock::now();
      const Expected<FastestCandidate> found = tuned(placed, candidates);
      if (!found) return reason.empty() ? found.error().message : reason;
      fastest = found->index;
      description = found->description();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      const Candidate& chosen = candidates[fastest];
      const Placed& work = placed[chosen.placed];
      const ChosenEngine text{work.depthwise ? own_work : work.division.name(), chosen.engine.configuration,
                              description};
      TASO_RETURN_IF_ERROR(context_->choose(key, {text.text(), found->seconds, took.count()}));
    } else if (left_out > 0) {
      description += ", " + std::to_string(left_out) + " left out";
    }
    Candidate& chosen = candidates[fastest];
    take(std::move(placed[chosen.placed]), std::move(chosen.engine), description);
    return std::string();
  }

  [[nodiscard]] Engines engines_of(const Division& division) const {
    const PlanningTarget planned_for = target();
    if (context_->all_engines)
      return convolution_engines(planned_for, division.graph, context_->math, all_engines(workspace_limit));
    EngineLimits limits;
    limits.workspace_bytes = workspace_limit;
    return convolution_engines(planned_for, division.graph, context_->math, limits);
  }

  static std::string why_none(const Engines& engines) {
    return "cuDNN has no engine (" + std::to_string(engines.unsupported) + " without a plan, " +
           std::to_string(engines.compiled) + " to be compiled, " + std::to_string(engines.other_arithmetic) +
           " of other arithmetic" + (engines.last_error.empty() ? "" : "; " + engines.last_error) + ")";
  }

  /// Fills in `asked`, or says why there is no kernel.
  Expected<std::string> examine(AskedConvolution& asked) {
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
    if (y.within) graph.y_strides = access_of(y).strides;
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
  Expected<Placed> place(const Division& division) const {
    const Operand& x = request_.inputs[0];
    const Operand& w = request_.inputs[1];
    const Operand& y = request_.outputs[0];
    const ElementType element = y.type.element;
    Placed placed;
    placed.division = division;
    if (!division.padding.empty()) {
      const std::int64_t offset =
          placed.reserve(volume(division.graph.x) * static_cast<std::int64_t>(size_of(element)));
      // the bytes of the image are those of the layout that the engines work in
      placed.padding = padding_step({x.type, layout_, false}, division.padding, input(0), workspace(offset));
    }
    if (reorders_weight_) {
      const std::int64_t offset = placed.reserve(w.type.bytes());
      placed.reorder = reorder_step(w.type, w.layout, layout_, input(1), workspace(offset));
      if (!placed.reorder) return internal_error("a kernel with too many axes");
    }
    if (division.has_rest()) {
      placed.epilogue =
          epilogue_step({y.type, y.within ? y.layout : layout_, false, y.within}, 1,
                        division.bias_left ? input(2) : Slot{}, division.residual_left ? input(3) : Slot{},
                        division.residual_left ? request_.inputs[3].layout : layout_, division.act_left);
      if (!placed.epilogue) return internal_error("an image with too many axes");
    }
    if (context_->can_run && division.zero_bias) {
      const std::size_t bytes = static_cast<std::size_t>(y.type.shape[1]) * size_of(element);
      TASO_ASSIGN(placed.zeros, DeviceMemory::create(bytes));
      TASO_RETURN_IF_ERROR(check(cudaMemsetAsync(placed.zeros.data(), 0, bytes, context_->tuning_stream),
                                 "CUDA cannot write to the device"));
      TASO_RETURN_IF_ERROR(check(cudaStreamSynchronize(context_->tuning_stream), "CUDA cannot write to the device"));
    }
    return placed;
  }

  [[nodiscard]] Placed placed_own() const {
    Placed placed;
    placed.depthwise = own_;
    return placed;
  }

  void take(Placed placed, Engine engine, const std::string& description) {
    placed_ = std::move(placed);
    engine_ = std::move(engine);
    reserve(static_cast<std::size_t>(placed_.workspace + engine_.workspace));
    implementation_ = placed_.depthwise ? own_work + " (" + description + ")"
                                        : "cudnn engine " + std::to_string(engine_.configuration.index) +
                                              (placed_.padding ? " after own pad" : "") +
                                              (placed_.epilogue ? " and own epilogue" : "") + " (" + description + ")";
  }

  /// The fastest of the candidates, with their passes, on random operands.
  Expected<FastestCandidate> tuned(const std::vector<Placed>& placed, const std::vector<Candidate>& candidates) const {
    TASO_RETURN_IF_ERROR(context_->enter());
    const cudaStream_t stream = context_->tuning_stream;
    std::vector<DeviceMemory> memory;
    std::vector<const std::byte*> inputs;
    for (std::size_t i = 0; i < request_.inputs.size(); ++i) {
      const TensorType& type = request_.inputs[i].type;
      TASO_ASSIGN(DeviceMemory one, random_operand(type.element, type.elements(), i + 1, stream));
      inputs.push_back(one.data());
      memory.push_back(std::move(one));
    }
    TASO_ASSIGN(const DeviceMemory y,
                DeviceMemory::create(static_cast<std::size_t>(spanned_bytes(request_.outputs[0]))));
    std::int64_t most = 0;
    for (const Candidate& one : candidates) most = std::max(most, placed[one.placed].workspace + one.engine.workspace);
    TASO_ASSIGN(const DeviceMemory space, DeviceMemory::create(static_cast<std::size_t>(most)));
    const std::vector<std::byte*> outputs = {y.data()};
    Buffers buffers;
    buffers.inputs = inputs;
    buffers.outputs = outputs;
    buffers.workspace = space.data();
    return context_->tune(candidates.size(), [&](std::size_t i, cudaStream_t on) {
      const auto in_turn = [](const auto& queued) { return queued(); };  // the mutex is held
      return queue(placed[candidates[i].placed], candidates[i].engine, buffers, on, in_turn);
    });
  }

  /// Queues passes and engine. `in_turn` calls what queues on cuDNN's handle, which is for one thread at a time.
  template <class InTurn>
  Status queue(const Placed& placed, const Engine& engine, const Buffers& buffers, cudaStream_t stream,
               const InTurn& in_turn) const {
    if (placed.depthwise) return launch(*placed.depthwise, buffers, stream);
    const Division& division = placed.division;
    const std::byte* x = buffers.inputs[0];
    const std::byte* w = buffers.inputs[1];
    if (placed.padding) {
      TASO_RETURN_IF_ERROR(launch(*placed.padding, buffers, stream));
      x = buffers.workspace + placed.padding->to.offset;
    }
    if (placed.reorder) {
      TASO_RETURN_IF_ERROR(launch(*placed.reorder, buffers, stream));
      w = buffers.workspace + placed.reorder->to.offset;
    }
    std::vector<std::pair<std::int64_t, const void*>> operands;
    const auto add = [&](ConvolutionOperand operand, const void* place) {
      operands.emplace_back(static_cast<std::int64_t>(operand), place);
    };
    add(ConvolutionOperand::x, x);
    add(ConvolutionOperand::w, w);
    add(ConvolutionOperand::y, buffers.outputs[0]);
    if (division.graph.bias)
      add(ConvolutionOperand::bias, division.zero_bias ? placed.zeros.data() : buffers.inputs[2]);
    if (division.graph.residual) add(ConvolutionOperand::residual, buffers.inputs[3]);
    std::byte* space = engine.workspace > 0 ? buffers.workspace + placed.workspace : nullptr;
    const Status queued = in_turn([&]() -> Status {
      TASO_RETURN_IF_ERROR(check(cudnnSetStream(context_->cudnn, stream), "cuDNN cannot use a stream"));
      return cuda::execute(context_->cudnn, engine, operands, space);
    });
    TASO_RETURN_IF_ERROR(queued);
    if (placed.epilogue) TASO_RETURN_IF_ERROR(launch(*placed.epilogue, buffers, stream));
    return {};
  }

  Status queue(const Buffers& buffers, cudaStream_t stream) const override {
    return queue(placed_, engine_, buffers, stream, [this](const auto& queued) {
      const std::scoped_lock lock(context_->mutex);
      return queued();
    });
  }

  KernelRequest request_;
  Layout layout_ = Layout::row_major;  ///< In which the engines work; the images' bytes are that.
  std::string packed_format_;
  bool reorders_weight_ = false;
  std::optional<DepthwiseStep> own_;  ///< Where there is one.
  Placed placed_;
  Engine engine_;
};

}  // namespace

KernelOffer convolution(const std::shared_ptr<Context>& context, const KernelRequest& request) {
  auto kernel = std::make_unique<Convolution>(context, request);
  Expected<std::string> reason = kernel->prepare();
  if (!reason) return decline(reason.error().message);
  if (!reason->empty()) return decline(*reason);
  return {std::move(kernel), ""};
}

bool plans_convolution(const std::shared_ptr<Context>& context, const KernelRequest& request) {
  if (context->can_run && !context->enter()) return false;
  const std::string key = tuning_key(request);
  {
    const std::scoped_lock lock(context->mutex);
    if (const auto known = context->convolutions.find(key); known != context->convolutions.end()) return known->second;
  }
  const bool is_offered = convolution(context, request).kernel != nullptr;
  const std::scoped_lock lock(context->mutex);
  return context->convolutions[key] = is_offered;
}

}  // namespace taso::cuda
