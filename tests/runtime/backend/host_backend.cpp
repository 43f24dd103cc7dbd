// taso_host.so: a backend for tests, which shows on any machine what code that drives a device gets wrong.
//
// Its memory is host memory that only it hands out, filled with NaN; a kernel that is given an address elsewhere, or
// too little room, fails. Launches are queued and run when something waits for them, so that work which relies on them
// earlier finds NaN. Kernels are those of the host, on f32: f16 and bf16 are widened and rounded round them, and TF32
// rounds the operands of products. Some operators are declined. A wrong index is reported by synchronize(). Products
// have two engines, between which a choice is made that only the choices of programs keep. Built with
// TASO_TEST_FAULT it is taso_faulty.so, whose additions are wrong in their last element: what checks kernels finds it.
// Built with TASO_TEST_FUSES it is taso_fusing.so: it fuses what the CUDA backend does, and runs the programs that this
// one would launch, in loops; it also fuses up to three operators of any kind.
#include <chrono>
#include <cstring>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/reals.h"
#include "runtime/backend.h"
#include "runtime/kernel.h"
#include "runtime/measure.h"
#include "runtime/storage.h"
#include "runtime/tensor.h"
#if defined(TASO_TEST_FUSES)
#include "runtime/cuda/products.h"
#include "tests/runtime/host_runner.h"
#endif

namespace taso {
namespace {

using Clock = std::chrono::steady_clock;

#if defined(TASO_TEST_FAULT)
constexpr bool is_faulty = true;
#else
constexpr bool is_faulty = false;
#endif

#if defined(TASO_TEST_FUSES)
constexpr const char* device_name = "fusing";
#else
constexpr const char* device_name = is_faulty ? "faulty" : "host";
#endif

bool is_narrow(ElementType element) { return element == ElementType::f16 || element == ElementType::bf16; }

KernelRequest widened(KernelRequest request) {
  for (const ElementType narrow : {ElementType::f16, ElementType::bf16})
    replace_floats(request, narrow, ElementType::f32);
  return request;
}

bool is_product(const std::string& op) {
  return op == "conv2d" || op == "conv2d_bias_act" || op == "matmul" || op == "matmul_bias_act";
}

/// To 10 bits of fraction, ties away from zero, as tensor cores' conversion does.
void round_to_tf32(std::byte* floats, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, floats + 4 * i, 4);
    bits = (bits + 0x1000U) & 0xffffe000U;
    std::memcpy(floats + 4 * i, &bits, 4);
  }
}

/// The engine of a product: 1 or 2, as drawn once and kept.
Expected<std::string> engine_of(const KernelRequest& request, EngineChoices& choices) {
  const std::string key = request.key();
  if (std::optional<std::string> chosen = choices.find(key)) return *chosen;
  const std::string drawn = "engine " + std::to_string(1 + request.outputs[0].type.elements() % 2);
  TASO_RETURN_IF_ERROR(choices.record(key, {drawn, 1e-5, 2e-3}));
  return drawn;
}

/// What one launch computes, with the kernel of the host that does it.
struct Body {
  KernelRequest request;
  std::unique_ptr<Kernel> kernel;
  bool tf32 = false;
#if defined(TASO_TEST_FUSES)
  std::optional<cuda::Program> program;  ///< What a CUDA device would launch.
#endif

  [[nodiscard]] std::size_t bytes(std::size_t input) const {
    return kernel->packed_format(input).empty() ? static_cast<std::size_t>(request.inputs[input].type.bytes())
                                                : kernel->packed_bytes(input);
  }
  /// The input as the kernel of the host reads it, in `buffer`; empty if it reads the bytes as they are.
  void convert(std::size_t input, const std::byte* bytes, AlignedBuffer& buffer) const {
    const TensorType& type = request.inputs[input].type;
    const bool rounds = tf32 && type.element == ElementType::f32;
    if (!is_narrow(type.element) && !rounds) return;
    const auto count = static_cast<std::size_t>(type.elements());
    buffer = AlignedBuffer(count * sizeof(float));
    convert_reals(bytes, type.element, buffer.data(), ElementType::f32, count);
    if (rounds) round_to_tf32(buffer.data(), count);
  }
};

