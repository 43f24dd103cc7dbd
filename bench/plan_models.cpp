// Plans of models for several devices, as a table. bench/partition.md has the figures.
//
//   plan_models [--memory SIZE]... [--cuts] [--apart] TOPOLOGY.json MESH|default MODEL ...
//
// A model is a file (its weights need not be there), or an example model that is built here without weights, with
// options: resnet152:wider=4:batch=8, llama_7b:extent=512 (--extent and so on of build-models). --memory: plans keep
// to so much per device ("none": to nothing); a row each. --cuts: how products are cut and what is added up, beside
// Megatron's cut, data parallelism and one device. --apart: products are taken apart first
// (partition/products_apart.h).
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/read_model.h"
#include "graph/rewrite.h"
#include "partition/plan_baselines.h"
#include "partition/planner.h"
#include "partition/products_apart.h"
#include "partition/proved_strategies.h"
#include "partition/topology.h"
#include "support/byte_size.h"
#include "tools/specs.h"

namespace {

using namespace taso;

/// The greatest resident memory of this process so far.
double resident_mb() {
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

/// What the command line asks for.
struct Request {
  std::vector<std::optional<double>> memory;  ///< A row each.
  bool cuts = false, apart = false;
  std::string topology, mesh;
  std::vector<std::string> models;
};

/// A model on a mesh, to be planned.
struct Subject {
  std::string name;
  const Graph& graph;
  const Mesh& mesh;
  StrategyTable& strategies;
  std::optional<double> memory;
};

Expected<std::string> plan_row(const Subject& subject) {
  const auto start = std::chrono::steady_clock::now();
  PlannerOptions options;
  options.memory = subject.memory;
  Planner planner(subject.graph, subject.mesh, subject.strategies, std::move(options));
  TASO_ASSIGN(const PartitionPlan plan, planner.plan());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  TASO_ASSIGN(const PartitionPlan repeated, planner.plan(only_repeat()));
  TASO_ASSIGN(const PartitionPlan data, planner.plan(only_data_parallel(subject.graph)));
  const bool whole = plan.exact && plan.complete;
  return fmt::format("| {} | {} | {:.1f} | {:.1f} | {:.2f} | {:.1f} | {:.1f} | {} | {} | {} | {:.2f} | {:.0f} |\n",
                     subject.name, subject.mesh.to_string(), plan.seconds * 1e6, plan.transfer_seconds * 1e6,
                     plan.transfer_bytes * 1e-6, repeated.seconds * 1e6, data.seconds * 1e6, whole ? "yes" : "no",
                     plan.order.width, plan.decisions, seconds, resident_mb());
}

constexpr const char* plan_header =
    "| model | mesh | us | of it moving | MB moved | all repeated, us | data parallel, us | exact | M | decisions | "
    "s to plan | MB |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";

/// A sequence in which what follows itself is written once: {a, b, a, b} is "2 x (a, b)".
std::string folded(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t at = 0; at < words.size();) {
    std::size_t length = 1, times = 1;
    for (std::size_t period = 1; at + 2 * period <= words.size(); ++period) {
      std::size_t same = 0;
      while (at + period + same < words.size() && words[at + same] == words[at + period + same]) ++same;
      if (same / period + 1 > 1 && (same / period + 1) * period > times * length) {
        length = period;
        times = same / period + 1;
      }
    }
    std::string part;
    for (std::size_t i = 0; i < length; ++i) part += (i == 0 ? "" : ", ") + words[at + i];
    if (times > 1) part = length == 1 ? fmt::format("{} x {}", times, part) : fmt::format("{} x ({})", times, part);
    text += (text.empty() ? "" : ", ") + part;
    at += length * times;
  }
  return text;
}

bool is_product(const Node& node) { return node.is_op("matmul") || node.is_op("matmul_bias_act"); }

/// How products are cut, in the order in which they run.
std::string products_of(const Graph& graph, const PartitionPlan& plan) {
  std::vector<std::string> words;
  for (const PlannedNode& node : plan.nodes)
    if (is_product(graph.node(node.node))) words.push_back(node.configuration.to_string());
  return folded(words);
}

/// How many values are made as partial results and added up.
std::size_t sums_of(const PartitionPlan& plan) {
  std::size_t count = 0;
  for (const PlannedNode& node : plan.nodes)
    count += std::any_of(node.configuration.axes.begin(), node.configuration.axes.end(),
                         [](const AxisUse& use) { return use.kind == AxisUse::Kind::cut && !use.reducer.empty(); });
  return count;
}

std::string time_and_weights(const PartitionPlan& plan) {
  return fmt::format("{:.1f} | {:.1f}", plan.seconds * 1e6, plan.weight_bytes * 1e-6);
}

/// The best plan in which products with weights are cut as a baseline cuts them, and everything else as is best.
ConfigurationFilter products_only(const Graph& graph, const ConfigurationFilter& allowed) {
  return [&graph, allowed](NodeId id, const NodeConfiguration& configuration) {
    const Node& node = graph.node(id);
    const bool has_weights = std::any_of(node.inputs.begin(), node.inputs.end(),
                                         [&](const Value& value) { return graph.node(value.node).weight_only; });
    return !is_product(node) || !has_weights || allowed(id, configuration);
  };
}

Expected<std::string> cuts_row(const Subject& subject) {
  PlannerOptions options;
  options.memory = subject.memory;
  Planner planner(subject.graph, subject.mesh, subject.strategies, std::move(options));
  const Expected<PartitionPlan> plan = planner.plan();
  std::string text = fmt::format("| {} | {} |", subject.name,
                                 subject.memory ? byte_size_text(*subject.memory, false) : std::string("any"));
  if (!plan) return text + " " + plan.error().message + " |\n";
  const std::string bound =
      plan->exact && plan->complete ? "yes" : fmt::format("at least {:.1f}", plan->lower_bound * 1e6);
  text += fmt::format(" {} | {:.1f} | {} | {} |", time_and_weights(*plan), plan->transfer_seconds * 1e6, sums_of(*plan),
                      bound);
  const PieceCost cost = roofline(subject.strategies.registry(), subject.mesh.device);
  for (const PlanBaseline& baseline : plan_baselines(subject.graph, subject.mesh, planner, cost, subject.strategies)) {
    if (baseline.name != "Megatron") continue;
    if (!baseline.impossible.empty()) {
      text += " | | |";
      continue;
    }
    TASO_ASSIGN(const PartitionPlan products, planner.plan(products_only(subject.graph, baseline.allowed)));
    TASO_ASSIGN(const PartitionPlan all, planner.plan(baseline.allowed));
    text += fmt::format(" {:.1f} | {} |", products.seconds * 1e6, time_and_weights(all));
  }
  TASO_ASSIGN(const PartitionPlan data, planner.plan(only_data_parallel(subject.graph)));
  TASO_ASSIGN(const PartitionPlan repeated, planner.plan(only_repeat()));
  return text + fmt::format(" {} | {} | {} |\n", time_and_weights(data), time_and_weights(repeated),
                            products_of(subject.graph, *plan));
}

constexpr const char* cuts_header =
    "| model | memory | us | MB of weights | of it moving, us | sums | exact | products as Megatron's, us | "
    "Megatron, us | MB of weights | data parallel, us | MB of weights | all repeated, us | MB of weights | products |\n"
    "|---|---|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---|\n";

Status run(const Request& request) {
  tools::CommonOptions common;
  common.specs = tools::default_specs();
  TASO_ASSIGN(const OperatorRegistry registry, tools::load_operators(common));
  TASO_ASSIGN(const std::vector<std::string> files, tools::strategy_files(common));
  TASO_ASSIGN(const ProvedStrategies proved, ProvedStrategies::load(files, registry));
  TASO_ASSIGN(const Topology topology, load_topology(request.topology));
  Mesh mesh = default_mesh(topology);
  if (request.mesh != "default") {
    TASO_ASSIGN(mesh, parse_mesh(request.mesh, topology));
  }
  fmt::print("{}", request.cuts ? cuts_header : plan_header);
  for (const std::string& file : request.models) {
    TASO_ASSIGN(const Model model, read_model(file, registry));
    Graph graph = model.graph();
    normalize(graph, registry);
    StrategyTable strategies(
        registry, [&](std::string_view op) { return proved.of(op); },
        [&](std::string_view op) { return proved.passages_of(op); });
    if (request.apart) {
      TASO_ASSIGN(graph, products_apart(graph, strategies));
      graph = split_products_apart(graph, strategies);
      normalize(graph, registry);
    }
    for (const std::optional<double>& memory : request.memory) {
      const Subject subject{std::filesystem::path(file).stem().string(), graph, mesh, strategies, memory};
      TASO_ASSIGN(const std::string text, request.cuts ? cuts_row(subject) : plan_row(subject));
      fmt::print("{}", text);
      std::fflush(stdout);
    }
  }
  return {};
}

/// Nothing where it is not as the source's first lines say.
std::optional<Request> parse(int count, char** arguments) {
  Request request;
  int at = 1;
  for (; at < count && std::string_view(arguments[at]).starts_with("--"); ++at) {
    const std::string_view word = arguments[at];
    if (word == "--cuts") {
      request.cuts = true;
    } else if (word == "--apart") {
      request.apart = true;
    } else if (word == "--memory" && at + 1 < count) {
      const std::string_view text = arguments[++at];
      const Expected<double> size = parse_byte_size(text);
      if (!size && text != "none") return std::nullopt;
      request.memory.push_back(size ? std::optional<double>(*size) : std::nullopt);
    } else {
      return std::nullopt;
    }
  }
  if (count - at < 3) return std::nullopt;
  request.topology = arguments[at];
  request.mesh = arguments[at + 1];
  request.models.assign(arguments + at + 2, arguments + count);
  if (request.memory.empty()) request.memory.emplace_back();
  return request;
}

}  // namespace

int main(int count, char** arguments) {
  const std::optional<Request> request = parse(count, arguments);
  if (!request) {
    fmt::print(stderr,
               "usage: plan_models [--memory SIZE|none]... [--cuts] [--apart] TOPOLOGY.json MESH|default MODEL ...\n");
    return 2;
  }
  const Status status = run(*request);
  if (status) return 0;
  fmt::print(stderr, "{}\n", status.error().to_string());
  return status.error().exit_code();
}
