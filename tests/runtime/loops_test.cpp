#include "runtime/cpu/loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "support/random.h"

namespace taso::cpu {
namespace {

std::vector<const LoopTable*> tables() {
  std::vector<const LoopTable*> list;
  for (const LoopTable* table : {generic_loops(), avx2_loops(), avx512_loops()})
    if (table != nullptr) list.push_back(table);
  return list;
}

const UnaryEntry& entry(const LoopTable& table, std::string_view name) {
  for (int i = 0; i < table.unary_count; ++i)
    if (table.unary[i].name == name) return table.unary[i];
  throw std::runtime_error("no loop " + std::string(name));
}

struct Function {
  const char* name;
  std::function<double(double)> exact;
};

/// x * sigmoid(z).
double times_sigmoid(double x, double z) { return x / (1 + std::exp(-z)); }

const std::vector<Function>& functions() {
  static const std::vector<Function> all = {
      {"exp", [](double x) { return std::exp(x); }},
      {"log", [](double x) { return std::log(x); }},
      {"tanh", [](double x) { return std::tanh(x); }},
      {"erf", [](double x) { return std::erf(x); }},
      {"sin", [](double x) { return std::sin(x); }},
      {"cos", [](double x) { return std::cos(x); }},
      {"tan", [](double x) { return std::tan(x); }},
      {"atan", [](double x) { return std::atan(x); }},
      {"sinh", [](double x) { return std::sinh(x); }},
      {"cosh", [](double x) { return std::cosh(x); }},
      {"asinh", [](double x) { return std::asinh(x); }},
      {"floor", [](double x) { return std::floor(x); }},
      {"ceil", [](double x) { return std::ceil(x); }},
      {"round", [](double x) { return std::nearbyint(x); }},
      {"sigmoid", [](double x) { return times_sigmoid(1, x); }},
      {"gelu", [](double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); }},
      {"gelu_tanh",
       [](double x) { return times_sigmoid(x, 2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)); }},
      {"silu", [](double x) { return times_sigmoid(x, x); }},
      {"quick_gelu", [](double x) { return times_sigmoid(x, 1.702 * x); }},
      {"hard_swish", [](double x) { return x * std::fmin(1, std::fmax(0, (x + 3) / 6)); }},
      {"hard_sigmoid", [](double x) { return std::fmin(1, std::fmax(0, (x + 3) / 6)); }},
      {"sqrt", [](double x) { return std::sqrt(x); }},
      {"relu", [](double x) { return std::fmax(x, 0); }},
  };
  return all;
}

// Where the argument and the result are normal numbers: over all of them, and closer between -110 and 110.
TEST(Loops, FunctionsAreAccurate) {
  std::vector<float> x;
  for (std::uint32_t bits = 0; bits < 0xff800000U; bits += 60013) {
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isnormal(value)) x.push_back(value);
  }
  for (int i = -55000; i <= 55000; ++i) x.push_back(static_cast<float>(i) * 0.002F + 0.0003F);
  for (const Function& function : functions()) {
    std::vector<double> exact;
    exact.reserve(x.size());
    for (const float value : x) exact.push_back(function.exact(static_cast<double>(value)));
    for (const LoopTable* table : tables()) {
      std::vector<float> y(x.size());
      entry(*table, function.name).loop(x.data(), y.data(), static_cast<std::int64_t>(x.size()), 0, 0);
      double worst = 0;
      float where = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (!std::isnormal(static_cast<float>(exact[i]))) continue;
        const double error = std::fabs((static_cast<double>(y[i]) - exact[i]) / exact[i]);
        if (error <= worst) continue;
        worst = error;
        where = x[i];
      }
      EXPECT_LT(worst, 5e-7) << function.name << " at " << where << " with " << table->instruction_set;
    }
  }
}

