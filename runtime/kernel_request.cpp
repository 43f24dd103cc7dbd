// Requests and what kernels have in common: all that a module with kernels of its own needs of kernel.h.
#include "runtime/kernel.h"

namespace taso {
namespace {

void add_operands(std::string& text, const std::vector<Operand>& operands) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i > 0) text += ", ";
    text += to_string(operands[i].type);
    text += ':';
    text += to_string(operands[i].layout);
    if (operands[i].weight) text += ":weight";
    if (const Within& within = operands[i].within)
      text += ":within " + std::to_string(within.extent) + " of axis " + std::to_string(within.axis);
  }
}

std::string source_text(const FusedPart::Source& source) {
  if (source.is_input) return "i" + std::to_string(source.index);
  return "t" + std::to_string(source.index) + (source.port > 0 ? "." + std::to_string(source.port) : "");
}

/// "t0 = div(i0, i1) -> f32[2, 3]:row, t1 = softmax[axis=-1](t0) -> f32[2, 3]:row, yields t1".
std::string parts_text(const Fused& fused) {
  std::string text;
  for (std::size_t i = 0; i < fused.parts.size(); ++i) {
    const FusedPart& part = fused.parts[i];
    text += "t" + std::to_string(i) + " = " + part.request.op;
    if (!part.request.attributes.empty()) text += "[" + to_string(part.request.attributes) + "]";
    for (std::size_t k = 0; k < part.sources.size(); ++k) text += (k == 0 ? "(" : ", ") + source_text(part.sources[k]);
    text += ") -> ";
    add_operands(text, part.request.outputs);
    text += ", ";
  }
  text += "yields";
  for (const FusedPart::Source& result : fused.results) text += " " + source_text(result);
  return text;
}

}  // namespace

bool KernelRequest::operator==(const KernelRequest& other) const {
  if ((fused == nullptr) != (other.fused == nullptr)) return false;
  return op == other.op && attributes == other.attributes && inputs == other.inputs && outputs == other.outputs &&
         threads == other.threads && cached_tenths == other.cached_tenths &&
         (fused == nullptr || fused == other.fused || *fused == *other.fused);
}

std::string KernelRequest::key() const {
  std::string text = op;
  text += "; ";
  text += fused ? parts_text(*fused) : to_string(attributes);
  text += "; ";
  add_operands(text, inputs);
  text += " -> ";
  add_operands(text, outputs);
  text += "; threads=" + std::to_string(threads);
  if (cached_tenths > 0) text += "; cached=" + std::to_string(10 * cached_tenths) + "%";
  return text;
}

std::string Kernel::packed_format(std::size_t) const { return ""; }
std::size_t Kernel::packed_bytes(std::size_t) const { return 0; }
std::int64_t Kernel::rows_of_part(std::size_t) const { return 0; }
void Kernel::pack_part(std::size_t, std::int64_t, std::int64_t, const std::byte*, std::byte*) const {
  TASO_CHECK(false, "packing a part of an input that is packed as a whole");
}
void Kernel::pack(std::size_t, const std::byte*, std::byte*) const {
  TASO_CHECK(false, "packing an input that is not packed");
}

}  // namespace taso
