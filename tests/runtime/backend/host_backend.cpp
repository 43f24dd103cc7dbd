// taso_host.so: a backend for tests, which shows on any machine what code that drives a device gets wrong.
//
// Its memory is host memory that only it hands out, filled with NaN; a kernel that is given an address elsewhere, or
// too little room, fails. Launches are queued and run when something waits for them, so that work which relies on them
// earlier finds NaN. Kernels are those of the host, on f32: f16 and bf16 are widened and rounded round them, and TF32
// rounds the operands of products. Some operators are declined. A wrong index is reported by synchronize(). Products
// have two engines, between which a choice is made that only the choices of programs keep. There are four streams:
// launches of a recording that may run at the same time while one writes what the other touches are an error, and
// replays run them in any order that the waits allow, another one each time. Three more modules differ from it
// in one thing each (backend/kind.h). Additions of taso_faulty.so are wrong in their last element: what checks kernels
// finds it. taso_fusing.so fuses what the CUDA backend does, and runs the programs that this one would launch, in
// loops; it also fuses up to three operators of any kind. So does taso_failing.so, where fused kernels, and products by
// the engine that is offered first, fail when they run.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "graph/reals.h"
#include "runtime/access.h"
#include "runtime/backend.h"
#include "runtime/cuda/attention.h"
#include "runtime/cuda/products.h"
#include "runtime/independent_requests.h"
#include "runtime/kernel.h"
#include "runtime/measure.h"
#include "runtime/storage.h"
#include "runtime/tensor.h"
#include "support/random.h"
#include "tests/runtime/backend/kind.h"
#include "tests/runtime/backend/socket_messages.h"
#include "tests/runtime/host_runner.h"

namespace taso {
namespace {

using Clock = std::chrono::steady_clock;

const testing::BackendKind kind = testing::backend_kind();

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

/// The engine of a product: 1 or 2, as drawn once and kept; the other one once that has been rejected.
Expected<std::string> engine_of(const KernelRequest& request, EngineChoices& choices, int rejections) {
  const std::string key = request.key();
  if (std::optional<std::string> chosen = choices.find(key)) return *chosen;
  const std::string drawn = "engine " + std::to_string(1 + (request.outputs[0].type.elements() + rejections) % 2);
  TASO_RETURN_IF_ERROR(choices.record(key, {drawn, 1e-5, 2e-3}));
  return drawn;
}

bool is_declined(const KernelRequest& request) {
  return request.op == "softmax" || request.op == "slice" || request.op == "pad";
}

/// The request with results that lie by themselves.
KernelRequest without_wholes(KernelRequest request) {
  for (Operand& output : request.outputs) output.within = {};
  return request;
}

/// Where a kernel reads or writes.
struct Range {
  const std::byte* begin = nullptr;
  ByteRuns runs;

  Range(const std::byte* address, std::size_t bytes) : begin(address), runs{bytes, bytes, 1} {}
  Range(const std::byte* address, const Operand& operand) : begin(address), runs(runs_of(operand)) {}

  [[nodiscard]] bool meets(const Range& other) const {
    for (std::size_t run = 0; run < runs.count; ++run) {
      const std::byte* one = begin + run * runs.distance;
      for (std::size_t theirs = 0; theirs < other.runs.count; ++theirs) {
        const std::byte* another = other.begin + theirs * other.runs.distance;
        if (one < another + other.runs.bytes && another < one + runs.bytes) return true;
      }
    }
    return false;
  }
};

/// What one launch computes, with the kernel of the host that does it.
struct Body {
  KernelRequest request;
  std::unique_ptr<Kernel> kernel;
  bool tf32 = false;
  bool fails = false;                    ///< When it runs.
  std::optional<cuda::Program> program;  ///< What a CUDA device would launch.

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

/// A kernel's launch, or else messages, or else a copy.
struct Launch {
  std::shared_ptr<const Body> body = nullptr;
  std::vector<const std::byte*> inputs = {};
  std::vector<std::byte*> outputs = {};
  std::byte* workspace = nullptr;
  std::size_t copied = 0;
  std::size_t stream = 0;
  std::shared_ptr<DeviceMessages> connected = nullptr;
  std::vector<DeviceMessages::Message> messages = {};

