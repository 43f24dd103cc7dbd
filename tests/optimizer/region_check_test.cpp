#include "optimizer/region_check.h"

#include <fmt/format.h>

#include <cmath>

#include "operators/rounding_ring.h"
#include "optimizer/changed_regions.h"
#include "optimizer/check.h"
#include "support/random.h"
#include "tests/optimizer/fixtures.h"

namespace taso::testing {
namespace {

/// A graph and what rules made of it, everywhere they could.
struct Change {
  Graph before, after;
  Rewritten rewritten;
};

Change apply_everywhere(const std::string& graph, const std::string& rules) {
  const RuleIndex index(value_of(parse_rules(rules, "test", registry())), registry());
  Change change;
  change.before = graph_of(graph);
  normalize(change.before, registry());
  change.after = change.before;
  for (int step = 0; step < 200; ++step) {
    const auto matches = index.find_all(change.after);
    if (matches.empty()) break;
    const auto& [rule, match] = matches.front();
    change.rewritten.applications.push_back(describe_application(change.after, index.rules()[rule], match));
    change.after = value_of(apply(change.after, index.rules()[rule], match, registry()));
  }
  change.rewritten.regions =
      value_of(changed_regions(change.before, change.after, index.rules(), change.rewritten.applications, registry()));
  return change;
}

/// The graph with every element of the constants of this shape multiplied.
Graph with_weights_times(const Graph& graph, const Shape& shape, float factor) {
  Graph copy = graph;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::constant || node.constant->type().shape != shape) continue;
    std::vector<float> values = node.constant->to_floats();
    for (float& value : values) value *= factor;
    Node changed;
    changed.kind = NodeKind::constant;
    changed.constant = ConstantData::of_floats(shape, values);
    changed.outputs = {changed.constant->type()};
    copy.replace_node(id, std::move(changed));
  }
  return copy;
}

constexpr const char* fuse_bias = R"(
rule fuse_bias:
  add(matmul(x, w), broadcast(b; shape=s)) => matmul_bias_act(x, w, b; act=identity)
)";

/// x -> 4 x (1 - x), a number of times: a change of 1e-7 doubles each time.
std::string chaos(int times) {
  std::string text = R"(
input x f32[4, 8]
weight w f32[8, 8]
weight b f32[8]
weight v f32[8, 5]
weight c f32[5]
weight one f32[4, 8] = 1.0
weight four f32[4, 8] = 4.0
x0 = sigmoid(add(matmul(x, w), broadcast(b; shape=[4, 8])))
)";
  for (int i = 0; i < times; ++i) text += fmt::format("x{} = mul(four, mul(x{}, sub(one, x{})))\n", i + 1, i, i);
  return text + fmt::format("output add(matmul(x{}, v), broadcast(c; shape=[4, 5]))\n", times);
}

TEST(RegionCheck, EachPlaceByItself) {
  const Change change = apply_everywhere(chaos(3), fuse_bias);
  ASSERT_EQ(change.rewritten.regions.size(), 2U);
  const CheckReport report = value_of(check(change.before, change.after, library(), {}, change.rewritten));
  EXPECT_TRUE(report.passed) << report.failure();
  EXPECT_EQ(report.regions.regions, 2U);
  EXPECT_EQ(report.regions.checked, 2U);
  EXPECT_EQ(report.regions.elements, 4 * 8 + 4 * 5) << "there are no more";
  EXPECT_LT(report.regions.worst, 1);
  EXPECT_TRUE(report.remarks().empty());
  EXPECT_NE(report.summary().find("2 of 2 rewritten regions right by themselves (52 elements)"), std::string::npos)
      << report.summary();
}

