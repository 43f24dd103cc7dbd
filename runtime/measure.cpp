#include "runtime/measure.h"

#include <time.h>  // NOLINT(modernize-deprecated-headers): POSIX clocks

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>

#include "graph/reals.h"
#include "runtime/backend.h"
#include "runtime/cpu/parallel.h"
#include "runtime/executor.h"
#include "runtime/storage.h"
#include "support/random.h"

namespace taso {
namespace {

/// What is read to take everything else out of the caches, at most: last-level caches beyond are shared with others.
constexpr std::size_t most_evicted = std::size_t{64} << 20;
constexpr double fastest_us = 0.01;  ///< No kernel is faster.
/// Executions of which the fastest gives a lower bound, and the share of it that other circumstances leave.
constexpr int quick_executions = 2;
constexpr double certain_share = 0.8;
/// A kernel that takes so long is not executed again: this share of its first execution is certain, though that maps
/// pages and may generate code.
constexpr double long_us = 50e3, share_of_first = 0.5;

double now_us(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

/// What reading the clock twice adds to a sample.
double clock_overhead_us(clockid_t clock) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 100; ++i) {
    const double start = now_us(clock);
    least = std::min(least, now_us(clock) - start);
  }
  return least;
}

/// What a device computes where it has no kernel for a request as a whole: results that lie by themselves and are then
/// copied to where they lie within wider tensors, or a fused request's operators one by one. Nothing for single ones.
std::vector<KernelRequest> requests_instead(const KernelRequest& request) {
  std::vector<KernelRequest> requests = {request};
  const bool only_copies = request.op == reorder_op;
  for (std::size_t i = 0; i < request.outputs.size() && !only_copies; ++i) {
    const Operand& output = request.outputs[i];
    if (!output.within) continue;
    requests[0].outputs[i].within = {};
    KernelRequest& copy = requests.emplace_back();
    copy.op = reorder_op;
    copy.inputs = {requests[0].outputs[i]};
    copy.outputs = {output};
    copy.threads = request.threads;
    copy.cached_tenths = request.cached_tenths;
  }
  if (requests.size() > 1) return requests;
  requests.clear();
  if (!request.fused) return requests;
  for (const FusedPart& part : request.fused->parts) {
    requests.push_back(part.request);
    requests.back().cached_tenths = request.cached_tenths;
  }
  return requests;
}

/// Reads one byte of every cache line, so that the range lies in the caches. The sum keeps the reads alive.
std::uint64_t touch(const std::byte* bytes, std::size_t size) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < size; i += 64) sum += static_cast<std::uint64_t>(bytes[i]);
  return sum;
}

/// The caches that hold data, as the system describes them: level and bytes.
std::vector<std::pair<int, std::size_t>> data_caches() {
  std::vector<std::pair<int, std::size_t>> caches;
  for (int index = 0;; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    std::string type, size;
    int level = 0;
    if (!(std::ifstream(folder + "type") >> type) || !(std::ifstream(folder + "level") >> level) ||
        !(std::ifstream(folder + "size") >> size))
      return caches;
    std::size_t bytes = 0;
    const auto end = std::from_chars(size.data(), size.data() + size.size(), bytes).ptr;
    if (end != size.data() + size.size()) bytes <<= *end == 'K' ? 10 : *end == 'M' ? 20 : 0;
    if (type != "Instruction") caches.emplace_back(level, bytes);
  }
}

/// Bytes of the caches of one level; 0 if there is none.
std::size_t bytes_of_level(int wanted) {
  std::size_t bytes = 0;
  for (const auto& [level, size] : data_caches())
    if (level == wanted) bytes = std::max(bytes, size);
  return bytes;
}

