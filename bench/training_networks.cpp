#include "bench/training_networks.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "graph/graph_text.h"
#include "onnx_io/model.h"

namespace taso {
namespace {

std::size_t operators_of(const Graph& graph) {
  std::size_t count = 0;
  for (const NodeId id : graph.topological_order()) count += graph.node(id).kind == NodeKind::op ? 1 : 0;
  return count;
}

Expected<TrainingNetwork> in_training(TrainableGraph network, Loss wanted,
                                      const GradientSpecifications& specifications) {
  const Value output = network.graph.outputs().at(0);
  TASO_ASSIGN(const Value loss, wanted == Loss::cross_entropy
                                    ? add_cross_entropy(network.graph, specifications.registry, output)
                                    : add_squared_error(network.graph, specifications.registry, output, "target"));
  network.graph.set_outputs({loss});
  TrainingNetwork result;
  result.forward = operators_of(network.graph);
  TASO_ASSIGN(result.step, gradient_descent_step(network.graph, loss, network.weights, specifications.registry,
                                                 specifications.table));
  result.groups.weights = network.weights;
  for (const Value weight : network.weights)
    result.weights += static_cast<double>(network.graph.type(weight).elements());
  return result;
}

}  // namespace

Expected<std::unique_ptr<const GradientSpecifications>> GradientSpecifications::load(const std::string& folder,
                                                                                     const OperatorRegistry& base) {
  auto result = std::make_unique<GradientSpecifications>();
  TASO_ASSIGN(result->registry, OperatorRegistry::load(folder + "/operators", &base));
  TASO_ASSIGN(result->table, GradientTable::load(folder, result->registry));
  TASO_ASSIGN(result->rules, load_rules(folder + "/training.rules", result->registry));
  return std::unique_ptr<const GradientSpecifications>(std::move(result));
}

Expected<TrainingNetwork> example_in_training(std::string_view name, examples::ModelOptions options, Loss loss,
                                              const GradientSpecifications& specifications) {
  const examples::ExampleModel* example = examples::find_example_model(name);
  if (example == nullptr) return bad_input(fmt::format("there is no example model '{}'", name));
  options.without_weights = true;
  const ImportOptions import{.input_shapes = {}, .symbol_sizes = {}, .absent_weights = true};
  TASO_ASSIGN(const Model model,
              Model::parse(example->build(options).serialize(), std::string(name), specifications.registry, import));
  TASO_ASSIGN(TrainableGraph network,
              trainable(model.graph(), specifications.registry, specifications.table, specifications.rules));
  return in_training(std::move(network), loss, specifications);
}

Expected<TrainingNetwork> wide_resnet_in_training(std::int64_t layers, std::int64_t width, std::int64_t batch,
                                                  const GradientSpecifications& specifications) {
  examples::ModelOptions options;
  options.wider = width;
  options.batch = batch;
  return example_in_training(fmt::format("resnet{}", layers), options, Loss::cross_entropy, specifications);
}

Expected<TrainingNetwork> lstm_in_training(std::int64_t layers, std::int64_t units, std::int64_t batch,
                                           std::int64_t steps, const GradientSpecifications& specifications) {
  if (units % 1024 != 0 && 1024 % units != 0)
    return bad_input(fmt::format("{} units are neither a multiple of 1,024 nor a part of it", units));
  examples::ModelOptions options;
  options.depth = layers;
  options.batch = batch;
  options.extent = steps;
  options.wider = units >= 1024 ? units / 1024 : 0;
  options.narrower = units < 1024 ? 1024 / units : 0;
  return example_in_training("lstm", options, Loss::squared_error, specifications);
}

Expected<TrainingNetwork> perceptron_in_training(std::int64_t batch, const std::vector<std::int64_t>& units,
                                                 const GradientSpecifications& specifications) {
  std::string inputs = fmt::format("input x0 f32[{}, {}]\n", batch, units[0]), lines, last = "x0";
  for (std::size_t l = 1; l < units.size(); ++l) {
    inputs += fmt::format("input w{0} f32[{1}, {2}]\ninput b{0} f32[{2}]\n", l, units[l - 1], units[l]);
    const std::string sum =
        fmt::format("add(matmul({}, w{}), broadcast(b{}; shape=[{}, {}]))", last, l, l, batch, units[l]);
    last = fmt::format("x{}", l);
    lines += l + 1 < units.size() ? fmt::format("{} = relu({})\n", last, sum) : fmt::format("{} = {}\n", last, sum);
  }
  TrainableGraph network;
  TASO_ASSIGN(network.graph,
              parse_graph(inputs + lines + "output " + last + "\n", "perceptron", specifications.registry));
  for (std::size_t i = 1; i < network.graph.inputs().size(); ++i)
    network.weights.push_back({network.graph.inputs()[i], 0});
  return in_training(std::move(network), Loss::cross_entropy, specifications);
}

Expected<TrainingNetwork> convolutions_in_training(std::int64_t layers, std::int64_t filters, std::int64_t size,
                                                   std::int64_t batch, const GradientSpecifications& specifications) {
  std::string inputs = fmt::format("input x0 f32[{0}, {1}, {2}, {2}]\n", batch, filters, size), lines;
  for (std::int64_t l = 1; l <= layers; ++l) {
    inputs += fmt::format("input w{} f32[{}, {}, 3, 3]\n", l, filters, filters);
    lines += fmt::format("x{} = relu(conv2d(x{}, w{}; pads=[1, 1, 1, 1]))\n", l, l - 1, l);
  }
  TrainableGraph network;
  TASO_ASSIGN(network.graph, parse_graph(inputs + lines + fmt::format("output x{}\n", layers), "convolutions",
                                         specifications.registry));
  for (std::size_t i = 1; i < network.graph.inputs().size(); ++i)
    network.weights.push_back({network.graph.inputs()[i], 0});
  return in_training(std::move(network), Loss::squared_error, specifications);
}

}  // namespace taso