/// One entry of the queue: a kernel's launch, or a copy (no body).
struct Launch {
  std::shared_ptr<const Body> body;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::byte* workspace = nullptr;
  std::size_t copied = 0;
};

class Queue {
 public:
  void add(Launch launch) { (recording_ != nullptr ? *recording_ : waiting_).push_back(std::move(launch)); }
  [[nodiscard]] bool is_recording() const { return recording_ != nullptr; }
  void record_into(std::vector<Launch>* recording) { recording_ = recording; }

  std::byte* allocate(std::size_t bytes) {
    auto* memory = static_cast<std::byte*>(::operator new (std::max<std::size_t>(bytes, 1), std::align_val_t{256}));
    poison(memory, bytes);
    allocations_[memory] = bytes;
    return memory;
  }
  void release(std::byte* memory) {
    drain();
    if (allocations_.erase(memory) == 1) ::operator delete (memory, std::align_val_t{256});
  }

  [[nodiscard]] bool owns(const std::byte* address, std::size_t bytes) const {
    if (bytes == 0) return true;
    auto after = allocations_.upper_bound(const_cast<std::byte*>(address));
    if (after == allocations_.begin()) return false;
    const auto& [start, size] = *--after;
    return address + bytes <= start + size;
  }

  /// Runs all that waits; the first failure is kept for take_failure.
  void drain() {
    for (const Launch& launch : std::exchange(waiting_, {})) {
      Status status = run(launch);
      if (!status && !failure_) failure_ = status.error();
    }
  }
  Status take_failure() {
    if (!failure_) return {};
    return *std::exchange(failure_, std::nullopt);
  }

 private:
  static void poison(std::byte* memory, std::size_t bytes) {
    if (bytes > 0) std::memset(memory, 0xff, bytes);
  }

  Status run(const Launch& launch) {
    if (!launch.body) {
      if (!owns(launch.inputs[0], launch.copied) || !owns(launch.outputs[0], launch.copied))
        return internal_error("a copy outside the device's memory");
      if (launch.copied > 0) std::memmove(launch.outputs[0], launch.inputs[0], launch.copied);
      return {};
    }
    const Body& body = *launch.body;
    const std::string& op = body.request.op;
#if defined(TASO_TEST_FUSES)
    if (body.program) {
      testing::HostRunner runner;
      for (const cuda::Step& step : body.program->steps)
        cuda::run_step(step, {launch.inputs, launch.outputs, nullptr, nullptr, 0}, runner);
      return {};
    }
#endif
    std::vector<AlignedBuffer> wide(launch.inputs.size()), results(launch.outputs.size());
    std::vector<const std::byte*> inputs = launch.inputs;
    std::vector<std::byte*> outputs = launch.outputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!owns(inputs[i], body.bytes(i))) return internal_error(op + " reads outside the device's memory");
      if (body.kernel->packed_format(i).empty()) body.convert(i, inputs[i], wide[i]);
      if (wide[i].size() > 0) inputs[i] = wide[i].data();
    }
    if (!owns(launch.workspace, body.kernel->workspace_bytes()))
      return internal_error(op + " has its workspace outside the device's memory");
    poison(launch.workspace, body.kernel->workspace_bytes());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const TensorType& type = body.request.outputs[i].type;
      const auto bytes = static_cast<std::size_t>(type.bytes());
      if (!owns(outputs[i], bytes)) return internal_error(op + " writes outside the device's memory");
      poison(outputs[i], bytes);
      if (!is_narrow(type.element)) continue;
      results[i] = AlignedBuffer(static_cast<std::size_t>(type.elements()) * sizeof(float));
      outputs[i] = results[i].data();
    }
    TASO_RETURN_IF_ERROR(body.kernel->execute({inputs, outputs, launch.workspace}));
    if (is_faulty && op == "add" && body.request.outputs[0].type.elements() > 0) {
      std::byte* last = outputs[0] + 4 * (body.request.outputs[0].type.elements() - 1);
      float value = 0;
      std::memcpy(&value, last, 4);
      value += 1;
      std::memcpy(last, &value, 4);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const TensorType& type = body.request.outputs[i].type;
      if (is_narrow(type.element))
        convert_reals(results[i].data(), ElementType::f32, launch.outputs[i], type.element,
                      static_cast<std::size_t>(type.elements()));
    }
    return {};
  }

  std::map<std::byte*, std::size_t> allocations_;
  std::vector<Launch> waiting_;
  std::vector<Launch>* recording_ = nullptr;
  std::optional<Error> failure_;
};

