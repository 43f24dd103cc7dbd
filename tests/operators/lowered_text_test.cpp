// Lowered definitions as text (operators/lowered_text.h).
#include "operators/lowered_text.h"

#include <gtest/gtest.h>

#include "operators/instance.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

struct Printed {
  const char* op;
  Attributes attributes;
  std::vector<TensorType> inputs;
  const char* text;
};

TEST(LoweredText, IsALoopNest) {
  using Integers = std::vector<std::int64_t>;
  const auto f32 = [](Shape shape) { return TensorType{ElementType::f32, std::move(shape), true}; };
  const std::vector<Printed> examples = {
      {"softmax", {{"axis", std::int64_t{-1}}}, {f32({2, 3})}, "?"},
      {"conv2d", {{"pads", Integers{1, 0, 1, 0}}}, {f32({1, 2, 5, 4}), f32({3, 2, 3, 1})}, "?"},
      {"max_pool2d",
       {{"kernel", Integers{2, 2}}, {"strides", Integers{2, 2}}, {"pads", Integers{1, 0, 0, 0}}},
       {f32({1, 2, 5, 4})},
       "?"},
      {"gather", {{"axis", std::int64_t{-2}}}, {f32({7, 3}), {ElementType::i64, {4}, true}}, "?"},
      {"gelu", {}, {f32({4, 4})}, "?"},
      {"cumulative_sum", {{"axis", std::int64_t{-1}}}, {f32({2, 5})}, "?"},
      {"matmul", {}, {f32({2, 3}), f32({3, 4})}, "?"},
      {"sub", {}, {f32({5}), f32({5})}, "?"},
  };
  for (const Printed& example : examples) {
    const auto instance = OperatorInstance::create(test::registry(), example.op, example.attributes, example.inputs);
    ASSERT_TRUE(instance) << instance.error().to_string();
    const std::vector<std::string> buffers = buffer_names(instance->body());
    std::string text;
    for (const LoweredStage& stage : instance->body().stages) text += to_text(stage, buffers, "");
    EXPECT_EQ(text, example.text) << example.op;
  }
}

}  // namespace
}  // namespace taso