  [[nodiscard]] std::string name() const { return body ? body->request.op : connected ? "an exchange" : "a copy"; }
  /// The memory that it reads, and what it writes.
  [[nodiscard]] std::vector<Range> read() const {
    if (connected) return memory_of(true);
    if (!body) return {{inputs[0], copied}};
    std::vector<Range> ranges;
    for (std::size_t i = 0; i < inputs.size(); ++i) ranges.push_back({inputs[i], body->bytes(i)});
    return ranges;
  }
  [[nodiscard]] std::vector<Range> written() const {
    if (connected) return memory_of(false);
    if (!body) return {{outputs[0], copied}};
    std::vector<Range> ranges{{workspace, body->kernel->workspace_bytes()}};
    for (std::size_t i = 0; i < outputs.size(); ++i) ranges.emplace_back(outputs[i], body->request.outputs[i]);
    return ranges;
  }

 private:
  [[nodiscard]] std::vector<Range> memory_of(bool sent) const {
    std::vector<Range> ranges;
    for (const DeviceMessages::Message& message : messages)
      if ((message.from != nullptr) == sent) ranges.emplace_back(sent ? message.from : message.into, message.bytes);
    return ranges;
  }
};

/// What is over: of each stream so many launches.
using StreamClock = std::array<std::size_t, 4>;
constexpr std::size_t stream_count = std::tuple_size_v<StreamClock>;

/// Launches on streams that wait for each other: vector clocks (Mattern 1989).
class RecordedLaunches {
 public:
  Status add(Launch launch) {
    if (!takes_part_[launch.stream])
      return internal_error("a launch on stream " + std::to_string(launch.stream) +
                            ", which takes no part in the recording");
    StreamClock& clock = clocks_[launch.stream];
    before_.push_back(clock);
    ++clock[launch.stream];
    launches_.push_back(std::move(launch));
    return {};
  }
  Status mark(std::size_t stream, std::size_t mark) {
    if (!takes_part_[stream])
      return internal_error("a mark on stream " + std::to_string(stream) + ", which takes no part in the recording");
    marks_[mark] = clocks_[stream];
    return {};
  }
  Status wait(std::size_t stream, std::size_t mark) {
    const auto marked = marks_.find(mark);
    if (marked == marks_.end()) return internal_error("a wait for a mark that was not set in the recording");
    takes_part_[stream] = true;
    for (std::size_t i = 0; i < stream_count; ++i) clocks_[stream][i] = std::max(clocks_[stream][i], marked->second[i]);
    return {};
  }
  /// What is wrong with all of it.
  [[nodiscard]] Status check() const {
    for (std::size_t stream = 1; stream < stream_count; ++stream)
      if (clocks_[0][stream] != clocks_[stream][stream])
        return internal_error("stream 0 does not wait for stream " + std::to_string(stream) + " in the end");
    for (std::size_t b = 0; b < launches_.size(); ++b)
      for (std::size_t a = 0; a < b; ++a)
        if (!is_before(a, b) && interfere(launches_[a], launches_[b]))
          return internal_error(launches_[a].name() + " and " + launches_[b].name() +
                                " may run at the same time and share memory that one of them writes");
    return {};
  }
  /// An order in which a device might run them, another one each time.
  [[nodiscard]] std::vector<const Launch*> order(std::uint64_t seed) const {
    Random random(seed, "streams");
    const bool one_as_far_as_it_goes = random.below(2) == 0;
    std::array<std::vector<std::size_t>, stream_count> queues;
    for (std::size_t i = launches_.size(); i-- > 0;) queues[launches_[i].stream].push_back(i);
    StreamClock over{};
    std::vector<const Launch*> ordered;
    std::size_t current = random.below(stream_count);
    while (ordered.size() < launches_.size()) {
      const auto is_ready = [&](std::size_t stream) {
        if (queues[stream].empty()) return false;
        const StreamClock& needed = before_[queues[stream].back()];
        return std::equal(needed.begin(), needed.end(), over.begin(), std::less_equal<>());
      };
      if (!one_as_far_as_it_goes || !is_ready(current)) {
        current = random.below(stream_count);
        while (!is_ready(current)) current = (current + 1) % stream_count;
      }
      ordered.push_back(&launches_[queues[current].back()]);
      queues[current].pop_back();
      ++over[current];
    }
    return ordered;
  }