class HostKernel final : public Kernel {
 public:
  HostKernel(std::shared_ptr<const Body> body, std::shared_ptr<Queue> queue, const std::string& engine)
      : Kernel("test: " + body->kernel->implementation() + (engine.empty() ? "" : " (" + engine + ")"),
               body->kernel->workspace_bytes()),
        body_(std::move(body)),
        queue_(std::move(queue)) {}
  std::string packed_format(std::size_t index) const override { return body_->kernel->packed_format(index); }
  std::size_t packed_bytes(std::size_t index) const override { return body_->kernel->packed_bytes(index); }
  void pack(std::size_t index, const std::byte* plain, std::byte* packed) const override {
    AlignedBuffer wide;
    body_->convert(index, plain, wide);
    body_->kernel->pack(index, wide.size() > 0 ? wide.data() : plain, packed);
  }
  Status execute(const KernelArguments& arguments) const override {
    queue_->add({body_,
                 {arguments.inputs.begin(), arguments.inputs.end()},
                 {arguments.outputs.begin(), arguments.outputs.end()},
                 arguments.workspace,
                 0});
    return {};
  }

 private:
  std::shared_ptr<const Body> body_;
  std::shared_ptr<Queue> queue_;
};

class HostRecording final : public Recording {
 public:
  HostRecording(std::vector<Launch> launches, std::shared_ptr<Queue> queue)
      : launches_(std::move(launches)), queue_(std::move(queue)) {}
  Status replay() override {
    if (queue_->is_recording()) return internal_error("a replay while launches are recorded");
    for (const Launch& launch : launches_) queue_->add(launch);
    return {};
  }

 private:
  std::vector<Launch> launches_;
  std::shared_ptr<Queue> queue_;
};

class HostBackend final : public Backend {
 public:
  HostBackend(MathMode math, std::string described)
      : math_(math), described_(std::move(described)), queue_(std::make_shared<Queue>()) {}

  std::string name() const override { return device_name; }
  std::string identity() const override {
    return (described_.empty() ? "host test device; driver 1.0" : described_ + " (from a description); driver 2.0") +
           "; " + to_string(math_) + "; taso " TASO_VERSION;
  }
  Expected<std::string> device_properties() const override {
    return nlohmann::json{{"name", described_.empty() ? "host test device" : described_}}.dump();
  }
  bool can_run() const override { return described_.empty(); }

  KernelOffer create(const KernelRequest& request, const OperatorRegistry& registry) override {
    for (const char* declined : {"softmax", "slice", "pad"})
      if (request.op == declined) return {nullptr, "the test device has no " + request.op};
    auto body = std::make_shared<Body>();
    body->request = request;
    body->tf32 = math_ == MathMode::tf32 && is_product(request.op);
    Expected<std::unique_ptr<Kernel>> kernel = KernelLibrary(registry).create(widened(request));
    if (!kernel) return {nullptr, kernel.error().message};
    body->kernel = std::move(*kernel);
    std::string engine;
    if (choices_ && is_product(request.op)) {
      Expected<std::string> chosen = engine_of(request, *choices_);
      if (!chosen) return {nullptr, chosen.error().message};
      engine = *chosen;
    }
#if defined(TASO_TEST_FUSES)
    if (request.fused && cuda::product_in(request) == nullptr) body->program = cuda::plan_fused(request).program;
#endif
    return {std::make_unique<HostKernel>(std::move(body), queue_, engine), ""};
  }
  void use_choices(std::shared_ptr<EngineChoices> choices) override { choices_ = std::move(choices); }
  std::size_t cache_bytes() const override { return std::size_t{1} << 20; }

#if defined(TASO_TEST_FUSES)
  bool fuses(const KernelRequest& request) const override {
    if (cuda::product_in(request) != nullptr && cuda::is_one_product(request)) return true;
    const auto rounds = [&](const FusedPart& part) { return math_ == MathMode::tf32 && is_product(part.request.op); };
    const std::vector<FusedPart>& parts = request.fused->parts;
    return cuda::plan_fused(request).program.has_value() ||
           (parts.size() <= 3 && std::none_of(parts.begin(), parts.end(), rounds));
  }
#endif

