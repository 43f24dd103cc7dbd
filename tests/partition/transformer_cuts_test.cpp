// Which cut of a transformer's block comes out by itself: Megatron's (Shoeybi et al. 2019, section 3) where few tokens
// read many weights, or where weights must be cut to fit; the tokens where weights are free; the batch where it is
// large.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "graph/rewrite.h"
#include "partition/plan_baselines.h"
#include "partition/planner.h"
#include "partition/products_apart.h"
#include "tests/partition/strategy_tables.h"
#include "tests/support/graphs.h"

namespace taso {
namespace {

using test::every_strategy;
using test::graph_of;
using test::registry;
using test::value_of;

constexpr std::int64_t block_features = 256, block_heads = 4, block_devices = 4;
/// Queries, keys, their product, values, their mean, the output of attention, and the two layers behind it.
constexpr const char* megatron_cuts = "j@-1 j@-1 (J@-3) j@-1 (J@-3) t (sum) j@-1 t (sum)";

std::string shape_text(std::initializer_list<std::int64_t> list) {
  std::string text;
  for (const std::int64_t number : list) text += (text.empty() ? "[" : ", ") + std::to_string(number);
  return text + "]";
}

/// An encoder's block. `fused`: queries, keys and values are one product with a bias, as in GPT-2, and
/// so are the others.
std::string encoder(std::int64_t batch, std::int64_t tokens, bool fused) {
  const std::string shape = shape_text({batch, tokens, block_features});
  const std::string apart = shape_text({batch, tokens, block_heads, block_features / block_heads});
  std::string text = "input x f32" + shape + "\n";
  const auto weight = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    text += "weight w" + name + " f32" + shape_text({rows, columns}) + "\nweight b" + name + " f32" +
            shape_text({columns}) + "\n";
  };
  weight("o", block_features, block_features);
  weight("1", block_features, 4 * block_features);
  weight("2", 4 * block_features, block_features);
  for (const char* const norm : {"n", "m"})
    text += std::string("weight g") + norm + " f32" + shape_text({block_features}) + "\nweight s" + norm + " f32" +
            shape_text({block_features}) + "\n";
  const auto product = [&](const std::string& x, const std::string& name) {
    return fused ? "matmul_bias_act(" + x + ", w" + name + ", b" + name + ")" : "matmul(" + x + ", w" + name + ")";
  };
  if (fused) {
    weight("a", block_features, 3 * block_features);
    text += "p = split(" + product("x", "a") +
            "; axis=-1, sizes=" + shape_text({block_features, block_features, block_features}) + ")\n";
  } else {
    for (const char* const name : {"q", "k", "v"}) weight(name, block_features, block_features);
  }
  const auto in_heads = [&](const std::string& part, const std::string& name, const std::string& perm) {
    return "transpose(reshape(" + (fused ? part : product("x", name)) + "; shape=" + apart + "); perm=" + perm + ")";
  };
  text += "q = " + in_heads("p.0", "q", "[0, 2, 1, 3]") + "\nk = " + in_heads("p.1", "k", "[0, 2, 3, 1]") +
          "\nv = " + in_heads("p.2", "v", "[0, 2, 1, 3]") + "\n";
  text += "c = reshape(transpose(matmul(softmax(matmul(q, k); axis=-1), v); perm=[0, 2, 1, 3]); shape=" + shape + ")\n";
  text += "h = layer_norm(add(x, " + product("c", "o") + "), gn, sn)\n";
  return text + "output layer_norm(add(h, " + product("gelu(" + product("h", "1") + ")", "2") + "), gm, sm)\n";
}

/// A block on devices with slow links, on which few operations and much traffic of memory take long.
class Block {
 public:
  explicit Block(const std::string& text, std::optional<double> memory = std::nullopt)
      : strategies_(every_strategy()), graph_(made(text)) {
    mesh_.device = {std::int64_t{1} << 30, 5e10, 1e10};
    mesh_.axes = {{block_devices, "link", 4e9, 1e-7}};
    PlannerOptions options;
    options.memory = memory;
    planner_.emplace(graph_, mesh_, strategies_, std::move(options));
  }

