#include "generator/bank.h"

#include <gtest/gtest.h>

#include "generator/profile.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using test::registry;

Profile parse(const std::string& text) {
  auto profile = parse_profile(text, "file", registry());
  EXPECT_TRUE(profile.ok()) << profile.error().to_string();
  return std::move(profile).value();
}

const char* const sums = R"(
profile p
group g
  max_ops 3
  max_weight_ops 0
  extent a: 2, 3
  activation x [a]
  activation y [a]
  apply add(activation, activation)
)";

TEST(Bank, CountsSumsOfTwoVariables) {
  // i*x + j*y is one value for each (i, j). No operator reads one value twice: with one addition there is x+y; with
  // two, that plus x and plus y; with three, 2x+y plus x, y, x+y and x+2y plus x, y, x+y, of which 2x+2y comes twice,
  // and 2x+y plus x+2y, which needs both and so has four.
  const Profile profile = parse(sums);
  BankOptions options;
  options.max_ops = 3;
  Bank bank(profile.groups[0], registry(), options);
  ASSERT_TRUE(bank.run().ok());
  EXPECT_EQ(bank.levels()[0].classes, 2u);
  EXPECT_EQ(bank.levels()[1].classes, 1u);
  EXPECT_EQ(bank.levels()[1].hits, 0u);
  EXPECT_EQ(bank.levels()[2].terms, 2u);
  EXPECT_EQ(bank.levels()[2].classes, 2u);
  EXPECT_EQ(bank.levels()[3].terms, 6u);
  EXPECT_EQ(bank.levels()[3].hits, 1u);     // (2x+y)+y = (x+2y)+x
  EXPECT_EQ(bank.levels()[3].classes, 5u);  // 3x+y, 2x+2y, 3x+2y, x+3y, 2x+3y
}

TEST(Bank, SizeCountsSharedOperatorsOnce) {
  // (x+y)+(x+y) has two operators, not three.
  const Profile profile = parse(sums);
  BankOptions options;
  options.max_ops = 3;
  Bank bank(profile.groups[0], registry(), options);
  ASSERT_TRUE(bank.run().ok());
  for (ClassId id = 0; id < bank.classes().size(); ++id)
    EXPECT_EQ(bank.terms_of(id).size(),
              static_cast<std::size_t>(bank.classes()[id].ops + bank.classes()[id].weight_ops));
}

TEST(Bank, ThreadsDoNotChangeTheOrder) {
  const Profile profile = parse(sums);
  std::vector<std::vector<std::uint32_t>> seen;
  for (const unsigned threads : {1u, 3u}) {
    BankOptions options;
    options.threads = threads;
    Bank bank(profile.groups[0], registry(), options);
    ASSERT_TRUE(bank.run().ok());
    seen.emplace_back();
    for (const ValueClass& value : bank.classes()) seen.back().push_back(value.index);
    for (const Hit& hit : bank.hits()) seen.back().push_back(hit.value);
  }
  EXPECT_EQ(seen[0], seen[1]);
}

TEST(Bank, TellsWhatIsNeverApplied) {
  const Profile profile = parse(R"(
profile p
group g
  max_ops 2
  max_weight_ops 1
  extent a: 2, 3
  activation x [a]
  weight w [a]
  weight s []
  apply relu(activation)
  apply broadcast(weight) shape=[a]
  apply transpose(activation) perm=[1, 0]
  apply smul(activation, weight)
  on_weights broadcast(weight) shape=[a]
)");
  BankOptions options;
  options.max_ops = 2;
  Bank bank(profile.groups[0], registry(), options);
  ASSERT_TRUE(bank.run().ok());
  EXPECT_EQ(bank.never_applied(), (std::vector<std::size_t>{1, 2}));
}

TEST(Bank, RefusesToExceedTheLimit) {
  const Profile profile = parse(sums);
  BankOptions options;
  options.max_terms = 2;
  Bank bank(profile.groups[0], registry(), options);
  const Status status = bank.run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "group 'g' has more than 2 terms of 2 operators: lower max_ops or split the group");
}

TEST(Bank, WeightsCostNothing) {
  const Profile profile = parse(R"(
profile p
group g
  max_ops 1
  max_weight_ops 1
  extent m: 2, 3
  extent k: 3, 4
  extent j1: 1, 2
  extent j2: 4, 1
  activation x [m, k]
  weight w [k, j1]
  weight v [k, j2]
  apply matmul(activation, weight)
  on_weights concat(weight, weight) axis=-1
)");
  Bank bank(profile.groups[0], registry(), {});
  ASSERT_TRUE(bank.run().ok());
  EXPECT_EQ(bank.levels()[0].classes, 3u + 4u);  // inputs; w|w, w|v, v|w, v|v
  EXPECT_EQ(bank.levels()[1].classes, 6u);       // x times any weight
}

}  // namespace
}  // namespace taso