/// Positive values keep logarithms, roots and quotients finite; integers are indices below `bound`, or 0.
void fill(AlignedBuffer& buffer, const Operand& operand, std::int64_t bound, Random& random) {
  const auto count = static_cast<std::size_t>(operand.type.elements());
  if (is_real(operand.type.element)) {
    for (std::size_t i = 0; i < count; ++i) store_real(buffer.data(), operand.type.element, i, 0.1 + random.uniform());
    return;
  }
  std::fill(buffer.data(), buffer.data() + buffer.size(), std::byte{0});
  const auto extent = static_cast<std::uint64_t>(std::max<std::int64_t>(1, bound));
  if (operand.type.element == ElementType::i64) {
    auto* values = reinterpret_cast<std::int64_t*>(buffer.data());
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int64_t>(random.below(extent));
  } else if (operand.type.element == ElementType::i32) {
    auto* values = reinterpret_cast<std::int32_t*>(buffer.data());
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::int32_t>(random.below(extent));
  }
}

/// With one thread its processor time counts.
clockid_t clock_of(const KernelRequest& request) {
  return request.threads <= 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
}

bool has_weights(const KernelRequest& request) {
  return std::any_of(request.inputs.begin(), request.inputs.end(), [](const Operand& input) { return input.weight; });
}

}  // namespace

std::size_t last_level_cache_bytes() {
  std::pair<int, std::size_t> last{0, 0};
  for (const auto& cache : data_caches()) last = std::max(last, cache);
  return last.second;
}

std::size_t second_level_cache_bytes() { return bytes_of_level(2); }

namespace {

/// A quarter more than the last-level cache holds: what comes last takes everything else's place.
std::size_t bytes_to_evict() {
  const std::size_t last = last_level_cache_bytes();
  return last == 0 ? most_evicted : std::min(most_evicted, last + last / 4);
}

}  // namespace

int cached_tenths(std::size_t bytes) {
  const std::size_t last = last_level_cache_bytes(), little = 4 * bytes_of_level(2);
  if (little == 0 || last < 2 * little || bytes > 2 * last) return 0;
  if (bytes <= little) return 10;
  // Nanoseconds per byte: the fastest tenth of many passes, so that what else runs on the machine does not count.
  const auto pace = [](std::size_t size) {
    const std::vector<std::uint64_t> memory(size / sizeof(std::uint64_t), 1);
    std::vector<double> passes;
    volatile std::uint64_t sink = 0;
    for (double spent_us = 0; passes.size() < 10 || (spent_us < 2e5 && passes.size() < 1000);) {
      const double start = now_us(CLOCK_MONOTONIC);
      sink = sink + touch(reinterpret_cast<const std::byte*>(memory.data()), size);
      passes.push_back(now_us(CLOCK_MONOTONIC) - start);
      spent_us += passes.back();
    }
    std::sort(passes.begin(), passes.end());
    return quantile(passes, 0.1) * 1e3 / static_cast<double>(size);
  };
  const double fast = pace(little), slow = pace(4 * last);
  if (slow <= fast) return 0;
  return static_cast<int>(std::lround(10 * std::clamp((slow - pace(bytes)) / (slow - fast), 0.0, 1.0)));
}

KernelTimer::KernelTimer(const KernelLibrary& library, MeasureOptions options)
    : library_(&library), options_(std::move(options)), eviction_(bytes_to_evict() / sizeof(std::uint64_t), 1) {}

Expected<Measurement> KernelTimer::measure(const KernelRequest& request) {
  const std::shared_ptr<Backend>& backend = library_->backend();
  if (!backend) return measure_on_host(request);
  if (!backend->can_run())
    return Error{ErrorCode::device_unavailable,
                 "device '" + backend->name() + "' is only described by its properties: no kernel can be measured",
                 {}};
  TASO_ASSIGN(const std::optional<Measurement> on_device, measure_on_device(request));
  if (on_device) return *on_device;
  if (const std::vector<KernelRequest> instead = requests_instead(request); !instead.empty())
    return measure_in_sequence(instead);
  TASO_ASSIGN(const double transfers_us, measure_transfers(request));
  KernelRequest on_host = request;
  for (const ElementType narrow : {ElementType::f16, ElementType::bf16})
    replace_floats(on_host, narrow, ElementType::f32);
  TASO_ASSIGN(Measurement measurement, measure_on_host(on_host));
  measurement.median_us += transfers_us;
  measurement.minimum_us += transfers_us;
  measurement.implementation = "host: " + measurement.implementation;
  return measurement;
}

