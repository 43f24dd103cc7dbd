// Tables of gradients: all shipped entries hold; of tables in tables.cases
//
//   verdict refuted matmul d_a    what the check says of an entry; one line for each, in their order
//   reason TEXT                   a part of the reasons
//   error LINE:COLUMN: MESSAGE    or why the table cannot be read
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/gradients/shipped_gradients.h"
#include "tests/support/cases.h"
#include "verifier/gradients.h"

namespace taso {
namespace {

using test::CaseCount;
using test::CaseValue;
using test::gradient_registry;

const test::CaseKeys& table_keys() {
  static const test::CaseKeys keys = {{"verdict", CaseValue::text, CaseCount::repeated},
                                      {"reason", CaseValue::text, CaseCount::repeated},
                                      {"error", CaseValue::text, CaseCount::optional},
                                      {"table", CaseValue::section, CaseCount::once}};
  return keys;
}

const char* word(GradientVerdict::Kind kind) {
  return kind == GradientVerdict::Kind::holds     ? "holds"
         : kind == GradientVerdict::Kind::refuted ? "refuted"
                                                  : "unknown";
}

/// The derivatives of functions alone.
const GradientTable& derivatives() {
  static const GradientTable loaded =
      test::value_of(GradientTable::load(TASO_SOURCE_DIR "/specs/gradients/functions.grad", gradient_registry()));
  return loaded;
}

class GradientTables : public ::testing::TestWithParam<test::TextCase> {};

TEST_P(GradientTables, SayWhatFollows) {
  const test::TextCase& one = GetParam();
  const bool own = one.text("table").find("derivative") != std::string::npos;
  const auto table =
      GradientTable::parse(one.text("table"), "table", gradient_registry(), own ? nullptr : &derivatives());
  if (one.has("error")) {
    ASSERT_FALSE(table.ok()) << one.place();
    EXPECT_EQ(table.error().to_string(), "table:" + one.text("error"));
    return;
  }
  ASSERT_TRUE(table.ok()) << table.error().to_string();
  std::vector<std::string> verdicts;
  std::string reasons;
  const auto note = [&](const std::vector<GradientVerdict>& found) {
    for (const GradientVerdict& verdict : found) {
      verdicts.push_back(std::string(word(verdict.kind)) + " " + verdict.name);
      reasons += verdict.reason + "\n";
    }
  };
  if (own)
    for (const auto& [name, derivative] : table->derivatives())
      note(check_derivatives(gradient_registry(), derivative));
  for (const auto& [name, gradients] : table->operators()) note(check_gradients(gradient_registry(), *table, name));
  EXPECT_EQ(verdicts, one.all("verdict")) << reasons;
  for (const std::string& reason : one.all("reason")) EXPECT_THAT(reasons, ::testing::HasSubstr(reason));
}

INSTANTIATE_TEST_SUITE_P(Files, GradientTables,
                         ::testing::ValuesIn(test::load_cases("tests/gradients/tables.cases", table_keys())),
                         test::case_name);

TEST(ShippedGradients, Hold) {
  std::size_t entries = 0;
  for (const auto& [name, gradients] : test::gradient_table().operators())
    for (const GradientVerdict& verdict : check_gradients(gradient_registry(), test::gradient_table(), name)) {
      EXPECT_EQ(verdict.kind, GradientVerdict::Kind::holds) << verdict.name << ": " << verdict.reason;
      EXPECT_GE(verdict.instances, 3U) << verdict.name;
      ++entries;
    }
  EXPECT_GE(entries, 60U);
  for (const auto& [name, derivative] : test::gradient_table().derivatives())
    for (const GradientVerdict& verdict : check_derivatives(gradient_registry(), derivative))
      EXPECT_EQ(verdict.kind, GradientVerdict::Kind::holds) << verdict.name << ": " << verdict.reason;
}

}  // namespace
}  // namespace taso
