// Plans in the form of other programs: shardings of placements, and collectives in other words.
#include "session/plan_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "onnx_io/builder.h"
#include "operators/ring.h"
#include "partition/collective_graph.h"
#include "partition/expand.h"
#include "session/collective_dialects.h"
#include "session/sharding.h"
#include "support/file.h"
#include "tests/partition/close_tensors.h"
#include "tests/partition/drawn_graphs.h"
#include "tests/partition/drawn_plans.h"
#include "tests/partition/strategy_tables.h"
#include "tests/support/graphs.h"

namespace taso::test {
namespace {

/// A node of a dialect as the collective along the first axis that it is.
Node understood(const Node& node, std::size_t ranks) {
  Node collective = node;
  collective.attributes = {};
  std::vector<std::int64_t> group;
  for (std::size_t rank = 0; rank < ranks; ++rank) group.push_back(static_cast<std::int64_t>(rank));
  std::int64_t axis = 0;
  std::string reducer = "sum";
  if (node.op == "::DistCollective") {
    group = node.attributes.integers("groups");
    EXPECT_EQ(node.attributes.integer("group_size"), static_cast<std::int64_t>(group.size()));
    EXPECT_EQ(node.attributes.integer("nb_rank"), static_cast<std::int64_t>(group.size()));
    collective.op = node.attributes.symbol("collective_operation");
    reducer = node.attributes.symbol("reduce_op");
  } else if (node.op == "com.microsoft::AllReduce") {
    collective.op = "all_reduce";
  } else {
    EXPECT_EQ(node.attributes.integer("group_size"), static_cast<std::int64_t>(ranks));
    collective.op = node.op == "com.microsoft::AllGather" ? "all_gather" : "all_to_all";
    if (collective.op == "all_gather") axis = node.attributes.integer("axis");
  }
  collective.attributes.set("ranks", group);
  collective.attributes.set("axis", axis);
  collective.attributes.set("split_axis", std::int64_t{0});
  collective.attributes.set("reducer", SymbolValue{reducer});
  return collective;
}

/// The graphs of all ranks, in a dialect, as one graph with collectives again.
Graph put_together(const std::vector<Graph>& ranks) {
  Graph whole;
  std::map<NodeId, NodeId> inputs;  // Of the first rank.
  std::vector<Value> outputs;
  std::vector<std::map<Value, Value>> here(ranks.size());
  std::vector<NodeId> next(ranks.size(), 0);
  // In steps: all ranks up to their next collective, so that producers have smaller ids.
  for (std::int64_t number = 0;; ++number) {
    bool more = false;
    std::vector<Node> collectives(ranks.size());
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const Graph& graph = ranks[rank];
      for (NodeId& id = next[rank]; id < graph.id_bound(); ++id) {
        if (!graph.contains(id)) continue;
        Node node = graph.node(id);
        if (node.kind == NodeKind::input) {
          if (rank == 0) inputs[id] = whole.add_input(node.name, node.outputs[0]);
          const auto place = std::find(graph.inputs().begin(), graph.inputs().end(), id) - graph.inputs().begin();
          here[rank][{id, 0}] = {whole.inputs()[static_cast<std::size_t>(place)], 0};
          continue;
        }
        for (Value& input : node.inputs) input = here[rank].at(input);
        if (node.op.find("::") != std::string::npos) break;
        node.device = node.weight_only ? -1 : static_cast<std::int32_t>(rank);
        const auto ports = static_cast<std::uint32_t>(node.outputs.size());
        const NodeId added = whole.add(std::move(node));
        for (std::uint32_t port = 0; port < ports; ++port) here[rank][{id, port}] = {added, port};
      }
      more = more || next[rank] < graph.id_bound();
    }
    if (!more) break;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      const NodeId id = next[rank]++;
      Node node = understood(ranks[rank].node(id), ranks.size());
      node.inputs[0] = here[rank].at(ranks[rank].node(id).inputs[0]);
      node.attributes.set("number", number);
      node.device = static_cast<std::int32_t>(rank);
      here[rank][{id, 0}] = {whole.add(std::move(node)), 0};
    }
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank)
    for (const Value& output : ranks[rank].outputs()) whole.add_output(here[rank].at(output));
  return whole;
}

