#include "runtime/rank_team.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/rank_executor.h"
#include "runtime/thread_transport.h"

namespace taso {

struct RankTeam::State {
  /// What a rank's thread alone touches while there is work.
  struct Rank {
    std::unique_ptr<Transport> transport;
    std::optional<RankExecutor> executor;
    std::vector<double> run_us;
    std::span<const HostTensor> outputs;
    Status status;
  };

  ~State() {
    {
      const std::lock_guard lock(mutex);
      ending = true;
    }
    changed.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  /// The thread of a rank.
  void work(Rank& rank) {
    for (std::uint64_t done = 0;; ++done) {
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return ending || orders > done; });
        if (ending) return;
      }
      rank.status = make_runs(rank);
      if (!rank.status) rank.transport->fail(rank.status.error());
      const std::lock_guard lock(mutex);
      if (--working == 0) changed.notify_all();
    }
  }

  Status make_runs(Rank& rank) const {
    using Clock = std::chrono::steady_clock;
    rank.run_us.clear();
    for (int i = 0; i < runs; ++i) {
      TASO_ASSIGN([[maybe_unused]] const auto begun, rank.transport->all_gather({}));
      const Clock::time_point start = Clock::now();
      TASO_ASSIGN(rank.outputs, rank.executor->run());
      rank.run_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
    return {};
  }

  std::vector<Rank> ranks;
  std::vector<std::thread> threads;
  std::mutex mutex;  ///< Of what follows.
  std::condition_variable changed;
  std::uint64_t orders = 0;  ///< So often all have been told to make `runs` runs.
  std::size_t working = 0;   ///< Ranks that have not finished the last order.
  int runs = 0;
  bool ending = false;
};

RankTeam::RankTeam(std::unique_ptr<State> state) : state_(std::move(state)) {}
RankTeam::~RankTeam() = default;

Expected<std::unique_ptr<RankTeam>> RankTeam::create(const std::vector<RankGraph>& ranks, const KernelLibrary& library,
                                                     const ExecutorOptions& options) {
  auto state = std::make_unique<State>();
  std::vector<std::unique_ptr<Transport>> transports = make_thread_transports(static_cast<int>(ranks.size()));
  state->ranks.resize(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    State::Rank& rank = state->ranks[i];
    rank.transport = std::move(transports[i]);
    TASO_ASSIGN(RankExecutor executor, RankExecutor::create(ranks[i], *rank.transport, library, options));
    rank.executor.emplace(std::move(executor));
  }
  for (State::Rank& rank : state->ranks) state->threads.emplace_back(&State::work, state.get(), std::ref(rank));
  return std::unique_ptr<RankTeam>(new RankTeam(std::move(state)));
}

Status RankTeam::set_inputs(std::span<const HostTensor> inputs) {
  for (State::Rank& rank : state_->ranks) {
    std::vector<HostTensor> copies;
    for (const HostTensor& input : inputs) copies.push_back(input.copy());
    TASO_RETURN_IF_ERROR(rank.executor->set_inputs(std::move(copies)));
  }
  return {};
}

Expected<double> RankTeam::run(int runs) {
  {
    std::unique_lock lock(state_->mutex);
    state_->runs = runs;
    state_->working = state_->ranks.size();
    ++state_->orders;
    state_->changed.notify_all();
    state_->changed.wait(lock, [&] { return state_->working == 0; });
  }
  for (const State::Rank& rank : state_->ranks) TASO_RETURN_IF_ERROR(rank.status);
  double sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(runs); ++i) {
    double longest = 0;
    for (const State::Rank& rank : state_->ranks) longest = std::max(longest, rank.run_us[i]);
    sum += longest;
  }
  return sum / runs;
}

std::span<const HostTensor> RankTeam::outputs() const { return state_->ranks[0].outputs; }

}  // namespace taso
