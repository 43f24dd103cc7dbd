#include "graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "graph/graph_text.h"
#include "graph/rewrite.h"
#include "support/random.h"
#include "tests/graph/fake_catalog.h"

namespace taso {
namespace {

const TensorType pair_type = {ElementType::f32, {2}, true};

Graph parse(const std::string& text) {
  const FakeCatalog catalog;
  Expected<Graph> graph = parse_graph(text, "g", catalog);
  EXPECT_TRUE(graph.ok()) << graph.error().to_string();
  return graph ? std::move(*graph) : Graph();
}

TEST(Attributes, AreSortedAndTold) {
  Attributes a{{"b", std::int64_t{1}}, {"a", 0.5}};
  Attributes b{{"a", 0.5}, {"b", std::int64_t{2}}};
  b.set("b", std::int64_t{1});
  EXPECT_EQ(a, b);
  EXPECT_EQ(to_string(a), "a=0.5, b=1");
  EXPECT_EQ(a.find("c"), nullptr);
  EXPECT_EQ(a.integer("b"), 1);
  EXPECT_EQ(a.real("a"), 0.5);
}

TEST(Attributes, ValuesPrintUnambiguously) {
  EXPECT_EQ(to_string(AttributeValue(2.0)), "2.0");
  EXPECT_EQ(to_string(AttributeValue(-0.0)), "-0.0");
  EXPECT_EQ(to_string(AttributeValue(1e30)), "1e+30");
  EXPECT_EQ(to_string(AttributeValue(0.1)), "0.1");
  EXPECT_EQ(to_string(AttributeValue(std::numeric_limits<double>::infinity())), "inf");
  EXPECT_EQ(to_string(AttributeValue(std::int64_t{-7})), "-7");
  EXPECT_EQ(to_string(AttributeValue(std::vector<std::int64_t>{})), "[]");
  EXPECT_EQ(to_string(AttributeValue(SymbolValue{"relu"})), "relu");
}

TEST(Attributes, HashesTellKindsApart) {
  auto hash = [](const AttributeValue& value) {
    Hasher hasher;
    add_to_hash(hasher, value);
    return hasher.finish();
  };
  EXPECT_NE(hash(std::int64_t{1}), hash(1.0));
  EXPECT_NE(hash(std::vector<std::int64_t>{1}), hash(std::int64_t{1}));
  EXPECT_NE(hash(SymbolValue{"a"}), hash(SymbolValue{"b"}));
}

TEST(Graph, TopologicalOrderHasProducersFirst) {
  const Graph graph = parse("input x f32[2] y = relu(x) z = add(tanh(y), y) o = opaque f(z) f32[2] output y, z");
  const std::vector<NodeId> order = graph.topological_order();
  EXPECT_EQ(order.size(), graph.size());
  std::vector<char> seen(graph.id_bound(), 0);
  for (const NodeId id : order) {
    for (const Value& input : graph.node(id).inputs) EXPECT_TRUE(seen[input.node]);
    seen[id] = 1;
  }
}

TEST(Graph, ReplacesSeveralValuesAtOnce) {
  Graph graph = parse("input x f32[2] a = relu(x) b = tanh(x) output sub(a, b), a, b");
  const Value a = graph.outputs()[1], b = graph.outputs()[2];
  graph.replace_uses({{a, b}, {b, a}});
  EXPECT_TRUE(graph.equals(parse("input x f32[2] a = relu(x) b = tanh(x) output sub(b, a), b, a")));
}

TEST(Graph, WeightOnlyFollowsReplacements) {
  Graph graph = parse("input x f32[2] weight w f32[2] a = relu(x) b = tanh(a) output add(b, w), a, w");
  const Value sum = graph.outputs()[0], a = graph.outputs()[1], w = graph.outputs()[2];
  const NodeId b = graph.node(sum.node).inputs[0].node;
  EXPECT_FALSE(graph.node(b).weight_only);
  graph.replace_uses(a, w);
  EXPECT_TRUE(graph.node(b).weight_only);
  EXPECT_TRUE(graph.node(sum.node).weight_only);
  EXPECT_TRUE(graph.validate().ok());
}

TEST(Graph, RemovesDeadNodesButNoInputsAndNoOpaqueOnes) {
  Graph graph = parse("input x f32[2] input u f32[2] a = relu(x) b = tanh(a) o = opaque f(a) f32[2] output x");
  graph.remove_dead();
  EXPECT_EQ(graph.size(), 4u);  // x, u, a, o
  graph.remove_dead(false);
  EXPECT_EQ(graph.size(), 2u);
  EXPECT_TRUE(graph.validate().ok());
}

TEST(Graph, CopiesAreIndependent) {
  const Graph original = parse("input x f32[2] output relu(x)");
  Graph copy = original;
  copy.replace_uses(copy.outputs()[0], {copy.inputs()[0], 0});
  copy.remove_dead();
  EXPECT_EQ(original.size(), 2u);
  EXPECT_EQ(copy.size(), 1u);
  EXPECT_FALSE(copy.equals(original));
}

TEST(Graph, ConsumersAreListedInOrder) {
  Graph graph = parse("input x f32[2] input z f32[2] y = relu(x) output add(y, y), tanh(y), mul(x, y)");
  const NodeId gone = graph.outputs()[1].node;
  graph.set_outputs({graph.outputs()[0], graph.outputs()[2]});
  graph.erase(gone);
  const Consumers consumers(graph);
  ASSERT_EQ(consumers.id_bound(), graph.id_bound());
  const auto expected = graph.consumers();
  for (NodeId id = 0; id < graph.id_bound(); ++id) {
    const auto uses = consumers.of(id);
    EXPECT_EQ(std::vector(uses.begin(), uses.end()), expected[id]);
  }
  EXPECT_GE(consumers.bytes(), 5 * sizeof(std::pair<NodeId, std::uint32_t>));
}

TEST(Graph, ReachesAlongEdges) {
  const Graph graph = parse("input x f32[2] a = relu(x) b = tanh(a) c = tanh(x) output a, b, c");
  const NodeId a = graph.outputs()[0].node, b = graph.outputs()[1].node, c = graph.outputs()[2].node;
  EXPECT_TRUE(graph.reaches(a, b));
  EXPECT_TRUE(graph.reaches(a, a));
  EXPECT_FALSE(graph.reaches(b, a));
  EXPECT_FALSE(graph.reaches(a, c));
}

TEST(Graph, ValidateFindsCyclesAndWrongReads) {
  Graph graph = parse("input x f32[2] a = relu(x) b = tanh(a) output b, a");
  const Value b = graph.outputs()[0], a = graph.outputs()[1];
  Graph cyclic = graph;
  cyclic.set_inputs(a.node, {b});
  EXPECT_THAT(cyclic.validate().error().message, testing::HasSubstr("cycle"));
  Graph dangling = graph;
  dangling.set_outputs({{b.node, 3}});
  EXPECT_THAT(dangling.validate().error().message, testing::HasSubstr("output"));
  Graph erased = graph;
  erased.erase(a.node);
  EXPECT_THAT(erased.validate().error().message, testing::HasSubstr("does not exist"));
}

TEST(Graph, EqualityIsCanonical) {
  const Graph graph = parse("input x f32[2] input y f32[2] a = relu(x) b = tanh(y) output add(a, b), a");
  const Graph other_order = parse("input x f32[2] input y f32[2] b = tanh(y) a = relu(x) output add(a, b), a");
  EXPECT_TRUE(graph.equals(other_order));
  EXPECT_EQ(graph.structural_hash(), other_order.structural_hash());
  for (const char* different : {"input x f32[2] input y f32[2] a = relu(x) b = tanh(y) output add(b, a), a",
                                "input x f32[2] input y f32[2] a = relu(x) b = tanh(x) output add(a, b), a",
                                "input y f32[2] input x f32[2] a = relu(x) b = tanh(y) output add(a, b), a",
                                "input x f32[2] input y f32[2] a = relu(x) b = tanh(y) output a, add(a, b)",
                                "input x f32[2] input y f32[2] a = relu(x) b = tanh(y) output add(a, b)",
                                "input x f32[2] input z f32[2] a = relu(x) b = tanh(z) output add(a, b), a",
                                "input x f32[3] input y f32[3] a = relu(x) b = tanh(y) output add(a, b), a"}) {
    EXPECT_FALSE(graph.equals(parse(different))) << different;
    EXPECT_NE(graph.structural_hash(), parse(different).structural_hash()) << different;
  }
}

TEST(Graph, EqualityCountsNodes) {
  const Graph shared = parse("input x f32[2] a = relu(x) output add(a, a)");
  const Graph twice = parse("input x f32[2] a = relu(x) b = relu(x) output add(a, b)");
  EXPECT_FALSE(shared.equals(twice));
  EXPECT_FALSE(twice.equals(shared));
}

TEST(Graph, OpaqueNodesThatNothingReadsCount) {
  const Graph with = parse("input x f32[2] o = opaque print(x) f32[2] output x");
  const Graph without = parse("input x f32[2] output x");
  EXPECT_FALSE(with.equals(without));
  EXPECT_FALSE(without.equals(with));
  EXPECT_NE(with.structural_hash(), without.structural_hash());
}

// The same random DAG inserted in two orders is one graph; a change of one edge is another.
TEST(Graph, HashDoesNotDependOnInsertionOrder) {
  const FakeCatalog catalog;
  Random random(3, "insertion order");
  for (int round = 0; round < 100; ++round) {
    const std::size_t count = 3 + random.below(20);
    struct Plan {
      std::string op;
      std::vector<std::size_t> inputs;  // 0 is the graph input, i + 1 node i.
    };
    std::vector<Plan> plans;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t kind = random.below(4);
      Plan plan = {kind == 0 ? "relu" : kind == 1 ? "tanh" : kind == 2 ? "sub" : "add", {random.below(i + 1)}};
      if (kind >= 2) plan.inputs.push_back(random.below(i + 1));
      plans.push_back(std::move(plan));
    }
    auto build = [&](bool shuffled) {
      Graph graph;
      std::vector<std::optional<Value>> made(count + 1);
      made[0] = Value{graph.add_input("x", pair_type), 0};
      for (std::size_t left = count; left > 0;) {
        const std::size_t i = shuffled ? random.below(count) : count - left;
        bool ready = !made[i + 1];
        for (const std::size_t input : plans[i].inputs) ready = ready && made[input];
        if (!ready) continue;
        std::vector<Value> inputs;
        for (const std::size_t input : plans[i].inputs) inputs.push_back(*made[input]);
        made[i + 1] = Value{*add_op(graph, catalog, plans[i].op, {}, inputs), 0};
        --left;
      }
      graph.add_output(*made[count]);
      graph.add_output(*made[count / 2]);
      return graph;
    };
    Graph a = build(false), b = build(true);
    EXPECT_TRUE(a.equals(b));
    EXPECT_EQ(a.structural_hash(), b.structural_hash());
    normalize(a, catalog);
    normalize(b, catalog);
    EXPECT_TRUE(a.equals(b));
    EXPECT_EQ(a.structural_hash(), b.structural_hash());
    Graph c = a;
    c.add_output({c.inputs()[0], 0});
    EXPECT_NE(c.structural_hash(), a.structural_hash());
  }
}

TEST(Graph, ListingNamesEveryNode) {
  const std::string text = to_string(parse("input x f32[2] output relu(x)"));
  EXPECT_EQ(text, "%0 = input \"x\" : f32[2]\n%1 = relu(%0) : f32[2]\noutputs %1\n");
}

}  // namespace
}  // namespace taso
