// Enumeration of instances, validation at all of them, reports on axiom sets.

#include "verifier/exhaustive.h"

#include "tests/verifier/fixture.h"
#include "verifier/axiom_report.h"
#include "verifier/shape_facts.h"
#include "verifier/solver_ring.h"

namespace taso {
namespace {

using testing::parse;
using testing::registry;

ExhaustiveOutcome validate(const std::string& text, ExhaustiveOptions options = {}) {
  LoweredCache cache(registry());
  return validate_exhaustively(registry(), parse(text)[0], cache, options);
}

TEST(Enumeration, FindsAllThatBruteForceFinds) {
  for (const char* text : {"axiom a: conv2d(neg(x), k) = neg(conv2d(x, k))",
                           "axiom a: add(conv2d(x, k), conv2d(y, k)) = conv2d(add(x, y), k)",
                           "axiom a: concat(conv2d(x, k), conv2d(y, k); axis=-4) = conv2d(concat(x, y; axis=-4), k)"}) {
    const Substitution rule = parse(text)[0];
    Domain domain{.bound = 2, .composite = 2, .attributes = false};
    std::vector<Shape> shapes;
    for (Shape& shape : all_shapes(domain))
      if (shape.size() == 4) shapes.push_back(std::move(shape));
    ASSERT_EQ(shapes.size(), 16U);
    std::size_t expected = 0, total = 1;
    for (std::size_t v = 0; v < rule.tensor_variables.size(); ++v) total *= shapes.size();
    for (std::size_t n = 0; n < total; ++n) {
      Instance instance;
      std::size_t rest = n;
      for (std::size_t v = 0; v < rule.tensor_variables.size(); ++v, rest /= shapes.size())
        instance.variables.push_back({ElementType::f32, shapes[rest % shapes.size()], true});
      expected += check_types(registry(), rule, instance).typed ? 1 : 0;
    }
    LoweredCache cache(registry());
    Enumeration enumeration(registry(), rule, cache, {.domain = domain});
    std::size_t found = 0;
    enumeration.run([&] {
      EXPECT_EQ(enumeration.field_agreement(), Enumeration::Field::equal);
      return ++found > 0;
    });
    EXPECT_EQ(found, expected) << text;
    EXPECT_GT(expected, 50U);
    EXPECT_TRUE(enumeration.complete());
  }
}

TEST(Exhaustive, CountsAreThoseOfTheDomain) {
  // Extents m, k, n from 1 to 4.
  const ExhaustiveOutcome outcome = validate(
      "axiom a: transpose(matmul(x, y); perm=[1, 0]) = matmul(transpose(y; perm=[1, 0]), transpose(x; perm=[1, 0]))");
  EXPECT_EQ(outcome.kind, BoundedOutcome::Kind::agrees) << outcome.reason;
  EXPECT_EQ(outcome.obligations, 64U);
  EXPECT_EQ(outcome.by_field, 64U);
  EXPECT_TRUE(outcome.complete);
  EXPECT_GE(outcome.cross_checked, 32U);
}

TEST(Exhaustive, FactsOfFunctionsHoldAtThePoints) {
  const ExhaustiveOutcome outcome = validate("axiom a: relu(relu(x)) = relu(x)");
  EXPECT_EQ(outcome.kind, BoundedOutcome::Kind::agrees);
  EXPECT_EQ(outcome.by_field, outcome.obligations);
  EXPECT_EQ(outcome.obligations, 341U);
}

TEST(Exhaustive, WhereAResultHasNoValuePolynomialsDecide) {
  const ExhaustiveOutcome outcome =
      validate("axiom a: concat(div(x, sub(x, x)), neg(neg(y)); axis=-1) = concat(div(x, sub(x, x)), y; axis=-1)",
               {.domain = {}, .max_obligations = 500});
  EXPECT_EQ(outcome.kind, BoundedOutcome::Kind::agrees) << outcome.reason;
  EXPECT_EQ(outcome.by_polynomials, outcome.obligations);
  EXPECT_GT(outcome.obligations, 100U);
}

TEST(Exhaustive, MoreThanTheQuotaIsThinned) {
  const ExhaustiveOutcome outcome =
      validate("axiom a: matmul(x, matmul(y, z)) = matmul(matmul(x, y), z)", {.domain = {}, .max_obligations = 500});
  EXPECT_EQ(outcome.kind, BoundedOutcome::Kind::agrees) << outcome.reason;
  EXPECT_FALSE(outcome.complete);
  EXPECT_GT(outcome.estimate, 500);
  EXPECT_GT(outcome.obligations, 50U);
  EXPECT_LE(outcome.obligations, 1000U);
}

TEST(Exhaustive, FalseAxiomsAreRefuted) {
  const ExhaustiveOutcome outcome =
      validate("axiom a: concat(conv2d(x, k), conv2d(x, l); axis=-3) = conv2d(x, concat(k, l; axis=-4))");
  EXPECT_EQ(outcome.kind, BoundedOutcome::Kind::differs);
  EXPECT_TRUE(outcome.counterexample);
}

// Rules 99, 100, 130 and 131 of the original's file hold wherever extents are at most 2, and fail at 3.
TEST(Exhaustive, GroupedMergeNeedsABoundOfThree) {
  const std::string text =
      "axiom r: concat(conv2d(x, a), conv2d(y, b); axis=-3) = conv2d(concat(x, y; axis=-3), concat(a, b; axis=-4))";
  ExhaustiveOptions options;
  options.domain = {.bound = 2, .composite = 2, .attributes = false};
  const ExhaustiveOutcome two = validate(text, options);
  EXPECT_EQ(two.kind, BoundedOutcome::Kind::agrees) << two.reason;
  EXPECT_TRUE(two.complete);
  options.domain = {.bound = 3, .composite = 3, .attributes = false};
  EXPECT_EQ(validate(text, options).kind, BoundedOutcome::Kind::differs);
}

TEST(SolverRing, AgreesWithTheTruth) {
  auto answer = [](const std::string& text, std::vector<Shape> shapes) {
    const Substitution rule = parse(text)[0];
    Instance instance;
    for (Shape& shape : shapes) instance.variables.push_back({ElementType::f32, std::move(shape), true});
    const TypeCheck check = check_types(registry(), rule, instance);
    EXPECT_TRUE(check.typed) << text;
    return check.typed ? smt_agreement(*check.typed, 1) : smt::Answer::unknown;
  };
  using smt::Answer;
  EXPECT_EQ(answer("rule r: matmul(x, add(y, z)) => add(matmul(x, y), matmul(x, z))", {{2, 3}, {3, 2}, {3, 2}}),
            Answer::unsatisfiable);
  EXPECT_EQ(answer("rule r: relu(relu(x)) => relu(x)", {{2}}), Answer::unsatisfiable);
  EXPECT_EQ(answer("rule r: relu(reduce_max(x; axes=[-1])) => reduce_max(relu(x); axes=[-1])", {{3}}),
            Answer::unsatisfiable);
  EXPECT_EQ(answer("rule r: sub(x, y) => sub(y, x)", {{2}, {2}}), Answer::satisfiable);
  EXPECT_EQ(answer("rule r: tanh(tanh(x)) => tanh(x)", {{2}}), Answer::satisfiable);
}

TEST(Report, FollowingAxiomsAreFound) {
  const auto axioms = parse("axiom once: relu(relu(x)) = relu(x)\naxiom thrice: relu(relu(relu(x))) = relu(x)\n");
  RedundancyCheck check(registry(), axioms, 200'000);
  EXPECT_FALSE(check.follows(0));
  EXPECT_TRUE(check.follows(1));
}

TEST(AxiomUse, UsesThatMakeIllTypedTermsAreFound) {
  ShapeFactsTable shapes(registry());
  auto uses = [&](const std::string& text) {
    const ShapeFacts facts = shapes.examine(parse(text)[0], 150);
    return std::pair(facts.may_be_ill_typed[0][0], facts.may_be_ill_typed[1][0]);
  };
  EXPECT_EQ(uses("axiom a: add(x, y) = add(y, x)"), std::pair(false, false));
  EXPECT_EQ(uses("axiom a: matmul(x, add(y, z)) = add(matmul(x, y), matmul(x, z)) if rank(y) == 2, rank(z) == 2"),
            std::pair(false, false));
  // A vector has no rows to multiply.
  EXPECT_EQ(uses("axiom a: add(x, broadcast(b; shape=s)) = matmul_bias_act(x, matrix_identity(; size=dim(b, -1)), b)"
                 " if rank(b) == 1"),
            std::pair(true, false));
  // Pieces that fit together need not have been cut from tensors that do.
  EXPECT_EQ(uses("axiom a: slice(add(x, y); starts=b, steps=c, sizes=d)"
                 " = add(slice(x; starts=b, steps=c, sizes=d), slice(y; starts=b, steps=c, sizes=d))"),
            std::pair(false, true));
}

TEST(Report, Directions) {
  const AxiomUse use = usable_directions(parse("axiom a: sub(x, sub(x, y)) = y")[0]);
  EXPECT_TRUE(use.left_to_right);
  EXPECT_FALSE(use.right_to_left);
}

TEST(Report, PlantedInconsistencyIsReported) {
  auto axioms = parse("axiom add_associative: add(x, add(y, z)) = add(add(x, y), z)\naxiom neg_neg: neg(neg(x)) = x\n");
  const auto falsehoods = parse("rule f: sub(x, y) => sub(y, x)\n");
  ConsistencyCheck good(registry(), axioms, 100'000);
  EXPECT_FALSE(good.collapse(0));
  EXPECT_FALSE(good.collapse(1));
  EXPECT_FALSE(good.entails(falsehoods[0]));
  // With commutativity, add(x, y) = x makes all tensors of one shape equal.
  axioms.push_back(parse("axiom planted: add(x, y) = x")[0]);
  ConsistencyCheck bad(registry(), axioms, 400'000);
  EXPECT_TRUE(bad.collapse(0) || bad.collapse(1) || bad.collapse(2));
}

}  // namespace
}  // namespace taso
