// draw_models FOLDER COUNT MESH...: random graphs (drawn_graphs.h) as ONNX models, each in FOLDER/NUMBER with a random
// plan, the plan written out as one model, and inputs: model.onnx, model.plan.json, model.expanded.onnx, NAME.npy. The
// meshes, as 4 or 2x2, take turns. Graphs are left out that ONNX has no form for, or with tensors without elements, of
// which models are not understood, and those that make much of the rounding of their inputs: the tangent near a pole.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "partition/proved_strategies.h"
#include "runtime/tensor.h"
#include "support/file.h"
#include "support/file_identity.h"
#include "tests/partition/changed_graphs.h"
#include "tests/partition/drawn_models.h"
#include "tests/partition/drawn_plans.h"
#include "tests/partition/host_tensors.h"
#include "tests/partition/stated_plans.h"
#include "tests/support/shipped.h"

namespace taso::test {
namespace {

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

/// Whether inputs that differ by as much as f32 rounds make results that differ by much more.
bool is_steep(const DrawnGraph& drawn) {
  std::vector<RingTensor<double>> moved = drawn.inputs;
  for (RingTensor<double>& input : moved)
    for (double& element : input.elements) element *= 1 + 0x1p-23;
  const std::vector<RingTensor<double>> outputs = outputs_of(drawn.graph, drawn.inputs),
                                        others = outputs_of(drawn.graph, moved);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    double difference = 0, size = 0;
    for (std::size_t at = 0; at < outputs[i].elements.size(); ++at) {
      const double x = outputs[i].elements[at], y = others[i].elements[at];
      difference += (x - y) * (x - y);
      size += x * x;
    }
    if (difference > 0x1p-38 * size) return true;  // 16 times as much
  }
  return false;
}

void write_inputs(const DrawnGraph& drawn, const std::string& folder) {
  for (std::size_t i = 0; i < drawn.inputs.size(); ++i) {
    const Node& input = drawn.graph.node(drawn.graph.inputs()[i]);
    check(write_npy(folder + "/" + input.name + ".npy", host_tensor(input.outputs[0], drawn.inputs[i])));
  }
}

void write_plan(const std::string& folder, DrawnModel& drawn, StrategyTable& strategies) {
  drawn.plan.exact = drawn.plan.complete = false;
  drawn.plan.lower_bound = 0;
  PlanDocument document = stated(drawn.graph, drawn.mesh, drawn.plan, strategies, node_names(drawn.model));
  document.model = value_of(identify_file(folder + "/model.onnx"));
  check(write_file_atomically(folder + "/model.plan.json", to_json(document)));
  check(write_expanded(drawn, strategies, folder + "/model.expanded.onnx"));
}

void write_models(const std::string& folder, std::uint64_t count, const std::vector<std::string>& meshes) {
  const ProvedStrategies proved =
      value_of(ProvedStrategies::load({TASO_SOURCE_DIR "/specs/strategies/default.rules"}, registry()));
  StrategyTable strategies(
      registry(), [&](std::string_view op) { return proved.of(op); },
      [&](std::string_view op) { return proved.passages_of(op); });
  for (std::uint64_t number = 0, written = 0; written < count; ++number) {
    const std::string place = folder + "/" + std::to_string(written);
    std::filesystem::create_directories(place);
    const Mesh mesh = mesh_of_sizes(sizes_of(meshes[written % meshes.size()]));
    std::optional<DrawnModel> drawn = draw_model(number, place, mesh, strategies);
    if (!drawn || is_steep(drawn->drawn)) continue;
    write_plan(place, *drawn, strategies);
    write_inputs(drawn->drawn, place);
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
