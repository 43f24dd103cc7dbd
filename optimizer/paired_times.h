/// Which of several graphs is faster, by samples taken in turn: a sequential test.
///
/// In each round every graph runs once, so drift of the machine hits all of them alike, and the ratio of two times of
/// one round says more than either. The median of the ratios has a confidence interval from order statistics alone,
/// whatever the distribution. It is looked at after a few numbers of rounds, each look with its share of the error that
/// is allowed in all (Bonferroni), and rounds go on only while something is undecided.
///
/// Two executors of one graph may differ for good (where their memory lies): the first graph runs twice, and what its
/// two copies differ by is never called a gain of another one.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "optimizer/target.h"

namespace taso {

/// Of all graphs that are no faster than the references, at most this share is called faster.
inline constexpr double allowed_error = 0.01;
/// Differences below this are never called a gain, however quiet the machine seems.
inline constexpr double least_gain = 0.015;

/// The median of samples with an interval that holds the true one but for a probability `error`; from minus to plus
/// infinity if the samples are too few to say so.
struct MedianInterval {
  double median = 0, low = 0, high = 0;
};
[[nodiscard]] MedianInterval median_interval(std::vector<double> samples, double error);

/// Samples of graphs that are compared with references, the first of which has a copy, as executors of one run.
class PairedTimes {
 public:
  /// `is_reference`: per graph; the first one is. Samples are those of the graphs and then of the first one's copy.
  explicit PairedTimes(std::vector<char> is_reference) : is_reference_(std::move(is_reference)) {}

  /// To be called after every round: clears the entries of graphs that need no further samples, and all of them once
  /// everything is decided. As WholeOptions::after_round.
  void after_round(const std::vector<std::vector<double>>& samples, std::vector<char>& goes_on) const;
  /// The outcome. Every graph has a sample at least.
  [[nodiscard]] GraphTimes times(const std::vector<std::vector<double>>& samples) const;

 private:
  /// Seconds of a graph over those of the reference, of the rounds that both took part in.
  [[nodiscard]] std::vector<double> ratios(const std::vector<std::vector<double>>& samples, std::size_t graph,
                                           std::size_t reference) const;
  [[nodiscard]] double difference_of_copies(const std::vector<std::vector<double>>& samples) const;
  std::vector<char> is_reference_;
};

/// Whether what is chosen by these times may be chosen by chance: the best of the others is about as much faster than
/// the better reference as the noise, from half to half as much again.
[[nodiscard]] bool is_near_the_noise(const GraphTimes& times, const std::vector<char>& is_reference);

}  // namespace taso
