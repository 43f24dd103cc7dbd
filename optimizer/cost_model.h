/// What the search minimises. Models are interchangeable: the search does not know which one it has.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "optimizer/cost_database.h"
#include "optimizer/layout_choice.h"
#include "optimizer/target.h"
#include "support/status.h"

namespace taso {

/// Kernel times: from the database where recorded, measured on the target (and recorded) where not.
class MeasuredCosts {
 public:
  static constexpr double no_limit = std::numeric_limits<double>::infinity();
  /// With `measure` false a missing cost is an error of code cost_missing that names the kernel.
  MeasuredCosts(Target& target, CostDatabase& database, bool measure)
      : target_(&target), database_(&database), measure_(measure) {}

  /// Seconds of one kernel. Not thread-safe.
  [[nodiscard]] Expected<double> seconds(const KernelInfo& kernel);
  /// What is known of the seconds of a kernel after one step of finding out: at first, where the target can tell, how
  /// many there are at least, then all. So of a kernel that is given up for the former no more is measured. Not
  /// thread-safe.
  struct Known {
    double seconds = 0;
    bool exactly = true;  ///< False: there are at least so many.
  };
  [[nodiscard]] Expected<Known> find_out(const KernelInfo& kernel);
  /// What is known already: nothing is at least 0 seconds. Not thread-safe.
  [[nodiscard]] Known known(const KernelInfo& kernel);
  /// Records other seconds in the place of those that are recorded for a kernel. Not thread-safe.
  [[nodiscard]] Status correct(const KernelInfo& kernel, double seconds);
  /// Sum over the launches of a plan.
  [[nodiscard]] Expected<double> seconds(const KernelPlan& plan);
  /// The seconds of a kernel if they are known without measuring. Not thread-safe.
  [[nodiscard]] std::optional<double> recorded(const KernelInfo& kernel);
  /// Seconds of whole graphs timed in turn in one run, recorded under their structural hashes and layouts. The first
  /// one is a reference. Where they were recorded before and what they say is near the noise, they are timed anew, if
  /// that may be.
  [[nodiscard]] Expected<GraphTimes> graph_seconds(const std::vector<TimedGraph>& graphs);
  /// The same of anything that `time` runs in turn, recorded as costs of this kind under these hashes, which tell what
  /// runs and how.
  [[nodiscard]] Expected<GraphTimes> seconds_together(std::string_view kind, const std::vector<Hash128>& hashes,
                                                      const std::vector<char>& is_reference,
                                                      const std::function<Expected<GraphTimes>()>& time);

  /// Why a graph does not run as a whole (Target::refusal), by what was recorded, or by trying it. What holds for good
  /// is recorded.
  [[nodiscard]] std::optional<std::string> recorded_refusal(const TimedGraph& graph);
  [[nodiscard]] Expected<std::optional<std::string>> refusal(const TimedGraph& graph);

  /// Target::cached_tenths of this size in whole MB, recorded like the others; 0 if it is not recorded and may not be
  /// measured.
  [[nodiscard]] Expected<int> cached_tenths(double bytes);

  [[nodiscard]] Target& target() { return *target_; }
  /// Every cost handed out so far, and what kernels that were given up take at least, ordered; written by --record.
  [[nodiscard]] std::vector<CostDatabase::Entry> used() const;
  /// Number of kernels measured in this run (not found in the database).
  [[nodiscard]] std::size_t measured() const { return measured_count_; }
  /// Number of kernels of which one has found out in this run how long they take at least. Both are safe to ask from
  /// another thread.
  [[nodiscard]] std::size_t tried() const { return tried_count_; }
  /// False: a cost that is not recorded is an error.
  [[nodiscard]] bool may_measure() const { return measure_; }

