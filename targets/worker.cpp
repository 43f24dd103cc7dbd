#include "targets/worker.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/measure.h"
#include "targets/worker_process.h"

namespace taso {
namespace {

/// An interquartile range of more than so many medians says nothing of the median.
constexpr double wild_spread = 3;
/// So often what differs wildly is measured again: another program may have used the processor.
constexpr int times_again = 3;

bool differ_wildly(const std::vector<double>& seconds) { return summarize(seconds).spread > wild_spread; }

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Runtime, version, provider and device: what times are recorded under.
std::string what_runs(const WorkerHello& hello, const WorkerSetting& setting) {
  std::string text = hello.runtime + " " + hello.version;
  for (const std::string& more : {setting.provider, setting.device})
    if (!more.empty()) text += "; " + more;
  return text;
}

Error worker_failure(std::string message) { return {ErrorCode::device_unavailable, std::move(message), {}}; }

}  // namespace

struct Worker::State {
  WorkerOptions options;
  std::optional<WorkerProcess> process;
  WorkerHello hello;
  WorkerSetting setting;
  bool known = false;  ///< `hello` and `setting` are those of the first start.
  int restarts = 0, last_id = 0;
  std::string given_up;  ///< Why; empty while it is not.
  std::ofstream log;     ///< Of all lines, for those who write a worker.

  /// Adds a line to the log, if there is one.
  void note(std::string_view mark, const std::string& line) {
    if (log.is_open()) log << mark << line << std::endl;
  }

  /// A line for a line. `wall`: the seconds that it took.
  [[nodiscard]] Expected<std::string> exchange(const std::string& line, double& wall) {
    const auto start = std::chrono::steady_clock::now();
    note("> ", line);
    TASO_RETURN_IF_ERROR(process->send(line, options.timeout_s));
    TASO_ASSIGN(std::string answer, process->receive(options.timeout_s, options.cancelled));
    note("< ", answer);
    wall = seconds_since(start);
    return answer;
  }

  /// Starts the program, if it does not run.
  [[nodiscard]] Status start() {
    if (process) return {};
    TASO_ASSIGN(process, WorkerProcess::start(options.command));
    TASO_ASSIGN(const std::string first, process->receive(options.timeout_s, options.cancelled));
    note("< ", first);
    TASO_ASSIGN(WorkerHello said, parse_hello(first));
    double wall = 0;
    TASO_ASSIGN(const std::string answer, exchange(configure_line(++last_id, options.threads, options.provider), wall));
    TASO_ASSIGN(WorkerSetting set, parse_setting(answer, last_id));
    const std::string now = what_runs(said, set);
    if (known && now != what_runs(hello, setting))
      return worker_failure(fmt::format("it is {} now, not {}", now, what_runs(hello, setting)));
    hello = std::move(said);
    setting = std::move(set);
    known = true;
    return {};
  }

  /// Starts it if need be, sends a request, and reads the answer's times.
  template <class Parse>
  [[nodiscard]] Expected<std::vector<ModelTimes>> request(const std::function<std::string(int id)>& line,
                                                          const Parse& parse) {
    TASO_RETURN_IF_ERROR(start());
    double wall = 0;
    const int id = ++last_id;
    TASO_ASSIGN(const std::string answer, exchange(line(id), wall));
    return parse(answer, id, wall);
  }

  /// Ends a worker that has failed, and says so; from then on given_up() where that was once too often.
  void fail(const Error& error) {
    process.reset();
    if (error.code == ErrorCode::interrupted) return;
    if (restarts == options.most_restarts) {
      given_up = fmt::format("--device {}: the worker was given up after {} restarts: {}", options.device, restarts,
                             error.message);
      return;
    }
    ++restarts;
    if (options.report)
      options.report(fmt::format("--device {}: the worker is started anew ({} of {}): {}", options.device, restarts,
                                 options.most_restarts, error.message));
  }

