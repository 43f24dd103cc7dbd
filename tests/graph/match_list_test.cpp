// Lists of matches that are made from others: always what is found anew.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "graph/graph_text.h"
#include "graph/rewrite.h"
#include "support/random.h"
#include "tests/graph/fake_catalog.h"
#include "tests/graph/same_matches.h"

namespace taso {
namespace {

using Integers = std::vector<std::int64_t>;

RuleIndex index_of(const std::string& rules, const OperatorCatalog& catalog) {
  return {parse_rules(rules, "rules", catalog).value(), catalog};
}

TensorType matrix(std::int64_t rows, std::int64_t columns) { return {ElementType::f32, {rows, columns}, true}; }

NodeId add(Graph& graph, const OperatorCatalog& catalog, const std::string& op, std::vector<Value> inputs,
           const Attributes& attributes = {}) {
  return add_op(graph, catalog, op, attributes, std::move(inputs)).value();
}

constexpr const char* merge_rule =
    "rule merge: matmul(x, a), matmul(x, b) => s.0, s.1 "
    "where s = split(matmul(x, concat(a, b; axis=-1)); axis=-1, sizes=[dim(a, -1), dim(b, -1)]) ";

TEST(MatchList, OfTheEmptyGraphIsEmpty) {
  FakeCatalog catalog;
  const RuleIndex index = index_of(merge_rule, catalog);
  EXPECT_TRUE(MatchList().matches().empty());
  EXPECT_EQ(MatchList().graph().size(), 0U);
  EXPECT_TRUE(index.update({}, Graph()).matches().empty());
}

TEST(MatchList, KnowsItsGraphAndRulesThatAreAdded) {
  FakeCatalog catalog;
  RuleIndex index = index_of("rule a: relu(x) => x", catalog);
  const Graph graph = parse_graph("input x f32[2] output tanh(relu(x))", "graph", catalog).value();
  const MatchList list = index.update({}, graph);
  EXPECT_EQ(list.graph().outputs(), graph.outputs());
  EXPECT_EQ(list.matches().size(), 1U);
  index.add(parse_rules("rule b: tanh(x) => x", "rules", catalog).value()[0]);
  const MatchList next = index.update(list, graph);
  EXPECT_EQ(next.matches().size(), 2U);
  EXPECT_EQ(wrong_match(index, next, graph), "");
}

/// No node differs, but the order of the roles does.
TEST(MatchList, WhichOfSymmetricMatchesIsReportedDependsOnTheOutputs) {
  FakeCatalog catalog;
  const RuleIndex index = index_of(merge_rule, catalog);
  Graph graph = parse_graph(
                    "input x f32[2, 4] weight a f32[4, 2] weight b f32[4, 3] weight c f32[4, 1] "
                    "output matmul(x, a), matmul(x, b), matmul(x, c)",
                    "graph", catalog)
                    .value();
  const MatchList list = index.update({}, graph);
  ASSERT_EQ(list.matches().size(), 3U);
  const Match first = *list.matches()[0].second;
  std::vector<Value> outputs = graph.outputs();
  std::reverse(outputs.begin(), outputs.end());
  graph.set_outputs(outputs);
  const MatchList reversed = index.update(list, graph);
  EXPECT_EQ(wrong_match(index, reversed, graph), "");
  ASSERT_EQ(reversed.matches().size(), 3U);
  EXPECT_NE(*reversed.matches()[0].second, first);
  std::swap(outputs[0], outputs[1]);
  graph.set_outputs(outputs);
  EXPECT_EQ(wrong_match(index, index.update(reversed, graph), graph), "");
  EXPECT_EQ(wrong_match(index, index.update(list, graph), graph), "");
  // The same of matches that were found where the graph differs.
  MatchList next = index.update({}, graph);
  const NodeId x = graph.inputs()[0];
  const NodeId weight = graph.node(outputs[0].node).inputs[1].node;
  const NodeId negative = add(graph, catalog, "sub", {{weight, 0}, {weight, 0}});
  outputs.push_back({add(graph, catalog, "matmul", {{x, 0}, {negative, 0}}), 0});
  graph.set_outputs(outputs);
  next = index.update(next, graph);
  EXPECT_EQ(next.matches().size(), 6U);
  std::reverse(outputs.begin(), outputs.end());
  graph.set_outputs(outputs);
  EXPECT_EQ(wrong_match(index, index.update(next, graph), graph), "");
}

/// What becomes weight-only far from the change matches no more.
TEST(MatchList, FollowsWhatCostsNothing) {
  FakeCatalog catalog;
  const RuleIndex index = index_of("rule r: relu(x) => tanh(x)", catalog);
  Graph graph = parse_graph("input x f32[2] weight w f32[2] y = tanh(add(x, w)) output mul(relu(tanh(tanh(y))), w)",
                            "graph", catalog)
                    .value();
  const MatchList list = index.update({}, graph);
  ASSERT_EQ(list.matches().size(), 1U);
  const Graph before = graph;
  for (NodeId id = 0; id < before.id_bound(); ++id)
    if (before.node(id).kind == NodeKind::constant) graph.replace_uses(Value{graph.inputs()[0], 0}, Value{id, 0});
  const MatchList folded = index.update(list, graph);
  EXPECT_TRUE(folded.matches().empty());
  EXPECT_EQ(wrong_match(index, folded, graph), "");
  EXPECT_EQ(wrong_match(index, index.update(folded, before), before), "");
}

/// Parts of a source that share nothing are looked for where something reads both: that may be all that is new.
TEST(MatchList, FindsPartsThatANewNodeReadsTogether) {
  FakeCatalog catalog;
  const RuleIndex index = index_of("rule r: relu(x), relu(y) => tanh(x), tanh(y)", catalog);
  Graph graph = parse_graph("input x f32[2] input y f32[2] output relu(x), relu(y)", "graph", catalog).value();
  const Graph apart = graph;
  const MatchList list = index.update({}, graph);
  EXPECT_TRUE(list.matches().empty());
  graph.add_output({add(graph, catalog, "add", {graph.outputs()[0], graph.outputs()[1]}), 0});
  const MatchList joined = index.update(list, graph);
  EXPECT_EQ(joined.matches().size(), 1U);
  EXPECT_EQ(wrong_match(index, joined, graph), "");
  EXPECT_TRUE(index.update(joined, apart).matches().empty());
}

/// A match may begin at a node that is new for any of its parts, and is found once.
TEST(MatchList, FindsAMatchOfSeveralNewNodesOnce) {
  FakeCatalog catalog;
  const RuleIndex index = index_of("rule r: tanh(add(relu(x), relu(y))) => x", catalog);
  const std::string start = "input x f32[2] input y f32[2] ";
  Graph graph = parse_graph(start + "output relu(x)", "graph", catalog).value();
  const MatchList list = index.update({}, graph);
  const Value left = graph.outputs()[0];
  const NodeId right = add(graph, catalog, "relu", {{graph.inputs()[1], 0}});
  graph.add_output({add(graph, catalog, "tanh", {{add(graph, catalog, "add", {left, {right, 0}}), 0}}), 0});
  const MatchList next = index.update(list, graph);
  EXPECT_EQ(next.matches().size(), 2U);  // x and y either way
  EXPECT_EQ(wrong_match(index, next, graph), "");
}

/// Where zeros of both signs stand for one variable, the same one is told wherever matching began.
TEST(MatchList, TellsTheSameZero) {
  FakeCatalog catalog;
  const RuleIndex index = index_of("rule r: clip(tanh(clip(x; min=a)); min=a) => clip(x; min=a)", catalog);
  for (const double inner : {0.0, -0.0}) {
    Graph graph;
    const NodeId x = graph.add_input("x", matrix(1, 1));
    const NodeId first = add(graph, catalog, "clip", {{x, 0}}, {{"min", inner}});
    const NodeId middle = add(graph, catalog, "tanh", {{first, 0}});
    graph.set_outputs({{middle, 0}});
    const MatchList list = index.update({}, graph);
    const NodeId last = add(graph, catalog, "clip", {{middle, 0}}, {{"min", -inner}});
    graph.set_outputs({{last, 0}});
    const MatchList next = index.update(list, graph);
    ASSERT_EQ(next.matches().size(), 1U);
    EXPECT_EQ(std::signbit(std::get<double>(*next.matches()[0].second->attributes[0])), std::signbit(inner));
    EXPECT_EQ(wrong_match(index, next, graph), "");
  }
}

/// At the cap it is a matter of order which matches there are; from one side of it to the other.
TEST(MatchList, KeepsToTheCap) {
  FakeCatalog catalog;
  const RuleIndex index = index_of("rule r: add(x, y), mul(x, z) => mul(x, y), add(x, z)", catalog);
  Graph graph;
  const NodeId x = graph.add_input("x", matrix(1, 1));
  const NodeId fork = add(graph, catalog, "relu", {{x, 0}});
  std::vector<Value> outputs;
  for (std::uint32_t i = 0; i < 142; ++i) {
    const NodeId other = graph.add_input("y" + std::to_string(i), matrix(1, 1));
    outputs.push_back({add(graph, catalog, "add", {{fork, 0}, {other, 0}}), 0});
    const NodeId third = add(graph, catalog, "tanh", {{other, 0}});
    outputs.push_back({add(graph, catalog, "mul", {{fork, 0}, {third, 0}}), 0});
  }
  graph.set_outputs(outputs);
  std::vector<Graph> graphs = {graph};
  for (int i = 0; i < 2; ++i) {  // one add less, then one mul less
    graph.erase(outputs.front().node);
    outputs.erase(outputs.begin());
    graph.set_outputs(outputs);
    graphs.push_back(graph);
  }
  ASSERT_EQ(index.find_all(graphs[0]).size(), RuleIndex::max_matches);
  ASSERT_EQ(index.find_all(graphs[1]).size(), RuleIndex::max_matches);
  ASSERT_EQ(index.find_all(graphs[2]).size(), 141U * 141U);
  MatchList list = index.update({}, graphs[0]);
  for (const int next : {1, 2, 1, 0, 2, 0}) {
    list = index.update(list, graphs[static_cast<std::size_t>(next)]);
    EXPECT_EQ(wrong_match(index, list, graphs[static_cast<std::size_t>(next)]), "");
  }
}

TEST(MatchList, CountsItsBytesOnce) {
  FakeCatalog catalog;
  const RuleIndex index = index_of("rule r: relu(x) => tanh(x)", catalog);
  Graph graph;
  const NodeId x = graph.add_input("x", matrix(1, 1));
  Value last = {x, 0};
  for (int i = 0; i < 200; ++i) last = {add(graph, catalog, "relu", {last}), 0};
  graph.add_output(last);
  const MatchList none;
  {
    const MatchList list = index.update(none, graph);
    const std::size_t one = list.family_bytes();
    EXPECT_GT(one, 200 * sizeof(Match));
    EXPECT_EQ(none.family_bytes(), one);
    {
      const auto changed = apply(graph, index.rules()[0], *list.matches()[100].second, catalog);
      const MatchList next = index.update(list, changed.value());
      EXPECT_EQ(next.matches().size(), 199U);
      EXPECT_GT(none.family_bytes(), one);
      EXPECT_LT(none.family_bytes(), one + one / 2);  // pointers, but no matches
    }
    EXPECT_EQ(none.family_bytes(), one);
  }
  EXPECT_EQ(none.family_bytes(), 0U);
}

/// Random graphs with long concatenations and splits, shared weights and shared subterms; several rewrites between two
/// lists; lists made from the last one, from that of the first graph, and from that of another graph.
TEST(MatchList, IsWhatIsFoundAnewAlongRandomWalks) {
  FakeCatalog catalog;
  const RuleIndex index = index_of(
      std::string(merge_rule) +
          "rule add: add(x, y) => mul(y, x) rule mul: mul(relu(x), y) => add(y, relu(x)) "
          "rule outer: add(relu(x), relu(y)) => relu(add(x, y)) "
          "rule apart: relu(x), relu(y) => tanh(x), tanh(y) "
          "rule far: relu(x), tanh(relu(y)) => tanh(x), y "
          "rule joined: concat(relu(x), relu(y); axis=-1) => relu(concat(x, y; axis=-1)) "
          "rule pair: concat(x, y; axis=-1) => concat(tanh(x), y; axis=-1) "
          "rule pieces: relu(s.0), relu(s.1) => t.0, t.1 where s = split(x; axis=-1, sizes=[a, b]), "
          "t = split(relu(x); axis=-1, sizes=[a, b]) "
          "rule gone: concat(s.0, s.1; axis=-1) => x where s = split(x; axis=-1, sizes=[a, b]) "
          "rule any: relu(s.0) => t.0 where s = split(x; axis=-1, sizes=z), t = split(relu(x); axis=-1, sizes=z) "
          "rule sub: sub(x, y), sub(y, x) => x, y "
          "rule twice: relu(relu(x)) => relu(x) rule swap: tanh(x) => relu(x) ",
      catalog);
  Random random(3, "walks");
  std::size_t steps = 0, taken_over = 0, found = 0;
  std::vector<std::size_t> applied(index.rules().size());
  MatchList last;
  for (int round = 0; round < 150; ++round) {
    Graph graph;
    std::vector<Value> values;
    for (int i = 0; i < 3; ++i) values.push_back({graph.add_input("x" + std::to_string(i), matrix(2, 4)), 0});
    for (int i = 0; i < 3; ++i)
      values.push_back({graph.add_constant(ConstantData::of_floats(i < 2 ? Shape{4, 4} : Shape{2, 4},
                                                                   std::vector<float>(i < 2 ? 16 : 8, 0.5F + i))),
                        0});
    const auto any = [&] { return values[random.below(values.size())]; };
    const std::uint64_t size = 10 + random.below(40);
    for (std::uint64_t attempt = 0; attempt < 8 * size && graph.size() < size; ++attempt) {
      static const std::vector<std::string> operators = {"add",  "mul",    "sub",    "relu",   "relu",
                                                         "tanh", "matmul", "matmul", "concat", "split"};
      const std::string& op = operators[random.below(operators.size())];
      std::vector<Value> inputs = {any()};
      Attributes attributes;
      if (op == "add" || op == "mul" || op == "sub" || op == "matmul") inputs.push_back(any());
      if (op == "concat")
        for (std::uint64_t more = 1 + random.below(5); more > 0; --more) inputs.push_back(any());
      if (op == "concat" || op == "split") attributes.set("axis", std::int64_t{-1});
      if (op == "split") attributes.set("sizes", Integers(static_cast<std::size_t>(graph.type(inputs[0]).shape[1]), 1));
      const auto id = add_op(graph, catalog, op, attributes, inputs);
      if (!id || graph.type({*id, 0}).shape[1] > 12) continue;
      for (std::uint32_t port = 0; port < graph.node(*id).outputs.size(); ++port) values.push_back({*id, port});
    }
    const auto consumers = graph.consumers();
    for (const Value& value : values)
      if (consumers[value.node].empty() || random.below(8) == 0) graph.add_output(value);
    normalize(graph, catalog);
    const MatchList first = index.update(last, graph);  // of a graph that has nothing to do with this one
    ASSERT_EQ(wrong_match(index, first, graph), "");
    last = first;
    for (int step = 0; step < 12; ++step) {
      for (std::uint64_t together = random.below(3) + 1; together > 0; --together) {
        const auto matches = index.find_all(graph);
        if (matches.empty()) break;
        const auto& [rule, chosen] = matches[random.below(matches.size())];
        auto result = apply(graph, index.rules()[rule], chosen, catalog);
        if (!result) continue;
        ++applied[rule];
        graph = std::move(result).value();
      }
      if (random.below(4) == 0 && graph.outputs().size() > 1) {
        std::vector<Value> outputs = graph.outputs();
        std::swap(outputs[random.below(outputs.size())], outputs[0]);
        graph.set_outputs(outputs);
      }
      ASSERT_EQ(wrong_match(index, index.update(first, graph), graph), "");
      const MatchList next = index.update(last, graph);
      ASSERT_EQ(wrong_match(index, next, graph), "");
      std::set<const Match*> old;
      for (const auto& [rule, match] : last.matches()) old.insert(match);
      for (const auto& [rule, match] : next.matches()) ++(old.contains(match) ? taken_over : found);
      last = next;
      ++steps;
    }
  }
  EXPECT_GT(steps, 1000U);
  EXPECT_GT(taken_over, found);  // as it should: otherwise all is found anew and nothing is tested
  EXPECT_GT(found, steps);
  for (std::size_t rule = 0; rule < applied.size(); ++rule)
    EXPECT_GT(applied[rule], 0U) << index.rules()[rule].name << " is never applied";
}

}  // namespace
}  // namespace taso
