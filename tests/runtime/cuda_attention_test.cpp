// Attention among fused steps: what is recognised as such, and that the plan of it reads and writes what it should, by
// loops over its strides against the operators' definitions.
#include <algorithm>
#include <cmath>

#include "runtime/access.h"
#include "runtime/cuda/attention.h"
#include "runtime/cuda/products.h"
#include "runtime/cuda/program.h"
#include "runtime/fusion.h"
#include "runtime/storage.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

/// The steps of a graph on a CUDA device that has an engine for every attention.
LoweredGraph steps_on_device(const Graph& graph, ElementType storage) {
  const auto fuses = [](const KernelRequest& request) {
    if (cuda::has_two_products(request)) return cuda::plan_attention(request).plan.has_value();
    return cuda::product_in(request) != nullptr ? cuda::is_one_product(request)
                                                : cuda::plan_fused(request).program.has_value();
  };
  return fuse_steps(value_of(lower(graph, registry(), {.float_storage = storage})), {.fuses = fuses});
}

std::vector<std::string> names_of(const std::string& text, ElementType storage) {
  std::vector<std::string> names;
  for (const LoweredStep& step : steps_on_device(graph_of(text), storage).steps) {
    const KernelRequest& request = step.kernel->request;
    std::string name = request.fused ? "" : request.op;
    if (request.fused)
      for (const FusedPart& part : request.fused->parts)
        if (!only_moves(part.request)) name += (name.empty() ? "" : "+") + part.request.op;
    names.push_back(name);
  }
  return names;
}

using Names = std::vector<std::string>;
using Numbers = std::vector<double>;

/// softmax(scale * q k' + mask) v as the plan says.
Numbers by_plan(const cuda::AttentionPlan& plan, const std::vector<Numbers>& inputs, std::size_t outputs) {
  const auto at = [](const cuda::AttentionOperand& operand, std::array<std::int64_t, 4> index) {
    std::int64_t place = operand.offset;
    for (std::size_t axis = 0; axis < 4; ++axis)
      if (operand.extents[axis] > 1) place += index[axis] * operand.strides[axis];
    return static_cast<std::size_t>(place);
  };
  const auto [batch, heads, queries, width] = plan.q.extents;
  const std::int64_t keys = plan.k.extents[3], of_values = plan.v.extents[3];
  Numbers y(outputs, std::nan(""));
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < queries; ++i) {
        Numbers scores(static_cast<std::size_t>(keys), 0);
        for (std::int64_t j = 0; j < keys; ++j) {
          double& score = scores[static_cast<std::size_t>(j)];
          for (std::int64_t l = 0; l < width; ++l)
            score += inputs[plan.q.input][at(plan.q, {b, h, i, l})] * inputs[plan.k.input][at(plan.k, {b, h, l, j})];
          const double scale = plan.scale ? inputs[*plan.scale][0] : 1;
          score = plan.divides ? score / scale : score * scale;
          if (plan.mask) score += inputs[plan.mask->input][at(*plan.mask, {b, h, i, j})];
        }
        const double largest = *std::max_element(scores.begin(), scores.end());
        double sum = 0;
        for (double& score : scores) sum += score = std::exp(score - largest);
        for (std::int64_t l = 0; l < of_values; ++l) {
          double value = 0;
          for (std::int64_t j = 0; j < keys; ++j)
            value += scores[static_cast<std::size_t>(j)] / sum * inputs[plan.v.input][at(plan.v, {b, h, j, l})];
          y[at(plan.y, {b, h, i, l})] = value;
        }
      }
  return y;
}

/// One step that is attention; its plan gives what the operators do. Returns the plan.
cuda::AttentionPlan expect_attention(const std::string& text) {
  SCOPED_TRACE(text);
  const Graph graph = graph_of(text);
  const LoweredGraph lowered = steps_on_device(graph, ElementType::f16);
  EXPECT_EQ(lowered.steps.size(), 1U);
  const LoweredStep& step = lowered.steps.back();
  const cuda::PlannedAttention planned = cuda::plan_attention(step.kernel->request);
  EXPECT_EQ(planned.reason, "");
  if (!planned.plan) return {};
  const std::vector<HostTensor> given = inputs_for(graph, 1);
  std::vector<Numbers> inputs;
  for (const TensorIndex input : step.inputs) {
    TensorIndex at = input;
    while (lowered.tensors[at].source == LoweredTensor::Source::view) at = lowered.tensors[at].index;
    EXPECT_EQ(lowered.tensors[at].source, LoweredTensor::Source::input);
    const Numbers all = given[lowered.tensors[at].index].to_doubles();
    const auto first =
        all.begin() +
        (lowered.tensors[input].source == LoweredTensor::Source::view ? lowered.tensors[input].offset / 2 : 0);
    inputs.emplace_back(first, all.end());
  }
  const auto expected = reference_outputs(graph, given);
  const Numbers actual = by_plan(*planned.plan, inputs, expected[0].size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[0][i], 1e-5) << i;
  return *planned.plan;
}

constexpr const char* heads = R"(
  input q f32[2, 3, 5, 8]
  input k f32[2, 3, 7, 8]
  input v f32[2, 3, 7, 16]
  input s f32[]
  input m f32[2, 1, 1, 7]
  input n f32[5, 7]
  kt = transpose(k; perm=[0, 1, 3, 2])
  scale = broadcast(s; shape=[2, 3, 5, 7])
  mask = broadcast(m; shape=[2, 3, 5, 7])
  mask_of_all = broadcast(n; shape=[2, 3, 5, 7])
  )";

