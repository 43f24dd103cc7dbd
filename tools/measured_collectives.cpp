#include "tools/measured_collectives.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "graph/graph.h"
#include "partition/mesh.h"
#include "runtime/executor.h"
#include "runtime/kernel.h"
#include "runtime/rank_executor.h"

namespace taso::tools {
namespace {

constexpr std::int64_t element_bytes = 4;
constexpr std::string_view copy_kind = "copy", send_kind = "send", neighbor_kind = "neighbor";
constexpr std::array<std::string_view, 4> exchanges = {"reduce_scatter", "all_gather", "all_to_all", neighbor_kind};
/// Samples of a round: so many that they move so many bytes, within bounds.
constexpr double bytes_of_round = 64 << 20;
constexpr int fewest_samples = 11, most_samples = 101, most_rounds = 3;
constexpr double most_spread = 0.15;

/// A box of so many elements whose rows are apart: as square as can be.
Shape square(std::int64_t elements) {
  std::int64_t rows = 1;
  while (rows * rows * 4 <= elements) rows *= 2;
  return {rows, elements / rows};
}

class ProgramBuilder {
 public:
  ProgramBuilder(const RankGroups& groups, int rank, const OperatorRegistry& registry)
      : groups_(groups), rank_(rank), registry_(registry) {}

  Expected<CollectiveProgram> run(const std::string& kind, std::int64_t elements) {
    const std::int64_t others = groups_.size - 1, bytes = elements * element_bytes;
    program_.bytes = static_cast<double>(bytes);
    if (kind == "reduce_scatter") {
      TASO_RETURN_IF_ERROR(reduce_scatter(elements));
    } else if (kind == "all_gather") {
      program_.bytes *= static_cast<double>(others);
      TASO_RETURN_IF_ERROR(all_gather(elements));
    } else if (kind == "all_to_all") {
      program_.bytes *= static_cast<double>(others);
      TASO_RETURN_IF_ERROR(all_to_all(square(elements)));
    } else {
      TASO_CHECK(kind == neighbor_kind, "a kind of collective that there is not");
      own({elements});
      receive({elements}, previous());
      send(own_, next());
      result(received_[0]);
    }
    for (const Value& value : outputs_) program_.graph.graph.add_output(value);
    return std::move(program_);
  }

 private:
  [[nodiscard]] int next() const { return groups_.at(rank_, (groups_.place(rank_) + 1) % groups_.size); }
  [[nodiscard]] int previous() const {
    return groups_.at(rank_, (groups_.place(rank_) + groups_.size - 1) % groups_.size);
  }
  [[nodiscard]] static TensorType floats(const Shape& shape) { return {ElementType::f32, shape}; }

  void own(const Shape& shape) { own_ = {program_.graph.graph.add_input("own", floats(shape)), 0}; }
  /// A message between two ranks has the number of the one that sends it.
  void receive(const Shape& shape, int from) {
    const TensorType type = floats(shape);
    received_.push_back({program_.graph.graph.add_input(fmt::format("received {}", from), type), 0});
    program_.graph.received.push_back({static_cast<std::uint32_t>(from), from, 0, type.bytes(), 0});
  }
  void send(Value value, int to) {
    program_.graph.sent.push_back(
        {static_cast<std::uint32_t>(rank_), to, 0, program_.graph.graph.type(value).bytes(), 0});
    outputs_.push_back(value);
  }
  void result(Value value) { outputs_.push_back(value); }

