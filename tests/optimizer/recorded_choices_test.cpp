// Choices of engines that processes leave to each other in a cost database.
#include "optimizer/recorded_choices.h"

#include "support/text_output.h"
#include "tests/optimizer/fixtures.h"

namespace taso::testing {
namespace {

RecordedChoices choices_in(const std::string& path, const std::string& device = "GPU; driver 1.0; fp32",
                           CostDatabase::Mode mode = CostDatabase::Mode::read_write) {
  return RecordedChoices(value_of(CostDatabase::open(path, device, mode)));
}

const std::string key_of_product = "matmul; ; f32[2, 3]:row, f32[3, 4]:row -> f32[2, 4]:row; threads=1";

TEST(RecordedChoices, AreReadBackByLaterProcesses) {
  const TemporaryFolder folder;
  const std::string path = folder / "costs.sqlite";
  {
    RecordedChoices first = choices_in(path);
    EXPECT_EQ(first.find(key_of_product), std::nullopt);
    EXPECT_TRUE(first.record(key_of_product, {"engine 44; knobs 2=1; best of 8", 2e-5, 0.25}).ok());
    EXPECT_EQ(first.find(key_of_product), "engine 44; knobs 2=1; best of 8");
    EXPECT_EQ(first.tuning().choices, 1U);
    EXPECT_EQ(first.tuning().seconds, 0.25);
    // Written as it comes: another process may read it at once, and this one may be killed.
    EXPECT_EQ(choices_in(path).find(key_of_product), "engine 44; knobs 2=1; best of 8");
  }
  RecordedChoices second = choices_in(path, "GPU; driver 1.0; fp32", CostDatabase::Mode::read_only);
  EXPECT_EQ(second.find(key_of_product), "engine 44; knobs 2=1; best of 8");
  EXPECT_EQ(second.tuning().choices, 0U) << "nothing was timed";
  EXPECT_EQ(choices_in(path, "GPU; driver 1.1; fp32").find(key_of_product), std::nullopt)
      << "other versions choose anew";
}

TEST(RecordedChoices, OfSeveralTheFastestStands) {
  const TemporaryFolder folder;
  const std::string path = folder / "costs.sqlite";
  RecordedChoices one = choices_in(path), other = choices_in(path);
  EXPECT_TRUE(one.record(key_of_product, {"engine 1; best of 8", 3e-5, 0.1}).ok());
  EXPECT_TRUE(other.record(key_of_product, {"engine 2; best of 8", 2e-5, 0.1}).ok());
  EXPECT_EQ(choices_in(path).find(key_of_product), "engine 2; best of 8");
}

/// What failed when it ran is taken again by no process; the next best is, if there is one.
TEST(RecordedChoices, WhatFailedIsNotTakenAgain) {
  const TemporaryFolder folder;
  const std::string path = folder / "costs.sqlite";
  RecordedChoices first = choices_in(path);
  EXPECT_TRUE(first.withdraw(key_of_product).ok()) << "there is nothing";
  EXPECT_TRUE(first.record(key_of_product, {"engine 1; best of 8", 1e-5, 0.1}).ok());
  EXPECT_TRUE(first.record(key_of_product, {"engine 2; best of 8", 2e-5, 0.1}).ok());
  EXPECT_TRUE(first.withdraw(key_of_product).ok());
  EXPECT_EQ(first.find(key_of_product), "engine 2; best of 8");
  EXPECT_EQ(choices_in(path).find(key_of_product), "engine 2; best of 8");
  EXPECT_TRUE(first.withdraw(key_of_product).ok());
  EXPECT_EQ(first.find(key_of_product), std::nullopt);
  EXPECT_EQ(choices_in(path).find(key_of_product), std::nullopt);
  EXPECT_TRUE(first.used().empty());
}

TEST(RecordedChoices, TravelAsText) {
  const TemporaryFolder folder;
  RecordedChoices first = choices_in(folder / "costs.sqlite");
  EXPECT_TRUE(first.used().empty());
  EXPECT_TRUE(first.record(key_of_product, {"engine 1; best of 8", 3e-5, 0.1}).ok());
  EXPECT_TRUE(first.record("other", {"engine 3; best of 8", 1e-5, 0.1}).ok());
  ASSERT_EQ(first.used().size(), 2U);
  EXPECT_EQ(first.used()[1].kind, "engine");
  EXPECT_EQ(first.used()[1].key, "other => engine 3; best of 8");
  EXPECT_EQ(first.used()[1].value, 1e-5);
  ASSERT_TRUE(write_text(folder / "choices.costs", export_text(first.used())).ok());
  RecordedChoices read = choices_in(folder / "choices.costs");
  EXPECT_EQ(read.find("other"), "engine 3; best of 8");
  EXPECT_EQ(read.used().size(), 1U) << "what was asked for";
}

TEST(RecordedChoices, TimesOfTuningAreKept) {
  const TemporaryFolder folder;
  const std::string path = folder / "costs.sqlite", device = "GPU; driver 1.0; fp32";
  EXPECT_TRUE(choices_in(path).record(key_of_product, {"engine 1; best of 8", 3e-5, 0.125}).ok());
  const CostDatabase database = value_of(CostDatabase::open(path, device, CostDatabase::Mode::read_only));
  EXPECT_EQ(database.find("tuning", key_of_product), 0.125);
}

}  // namespace
}  // namespace taso::testing