  [[nodiscard]] PartitionPlan plan() { return value_of(planner_->plan()); }
  [[nodiscard]] PartitionPlan plan(const ConfigurationFilter& allowed) { return value_of(planner_->plan(allowed)); }
  /// The cuts of products, in the order in which they run; those that read no weights in parentheses.
  [[nodiscard]] std::string products(const PartitionPlan& plan) const {
    std::string text;
    for (const PlannedNode& node : plan.nodes) {
      if (!graph_.node(node.node).is_op("matmul")) continue;
      const std::string cut = node.configuration.to_string();
      text += (text.empty() ? "" : " ") + (has_weights(node.node) ? cut : "(" + cut + ")");
    }
    return text;
  }
  /// Products with weights as Megatron cuts them, all else free.
  [[nodiscard]] PartitionPlan with_megatrons_products() {
    const PieceCost cost = roofline(registry(), mesh_.device);
    for (const PlanBaseline& baseline : plan_baselines(graph_, mesh_, *planner_, cost, strategies_))
      if (baseline.name == "Megatron")
        return plan([&](NodeId id, const NodeConfiguration& configuration) {
          return !graph_.node(id).is_op("matmul") || !has_weights(id) || baseline.allowed(id, configuration);
        });
    return {};
  }
  /// Bytes that move of each value that is made as partial sums, until it is read.
  [[nodiscard]] std::map<Value, double> sums(const PartitionPlan& plan) const {
    std::map<Value, double> bytes;
    for (const PlannedNode& node : plan.nodes)
      for (const AxisUse& use : node.configuration.axes)
        if (!use.reducer.empty()) bytes[{node.node, 0}] = 0;
    for (const PlannedTransfer& moved : plan.transfers)
      if (const auto at = bytes.find(moved.value); at != bytes.end()) at->second += moved.transfer.bytes;
    return bytes;
  }
  [[nodiscard]] const Graph& graph() const { return graph_; }

 private:
  Graph made(const std::string& text) {
    Graph graph = split_products_apart(value_of(products_apart(graph_of(text), strategies_)), strategies_);
    normalize(graph, registry());
    return graph;
  }
  [[nodiscard]] bool has_weights(NodeId id) const {
    const std::vector<Value>& inputs = graph_.node(id).inputs;
    return std::any_of(inputs.begin(), inputs.end(), [&](Value v) { return graph_.node(v.node).weight_only; });
  }

  StrategyTable strategies_;
  Graph graph_;
  Mesh mesh_;
  std::optional<Planner> planner_;
};

// Columns, then rows, heads between: and of each half of the block one sum, of which each device gets its part, is all
// that moves; where the next product reads the whole, the parts are gathered. Together that is an all-reduce.
TEST(TransformerCuts, AreMegatronsWhereFewTokensReadManyWeights) {
  constexpr std::int64_t tokens = 8, half_all_reduce = (block_devices - 1) * tokens * block_features * 4;
  for (const bool fused : {false, true}) {
    Block block(encoder(1, tokens, fused));
    const PartitionPlan plan = block.plan();
    EXPECT_TRUE(plan.exact);
    EXPECT_EQ(block.products(plan), megatron_cuts);
    EXPECT_DOUBLE_EQ(plan.seconds, block.with_megatrons_products().seconds);
    const std::map<Value, double> sums = block.sums(plan);
    EXPECT_EQ(sums.size(), 2U);
    for (const auto& [value, bytes] : sums) EXPECT_EQ(bytes, half_all_reduce);
    ASSERT_EQ(plan.transfers.size(), 3U);
    for (const PlannedTransfer& moved : plan.transfers) EXPECT_EQ(moved.transfer.bytes, half_all_reduce);
    EXPECT_TRUE(sums.contains(plan.transfers[0].value));
    EXPECT_FALSE(sums.contains(plan.transfers[1].value));
    EXPECT_TRUE(sums.contains(plan.transfers[2].value));
  }
}

// To gather what attention makes and cut its product by columns takes as long as to cut it by rows and add up.
TEST(TransformerCuts, OfOneTokenMayGatherInsteadOfAdding) {
  for (const bool fused : {false, true}) {
    Block block(encoder(1, 1, fused));
    EXPECT_DOUBLE_EQ(block.plan().seconds, block.with_megatrons_products().seconds);
  }
}

// Where weights lie where they are needed, tokens are cut: the device that has some of them needs all weights, and only
// keys and values of others. Where these do not fit, that is no plan.
TEST(TransformerCuts, OfManyTokensAreMegatronsWhereWeightsDoNotFit) {
  for (const bool fused : {false, true}) {
    const std::string text = encoder(1, 64, fused);
    Block block(text), limited(text, 1.1e6);
    const PartitionPlan plan = block.plan(), within = limited.plan();
    EXPECT_EQ(block.products(plan), "j@-1 j@-1 (J@-3) j@-1 (J@-3) i@-2 i@-2 i@-2");
    EXPECT_GT(plan.memory, 2.5e6);
    EXPECT_EQ(limited.products(within), megatron_cuts);
    EXPECT_LE(within.memory, 1.1e6);
    EXPECT_LT(plan.seconds, within.seconds);
    EXPECT_DOUBLE_EQ(within.seconds, block.with_megatrons_products().seconds);
  }
}

TEST(TransformerCuts, OfALargeBatchIsTheBatch) {
  for (const bool fused : {false, true}) {
    Block block(encoder(64, 16, fused));
    const PartitionPlan plan = block.plan();
    EXPECT_EQ(plan.transfer_bytes, 0);
    EXPECT_DOUBLE_EQ(plan.seconds, block.plan(only_data_parallel(block.graph())).seconds);
    EXPECT_LT(plan.seconds, block.with_megatrons_products().seconds);
    EXPECT_EQ(block.products(plan), "I@-3 I@-3 (J@-4) I@-3 (J@-4) I@-3 I@-3 I@-3");
  }
}

}  // namespace
}  // namespace taso
