#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <unordered_map>
#include <utility>

#include "optimizer/equal_costs.h"
#include "optimizer/parts.h"
#include "optimizer/search.h"

namespace taso {
namespace {

/// Ways of cutting that are tried in turn while they bring something: the one, the shifted one, the one again ..
constexpr int most_passes = 6;

/// Searches part by part. The whole graph is priced after every part that was improved, and the improvement is kept
/// only if it is one there: conversions of layouts at a part's rim are no part of the whole.
class PartsSearcher {
 public:
  PartsSearcher(const RuleIndex& rules, const Target& target, CostModel& model, const SearchOptions& options)
      : rules_(rules), target_(target), model_(model), options_(options) {}

  Expected<SearchResult> run(const Graph& start) {
    current_.graph = start;
    normalize(current_.graph, rules_.catalog());
    TASO_ASSIGN(current_.cost, price(current_.graph, MeasuredCosts::no_limit));
    result_.start_cost = current_.cost;
    result_.curve.add(0, current_.cost);
    result_.best = {current_};
    int fruitless = 0;
    for (int pass = 0; pass < most_passes && fruitless < 2 && !stopped_; ++pass) {
      const double before = current_.cost;
      TASO_RETURN_IF_ERROR(run_pass(pass % 2 == 1));
      if (is_less(current_.cost, before)) {
        fruitless = 0;
        keep();
      } else {
        ++fruitless;
      }
    }
    if (stopped_) result_.stop = *stopped_;
    result_.seconds = elapsed();
    return std::move(result_);
  }

 private:
  /// Steps found in a part, to be done in all parts that look like it.
  using Steps = std::shared_ptr<const std::vector<RuleApplication>>;

  [[nodiscard]] double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  Expected<double> price(const Graph& graph, double limit) {
    TASO_ASSIGN(KernelPlan plan, options_.choose_layouts ? target_.open_plan(graph) : target_.plan(graph));
    return model_.cost(graph, plan, limit);
  }

  /// The cheapest graphs, cheapest first; that of this pass is the cheapest so far.
  void keep() {
    result_.best.insert(result_.best.begin(), current_);
    if (result_.best.size() > std::max<std::size_t>(1, options_.keep)) result_.best.pop_back();
  }

  bool out_of_time() {
    if (stopped_) return true;
    if (options_.stop.raised())
      stopped_ = StopReason::interrupted;
    else if (options_.time_limit && elapsed() >= *options_.time_limit)
      stopped_ = StopReason::time;
    return stopped_.has_value();
  }

  Status run_pass(bool shifted) {
    const std::vector<std::vector<NodeId>> ranges =
        cut_into_ranges(current_.graph, std::max<std::size_t>(2, options_.part_size), shifted);
    for (std::size_t i = 0; i < ranges.size() && !out_of_time(); ++i) {
      const GraphPart part = extract_part(current_.graph, ranges[i]);
      const auto known = found_.find(part.signature);
      if (known != found_.end()) {
        TASO_ASSIGN(const bool fits, take_over(part, *known->second));
        if (fits || stopped_) continue;
      }
      // Every part may use its share of what is left for this pass, which is half of what is left.
      const std::size_t left = options_.max_candidate_nodes - std::min(options_.max_candidate_nodes, used_nodes_);
      TASO_ASSIGN(const Steps steps, search_part(part, left / 2 / (ranges.size() - i)));
      found_[part.signature] = steps;
      TASO_ASSIGN(const bool fits, take_over(part, *steps));
      TASO_CHECK(fits || !steps->empty(), "no steps that do not fit");
    }
    return {};
  }

  Expected<Steps> search_part(const GraphPart& part, std::size_t nodes) {
    SearchOptions options = options_;
    options.part_size = 0;
    options.keep = 1;
    options.max_candidate_nodes = std::max<std::size_t>(1, nodes);
    options.memory_limit = options_.memory_limit / 2;  // the rest is for the whole
    if (options.time_limit) options.time_limit = std::max(0.0, *options.time_limit - elapsed());
    if (options.progress)
      options.progress = [&](const SearchProgress& of_part) {
        SearchProgress progress = of_part;
        progress.steps += result_.steps;
        progress.candidates += result_.candidates;
        progress.start_cost = result_.start_cost;
        progress.best_cost = current_.cost - std::max(0.0, of_part.start_cost - of_part.best_cost);
        progress.seconds = elapsed();
        options_.progress(progress);
      };
    Expected<SearchResult> search = taso::search(part.graph, rules_, target_, model_, options);
    if (!search && search.error().code == ErrorCode::interrupted) {
      stopped_ = StopReason::interrupted;
      return std::make_shared<const std::vector<RuleApplication>>();
    }
    if (!search) return search.error();
    result_.steps += search->steps;
    result_.candidates += search->candidates;
    result_.duplicates += search->duplicates;
    result_.rejected += search->rejected;
    result_.unwritable += search->unwritable;
    result_.dropped += search->dropped;
    result_.candidate_nodes = used_nodes_ += search->candidate_nodes;
    ++result_.parts;
    if (search->stop == StopReason::interrupted || search->stop == StopReason::time)
      stopped_ = search->stop;
    else if (search->stop == StopReason::steps || result_.stop == StopReason::exhausted)
      result_.stop = search->stop;
    return std::make_shared<const std::vector<RuleApplication>>(std::move(search->best[0].applications));
  }

  /// Does the steps in the whole if that makes it cheaper. False: they do not all apply to this part.
  Expected<bool> take_over(const GraphPart& part, const std::vector<RuleApplication>& steps) {
    if (steps.empty()) return true;
    PartReplay replay = replay_in_whole(current_.graph, part, steps, rules_, options_.writable, options_.applicable);
    if (replay.applications.empty()) return replay.complete;
    const Expected<double> cost = price(replay.graph, current_.cost);
    if (!cost && cost.error().code == ErrorCode::interrupted) {
      stopped_ = StopReason::interrupted;
      return true;
    }
    if (!cost) return cost.error();
    if (!is_less(*cost, current_.cost)) return replay.complete;
    // The part's steps say what each of them gains there; what the whole gains otherwise is told of the last one.
    double before = current_.cost;
    for (std::size_t i = 0; i < replay.applications.size(); ++i) {
      RuleApplication& application = replay.applications[i];
      application.cost_before = before;
      application.cost_after = before += steps[i].cost_after - steps[i].cost_before;
    }
    replay.applications.back().cost_after = *cost;
    current_.applications.insert(current_.applications.end(), replay.applications.begin(), replay.applications.end());
    current_.graph = std::move(replay.graph);
    current_.cost = *cost;
    result_.curve.add(result_.steps, current_.cost);
    return replay.complete;
  }

  const RuleIndex& rules_;
  const Target& target_;
  CostModel& model_;
  const SearchOptions& options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Candidate current_;
  std::unordered_map<Hash128, Steps> found_;  ///< By signature.
  std::size_t used_nodes_ = 0;
  std::optional<StopReason> stopped_;
  SearchResult result_;
};

}  // namespace

Expected<SearchResult> search_in_parts(const Graph& start, const RuleIndex& rules, const Target& target,
                                       CostModel& model, const SearchOptions& options) {
  return PartsSearcher(rules, target, model, options).run(start);
}

}  // namespace taso
