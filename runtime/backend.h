/// Backends: devices with memory of their own and the kernels that run there, in modules loaded at run time.
///
/// A program that has never heard of a device's libraries loads `taso_<name>.so` when the user asks for the device;
/// where the module or a library that it needs is absent, it says so and everything else works. The processor is no
/// backend: its kernels are runtime/cpu.
///
/// Work is asynchronous: Kernel::execute of a backend's kernels queues on one of the backend's streams and returns;
/// errors of kernels (an index out of range, a failed launch) are reported by synchronize(). Pointers in
/// KernelArguments are device memory. What is on one stream runs in order; streams know nothing of each other but by
/// mark() and wait(). Transfers, copies, replays and times are of stream 0, the only one outside of recordings.
/// Weights are laid out on the host (Kernel::pack reads and writes host memory) and then uploaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "operators/lowered_body.h"
#include "runtime/engine_choices.h"
#include "runtime/kernel.h"
#include "runtime/measure.h"
#include "runtime/step_cost.h"
#include "support/status.h"

namespace taso {

/// How f32 products are computed where the hardware offers a choice.
enum class MathMode : std::uint8_t {
  strict,  ///< Every product and sum in f32.
  tf32,    ///< Products may round their operands to 10 bits of mantissa (NVIDIA's TF32), sums in f32.
};
/// "fp32", "tf32".
[[nodiscard]] const char* to_string(MathMode mode);

struct BackendOptions {
  MathMode math = MathMode::strict;
  int device = 0;  ///< Which of several devices, from 0.
  /// Properties of a device that is not there, as JSON text: kernels can then be created and described, so that plans
  /// can be made and tested, but nothing runs. Empty: the device of this machine.
  std::string device_properties;
  /// Where load_backend looks for the module; empty: beside the program.
  std::string module_folder = {};
  /// A number beyond the last device is counted on from the first one: ranks of a machine may share devices.
  bool counts_on = false;
  /// Engines are chosen among all that libraries have, also those that they compile at run time (up to a second each);
  /// otherwise among the first few that their heuristics name.
  bool all_engines = false;
  /// Where a backend keeps kernels that it compiles, from run to run; the folder is made when there is something to
  /// keep. Empty: nowhere.
  std::string kernel_folder = {};
  /// Whether a backend that can compile kernels for what it is asked does so; else it has those that it comes with.
  bool generates_kernels = true;
};

/// What an output within a wider tensor begins at a multiple of, in bytes: what libraries want of tensors, and the
/// width of a device's widest loads.
inline constexpr std::int64_t piece_alignment = 16;

/// Launches that can be repeated at little cost (a CUDA graph).
class Recording {
 public:
  virtual ~Recording() = default;
  /// Queues all of them.
  [[nodiscard]] virtual Status replay() = 0;
};

/// Messages between the memories of several devices, of one rank each (NCCL). Both ends wait for a message.
class DeviceMessages {
 public:
  /// Device memory of one of both is set.
  struct Message {
    int peer = 0;                     ///< The rank at the other end.
    const std::byte* from = nullptr;  ///< It is sent from here,
    std::byte* into = nullptr;        ///< or received here.
    std::size_t bytes = 0;
  };
  virtual ~DeviceMessages() = default;
  /// Queues messages that are under way together: none waits for another, but those between the same two ranks in the
  /// same direction, which are matched in order with what the peer queues. May be recorded.
  [[nodiscard]] virtual Status exchange(std::span<const Message> messages) = 0;
  /// From any thread: no message goes on, and whoever waits for one gets an error. At most once; no exchange follows.
  virtual void abort() = 0;
};

/// What a backend may ask about operators. The registry must outlive it.
struct Operators {
  using Body = std::function<Expected<LoweredBody>(const KernelRequest& request)>;
  Operators(const OperatorRegistry& all, Body body_of = {}) : registry(&all), body(std::move(body_of)) {}
  const OperatorRegistry* registry;
  /// The definitions of a request's operators as stages of loops; an error where there are none
  /// (runtime/joined_body.h). Empty: definitions are not to be had.
  Body body;
};

/// One device. Creation of kernels is thread-safe; memory, streams, recording and timing are for one thread at a time.
class Backend {
 public:
  virtual ~Backend() = default;

