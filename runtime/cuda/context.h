/// What the backend and its kernels share: the device, its libraries' handles, streams, errors of kernels.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>
#include <cudnn.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backend.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/estimate.h"
#include "runtime/cuda/generated_kernel.h"
#include "runtime/cuda/kernel_cache.h"
#include "runtime/cuda/tuner.h"
#include "support/status.h"

namespace taso::cuda {

/// Success, or an error of code device_unavailable: "what: the library's words" on one line.
[[nodiscard]] Status check(cudaError_t result, const char* what);
[[nodiscard]] Status check(cublasStatus_t result, const char* what);

/// Largest workspace that a library's engine may ask for.
inline constexpr std::size_t workspace_limit = std::size_t{128} << 20;

/// Rounded up to where an operand may begin.
[[nodiscard]] constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// The alignment that kernels of libraries are planned for; operands that lie otherwise are copied first.
inline constexpr std::size_t operand_alignment = 16;

/// Device memory. Can be allocated while a stream is being captured.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  [[nodiscard]] static Expected<DeviceMemory> create(std::size_t bytes);
  DeviceMemory(DeviceMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceMemory();
  [[nodiscard]] std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
};

/// A stream's launches as a graph that can be launched again.
class LaunchGraph {
 public:
  /// Captures what `launches` queues on `stream`.
  [[nodiscard]] static Expected<LaunchGraph> capture(cudaStream_t stream, const std::function<Status()>& launches);
  LaunchGraph(LaunchGraph&& other) noexcept : executable_(std::exchange(other.executable_, nullptr)) {}
  LaunchGraph& operator=(LaunchGraph&& other) noexcept {
    std::swap(executable_, other.executable_);
    return *this;
  }
  ~LaunchGraph();
  [[nodiscard]] Status launch(cudaStream_t stream) const;

 private:
  LaunchGraph() = default;
  cudaGraphExec_t executable_ = nullptr;
};

/// A pair of events on a stream.
class Stopwatch {
 public:
  [[nodiscard]] static Expected<Stopwatch> create();
  Stopwatch(Stopwatch&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), end_(std::exchange(other.end_, nullptr)) {}
  Stopwatch& operator=(Stopwatch&& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
    return *this;
  }
  ~Stopwatch();
  /// Seconds that `launches` takes on the stream; waits for it.
  [[nodiscard]] Expected<double> time(cudaStream_t stream, const std::function<Status()>& launches) const;

 private:
  Stopwatch() = default;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

/// An engine of cuDNN that is kept, as planning it takes long; none where planning was all that could be done.
struct PlannedEngine {
  std::shared_ptr<const Engine> engine;
  std::string description;
  std::string reason;  ///< Why there is none; empty if there is.
};

/// One device. Members are set by create() and constant afterwards, but for what `mutex` guards.
class Context {
 public:
  [[nodiscard]] static Expected<std::shared_ptr<Context>> create(const BackendOptions& options);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  MathMode math = MathMode::strict;
  int device = 0;
  bool counts_on = false;    ///< BackendOptions::counts_on.
  bool all_engines = false;  ///< BackendOptions::all_engines.
  bool can_run = false;
  std::string identity;
  std::string properties;       ///< The device's JSON.
  std::size_t cache_bytes = 0;  ///< Of the last-level cache.
  Processors processors;
  /// What compiles generated kernels; null where none are generated.
  std::shared_ptr<KernelBuilder> builder;
  std::string how_generated;      ///< By what, or why not.
  cudaStream_t stream = nullptr;  ///< streams[0].
  std::vector<cudaStream_t> streams;
  cublasLtHandle_t cublas = nullptr;
  /// Null without a device. Planning and execution go through handle(), under `mutex`.
  cudnnHandle_t cudnn = nullptr;
  Descriptor device_descriptor;  ///< Stands for the device where there is none.

  /// Held while kernels are planned and tuned, and while cuDNN queues: its handle is for one thread at a time.
  mutable std::mutex mutex;
  cudaStream_t tuning_stream = nullptr;            ///< Guarded by `mutex`.
  std::map<std::string, PlannedEngine> attention;  ///< Guarded by `mutex`. By tuning_key.
  std::map<std::string, bool> convolutions;        ///< Guarded by `mutex`. By tuning_key: whether there is a kernel.
  std::shared_ptr<EngineChoices> choices;          ///< Guarded by `mutex`. By tuning_key; the kernels find and record.