  /// The same request up to `attempts` times. What fails in the end is the worker's last failure.
  template <class Parse>
  [[nodiscard]] Expected<std::vector<ModelTimes>> request(int attempts, const std::function<std::string(int id)>& line,
                                                          const Parse& parse) {
    for (;; --attempts) {
      if (!given_up.empty()) return worker_failure(given_up);
      Expected<std::vector<ModelTimes>> times = request(line, parse);
      if (times) return times;
      fail(times.error());
      if (!given_up.empty()) return worker_failure(given_up);
      if (attempts <= 1 || times.error().code == ErrorCode::interrupted) return times;
    }
  }
};

Worker::Worker(std::unique_ptr<State> state) : state_(std::move(state)) {}
Worker::Worker(Worker&&) noexcept = default;
Worker& Worker::operator=(Worker&&) noexcept = default;

Worker::~Worker() {
  // It has a second to end by itself.
  constexpr double while_it_ends = 1;
  if (state_ && state_->process && state_->process->send(stop_line(), while_it_ends))
    (void)state_->process->receive(while_it_ends, {});
}

Expected<Worker> Worker::open(WorkerOptions options) {
  auto state = std::make_unique<State>();
  state->options = std::move(options);
  if (!state->options.log.empty()) state->log.open(state->options.log, std::ios::app);
  const Status started = state->start();
  const std::string& device = state->options.device;
  if (!started && started.error().code == ErrorCode::interrupted) return started.error();
  if (!started)
    return worker_failure(fmt::format("--device {}: the worker '{}' does not work: {}", device,
                                      fmt::join(state->options.command, " "), started.error().message));
  const std::string& wanted = state->options.provider;
  if (!wanted.empty() && state->setting.provider != wanted)
    return worker_failure(fmt::format("--device {}: {} runs {} instead of the provider {}; it has: {}", device,
                                      state->hello.runtime, state->setting.provider, wanted,
                                      fmt::join(state->hello.providers, ", ")));
  return Worker(std::move(state));
}

const WorkerHello& Worker::hello() const { return state_->hello; }
const WorkerSetting& Worker::setting() const { return state_->setting; }
const WorkerOptions& Worker::options() const { return state_->options; }

Expected<std::vector<ModelTimes>> Worker::measure(std::span<const ModelRun> models, const MeasureRequest& request) {
  TASO_ASSIGN(std::vector<ModelTimes> all, measure_apart(models, request));
  for (int again = 0; again <= times_again; ++again) {
    std::vector<ModelRun> wild;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < models.size(); ++i)
      if (all[i].refusal.empty() && differ_wildly(all[i].seconds)) {
        wild.push_back(models[i]);
        places.push_back(i);
      }
    if (wild.empty()) break;
    if (again == times_again) {
      for (const std::size_t i : places)
        all[i] = {{}, fmt::format("its times differ wildly, {} times in turn", times_again + 1)};
      break;
    }
    TASO_ASSIGN(std::vector<ModelTimes> times, measure_apart(wild, request));
    for (std::size_t i = 0; i < places.size(); ++i) all[places[i]] = std::move(times[i]);
  }
  return all;
}

Expected<std::vector<ModelTimes>> Worker::measure_apart(std::span<const ModelRun> models,
                                                        const MeasureRequest& request) {
  const auto ask = [&](std::span<const ModelRun> some, int attempts) {
    return state_->request(
        attempts, [&](int id) { return measure_line(id, some, request); },
        [&](const std::string& answer, int id, double wall) {
          return parse_times(answer, id, some.size(), static_cast<std::size_t>(request.runs), wall);
        });
  };
  Expected<std::vector<ModelTimes>> times = ask(models, 1);
  if (times || times.error().code == ErrorCode::interrupted || !state_->given_up.empty()) return times;
  std::vector<ModelTimes> all;
  for (const ModelRun& model : models) {
    Expected<std::vector<ModelTimes>> one = ask({&model, 1}, 1);
    if (one) {
      all.push_back(std::move(one->front()));
    } else if (one.error().code == ErrorCode::interrupted || !state_->given_up.empty()) {
      return one;
    } else {
      all.push_back({{}, "the worker failed twice: " + one.error().message});
    }
  }
  return all;
}

Expected<std::vector<ModelTimes>> Worker::interleave(std::span<const ModelRun> models,
                                                     const InterleaveRequest& request) {
  return state_->request(
      2, [&](int id) { return interleave_line(id, models, request); },
      [&](const std::string& answer, int id, double wall) {
        return parse_times(answer, id, models.size(), static_cast<std::size_t>(request.rounds), wall);
      });
}

Expected<std::optional<GraphRefusal>> Worker::refusal(const ModelRun& model) {
  const std::span<const ModelRun> alone(&model, 1);
  const Expected<std::vector<ModelTimes>> times = state_->request(
      1, [&](int id) { return interleave_line(id, alone, {}); },
      [&](const std::string& answer, int id, double wall) { return parse_times(answer, id, 1, 1, wall); });
  if (!times && (times.error().code == ErrorCode::interrupted || !state_->given_up.empty())) return times.error();
  if (!times) return std::optional(GraphRefusal{times.error().message, false});
  if ((*times)[0].refusal.empty()) return std::optional<GraphRefusal>();
  return std::optional(GraphRefusal{(*times)[0].refusal, true});
}

}  // namespace taso