  /// The name by which it is asked for: "cuda".
  [[nodiscard]] virtual std::string name() const = 0;
  /// What measured costs depend on besides requests: "NVIDIA H200; driver 580.65; CUDA 13.0; cuDNN 9.19.0; cuBLASLt
  /// 13.1.0; fp32; taso 0.1.0, kernels 1".
  [[nodiscard]] virtual std::string identity() const = 0;
  /// The properties of the device as BackendOptions::device_properties takes them.
  [[nodiscard]] virtual Expected<std::string> device_properties() const = 0;
  /// How kernels are made, for those who want to know more, as a line: "kernels are generated by NVRTC 13.0", or why
  /// they are not, and what went wrong so far. Empty: there is nothing to say.
  [[nodiscard]] virtual std::string remarks() const { return {}; }
  /// Whether kernels can be run (false: made from device_properties).
  [[nodiscard]] virtual bool can_run() const = 0;

  /// A kernel for the request or the reason why there is none (an operator, a layout, a type it does not do). Where
  /// several engines compute it, the one that was chosen before is taken (use_choices), else the one that timing on the
  /// device finds fastest; without a device the first that the library's heuristics name.
  [[nodiscard]] virtual KernelOffer create(const KernelRequest& request, const Operators& operators) = 0;
  /// Where choices of engines are read and kept from now on; without it, for the process. Not while kernels are
  /// created.
  virtual void use_choices(std::shared_ptr<EngineChoices> choices) = 0;
  /// Size of the last-level cache, in which the weights of small models stay between two runs; 0 if it is not known.
  [[nodiscard]] virtual std::size_t cache_bytes() const = 0;

  /// A kernel that create() has offered for the request failed when it ran. True if there is another way: the next
  /// kernel for it is another one, or declined, or fuses() or stands_beside() is no longer true of it. Of one request
  /// that is so a few times at most.
  [[nodiscard]] virtual bool reject(const KernelRequest& request) {
    (void)request;
    return false;
  }

  /// Whether there is a kernel for a request of fused_op that is worth having: one launch for what would be several, at
  /// no loss. Asked often: where engines have to be compared for the answer, the choice is kept as that of create().
  [[nodiscard]] virtual bool fuses(const KernelRequest& request, const Operators& operators) const {
    (void)request;
    (void)operators;
    return false;
  }

  /// Whether the kernel for a request can be one of several in a launch, and is too small to fill the device: then
  /// there is one launch for what join_requests makes of several such requests (runtime/horizontal_fusion.h), if this
  /// is true of that, too. Asked often, as fuses() is.
  [[nodiscard]] virtual bool stands_beside(const KernelRequest& request) const {
    (void)request;
    return false;
  }

  /// Whether there is a kernel for a request with outputs within wider tensors (Operand::within) that begin at
  /// multiples of piece_alignment; where elements only move, anywhere. Asked often, as fuses() is.
  [[nodiscard]] virtual bool writes_within(const KernelRequest& request) const {
    (void)request;
    return false;
  }

  // Streams. Within a recording, a stream but 0 takes part once it waits for a mark of one that does, and stream 0 has
  // to wait for the last work of all others in the end.

  /// How many there are: 0 to streams() - 1.
  [[nodiscard]] virtual std::size_t streams() const { return 1; }
  /// Marks the end of all that is queued on a stream so far. `mark` is a number of the caller's, small and from 0;
  /// marking again replaces the mark for those that wait for it later.
  [[nodiscard]] virtual Status mark(std::size_t stream, std::size_t mark);
  /// What is queued on the stream from now on begins after the mark is passed.
  [[nodiscard]] virtual Status wait(std::size_t stream, std::size_t mark);
  /// What a kernel for the request that is so many launches (Kernel::launches) is believed to cost as long as nobody
  /// has measured it. A model, not a measurement.
  [[nodiscard]] virtual StepCost estimate(const KernelRequest& request, std::size_t launches) const {
    (void)request;
    (void)launches;
    return {};
  }
  /// The same of StepCosts::wait_seconds.
  [[nodiscard]] virtual double estimated_wait_seconds() const { return 0; }

