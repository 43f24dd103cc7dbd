/// What tests of plans written out expect of every one of them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "partition/expand.h"

namespace taso::test {

/// Edges between devices are messages of transfers, and these move what they state, which is what the plan states.
inline void expect_moves_as_stated(const Graph& graph, const PartitionPlan& plan, const Expansion& expansion,
                                   const std::string& what) {
  std::vector<std::int64_t> bytes(expansion.transfers.size(), 0);
  const Graph& made = expansion.graph;
  for (NodeId id = 0; id < made.id_bound(); ++id) {
    const Node& node = made.node(id);
    for (const Value& input : node.inputs) {
      const std::int32_t from = made.node(input.node).device;
      if (node.device < 0) {
        EXPECT_LT(from, 0) << what;
      }
      const bool crosses = node.device >= 0 && from >= 0 && from != node.device;
      EXPECT_EQ(crosses, expansion.moves.contains(id)) << what;
      if (!crosses) continue;
      EXPECT_TRUE(node.is_op("slice")) << what;
      EXPECT_GT(node.outputs[0].elements(), 0) << what;
      bytes[expansion.moves.at(id)] += node.outputs[0].bytes();
    }
  }
  ASSERT_GE(expansion.transfers.size(), plan.transfers.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const ExpandedTransfer& transfer = expansion.transfers[i];
    EXPECT_EQ(bytes[i], transfer.bytes) << what;
    if (i >= plan.transfers.size()) {
      EXPECT_TRUE(transfer.purpose == ExpandedTransfer::Purpose::output ||
                  transfer.purpose == ExpandedTransfer::Purpose::share);
      continue;
    }
    EXPECT_EQ(transfer.value, plan.transfers[i].value);
    EXPECT_EQ(transfer.reader, plan.transfers[i].reader);
    EXPECT_EQ(static_cast<double>(transfer.bytes), plan.transfers[i].transfer.bytes);
  }
  const Graph one = on_one_device(expansion);
  EXPECT_TRUE(one.validate()) << what;
  EXPECT_EQ(one.outputs().size(), graph.outputs().size());
}

}  // namespace taso::test
