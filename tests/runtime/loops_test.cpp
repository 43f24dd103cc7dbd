#include "runtime/cpu/loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

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
  double from, to;
  bool absolute;  ///< The result cancels: the error counts against max(1, |x|).
};

TEST(Loops, FunctionsAreAccurate) {
  const std::vector<Function> functions = {
      {"exp", [](double x) { return std::exp(x); }, -80, 80, false},
      {"log", [](double x) { return std::log(x); }, 1e-30, 1e-3, false},
      {"log", [](double x) { return std::log(x); }, 2, 1e6, false},
      {"tanh", [](double x) { return std::tanh(x); }, -10, 10, false},
      {"erf", [](double x) { return std::erf(x); }, -5, 5, false},
      {"sin", [](double x) { return std::sin(x); }, -3, 3, false},
      {"sin", [](double x) { return std::sin(x); }, -1e5, 1e5, true},
      {"cos", [](double x) { return std::cos(x); }, -1e5, 1e5, true},
      {"tan", [](double x) { return std::tan(x); }, -1.5, 1.5, false},
      {"atan", [](double x) { return std::atan(x); }, -50, 50, false},
      {"sinh", [](double x) { return std::sinh(x); }, -80, 80, false},
      {"cosh", [](double x) { return std::cosh(x); }, -80, 80, false},
      {"asinh", [](double x) { return std::asinh(x); }, -1e6, 1e6, false},
      {"floor", [](double x) { return std::floor(x); }, -9, 9, false},
      {"ceil", [](double x) { return std::ceil(x); }, -9, 9, false},
      {"round", [](double x) { return std::nearbyint(x); }, -9, 9, false},
      {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -80, 80, false},
      {"gelu", [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, -8, 8, true},
      {"gelu_tanh",
       [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x))); },
       -8, 8, true},
      {"silu", [](double x) { return x / (1 + std::exp(-x)); }, -80, 80, true},
      {"quick_gelu", [](double x) { return x / (1 + std::exp(-1.702 * x)); }, -45, 45, true},
      {"hard_swish", [](double x) { return x * std::fmin(1, std::fmax(0, x / 6 + 0.5)); }, -8, 8, true},
      {"hard_sigmoid", [](double x) { return std::fmin(1, std::fmax(0, x / 6 + 0.5)); }, -8, 8, true},
      {"sqrt", [](double x) { return std::sqrt(x); }, 0, 1e6, false},
      {"relu", [](double x) { return std::fmax(x, 0); }, -3, 3, false},
  };
  constexpr int count = 20001;
  for (const LoopTable* table : tables())
    for (const Function& function : functions) {
      std::vector<float> x(count), y(count);
      for (int i = 0; i < count; ++i)
        x[static_cast<std::size_t>(i)] =
            static_cast<float>(function.from + (function.to - function.from) * i / (count - 1));
      entry(*table, function.name).loop(x.data(), y.data(), count, 0, 0);
      double worst = 0;
      for (int i = 0; i < count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double exact = function.exact(static_cast<double>(x[at]));
        const double size = function.absolute ? std::fmax(1, std::fabs(static_cast<double>(x[at]))) : std::fabs(exact);
        if (size > 0) worst = std::fmax(worst, std::fabs(static_cast<double>(y[at]) - exact) / size);
      }
      EXPECT_LT(worst, 1e-6) << function.name << " with " << table->instruction_set;
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
      table->softmax(x.data(), y.data(), count);
      table->softmax(in_place.data(), in_place.data(), count);
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
        table->softmax(z.data(), z.data(), count);
        EXPECT_TRUE(std::isnan(z[static_cast<std::size_t>(count / 2)])) << table->instruction_set << count;
      }
      std::vector<float> hidden(x.size(), -std::numeric_limits<float>::infinity());
      table->softmax(hidden.data(), hidden.data(), count);
      for (const float one : hidden) EXPECT_TRUE(std::isnan(one)) << table->instruction_set << count;
    }
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

TEST(Loops, Transpose) {
  for (const LoopTable* table : tables())
    for (const auto& [rows, columns] : {std::pair{1, 1}, {16, 16}, {17, 33}, {3, 40}, {40, 3}}) {
      std::vector<float> x(static_cast<std::size_t>(rows * columns)), y(x.size(), -1.0f);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
      // x is [columns, rows], y is [rows, columns].
      table->transpose(x.data(), rows, y.data(), columns, rows, columns);
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j)
          ASSERT_EQ(y[static_cast<std::size_t>(i * columns + j)], x[static_cast<std::size_t>(j * rows + i)]);
    }
}

}  // namespace
}  // namespace taso::cpu
