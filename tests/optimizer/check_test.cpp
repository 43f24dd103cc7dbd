#include "optimizer/check.h"

#include "runtime/backend.h"
#include "tests/optimizer/fixtures.h"

namespace taso::testing {
namespace {

/// The same graph with every element of weight number `which` multiplied by `factor`.
Graph perturbed(const Graph& graph, std::size_t which, float factor) {
  Graph copy = graph;
  std::size_t seen = 0;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::constant || seen++ != which) continue;
    std::vector<float> values = node.constant->to_floats();
    for (float& value : values) value *= factor;
    Node changed;
    changed.kind = NodeKind::constant;
    changed.constant = ConstantData::of_floats(node.constant->type().shape, values);
    changed.outputs = {changed.constant->type()};
    copy.replace_node(id, std::move(changed));
  }
  EXPECT_LT(which, seen);
  return copy;
}

constexpr const char* classifier = R"(
input x f32[2, 8]
weight w f32[8, 6]
weight b f32[6]
weight v f32[6, 4]
output softmax(matmul(matmul_bias_act(x, w, b; act=relu), v); axis=-1)
)";

TEST(Check, AcceptsTheSameGraph) {
  const Graph graph = graph_of(classifier);
  const CheckReport report = value_of(check(graph, graph, library(), {}));
  EXPECT_TRUE(report.passed);
  EXPECT_FALSE(report.vacuous);
  EXPECT_EQ(report.worst, 0);
  EXPECT_EQ(report.tensors.size(), 2U);  // the output and what lies behind the softmax
}

TEST(Check, CatchesAPerturbedWeight) {
  const Graph graph = graph_of(classifier);
  for (const std::size_t which : {0U, 2U}) {
    const CheckReport report = value_of(check(graph, perturbed(graph, which, 1.05F), library(), {}));
    EXPECT_FALSE(report.passed) << "weight " << which;
  }
}

TEST(Check, LooksBehindASoftmax) {
  // One column towers above the others: the softmax is 1 there whatever the rest does.
  const char* text = R"(
input x f32[1, 4]
weight w f32[4, 3]
weight big f32[3] = [0.0, 0.0, 200.0]
output softmax(add(matmul(x, w), broadcast(big; shape=[1, 3])); axis=-1)
)";
  const Graph graph = graph_of(text);
  std::size_t which = 0;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::constant) continue;
    if (node.constant->type().shape.size() == 2) break;
    ++which;
  }
  const CheckReport report = value_of(check(graph, perturbed(graph, which, 1.05F), library(), {}));
  EXPECT_FALSE(report.passed);
  ASSERT_EQ(report.tensors.size(), 2U);
  EXPECT_TRUE(report.tensors[0].within);
  EXPECT_FALSE(report.tensors[1].within);
  EXPECT_EQ(report.tensors[1].name.rfind("behind ", 0), 0U);
}

TEST(Check, SaysWhenItShowsLittle) {
  const Graph graph = graph_of(R"(
input x f32[1, 4]
weight w f32[4, 3] = 0.0
weight b f32[3]
output matmul_bias_act(x, w, b)
)");
  const CheckReport report = value_of(check(graph, graph, library(), {}));
  EXPECT_TRUE(report.passed);
  EXPECT_TRUE(report.vacuous);
  EXPECT_NE(report.summary().find("hardly depend on the inputs"), std::string::npos);
}

TEST(Check, ComparesAtOpaqueNodes) {
  const auto with_opaque = [](float scale) {
    Graph graph;
    const NodeId x = graph.add_input("x", {ElementType::f32, {2, 3}, true});
    const std::vector<float> values(6, scale);
    const NodeId w = graph.add_constant(ConstantData::of_floats({2, 3}, values));
    const NodeId product = value_of(add_op(graph, registry(), "mul", {}, {{x, 0}, {w, 0}}));
    Node custom;
    custom.kind = NodeKind::opaque;
    custom.op = "my.domain::Mystery";
    custom.name = "mystery";
    custom.inputs = {{product, 0}};
    custom.outputs = {{ElementType::f32, {2, 3}, true}};
    const NodeId opaque = graph.add(std::move(custom));
    const NodeId last = value_of(add_op(graph, registry(), "relu", {}, {{opaque, 0}}));
    graph.add_output({last, 0});
    return graph;
  };
  EXPECT_TRUE(value_of(check(with_opaque(1), with_opaque(1), library(), {})).passed);
  const CheckReport report = value_of(check(with_opaque(1), with_opaque(1.05F), library(), {}));
  EXPECT_FALSE(report.passed);
}

