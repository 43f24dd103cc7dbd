// Launches of several requests that read nothing of each other.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/cuda/program.h"
#include "runtime/independent_requests.h"

namespace taso::cuda {
namespace {

PlannedProgram declined(std::string reason) { return {std::nullopt, std::move(reason)}; }

/// A convolution of every channel by itself, all of it by our own kernel.
PlannedProgram convolved(const KernelRequest& request) {
  std::string reason;
  if (!is_plain(request, reason)) return declined(std::move(reason));
  const Shape& y = request.outputs[0].type.shape;
  const std::size_t inputs = request.inputs.size();
  if (inputs < 2 || inputs > 4 || y.size() != 4) return declined("two to four inputs and an image are needed");
  if (inputs > 2 && request.inputs[2].type.shape != Shape{y[1]})
    return declined("a bias that is not one number for every channel");
  if (inputs > 3 && request.inputs[3].type.shape != y) return declined("a residual of another shape than the output");
  const std::optional<Function> act = activation_of(request);
  if (!act) return declined("no such activation");
  const std::optional<DepthwiseStep> step = depthwise_step(request, *act);
  if (!step) return declined("a convolution of several channels");
  return {Program{"own depthwise", {*step}}, ""};
}

/// A program of one step, without errors to note.
PlannedProgram plan_part(const KernelRequest& request) {
  PlannedProgram planned = request.op.starts_with("conv2d") ? convolved(request) : plan_program(request);
  if (!planned.program) return planned;
  if (planned.program->steps.size() != 1) return declined("several launches");
  const Step& step = planned.program->steps[0];
  if (std::holds_alternative<GatheringStep>(step)) return declined("indices that may be wrong");
  if (std::holds_alternative<BesideStep>(step)) return declined("several requests in one");
  return planned;
}

/// Shared memory that a kernel for a step takes at most: all parts of a launch have theirs in every block.
std::size_t shared_bytes(const Step& step) {
  constexpr std::size_t elements_of_tile = 32 * 33, of_teams = 256 * sizeof(float);
  const auto* copy = std::get_if<CopyStep>(&step);
  return copy != nullptr ? elements_of_tile * copy->width : of_teams;
}

/// Of 48 KB that a block may have; with less, more blocks are held at a time.
constexpr std::size_t most_shared_bytes = std::size_t{32} << 10;

}  // namespace

bool can_stand_beside(const KernelRequest& request) { return plan_part(request).program.has_value(); }

PlannedProgram plan_beside(const KernelRequest& request) {
  const std::vector<IndependentRequest> requests = independent_requests(request);
  if (requests.size() < 2) return declined("operators that read each other's results");
  BesideStep step;
  std::size_t shared = 0;
  for (const IndependentRequest& one : requests) {
    PlannedProgram planned = plan_part(one.request);
    if (!planned.program) return planned;
    shared += shared_bytes(planned.program->steps[0]);
    if (shared > most_shared_bytes) return declined("more shared memory than a block should have");
    step.parts.push_back({std::make_shared<const Program>(std::move(*planned.program)), one.inputs, one.outputs});
  }
  return {Program{"own kernels side by side", {std::move(step)}}, ""};
}

std::size_t launches_of(const Step& step) {
  const auto* beside = std::get_if<BesideStep>(&step);
  return beside == nullptr ? 1 : beside->parts.size();
}

PartBuffers::PartBuffers(const BesideStep::Part& part, const Buffers& whole) : buffers_(whole) {
  for (const std::uint32_t input : part.inputs) inputs_.push_back(whole.inputs[input]);
  for (const std::uint32_t output : part.outputs) outputs_.push_back(whole.outputs[output]);
  buffers_.inputs = inputs_;
  buffers_.outputs = outputs_;
  buffers_.workspace = nullptr;
}

std::optional<Function> activation_of(const KernelRequest& request) {
  const AttributeValue* act = request.attributes.find("act");
  if (act == nullptr) return Function::identity;
  const auto* symbol = std::get_if<SymbolValue>(act);
  if (symbol == nullptr) return std::nullopt;
  const auto function = function_named(symbol->name);
  // these two are operators, not functions that an attribute could name
  if (function == Function::clip || function == Function::neg) return std::nullopt;
  return function;
}

bool is_plain(const KernelRequest& request, std::string& reason) {
  if (request.outputs.size() != 1) {
    reason = "one output is needed";
    return false;
  }
  const ElementType element = request.outputs[0].type.element;
  if (element != ElementType::f32 && element != ElementType::f16 && element != ElementType::bf16) {
    reason = "only f32, f16 or bf16";
    return false;
  }
  for (const std::vector<Operand>* operands : {&request.inputs, &request.outputs})
    for (const Operand& operand : *operands) {
      if (!operand.type.known)
        reason = "an operand's shape is not known";
      else if (operand.type.element != element)
        reason = "only operands of one type";
      else if (operand.type.elements() == 0)
        reason = "an operand is empty";
      else if (block_of(operand.layout) != 0)
        reason = "no blocks of channels";
      else if (!fits(operand.layout, operand.type.shape))
        reason = "a layout that the shape cannot have";
      else
        continue;
      return false;
    }
  return true;
}

}  // namespace taso::cuda
