#include "runtime/concat_in_place.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/backend.h"
#include "runtime/strides.h"

namespace taso {
namespace {

using Source = LoweredTensor::Source;

std::shared_ptr<const PlannedKernel> planned(KernelRequest request) {
  auto kernel = std::make_shared<PlannedKernel>();
  kernel->request = std::move(request);
  kernel->key = kernel->request.key();
  kernel->key_hash = hash_text(kernel->key);
  return kernel;
}

/// A step that ends with a concatenation, perhaps of what it moves before.
struct Concatenation {
  std::uint32_t step = 0;
  /// The concatenation alone, its sources those of the step's request.
  FusedPart part;
  TensorIndex result = 0;
};

/// Where its result begins in a tensor that is written in pieces.
struct Target {
  TensorIndex whole = 0;
  std::int64_t offset = 0;  ///< In bytes.
  Within within;            ///< Of what is written there; none where a range of the axis is a range of bytes.
};

/// An operand of a concatenation.
struct ConcatOperand {
  FusedPart::Source source;
  TensorType type;
  Layout layout = Layout::row_major;
  std::int64_t offset = 0;            ///< In the target, in bytes.
  std::optional<TensorIndex> output;  ///< Of a kernel that writes it in its place.
};

class ConcatPlacement {
 public:
  ConcatPlacement(LoweredGraph& lowered, const std::function<bool(const KernelRequest&)>& writes,
                  const std::function<bool(const KernelRequest&)>& is_ours)
      : lowered_(lowered), writes_(writes), is_ours_(is_ours), reads_(lowered.tensors.size(), 0) {
    for (const LoweredStep& step : lowered.steps)
      for (const TensorIndex input : step.inputs) note_read(input);
    for (const TensorIndex output : lowered.outputs) note_read(output);
  }

  /// The last first: what is written into a concatenation can be one itself, whose operands go there as well.
  void place_all() {
    for (auto step = static_cast<std::uint32_t>(lowered_.steps.size()); step-- > 0;)
      if (const std::optional<Concatenation> concat = concatenation_of(step)) place(*concat);
    remove_steps();
  }

 private:
  void note_read(TensorIndex tensor) {
    ++reads_[tensor];
    while (lowered_.tensors[tensor].source == Source::view) ++reads_[tensor = lowered_.tensors[tensor].index];
  }

  [[nodiscard]] std::optional<Concatenation> concatenation_of(std::uint32_t number) const {
    const LoweredStep& step = lowered_.steps[number];
    const KernelRequest& request = step.kernel->request;
    if (step.outputs.size() != 1 || (is_ours_ && !is_ours_(request))) return std::nullopt;
    Concatenation concat{number, {request, {}}, step.outputs[0]};
    if (request.fused) {
      const Fused& fused = *request.fused;
      if (fused.results[0].is_input || fused.results[0].index + 1 != fused.parts.size()) return std::nullopt;
      concat.part = fused.parts.back();
    } else {
      for (std::uint32_t i = 0; i < step.inputs.size(); ++i) concat.part.sources.push_back({true, i, 0});
    }
    if (concat.part.request.op != "concat") return std::nullopt;
    return concat;
  }

  [[nodiscard]] static std::uint32_t axis_of_concat(const KernelRequest& request) {
    return static_cast<std::uint32_t>(
        axis_of(request.attributes.integer("axis"), request.outputs[0].type.shape.size()));
  }

  /// Where the pieces of a concatenation go; nothing where no strides say it.
  [[nodiscard]] std::optional<Target> target_of(const Concatenation& concat) const {
    const Operand& result = concat.part.request.outputs[0];
    const std::uint32_t axis = axis_of_concat(concat.part.request);
    const LoweredTensor& tensor = lowered_.tensors[concat.result];
    if (block_of(result.layout) != 0 || result.type.elements() == 0) return std::nullopt;
    Target target{concat.result, 0, {axis, result.type.shape[axis]}};
    if (is_outermost(result.type.shape, result.layout, axis)) target.within = {};
    if (tensor.source == Source::kernel) return target;
    // A piece of another concatenation itself, whose place only that one's readers know.
    if (tensor.source != Source::piece || reads_[concat.result] != 0) return std::nullopt;
    const Within& within = lowered_.steps[concat.step].kernel->request.outputs[0].within;
    if (within && within.axis != axis) return std::nullopt;
    target.whole = tensor.index;
    target.offset = tensor.offset;
    if (within) target.within = within;
    return target;
  }

