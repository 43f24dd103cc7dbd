// Each profile of tests/generator/cases is generated with 1 and with 2 threads, which must give the same bytes. The
// cases of rules.cases there have the profiles' names:
//
//   expect RULE    a rule (source => target [if ...]) that must come out, up to names
//   absent RULE    one that must not
//   count N        the number of rules
#include "tests/support/cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "generator/generator.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using test::registry;

std::string canonical_text(Substitution rule) {
  rule = canonical(rule, registry());
  rule.name = "r";
  rule.proofs.clear();
  rule.numeric_class.reset();
  return to_string(rule, registry());
}

class Cases : public ::testing::TestWithParam<test::TextCase> {};

TEST_P(Cases, GivesTheExpectedRules) {
  const test::TextCase& test = GetParam();
  const auto profile =
      load_profile(std::string(TASO_SOURCE_DIR "/tests/generator/cases/") + test.name + ".profile", registry());
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();

  std::string bytes[2];
  Generation generation;
  for (const unsigned threads : {1u, 2u}) {
    GeneratorOptions options;
    options.threads = threads;
    options.max_ops = 4;  // the groups say how many
    auto result = generate(*profile, registry(), options);
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    generation = std::move(result).value();
    bytes[threads - 1] = rule_file(generation, *profile, options, "command", registry());
  }
  EXPECT_EQ(bytes[0], bytes[1]);
  const auto parsed = parse_rules(bytes[0], "generated", registry());
  ASSERT_TRUE(parsed.ok()) << parsed.error().to_string();
  EXPECT_EQ(parsed->size(), generation.rules.size());

  std::vector<std::string> made;
  for (const GeneralRule& rule : generation.rules) made.push_back(canonical_text(rule.rule));
  ASSERT_FALSE(test.entries.empty()) << test.place() << ": nothing is expected";
  EXPECT_EQ(generation.rules.size(),
            static_cast<std::size_t>(test.integer("count", static_cast<std::int64_t>(made.size()))));
  for (const test::CaseEntry& entry : test.entries) {
    if (entry.key == "count") continue;
    const auto rule = parse_rules("rule r: " + entry.value + "\n", test.file, registry());
    ASSERT_TRUE(rule.ok()) << rule.error().to_string();
    const bool found = std::find(made.begin(), made.end(), canonical_text(rule->front())) != made.end();
    EXPECT_EQ(found, entry.key == "expect") << test.file << ":" << entry.line << ": " << entry.value << "\ngenerated:\n"
                                            << bytes[0];
  }
}

TEST(Generator, ProvesWhatItKeepsAndSaysHow) {
  const auto profile = load_profile(TASO_SOURCE_DIR "/tests/generator/cases/matmul_siblings.profile", registry());
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  const auto axioms = load_axioms(TASO_SOURCE_DIR "/specs/axioms", registry());
  ASSERT_TRUE(axioms.ok()) << axioms.error().to_string();
  std::string bytes[2];
  for (const unsigned threads : {1u, 2u}) {
    GeneratorOptions options;
    options.threads = threads;
    options.verify = true;
    options.axioms = *axioms;
    const auto result = generate(*profile, registry(), options);
    ASSERT_TRUE(result.ok()) << result.error().to_string();
    ASSERT_EQ(result->rules.size(), 1u);
    EXPECT_FALSE(result->rules[0].rule.proofs.empty());
    EXPECT_TRUE(result->rules[0].rule.numeric_class.has_value());
    EXPECT_EQ(result->groups[0].kept, 1u);
    bytes[threads - 1] = rule_file(*result, *profile, options, "command", registry());
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

// What is found by the order of numbers is proved from what functions are declared to be.
TEST(Generator, ProvesWhatHoldsOfTheRealReluOnly) {
  const auto profile = load_profile(TASO_SOURCE_DIR "/tests/generator/cases/ordered.profile", registry());
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  const auto axioms = load_axioms(TASO_SOURCE_DIR "/specs/axioms", registry());
  ASSERT_TRUE(axioms.ok()) << axioms.error().to_string();
  GeneratorOptions options;
  options.verify = true;
  options.axioms = *axioms;
  const auto result = generate(*profile, registry(), options);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  std::vector<std::string> made;
  for (const GeneralRule& rule : result->rules) {
    EXPECT_FALSE(rule.rule.proofs.empty());
    // Up to the limits of ranks that the proof has examined.
    Substitution plain = rule.rule;
    plain.conditions.clear();
    made.push_back(canonical_text(plain));
  }
  for (const char* const text :
       {"relu(relu(x)) => relu(x)",
        "max_pool2d(relu(x); kernel=k, strides=s, pads=p, dilations=d) => relu(max_pool2d(x; kernel=k, strides=s, "
        "pads=p, dilations=d))",
        "reduce_max(tanh(x); axes=a) => tanh(reduce_max(x; axes=a))"}) {
    const auto rule = parse_rules(std::string("rule r: ") + text + "\n", "text", registry());
    ASSERT_TRUE(rule.ok()) << rule.error().to_string();
    EXPECT_NE(std::find(made.begin(), made.end(), canonical_text(rule->front())), made.end()) << text;
  }
}

TEST(Generator, StatisticsDoNotGrowFromStageToStage) {
  const auto profile = load_profile(TASO_SOURCE_DIR "/tests/generator/cases/elementwise.profile", registry());
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();
  GeneratorOptions options;
  const auto result = generate(*profile, registry(), options);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  const GroupStatistics& group = result->groups.at(0);
  EXPECT_GE(group.candidates.initial, group.candidates.after_renaming);
  EXPECT_GT(group.candidates.after_renaming, group.candidates.after_subgraph);
  EXPECT_GE(group.candidates.after_subgraph, group.distinct);
  EXPECT_EQ(group.distinct, group.derived + group.not_general + group.refuted + group.unknown + group.kept);
  EXPECT_LT(group.error_bound, 1e-20);
  const std::string json = statistics_json(*result, *profile, options);
  EXPECT_NE(json.find("\"rules\": " + std::to_string(result->rules.size())), std::string::npos);
}

std::vector<test::TextCase> rule_cases() {
  using test::CaseCount;
  using test::CaseValue;
  return test::load_cases("tests/generator/cases", {{"expect", CaseValue::words, CaseCount::repeated},
                                                    {"absent", CaseValue::words, CaseCount::repeated},
                                                    {"count", CaseValue::integer, CaseCount::optional}});
}

INSTANTIATE_TEST_SUITE_P(Files, Cases, ::testing::ValuesIn(rule_cases()),
                         [](const auto& each) { return each.param.name; });

TEST(Cases, EveryProfileHasOne) {
  std::set<std::string> profiles, cases;
  for (const auto& entry : std::filesystem::directory_iterator(TASO_SOURCE_DIR "/tests/generator/cases"))
    if (entry.path().extension() == ".profile") profiles.insert(entry.path().stem().string());
  for (const test::TextCase& one : rule_cases()) cases.insert(one.name);
  EXPECT_EQ(profiles, cases);
}

}  // namespace
}  // namespace taso