TEST(CollectiveDialects, ComputeWhatPlansCompute) {
  const std::vector<std::vector<std::int64_t>> meshes = {{2}, {4}, {2, 2}, {3}, {2, 3}};
  StrategyTable strategies = every_strategy();
  std::set<std::string> words;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const DrawnGraph drawn_graph = draw_small_graph(seed);
    const Graph& graph = drawn_graph.graph;
    const Doubles& inputs = drawn_graph.inputs;
    DoubleRing ring;
    const Doubles expected = value_of(evaluate(graph, registry(), ring, inputs));
    const Mesh mesh = mesh_of_sizes(meshes[seed % meshes.size()]);
    const auto devices = static_cast<std::size_t>(mesh.devices());
    Planner planner(graph, mesh, strategies, {});
    const PartitionPlan plan = value_of(planner.plan(drawn(seed, 3)));
    for (const CollectiveDialect* dialect : {&onnx_runtime_collectives(), &tensorrt_collectives()}) {
      const auto expansion = expand_with_collectives(graph, plan, strategies, dialect->vocabulary);
      if (!expansion) continue;
      std::vector<Graph> ranks;
      for (std::size_t rank = 0; rank < devices; ++rank) {
        ranks.push_back(value_of(in_dialect(graph_of_rank(expansion->graph, rank, devices), *dialect, registry())));
        for (const NodeId id : ranks.back().topological_order())
          if (const Node& node = ranks.back().node(id); node.op.find("::") != std::string::npos)
            words.insert(node.op == "::DistCollective" ? node.attributes.symbol("collective_operation") : node.op);
      }
      const Graph whole = put_together(ranks);
      for (std::size_t rank = 0; rank < devices; ++rank)
        expect_close(expected,
                     value_of(evaluate(value_of(without_collectives(whole, rank, devices, registry())), registry(),
                                       ring, inputs)),
                     std::string(dialect->program) + ", seed " + std::to_string(seed));
    }
  }
  EXPECT_GE(words.size(), 5U) << ::testing::PrintToString(words);
}

/// Two ranks with different parts of x do one collective; all outputs, those of the first rank first.
Graph one_collective(const Collective& collective, const Mesh& mesh) {
  Graph whole;
  const Value x = {whole.add_input("x", {ElementType::f32, {5, 6, 2}}), 0};
  std::vector<Value> parts;
  for (std::int64_t rank = 0; rank < 2; ++rank) {
    const Attributes part = {{"starts", Shape{rank, 0, 0}}, {"sizes", Shape{4, 6, 2}}, {"steps", Shape{1, 1, 1}}};
    parts.push_back(
        {value_of(add_op(whole, registry(), "slice", part, {x}, {-1, static_cast<std::int32_t>(rank)})), 0});
  }
  for (std::size_t rank = 0; rank < 2; ++rank)
    whole.add_output({whole.add(collective_node(collective, 0, parts[rank], whole.type(parts[rank]), rank, mesh)), 0});
  return whole;
}

