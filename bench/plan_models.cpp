// Plans of models for several devices, as a table: plan_models TOPOLOGY.json MESH|default MODEL ...
//
// A model is a file (its weights need not be there), or an example model that is built here without weights, with
// options: resnet152:wider=4:batch=8, llama_7b:extent=512 (--extent and so on of build-models).
#include <fmt/format.h>
#include <sys/resource.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>

#include "examples/models/models.h"
#include "graph/rewrite.h"
#include "onnx_io/model.h"
#include "partition/plan_baselines.h"
#include "partition/planner.h"
#include "partition/proved_strategies.h"
#include "partition/topology.h"
#include "tools/specs.h"

namespace {

using namespace taso;

/// A model from a file, or an example model.
Expected<Model> read_model(const std::string& text, const OperatorRegistry& registry) {
  const ImportOptions import{.input_shapes = {}, .symbol_sizes = {}, .absent_weights = true};
  std::size_t end = text.find(':');
  const examples::ExampleModel* const example = examples::find_example_model(text.substr(0, end));
  if (example == nullptr) return Model::load(text, registry, import);
  examples::ModelOptions options;
  options.without_weights = true;
  const std::map<std::string, std::int64_t*, std::less<>> known = {{"batch", &options.batch},
                                                                   {"depth", &options.depth},
                                                                   {"extent", &options.extent},
                                                                   {"narrower", &options.narrower},
                                                                   {"wider", &options.wider}};
  while (end != std::string::npos) {
    const std::size_t begin = end + 1;
    end = text.find(':', begin);
    const std::string option = text.substr(begin, end == std::string::npos ? end : end - begin);
    const std::size_t equals = option.find('=');
    const auto place = known.find(option.substr(0, equals));
    if (place == known.end() || equals == std::string::npos)
      return Error{ErrorCode::usage, fmt::format("{}: '{}' is no option of example models", text, option), {}};
    std::from_chars(option.data() + equals + 1, option.data() + option.size(), *place->second);
  }
  return Model::parse(example->build(options).serialize(), text, registry, import);
}

/// The greatest resident memory of this process so far.
double resident_mb() {
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

Expected<std::string> row(const Mesh& mesh, const std::string& file, const OperatorRegistry& registry,
                          const ProvedStrategies& proved) {
  TASO_ASSIGN(const Model model, read_model(file, registry));
  Graph graph = model.graph();
  normalize(graph, registry);
  StrategyTable strategies(
      registry, [&](std::string_view op) { return proved.of(op); },
      [&](std::string_view op) { return proved.passages_of(op); });
  const auto start = std::chrono::steady_clock::now();
  Planner planner(graph, mesh, strategies, {});
  TASO_ASSIGN(const PartitionPlan plan, planner.plan());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  TASO_ASSIGN(const PartitionPlan repeated, planner.plan(only_repeat()));
  TASO_ASSIGN(const PartitionPlan data, planner.plan(only_data_parallel(graph)));
  const bool whole = plan.exact && plan.complete;
  return fmt::format("| {} | {} | {:.1f} | {:.1f} | {:.2f} | {:.1f} | {:.1f} | {} | {} | {} | {:.2f} | {:.0f} |\n",
                     std::filesystem::path(file).stem().string(), mesh.to_string(), plan.seconds * 1e6,
                     plan.transfer_seconds * 1e6, plan.transfer_bytes * 1e-6, repeated.seconds * 1e6,
                     data.seconds * 1e6, whole ? "yes" : "no", plan.order.width, plan.decisions, seconds,
                     resident_mb());
}

Status run(int count, char** arguments) {
  tools::CommonOptions common;
  common.specs = tools::default_specs();
  TASO_ASSIGN(const OperatorRegistry registry, tools::load_operators(common));
  TASO_ASSIGN(const std::vector<std::string> files, tools::strategy_files(common));
  TASO_ASSIGN(const ProvedStrategies proved, ProvedStrategies::load(files, registry));
  TASO_ASSIGN(const Topology topology, load_topology(arguments[1]));
  Mesh mesh = default_mesh(topology);
  if (arguments[2] != std::string("default")) {
    TASO_ASSIGN(mesh, parse_mesh(arguments[2], topology));
  }
  fmt::print(
      "| model | mesh | us | of it moving | MB moved | all repeated, us | data parallel, us | exact | M | decisions | "
      "s to plan | MB |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (int i = 3; i < count; ++i) {
    TASO_ASSIGN(const std::string text, row(mesh, arguments[i], registry, proved));
    fmt::print("{}", text);
  }
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) {
    fmt::print(stderr, "usage: plan_models TOPOLOGY.json MESH|default MODEL ...\n");
    return 2;
  }
  const Status status = run(count, arguments);
  if (status) return 0;
  fmt::print(stderr, "{}\n", status.error().to_string());
  return status.error().exit_code();
}
