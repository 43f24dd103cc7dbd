#include "targets/gauge.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "onnx_io/model.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

const std::string gauge_file = (std::filesystem::path(::testing::TempDir()) / "taso_gauge_test.onnx").string();

TEST(Gauge, TellsWhatTakesLongerThanEver) {
  Gauge gauge = Gauge::make(gauge_file).value();
  EXPECT_TRUE(gauge.is_calm({{2.0, 2.0, 9.0}, ""}));
  EXPECT_TRUE(gauge.is_calm({{2.2, 2.2, 2.2}, ""}));
  EXPECT_FALSE(gauge.is_calm({{2.4, 2.4, 2.0}, ""}));
  // It was disturbed from the beginning.
  EXPECT_TRUE(gauge.is_calm({{1.5, 1.5, 1.5}, ""}));
  EXPECT_FALSE(gauge.is_calm({{2.0, 2.0, 2.0}, ""}));
  // Without times one knows nothing, and goes on.
  EXPECT_FALSE(gauge.is_calm({{}, "its times differ wildly"}));
  EXPECT_DOUBLE_EQ(gauge.least_us(), 1.5e6);
  // The model is one, with the input that it says.
  const Model model = Model::load(gauge.model().file, test::registry()).value();
  ASSERT_EQ(model.inputs().size(), 1U);
  ASSERT_EQ(gauge.model().inputs.size(), 1U);
  EXPECT_EQ(model.inputs()[0].name, gauge.model().inputs[0].name);
  EXPECT_EQ(model.graph().node(model.graph().inputs()[0]).outputs[0], gauge.model().inputs[0].type);
}

TEST(Gauge, KnowsWhatItTookInOtherRuns) {
  Gauge gauge = Gauge::make(gauge_file, 1e6).value();
  EXPECT_FALSE(gauge.is_calm({{1.2}, ""}));
  EXPECT_FALSE(gauge.is_calm({{1.3}, ""}));
  EXPECT_DOUBLE_EQ(gauge.least_us(), 1e6);
  // The processor has become slower for good.
  gauge.forget();
  EXPECT_DOUBLE_EQ(gauge.least_us(), 1.2e6);
  EXPECT_TRUE(gauge.is_calm({{1.3}, ""}));
}

/// Where the runtime does not run it, nothing is known, and one goes on.
TEST(Gauge, IsCalmWhereItNeverRan) { EXPECT_TRUE(Gauge::make(gauge_file).value().is_calm({{}, "no products here"})); }

}  // namespace
}  // namespace taso
