// That the points at which a rule is sampled do not depend on names: neither its own nor those of its variables.

#include "tests/verifier/fixture.h"
#include "verifier/bounded.h"
#include "verifier/instances.h"

namespace taso {
namespace {

using testing::parse;
using testing::registry;

// The rule under another name, its variables under others, too.
Substitution renamed(Substitution rule) {
  rule.name = "another_name_of_" + rule.name;
  for (std::string& name : rule.tensor_variables) name = "other_" + name;
  for (std::string& name : rule.attribute_variables) name = "other_" + name;
  return rule;
}

TEST(Instances, DoNotDependOnNames) {
  auto loaded = load_rules(testing::source_dir + "/tests/data/verify/false.rules", registry());
  ASSERT_TRUE(loaded) << loaded.error().to_string();
  std::vector<Substitution> rules = std::move(loaded).value();
  // True, and found by sampling; the names of attributes are in its text, too.
  rules.push_back(parse("rule r: conv2d(relu(x), k; strides=s, pads=p) => conv2d(relu(x), k; strides=s, pads=p)")[0]);
  for (std::size_t i = (rules.size() - 1) % 3; i < rules.size(); i += 3) {  // a third, the last among them
    const Substitution& rule = rules[i];
    LoweredCache cache(registry());
    const BoundedOutcome a = validate_bounded(registry(), rule, {}, cache);
    const BoundedOutcome b = validate_bounded(registry(), renamed(rule), {}, cache);
    EXPECT_EQ(a.kind, b.kind) << rule.name;
    EXPECT_EQ(a.instances, b.instances) << rule.name;
    ASSERT_EQ(a.counterexample.has_value(), b.counterexample.has_value()) << rule.name;
    if (a.counterexample) {
      EXPECT_EQ(a.counterexample->variables, b.counterexample->variables) << rule.name;
      EXPECT_EQ(a.counterexample->attributes, b.counterexample->attributes) << rule.name;
      EXPECT_EQ(a.counterexample->elements, b.counterexample->elements) << rule.name;
    }
    if (!a.counterexample && &rule != &rules.back()) continue;
    const InstanceSet x = find_instances(registry(), rule, {}, cache),
                      y = find_instances(registry(), renamed(rule), {}, cache);
    ASSERT_EQ(x.instances.size(), y.instances.size()) << rule.name;
    for (std::size_t i = 0; i < x.instances.size(); ++i) {
      EXPECT_EQ(x.instances[i].instance.variables, y.instances[i].instance.variables) << rule.name;
      EXPECT_EQ(x.instances[i].instance.attributes, y.instances[i].instance.attributes) << rule.name;
    }
  }
}

}  // namespace
}  // namespace taso
