// The derived numeric class of every rule in classes.rules is the one that stands there.

#include "verifier/numeric_class.h"

#include "tests/verifier/fixture.h"

namespace taso {
namespace {

TEST(NumericClass, IsDerived) {
  VerifierOptions options;
  options.axioms = false;
  options.max_instances = 40;
  Verifier verifier(testing::registry(), {}, options);
  for (const Substitution& rule : testing::load("classes.rules")) {
    const Verdict verdict = verifier.verify(rule);
    ASSERT_TRUE(verdict.numeric_class) << rule.name << ": " << verdict.reason;
    ASSERT_TRUE(rule.numeric_class) << rule.name;
    EXPECT_STREQ(to_string(*verdict.numeric_class), to_string(*rule.numeric_class)) << rule.name;
  }
}

}  // namespace
}  // namespace taso
