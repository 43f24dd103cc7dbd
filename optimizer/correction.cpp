#include "optimizer/correction.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "optimizer/choice.h"

namespace taso {
namespace {

/// Prices are also wrong where the measured ratio of two graphs is so many times the predicted one.
constexpr double wrong_ratio = 1.25;
/// A price is corrected where it is wrong by this share of the larger value, and with all launches of the kernel by
/// that share of the graph's time.
constexpr double wrong_share = 0.25, share_of_graph = 0.02;

/// Two graphs, by their places among the competitors, whose times contradict what is predicted the most.
std::optional<std::pair<std::size_t, std::size_t>> contradiction(const std::vector<double>& predicted,
                                                                 const std::vector<double>& times, double noise) {
  std::optional<std::pair<std::size_t, std::size_t>> worst;
  // Where the order is another one, the search goes the wrong way.
  std::pair<bool, double> most{false, 0};
  for (std::size_t i = 0; i < times.size(); ++i)
    for (std::size_t j = 0; j < times.size(); ++j) {
      const double by = times[i] / times[j] * predicted[j] / predicted[i];
      const bool turned = times[j] < times[i] * (1 - noise);
      const bool promised_more = by > std::max(wrong_ratio, 1 + 2 * noise);
      if (predicted[i] < predicted[j] * (1 - noise) && (turned || promised_more) && std::pair(turned, by) > most) {
        most = {turned, by};
        worst = {i, j};
      }
    }
  return worst;
}

/// The kernels of a graph that take another time inside of it, with the mean of it.
Status find_mispriced(const PlannedGraph& graph, double graph_seconds, MeasuredCosts& measured,
                      std::map<std::string, std::pair<const KernelInfo*, double>>& mispriced) {
  using Inside = std::map<std::string, double>;
  TASO_ASSIGN(const Inside inside, measured.target().profile(to_be_timed(graph)));
  std::map<std::string, int> launches;
  for (const Launch& launch : graph.plan.launches) ++launches[launch.kernel->key];
  for (const Launch& launch : graph.plan.launches) {
    const auto place = inside.find(launch.kernel->key);
    if (place == inside.end()) continue;
    TASO_ASSIGN(const double price, measured.seconds(*launch.kernel));
    const double wrong = std::abs(place->second - price);
    if (wrong > wrong_share * std::max(place->second, price) &&
        wrong * launches[place->first] > share_of_graph * graph_seconds)
      mispriced[place->first] = {launch.kernel.get(), place->second};
  }
  return {};
}

}  // namespace

Expected<std::vector<CorrectedPrice>> correct_prices(Prepared& prepared, Findings& found, const GraphPlanner& planner,
                                                     const OptimizeResult& result) {
  std::vector<CorrectedPrice> corrected;
  MeasuredCosts& measured = planner.measured();
  if (!result.noise || result.timed_on != 0 || !measured.may_measure()) return corrected;
  const std::vector<Competitor*> competitors = competitors_of(prepared, found);
  std::vector<double> predicted, times;
  for (std::size_t i = 0; i < competitors.size(); ++i) {
    TASO_ASSIGN(const double sum, measured.seconds(competitors[i]->as_run().plan));
    predicted.push_back(sum);
    times.push_back(*result.contenders[i].seconds);
  }
  const auto pair = contradiction(predicted, times, std::max(*result.noise, result.noise_of_references));
  if (!pair) return corrected;
  std::map<std::string, std::pair<const KernelInfo*, double>> mispriced;
  for (const std::size_t i : {pair->first, pair->second})
    TASO_RETURN_IF_ERROR(find_mispriced(competitors[i]->as_run(), times[i], measured, mispriced));
  for (const auto& [key, kernel] : mispriced) {
    TASO_ASSIGN(const double before, measured.seconds(*kernel.first));
    TASO_RETURN_IF_ERROR(measured.correct(*kernel.first, kernel.second));
    corrected.push_back({key, before, kernel.second});
  }
  return corrected;
}

}  // namespace taso