TEST(CudaAttention, IsOneStep) {
  const std::string of_heads = heads;
  EXPECT_FALSE(expect_attention(of_heads + "output matmul(softmax(matmul(q, kt); axis=-1), v)").scale);
  const cuda::AttentionPlan scaled =
      expect_attention(of_heads + "output matmul(softmax(add(mul(matmul(q, kt), scale), mask); axis=-1), v)");
  EXPECT_TRUE(scaled.scale && !scaled.divides && scaled.mask);
  EXPECT_TRUE(
      expect_attention(of_heads + "output matmul(softmax(add(mask_of_all, div(matmul(q, kt), scale)); axis=-1), v)")
          .divides);
  EXPECT_TRUE(expect_attention(of_heads + "output matmul(softmax(add(matmul(q, kt), mask); axis=-1), v)").mask);
  EXPECT_TRUE(expect_attention(of_heads + "output matmul(softmax(smul(matmul(q, kt), s); axis=-1), v)").scale);
}

TEST(CudaAttention, ReadsHeadsWhereProjectionsLeaveThem) {
  const cuda::AttentionPlan plan = expect_attention(R"(
    input x f32[1, 4, 48]
    input s f32[]
    p = split(x; axis=-1, sizes=[16, 16, 16])
    q = transpose(reshape(p.0; shape=[1, 4, 2, 8]); perm=[0, 2, 1, 3])
    k = transpose(reshape(p.1; shape=[1, 4, 2, 8]); perm=[0, 2, 3, 1])
    v = transpose(reshape(p.2; shape=[1, 4, 2, 8]); perm=[0, 2, 1, 3])
    y = matmul(softmax(div(matmul(q, k), broadcast(s; shape=[1, 2, 4, 4])); axis=-1), v)
    output reshape(transpose(y; perm=[0, 2, 1, 3]); shape=[1, 4, 16]))");
  EXPECT_EQ(plan.q.strides[2], 48);
  EXPECT_EQ(plan.v.offset, 32);
}

TEST(CudaAttention, WhatIsNoneIsNot) {
  const std::string of_heads = heads;
  const auto count = [&](const std::string& output, ElementType storage = ElementType::f16) {
    return names_of(of_heads + output, storage).size();
  };
  const std::string attention = "output matmul(softmax(mul(matmul(q, kt), scale); axis=-1), v)";
  EXPECT_EQ(count(attention), 1U);
  EXPECT_EQ(count(attention, ElementType::bf16), 1U);
  EXPECT_EQ(count(attention, ElementType::f32), 3U) << "no engine computes it in f32";
  EXPECT_GT(count("output matmul(softmax(mul(matmul(q, kt), scale); axis=-2), v)"), 1U);
  EXPECT_GT(count("output matmul(softmax(mul(add(matmul(q, kt), mask), scale); axis=-1), v)"), 1U)
      << "the mask is scaled";
  EXPECT_GT(count("output matmul(softmax(div(scale, matmul(q, kt)); axis=-1), v)"), 1U);
  EXPECT_GT(count("output matmul(softmax(mul(matmul(q, kt), mask); axis=-1), v)"), 1U) << "a scale of several elements";
  EXPECT_GT(count("a = matmul(q, kt)\n  output matmul(softmax(a; axis=-1), v), a"), 1U) << "scores are read elsewhere";
  EXPECT_GT(count("output matmul(relu(matmul(q, kt)), v)"), 1U);
  EXPECT_GT(names_of(R"(
    input q f32[2, 3, 5, 4]
    input k f32[2, 3, 4, 7]
    input v f32[2, 3, 7, 8]
    output matmul(softmax(matmul(q, k); axis=-1), v))",
                     ElementType::f16)
                .size(),
            1U)
      << "rows of 8 bytes";
}

// Where attention is not one kernel, all between the products is.
TEST(CudaAttention, SoftmaxIsOneStepWithScaleAndMask) {
  for (const ElementType storage : {ElementType::f32, ElementType::f16})
    for (const char* mask : {"f32[1, 1, 1, 64]", "f32[1, 1, 64, 64]", "f32[64, 64]", "f32[1, 12, 64, 64]"})
      for (const char* scaled : {"mul(x, scale)", "div(x, scale)", "smul(x, s)"}) {
        const std::string text =
            std::string("input x f32[1, 12, 64, 64]\ninput s f32[]\ninput m ") + mask +
            "\nscale = broadcast(s; shape=[1, 12, 64, 64])\nmask = broadcast(m; shape=[1, 12, 64, 64])"
            "\noutput softmax(add(" +
            scaled + ", mask); axis=-1)\n";
        EXPECT_EQ(names_of(text, storage),
                  (Names{std::string(scaled).substr(0, std::string(scaled).find('(')) + "+add+softmax"}))
            << text;
      }
}

// The sums of a residual, and the normal of them, as every layer of an encoder ends.
TEST(CudaFusion, AdditionAndLayerNormAreOneStep) {
  const std::string operands =
      "input x f32[1, 128, 768]\ninput y f32[1, 128, 768]\ninput b f32[768]\n"
      "input g f32[768]\ninput h f32[768]\nrows = broadcast(b; shape=[1, 128, 768])\n";
  for (const ElementType storage : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
    EXPECT_EQ(names_of(operands + "output layer_norm(add(x, y), g, h; epsilon=1e-05)", storage),
              Names{"add+layer_norm"});
    EXPECT_EQ(names_of(operands + "output layer_norm(add(add(x, rows), y), g, h; epsilon=1e-05)", storage),
              Names{"add+add+layer_norm"});
    EXPECT_EQ(names_of(operands + "s = add(x, y)\noutput layer_norm(s, g, h; epsilon=1e-05), s", storage),
              Names{"add+layer_norm"})
        << "the sum is a second result";
  }
}

}  // namespace
}  // namespace taso::testing
