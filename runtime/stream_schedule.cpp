#include "runtime/stream_schedule.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "runtime/step_order.h"
#include "support/status.h"

namespace taso {
namespace {

/// A larger number of streams has to save so much of the time.
constexpr double least_gain = 0.02;

/// Tasks [first, last), all of them on the device.
struct Part {
  std::size_t first = 0, last = 0;
  [[nodiscard]] std::size_t size() const { return last - first; }
};

/// Places the tasks of a part, from one event to the next.
class ListScheduler {
 public:
  ListScheduler(std::span<const StreamTask> tasks, Part part, std::size_t streams, double wait_seconds)
      : tasks_(tasks),
        part_(part),
        wait_seconds_(wait_seconds),
        to_end_(part.size(), 0),
        awaited_(part.size(), 0),
        readers_(part.size()),
        stream_of_(part.size(), 0),
        end_of_(part.size(), 0),
        is_busy_(streams, 0) {
    for (std::size_t task = part.first; task < part.last; ++task)
      for (const std::uint32_t producer : tasks[task].producers) {
        TASO_CHECK(producer < task, "a step reads what a later one writes");
        if (producer < part.first) continue;
        ++awaited_[task - part.first];
        readers_[producer - part.first].push_back(task - part.first);
      }
    for (std::size_t i = part.size(); i-- > 0;) {
      for (const std::size_t reader : readers_[i]) to_end_[i] = std::max(to_end_[i], to_end_[reader]);
      to_end_[i] += task(i).cost.seconds;
    }
    for (std::size_t i = 0; i < part.size(); ++i)
      if (awaited_[i] == 0) ready_.emplace(-to_end_[i], i);
  }

  /// Appends the steps, the first beginning at `now_s`; when the last ends.
  double place(std::vector<ScheduledStep>& steps, double now_s) {
    now_s_ = now_s;
    const std::size_t first = steps.size();
    while (!ready_.empty() || !running_.empty()) {
      begin_steps(steps);
      advance(steps);
    }
    const bool forks = std::any_of(steps.begin() + static_cast<std::ptrdiff_t>(first), steps.end(),
                                   [](const ScheduledStep& step) { return step.stream != 0; });
    if (forks) now_s_ += wait_seconds_;  // until all streams are over
    return now_s_;
  }

 private:
  struct Running {
    std::size_t position = 0;  ///< Of the step, in the schedule.
    std::size_t task = 0;      ///< Of the part.
    double waits_s = 0;        ///< Before it works.
    double works_s = 0;        ///< That are left, at full speed.
  };

  [[nodiscard]] const StreamTask& task(std::size_t i) const { return tasks_[part_.first + i]; }

  /// The stream of the producer that ended last, if it is idle, else any that is; nothing where all are busy.
  [[nodiscard]] std::optional<std::size_t> stream_for(std::size_t i) const {
    std::optional<std::size_t> best;
    double latest = -1;
    for (const std::uint32_t producer : task(i).producers) {
      if (producer < part_.first) continue;
      const std::size_t number = producer - part_.first;
      if (is_busy_[stream_of_[number]] != 0 || end_of_[number] < latest) continue;
      best = stream_of_[number];
      latest = end_of_[number];
    }
    const auto idle = std::find(is_busy_.begin(), is_busy_.end(), 0);
    if (!best && idle != is_busy_.end()) best = static_cast<std::size_t>(idle - is_busy_.begin());
    return best;
  }

  void begin_steps(std::vector<ScheduledStep>& steps) {
    while (!ready_.empty()) {
      const std::size_t next = ready_.begin()->second;
      const std::optional<std::size_t> stream = stream_for(next);
      if (!stream) return;
      ready_.erase(ready_.begin());
      stream_of_[next] = *stream;
      is_busy_[*stream] = 1;
      const bool waits =
          std::any_of(task(next).producers.begin(), task(next).producers.end(), [&](std::uint32_t producer) {
            return producer >= part_.first && stream_of_[producer - part_.first] != *stream;
          });
      running_.push_back({steps.size(), next, waits ? wait_seconds_ : 0, task(next).cost.seconds});
      ScheduledStep& step = steps.emplace_back();
      step.task = static_cast<std::uint32_t>(part_.first + next);
      step.stream = static_cast<std::uint32_t>(*stream);
      step.begin_s = now_s_;  // or later, if it waits
    }
  }

  /// Until the next step ends or begins to work.
  void advance(std::vector<ScheduledStep>& steps) {
    double shares = 0;
    for (const Running& one : running_)
      if (one.waits_s <= 0) shares += task(one.task).cost.share;
    const double slower = std::max(1.0, shares);
    const auto left = [&](const Running& one) { return one.waits_s > 0 ? one.waits_s : one.works_s * slower; };
    double next_s = std::numeric_limits<double>::infinity();
    for (const Running& one : running_) next_s = std::min(next_s, left(one));
    now_s_ += next_s;
    std::vector<Running> still;
    for (Running& one : running_) {
      const bool is_over = left(one) <= next_s;
      if (one.waits_s > 0) {
        one.waits_s = is_over ? 0 : one.waits_s - next_s;
        if (is_over) steps[one.position].begin_s = now_s_;
        still.push_back(one);
      } else if (!is_over) {
        one.works_s -= next_s / slower;
        still.push_back(one);
      } else {
        end(one, steps);
      }
    }
    running_ = std::move(still);
  }

