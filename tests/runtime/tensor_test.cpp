#include "runtime/tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "support/file.h"

namespace taso {
namespace {

TEST(HostTensor, ZeroFilledAndAligned) {
  HostTensor tensor(TensorType{ElementType::f32, {3, 5}, true});
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.bytes().data()) % 64, 0u);
  for (const float value : tensor.floats()) EXPECT_EQ(value, 0.0f);
  tensor.floats()[3] = 2.0f;
  HostTensor copy = tensor.copy();
  copy.reshape({15});
  EXPECT_EQ(copy.floats()[3], 2.0f);
  EXPECT_EQ(copy.type().shape, Shape{15});
}

TEST(HostTensor, OfConstants) {
  const std::vector<float> values = {1, 2, 3, 4};
  EXPECT_EQ(HostTensor::of_constant(*ConstantData::of_floats({2, 2}, values)).floats()[2], 3.0f);
  const float seven = 7;
  const auto* bytes = reinterpret_cast<const std::byte*>(&seven);
  const auto splat = ConstantData::splat({ElementType::f32, {5}, true}, {bytes, bytes + 4});
  EXPECT_EQ(HostTensor::of_constant(*splat).floats()[4], 7.0f);
}

TEST(FillRandom, DependsOnSeedAndNameOnly) {
  const TensorType type{ElementType::f32, {100}, true};
  HostTensor a(type), b(type), c(type), d(type);
  fill_random(a, 1, "x");
  fill_random(b, 1, "x");
  fill_random(c, 2, "x");
  fill_random(d, 1, "y");
  EXPECT_TRUE(std::ranges::equal(a.floats(), b.floats()));
  EXPECT_FALSE(std::ranges::equal(a.floats(), c.floats()));
  EXPECT_FALSE(std::ranges::equal(a.floats(), d.floats()));
  EXPECT_GE(*std::ranges::min_element(a.floats()), -1.0f);
  EXPECT_LT(*std::ranges::max_element(a.floats()), 1.0f);
}

TEST(FillRandom, EveryElementType) {
  for (const ElementType element :
       {ElementType::f32, ElementType::f64, ElementType::f16, ElementType::bf16, ElementType::i8, ElementType::i16,
        ElementType::i32, ElementType::i64, ElementType::u8, ElementType::u16, ElementType::u32, ElementType::u64,
        ElementType::boolean}) {
    HostTensor tensor(TensorType{element, {200}, true});
    fill_random(tensor, 3, "x", 9);
    const std::vector<double> values = tensor.to_doubles();
    const double largest = *std::ranges::max_element(values), smallest = *std::ranges::min_element(values);
    const bool real = element == ElementType::f32 || element == ElementType::f64 || element == ElementType::f16 ||
                      element == ElementType::bf16;
    EXPECT_GE(smallest, real ? -1.0 : 0.0) << to_string(element);
    EXPECT_LE(largest, real ? 1.0 : element == ElementType::boolean ? 1.0 : 8.0) << to_string(element);
    EXPECT_GT(largest - smallest, 0.5) << to_string(element);
  }
}

HostTensor tensor_of(std::vector<float> values) {
  const auto count = static_cast<std::int64_t>(values.size());
  return HostTensor::of_floats({count}, values);
}

TEST(Compare, CountsWhatIsOutside) {
  const Difference same = compare(tensor_of({1, -4}), tensor_of({1, -4}), 0, 0);
  EXPECT_EQ(same.violations, 0);
  EXPECT_EQ(same.max_relative, 0.0);
  EXPECT_EQ(same.reference_maximum, 4.0);
  const Difference off = compare(tensor_of({1, -4.5, 2}), tensor_of({1, -4, 2}), 0.1, 0.0);
  EXPECT_EQ(off.violations, 1);
  EXPECT_EQ(off.worst_index, 1);
  EXPECT_DOUBLE_EQ(off.max_absolute, 0.5);
  EXPECT_DOUBLE_EQ(off.max_relative, 0.125);
  EXPECT_EQ(compare(tensor_of({1, -4.5}), tensor_of({1, -4}), 0.1, 0.2).violations, 0);
}