TEST(Loops, ExtremeArguments) {
  const float infinity = HUGE_VALF;
  const std::vector<float> x = {-infinity, -1e30f, -200.0f, -0.0f, 0.0f, 200.0f, 1e30f, infinity, NAN};
  for (const LoopTable* table : tables()) {
    const auto apply = [&](const char* name) {
      std::vector<float> y(x.size());
      entry(*table, name).loop(x.data(), y.data(), static_cast<std::int64_t>(x.size()), 0, 0);
      return y;
    };
    EXPECT_EQ(apply("exp")[0], 0.0f);
    EXPECT_EQ(apply("exp")[7], infinity);
    EXPECT_EQ(apply("tanh")[1], -1.0f);
    EXPECT_EQ(apply("tanh")[7], 1.0f);
    EXPECT_EQ(apply("erf")[0], -1.0f);
    EXPECT_EQ(apply("erf")[6], 1.0f);
    EXPECT_EQ(apply("sigmoid")[0], 0.0f);
    EXPECT_EQ(apply("sigmoid")[7], 1.0f);
    EXPECT_EQ(apply("sign")[1], -1.0f);
    EXPECT_EQ(apply("sign")[3], 0.0f);
    EXPECT_EQ(apply("sign")[7], 1.0f);
    EXPECT_EQ(apply("floor")[0], -infinity);
    EXPECT_EQ(apply("round")[6], 1e30f);
    EXPECT_TRUE(std::isnan(apply("sin")[7]));
    EXPECT_EQ(apply("relu")[0], 0.0f);
    EXPECT_EQ(apply("log")[4], -infinity);
    EXPECT_EQ(apply("log")[7], infinity);
    EXPECT_TRUE(std::isnan(apply("log")[2]));
    EXPECT_EQ(apply("asinh")[0], -infinity);
    EXPECT_NEAR(apply("asinh")[6], 69.7707F, 1e-4);
    for (const char* name : {"tanh", "asinh", "erf", "sin", "atan", "sinh"})
      EXPECT_TRUE(std::signbit(apply(name)[3])) << name << " with " << table->instruction_set;
    for (const char* name :
         {"exp", "tanh", "erf",  "sigmoid", "relu", "log",   "gelu",  "gelu_tanh", "silu",  "sqrt", "sin",
          "cos", "tan",  "atan", "sinh",    "cosh", "asinh", "floor", "ceil",      "round", "sign"})
      EXPECT_TRUE(std::isnan(apply(name)[8])) << name << " with " << table->instruction_set;
  }
}

TEST(Loops, AllInstructionSetsHaveTheSameFunctions) {
  for (const LoopTable* table : tables()) {
    ASSERT_EQ(table->unary_count, generic_loops()->unary_count);
    ASSERT_EQ(table->binary_count, generic_loops()->binary_count);
    for (int i = 0; i < table->unary_count; ++i) EXPECT_EQ(table->unary[i].name, generic_loops()->unary[i].name);
    for (int i = 0; i < table->binary_count; ++i) EXPECT_EQ(table->binary[i].name, generic_loops()->binary[i].name);
  }
  EXPECT_EQ(find_unary("no such function"), nullptr);
  EXPECT_EQ(find_binary("relu"), nullptr);
}

TEST(Loops, Reductions) {
  std::vector<float> x, y;
  for (int i = 0; i < 300; ++i) {
    x.push_back(static_cast<float>(std::sin(i * 7.0) * 3 + 1));
    y.push_back(static_cast<float>(std::cos(i * 5.0)));
  }
  for (const LoopTable* table : tables())
    for (std::int64_t count = 0; count <= 300; ++count) {
      double sum = 0, dot = 0;
      float greatest = -HUGE_VALF, least = HUGE_VALF;
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        sum += static_cast<double>(x[i]);
        dot += static_cast<double>(x[i]) * static_cast<double>(y[i]);
        greatest = std::max(greatest, x[i]);
        least = std::min(least, x[i]);
      }
      ASSERT_NEAR(table->sum(x.data(), count), sum, 1e-6 * (1 + 3.0 * static_cast<double>(count))) << count;
      ASSERT_NEAR(table->dot(x.data(), y.data(), count), dot, 1e-6 * (1 + 3.0 * static_cast<double>(count))) << count;
      ASSERT_EQ(table->maximum(x.data(), count), greatest) << count;
      ASSERT_EQ(table->greatest(x.data(), count), greatest) << count;
      ASSERT_EQ(table->least(x.data(), count), least) << count;
      if (count == 0) continue;
      // A NaN anywhere is the greatest and the least, and left out by the maximum.
      std::vector<float> with_nan = x;
      with_nan[static_cast<std::size_t>(count * 7 / 11)] = NAN;
      ASSERT_TRUE(std::isnan(table->greatest(with_nan.data(), count))) << count;
      ASSERT_TRUE(std::isnan(table->least(with_nan.data(), count))) << count;
      ASSERT_FALSE(std::isnan(table->maximum(with_nan.data(), count))) << count;
    }
}