Expected<std::optional<Measurement>> KernelTimer::measure_on_device(const KernelRequest& request) {
  const std::shared_ptr<Backend>& backend = library_->backend();
  while (library_->create_on_device(request).kernel) {
    Expected<Measurement> measured =
        backend->measure(request, library_->operators(), index_bounds(request, library_->registry()), options_);
    if (measured) return std::optional<Measurement>(std::move(*measured));
    // Of a device on which nothing runs any more no kernel is to blame.
    if (measured.error().code != ErrorCode::device_unavailable || !backend->synchronize() || !backend->reject(request))
      return measured.error();
  }
  return std::optional<Measurement>();
}

Expected<Measurement> KernelTimer::measure_in_sequence(const std::vector<KernelRequest>& requests) {
  Measurement sum;
  sum.steady = true;
  for (const KernelRequest& request : requests) {
    TASO_ASSIGN(const Measurement one, measure(request));
    sum.median_us += one.median_us;
    sum.minimum_us += one.minimum_us;
    sum.spread = std::max(sum.spread, one.spread);
    sum.samples += one.samples;
    sum.steady = sum.steady && one.steady;
    sum.implementation += (sum.implementation.empty() ? "" : ", then ") + one.implementation;
  }
  return sum;
}

Expected<double> KernelTimer::measure_transfers(const KernelRequest& request) {
  const std::shared_ptr<Backend>& backend = library_->backend();
  std::size_t most = 1;
  const auto bytes_of = [](const Operand& operand) { return static_cast<std::size_t>(operand.type.bytes()); };
  for (const auto* operands : {&request.inputs, &request.outputs})
    for (const Operand& operand : *operands) most = std::max(most, bytes_of(operand));
  TASO_ASSIGN(const DeviceBuffer device, DeviceBuffer::create(backend, most));
  AlignedBuffer host(most);
  std::fill(host.data(), host.data() + most, std::byte{0});
  TASO_RETURN_IF_ERROR(backend->upload({host.data(), most}, device.data()));
  std::vector<double> samples;
  for (int i = 0; i < std::max(options_.samples, 1); ++i) {
    const double start = now_us(CLOCK_MONOTONIC);
    for (const Operand& operand : request.inputs)
      if (!operand.weight) TASO_RETURN_IF_ERROR(backend->download(device.data(), {host.data(), bytes_of(operand)}));
    for (const Operand& operand : request.outputs)
      TASO_RETURN_IF_ERROR(backend->upload({host.data(), bytes_of(operand)}, device.data()));
    samples.push_back(now_us(CLOCK_MONOTONIC) - start);
  }
  return summarize(std::move(samples)).median_us;
}

/// A kernel and what it works on.
struct KernelTimer::Subject {
  std::unique_ptr<Kernel> kernel;
  std::vector<AlignedBuffer> buffers;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  std::vector<std::span<const std::byte>> warm;  ///< What the kernels before have just written, or made room for.
  AlignedBuffer workspace;
  double first_us = 0;  ///< What its first execution took.

  [[nodiscard]] Status execute() const {
    return kernel->execute({inputs, outputs, const_cast<std::byte*>(workspace.data())});
  }
};

