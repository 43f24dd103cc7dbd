/// What a graph will run on: it says which kernels it would launch, measures them one by one, and times whole
/// graphs. The search knows a device only through this interface.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "runtime/layout_space.h"
#include "support/hash.h"
#include "support/status.h"

namespace taso {

/// A kernel as costs see it; shared between all launches of it.
struct KernelInfo {
  /// One line that determines what is measured: operator, attributes, types, layouts, threads. Launches of equal key
  /// cost the same.
  std::string key;
  Hash128 hash;      ///< Of the key.
  std::string op;    ///< Operator name, or "reorder" for a change of layout.
  double flops = 0;  ///< Scalar operations, from the operator's definition.
  double bytes = 0;  ///< Bytes read and written, each operand once.
};

/// One launch of a planned graph.
struct Launch {
  std::shared_ptr<const KernelInfo> kernel;
  NodeId node = 0;  ///< The node computed, or for a reorder the producer of the tensor.
};

/// The kernels of a graph with its layouts left open.
struct OpenPlan {
  LayoutSpace space;
  std::vector<std::shared_ptr<const KernelInfo>> kernels;  ///< One for each of space.kernels.
};

struct LayoutAttempt;  // optimizer/layout_choice.h

/// The launches of a graph. Views, weight-only and opaque nodes launch nothing.
struct KernelPlan {
  /// In execution order if the layouts are fixed; else of the layouts chosen (see CostModel::cost), empty before.
  std::vector<Launch> launches;
  std::shared_ptr<const OpenPlan> open;             ///< Null: the layouts are fixed.
  std::shared_ptr<const LayoutAssignment> layouts;  ///< Chosen; null: none yet, or fixed.
  std::shared_ptr<const LayoutAttempt> attempt;     ///< A choice that was not final; null: none.
  bool fused = false;                               ///< See Target::fuse.
  std::shared_ptr<const KernelPlan> by_rule;        ///< Target::plan, where CostModel::prepare has asked for it.
};

/// A graph to be timed whole.
struct TimedGraph {
  const Graph* graph = nullptr;
  std::shared_ptr<const LayoutAssignment> layouts;  ///< Null: by the target's rule.
  Hash128 kernels;                                  ///< Tells layouts apart; zero if by rule.
  bool reference = false;                           ///< What the others must be faster than to be chosen.
};

/// Times of several graphs run whole, in turn, in one process (optimizer/paired_times.h).
struct GraphTimes {
  std::vector<double> seconds;  ///< Of each graph, in the order given.
  /// Relative difference of two times that may be noise: from two copies of one graph (an A/A pair), and from the
  /// confidence intervals of what was compared.
  double noise = 0;
  /// What was run once more with references alone, since it seemed to be faster and was not surely so: one of the
  /// others, and then this one alone may be called faster than the references; or a reference.
  struct Final {
    std::size_t graph = 0;
    double noise = 0;  ///< Of this graph compared with each reference.
  };
  std::optional<Final> final;
  std::optional<Error> cut_short;  ///< What ended a final. Such times are not recorded.
  int date = 0;                    ///< When they were recorded, as 20261126; 0: just now.
};

/// Why a graph does not run as a whole.
struct GraphRefusal {
  std::string why;
  bool for_good = true;  ///< The same will be said again; not that something failed once.
};

class Target {
 public:
  virtual ~Target() = default;

  /// Device, library versions and number of threads: costs measured under another identity do not apply.
  [[nodiscard]] virtual const std::string& identity() const = 0;
  /// The kernels this target would launch with layouts by its rule. Deterministic; safe to call from several threads.
  [[nodiscard]] virtual Expected<KernelPlan> plan(const Graph& graph) const = 0;
  /// The same with layouts left open, where the target knows several; else plan().
  [[nodiscard]] virtual Expected<KernelPlan> open_plan(const Graph& graph) const { return plan(graph); }
  /// Whether several kernels that open_plan() names may be one launch when the graph runs. Then a plan's launches, with
  /// layouts chosen, are those of a run only after fuse(); what plan() names is fused already.
  [[nodiscard]] virtual bool fuses() const { return false; }
  /// Makes the launches of a plan with chosen layouts those of a run of the graph, and says so in `fused`. As plan().
  [[nodiscard]] virtual Status fuse(const Graph& /*graph*/, KernelPlan& /*plan*/) const { return {}; }
  /// Whether a kernel that open_plan() names may cost nothing where fuse() makes it a part of another launch; else that
  /// launch is taken to cost no less than the kernel alone.
  [[nodiscard]] virtual bool may_cost_nothing(const KernelInfo& /*kernel*/) const { return fuses(); }
  /// Bytes of the arena in which a run of the graph, cut at its opaque nodes, places tensors (runtime/lifetimes.h).
  /// `layouts`: null by rule.
  [[nodiscard]] virtual Expected<double> peak_bytes(const Graph& graph, const LayoutAssignment* layouts) const = 0;
  /// Seconds of one launch of a kernel that plan() has named. Called by one thread at a time, with nothing else
  /// running. An error of code interrupted: the user wants to stop.
  [[nodiscard]] virtual Expected<double> measure(const KernelInfo& kernel) = 0;
  /// Seconds that such a kernel takes at least, known with much less work; 0 if nothing is. As measure().
  [[nodiscard]] virtual Expected<double> least_seconds(const KernelInfo& /*kernel*/) { return 0.0; }
  /// Operators of the plan's launches that the target's device has no kernel for and leaves to the host, in order.
  [[nodiscard]] virtual std::vector<std::string> declined(const KernelPlan& /*plan*/) const { return {}; }
  /// Tenths of a working set of so many bytes that the device's last cache keeps from one run of a model to the next.
  [[nodiscard]] virtual int cached_tenths(double /*bytes*/) { return 0; }
  /// Seconds that one launch of each kernel takes inside of a graph that runs, by the keys of its plan: the mean over
  /// its launches. Empty where the target cannot tell.
  [[nodiscard]] virtual Expected<std::map<std::string, double>> profile(const TimedGraph& /*graph*/) {
    return std::map<std::string, double>{};
  }
  /// The target by whose plans the graph of fewest launches is searched for, as one to be timed. Another one where what
  /// this one launches does not tell: a runtime that copies what is split makes of two products one and a copy.
  [[nodiscard]] virtual const Target& for_launches() const { return *this; }
  /// What times of whole graphs depend on besides identity(), and times of kernels do not; times are recorded under it.
  [[nodiscard]] virtual std::string conditions() const { return ""; }
  /// What a device could not execute in the form in which it was planned, and computes in another way since, a line for
  /// each (ExecutorOptions::fallbacks).
  [[nodiscard]] virtual std::vector<std::string> fallbacks() const { return {}; }
  /// Runs whole graphs interleaved (compare_in_turn of optimizer/paired_times.h); the first one is a reference.
  [[nodiscard]] virtual Expected<GraphTimes> measure_graphs(std::span<const TimedGraph> graphs) = 0;
  /// Why a graph does not run as a whole, though its kernels do by themselves; nothing if it runs. For graphs that
  /// measure_graphs() could not run together.
  [[nodiscard]] virtual Expected<std::optional<GraphRefusal>> refusal(const TimedGraph& /*graph*/) {
    return std::optional<GraphRefusal>();
  }
};

}  // namespace taso
