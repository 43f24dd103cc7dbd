/// Reports of made-up optimizations, for the tests of the HTML page.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "optimizer/html/html_report.h"
#include "tests/optimizer/fixtures.h"

namespace taso::testing {

/// An original and a result, with what a report needs of both.
class MadeUpReport {
 public:
  MadeUpReport(Graph before, Graph after) : before_(std::move(before)), after_(std::move(after)) {
    result.choice = Choice::optimized;
    result.gain = true;
    result.cost_model = "time";
    result.target = "device";
    result.original.cost = 3000;
    result.baseline.cost = 2000;
    result.result.cost = result.graph_cost = 1000;
    result.original.predicted_seconds = 3e-3;
    result.result.predicted_seconds = 1e-3;
    context.model = "in.onnx";
    context.numeric_classes = "reassoc";
  }

  /// Refers to this object.
  [[nodiscard]] HtmlReport report() const {
    HtmlReport made;
    made.result = &result;
    made.context = &context;
    made.original = {&before_, original};
    made.optimized = {&after_, optimized};
    made.regions = regions;
    made.carried = carried;
    return made;
  }
  [[nodiscard]] std::string page() const { return report_html(report()); }

  OptimizeResult result;
  ReportContext context;
  RunProfile original, optimized;
  std::vector<ChangedRegion> regions;
  std::vector<CarriedOperator> carried;

 private:
  Graph before_, after_;
};

/// An optimization with everything in it that a page shows: of tanh(relu(relu(x))) both relu became one abs; an opaque
/// node; times.
inline MadeUpReport small_report() {
  const Graph before =
      graph_of("input x f32[2, 3]\nt = tanh(relu(relu(x)))\no = opaque mystery(t) f32[2, 3]\noutput add(o, t)\n");
  const std::vector<Substitution> rules =
      value_of(parse_rules("rule relu_twice: relu(relu(x)) => abs(x)\n", "test", registry()));
  const auto matches = RuleIndex(rules, registry()).find_all(before);
  RuleApplication application = describe_application(before, rules.at(0), matches.at(0).second);
  application.origins = {0};
  application.cost_before = 2000;
  application.cost_after = 1000;
  const Graph after = value_of(apply(before, rules[0], application.match, registry()));

  MadeUpReport made(before, after);
  made.result.applications = {application};
  made.regions = value_of(changed_regions(before, after, rules, made.result.applications, registry()));
  made.result.search.steps = 10;
  made.result.search.curve.add(0, 2000);
  made.result.search.curve.add(4, 1000);
  made.context.node_names = {"first"};
  for (const NodeId id : made.regions.at(0).before)
    made.original.launches.push_back({id, "relu", "row -> row", "own elementwise", 6, 48, 2e-6, 2.5e-6});
  made.optimized.launches.push_back(
      {made.regions[0].after.at(0), "abs", "row -> row", "own elementwise", 6, 48, 1e-6, 1.5e-6});
  made.original.memory = {24, 48};
  made.optimized.memory = {24};
  made.carried = {{"mystery", 1, "no map reads it"}};
  made.context.coverage.understood = 4;
  made.context.coverage.carried = 2;
  made.context.coverage.behind = 1;
  made.context.coverage.causes = {{"mystery", "no map reads it", "node \"m\" (mystery)", "a line of a map", 1, 1, 1}};
  return made;
}

/// `count` operators in cells of branches, with long lines, and names, shapes and times that are all different: twice,
/// as original and result.
inline MadeUpReport large_report(std::size_t count) {
  std::string text = "input x f32[1, 64]\n", last = "x", skipped = "x";
  std::size_t nodes = 0;
  const auto add = [&](const std::string& term) {
    text += "n" + std::to_string(nodes) + " = " + term + "\n";
    return "n" + std::to_string(nodes++);
  };
  while (nodes + 8 <= count) {
    const std::string left = add("relu(" + last + ")"), right = add("tanh(" + last + ")");
    const std::string shape = std::to_string(nodes + 1);
    const std::string wide = add("broadcast(reshape(" + right + "; shape=[1, 1, 64]); shape=[1, " + shape + ", 64])");
    const std::string narrow = add("reshape(slice(" + wide + "; starts=[0, " + std::to_string(nodes / 2) +
                                   ", 0], sizes=[1, 1, 64], steps=[1, 1, 1]); shape=[1, 64])");
    nodes += 2;  // The reshapes within.
    const std::string sum = add("add(" + left + ", " + narrow + ")");
    last = add("mul(" + sum + ", " + skipped + ")");
    if (nodes % 100 < 8) skipped = sum;
  }
  Graph graph = graph_of(text + "output " + last + "\n");
  for (NodeId id = 0; id < graph.id_bound(); ++id) {
    Node node = graph.node(id);
    node.origin = static_cast<std::int32_t>(id);
    graph.replace_node(id, std::move(node));
  }
  MadeUpReport made(graph, graph);
  const std::vector<NodeId> order = graph.topological_order();
  for (std::size_t i = 0; i < order.size(); ++i) {
    made.context.node_names.push_back("/model/encoder/layers." + std::to_string(i) + "/attention/self/query/MatMul");
    const double seconds = 1e-6 * static_cast<double>(i + 1);
    const ProfiledLaunch launch{order[i],
                                graph.node(order[i]).op,
                                "row, row:weight -> row",
                                "own elementwise",
                                1e3 * static_cast<double>(i + 1),
                                1e4 * static_cast<double>(i + 1),
                                seconds,
                                seconds};
    for (RunProfile* run : {&made.original, &made.optimized}) {
      run->launches.push_back(launch);
      run->memory.push_back(static_cast<double>(i));
    }
    if (i % 2 == 0) continue;
    made.regions.push_back({{order[i]}, {order[i]}, {}, {made.result.applications.size()}});
    const auto origin = static_cast<std::int32_t>(i);
    made.result.applications.push_back(
        {"merge_" + std::to_string(i % 20), {"matmul", "add"}, {origin - 1, origin}, 2000 + seconds, 2000, {}});
  }
  return made;
}

}  // namespace taso::testing
