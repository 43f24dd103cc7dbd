#include "optimizer/paired_times.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "support/status.h"

namespace taso {
namespace {

constexpr std::size_t few_rounds = 17;
/// What two copies differ by is believed as far as an interval goes that holds the truth as often as not: few rounds
/// say little of it, and their noise is in the intervals of what is compared already.
constexpr double probable_error = 0.5;
/// Graphs that are so much slower than a reference in each of the first rounds are not run any more.
constexpr std::size_t first_rounds = 3;
constexpr double clearly_slower = 1.05;

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// The mean of two executors' samples, of the rounds that both took part in; beyond them those of the first.
std::vector<double> mean_of(const std::vector<double>& one, const std::vector<double>& copy) {
  std::vector<double> mean = one;
  for (std::size_t i = 0; i < std::min(one.size(), copy.size()); ++i) mean[i] = (one[i] + copy[i]) / 2;
  return mean;
}

std::vector<double> ratios_of(const std::vector<double>& of, const std::vector<double>& to) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(of.size(), to.size()); ++i) ratios.push_back(of[i] / to[i]);
  return ratios;
}

/// By how much an interval is wider than its median says, at most.
double width_of(const MedianInterval& interval) {
  return std::max(interval.high - interval.median, interval.median - interval.low);
}

/// Smaller gains are not taken from one run of executors: their memory may lie better for good.
constexpr double sure_gain = 0.1;

/// Whether a graph with these seconds seems to be faster than one with others, and is not surely so.
bool is_open(double seconds, double than, double noise) {
  const double gain = 1 - seconds / than;
  return gain > least_gain / 2 && gain <= std::max(noise, sure_gain);
}

/// Graphs for a final: the best reference, what is to be judged, and the other references. None if nothing is open.
std::vector<std::size_t> finalists_of(const GraphTimes& times, const std::vector<char>& is_reference,
                                      std::size_t fallback, const std::vector<std::vector<double>>& samples) {
  std::vector<std::size_t> references;
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < is_reference.size(); ++i) {
    if (samples[i].size() < samples[0].size()) continue;  // far behind
    if (is_reference[i] != 0)
      references.push_back(i);
    else if (!best || times.seconds[i] < times.seconds[*best])
      best = i;
  }
  const auto is_faster = [&](std::size_t a, std::size_t b) { return times.seconds[a] < times.seconds[b]; };
  std::stable_sort(references.begin(), references.end(), is_faster);
  const double reference = times.seconds[references[0]];
  if (best && times.seconds[*best] < reference * (1 - std::max(times.noise, sure_gain))) return {};
  if (best && is_open(times.seconds[*best], reference, times.noise)) {
    references.insert(references.begin() + 1, *best);
    return references;
  }
  const bool leads =
      references[0] != fallback && std::find(references.begin(), references.end(), fallback) != references.end();
  if (leads && is_open(reference, times.seconds[fallback], times.noise)) return {fallback, references[0]};
  return {};
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

PairedTimes::PairedTimes(std::vector<char> is_reference, Looks looks, bool is_final)
    : is_reference_(std::move(is_reference)), looks_(looks), is_final_(is_final) {
  const std::size_t graphs = is_reference_.size();
  TASO_CHECK(graphs > (is_final_ ? 1U : 0U), "nothing to compare");
  for (std::size_t graph = 1; graph < (is_final_ ? 2 : graphs); ++graph)
    for (std::size_t reference = 0; reference < (is_final_ ? graphs : graph); ++reference)
      if (reference != graph && is_reference_[reference] != 0) pairs_.push_back({graph, reference});
}

std::vector<std::size_t> PairedTimes::executors() const {
  std::vector<std::size_t> graphs(is_reference_.size());
  std::iota(graphs.begin(), graphs.end(), std::size_t{0});
  if (is_final_) graphs.push_back(1);
  graphs.push_back(0);
  return graphs;
}

std::size_t PairedTimes::copy_of(std::size_t graph) const {
  const std::size_t graphs = is_reference_.size();
  if (graph == 0) return is_final_ ? graphs + 1 : graphs;
  return is_final_ && graph == 1 ? graphs : graph;
}

std::vector<double> PairedTimes::ratios(const Samples& samples, const Pair& pair) const {
  return ratios_of(mean_of(samples[pair.graph], samples[copy_of(pair.graph)]),
                   mean_of(samples[pair.reference], samples[copy_of(pair.reference)]));
}

MedianInterval PairedTimes::interval(const Samples& samples, const Pair& pair) const {
  return median_interval(ratios(samples, pair), looks_.error_of_one());
}

double PairedTimes::difference_of_copies(const Samples& samples, double error) const {
  const auto difference = [&](std::size_t graph) {
    const MedianInterval seen = median_interval(ratios_of(samples[copy_of(graph)], samples[graph]), error);
    return std::max({0.0, seen.low - 1, 1 - seen.high});
  };
  return is_final_ ? (difference(0) + difference(1)) / 2 : difference(0);
}