 private:
  /// Launch a comes earlier in the list.
  [[nodiscard]] bool is_before(std::size_t a, std::size_t b) const {
    const std::size_t stream = launches_[a].stream;
    return before_[b][stream] > before_[a][stream];
  }
  [[nodiscard]] static bool interfere(const Launch& a, const Launch& b) {
    const auto meet = [](const std::vector<Range>& some, const std::vector<Range>& others) {
      return std::any_of(some.begin(), some.end(), [&](const Range& one) {
        return std::any_of(others.begin(), others.end(), [&](const Range& other) { return one.meets(other); });
      });
    };
    return meet(a.written(), b.written()) || meet(a.written(), b.read()) || meet(a.read(), b.written());
  }

  std::vector<Launch> launches_;
  std::vector<StreamClock> before_;  ///< Per launch: what is over when it begins.
  std::array<StreamClock, stream_count> clocks_{};
  std::array<bool, stream_count> takes_part_{true};
  std::map<std::size_t, StreamClock> marks_;
};

class Queue {
 public:
  Status add(Launch launch) {
    if (recording_ != nullptr) return recording_->add(std::move(launch));
    if (launch.stream != 0)
      return internal_error("a launch on stream " + std::to_string(launch.stream) + " outside of recordings");
    waiting_.emplace_back(std::move(launch));
    return {};
  }
  void add(std::shared_ptr<const RecordedLaunches> recorded) { waiting_.emplace_back(std::move(recorded)); }
  [[nodiscard]] RecordedLaunches* recording() { return recording_; }
  [[nodiscard]] bool is_recording() const { return recording_ != nullptr; }
  void record_into(RecordedLaunches* recording) { recording_ = recording; }

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
    for (const auto& next : std::exchange(waiting_, {})) {
      if (const auto* launch = std::get_if<Launch>(&next)) {
        run_and_note(*launch);
        continue;
      }
      for (const Launch* launch : std::get<1>(next)->order(replays_++)) run_and_note(*launch);
    }
  }
  Status take_failure() {
    if (!failure_) return {};
    return *std::exchange(failure_, std::nullopt);
  }

 private:
  void run_and_note(const Launch& launch) {
    Status status = run(launch);
    if (!status && !failure_) failure_ = status.error();
  }
  static void poison(std::byte* memory, std::size_t bytes) {
    if (bytes > 0) std::memset(memory, 0xff, bytes);
  }

  Status exchange(const Launch& launch) {
    for (const DeviceMessages::Message& message : launch.messages) {
      if (!owns(message.from != nullptr ? message.from : message.into, message.bytes))
        return internal_error("a message outside the device's memory");
      if (message.into != nullptr) poison(message.into, message.bytes);
    }
    return launch.connected->exchange(launch.messages);
  }

