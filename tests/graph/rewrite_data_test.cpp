// Runs tests/data/rewrite/*.cases:
//
//   rules:          rule text (absent: only the normal form is tested)
//   graph:          a graph
//   matches N       the rules have N matches in the normal form of the graph
//   becomes:        applying some match gives this graph (without rules: normalize gives it)
//   exhausts:       applying the first match that applies, again and again, ends in this graph
//   misses TEXT     the first places at which the only rule nearly matches, in this order: "2 of 3: why"; `nothing`:
//   none fails TEXT      no match can be applied; the reason of the first holds this text
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/graph_text.h"
#include "graph/near_miss.h"
#include "graph/rewrite.h"
#include "tests/support/cases.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using test::CaseCount;
using test::CaseValue;
using test::TextCase;

const test::CaseKeys& rewrite_keys() {
  static const test::CaseKeys keys = {
      {"rules", CaseValue::section, CaseCount::optional},    {"graph", CaseValue::section, CaseCount::once},
      {"matches", CaseValue::integer, CaseCount::optional},  {"becomes", CaseValue::section, CaseCount::optional},
      {"exhausts", CaseValue::section, CaseCount::optional}, {"fails", CaseValue::words, CaseCount::optional},
      {"misses", CaseValue::words, CaseCount::repeated}};
  return keys;
}

class RewriteData : public ::testing::TestWithParam<TextCase> {};

TEST_P(RewriteData, Holds) {
  const TextCase& test = GetParam();
  const OperatorRegistry& catalog = test::registry();
  auto graph_of = [&](const std::string& section) {
    Expected<Graph> graph = parse_graph(test.placed(section), test.file, catalog);
    EXPECT_TRUE(graph.ok()) << (graph ? "" : graph.error().to_string());
    Graph result = graph ? *graph : Graph();
    normalize(result, catalog);
    EXPECT_TRUE(result.validate().ok());
    return result;
  };
  ASSERT_TRUE(test.has("matches") || test.has("becomes") || test.has("exhausts") || test.has("fails") ||
              test.has("misses"));
  Graph graph = graph_of("graph");
  Expected<std::vector<Substitution>> rules = std::vector<Substitution>();
  if (test.has("rules")) rules = parse_rules(test.placed("rules"), test.file, catalog);
  ASSERT_TRUE(rules.ok()) << rules.error().to_string();
  const RuleIndex index(*rules, catalog);
  if (test.has("matches")) {
    EXPECT_EQ(index.find_all(graph).size(), static_cast<std::size_t>(test.integer("matches")));
  }
  if (test.has("becomes")) {
    const Graph expected = graph_of("becomes");
    bool found = rules->empty() && graph.equals(expected);
    std::string seen = to_text(graph);
    for (const auto& [rule, match] : index.find_all(graph)) {
      const Expected<Graph> result = apply(graph, index.rules()[rule], match, catalog);
      seen += "---- " + index.rules()[rule].name + "\n" + (result ? to_text(*result) : result.error().message + "\n");
      if (!result) continue;
      EXPECT_TRUE(result->validate().ok());
      Graph again = *result;
      normalize(again, catalog);
      EXPECT_TRUE(again.equals(*result)) << "not in normal form:\n" << to_text(*result) << "but\n" << to_text(again);
      found = found || result->equals(expected);
    }
    EXPECT_TRUE(found) << "expected\n" << to_text(expected) << "found\n" << seen;
  }
  if (test.has("fails")) {
    std::string reason;
    for (const auto& [rule, match] : index.find_all(graph)) {
      const Expected<Graph> result = apply(graph, index.rules()[rule], match, catalog);
      EXPECT_FALSE(result.ok()) << to_text(*result);
      if (!result && reason.empty()) reason = result.error().message;
    }
    EXPECT_THAT(reason, ::testing::HasSubstr(test.text("fails")));
    EXPECT_FALSE(reason.empty());
  }
  if (test.has("misses")) {
    ASSERT_EQ(rules->size(), 1U);
    const auto name = [&](Value value) {
      const Node& node = graph.node(value.node);
      return node.kind == NodeKind::input ? node.name : node.kind == NodeKind::constant ? "a constant" : node.op;
    };
    const RuleOccurrences found = find_occurrences(graph, rules->front(), catalog, name);
    std::vector<std::string> lines;
    for (const NearMiss& miss : found.near_misses)
      lines.push_back(std::to_string(miss.nodes.size()) + " of " + std::to_string(found.operators) + ": " +
                      miss.obstacle);
    std::vector<std::string> expected = test.all("misses");
    if (expected.front() == "nothing") expected.clear();
    EXPECT_GE(lines.size(), expected.size());
    if (!expected.empty()) lines.resize(std::min(lines.size(), expected.size()));
    EXPECT_EQ(lines, expected);
    EXPECT_LE(found.matches, index.find_all(graph).size());
  }
  if (test.has("exhausts")) {
    Graph now = graph;
    for (int step = 0; step < 50; ++step) {
      bool changed = false;
      for (const auto& [rule, match] : index.find_all(now)) {
        Expected<Graph> result = apply(now, index.rules()[rule], match, catalog);
        if (!result) continue;
        now = std::move(*result);
        changed = true;
        break;
      }
      if (!changed) break;
      ASSERT_LT(step, 49) << "does not end:\n" << to_text(now);
    }
    const Graph expected = graph_of("exhausts");
    EXPECT_TRUE(now.equals(expected)) << "expected\n" << to_text(expected) << "found\n" << to_text(now);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, RewriteData,
                         ::testing::ValuesIn(test::load_cases("tests/data/rewrite", rewrite_keys())), test::case_name);

}  // namespace
}  // namespace taso
