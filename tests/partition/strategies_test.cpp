// What is derived from definitions, compared with text cases:
//
//   case OPERATOR
//     cut VARIABLE: concat AXIS | REDUCER; INPUT AXIS [FIRST_END SECOND_BEGIN], ...
//     none VARIABLE: REASON
//
// Every shipped operator has a case; what several ranks give is said once for each.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "partition/proved_strategies.h"
#include "tests/support/cases.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

const test::CaseKeys keys = {{"specs", test::CaseValue::text},
                             {"ranks", test::CaseValue::none},
                             {"cut", test::CaseValue::text, test::CaseCount::repeated},
                             {"none", test::CaseValue::text, test::CaseCount::repeated},
                             {"pass", test::CaseValue::text, test::CaseCount::repeated}};

std::string text_of(const AttributeExpression& e, const Substitution& rule) {
  const std::string both = to_string(Condition{Condition::Relation::less, e, e}, rule);
  return both.substr(0, both.size() / 2 - 1);
}

// "t: sum; a -1, b -2".
std::string summary(const PartitionStrategy& strategy) {
  std::string text = strategy.variable + ": " +
                     (strategy.concatenates() ? "concat " + text_of(strategy.axis, strategy.rule) : strategy.reducer);
  std::string separator = "; ";
  for (const InputCut& input : strategy.inputs) {
    text += separator + strategy.rule.tensor_variables[input.input] + " " + text_of(input.axis, strategy.rule);
    const std::string end = text_of(input.first_end, strategy.rule), begin = text_of(input.second_begin, strategy.rule);
    if (end != "m" || begin != "m") text += " [" + end + " | " + begin + "]";
    separator = ", ";
  }
  const std::string behind = text_of(strategy.behind_first, strategy.rule);
  const std::string before = text_of(strategy.before_second, strategy.rule);
  if (behind != "0" || before != "0") text += "; besides " + behind + " | " + before;
  for (const LocalAttribute& attribute : strategy.attributes)
    text += "; " + attribute.name + "=" + text_of(attribute.first, strategy.rule) + " | " +
            text_of(attribute.second, strategy.rule);
  return text;
}

std::string summary(const PartialPassage& passage, const OperatorDefinition& definition) {
  std::string text = passage.reducer + " of";
  for (const std::size_t input : passage.inputs) text += " " + definition.inputs[input].name;
  return text;
}

// The folder of a case's operators, on top of the shipped ones.
OperatorRegistry registry_of(const test::TextCase& one) {
  if (!one.has("specs")) return test::registry();
  return test::value_of(
      OperatorRegistry::load(std::string(TASO_SOURCE_DIR) + "/" + one.text("specs"), &test::registry()));
}

class Strategies : public ::testing::TestWithParam<test::TextCase> {};

TEST_P(Strategies, AreThoseOfTheDefinition) {
  const test::TextCase& one = GetParam();
  const OperatorRegistry registry = registry_of(one);
  ASSERT_NE(registry.find(one.name), nullptr) << one.place();
  const OperatorStrategies derived = derive_strategies(registry, one.name);
  std::vector<std::string> cuts, none, passes;
  for (const PartitionStrategy& strategy : derived.strategies) cuts.push_back(summary(strategy));
  for (const UncutVariable& variable : derived.uncut) none.push_back(variable.variable + ": " + variable.reason);
  for (const PartialPassage& passage : derive_passages(registry, one.name))
    passes.push_back(summary(passage, *registry.find(one.name)));
  // Of an operator whose ranks are numbers some are named.
  if (one.has("ranks"))
    EXPECT_THAT(cuts, ::testing::IsSupersetOf(one.all("cut"))) << one.place();
  else
    EXPECT_THAT(cuts, ::testing::ElementsAreArray(one.all("cut"))) << one.place();
  EXPECT_THAT(none, ::testing::ElementsAreArray(one.all("none"))) << one.place();
  EXPECT_THAT(passes, ::testing::ElementsAreArray(one.all("pass"))) << one.place();
}

std::vector<test::TextCase> all_cases() { return test::load_cases("tests/partition/strategies", keys); }

INSTANTIATE_TEST_SUITE_P(Cases, Strategies, ::testing::ValuesIn(all_cases()), test::case_name);

TEST(StrategyCases, SpeakOfEveryShippedOperator) {
  std::set<std::string> named;
  for (const test::TextCase& one : all_cases())
    if (!one.has("specs")) named.insert(one.name);
  for (const std::string& op : test::registry().names())
    if (test::registry().find(op)->over_reals) {
      EXPECT_TRUE(named.contains(op)) << op << " has no case";
    }
}

