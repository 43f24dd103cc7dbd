#include "runtime/cuda/estimate.h"

#include <algorithm>

#include "runtime/cuda/products.h"

namespace taso::cuda {
namespace {

constexpr double seconds_of_launch = 2e-6;
// Of one multiprocessor, in one cycle.
constexpr double bytes_per_cycle = 9;
constexpr double products_per_cycle = 64, tf32_products_per_cycle = 512, narrow_products_per_cycle = 1024;
/// Elements of a result that a block makes: a tile of a matrix, or 256 threads with four elements each...
constexpr double elements_of_tile = 64.0 * 64.0, elements_of_block = 1024;
/// ...and how many of those a multiprocessor holds.
constexpr double tiles_held = 1, blocks_held = 8;

double elements_of(const Operand& operand) { return static_cast<double>(operand.type.elements()); }

/// How many products are summed for one element of a matrix product's or convolution's result; 0 of others.
double products_per_element(const KernelRequest& request) {
  const KernelRequest* product = product_in(request);
  if (product != nullptr) {
    const std::vector<std::int64_t>& a = product->inputs[0].type.shape;
    return a.empty() ? 0 : static_cast<double>(a.back());
  }
  if (!request.op.starts_with("conv2d") || request.inputs.size() < 2) return 0;
  const std::vector<std::int64_t>& w = request.inputs[1].type.shape;
  return w.size() == 4 ? static_cast<double>(w[1] * w[2] * w[3]) : 0;
}

}  // namespace

StepCost estimate_cost(const KernelRequest& request, std::size_t launches, const Processors& processors) {
  double bytes = 0, made = 0;
  for (const std::vector<Operand>* operands : {&request.inputs, &request.outputs})
    for (const Operand& operand : *operands) bytes += static_cast<double>(operand.type.bytes());
  for (const Operand& output : request.outputs) made += elements_of(output);
  const double depth = products_per_element(request);
  const bool is_narrow = !request.outputs.empty() && size_of(request.outputs[0].type.element) < 4;
  const double blocks = made / (depth > 0 ? elements_of_tile : elements_of_block);
  const double held = (depth > 0 ? tiles_held : blocks_held) * processors.count;
  StepCost cost;
  cost.share = std::clamp(blocks / held, 1.0 / held, 1.0);
  const double products = is_narrow         ? narrow_products_per_cycle
                          : processors.tf32 ? tf32_products_per_cycle
                                            : products_per_cycle;
  const double cycles = std::max(bytes / bytes_per_cycle, made * depth / products);
  cost.seconds = static_cast<double>(launches) * seconds_of_launch +
                 cycles / (processors.count * cost.share * processors.clock_hz);
  return cost;
}

}  // namespace taso::cuda
