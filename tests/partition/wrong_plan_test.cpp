// What is said of files of plans that are wrong: plans/*.cases change one right file.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "partition/plan_check.h"
#include "partition/restore_plan.h"
#include "tests/partition/drawn_plans.h"
#include "tests/partition/stated_plans.h"
#include "tests/partition/strategy_tables.h"
#include "tests/support/cases.h"
#include "tests/support/graphs.h"

namespace taso::test {
namespace {

/// Several readers, partial sums, pieces of unequal size, a placement that a reader reads, and one that is made; an
/// operator that is carried.
Graph graph_of_cases() {
  return graph_of(
      "input x f32[8, 6]\ninput y f32[6, 5]\na = matmul(x, y)\nb = relu(a)\nc = sigmoid(a)\nd = add(b, c)\n"
      "output d\n");
}

/// The right file, on a mesh 2x2.
std::string right_file(const Graph& graph, StrategyTable& strategies) {
  Mesh mesh = mesh_of_sizes({2, 2});
  for (MeshAxis& axis : mesh.axes) axis = {axis.size, "wire", 1e6, 1e-6};
  Planner planner(graph, mesh, strategies, {});
  const PartitionPlan plan = value_of(planner.plan([&](NodeId id, const NodeConfiguration& configuration) {
    const std::string &op = graph.node(id).op, uses = configuration.to_string();
    if (op == "matmul") return uses == "i@-2 | t (sum)";
    if (op == "relu") return uses == "I@-1 | I@-2";
    return uses == (op == "sigmoid" ? "I@-1 | repeat" : "I@-2 | I@-2");
  }));
  return to_json(stated(graph, mesh, plan, strategies));
}

/// The first thing that is wrong with a file.
Status checked(const std::string& text, const Graph& graph, StrategyTable& strategies) {
  TASO_ASSIGN(const PlanDocument document, parse_plan_document(text, "plan"));
  TASO_ASSIGN(const PartitionPlan plan, restore_plan(document, graph, {}, strategies));
  const Expected<std::size_t> figures = check_figures(document, plan);
  return figures ? Status() : Status(figures.error());
}

class WrongPlan : public testing::TestWithParam<TextCase> {};

TEST_P(WrongPlan, IsRefusedWithPlaceAndBothValues) {
  const TextCase& one = GetParam();
  const Graph graph = graph_of_cases();
  StrategyTable strategies = every_strategy();
  std::string text = right_file(graph, strategies);
  ASSERT_TRUE(checked(text, graph, strategies));
  const std::vector<std::string> replaced = one.all("replace"), by = one.all("by");
  ASSERT_EQ(replaced.size(), by.size()) << one.place();
  for (std::size_t i = 0; i < replaced.size(); ++i) {
    const std::size_t at = text.find(replaced[i]);
    ASSERT_NE(at, std::string::npos) << one.place() << ": " << replaced[i] << " does not stand in\n" << text;
    text.replace(at, replaced[i].size(), by[i]);
  }
  const Status status = checked(text, graph, strategies);
  ASSERT_FALSE(status) << one.place();
  EXPECT_EQ(status.error().to_string(), one.text("error")) << one.place();
  EXPECT_EQ(status.error().exit_code(), one.integer("code")) << one.place();
}

INSTANTIATE_TEST_SUITE_P(Files, WrongPlan,
                         testing::ValuesIn(load_cases("tests/partition/plans",
                                                      {{"replace", CaseValue::text, CaseCount::repeated},
                                                       {"by", CaseValue::text, CaseCount::repeated},
                                                       {"error", CaseValue::text, CaseCount::once},
                                                       {"code", CaseValue::integer, CaseCount::once}})),
                         case_name);

TEST(WrongPlanFile, IsNoText) {
  EXPECT_EQ(parse_plan_document(" \n", "plan").error().to_string(),
            "plan: the file is empty; a plan is a JSON object (docs/partitioning.md)");
  EXPECT_EQ(parse_plan_document("[]", "plan").error().to_string(),
            "plan:1: this is no plan of taso-opt (\"format\": \"taso partition plan\")");
  EXPECT_EQ(parse_plan_document("{\"format\": \"taso partition plan\"}", "plan").error().to_string(),
            "plan:1: version: expected 3, found none");
  EXPECT_EQ(load_plan_document("no/such/plan.json").error().code, ErrorCode::bad_input);
}

}  // namespace
}  // namespace taso::test
