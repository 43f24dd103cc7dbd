// The provers judged from outside: random evaluation, statements changed in one place, statements without one of their
// conditions, counterexamples made smaller. check_rules does the same at any length.

#include <algorithm>
#include <map>
#include <set>

#include "tests/verifier/draws.h"
#include "tests/verifier/fixture.h"
#include "tests/verifier/mutations.h"
#include "verifier/bounded.h"

namespace taso {
namespace {

using testing::axioms;
using testing::Draw;
using testing::parse;
using testing::registry;

std::vector<Substitution> shipped_rules() {
  auto rules = load_rules(testing::source_dir + "/specs/rules/default.rules", registry());
  EXPECT_TRUE(rules.ok());
  return rules ? *rules : std::vector<Substitution>{};
}

// The statements that the project calls proved.
std::vector<Substitution> proved_statements() {
  std::vector<Substitution> result = axioms();
  for (Substitution& rule : shipped_rules()) result.push_back(std::move(rule));
  for (const char* file : {"true.rules", "published.rules"})
    for (Substitution& rule : testing::load(file))
      if (rule.expect == "proved") result.push_back(std::move(rule));
  return result;
}

Verifier make_verifier(const std::vector<Substitution>& theory) {
  VerifierOptions options;
  options.max_instances = 60;
  options.rlimit = 200'000;
  return {registry(), theory, options};
}

// --- draws

TEST(Draws, NoProvedStatementFails) {
  std::size_t grouped = 0, broadcast = 0, statements = 0;
  std::vector<std::string> not_evaluated;
  for (const Substitution& rule : proved_statements()) {
    const testing::DrawCounts counts = testing::draw_rule(registry(), rule, 12, 7);
    EXPECT_EQ(counts.difference, "") << to_string(rule, registry());
    if (counts.draws <= counts.undefined) not_evaluated.push_back(rule.name);
    grouped += counts.grouped > 0 ? 1U : 0U;
    broadcast += counts.broadcast > 0 ? 1U : 0U;
    ++statements;
  }
  EXPECT_GT(statements, 400U);
  // Types so narrow that chance rarely meets them: few, or the draws are at fault.
  EXPECT_THAT(not_evaluated, ::testing::SizeIs(::testing::Le(statements / 50)));
  EXPECT_GT(grouped, 30U);
  EXPECT_GT(broadcast, 60U);
}

// The judge has eyes: it sees most falsehoods by itself.
TEST(Draws, FailWhereStatementsAreFalse) {
  std::size_t found = 0, total = 0;
  for (const Substitution& rule : testing::load("false.rules")) {
    ++total;
    found += testing::draw_rule(registry(), rule, 150, 7).difference.empty() ? 0U : 1U;
  }
  EXPECT_GT(found, total * 3 / 4) << "of " << total;
  EXPECT_EQ(testing::draw_rule(registry(), parse("rule r: sub(x, y) => sub(y, x)")[0], 20, 7).draws, 1U);
}

TEST(Draws, AreTheSameForTheSameSeed) {
  const Substitution rule = testing::load("true.rules")[3];
  testing::RuleDraws a(registry(), rule, 5), b(registry(), rule, 5), c(registry(), rule, 6);
  bool other = false;
  for (int i = 0; i < 5; ++i) {
    const auto x = a.next(), y = b.next(), z = c.next();
    ASSERT_TRUE(x && y && z);
    EXPECT_EQ(testing::text_of(rule, *x), testing::text_of(rule, *y));
    other = other || testing::text_of(rule, *x) != testing::text_of(rule, *z);
  }
  EXPECT_TRUE(other);
}

// --- mutations

TEST(Mutations, AreOfAllKindsAndDeterministic) {
  std::map<testing::MutationKind, std::size_t> kinds;
  for (const Substitution& rule : testing::load("true.rules")) {
    std::set<std::string> texts;
    for (const testing::Mutation& mutation : testing::mutations(rule, registry())) {
      ++kinds[mutation.kind];
      Substitution plain = mutation.rule;
      plain.name = "plain";
      EXPECT_TRUE(texts.insert(to_string(canonical(plain, registry()), registry())).second) << mutation.what;
    }
    const auto some = testing::some_mutations(rule, registry(), 6, 3);
    const auto same = testing::some_mutations(rule, registry(), 6, 3);
    ASSERT_EQ(some.size(), same.size());
    for (std::size_t i = 0; i < some.size(); ++i) EXPECT_EQ(some[i].what, same[i].what);
  }
  EXPECT_EQ(kinds.size(), testing::mutation_kinds);
  for (const auto& [kind, count] : kinds) EXPECT_GT(count, 4U) << to_string(kind);
}

// What is still proved after a change holds at draws, and most is not proved.
TEST(Mutations, WhatIsStillProvedHolds) {
  Verifier verifier = make_verifier(axioms());
  std::size_t total = 0, refuted = 0, proved = 0;
  const std::vector<Substitution> statements = proved_statements();
  for (std::size_t i = 0; i < statements.size(); i += 8)
    for (const testing::Mutation& mutation : testing::some_mutations(statements[i], registry(), 1, 3)) {
      ++total;
      const Verdict verdict = verifier.verify(mutation.rule);
      refuted += verdict.kind == VerdictKind::refuted ? 1U : 0U;
      if (verdict.kind != VerdictKind::proved) continue;
      ++proved;
      EXPECT_EQ(testing::draw_rule(registry(), mutation.rule, 40, 3).difference, "")
          << mutation.what << "\n"
          << to_string(mutation.rule, registry());
    }
  EXPECT_GT(total, 50U);
  EXPECT_GT(refuted, total / 3);
  EXPECT_GT(proved, 0U);
  EXPECT_LT(proved, total / 2);
}

// --- conditions

// Every condition of a proved statement is needed: the statement without it stands in neighbours.rules, where its
// verdict is tested, or is refuted (half of them are tried here), or is proved with that very condition added (limits
// of ranks). One that follows from the typing rules stands there as proved.
TEST(Conditions, HaveRefutedNeighbours) {
  const auto text_of = [](Substitution rule) {
    rule.name = "neighbour";
    rule.is_axiom = false;
    rule.expect.reset();
    rule.proofs.clear();
    rule.numeric_class.reset();
    return to_string(canonical(rule), registry());
  };
  std::set<std::string> neighbours;
  for (const char* file : {"neighbours.rules", "false.rules", "published.rules"})
    for (const Substitution& rule : testing::load(file)) neighbours.insert(text_of(rule));
  Verifier verifier = make_verifier({});
  std::size_t clauses = 0, listed = 0, unlisted = 0;
  for (const Substitution& rule : proved_statements())
    for (std::size_t c = 0; c < rule.conditions.size(); ++c) {
      Substitution without = rule;
      without.conditions.erase(without.conditions.begin() + static_cast<std::ptrdiff_t>(c));
      if (neighbours.count(text_of(without)) > 0) {
        ++clauses;
        ++listed;
        continue;
      }
      if (unlisted++ % 2 != 0) continue;  // Every second one: all take a minute.
      const Verdict verdict = verifier.verify(without);
      const Condition& taken = rule.conditions[c];
      // How far ranks are examined depends on the other limits.
      if (std::any_of(verdict.added.begin(), verdict.added.end(), [&](const Condition& added) {
            return added.relation == taken.relation && added.left == taken.left;
          }))
        continue;
      ++clauses;
      EXPECT_EQ(verdict.kind, VerdictKind::refuted)
          << "condition " << c + 1 << " may be superfluous; see `check_rules neighbours`:\n"
          << to_string(rule, registry());
    }
  EXPECT_GT(clauses, 100U);
  EXPECT_GT(listed, clauses / 2);
}

// --- counterexamples

// All shapes whose extents are nowhere larger, or those with one extent less if there are many.
std::vector<std::vector<TensorType>> smaller_shapes(const std::vector<TensorType>& variables) {
  std::vector<std::vector<TensorType>> result;
  std::size_t count = 1;
  for (const TensorType& type : variables)
    for (const std::int64_t extent : type.shape)
      count = std::min<std::size_t>(100'000, count * static_cast<std::size_t>(extent));
  if (count > 1024) {
    for (std::size_t v = 0; v < variables.size(); ++v)
      for (std::size_t axis = 0; axis < variables[v].shape.size(); ++axis) {
        if (variables[v].shape[axis] < 2) continue;
        result.push_back(variables);
        --result.back()[v].shape[axis];
      }
    return result;
  }
  for (std::size_t n = 0; n + 1 < count; ++n) {
    result.push_back(variables);
    std::size_t rest = n;
    for (TensorType& type : result.back())
      for (std::int64_t& extent : type.shape) {
        const auto choices = static_cast<std::size_t>(extent);
        extent = static_cast<std::int64_t>(rest % choices) + 1;
        rest /= choices;
      }
  }
  return result;
}

std::vector<std::optional<AttributeValue>> nearer_values(const AttributeValue& value) {
  std::vector<std::optional<AttributeValue>> result;
  const auto step = [](std::int64_t number) { return number > 0 ? number - 1 : number + 1; };
  if (const auto* number = std::get_if<std::int64_t>(&value); number != nullptr && *number != 0)
    result.emplace_back(step(*number));
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value))
    for (std::size_t i = 0; i < list->size(); ++i)
      if ((*list)[i] != 0) {
        std::vector<std::int64_t> changed = *list;
        changed[i] = step(changed[i]);
        result.emplace_back(changed);
      }
  return result;
}

bool fails(const Substitution& rule, const Draw& draw) {
  const auto graphs = testing::legal_graphs(registry(), rule, draw);
  return graphs && testing::evaluate_at(registry(), *graphs, draw, 11) == testing::Agreement::different;
}

TEST(Counterexamples, ReplayAndCannotBeMadeSmaller) {
  std::size_t examined = 0;
  for (const char* file : {"false.rules", "published.rules"})
    for (const Substitution& rule : testing::load(file)) {
      if (rule.expect != "refuted") continue;
      SCOPED_TRACE(rule.name);
      const BoundedOutcome outcome = validate_bounded(registry(), rule, {.rare = false});
      EXPECT_TRUE(outcome.counterexample) << "not refuted";
      if (!outcome.counterexample) continue;
      const Counterexample& example = *outcome.counterexample;
      if (example.elements.empty()) continue;  // the types differ
      ++examined;
      const Draw draw{example.variables, example.attributes};
      const auto graphs = testing::legal_graphs(registry(), rule, draw);
      ASSERT_TRUE(graphs) << example.text;
      std::vector<RingTensor<double>> inputs;
      for (std::size_t v = 0; v < draw.variables.size(); ++v)
        inputs.push_back({draw.variables[v].shape, example.elements[v], example.integers[v]});
      const auto differ = [&] {
        return testing::differs_in_numbers(graphs->source, graphs->target, registry(), inputs);
      };
      EXPECT_TRUE(differ()) << example.text;
      for (RingTensor<double>& tensor : inputs)
        for (double& value : tensor.elements)
          for (const double simpler : {0.0, 1.0}) {
            if (value == simpler) break;
            const double old = std::exchange(value, simpler);
            EXPECT_FALSE(differ()) << "an element may be " << simpler << "\n" << example.text;
            value = old;
          }
      for (const std::vector<TensorType>& shapes : smaller_shapes(draw.variables))
        EXPECT_FALSE(fails(rule, {shapes, draw.attributes}))
            << testing::text_of(rule, {shapes, draw.attributes}) << "\n"
            << example.text;
      for (std::size_t a = 0; a < draw.attributes.size(); ++a)
        if (draw.attributes[a])
          for (const auto& value : nearer_values(*draw.attributes[a])) {
            Draw nearer = draw;
            nearer.attributes[a] = value;
            EXPECT_FALSE(fails(rule, nearer)) << testing::text_of(rule, nearer) << "\n" << example.text;
          }
    }
  EXPECT_GT(examined, 80U);
}

}  // namespace
}  // namespace taso