TEST(Check, ComparesWhereAnOpaqueNodeReadsAnInputNow) {
  const auto graph = [](const std::string& read) {
    return graph_of("input x f32[2, 3]\nt = opaque mystery(" + read + ") f32[2, 3]\noutput relu(t)\n");
  };
  const Graph before = graph("transpose(transpose(x; perm=[1, 0]); perm=[1, 0])");
  EXPECT_TRUE(value_of(check(before, graph("x"), library(), {})).passed);
  EXPECT_FALSE(value_of(check(before, graph("neg(x)"), library(), {})).passed);
}

TEST(Check, ToleranceCounts) {
  const Graph graph = graph_of("input x f32[2, 8]\nweight w f32[8, 6]\noutput matmul(x, w)\n");
  const Graph other = perturbed(graph, 0, 1.05F);
  CheckOptions loose;
  loose.rtol = 0.1;
  EXPECT_TRUE(value_of(check(graph, other, library(), loose)).passed);
  CheckOptions absolute;
  absolute.rtol = 0;
  absolute.atol = 100;
  EXPECT_TRUE(value_of(check(graph, other, library(), absolute)).passed);
}

TEST(Check, ComparesWhereTheOriginalIsFinite) {
  const Graph graph = graph_of("input x f32[4, 8]\nweight w f32[8, 6]\noutput matmul(log(x), w)\n");
  const Graph same = graph_of("input x f32[4, 8]\nweight w f32[8, 6]\noutput matmul(log(x), w)\n");
  const CheckReport report = value_of(check(graph, same, library(), {}));
  EXPECT_TRUE(report.passed);
  ASSERT_EQ(report.tensors.size(), 1U);
  EXPECT_GE(report.tensors[0].compared, 24) << "the positive input";
  EXPECT_GT(report.tensors[0].not_finite, 0);
  EXPECT_EQ(report.tensors[0].compared + report.tensors[0].not_finite, 3 * 24);
  EXPECT_EQ(report.tensors[0].finite_share, 1);
  EXPECT_TRUE(report.remarks().empty());
  EXPECT_NE(report.summary().find("not finite in the original"), std::string::npos) << report.summary();
  EXPECT_FALSE(value_of(check(graph, perturbed(graph, 0, 1.05F), library(), {})).passed) << "finite elements count";
}

TEST(Check, NothingFiniteBecomesNotFinite) {
  const Graph graph = graph_of("input x f32[4, 8]\noutput relu(x)\n");
  const Graph worse = graph_of("input x f32[4, 8]\noutput sqrt(x)\n");
  const CheckReport report = value_of(check(graph, worse, library(), {}));
  EXPECT_FALSE(report.passed);
  EXPECT_GT(report.tensors.at(0).became_not_finite, 0);
  // The other way around the same elements are left out.
  const CheckReport other = value_of(check(worse, graph, library(), {}));
  EXPECT_EQ(other.tensors.at(0).not_finite, report.tensors.at(0).became_not_finite);
  EXPECT_EQ(other.tensors.at(0).became_not_finite, 0);
}

TEST(Check, SaysWhereFewElementsAreFinite) {
  const Graph graph = graph_of("input x f32[4, 8]\noutput log(neg(abs(x)))\n");
  const CheckReport report = value_of(check(graph, graph, library(), {}));
  EXPECT_TRUE(report.passed);
  ASSERT_EQ(report.remarks().size(), 1U);
  EXPECT_NE(report.remarks()[0].find("at best 0 % of its elements"), std::string::npos) << report.remarks()[0];
  EXPECT_NE(report.summary().find("no element of the original is finite"), std::string::npos) << report.summary();
}

// On a device the original's own loss counts: a sum that cancels keeps few digits of narrow floats.
TEST(Check, OnADeviceRoundingIsExcused) {
  BackendOptions backend;
  backend.module_folder = TASO_TEST_BACKENDS;
  const KernelLibrary device(registry(), value_of(load_backend("host", backend)));
  const auto graph = [](double number) {
    const std::string text = std::to_string(number);
    return graph_of("input x f32[2, 2]\nweight w f32[2] = [" + text + ", " + text +
                    "]\nweight f f32[2] = [1.0, 1.0]\n"
                    "output mul(sub(add(x, broadcast(w; shape=[2, 2])), broadcast(w; shape=[2, 2])), broadcast(f; "
                    "shape=[2, 2]))\n");
  };
  CheckOptions options;
  options.rtol = 1e-3;
  const Graph twenty = graph(20);
  EXPECT_TRUE(value_of(check(twenty, twenty, device, options)).passed);
  options.float_storage = ElementType::f16;
  const CheckReport rounded = value_of(check(twenty, twenty, device, options));
  EXPECT_TRUE(rounded.passed);
  EXPECT_GT(rounded.worst, options.rtol);
  EXPECT_FALSE(value_of(check(twenty, perturbed(twenty, 1, 1.2F), device, options)).passed);
  // What loses a tenth and more is wrong, not rounded.
  EXPECT_FALSE(value_of(check(graph(3000), graph(3000), device, options)).passed);
}

}  // namespace
}  // namespace taso::testing
