#include "runtime/kernel.h"

#include <fstream>

#include "runtime/cpu/kernels.h"
#include "runtime/cpu/loops.h"
#include "runtime/measure.h"
#include "runtime/reference_kernel.h"

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

/// The processor's name as Linux gives it, or the architecture.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("model name", 0) == 0)
      if (const std::size_t colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown processor";
#endif
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
void Kernel::pack(std::size_t, const std::byte*, std::byte*) const {
  TASO_CHECK(false, "packing an input that is not packed");
}

KernelLibrary::KernelLibrary(const OperatorRegistry& registry, KernelSet set) : registry_(&registry), set_(set) {}

std::vector<KernelCandidate> KernelLibrary::candidates(const KernelRequest& request) const {
  std::vector<KernelCandidate> list;
  if (set_ == KernelSet::cpu) list = cpu::candidates_for(request.op);
  list.push_back({"reference", reference_kernel});
  return list;
}

Expected<std::unique_ptr<Kernel>> KernelLibrary::create(const KernelRequest& request) const {
  std::string reasons;
  for (const KernelCandidate& candidate : candidates(request)) {
    KernelOffer offer = candidate.create(request, *registry_);
    if (offer.kernel) return std::move(offer.kernel);
    reasons += (reasons.empty() ? "" : "; ") + candidate.name + ": " + offer.reason;
  }
  return bad_input("no kernel computes " + request.key() + " (" + reasons + ")");
}

std::vector<std::pair<std::string, KernelOffer>> KernelLibrary::offers(const KernelRequest& request) const {
  std::vector<std::pair<std::string, KernelOffer>> offers;
  for (const KernelCandidate& candidate : candidates(request))
    offers.emplace_back(candidate.name, candidate.create(request, *registry_));
  return offers;
}

std::optional<Layout> KernelLibrary::blocks() const {
  if (set_ == KernelSet::reference || cpu::onednn_version().empty()) return std::nullopt;
  return std::string_view(cpu::loops().instruction_set) == "avx512" ? Layout::blocks_of_16 : Layout::blocks_of_8;
}

/// Raised with every change that makes kernels faster or slower: costs measured before it do not count.
constexpr int kGeneration = 2;

std::string KernelLibrary::device() const {
  std::string text = processor_name();
  if (set_ == KernelSet::reference) return text + "; reference";
  if (const std::size_t cache = last_level_cache_bytes(); cache > 0)
    text += "; " + std::to_string((cache + (1U << 19)) >> 20) + " MB cache";
  text += std::string("; ") + cpu::loops().instruction_set;
  if (const std::string version = cpu::onednn_version(); !version.empty()) text += "; " + version;
  return text + "; taso " TASO_VERSION ", kernels " + std::to_string(kGeneration);
}

}  // namespace taso