  void place(const Concatenation& concat) {
    const std::optional<Target> target = target_of(concat);
    if (!target) return;
    std::vector<ConcatOperand> operands = operands_of(concat, *target);
    std::vector<std::pair<std::uint32_t, std::shared_ptr<const PlannedKernel>>> kernels;
    for (ConcatOperand& operand : operands)
      if (const auto kernel = kernel_within(concat, operand, *target, kernels)) kernels.emplace_back(*kernel);
    if (kernels.empty()) return;
    const std::optional<LoweredStep> copies = copies_of(concat, operands, *target);
    if (!copies) return;

    for (auto& [step, kernel] : kernels) lowered_.steps[step].kernel = std::move(kernel);
    for (const ConcatOperand& operand : operands)
      if (operand.output) make_piece(*operand.output, *target, operand.offset);
    lowered_.steps[concat.step] = *copies;  // without outputs where nothing is left to copy
    for (std::size_t i = 0, copied = 0; i < operands.size(); ++i) {
      if (operands[i].output) continue;
      const Value value = lowered_.tensors[concat.result].value;
      lowered_.tensors.push_back(
          {Source::piece, operands[i].type, operands[i].layout, value, target->whole, operands[i].offset, concat.step});
      reads_.push_back(0);
      lowered_.steps[concat.step].outputs[copied++] = static_cast<TensorIndex>(lowered_.tensors.size() - 1);
    }
    // Where it is a piece itself, nothing touches it any more.
    LoweredTensor& whole = lowered_.tensors[concat.result];
    whole.source = Source::pieces;
    whole.index = 0;
    whole.offset = 0;
  }

  [[nodiscard]] std::vector<ConcatOperand> operands_of(const Concatenation& concat, const Target& target) const {
    const KernelRequest& request = concat.part.request;
    const std::uint32_t axis = axis_of_concat(request);
    Shape whole = request.outputs[0].type.shape;
    if (target.within) whole[axis] = target.within.extent;
    const auto width = static_cast<std::int64_t>(size_of(request.outputs[0].type.element));
    const std::int64_t stride = strides_of(whole, request.outputs[0].layout)[axis];
    std::vector<ConcatOperand> operands;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < request.inputs.size(); ++i) {
      const Operand& operand = request.inputs[i];
      operands.push_back({concat.part.sources[i], operand.type, request.outputs[0].layout,
                          target.offset + begin * stride * width, std::nullopt});
      begin += operand.type.shape[axis];
    }
    return operands;
  }

  /// The step that makes an operand, with a kernel that writes it in its place, if there is one: then notes the output
  /// of which it is the whole. `kernels`: of steps that write others of the operands already.
  using StepKernel = std::pair<std::uint32_t, std::shared_ptr<const PlannedKernel>>;
  [[nodiscard]] std::optional<StepKernel> kernel_within(const Concatenation& concat, ConcatOperand& operand,
                                                        const Target& target, const std::vector<StepKernel>& kernels) {
    if (!operand.source.is_input || operand.offset % piece_alignment != 0) return std::nullopt;
    const TensorIndex tensor = lowered_.steps[concat.step].inputs[operand.source.index];
    const LoweredTensor& made = lowered_.tensors[tensor];
    const auto uses = std::count(concat.part.sources.begin(), concat.part.sources.end(), operand.source);
    if (made.source != Source::kernel || reads_[tensor] != 1 || uses != 1 || made.type != operand.type ||
        !same_bytes(made.type.shape, made.layout, operand.layout))
      return std::nullopt;
    const LoweredStep& step = lowered_.steps[made.step];
    const auto is_of_step = [&](const StepKernel& one) { return one.first == made.step; };
    if ((is_ours_ && !is_ours_(step.kernel->request)) || std::any_of(kernels.begin(), kernels.end(), is_of_step))
      return std::nullopt;
    const auto output =
        static_cast<std::size_t>(std::find(step.outputs.begin(), step.outputs.end(), tensor) - step.outputs.begin());
    KernelRequest request = step.kernel->request;
    request.outputs[output].layout = operand.layout;
    request.outputs[output].within = target.within;
    if (!writes_(request)) return std::nullopt;
    operand.output = tensor;
    return StepKernel{made.step, planned(std::move(request))};
  }

