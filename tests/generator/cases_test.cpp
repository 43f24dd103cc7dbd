// Each *.profile file in tests/generator/cases is generated with 1 and with 2 threads, which must give the same bytes.
// Lines
// "#expect RULE" name rules (source => target [if ...]) that must come out, up to names; "#absent RULE" rules
// that must not; "#count N" the number of rules.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "generator/generator.h"
#include "support/file.h"

namespace taso {
namespace {

const OperatorRegistry& registry() {
  static const auto loaded = OperatorRegistry::load(TASO_SOURCE_DIR "/specs/operators");
  return loaded.value();
}

std::string canonical_text(Substitution rule) {
  rule = canonical(rule, registry());
  rule.name = "r";
  rule.proofs.clear();
  rule.numeric_class.reset();
  return to_string(rule, registry());
}

class Cases : public testing::TestWithParam<std::string> {};

TEST_P(Cases, GivesTheExpectedRules) {
  const std::string path = std::string(TASO_SOURCE_DIR "/tests/generator/cases/") + GetParam() + ".profile";
  const std::string text = read_file(path).value();
  const auto profile = parse_profile(text, GetParam(), registry());
  ASSERT_TRUE(profile.ok()) << profile.error().to_string();

  std::string bytes[2];
  Generation generation;
  for (const unsigned threads : {1u, 2u}) {
    GeneratorOptions options;
    options.threads = threads;
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
  std::istringstream lines(text);
  int checks = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool expect = line.rfind("#expect ", 0) == 0, absent = line.rfind("#absent ", 0) == 0;
    if (line.rfind("#count ", 0) == 0) {
      ++checks;
      EXPECT_EQ(generation.rules.size(), std::stoul(line.substr(7)));
    }
    if (!expect && !absent) continue;
    ++checks;
    const auto rule = parse_rules("rule r: " + line.substr(8) + "\n", GetParam(), registry());
    ASSERT_TRUE(rule.ok()) << rule.error().to_string();
    const bool found = std::find(made.begin(), made.end(), canonical_text(rule->front())) != made.end();
    EXPECT_EQ(found, expect) << line << "\ngenerated:\n" << bytes[0];
  }
  EXPECT_GT(checks, 0);
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(TASO_SOURCE_DIR "/tests/generator/cases"))
    if (entry.path().extension() == ".profile") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Files, Cases, testing::ValuesIn(case_names()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace taso