// Nothing can be said of such a model end to end, and everything of what was changed in it.
TEST(RegionCheck, AModelThatAmplifiesRounding) {
  const Change change = apply_everywhere(chaos(60), fuse_bias);
  // The first product in another order: a rounding, which becomes all of the output.
  const CheckReport report = value_of(
      check(change.before, with_weights_times(change.after, {8, 8}, 1 + 0x1p-23F), library(), {}, change.rewritten));
  ASSERT_EQ(report.tensors.size(), 1U);
  EXPECT_GT(report.tensors[0].own_deviation, 0.05);
  EXPECT_GT(report.tensors[0].max_difference, 1e-3 * report.tensors[0].magnitude);
  EXPECT_TRUE(report.tensors[0].excused);
  EXPECT_TRUE(report.passed) << report.failure();
  ASSERT_EQ(report.remarks().size(), 1U);
  EXPECT_NE(report.remarks()[0].find("the original amplifies rounding: 'output0' is off from itself by "),
            std::string::npos)
      << report.remarks()[0];
  EXPECT_NE(report.remarks()[0].find("2 of 2 rewritten regions"), std::string::npos) << report.remarks()[0];

  for (const Shape& wrong : {Shape{8, 8}, Shape{8, 5}}) {
    const CheckReport failed =
        value_of(check(change.before, with_weights_times(change.after, wrong, 1.01F), library(), {}, change.rewritten));
    EXPECT_FALSE(failed.passed) << to_string(wrong);
    EXPECT_EQ(failed.failure().rfind("numeric check failed: the output of add is the first tensor that is wrong by "
                                     "itself: element [",
                                     0),
              0U)
        << failed.failure();
    EXPECT_NE(failed.failure().find("applied before it: fuse_bias at matmul, broadcast, add; nothing was written"),
              std::string::npos)
        << failed.failure();
    ASSERT_TRUE(failed.regions.wrong);
    EXPECT_EQ(failed.regions.wrong->index.size(), 2U);
    EXPECT_EQ(failed.regions.wrong->cause, WrongElement::Cause::rule);
  }
}

TEST(RegionCheck, FullComputesEverything) {
  const std::string text = R"(
input x f32[1, 4, 30, 30]
weight k f32[6, 4, 3, 3]
weight b f32[6]
output relu(add(conv2d(x, k), broadcast(reshape(b; shape=[6, 1, 1]); shape=[1, 6, 28, 28])))
)";
  const std::string rules = R"(
rule fuse:
  add(conv2d(x, k; strides=s, pads=p, dilations=d), broadcast(reshape(b; shape=t); shape=u))
  => conv2d_bias_act(x, k, b; strides=s, pads=p, dilations=d, act=identity)
)";
  const Change change = apply_everywhere(text, rules);
  ASSERT_EQ(change.rewritten.regions.size(), 1U);
  CheckOptions options;
  const CheckReport sampled = value_of(check(change.before, change.after, library(), options, change.rewritten));
  EXPECT_EQ(sampled.regions.elements, 64);
  options.full = true;
  const CheckReport full = value_of(check(change.before, change.after, library(), options, change.rewritten));
  EXPECT_TRUE(full.passed);
  EXPECT_EQ(full.regions.elements, 6 * 28 * 28);
  EXPECT_GT(full.tensors[0].own_deviation, 0);
}

// What one place has made and another one reads too.
TEST(RegionCheck, PlacesThatShareANewNode) {
  const Change change = apply_everywhere(R"(
input x f32[3, 8]
input y f32[3, 4]
weight a f32[8, 5]
weight b f32[4, 5]
weight c f32[8, 6]
weight d f32[4, 6]
output add(matmul(x, a), matmul(y, b))
output tanh(add(matmul(x, c), matmul(y, d)))
)",
                                         R"(
rule fold:
  add(matmul(x, a), matmul(y, b)) => matmul(concat(x, y; axis=-1), concat(a, b; axis=-2))
)");
  ASSERT_EQ(change.rewritten.regions.size(), 2U);
  const CheckReport report = value_of(check(change.before, change.after, library(), {}, change.rewritten));
  EXPECT_TRUE(report.passed) << report.failure();
  EXPECT_EQ(report.regions.checked, 2U);
  const CheckReport failed =
      value_of(check(change.before, with_weights_times(change.after, {4, 6}, 1.001F), library(), {}, change.rewritten));
  ASSERT_TRUE(failed.regions.wrong);
  EXPECT_EQ(failed.regions.wrong->region, 1U);
}

