#include "runtime/cuda/context.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <optional>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/launch.h"
#include "runtime/stream_schedule.h"

namespace taso::cuda {
namespace {

/// Raised with every change that makes kernels faster or slower: costs measured before it do not count.
constexpr int kernel_generation = 4;

constexpr unsigned long long no_error = ~0ULL;
constexpr int position_bits = 40;

std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  return text;
}

/// "9.19.0" from 91900.
std::string cudnn_version(std::size_t number) {
  return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "." + std::to_string(number % 100);
}

/// "13.1.0" from 130100 (major * 10000 + minor * 100 + patch).
std::string cublas_version(std::size_t number) { return cudnn_version(number); }

/// `compiler`: of generated kernels; empty where there are none.
std::string libraries(MathMode math, int runtime, const std::string& compiler) {
  return "CUDA " + cuda_version(runtime) + "; cuDNN " + cudnn_version(cudnnGetVersion()) + "; cuBLASLt " +
         cublas_version(cublasLtGetVersion()) + (compiler.empty() ? "" : "; " + compiler) + "; " + to_string(math) +
         "; taso " TASO_VERSION ", kernels " + std::to_string(kernel_generation);
}

/// Text or digits behind `"name":` in JSON that cuDNN has accepted; empty if there is none.
std::string member_of(const std::string& json, const std::string& name) {
  std::size_t at = json.find('"' + name + '"');
  if (at == std::string::npos) return "";
  at = json.find(':', at);
  if (at == std::string::npos) return "";
  at = json.find_first_not_of(" \t\r\n", at + 1);
  if (at == std::string::npos) return "";
  if (json[at] == '"') {
    const std::size_t end = json.find('"', at + 1);
    return end == std::string::npos ? "" : one_line(json.substr(at + 1, end - at - 1));
  }
  return json.substr(at, json.find_first_not_of("0123456789", at) - at);
}

Error unavailable(std::string message) { return {ErrorCode::device_unavailable, std::move(message), {}}; }

/// Choices that are kept for the process: where no program wants to keep them for longer.
class ChoicesOfProcess final : public EngineChoices {
 public:
  std::optional<std::string> find(const std::string& key) override {
    const std::scoped_lock lock(mutex_);
    const auto known = engines_.find(key);
    return known == engines_.end() ? std::nullopt : std::optional(known->second);
  }
  Status record(const std::string& key, const EngineChoice& choice) override {
    const std::scoped_lock lock(mutex_);
    engines_.emplace(key, choice.engine);
    return {};
  }
  Status withdraw(const std::string& key) override {
    const std::scoped_lock lock(mutex_);
    engines_.erase(key);
    return {};
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> engines_;
};

/// The key of a choice among all engines.
std::string among_all(const std::string& key) { return key + "; all engines"; }

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Lets the calling thread allocate while a stream is being captured: memory is not part of the capture.
class CaptureRelaxed {
 public:
  CaptureRelaxed() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~CaptureRelaxed() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  CaptureRelaxed(const CaptureRelaxed&) = delete;
  CaptureRelaxed& operator=(const CaptureRelaxed&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace

Status check(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return {};
  return unavailable(std::string(what) + ": " + one_line(cudaGetErrorString(result)));
}

Status check(cublasStatus_t result, const char* what) {
  if (result == CUBLAS_STATUS_SUCCESS) return {};
  return unavailable(std::string(what) + ": " + one_line(cublasLtGetStatusString(result)));
}

Expected<DeviceMemory> DeviceMemory::create(std::size_t bytes) {
  const CaptureRelaxed relaxed;
  DeviceMemory memory;
  void* data = nullptr;
  const cudaError_t allocated = cudaMalloc(&data, std::max<std::size_t>(bytes, 1));
  if (allocated != cudaSuccess) {
    (void)cudaGetLastError();  // it is reported here, and is not the next launch's
    return unavailable("the device cannot give " + std::to_string(bytes) +
                       " bytes of memory: " + one_line(cudaGetErrorString(allocated)));
  }
  memory.data_ = static_cast<std::byte*>(data);
  return memory;
}

DeviceMemory::~DeviceMemory() {
  if (data_ == nullptr) return;
  const CaptureRelaxed relaxed;
  cudaFree(data_);
}

Expected<LaunchGraph> LaunchGraph::capture(cudaStream_t stream, const std::function<Status()>& launches) {
  TASO_RETURN_IF_ERROR(
      check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "CUDA cannot record launches"));
  const Status queued = launches();
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);  // in any case, or the stream is of no more use
  LaunchGraph result;
  Status status = queued;
  if (status) status = check(ended, "CUDA cannot record launches");
  if (status) status = check(cudaGraphInstantiate(&result.executable_, graph, 0), "CUDA cannot make a graph");
  if (status) status = check(cudaGraphUpload(result.executable_, stream), "CUDA cannot upload a graph");
  if (graph != nullptr) cudaGraphDestroy(graph);
  if (!status) {
    (void)cudaGetLastError();
    return status.error();
  }
  return result;
}

LaunchGraph::~LaunchGraph() {
  if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
}

Status LaunchGraph::launch(cudaStream_t stream) const {
  return check(cudaGraphLaunch(executable_, stream), "CUDA cannot launch a graph");
}

Expected<Stopwatch> Stopwatch::create() {
  Stopwatch watch;
  TASO_RETURN_IF_ERROR(check(cudaEventCreate(&watch.begin_), "CUDA cannot make an event"));
  TASO_RETURN_IF_ERROR(check(cudaEventCreate(&watch.end_), "CUDA cannot make an event"));
  return watch;
}

Stopwatch::~Stopwatch() {
  if (begin_ != nullptr) cudaEventDestroy(begin_);
  if (end_ != nullptr) cudaEventDestroy(end_);
}

Expected<double> Stopwatch::time(cudaStream_t stream, const std::function<Status()>& launches) const {
  TASO_RETURN_IF_ERROR(check(cudaEventRecord(begin_, stream), "CUDA cannot record an event"));
  TASO_RETURN_IF_ERROR(launches());
  TASO_RETURN_IF_ERROR(check(cudaEventRecord(end_, stream), "CUDA cannot record an event"));
  TASO_RETURN_IF_ERROR(check(cudaEventSynchronize(end_), "a kernel failed on the device"));
  float milliseconds = 0;
  TASO_RETURN_IF_ERROR(check(cudaEventElapsedTime(&milliseconds, begin_, end_), "CUDA cannot read its clock"));
  return static_cast<double>(milliseconds) * 1e-3;
}

Expected<std::shared_ptr<Context>> Context::create(const BackendOptions& options) {
  std::shared_ptr<Context> context(new Context);
  context->math = options.math;
  context->processors.tf32 = options.math == MathMode::tf32;
  context->device = options.device;
  context->counts_on = options.counts_on;
  context->all_engines = options.all_engines;
  context->kernel_folder_ = options.kernel_folder;
  context->generates_kernels_ = options.generates_kernels;
  context->choices = std::make_shared<ChoicesOfProcess>();
  TASO_RETURN_IF_ERROR(options.device_properties.empty() ? context->open_device()
                                                         : context->plan_without_device(options.device_properties));
  return context;
}

Status Context::open_device() {
  int count = 0, driver = 0, runtime = 0;
  TASO_RETURN_IF_ERROR(check(cudaDriverGetVersion(&driver), "CUDA does not name its driver"));
  TASO_RETURN_IF_ERROR(check(cudaRuntimeGetVersion(&runtime), "CUDA does not name its version"));
  if (const std::string complaint = driver_complaint(driver, runtime); !complaint.empty())
    return unavailable("no CUDA device: " + complaint);
  TASO_RETURN_IF_ERROR(check(cudaGetDeviceCount(&count), "no CUDA device"));
  if (count == 0) return unavailable("no CUDA device");
  if (counts_on) device %= count;
  if (device < 0 || device >= count)
    return unavailable("there is no CUDA device " + std::to_string(device) + " (there are " + std::to_string(count) +
                       ", counted from 0)");
  TASO_RETURN_IF_ERROR(enter());
  cudaDeviceProp found{};
  TASO_RETURN_IF_ERROR(check(cudaGetDeviceProperties(&found, device), "CUDA does not describe the device"));
  if (found.major < 8)
    return unavailable(std::string(found.name) + " has compute capability " + std::to_string(found.major) + "." +
                       std::to_string(found.minor) + ", where 8.0 or later is needed");
  cache_bytes = static_cast<std::size_t>(std::max(found.l2CacheSize, 0));
  int clock_khz = 0;  // no longer among the properties
  TASO_RETURN_IF_ERROR(
      check(cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, device), "CUDA does not describe the device"));
  processors.count = std::max(found.multiProcessorCount, 1);
  if (clock_khz > 0) processors.clock_hz = clock_khz * 1e3;
  for (std::size_t i = 0; i < most_streams; ++i) {
    cudaStream_t made = nullptr;
    TASO_RETURN_IF_ERROR(check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "CUDA cannot make a stream"));
    streams.push_back(made);
  }
  stream = streams[0];
  TASO_RETURN_IF_ERROR(
      check(cudaStreamCreateWithFlags(&tuning_stream, cudaStreamNonBlocking), "CUDA cannot make a stream"));
  TASO_RETURN_IF_ERROR(check(cudnnCreate(&cudnn), "cuDNN cannot be used"));
  TASO_RETURN_IF_ERROR(check(cudnnSetStream(cudnn, stream), "cuDNN cannot use a stream"));
  TASO_RETURN_IF_ERROR(check(cublasLtCreate(&cublas), "cuBLASLt cannot be used"));
  void* slot = nullptr;
  TASO_RETURN_IF_ERROR(check(cudaMalloc(&slot, sizeof(unsigned long long)), "CUDA cannot allocate"));
  error_slot_ = static_cast<unsigned long long*>(slot);
  TASO_RETURN_IF_ERROR(check(cudaMallocHost(&slot, sizeof(unsigned long long)), "CUDA cannot allocate"));
  error_copy_ = static_cast<unsigned long long*>(slot);
  *error_copy_ = no_error;
  TASO_RETURN_IF_ERROR(check(cudaMemset(error_slot_, 0xff, sizeof(no_error)), "CUDA cannot write to the device"));
  TASO_RETURN_IF_ERROR(check(cudaDeviceSynchronize(), "CUDA cannot write to the device"));
  can_run = true;
  find_compiler(runtime, found.major * 10 + found.minor);
  identity = std::string(found.name) + "; driver " + cuda_version(driver) + "; " +
             libraries(math, runtime, builder ? builder->compiler().identity() : "");
  return {};
}

