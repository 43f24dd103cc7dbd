#include "runtime/executor.h"

#include <algorithm>
#include <cstring>

#include "runtime/input_bounds.h"
#include "runtime/weights.h"
#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

TEST(Executor, DescribesInputsAndOutputs) {
  const Graph graph =
      graph_of("input x f32[2, 3]\ninput i i64[4]\nweight t f32[5, 2]\noutput relu(x), gather(t, i; axis=-2)");
  const Executor executor = value_of(Executor::create(graph, library()));
  EXPECT_EQ(executor.input_names(), (std::vector<std::string>{"x", "i"}));
  EXPECT_EQ(to_string(executor.input_types()[1]), "i64[4]");
  EXPECT_EQ(to_string(executor.output_types()[1]), "f32[4, 2]");
  EXPECT_EQ(executor.launches(), 2u);
  EXPECT_EQ(executor.weight_bytes(), 40u);
}

TEST(Executor, InputErrors) {
  Executor executor = value_of(Executor::create(graph_of("input x f32[2, 3]\noutput relu(x)"), library()));
  const std::vector<HostTensor> none;
  EXPECT_EQ(executor.run(none).error().message, "the model takes 1 inputs, 0 were given");
  std::vector<HostTensor> wrong;
  wrong.push_back(HostTensor::of_integers({2, 3}, std::vector<std::int64_t>(6)));
  EXPECT_EQ(executor.run(wrong).error().message, "input 'x' is f32[2, 3], a tensor i64[2, 3] was given");
}

TEST(Executor, IndexOutOfRange) {
  Executor executor = value_of(
      Executor::create(graph_of("weight t f32[3, 2]\ninput i i64[2]\noutput gather(t, i; axis=-2)"), library()));
  std::vector<HostTensor> inputs;
  inputs.push_back(HostTensor::of_integers({2}, std::vector<std::int64_t>{-3, 3}));
  const auto outputs = executor.run(inputs);
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().message, "gather: index 3 at position 1 is outside an axis of 3");
}

TEST(Executor, RandomIndicesStayInRange) {
  const Graph graph = graph_of(R"(
    weight small f32[3, 2]
    weight large f32[50, 2]
    input i i64[80]
    input j i64[40]
    output gather(large, i; axis=-2), gather(small, i; axis=-2), gather(large, j; axis=-2))");
  Executor executor = value_of(Executor::create(graph, library()));
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const std::vector<HostTensor> inputs = executor.random_inputs(seed);
    EXPECT_EQ(std::ranges::max(inputs[0].to_integers()), 2);
    EXPECT_GT(std::ranges::max(inputs[1].to_integers()), 3);
    EXPECT_TRUE(executor.run(inputs).ok());
  }
}

TEST(Executor, BoundsOfIndicesThatAreMoved) {
  const Graph graph = graph_of(R"(
input x f32[5, 1, 4]
input i i64[2, 3]
input j i64[6]
input k i64[3]
rows = slice(i; starts=[0, 0], sizes=[1, 3], steps=[1, 1])
output gather(x, reshape(rows; shape=[3]); axis=-2)
output gather(x, concat(j, k; axis=-1); axis=-1)
output gather(x, k; axis=-3)
)");
  EXPECT_EQ(input_bounds_of(graph, library().registry()), (std::vector<std::int64_t>{2, 1, 4, 4}));
}

TEST(Executor, UnusedInputsMayBeAnything) {
  Graph graph;
  const NodeId x = graph.add_input("x", {ElementType::f32, {2}, true});
  graph.add_input("unknown", {ElementType::f32, {}, false});
  graph.add_input("text", {ElementType::other, {2}, true});
  graph.add_output({x, 0});
  Executor executor = value_of(Executor::create(graph, library()));
  const std::vector<HostTensor> inputs = executor.random_inputs(1);
  ASSERT_EQ(inputs.size(), 3u);
  EXPECT_TRUE(executor.run(inputs).ok());
}

TEST(Executor, UnalignedWeightsAreCopied) {
  // Bytes in the middle of a file need not be aligned.
  auto bytes = std::make_shared<std::vector<std::byte>>(1 + 6 * sizeof(float));
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  std::memcpy(bytes->data() + 1, values.data(), 6 * sizeof(float));
  Graph graph;
  const NodeId x = graph.add_input("x", {ElementType::f32, {2, 3}, true});
  const NodeId w = graph.add_constant(
      ConstantData::borrow({ElementType::f32, {2, 3}, true}, std::span(*bytes).subspan(1), bytes, "file@1"));
  graph.add_output({value_of(add_op(graph, registry(), "add", {}, {{x, 0}, {w, 0}})), 0});
  Executor executor = value_of(Executor::create(graph, library()));
  const std::vector<HostTensor> inputs = executor.random_inputs(1);
  const auto outputs = value_of(executor.run(inputs));
  for (std::size_t i = 0; i < 6; ++i) EXPECT_FLOAT_EQ(outputs[0].floats()[i], inputs[0].floats()[i] + values[i]);
}