  [[nodiscard]] Expected<Value> apply(std::string_view op, Attributes attributes, std::vector<Value> inputs) {
    TASO_ASSIGN(const NodeId node,
                add_op(program_.graph.graph, registry_, op, std::move(attributes), std::move(inputs)));
    return Value{node, 0};
  }
  [[nodiscard]] Expected<Value> box(Value of, const Shape& starts, const Shape& sizes) {
    Attributes attributes;
    attributes.set("starts", starts);
    attributes.set("sizes", sizes);
    attributes.set("steps", Shape(starts.size(), 1));
    return apply("slice", std::move(attributes), {of});
  }
  [[nodiscard]] Expected<Value> joined(std::vector<Value> parts) {
    if (parts.size() == 1) return parts[0];
    Attributes attributes;
    attributes.set("axis", std::int64_t{-1});
    return apply("concat", std::move(attributes), std::move(parts));
  }
  template <class Each>
  Status for_others(const Each& each) {
    for (int place = 0; place < groups_.size; ++place)
      if (place != groups_.place(rank_)) TASO_RETURN_IF_ERROR(each(place, groups_.at(rank_, place)));
    return {};
  }

  /// Of a tensor with a row per rank everybody gets the sum of one row.
  Status reduce_scatter(std::int64_t elements) {
    own({groups_.size, elements});
    TASO_RETURN_IF_ERROR(for_others([&](int /*place*/, int other) -> Status {
      receive({1, elements}, other);
      return {};
    }));
    TASO_RETURN_IF_ERROR(for_others([&](int place, int other) -> Status {
      TASO_ASSIGN(const Value row, box(own_, {place, 0}, {1, elements}));
      send(row, other);
      return {};
    }));
    TASO_ASSIGN(Value sum, box(own_, {groups_.place(rank_), 0}, {1, elements}));
    for (const Value& summand : received_) {
      TASO_ASSIGN(sum, apply("add", {}, {sum, summand}));
    }
    result(sum);
    return {};
  }

  Status all_gather(std::int64_t elements) {
    own({elements});
    TASO_RETURN_IF_ERROR(for_others([&](int /*place*/, int other) -> Status {
      receive({elements}, other);
      send(own_, other);
      return {};
    }));
    TASO_ASSIGN(const Value all, joined(received_));
    result(all);
    return {};
  }

  /// Everybody has columns and gets rows: a box of rows of its columns goes to each of the others, and their columns of
  /// its rows come beside a column of its own.
  Status all_to_all(const Shape& sizes) {
    own({sizes[0] * 2, sizes[1] * 2});
    TASO_RETURN_IF_ERROR(for_others([&](int /*place*/, int other) -> Status {
      receive(sizes, other);
      TASO_ASSIGN(const Value part, box(own_, {sizes[0], sizes[1]}, sizes));
      send(part, other);
      return {};
    }));
    std::vector<Value> columns = received_;
    TASO_ASSIGN(const Value column, box(own_, {0, 0}, {sizes[0], 1}));
    columns.push_back(column);
    TASO_ASSIGN(const Value all, joined(std::move(columns)));
    result(all);
    return {};
  }

