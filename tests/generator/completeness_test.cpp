// Rules that the project promises to find (completeness.cases) follow from generated ones in few steps.
//
//   derive PROFILE STEPS RULE
//
// : the rules of the profile lead from one side of the rule to the other in at most so many applications. Of the
// profile `default`, the rules are those of specs/rules/default.rules, which scripts/make-rules generates.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "graph/graph_text.h"
#include "tests/generator/generated.h"
#include "tests/support/cases.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using test::registry;

struct Basis {
  std::vector<std::string> texts;
  std::unique_ptr<RuleBasis> rules;
};

const Basis& basis_of(const std::string& profile) {
  static std::map<std::string, Basis> known;
  Basis& basis = known[profile];
  if (basis.rules != nullptr) return basis;
  std::vector<Substitution> rules;
  if (profile == "default")
    rules = load_rules(TASO_SOURCE_DIR "/specs/rules/default.rules", registry()).value();
  else
    rules = generated(profile);
  for (const Substitution& rule : rules) basis.texts.push_back(to_string(rule, registry()));
  basis.rules = std::make_unique<RuleBasis>(registry(), rules);
  return basis;
}

struct Promise {
  std::string place, profile, rule;
  int steps = 0;
};

std::vector<Promise> promises() {
  std::vector<Promise> all;
  for (const test::TextCase& one : test::load_cases("tests/generator/completeness.cases",
                                                    {{"derive", test::CaseValue::words, test::CaseCount::repeated}}))
    for (const test::CaseEntry& entry : one.entries) {
      Promise promise;
      promise.place = one.file + ":" + std::to_string(entry.line);
      std::istringstream words(entry.value);
      words >> promise.profile >> promise.steps;
      EXPECT_TRUE(words) << promise.place << ": expected PROFILE STEPS RULE";
      std::getline(words >> std::ws, promise.rule);
      all.push_back(std::move(promise));
    }
  return all;
}

TEST(Completeness, WhatIsPromisedIsFound) {
  int checks = 0;
  for (const Promise& promise : promises()) {
    SCOPED_TRACE(promise.place + ": " + promise.rule);
    const auto rule = parse_rules("rule r: " + promise.rule + "\n", promise.place, registry());
    ASSERT_TRUE(rule.ok()) << rule.error().to_string();
    // Exchanging two roles may take a step more, which depends on the order in which a normal form puts operands: one
    // of a few instances must do in as many steps as the line says.
    const auto instances = instances_of(rule->front(), false, 8);
    ASSERT_FALSE(instances.empty()) << "no instance at which both sides are equal";
    DerivationLimits limits;
    limits.max_steps = promise.steps;
    limits.max_graphs = 2000;
    limits.extra_ops = 2;
    limits.extra_nodes = 4;
    const Basis& basis = basis_of(promise.profile);
    bool derived = false;
    for (const SourceAndTarget& instance : instances) {
      const auto derivation = basis.rules->derive(instance.source, instance.target, {}, limits);
      if (!derivation) continue;
      derived = true;
      EXPECT_GE(derivation->steps.size(), 1u) << "one graph on both sides: the line shows nothing";
      replay(*derivation, instance.source, instance.target, basis.texts, registry(), false);
      break;
    }
    EXPECT_TRUE(derived) << "not found: " << to_text(instances[0].source) << "to " << to_text(instances[0].target);
    if (!derived) continue;
    ++checks;
  }
  EXPECT_GE(checks, 30);
}

}  // namespace
}  // namespace taso
