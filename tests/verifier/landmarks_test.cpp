// Instances about the numbers that a rule names.
#include "verifier/landmarks.h"

#include "tests/verifier/fixture.h"
#include "verifier/bounded.h"

namespace taso {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using testing::parse;
using testing::registry;

Landmarks landmarks_of(const std::string& text) {
  const std::vector<Substitution> rules = parse("rule r: " + text);
  return rules.empty() ? Landmarks{} : find_landmarks(registry(), rules[0], 3);
}

TEST(Landmarks, AreNumbersOfTheRuleWithTheirNeighbours) {
  EXPECT_THAT(landmarks_of("relu(x) => relu(neg(neg(x))) if dim(x, -1) < 50").sizes, IsSupersetOf({49, 50, 51}));
  EXPECT_THAT(landmarks_of("relu(x) => relu(neg(neg(x))) if rank(x) <= 6").ranks, IsSupersetOf({5U, 6U, 7U}));
  EXPECT_THAT(landmarks_of("clip(x; min=-8.0, max=8.5) => clip(x; min=-8.0, max=8.5)").reals,
              IsSupersetOf({-8.5, -8.0, -7.5, 8.5, 9.0}));
}

TEST(Landmarks, AreWhereQuotientsChange) {
  const char* rule = "pad(x; before=b, after=a) => pad(x; before=b, after=a, value=(3 * dim(x, -1)) // 100)";
  EXPECT_THAT(landmarks_of(rule).sizes, IsSupersetOf({33, 34, 35}));
  EXPECT_THAT(landmarks_of("relu(x) => relu(relu(x)) if 100 < dim(x, -1) * dim(x, -2)").sizes,
              IsSupersetOf({50, 51, 101}));
}

TEST(Landmarks, AreNumbersOfDefinitions) {
  EXPECT_THAT(landmarks_of("hard_sigmoid(x) => hard_sigmoid(neg(neg(x)))").reals, Contains(6));
}

TEST(Landmarks, AreNoneWhereSmallInstancesTell) {
  const Landmarks none = landmarks_of(
      "conv2d(x, k; strides=[2, 2], pads=[1, 1, 1, 1]) => conv2d(x, neg(neg(k)); strides=[2, 2], "
      "pads=[1, 1, 1, 1])");
  EXPECT_THAT(none.sizes, IsEmpty());
  EXPECT_THAT(none.ranks, IsEmpty());
}

// The rules of landmarks.rules are true at small instances, so the verdict on them rests on landmarks.
TEST(Landmarks, RefuteWhatSmallInstancesDoNot) {
  for (const Substitution& rule : testing::load("landmarks.rules")) {
    LoweredCache cache(registry());
    const InstanceOptions small{.max_instances = 40, .search = false, .rare = false, .max_candidates = 400};
    EXPECT_NE(validate_bounded(registry(), rule, small, cache).kind, BoundedOutcome::Kind::differs) << rule.name;
    const LandmarkOutcome outcome = examine_landmarks(registry(), rule, {}, cache);
    EXPECT_TRUE(outcome.counterexample.has_value()) << rule.name;
    if (!outcome.counterexample) continue;
    EXPECT_FALSE(outcome.where.empty());
    // The numbers are a counterexample, and the instances the same again.
    const LandmarkOutcome again = examine_landmarks(registry(), rule, {}, cache);
    EXPECT_EQ(again.counterexample->text, outcome.counterexample->text);
    std::vector<RingTensor<double>> inputs;
    for (std::size_t v = 0; v < rule.tensor_variables.size(); ++v)
      inputs.push_back({outcome.counterexample->variables[v].shape, outcome.counterexample->elements[v],
                        outcome.counterexample->integers[v]});
    const auto differ =
        differs(registry(), rule, {outcome.counterexample->variables, outcome.counterexample->attributes, inputs});
    EXPECT_TRUE(differ.ok() && *differ) << rule.name;
  }
}

TEST(Landmarks, ConditionsOnRanksAreKept) {
  const char* rule = "rule r: neg(neg(softmax(x; axis=-1))) => softmax(x; axis=-1 - rank(x) // 7)";
  LoweredCache cache(registry());
  const auto differ = [&](const std::string& text) {
    return examine_landmarks(registry(), parse(text)[0], {}, cache).counterexample.has_value();
  };
  EXPECT_TRUE(differ(rule));
  EXPECT_FALSE(differ(std::string(rule) + " if rank(x) <= 6"));
}

}  // namespace
}  // namespace taso