  Status run(const Launch& launch) {
    if (launch.connected) return exchange(launch);
    if (!launch.body) {
      if (!owns(launch.inputs[0], launch.copied) || !owns(launch.outputs[0], launch.copied))
        return internal_error("a copy outside the device's memory");
      if (launch.copied > 0) std::memmove(launch.outputs[0], launch.inputs[0], launch.copied);
      return {};
    }
    const Body& body = *launch.body;
    const std::string& op = body.request.op;
    if (body.fails) return Error{ErrorCode::device_unavailable, "the test device cannot execute " + op, {}};
    if (body.program) {
      testing::HostRunner runner;
      for (const cuda::Step& step : body.program->steps)
        cuda::run_step(step, {launch.inputs, launch.outputs, nullptr, nullptr, 0}, runner);
      return {};
    }
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
      const Operand& output = body.request.outputs[i];
      const TensorType& type = output.type;
      if (!owns(outputs[i], static_cast<std::size_t>(spanned_bytes(output))))
        return internal_error(op + " writes outside the device's memory");
      const ByteRuns runs = runs_of(output);
      for (std::size_t run = 0; run < runs.count; ++run) poison(outputs[i] + run * runs.distance, runs.bytes);
      if (!is_narrow(type.element) && !output.within) continue;
      results[i] =
          AlignedBuffer(static_cast<std::size_t>(type.elements()) * std::max(sizeof(float), size_of(type.element)));
      outputs[i] = results[i].data();
    }
    TASO_RETURN_IF_ERROR(body.kernel->execute({inputs, outputs, launch.workspace}));
    if (kind.is_faulty && op == "add" && body.request.outputs[0].type.elements() > 0) {
      std::byte* last = outputs[0] + 4 * (body.request.outputs[0].type.elements() - 1);
      float value = 0;
      std::memcpy(&value, last, 4);
      value += 1;
      std::memcpy(last, &value, 4);
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const Operand& output = body.request.outputs[i];
      const TensorType& type = output.type;
      AlignedBuffer narrowed;
      const std::byte* made = results[i].data();
      if (is_narrow(type.element)) {
        narrowed = AlignedBuffer(static_cast<std::size_t>(type.bytes()));
        std::byte* stored = output.within ? narrowed.data() : launch.outputs[i];
        convert_reals(made, ElementType::f32, stored, type.element, static_cast<std::size_t>(type.elements()));
        made = narrowed.data();
      }
      if (output.within) scatter_runs(output, made, launch.outputs[i]);
    }
    return {};
  }

  std::map<std::byte*, std::size_t> allocations_;
  std::vector<std::variant<Launch, std::shared_ptr<const RecordedLaunches>>> waiting_;
  RecordedLaunches* recording_ = nullptr;
  std::uint64_t replays_ = 0;
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
    if (arguments.stream >= stream_count) return internal_error("a launch on a stream that the test device has not");
    return queue_->add({body_,
                        {arguments.inputs.begin(), arguments.inputs.end()},
                        {arguments.outputs.begin(), arguments.outputs.end()},
                        arguments.workspace,
                        0,
                        arguments.stream});
  }

 private:
  std::shared_ptr<const Body> body_;
  std::shared_ptr<Queue> queue_;
};

/// Messages as launches of the queue.
class QueuedMessages final : public DeviceMessages {
 public:
  QueuedMessages(std::unique_ptr<DeviceMessages> connected, std::shared_ptr<Queue> queue)
      : connected_(std::move(connected)), queue_(std::move(queue)) {}
  Status exchange(std::span<const Message> messages) override {
    return queue_->add({.connected = connected_, .messages = {messages.begin(), messages.end()}});
  }
  void abort() override { connected_->abort(); }

 private:
  std::shared_ptr<DeviceMessages> connected_;
  std::shared_ptr<Queue> queue_;
};

class HostRecording final : public Recording {
 public:
  HostRecording(std::shared_ptr<const RecordedLaunches> launches, std::shared_ptr<Queue> queue)
      : launches_(std::move(launches)), queue_(std::move(queue)) {}
  Status replay() override {
    if (queue_->is_recording()) return internal_error("a replay while launches are recorded");
    queue_->add(launches_);
    return {};
  }

 private:
  std::shared_ptr<const RecordedLaunches> launches_;
  std::shared_ptr<Queue> queue_;
};

