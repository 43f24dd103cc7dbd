#include "optimizer/baseline.h"

#include "tests/optimizer/fixtures.h"

namespace taso::testing {
namespace {

/// The baseline of one text is the graph of another.
void expect_baseline(const std::string& text, const std::string& expected) {
  const RuleIndex rules(test_rules(), registry());
  const Baseline baseline = value_of(make_baseline(graph_of(text), rules, registry()));
  Graph wanted = graph_of(expected);
  normalize(wanted, registry());
  EXPECT_TRUE(baseline.graph.equals(wanted)) << to_string(baseline.graph) << "instead of\n" << to_string(wanted);
}

TEST(Baseline, FusesProductBiasAndActivation) {
  expect_baseline(R"(
input x f32[2, 3]
weight w f32[3, 4]
weight b f32[4]
output relu(add(broadcast(b; shape=[2, 4]), matmul(x, w)))
)",
                  R"(
input x f32[2, 3]
weight w f32[3, 4]
weight b f32[4]
output matmul_bias_act(x, w, b; act=relu)
)");
}

TEST(Baseline, LeavesSiblingsApart) {
  const std::string siblings = R"(
input x f32[1, 3]
weight w f32[3, 4]
weight v f32[3, 4]
output matmul(x, w), matmul(x, v)
)";
  expect_baseline(siblings, siblings);
}

TEST(Baseline, DoesNotComputeAnythingTwice) {
  const std::string shared = R"(
input x f32[2, 3]
weight w f32[3, 4]
weight b f32[4]
m = matmul(x, w)
output m
output add(m, broadcast(b; shape=[2, 4]))
)";
  expect_baseline(shared, shared);
}

TEST(Baseline, DropsWhatComputesNothing) {
  const RuleIndex rules(value_of(load_rules(TASO_SOURCE_DIR "/specs/simplify_rules/default.rules", registry())),
                        registry());
  const Graph graph = graph_of(R"(
input x f32[2, 3]
weight zeros f32[3] = [0.0, 0.0, 0.0]
weight ones f32[2, 3] = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
weight most f32[3] = [0.0, 0.0, 1.0]
a = add(broadcast(zeros; shape=[2, 3]), mul(x, ones))
output add(sub(div(a, ones), broadcast(zeros; shape=[2, 3])), broadcast(most; shape=[2, 3]))
)");
  const Baseline baseline = value_of(make_baseline(graph, rules, registry()));
  EXPECT_EQ(baseline.applications.size(), 4U);
  Graph wanted = graph_of(R"(
input x f32[2, 3]
weight most f32[3] = [0.0, 0.0, 1.0]
output add(x, broadcast(most; shape=[2, 3]))
)");
  normalize(wanted, registry());
  EXPECT_TRUE(baseline.graph.equals(wanted)) << to_string(baseline.graph);
}

TEST(Baseline, LeavesTwoContractionsApart) {
  const RuleIndex rules(value_of(parse_rules(R"(
rule merge_weights:
  matmul(matmul(x, u), v) => matmul(x, matmul(u, v))
  proof axioms
)",
                                             "test", registry())),
                        registry());
  const Graph graph = graph_of(R"(
input x f32[2, 9]
weight u f32[9, 9]
weight v f32[9, 2]
output matmul(matmul(x, u), v)
)");
  const Baseline baseline = value_of(make_baseline(graph, rules, registry()));
  EXPECT_TRUE(baseline.applications.empty());
}

/// Rules by which a residual becomes part of a convolution.
RuleIndex residual_rules() {
  return RuleIndex(value_of(parse_rules(R"(
rule fuse_residual:
  add(conv2d_bias_act(x, k, b; pads=p), y) => conv2d_bias_add_act(x, k, b, y; pads=p)
  proof axioms
rule fuse_relu:
  relu(conv2d_bias_add_act(x, k, b, y; pads=p)) => conv2d_bias_add_act(x, k, b, y; pads=p, act=relu)
  proof axioms
rule add_identity:
  add(conv2d_bias_act(x, k, b; pads=[1, 1, 1, 1]), x)
    => conv2d_bias_act(x, add(k, conv_identity(; channels=dim(x, -3), kernel=[3, 3])), b; pads=[1, 1, 1, 1])
  proof axioms
)",
                                        "test", registry())),
                   registry());
}