Status Context::plan_without_device(const std::string& json) {
  TASO_ASSIGN(device_descriptor, device_from_json(json));
  properties = json;
  const std::string name = member_of(json, "deviceName"), cache = member_of(json, "l2CacheSize");
  if (name.empty()) return unavailable("the device's properties have no deviceName");
  if (!cache.empty() && cache.size() < 12) cache_bytes = static_cast<std::size_t>(std::stoull(cache));
  const std::string count = member_of(json, "multiProcessorCount"), clock_khz = member_of(json, "smClockRateKHz");
  if (!count.empty() && count.size() < 6) processors.count = std::max(std::stoi(count), 1);
  if (!clock_khz.empty() && clock_khz.size() < 12) processors.clock_hz = std::stod(clock_khz) * 1e3;
  int runtime = 0;
  TASO_RETURN_IF_ERROR(check(cudaRuntimeGetVersion(&runtime), "CUDA does not name its version"));
  const std::string version = member_of(json, "deviceVer");  // 900 for compute capability 9.0
  find_compiler(runtime, version.empty() || version.size() > 5 ? 0 : std::stoi(version) / 10);
  identity = name + " (from a description); " + libraries(math, runtime, builder ? builder->compiler().identity() : "");
  return {};
}

void Context::find_compiler(int runtime, int device_architecture) {
  if (!generates_kernels_) {
    how_generated = "kernels are not generated: precompiled ones were asked for";
    return;
  }
  if (!can_load_kernels()) {
    how_generated = "kernels are not generated: that takes CUDA 12.8";
    return;
  }
  const auto opened = Nvrtc::open(nvrtc_names(runtime));
  if (!opened) {
    how_generated = "kernels are not generated: " + one_line(opened.error().message);
    return;
  }
  const int architecture = architecture_for(device_architecture, (*opened)->architectures());
  if (architecture == 0) {
    how_generated = "kernels are not generated: " + (*opened)->identity() + " does not compile for sm_" +
                    std::to_string(device_architecture);
    return;
  }
  builder = std::make_shared<KernelBuilder>(*opened, architecture, kernel_folder_);
  how_generated = "kernels are generated by " + (*opened)->identity() + " for sm_" + std::to_string(architecture) +
                  (kernel_folder_.empty() ? "" : " and kept in " + kernel_folder_);
}

