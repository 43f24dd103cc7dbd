// The rule file that the original TASO ships, where there is one (-DTASO_ORIGINAL_RULES=.../graph_subst.pb).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "rule_io/translate.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

TEST(PublishedRules, AreToldWithoutException) {
  const std::string path = TASO_ORIGINAL_RULES;
  if (path.empty()) GTEST_SKIP() << "SKIP: TASO_ORIGINAL_RULES (a CMake variable) names no graph_subst.pb";
  const OperatorRegistry& registry = test::registry();
  const auto rules = rule_io::load_taso_rules(path, registry);
  ASSERT_TRUE(rules) << rules.error().to_string();
  EXPECT_EQ(rules->size(), 133U);
  std::map<std::string, std::size_t> operators;
  std::size_t outputs = 0;
  for (const rule_io::TranslatedRule& rule : *rules) {
    EXPECT_EQ(rule.problem, "") << rule.rule.name;
    outputs += rule.rule.source.outputs.size();
    for (const Pattern* pattern : {&rule.rule.source, &rule.rule.target})
      for (const PatternNode& node : pattern->nodes) ++operators[node.op];
    const std::string text = to_string(rule.rule, registry);
    const auto again = parse_rules(text, "text", registry);
    ASSERT_TRUE(again) << again.error().to_string() << text;
    EXPECT_EQ(to_string(again->front(), registry), text);
  }
  EXPECT_EQ(outputs, 146U);
  // Equal operators of one side are one node here, and fused activations operators of their own.
  EXPECT_EQ(operators["split"], 10U);
  EXPECT_LE(operators["conv2d"], 106U);
  EXPECT_GE(operators["relu"], 39U);
  const auto text_of = [&](std::size_t i) { return to_string((*rules)[i].rule, registry); };
  EXPECT_EQ(text_of(99),
            "rule taso_099:\n  concat(conv2d(v7, v10; pads=p1), conv2d(v8, v11; pads=p1); axis=-3)\n"
            "    => conv2d(concat(v7, v8; axis=-3), concat(v10, v11; axis=-4); pads=p1)\n");
}

}  // namespace
}  // namespace taso
