/// How kernels and whole graphs are timed.
///
/// A kernel: caches are evicted (64 MB streamed), source and destination are touched (activations come warm from
/// the previous kernel; weights cold from memory), then one execution is timed; the median of 3 such samples
/// counts if they agree, else of 11. Of a kernel whose model stays in the last-level cache only the faster caches are
/// evicted, between an untimed execution and the timed one: four times the size of the second-level cache is streamed,
/// as for a kernel without weights.
/// Where a part of the model stays there, both are measured and weighted. With one thread the time is the thread's CPU
/// time, which preemption by other programs does not inflate; with several it is wall time. Samples are taken again (up
/// to three rounds, all counted) while they spread too much.
///
/// Whole graphs: several executors in turn, A B C A B C, so that drift of the machine hits all alike; two
/// executors of the same graph give the noise. On a device the time between two points of its stream counts, without
/// the transfer of inputs and outputs, of up to twenty runs that are queued together; before, it works for 200 ms.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/kernel.h"
#include "support/status.h"

namespace taso {

class Executor;    // runtime/executor.h
class HostTensor;  // runtime/tensor.h

struct MeasureOptions {
  int samples = 11;          ///< Of a round.
  int agreeing_samples = 3;  ///< So many suffice if their interquartile range over their median is
  double agreement = 0.03;   ///< at most this.
  int rounds = 3;            ///< At most.
  double max_spread = 0.15;  ///< Largest interquartile range over median that one round is accepted with.
  std::uint64_t seed = 0;    ///< Of the operands' values.
  /// So many threads run the same kernel meanwhile, over and over, on operands of their own: as other ranks do, with
  /// which this one shares memory and caches. Of the host.
  int companions = 0;
  /// Asked between samples; true ends the measuring with an error of code interrupted.
  std::function<bool()> cancelled = {};
};

struct Measurement {
  double median_us = 0;
  double minimum_us = 0;
  double spread = 0;  ///< Interquartile range over median.
  int samples = 0;
  bool steady = true;  ///< The spread test passed in the end.
  std::string implementation;
};

/// Bytes of the processor's last-level cache as the system describes it; 0 if it does not.
[[nodiscard]] std::size_t last_level_cache_bytes();
/// The same of the second-level cache, of which every core has its own.
[[nodiscard]] std::size_t second_level_cache_bytes();

/// Tenths of `bytes` of memory, read from beginning to end over and over, that come from the last-level cache: by the
/// speed of reading them, compared with that of reading little and very much. 0 if the system does not describe its
/// caches. Takes less than a second.
[[nodiscard]] int cached_tenths(std::size_t bytes);

/// The value below which a share `q` of the samples lies, between neighbours by proportion; at least one sample,
/// sorted.
[[nodiscard]] double quantile(const std::vector<double>& sorted, double q);

/// Median, minimum and spread of samples in microseconds (at least one).
[[nodiscard]] Measurement summarize(std::vector<double> samples_us);

/// Times the kernel that the library makes for `request`. Buffers live in the object so that a batch of requests
/// reuses them. Not thread-safe; run nothing else beside it.
class KernelTimer {
 public:
  explicit KernelTimer(const KernelLibrary& library, MeasureOptions options = {});
  /// On a backend by its own protocol (Backend::measure). A kernel that the backend declines costs its time on the
  /// host, with f32 for narrower floats, and that of the transfers round it. Fails (device_unavailable) where the
  /// device is only described.
  [[nodiscard]] Expected<Measurement> measure(const KernelRequest& request);
  /// Microseconds that the kernel takes at least, from few executions with everything in the caches: much less work
  /// than measure(). 0, which says nothing, for kernels of backends.
  [[nodiscard]] Expected<double> least_us(const KernelRequest& request);

 private:
  [[nodiscard]] Expected<Measurement> measure_on_host(const KernelRequest& request);
  /// A kernel of the device, or the next one for the request where that fails when it runs. Nothing where there is none
  /// left.
  [[nodiscard]] Expected<std::optional<Measurement>> measure_on_device(const KernelRequest& request);
  /// What a request comes to that no kernel computes as a whole: kernels one after the other.
  [[nodiscard]] Expected<Measurement> measure_in_sequence(const std::vector<KernelRequest>& requests);
  /// Microseconds of the transfers round a host step.
  [[nodiscard]] Expected<double> measure_transfers(const KernelRequest& request);
  struct Subject;
  [[nodiscard]] Expected<Subject> prepare(const KernelRequest& request) const;
  [[nodiscard]] Expected<Measurement> measure(const KernelRequest& request, const Subject& subject, bool cached);
  class Companions;
  const KernelLibrary* library_;
  MeasureOptions options_;
  std::vector<std::uint64_t> eviction_;
};

struct WholeOptions {
  int minimum_rounds = 11;
  int maximum_rounds = 101;
  double time_limit_s = 10;  ///< For all executors together; the minimum of rounds is made anyway.
  int warm_up = 2;
  /// Executions faster than this are timed in blocks: one untimed run and then `block` timed ones, whose mean is the
  /// sample. So each finds its own weights in the caches, as in steady use, and not those of an executor that
  /// shares them.
  double block_below_ms = 25;
  int block = 4;
  /// Of what runs on a device, blocks are so many more runs that they take about `queued_ms`, at most `most_queued`: a
  /// block is queued as a whole, and what its begin and its end cost counts for little.
  double queued_ms = 20;
  int most_queued = 20;
  /// Before, what runs on a device works in turn for so long, so that its clocks are up; not with `warm_up` 0.
  double device_warm_up_s = 0.2;
  /// Count the calling thread's CPU time instead of wall time: for executors with one thread, on machines that run
  /// other programs too. Of no meaning to other programs.
  bool thread_time = false;
  /// Asked between runs; true ends the timing early (Ctrl-C): with the samples so far, or with an error of code
  /// interrupted where an executor has none yet.
  std::function<bool()> cancelled;
  /// Called after every round with the samples so far; takes executors out of the rounds that follow by clearing their
  /// entries. The timing ends when no entry is set.
  std::function<void(const std::vector<std::vector<double>>& samples, std::vector<char>& goes_on)> after_round;
};

/// Something that runs whole: makes so many runs, one after the other, and gives the microseconds of one.
using WholeRun = std::function<Expected<double>(int runs)>;

/// Microseconds of what is run whole, in turn: per program one sample of each round that it took part in, the first
/// ones. `on_device`: which programs queue their runs on a device; empty: none.
[[nodiscard]] Expected<std::vector<std::vector<double>>> sample_interleaved(std::span<const WholeRun> programs,
                                                                            const WholeOptions& options = {},
                                                                            const std::vector<char>& on_device = {});

/// The same of executors. `inputs[i]` are executor i's inputs.
[[nodiscard]] Expected<std::vector<std::vector<double>>> sample_interleaved(
    std::span<Executor* const> executors, std::span<const std::span<const HostTensor>> inputs,
    const WholeOptions& options = {});

/// What these samples are together.
[[nodiscard]] Expected<std::vector<Measurement>> time_interleaved(std::span<Executor* const> executors,
                                                                  std::span<const std::span<const HostTensor>> inputs,
                                                                  const WholeOptions& options = {});

}  // namespace taso
