#include "optimizer/paired_times.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "support/status.h"

namespace taso {
namespace {

/// After so many rounds it is looked at what is decided.
constexpr std::array<std::size_t, 6> looks = {11, 17, 27, 45, 90, 200};
constexpr double error_of_a_look = allowed_error / static_cast<double>(looks.size());
constexpr std::size_t few_rounds = 17;
/// Graphs that are so much slower than a reference in each of the first rounds are not run any more.
constexpr std::size_t first_rounds = 3;
constexpr double clearly_slower = 1.05;

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

MedianInterval median_interval(std::vector<double> samples, double error) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  TASO_CHECK(!samples.empty(), "a median of nothing");
  std::sort(samples.begin(), samples.end());
  const std::size_t n = samples.size();
  MedianInterval interval{median_of(samples), -infinity, infinity};
  // The number of samples below the true median is binomial: `tail` is the probability that it is at most `cut`.
  double term = std::pow(0.5, static_cast<double>(n)), tail = term;
  for (std::size_t cut = 0; 2 * tail <= error && 2 * cut < n; ++cut) {
    interval.low = samples[cut];
    interval.high = samples[n - 1 - cut];
    term *= static_cast<double>(n - cut) / static_cast<double>(cut + 1);
    tail += term;
  }
  return interval;
}

std::vector<double> PairedTimes::ratios(const std::vector<std::vector<double>>& samples, std::size_t graph,
                                        std::size_t reference) const {
  const std::vector<double>& copy = samples.back();
  std::vector<double> all;
  for (std::size_t i = 0; i < std::min(samples[graph].size(), samples[reference].size()); ++i) {
    double time = samples[reference][i];
    if (reference == 0 && graph + 1 != samples.size() && i < copy.size()) time = (time + copy[i]) / 2;
    all.push_back(samples[graph][i] / time);
  }
  return all;
}

double PairedTimes::difference_of_copies(const std::vector<std::vector<double>>& samples) const {
  return std::abs(median_of(ratios(samples, samples.size() - 1, 0)) - 1);
}

void PairedTimes::after_round(const std::vector<std::vector<double>>& samples, std::vector<char>& goes_on) const {
  const std::size_t rounds = samples[0].size(), graphs = is_reference_.size();
  if (rounds == first_rounds) {
    for (std::size_t graph = 1; graph < graphs; ++graph) {
      const std::vector<double> slower = ratios(samples, graph, 0);
      if (std::all_of(slower.begin(), slower.end(), [](double ratio) { return ratio > clearly_slower; }))
        goes_on[graph] = 0;
    }
  }
  const bool alone = std::count(goes_on.begin(), goes_on.end(), 1) <= 2;  // the first graph and its copy
  if (alone && rounds >= first_rounds) std::fill(goes_on.begin(), goes_on.end(), 0);
  if (std::find(looks.begin(), looks.end(), rounds) == looks.end()) return;
  const double copies = difference_of_copies(samples), least = std::max(least_gain, copies);
  const auto decided = [&](std::size_t graph, std::size_t reference) {
    const MedianInterval interval = median_interval(ratios(samples, graph, reference), error_of_a_look);
    const double width = std::max(interval.high - interval.median, interval.median - interval.low);
    // A gain that would have to be twice what the samples say is not waited for.
    const bool out_of_reach = rounds >= few_rounds && interval.median > 1 - least / 2;
    return interval.median < 1 - std::max(least_gain, copies + width) || interval.low > 1 - least || out_of_reach;
  };
  for (std::size_t graph = 1; graph < graphs; ++graph)
    for (std::size_t reference = 0; reference < graph; ++reference)
      if (goes_on[graph] != 0 && goes_on[reference] != 0 && is_reference_[reference] != 0 && !decided(graph, reference))
        return;
  std::fill(goes_on.begin(), goes_on.end(), 0);
}

GraphTimes PairedTimes::times(const std::vector<std::vector<double>>& samples) const {
  const std::size_t graphs = is_reference_.size();
  TASO_CHECK(samples.size() == graphs + 1, "one graph has a copy");
  std::vector<double> first = samples[0];
  first.insert(first.end(), samples.back().begin(), samples.back().end());
  GraphTimes times;
  times.seconds.push_back(median_of(first) * 1e-6);
  double widest = 0;
  const std::size_t rounds = samples[0].size();
  for (std::size_t graph = 1; graph < graphs; ++graph) {
    times.seconds.push_back(times.seconds[0] * median_of(ratios(samples, graph, 0)));
    // What was given up early is far away: its few samples say nothing of the noise.
    if (samples[graph].size() < std::max(rounds, first_rounds + 1)) continue;
    for (std::size_t reference = 0; reference < graph; ++reference) {
      if (is_reference_[reference] == 0 || samples[reference].size() < rounds) continue;
      const MedianInterval interval = median_interval(ratios(samples, graph, reference), error_of_a_look);
      const double width = std::max(interval.high - interval.median, interval.median - interval.low);
      widest = std::max(widest, std::isfinite(width) ? width : 1.0);
    }
  }
  times.noise = std::max(least_gain, difference_of_copies(samples) + widest);
  return times;
}

bool is_near_the_noise(const GraphTimes& times, const std::vector<char>& is_reference) {
  double reference = std::numeric_limits<double>::infinity(), best = reference;
  for (std::size_t i = 0; i < is_reference.size(); ++i) {
    double& least = is_reference[i] != 0 ? reference : best;
    least = std::min(least, times.seconds[i]);
  }
  const double gain = 1 - best / reference;
  return std::isfinite(best) && gain > 0.5 * times.noise && gain < 1.5 * times.noise;
}

}  // namespace taso