// Of rows: what the loops of one row make, to the bit, whatever stands between and beside them.
TEST(Loops, ReductionsAndArithmeticOfRows) {
  Random random(3, "rows");
  std::vector<float> x, from;
  for (int i = 0; i < 40 * 150; ++i) {
    x.push_back(static_cast<float>(2 * random.uniform() - 1));
    if (i % 997 == 500) x.back() = i % 2 == 0 ? NAN : HUGE_VALF;
  }
  for (int i = 0; i < 80; ++i) from.push_back(x[static_cast<std::size_t>(7 * i)]);
  const auto same = [](float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; };
  for (const LoopTable* table : tables())
    for (const std::int64_t rows : {1, 3, 16, 17, 37})
      for (std::int64_t count = 1; count < 140; count += count < 40 ? 1 : 9)
        for (const std::int64_t stride : {std::int64_t{0}, count, count + 3}) {
          const auto of_row = [&](std::int64_t r) { return x.data() + r * stride; };
          std::vector<float> y(static_cast<std::size_t>(rows) + 1, 7.0F);
          const auto expect = [&](const auto& one, const char* what) {
            for (std::int64_t r = 0; r < rows; ++r)
              ASSERT_TRUE(same(y[static_cast<std::size_t>(r)], one(r)))
                  << table->instruction_set << " " << what << " " << rows << " " << count << " " << stride << ": " << r;
            ASSERT_EQ(y.back(), 7.0F) << what;
          };
          table->sum_rows(x.data(), stride, rows, count, y.data());
          expect([&](std::int64_t r) { return table->sum(of_row(r), count); }, "sum");
          table->greatest_rows(x.data(), stride, rows, count, y.data());
          expect([&](std::int64_t r) { return table->greatest(of_row(r), count); }, "greatest");
          table->least_rows(x.data(), stride, rows, count, y.data());
          expect([&](std::int64_t r) { return table->least(of_row(r), count); }, "least");
          table->dot_rows(x.data(), stride, from.data(), 1, rows, std::min<std::int64_t>(count, 40), y.data());
          expect(
              [&](std::int64_t r) { return table->dot(of_row(r), from.data() + r, std::min<std::int64_t>(count, 40)); },
              "dot");
          table->squares_rows(x.data(), stride, from.data(), 2, rows, count, y.data());
          expect(
              [&](std::int64_t r) { return table->squares(of_row(r), count, from[static_cast<std::size_t>(2 * r)]); },
              "squares");
          if (stride != count) continue;
          for (const bool product : {false, true}) {
            const auto size = static_cast<std::size_t>(rows * count);
            std::vector<float> all(size + 1, 7.0F), in_place(x.begin(), x.begin() + rows * count), one(size);
            const auto loop = product ? table->multiply_by_rows : table->subtract_of_rows;
            loop(x.data(), from.data(), 2, all.data(), rows, count);
            loop(in_place.data(), from.data(), 2, in_place.data(), rows, count);
            ASSERT_EQ(all.back(), 7.0F);
            for (std::int64_t r = 0; r < rows; ++r)
              find_binary(product ? "mul" : "sub")
                  ->second_scalar(of_row(r), &from[static_cast<std::size_t>(2 * r)], one.data() + r * count, count);
            ASSERT_EQ(std::memcmp(all.data(), one.data(), size * sizeof(float)), 0) << table->instruction_set << count;
            ASSERT_EQ(std::memcmp(in_place.data(), one.data(), size * sizeof(float)), 0) << table->instruction_set;
          }
        }
}

