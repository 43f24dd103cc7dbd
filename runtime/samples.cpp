#include <algorithm>
#include <utility>

#include "runtime/measure.h"

namespace taso {

double quantile(const std::vector<double>& sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = position - static_cast<double>(below);
  return sorted[below] * (1 - share) + sorted[above] * share;
}

Measurement summarize(std::vector<double> samples) {
  TASO_CHECK(!samples.empty(), "no samples to summarise");
  std::sort(samples.begin(), samples.end());
  Measurement measurement;
  measurement.median_us = quantile(samples, 0.5);
  measurement.minimum_us = samples.front();
  measurement.spread =
      measurement.median_us > 0 ? (quantile(samples, 0.75) - quantile(samples, 0.25)) / measurement.median_us : 0.0;
  measurement.samples = static_cast<int>(samples.size());
  return measurement;
}

}  // namespace taso
