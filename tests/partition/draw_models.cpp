// draw_models FOLDER COUNT MESH...: random graphs (drawn_graphs.h) as ONNX models, each in FOLDER/NUMBER with a random
// plan, the plan written out as one model, and inputs: model.onnx, model.plan.json, model.expanded.onnx, NAME.npy. The
// meshes, as 4 or 2x2, take turns. Graphs are left out that ONNX has no form for, or with tensors without elements, of
// which models are not understood.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "graph/rewrite.h"
#include "partition/expand.h"
#include "partition/proved_strategies.h"
#include "runtime/tensor.h"
#include "support/file.h"
#include "support/file_identity.h"
#include "tests/onnx_io/carrier.h"
#include "tests/partition/drawn_graphs.h"
#include "tests/partition/drawn_plans.h"
#include "tests/partition/host_tensors.h"
#include "tests/partition/stated_plans.h"
#include "tests/partition/ways_to_plan.h"

namespace taso::test {
namespace {

constexpr int opset = 17;

std::vector<std::int64_t> sizes_of(const std::string& mesh) {
  std::vector<std::int64_t> sizes;
  for (std::size_t begin = 0; begin <= mesh.size();) {
    const std::size_t end = std::min(mesh.find('x', begin), mesh.size());
    sizes.push_back(std::stoll(mesh.substr(begin, end - begin)));
    begin = end + 1;
  }
  return sizes;
}

void check(const Status& status) {
  if (!status) throw std::runtime_error(status.error().to_string());
}

void write_inputs(const DrawnGraph& drawn, const std::string& folder) {
  for (std::size_t i = 0; i < drawn.inputs.size(); ++i) {
    const Node& input = drawn.graph.node(drawn.graph.inputs()[i]);
    check(write_npy(folder + "/" + input.name + ".npy", host_tensor(input.outputs[0], drawn.inputs[i])));
  }
}

/// The graph as a file; false where it has no form as one, or not all of it is understood as it is read again.
bool write_graph(const Graph& graph, const std::string& path) {
  if (!carrier(graph, opset).save(graph, path)) return false;
  return value_of(Model::load(path, registry())).carried_nodes().empty();
}

/// The plan is of the model as it is read again.
void write_plan(const std::string& folder, const Mesh& mesh, StrategyTable& strategies, std::uint64_t seed) {
  const Model model = value_of(Model::load(folder + "/model.onnx", registry()));
  Graph graph = model.graph();
  normalize(graph, registry());
  PartitionPlan plan = *plan_in_way(ways_to_plan()[seed % 2], graph, mesh, strategies, seed);
  plan.exact = plan.complete = false;
  plan.lower_bound = 0;
  PlanDocument document = stated(graph, mesh, plan, strategies, node_names(model));
  document.model = value_of(identify_file(folder + "/model.onnx"));
  check(write_file_atomically(folder + "/model.plan.json", to_json(document)));
  value_of(model.save(on_one_device(value_of(expand(graph, plan, strategies))), folder + "/model.expanded.onnx"));
}

void write_models(const std::string& folder, std::uint64_t count, const std::vector<std::string>& meshes) {
  const ProvedStrategies proved =
      value_of(ProvedStrategies::load({TASO_SOURCE_DIR "/specs/strategies/default.rules"}, registry()));
  StrategyTable strategies(
      registry(), [&](std::string_view op) { return proved.of(op); },
      [&](std::string_view op) { return proved.passages_of(op); });
  for (std::uint64_t number = 0, written = 0; written < count; ++number) {
    const DrawnGraph drawn = draw_graph(number);
    const std::string place = folder + "/" + std::to_string(written);
    std::filesystem::create_directories(place);
    if (!write_graph(drawn.graph, place + "/model.onnx")) continue;
    write_plan(place, mesh_of_sizes(sizes_of(meshes[written % meshes.size()])), strategies, number);
    write_inputs(drawn, place);
    ++written;
  }
}

}  // namespace
}  // namespace taso::test

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: draw_models FOLDER COUNT MESH...\n");
    return 2;
  }
  try {
    taso::test::write_models(argv[1], std::strtoull(argv[2], nullptr, 10), {argv + 3, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "draw_models: %s\n", error.what());
    return 1;
  }
  return 0;
}
