// The rules that the original TASO publishes follow from what taso-gen finds in the profile sosp19: for every rule that
// is sound, at an instance of it, a derivation by generated rules, replayed step by step.
//
// tests/data/rules/taso.rules holds the published rules as taso-verify --translate writes them. Where a rule holds
// under a condition only (one group, as many outputs in each), the instance is one at which it holds.
#include <gtest/gtest.h>

#include "tests/generator/generated.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using test::registry;

TEST(PublishedRules, AreDerivedFromGeneratedOnes) {
  const std::vector<Substitution>& rules = generated("sosp19");
  std::vector<std::string> texts;
  for (const Substitution& rule : rules) texts.push_back(to_string(rule, registry()));
  const RuleBasis basis(registry(), rules);

  const auto published = load_rules(TASO_SOURCE_DIR "/tests/data/rules/taso.rules", registry());
  ASSERT_TRUE(published.ok()) << published.error().to_string();
  EXPECT_EQ(published->size(), 133u);
  std::size_t steps = 0;
  for (const Substitution& rule : *published) {
    SCOPED_TRACE(to_string(rule, registry()));
    const auto instance = instance_of(rule, true);  // the original's generator has no groups
    EXPECT_TRUE(instance.has_value()) << "no instance at which it holds";
    if (!instance) continue;
    DerivationLimits limits;
    limits.max_steps = 8;
    limits.max_graphs = 3000;
    limits.extra_ops = 1;
    limits.extra_nodes = 3;
    const auto derivation = basis.derive(instance->source, instance->target, {}, limits);
    EXPECT_TRUE(derivation.has_value()) << "not derived";
    if (!derivation) continue;
    replay(*derivation, instance->source, instance->target, texts, registry(), false);
    steps += derivation->steps.size();
  }
  EXPECT_GT(steps, 150u);
}

}  // namespace
}  // namespace taso