Expected<std::shared_ptr<const LoadedKernels>> Context::load(const GeneratedProgram& program) {
  {
    const std::scoped_lock lock(loading_mutex_);
    if (const auto known = loaded_.find(program.source); known != loaded_.end()) return known->second;
  }
  TASO_ASSIGN(const std::string code, builder->build(program.source));
  Expected<std::shared_ptr<const LoadedKernels>> loaded = LoadedKernels::load(code, program);
  const std::scoped_lock lock(loading_mutex_);
  if (!loaded) {
    if (loading_complaint_.empty()) loading_complaint_ = loaded.error().message;
    return loaded.error();
  }
  return loaded_.emplace(program.source, std::move(*loaded)).first->second;
}

std::string Context::remarks() const {
  if (!builder) return how_generated;
  const KernelBuilder::Counts counts = builder->counts();
  std::string text = how_generated;
  if (counts.compiled + counts.found > 0)
    text += "; " + std::to_string(counts.compiled) + " compiled now, " + std::to_string(counts.found) + " found";
  if (counts.failed > 0) text += "; " + std::to_string(counts.failed) + " not compiled, which others take the place of";
  std::string complaint = builder->complaint();
  if (complaint.empty()) {
    const std::scoped_lock lock(loading_mutex_);
    complaint = loading_complaint_;
  }
  return complaint.empty() ? text : text + " (" + one_line(complaint) + ")";
}

