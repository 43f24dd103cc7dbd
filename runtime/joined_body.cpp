#include "runtime/joined_body.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "operators/instance.h"
#include "runtime/access.h"
#include "runtime/stage_rows.h"
#include "runtime/strides.h"

namespace taso {
namespace {

/// Loops over elements that are shorter are not made of one: they take longer by themselves than is gained.
constexpr std::int64_t shortest_row = 16;

/// Makes two loops of an own loop of a stage: `count` steps around the rest.
void split_loop(LoweredStage& stage, std::size_t position, std::int64_t count) {
  const std::uint32_t inner = stage.outer[position];
  const auto outer = static_cast<std::uint32_t>(stage.extents.size());
  const std::int64_t rest = stage.extents[inner] / count;
  stage.extents[inner] = rest;
  stage.extents.push_back(count);
  stage.steps.emplace_back();
  for (const auto& [form, coefficient] : stage.steps[inner]) {
    stage.forms[form].terms.emplace_back(outer, coefficient * rest);
    stage.steps[outer].emplace_back(form, coefficient * rest);
  }
  stage.outer.insert(stage.outer.begin() + static_cast<std::ptrdiff_t>(position), outer);
}

/// Parts the outermost loops of all stages alike, as long as all of them go together by these.
void part_loops(std::vector<LoweredStage>& stages) {
  for (std::size_t position = 0;; ++position) {
    std::int64_t least = 0;
    for (const LoweredStage& stage : stages) {
      if (position >= stage.outer.size()) return;
      const std::int64_t extent = stage.extents[stage.outer[position]];
      least = least == 0 ? extent : std::min(least, extent);
    }
    for (const LoweredStage& stage : stages) {
      const std::int64_t extent = stage.extents[stage.outer[position]];
      const bool adds_up = std::any_of(stage.nodes.begin(), stage.nodes.end(),
                                       [](const LoweredNode& node) { return node.kind == LoweredNode::Kind::reduce; });
      if (extent % least != 0 || (!adds_up && extent != least && extent / least < shortest_row)) return;
    }
    std::vector<LoweredStage> parted = stages;
    for (LoweredStage& stage : parted)
      if (stage.extents[stage.outer[position]] != least) split_loop(stage, position, least);
    for (std::size_t i = 0; i < parted.size(); ++i)
      if (!goes_with(parted, 0, i, position + 1)) return;
    stages = std::move(parted);
  }
}

class Joiner {
 public:
  Joiner(const KernelRequest& request, const OperatorRegistry& registry)
      : request_(request), fused_(*request.fused), registry_(registry) {}

  Expected<LoweredBody> join() {
    for (const std::vector<Operand>* const operands : {&request_.inputs, &request_.outputs})
      for (const Operand& operand : *operands)
        if (Status plain = check(operand); !plain) return plain.error();
    for (std::uint32_t i = 0; i < request_.inputs.size(); ++i) inputs_.push_back({i, access_of(request_.inputs[i])});
    for (std::uint32_t k = 0; k < fused_.results.size(); ++k)
      if (const auto& result = fused_.results[k]; !wanted_.try_emplace({result.index, result.port}, k).second)
        return bad_input("a result is wanted twice");
    for (std::uint32_t part = 0; part < fused_.parts.size(); ++part) TASO_RETURN_IF_ERROR(add(part));
    if (written_ != request_.outputs.size()) return bad_input("a result that is only moved");
    number_buffers();
    part_loops(body_.stages);
    return std::move(body_);
  }

 private:
  /// Where a value's elements are.
  struct Value {
    std::uint32_t buffer = 0;
    Access access;
  };
  /// A buffer that a part writes: output `output` of the whole, or one that is passed on.
  struct Written {
    Shape shape;
    std::optional<std::uint32_t> output;
  };

  [[nodiscard]] Status check(const Operand& operand) const {
    const ElementType element = request_.outputs.empty() ? ElementType::other : request_.outputs[0].type.element;
    const bool is_float = element == ElementType::f32 || element == ElementType::f16 || element == ElementType::bf16;
    if (!is_float || operand.type.element != element || !operand.type.known)
      return bad_input("only f32, f16 or bf16, of known extents");
    if (block_of(operand.layout) != 0 || operand.within) return bad_input("an operand in blocks, or within another");
    if (operand.type.elements() == 0) return bad_input("nothing to compute");
    return {};
  }

  [[nodiscard]] const Value& value(const FusedPart::Source& source) const {
    return source.is_input ? inputs_[source.index] : values_[source.index][source.port];
  }