TEST(StrategyCases, ThereAreNoneOfIntegersAndTruthValues) {
  int count = 0;
  for (const std::string& op : test::registry().names()) {
    if (test::registry().find(op)->over_reals) continue;
    ++count;
    const OperatorStrategies derived = derive_strategies(test::registry(), op);
    EXPECT_TRUE(derived.strategies.empty()) << op;
    ASSERT_EQ(derived.uncut.size(), 1U) << op;
    EXPECT_EQ(derived.uncut[0].reason, "it computes with integers or truth values, and proofs are of reals") << op;
    EXPECT_TRUE(derive_passages(test::registry(), op).empty()) << op;
  }
  EXPECT_GE(count, 35);
}

// The rules are of the language: they parse as themselves, with variables of the same numbers.
void parses_as_itself(const Substitution& rule) {
  const std::string text = to_string(rule, test::registry());
  const auto again = parse_rules(text, "strategy", test::registry());
  ASSERT_TRUE(again.ok()) << again.error().to_string() << "\n" << text;
  EXPECT_EQ(to_string((*again)[0], test::registry()), text);
  EXPECT_EQ((*again)[0].tensor_variables, rule.tensor_variables) << text;
  EXPECT_EQ((*again)[0].attribute_variables, rule.attribute_variables) << text;
  EXPECT_TRUE((*again)[0].conditions == rule.conditions) << text;
}

TEST(StrategyRules, ParseAsThemselves) {
  for (const std::string& op : test::registry().names()) {
    for (const PartitionStrategy& strategy : derive_strategies(test::registry(), op).strategies)
      parses_as_itself(strategy.rule);
    for (const PartialPassage& passage : derive_passages(test::registry(), op)) parses_as_itself(passage.rule);
  }
}

// What is shipped as proved is what definitions give now: nothing else has a proof, and nothing lacks one.
TEST(ShippedStrategies, AreAllProved) {
  const auto proved =
      ProvedStrategies::load({std::string(TASO_SOURCE_DIR) + "/specs/strategies/default.rules"}, test::registry());
  ASSERT_TRUE(proved.ok()) << proved.error().to_string();
  std::size_t count = 0;
  for (const std::string& op : test::registry().names()) {
    const std::size_t derived = derive_strategies(test::registry(), op).strategies.size();
    EXPECT_EQ(proved->of(op).size(), derived) << op << ": run scripts/make-strategies";
    EXPECT_EQ(proved->passages_of(op).size(), derive_passages(test::registry(), op).size()) << op;
    count += derived;
  }
  EXPECT_GT(count, 200u);
}

TEST(ShippedStrategies, OfOperatorsOfGradientsAreAllProved) {
  const std::string folder = std::string(TASO_SOURCE_DIR) + "/specs/gradients";
  const OperatorRegistry registry = test::value_of(OperatorRegistry::load(folder + "/operators", &test::registry()));
  const ProvedStrategies proved =
      test::value_of(ProvedStrategies::load({folder + "/strategies/default.rules"}, registry));
  for (const std::string& op : registry.names()) {
    if (test::registry().find(op) != nullptr) continue;
    const std::size_t derived = derive_strategies(registry, op).strategies.size();
    EXPECT_GT(derived, 0U) << op;
    EXPECT_EQ(proved.of(op).size(), derived) << op << ": run scripts/make-strategies";
    EXPECT_EQ(proved.passages_of(op).size(), derive_passages(registry, op).size()) << op;
  }
}

// A mark of proof that is not sealed for what the rule says is none.
TEST(ShippedStrategies, WithoutAValidMarkAreNotUsed) {
  const OperatorRegistry& registry = test::registry();
  Substitution rule = derive_strategies(registry, "relu").strategies.at(0).rule;
  rule.proofs = {"unbounded"};
  seal_proofs(rule, registry);
  const std::string sealed = to_string(rule, registry);
  const auto of = [&](const std::string& text) {
    const std::string file = ::testing::TempDir() + "strategies_test.rules";
    std::FILE* out = std::fopen(file.c_str(), "w");
    std::fputs(text.c_str(), out);
    std::fclose(out);
    return test::value_of(ProvedStrategies::load({file}, registry)).of("relu").size();
  };
  EXPECT_EQ(of(sealed), 1u);
  std::string changed = sealed;
  changed.replace(changed.find("0 < m"), 5, "1 < m");
  EXPECT_EQ(of(changed), 0u);
  EXPECT_EQ(of(sealed.substr(0, sealed.find("  proof"))), 0u);
}

TEST(CombiningOperators, AreFoundByTheirDefinitions) {
  const OperatorRegistry& registry = test::registry();
  EXPECT_EQ(combining_operator(registry, "sum"), "add");
  EXPECT_EQ(combining_operator(registry, "prod"), "mul");
  EXPECT_EQ(combining_operator(registry, "max"), "maximum");
  EXPECT_EQ(combining_operator(registry, "min"), "");
}

}  // namespace
}  // namespace taso
