/// Which of several graphs is faster, by samples taken in turn: a sequential test.
///
/// In each round every graph runs once, so drift of the machine hits all of them alike, and the ratio of two times of
/// one round says more than either. The median of the ratios has a confidence interval from order statistics alone,
/// whatever the distribution. It is looked at after a few numbers of rounds, each look with its share of the error that
/// is allowed in all (Bonferroni), and rounds go on only while something is undecided.
///
/// Two executors of one graph may differ for good (where their memory lies): the first graph runs twice, and what its
/// two copies differ by, as far as their samples show that they do, is never called a gain of another one.
///
/// The more graphs take turns, the fewer rounds there are, and the best of several by few rounds is partly the one that
/// was lucky. So there are two stages (compare_in_turn): all graphs with few rounds, and where the best of them then
/// seems faster and is not surely so (by more than the noise, and 10 %), a final between it and the references, opened
/// anew, in which it and the best reference run twice, and by whose samples alone it is judged.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "optimizer/target.h"
#include "support/status.h"

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

/// After which numbers of rounds it is looked at what is decided, and with what error in all. There are no more rounds
/// than the last one says.
struct Looks {
  std::span<const std::size_t> rounds;
  double error = allowed_error;
  [[nodiscard]] double error_of_one() const { return error / static_cast<double>(rounds.size()); }
};
inline constexpr std::array<std::size_t, 6> rounds_of_looks = {11, 17, 27, 45, 90, 200};
/// Where there is one stage; of the first of two, and of the final.
inline constexpr Looks all_looks{rounds_of_looks, allowed_error};
inline constexpr Looks first_looks{std::span(rounds_of_looks).first(3), allowed_error / 2};
inline constexpr Looks final_looks{std::span(rounds_of_looks).subspan(1), allowed_error / 2};

/// Samples of graphs that are compared with references, the first of which has a copy, as executors of one run.
class PairedTimes {
 public:
  /// `is_reference`: per graph; the first one is. In a final the second graph alone is judged, and has a copy, too; all
  /// others are references.
  explicit PairedTimes(std::vector<char> is_reference, Looks looks = all_looks, bool is_final = false);

  /// The graph that each executor runs, in the order in which they are opened and run in each round: all graphs, then
  /// the copies backwards. So what executors gain or lose by being later ones (they find other memory) is in a final
  /// the same for all graphs, on an average of their copies. Samples are those of executors in this order.
  [[nodiscard]] std::vector<std::size_t> executors() const;
  [[nodiscard]] bool is_final() const { return is_final_; }
  /// There are no more rounds.
  [[nodiscard]] std::size_t most_rounds() const { return looks_.rounds.back(); }
  /// To be called after every round: clears the entries of executors that need no further samples, and all of them once
  /// everything is decided. As WholeOptions::after_round.
  void after_round(const std::vector<std::vector<double>>& samples, std::vector<char>& goes_on) const;
  /// The outcome. Every executor has a sample at least.
  [[nodiscard]] GraphTimes times(const std::vector<std::vector<double>>& samples) const;

 private:
  using Samples = std::vector<std::vector<double>>;
  /// A graph that is judged, and what it is compared with.
  struct Pair {
    std::size_t graph = 0, reference = 0;
  };
  /// The place of a graph's copy among the executors; that of the graph itself if it has none.
  [[nodiscard]] std::size_t copy_of(std::size_t graph) const;
  /// Seconds of a graph over those of another one, of the rounds that both took part in; where one has a copy, the mean
  /// of both.
  [[nodiscard]] std::vector<double> ratios(const Samples& samples, const Pair& pair) const;
  [[nodiscard]] MedianInterval interval(const Samples& samples, const Pair& pair) const;
  /// Relative difference of two graphs that may come from which of their copies one looks at: the slower copy of a
  /// faster graph must be faster than the faster one of the other. A graph without a copy counts like the first one.
  /// The least one in the intervals that miss the truth with this probability.
  [[nodiscard]] double difference_of_copies(const Samples& samples, double error) const;
  /// GraphTimes::noise.
  [[nodiscard]] double noise_of(const Samples& samples) const;
  std::vector<char> is_reference_;
  Looks looks_;
  bool is_final_;
  std::vector<Pair> pairs_;  ///< All that is compared.
};

/// Runs graphs in turn and takes samples for a comparison, in microseconds: executors() says of which graphs, by their
/// places among those of `of`. The executors are new ones.
using SampleInTurn = std::function<Expected<std::vector<std::vector<double>>>(const PairedTimes& paired,
                                                                              std::span<const std::size_t> of)>;

/// Compares graphs in two stages. `is_reference`: per graph; the first one is. `fallback`: the reference that is chosen
/// where nothing is shown to be faster; another one that seems to be has a final, too. A final that ends in an error
/// leaves the times of the first stage (GraphTimes::cut_short).
[[nodiscard]] Expected<GraphTimes> compare_in_turn(std::vector<char> is_reference, std::size_t fallback,
                                                   const SampleInTurn& sample);

/// Whether what is chosen by these times may be chosen by chance: the best of the others (the graph of the final, if
/// there was one) is about as much faster than the better reference as the noise, from half to half as much again.
[[nodiscard]] bool is_near_the_noise(const GraphTimes& times, const std::vector<char>& is_reference);

}  // namespace taso
