#include <gtest/gtest.h>

#include "partition/strategy_document.h"
#include "support/file.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

const std::string source_dir = TASO_SOURCE_DIR;

TEST(StrategyDocument, IsThatOfTheSpecifications) {
  const Expected<std::string> shipped = read_file(source_dir + "/docs/strategies.md");
  ASSERT_TRUE(shipped.ok()) << shipped.error().to_string();
  const auto proved = ProvedStrategies::load({source_dir + "/specs/strategies/default.rules"}, test::registry());
  ASSERT_TRUE(proved.ok()) << proved.error().to_string();
  // Not EXPECT_EQ: the difference would be printed in full.
  EXPECT_TRUE(*shipped == document_strategies(test::registry(), *proved))
      << "specifications have changed: run scripts/make-strategies";
}

}  // namespace
}  // namespace taso