  void end(const Running& one, std::vector<ScheduledStep>& steps) {
    steps[one.position].end_s = now_s_;
    end_of_[one.task] = now_s_;
    is_busy_[stream_of_[one.task]] = 0;
    for (const std::size_t reader : readers_[one.task])
      if (--awaited_[reader] == 0) ready_.emplace(-to_end_[reader], reader);
  }

  std::span<const StreamTask> tasks_;
  Part part_;
  double wait_seconds_;
  std::vector<double> to_end_;  ///< Per task of the part, as the others: the longest path from its beginning on.
  std::vector<std::size_t> awaited_;
  std::vector<std::vector<std::size_t>> readers_;
  std::vector<std::size_t> stream_of_;
  std::vector<double> end_of_;
  std::vector<char> is_busy_;                       ///< Per stream.
  std::set<std::pair<double, std::size_t>> ready_;  ///< The longest path first.
  std::vector<Running> running_;
  double now_s_ = 0;
};

/// Sets what the steps from `first` on, a part, wait for.
void set_waits(std::span<const StreamTask> tasks, std::size_t streams, std::vector<ScheduledStep>& steps,
               std::size_t first) {
  const std::size_t count = steps.size() - first;
  std::vector<std::optional<std::size_t>> position(tasks.size());
  for (std::size_t i = first; i < steps.size(); ++i) position[steps[i].task] = i - first;
  std::vector<StepSet> before(count, StepSet(count));
  std::vector<std::optional<std::size_t>> last(streams);
  for (std::size_t i = 0; i < count; ++i) {
    ScheduledStep& step = steps[first + i];
    const auto follow = [&](std::size_t other) {
      before[i].insert(other);
      before[i].unite(before[other]);
    };
    if (last[step.stream]) follow(*last[step.stream]);
    std::set<std::size_t, std::greater<>> producers;  // what a later one waits for follows from it
    for (const std::uint32_t producer : tasks[step.task].producers)
      if (position[producer]) producers.insert(*position[producer]);
    for (const std::size_t producer : producers) {
      if (before[i].contains(producer)) continue;
      step.waits.push_back(static_cast<std::uint32_t>(first + producer));
      follow(producer);
    }
    std::reverse(step.waits.begin(), step.waits.end());
    last[step.stream] = i;
  }
}

/// The tasks one after the other.
StreamSchedule in_sequence(std::span<const StreamTask> tasks) {
  StreamSchedule schedule;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const double begin_s = schedule.seconds;
    schedule.seconds += tasks[i].cost.seconds;
    schedule.steps.push_back({static_cast<std::uint32_t>(i), tasks[i].on_device, 0, {}, begin_s, schedule.seconds});
  }
  return schedule;
}

}  // namespace

std::vector<std::vector<std::uint32_t>> StreamSchedule::predecessors() const {
  std::vector<std::vector<std::uint32_t>> predecessors(steps.size());
  std::vector<std::optional<std::uint32_t>> last(most_streams);  // of each stream, since the host step
  std::optional<std::uint32_t> host_step;
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    const ScheduledStep& step = steps[i];
    predecessors[i] = step.waits;
    if (step.on_device) {
      std::optional<std::uint32_t>& previous = last[step.stream];
      if (previous) predecessors[i].push_back(*previous);
      if (!previous && host_step) predecessors[i].push_back(*host_step);
      previous = i;
    } else {
      if (host_step) predecessors[i].push_back(*host_step);
      for (std::optional<std::uint32_t>& of_stream : last)
        if (of_stream) predecessors[i].push_back(*std::exchange(of_stream, std::nullopt));
      host_step = i;
    }
  }
  return predecessors;
}

StreamSchedule schedule_streams(std::span<const StreamTask> tasks, std::size_t streams, double wait_seconds) {
  TASO_CHECK(streams >= 1 && streams <= most_streams, "a number of streams that there cannot be");
  if (streams == 1) return in_sequence(tasks);
  StreamSchedule schedule;
  for (std::size_t i = 0; i < tasks.size();) {
    if (!tasks[i].on_device) {
      const double begin_s = schedule.seconds;
      schedule.seconds += tasks[i].cost.seconds;
      schedule.steps.push_back({static_cast<std::uint32_t>(i), false, 0, {}, begin_s, schedule.seconds});
      ++i;
      continue;
    }
    Part part{i, i};
    while (part.last < tasks.size() && tasks[part.last].on_device) ++part.last;
    const std::size_t first = schedule.steps.size();
    schedule.seconds = ListScheduler(tasks, part, streams, wait_seconds).place(schedule.steps, schedule.seconds);
    set_waits(tasks, streams, schedule.steps, first);
    i = part.last;
  }
  for (const ScheduledStep& step : schedule.steps)
    schedule.streams = std::max<std::size_t>(schedule.streams, step.stream + 1);
  return schedule;
}

StreamSchedule choose_streams(std::span<const StreamTask> tasks, std::size_t most, double wait_seconds) {
  StreamSchedule best = schedule_streams(tasks, 1, wait_seconds);
  for (std::size_t streams = 2; streams <= std::min(most, most_streams); ++streams) {
    StreamSchedule next = schedule_streams(tasks, streams, wait_seconds);
    if (next.seconds < (1 - least_gain) * best.seconds) best = std::move(next);
  }
  return best;
}

}  // namespace taso
