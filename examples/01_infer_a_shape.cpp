// Example 1: an operator's definition, asked what it computes.
//
// Operators are not compiled in: they are text files (specs/operators/*.op) that say, index by index, what the outputs
// are. From such a text follow types, error messages, the amount of work, and values.
#include <cstdio>

#include "examples/program.h"
#include "operators/evaluate.h"
#include "operators/instance.h"
#include "operators/registry.h"

using namespace taso;

namespace {

Status run() {
  TASO_ASSIGN(const OperatorRegistry registry, OperatorRegistry::load(examples::specs("operators")));
  std::printf("%zu operators are defined\n", registry.names().size());

  // A convolution of a 56 x 56 image of 64 channels with 128 filters. Attributes that are not given have defaults.
  const TensorType image{ElementType::f32, {1, 64, 56, 56}};
  const TensorType filters{ElementType::f32, {128, 64, 3, 3}};
  TASO_ASSIGN(const Attributes attributes,
              registry.complete("conv2d", Attributes{{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}}));
  const TensorType inputs[] = {image, filters};
  TASO_ASSIGN(const std::vector<TensorType> outputs, registry.infer("conv2d", attributes, inputs));
  TASO_ASSIGN(const Work work, registry.work("conv2d", attributes, inputs));
  std::printf("conv2d: %s, %s -> %s; %.1f MFLOP\n", to_string(image).c_str(), to_string(filters).c_str(),
              to_string(outputs[0]).c_str(), work.flops / 1e6);

  // The constraints of a definition are numbered. What breaks one is an error value, not an exception.
  const TensorType wrong[] = {image, TensorType{ElementType::f32, {128, 48, 3, 3}}};
  const auto refused = registry.infer("conv2d", attributes, wrong);
  if (refused) return internal_error("a filter of 48 channels was accepted");
  std::printf("refused: %s\n", refused.error().message.c_str());

  // The same definition is evaluated over any ring; here over double, the reference for all kernels.
  const TensorType row{ElementType::f32, {1, 3}};
  const TensorType matrix{ElementType::f32, {3, 2}};
  const TensorType operands[] = {row, matrix};
  TASO_ASSIGN(const OperatorInstance product, OperatorInstance::create(registry, "matmul", {}, operands));
  const RingTensor<double> a{row.shape, {1, 2, 3}, {}};
  const RingTensor<double> b{matrix.shape, {1, 0, 0, 1, 10, 100}, {}};
  const RingTensor<double>* values[] = {&a, &b};
  DoubleRing ring;
  TASO_ASSIGN(const auto result, evaluate(product, ring, values));
  std::printf("[1 2 3] * [[1 0] [0 1] [10 100]] = [%g %g]\n", result[0].elements[0], result[0].elements[1]);
  if (result[0].elements != std::vector<double>{31, 302}) return internal_error("the product is wrong");
  return {};
}

}  // namespace

int main() { return examples::exit_code(run()); }
