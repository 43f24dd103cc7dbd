// Verdicts: corpora of statements, counterexamples that replay, axioms, mutations of rules.

#include "verifier/verify.h"

#include <z3.h>

#include <algorithm>
#include <regex>
#include <set>

#include "support/file.h"
#include "tests/verifier/fixture.h"
#include "tests/verifier/mutations.h"
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

// For EXPECT_THAT: conditions as rules spell them.
std::vector<std::string> texts(const std::vector<Condition>& conditions, const Substitution& rule) {
  std::vector<std::string> result;
  for (const Condition& condition : conditions) result.push_back(to_string(condition, rule));
  return result;
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
INSTANTIATE_TEST_SUITE_P(Verify, Corpus,
                         ::testing::Values("true.rules", "false.rules", "unknown.rules", "neighbours.rules",
                                           "published.rules", "expensive.rules", "sound.rules", "practice.rules",
                                           "practice_false.rules", "wanted.rules", "wanted_false.rules",
                                           "attacked.rules", "words.rules", "padding.rules"));

// unbounded.rules says what the proof for all sizes makes of a rule alone: the whole verifier proves these, and no
// others.
TEST(Corpus, WhatIsProvedForAllSizesIsProvedAndNothingElse) {
  for (const Substitution& rule : testing::load("unbounded.rules")) {
    const Verdict verdict = verifier().verify(rule);
    EXPECT_EQ(*rule.expect == "proved", verdict.kind == VerdictKind::proved) << rule.name << ": " << verdict.reason;
  }
}

// Operators of a user's own: rules over those of a folder.
void verdicts_are_as_expected(const std::string& folder, const std::string& file) {
  const auto own = OperatorRegistry::load(testing::source_dir + folder, &registry());
  ASSERT_TRUE(own) << own.error().to_string();
  const auto rules = load_rules(testing::source_dir + "/tests/data/verify/" + file, *own);
  ASSERT_TRUE(rules) << rules.error().to_string();
  VerifierOptions options;
  options.full = true;
  options.rlimit = 400'000;
  Verifier whole(*own, axioms(), options);
  for (const Substitution& rule : *rules) {
    ASSERT_TRUE(rule.expect) << rule.name << " says nothing about its verdict";
    const Verdict verdict = whole.verify(rule);
    EXPECT_EQ(*rule.expect, to_string(verdict.kind)) << rule.name << ": " << verdict.reason << "\n"
                                                     << (verdict.counterexample ? verdict.counterexample->text : "");
  }
}

TEST(Corpus, VerdictsOnOwnOperatorsAreAsExpected) {
  verdicts_are_as_expected("/tests/attack/operators", "attacked_own.rules");
  verdicts_are_as_expected("/tests/attack/operators", "attacked_definedness.rules");
}

TEST(Corpus, VerdictsOnComposedOperatorsAreAsExpected) {
  verdicts_are_as_expected("/tests/data/composition/operators", "composed.rules");
}

TEST(Corpus, VerdictsOnRecurrencesAreAsExpected) {
  verdicts_are_as_expected("/tests/data/recurrences/operators", "recurrences.rules");
}

// The axioms alone must not prove what is false.
TEST(Axioms, DoNotEntailFalsehoods) {
  for (const Substitution& rule : testing::load("false.rules")) {
    if (!quick_verifier().follows_from_axioms(rule)) continue;
    // Derivations speak of instances at which the types of the outputs agree.
    const Verdict verdict = verifier().verify(rule);
    EXPECT_TRUE(verdict.counterexample && verdict.counterexample->of_types()) << rule.name;
  }
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
      "operator lesser(x[D..], y[D..]) -> [D..]\n  \"A difference.\"\n  law commutative\n  out[I..] = x[I..] - "
      "y[I..]\n",
      "test.op", &registry());
  ASSERT_TRUE(extended) << extended.error().to_string();
  Verifier bounded(*extended, {});
  int found = 0;
  for (const Substitution& law : Verifier::declared_laws(*extended)) {
    if (law.name != "lesser.commutative") continue;
    ++found;
    EXPECT_EQ(bounded.verify(law).kind, VerdictKind::refuted);
  }
  EXPECT_EQ(found, 1);
}