  const RankGroups& groups_;
  int rank_;
  const OperatorRegistry& registry_;
  CollectiveProgram program_;
  Value own_;
  std::vector<Value> received_, outputs_;
};

/// The same numbers of every rank, by rank.
Expected<std::vector<std::array<double, 2>>> gather(Transport& transport, std::array<double, 2> own) {
  std::string bytes(sizeof(own), '\0');
  std::memcpy(bytes.data(), own.data(), sizeof(own));
  TASO_ASSIGN(const std::vector<std::string> all, transport.all_gather(std::move(bytes)));
  std::vector<std::array<double, 2>> numbers(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) std::memcpy(numbers[i].data(), all[i].data(), sizeof(own));
  return numbers;
}

/// What a run of a program took: one number per time that is asked for, in microseconds.
template <class Run>
Expected<std::vector<Measurement>> measure(Transport& transport, double bytes, std::size_t times, const Run& run) {
  const int samples =
      static_cast<int>(std::clamp<double>(bytes_of_round / std::max(bytes, 1.0), fewest_samples, most_samples));
  std::vector<std::vector<double>> us(times);
  std::vector<Measurement> measured(times);
  for (int round = 0; round < most_rounds; ++round) {
    TASO_RETURN_IF_ERROR(agree(transport, {}));
    for (int sample = -2; sample < samples; ++sample) {  // two before, which are not counted
      TASO_ASSIGN(const std::vector<double> one, run());
      for (std::size_t i = 0; i < times && sample >= 0; ++i) us[i].push_back(one[i]);
    }
    double widest = 0;
    for (std::size_t i = 0; i < times; ++i) {
      const Measurement own = summarize(us[i]);
      TASO_ASSIGN(const auto all, gather(transport, {own.median_us, own.spread}));
      measured[i] = own;
      for (const auto& [median, spread] : all) {
        measured[i].median_us = std::max(measured[i].median_us, median);
        measured[i].spread = std::max(measured[i].spread, spread);
      }
      widest = std::max(widest, measured[i].spread);
    }
    for (Measurement& one : measured) one.steady = widest <= most_spread;
    if (widest <= most_spread) break;
  }
  return measured;
}

double us_between(const StepTime& from, const StepTime& to) {
  return std::chrono::duration<double, std::micro>(to.end - from.start).count();
}

std::vector<HostTensor> tensors_of(const std::vector<TensorType>& types) {
  std::vector<HostTensor> tensors;
  for (const TensorType& type : types) {
    tensors.emplace_back(type);
    std::memset(tensors.back().bytes().data(), 1, tensors.back().bytes().size());  // every page is there
  }
  return tensors;
}

class CollectiveTimer {
 public:
  CollectiveTimer(Transport& transport, const OperatorRegistry& registry, int threads)
      : transport_(transport), registry_(registry), library_(registry), threads_(threads) {}

  /// Also of the part of the sender, where `send` is given.
  Status time(CollectiveMeasurement& collective, std::int64_t elements, CollectiveMeasurement* send) {
    double bytes = 0;
    Expected<RankExecutor> made = prepare(collective, elements, bytes);
    TASO_RETURN_IF_ERROR(agree(transport_, made ? Status() : made.error()));
    RankExecutor& executor = *made;
    std::size_t sender = 0;
    const std::vector<LoweredStep>& steps = executor.executor().lowered().steps;
    while (sender + 1 < steps.size() && steps[sender].kernel->request.op != send_op) ++sender;
    TASO_ASSIGN(
        const std::vector<Measurement> measured, measure(transport_, bytes, 2, [&]() -> Expected<std::vector<double>> {
          std::vector<StepTime> times;
          TASO_RETURN_IF_ERROR(executor.run_timed(times));
          return std::vector<double>{us_between(times.front(), times.back()), us_between(times[sender], times[sender])};
        }));
    collective.times[bytes] = measured[0];
    if (send != nullptr) send->times[bytes] = measured[1];
    return {};
  }

  /// Cutting a box out of a tensor, by every rank for itself.
  Status time_copy(CollectiveMeasurement& copy, std::int64_t elements) {
    const Shape sizes = square(elements);
    Expected<Executor> made = prepare_copy(sizes);
    TASO_RETURN_IF_ERROR(agree(transport_, made ? Status() : made.error()));
    const std::vector<HostTensor> inputs = tensors_of(made->input_types());
    std::vector<HostTensor> outputs = tensors_of(made->output_types());
    const auto bytes = static_cast<double>(elements * element_bytes);
    TASO_ASSIGN(const std::vector<Measurement> measured,
                measure(transport_, bytes, 1, [&]() -> Expected<std::vector<double>> {
                  TASO_ASSIGN(const std::vector<StepTime> times, made->run_timed(inputs, outputs));
                  return std::vector<double>{us_between(times.front(), times.back())};
                }));
    copy.times[bytes] = measured[0];
    return {};
  }

 private:
  [[nodiscard]] Expected<RankExecutor> prepare(const CollectiveMeasurement& collective, std::int64_t elements,
                                               double& bytes) {
    TASO_ASSIGN(const CollectiveProgram program,
                collective_program(collective.kind, elements, collective.groups, transport_.rank(), registry_));
    bytes = program.bytes;
    ExecutorOptions options;
    options.threads = threads_;
    TASO_ASSIGN(RankExecutor executor, RankExecutor::create(program.graph, transport_, library_, options));
    std::vector<TensorType> types = executor.executor().input_types();
    types.pop_back();  // What messages depend on.
    TASO_RETURN_IF_ERROR(executor.set_inputs(tensors_of(types)));
    return executor;
  }

