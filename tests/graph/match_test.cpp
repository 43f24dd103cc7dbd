#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/graph_text.h"
#include "graph/rewrite.h"
#include "tests/graph/fake_catalog.h"

namespace taso {
namespace {

struct World {
  FakeCatalog catalog;
  Graph graph;
  std::vector<Substitution> rules;

  World(const std::string& rules_lines, const std::string& graph_lines) {
    rules = parse_rules(rules_lines, "rules", catalog).value();
    graph = parse_graph(graph_lines, "graph", catalog).value();
    normalize(graph, catalog);
  }
};

TEST(Apply, ReportsWhatChanged) {
  World world("rule r: relu(relu(x)) => relu(x)", "input x f32[2] y = relu(relu(x)) output tanh(y)");
  const RuleIndex index(world.rules, world.catalog);
  const auto matches = index.find(world.graph, 0);
  ASSERT_EQ(matches.size(), 1u);
  const auto result = apply_with_changes(world.graph, world.rules[0], matches[0], world.catalog);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->added.empty());  // relu(x) exists already.
  const NodeId outer = matches[0].nodes[1];
  EXPECT_EQ(result->removed, std::vector<NodeId>{outer});
  EXPECT_EQ(result->changed, std::vector<NodeId>{world.graph.outputs()[0].node});
  EXPECT_EQ(world.graph.size(), 4u);  // The old graph is as it was.
}

TEST(Apply, NewNodesHaveTheOriginOfWhatTheyReplace) {
  World world("rule r: relu(x) => tanh(x)", "input x f32[2] output x");
  const auto id = add_op(world.graph, world.catalog, "relu", {}, {{world.graph.inputs()[0], 0}}, {7});
  world.graph.set_outputs({{*id, 0}});
  const RuleIndex index(world.rules, world.catalog);
  const auto result = apply(world.graph, world.rules[0], index.find(world.graph, 0).at(0), world.catalog);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->node(result->outputs()[0].node).origin, 7);
}

TEST(Apply, RefusesMatchesOfOtherGraphs) {
  World world("rule r: relu(x) => tanh(x)", "input x f32[2] output relu(x)");
  const RuleIndex index(world.rules, world.catalog);
  Match match = index.find(world.graph, 0).at(0);
  Graph empty;
  EXPECT_FALSE(apply(empty, world.rules[0], match, world.catalog).ok());
  match.nodes.clear();
  EXPECT_FALSE(apply(world.graph, world.rules[0], match, world.catalog).ok());
}

TEST(Apply, ChecksConditionsAgain) {
  World world("rule any: relu(x) => tanh(x) rule large: relu(x) => tanh(x) if dim(x, -1) > 2",
              "input x f32[2] output relu(x)");
  const RuleIndex index(world.rules, world.catalog);
  EXPECT_TRUE(index.find(world.graph, 1).empty());
  const Match match = index.find(world.graph, 0).at(0);
  const auto result = apply(world.graph, world.rules[1], match, world.catalog);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, testing::HasSubstr("the condition 2 < dim(x, -1) of large does not hold"));
}

TEST(Apply, FunctionsAreDefinedEverywhere) {
  World world("rule r: relu(matmul_bias_act(x, w, b; act=f)) => matmul_bias_act(x, w, b; act=f)",
              "input x f32[2, 2] input w f32[2, 2] input b f32[2] output relu(matmul_bias_act(x, w, b; act=relu))");
  const RuleIndex index(world.rules, world.catalog);
  Match match = index.find(world.graph, 0).at(0);
  EXPECT_TRUE(apply(world.graph, world.rules[0], match, world.catalog).ok());
  match.attributes.at(0) = AttributeValue(SymbolValue{"log"});
  const auto result = apply(world.graph, world.rules[0], match, world.catalog);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "r holds for functions that are defined for every number; log is not");
}

TEST(Apply, RefusesToChangeNothing) {
  World world("rule r: add(x, y) => add(y, x)", "input x f32[2] input y f32[2] output add(x, y)");
  const RuleIndex index(world.rules, world.catalog);
  const auto result = apply(world.graph, world.rules[0], index.find(world.graph, 0).at(0), world.catalog);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message, testing::HasSubstr("changes nothing"));
}