 private:
  Target* target_;
  CostDatabase* database_;
  bool measure_;
  std::atomic<std::size_t> measured_count_ = 0, tried_count_ = 0;
  std::unordered_map<Hash128, std::pair<std::string, double>> kernels_;
  std::unordered_map<Hash128, std::pair<std::string, double>> least_;  ///< Of kernels that are not in kernels_.
  std::map<std::pair<std::string, std::string>, double> others_;       ///< No kernels; by kind and key.
};

/// The key under which the cached tenths of a working set are recorded, as "17 MB".
[[nodiscard]] std::string cache_key(double bytes);

/// A weighted sum of cost terms, as --cost spells it.
struct CostFormula {
  enum class Term : std::uint8_t { time, flops, bytes, launches, memory };
  struct Weighted {
    double weight = 1;
    Term term = Term::time;
  };
  std::vector<Weighted> terms;

  /// Kernel times enter the cost: then the final choice is by timing whole graphs.
  [[nodiscard]] bool uses_time() const;
  /// Canonical spelling, as parse_cost_formula accepts it.
  [[nodiscard]] std::string to_string() const;
};

/// Parses "time", "flops", "bytes", "launches", "memory", or a weighted sum such as "time+0.1*bytes". In a sum
/// the terms have the units microseconds, MFLOP, MB (of traffic, or of memory for intermediates) and launches.
[[nodiscard]] Expected<CostFormula> parse_cost_formula(std::string_view text);

class CostModel {
 public:
  virtual ~CostModel() = default;
  /// Cost of a graph whose plan is given; lower is better. If the plan leaves layouts open, they are chosen so that the
  /// cost (but for `memory`, which is no sum over kernels) is least, and the plan is filled in; the cost is that of
  /// the choice. Where the target fuses, layouts are chosen by the cost of kernels that are not fused, or are
  /// those of its rule where that is cheaper with what it fuses (then the plan is fixed), and the cost is
  /// that of the launches in which they then run; see improve(). Costs are sums of multiples of a small step
  /// (CostGrid), the same whatever is measured in between. If the cost is not below `limit`, any number from `limit` up
  /// may be returned, and layouts stay open. Not thread-safe: may measure.
  [[nodiscard]] virtual Expected<double> cost(const Graph& graph, KernelPlan& plan,
                                              double limit = MeasuredCosts::no_limit) = 0;
  /// The same graph in layouts that are cheaper with what is fused (optimizer/layout_moves.h), where moves lead to
  /// such: `plan`, which costs `cost`, is replaced. The cost of the plan that is there afterwards. It takes as long as
  /// pricing some sixty graphs: for those that are chosen among, not for all that a search meets. Where the user stops
  /// it or the device fails, what was reached until then. Not thread-safe.
  [[nodiscard]] virtual Expected<double> improve(const Graph& graph, KernelPlan& plan, double cost) = 0;
  /// What no plan of the graph costs less than, whatever its layouts and what is fused: the price of the best layouts
  /// if all that may cost nothing within another launch (Target::may_cost_nothing) does so. It tells how far the plan
  /// of cost() and improve(), which need not be the best, can be from it, as far as prices of kernels go together: a
  /// convolution with more in its launch may have been measured to take less than alone. Empty if the target's layouts
  /// are fixed, if bytes count (a launch need not read what it computes itself) or memory, or if costs that this rests
  /// on are neither recorded nor can be measured. Not thread-safe: may measure.
  [[nodiscard]] virtual Expected<std::optional<double>> least(const Graph& graph) = 0;
  struct Unpriced {
    const Graph* graph = nullptr;
    KernelPlan* plan = nullptr;  ///< Of the graph.
  };
  /// Chooses the layouts of open plans ahead of cost(), and fuses, several at once in the caller's TBB arena. A plan
  /// for which something would have to be measured stays open. The outcome is that of cost() alone.
  virtual void prepare(std::span<const Unpriced> graphs) = 0;
  /// What the choices of layouts have taken.
  [[nodiscard]] virtual LayoutStatistics layout_statistics() const = 0;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual bool uses_time() const = 0;
};

[[nodiscard]] std::unique_ptr<CostModel> make_cost_model(CostFormula formula, MeasuredCosts& measured);

}  // namespace taso
