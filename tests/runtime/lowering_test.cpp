// What the cases cannot state: opaque nodes, unknown shapes, memory of requests.
#include "runtime/lowering.h"

#include "tests/runtime/fixtures.h"

namespace taso::testing {
namespace {

constexpr const char* with_opaque = R"(
  input x f32[2, 3]
  input u f32[2, 3]
  a = relu(x)
  b, n = opaque mystery(a, u) f32[2, 3], i64[1]
  weight w f32[3]
  output tanh(add(b, broadcast(w; shape=[2, 3])))
  output n
)";

TEST(Lowering, OpaqueNodesAreNamed) {
  const auto lowered = lower(graph_of(with_opaque), registry());
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().code, ErrorCode::bad_input);
  EXPECT_NE(lowered.error().message.find("mystery"), std::string::npos) << lowered.error().message;
  EXPECT_NE(lowered.error().message.find("is not an operator that this program can run"), std::string::npos);
}

TEST(Lowering, SkippedOpaqueNodesCostNothing) {
  Lowering lowering(registry(), {});
  lowering.set_skip_opaque(true);
  const LoweredGraph lowered = value_of(lowering.lower(graph_of(with_opaque)));
  ASSERT_EQ(lowered.launches(), 3u);
  EXPECT_EQ(lowered.steps[0].kernel->request.op, "relu");
  EXPECT_EQ(lowered.steps[1].kernel->request.op, "add");
  EXPECT_EQ(lowered.steps[2].kernel->request.op, "tanh");
}

TEST(Lowering, UnknownShapesAreNamed) {
  Graph graph;
  const NodeId input = graph.add_input("tokens", {ElementType::f32, {}, false});
  graph.add_output({input, 0});
  const auto lowered = lower(graph, registry());
  ASSERT_FALSE(lowered.ok());
  EXPECT_EQ(lowered.error().message, "input 'tokens' has no known shape; give one with --input-shape");
}

TEST(Lowering, EqualRequestsAreOneObject) {
  Lowering lowering(registry(), {});
  const char* text = "input x f32[2, 3]\noutput relu(tanh(relu(x)))";
  const LoweredGraph first = value_of(lowering.lower(graph_of(text)));
  const LoweredGraph second = value_of(lowering.lower(graph_of(text)));
  EXPECT_EQ(first.steps[0].kernel, first.steps[2].kernel);
  EXPECT_EQ(first.steps[1].kernel, second.steps[1].kernel);
  EXPECT_EQ(first.steps[0].kernel->key, first.steps[0].kernel->request.key());
  EXPECT_EQ(first.steps[0].kernel->key_hash, hash_text(first.steps[0].kernel->key));
}

TEST(Lowering, RequestsDifferWhereInputsDoButLabelsDoNot) {
  // The two products have equal attributes and output types.
  const LoweredGraph lowered = value_of(lower(graph_of(R"(
    input a f32[2, 3]
    input b f32[3, 4]
    input c f32[2, 5]
    input d f32[5, 4]
    output matmul(a, b), matmul(c, d))"),
                                              registry()));
  EXPECT_NE(lowered.steps[0].kernel->key, lowered.steps[1].kernel->key);
}

TEST(CutAtOpaque, OpaqueEdgesBecomeInputsAndOutputs) {
  const CutGraph cut = cut_at_opaque(graph_of(with_opaque), {"y", "n"});
  EXPECT_EQ(cut.opaque_nodes, 1u);
  EXPECT_EQ(cut.own_outputs, 2u);
  ASSERT_EQ(cut.output_names.size(), 3u);
  EXPECT_EQ(cut.output_names[0], "y");
  EXPECT_NE(cut.output_names[2].find(":in0"), std::string::npos);  // u, an input of the graph, is not compared
  ASSERT_EQ(cut.graph.inputs().size(), 4u);
  EXPECT_NE(cut.graph.node(cut.graph.inputs()[2]).name.find(":out0"), std::string::npos);
  const std::vector<HostTensor> inputs = inputs_for(cut.graph, 3);
  Executor executor = value_of(Executor::create(cut.graph, library()));
  const std::vector<HostTensor> outputs = value_of(executor.run(inputs));
  ASSERT_EQ(outputs.size(), 3u);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(outputs[2].floats()[i], std::max(0.0f, inputs[0].floats()[i]));
}

TEST(CutAtOpaque, RewrittenGraphsHaveTheSameCut) {
  const CutGraph left = cut_at_opaque(graph_of(with_opaque));
  std::string other = with_opaque;
  other.replace(other.find("relu(x)"), 7, "relu(relu(x))");
  const CutGraph right = cut_at_opaque(graph_of(other));
  EXPECT_EQ(left.output_names, right.output_names);
  ASSERT_EQ(left.graph.inputs().size(), right.graph.inputs().size());
  for (std::size_t i = 0; i < left.graph.inputs().size(); ++i)
    EXPECT_EQ(left.graph.node(left.graph.inputs()[i]).name, right.graph.node(right.graph.inputs()[i]).name);
}

TEST(CutAtOpaque, AlikeWhereOneGraphComputesNothing) {
  // A rewrite has taken away what stood between a graph input, or another opaque node, and an opaque node.
  const auto graph = [](const std::string& a, const std::string& b) {
    return graph_of("input x f32[2, 3]\ninput u f32[2, 3]\nt = opaque first(" + a + ", u) f32[2, 3]\n" +
                    "v = opaque second(" + b + ") f32[2, 3]\noutput v\n");
  };
  const auto twice = [](const std::string& name) {
    return "transpose(transpose(" + name + "; perm=[1, 0]); perm=[1, 0])";
  };
  const auto [left, right] = cut_alike(graph("x", "t"), graph(twice("x"), twice("t")));
  EXPECT_EQ(left.output_names, right.output_names);
  EXPECT_EQ(left.output_names.size(), 3u);  // without u, which both read as it is
  const std::vector<HostTensor> inputs = inputs_for(left.graph, 3);
  Executor one = value_of(Executor::create(left.graph, library())),
           other = value_of(Executor::create(right.graph, library()));
  const std::vector<HostTensor> expected = value_of(one.run(inputs)), actual = value_of(other.run(inputs));
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(compare(actual[i], expected[i], 0, 0).violations, 0);
}

TEST(CutAtOpaque, NothingToCut) {
  const Graph graph = graph_of("input x f32[2]\noutput relu(x)");
  const CutGraph cut = cut_at_opaque(graph);
  EXPECT_EQ(cut.opaque_nodes, 0u);
  EXPECT_TRUE(cut.graph.equals(graph));
  EXPECT_EQ(cut.output_names, std::vector<std::string>{"output0"});
}

}  // namespace
}  // namespace taso::testing
