#include "support/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace taso {
namespace {

TEST(Random, IsSplitMix64) {
  // The reference implementation of Steele, Lea and Flood with seed 1234567.
  Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317ULL);
  EXPECT_EQ(random.next(), 3203168211198807973ULL);
  EXPECT_EQ(random.next(), 9817491932198370423ULL);
}

TEST(Random, PurposesAreIndependent) {
  EXPECT_EQ(Random(1, "a").next(), Random(1, "a").next());
  EXPECT_NE(Random(1, "a").next(), Random(1, "b").next());
  EXPECT_NE(Random(1, "a").next(), Random(2, "a").next());
}

TEST(Random, Distributions) {
  Random random(3);
  double sum = 0, squares = 0;
  constexpr int count = 20000;
  for (int i = 0; i < count; ++i) {
    const double u = random.uniform();
    EXPECT_TRUE(u >= 0 && u < 1);
    EXPECT_LT(random.below(7), 7U);
    const double n = random.normal();
    EXPECT_TRUE(std::isfinite(n));
    sum += n;
    squares += n * n;
  }
  EXPECT_NEAR(sum / count, 0, 0.03);
  EXPECT_NEAR(squares / count, 1, 0.05);
}

}  // namespace
}  // namespace taso