class HostBackend final : public Backend {
 public:
  HostBackend(MathMode math, std::string described, std::string remarks)
      : math_(math),
        described_(std::move(described)),
        remarks_(std::move(remarks)),
        queue_(std::make_shared<Queue>()) {}

  std::string name() const override { return kind.name; }
  std::string remarks() const override { return remarks_; }
  std::string identity() const override {
    return (described_.empty() ? "host test device; driver 1.0" : described_ + " (from a description); driver 2.0") +
           "; " + to_string(math_) + "; taso " TASO_VERSION;
  }
  Expected<std::string> device_properties() const override {
    return nlohmann::json{{"name", described_.empty() ? "host test device" : described_}}.dump();
  }
  bool can_run() const override { return described_.empty(); }

  KernelOffer create(const KernelRequest& request, const Operators& operators) override {
    if (is_declined(request)) return {nullptr, "the test device has no " + request.op};
    auto body = std::make_shared<Body>();
    body->request = request;
    body->tf32 = math_ == MathMode::tf32 && is_product(request.op);
    Expected<std::unique_ptr<Kernel>> kernel =
        KernelLibrary(*operators.registry).create(without_wholes(widened(request)));
    if (!kernel) return {nullptr, kernel.error().message};
    body->kernel = std::move(*kernel);
    const int rejections = rejections_of(request);
    const bool is_within =
        std::any_of(request.outputs.begin(), request.outputs.end(), [](const Operand& one) { return !!one.within; });
    if (rejections > 0 && (request.fused || is_within)) return {nullptr, "it failed when it ran"};
    body->fails = kind.is_failing && rejections == 0 && (request.fused || is_product(request.op));
    std::string engine;
    if (choices_ && is_product(request.op)) {
      Expected<std::string> chosen = engine_of(request, *choices_, rejections);
      if (!chosen) return {nullptr, chosen.error().message};
      engine = *chosen;
    }
    const bool is_program = request.fused ? cuda::product_in(request) == nullptr && !cuda::has_two_products(request)
                                          : is_within && !is_product(request.op);
    if (kind.fuses && is_program) body->program = cuda::plan_program(request).program;
    return {std::make_unique<HostKernel>(std::move(body), queue_, engine), ""};
  }
  bool reject(const KernelRequest& request) override {
    const std::string key = request.key();
    if (choices_) (void)choices_->withdraw(key);
    return ++rejections_[key] == 1;
  }
  void use_choices(std::shared_ptr<EngineChoices> choices) override { choices_ = std::move(choices); }
  std::size_t cache_bytes() const override { return std::size_t{1} << 20; }