TEST(Loops, Softmax) {
  for (const LoopTable* const table : tables()) {
    for (std::int64_t count = 1; count < 150; ++count) {
      std::vector<float> x(static_cast<std::size_t>(count));
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = 20 * std::sin(static_cast<float>(i * i));
        if (i % 5 == 3) x[i] = -std::numeric_limits<float>::infinity();
        if (i % 7 == 6) x[i] = -1e30F;
      }
      double total = 0;
      const float top = *std::max_element(x.begin(), x.end());
      const auto weight = [&](float one) { return std::exp(static_cast<double>(one - top)); };
      for (const float one : x) total += weight(one);
      std::vector<float> y(x.size() + 1, 7), in_place = x;
      table->softmax(x.data(), y.data(), 1, count);
      table->softmax(in_place.data(), in_place.data(), 1, count);
      EXPECT_EQ(y.back(), 7) << table->instruction_set << count;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double expected = weight(x[i]) / total;
        ASSERT_NEAR(y[i], expected, 1e-6 * expected) << table->instruction_set << " " << count << " " << i;
        ASSERT_EQ(y[i], in_place[i]) << table->instruction_set << " " << count << " " << i;
      }
      // What cannot be compared makes all so, and so does nothing but -inf.
      for (const float odd : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
        std::vector<float> z = x;
        z[static_cast<std::size_t>(count / 2)] = odd;
        table->softmax(z.data(), z.data(), 1, count);
        EXPECT_TRUE(std::isnan(z[static_cast<std::size_t>(count / 2)])) << table->instruction_set << count;
      }
      std::vector<float> hidden(x.size(), -std::numeric_limits<float>::infinity());
      table->softmax(hidden.data(), hidden.data(), 1, count);
      for (const float one : hidden) EXPECT_TRUE(std::isnan(one)) << table->instruction_set << count;
    }
  }
}

// Beside numbers that are so large, a difference of 80 is none.
TEST(Loops, SoftmaxOfLargeNumbers) {
  constexpr float lowest = std::numeric_limits<float>::lowest();
  for (const LoopTable* const table : tables())
    for (const std::int64_t rows : {1, 3, 20})
      for (std::int64_t count = 1; count < 70; ++count)
        for (const float large : {lowest, -1e10F, 3e9F, 1e30F}) {
          std::vector<float> x(static_cast<std::size_t>(rows * count), large), y(x.size());
          table->softmax(x.data(), y.data(), rows, count);
          for (const float one : y)
            ASSERT_NEAR(one, 1.0 / static_cast<double>(count), 1e-6) << table->instruction_set << " " << count << large;
        }
}

TEST(Loops, PanelProducts) {
  constexpr std::int64_t length = 5, apart = panel_width + 3;
  std::vector<float> panel(length * panel_width);
  for (std::size_t i = 0; i < panel.size(); ++i) panel[i] = static_cast<float>(i % 7) - 3;
  for (const LoopTable* table : tables())
    for (const std::int64_t rows : {1, 2, 3, 4, 5, 11})
      for (const std::int64_t columns : {std::int64_t{1}, std::int64_t{31}, panel_width}) {
        std::vector<float> a(static_cast<std::size_t>(rows * length)), y(static_cast<std::size_t>(rows * apart), -1.0F);
        for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 5) - 1;
        table->panel_product(a.data(), rows, length, panel.data(), y.data(), apart, columns);
        for (std::int64_t r = 0; r < rows; ++r)
          for (std::int64_t j = 0; j < apart; ++j) {
            float expected = j < columns ? 0.0F : -1.0F;  // what stands behind is not touched
            for (std::int64_t k = 0; k < length && j < columns; ++k)
              expected +=
                  a[static_cast<std::size_t>(r * length + k)] * panel[static_cast<std::size_t>(k * panel_width + j)];
            ASSERT_EQ(y[static_cast<std::size_t>(r * apart + j)], expected) << table->instruction_set;
          }
      }
}

// What is behind the columns of y stays.
TEST(Loops, Transpose) {
  for (const LoopTable* table : tables())
    for (std::size_t rows = 1; rows <= 37; ++rows)
      for (const std::size_t columns : {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33})
        for (const std::size_t more : {0, 2}) {
          const std::size_t apart = columns + more;
          std::vector<float> x(rows * columns), y(rows * apart, -1.0F);
          for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
          // x is [columns, rows], y is [rows, columns].
          table->transpose(x.data(), static_cast<std::int64_t>(rows), y.data(), static_cast<std::int64_t>(apart),
                           static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns));
          for (std::size_t i = 0; i < rows; ++i)
            for (std::size_t j = 0; j < apart; ++j)
              ASSERT_EQ(y[i * apart + j], j < columns ? x[j * rows + i] : -1.0F)
                  << table->instruction_set << " " << rows << " x " << columns;
        }
}

