// Element-wise operators that follow each other, and among them those that compute row by row (softmax,
// normalisations), as one kernel: all of them on a block of elements before the next, so that what they pass on stays
// in the cache. With rows, a block is made of whole ones. What each computes is what its kernel alone would, to the
// bit.
#include "runtime/cpu/fused_elements.h"

#include <fmt/format.h>

#include "operators/lowered_text.h"
#include "operators/registry.h"
#include "runtime/cpu/kernels.h"

namespace taso::cpu {
namespace {

/// Rows that are longer are left to kernels of their own: a few of them would not stay in the second-level cache.
constexpr std::int64_t longest_row = 8192;

class FusedElements final : public Kernel {
 public:
  FusedElements(ElementWalk walk, ElementPlan plan, int threads)
      : Kernel(std::string("own fused elementwise ") + loops().instruction_set),
        walk_(std::move(walk)),
        plan_(std::move(plan)),
        threads_(threads) {}

  std::string code() const override {
    return fmt::format("for blocks of {} elements{}:\n", plan_.block(),
                       plan_.row > 1 ? fmt::format(", rows of {}", plan_.row) : "") +
           plan_.text();
  }

  Status execute(const KernelArguments& arguments) const override {
    std::vector<const float*> inputs;
    std::vector<float*> outputs;
    for (const std::byte* const input : arguments.inputs) inputs.push_back(reinterpret_cast<const float*>(input));
    for (std::byte* const output : arguments.outputs) outputs.push_back(reinterpret_cast<float*>(output));
    go_over(
        walk_, threads_, plan_.work, [&] { return std::make_unique<ElementWorker>(plan_, inputs, outputs); },
        plan_.row);
    return {};
  }

 private:
  ElementWalk walk_;
  ElementPlan plan_;
  int threads_;
};

/// Gives results that are no outputs their blocks: one that nothing reads any more makes room for another.
void place_results(ElementPlan& plan) {
  std::vector<std::size_t> last(plan.parts.size(), 0), free;
  for (std::size_t i = 0; i < plan.parts.size(); ++i)
    for (const FusedPart::Source& source : plan.parts[i].sources)
      if (!source.is_input) last[source.index] = i;
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    ElementPart& part = plan.parts[i];
    if (!part.output) {
      part.place = free.empty() ? plan.blocks++ : free.back();
      if (!free.empty()) free.pop_back();
    }
    // Free from the next part on: a definition reads its operands after it has begun to write.
    for (std::size_t k = 0; k < i; ++k)
      if (last[k] == i && !plan.parts[k].output) free.push_back(plan.parts[k].place);
  }
}

/// Why a part cannot be computed on blocks of elements of the whole's first output; empty if it can.
std::string no_part(const FusedPart& part, const Operand& output, const OperatorRegistry& registry) {
  const OperatorDefinition* const definition = registry.find(part.request.op);
  const bool elementwise = definition != nullptr && definition->elementwise;
  if (!is_all_floats(part.request)) return "only f32";
  if (!elementwise && !RowLoop::of(part.request, registry))
    return part.request.op + " is neither element-wise nor computed row by row";
  if (part.request.outputs.size() != 1 || part.request.outputs[0] != output)
    return "the results have several shapes or layouts";
  for (std::size_t i = 0; i < part.sources.size(); ++i)
    if (!part.sources[i].is_input && part.request.inputs[i].type.shape != output.type.shape)
      return "a result is broadcast";
  return "";
}

}  // namespace

std::string ElementPlan::name_of(std::size_t part) const {
  const std::optional<std::size_t> output = parts[part].output;
  return output ? "y" + std::to_string(*output) : "t" + std::to_string(part);
}

std::string ElementPlan::text() const {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const ElementPart& part = parts[i];
    std::vector<std::string> operands;
    for (const FusedPart::Source& source : part.sources)
      operands.push_back(source.is_input ? "x" + std::to_string(source.index) : name_of(source.index));
    text += fmt::format("  {} = {}({})", name_of(i), part.name, fmt::join(operands, ", "));
    if (part.definition) {
      operands.push_back(name_of(i));
      text += fmt::format(" = {}", value_text(part.definition->plan().stage(), operands));
    }
    text += "\n";
  }
  return text;
}

ElementWorker::ElementWorker(const ElementPlan& plan, std::span<const float* const> inputs,
                             std::span<float* const> outputs)
    : plan_(&plan),
      blocks_(plan.blocks, std::vector<float>(static_cast<std::size_t>(plan.block()))),
      gathered_(inputs.size()),
      starts_(inputs.begin(), inputs.end()),
      rows_(starts_),
      targets_(outputs.begin(), outputs.end()),
      inputs_(inputs.size()),
      results_(plan.parts.size()),
      buffers_(plan.parts.size()) {
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    buffers_[i].resize(plan.parts[i].sources.size());
    if (plan.parts[i].definition)
      evaluators_.emplace_back(std::in_place, plan.parts[i].definition->plan(), buffers_[i]);
    else
      evaluators_.emplace_back();
  }
}

// `at`: the block's first element from where elements begin; `target`: in the outputs.
void ElementWorker::block(std::int64_t at, std::int64_t count, std::int64_t target) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i] = input(i, at, count);
  for (std::size_t i = 0; i < plan_->parts.size(); ++i) {
    const ElementPart& part = plan_->parts[i];
    float* const y = part.output ? targets_[*part.output] + target : blocks_[part.place].data();
    results_[i] = value(i, part, y, count);
    if (part.output && results_[i].uniform) {
      store(results_[i], count, y);
      results_[i].uniform = false;
    }
  }
}

