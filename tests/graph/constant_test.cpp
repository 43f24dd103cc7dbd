#include "graph/constant.h"

#include <gtest/gtest.h>

#include <cstring>

namespace taso {
namespace {

std::vector<std::byte> bytes_of(std::span<const float> values) {
  std::vector<std::byte> bytes(values.size_bytes());
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

const std::vector<float> four = {1.0f, -2.0f, 0.5f, 8.0f};

TEST(Constant, KeepsItsValues) {
  const auto constant = ConstantData::of_floats({2, 2}, four);
  EXPECT_EQ(constant->to_floats(), four);
  EXPECT_TRUE(constant->is_dense());
  EXPECT_EQ(constant->dense_bytes().size(), 16u);
  const std::vector<std::int64_t> integers = {-1, 5};
  EXPECT_EQ(ConstantData::of_integers({2}, integers)->to_integers(), integers);
  EXPECT_TRUE(ConstantData::of_floats({0, 3}, {})->to_floats().empty());
}

TEST(Constant, SplatsExpandOnRequest) {
  const float value = 0.25f;
  const auto splat = ConstantData::splat({ElementType::f32, {3}, true}, bytes_of({&value, 1}));
  EXPECT_FALSE(splat->is_dense());
  EXPECT_EQ(splat->to_floats(), (std::vector<float>{0.25f, 0.25f, 0.25f}));
  EXPECT_EQ(splat->splat_element().size(), sizeof(float));
  EXPECT_TRUE(ConstantData::splat({ElementType::f32, {0}, true}, bytes_of({&value, 1}))->to_floats().empty());
  // A huge splat is never expanded by what only handles it.
  const auto huge = ConstantData::splat({ElementType::f32, {1 << 20, 1 << 20}, true}, bytes_of({&value, 1}));
  EXPECT_EQ(huge->reshaped({1 << 10, 1 << 30})->type().elements(), std::int64_t{1} << 40);
}

TEST(Constant, ReshapeKeepsBytesAfterTheOriginalIsGone) {
  auto constant = ConstantData::of_floats({4}, four);
  const auto reshaped = constant->reshaped({2, 2});
  const auto again = reshaped->reshaped({4});
  EXPECT_NE(reshaped->identity(), constant->identity());
  EXPECT_EQ(again->identity(), constant->identity());
  constant.reset();
  EXPECT_EQ(reshaped->to_floats(), four);
  EXPECT_EQ(again->to_floats(), four);
}

TEST(Constant, BorrowedBytesLiveAsLongAsTheConstant) {
  auto owner = std::make_shared<std::vector<float>>(four);
  std::weak_ptr<std::vector<float>> watch = owner;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(*owner));
  auto constant = ConstantData::borrow({ElementType::f32, {4}, true}, bytes, owner);
  auto view = constant->reshaped({2, 2});
  owner.reset();
  constant.reset();
  EXPECT_FALSE(watch.expired());
  EXPECT_EQ(view->to_floats(), four);
  view.reset();
  EXPECT_TRUE(watch.expired());
}

TEST(Constant, IdentityTellsTypeContentsAndPlace) {
  const TensorType type = {ElementType::f32, {4}, true};
  const auto a = ConstantData::own(type, bytes_of(four));
  const auto same = ConstantData::of_floats({4}, four);
  EXPECT_EQ(a->identity(), same->identity());
  EXPECT_NE(a->identity(), ConstantData::own({ElementType::i32, {4}, true}, bytes_of(four))->identity());
  EXPECT_NE(a->identity(), ConstantData::of_floats({2, 2}, four)->identity());
  const auto owner = std::make_shared<std::vector<float>>(four);
  const auto bytes = std::as_bytes(std::span(*owner));
  const auto here = ConstantData::borrow(type, bytes, owner, "weights.bin@0");
  EXPECT_EQ(here->identity(), ConstantData::borrow(type, bytes, owner, "weights.bin@0")->identity());
  EXPECT_NE(here->identity(), ConstantData::borrow(type, bytes, owner, "weights.bin@16")->identity());
  EXPECT_EQ(ConstantData::borrow(type, bytes, owner)->identity(), a->identity());
}

TEST(Constant, WidensIntegersOfAllTypes) {
  auto widened = [](ElementType element, std::vector<unsigned char> raw, std::int64_t count) {
    std::vector<std::byte> bytes(raw.size());
    std::memcpy(bytes.data(), raw.data(), raw.size());
    return ConstantData::own({element, {count}, true}, bytes)->to_integers();
  };
  using Values = std::vector<std::int64_t>;
  EXPECT_EQ(widened(ElementType::i8, {0xff, 2}, 2), (Values{-1, 2}));
  EXPECT_EQ(widened(ElementType::u8, {0xff, 2}, 2), (Values{255, 2}));
  EXPECT_EQ(widened(ElementType::boolean, {1, 0}, 2), (Values{1, 0}));
  EXPECT_EQ(widened(ElementType::i16, {0xfe, 0xff}, 1), (Values{-2}));
  EXPECT_EQ(widened(ElementType::u16, {0xfe, 0xff}, 1), (Values{65534}));
  EXPECT_EQ(widened(ElementType::i32, {0xfd, 0xff, 0xff, 0xff}, 1), (Values{-3}));
  EXPECT_EQ(widened(ElementType::u32, {0xfd, 0xff, 0xff, 0xff}, 1), (Values{4294967293}));
}

TEST(Constant, DoublesAreRead) {
  const std::vector<double> values = {0.5, -3};
  std::vector<std::byte> bytes(16);
  std::memcpy(bytes.data(), values.data(), 16);
  EXPECT_EQ(ConstantData::own({ElementType::f64, {2}, true}, bytes)->to_floats(), (std::vector<float>{0.5f, -3.0f}));
}

TEST(Constant, OnlyAShapeIsToldByTypeAndName) {
  const TensorType type{ElementType::f32, {1 << 20, 1 << 20}, true};
  const auto a = ConstantData::shape_only(type, "a");
  EXPECT_FALSE(a->has_data());
  EXPECT_FALSE(a->is_dense());
  EXPECT_TRUE(a->splat_element().empty());
  EXPECT_FALSE(a->signs().has_value());
  EXPECT_EQ(a->name(), "a");
  EXPECT_EQ(a->identity(), ConstantData::shape_only(type, "a")->identity());
  EXPECT_NE(a->identity(), ConstantData::shape_only(type, "b")->identity());
  EXPECT_NE(a->identity(), ConstantData::shape_only({ElementType::f32, {2}, true}, "a")->identity());
  const Status status = a->require_data();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "constant 'a' f32[1048576, 1048576] is only a shape: its elements are not known");
  EXPECT_TRUE(ConstantData::of_floats({}, std::vector<float>{1})->require_data());
}

}  // namespace
}  // namespace taso
