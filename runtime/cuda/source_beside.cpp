// Kernels of several programs in one launch: functions of theirs, and a kernel that calls in each block the one that it
// is for.
#include <string>
#include <variant>
#include <vector>

#include "runtime/cuda/source_steps.h"

namespace taso::cuda {
namespace {

/// Of each part the first of its kernels, which may be for packs, or the last, which is for any operands.
KernelWriter beside(const SourceText& text, const std::vector<std::vector<KernelWriter>>& parts, bool packed) {
  std::vector<const KernelWriter*> kernels;
  for (const std::vector<KernelWriter>& part : parts) kernels.push_back(packed ? &part.front() : &part.back());
  return KernelWriter::beside(text.kernel(packed).kernel().name, kernels);
}

}  // namespace

void write_step(SourceText& text, const BesideStep& step) {
  const std::string name = text.kernel().kernel().name;
  std::vector<std::vector<KernelWriter>> parts;  // those that have something to compute
  bool has_packs = false;
  for (std::size_t number = 0; number < step.parts.size(); ++number) {
    const BesideStep::Part& part = step.parts[number];
    SourceText of_part;
    of_part.begin_step(name + "_part_" + std::to_string(number));
    std::visit([&](const auto& one) { write_step(of_part, one); }, part.program->steps[0]);
    if (of_part.writers().empty()) continue;
    std::vector<KernelWriter>& kernels = parts.emplace_back();
    for (const KernelWriter& kernel : of_part.writers()) {
      kernels.push_back(kernel.with_operands(part.inputs, part.outputs));
      text.add_function(kernel.text_of_function());
    }
    has_packs = has_packs || kernels.size() > 1;
  }
  if (parts.empty()) return;
  if (has_packs) text.take(beside(text, parts, true));
  text.take(beside(text, parts, false));
}

}  // namespace taso::cuda