/// One of the loops over rows.
struct RowsOf {
  const char* name;
  std::function<void(const LoopTable& table, const float* x, float* y, std::int64_t rows, std::int64_t count)> loop;
  std::function<std::vector<double>(const std::vector<double>& row)> exact;
};

constexpr float row_epsilon = 1e-5F;
float scale_at(std::size_t i) { return 0.5F + static_cast<float>(i % 5); }
float bias_at(std::size_t i) { return static_cast<float>(i % 3) - 1.0F; }

double mean_of(const std::vector<double>& row, const std::function<double(double)>& function) {
  double total = 0;
  for (const double x : row) total += function(x);
  return total / static_cast<double>(row.size());
}

std::vector<RowsOf> loops_over_rows() {
  static const std::vector<float> scales = [] {
    std::vector<float> list;
    for (std::size_t i = 0; i < 1000; ++i) list.push_back(scale_at(i));
    return list;
  }();
  static const std::vector<float> bias = [] {
    std::vector<float> list;
    for (std::size_t i = 0; i < 1000; ++i) list.push_back(bias_at(i));
    return list;
  }();
  const auto each = [](std::vector<double> row, const std::function<double(double, std::size_t)>& function) {
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = function(row[i], i);
    return row;
  };
  return {
      {"softmax",
       [](const LoopTable& table, const float* x, float* y, std::int64_t rows, std::int64_t count) {
         table.softmax(x, y, rows, count);
       },
       [=](const std::vector<double>& row) {
         const double top = *std::max_element(row.begin(), row.end());
         const double mean = mean_of(row, [&](double x) { return std::exp(x - top); });
         return each(row,
                     [&](double x, std::size_t) { return std::exp(x - top) / mean / static_cast<double>(row.size()); });
       }},
      {"layer_norm",
       [](const LoopTable& table, const float* x, float* y, std::int64_t rows, std::int64_t count) {
         table.layer_norm(x, scales.data(), bias.data(), y, rows, count, row_epsilon);
       },
       [=](const std::vector<double>& row) {
         const double mean = mean_of(row, [](double x) { return x; });
         const double variance = mean_of(row, [&](double x) { return (x - mean) * (x - mean); });
         return each(row, [&](double x, std::size_t i) {
           return (x - mean) / std::sqrt(variance + static_cast<double>(row_epsilon)) *
                      static_cast<double>(scale_at(i)) +
                  static_cast<double>(bias_at(i));
         });
       }},
      {"rms_norm",
       [](const LoopTable& table, const float* x, float* y, std::int64_t rows, std::int64_t count) {
         table.rms_norm(x, scales.data(), y, rows, count, row_epsilon);
       },
       [=](const std::vector<double>& row) {
         const double squares = mean_of(row, [](double x) { return x * x; });
         return each(row, [&](double x, std::size_t i) {
           return x / std::sqrt(squares + static_cast<double>(row_epsilon)) * static_cast<double>(scale_at(i));
         });
       }},
  };
}

std::vector<std::size_t> lengths_of_rows() {
  std::vector<std::size_t> lengths;
  for (std::size_t length = 1; length <= 70; ++length) lengths.push_back(length);
  for (const std::size_t length : {80, 127, 255, 256, 257, 300}) lengths.push_back(length);
  return lengths;
}