void expect_residual_baseline(const std::string& text, const std::string& expected) {
  const Baseline baseline = value_of(make_baseline(graph_of(text), residual_rules(), registry()));
  Graph wanted = graph_of(expected);
  normalize(wanted, registry());
  EXPECT_TRUE(baseline.graph.equals(wanted)) << to_string(baseline.graph) << "instead of\n" << to_string(wanted);
}

TEST(Baseline, FusesAResidualAndTheActivationBehindIt) {
  expect_residual_baseline(R"(
input x f32[1, 4, 5, 5]
input y f32[1, 6, 3, 3]
weight k f32[6, 4, 3, 3]
weight b f32[6]
output relu(add(y, conv2d_bias_act(x, k, b)))
)",
                           R"(
input x f32[1, 4, 5, 5]
input y f32[1, 6, 3, 3]
weight k f32[6, 4, 3, 3]
weight b f32[6]
output conv2d_bias_add_act(x, k, b, y; act=relu)
)");
}

// A sum of x and a convolution of x by another kernel is not computed as written: that is left to the search.
TEST(Baseline, FusesAResidualThatIsTheImageAndKeepsItsKernel) {
  expect_residual_baseline(R"(
input x f32[1, 4, 5, 5]
weight k f32[4, 4, 3, 3]
weight b f32[4]
output add(conv2d_bias_act(x, k, b; pads=[1, 1, 1, 1]), x)
)",
                           R"(
input x f32[1, 4, 5, 5]
weight k f32[4, 4, 3, 3]
weight b f32[4]
output conv2d_bias_add_act(x, k, b, x; pads=[1, 1, 1, 1])
)");
}

TEST(Baseline, OfTwoConvolutionsOneIsTheResidualOfTheOther) {
  const std::string inputs = R"(
input x f32[1, 4, 5, 5]
weight k f32[6, 4, 3, 3]
weight l f32[6, 4, 1, 1]
weight b f32[6]
weight c f32[6]
)";
  const Baseline baseline = value_of(make_baseline(
      graph_of(inputs + "output add(conv2d_bias_act(x, k, b; pads=[1, 1, 1, 1]), conv2d_bias_act(x, l, c))\n"),
      residual_rules(), registry()));
  ASSERT_EQ(baseline.applications.size(), 1U);
  EXPECT_EQ(baseline.applications[0].rule, "fuse_residual");
}

// Kernels of sums read a broadcast as it is; the fused kernel would need it expanded.
TEST(Baseline, LeavesABroadcastToTheSum) {
  for (const char* small : {"input v f32[6, 1, 1]\n", "weight v f32[]\n"}) {
    const std::string text = std::string(small) + R"(
input x f32[1, 4, 5, 5]
weight k f32[6, 4, 3, 3]
weight b f32[6]
output add(conv2d_bias_act(x, k, b), broadcast(v; shape=[1, 6, 3, 3]))
)";
    expect_residual_baseline(text, text);
  }
}

// What a second reader needs is computed anyway: nothing is saved.
TEST(Baseline, LeavesAResidualWhereTheConvolutionIsReadTwice) {
  const std::string text = R"(
input x f32[1, 4, 5, 5]
input y f32[1, 6, 3, 3]
weight k f32[6, 4, 3, 3]
weight b f32[6]
c = conv2d_bias_act(x, k, b)
output c, add(c, y)
)";
  expect_residual_baseline(text, text);
}

TEST(Baseline, RecordsWhatItApplied) {
  const RuleIndex rules(test_rules(), registry());
  const Graph graph = graph_of(R"(
input x f32[2, 3]
weight w f32[3, 4]
weight b f32[4]
output relu(add(matmul(x, w), broadcast(b; shape=[2, 4])))
)");
  const Baseline baseline = value_of(make_baseline(graph, rules, registry()));
  ASSERT_EQ(baseline.applications.size(), 2U);
  EXPECT_EQ(baseline.applications[0].rule, "fuse_matmul_bias");
  EXPECT_EQ(baseline.applications[1].rule, "fuse_matmul_relu");
}

}  // namespace
}  // namespace taso::testing
