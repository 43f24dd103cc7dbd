#include "tools/run_links.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "optimizer/collective_costs.h"
#include "partition/host_groups.h"
#include "partition/link_fit.h"
#include "runtime/kernel.h"
#include "runtime/measure.h"
#include "runtime/thread_transport.h"
#include "support/byte_size.h"
#include "support/file.h"
#include "support/text_output.h"
#include "tools/measured_collectives.h"
#include "tools/memory_limit.h"
#include "tools/proved_specs.h"

namespace taso::tools {
namespace {

/// Bytes of the messages that are timed.
constexpr std::array<std::size_t, 10> message_sizes = {4,      256,     4096,    16384,    65536,
                                                       262144, 1 << 20, 1 << 22, 16 << 20, 64 << 20};
/// Of each, the median of so many times, each the mean of exchanges that move so many bytes, or are so many.
constexpr int samples = 11;
constexpr std::size_t bytes_of_sample = 64 << 20;
constexpr int exchanges_of_sample = 200;
constexpr std::uint32_t message_number = 0;

/// What a rank says of itself.
struct Host {
  std::string name;
  std::int64_t memory = 0;  ///< Bytes that its programs have.
  std::int64_t cores = 1;
};

Host this_host() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  Host host;
  host.name = name.data();
  host.memory = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const Expected<std::string> membership = read_file("/proc/self/cgroup");
  if (const auto limit = group_memory_limit(membership ? *membership : "", "/sys/fs/cgroup"))
    host.memory = std::min(host.memory, static_cast<std::int64_t>(std::min<std::uint64_t>(*limit, INT64_MAX)));
  // Those of the machine: mpirun may have bound the rank to one.
  host.cores = std::max<std::int64_t>(1, sysconf(_SC_NPROCESSORS_ONLN));
  return host;
}

/// The same number of every rank, by rank.
Expected<std::vector<double>> gather(Transport& transport, double own) {
  std::string bytes(sizeof(own), '\0');
  std::memcpy(bytes.data(), &own, sizeof(own));
  TASO_ASSIGN(const std::vector<std::string> all, transport.all_gather(std::move(bytes)));
  std::vector<double> numbers(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) std::memcpy(&numbers[i], all[i].data(), sizeof(double));
  return numbers;
}

/// Which ranks are where.
struct Placement {
  int hosts = 1, per_host = 1;
  Host first;                ///< The host of rank 0.
  std::int64_t memory = 0;   ///< Of a rank, at least.
  double cores_of_rank = 0;  ///< At least; below 1 where ranks share cores.
};

Expected<Placement> place(Transport& transport) {
  const Host own = this_host();
  TASO_ASSIGN(const std::vector<std::string> names, transport.all_gather(own.name));
  TASO_ASSIGN(const std::vector<double> memory, gather(transport, static_cast<double>(own.memory)));
  TASO_ASSIGN(const std::vector<double> cores, gather(transport, static_cast<double>(own.cores)));
  Placement placement;
  placement.first = own;
  placement.first.name = names[0];
  Expected<HostGroups> groups = host_groups(names);
  if (!groups) return Error{groups.error().code, "--measure-links: " + groups.error().message, {}};
  placement.hosts = groups->hosts;
  placement.per_host = groups->per_host;
  placement.memory = static_cast<std::int64_t>(*std::min_element(memory.begin(), memory.end())) / placement.per_host;
  placement.cores_of_rank = *std::min_element(cores.begin(), cores.end()) / placement.per_host;
  return placement;
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Seconds of an exchange: every rank sends so many bytes to one rank and receives as many of another, as kernels do,
/// which copy what they send. The slowest rank counts.
Expected<double> time_exchange(Transport& transport, int to, int from, std::size_t bytes) {
  AlignedBuffer source(bytes), sink(bytes);
  std::memset(source.data(), 1, bytes);
  const int exchanges = std::clamp(static_cast<int>(bytes_of_sample / bytes), 1, exchanges_of_sample);
  std::vector<double> times;
  for (int sample = -1; sample < samples; ++sample) {  // one before, which is not counted
    TASO_RETURN_IF_ERROR(agree(transport, {}));
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < exchanges; ++i) {
      AlignedBuffer message = transport.buffer(bytes);
      std::memcpy(message.data(), source.data(), bytes);
      TASO_RETURN_IF_ERROR(transport.send(to, message_number, std::move(message)));
      TASO_RETURN_IF_ERROR(transport.receive(from, message_number, std::span(sink.data(), bytes)));
    }
    if (sample >= 0) times.push_back(seconds_since(begin) / exchanges);
  }
  std::sort(times.begin(), times.end());
  TASO_ASSIGN(const std::vector<double> all, gather(transport, quantile(times, 0.5)));
  return *std::max_element(all.begin(), all.end());
}

struct MeasuredLevel {
  MeshAxis axis;
  std::vector<MessageTime> times;
};

/// The links between ranks whose numbers differ by multiples of `stride`, of which `size` make a group.
Expected<MeasuredLevel> measure_level(Transport& transport, int size, int stride, const std::string& link) {
  const int rank = transport.rank(), index = rank / stride % size;
  const auto at = [&](int other) { return rank + (other % size - index) * stride; };
  MeasuredLevel level;
  for (const std::size_t bytes : message_sizes) {
    TASO_ASSIGN(const double seconds, time_exchange(transport, at(index + 1), at(index + size - 1), bytes));
    level.times.push_back({static_cast<double>(bytes), seconds});
  }
  const LinkFit fit = fit_link(level.times);
  level.axis = {.size = size, .link = link, .bandwidth = fit.bandwidth, .latency = fit.latency};
  return level;
}

/// How much a kernel does in a second, the slowest rank's, while it runs on all of them.
Expected<double> measure_rate(Transport& transport, const KernelLibrary& library, const KernelRequest& request,
                              double work) {
  TASO_RETURN_IF_ERROR(agree(transport, {}));
  KernelTimer timer(library);
  const Expected<Measurement> time = timer.measure(request);
  TASO_RETURN_IF_ERROR(agree(transport, time ? Status() : time.error()));
  TASO_ASSIGN(const std::vector<double> all, gather(transport, work / (time->median_us * 1e-6)));
  return *std::min_element(all.begin(), all.end());
}

KernelRequest request_of(const std::string& op, const std::vector<Shape>& inputs, const Shape& output, int threads) {
  KernelRequest request;
  request.op = op;
  for (const Shape& shape : inputs) request.inputs.push_back({.type = TensorType(ElementType::f32, shape)});
  request.outputs.push_back({.type = TensorType(ElementType::f32, output)});
  request.threads = threads;
  return request;
}

Expected<DeviceRates> measure_rates(Transport& transport, const Placement& placement, const OperatorRegistry& registry,
                                    int threads) {
  const KernelLibrary library(registry);
  constexpr std::int64_t n = 768, elements = std::int64_t{1} << 24;
  DeviceRates rates;
  rates.memory = placement.memory;
  TASO_ASSIGN(rates.flops, measure_rate(transport, library, request_of("matmul", {{n, n}, {n, n}}, {n, n}, threads),
                                        2.0 * n * n * n));
  TASO_ASSIGN(rates.memory_bandwidth,
              measure_rate(transport, library, request_of("relu", {{elements}}, {elements}, threads), 8.0 * elements));
  // The time of a kernel of one thread is that of its thread (runtime/measure.h): cores that ranks share are not seen.
  if (threads == 1 && placement.cores_of_rank < 1) {
    rates.flops *= placement.cores_of_rank;
    rates.memory_bandwidth *= placement.cores_of_rank;
  }
  return rates;
}

std::string table_of(const std::vector<MeasuredLevel>& levels, const DeviceRates& rates) {
  std::string text;
  for (const MeasuredLevel& level : levels) {
    text += fmt::format("{} ranks, {}: latency {:.2f} us, bandwidth {:.2f} GB/s\n{:>12} {:>12} {:>12}\n",
                        level.axis.size, level.axis.link, level.axis.latency * 1e6, level.axis.bandwidth * 1e-9,
                        "bytes", "measured us", "fitted us");
    for (const MessageTime& time : level.times)
      text += fmt::format("{:>12.0f} {:>12.2f} {:>12.2f}\n", time.bytes, time.seconds * 1e6,
                          (level.axis.latency + time.bytes / level.axis.bandwidth) * 1e6);
  }
  return text + fmt::format("a rank: {:.1f} GFLOP/s, {:.2f} GB/s of memory, {:.2f} GB\n", rates.flops * 1e-9,
                            rates.memory_bandwidth * 1e-9, static_cast<double>(rates.memory) * 1e-9);
}

/// --largest-message in bytes.
Expected<std::size_t> largest_message(const RunOptions& options) {
  constexpr double least = 16, most = 1 << 30;
  const Expected<double> size = parse_byte_size(options.largest_message);
  if (!size) return Error{ErrorCode::usage, "--largest-message: " + size.error().message, {}};
  if (*size < least || *size > most)
    return Error{ErrorCode::usage,
                 fmt::format("--largest-message {}: from {:.0f} bytes to 1GiB", options.largest_message, least),
                 {}};
  return static_cast<std::size_t>(*size);
}

/// What can be wrong from the start.
Status check_links_options(RunOptions& options, const Transport& transport, bool started_by_mpi) {
  if (!options.model.empty()) return Error{ErrorCode::usage, "--measure-links: no model is run; leave out MODEL", {}};
  if (options.device.device != "cpu")
    return Error{ErrorCode::usage, "--measure-links: ranks on the processor are measured; leave out --device", {}};
  if (started_by_mpi && options.ranks != 1)
    return Error{ErrorCode::usage, "--ranks: mpirun says how many ranks there are; leave it out", {}};
  TASO_ASSIGN([[maybe_unused]] const std::size_t largest, largest_message(options));
  if (!options.costs.empty() && !options.measure_collectives)
    return Error{ErrorCode::usage, "--costs: links stand in their file alone; give --measure-collectives, too", {}};
  return transport.rank() == 0 ? options.files.claim_all() : Status();
}

/// Opened by rank 0 before anything is measured.
Expected<std::optional<CostDatabase>> open_record(const RunOptions& options, const Transport& transport,
                                                  const KernelLibrary& library) {
  std::optional<CostDatabase> none;
  if (!options.measure_collectives || transport.rank() != 0) return none;
  const std::string path = options.costs.empty() ? default_cost_database_path() : options.costs;
  if (path.empty())
    return Error{ErrorCode::usage, "--measure-collectives: there is no home folder for costs; give --costs FILE", {}};
  const MeasuredRanks ranks{fmt::format("{}; threads={}", library.device(), options.threads), transport.size(),
                            transport.name(), transport.version()};
  TASO_ASSIGN(CostDatabase database, CostDatabase::open(path, ranks.identity(), CostDatabase::Mode::read_write));
  return std::optional(std::move(database));
}

Status record(CostDatabase& database, const std::vector<CollectiveMeasurement>& measured) {
  for (const CollectiveMeasurement& one : measured)
    for (const auto& [bytes, time] : one.times)
      TASO_RETURN_IF_ERROR(
          record_collective(database, {one.kind, one.groups.size, one.groups.link}, bytes, time.median_us * 1e-6));
  return {};
}

Expected<int> measure_as_rank(RunOptions& options, Transport& transport, bool started_by_mpi) {
  TASO_RETURN_IF_ERROR(agree(transport, check_links_options(options, transport, started_by_mpi)));
  const Expected<OperatorRegistry> registry = load_proved_operators(options.common);
  TASO_RETURN_IF_ERROR(agree(transport, registry ? Status() : registry.error()));
  const KernelLibrary library(*registry);
  Expected<std::optional<CostDatabase>> database = open_record(options, transport, library);
  TASO_RETURN_IF_ERROR(agree(transport, database ? Status() : database.error()));
  TASO_ASSIGN(MeasuredTopology measured, measure_topology(transport, *registry, options.threads));
  if (options.measure_collectives) {
    TASO_ASSIGN(const std::size_t largest, largest_message(options));
    TASO_ASSIGN(const std::vector<CollectiveMeasurement> collectives,
                measure_collectives(transport, *registry, options.threads,
                                    mesh_groups(measured.hosts, measured.per_host), largest));
    TASO_RETURN_IF_ERROR(agree(transport, *database ? record(**database, collectives) : Status()));
    measured.table += collectives_table(collectives);
  }
  const bool leads = transport.rank() == 0;
  TASO_RETURN_IF_ERROR(
      agree(transport, leads ? write_text(options.measure_links, topology_text(measured.topology)) : Status()));
  if (leads && !options.common.quiet && !options.files.claims().uses_stdout()) fmt::print("{}", measured.table);
  return 0;
}

}  // namespace