  Expected<std::byte*> allocate(std::size_t bytes) override { return queue_->allocate(bytes); }
  void release(std::byte* memory) override { queue_->release(memory); }
  Status upload(std::span<const std::byte> host, std::byte* device) override {
    TASO_RETURN_IF_ERROR(before_transfer(device, host.size()));
    if (!host.empty()) std::memcpy(device, host.data(), host.size());
    return {};
  }
  Status download(const std::byte* device, std::span<std::byte> host) override {
    TASO_RETURN_IF_ERROR(before_transfer(device, host.size()));
    if (!host.empty()) std::memcpy(host.data(), device, host.size());
    return {};
  }
  Status copy(const std::byte* from, std::byte* to, std::size_t bytes) override {
    queue_->add({nullptr, {from}, {to}, nullptr, bytes});
    return {};
  }

  Status synchronize() override {
    if (queue_->is_recording()) return internal_error("a wait while launches are recorded");
    queue_->drain();
    return queue_->take_failure();
  }
  Expected<std::unique_ptr<Recording>> record(const std::function<Status()>& launches) override {
    if (queue_->is_recording()) return internal_error("a recording within a recording");
    std::vector<Launch> recorded;
    queue_->record_into(&recorded);
    const Status status = launches();
    queue_->record_into(nullptr);
    if (!status) return status.error();
    return std::unique_ptr<Recording>(std::make_unique<HostRecording>(std::move(recorded), queue_));
  }
  Expected<double> time(const std::function<Status()>& launches) override {
    TASO_RETURN_IF_ERROR(synchronize());
    const auto start = Clock::now();
    TASO_RETURN_IF_ERROR(launches());
    TASO_RETURN_IF_ERROR(synchronize());
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  Expected<Measurement> measure(const KernelRequest& request, const OperatorRegistry& registry,
                                std::span<const std::int64_t> /*bounds*/, const MeasureOptions& options) override {
    const KernelLibrary host(registry);
    TASO_ASSIGN(Measurement measurement, KernelTimer(host, options).measure(widened(request)));
    measurement.implementation = "test: " + measurement.implementation;
    return measurement;
  }

 private:
  Status before_transfer(const std::byte* device, std::size_t bytes) {
    if (queue_->is_recording()) return internal_error("a transfer while launches are recorded");
    queue_->drain();
    if (!queue_->owns(device, bytes)) return internal_error("a transfer outside the device's memory");
    return {};
  }

  MathMode math_;
  std::string described_;
  std::shared_ptr<Queue> queue_;
  std::shared_ptr<EngineChoices> choices_;  ///< Null until a program keeps some.
};

}  // namespace
}  // namespace taso

extern "C" taso::Backend* taso_open_backend(int abi, const taso::BackendOptions& options, std::string* error) {
  if (abi != taso::backend_abi) {
    *error = "it was built for another version of this program";
    return nullptr;
  }
  if (options.device != 0 && !options.counts_on) {
    *error = "there is no device " + std::to_string(options.device);
    return nullptr;
  }
  std::string described;
  if (!options.device_properties.empty()) {
    const auto json = nlohmann::json::parse(options.device_properties, nullptr, false);
    if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) {
      *error = "the device's properties are not a JSON object with a name";
      return nullptr;
    }
    described = json["name"];
  }
  return new taso::HostBackend(options.math, described);
}