TEST(RegionCheck, WhatKernelsMakeOfItCounts) {
  const Change change = apply_everywhere("input x f32[2, 3]\noutput neg(neg(tanh(x)))\n", R"(
rule overflows:
  neg(neg(x)) => smul(smul(smul(smul(x, fill(; shape=[], value=1e30)), fill(; shape=[], value=1e30)), fill(; shape=[], value=1e-30)), fill(; shape=[], value=1e-30))
)");
  const CheckReport report = value_of(check(change.before, change.after, library(), {}, change.rewritten));
  ASSERT_TRUE(report.regions.wrong);
  EXPECT_EQ(report.regions.wrong->cause, WrongElement::Cause::kernels);
  EXPECT_NE(report.failure().find(", though it is right in double precision; applied before it: overflows at neg, neg"),
            std::string::npos)
      << report.failure();
}

TEST(RegionCheck, AToleranceThatIsGivenCountsInRegions) {
  const Change change = apply_everywhere("input x f32[2, 8]\noutput relu(tanh(x))\n", R"(
rule about:
  tanh(x) => smul(tanh(x), fill(; shape=[], value=1.001))
)");
  EXPECT_FALSE(value_of(check(change.before, change.after, library(), {}, change.rewritten)).passed);
  CheckOptions options;
  options.rtol = options.region_rtol = 0.5;
  EXPECT_TRUE(value_of(check(change.before, change.after, library(), options, change.rewritten)).passed);
}

// Only a positive input shows something of a logarithm's argument.
TEST(RegionCheck, PositiveInputsWhereOthersShowNothing) {
  const Change change = apply_everywhere("input x f32[2, 8]\noutput neg(neg(log(neg(abs(neg(x))))))\n",
                                         "rule back:\n  neg(neg(x)) => x\n");
  const CheckReport nothing = value_of(check(change.before, change.after, library(), {}, change.rewritten));
  EXPECT_TRUE(nothing.passed);
  EXPECT_EQ(nothing.regions.checked, 0U) << "-|x| has no logarithm";
  const Change some =
      apply_everywhere("input x f32[2, 8]\nweight big f32[2, 8] = 0.5\noutput neg(neg(log(sub(x, big))))\n",
                       "rule back:\n  neg(neg(x)) => x\n");
  EXPECT_EQ(value_of(check(some.before, some.after, library(), {}, some.rewritten)).regions.checked, 1U);
}

// Changes of inputs do not show how the original amplifies rounding, where there are only integers to change.
TEST(RegionCheck, AModelOfIntegersThatAmplifiesRounding) {
  std::string text = chaos(60);
  text.replace(text.find("input x f32[4, 8]"), 17,
               "input i i64[4]\nweight table f32[9, 8]\nx = gather(table, i; axis=-2)");
  const Change change = apply_everywhere(text, fuse_bias);
  const CheckReport report = value_of(
      check(change.before, with_weights_times(change.after, {8, 8}, 1 + 0x1p-23F), library(), {}, change.rewritten));
  EXPECT_TRUE(report.passed) << report.failure();
  EXPECT_TRUE(report.tensors.at(0).excused);
  EXPECT_FALSE(
      value_of(check(change.before, with_weights_times(change.after, {8, 8}, 1.01F), library(), {}, change.rewritten))
          .passed);
}

// Of an output of one element a single change may show little by chance.
TEST(RegionCheck, AModelThatAmplifiesRoundingIntoOneNumber) {
  std::string text = chaos(15);
  text.insert(text.rfind("output ") + 7, "reduce_mean(");
  text.replace(text.rfind(")\n"), 2, "); axes=[-2, -1])\n");
  const Change change = apply_everywhere(text, fuse_bias);
  const Graph rounded = with_weights_times(change.after, {8, 8}, 1 + 0x1p-23F);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    CheckOptions options;
    options.seed = seed;
    const CheckReport report = value_of(check(change.before, rounded, library(), options, change.rewritten));
    EXPECT_TRUE(report.passed) << seed << ": " << report.failure();
  }
}