std::uint32_t bits_of(float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Right, the same to the bit with and without rows beside it and in place, and nothing is written behind.
TEST(Loops, Rows) {
  constexpr std::size_t most = 35;
  for (const LoopTable* table : tables())
    for (const RowsOf& of : loops_over_rows())
      for (const std::size_t length : lengths_of_rows()) {
        const auto count = static_cast<std::int64_t>(length);
        std::vector<float> x(most * length), alone(most * length);
        for (std::size_t i = 0; i < x.size(); ++i)
          x[i] = static_cast<float>(std::sin(static_cast<double>(i * i)) * 4 + 1);
        for (std::size_t r = 0; r < most; ++r) {
          of.loop(*table, x.data() + r * length, alone.data() + r * length, 1, count);
          std::vector<double> row;
          for (std::size_t i = 0; i < length; ++i) row.push_back(static_cast<double>(x[r * length + i]));
          const std::vector<double> exact = of.exact(row);
          for (std::size_t i = 0; i < length; ++i)
            ASSERT_NEAR(static_cast<double>(alone[r * length + i]), exact[i], 1e-5) << of.name << " " << length;
        }
        for (const std::size_t rows : {std::size_t{2}, std::size_t{7}, std::size_t{16}, most}) {
          std::vector<float> y(x.size() + 1, -7.0F), in_place = x;
          of.loop(*table, x.data(), y.data(), static_cast<std::int64_t>(rows), count);
          of.loop(*table, in_place.data(), in_place.data(), static_cast<std::int64_t>(rows), count);
          for (std::size_t i = 0; i < rows * length; ++i) {
            ASSERT_EQ(bits_of(y[i]), bits_of(alone[i]))
                << of.name << " of " << rows << " rows of " << length << ", " << table->instruction_set;
            ASSERT_EQ(bits_of(in_place[i]), bits_of(alone[i])) << of.name << " in place";
          }
          ASSERT_EQ(y[rows * length], -7.0F) << of.name << " of " << rows << " rows of " << length;
        }
      }
}

// A row of special numbers is special by itself.
TEST(Loops, RowsOfSpecialNumbers) {
  const float tiny = 1e-41F;  // subnormal
  for (const LoopTable* table : tables())
    for (const RowsOf& of : loops_over_rows())
      for (const std::size_t length : lengths_of_rows()) {
        const auto count = static_cast<std::int64_t>(length);
        const std::size_t place = length * 7 / 11;
        std::vector<float> x(5 * length), y(x.size()), plain(length);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % length % 6);
        of.loop(*table, x.data(), plain.data(), 1, count);
        x[place] = NAN;
        x[length + place] = HUGE_VALF;
        x[2 * length + place] = -HUGE_VALF;
        for (std::size_t i = 0; i < length; ++i) x[3 * length + i] = tiny;
        of.loop(*table, x.data(), y.data(), 5, count);
        const bool is_softmax = std::string(of.name) == "softmax", is_rms = std::string(of.name) == "rms_norm";
        for (std::size_t i = 0; i < length; ++i) {
          const auto at = [&](std::size_t row) { return y[row * length + i]; };
          const std::string text = std::string(of.name) + " " + std::to_string(length) + " " + table->instruction_set;
          ASSERT_TRUE(std::isnan(at(0))) << text;
          if (is_softmax) {
            ASSERT_TRUE(std::isnan(at(1))) << text;
            ASSERT_EQ(std::isnan(at(2)), length == 1) << text;
            ASSERT_TRUE(length == 1 || i != place || at(2) == 0) << text;
            ASSERT_NEAR(at(3), 1.0F / static_cast<float>(length), 1e-6) << text;
          } else {
            // The quotient by an infinite root is 0, but of what is infinite itself.
            ASSERT_EQ(std::isnan(at(1)), !is_rms || i == place) << text;
            ASSERT_EQ(std::isnan(at(2)), !is_rms || i == place) << text;
            ASSERT_NEAR(at(3), is_rms ? 0.0F : bias_at(i), 1e-6) << text;
          }
          ASSERT_EQ(bits_of(at(4)), bits_of(plain[i])) << text;
        }
      }
}

// x times what is 0 or 1 there; of -inf that is no number.
TEST(Loops, LinearUnitsFarFromZero) {
  const std::vector<float> far = {-120.0F, -1e30F, 120.0F, 1e30F, HUGE_VALF, -HUGE_VALF, -0.0F};
  for (const LoopTable* table : tables())
    for (const char* const name : {"gelu", "gelu_tanh", "silu", "quick_gelu"}) {
      std::vector<float> y(far.size());
      entry(*table, name).loop(far.data(), y.data(), static_cast<std::int64_t>(far.size()), 0, 0);
      for (std::size_t i = 0; i < 5; ++i) ASSERT_EQ(y[i], far[i] < 0 ? 0.0F : far[i]) << name << far[i];
      ASSERT_TRUE(std::isnan(y[5])) << name;
      ASSERT_EQ(bits_of(y[6]), bits_of(-0.0F)) << name;
    }
}

}  // namespace
}  // namespace taso::cpu