Context::~Context() {
  // Where the program ends before its backends do, CUDA has gone before them, and its memory with it.
  if (stream != nullptr && !enter()) return;
  if (stream != nullptr) cudaStreamSynchronize(stream);
  if (error_copy_ != nullptr) cudaFreeHost(error_copy_);
  if (error_slot_ != nullptr) cudaFree(error_slot_);
  if (cublas != nullptr) cublasLtDestroy(cublas);
  if (cudnn != nullptr) cudnnDestroy(cudnn);
  for (const cudaEvent_t event : events_)
    if (event != nullptr) cudaEventDestroy(event);
  if (tuning_stream != nullptr) cudaStreamDestroy(tuning_stream);
  for (const cudaStream_t made : streams) cudaStreamDestroy(made);
}

Status Context::enter() const { return check(cudaSetDevice(device), "CUDA cannot use the device"); }

std::optional<std::string> Context::chosen(const std::string& key) const {
  if (std::optional<std::string> engine = choices->find(among_all(key)); engine || all_engines) return engine;
  return choices->find(key);
}

Status Context::choose(const std::string& key, const EngineChoice& choice) const {
  return choices->record(all_engines ? among_all(key) : key, choice);
}

bool Context::reject(const std::string& key) {
  const std::scoped_lock lock(mutex);
  attention.erase(key);
  convolutions.erase(key);
  // A failure to keep that is no reason to fail: the engine may be tried, and fail, once more.
  (void)choices->withdraw(choices->find(among_all(key)) ? among_all(key) : key);
  has_rejected_ = true;
  return ++rejections_[key] <= most_rejections;
}

int Context::rejections(const std::string& key) const {
  if (!has_rejected_) return 0;
  const std::scoped_lock lock(mutex);
  const auto known = rejections_.find(key);
  return known == rejections_.end() ? 0 : known->second;
}

Status Context::wake(cudaStream_t on) const {
  constexpr std::int64_t idle_ns = 300'000'000, work_ns = 200'000'000;
  constexpr std::size_t bytes = std::size_t{256} << 20;
  constexpr int at_once = 16;
  const std::int64_t start = now_ns();
  if (last_work_ != 0 && start - last_work_ < idle_ns) {
    last_work_ = start;
    return {};
  }
  TASO_ASSIGN(const DeviceMemory memory, DeviceMemory::create(bytes));
  while (now_ns() - start < work_ns) {
    for (int i = 0; i < at_once; ++i)
      TASO_RETURN_IF_ERROR(check(cudaMemsetAsync(memory.data(), 0, bytes, on), "CUDA cannot write to the device"));
    TASO_RETURN_IF_ERROR(check(cudaStreamSynchronize(on), "a kernel failed on the device"));
  }
  last_work_ = now_ns();
  return {};
}

Expected<double> Context::time(const Stopwatch& watch, cudaStream_t on, const std::function<Status()>& launches) const {
  // 50 to 100 us at the clocks of working devices: to queue some launches takes less.
  constexpr std::int64_t cycles = 100'000;
  TASO_RETURN_IF_ERROR(launch_wait(cycles, on));
  Expected<double> seconds = watch.time(on, launches);
  last_work_ = now_ns();
  return seconds;
}