double PairedTimes::noise_of(const Samples& samples) const {
  double widest = 0;
  const std::size_t rounds = samples[0].size();
  for (const Pair& pair : pairs_) {
    // What was given up early is far away: its few samples say nothing of the noise.
    if (samples[pair.graph].size() < std::max(rounds, first_rounds + 1) || samples[pair.reference].size() < rounds)
      continue;
    const double width = width_of(interval(samples, pair));
    widest = std::max(widest, std::isfinite(width) ? width : 1.0);
  }
  return std::max(least_gain, difference_of_copies(samples, probable_error) + widest);
}

void PairedTimes::after_round(const Samples& samples, std::vector<char>& goes_on) const {
  const std::size_t rounds = samples[0].size();
  bool alone = true;
  for (std::size_t graph = 1; graph < is_reference_.size(); ++graph) {
    const std::vector<double> slower = ratios(samples, {graph, 0});
    if (rounds == first_rounds &&
        std::all_of(slower.begin(), slower.end(), [](double ratio) { return ratio > clearly_slower; }))
      goes_on[graph] = goes_on[copy_of(graph)] = 0;
    alone = alone && (goes_on[graph] == 0 || (is_final_ && graph > 1));
  }
  if (alone && rounds >= first_rounds) std::fill(goes_on.begin(), goes_on.end(), 0);
  if (std::find(looks_.rounds.begin(), looks_.rounds.end(), rounds) == looks_.rounds.end()) return;
  const double noise = noise_of(samples);
  const double least = std::max(least_gain, difference_of_copies(samples, looks_.error_of_one()));
  const auto decided = [&](const Pair& pair) {
    if (goes_on[pair.graph] == 0 || goes_on[pair.reference] == 0) return true;
    const MedianInterval seen = interval(samples, pair);
    // A gain that would have to be twice what the samples say is not waited for.
    const bool out_of_reach = rounds >= few_rounds && seen.median > 1 - least / 2;
    return seen.median < 1 - noise || seen.low > 1 - least || out_of_reach;
  };
  if (std::all_of(pairs_.begin(), pairs_.end(), decided)) std::fill(goes_on.begin(), goes_on.end(), 0);
}

GraphTimes PairedTimes::times(const Samples& samples) const {
  TASO_CHECK(samples.size() == executors().size(), "samples of each executor");
  std::vector<double> first = samples[0];
  first.insert(first.end(), samples.back().begin(), samples.back().end());
  GraphTimes times;
  times.seconds.push_back(median_of(first) * 1e-6);
  for (std::size_t graph = 1; graph < is_reference_.size(); ++graph)
    times.seconds.push_back(times.seconds[0] * median_of(ratios(samples, {graph, 0})));
  times.noise = noise_of(samples);
  return times;
}

Expected<GraphTimes> compare_in_turn(std::vector<char> is_reference, std::size_t fallback, const SampleInTurn& sample) {
  using Samples = std::vector<std::vector<double>>;
  TASO_CHECK(!is_reference.empty(), "nothing to time");
  is_reference[0] = 1;
  std::vector<std::size_t> all(is_reference.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  const PairedTimes first(is_reference, first_looks);
  TASO_ASSIGN(const Samples samples, sample(first, all));
  GraphTimes times = first.times(samples);
  const std::vector<std::size_t> finalists = finalists_of(times, is_reference, fallback, samples);
  if (finalists.empty()) return times;
  std::vector<char> references(finalists.size(), 1);
  references[1] = is_reference[finalists[1]];
  const PairedTimes last(std::move(references), final_looks, true);
  const Expected<Samples> of_final = sample(last, finalists);
  if (!of_final) {
    times.cut_short = of_final.error();
    return times;
  }
  const GraphTimes outcome = last.times(*of_final);
  const double scale = times.seconds[finalists[0]] / outcome.seconds[0];
  for (std::size_t i = 1; i < finalists.size(); ++i) times.seconds[finalists[i]] = scale * outcome.seconds[i];
  times.final = GraphTimes::Final{finalists[1], outcome.noise};
  return times;
}

bool is_near_the_noise(const GraphTimes& times, const std::vector<char>& is_reference) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto near = [](double seconds, double than, double noise) {
    const double gain = 1 - seconds / than;
    return std::isfinite(seconds) && std::isfinite(than) && gain > 0.5 * noise && gain < 1.5 * noise;
  };
  const std::size_t judged = times.final ? times.final->graph : is_reference.size();
  double reference = infinity, best = infinity;
  for (std::size_t i = 0; i < is_reference.size(); ++i) {
    if (i == judged) continue;
    double& least = is_reference[i] != 0 ? reference : best;
    least = std::min(least, times.seconds[i]);
  }
  return times.final ? near(times.seconds[judged], reference, times.final->noise) : near(best, reference, times.noise);
}

}  // namespace taso
