#include "session/plan_timing.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "optimizer/baseline.h"
#include "optimizer/paired_times.h"
#include "partition/expand.h"
#include "runtime/measure.h"
#include "runtime/rank_graph.h"
#include "runtime/rank_team.h"
#include "runtime/weights.h"
#include "support/hash.h"

namespace taso {
namespace {

/// As the target's whole graphs have it.
constexpr std::uint64_t input_seed = 1;
constexpr int most_rounds = 201;

class PlanTimer {
 public:
  PlanTimer(const Graph& one_device, const PlanTiming& timing)
      : one_device_(one_device),
        timing_(timing),
        strategies_(
            timing.library.registry(), [this](std::string_view op) { return timing_.proved.of(op); },
            [this](std::string_view op) { return timing_.proved.passages_of(op); }) {
    timing_.executor.weights = std::make_shared<WeightStore>();
  }

  /// Whether it is another one than those that are there.
  Expected<bool> add(const CompetingPlan& plan) {
    TASO_ASSIGN(Expansion expansion, expand(plan.graph, plan.plan, strategies_));
    const Hash128 hash = Hasher().add(expansion.graph.structural_hash()).add(devices_of(plan)).finish();
    if (std::find(hashes_.begin(), hashes_.end(), hash) != hashes_.end()) return false;
    hashes_.push_back(hash);
    expansions_.push_back(std::move(expansion));
    ranks_ = devices_of(plan);
    return true;
  }

  Expected<GraphTimes> times(MeasuredCosts& measured) {
    std::vector<Hash128> hashes = hashes_;
    const Hash128 graph = one_device_.structural_hash();
    for (const int threads : threads_of_one_device()) hashes.push_back(Hasher().add(graph).add(threads).finish());
    std::vector<char> is_reference(hashes.size(), 0);
    is_reference[0] = 1;
    return measured.seconds_together("plan", hashes, is_reference, [&] { return run(is_reference); });
  }

  /// With those of a rank, and with those of all.
  [[nodiscard]] std::vector<int> threads_of_one_device() const {
    const int own = timing_.executor.threads, all = own * ranks_;
    return all > own ? std::vector<int>{own, all} : std::vector<int>{own};
  }

 private:
  static int devices_of(const CompetingPlan& plan) { return static_cast<int>(plan.plan.mesh.devices()); }

  Expected<std::unique_ptr<RankTeam>> team_of(const Expansion& expansion) const {
    std::vector<RankGraph> ranks;
    for (int rank = 0; rank < ranks_; ++rank) {
      TASO_ASSIGN(RankGraph one, rank_graph(expansion.graph, rank, [&](NodeId reader) {
                    const auto move = expansion.moves.find(reader);
                    return move == expansion.moves.end() ? 0 : move->second;
                  }));
      TASO_ASSIGN(Baseline fused, make_baseline(one.graph, timing_.fusing, timing_.library.registry()));
      one.graph = std::move(fused.graph);
      ranks.push_back(std::move(one));
    }
    return RankTeam::create(ranks, timing_.library, timing_.executor);
  }

  /// The first plan stands at both ends of the round: the A/A pair.
  Expected<GraphTimes> run(const std::vector<char>& is_reference) const {
    std::vector<Executor> executors;
    std::vector<std::vector<HostTensor>> outputs;
    for (const int threads : threads_of_one_device()) {
      ExecutorOptions options = timing_.executor;
      options.threads = threads;
      TASO_ASSIGN(Executor executor, Executor::create(one_device_, timing_.library, options));
      for (const TensorType& type : executor.output_types())
        outputs.resize(executors.size() + 1), outputs.back().emplace_back(type);
      executors.push_back(std::move(executor));
    }
    const std::vector<HostTensor> inputs = executors[0].random_inputs(input_seed);
    std::vector<std::unique_ptr<RankTeam>> teams;
    for (std::size_t i = 0; i <= expansions_.size(); ++i) {
      TASO_ASSIGN(std::unique_ptr<RankTeam> team, team_of(expansions_[i % expansions_.size()]));
      TASO_RETURN_IF_ERROR(team->set_inputs(inputs));
      teams.push_back(std::move(team));
    }
    std::vector<WholeRun> programs;
    for (std::size_t i = 0; i < expansions_.size(); ++i)
      programs.emplace_back([&, i](int runs) { return teams[i]->run(runs); });
    for (std::size_t i = 0; i < executors.size(); ++i)
      programs.emplace_back([&, i](int runs) { return time_runs(executors[i], inputs, outputs[i], runs); });
    programs.emplace_back([&](int runs) { return teams.back()->run(runs); });
    const PairedTimes paired(is_reference);
    WholeOptions whole;
    whole.maximum_rounds = most_rounds;
    whole.time_limit_s = timing_.most_seconds;
    whole.cancelled = timing_.cancelled;
    whole.after_round = [&](const auto& samples, auto& goes_on) { paired.after_round(samples, goes_on); };
    TASO_ASSIGN(const auto samples, sample_interleaved(programs, whole));
    if (timing_.cancelled && timing_.cancelled())
      return Error{ErrorCode::interrupted, "interrupted while plans were timed", {}};
    return paired.times(samples);
  }

  static Expected<double> time_runs(Executor& executor, const std::vector<HostTensor>& inputs,
                                    std::vector<HostTensor>& outputs, int runs) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < runs; ++i) TASO_RETURN_IF_ERROR(executor.run_into(inputs, outputs));
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / runs;
  }

  const Graph& one_device_;
  PlanTiming timing_;
  StrategyTable strategies_;
  int ranks_ = 1;
  std::vector<Expansion> expansions_;
  std::vector<Hash128> hashes_;  ///< Of these.
};

}  // namespace

Expected<PlanTimes> time_plans(const std::vector<CompetingPlan>& plans, const Graph& one_device,
                               const PlanTiming& timing, MeasuredCosts& measured) {
  TASO_CHECK(!plans.empty(), "no plan to time");
  PlanTimer timer(one_device, timing);
  PlanTimes result;
  for (std::size_t i = 0; i < plans.size() && result.plans.size() < timing.most_plans; ++i) {
    TASO_ASSIGN(const bool another, timer.add(plans[i]));
    if (another) result.plans.push_back({plans[i].name, i, predicted_seconds(plans[i].plan), 0});
  }
  TASO_ASSIGN(const GraphTimes times, timer.times(measured));
  for (std::size_t i = 0; i < result.plans.size(); ++i) result.plans[i].seconds = times.seconds[i];
  const std::vector<int> threads = timer.threads_of_one_device();
  for (std::size_t i = 0; i < threads.size(); ++i)
    result.one_device.push_back({threads[i], times.seconds[result.plans.size() + i]});
  result.noise = times.noise;
  result.date = times.date;
  return result;
}

double predicted_seconds(const PartitionPlan& plan) { return plan.step_seconds.value_or(plan.seconds); }

std::size_t fastest_plan(const PlanTimes& times) {
  std::size_t fastest = 0;
  for (std::size_t i = 1; i < times.plans.size(); ++i)
    if (times.plans[i].seconds < times.plans[0].seconds * (1 - times.noise) &&
        times.plans[i].seconds < times.plans[fastest].seconds)
      fastest = i;
  return fastest;
}

int usable_processors() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

}  // namespace taso