  [[nodiscard]] Expected<Executor> prepare_copy(const Shape& sizes) {
    Graph graph;
    const Value own{graph.add_input("own", {ElementType::f32, {sizes[0], sizes[1] * 2}}), 0};
    Attributes attributes;
    attributes.set("starts", Shape{0, sizes[1]});
    attributes.set("sizes", sizes);
    attributes.set("steps", Shape{1, 1});
    TASO_ASSIGN(const NodeId box, add_op(graph, registry_, "slice", std::move(attributes), {own}));
    graph.add_output({box, 0});
    ExecutorOptions options;
    options.threads = threads_;
    return Executor::create(graph, library_, options);
  }

  Transport& transport_;
  const OperatorRegistry& registry_;
  KernelLibrary library_;
  int threads_;
};

}  // namespace

Expected<CollectiveProgram> collective_program(const std::string& kind, std::int64_t elements, const RankGroups& groups,
                                               int rank, const OperatorRegistry& registry) {
  return ProgramBuilder(groups, rank, registry).run(kind, elements);
}

Expected<std::vector<CollectiveMeasurement>> measure_collectives(Transport& transport, const OperatorRegistry& registry,
                                                                 int threads, const std::vector<RankGroups>& groups,
                                                                 std::size_t most_bytes) {
  CollectiveTimer timer(transport, registry, threads);
  std::vector<CollectiveMeasurement> measured;
  const auto largest = static_cast<std::int64_t>(most_bytes) / element_bytes;
  for (const RankGroups& group : groups) {
    for (const std::string_view kind : exchanges) {
      CollectiveMeasurement one{std::string(kind), group, {}}, send{std::string(send_kind), group, {}};
      CollectiveMeasurement* const sender = kind == neighbor_kind ? &send : nullptr;
      for (std::int64_t elements = 1; elements * (group.size - 1) <= largest; elements *= 2)
        TASO_RETURN_IF_ERROR(timer.time(one, elements, sender));
      measured.push_back(std::move(one));
      if (sender != nullptr) measured.push_back(std::move(send));
    }
  }
  CollectiveMeasurement copy{std::string(copy_kind), {}, {}};
  for (std::int64_t elements = 4; elements <= largest; elements *= 2)  // a box with several rows
    TASO_RETURN_IF_ERROR(timer.time_copy(copy, elements));
  measured.push_back(std::move(copy));
  return measured;
}

std::vector<RankGroups> mesh_groups(int hosts, int per_host) {
  std::vector<RankGroups> groups;
  for (const auto& [size, stride, link] : {std::tuple(hosts, per_host, "network"), {per_host, 1, link_of_host}})
    for (int part = 2; part <= size; ++part)
      if (size % part == 0) groups.push_back({part, stride, link});
  return groups;
}

std::string collectives_table(const std::vector<CollectiveMeasurement>& measured) {
  std::string text;
  for (const CollectiveMeasurement& one : measured) {
    text += one.groups.size == 1 ? fmt::format("{}\n", one.kind)
                                 : fmt::format("{} among {} over {}\n", one.kind, one.groups.size, one.groups.link);
    text += fmt::format("{:>12} {:>12} {:>12} {:>8} {:>8}\n", "bytes", "median us", "minimum us", "spread", "samples");
    for (const auto& [bytes, time] : one.times)
      text += fmt::format("{:>12.0f} {:>12.2f} {:>12.2f} {:>7.1f}% {:>8}{}\n", bytes, time.median_us, time.minimum_us,
                          time.spread * 100, time.samples, time.steady ? "" : "  unsteady");
  }
  return text;
}

}  // namespace taso::tools