Expected<FastestCandidate> Context::tune(std::size_t count,
                                         const std::function<Status(std::size_t, cudaStream_t)>& launch) const {
  // Long enough for the clock, short enough for hundreds of requests with ten engines each.
  constexpr double aim_s = 200e-6;
  constexpr int most_copies = 16, replays = 5;
  TASO_ASSIGN(const Stopwatch watch, Stopwatch::create());
  TASO_RETURN_IF_ERROR(wake(tuning_stream));
  const auto failed = [](const Error& error) {
    (void)cudaGetLastError();  // is not the next engine's
    return error;
  };
  TimedCandidates candidates;
  candidates.count = count;
  candidates.once = [&](std::size_t engine) -> Expected<double> {
    Status done = launch(engine, tuning_stream);  // code is loaded
    if (done) done = check(cudaStreamSynchronize(tuning_stream), "an engine failed on the device");
    if (!done) return failed(done.error());
    Expected<double> seconds = time(watch, tuning_stream, [&] { return launch(engine, tuning_stream); });
    return seconds ? seconds : failed(seconds.error());
  };
  candidates.settled = [&](std::size_t engine, double once) -> Expected<double> {
    const int copies = std::clamp(static_cast<int>(aim_s / std::max(once, 1e-6)), 1, most_copies);
    const Expected<LaunchGraph> graph = LaunchGraph::capture(tuning_stream, [&]() -> Status {
      for (int i = 0; i < copies; ++i) TASO_RETURN_IF_ERROR(launch(engine, tuning_stream));
      return {};
    });
    if (!graph) return failed(graph.error());
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < replays + 1; ++i) {  // the first warms the caches
      const Expected<double> seconds = time(watch, tuning_stream, [&] { return graph->launch(tuning_stream); });
      if (!seconds) return failed(seconds.error());
      if (i > 0) least = std::min(least, *seconds / copies);
    }
    return least;
  };
  return find_fastest(candidates);
}

Status Context::mark(std::size_t on, std::size_t number) {
  if (number >= events_.size()) events_.resize(number + 1, nullptr);
  cudaEvent_t& event = events_[number];
  if (event == nullptr)
    TASO_RETURN_IF_ERROR(check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "CUDA cannot make an event"));
  return check(cudaEventRecord(event, streams[on]), "CUDA cannot record an event");
}

Status Context::wait(std::size_t on, std::size_t number) const {
  TASO_CHECK(number < events_.size() && events_[number] != nullptr, "a wait for a mark that was never set");
  return check(cudaStreamWaitEvent(streams[on], events_[number], 0), "CUDA cannot wait for an event");
}

unsigned long long Context::index_check(std::int64_t extent) {
  const std::scoped_lock lock(checks_mutex_);
  const auto known = std::find(checked_extents_.begin(), checked_extents_.end(), extent);
  const auto number = static_cast<unsigned long long>(known - checked_extents_.begin());
  if (known == checked_extents_.end()) checked_extents_.push_back(extent);
  return number;
}

Status Context::synchronize() {
  TASO_RETURN_IF_ERROR(enter());
  bool checked = false;
  {
    const std::scoped_lock lock(checks_mutex_);
    checked = !checked_extents_.empty();
  }
  if (checked)
    TASO_RETURN_IF_ERROR(
        check(cudaMemcpyAsync(error_copy_, error_slot_, sizeof(no_error), cudaMemcpyDeviceToHost, stream),
              "a kernel failed on the device"));
  TASO_RETURN_IF_ERROR(check(cudaStreamSynchronize(stream), "a kernel failed on the device"));
  if (!checked || *error_copy_ == no_error) return {};
  const unsigned long long note = std::exchange(*error_copy_, no_error);
  TASO_RETURN_IF_ERROR(
      check(cudaMemsetAsync(error_slot_, 0xff, sizeof(no_error), stream), "CUDA cannot write to the device"));
  const std::scoped_lock lock(checks_mutex_);
  const auto number = static_cast<std::size_t>(note >> position_bits);
  const std::string position = std::to_string(note & ((1ULL << position_bits) - 1));
  if (number >= checked_extents_.size()) return internal_error("gather: an error that no kernel could have noted");
  return bad_input("gather: the index at position " + position + " is outside an axis of " +
                   std::to_string(checked_extents_[number]));
}

}  // namespace taso::cuda
