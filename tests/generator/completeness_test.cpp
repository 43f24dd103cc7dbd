// Rules that the project promises to find (tests/generator/completeness.txt) follow from generated ones in few steps.
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "graph/graph_text.h"
#include "support/file.h"
#include "tests/generator/generated.h"

namespace taso {
namespace {

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

TEST(Completeness, WhatIsPromisedIsFound) {
  const std::string file = TASO_SOURCE_DIR "/tests/generator/completeness.txt";
  const auto text = read_file(file);
  ASSERT_TRUE(text.ok()) << text.error().to_string();
  std::istringstream lines(*text);
  int checks = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    SCOPED_TRACE(line);
    std::istringstream words(line);
    std::string profile, steps;
    words >> profile >> steps;
    const auto colon = line.find(": ");
    ASSERT_NE(colon, std::string::npos);
    const auto rule = parse_rules("rule r: " + line.substr(colon + 2) + "\n", file, registry());
    ASSERT_TRUE(rule.ok()) << rule.error().to_string();
    // Exchanging two roles may take a step more, which depends on the order in which a normal form puts operands: one
    // of a few instances must do in as many steps as the line says.
    const auto instances = instances_of(rule->front(), false, 8);
    ASSERT_FALSE(instances.empty()) << "no instance at which both sides are equal";
    DerivationLimits limits;
    limits.max_steps = std::stoi(steps);
    limits.max_graphs = 2000;
    limits.extra_ops = 2;
    limits.extra_nodes = 4;
    const Basis& basis = basis_of(profile);
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