// What single precision holds as a few units of its smallest number, or as 0, is not exact.
TEST(RegionCheck, NumbersBelowTheSmallest) {
  const Change change = apply_everywhere(
      "input x f32[4, 8]\nweight w f32[8, 8]\nweight s f32[] = 1e-38\noutput neg(neg(matmul(smul(x, s), smul(w, "
      "s))))\n",
      "rule back:\n  neg(neg(x)) => x\n");
  const CheckReport report = value_of(check(change.before, change.after, library(), {}, change.rewritten));
  EXPECT_TRUE(report.passed) << report.failure();
  EXPECT_EQ(report.regions.checked, 1U);
}

// (x + c) - c rounds x: that it is x in exact arithmetic makes it no other way to write x.
TEST(RegionCheck, RoundingThatTheOriginalMeans) {
  const Change change =
      apply_everywhere("input x f32[4, 8]\nweight c f32[4, 8] = 12582912.0\noutput neg(sub(add(x, c), c))\n",
                       "rule cancel:\n  sub(add(x, y), y) => x\n");
  const CheckReport report = value_of(check(change.before, change.after, library(), {}, change.rewritten));
  ASSERT_TRUE(report.regions.wrong);
  EXPECT_NE(report.failure().find("which is the original's rounding there: without it this is another model; applied "
                                  "before it: cancel at add, sub"),
            std::string::npos)
      << report.failure();
}

// A region that reads what another one has replaced by something more exact is not to blame for that.
TEST(RegionCheck, OnlyThePlaceItselfIsToBlame) {
  const Change change = apply_everywhere(
      "input x f32[4, 8]\nweight c f32[4, 8] = 12582912.0\nweight w f32[8, 3]\nweight b f32[3]\n"
      "output add(matmul(sub(add(x, c), c), w), broadcast(b; shape=[4, 3]))\n",
      std::string(fuse_bias) + "rule cancel:\n  sub(add(x, y), y) => x\n");
  const CheckReport report = value_of(check(change.before, change.after, library(), {}, change.rewritten));
  ASSERT_TRUE(report.regions.wrong);
  EXPECT_NE(report.failure().find("applied before it: cancel at add, sub; nothing"), std::string::npos)
      << report.failure();
}

// Where one element takes too much, the message tells what was not checked.
TEST(RegionCheck, WhatWasNotCheckedIsSuspected) {
  std::string text = "input x f32[2000, 2000]\nweight w f32[2000, 2000]\n";
  const std::string rules = "rule wrong:\n  matmul(matmul(x, w), w) => matmul(x, w)\n";
  const Change change = apply_everywhere(text + "output matmul(matmul(x, w), w)\n", rules);
  CheckOptions options;
  options.inputs = 1;
  const CheckReport report = value_of(check(change.before, change.after, library(), options, change.rewritten));
  ASSERT_EQ(report.regions.unchecked, std::vector<std::size_t>{0});
  EXPECT_NE(report.failure().find("; not checked by itself (--check full does, where it can): wrong at matmul, matmul; "
                                  "nothing was written"),
            std::string::npos)
      << report.failure();
}

// The deviation is that of errors which single precision makes.
TEST(RoundingRing, DeviationsAreThoseOfSinglePrecision) {
  Random random(7);
  double largest = 0, squares = 0;
  constexpr int sums = 400, terms = 600;
  for (int sum = 0; sum < sums; ++sum) {
    const RoundingRing ring;
    float single = 0;
    RoundedNumber exact = RoundingRing::number(0);
    for (int i = 0; i < terms; ++i) {
      const auto a = static_cast<float>(2 * random.uniform() - 1), b = static_cast<float>(2 * random.uniform() - 1);
      single += a * b;
      exact = ring.add(exact, ring.multiply(RoundingRing::number(static_cast<double>(a)),
                                            RoundingRing::number(static_cast<double>(b))));
    }
    const double error = std::fabs(static_cast<double>(single) - exact.value) / (0x1p-24 * exact.deviation());
    largest = std::max(largest, error);
    squares += error * error;
  }
  EXPECT_LT(largest, 4);
  const double spread = std::sqrt(squares / sums);
  EXPECT_GT(spread, 0.2);
  EXPECT_LT(spread, 1);
}

}  // namespace
}  // namespace taso::testing
