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
  }
}

}  // namespace

std::string KernelRequest::key() const {
  std::string text = op;
  text += "; ";
  text += to_string(attributes);
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