// The table of docs/verification.md names axioms for all 43 properties of the chapter.
TEST(Verify, AxiomsOfTheDocumentExist) {
  std::set<std::string> known;
  for (const Substitution& axiom : axioms()) known.insert(axiom.name);
  for (const Substitution& law : Verifier::declared_laws(registry())) known.insert(law.name);
  const Expected<std::string> text = read_file(testing::source_dir + "/docs/verification.md");
  ASSERT_TRUE(text) << text.error().to_string();
  const std::regex row(R"(\| (\d+) \| ([^|]*) \| ([^|]*) \| ([^|]*)\|)"), quoted("`([^`]*)`");
  int rows = 0;
  for (std::sregex_iterator it(text->begin(), text->end(), row), end; it != end; ++it) {
    EXPECT_EQ((*it)[1].str(), std::to_string(++rows));
    const std::string names = (*it)[3].str();
    std::sregex_iterator name(names.begin(), names.end(), quoted);
    EXPECT_NE(name, std::sregex_iterator()) << "property " << rows << " has no axiom";
    for (; name != std::sregex_iterator(); ++name) EXPECT_TRUE(known.contains((*name)[1].str())) << (*name)[1].str();
  }
  EXPECT_EQ(rows, 43);
}

// No axiom speaks of lrn: the definitions decide, or else small instances say what they can.
TEST(Verify, DefinitionsProveWhatNoAxiomDoes) {
  const std::string text = "rule r: neg(lrn(x; size=3)) => lrn(neg(x); size=3)";
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
  const Substitution rule = parse(
      "rule r: concat(conv2d(x, k), conv2d(x, l); axis=-3) => conv2d(x, concat(k, l; axis=-4))\n"
      "  if dim(x, -3) == dim(k, -3)")[0];
  const Verdict verdict = verifier().verify(rule);
  EXPECT_EQ(verdict.kind, VerdictKind::proved);
  EXPECT_THAT(verdict.proofs, ::testing::ElementsAre("unbounded", "axioms", "bounded 3"));
  ASSERT_FALSE(verdict.conditions.empty());
  EXPECT_EQ(to_string(verdict.conditions[0], rule), "dim(x, -3) == dim(k, -3)");
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
  EXPECT_THAT(verify("rule r: div(mul(x, y), y) => x").implicit,
              ::testing::Contains(ImplicitCondition{ImplicitCondition::Kind::nonzero_divisors}));
  EXPECT_THAT(verify("rule r: matmul(x, v), matmul(x, w) => s.0, s.1\n"
                     "where s = split(matmul(x, concat(v, w; axis=-1)); axis=-1, sizes=[dim(v, -1), dim(w, -1)])")
                  .implicit,
              ::testing::Contains(ImplicitCondition{ImplicitCondition::Kind::well_typed_target}));
}

