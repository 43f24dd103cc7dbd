#include "partition/soybean.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "partition/soybean_baselines.h"
#include "partition/soybean_paths.h"
#include "partition/topology.h"
#include "support/random.h"
#include "tests/partition/strategy_tables.h"
#include "tests/partition/training_steps.h"

namespace taso {
namespace {

using test::every_strategy;
using test::graph_of;
using test::linear_layers;
using test::TrainingStep;
using test::value_of;
using TilingKind = BasicTiling::Kind;

constexpr BasicTiling row{TilingKind::cut, 0}, column{TilingKind::cut, 1}, whole{}, red{TilingKind::reduced};

OperatorPiece only_operator(const Graph& graph) { return all_of(graph, graph.outputs().at(0).node); }

/// "i@-2: R r -> R".
std::vector<std::string> forms_of(const std::string& text) {
  StrategyTable strategies = every_strategy();
  const OperatorPiece piece = only_operator(graph_of(text));
  std::vector<std::string> lines;
  for (const AlignedForm& form : aligned_forms(piece, strategies)) {
    std::string line = form.variable + ":";
    for (std::size_t i = 0; i < form.inputs.size(); ++i)
      line += " " + form.inputs[i].to_string(piece.inputs[i].shape.size());
    line += " ->";
    for (std::size_t i = 0; i < form.outputs.size(); ++i)
      line += " " + form.outputs[i].to_string(piece.outputs[i].shape.size());
    lines.push_back(line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

// Figure 6: the three strategies of a product are its three aligned forms.
TEST(SoybeanForms, OfAProductAreItsStrategies) {
  EXPECT_EQ(forms_of("input x f32[4, 6]\ninput y f32[6, 8]\noutput matmul(x, y)\n"),
            (Lines{"i@-2: R r -> R", "j@-1: r C -> C", "t: C R -> red"}));
  // Only even cuts.
  EXPECT_EQ(forms_of("input x f32[3, 6]\ninput y f32[6, 5]\noutput matmul(x, y)\n"), (Lines{"t: C R -> red"}));
}

// Section 4.5: batch and channels of a convolution, the same tiling of all tensors of what is element-wise. Rows,
// columns and windows need a halo.
TEST(SoybeanForms, OfOtherOperatorsFollowFromTheirDefinitions) {
  EXPECT_EQ(forms_of("input x f32[4, 6, 8, 8]\ninput k f32[2, 6, 3, 3]\noutput conv2d(x, k; pads=[1, 1, 1, 1])\n"),
            (Lines{"b@-4: P1 r -> P1", "f@-3: r P1 -> P2", "i: P2 P2 -> red"}));
  EXPECT_EQ(forms_of("input x f32[4, 6]\noutput relu(x)\n").size(), 2U);
  EXPECT_EQ(forms_of("input x f32[4, 3, 6]\ninput y f32[4, 3, 6]\noutput add(x, y)\n"),
            (Lines{"I@-3: P1 P1 -> P1", "I@-1: P3 P3 -> P3"}));
  EXPECT_EQ(forms_of("input x f32[4, 6]\noutput softmax(x; axis=-1)\n"), (Lines{"I@-2: R -> R"}));
  // To repeat what copies computes nothing twice.
  EXPECT_EQ(forms_of("input x f32[4, 6]\noutput transpose(x; perm=[1, 0])\n"),
            (Lines{"I@-2: C -> R", "I@-1: R -> C", ": r -> r"}));
  // What cannot be cut is repeated.
  EXPECT_EQ(forms_of("input x f32[3, 5]\noutput relu(x)\n"), (Lines{": r -> r"}));
  // The channels of an image are the outer part of its flat axis.
  const Lines flat = forms_of("input x f32[4, 6, 3, 3]\noutput reshape(x; shape=[4, 54])\n");
  EXPECT_NE(std::find_if(flat.begin(), flat.end(), [](const auto& l) { return l.ends_with(": P2 -> C"); }), flat.end());
}

// What the table says is what moves: needed less owned, and a reduction of what is partial.
TEST(SoybeanConversions, AreWhatMovesBetweenPlacements) {
  const Mesh mesh = binary_mesh(1);
  for (const Shape& shape : {Shape{4, 6}, Shape{2, 4, 6, 8}}) {
    const double bytes = 4.0 * static_cast<double>(volume(shape));
    for (const BasicTiling& to : basic_tilings(shape)) {
      const Placement need = placement_of(shape, {to});
      for (const BasicTiling& from : basic_tilings(shape))
        EXPECT_EQ(conversion_bytes(from, to, bytes), transfer(placement_of(shape, {from}), need, 4, mesh).bytes)
            << from.to_string(shape.size()) << to.to_string(shape.size());
      Placement partial = placement_of(shape, {whole});
      partial.partial = {0};
      partial.reducer = "sum";
      EXPECT_EQ(conversion_bytes(red, to, bytes), transfer(partial, need, 4, mesh).bytes) << to.to_string(2);
    }
  }
  // And it is this table, of S = 1.
  const BasicTiling from[] = {row, column, whole, red}, to[] = {row, column, whole};
  const double table[4][3] = {{0, 0.5, 1}, {0.5, 0, 1}, {0, 0, 0}, {1, 1, 2}};
  for (int f = 0; f < 4; ++f)
    for (int t = 0; t < 3; ++t) EXPECT_EQ(conversion_bytes(from[f], to[t], 1), table[f][t]) << f << t;
}

// Equation (2), of all tilings of a product.
TEST(SoybeanConversions, AProductTakesTheLeastOfThreeForms) {
  const Graph graph = graph_of("input x f32[8, 6]\ninput y f32[6, 4]\noutput matmul(x, y)\n");
  const double x = 8 * 6 * 4, y = 6 * 4 * 4, z = 8 * 4 * 4;
  const BasicTiling all[] = {row, column, whole};
  for (const BasicTiling& tx : all)
    for (const BasicTiling& ty : all)
      for (const BasicTiling& tz : all) {
        const Value values[] = {{graph.inputs()[0], 0}, {graph.inputs()[1], 0}, graph.outputs()[0]};
        const std::map<Value, Tiling> wanted = {{values[0], {tx}}, {values[1], {ty}}, {values[2], {tz}}};
        StrategyTable strategies = every_strategy();
        SoybeanOptions options;
        options.allowed = [&](Value value, const Tiling& tiling) { return wanted.at(value) == tiling; };
        SoybeanTiler tiler = value_of(SoybeanTiler::make(graph, strategies, options));
        const double least = std::min(
            {conversion_bytes(tx, row, x) + conversion_bytes(ty, whole, y) + conversion_bytes(row, tz, z),
             conversion_bytes(tx, whole, x) + conversion_bytes(ty, column, y) + conversion_bytes(column, tz, z),
             conversion_bytes(tx, column, x) + conversion_bytes(ty, row, y) + conversion_bytes(red, tz, z)});
        EXPECT_EQ(tiler.recursive(1).bytes, least);
        EXPECT_EQ(tiler.exact(1).bytes, least);
      }
}

// |T^k| = 3^k, and (k + 2 over 2) after flattening.
TEST(SoybeanTilings, OfAMatrixFlattened) {
  for (std::size_t k = 1; k <= 4; ++k) {
    std::set<Tiling> flat;
    const std::vector<Tiling> all = tilings_of({32, 32}, k);
    for (const Tiling& tiling : all) flat.insert(in_order_of_axes(tiling));
    EXPECT_EQ(all.size(), static_cast<std::size_t>(std::pow(3, k)));
    EXPECT_EQ(flat.size(), (k + 2) * (k + 1) / 2);
  }
  std::set<std::string> names;
  for (const Tiling& tiling : tilings_of({4, 4}, 2)) names.insert(to_string(in_order_of_axes(tiling), 2));
  EXPECT_EQ(names, (std::set<std::string>{"RR", "RC", "Rr", "CC", "Cr", "rr"}));
  // A tile whose extent is odd is not cut again.
  EXPECT_EQ(tilings_of({6, 5}, 2).size(), 3U);
}

// Section 2.2: five layers of 300 neurons, 400 examples, 16 devices.
TEST(SoybeanExample, CountsOfThePaperAndExactOnes) {
  const double w = 300.0 * 300 * 5 * 4, a = 400.0 * 300 * 5 * 4;
  const auto counted = [&](double g) { return parallelism_bytes(w, a, g, 16, CountedCopies::all); };
  const auto exact = [&](double g) { return parallelism_bytes(w, a, g, 16, CountedCopies::others); };
  EXPECT_DOUBLE_EQ(counted(16), 57.6e6);
  EXPECT_DOUBLE_EQ(counted(1), 76.8e6);
  EXPECT_DOUBLE_EQ(counted(4), 33.6e6);
  EXPECT_DOUBLE_EQ(counted(2), 45.6e6);
  EXPECT_DOUBLE_EQ(counted(8), 38.4e6);
  EXPECT_DOUBLE_EQ(exact(16), 54.0e6);
  EXPECT_DOUBLE_EQ(exact(1), 72.0e6);
  EXPECT_DOUBLE_EQ(exact(4), 25.2e6);
  EXPECT_DOUBLE_EQ(exact(2), 37.2e6);
  EXPECT_DOUBLE_EQ(exact(8), 30.0e6);
  // With 300 examples and 400 neurons model parallelism is better.
  const double w2 = 400.0 * 400 * 5 * 4, a2 = 300.0 * 400 * 5 * 4;
  EXPECT_GT(parallelism_bytes(w2, a2, 16, 16, CountedCopies::all),
            parallelism_bytes(w2, a2, 1, 16, CountedCopies::all));
}

/// What one cut of the example does with a value, and with the operator that makes it.
struct Move {
  BasicTiling data, model;
  const char *data_form, *model_form;
};

/// T_data and T_model (section 4.1), and the forms that they stand for. Where data parallelism cuts what is of a
/// weight's shape, only to add it up and to update, any axis is as good: 300 neurons have no sixteenths, but quarters.
Move move_of(const TrainingStep& step, NodeId id, std::size_t cut) {
  const BasicTiling part = cut < 2 ? column : row;
  const char* const part_form = cut < 2 ? "I@-1" : "I@-2";
  const Graph& graph = step.graph;
  const Node& node = graph.node(id);
  const auto is = [&](std::size_t input, std::string_view op) { return graph.node(node.inputs[input].node).is_op(op); };
  const auto is_weight = [&](Value value) {
    return std::any_of(step.weights.begin(), step.weights.end(),
                       [&](const auto& weight) { return weight.first == value || weight.second == value; });
  };
  if (node.is_op("transpose") && is_weight(node.inputs[0])) return {whole, column, "", "I@-1"};
  if (node.is_op("transpose")) return {column, row, "I@-1", "I@-2"};
  if (node.is_op("matmul") && is(0, "transpose")) return {part, row, "t", "i@-2"};      // gradient of a weight
  if (node.is_op("matmul") && is(1, "transpose")) return {row, whole, "i@-2", "j@-1"};  // of an activation
  if (node.is_op("matmul")) return {row, column, "i@-2", "t"};                          // activation
  if (node.is_op("smul")) return {part, row, part_form, "I@-2"};                        // step of a weight
  if (is_weight({id, 0})) return {whole, row, part_form, "I@-2"};                       // weight
  if (node.is_op("sub")) return {row, whole, "I@-2", "I@-1"};                           // error
  if (node.outputs[0].shape.empty()) return {whole, whole, "", ""};                     // rate
  return {row, column, "", ""};                                                         // input, target
}

/// Bytes of T_data for the first cuts and T_model for the others.
double hybrid_bytes(const TrainingStep& step, std::size_t data_cuts, std::size_t cuts, SoybeanPrice price) {
  SoybeanPlan plan;
  plan.cuts = cuts;
  for (const NodeId id : step.graph.topological_order()) {
    for (std::size_t cut = 0; cut < cuts; ++cut) {
      const Move move = move_of(step, id, cut);
      plan.tilings[{id, 0}].push_back(cut < data_cuts ? move.data : move.model);
      if (step.graph.node(id).kind == NodeKind::op)
        plan.forms[id].emplace_back(cut < data_cuts ? move.data_form : move.model_form);
    }
  }
  StrategyTable strategies = every_strategy();
  SoybeanOptions options;
  options.same = step.weights;
  return value_of(SoybeanTiler::make(step.graph, strategies, options)).price(plan, price);
}

// The example's tilings cost, and move, what is counted exactly.
TEST(SoybeanExample, TilingsCostWhatTheyMove) {
  const TrainingStep step = linear_layers(400, {300, 300, 300, 300, 300, 300});
  const auto cost = [](const TrainingStep& of, std::size_t data_cuts) {
    return hybrid_bytes(of, data_cuts, 4, SoybeanPrice::cut_by_cut);
  };
  const auto moved = [](const TrainingStep& of, std::size_t data_cuts) {
    return hybrid_bytes(of, data_cuts, 4, SoybeanPrice::payload);
  };
  EXPECT_DOUBLE_EQ(cost(step, 4), 54.0e6);
  EXPECT_DOUBLE_EQ(cost(step, 2), 25.2e6);
  EXPECT_DOUBLE_EQ(cost(step, 3), 30.0e6);
  // 300 neurons do not divide by 16; 320 do.
  const TrainingStep even = linear_layers(400, {320, 320, 320, 320, 320, 320});
  const double w = 320.0 * 320 * 5 * 4, a = 400.0 * 320 * 5 * 4;
  for (const std::size_t data_cuts : {0, 1, 2, 3, 4}) {
    const double exact = parallelism_bytes(w, a, std::pow(2, data_cuts), 16, CountedCopies::others);
    EXPECT_DOUBLE_EQ(cost(even, data_cuts), exact);
    // A transfer scatters partial results along one axis of a tensor: into tiles of both axes it moves more.
    if (data_cuts <= 2) {
      EXPECT_DOUBLE_EQ(moved(even, data_cuts), exact);
    } else {
      EXPECT_GT(moved(even, data_cuts), exact);
    }
  }
  EXPECT_DOUBLE_EQ(moved(step, 2), 25.2e6);
  // The best tilings cost less than the paper's best: forms may differ from cut to cut, and from layer to layer.
  StrategyTable strategies = every_strategy();
  SoybeanOptions options;
  options.same = step.weights;
  SoybeanTiler tiler = value_of(SoybeanTiler::make(step.graph, strategies, options));
  EXPECT_LE(tiler.recursive(4).bytes, 25.2e6);
}

/// A step with its inputs but for the weights.
SoybeanPlan restricted(const TrainingStep& step, std::size_t cuts,
                       SoybeanOptions (*restriction)(const Graph&, const ExampleAxes&, SoybeanOptions)) {
  StrategyTable strategies = every_strategy();
  SoybeanOptions options;
  options.same = step.weights;
  std::vector<Value> examples;
  for (const NodeId id : step.graph.inputs())
    if (std::none_of(step.weights.begin(), step.weights.end(), [&](const auto& w) { return w.first.node == id; }))
      examples.push_back({id, 0});
  const ExampleAxes axes = example_axes(step.graph, strategies, examples);
  if (restriction != nullptr) options = restriction(step.graph, axes, options);
  return value_of(SoybeanTiler::make(step.graph, strategies, options)).recursive(cuts);
}

TEST(SoybeanBaselines, KnowTheExamples) {
  const Graph graph = graph_of(
      "input x f32[4, 6]\ninput w f32[6, 8]\ninput d f32[4, 8]\ninput b f32[8]\nt = transpose(x; perm=[1, 0])\n"
      "output relu(add(matmul(x, w), broadcast(b; shape=[4, 8]))), matmul(t, d), relu(w)\n");
  StrategyTable strategies = every_strategy();
  const Value x{graph.inputs()[0], 0}, d{graph.inputs()[2], 0};
  const ExampleAxes axes = example_axes(graph, strategies, {x, d});
  EXPECT_EQ(axes.at(x), 0U);
  EXPECT_EQ(axes.at(graph.outputs()[0]), 0U);
  EXPECT_EQ(axes.at(graph.node(graph.outputs()[1].node).inputs[0]), 1U);  // transposed
  EXPECT_FALSE(axes.contains(graph.outputs()[1]));                        // the sum over examples
  EXPECT_FALSE(axes.contains(graph.outputs()[2]));
}

// Data parallelism of the example is what the paper counts, less the copies that do not move. Its model parallelism,
// that cuts all weights by rows, is not the best that leaves examples alone.
TEST(SoybeanBaselines, OfTheExample) {
  const TrainingStep step = linear_layers(400, {300, 300, 300, 300, 300, 300});
  const SoybeanPlan data = restricted(step, 4, data_parallelism), model = restricted(step, 4, model_parallelism);
  EXPECT_DOUBLE_EQ(data.bytes, 54.0e6);
  for (const auto& [before, after] : step.weights) EXPECT_EQ(data.tilings.at(before), Tiling(4, whole));
  EXPECT_LT(model.bytes, 72.0e6);
  for (const auto& [node, forms] : model.forms)
    for (const std::string& form : forms) {
      const Node& product = step.graph.node(node);
      const bool of_weight = product.is_op("matmul") && step.graph.node(product.inputs[0].node).is_op("transpose");
      EXPECT_FALSE(product.is_op("matmul") && form == (of_weight ? "t" : "i@-2")) << node;
    }
  EXPECT_LT(restricted(step, 4, nullptr).bytes, std::min(data.bytes, model.bytes));
}

/// c_k of the best tiling, by trying all tilings and all sequences of forms, cut by cut as Theorem 1 has it.
double least_of_all(const TrainingStep& step, std::size_t cuts) {
  StrategyTable strategies = every_strategy();
  FormTable forms(strategies);
  std::vector<Value> values;
  std::map<Value, Value> same(step.weights.begin(), step.weights.end());
  std::map<Value, std::vector<Tiling>> tilings;
  std::vector<NodeId> nodes;
  for (const NodeId id : step.graph.topological_order()) {
    if (step.graph.node(id).kind == NodeKind::op) nodes.push_back(id);
    values.push_back({id, 0});
    tilings[{id, 0}] = tilings_of(step.graph.type({id, 0}).shape, cuts);
  }
  std::map<Value, const Tiling*> chosen;
  double best = HUGE_VAL;
  const auto cost_of = [&](NodeId id) {
    const OperatorPiece piece = all_of(step.graph, id);
    double least = HUGE_VAL;
    for (const FormPath& path : form_paths(piece, cuts, forms)) {
      double sum = 0;
      for (std::size_t i = 0; i < piece.inputs.size(); ++i)
        sum += weighted_sum(
            cut_costs(piece, path, {false, i}, piece.inputs[i], *chosen.at(step.graph.node(id).inputs[i])));
      sum += weighted_sum(cut_costs(piece, path, {true, 0}, piece.outputs[0], *chosen.at({id, 0})));
      least = std::min(least, sum);
    }
    return least;
  };
  const std::function<void(std::size_t, double)> choose = [&](std::size_t place, double so_far) {
    if (so_far >= best) return;
    if (place == values.size()) {
      for (const auto& [before, after] : same)
        if (*chosen.at(before) != *chosen.at(after)) return;
      best = so_far;
      return;
    }
    const Value value = values[place];
    for (const Tiling& tiling : tilings.at(value)) {
      chosen[value] = &tiling;
      const bool made = step.graph.node(value.node).kind == NodeKind::op;
      choose(place + 1, so_far + (made ? cost_of(value.node) : 0));
    }
  };
  choose(0, 0);
  return best;
}

TEST(SoybeanPlans, AreTheBestOfAllTilings) {
  const TrainingStep steps[] = {linear_layers(8, {4, 12}), linear_layers(4, {16, 4}), linear_layers(6, {2, 10})};
  for (const TrainingStep& step : steps) {
    StrategyTable strategies = every_strategy();
    SoybeanOptions options;
    options.same = step.weights;
    SoybeanTiler tiler = value_of(SoybeanTiler::make(step.graph, strategies, options));
    EXPECT_DOUBLE_EQ(tiler.recursive(1).bytes, least_of_all(step, 1));
    EXPECT_DOUBLE_EQ(tiler.exact(1).bytes, least_of_all(step, 1));
    const double two = least_of_all(step, 2);
    EXPECT_DOUBLE_EQ(tiler.exact(2).bytes, two);
    EXPECT_GE(tiler.recursive(2).bytes, two);
  }
}

TEST(SoybeanPlans, SumOverCutsAndStayWithinWhatIsExact) {
  Random random(7);
  for (int trial = 0; trial < 12; ++trial) {
    const auto extent = [&] { return std::int64_t{8} << random.below(5); };
    const TrainingStep step = linear_layers(extent(), {extent(), extent(), extent()});
    StrategyTable strategies = every_strategy();
    SoybeanOptions options;
    options.same = step.weights;
    SoybeanTiler tiler = value_of(SoybeanTiler::make(step.graph, strategies, options));
    const SoybeanPlan plan = tiler.recursive(3), best = tiler.exact(3);
    ASSERT_EQ(plan.cut_bytes.size(), 3U);
    EXPECT_DOUBLE_EQ(plan.bytes, plan.cut_bytes[0] + 2 * plan.cut_bytes[1] + 4 * plan.cut_bytes[2]);
    EXPECT_DOUBLE_EQ(best.bytes, best.cut_bytes[0] + 2 * best.cut_bytes[1] + 4 * best.cut_bytes[2]);
    EXPECT_DOUBLE_EQ(tiler.price(plan, SoybeanPrice::cut_by_cut), plan.bytes);
    EXPECT_DOUBLE_EQ(tiler.price(best, SoybeanPrice::cut_by_cut), best.bytes);
    EXPECT_LE(best.bytes, plan.bytes);
    const SoybeanPlan moved = tiler.exact(3, SoybeanPrice::payload);
    EXPECT_DOUBLE_EQ(tiler.price(moved, SoybeanPrice::payload), moved.bytes);
    EXPECT_LE(moved.bytes, tiler.price(plan, SoybeanPrice::payload));
    EXPECT_LE(moved.bytes, tiler.price(best, SoybeanPrice::payload));
    // Theorem 3: what a cut adds to the total is no less than what the one before added.
    EXPECT_LE(plan.cut_bytes[0], 2 * plan.cut_bytes[1]);
    EXPECT_LE(plan.cut_bytes[1], 2 * plan.cut_bytes[2]);
    for (const auto& [before, after] : step.weights) EXPECT_EQ(plan.tilings.at(before), plan.tilings.at(after));
  }
}

// Each cut leaves half of the work of an operator to a group.
TEST(SoybeanPlans, HalveTheWorkWithEveryCut) {
  const TrainingStep step = linear_layers(64, {32, 64, 32});
  StrategyTable strategies = every_strategy();
  SoybeanOptions options;
  options.same = step.weights;
  SoybeanTiler tiler = value_of(SoybeanTiler::make(step.graph, strategies, options));
  const auto work = [&](std::size_t cuts) {
    double sum = 0;
    for (const OperatorPiece& piece : tiler.pieces(tiler.recursive(cuts)))
      if (piece.op == "matmul") sum += static_cast<double>(piece.inputs[0].elements() * piece.inputs[1].shape.at(1));
    return sum;
  };
  EXPECT_EQ(work(0), (3 + 2) * 64.0 * 32 * 64);
  EXPECT_EQ(work(1), work(0) / 2);
  EXPECT_EQ(work(3), work(0) / 8);
}

TEST(SoybeanPlans, CutTheSlowestLinkFirst) {
  Mesh mesh;
  mesh.axes = {{4, "network", 1e9, 0}, {2, "bus", 1e10, 0}};
  const std::vector<MeshAxis> cuts = value_of(binary_cuts(mesh));
  ASSERT_EQ(cuts.size(), 3U);
  EXPECT_EQ(cuts[0].link + cuts[1].link + cuts[2].link, "networknetworkbus");
  EXPECT_EQ(cuts[2].size, 2);
}

std::string tiler_error(const std::string& text,
                        const std::function<void(const Graph&, SoybeanOptions&)>& change = {}) {
  const Graph graph = graph_of(text);
  StrategyTable strategies = every_strategy();
  SoybeanOptions options;
  if (change) change(graph, options);
  const auto tiler = SoybeanTiler::make(graph, strategies, options);
  return tiler ? "" : tiler.error().message;
}

TEST(SoybeanPlans, SayWhatCannotBeTiled) {
  EXPECT_EQ(tiler_error("input x f32[4, 6]\ny = opaque strange(x) f32[4, 6]\noutput y\n"),
            "strange has no definition, and so no aligned forms");
  EXPECT_EQ(tiler_error("input x f32[4, 6]\ny = opaque strange(x) f32[?]\noutput y\n"),
            "the type of a value of strange is not known, so that it cannot be tiled");
  EXPECT_EQ(tiler_error("input x f32[4, 6]\noutput transpose(x; perm=[1, 0])\n",
                        [](const Graph& graph, SoybeanOptions& options) {
                          options.same.emplace_back(Value{graph.inputs()[0], 0}, graph.outputs()[0]);
                        }),
            "a weight of type f32[4, 6] cannot become one of type f32[6, 4]");
  Mesh mesh;
  mesh.axes = {{2, "network", 1e9, 0}, {12, "bus", 1e10, 0}};
  EXPECT_EQ(binary_cuts(mesh).error().message, "cuts into two do not divide 12 devices along the link bus");
}

}  // namespace
}  // namespace taso