TEST(CollectiveDialects, OfEveryCollectiveAlongEveryAxis) {
  using enum Collective::Kind;
  const Mesh mesh = mesh_of_sizes({2});
  DoubleRing ring;
  RingTensor<double> x;
  x.shape = {5, 6, 2};
  for (int i = 0; i < 60; ++i) x.elements.push_back(i * i % 17);
  std::size_t compared = 0;
  const auto compare = [&](const Collective& collective, const CollectiveDialect& dialect) {
    const Graph whole = one_collective(collective, mesh);
    std::vector<Graph> ranks;
    for (std::size_t rank = 0; rank < 2; ++rank)
      ranks.push_back(value_of(in_dialect(graph_of_rank(whole, rank, 2), dialect, registry())));
    const Graph written = put_together(ranks);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const auto value = [&](const Graph& graph) {
        return value_of(
            evaluate(value_of(without_collectives(graph, rank, 2, registry())), registry(), ring, Doubles{x}));
      };
      expect_close(value(whole), value(written),
                   std::string(dialect.program) + ": " + std::string(name_of(collective.kind)));
      ++compared;
    }
  };
  for (std::size_t axis = 0; axis < 3; ++axis) {
    for (const CollectiveDialect* dialect : {&onnx_runtime_collectives(), &tensorrt_collectives()})
      compare({all_gather, {0}, axis, 0, "", 0}, *dialect);
    for (std::size_t split_axis = 0; split_axis < 3; ++split_axis)
      if (split_axis != axis) compare({all_to_all, {0}, axis, split_axis, "", 0}, onnx_runtime_collectives());
    for (const char* reducer : {"sum", "max"})
      compare({reduce_scatter, {0}, axis, 0, reducer, 0}, tensorrt_collectives());
  }
  compare({all_reduce, {0}, 0, 0, "sum", 0}, onnx_runtime_collectives());
  for (const char* reducer : {"sum", "max"}) compare({all_reduce, {0}, 0, 0, reducer, 0}, tensorrt_collectives());
  EXPECT_EQ(compared, 42U);
}

TEST(CollectiveDialects, OfTypesThatAProgramDoesNotHave) {
  const Mesh mesh = mesh_of_sizes({2});
  Graph graph;
  const Value input = {graph.add_input("x", {ElementType::i32, {4, 2}}), 0};
  Collective gather;
  gather.mesh_axes = {0};
  graph.add_output({graph.add(collective_node(gather, 0, input, graph.type(input), 0, mesh)), 0});
  const auto written = in_dialect(graph, onnx_runtime_collectives(), registry());
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().message, "ONNX Runtime has no all_gather for tensors of type i32");
  EXPECT_EQ(written.error().exit_code(), 3);
  EXPECT_TRUE(in_dialect(graph, tensorrt_collectives(), registry()).ok());
}

TEST(JaxScripts, OfWhatPythonDoesNotHave) {
  const Mesh mesh = mesh_of_sizes({2});
  const Graph unknown = graph_of("input x f32[4]\noutput relu(x)\n");
  Graph other = unknown;
  for (NodeId id = 0; id < other.id_bound(); ++id)
    if (other.node(id).is_op("relu")) {
      Node node = other.node(id);
      node.op = "of_a_user";
      other.replace_node(id, node);
    }
  const auto script = jax_script({other, other}, mesh, {"x"}, {"y"}, registry());
  ASSERT_FALSE(script.ok());
  EXPECT_EQ(script.error().message, "the script for JAX has no operator of_a_user");
  const Graph brain = graph_of("input x bf16[4]\noutput relu(x)\n");
  const auto no_type = jax_script({brain, brain}, mesh, {"x"}, {"y"}, registry());
  ASSERT_FALSE(no_type.ok());
  EXPECT_EQ(no_type.error().message, "NumPy has no elements of type bf16");
  EXPECT_TRUE(jax_script({unknown, unknown}, mesh, {"x"}, {"y"}, registry()).ok());
}

TEST(Shardings, OfPlacements) {
  const Mesh mesh = mesh_of_sizes({2, 2});
  const Shape shape = {8, 6};
  const auto of = [&](const AxisCuts& cuts) {
    return sharding_of({boxes_cut_by(cuts, shape, mesh), {}, ""}, shape).value();
  };
  const TensorSharding everywhere_sharding = of({{}, {}});
  EXPECT_TRUE(everywhere_sharding.axes.empty());
  EXPECT_EQ(everywhere_sharding.devices, (std::vector<std::vector<std::int64_t>>{{0, 1, 2, 3}}));
  const TensorSharding grid = of({{1}, {0}});
  ASSERT_EQ(grid.axes.size(), 2U);
  EXPECT_EQ(grid.axes[1].axis, 1);
  EXPECT_EQ(grid.axes[1].extent, 6);
  EXPECT_EQ(grid.axes[1].shards, 2);
  EXPECT_EQ(grid.devices, (std::vector<std::vector<std::int64_t>>{{0}, {2}, {1}, {3}}));
  EXPECT_EQ(of({{1}, {}}).devices, (std::vector<std::vector<std::int64_t>>{{0, 2}, {1, 3}}));
  EXPECT_EQ(of({{0, 1}, {}}).axes[0].shards, 4);
  EXPECT_EQ(sharding_of(on_first(shape, mesh), shape)->devices, (std::vector<std::vector<std::int64_t>>{{0}}));

  const auto unsaid = [&](const Placement& placement, const Shape& extents) {
    EXPECT_FALSE(sharding_of(placement, extents).has_value());
    return why_no_sharding(placement, extents);
  };
  EXPECT_EQ(unsaid({boxes_cut_by({{0}, {}}, shape, mesh), {1}, "sum"}, shape), "partial results");
  EXPECT_EQ(unsaid({boxes_cut_by({{0}, {}}, {7, 6}, mesh), {}, ""}, {7, 6}), "uneven pieces");
  Placement halo{boxes_cut_by({{0}, {}}, shape, mesh), {}, ""};
  ++halo.boxes[0][0].end;
  EXPECT_EQ(unsaid(halo, shape), "halos or parts");
}