/// The kernel and its operands, after one execution: pages are mapped, code is generated.
Expected<KernelTimer::Subject> KernelTimer::prepare(const KernelRequest& request) const {
  Subject subject;
  TASO_ASSIGN(subject.kernel, library_->create(request));
  const Kernel& kernel = *subject.kernel;
  Random random(options_.seed, "measure");
  const std::vector<std::int64_t> bounds = index_bounds(request, library_->registry());
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const Operand& operand = request.inputs[i];
    AlignedBuffer buffer(static_cast<std::size_t>(operand.type.bytes()));
    fill(buffer, operand, bounds[i], random);
    if (!kernel.packed_format(i).empty()) {
      AlignedBuffer packed(kernel.packed_bytes(i));
      kernel.pack(i, buffer.data(), packed.data());
      buffer = std::move(packed);
    }
    subject.inputs.push_back(buffer.data());
    if (!operand.weight) subject.warm.emplace_back(buffer.data(), buffer.size());
    subject.buffers.push_back(std::move(buffer));
  }
  for (const Operand& operand : request.outputs) {
    AlignedBuffer buffer(static_cast<std::size_t>(operand.type.bytes()));
    std::fill(buffer.data(), buffer.data() + buffer.size(), std::byte{0});
    subject.outputs.push_back(buffer.data());
    subject.warm.emplace_back(buffer.data(), buffer.size());
    subject.buffers.push_back(std::move(buffer));
  }
  subject.workspace = AlignedBuffer(kernel.workspace_bytes());
  std::fill(subject.workspace.data(), subject.workspace.data() + subject.workspace.size(), std::byte{0});
  const double start = now_us(clock_of(request));
  TASO_RETURN_IF_ERROR(subject.execute());
  subject.first_us = now_us(clock_of(request)) - start;
  return subject;
}

Expected<double> KernelTimer::least_us(const KernelRequest& request) {
  if (library_->backend()) return 0.0;
  TASO_ASSIGN(const Subject subject, prepare(request));
  if (subject.first_us > long_us) return share_of_first * subject.first_us;
  const clockid_t clock = clock_of(request);
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < quick_executions; ++i) {
    const double start = now_us(clock);
    TASO_RETURN_IF_ERROR(subject.execute());
    least = std::min(least, now_us(clock) - start);
  }
  return certain_share * least;
}

/// Threads that run kernels until the object is destroyed.
class KernelTimer::Companions {
 public:
  Companions() = default;
  Companions(const Companions&) = delete;
  Companions& operator=(const Companions&) = delete;
  ~Companions() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  void add(Subject subject) {
    threads_.emplace_back([this, own = std::make_unique<Subject>(std::move(subject))] {
      // What fails here fails for the one that is timed, too.
      while (!stop_ && own->execute()) {
      }
    });
  }

 private:
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> threads_;
};

Expected<Measurement> KernelTimer::measure_on_host(const KernelRequest& request) {
  TASO_ASSIGN(const Subject subject, prepare(request));
  Companions companions;
  for (int i = 0; i < options_.companions; ++i) {
    TASO_ASSIGN(Subject of_companion, prepare(request));
    companions.add(std::move(of_companion));
  }
  Measurement measurement;
  // Without weights, all that is read has just been written: it makes no difference what the last-level cache keeps.
  const bool one_time = !has_weights(request);
  if (request.cached_tenths < 10 || one_time) {
    TASO_ASSIGN(measurement, measure(request, subject, false));
  }
  if (request.cached_tenths > 0 && !one_time) {
    TASO_ASSIGN(Measurement cached, measure(request, subject, true));
    if (request.cached_tenths < 10) {
      const double share = request.cached_tenths / 10.0;
      cached.median_us = share * cached.median_us + (1 - share) * measurement.median_us;
      cached.minimum_us = share * cached.minimum_us + (1 - share) * measurement.minimum_us;
      cached.spread = std::max(cached.spread, measurement.spread);
      cached.samples += measurement.samples;
      cached.steady = cached.steady && measurement.steady;
    }
    measurement = cached;
  }
  measurement.implementation = subject.kernel->implementation();
  return measurement;
}

