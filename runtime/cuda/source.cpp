#include "runtime/cuda/source.h"

#include <limits>
#include <utility>
#include <variant>

#include "runtime/cuda/dispatch.h"
#include "runtime/cuda/source_steps.h"

namespace taso::cuda {

void SourceText::begin_step(std::string name) {
  prefix_ = std::move(name);
  step_ = {};
  writers_.clear();
}

void SourceText::take(const KernelWriter& writer) {
  add_function(writer.text());
  step_.kernels.push_back(writer.kernel());
  writers_.push_back(writer);
}

void SourceText::add_function(const std::string& function) {
  if (!text_.empty()) text_ += "\n";
  text_ += function;
}

GeneratedOffer generate_source(const Program& program) {
  GeneratedProgram made;
  made.name = program.name.starts_with("own ") ? "generated " + program.name.substr(4) : "generated";
  SourceText text;
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    text.begin_step("step_" + std::to_string(i));
    std::visit([&](const auto& step) { write_step(text, step); }, program.steps[i]);
    for (const GeneratedKernel& kernel : text.step().kernels)
      if (kernel.blocks > std::numeric_limits<std::int32_t>::max())
        return {std::nullopt, "more blocks than a launch can have"};
    made.steps.push_back(text.step());
  }
  made.source = definitions_for(text.kernels()) + text.kernels();
  return {std::move(made), ""};
}

const std::byte* address_of(const Slot& slot, const Buffers& buffers) {
  return dispatch::source<std::byte>(slot, buffers);
}

const GeneratedKernel* kernel_for(const GeneratedStep& step, const Buffers& buffers) {
  for (const GeneratedKernel& kernel : step.kernels) {
    bool fits = true;
    for (std::size_t i = 0; i < kernel.operands.size() && fits; ++i)
      fits = dispatch::is_aligned(address_of(kernel.operands[i], buffers), kernel.alignments[i]);
    if (fits) return &kernel;
  }
  return nullptr;
}

}  // namespace taso::cuda
