// Element-wise operators that follow each other, as one kernel: all of them on a block of elements before the next, so
// that what they pass on stays in the first-level cache. What each computes is what its kernel alone would, to the bit.
#include <array>
#include <optional>

#include "operators/registry.h"
#include "runtime/cpu/block.h"
#include "runtime/cpu/element_walk.h"
#include "runtime/cpu/kernels.h"

namespace taso::cpu {
namespace {

/// One operator: a loop, or its definition on blocks.
struct Part {
  std::vector<FusedPart::Source> sources;
  ElementLoop loop;
  std::optional<BlockDefinition> definition;
  std::optional<std::size_t> output;  ///< Of the whole.
  std::size_t place = 0;              ///< Of the block in which its result is kept, where it is no output.
};

struct Plan {
  ElementWalk walk;
  std::vector<Part> parts;
  std::size_t blocks = 0;  ///< As many are kept at a time.
  double work = 0;
};

class FusedElements final : public Kernel {
 public:
  FusedElements(Plan plan, int threads)
      : Kernel(std::string("own fused elementwise ") + loops().instruction_set),
        plan_(std::move(plan)),
        threads_(threads) {}

  Status execute(const KernelArguments& arguments) const override {
    go_over(plan_.walk, threads_, plan_.work, [&] { return std::make_unique<Worker>(plan_, arguments); });
    return {};
  }

 private:
  class Worker {
   public:
    Worker(const Plan& plan, const KernelArguments& arguments)
        : plan_(&plan),
          blocks_(plan.blocks),
          gathered_(arguments.inputs.size()),
          inputs_(arguments.inputs.size()),
          results_(plan.parts.size()),
          buffers_(plan.parts.size()) {
      for (const std::byte* const input : arguments.inputs) starts_.push_back(reinterpret_cast<const float*>(input));
      rows_ = starts_;
      for (std::byte* const output : arguments.outputs) targets_.push_back(reinterpret_cast<float*>(output));
      for (std::size_t i = 0; i < plan.parts.size(); ++i) {
        buffers_[i].resize(plan.parts[i].sources.size());
        if (plan.parts[i].definition)
          evaluators_.emplace_back(std::in_place, plan.parts[i].definition->plan(), buffers_[i]);
        else
          evaluators_.emplace_back();
      }
    }
    void go_to(std::span<const std::int64_t> offsets) {
      for (std::size_t i = 0; i < offsets.size(); ++i) rows_[i] = starts_[i] + offsets[i];
    }
    void compute(std::int64_t begin, std::int64_t end, std::int64_t row) {
      for (std::int64_t done = begin; done < end; done += block_elements)
        block(done, std::min(block_elements, end - done), row + done);
    }

   private:
    /// `at`: the block's first element in the row; `target`: in the outputs.
    void block(std::int64_t at, std::int64_t count, std::int64_t target) {
      for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i] = input(i, at, count);
      for (std::size_t i = 0; i < plan_->parts.size(); ++i) {
        const Part& part = plan_->parts[i];
        float* const y = part.output ? targets_[*part.output] + target : blocks_[part.place].data();
        results_[i] = value(i, part, y, count);
        if (part.output && results_[i].uniform) {
          store(results_[i], count, y);
          results_[i].uniform = false;
        }
      }
    }

    Block input(std::size_t i, std::int64_t at, std::int64_t count) {
      const std::int64_t stride = plan_->walk.strides[i].back();
      const float* const from = rows_[i] + at * stride;
      if (stride == 0 || stride == 1) return {from, stride == 0};
      if (!gathered_[i]) gathered_[i] = std::make_unique<std::array<float, block_elements>>();
      float* const y = gathered_[i]->data();
      for (std::int64_t k = 0; k < count; ++k) y[k] = from[k * stride];
      return {y, false};
    }

    Block value(std::size_t i, const Part& part, float* y, std::int64_t count) {
      const auto source = [&](std::size_t k) {
        const FusedPart::Source& from = part.sources[k];
        return from.is_input ? inputs_[from.index] : results_[from.index];
      };
      if (part.loop.unary != nullptr) return apply(*part.loop.unary, source(0), y, count, part.loop.p, part.loop.q);
      if (part.loop.binary != nullptr) return apply(*part.loop.binary, source(0), source(1), y, count);
      for (std::size_t k = 0; k < part.sources.size(); ++k) {
        const Block block = source(k);
        buffers_[i][k] = {block.data, block.uniform ? 0 : 1, true};
      }
      evaluators_[i]->compute(count, y);
      return {y, false};
    }