  // Memory. Addresses are aligned to 256 bytes.
  [[nodiscard]] virtual Expected<std::byte*> allocate(std::size_t bytes) = 0;
  virtual void release(std::byte* memory) = 0;
  /// Both wait for the transfer, and for everything queued before it.
  [[nodiscard]] virtual Status upload(std::span<const std::byte> host, std::byte* device) = 0;
  [[nodiscard]] virtual Status download(const std::byte* device, std::span<std::byte> host) = 0;
  /// Queues a copy within the device.
  [[nodiscard]] virtual Status copy(const std::byte* from, std::byte* to, std::size_t bytes) = 0;

  // Messages between devices.
  /// Whether it can send any: a name of the device among those of all machines. Else device_unavailable with the
  /// reason.
  [[nodiscard]] virtual Expected<std::string> message_endpoint() const {
    return Error{ErrorCode::device_unavailable, "device '" + name() + "' has no messages", {}};
  }
  /// What ranks that are to send each other messages need to find each other, made by one of them.
  [[nodiscard]] virtual Expected<std::string> message_group() const { return message_endpoint().error(); }
  /// Joins the others, and waits until all ranks have: each with the same group and a number of its own below `size`.
  [[nodiscard]] virtual Expected<std::unique_ptr<DeviceMessages>> join_messages(const std::string& group, int rank,
                                                                                int size) {
    (void)group, (void)rank, (void)size;
    return message_endpoint().error();
  }

  /// Waits for all that is queued; the first error of any of it.
  [[nodiscard]] virtual Status synchronize() = 0;
  /// Records what `launches` queues instead of running it. An error of `launches`, or of the device, is returned.
  [[nodiscard]] virtual Expected<std::unique_ptr<Recording>> record(const std::function<Status()>& launches) = 0;
  /// Seconds between two points of the stream: the time that `launches` takes on the device, without that of queueing
  /// it if it is replays: the device is kept busy before the first point until they are queued.
  [[nodiscard]] virtual Expected<double> time(const std::function<Status()>& launches) = 0;
  /// Times one kernel by the backend's protocol (CUDA: replays of a graph of unrolled copies between events, weights
  /// rotated past the last-level cache, random operands, spread control as MeasureOptions says). `bounds`: those of the
  /// request's indices (index_bounds); without them indices are 0.
  [[nodiscard]] virtual Expected<Measurement> measure(const KernelRequest& request, const Operators& operators,
                                                      std::span<const std::int64_t> bounds,
                                                      const MeasureOptions& options) = 0;
};

/// Tenths of a working set of so many bytes that come from the device's cache when it is gone through again: all where
/// it fits with room to spare, below 0.7 of the cache, else none.
[[nodiscard]] int cached_tenths(const Backend& backend, double bytes);

/// Memory of a backend, released with the object.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  [[nodiscard]] static Expected<DeviceBuffer> create(std::shared_ptr<Backend> backend, std::size_t bytes);
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::shared_ptr<Backend> backend_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// The function that a module exports under the name `taso_open_backend`: a new backend, or null and one line in
/// *error. `abi` is backend_abi of the caller; a module built for another one declines.
using OpenBackend = Backend* (*)(int abi, const BackendOptions& options, std::string* error);
inline constexpr int backend_abi = 10;

/// Loads `taso_<name>.so` from the folder that the options name, else from beside the program (`../lib/taso` and the
/// program's own folder), and opens its backend. device_unavailable with the loader's or the library's own words
/// where that fails. The module stays loaded.
[[nodiscard]] Expected<std::shared_ptr<Backend>> load_backend(std::string_view name, const BackendOptions& options);

}  // namespace taso