  Status add(std::uint32_t number) {
    const FusedPart& part = fused_.parts[number];
    values_.emplace_back();
    if (only_moves(part.request)) return move(part);
    const OperatorDefinition* const definition = registry_.find(part.request.op);
    if (definition == nullptr || !definition->over_reals) return bad_input("no definition over reals");
    for (const Operand& output : part.request.outputs) TASO_RETURN_IF_ERROR(check(output));

    std::vector<TensorType> types;
    std::vector<StridedPlacement> placements;
    std::vector<std::uint32_t> buffers;
    for (std::size_t i = 0; i < part.sources.size(); ++i) {
      const Value& read = value(part.sources[i]);
      const Shape& shape = part.request.inputs[i].type.shape;
      TensorType type{ElementType::f32, shape, true};
      StridedPlacement placement{read.access.strides, read.access.offset};
      if (definition->elementwise && i < definition->inputs.size()) {
        type.shape = definition->inputs[i].axes.empty() ? Shape{} : part.request.outputs[0].type.shape;
        if (!is_broadcastable(shape, type.shape)) return bad_input("an operand that is no number");
        placement.strides = broadcast_strides(shape, read.access.strides, type.shape);
      }
      types.push_back(std::move(type));
      placements.push_back(std::move(placement));
      buffers.push_back(read.buffer);
    }
    for (std::uint32_t port = 0; port < part.request.outputs.size(); ++port) {
      const auto wanted = wanted_.find({number, port});
      Operand output = part.request.outputs[port];
      if (wanted != wanted_.end()) output.layout = request_.outputs[wanted->second].layout;
      Access access = access_of(output);
      placements.push_back({access.strides, 0});
      buffers.push_back(static_cast<std::uint32_t>(request_.inputs.size() + buffers_.size()));
      values_.back().push_back({buffers.back(), std::move(access)});
      buffers_.push_back({output.type.shape, {}});
      if (wanted != wanted_.end()) buffers_.back().output = wanted->second;
      if (wanted != wanted_.end()) ++written_;
    }
    TASO_ASSIGN(const OperatorInstance instance,
                OperatorInstance::create(registry_, part.request.op, part.request.attributes, types, placements));
    const bool is_whole =
        instance.output_types().size() == part.request.outputs.size() &&
        std::equal(instance.output_types().begin(), instance.output_types().end(), part.request.outputs.begin(),
                   [](const TensorType& type, const Operand& output) { return type.shape == output.type.shape; });
    if (!is_whole) return bad_input("other outputs than those of the definition");
    return unfold(instance.body(), std::move(buffers));
  }

  /// The stages of a part; `buffers`: of its inputs and outputs.
  Status unfold(const LoweredBody& part, std::vector<std::uint32_t> buffers) {
    for (std::size_t i = 0; i < part.intermediates.size(); ++i) {
      buffers.insert(buffers.begin() + static_cast<std::ptrdiff_t>(part.inputs + i),
                     static_cast<std::uint32_t>(request_.inputs.size() + buffers_.size()));
      buffers_.push_back({part.intermediates[i], {}});
    }
    for (const LoweredStage& stage : part.stages) {
      if (stage.empty) continue;
      if (stage.steps_of) return bad_input("steps that wait for each other");
      LoweredStage& added = body_.stages.emplace_back(stage);
      body_.parts.push_back(static_cast<std::uint32_t>(values_.size() - 1));
      added.buffer = buffers[stage.buffer];
      for (LoweredAccess& access : added.accesses) {
        if (!access.indirect.empty()) return bad_input("indices that are read");
        access.buffer = buffers[access.buffer];
      }
    }
    return {};
  }

  Status move(const FusedPart& part) {
    const Value& read = value(part.sources[0]);
    for (std::size_t port = 0; port < part.request.outputs.size(); ++port) {
      std::optional<Access> moved = access_through(part.request, port, read.access);
      if (!moved) return bad_input("elements that no strides reach");
      values_.back().push_back({read.buffer, *std::move(moved)});
    }
    return {};
  }

  /// Those that are passed on come before outputs.
  void number_buffers() {
    body_.op = fused_op;
    body_.inputs = request_.inputs.size();
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t i = 0; i < request_.inputs.size(); ++i) numbers.push_back(i);
    for (const Written& buffer : buffers_) {
      numbers.push_back(static_cast<std::uint32_t>(body_.inputs + body_.intermediates.size()));
      if (!buffer.output) body_.intermediates.push_back(buffer.shape);
    }
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      if (buffers_[i].output)
        numbers[body_.inputs + i] =
            static_cast<std::uint32_t>(body_.inputs + body_.intermediates.size() + *buffers_[i].output);
    for (const Operand& output : request_.outputs) body_.outputs.push_back(output.type.shape);
    for (LoweredStage& stage : body_.stages) {
      stage.buffer = numbers[stage.buffer];
      for (LoweredAccess& access : stage.accesses) access.buffer = numbers[access.buffer];
    }
  }

  const KernelRequest& request_;
  const Fused& fused_;
  const OperatorRegistry& registry_;
  std::vector<Value> inputs_;
  std::vector<std::vector<Value>> values_;  ///< Per part, per output.
  std::vector<Written> buffers_;            ///< Numbered after the inputs, in the order in which they are written.
  /// Of a part and its output: which of the whole's it is.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> wanted_;
  std::size_t written_ = 0;  ///< Outputs of the whole.
  LoweredBody body_;
};

}  // namespace

Expected<LoweredBody> joined_body(const KernelRequest& request, const OperatorRegistry& registry) {
  if (request.fused) return Joiner(request, registry).join();
  // A fused request of one part.
  Fused fused;
  FusedPart& part = fused.parts.emplace_back();
  part.request = request;
  for (std::uint32_t i = 0; i < request.inputs.size(); ++i) part.sources.push_back({true, i, 0});
  for (std::uint32_t i = 0; i < request.outputs.size(); ++i) fused.results.push_back({false, 0, i});
  KernelRequest whole = request;
  whole.op = fused_op;
  whole.fused = std::make_shared<const Fused>(std::move(fused));
  return Joiner(whole, registry).join();
}

}  // namespace taso