  void make_piece(TensorIndex tensor, const Target& target, std::int64_t offset) {
    LoweredTensor& piece = lowered_.tensors[tensor];
    reads_[tensor] = 0;  // the concatenation's, which is gone
    piece.source = Source::piece;
    piece.index = target.whole;
    piece.offset = offset;
  }

  /// The step that copies what is not written in its place, its outputs still to be named: one without a kernel where
  /// there is nothing to copy. Nothing where the device has no kernel for it.
  [[nodiscard]] std::optional<LoweredStep> copies_of(const Concatenation& concat,
                                                     const std::vector<ConcatOperand>& operands,
                                                     const Target& target) const {
    const LoweredStep& step = lowered_.steps[concat.step];
    LoweredStep copies{nullptr, step.node, {}, {}, step.fused};
    KernelRequest request;
    request.op = fused_op;
    request.threads = step.kernel->request.threads;
    request.cached_tenths = step.kernel->request.cached_tenths;
    Fused fused;
    std::vector<std::optional<std::uint32_t>> renumbered(step.inputs.size());
    const auto input = [&](FusedPart::Source source) {
      if (!source.is_input) return source;
      std::optional<std::uint32_t>& number = renumbered[source.index];
      if (!number) {
        number = static_cast<std::uint32_t>(copies.inputs.size());
        copies.inputs.push_back(step.inputs[source.index]);
        request.inputs.push_back(step.kernel->request.inputs[source.index]);
      }
      return FusedPart::Source{true, *number, 0};
    };
    if (const auto& before = step.kernel->request.fused)
      for (std::size_t i = 0; i + 1 < before->parts.size(); ++i) {
        fused.parts.push_back(before->parts[i]);
        for (FusedPart::Source& source : fused.parts.back().sources) source = input(source);
      }
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const ConcatOperand& operand = operands[i];
      if (operand.output) continue;
      FusedPart::Source result = operand.source;
      if (result.is_input) {
        const Operand& read = concat.part.request.inputs[i];
        FusedPart part;
        part.request.op = reorder_op;
        part.request.inputs = {{read.type, read.layout, false}};
        part.request.outputs = {{read.type, operand.layout, false}};
        part.request.threads = request.threads;
        part.sources = {input(result)};
        result = {false, static_cast<std::uint32_t>(fused.parts.size()), 0};
        fused.parts.push_back(std::move(part));
      }
      fused.results.push_back(result);
      request.outputs.push_back({operand.type, operand.layout, false, target.within});
      copies.outputs.push_back(0);
    }
    if (request.outputs.empty()) return copies;
    request.fused = std::make_shared<const Fused>(std::move(fused));
    if (!writes_(request)) return std::nullopt;
    copies.kernel = planned(std::move(request));
    return copies;
  }

  /// Takes out the steps that copy nothing.
  void remove_steps() {
    std::vector<LoweredStep> steps;
    for (LoweredStep& step : lowered_.steps) {
      if (step.kernel == nullptr) continue;
      const auto number = static_cast<std::uint32_t>(steps.size());
      for (const TensorIndex output : step.outputs) lowered_.tensors[output].step = number;
      steps.push_back(std::move(step));
    }
    lowered_.steps = std::move(steps);
  }

  LoweredGraph& lowered_;
  const std::function<bool(const KernelRequest&)>& writes_;
  const std::function<bool(const KernelRequest&)>& is_ours_;
  std::vector<int>
      reads_;  ///< Of each tensor, as it is or through views; of pieces by others than the whole's readers.
};

}  // namespace

LoweredGraph concat_in_place(LoweredGraph lowered, const std::function<bool(const KernelRequest&)>& writes,
                             const std::function<bool(const KernelRequest&)>& is_ours) {
  ConcatPlacement(lowered, writes, is_ours).place_all();
  return lowered;
}

}  // namespace taso