Expected<Measurement> KernelTimer::measure(const KernelRequest& request, const Subject& subject, bool cached) {
  const clockid_t clock = clock_of(request);
  const double overhead = clock_overhead_us(clock);
  // Every thread has a second-level cache of its own.
  const auto threads = static_cast<std::size_t>(std::max(request.threads, 1));
  const std::size_t fast_caches = 4 * threads * bytes_of_level(2);
  const std::size_t all_caches = eviction_.size() * sizeof(std::uint64_t);
  const bool from_memory = !cached && (has_weights(request) || fast_caches == 0);
  const std::size_t evicted = from_memory ? all_caches : std::min(all_caches, fast_caches);
  std::vector<std::uint64_t> sums(threads);
  // Each thread reads its part of a range: what the threads of kernels before would have left in their caches, as they
  // divide their work into parts, too. A part that lies in the other's cache is many times slower to get.
  const auto touch_by_all = [&](std::span<const std::byte> range) {
    cpu::parallel_chunks(request.threads, request.threads, 1, [&](std::int64_t begin, std::int64_t end) {
      const std::size_t first = range.size() * static_cast<std::size_t>(begin) / threads;
      const std::size_t last = range.size() * static_cast<std::size_t>(end) / threads;
      sums[static_cast<std::size_t>(begin)] += touch(range.data() + first, last - first);
    });
  };
  std::vector<double> samples;
  volatile std::uint64_t sink = 0;
  Measurement measurement;
  for (int round = 0; round < std::max(options_.rounds, 1); ++round) {
    for (int i = 0; i < std::max(options_.samples, 1); ++i) {
      if (options_.cancelled && options_.cancelled())
        return Error{ErrorCode::interrupted, "interrupted while a kernel was measured", {}};
      if (cached) TASO_RETURN_IF_ERROR(subject.execute());
      // This also wakes the threads: in a network they have just worked.
      touch_by_all(std::as_bytes(std::span(eviction_)).first(evicted));
      for (const std::span<const std::byte> range : subject.warm) touch_by_all(range);
      sink = sink + std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
      (void)now_us(clock);  // its code is in the caches when it counts
      const double start = now_us(clock);
      TASO_RETURN_IF_ERROR(subject.execute());
      samples.push_back(std::max(now_us(clock) - start - overhead, fastest_us));
      if (round == 0 && i + 1 == options_.agreeing_samples && summarize(samples).spread <= options_.agreement) break;
    }
    measurement = summarize(samples);
    // With several threads a preempted one stalls all: the minimum tells whether the median is one of those.
    // The median of n samples is uncertain by about spread / sqrt(n).
    const double rounds_taken = static_cast<double>(round + 1);
    measurement.steady = measurement.spread <= options_.max_spread * std::sqrt(rounds_taken) &&
                         (request.threads <= 1 || measurement.median_us <= 1.5 * measurement.minimum_us);
    if (measurement.steady) break;
  }
  return measurement;
}

namespace {

/// Runs of a block of a program whose one run takes so long.
int block_of(double us, bool queued, const WholeOptions& options) {
  if (us >= options.block_below_ms * 1e3) return 1;
  const int least = std::max(1, options.block);
  if (!queued) return least;
  const double fill = options.queued_ms * 1e3 / std::max(us, 1.0);
  return std::max(least, static_cast<int>(std::min(std::ceil(fill), static_cast<double>(options.most_queued))));
}

}  // namespace