  /// Makes the calling thread use this device: CUDA's current device is a thread's.
  [[nodiscard]] Status enter() const;

  /// The engine that was chosen for a key: among all where that was done.
  [[nodiscard]] std::optional<std::string> chosen(const std::string& key) const;
  /// Keeps a choice, in the arithmetic and for the device of this context. The caller holds `mutex`.
  [[nodiscard]] Status choose(const std::string& key, const EngineChoice& choice) const;
  /// Kernels of a request that failed are replaced so often; the next time there is none.
  static constexpr int most_rejections = 2;
  /// A kernel of the request with this key (tuning_key) failed when it ran: its engine is not found again. False if
  /// there was no other way already. The caller does not hold `mutex`.
  [[nodiscard]] bool reject(const std::string& key);
  /// How often that was so. The caller does not hold `mutex`.
  [[nodiscard]] int rejections(const std::string& key) const;
  /// Whether any kernel failed: else there is no need to ask for one.
  [[nodiscard]] bool has_rejections() const { return has_rejected_; }
  /// The engine among `count` that is fastest on the device. `launch(i, stream)` queues engine i; those that fail are
  /// left out. The caller holds `mutex`.
  [[nodiscard]] Expected<FastestCandidate> tune(std::size_t count,
                                                const std::function<Status(std::size_t, cudaStream_t)>& launch) const;

  /// Works until the clocks of a device that was idle are up, for 200 ms; waits for it.
  [[nodiscard]] Status wake(cudaStream_t on) const;
  /// Seconds that `launches` takes on the stream. The device waits before, for long enough that what is queued at once
  /// does not wait for the host.
  [[nodiscard]] Expected<double> time(const Stopwatch& watch, cudaStream_t on,
                                      const std::function<Status()>& launches) const;

  /// The kernels of a generated text, compiled or found, on the device; those that were loaded before are the same.
  [[nodiscard]] Expected<std::shared_ptr<const LoadedKernels>> load(const GeneratedProgram& program);
  /// Backend::remarks.
  [[nodiscard]] std::string remarks() const;

  // Errors that kernels find: a kernel with checks takes a number and passes it on with error_slot().
  [[nodiscard]] unsigned long long* error_slot() const { return error_slot_; }
  /// The number of a check that indices lie inside an axis of `extent`.
  [[nodiscard]] unsigned long long index_check(std::int64_t extent);
  /// Waits for the stream, and returns its first error or that of a check.
  [[nodiscard]] Status synchronize();

  /// Records the event of that number on a stream.
  [[nodiscard]] Status mark(std::size_t on, std::size_t number);
  /// Lets a stream wait for the event of that number.
  [[nodiscard]] Status wait(std::size_t on, std::size_t number) const;

 private:
  std::atomic<bool> has_rejected_ = false;
  std::map<std::string, int> rejections_;  ///< Guarded by `mutex`.
  Context() = default;
  [[nodiscard]] Status open_device();
  [[nodiscard]] Status plan_without_device(const std::string& properties);
  /// Finds the compiler for devices of an architecture: 90 for compute capability 9.0.
  void find_compiler(int runtime, int device_architecture);

  std::string kernel_folder_;      ///< BackendOptions::kernel_folder.
  bool generates_kernels_ = true;  ///< BackendOptions::generates_kernels.
  mutable std::mutex loading_mutex_;
  std::string loading_complaint_;  ///< Guarded by loading_mutex_. The first reason why code was not loaded.
  std::map<std::string, std::shared_ptr<const LoadedKernels>> loaded_;  ///< By text.
  std::vector<cudaEvent_t> events_;                                     ///< By number; null where there is none yet.
  unsigned long long* error_slot_ = nullptr;                            ///< Device memory.
  unsigned long long* error_copy_ = nullptr;                            ///< Pinned memory of the host.
  std::mutex checks_mutex_;
  std::vector<std::int64_t> checked_extents_;  ///< By number.
  /// When the device was last known to work: nanoseconds of the steady clock, 0 at first.
  mutable std::atomic<std::int64_t> last_work_ = 0;
};

}  // namespace taso::cuda
