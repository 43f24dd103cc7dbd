// Runs every kernel that models may need on a backend, in all layouts, and compares it with the host's.
//
// usage: kernel_check --device NAME [--math M] [--json FILE] MODEL.onnx...
//
// Kernels are those of the layout spaces of each model's graph and of its folded and fused baseline, and those that the
// backend fuses when these are run with layouts by rule. Operands are
// random and rounded to the storage before the host's kernel, in f32, sees them, so that what differs is the kernel's
// own rounding. A kernel fails whose result differs by a relative L2 norm above what the math mode allows
// (tools/device.h), or that leaves an element unwritten. Exit code 4 if one fails. Kernels that the backend declines
// are counted.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "graph/rewrite.h"
#include "onnx_io/model.h"
#include "optimizer/baseline.h"
#include "runtime/backend.h"
#include "runtime/executor.h"
#include "runtime/kernel.h"
#include "runtime/layout_space.h"
#include "runtime/storage.h"
#include "runtime/strides.h"
#include "runtime/tensor.h"
#include "support/file.h"
#include "support/random.h"
#include "support/text_output.h"
#include "tools/common.h"
#include "tools/device.h"
#include "tools/specs.h"

namespace taso {
namespace {

std::size_t bytes_of(const TensorType& type) { return static_cast<std::size_t>(type.bytes()); }
std::size_t count_of(const TensorType& type) { return static_cast<std::size_t>(type.elements()); }
bool is_narrow(ElementType element) { return element == ElementType::f16 || element == ElementType::bf16; }

/// Random elements in memory order, whatever the layout: uniform in [-1, 1), positive where the operator needs it, and
/// indices within the axis they index.
AlignedBuffer random_operand(const KernelRequest& request, std::size_t input, Random& random) {
  const TensorType& type = request.inputs[input].type;
  AlignedBuffer buffer(bytes_of(type));
  std::fill(buffer.data(), buffer.data() + buffer.size(), std::byte{0});
  static const std::set<std::string> positive = {"log", "sqrt", "pow", "div", "batch_norm"};
  if (type.element == ElementType::f32 || is_narrow(type.element)) {
    std::vector<float> values(count_of(type));
    for (float& value : values)
      value = static_cast<float>(positive.contains(request.op) ? 0.1 + random.uniform() : 2 * random.uniform() - 1);
    convert_floats(reinterpret_cast<const std::byte*>(values.data()), ElementType::f32, buffer.data(), type.element,
                   values.size());
  } else if (type.element == ElementType::i64 && request.attributes.find("axis") != nullptr) {
    const Shape& shape = request.inputs[0].type.shape;
    const auto extent = static_cast<std::uint64_t>(shape[axis_of(request.attributes.integer("axis"), shape.size())]);
    auto* values = reinterpret_cast<std::int64_t*>(buffer.data());
    for (std::size_t i = 0; i < count_of(type); ++i) values[i] = static_cast<std::int64_t>(random.below(extent));
  }
  return buffer;
}

AlignedBuffer widened(const AlignedBuffer& bytes, const TensorType& type) {
  if (!is_narrow(type.element)) {
    AlignedBuffer copy(bytes.size());
    std::copy(bytes.data(), bytes.data() + bytes.size(), copy.data());
    return copy;
  }
  AlignedBuffer floats(count_of(type) * sizeof(float));
  convert_floats(bytes.data(), type.element, floats.data(), ElementType::f32, count_of(type));
  return floats;
}

/// Packs weights as the kernel wants them.
AlignedBuffer packed(const Kernel& kernel, std::size_t input, AlignedBuffer plain) {
  if (kernel.packed_format(input).empty()) return plain;
  AlignedBuffer ready(kernel.packed_bytes(input));
  kernel.pack(input, plain.data(), ready.data());
  return ready;
}

/// The relative L2 norm of the difference between the two kernels' results, the largest over the outputs; infinite
/// where an element that should be finite is not.
Expected<double> difference(const KernelRequest& request, const Kernel& kernel, const KernelLibrary& library) {
  const std::shared_ptr<Backend>& backend = library.backend();
  KernelRequest on_host = request;
  for (const ElementType narrow : {ElementType::f16, ElementType::bf16})
    replace_floats(on_host, narrow, ElementType::f32);
  TASO_ASSIGN(const std::unique_ptr<Kernel> host, library.create(on_host));
  Random random(1, request.key());
  std::vector<AlignedBuffer> host_buffers;
  std::vector<DeviceBuffer> device_buffers;
  std::vector<const std::byte*> host_inputs, device_inputs;
  std::vector<std::byte*> host_outputs, device_outputs;
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    AlignedBuffer plain = random_operand(request, i, random);
    host_buffers.push_back(packed(*host, i, widened(plain, request.inputs[i].type)));
    host_inputs.push_back(host_buffers.back().data());
    const AlignedBuffer ready = packed(kernel, i, std::move(plain));
    TASO_ASSIGN(DeviceBuffer buffer, DeviceBuffer::create(backend, std::max<std::size_t>(ready.size(), 1)));
    TASO_RETURN_IF_ERROR(backend->upload({ready.data(), ready.size()}, buffer.data()));
    device_inputs.push_back(buffer.data());
    device_buffers.push_back(std::move(buffer));
  }
  for (const Operand& output : request.outputs) {
    host_buffers.emplace_back(bytes_of(stored(output.type, ElementType::f32)) *
                              (is_narrow(output.type.element) ? 2 : 1));
    host_outputs.push_back(host_buffers.back().data());
    const std::size_t bytes = bytes_of(output.type);
    TASO_ASSIGN(DeviceBuffer buffer, DeviceBuffer::create(backend, std::max<std::size_t>(bytes, 1)));
    const std::vector<std::byte> poison(bytes, std::byte{0xff});
    TASO_RETURN_IF_ERROR(backend->upload(poison, buffer.data()));
    device_outputs.push_back(buffer.data());
    device_buffers.push_back(std::move(buffer));
  }
  TASO_ASSIGN(const DeviceBuffer workspace,
              DeviceBuffer::create(backend, std::max<std::size_t>(kernel.workspace_bytes(), 1)));
  AlignedBuffer host_workspace(host->workspace_bytes());
  TASO_RETURN_IF_ERROR(kernel.execute({device_inputs, device_outputs, workspace.data()}));
  TASO_RETURN_IF_ERROR(backend->synchronize());
  TASO_RETURN_IF_ERROR(host->execute({host_inputs, host_outputs, host_workspace.data()}));
  double worst = 0;
  for (std::size_t i = 0; i < request.outputs.size(); ++i) {
    const TensorType& type = request.outputs[i].type;
    AlignedBuffer bytes(bytes_of(type));
    TASO_RETURN_IF_ERROR(backend->download(device_outputs[i], {bytes.data(), bytes.size()}));
    if (type.element != ElementType::f32 && !is_narrow(type.element)) {
      if (!std::equal(bytes.data(), bytes.data() + bytes.size(), host_outputs[i])) worst = HUGE_VAL;
      continue;
    }
    // Element by element in memory order: both have the same layout.
    const AlignedBuffer result = widened(bytes, type);
    const Shape flat = {type.elements()};
    const auto floats = [&](const std::byte* data) {
      return HostTensor::of_floats(flat, {reinterpret_cast<const float*>(data), count_of(type)});
    };
    worst = std::max(worst, relative_l2(floats(result.data()), floats(host_outputs[i])));
  }
  return worst;
}

struct Options {
  tools::CommonOptions common;
  tools::DeviceOptions device;
  std::vector<std::string> models;
};

Expected<RuleIndex> proved_rules(const tools::CommonOptions& options, const OperatorRegistry& registry) {
  TASO_ASSIGN(const std::vector<std::string> files, tools::rule_files(options));
  std::vector<Substitution> rules;
  for (const std::string& file : files) {
    TASO_ASSIGN(std::vector<Substitution> loaded, load_rules(file, registry));
    for (Substitution& rule : loaded)
      if (!rule.is_axiom && carries_proof(rule, registry)) rules.push_back(std::move(rule));
  }
  return RuleIndex(std::move(rules), registry);
}

Expected<int> run(const Options& options) {
  TASO_ASSIGN(const OperatorRegistry registry, tools::load_operators(options.common));
  TASO_ASSIGN(const tools::Device device, tools::open_device(options.device, registry, false));
  if (!device.can_run() || !device.library.backend())
    return Error{ErrorCode::usage, "--device: kernels of a backend are checked; give its name", {}};
  TASO_ASSIGN(const RuleIndex rules, proved_rules(options.common, registry));
  std::map<std::string, KernelRequest> requests;
  for (const std::string& path : options.models) {
    TASO_ASSIGN(const Model model, Model::load(path, registry, {}));
    TASO_ASSIGN(const Baseline baseline, make_baseline(model.graph(), rules, registry));
    for (const Graph* graph : {&model.graph(), &baseline.graph}) {
      LayoutSpaces spaces(registry, 1, device.library.blocks(), 0, device.float_storage);
      TASO_ASSIGN(const LayoutSpace space, spaces.of(*graph));
      for (const auto& kernel : space.kernels) requests.emplace(kernel->key, kernel->request);
      TASO_ASSIGN(LoweredGraph lowered, lower(*graph, registry, {.float_storage = device.float_storage}));
      for (const LoweredStep& step : fused_for(std::move(lowered), device.library).steps)
        requests.emplace(step.kernel->key, step.kernel->request);
    }
  }
  const double bound = tools::tolerance_of(options.device.math).l2;
  nlohmann::ordered_json json{{"device", device.library.device()}, {"math", options.device.math}, {"bound", bound}};
  std::size_t checked = 0, failed = 0;
  std::map<std::string, std::size_t> declined;
  for (const auto& [key, request] : requests) {
    const KernelOffer offer = device.library.create_on_device(request);
    if (!offer.kernel) {
      ++declined[request.op];
      json["declined"].push_back({{"request", key}, {"reason", offer.reason}});
      continue;
    }
    const Expected<double> error = difference(request, *offer.kernel, device.library);
    const bool within = error && *error <= bound;
    ++checked;
    failed += within ? 0 : 1;
    json["kernels"].push_back(
        {{"request", key}, {"implementation", offer.kernel->implementation()}, {"within", within}});
    nlohmann::ordered_json& entry = json["kernels"].back();
    if (error)
      entry["relative_l2"] = *error;
    else
      entry["error"] = error.error().message;
    if (!within)
      fmt::print("{}: {}: {}\n", offer.kernel->implementation(), key,
                 error ? fmt::format("relative L2 {:.3g}, allowed {:.3g}", *error, bound) : error.error().message);
  }
  json["checked"] = checked;
  json["failed"] = failed;
  if (!options.common.json.empty()) TASO_RETURN_IF_ERROR(write_text(options.common.json, json.dump(1) + "\n"));
  std::string list;
  for (const auto& [op, count] : declined)
    list += fmt::format("{}{} x {}", list.empty() ? "; declined: " : ", ", op, count);
  fmt::print("{} kernels checked, {} failed{}\n", checked, failed, list);
  return failed == 0 ? 0 : static_cast<int>(ErrorCode::check_failed);
}

}  // namespace
}  // namespace taso

int main(int argc, char** argv) {
  constexpr const char* usage = "kernel_check --device NAME [--math fp32|tf32|fp16|bf16] [--json FILE] MODEL.onnx...";
  taso::Options options;
  options.common.specs = taso::tools::default_specs();
  options.device.device = "cpu";
  const std::map<std::string, std::string*> named = {
      {"--device", &options.device.device}, {"--math", &options.device.math}, {"--json", &options.common.json}};
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--help") {
      fmt::print("usage: {}\n", usage);
      return 0;
    }
    if (const auto option = named.find(argument); option != named.end() && i + 1 < argc)
      *option->second = argv[++i];
    else
      options.models.push_back(argument);
  }
  const std::string& math = options.device.math;
  if (options.models.empty() || options.models[0].rfind("--", 0) == 0 ||
      (math != "fp32" && math != "tf32" && math != "fp16" && math != "bf16"))
    return taso::tools::fail("kernel_check",
                             {taso::ErrorCode::usage, std::string("wrong arguments; usage: ") + usage, {}});
  const taso::Expected<int> code = taso::run(options);
  return code ? *code : taso::tools::fail("kernel_check", code.error());
}
