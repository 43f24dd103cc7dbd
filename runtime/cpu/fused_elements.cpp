// Element-wise operators that follow each other, and among them those that compute row by row (softmax,
// normalisations), as one kernel: all of them on a block of elements before the next, so that what they pass on stays
// in the cache. With rows, a block is made of whole ones. What each computes is what its kernel alone would, to the
// bit.
#include <fmt/format.h>

#include <optional>

#include "operators/lowered_text.h"
#include "operators/registry.h"
#include "runtime/cpu/block.h"
#include "runtime/cpu/element_walk.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/row_loop.h"

namespace taso::cpu {
namespace {

/// Rows that are longer are left to kernels of their own: a few of them would not stay in the second-level cache.
constexpr std::int64_t longest_row = 8192;

/// One operator: a loop over elements or rows, or its definition on blocks.
struct Part {
  std::string name;  ///< With its attributes.
  std::vector<FusedPart::Source> sources;
  ElementLoop loop;
  std::optional<RowLoop> rows;
  std::optional<BlockDefinition> definition;
  std::optional<std::size_t> output;  ///< Of the whole.
  std::size_t place = 0;              ///< Of the block in which its result is kept, where it is no output.
};

struct Plan {
  ElementWalk walk;
  std::vector<Part> parts;
  std::size_t blocks = 0;  ///< As many are kept at a time.
  std::int64_t row = 1;    ///< Elements of a row; 1 where no part is computed row by row.
  /// Per input: it is the same for all rows and read as such only (scale and bias of normalisations). The walk takes it
  /// for one number, so that it goes over many rows at once.
  std::vector<bool> of_rows;
  double work = 0;

  [[nodiscard]] std::int64_t block() const { return std::max(block_elements / row, std::int64_t{1}) * row; }
};

class FusedElements final : public Kernel {
 public:
  FusedElements(Plan plan, int threads)
      : Kernel(std::string("own fused elementwise ") + loops().instruction_set),
        plan_(std::move(plan)),
        threads_(threads) {}

  std::string code() const override {
    std::string text = fmt::format("for blocks of {} elements{}:\n", plan_.block(),
                                   plan_.row > 1 ? fmt::format(", rows of {}", plan_.row) : "");
    for (std::size_t i = 0; i < plan_.parts.size(); ++i) {
      const Part& part = plan_.parts[i];
      std::string operands;
      for (const FusedPart::Source& source : part.sources)
        operands += fmt::format("{}{}", operands.empty() ? "" : ", ",
                                source.is_input ? "x" + std::to_string(source.index) : name_of(source.index));
      text += fmt::format("  {} = {}({})", name_of(i), part.name, operands);
      if (part.definition) {
        std::vector<std::string> buffers;
        for (const FusedPart::Source& source : part.sources)
          buffers.push_back(source.is_input ? "x" + std::to_string(source.index) : name_of(source.index));
        buffers.push_back(name_of(i));
        text += fmt::format(" = {}", value_text(part.definition->plan().stage(), buffers));
      }
      text += "\n";
    }
    return text;
  }

  Status execute(const KernelArguments& arguments) const override {
    go_over(
        plan_.walk, threads_, plan_.work, [&] { return std::make_unique<Worker>(plan_, arguments); }, plan_.row);
    return {};
  }

 private:
  class Worker {
   public:
    Worker(const Plan& plan, const KernelArguments& arguments)
        : plan_(&plan),
          blocks_(plan.blocks, std::vector<float>(static_cast<std::size_t>(plan.block()))),
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
      const std::int64_t whole = plan_->block();
      for (std::int64_t done = begin; done < end; done += whole) block(done, std::min(whole, end - done), row + done);
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
      gathered_[i].resize(static_cast<std::size_t>(plan_->block()));
      float* const y = gathered_[i].data();
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
      if (part.rows) return rows(part, source, y, count);
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
    Block rows(const Part& part, const Source& source, float* y, std::int64_t count) {
      repeated_.resize(std::max(repeated_.size(), part.sources.size()));
      rows_of_.resize(part.sources.size());
      for (std::size_t k = 0; k < part.sources.size(); ++k) {
        const FusedPart::Source& from = part.sources[k];
        const Block block = source(k);
        rows_of_[k] = block.data;
        if (!block.uniform || (from.is_input && plan_->of_rows[from.index])) continue;
        repeated_[k].assign(static_cast<std::size_t>(count), *block.data);
        rows_of_[k] = repeated_[k].data();
      }
      part.rows->compute(rows_of_, y, count / part.rows->length());
      return {y, false};
    }

    const Plan* plan_;
    std::vector<std::vector<float>> blocks_;
    std::vector<std::vector<float>> gathered_;  ///< Per input, where it is needed.
    std::vector<std::vector<float>> repeated_;  ///< Per operand of rows that is the same number everywhere.
    std::vector<const float*> rows_of_;         ///< Per operand of rows.
    std::vector<const float*> starts_, rows_;   ///< Of the inputs, and of the row in them.
    std::vector<float*> targets_;
    std::vector<Block> inputs_, results_;
    std::vector<std::vector<BlockBuffer>> buffers_;  ///< Per part that is computed from its definition.
    std::vector<std::optional<BlockEvaluator>> evaluators_;
  };

  [[nodiscard]] std::string name_of(std::size_t part) const {
    const std::optional<std::size_t> output = plan_.parts[part].output;
    return output ? "y" + std::to_string(*output) : "t" + std::to_string(part);
  }

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

/// Plan::of_rows of a request.
std::vector<bool> same_for_all_rows(const KernelRequest& request, const OperatorRegistry& registry) {
  std::vector<bool> result(request.inputs.size(), true);
  for (const FusedPart& part : request.fused->parts) {
    const bool by_rows = RowLoop::of(part.request, registry).has_value();
    for (std::size_t k = 0; k < part.sources.size(); ++k)
      if (part.sources[k].is_input && (!by_rows || k == 0)) result[part.sources[k].index] = false;
  }
  return result;
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

bool is_fusable_element(const KernelRequest& part, const OperatorRegistry& registry) {
  const OperatorDefinition* const definition = registry.find(part.op);
  if (definition == nullptr || !is_all_floats(part) || part.outputs.size() != 1) return false;
  return definition->elementwise || RowLoop::of(part, registry);
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
  plan.of_rows = same_for_all_rows(request, registry);
  for (std::size_t i = 0; i < plan.of_rows.size(); ++i)
    if (plan.of_rows[i]) walked.inputs[i].type.shape.clear();
  plan.walk = element_walk(walked);
  for (const FusedPart& fused : request.fused->parts) {
    Part& part = plan.parts.emplace_back();
    part.name = fused.request.op;
    if (!fused.request.attributes.empty()) part.name += "[" + to_string(fused.request.attributes) + "]";
    part.sources = fused.sources;
    part.loop = element_loop(fused.request, registry);
    part.rows = RowLoop::of(fused.request, registry);
    if (part.rows) {
      if (part.rows->length() > longest_row) return decline("rows are too long");
      plan.row = std::max(plan.row, part.rows->length());  // another one can only be 1, of an axis of one element
      plan.work += part.rows->work();
      continue;
    }
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
  if (plan.walk.extents.back() % plan.row != 0) return decline("rows of several pieces");
  place_results(plan);
  return {std::make_unique<FusedElements>(std::move(plan), request.threads), ""};
}

}  // namespace taso::cpu