TEST(Apply, TakesPiecesOfAnyNamesApart) {
  World world(
      "rule r: relu(s.0), relu(s.1) => t.0, t.1 where s = cut(x; place=-1, extents=[a, b]) "
      "where t = cut(relu(x); place=-1, extents=[a, b])",
      "input x f32[2, 9] s = cut(x; place=-1, extents=[4, 5]) t = cut(s.1; place=-1, extents=[2, 3]) "
      "output relu(s.0), relu(t.0), tanh(t.1)");
  EXPECT_THAT(to_string(world.graph), testing::HasSubstr("extents=[4, 2, 3]"));
  const RuleIndex index(world.rules, world.catalog);
  const auto matches = index.find(world.graph, 0);
  ASSERT_EQ(matches.size(), 1u);
  const auto result = apply(world.graph, world.rules[0], matches[0], world.catalog);
  ASSERT_TRUE(result.ok()) << result.error().message;
  const std::string text = to_string(*result);
  EXPECT_THAT(text, testing::HasSubstr("extents=[6, 3]"));
  EXPECT_THAT(text, testing::HasSubstr("f32[2, 6]"));
  EXPECT_THAT(text, testing::HasSubstr("extents=[4, 2]"));
}

TEST(RuleIndex, OrderOfMatchesIsFixed) {
  World world("rule a: relu(x) => x rule b: tanh(x) => x",
              "input x f32[2] y = tanh(relu(x)) output relu(tanh(y)), relu(y), tanh(x)");
  const RuleIndex index(world.rules, world.catalog);
  const auto matches = index.find_all(world.graph);
  ASSERT_EQ(matches.size(), 6u);
  for (std::size_t i = 1; i < matches.size(); ++i) {
    const auto& [rule, match] = matches[i];
    const auto& [rule_before, match_before] = matches[i - 1];
    EXPECT_TRUE(rule_before < rule || (rule_before == rule && match_before.nodes < match.nodes));
  }
}

TEST(RuleIndex, BoundsTheNumberOfMatchesOfUnrelatedParts) {
  FakeCatalog catalog;
  Graph graph;
  const NodeId x = graph.add_input("x", {ElementType::f32, {400}, true});
  const Attributes pieces{{"axis", std::int64_t{-1}}, {"sizes", std::vector<std::int64_t>(400, 1)}};
  const NodeId split = add_op(graph, catalog, "split", pieces, {{x, 0}}).value();
  for (std::uint32_t i = 0; i < 400; ++i)
    graph.add_output({add_op(graph, catalog, i % 2 == 0 ? "relu" : "tanh", {}, {{split, i}}).value(), 0});
  const RuleIndex index(parse_rules("rule r: relu(x), tanh(y) => tanh(x), relu(y)", "r", catalog).value(), catalog);
  EXPECT_EQ(index.find_all(graph).size(), RuleIndex::max_matches);
}

// A rule with given variables is matched once they have values, and never without.
TEST(RuleIndex, GivenVariablesNeedValues) {
  World world(
      "rule r: relu(x) => concat(relu(s.0), relu(s.1); axis=a) where s = split(x; axis=a, sizes=[m, dim(x, a) - m]) "
      "for a, m if 0 < m, m < dim(x, a)",
      "input x f32[2, 5] output relu(x)");
  EXPECT_EQ(given_variables(world.rules[0]), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_TRUE(RuleIndex(world.rules, world.catalog).find_all(world.graph).empty());
  EXPECT_EQ(with_given_values(world.rules[0], {-1}).error().message, "rule r asks for 2 values, not 1");
  const Substitution rule = with_given_values(world.rules[0], {-1, 2}).value();
  EXPECT_TRUE(rule.attribute_variables.empty());
  const RuleIndex index({rule}, world.catalog);
  const auto matches = index.find_all(world.graph);
  ASSERT_EQ(matches.size(), 1u);
  const Expected<Graph> result = apply(world.graph, rule, matches[0].second, world.catalog);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_THAT(to_string(*result), testing::HasSubstr("sizes=[2, 3]"));
  // The range is a condition like any.
  const Substitution outside = with_given_values(world.rules[0], {-1, 5}).value();
  EXPECT_TRUE(RuleIndex({outside}, world.catalog).find_all(world.graph).empty());
}

TEST(RuleIndex, AxiomsWithABareVariableNeverMatch) {
  World world("axiom a: x = relu(x)", "input x f32[2] output relu(x)");
  EXPECT_TRUE(RuleIndex(world.rules, world.catalog).find_all(world.graph).empty());
}

}  // namespace
}  // namespace taso
