#include "targets/gauge.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "onnx_io/model.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

TEST(Gauge, TellsWhatTakesLongerThanEver) {
  const std::string file = (std::filesystem::path(::testing::TempDir()) / "taso_gauge_test.onnx").string();
  Gauge gauge = Gauge::make(file).value();
  EXPECT_TRUE(gauge.is_calm({{2.0, 2.0, 9.0}, ""}));
  EXPECT_TRUE(gauge.is_calm({{2.2, 2.2, 2.2}, ""}));
  EXPECT_FALSE(gauge.is_calm({{2.4, 2.4, 2.0}, ""}));
  // It was disturbed from the beginning.
  EXPECT_TRUE(gauge.is_calm({{1.5, 1.5, 1.5}, ""}));
  EXPECT_FALSE(gauge.is_calm({{2.0, 2.0, 2.0}, ""}));
  // Without times one knows nothing, and goes on.
  EXPECT_TRUE(gauge.is_calm({{}, "no products here"}));
  // The model is one, with the input that it says.
  const Model model = Model::load(gauge.model().file, test::registry()).value();
  ASSERT_EQ(model.inputs().size(), 1U);
  ASSERT_EQ(gauge.model().inputs.size(), 1U);
  EXPECT_EQ(model.inputs()[0].name, gauge.model().inputs[0].name);
  EXPECT_EQ(model.graph().node(model.graph().inputs()[0]).outputs[0], gauge.model().inputs[0].type);
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace taso
