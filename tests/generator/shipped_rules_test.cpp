// The shipped rules are generated, proved, and what the optimizer relies on is among them.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "graph/pattern.h"
#include "operators/registry.h"
#include "support/file.h"

namespace taso {
namespace {

TEST(ShippedRules, AreGeneratedAndProved) {
  const auto registry = OperatorRegistry::load(TASO_SOURCE_DIR "/specs/operators");
  ASSERT_TRUE(registry.ok()) << registry.error().to_string();
  const std::string path = TASO_SOURCE_DIR "/specs/rules/default.rules";
  const auto text = read_file(path);
  ASSERT_TRUE(text.ok()) << text.error().to_string();
  EXPECT_EQ(text->rfind("# Generated; do not edit.\n# command: taso-gen --profile default --max-ops 3 --verify", 0),
            0u);
  const auto rules = parse_rules(*text, path, *registry);
  ASSERT_TRUE(rules.ok()) << rules.error().to_string();
  std::set<std::string> names;
  std::string again;
  for (const Substitution& rule : *rules) {
    SCOPED_TRACE(rule.name);
    EXPECT_FALSE(rule.proofs.empty());
    EXPECT_TRUE(rule.numeric_class.has_value());
    EXPECT_TRUE(names.insert(rule.name).second) << "two rules of one name";
    again += "\n" + to_string(rule, *registry);
  }
  EXPECT_GE(rules->size(), 40u);
  EXPECT_LE(rules->size(), 320u);
  // What is written is what is read.
  ASSERT_GE(text->size(), again.size());
  EXPECT_EQ(text->substr(text->size() - again.size()), again);
}

// Rules that simplify are used with any other rules: they must be as well proved as those.
TEST(ShippedRules, ThatSimplifyCarryProofs) {
  const auto registry = OperatorRegistry::load(TASO_SOURCE_DIR "/specs/operators");
  ASSERT_TRUE(registry.ok()) << registry.error().to_string();
  const auto rules = load_rules(TASO_SOURCE_DIR "/specs/simplify_rules/default.rules", *registry);
  ASSERT_TRUE(rules.ok()) << rules.error().to_string();
  EXPECT_GE(rules->size(), 4u);
  for (const Substitution& rule : *rules) {
    EXPECT_TRUE(carries_proof(rule, *registry)) << rule.name;
    EXPECT_EQ(rule.numeric_class, NumericClass::exact) << rule.name;
    EXPECT_TRUE(rule.target.nodes.empty()) << rule.name;
  }
}

// Those that recognize end in one operator, but for numbers that it reads, and weights under another shape.
TEST(ShippedRules, ThatRecognizeAndFuseCarryProofs) {
  const auto registry = OperatorRegistry::load(TASO_SOURCE_DIR "/specs/operators");
  ASSERT_TRUE(registry.ok()) << registry.error().to_string();
  for (const std::string name : {"recognition", "fusing", "sharing"}) {
    const auto rules = load_rules(TASO_SOURCE_DIR "/specs/simplify_rules/" + name + ".rules", *registry);
    ASSERT_TRUE(rules.ok()) << rules.error().to_string();
    EXPECT_GE(rules->size(), name == "sharing" ? 9u : 10u);
    for (const Substitution& rule : *rules) {
      EXPECT_TRUE(carries_proof(rule, *registry)) << rule.name;
      if (name != "recognition") continue;
      EXPECT_EQ(std::count_if(rule.target.nodes.begin(), rule.target.nodes.end(),
                              [](const PatternNode& node) { return node.op != "fill" && node.op != "reshape"; }),
                1)
          << rule.name;
    }
  }
}

// Those that spell an operator as a runtime has it end in one operator, but for numbers that move. Others concern
// channels of zeros: they say so by their names.
TEST(ShippedRules, ThatSpellForRuntimesCarryProofs) {
  const auto registry = OperatorRegistry::load(TASO_SOURCE_DIR "/specs/operators");
  ASSERT_TRUE(registry.ok()) << registry.error().to_string();
  std::size_t files = 0, of_channels = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TASO_SOURCE_DIR "/specs/target_rules")) {
    if (entry.path().extension() != ".rules") continue;
    ++files;
    const auto rules = load_rules(entry.path().string(), *registry);
    ASSERT_TRUE(rules.ok()) << rules.error().to_string();
    EXPECT_FALSE(rules->empty());
    for (const Substitution& rule : *rules) {
      EXPECT_TRUE(carries_proof(rule, *registry)) << rule.name;
      if (rule.name.starts_with("pad_") || rule.name.starts_with("cut_")) {
        ++of_channels;
        continue;
      }
      EXPECT_EQ(std::count_if(rule.target.nodes.begin(), rule.target.nodes.end(),
                              [](const PatternNode& node) { return node.op != "fill" && node.op != "div"; }),
                1)
          << rule.name;
    }
  }
  EXPECT_EQ(of_channels, 6U);
  EXPECT_EQ(files, 2U);
}

}  // namespace
}  // namespace taso
