// Dual numbers over GF(2^61-1): derivatives of operators at points, beside formulas.
#include "verifier/dual_ring.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/gradients/shipped_gradients.h"

namespace taso {
namespace {

using Dual = DualRing<FieldRing>;

Mod61 whole(std::int64_t value) { return Mod61(value); }

Dual with_table(FieldRing& field) {
  return {field, [](const std::string& function) -> const std::vector<OperatorInstance>* {
            const auto found = test::gradient_table().derivatives().find(function);
            return found == test::gradient_table().derivatives().end() ? nullptr : &found->second.partial;
          }};
}

/// An operator of tensors without axes, at values and slopes.
Expected<Dual::Element> at(const std::string& op, const std::vector<Dual::Element>& point, Dual& ring) {
  const std::vector<TensorType> types(point.size(), TensorType{ElementType::f32, {}, true});
  const OperatorInstance instance = test::value_of(OperatorInstance::create(test::gradient_registry(), op, {}, types));
  std::vector<RingTensor<Dual::Element>> inputs;
  for (const Dual::Element& element : point) inputs.push_back({{}, {element}, {}});
  std::vector<const RingTensor<Dual::Element>*> pointers;
  for (const auto& input : inputs) pointers.push_back(&input);
  TASO_ASSIGN(const auto outputs,
              evaluate(instance, ring, std::span<const RingTensor<Dual::Element>* const>(pointers)));
  TASO_RETURN_IF_ERROR(ring.status());
  return outputs[0].elements[0];
}

TEST(DualRing, FollowsTheRulesOfArithmetic) {
  FieldRing field(1);
  Dual ring = with_table(field);
  const Dual::Element x{whole(6), whole(5)}, y{whole(3), whole(-2)};
  EXPECT_EQ(test::value_of(at("add", {x, y}, ring)).slope, whole(3));
  EXPECT_EQ(test::value_of(at("sub", {x, y}, ring)).slope, whole(7));
  EXPECT_EQ(test::value_of(at("neg", {x}, ring)).slope, whole(-5));
  EXPECT_EQ(test::value_of(at("mul", {x, y}, ring)).slope, whole(6 * -2 + 5 * 3));
  // (x' y - x y') / y^2
  EXPECT_EQ(test::value_of(at("div", {x, y}, ring)).slope * whole(9), whole(5 * 3 - 6 * -2));
}

TEST(DualRing, CallsTheDerivativesOfTheTable) {
  FieldRing field(1);
  Dual ring = with_table(field);
  const Dual::Element x{whole(6), whole(5)}, y{whole(3), whole(-2)};
  const Dual::Element power = test::value_of(at("exp", {x}, ring));
  EXPECT_EQ(power.slope, power.value * whole(5));
  const Dual::Element root = test::value_of(at("sqrt", {x}, ring));
  EXPECT_EQ(root.slope * root.value * whole(2), whole(5));
  const Dual::Element both = test::value_of(at("pow", {x, y}, ring));
  const FieldRing same(1);
  const Mod61 logarithm = same.call(*test::gradient_registry().find_function("log"), whole(6));
  EXPECT_EQ(both.slope * whole(6), both.value * (whole(3 * 5) + whole(-2 * 6) * logarithm));
}

TEST(DualRing, AnExtremumHasTheSlopeOfItsElement) {
  FieldRing field(1, true);
  Dual ring = with_table(field);
  const Dual::Element x{whole(6), whole(5)}, y{whole(-3), whole(-2)};
  EXPECT_EQ(test::value_of(at("maximum", {x, y}, ring)).slope, whole(5));
  EXPECT_EQ(test::value_of(at("maximum", {y, x}, ring)).slope, whole(5));
  EXPECT_EQ(test::value_of(at("relu", {y}, ring)).slope, whole(0));
  EXPECT_EQ(test::value_of(at("abs", {y}, ring)).slope, whole(2));
}

TEST(DualRing, HasNoSlopeWhereThereIsNone) {
  FieldRing field(1, true);
  Dual equal = with_table(field);
  const auto tie = at("maximum", {{whole(4), whole(1)}, {whole(4), whole(2)}}, equal);
  ASSERT_FALSE(tie.ok());
  EXPECT_EQ(tie.error().message, "several elements are the extremum");
  Dual none(field, [](const std::string&) -> const std::vector<OperatorInstance>* { return nullptr; });
  const auto unknown = at("exp", {{whole(4), whole(1)}}, none);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message, "no table has a derivative of exp");
}

}  // namespace
}  // namespace taso
