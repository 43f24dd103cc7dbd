/// Results of graphs in double precision, compared up to the order of sums.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "operators/evaluate.h"

namespace taso::test {

using Doubles = std::vector<RingTensor<double>>;

/// `what` is said of a difference.
inline void expect_close(const Doubles& expected, const Doubles& actual, const std::string& what) {
  ASSERT_EQ(expected.size(), actual.size()) << what;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(expected[i].shape, actual[i].shape) << what;
    EXPECT_EQ(expected[i].integers, actual[i].integers) << what;
    ASSERT_EQ(expected[i].elements.size(), actual[i].elements.size()) << what;
    for (std::size_t at = 0; at < expected[i].elements.size(); ++at)
      ASSERT_NEAR(expected[i].elements[at], actual[i].elements[at], 1e-9 * (1 + std::abs(expected[i].elements[at])))
          << what << " output " << i << " element " << at;
  }
}

}  // namespace taso::test