TEST(Executor, WeightsAreSharedThroughAStore) {
  const Graph graph = graph_of(R"(
    input x f32[4, 64]
    weight w f32[96, 64]
    output matmul(x, transpose(w; perm=[1, 0])))");
  const auto store = std::make_shared<WeightStore>();
  Executor first = value_of(Executor::create(graph, library(), {1, true, store}));
  Executor second = value_of(Executor::create(graph, library(), {1, true, store}));
  const std::vector<HostTensor> inputs = first.random_inputs(1);
  const auto a = value_of(first.run(inputs)), b = value_of(second.run(inputs));
  EXPECT_TRUE(std::ranges::equal(a[0].bytes(), b[0].bytes()));
  // The store hands out what is alive and forgets the rest.
  int made = 0;
  const auto make = [&]() -> Expected<std::shared_ptr<const PackedWeight>> {
    ++made;
    return std::make_shared<const PackedWeight>();
  };
  const Hash128 key = hash_text("key");
  auto held = value_of(store->get(key, make));
  EXPECT_EQ(value_of(store->get(key, make)), held);
  EXPECT_EQ(made, 1);
  held.reset();
  held = value_of(store->get(key, make));
  EXPECT_EQ(made, 2);
}

TEST(Executor, ProfilesEveryKernel) {
  const Graph graph = graph_of(R"(
    input x f32[1, 3, 8, 8]
    weight w f32[4, 3, 3, 3]
    output relu(conv2d(x, w)))");
  Executor executor = value_of(Executor::create(graph, library()));
  const auto profile = value_of(executor.profile(executor.random_inputs(1), 3));
  ASSERT_EQ(profile.size(), executor.launches());
  EXPECT_EQ(profile[0].op, "reorder");
  EXPECT_EQ(profile[1].op, "conv2d");
  for (const KernelProfile& kernel : profile) {
    EXPECT_GT(kernel.median_us, 0.0);
    EXPECT_LE(kernel.minimum_us, kernel.median_us);
    EXPECT_FALSE(kernel.implementation.empty());
  }
}

TEST(Executor, ArenaReusesMemory) {
  std::string text = "input x f32[1000]\ny0 = relu(x)\n";
  for (int i = 1; i < 20; ++i) text += "y" + std::to_string(i) + " = tanh(y" + std::to_string(i - 1) + ")\n";
  const Executor executor = value_of(Executor::create(graph_of(text + "output y19"), library()));
  EXPECT_LE(executor.arena_bytes(), 3 * 4096u);
}

TEST(EvaluateWeights, EveryKindOfExpression) {
  const Graph graph = graph_of(R"(
    weight a f32[2, 3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    weight s f32[3] = [1.0, 10.0, 100.0]
    weight one f32[4] = 1.5
    p = mul(a, broadcast(s; shape=[2, 3]))
    t = transpose(p; perm=[1, 0])
    l, r = split(concat(a, p; axis=-1); axis=-1, sizes=[2, 4])
    output t, r, reshape(one; shape=[2, 2]), matrix_identity(; size=2), a)");
  const auto values = value_of(evaluate_weights(graph, graph.outputs(), library()));
  EXPECT_EQ(values[0]->to_floats(), (std::vector<float>{1, 4, 20, 50, 300, 600}));
  EXPECT_EQ(values[1]->to_floats(), (std::vector<float>{3, 1, 20, 300, 6, 4, 50, 600}));
  EXPECT_EQ(values[2]->to_floats(), (std::vector<float>{1.5, 1.5, 1.5, 1.5}));
  EXPECT_FALSE(values[2]->is_dense());
  EXPECT_EQ(values[2]->type().shape, (Shape{2, 2}));
  EXPECT_EQ(values[3]->to_floats(), (std::vector<float>{1, 0, 0, 1}));
  EXPECT_EQ(values[4], graph.node(graph.outputs()[4].node).constant);
  // Equal runs give equal bytes and identities.
  EXPECT_EQ(value_of(evaluate_weights(graph, graph.outputs(), library()))[0]->identity(), values[0]->identity());
}

TEST(EvaluateWeights, WhatIsOnlyAShapeHasNoValue) {
  const Graph graph = graph_of("weight a f32[2] = ?\noutput a, relu(a)");
  for (const Value& output : graph.outputs()) {
    const auto values = evaluate_weights(graph, std::span(&output, 1), library());
    ASSERT_FALSE(values.ok());
    EXPECT_EQ(values.error().message, "constant 'a' f32[2] is only a shape: its elements are not known");
  }
}

TEST(WeightHashes, StructureNotIds) {
  const char* text = "weight a f32[2, 3]\nweight b f32[3, 2]\ninput x f32[2, 3]\n";
  const Graph left = graph_of(std::string(text) + "output matmul(x, add(b, transpose(a; perm=[1, 0])))");
  const Graph right =
      graph_of(std::string(text) + "output matmul(relu(x), add(b, transpose(a; perm=[1, 0]))), tanh(x)");
  const auto hash = [](const Graph& graph) {
    const NodeId product = graph.outputs()[0].node;
    return weight_hashes(graph)[graph.node(product).inputs[1].node];
  };
  EXPECT_EQ(hash(left), hash(right));
  const Graph other = graph_of(std::string(text) + "output matmul(x, add(transpose(a; perm=[1, 0]), b))");
  EXPECT_NE(hash(left), hash(other));
}

}  // namespace
}  // namespace taso::testing