// What a proof needs is said in the language of rules, and a rule that says it needs nothing more.
TEST(Verify, ConditionsOfProofsArePartOfTheRule) {
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"rule r: neg(neg(softmax(x; axis=-1))) => softmax(x; axis=-1 - rank(x) // 7)", "rank(x) <= 6"},
      {"rule r: sub(x, x) => sub(log(x), log(x))", "positive(x)"},
      {"rule r: mul(x, sub(y, y)) => mul(sqrt(x), sub(y, y))", "nonnegative(x)"},
      {"rule r: log(reduce_max(x; axes=a)) => reduce_max(log(x); axes=a)", "positive(x)"},
      {"rule r: mul(x, y) => mul(div(mul(x, y), y), y)", "nonzero(y)"},
      {"rule r: sub(add(x, y), y) => add(x, sub(pow(x, y), pow(x, y)))", "positive(x)"},
      {"rule r: clip(x; min=a, max=b) => clip(x; min=a - b + b, max=b)", "finite(b)"},
      {"rule r: relu(transpose(x; perm=p)) => transpose(relu(x); perm=p)", "length(p) <= "}};
  for (const auto& [text, condition] : expected) {
    const Substitution rule = parse(text)[0];
    const Verdict verdict = verifier().verify(rule);
    EXPECT_EQ(verdict.kind, VerdictKind::proved) << text << ": " << verdict.reason;
    EXPECT_THAT(texts(verdict.conditions, rule), ::testing::Contains(::testing::HasSubstr(condition))) << text;
    EXPECT_FALSE(carries_proof(rule, registry()));
    const Substitution stored = stored_form(rule, verdict, registry());
    EXPECT_TRUE(carries_proof(stored, registry()));
    const std::string written = to_string(stored, registry());
    const auto again = parse_rules(written, "again", registry());
    ASSERT_TRUE(again) << again.error().to_string() << "\n" << written;
    EXPECT_TRUE(carries_proof(again->at(0), registry())) << written;
    EXPECT_TRUE(carries_proof(canonical(again->at(0)), registry())) << written;
    EXPECT_THAT(verifier().verify(again->at(0)).added, ::testing::IsEmpty()) << written;
    // The mark does not outlive a change of the rule.
    Substitution weaker = again->at(0);
    weaker.conditions.pop_back();
    EXPECT_FALSE(carries_proof(weaker, registry())) << written;
  }
}

// added.rules: X and X_stored.
TEST(Verify, RulesAreStoredAsTheCorpusSays) {
  const std::vector<Substitution> rules = testing::load("added.rules");
  const auto own_texts = [](const Substitution& rule) {
    std::multiset<std::string> result;
    for (const Condition& condition : rule.conditions) result.insert(to_string(condition, rule));
    return result;
  };
  std::size_t pairs = 0;
  for (std::size_t i = 0; i + 1 < rules.size(); i += 2) {
    const Substitution &rule = rules[i], &expected = rules[i + 1];
    ASSERT_EQ(rule.name + "_stored", expected.name);
    ++pairs;
    const Verdict verdict = quick_verifier().verify(rule), again = quick_verifier().verify(expected);
    EXPECT_EQ(verdict.kind, VerdictKind::proved) << rule.name << ": " << verdict.reason;
    EXPECT_EQ(again.kind, VerdictKind::proved) << expected.name << ": " << again.reason;
    const Substitution stored = stored_form(rule, verdict, registry());
    EXPECT_EQ(own_texts(stored), own_texts(expected)) << rule.name;
    EXPECT_THAT(again.added, ::testing::IsEmpty()) << expected.name;
    if (expected.numeric_class) {
      EXPECT_EQ(stored.numeric_class, expected.numeric_class) << rule.name;
    }
  }
  EXPECT_GE(pairs, 25U);
}

