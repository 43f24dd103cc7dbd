// How often a graph is called faster than itself: models, each timed whole against a copy of itself as taso-opt times a
// candidate against the baseline. None of the gains that this claims is true.
//
//   bench/false_gains [REPEAT] MODEL.onnx ...

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <vector>

#include "onnx_io/model.h"
#include "operators/registry.h"
#include "optimizer/runtime_target.h"
#include "runtime/kernel.h"
#include "support/status.h"
#include "tools/specs.h"

namespace taso {
namespace {

Expected<int> count(const std::vector<std::string>& models, int repeat) {
  tools::CommonOptions common;
  common.specs = tools::default_specs();
  TASO_ASSIGN(const OperatorRegistry registry, tools::load_operators(common));
  const KernelLibrary library(registry);
  int gains = 0, runs = 0;
  for (const std::string& path : models) {
    TASO_ASSIGN(const Model model, Model::load(path, registry));
    for (int i = 0; i < repeat; ++i) {
      RuntimeTarget target(library, {.threads = 1, .cancelled = {}});
      const TimedGraph graphs[] = {{&model.graph(), nullptr, {}, true}, {&model.graph(), nullptr, {}, false}};
      TASO_ASSIGN(const GraphTimes times, target.measure_graphs(graphs));
      const double noise = times.final ? times.final->noise : times.noise;
      const bool gain = times.seconds[1] < times.seconds[0] * (1 - noise);
      gains += gain ? 1 : 0;
      ++runs;
      fmt::print("{:<50} {:>10.3f} ms {:>+7.2f} % of it for its copy, noise {:.2f} %{}\n", path, times.seconds[0] * 1e3,
                 100 * (times.seconds[1] / times.seconds[0] - 1), 100 * noise, gain ? "  a false gain" : "");
    }
  }
  fmt::print("{} false gains in {} runs\n", gains, runs);
  return 0;
}

}  // namespace
}  // namespace taso

int main(int argc, char** argv) {
  std::vector<std::string> models(argv + 1, argv + argc);
  int repeat = 1;
  if (!models.empty() &&
      std::from_chars(models[0].data(), models[0].data() + models[0].size(), repeat).ec == std::errc())
    models.erase(models.begin());
  const taso::Expected<int> done = taso::count(models, repeat);
  if (!done) fmt::print(stderr, "{}\n", done.error().to_string());
  return done ? 0 : 1;
}
