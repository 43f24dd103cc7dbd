// Example 6: a model file is optimized from beginning to end, as taso-opt does it.
//
// Costs are launches of kernels, as in example 3. With the default, measured time, the session measures what is not
// recorded.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "examples/models/models.h"
#include "examples/program.h"
#include "optimizer/report.h"
#include "session/session.h"

using namespace taso;

namespace {

Status optimize_in(const std::string& folder) {
  TASO_ASSIGN(const OperatorRegistry registry, OperatorRegistry::load(examples::specs("operators")));
  const KernelLibrary library(registry);

  SessionOptions options;
  options.model = folder + "/squeezenet1_1.onnx";
  options.rules.files = {examples::specs("rules") + "/default.rules"};
  TASO_ASSIGN(options.cost, parse_cost_formula("launches"));
  options.outputs.model = folder + "/optimized.onnx";
  options.outputs.certificate = certificate_path(options.outputs.model);
  options.outputs.json = folder + "/report.json";

  const examples::ExampleModel& example = *examples::find_example_model("squeezenet1_1");
  TASO_RETURN_IF_ERROR(example.build(example.small).save(options.model));

  TASO_ASSIGN(Session session, Session::open(options, registry, library));
  TASO_ASSIGN(const SessionResult result, session.optimize());
  TASO_ASSIGN(const SessionFiles files, session.write(result));
  std::printf("%s\n", report_text(result.optimized, files.context).c_str());
  for (const std::string& file : {options.outputs.model, options.outputs.certificate, options.outputs.json})
    std::printf("wrote %s: %ju bytes\n", file.c_str(), std::filesystem::file_size(file));
  if (!result.optimized.gain) return internal_error("there are fewer launches to be had");
  return {};
}

Status run() {
  namespace fs = std::filesystem;
  const fs::path folder = fs::temp_directory_path() / ("taso_example_06_" + std::to_string(getpid()));
  fs::create_directory(folder);
  const Status status = optimize_in(folder.string());
  fs::remove_all(folder);
  return status;
}

}  // namespace

int main() { return examples::exit_code(run()); }
