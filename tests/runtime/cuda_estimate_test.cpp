// What kernels are believed to cost: a model, by what it must say of small and large ones.
#include <gtest/gtest.h>

#include "runtime/cuda/estimate.h"
#include "runtime/independent_requests.h"

namespace taso::testing {
namespace {

Operand plain_operand(Shape shape, ElementType element = ElementType::f32) {
  return {{element, std::move(shape), true}, Layout::row_major, false};
}

KernelRequest square_product(std::int64_t extent, ElementType element = ElementType::f32) {
  const Operand matrix = plain_operand({extent, extent}, element);
  return {"matmul", {}, {matrix, matrix}, {matrix}, 1};
}

KernelRequest element_wise(std::int64_t elements) {
  return {"relu", {}, {plain_operand({elements})}, {plain_operand({elements})}, 1};
}

TEST(CudaEstimate, SmallKernelsLeaveRoomAndLargeOnesFillTheDevice) {
  const cuda::Processors processors{132, 1.98e9, false};
  for (const KernelRequest& small : {square_product(64), element_wise(100)}) {
    const StepCost cost = cuda::estimate_cost(small, 1, processors);
    EXPECT_GT(cost.share, 0);
    EXPECT_LT(cost.share, 0.02);
    EXPECT_GT(cost.seconds, 2e-6);
    EXPECT_LT(cost.seconds, 1e-5);
    EXPECT_NEAR(cuda::estimate_cost(small, 3, processors).seconds - cost.seconds, 4e-6, 1e-12) << "launches take time";
  }
  for (const KernelRequest& large : {square_product(4096), element_wise(1 << 26)})
    EXPECT_EQ(cuda::estimate_cost(large, 1, processors).share, 1);
}

TEST(CudaEstimate, FollowsTheDeviceAndTheArithmetic) {
  const cuda::Processors large{132, 1.98e9, false}, small{66, 1.98e9, false}, tf32{132, 1.98e9, true};
  const auto seconds = [](const KernelRequest& request, const cuda::Processors& processors) {
    return cuda::estimate_cost(request, 1, processors).seconds;
  };
  const KernelRequest product = square_product(4096);
  EXPECT_NEAR(seconds(product, small), 2 * seconds(product, large), 1e-5);
  EXPECT_LT(seconds(product, tf32), seconds(product, large));
  EXPECT_LT(seconds(square_product(4096, ElementType::f16), large), seconds(product, tf32));
  EXPECT_EQ(seconds(element_wise(1 << 26), tf32), seconds(element_wise(1 << 26), large)) << "bound by memory";
  // A convolution sums products of channels and window.
  KernelRequest convolution{"conv2d",
                            {},
                            {plain_operand({1, 64, 56, 56}), plain_operand({64, 64, 3, 3})},
                            {plain_operand({1, 64, 56, 56})},
                            1};
  const double of_three = seconds(convolution, large);
  convolution.inputs[1] = plain_operand({64, 64, 1, 1});
  EXPECT_LT(seconds(convolution, large), of_three);
}

// A total of many elements is computed by many threads; of few outputs of long rows not more than a block each.
TEST(CudaEstimate, TotalsGiveWorkToWhatTheyAreMadeOf) {
  const cuda::Processors processors{132, 1.98e9, false};
  const auto cost_of = [&](std::int64_t rows, std::int64_t columns) {
    const KernelRequest sums{"reduce_sum", {}, {plain_operand({rows, columns})}, {plain_operand({rows, 1})}, 1};
    return cuda::estimate_cost(sums, 1, processors);
  };
  const double share_of_input = cuda::estimate_cost(element_wise(256 * 1024), 1, processors).share;
  EXPECT_EQ(cost_of(256, 1024).share, share_of_input);
  EXPECT_EQ(cost_of(256, 1 << 20).share, share_of_input) << "as many blocks";
  EXPECT_EQ(cost_of(4096, 64).share, share_of_input);
  const KernelRequest few{"slice", {}, {plain_operand({1 << 20})}, {plain_operand({1024})}, 1};
  EXPECT_EQ(cuda::estimate_cost(few, 1, processors).share,
            cuda::estimate_cost(element_wise(1024), 1, processors).share);
  EXPECT_LT(cost_of(4096, 4096).seconds, 1e-4);
  EXPECT_GT(cost_of(4096, 4096).seconds, 1.4e-5) << "64 MiB";
}

// A convolution of every channel by itself makes elements, not tiles; beside another one it keeps both shares busy.
TEST(CudaEstimate, OfChannelsByThemselvesIsByElements) {
  const cuda::Processors processors{132, 1.98e9, true};
  const Operand image = plain_operand({1, 64, 56, 56});
  const KernelRequest convolution{"conv2d", {}, {image, plain_operand({64, 1, 3, 3})}, {image}, 1};
  const StepCost one = cuda::estimate_cost(convolution, 1, processors);
  EXPECT_EQ(one.share, cuda::estimate_cost(element_wise(64 * 56 * 56), 1, processors).share);
  const std::vector<std::uint32_t> first = {0, 1}, second = {2, 3};
  const std::vector<NamedRequest> both = {{&convolution, first}, {&convolution, second}};
  const StepCost two = cuda::estimate_cost(join_requests(both).request, 1, processors);
  EXPECT_NEAR(two.share, 2 * one.share, 1e-12);
  EXPECT_NEAR(two.seconds, one.seconds, 1e-12);
  // Of one channel, many are made: a product.
  const KernelRequest filters{"conv2d", {}, {plain_operand({1, 1, 56, 56}), plain_operand({64, 1, 3, 3})}, {image}, 1};
  EXPECT_GT(cuda::estimate_cost(filters, 1, processors).share, 1.5 * one.share);
}

}  // namespace
}  // namespace taso::testing
