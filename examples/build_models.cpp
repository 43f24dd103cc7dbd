// build-models: writes an example model, or a graph given as text, as an ONNX file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string>

#include "examples/models/models.h"
#include "graph/graph_text.h"
#include "onnx_io/model.h"
#include "support/file.h"
#include "tools/proved_specs.h"

namespace {

using namespace taso;  // NOLINT(google-build-using-namespace)

/// Writes the graph of a text file (graph/graph_text.h). It is put into a model with its inputs and outputs that one
/// node of an unknown domain connects: saving a model writes the graph that is given, not the one that was read.
Status write_graph(const std::string& path, const std::string& out, const tools::CommonOptions& options,
                   const SaveOptions& save) {
  TASO_ASSIGN(const OperatorRegistry registry, tools::load_proved_operators(options));
  TASO_ASSIGN(const std::string text, read_file(path));
  TASO_ASSIGN(const Graph graph, parse_graph(text, path, registry));
  ModelBuilder frame(17, std::filesystem::path(path).stem().string());
  frame.add_opset("frame", 1);
  std::vector<std::string> inputs, outputs;
  for (const NodeId id : graph.inputs()) {
    const Node& input = graph.node(id);
    frame.add_input(input.name, input.outputs[0].shape, input.outputs[0].element);
    inputs.push_back(input.name);
  }
  for (const Value& output : graph.outputs()) {
    outputs.push_back("out" + std::to_string(outputs.size()));
    frame.add_output(outputs.back(), graph.type(output).shape, graph.type(output).element);
  }
  frame.add_node("Frame", inputs, outputs, {}, "frame", "frame");
  TASO_ASSIGN(const Model model, Model::parse(frame.serialize(), path, registry));
  TASO_ASSIGN([[maybe_unused]] const SaveReport report, model.save(graph, out, save));
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  using namespace taso::examples;
  CLI::App app(
      "Writes an example model with seeded random weights, or a graph given as text (FILE.graph), as an ONNX file.",
      "build-models");
  std::string name;
  std::string path;
  ModelOptions options;
  bool small = false;
  std::string list = "\nModels:\n";
  std::vector<std::string> names;
  for (const ExampleModel& model : example_models()) {
    names.emplace_back(model.name);
    list += "  " + std::string(model.name) + ": " + std::string(model.description) + "\n";
  }
  app.footer(list);
  tools::CommonOptions specs;
  specs.specs = tools::default_specs();
  const auto is_graph = [](const std::string& text) { return std::filesystem::path(text).extension() == ".graph"; };
  app.add_option("model", name, "Name of the model, or a file *.graph")
      ->required()
      ->check([&](const std::string& text) { return is_graph(text) ? std::string() : CLI::IsMember(names)(text); });
  app.add_option("--add-specs", specs.added_specs, "Folder of more specifications, for a graph (repeatable)")
      ->type_name("DIR")
      ->allow_extra_args(false);
  app.add_option("out", path, "File to write")->required();
  SaveOptions save;
  app.add_flag("--external-data", save.external_data, "For a graph: weights of 1024 bytes and more go to OUT.data");
  app.add_option("--seed", options.seed, "Seed of the weights (default 0)");
  app.add_option("--extent", options.extent, "Side of the image, or number of tokens")->check(CLI::PositiveNumber);
  app.add_option("--narrower", options.narrower, "Divide the numbers of channels by this")->check(CLI::PositiveNumber);
  app.add_option("--depth", options.depth, "Blocks per stage, layers or steps")->check(CLI::PositiveNumber);
  app.add_option("--batch", options.batch, "Images or sequences at a time (default 1)")->check(CLI::PositiveNumber);
  app.add_option("--wider", options.wider, "Multiply the numbers of channels by this (ResNets, AlexNet, VGG, lstm)")
      ->check(CLI::PositiveNumber);
  app.add_flag("--without-weights", options.without_weights,
               "Write no weights, only their types: such a file can be planned with, not run");
  app.add_flag("--small", small, "The variant that tests use");
  app.add_option_function<std::int64_t>(
         "--list-below",
         [](std::int64_t megabytes) {
           for (const ExampleModel& model : example_models())
             if (model.megabytes < megabytes) std::printf("%s\n", std::string(model.name).c_str());
           throw CLI::Success();
         },
         "Print the names of the models whose weights take less than so many megabytes, and exit")
      ->type_name("MB")
      ->trigger_on_parse();
  app.add_flag_callback(
         "--list",
         [&] {
           for (const std::string& each : names) std::printf("%s\n", each.c_str());
           throw CLI::Success();
         },
         "Print the names of the models, one a line, and exit")
      ->trigger_on_parse();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(taso::ErrorCode::usage);
  }

  if (is_graph(name)) {
    const Status status = write_graph(name, path, specs, save);
    return status ? 0 : tools::fail("build-models", status.error());
  }
  const ExampleModel& model = *find_example_model(name);
  if (small) {
    const ModelOptions given = options;
    options = model.small;
    options.seed = given.seed;
    options.batch = given.batch;
    options.without_weights = given.without_weights;
  }
  const bool as_published = options.depth == 0 && options.narrower == 0;
  if (model.is_large() && as_published && !options.without_weights)
    return tools::fail("build-models", bad_input("the weights of " + name + " are more than a model file can hold; " +
                                                 "give --without-weights, --small, --depth or --narrower"));
  if (taso::Status status = model.build(options).save(path); !status) {
    std::fprintf(stderr, "build-models: %s\n", status.error().to_string().c_str());
    return status.error().exit_code();
  }
  return 0;
}