    const Plan* plan_;
    std::vector<std::array<float, block_elements>> blocks_;
    std::vector<std::unique_ptr<std::array<float, block_elements>>> gathered_;  ///< Per input.
    std::vector<const float*> starts_, rows_;  ///< Of the inputs, and of the row in them.
    std::vector<float*> targets_;
    std::vector<Block> inputs_, results_;
    std::vector<std::vector<BlockBuffer>> buffers_;  ///< Per part that is computed from its definition.
    std::vector<std::optional<BlockEvaluator>> evaluators_;
  };

  Plan plan_;
  int threads_;
};

/// Gives results that are no outputs their blocks: one that nothing reads any more makes room for another.
void place_results(Plan& plan) {
  std::vector<std::size_t> last(plan.parts.size(), 0), free;
  for (std::size_t i = 0; i < plan.parts.size(); ++i)
    for (const FusedPart::Source& source : plan.parts[i].sources)
      if (!source.is_input) last[source.index] = i;
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    Part& part = plan.parts[i];
    if (!part.output) {
      part.place = free.empty() ? plan.blocks++ : free.back();
      if (!free.empty()) free.pop_back();
    }
    // Free from the next part on: a definition reads its operands after it has begun to write.
    for (std::size_t k = 0; k < i; ++k)
      if (last[k] == i && !plan.parts[k].output) free.push_back(plan.parts[k].place);
  }
}

/// Why an element-wise kernel cannot compute this part on the elements of the whole's first output; empty if it can.
std::string no_part(const FusedPart& part, const Operand& output, const OperatorRegistry& registry) {
  const OperatorDefinition* const definition = registry.find(part.request.op);
  if (definition == nullptr || !definition->elementwise) return part.request.op + " is not element-wise";
  if (!is_all_floats(part.request)) return "only f32";
  if (part.request.outputs.size() != 1 || part.request.outputs[0] != output)
    return "the results have several shapes or layouts";
  for (std::size_t i = 0; i < part.sources.size(); ++i)
    if (!part.sources[i].is_input && part.request.inputs[i].type.shape != output.type.shape)
      return "a result is broadcast";
  return "";
}

}  // namespace

bool is_fusable_element(const KernelRequest& part, const OperatorRegistry& registry) {
  const OperatorDefinition* const definition = registry.find(part.op);
  return definition != nullptr && definition->elementwise && is_all_floats(part) && part.outputs.size() == 1;
}

KernelOffer fused_elements(const KernelRequest& request, const OperatorRegistry& registry) {
  if (!request.fused || request.outputs.empty()) return decline("nothing is fused");
  const Operand& output = request.outputs[0];
  for (const FusedPart& part : request.fused->parts)
    if (std::string reason = no_part(part, output, registry); !reason.empty()) return decline(std::move(reason));
  KernelRequest walked;
  walked.inputs = request.inputs;
  walked.outputs = {output};
  if (std::string reason = no_element_walk(walked); !reason.empty()) return decline(std::move(reason));
  Plan plan;
  plan.walk = element_walk(walked);
  for (const FusedPart& fused : request.fused->parts) {
    Part& part = plan.parts.emplace_back();
    part.sources = fused.sources;
    part.loop = element_loop(fused.request, registry);
    plan.work += 1;
    if (part.loop.unary != nullptr || part.loop.binary != nullptr) continue;
    auto definition = BlockDefinition::create(fused.request, registry);
    if (!definition) return decline(definition.error().message);
    plan.work += definition->plan().work();
    part.definition = std::move(*definition);
  }
  for (std::size_t i = 0; i < request.fused->results.size(); ++i) {
    Part& part = plan.parts[request.fused->results[i].index];
    if (part.output) return decline("a result is wanted twice");
    part.output = i;
  }
  place_results(plan);
  return {std::make_unique<FusedElements>(std::move(plan), request.threads), ""};
}

}  // namespace taso::cpu
