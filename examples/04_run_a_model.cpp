// Example 4: an ONNX model is built, loaded and run.
#include <cstdio>
#include <string>

#include "examples/models/models.h"
#include "examples/program.h"
#include "onnx_io/model.h"
#include "runtime/executor.h"

using namespace taso;

namespace {

Status run() {
  TASO_ASSIGN(const OperatorRegistry registry, OperatorRegistry::load(examples::specs("operators")));

  // A small SqueezeNet. Model::load would read it from a file.
  const examples::ExampleModel& example = *examples::find_example_model("squeezenet1_1");
  const std::string bytes = example.build(example.small).serialize();
  TASO_ASSIGN(const Model model, Model::parse(bytes, "squeezenet1_1.onnx", registry));
  for (const TensorDeclaration& input : model.inputs())
    std::printf("input %s: %s\n", input.name.c_str(), to_string(input.type).c_str());

  // The executor turns the graph into kernels, lays out the weights and plans the memory once; each run is then only
  // the kernels.
  const KernelLibrary library(registry);
  TASO_ASSIGN(Executor executor, Executor::create(model.graph(), library));
  std::printf("%zu kernels, %zu KiB of weights, %zu KiB for intermediate tensors\n", executor.launches(),
              executor.weight_bytes() / 1024, executor.arena_bytes() / 1024);
  const std::vector<HostTensor> inputs = executor.random_inputs(1);
  TASO_ASSIGN(const std::vector<HostTensor> outputs, executor.run(inputs));
  std::printf("first scores: %.4f %.4f %.4f\n", outputs[0].floats()[0], outputs[0].floats()[1], outputs[0].floats()[2]);

  // The same by the operators' definitions, in double: what every kernel is compared with.
  const KernelLibrary reference(registry, KernelSet::reference);
  TASO_ASSIGN(Executor slow, Executor::create(model.graph(), reference));
  TASO_ASSIGN(const std::vector<HostTensor> expected, slow.run(inputs));
  const Difference difference = compare(outputs[0], expected[0], 1e-4, 1e-6);
  std::printf("largest difference from the definitions: %.1e of %.3f\n", difference.max_absolute,
              difference.reference_maximum);
  if (!difference.comparable || difference.violations > 0) return internal_error("kernels and definitions disagree");
  return {};
}

}  // namespace

int main() { return examples::exit_code(run()); }