Expected<MeasuredTopology> measure_topology(Transport& transport, const OperatorRegistry& registry, int threads) {
  TASO_ASSIGN(const Placement placement, place(transport));
  std::vector<MeasuredLevel> levels;
  if (placement.hosts > 1) {
    TASO_ASSIGN(MeasuredLevel level, measure_level(transport, placement.hosts, placement.per_host, "network"));
    levels.push_back(std::move(level));
  }
  if (placement.per_host > 1) {
    TASO_ASSIGN(MeasuredLevel level, measure_level(transport, placement.per_host, 1, link_of_host));
    levels.push_back(std::move(level));
  }
  // A level is not slower than the one before: ranks that share a host may be, because they share its cores, too.
  if (levels.size() == 2) levels[0].axis.bandwidth = std::min(levels[0].axis.bandwidth, levels[1].axis.bandwidth);
  MeasuredTopology measured;
  Topology& topology = measured.topology;
  topology.name = fmt::format("measured-{}x{}", placement.hosts, placement.per_host);
  topology.source = fmt::format(
      "Measured by taso-run --measure-links: {} with {} each, {} of {}, through {}, {} of kernels a rank. Links: "
      "exchanges "
      "of {} B to {} MiB in both directions at once, least squares. Rates of a rank: a product and a relu of f32 on "
      "all "
      "ranks at once. Memory: that of the host, shared by its ranks.",
      placement.hosts == 1 ? "1 host" : fmt::format("{} hosts", placement.hosts),
      placement.per_host == 1 ? "1 rank" : fmt::format("{} ranks", placement.per_host), placement.first.name,
      KernelLibrary(registry).device(), transport.name(),
      threads == 1 ? "1 thread" : fmt::format("{} threads", threads), message_sizes.front(),
      message_sizes.back() >> 20);
  TASO_ASSIGN(topology.device, measure_rates(transport, placement, registry, threads));
  for (const MeasuredLevel& level : levels) topology.levels.push_back(level.axis);
  measured.hosts = placement.hosts;
  measured.per_host = placement.per_host;
  measured.table = table_of(levels, topology.device);
  return measured;
}

Expected<int> measure_links(RunOptions& options, Transport* ranks) {
  if (ranks != nullptr) return measure_as_rank(options, *ranks, true);
  std::vector<std::unique_ptr<Transport>> transports = make_thread_transports(options.ranks);
  std::vector<std::optional<Expected<int>>> results(transports.size());
  // Copied before any rank runs: the first claims its files in its options.
  std::vector<RunOptions> own(transports.size(), options);
  std::vector<std::thread> others;
  for (std::size_t rank = 1; rank < transports.size(); ++rank)
    others.emplace_back([&, rank] { results[rank] = measure_as_rank(own[rank], *transports[rank], false); });
  results[0] = measure_as_rank(options, *transports[0], false);
  for (std::thread& thread : others) thread.join();
  return *results[0];
}

}  // namespace taso::tools