TEST(Verify, DomainsFollowOrAreAskedFor) {
  const std::vector<std::string> nothing_of_values = {
      "rule r: log(transpose(x; perm=p)) => transpose(log(x); perm=p)",
      "rule r: log(concat(x, y; axis=-1)) => concat(log(x), log(y); axis=-1)",
      "rule r: neg(neg(layer_norm(x, s, b))) => layer_norm(x, s, b)",
      "rule r: div(neg(x), y) => neg(div(x, y))",
      "rule r: sub(x, x) => sub(sqrt(mul(x, x)), sqrt(mul(x, x)))",
      "rule r: sub(x, x) => sub(log(x), log(x)) if positive(x)"};
  for (const std::string& text : nothing_of_values) {
    const Verdict verdict = verify(text);
    EXPECT_EQ(verdict.kind, VerdictKind::proved) << text << ": " << verdict.reason;
    for (const Condition& condition : verdict.added) EXPECT_FALSE(condition.of_elements()) << text;
  }
  // Without bounded instances the same is decided.
  VerifierOptions options;
  options.bounded = options.axioms = false;
  Verifier alone(registry(), {}, options);
  const auto conditions_of = [&](const std::string& text) {
    const Substitution rule = parse(text)[0];
    return texts(alone.verify(rule).conditions, rule);
  };
  EXPECT_EQ(alone.verify(parse("rule r: sub(x, y) => add(sub(x, y), sub(log(sub(x, y)), log(sub(x, y))))")[0]).kind,
            VerdictKind::unknown);
  EXPECT_THAT(conditions_of("rule r: sub(x, x) => sub(log(x), log(x))"), ::testing::Contains("positive(x)"));
  // A power has values at some negative numbers: nothing follows from its having one.
  EXPECT_THAT(conditions_of("rule r: pow(x, y) => pow(exp(log(x)), y)"), ::testing::Contains("positive(x)"));
  EXPECT_THAT(conditions_of("rule r: mul(log(x), pow(x, y)) => mul(log(x), pow(exp(log(x)), y))"),
              ::testing::Not(::testing::Contains("positive(x)")));
  // A number that a 32-bit float rounds to zero is no positive one.
  const std::string divided =
      "rule r: neg(neg(x)) => mul(x, div(y, y)) where y = add(mul(x, x), fill(; shape=[1], value=";
  EXPECT_THAT(conditions_of(divided + "1e-300)) if rank(x) == 1"), ::testing::Contains("nonzero(x)"));
  EXPECT_THAT(conditions_of(divided + "1e-30)) if rank(x) == 1"), ::testing::Not(::testing::Contains("nonzero(x)")));
}

// Axioms tell nothing of where a target is defined; that is asked whatever else is.
TEST(Verify, TargetsThatDivideMoreAreFoundWithEveryOption) {
  const Substitution rule =
      parse("rule log_of_nothing: relu(x) => add(relu(x), sub(log(sub(x, x)), log(sub(x, x))))")[0];
  std::vector<Substitution> theory = axioms();
  theory.push_back(parse("axiom nothing: add(y, sub(log(sub(x, x)), log(sub(x, x)))) = add(y, sub(x, x))")[0]);
  theory.push_back(parse("axiom zero: add(y, sub(x, x)) = y")[0]);
  for (const bool bounded : {false, true})
    for (const bool unbounded : {false, true})
      for (const bool landmarks : {false, true}) {
        VerifierOptions options;
        options.bounded = bounded;
        options.unbounded = unbounded;
        options.landmarks = landmarks;
        options.max_instances = 20;
        options.rlimit = 400'000;
        const Verdict verdict = Verifier(registry(), theory, options).verify(rule);
        EXPECT_TRUE(verdict.by_axioms) << "the test of the test";
        EXPECT_EQ(verdict.kind, VerdictKind::unknown) << bounded << unbounded << landmarks;
        EXPECT_THAT(verdict.reason, ::testing::StartsWith("the target divides")) << bounded << unbounded << landmarks;
      }
}