Expected<std::vector<std::vector<double>>> sample_interleaved(std::span<const WholeRun> programs,
                                                              const WholeOptions& options,
                                                              const std::vector<char>& on_device) {
  using Clock = std::chrono::steady_clock;
  const auto seconds_since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  std::vector<int> blocks(programs.size(), 1);
  const auto queued = [&](std::size_t one) { return one < on_device.size() && on_device[one] != 0; };
  const auto cancelled = [&] { return options.cancelled && options.cancelled(); };
  const Error too_early{ErrorCode::interrupted, "interrupted before every graph was timed", {}};
  const auto warm_up = [&](std::size_t one) -> Status {
    if (cancelled()) return too_early;
    TASO_ASSIGN(const double us, programs[one](1));
    blocks[one] = block_of(us, queued(one), options);
    return {};
  };
  for (std::size_t one = 0; one < programs.size(); ++one)
    for (int i = 0; i < options.warm_up; ++i) TASO_RETURN_IF_ERROR(warm_up(one));
  if (options.warm_up > 0 && std::find(on_device.begin(), on_device.end(), 1) != on_device.end()) {
    const auto start = Clock::now();
    do
      for (std::size_t one = 0; one < programs.size(); ++one)
        if (queued(one)) TASO_RETURN_IF_ERROR(warm_up(one));
    while (seconds_since(start) < options.device_warm_up_s);
  }
  std::vector<std::vector<double>> samples(programs.size());
  std::vector<char> goes_on(programs.size(), 1);
  const auto begin = Clock::now();
  for (int round = 0; round < options.maximum_rounds; ++round) {
    const double elapsed = seconds_since(begin);
    if (round >= options.minimum_rounds && elapsed > options.time_limit_s) break;
    if (round > 0 && cancelled()) break;
    // The order rotates, so that none always runs right after another's cache state.
    for (std::size_t turn = 0; turn < programs.size(); ++turn) {
      if (cancelled()) {
        if (round == 0) return too_early;
        break;
      }
      const std::size_t one = (turn + static_cast<std::size_t>(round)) % programs.size();
      if (goes_on[one] == 0) continue;
      if (blocks[one] > 1) {
        TASO_ASSIGN([[maybe_unused]] const double untimed, programs[one](1));
      }
      TASO_ASSIGN(const double us, programs[one](blocks[one]));
      samples[one].push_back(us);
    }
    if (!options.after_round) continue;
    options.after_round(samples, goes_on);
    if (std::find(goes_on.begin(), goes_on.end(), 1) == goes_on.end()) break;
  }
  return samples;
}

Expected<std::vector<std::vector<double>>> sample_interleaved(std::span<Executor* const> executors,
                                                              std::span<const std::span<const HostTensor>> inputs,
                                                              const WholeOptions& options) {
  TASO_CHECK(executors.size() == inputs.size(), "one set of inputs per executor is needed");
  const clockid_t clock = options.thread_time ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  std::vector<std::vector<HostTensor>> outputs(executors.size());
  std::vector<WholeRun> programs;
  std::vector<char> on_device;
  for (std::size_t e = 0; e < executors.size(); ++e) {
    for (const TensorType& type : executors[e]->output_types()) outputs[e].emplace_back(type);
    on_device.push_back(executors[e]->on_device() ? 1 : 0);
    // On a device what passes there counts, once inputs are there and launches recorded.
    if (executors[e]->on_device()) TASO_RETURN_IF_ERROR(executors[e]->run_into(inputs[e], outputs[e]));
    programs.emplace_back([&, e](int runs) -> Expected<double> {
      if (executors[e]->on_device()) {
        TASO_ASSIGN(const double seconds, executors[e]->time_on_device(runs));
        return seconds * 1e6;
      }
      const double start = now_us(clock);
      for (int i = 0; i < runs; ++i) TASO_RETURN_IF_ERROR(executors[e]->run_into(inputs[e], outputs[e]));
      return (now_us(clock) - start) / runs;
    });
  }
  return sample_interleaved(programs, options, on_device);
}

Expected<std::vector<Measurement>> time_interleaved(std::span<Executor* const> executors,
                                                    std::span<const std::span<const HostTensor>> inputs,
                                                    const WholeOptions& options) {
  TASO_ASSIGN(std::vector<std::vector<double>> samples, sample_interleaved(executors, inputs, options));
  std::vector<Measurement> results;
  results.reserve(samples.size());
  for (std::vector<double>& list : samples) results.push_back(summarize(std::move(list)));
  return results;
}

}  // namespace taso
