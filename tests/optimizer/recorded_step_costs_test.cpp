// What steps cost on several streams, as processes leave it to each other in a cost database.
#include "optimizer/recorded_step_costs.h"

#include "support/text_output.h"
#include "tests/optimizer/fixtures.h"

namespace taso::testing {
namespace {

RecordedStepCosts step_costs_in(const std::string& path, const std::string& device) {
  return RecordedStepCosts(value_of(CostDatabase::open(path, device, CostDatabase::Mode::read_write)));
}

TEST(RecordedStepCosts, AreReadBackByLaterProcesses) {
  const TemporaryFolder folder;
  const std::string path = folder / "costs.sqlite", device = "GPU; driver 1.0; fp32";
  {
    RecordedStepCosts first = step_costs_in(path, device);
    EXPECT_FALSE(first.find("relu").has_value());
    EXPECT_FALSE(first.wait_seconds().has_value());
    EXPECT_TRUE(first.record("relu", {2e-6, 0.25}).ok());
    EXPECT_TRUE(first.record("relu", {3e-6, 0.5}).ok()) << "measured again";
    EXPECT_TRUE(first.record_wait(1e-6).ok());
  }
  RecordedStepCosts second = step_costs_in(path, device);
  ASSERT_TRUE(second.find("relu").has_value());
  EXPECT_EQ(second.find("relu")->seconds, 3e-6);
  EXPECT_EQ(second.find("relu")->share, 0.5);
  EXPECT_EQ(second.wait_seconds(), 1e-6);
  EXPECT_FALSE(step_costs_in(path, "GPU; driver 1.1; fp32").find("relu").has_value());
  const CostDatabase database = value_of(CostDatabase::open(path, device, CostDatabase::Mode::read_only));
  EXPECT_EQ(database.find("step", "relu"), 3e-6);
  EXPECT_EQ(database.find("concurrency", "relu"), 0.5);
  EXPECT_EQ(database.find("concurrency", "wait"), 1e-6);
}

TEST(RecordedStepCosts, RowsThatAreNoCostsAreNone) {
  const TemporaryFolder folder;
  const std::string device = "GPU";
  const auto is_cost = [&](double share) {
    EXPECT_TRUE(write_text(folder / "written.costs",
                           export_text({{device, "step", "relu", 1e-6}, {device, "concurrency", "relu", share}}))
                    .ok());
    RecordedStepCosts costs = RecordedStepCosts(
        value_of(CostDatabase::open(folder / "written.costs", device, CostDatabase::Mode::read_only)));
    EXPECT_FALSE(costs.wait_seconds().has_value());
    return costs.find("relu").has_value();
  };
  EXPECT_TRUE(is_cost(0.1));
  EXPECT_TRUE(is_cost(1));
  EXPECT_FALSE(is_cost(1.5));
  EXPECT_FALSE(is_cost(0));
}

}  // namespace
}  // namespace taso::testing
