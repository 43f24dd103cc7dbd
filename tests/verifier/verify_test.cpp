// Verdicts: corpora of statements, counterexamples that replay, axioms, mutations of rules.

#include "verifier/verify.h"

#include <algorithm>

#include "tests/verifier/fixture.h"
#include "verifier/bounded.h"

namespace taso {
namespace {

using testing::axioms;
using testing::parse;
using testing::registry;

// The theory with little patience: for goals that must not be derived.
Verifier& quick_verifier() {
  static Verifier shared = [] {
    VerifierOptions options;
    options.rlimit = 60'000;
    return Verifier(registry(), axioms(), options);
  }();
  return shared;
}

// One verifier for all tests: verdicts do not depend on earlier goals.
Verifier& verifier() {
  static Verifier shared = [] {
    VerifierOptions options;
    options.max_instances = 130;
    options.full = true;  // numbers have every chance to contradict the unbounded proof
    options.rlimit = 400'000;
    return Verifier(registry(), axioms(), options);
  }();
  return shared;
}

Verdict verify(const std::string& text) {
  const std::vector<Substitution> rules = parse(text);
  return rules.size() == 1 ? verifier().verify(rules[0]) : Verdict{};
}

class Corpus : public ::testing::TestWithParam<const char*> {};

TEST_P(Corpus, VerdictsAreAsExpected) {
  for (const Substitution& rule : testing::load(GetParam())) {
    ASSERT_TRUE(rule.expect) << rule.name << " says nothing about its verdict";
    const Verdict verdict = verifier().verify(rule);
    EXPECT_EQ(*rule.expect, to_string(verdict.kind)) << rule.name << ": " << verdict.reason << "\n"
                                                     << (verdict.counterexample ? verdict.counterexample->text : "");
    EXPECT_EQ(verdict.kind == VerdictKind::refuted, verdict.counterexample.has_value()) << rule.name;
    EXPECT_EQ(verdict.kind == VerdictKind::proved, verdict.reason.empty()) << rule.name;
  }
}
INSTANTIATE_TEST_SUITE_P(Verify, Corpus, ::testing::Values("true.rules", "false.rules", "unknown.rules"));

// The axioms alone must not prove what is false.
TEST(Axioms, DoNotEntailFalsehoods) {
  for (const Substitution& rule : testing::load("false.rules"))
    EXPECT_FALSE(quick_verifier().follows_from_axioms(rule)) << rule.name;
}

TEST(Axioms, AreUsable) { EXPECT_THAT(verifier().theory_problems(), ::testing::IsEmpty()); }

TEST(Axioms, AndDeclaredLawsHold) {
  VerifierOptions options;
  options.max_instances = 12;
  options.rare = false;
  Verifier bounded(registry(), {}, options);
  std::vector<Substitution> statements = axioms();
  const std::vector<Substitution> laws = Verifier::declared_laws(registry());
  EXPECT_GE(laws.size(), 5U);
  statements.insert(statements.end(), laws.begin(), laws.end());
  for (const Substitution& axiom : statements) {
    const Verdict verdict = bounded.verify(axiom);
    EXPECT_EQ(verdict.kind, VerdictKind::proved) << axiom.name << ": " << verdict.reason << "\n"
                                                 << (verdict.counterexample ? verdict.counterexample->text : "");
  }
}

TEST(Verify, FalseLawsAreRefuted) {
  const auto extended = OperatorRegistry::parse(
      "operator less(x[D..], y[D..]) -> [D..]\n  \"A difference.\"\n  law commutative\n  out[I..] = x[I..] - y[I..]\n",
      "test.op", &registry());
  ASSERT_TRUE(extended) << extended.error().to_string();
  Verifier bounded(*extended, {});
  int found = 0;
  for (const Substitution& law : Verifier::declared_laws(*extended)) {
    if (law.name != "less.commutative") continue;
    ++found;
    EXPECT_EQ(bounded.verify(law).kind, VerdictKind::refuted);
  }
  EXPECT_EQ(found, 1);
}

// No axiom speaks of reductions: the definitions decide, or else small instances say what they can.
TEST(Verify, DefinitionsProveWhatNoAxiomDoes) {
  const std::string text = "rule r: reduce_sum(neg(x); axes=[-1]) => neg(reduce_sum(x; axes=[-1]))";
  const Verdict verdict = verify(text);
  EXPECT_EQ(verdict.kind, VerdictKind::proved);
  EXPECT_TRUE(verdict.by_unbounded);
  EXPECT_TRUE(verdict.by_bounded);
  EXPECT_FALSE(verdict.by_axioms);
  EXPECT_THAT(verdict.proofs, ::testing::ElementsAre("unbounded", "bounded 3"));
  VerifierOptions options;
  options.unbounded = false;
  options.max_instances = 20;
  Verifier without(registry(), axioms(), options);
  const Verdict other = without.verify(parse(text)[0]);
  EXPECT_EQ(other.kind, VerdictKind::unknown);
  EXPECT_THAT(other.proofs, ::testing::ElementsAre("bounded 3"));
  EXPECT_THAT(other.reason, ::testing::HasSubstr("output 0 does not follow from the axioms"));
}

TEST(Verify, ProofsConditionsAndClassAreReported) {
  const Verdict verdict = verify(
      "rule r: concat(conv2d(x, k), conv2d(x, l); axis=-3) => conv2d(x, concat(k, l; axis=-4))\n"
      "  if dim(x, -3) == dim(k, -3)");
  EXPECT_EQ(verdict.kind, VerdictKind::proved);
  EXPECT_THAT(verdict.proofs, ::testing::ElementsAre("unbounded", "axioms", "bounded 3"));
  ASSERT_FALSE(verdict.conditions.empty());
  EXPECT_EQ(verdict.conditions[0], "dim(x, -3) == dim(k, -3)");
  ASSERT_TRUE(verdict.numeric_class);
  EXPECT_EQ(*verdict.numeric_class, NumericClass::exact);
  EXPECT_GT(verdict.instances, 20U);
}

TEST(Verify, SmallRulesAreExaminedCompletely) {
  const Verdict verdict = verify("rule r: relu(x) => relu(x)");
  EXPECT_TRUE(verdict.complete);
  EXPECT_EQ(verdict.kind, VerdictKind::proved);
}

TEST(Verify, WhatIsProvedForAllSizesIsConfirmedAtFewInstances) {
  const std::vector<Substitution> rules = parse("rule r: matmul(x, add(y, z)) => add(matmul(x, y), matmul(x, z))");
  VerifierOptions options;
  options.axioms = false;
  const Verdict few = Verifier(registry(), {}, options).verify(rules.at(0));
  EXPECT_TRUE(few.by_unbounded && few.by_bounded);
  EXPECT_EQ(few.instances, options.confirming_instances);
  EXPECT_FALSE(few.complete);
  // Where nothing else is known the whole sample is examined.
  options.unbounded = false;
  EXPECT_GT(Verifier(registry(), {}, options).verify(rules.at(0)).instances, options.confirming_instances);
  options.unbounded = options.full = true;
  EXPECT_GT(Verifier(registry(), {}, options).verify(rules.at(0)).instances, options.confirming_instances);
}

TEST(Verify, ImplicitConditions) {
  EXPECT_THAT(verify("rule r: div(mul(x, y), y) => x").conditions, ::testing::Contains("divisors are not zero"));
  EXPECT_THAT(verify("rule r: matmul(x, v), matmul(x, w) => s.0, s.1\n"
                     "where s = split(matmul(x, concat(v, w; axis=-1)); axis=-1, sizes=[dim(v, -1), dim(w, -1)])")
                  .conditions,
              ::testing::Contains("the target is well-typed"));
}

TEST(Verify, CounterexamplesAreReadable) {
  const Verdict verdict = verify("rule r: sub(x, y) => sub(y, x)");
  ASSERT_TRUE(verdict.counterexample);
  const std::string& text = verdict.counterexample->text;
  EXPECT_THAT(text, ::testing::HasSubstr("x: f32"));
  EXPECT_THAT(text, ::testing::HasSubstr("source = "));
  EXPECT_THAT(text, ::testing::HasSubstr("target = "));
  // It is small: a scalar suffices.
  EXPECT_TRUE(verdict.counterexample->variables[0].shape.empty()) << text;
}

TEST(Verify, VerdictsDoNotDependOnEarlierOnes) {
  const auto rules = testing::load("true.rules");
  VerifierOptions options;
  options.max_instances = 30;
  options.rare = false;
  Verifier fresh(registry(), axioms(), options), used(registry(), axioms(), options);
  for (std::size_t i = 0; i < 4; ++i) (void)used.verify(rules[i]);
  const Verdict a = fresh.verify(rules[4]), b = used.verify(rules[4]);
  EXPECT_EQ(a.kind, b.kind);
  EXPECT_EQ(a.instances, b.instances);
  EXPECT_EQ(a.conditions, b.conditions);
}

TEST(Verify, GoalsCanBeDumped) {
  const auto rules = parse("rule r: relu(relu(x)) => relu(x)");
  const std::string text = verifier().smt2(rules[0]);
  EXPECT_THAT(text, ::testing::HasSubstr("(check-sat)"));
  EXPECT_THAT(text, ::testing::HasSubstr("relu/1.0"));
}

TEST(Lemmas, AreProvedBeforeTheyAreUsed) {
  auto theory = parse(
      "axiom once: relu(relu(x)) = relu(x)\n"
      "rule thrice: relu(relu(relu(x))) => relu(x)\n"
      "rule wrong: tanh(tanh(x)) => tanh(x)\n");
  Verifier small(registry(), theory);
  EXPECT_THAT(small.theory_problems(), ::testing::ElementsAre(::testing::StartsWith("wrong: lemma not proved")));
}

TEST(Lemmas, AxiomsThatDetermineNothingAreReported) {
  // Neither side tells both variables.
  Substitution open = parse("axiom open: sub(x, x) = sub(x, x)\n")[0];
  open.tensor_variables.emplace_back("y");
  open.target.nodes[0].inputs = {{true, 1, 0}, {true, 1, 0}};
  Verifier small(registry(), {parse("axiom fine: add(x, neg(x)) = sub(x, x)\n")[0], open});
  EXPECT_THAT(small.theory_problems(), ::testing::ElementsAre(::testing::StartsWith("open: ")));
}

TEST(Verify, ResultsThatGrowAreFlagged) {
  const Verdict later = verify("rule r: matmul(smul(x, s), y) => smul(matmul(x, y), s)");
  ASSERT_TRUE(later.may_overflow);
  EXPECT_EQ(*later.may_overflow, "matmul");
  EXPECT_FALSE(verify("rule r: add(x, add(y, z)) => add(add(x, y), z)").may_overflow);
}

// --- mutations: a rule with one thing changed is refuted by numbers or not proved

struct Mutation {
  std::string what;
  Substitution rule;
};

void mutate_expression(const AttributeExpression& expression, std::vector<AttributeExpression>& results) {
  if (expression.kind == AttributeExpression::Kind::literal) {
    AttributeExpression changed = expression;
    if (auto* integer = std::get_if<std::int64_t>(&changed.literal)) {
      *integer = *integer == -1 ? -2 : *integer + 1;
      results.push_back(changed);
    } else if (auto* list = std::get_if<std::vector<std::int64_t>>(&changed.literal);
               list != nullptr && !list->empty()) {
      list->front() += 1;
      results.push_back(changed);
    } else if (auto* symbol = std::get_if<SymbolValue>(&changed.literal)) {
      symbol->name = symbol->name == "relu" ? "tanh" : "relu";
      results.push_back(changed);
    }
  }
  if (expression.kind == AttributeExpression::Kind::list && expression.operands.size() > 1) {
    AttributeExpression changed = expression;
    std::swap(changed.operands[0], changed.operands[1]);
    if (!(changed == expression)) results.push_back(changed);
  }
  if (expression.kind == AttributeExpression::Kind::add) {
    AttributeExpression changed = expression;
    changed.kind = AttributeExpression::Kind::subtract;
    results.push_back(changed);
  }
}

std::vector<Mutation> mutations(const Substitution& rule) {
  std::vector<Mutation> result;
  for (std::size_t n = 0; n < rule.target.nodes.size(); ++n) {
    const PatternNode& node = rule.target.nodes[n];
    if (node.inputs.size() >= 2 && node.inputs[0] != node.inputs[1]) {
      Mutation swapped{"operands of " + node.op + " swapped", rule};
      std::swap(swapped.rule.target.nodes[n].inputs[0], swapped.rule.target.nodes[n].inputs[1]);
      result.push_back(std::move(swapped));
    }
    for (std::size_t a = 0; a < node.attributes.size(); ++a) {
      std::vector<AttributeExpression> changed;
      mutate_expression(node.attributes[a].second, changed);
      for (const AttributeExpression& expression : changed) {
        Mutation mutation{node.op + "." + node.attributes[a].first + " changed", rule};
        mutation.rule.target.nodes[n].attributes[a].second = expression;
        result.push_back(std::move(mutation));
      }
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i].is_variable || rule.tensor_variables.size() < 2) continue;
      Mutation replaced{"input " + std::to_string(i) + " of " + node.op + " replaced", rule};
      PatternValue& input = replaced.rule.target.nodes[n].inputs[i];
      input.index = (input.index + 1) % static_cast<std::uint32_t>(rule.tensor_variables.size());
      result.push_back(std::move(replaced));
    }
  }
  if (rule.target.outputs.size() >= 2) {
    Mutation ports{"outputs swapped", rule};
    std::swap(ports.rule.target.outputs[0], ports.rule.target.outputs[1]);
    result.push_back(std::move(ports));
  }
  if (!rule.conditions.empty()) {
    Mutation unconditional{"conditions dropped", rule};
    unconditional.rule.conditions.clear();
    result.push_back(std::move(unconditional));
  }
  return result;
}

// Every mutation is examined by bounded validation at other instances than the proof's own (another seed); what differs
// there must be neither proved nor derivable from the axioms.
TEST(Mutations, WhatNumbersRefuteIsNotProved) {
  std::size_t refuted = 0, total = 0;
  for (const Substitution& rule : testing::load("true.rules")) {
    for (const Mutation& mutation : mutations(rule)) {
      ++total;
      const BoundedOutcome outcome =
          validate_bounded(registry(), mutation.rule, {.seed = 77, .max_instances = 20, .rare = false});
      if (outcome.kind != BoundedOutcome::Kind::differs) continue;
      ++refuted;
      EXPECT_FALSE(quick_verifier().follows_from_axioms(mutation.rule)) << rule.name << ", " << mutation.what;
    }
  }
  EXPECT_GT(total, 60U);
  EXPECT_GT(refuted, total / 3);
}

}  // namespace
}  // namespace taso
