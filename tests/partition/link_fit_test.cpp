// Links from times of messages.
#include "partition/link_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace taso {
namespace {

double sum_of_squares(const LinkFit& fit, const std::vector<MessageTime>& times) {
  double sum = 0;
  for (const MessageTime& time : times) sum += std::pow(fit.seconds(time.bytes) / time.seconds - 1, 2);
  return sum;
}

TEST(LinkFit, ALinkIsFound) {
  std::vector<MessageTime> times;
  for (double bytes = 4; bytes < 1e8; bytes *= 16) times.push_back({bytes, 2e-6 + bytes / 4e9});
  const LinkFit fit = fit_link(times);
  EXPECT_NEAR(fit.latency, 2e-6, 1e-12);
  EXPECT_NEAR(fit.bandwidth, 4e9, 1e3);
}

TEST(LinkFit, NoLinkNearByFitsBetter) {
  std::vector<MessageTime> times;
  double factor = 0.8;
  for (double bytes = 4; bytes < 1e8; bytes *= 4, factor = 1.9 - factor)
    times.push_back({bytes, factor * (3e-6 + bytes / 2e9)});
  const LinkFit fit = fit_link(times);
  for (const double latency : {0.99, 1.0, 1.01})
    for (const double bandwidth : {0.99, 1.0, 1.01})
      EXPECT_GE(sum_of_squares({fit.latency * latency, fit.bandwidth * bandwidth}, times), sum_of_squares(fit, times));
}

TEST(LinkFit, NothingIsNegative) {
  const std::vector<MessageTime> superlinear = {{1e3, 1e-9}, {1e6, 1e-3}};
  EXPECT_EQ(fit_link(superlinear).latency, 0);
  EXPECT_GT(fit_link(superlinear).bandwidth, 0);
  const std::vector<MessageTime> falling = {{1e3, 2e-3}, {1e6, 1e-3}};
  EXPECT_GT(fit_link(falling).latency, 0);
  EXPECT_GT(fit_link(falling).bandwidth, 0);
}

}  // namespace
}  // namespace taso