TEST(Verify, DivisionByAttributesIsADivision) {
  const auto extended = OperatorRegistry::parse(
      "operator scale_and_back(x[D..]; a: int) -> [D..]\n  \"x * a / a.\"\n  out[I..] = x[I..] * a / a\n"
      "operator over(x[D..]; a: real) -> [D..]\n  \"x / a.\"\n  out[I..] = x[I..] / a\n",
      "test.op", &registry());
  ASSERT_TRUE(extended) << extended.error().to_string();
  Verifier own(*extended, {});
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"rule r: scale_and_back(x; a=a) => x", "a != 0"},
      {"rule r: scale_and_back(neg(x); a=a) => neg(x)", "a != 0"},
      {"rule r: neg(clip(x; min=a, max=b)) => over(neg(over(clip(x; min=a, max=b); a=0.5)); a=2.0)", ""},
      {"rule r: over(over(x; a=a); a=b) => over(over(x; a=b); a=a)", "a != 0"}};
  for (const auto& [text, condition] : expected) {
    const auto rules = parse_rules(text, "test.rules", *extended);
    ASSERT_TRUE(rules) << rules.error().to_string();
    const Verdict verdict = own.verify(rules->at(0));
    EXPECT_EQ(verdict.kind, VerdictKind::proved) << text << ": " << verdict.reason;
    if (!condition.empty()) {
      EXPECT_THAT(texts(verdict.conditions, rules->at(0)), ::testing::Contains(condition)) << text;
    }
  }
}

TEST(Verify, ArithmeticOfAttributesIsFloatingPoint) {
  const Verdict there_and_back = verify("rule r: clip(x; min=a, max=b) => clip(x; min=a - b + b, max=b)");
  ASSERT_TRUE(there_and_back.numeric_class);
  EXPECT_EQ(*there_and_back.numeric_class, NumericClass::distribution);
  const Substitution passing = parse("rule r: neg(neg(clip(x; min=a, max=b))) => clip(x; min=a, max=b)")[0];
  const Verdict passed = verifier().verify(passing);
  ASSERT_TRUE(passed.numeric_class);
  EXPECT_EQ(*passed.numeric_class, NumericClass::exact);
  EXPECT_THAT(texts(passed.conditions, passing), ::testing::Not(::testing::Contains(::testing::HasSubstr("finite"))));
  // Beside 1e30 nothing is left of most v: there the sum has no value, and the rule is not applied.
  const Verdict rounded = verify("rule r: clip(x; min=v, max=b) => clip(x; min=(v + 1e30) - 1e30, max=b)");
  EXPECT_EQ(rounded.kind, VerdictKind::proved);
  ASSERT_TRUE(rounded.numeric_class);
  EXPECT_EQ(*rounded.numeric_class, NumericClass::distribution);
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
  // Any solver can read it: no name of ours is one of the language's.
  Z3_config config = Z3_mk_config();
  Z3_context context = Z3_mk_context(config);
  Z3_set_error_handler(context, [](Z3_context, Z3_error_code) {});
  const Z3_ast_vector read = Z3_parse_smtlib2_string(context, text.substr(0, text.find("(reset)")).c_str(), 0, nullptr,
                                                     nullptr, 0, nullptr, nullptr);
  ASSERT_EQ(Z3_get_error_code(context), Z3_OK) << Z3_get_error_msg(context, Z3_get_error_code(context));
  EXPECT_GT(Z3_ast_vector_size(context, read), 300U);
  Z3_del_context(context);
  Z3_del_config(config);
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

// Every mutation is examined by bounded validation at other instances than the proof's own (another seed); what differs
// there must not be derivable from the axioms.
TEST(Axioms, DoNotEntailMutationsThatNumbersRefute) {
  std::size_t refuted = 0, total = 0;
  for (const Substitution& rule : testing::load("true.rules")) {
    for (const testing::Mutation& mutation : testing::some_mutations(rule, registry(), 2, 1)) {
      ++total;
      const BoundedOutcome outcome =
          validate_bounded(registry(), mutation.rule, {.seed = 77, .max_instances = 20, .rare = false});
      if (outcome.kind != BoundedOutcome::Kind::differs) continue;
      ++refuted;
      if (outcome.counterexample->of_types()) continue;  // nothing is said of instances whose types differ
      EXPECT_FALSE(quick_verifier().follows_from_axioms(mutation.rule)) << rule.name << ", " << mutation.what;
    }
  }
  EXPECT_GT(total, 40U);
  EXPECT_GT(refuted, total / 3);
}

}  // namespace
}  // namespace taso
