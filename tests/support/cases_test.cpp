#include "tests/support/cases.h"

#include <gmock/gmock.h>

namespace taso::test {
namespace {

const CaseKeys& keys() {
  static const CaseKeys all = {
      {"graph", CaseValue::section, CaseCount::once},    {"rule", CaseValue::section, CaseCount::optional},
      {"steps", CaseValue::text, CaseCount::optional},   {"matches", CaseValue::integer, CaseCount::optional},
      {"price", CaseValue::number, CaseCount::repeated}, {"needs", CaseValue::words, CaseCount::optional},
      {"holds", CaseValue::none, CaseCount::optional}};
  return all;
}

TEST(Cases, HaveKeysAndSections) {
  const auto cases = parse_cases(
      "# Comments, anywhere but in a section.\n"
      "\n"
      "case one, two\n"
      "  steps\n"
      "  matches -3\n"
      "  # price 7\n"
      "  price 0.5\n"
      "  price 1e3\n"
      "  graph:\n"
      "    first  \n"
      "\n"
      "      second\n"
      "    # kept\n"
      "\n"
      "  holds  \n"
      "case\n"
      "\n"
      "  graph:\n"
      "\n"
      "    last",
      "f.cases", keys());
  ASSERT_TRUE(cases) << cases.error().to_string();
  ASSERT_EQ(cases->size(), 2U);
  const TextCase &first = (*cases)[0], &second = (*cases)[1];
  EXPECT_EQ(first.name, "one, two");
  EXPECT_EQ(first.place(), "f.cases:3");
  EXPECT_TRUE(first.has("steps") && first.has("holds"));
  EXPECT_FALSE(first.has("needs"));
  EXPECT_EQ(first.text("steps"), "");
  EXPECT_EQ(first.text("needs"), "");
  EXPECT_EQ(first.text("needs", "nothing"), "nothing");
  EXPECT_EQ(first.integer("matches"), -3);
  EXPECT_EQ(second.integer("matches", 4), 4);
  EXPECT_EQ(first.number("price"), 0.5);
  EXPECT_THAT(first.all("price"), ::testing::ElementsAre("0.5", "1e3"));
  EXPECT_EQ(first.text("graph"), "first  \n\n  second\n# kept\n");
  EXPECT_EQ(first.placed("graph"), std::string(9, '\n') + first.text("graph"));
  EXPECT_EQ(second.name, "");
  EXPECT_EQ(second.text("graph"), "last\n");
  EXPECT_EQ(second.placed("graph"), std::string(19, '\n') + "last\n");
  EXPECT_EQ(case_name({first, 0}), "f_one__two");
  EXPECT_EQ(case_name({second, 1}), "f_16");
}

TEST(Cases, AreRefusedWithPlaceAndCause) {
  const std::string head = "case a\n  graph:\n    x\n";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "f: there is no case in this file"},
      {"# case a\n", "f: there is no case in this file"},
      {"cases a\n", "f:1: expected 'case NAME', found 'cases a'"},
      {"\n  steps 1\n", "f:2: a key before the first case"},
      {"case a\n", "f:1: this case has no 'graph'"},
      {"case a\n" + head, "f:1: this case has no 'graph'"},
      {head + head, "f:4: a second case 'a'; the first is in line 1"},
      {head + "  stepz 1\n", "f:4: unknown key 'stepz'; the keys are graph, rule, steps, matches, price, needs, holds"},
      {head + "  Steps 1\n", "f:4: unknown key 'Steps'; the keys are graph, rule, steps, matches, price, needs, holds"},
      {head + "   steps 1\n", "f:4: indented by 3 spaces; a key is indented by two, the text of a section by four"},
      {head + "  steps 1\n    more\n",
       "f:5: indented by 4 spaces; a key is indented by two, the text of a section by four"},
      {head + "\tsteps 1\n", "f:4: a tab; lines are indented by spaces"},
      {head + "  steps 1\n\n  steps 2\n", "f:6: a second 'steps' in one case; the first is in line 4"},
      {head + "  graph:\n    y\n", "f:4: a second 'graph' in one case; the first is in line 2"},
      {head + "  rule:\n\n  steps 1\n", "f:4: section 'rule' is empty"},
      {head + "  rule:\n# no text\n", "f:4: section 'rule' is empty"},
      {head + "  rule x => x\n", "f:4: 'rule' is a section: 'rule:', and below it its lines, indented by four"},
      {head + "  steps:\n    x\n", "f:4: 'steps' is no section: its value stands in the same line"},
      {head + "  matches two\n", "f:4: 'matches' takes an integer, not 'two'"},
      {head + "  matches 2x\n", "f:4: 'matches' takes an integer, not '2x'"},
      {head + "  matches 99999999999999999999\n", "f:4: 'matches' takes an integer, not '99999999999999999999'"},
      {head + "  price\n", "f:4: 'price' takes a number, not ''"},
      {head + "  price inf\n", "f:4: 'price' takes a number, not 'inf'"},
      {head + "  needs\n", "f:4: 'needs' takes a value, not ''"},
      {head + "  holds always\n", "f:4: 'holds' takes nothing, not 'always'"},
  };
  for (const auto& [text, message] : wrong) {
    const auto cases = parse_cases(text, "f", keys());
    ASSERT_FALSE(cases) << text;
    EXPECT_EQ(cases.error().to_string(), message) << text;
  }
}

TEST(CasesDeathTest, AFileThatIsWrongEndsTheProgram) {
  EXPECT_EXIT((void)load_cases("tests/support/absent.cases", keys()), ::testing::ExitedWithCode(1),
              "absent.cases: cannot open");
  EXPECT_EXIT((void)load_cases("tests/support", keys()), ::testing::ExitedWithCode(1),
              "tests/support: there is no file \\*.cases in this folder");
}

TEST(Words, AreSeparatedBySpaces) {
  EXPECT_THAT(words_of("  a  b c "), ::testing::ElementsAre("a", "b", "c"));
  EXPECT_THAT(words_of(" "), ::testing::IsEmpty());
}

}  // namespace
}  // namespace taso::test
