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

/// What a kernel computes besides moving its operands.
struct Products {
  double count = 0;
  bool in_tiles = false;  ///< By tiles of a matrix, on tensor cores where they can be used.
};

/// A convolution of every channel by itself is no product of matrices.
Products products_of_convolution(const KernelRequest& request) {
  if (!request.op.starts_with("conv2d") || request.inputs.size() < 2) return {};
  const std::vector<std::int64_t>&x = request.inputs[0].type.shape, &w = request.inputs[1].type.shape;
  if (x.size() != 4 || w.size() != 4) return {};
  const bool is_of_channels = w[1] == 1 && x[1] == w[0];
  return {elements_of(request.outputs[0]) * static_cast<double>(w[1] * w[2] * w[3]), !is_of_channels};
}

Products products_of(const KernelRequest& request) {
  if (const KernelRequest* product = product_in(request)) {
    const std::vector<std::int64_t>& a = product->inputs[0].type.shape;
    double made = 0;
    for (const Operand& output : request.outputs) made += elements_of(output);
    return {a.empty() ? 0 : made * static_cast<double>(a.back()), true};
  }
  if (!request.fused) return products_of_convolution(request);
  Products products;
  for (const FusedPart& part : request.fused->parts) products.count += products_of_convolution(part.request).count;
  return products;
}

bool has_totals(const KernelRequest& request) {
  const auto is_total = [](const KernelRequest& one) { return one.op.starts_with("reduce_"); };
  if (!request.fused) return is_total(request);
  return std::any_of(request.fused->parts.begin(), request.fused->parts.end(),
                     [&](const FusedPart& part) { return is_total(part.request); });
}

/// Elements that threads have to take: those that are made or, as the threads of a block compute one element together
/// where it is a total of many, those that they are made of.
double elements_taken(const KernelRequest& request) {
  double made = 0, read = 0, largest = 0, totals = 0;
  for (const Operand& input : request.inputs) {
    read += elements_of(input);
    largest = std::max(largest, elements_of(input));
  }
  for (const Operand& output : request.outputs) {
    made += elements_of(output);
    totals += std::min(largest, elements_of(output) * elements_of_block);
  }
  return has_totals(request) ? std::max(made, std::min(read, totals)) : made;
}

}  // namespace

StepCost estimate_cost(const KernelRequest& request, std::size_t launches, const Processors& processors) {
  double bytes = 0, made = 0;  // elements
  for (const std::vector<Operand>* operands : {&request.inputs, &request.outputs})
    for (const Operand& operand : *operands) bytes += static_cast<double>(operand.type.bytes());
  for (const Operand& output : request.outputs) made += elements_of(output);
  const Products products = products_of(request);
  const bool is_narrow = !request.outputs.empty() && size_of(request.outputs[0].type.element) < 4;
  const double blocks = products.in_tiles ? made / elements_of_tile : elements_taken(request) / elements_of_block;
  const double held = (products.in_tiles ? tiles_held : blocks_held) * processors.count;
  StepCost cost;
  cost.share = std::clamp(blocks / held, 1.0 / held, 1.0);
  const double per_cycle = !products.in_tiles ? products_per_cycle
                           : is_narrow        ? narrow_products_per_cycle
                           : processors.tf32  ? tf32_products_per_cycle
                                              : products_per_cycle;
  const double cycles = std::max(bytes / bytes_per_cycle, products.count / per_cycle);
  cost.seconds = static_cast<double>(launches) * seconds_of_launch +
                 cycles / (processors.count * cost.share * processors.clock_hz);
  return cost;
}

}  // namespace taso::cuda
