// build-models: writes an example model as an ONNX file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "examples/models/models.h"

int main(int argc, char** argv) {
  using namespace taso::examples;
  CLI::App app("Writes an example model with seeded random weights as an ONNX file.", "build-models");
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
  app.add_option("model", name, "Name of the model")->required()->check(CLI::IsMember(names));
  app.add_option("out", path, "File to write")->required();
  app.add_option("--seed", options.seed, "Seed of the weights (default 0)");
  app.add_option("--extent", options.extent, "Side of the image, or number of tokens")->check(CLI::PositiveNumber);
  app.add_option("--narrower", options.narrower, "Divide the numbers of channels by this")->check(CLI::PositiveNumber);
  app.add_option("--depth", options.depth, "Blocks per stage, layers or steps")->check(CLI::PositiveNumber);
  app.add_flag("--small", small, "The variant that tests use");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(taso::ErrorCode::usage);
  }

  const ExampleModel& model = *find_example_model(name);
  if (small) {
    const std::uint64_t seed = options.seed;
    options = model.small;
    options.seed = seed;
  }
  if (taso::Status status = model.build(options).save(path); !status) {
    std::fprintf(stderr, "build-models: %s\n", status.error().to_string().c_str());
    return status.error().exit_code();
  }
  return 0;
}
