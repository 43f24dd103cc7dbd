// Runs every kernel that models may need on a backend, in all layouts, and compares it with the host's.
//
// usage: kernel_check --device NAME [--math M] [--engines few|all] [--costs FILE] [--results FILE] [--seconds S]
//                     MODEL.onnx...
//
// Kernels are those of the layout spaces of each model's graph and of its folded and fused baseline, and those that the
// backend fuses when these are run with layouts by rule. Operands are
// random and rounded to the storage before the host's kernel, in f32, sees them, so that what differs is the kernel's
// own rounding. A kernel fails whose result differs by a relative L2 norm above what the math mode allows
// (tools/device.h), or that leaves an element unwritten. Exit code 4 if one fails. Kernels that the backend declines
// are counted.
//
// With --results every kernel is a line of JSON in FILE, written when it is checked; what has a line there is not
// checked again. So the program may be killed at any time and goes on where it was: a kernel during whose check it
// ended is tried once more, and then has failed. With --seconds it ends after so many; what is left is counted. Engines
// are chosen once (--costs, as for taso-run).
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>

#include "graph/reals.h"
#include "graph/rewrite.h"
#include "onnx_io/model.h"
#include "optimizer/baseline.h"
#include "runtime/access.h"
#include "runtime/backend.h"
#include "runtime/executor.h"
#include "runtime/kernel.h"
#include "runtime/layout_space.h"
#include "runtime/storage.h"
#include "runtime/strides.h"
#include "runtime/tensor.h"
#include "support/file.h"
#include "support/random.h"
#include "tools/common.h"
#include "tools/costs.h"
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
    convert_reals(reinterpret_cast<const std::byte*>(values.data()), ElementType::f32, buffer.data(), type.element,
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
  convert_reals(bytes.data(), type.element, floats.data(), ElementType::f32, count_of(type));
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
  for (Operand& output : on_host.outputs) output.within = {};
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
    const auto bytes = static_cast<std::size_t>(spanned_bytes(output));
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
    AlignedBuffer place(static_cast<std::size_t>(spanned_bytes(request.outputs[i])));
    TASO_RETURN_IF_ERROR(backend->download(device_outputs[i], {place.data(), place.size()}));
    gather_runs(request.outputs[i], place.data(), bytes.data());
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
  std::string costs, results;
  double seconds = 0;
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

/// What is known of kernels, in a file that grows by a line with each.
class Results {
 public:
  struct Kernel {
    int begun = 0;               ///< So often, without an end.
    std::optional<bool> within;  ///< Nothing: not checked, or declined.
    bool declined = false;
    [[nodiscard]] bool is_known() const { return within || declined; }
  };

  /// Reads what is there. A line that was not written to its end does not count.
  static Expected<Results> open(const std::string& path) {
    Results results;
    if (path.empty()) return results;
    std::error_code failure;
    if (std::filesystem::exists(path, failure)) {
      TASO_ASSIGN(const std::string text, read_file(path));
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);)
        if (const auto json = nlohmann::json::parse(line, nullptr, false); json.is_object()) results.read(json);
    }
    results.file_.open(path, std::ios::app);
    if (!results.file_) return bad_input("cannot be written", {path});
    results.file_ << '\n';  // ends what another process left unfinished
    return results;
  }

  [[nodiscard]] const Kernel& of(const std::string& key) { return kernels_[key]; }
  void add(const nlohmann::ordered_json& line) {
    read(nlohmann::json(line));
    if (file_.is_open()) file_ << line.dump() << std::endl;  // flushed
  }

 private:
  void read(const nlohmann::json& line) {
    if (!line.contains("request") || !line["request"].is_string()) return;
    Kernel& kernel = kernels_[line["request"].get<std::string>()];
    if (line.contains("begun")) ++kernel.begun;
    if (line.contains("declined")) kernel.declined = true;
    if (line.contains("within") && line["within"].is_boolean()) kernel.within = line["within"].get<bool>();
  }

  std::map<std::string, Kernel> kernels_;
  std::ofstream file_;
};

/// The kernels that the models may need, by key.
Expected<std::map<std::string, KernelRequest>> requests_of(const Options& options, const OperatorRegistry& registry,
                                                           const tools::Device& device) {
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
  return requests;
}

