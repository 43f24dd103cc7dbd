#include "runtime/kernel.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include "operators/instance.h"
#include "operators/registry.h"
#include "runtime/backend.h"
#include "runtime/cpu/kernels.h"
#include "runtime/cpu/loops.h"
#include "runtime/fused_kernel.h"
#include "runtime/joined_body.h"
#include "runtime/measure.h"
#include "runtime/reference_kernel.h"
#include "runtime/widened_kernel.h"

namespace taso {
namespace {

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

/// What is wrong, at its place, with an operator's definition for these operands: no kernel can compute it.
std::optional<Error> definition_error(const KernelRequest& request, const OperatorRegistry& registry) {
  if (request.op == reorder_op) return std::nullopt;
  std::vector<TensorType> types;
  for (const Operand& operand : request.inputs) types.push_back(operand.type);
  const auto instance = OperatorInstance::create(registry, request.op, request.attributes, types);
  if (instance || instance.error().where.file.empty()) return std::nullopt;
  return instance.error();
}

}  // namespace

KernelLibrary::KernelLibrary(const OperatorRegistry& registry, KernelSet set) : registry_(&registry), set_(set) {}

KernelLibrary::KernelLibrary(const OperatorRegistry& registry, std::shared_ptr<Backend> backend)
    : registry_(&registry), set_(KernelSet::cpu), backend_(std::move(backend)) {}

std::vector<KernelCandidate> KernelLibrary::candidates(const KernelRequest& request) const {
  std::vector<KernelCandidate> list;
  if (set_ == KernelSet::cpu) list = cpu::candidates_for(request.op, *registry_);
  list.push_back({"reference", reference_kernel});
  return list;
}

Expected<std::unique_ptr<Kernel>> KernelLibrary::create(const KernelRequest& request) const {
  for (const Operand& output : request.outputs)
    if (output.within) return bad_input("the host writes no result within a wider tensor: " + request.key());
  if (request.fused) {
    if (KernelOffer together = fused_offer(request); together.kernel) return std::move(together.kernel);
    return fused_kernel(request, *this);
  }
  std::string reasons;
  for (const KernelCandidate& candidate : candidates(request)) {
    KernelOffer offer = candidate.create(request, *registry_);
    if (offer.kernel) return std::move(offer.kernel);
    reasons += (reasons.empty() ? "" : "; ") + candidate.name + ": " + offer.reason;
  }
  if (reads_or_makes_halves(request)) return widened_kernel(request, *this);
  if (const std::optional<Error> wrong = definition_error(request, *registry_))
    return bad_input("no kernel computes " + request.key() + ": " + wrong->to_string());
  return bad_input("no kernel computes " + request.key() + " (" + reasons + ")");
}

KernelOffer KernelLibrary::fused_offer(const KernelRequest& request) const {
  if (set_ != KernelSet::cpu) return {nullptr, "only the processor's kernels are joined here"};
  if (KernelOffer elements = cpu::fused_elements(request, *registry_); elements.kernel) return elements;
  if (KernelOffer attention = cpu::attention(request, *registry_); attention.kernel) return attention;
  if (KernelOffer moves = cpu::fused_moves(request, *registry_); moves.kernel) return moves;
  if (KernelOffer clipped = cpu::onednn_clipped_convolution(request, *registry_); clipped.kernel) return clipped;
  return cpu::joined_definitions(request, *registry_);
}

bool KernelLibrary::fuses(const KernelRequest& request) const {
  if (backend_) return backend_->fuses(request, operators());
  return fused_offer(request).kernel != nullptr;
}

Operators KernelLibrary::operators() const {
  return {*registry_, [registry = registry_](const KernelRequest& request) { return joined_body(request, *registry); }};
}

bool KernelLibrary::stands_beside(const KernelRequest& request) const {
  return backend_ && backend_->stands_beside(request);
}

bool KernelLibrary::writes_within(const KernelRequest& request) const {
  return backend_ && backend_->writes_within(request);
}

bool KernelLibrary::may_fuse(const KernelRequest& part) const {
  return backend_ || (set_ == KernelSet::cpu &&
                      (cpu::is_fusable_element(part, *registry_) || cpu::is_fusable_move(part) ||
                       cpu::is_fusable_product(part) || cpu::is_clippable(part) || cpu::is_joinable(part, *registry_)));
}

bool KernelLibrary::may_cost_nothing(const KernelRequest& part) const {
  const bool convolves = part.op.starts_with("conv2d");
  const bool has_weight =
      std::any_of(part.inputs.begin(), part.inputs.end(), [](const Operand& o) { return o.weight; });
  const bool is_half = !part.inputs.empty() && (part.inputs[0].type.element == ElementType::f16 ||
                                                part.inputs[0].type.element == ElementType::bf16);
  const bool may_be_attention = !has_weight || (backend_ && is_half);
  return may_fuse(part) && !convolves && (part.op != "matmul" || may_be_attention);
}

KernelOffer KernelLibrary::create_on_device(const KernelRequest& request) const {
  if (!backend_) return {nullptr, "there is no device"};
  return backend_->create(request, operators());
}

std::vector<std::pair<std::string, KernelOffer>> KernelLibrary::offers(const KernelRequest& request) const {
  std::vector<std::pair<std::string, KernelOffer>> offers;
  if (backend_) offers.emplace_back(backend_->name(), create_on_device(request));
  for (const KernelCandidate& candidate : candidates(request))
    offers.emplace_back(candidate.name, candidate.create(request, *registry_));
  return offers;
}

std::optional<Layout> KernelLibrary::blocks() const {
  if (backend_ || set_ == KernelSet::reference || cpu::onednn_version().empty()) return std::nullopt;
  return std::string_view(cpu::loops().instruction_set) == "avx512" ? Layout::blocks_of_16 : Layout::blocks_of_8;
}

/// Raised with every change that makes kernels faster or slower: costs measured before it do not count.
constexpr int kernel_generation = 11;

std::string KernelLibrary::device() const {
  if (backend_) return backend_->identity();
  std::string text = processor_name();
  if (set_ == KernelSet::reference) return text + "; reference";
  if (const std::size_t cache = last_level_cache_bytes(); cache > 0)
    text += "; " + std::to_string((cache + (1U << 19)) >> 20) + " MB cache";
  text += std::string("; ") + cpu::loops().instruction_set;
  if (const std::string version = cpu::onednn_version(); !version.empty()) text += "; " + version;
  return text + "; taso " TASO_VERSION ", kernels " + std::to_string(kernel_generation);
}

std::vector<std::int64_t> index_bounds(const KernelRequest& request, const OperatorRegistry& registry) {
  std::vector<std::int64_t> result(request.inputs.size(), 0);
  std::vector<TensorType> types;
  bool integers = false;
  for (const Operand& operand : request.inputs) {
    types.push_back(operand.type);
    integers = integers || operand.type.element == ElementType::i32 || operand.type.element == ElementType::i64;
  }
  if (!integers || !registry.defines(request.op)) return result;
  std::vector<std::int64_t> bounds = registry.index_bounds(request.op, request.attributes, types);
  return bounds.empty() ? result : bounds;
}

}  // namespace taso
