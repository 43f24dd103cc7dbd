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
      {"softmax", {{"axis", std::int64_t{-1}}}, {f32({2, 3})}, R"(
for a < 2:
  t0[a] = max(b < 3: x0[3*a + b])
for a < 2, b < 3:
  t1[3*a + b] = exp(x0[3*a + b] - t0[a])
for a < 2:
  t2[a] = sum(b < 3: t1[3*a + b])
for a < 2, b < 3:
  y0[3*a + b] = t1[3*a + b] / t2[a]
)"},
      {"conv2d", {{"pads", Integers{1, 0, 1, 0}}}, {f32({1, 2, 5, 4}), f32({3, 2, 3, 1})}, R"(
for a < 3, b < 5, c < 4:
  y0[20*a + 4*b + c] = sum(d < 2, e < 3: (0 <= b + e - 1 < 5 ? x0[4*b + c + 20*d + 4*e - 4] : 0) * x1[6*a + 3*d + e])
)"},
      {"max_pool2d",
       {{"kernel", Integers{2, 2}}, {"strides", Integers{2, 2}}, {"pads", Integers{1, 0, 0, 0}}},
       {f32({1, 2, 5, 4})},
       R"(
for a < 2, b < 3, c < 2:
  y0[6*a + 2*b + c] = max(d < 2, e < 2: x0[20*a + 8*b + 2*c + 4*d + e - 4] where 0 <= 2*b + d - 1 < 5)
)"},
      {"gather", {{"axis", std::int64_t{-2}}}, {f32({7, 3}), {ElementType::i64, {4}, true}}, R"(
for a < 4, b < 3:
  y0[3*a + b] = x0[b + 3*x1[a]]
)"},
      {"gelu", {}, {f32({4, 4})}, R"(
for b < 16:
  y0[b] = let s0 = x0[b] in 0.5 * s0 * (1 + erf(s0 / 1.4142135623730951))
)"},
      {"cumulative_sum", {{"axis", std::int64_t{-1}}}, {f32({2, 5})}, R"(
for a < 2:
  t0[5*a] = 0 + x0[5*a]
for a < 2:
  t0[5*a + b + 1] = t0[5*a + b] + x0[5*a + b + 1]
for b < 10:
  y0[b] = t0[b]
)"},
      {"matmul", {}, {f32({2, 3}), f32({3, 4})}, R"(
for a < 2, b < 4:
  y0[4*a + b] = sum(c < 3: x0[3*a + c] * x1[b + 4*c])
)"},
      {"sub", {}, {f32({5}), f32({5})}, R"(
for a < 5:
  y0[a] = x0[a] - x1[a]
)"},
  };
  for (const Printed& example : examples) {
    const auto instance = OperatorInstance::create(test::registry(), example.op, example.attributes, example.inputs);
    ASSERT_TRUE(instance) << instance.error().to_string();
    const std::vector<std::string> buffers = buffer_names(instance->body());
    std::string text;
    for (const LoweredStage& stage : instance->body().stages) text += to_text(stage, buffers, "");
    EXPECT_EQ("\n" + text, example.text) << example.op;
  }
}

}  // namespace
}  // namespace taso