Block ElementWorker::input(std::size_t i, std::int64_t at, std::int64_t count) {
  const std::int64_t stride = plan_->steps[i];
  const float* const from = rows_[i] + at * stride;
  if (stride == 0 || stride == 1) return {from, stride == 0};
  gathered_[i].resize(static_cast<std::size_t>(plan_->block()));
  float* const y = gathered_[i].data();
  for (std::int64_t k = 0; k < count; ++k) y[k] = from[k * stride];
  return {y, false};
}

Block ElementWorker::value(std::size_t i, const ElementPart& part, float* y, std::int64_t count) {
  const auto source = [&](std::size_t k) {
    const FusedPart::Source& from = part.sources[k];
    return from.is_input ? inputs_[from.index] : results_[from.index];
  };
  if (part.loop.unary != nullptr) return apply(*part.loop.unary, source(0), y, count, part.loop.p, part.loop.q);
  if (part.loop.binary != nullptr) return apply(*part.loop.binary, source(0), source(1), y, count);
  if (part.rows) return rows(*part.rows, part.sources.size(), source, y, count);
  for (std::int64_t done = 0; done < count; done += block_elements) {
    for (std::size_t k = 0; k < part.sources.size(); ++k) {
      const Block block = source(k);
      buffers_[i][k] = {block.uniform ? block.data : block.data + done, block.uniform ? 0 : 1, true};
    }
    evaluators_[i]->compute(std::min(block_elements, count - done), y + done);
  }
  return {y, false};
}

template <class Source>
Block ElementWorker::rows(const RowLoop& loop, std::size_t operands, const Source& source, float* y,
                          std::int64_t count) {
  repeated_.resize(std::max(repeated_.size(), operands));
  rows_of_.resize(operands);
  for (std::size_t k = 0; k < operands; ++k) {
    const Block block = source(k);
    rows_of_[k] = block.data;
    if (!block.uniform) continue;
    repeated_[k].assign(static_cast<std::size_t>(count), *block.data);
    rows_of_[k] = repeated_[k].data();
  }
  for (std::int64_t done = 0; done < count; done += loop.length()) {
    loop.compute(rows_of_, y + done);
    for (const float*& operand : rows_of_) operand += loop.length();
  }
  return {y, false};
}

bool is_fusable_element(const KernelRequest& part, const OperatorRegistry& registry) {
  const OperatorDefinition* const definition = registry.find(part.op);
  if (definition == nullptr || !is_all_floats(part) || part.outputs.size() != 1) return false;
  return definition->elementwise || RowLoop::of(part, registry);
}

PlannedElements plan_elements(const KernelRequest& request, const OperatorRegistry& registry) {
  const Operand& output = request.outputs[0];
  for (const FusedPart& part : request.fused->parts)
    if (std::string reason = no_part(part, output, registry); !reason.empty()) return {std::nullopt, std::move(reason)};
  ElementPlan plan;
  for (const FusedPart& fused : request.fused->parts) {
    ElementPart& part = plan.parts.emplace_back();
    part.name = fused.request.op;
    if (!fused.request.attributes.empty()) part.name += "[" + to_string(fused.request.attributes) + "]";
    part.sources = fused.sources;
    part.loop = element_loop(fused.request, registry);
    part.rows = RowLoop::of(fused.request, registry);
    if (part.rows) {
      plan.row = std::max(plan.row, part.rows->length());  // another one can only be 1, of an axis of one element
      plan.work += part.rows->work();
      continue;
    }
    plan.work += 1;
    if (part.loop.unary != nullptr || part.loop.binary != nullptr) continue;
    auto definition = BlockDefinition::create(fused.request, registry);
    if (!definition) return {std::nullopt, definition.error().message};
    plan.work += definition->plan().work();
    part.definition = std::move(*definition);
  }
  for (std::size_t i = 0; i < request.fused->results.size(); ++i) {
    ElementPart& part = plan.parts[request.fused->results[i].index];
    if (part.output) return {std::nullopt, "a result is wanted twice"};
    part.output = i;
  }
  place_results(plan);
  return {std::move(plan), ""};
}

KernelOffer fused_elements(const KernelRequest& request, const OperatorRegistry& registry) {
  if (!request.fused || request.outputs.empty()) return decline("nothing is fused");
  PlannedElements planned = plan_elements(request, registry);
  if (!planned.plan) return decline(std::move(planned.reason));
  KernelRequest walked;
  walked.inputs = request.inputs;
  walked.outputs = {request.outputs[0]};
  if (std::string reason = no_element_walk(walked); !reason.empty()) return decline(std::move(reason));
  ElementWalk walk = element_walk(walked);
  if (planned.plan->row > longest_row) return decline("rows are too long");
  if (walk.extents.back() % planned.plan->row != 0) return decline("rows of several pieces");
  for (const std::vector<std::int64_t>& strides : walk.strides) planned.plan->steps.push_back(strides.back());
  return {std::make_unique<FusedElements>(std::move(walk), *std::move(planned.plan), request.threads), ""};
}

}  // namespace taso::cpu