  bool writes_within(const KernelRequest& request) const override {
    return rejections_of(request) == 0 && !is_declined(request);
  }
  bool fuses(const KernelRequest& request, const Operators&) const override {
    if (!kind.fuses || rejections_of(request) > 0) return false;
    if (cuda::product_in(request) != nullptr && cuda::is_one_product(request)) return true;
    if (cuda::plan_attention(request).plan) return true;
    // Products in f16 are left to attention.
    const auto rounds = [&](const FusedPart& part) {
      return is_product(part.request.op) &&
             (math_ == MathMode::tf32 || is_narrow(part.request.outputs[0].type.element));
    };
    const std::vector<FusedPart>& parts = request.fused->parts;
    return cuda::plan_fused(request).program.has_value() ||
           (parts.size() <= 3 && std::none_of(parts.begin(), parts.end(), rounds));
  }
  bool stands_beside(const KernelRequest& request) const override {
    if (!kind.fuses || rejections_of(request) > 0) return false;
    const std::vector<IndependentRequest> requests = independent_requests(request);
    return std::all_of(requests.begin(), requests.end(), [](const IndependentRequest& one) {
      return !is_declined(one.request) && cuda::product_in(one.request) == nullptr &&
             !cuda::has_two_products(one.request) && cuda::can_stand_beside(one.request);
    });
  }

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
    return queue_->add({.inputs = {from}, .outputs = {to}, .copied = bytes});
  }

  std::size_t streams() const override { return stream_count; }
  Status mark(std::size_t stream, std::size_t mark) override {
    if (!queue_->is_recording()) return internal_error("a mark outside of recordings");
    return queue_->recording()->mark(stream, mark);
  }
  Status wait(std::size_t stream, std::size_t mark) override {
    if (!queue_->is_recording()) return internal_error("a wait for a mark outside of recordings");
    return queue_->recording()->wait(stream, mark);
  }
  /// Steps take the same time, and four of them all of the device.
  StepCost estimate(const KernelRequest& /*request*/, std::size_t /*launches*/) const override { return {1e-5, 0.25}; }
  double estimated_wait_seconds() const override { return 1e-6; }
  Expected<std::string> message_endpoint() const override { return endpoint_; }
  Expected<std::string> message_group() const override { return testing::new_group(); }
  Expected<std::unique_ptr<DeviceMessages>> join_messages(const std::string& group, int rank, int size) override {
    TASO_ASSIGN(std::unique_ptr<DeviceMessages> connected, testing::join_group(group, rank, size));
    return std::unique_ptr<DeviceMessages>(std::make_unique<QueuedMessages>(std::move(connected), queue_));
  }

  Status synchronize() override {
    if (queue_->is_recording()) return internal_error("a wait while launches are recorded");
    queue_->drain();
    return queue_->take_failure();
  }
  Expected<std::unique_ptr<Recording>> record(const std::function<Status()>& launches) override {
    if (queue_->is_recording()) return internal_error("a recording within a recording");
    auto recorded = std::make_shared<RecordedLaunches>();
    queue_->record_into(recorded.get());
    const Status status = launches();
    queue_->record_into(nullptr);
    if (!status) return status.error();
    TASO_RETURN_IF_ERROR(recorded->check());
    return std::unique_ptr<Recording>(std::make_unique<HostRecording>(std::move(recorded), queue_));
  }
  Expected<double> time(const std::function<Status()>& launches) override {
    TASO_RETURN_IF_ERROR(synchronize());
    const auto start = Clock::now();
    TASO_RETURN_IF_ERROR(launches());
    TASO_RETURN_IF_ERROR(synchronize());
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  Expected<Measurement> measure(const KernelRequest& request, const Operators& operators,
                                std::span<const std::int64_t> /*bounds*/, const MeasureOptions& options) override {
    if (kind.is_failing && rejections_of(request) == 0 && (request.fused || is_product(request.op)))
      return Error{ErrorCode::device_unavailable, "the test device cannot execute " + request.op, {}};
    const KernelLibrary host(*operators.registry);
    TASO_ASSIGN(Measurement measurement, KernelTimer(host, options).measure(without_wholes(widened(request))));
    measurement.implementation = "test: " + measurement.implementation;
    return measurement;
  }

 private:
  [[nodiscard]] int rejections_of(const KernelRequest& request) const {
    if (rejections_.empty()) return 0;
    const auto known = rejections_.find(request.key());
    return known == rejections_.end() ? 0 : known->second;
  }
  Status before_transfer(const std::byte* device, std::size_t bytes) {
    if (queue_->is_recording()) return internal_error("a transfer while launches are recorded");
    queue_->drain();
    if (!queue_->owns(device, bytes)) return internal_error("a transfer outside the device's memory");
    return {};
  }

  MathMode math_;
  std::string described_;
  std::string remarks_;
  std::string endpoint_ = testing::new_group();
  std::shared_ptr<Queue> queue_;
  std::shared_ptr<EngineChoices> choices_;  ///< Null until a program keeps some.
  std::map<std::string, int> rejections_;   ///< By the request's key.
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
  // What it is told, as it makes no kernels.
  const std::string remarks = std::string("kernels would be ") +
                              (options.generates_kernels ? "generated" : "precompiled") + ", and kept in " +
                              options.kernel_folder;
  return new taso::HostBackend(options.math, described, remarks);
}
