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