/// Checks one kernel; what there is to say of it.
nlohmann::ordered_json check(const std::string& key, const KernelRequest& request, const KernelLibrary& library,
                             double bound) {
  const auto start = std::chrono::steady_clock::now();
  const KernelOffer offer = library.create_on_device(request);
  if (!offer.kernel) return {{"request", key}, {"declined", offer.reason}};
  const Expected<double> error = difference(request, *offer.kernel, library);
  nlohmann::ordered_json line{{"request", key}, {"implementation", offer.kernel->implementation()}};
  line["within"] = error && *error <= bound;
  if (error)
    line["relative_l2"] = *error;
  else
    line["error"] = error.error().message;
  line["seconds"] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return line;
}

std::string complaint(const nlohmann::ordered_json& line, double bound) {
  const std::string head =
      fmt::format("{}: {}: ", line["implementation"].get<std::string>(), line["request"].get<std::string>());
  if (line.contains("error")) return head + line["error"].get<std::string>();
  return head + fmt::format("relative L2 {:.3g}, allowed {:.3g}", line["relative_l2"].get<double>(), bound);
}

Expected<int> run(const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  TASO_ASSIGN(const OperatorRegistry registry, tools::load_operators(options.common));
  TASO_ASSIGN(const tools::Device device, tools::open_device(options.device, registry, false, options.costs));
  if (!device.can_run() || !device.library.backend())
    return Error{ErrorCode::usage, "--device: kernels of a backend are checked; give its name", {}};
  TASO_RETURN_IF_ERROR(tools::keep_choices(device.library, options.costs, "kernel_check"));
  TASO_ASSIGN(const auto requests, requests_of(options, registry, device));
  TASO_ASSIGN(Results results, Results::open(options.results));
  const double bound = tools::tolerance_of(options.device.math).l2;
  std::size_t checked = 0, failed = 0, left = 0;
  std::map<std::string, std::size_t> declined;
  for (const auto& [key, request] : requests) {
    const Results::Kernel& known = results.of(key);
    if (!known.is_known()) {
      if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > options.seconds) {
        ++left;
        continue;
      }
      if (known.begun >= 2) {
        results.add({{"request", key}, {"within", false}, {"error", "the program ended twice during its check"}});
      } else {
        results.add({{"request", key}, {"begun", true}});
        const nlohmann::ordered_json line = check(key, request, device.library, bound);
        results.add(line);
        if (line.contains("within") && !line["within"].get<bool>()) fmt::print("{}\n", complaint(line, bound));
      }
    }
    declined[request.op] += known.declined ? 1 : 0;
    checked += known.within ? 1 : 0;
    failed += known.within && !*known.within ? 1 : 0;
  }
  std::string list;
  for (const auto& [op, count] : declined)
    if (count > 0) list += fmt::format("{}{} x {}", list.empty() ? "; declined: " : ", ", op, count);
  if (left > 0) list += fmt::format("; {} left", left);
  fmt::print("{} kernels checked, {} failed{}\n", checked, failed, list);
  return failed == 0 ? 0 : static_cast<int>(ErrorCode::check_failed);
}

}  // namespace
}  // namespace taso

int main(int argc, char** argv) {
  constexpr const char* usage =
      "kernel_check --device NAME [--math fp32|tf32|fp16|bf16] [--engines few|all] [--costs FILE] [--results FILE] "
      "[--seconds S] MODEL.onnx...";
  taso::Options options;
  options.common.specs = taso::tools::default_specs();
  options.device.device = "cpu";
  std::string seconds = "1e9";
  const std::map<std::string, std::string*> named = {
      {"--device", &options.device.device}, {"--math", &options.device.math}, {"--engines", &options.device.engines},
      {"--results", &options.results},      {"--costs", &options.costs},      {"--seconds", &seconds}};
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
  const auto [end, failure] = std::from_chars(seconds.data(), seconds.data() + seconds.size(), options.seconds);
  if (options.models.empty() || options.models[0].rfind("--", 0) == 0 || failure != std::errc{} ||
      end != seconds.data() + seconds.size() || (options.device.engines != "few" && options.device.engines != "all") ||
      (math != "fp32" && math != "tf32" && math != "fp16" && math != "bf16"))
    return taso::tools::fail("kernel_check",
                             {taso::ErrorCode::usage, std::string("wrong arguments; usage: ") + usage, {}});
  const taso::Expected<int> code = taso::run(options);
  return code ? *code : taso::tools::fail("kernel_check", code.error());
}
