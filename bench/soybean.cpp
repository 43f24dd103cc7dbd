// SoyBean's tilings: its example by its formula and exactly, what conversions cost, and its networks in training
// against data parallelism. bench/partition.md has the figures.
//
//   soybean [example] [conversions] [networks]
//
// No word: all. Megabytes are 10^6 bytes, received by all devices together.
#include "partition/soybean.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bench/training_networks.h"
#include "partition/piece_costs.h"
#include "partition/soybean_baselines.h"
#include "tools/specs.h"

namespace {

using namespace taso;

/// A training step for a batch.
using Network =
    std::function<Expected<TrainingNetwork>(std::int64_t batch, const GradientSpecifications& specifications)>;

Network mlp(std::int64_t width) {
  return [width](std::int64_t batch, const GradientSpecifications& specifications) {
    return perceptron_in_training(batch, std::vector<std::int64_t>(5, width), specifications);
  };
}
Network cnn(std::int64_t filters, std::int64_t size) {
  return [=](std::int64_t batch, const GradientSpecifications& specifications) {
    return convolutions_in_training(5, filters, size, batch, specifications);
  };
}
Network example(std::string name, std::int64_t wider) {
  return [=](std::int64_t batch, const GradientSpecifications& specifications) {
    examples::ModelOptions options;
    options.batch = batch;
    options.wider = wider;
    return example_in_training(name, options, Loss::cross_entropy, specifications);
  };
}

struct Row {
  std::string name;
  Network network;
  std::vector<std::int64_t> batches;
  std::vector<std::size_t> cuts;
};

std::vector<Row> rows() {
  return {{"MLP, 4 x 8192", mlp(8192), {512, 2048}, {1, 2, 3}},
          {"MLP, 4 x 12288", mlp(12288), {2048}, {1, 2, 3}},
          {"CNN, 6 x 6, 2048 filters", cnn(2048, 6), {256}, {1, 2, 3}},
          {"CNN, 24 x 24, 512 filters", cnn(512, 24), {256}, {1, 2, 3}},
          {"AlexNet", example("alexnet", 1), {32, 64, 128, 256, 512, 1024, 2048}, {3}},
          {"AlexNet, 2 x wider", example("alexnet", 2), {256, 1024}, {3}},
          {"VGG-19", example("vgg19", 1), {32, 64, 128, 256, 512}, {3}},
          {"VGG-19, 2 x wider", example("vgg19", 2), {64, 256}, {3}}};
}

// A GPU of the paper's machine (GK210: data sheet of NVIDIA's Tesla K80, half of it, boosted), and what the paper says
// of its links: 20 GB/s in both directions together.
constexpr DeviceRates device{12'000'000'000, 4.37e12, 240e9};
constexpr double link = 10e9;

/// A training step: which of its values are weights, and which have examples.
struct Step {
  SoybeanOptions options;
  ExampleAxes axes;
};

Step step_of(const TrainingNetwork& network, StrategyTable& strategies) {
  Step step;
  step.options.same = network.step.weights;
  const std::vector<Value>& weights = network.groups.weights;
  const Graph& graph = network.step.graph;
  std::vector<Value> examples;
  for (const NodeId id : graph.inputs()) {
    const Value input{id, 0};
    const bool is_weight = std::find(weights.begin(), weights.end(), input) != weights.end();
    if (!is_weight && !graph.type(input).shape.empty()) examples.push_back(input);  // not the learning rate
  }
  step.axes = example_axes(graph, strategies, examples);
  return step;
}

/// Seconds of a step: the pieces of a device one after the other by its rates, then all that moves.
Expected<double> seconds_of(SoybeanTiler& tiler, const SoybeanPlan& plan, const OperatorRegistry& registry) {
  const PieceCost cost = roofline(registry, device);
  double seconds = plan.bytes / (static_cast<double>(std::size_t{1} << plan.cuts) * link);
  for (const OperatorPiece& piece : tiler.pieces(plan)) {
    TASO_ASSIGN(const double part, cost(piece, std::vector<bool>(piece.inputs.size(), false)));
    seconds += part;
  }
  return seconds;
}

std::string megabytes(double bytes) { return fmt::format("{:.1f}", bytes / 1e6); }

Status print_row(const Row& row, std::int64_t batch, std::size_t cuts, const GradientSpecifications& specifications) {
  const OperatorRegistry& registry = specifications.registry;
  TASO_ASSIGN(const TrainingNetwork network, row.network(batch, specifications));
  StrategyTable strategies(
      registry, [&](std::string_view op) { return derive_strategies(registry, op).strategies; },
      [](std::string_view) { return std::vector<PartialPassage>(); });
  const Step step = step_of(network, strategies);
  const auto start = std::chrono::steady_clock::now();
  TASO_ASSIGN(SoybeanTiler tiler, SoybeanTiler::make(network.step.graph, strategies, step.options));
  const SoybeanPlan plan = tiler.recursive(cuts);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const SoybeanPlan best = tiler.exact(cuts);
  const auto restricted = [&](auto restriction) -> Expected<SoybeanPlan> {
    TASO_ASSIGN(SoybeanTiler one, SoybeanTiler::make(network.step.graph, strategies,
                                                     restriction(network.step.graph, step.axes, step.options)));
    return one.recursive(cuts);
  };
  TASO_ASSIGN(const SoybeanPlan data, restricted(data_parallelism));
  TASO_ASSIGN(const SoybeanPlan model, restricted(model_parallelism));
  TASO_ASSIGN(const double alone, seconds_of(tiler, tiler.recursive(0), registry));
  TASO_ASSIGN(const double with_data, seconds_of(tiler, data, registry));
  TASO_ASSIGN(const double with_plan, seconds_of(tiler, plan, registry));
  std::string by_cut;
  for (const double bytes : plan.cut_bytes) by_cut += (by_cut.empty() ? "" : ", ") + megabytes(bytes);
  fmt::print("| {} | {} | {} | {} | {} | {} | {} | {} | {:.2f} | {}{} | {} | {} | {:.1f} | {:.1f} |\n", row.name, batch,
             std::size_t{1} << cuts, megabytes(network.weights * 4), megabytes(data.bytes), megabytes(model.bytes),
             megabytes(plan.bytes), by_cut, seconds, megabytes(best.bytes),
             best.exact ? "" : fmt::format(" (at least {})", megabytes(best.lower_bound)),
             megabytes(tiler.price(data, SoybeanPrice::payload)), megabytes(tiler.price(plan, SoybeanPrice::payload)),
             alone / with_data, alone / with_plan);
  std::fflush(stdout);
  return {};
}

Status print_networks(const GradientSpecifications& specifications) {
  fmt::print(
      "| network | batch | devices | weights, MB | data parallel, MB | batch uncut, MB | SoyBean, MB | by cut, in one "
      "group | s | all cuts at once, MB | payload, data parallel | payload, SoyBean | faster, data parallel | faster, "
      "SoyBean |\n|---|---:|---:|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|\n");
  for (const Row& row : rows())
    for (const std::int64_t batch : row.batches)
      for (const std::size_t cuts : row.cuts) TASO_RETURN_IF_ERROR(print_row(row, batch, cuts, specifications));
  return {};
}

/// Five layers of 300 neurons, 400 examples, 16 devices (section 2.2).
Status print_example(const GradientSpecifications& specifications) {
  const OperatorRegistry& registry = specifications.registry;
  constexpr double weights = 300.0 * 300 * 5 * 4, activations = 400.0 * 300 * 5 * 4;
  fmt::print("| groups | devices in each | | formula, MB | exact, MB |\n|---:|---:|---|---:|---:|\n");
  for (const double groups : {16, 8, 4, 2, 1})
    fmt::print("| {:.0f} | {:.0f} | {} | {:.1f} | {:.1f} |\n", groups, 16 / groups,
               groups == 16  ? "data parallelism"
               : groups == 1 ? "model parallelism"
                             : "hybrid",
               parallelism_bytes(weights, activations, groups, 16, CountedCopies::all) / 1e6,
               parallelism_bytes(weights, activations, groups, 16, CountedCopies::others) / 1e6);
  TASO_ASSIGN(const TrainingNetwork network,
              perceptron_in_training(400, std::vector<std::int64_t>(6, 300), specifications));
  StrategyTable strategies(
      registry, [&](std::string_view op) { return derive_strategies(registry, op).strategies; },
      [](std::string_view) { return std::vector<PartialPassage>(); });
  const Step step = step_of(network, strategies);
  TASO_ASSIGN(SoybeanTiler tiler, SoybeanTiler::make(network.step.graph, strategies, step.options));
  TASO_ASSIGN(SoybeanTiler data, SoybeanTiler::make(network.step.graph, strategies,
                                                    data_parallelism(network.step.graph, step.axes, step.options)));
  const SoybeanPlan plan = tiler.recursive(4), best = tiler.exact(4), batch = data.recursive(4);
  fmt::print("\nAs a graph: data parallelism {} MB; Algorithm 1 {} MB; all cuts at once {} MB{}\n",
             megabytes(batch.bytes), megabytes(plan.bytes), megabytes(best.bytes),
             best.exact ? "" : ", at least " + megabytes(best.lower_bound));
  fmt::print("payload: data parallelism {} MB; Algorithm 1 {} MB\n",
             megabytes(data.price(batch, SoybeanPrice::payload)), megabytes(tiler.price(plan, SoybeanPrice::payload)));
  return {};
}

/// Of a matrix of S bytes on two devices.
void print_conversions() {
  constexpr BasicTiling row{BasicTiling::Kind::cut, 0}, column{BasicTiling::Kind::cut, 1}, whole{},
      red{BasicTiling::Kind::reduced};
  fmt::print("| from | R | C | r |\n|---|---:|---:|---:|\n");
  for (const BasicTiling& from : {row, column, whole, red})
    fmt::print("| {} | {} S | {} S | {} S |\n", from.to_string(2), conversion_bytes(from, row, 1),
               conversion_bytes(from, column, 1), conversion_bytes(from, whole, 1));
}

Status run(const std::set<std::string_view>& sections) {
  tools::CommonOptions common;
  common.specs = tools::default_specs();
  TASO_ASSIGN(const OperatorRegistry shipped, tools::load_operators(common));
  TASO_ASSIGN(const auto specifications, GradientSpecifications::load(common.specs + "/gradients", shipped));
  const auto wanted = [&](std::string_view section) { return sections.empty() || sections.contains(section); };
  if (wanted("example")) TASO_RETURN_IF_ERROR(print_example(*specifications));
  if (wanted("conversions")) print_conversions();
  return wanted("networks") ? print_networks(*specifications) : Status();
}

}  // namespace

int main(int count, char** arguments) {
  const std::set<std::string_view> sections(arguments + 1, arguments + count);
  for (const std::string_view section : sections)
    if (section != "example" && section != "conversions" && section != "networks") {
      fmt::print(stderr, "usage: soybean [example] [conversions] [networks]\n");
      return 2;
    }
  const Status status = run(sections);
  if (status) return 0;
  fmt::print(stderr, "{}\n", status.error().to_string());
  return status.error().exit_code();
}
