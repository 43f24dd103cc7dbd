// What is said of files of plans that are wrong: plans/*.cases change one right file.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "partition/plan_check.h"
#include "partition/restore_plan.h"
#include "support/random.h"
#include "tests/partition/drawn_plans.h"
#include "tests/partition/stated_plans.h"
#include "tests/partition/strategy_tables.h"
#include "tests/support/cases.h"
#include "tests/support/graphs.h"

namespace taso::test {
namespace {

/// Several readers, partial sums, pieces of unequal size, a placement that a reader reads, and one that is made.
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

class WrongPlan : public ::testing::TestWithParam<TextCase> {};

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
                         ::testing::ValuesIn(load_cases("tests/partition/plans",
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

/// What is said of a plan in which an operator is carried, with one text in the place of another one.
std::string said_of_carried(const std::string& replaced, const std::string& by) {
  const Graph graph = graph_of("input x f32[8, 6]\ny = opaque custom(x) f32[8, 6]\noutput relu(y), exp(y)\n");
  const Mesh mesh = mesh_of_sizes({2});
  StrategyTable strategies = every_strategy();
  Planner planner(graph, mesh, strategies, {});
  std::string text = to_json(stated(graph, mesh, value_of(planner.plan()), strategies));
  const std::size_t at = text.find(replaced);
  if (at == std::string::npos) return text;
  text.replace(at, replaced.size(), by);
  const Status status = checked(text, graph, strategies);
  return status ? "right" : status.error().message;
}

/// A JSON text without spaces, but in strings.
std::string compact(const std::string& text) {
  std::string result;
  bool in_string = false;
  for (const char c : text) {
    if (c == '"') in_string = !in_string;
    if (in_string || (c != ' ' && c != '\n')) result += c;
  }
  return result;
}

/// What is said of a plan by measured times of transfers, with one text in the place of another one, both compact.
std::string said_of_measured(const std::string& replaced, const std::string& by) {
  const Graph graph = graph_of_cases();
  Mesh mesh = mesh_of_sizes({2});
  const TimeTable table = TimeTable::of({{8, 1e-6}, {64, 2e-6}});
  mesh.axes[0] = {2, "wire", 1e6, 1e-6, {table, table, table, table, table}};
  mesh.transport = "threads; messages 1";
  mesh.copy = TimeTable::of({{16, 1e-7}});
  StrategyTable strategies = every_strategy();
  Planner planner(graph, mesh, strategies, {});
  const PartitionPlan plan = value_of(planner.plan([](NodeId /*node*/, const NodeConfiguration& configuration) {
    const std::string uses = configuration.to_string();
    return uses == "t (sum)" || uses == "I@-1";
  }));
  std::string text = compact(to_json(stated(graph, mesh, plan, strategies)));
  const std::size_t at = text.find(replaced);
  if (at == std::string::npos) return text;
  text.replace(at, replaced.size(), by);
  const Status status = checked(text, graph, strategies);
  return status ? "right" : status.error().message;
}

TEST(WrongPlanFile, TimesOfTransfers) {
  const std::string table = "[[8.0,1e-06],[64.0,2e-06]]", times = R"("times":{"reduce_scatter":)" + table;
  const std::string points =
      "expected 1 to 64 points [bytes, seconds], of more bytes from one to the next, and not of less seconds";
  EXPECT_EQ(said_of_measured(times, times), "right");
  for (const std::string wrong : {"[]", "8", "[8.0,1e-06]", "[[8.0]]", "[[8.0,1e-06],[8.0,2e-06]]", "[[0.0,1e-06]]",
                                  "[[8.0,1e-06],[64.0,1e-07]]", "[[8.0,-1e-06]]", "[[\"8\",1e-06]]"})
    EXPECT_EQ(said_of_measured(times, R"("times":{"reduce_scatter":)" + wrong),
              "mesh[0].times.reduce_scatter: " + points)
        << wrong;
  EXPECT_EQ(said_of_measured(R"("reduce_scatter":)", R"("reduce_gather":)").substr(0, 43),
            "mesh[0].times: unknown key \"reduce_gather\";");
  EXPECT_EQ(said_of_measured(R"("measured":{"transport":"threads; messages 1","copy":[[16.0,1e-07]]},)", ""),
            "mesh[0]: unknown key \"times\"; known are size, link, bandwidth, latency");
  EXPECT_EQ(said_of_measured(R"("copy":[[16.0,1e-07]])", R"("copy":7)"), "measured.copy: " + points);
  EXPECT_EQ(said_of_measured(R"("transport":"threads; messages 1",)", ""), "measured: 'transport' is missing");
  // A time that the plan's cost is made of.
  EXPECT_NE(
      said_of_measured(times, R"("times":{"reduce_scatter":[[8.0,1e-06],[64.0,3e-06]])").find("transfers[0].cost"),
      std::string::npos);
}

TEST(PlanFile, FiguresThatAreMeasured) {
  PlanDocument document;
  document.nodes.resize(3);
  EXPECT_TRUE(measured_figures(document).empty());
  document.cost = PlanCost::time;
  EXPECT_EQ(measured_figures(document), std::vector<std::string>{"what 3 operators cost, by times of kernels"});
  document.mesh.axes = {{2, "wire", 1e6, 1e-6}};
  const TimeTable table = TimeTable::of({{8, 1e-6}, {64, 2e-6}});
  document.mesh.axes[0].times = {table, table, table, table, table};
  document.mesh.transport = "threads";
  document.sums.step = 0.5;
  const std::string times = "the times of messages (threads) by which transfers are counted";
  EXPECT_EQ(measured_figures(document).at(1), times);
  EXPECT_EQ(measured_figures(document).at(2), "the seconds of a step (of this plan), by times of kernels and messages");
  document.others["by hand"].sums = document.sums;
  EXPECT_EQ(measured_figures(document).at(2), "the seconds of a step (of 2 plans), by times of kernels and messages");
}

TEST(WrongPlanFile, CutsWhatIsCarried) {
  const std::string repeats = R"("axes":[{"use":"repeat"}])", cut = R"("axes":[{"use":"cut","variable":"I@-1"}])";
  EXPECT_EQ(said_of_carried(repeats, repeats), "right");
  EXPECT_EQ(said_of_carried(repeats, cut), "nodes[0].axes[0]: custom is not understood: it can only repeat");
  EXPECT_EQ(said_of_carried(R"("cuts":[])", R"("cuts":[{"variable":"I@-1","extent":6,"points":[3]}])"),
            "nodes[0].cuts: an operator that repeats is not cut");
  EXPECT_EQ(said_of_carried(R"("node_number":0,"output":0,"as":"read","reader_number":1,"operand":0)",
                            R"("node_number":0,"output":0,"as":"made",)" + cut),
            "kept[0].axes: custom is not understood: it has no other uses");
}

TEST(WrongPlanFile, SpeaksOfNodesThatThereAreNot) {
  const Graph graph = graph_of_cases();
  StrategyTable strategies = every_strategy();
  std::string text = right_file(graph, strategies);
  const std::size_t begin = text.find("\"nodes\": [") + 10, end = text.find("  \"kept\"");
  text.replace(begin, end - begin, "],\n");
  EXPECT_EQ(checked(text, graph, strategies).error().message,
            "kept[0].node_number: expected the number of one of the nodes, of which there are none, found 0");
}

TEST(WrongPlanFile, OfChangedBytesIsRefusedInOneLineOrRead) {
  const Graph graph = graph_of_cases();
  StrategyTable strategies = every_strategy();
  const std::string right = right_file(graph, strategies);
  Random random(3);
  std::size_t refused = 0, read = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = right;
    for (std::uint64_t change = 0; change <= random.below(3); ++change) {
      const std::size_t at = random.below(text.size()), other = random.below(text.size());
      const std::uint64_t kind = random.below(4);
      if (kind == 0) text[at] = static_cast<char>(random.below(256));
      if (kind == 1) text.erase(at, random.below(20));
      if (kind == 2) text.insert(at, text.substr(other, random.below(20)));
      if (kind == 3) std::swap(text[at], text[other]);
    }
    const Expected<PlanDocument> document = parse_plan_document(text, "plan");
    if (document) {
      const std::string spelled = to_json(*document);
      EXPECT_EQ(to_json(value_of(parse_plan_document(spelled, "plan"))), spelled);
      read += restore_plan(*document, graph, {}, strategies) ? 1 : 0;
      continue;
    }
    ++refused;
    EXPECT_EQ(document.error().code, ErrorCode::bad_input);
    EXPECT_EQ(document.error().message.find('\n'), std::string::npos) << document.error().message;
  }
  EXPECT_GT(refused, 1500U);
  EXPECT_GT(read, 50U);
}

}  // namespace
}  // namespace taso::test
