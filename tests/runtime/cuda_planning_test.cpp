// Which of cuDNN's engines are asked for what, planned for a device that is only described.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "runtime/cuda/cudnn.h"

namespace taso::cuda {
namespace {

PlanningTarget described_device() {
  static const Expected<Descriptor> device = [] {
    std::ifstream file(std::string(TASO_SOURCE_DIR) + "/tests/data/cuda/h200_by_hand.json");
    return device_from_json({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
  }();
  if (!device) throw std::runtime_error(device.error().message);
  return {nullptr, &*device};
}

ConvolutionGraph graph(bool channels_last, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
  ConvolutionGraph result;
  result.type = type;
  result.x = {16, 64, 56, 56};
  result.w = {64, 64, 3, 3};
  result.y = {16, 64, 56, 56};
  result.channels_last = channels_last;
  result.before = result.after = result.strides = result.dilations = {1, 1};
  return result;
}

constexpr std::size_t no_limit = std::size_t{1} << 40;

TEST(CudnnEngines, StrictArithmeticLeavesTensorCoresOut) {
  for (const bool channels_last : {false, true}) {
    const Engines strict = convolution_engines(described_device(), graph(channels_last), MathMode::strict, no_limit);
    const Engines tf32 = convolution_engines(described_device(), graph(channels_last), MathMode::tf32, no_limit);
    EXPECT_FALSE(strict.usable.empty()) << strict.last_error;
    EXPECT_GT(strict.other_arithmetic, 0);
    EXPECT_GT(tf32.usable.size(), strict.usable.size());
    for (const Engine& engine : strict.usable) EXPECT_FALSE(engine.tensor_core) << engine.index;
    EXPECT_TRUE(std::any_of(tf32.usable.begin(), tf32.usable.end(), [](const Engine& one) { return one.tensor_core; }));
  }
}

TEST(CudnnEngines, HalvesUseTensorCoresInEitherMode) {
  for (const MathMode math : {MathMode::strict, MathMode::tf32}) {
    const Engines engines = convolution_engines(described_device(), graph(true, CUDNN_DATA_HALF), math, no_limit);
    EXPECT_TRUE(std::any_of(engines.usable.begin(), engines.usable.end(), [](const Engine& one) {
      return one.tensor_core;
    })) << engines.last_error;
  }
}

TEST(CudnnEngines, WorkspaceIsLimited) {
  const Engines all = convolution_engines(described_device(), graph(true), MathMode::tf32, no_limit);
  const Engines few = convolution_engines(described_device(), graph(true), MathMode::tf32, 0);
  EXPECT_LT(few.usable.size(), all.usable.size());
  EXPECT_GT(few.unsupported, all.unsupported);
  for (const Engine& engine : few.usable) EXPECT_EQ(engine.workspace, 0);
}

TEST(CudnnEngines, OneIsFoundAgainByItsPosition) {
  const Engines all = convolution_engines(described_device(), graph(true), MathMode::strict, no_limit);
  ASSERT_GT(all.usable.size(), 1U);
  for (const Engine& engine : all.usable) {
    const Engines again =
        convolution_engines(described_device(), graph(true), MathMode::strict, no_limit, engine.position);
    ASSERT_EQ(again.usable.size(), 1U);
    EXPECT_EQ(again.usable[0].index, engine.index);
    EXPECT_EQ(again.usable[0].workspace, engine.workspace);
  }
  EXPECT_TRUE(convolution_engines(described_device(), graph(true), MathMode::strict, no_limit, 100000).usable.empty());
}

TEST(CudnnEngines, FusedGraphsHaveEngines) {
  for (const bool channels_last : {false, true})
    for (const bool residual : {false, true})
      for (const bool relu : {false, true}) {
        ConvolutionGraph fused = graph(channels_last);
        fused.bias = true;
        fused.residual = residual;
        fused.relu = relu;
        const Engines engines = convolution_engines(described_device(), fused, MathMode::strict, no_limit);
        EXPECT_FALSE(engines.usable.empty()) << engines.last_error;
      }
}

TEST(CudnnEngines, WrongGraphsAreRefusedInOneLine) {
  ConvolutionGraph wrong = graph(false);
  wrong.y[2] = 55;
  const Engines engines = convolution_engines(described_device(), wrong, MathMode::strict, no_limit);
  EXPECT_TRUE(engines.usable.empty());
  EXPECT_EQ(engines.last_error.rfind("cuDNN refuses a descriptor: CUDNN_STATUS_BAD_PARAM", 0), 0U)
      << engines.last_error;
  EXPECT_EQ(engines.last_error.find('\n'), std::string::npos);
}

TEST(CudnnDescriptors, SettersKeepTheFirstError) {
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2).set(CUDNN_ATTR_TENSOR_UNIQUE_ID, 1);
  const Status status = tensor.finalize();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::device_unavailable);
  EXPECT_EQ(status.error().message.rfind("cuDNN refuses an attribute: ", 0), 0U) << status.error().message;
}

}  // namespace
}  // namespace taso::cuda