/// Protobuf's encoding of a negative integer from -1 down.
std::string negative(int value) { return std::string(1, static_cast<char>(value)) + std::string(8, '\xff') + '\x01'; }

// Field by field as onnx.proto numbers them.
TEST(DeviceAnnotations, Bytes) {
  TensorSharding sharding;
  sharding.axes = {{0, 8, 2}};
  sharding.devices = {{0, 2}, {1, 3}};
  const std::string groups = "\x1a\x0f\x08" + negative(-1) + std::string("\x10\x00\x10\x02", 4) + "\x1a\x0f\x08" +
                             negative(-2) + std::string("\x10\x01\x10\x03", 4);
  const std::string spec = "\x0a\x01x\x10" + negative(-1) + "\x10" + negative(-2) + groups +
                           std::string("\x22\x08\x08\x00\x12\x04\x08\x08\x18\x02", 10);
  EXPECT_EQ(spec.size(), 0x45U);
  EXPECT_EQ(node_configuration_bytes("c", {{"x", sharding}}),
            "\x0a\x01"
            "c"
            "\x12\x45" +
                spec);
  sharding.axes.clear();
  sharding.devices = {{1}};
  EXPECT_EQ(node_configuration_bytes("c", {{"x", sharding}}),
            "\x0a\x01"
            "c"
            "\x12\x05\x0a\x01x\x10\x01");
  EXPECT_EQ(device_configuration_bytes({"c", 2, {}}),
            "\x0a\x01"
            "c"
            "\x10\x02\x1a\x08"
            "device 0"
            "\x1a\x08"
            "device 1");
}

TEST(DeviceAnnotations, StandInTheFile) {
  ModelBuilder builder(17, "annotated");
  builder.add_input("x", {8, 6});
  builder.add_node("Relu", {"x"}, {"y"});
  builder.add_output("y", {8, 6});
  const Model model = value_of(Model::parse(builder.serialize(), "m.onnx", registry()));
  const NodeId relu = model.graph().outputs()[0].node;
  TensorSharding sharding;
  sharding.axes = {{0, 8, 2}};
  sharding.devices = {{0}, {1}};
  SaveOptions options;
  options.annotations = DeviceAnnotations{"c", 2, {{relu, {{}, {{Value{relu, 0}, sharding}}}}}};
  const std::string path = ::testing::TempDir() + "annotated.onnx";
  EXPECT_EQ(value_of(model.save(model.graph(), path, options)).annotated_tensors, 1);
  const std::string bytes = value_of(read_file(path));
  EXPECT_THAT(bytes, ::testing::HasSubstr("\x52\x16" + node_configuration_bytes("c", {{"y", sharding}})));
  EXPECT_THAT(bytes, ::testing::HasSubstr("\xd2\x01\x19" + device_configuration_bytes(*options.annotations)));
  const Model again = value_of(Model::load(path, registry()));
  EXPECT_EQ(again.ir_version(), ir_version_of_annotations);
  EXPECT_TRUE(again.graph().equals(model.graph()));
}

}  // namespace
}  // namespace taso::test