TEST(Compare, NotANumberIsNeverWithin) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(compare(tensor_of({nan, 1}), tensor_of({1, 1}), 1, 1).violations, 1);
  EXPECT_EQ(compare(tensor_of({1, 1}), tensor_of({nan, 1}), 1, 1).violations, 1);
  EXPECT_EQ(compare(tensor_of({infinity}), tensor_of({-infinity}), 1, 1).violations, 1);
  EXPECT_EQ(compare(tensor_of({nan, infinity}), tensor_of({nan, infinity}), 0, 0).violations, 0);
}

TEST(Compare, TypesMustAgree) { EXPECT_FALSE(compare(tensor_of({1, 2}), tensor_of({1}), 1, 1).comparable); }

TEST(Npy, WritesAsNumpyDoes) {
  // numpy.save of numpy.array([[1, 2]], dtype=numpy.float32).
  const std::string expected = std::string("\x93NUMPY\x01\x00v\x00", 10) +
                               "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }" + std::string(58, ' ') +
                               "\n" + std::string("\x00\x00\x80\x3f\x00\x00\x00\x40", 8);
  EXPECT_EQ(npy_bytes(HostTensor::of_floats({1, 2}, std::vector<float>{1, 2})), expected);
}

TEST(Npy, RoundTripsEveryTypeAndRank) {
  for (const ElementType element :
       {ElementType::f32, ElementType::f64, ElementType::f16, ElementType::i8, ElementType::i16, ElementType::i32,
        ElementType::i64, ElementType::u8, ElementType::u16, ElementType::u32, ElementType::u64, ElementType::boolean})
    for (const Shape& shape : {Shape{}, Shape{4}, Shape{2, 0, 3}, Shape{2, 3, 4}}) {
      HostTensor tensor(TensorType{element, shape, true});
      fill_random(tensor, 1, "x", 100);
      const auto read = parse_npy(npy_bytes(tensor), "x.npy");
      ASSERT_TRUE(read.ok()) << read.error().to_string();
      EXPECT_EQ(read->type(), tensor.type());
      EXPECT_TRUE(std::ranges::equal(read->bytes(), tensor.bytes()));
    }
}

TEST(Npy, ReadsFortranOrderAndVersionTwo) {
  std::string header = "{'fortran_order': True, 'shape': (2,3), \"descr\": '|u1'}\n";
  std::string file = std::string("\x93NUMPY\x02\x00", 8) + static_cast<char>(header.size()) + std::string(3, '\0') +
                     header + "\x01\x04\x02\x05\x03\x06";
  const auto tensor = parse_npy(file, "x.npy");
  ASSERT_TRUE(tensor.ok()) << tensor.error().to_string();
  EXPECT_EQ(tensor->to_integers(), (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, Files) {
  const std::string path = ::testing::TempDir() + "taso_tensor_test.npy";
  ASSERT_TRUE(write_npy(path, tensor_of({1, 2, 3})).ok());
  EXPECT_EQ(read_npy(path)->floats()[2], 3.0f);
  std::filesystem::remove(path);
  EXPECT_FALSE(read_npy(path).ok());
}

std::string npy(const std::string& header, const std::string& data = "") {
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header + data;
}

TEST(Npy, ErrorsSayWhatIsWrong) {
  const auto message = [](const std::string& bytes) { return parse_npy(bytes, "x.npy").error().to_string(); };
  EXPECT_EQ(message(""), "x.npy: not a .npy file: it does not begin with \\x93NUMPY");
  EXPECT_EQ(message("PK\x03\x04 something else"), "x.npy: not a .npy file: it does not begin with \\x93NUMPY");
  EXPECT_EQ(message(std::string("\x93NUMPY\x09\x00\x00\x00", 10)),
            "x.npy: unknown .npy version 9; versions 1 to 3 are read");
  EXPECT_EQ(message(std::string("\x93NUMPY\x01\x00\xff\x00", 10)), "x.npy: the .npy header is cut short");
  EXPECT_EQ(message(npy("{'descr': '<f4'}")),
            "x.npy: the .npy header is not a dictionary of 'descr' (a string), 'fortran_order' and 'shape'");
  EXPECT_EQ(message(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "1234")),
            "x.npy: element type '>f4' is not supported; little-endian b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 are");
  EXPECT_EQ(message(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "1234")),
            "x.npy: a tensor f32[2] needs 8 bytes, the file has 4");
  EXPECT_EQ(message(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999,99999999)}")),
            "x.npy: the shape [99999999, 99999999] is too large");
}

}  // namespace
}  // namespace taso
