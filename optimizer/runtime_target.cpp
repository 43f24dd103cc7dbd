#include "optimizer/runtime_target.h"

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "optimizer/paired_times.h"
#include "runtime/backend.h"
#include "runtime/executor.h"
#include "runtime/lifetimes.h"
#include "runtime/lowering.h"
#include "runtime/measure.h"

namespace taso {
namespace {

constexpr std::uint64_t input_seed = 1;
constexpr int profiled_runs = 9;
/// The final of graphs that compete takes so long at most.
constexpr double seconds_of_final = 30;

/// Operations of a fused kernel's operators, each by its own types.
Expected<double> flops_of(const Fused& fused, const OperatorRegistry& registry) {
  double flops = 0;
  for (const FusedPart& part : fused.parts) {
    if (!registry.defines(part.request.op)) continue;
    std::vector<TensorType> inputs;
    for (const Operand& operand : part.request.inputs) inputs.push_back(operand.type);
    if (!registry.infer(part.request.op, part.request.attributes, inputs))  // operands of fewer elements are broadcast
      for (TensorType& input : inputs) input.shape = part.request.outputs[0].type.shape;
    TASO_ASSIGN(const Work work, registry.work(part.request.op, part.request.attributes, inputs));
    flops += work.flops;
  }
  return flops;
}

/// All that a lowered graph is, and what is fused of it follows from.
Hash128 identity_of(const LoweredGraph& lowered) {
  Hasher identity;
  const auto add_all = [&](const auto& numbers) {
    identity.add(std::uint64_t{numbers.size()});
    for (const auto number : numbers) identity.add(static_cast<std::int64_t>(number));
  };
  for (const LoweredStep& step : lowered.steps) {
    identity.add(step.kernel->key_hash).add(std::uint64_t{step.node});
    add_all(step.inputs);
    add_all(step.outputs);
  }
  for (const LoweredTensor& tensor : lowered.tensors) {
    identity.add(std::uint64_t{static_cast<std::uint8_t>(tensor.source)})
        .add(std::uint64_t{static_cast<std::uint8_t>(tensor.type.element)})
        .add(std::uint64_t{static_cast<std::uint8_t>(tensor.layout)});
    add_all(tensor.type.shape);
    identity.add(std::uint64_t{tensor.index}).add(tensor.offset).add(std::uint64_t{tensor.step});
  }
  add_all(lowered.outputs);
  return identity.finish();
}

/// What a lowered kernel costs besides time.
Expected<std::shared_ptr<const KernelInfo>> describe(const PlannedKernel& kernel, const Node& node, const Graph& graph,
                                                     const OperatorRegistry& registry) {
  KernelInfo info;
  info.key = kernel.key;
  info.hash = kernel.key_hash;
  info.op = kernel.request.op;
  for (const Operand& operand : kernel.request.inputs) info.bytes += static_cast<double>(operand.type.bytes());
  for (const Operand& operand : kernel.request.outputs) info.bytes += static_cast<double>(operand.type.bytes());
  if (kernel.request.fused) {
    TASO_ASSIGN(info.flops, flops_of(*kernel.request.fused, registry));
  } else if (node.is_op(info.op) && registry.defines(info.op)) {
    std::vector<TensorType> inputs;
    for (const Value& input : node.inputs) inputs.push_back(graph.type(input));
    TASO_ASSIGN(const Work work, registry.work(node.op, node.attributes, inputs));
    info.flops = work.flops;
  }
  return std::make_shared<const KernelInfo>(std::move(info));
}

std::string layouts_text(const std::vector<Operand>& operands) {
  std::string text;
  for (const Operand& operand : operands)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", to_string(operand.layout), operand.weight ? ":weight" : "");
  return text;
}

std::string layouts_text(const KernelRequest& request) {
  return layouts_text(request.inputs) + " -> " + layouts_text(request.outputs);
}

}  // namespace

struct RuntimeTarget::State {
  /// Lowerings of one thread, and the kernels they have named so far.
  struct Local {
    Local(Lowering lowering_of_thread, Lowering as_executed, LayoutSpaces spaces_of_thread)
        : lowering(std::move(lowering_of_thread)),
          executed(std::move(as_executed)),
          spaces(std::move(spaces_of_thread)) {
      lowering.set_skip_opaque(true);
    }
    Lowering lowering;  ///< What plans name.
    Lowering executed;  ///< What executors run: differs where launches are counted.
    LayoutSpaces spaces;
    /// Descriptions by PlannedKernel::number: of what the lowering plans, and of what is in the spaces.
    std::vector<std::shared_ptr<const KernelInfo>> lowered, of_spaces;
    FusionCache fusions;
    /// What was fused last: layouts that are chosen are often those of the rule, of which one asks next.
    Hash128 last_lowered;
    std::vector<Launch> last_launches;
  };

  State(const KernelLibrary& kernels, RuntimeTargetOptions target_options)
      : library(&kernels), options(std::move(target_options)), locals([this] {
          LoweringOptions lowering = lowering_options(*library, executor_options());
          Lowering executed(library->registry(), lowering);
          lowering.concat_in_place = !options.counting;
          lowering.cached_tenths = cached_tenths;
          return Local(Lowering(library->registry(), lowering), std::move(executed),
                       LayoutSpaces(library->registry(), options.threads, library->blocks(), cached_tenths,
                                    options.float_storage));
        }) {}

  /// Of the executors that time whole graphs.
  [[nodiscard]] ExecutorOptions executor_options() const {
    return {.threads = options.threads,
            .channels_last = !options.counting && !options.row_major,
            .weights = nullptr,
            .layouts = nullptr,
            .float_storage = options.float_storage,
            .fallbacks = fallbacks};
  }

  /// On so many streams a device times graphs at most.
  [[nodiscard]] std::size_t streams() const {
    return library->backend() ? std::min(options.streams, library->backend()->streams()) : 1;
  }

  /// An error if the user wants to stop.
  [[nodiscard]] Status unless_cancelled() const {
    if (options.cancelled && options.cancelled())
      return Error{ErrorCode::interrupted, "interrupted while graphs were timed", {}};
    return {};
  }

  [[nodiscard]] KernelRequest request_of(const KernelInfo& kernel) const {
    const std::lock_guard lock(mutex);
    const auto place = requests.find(kernel.hash);
    TASO_CHECK(place != requests.end(), "a kernel that no plan has named: " + kernel.key);
    return place->second;
  }

  /// The graph as executors run it, cut at opaque nodes, and where its tensors lie.
  [[nodiscard]] Expected<std::pair<LoweredGraph, MemoryPlan>> memory_of(const Graph& graph,
                                                                        const LayoutAssignment* layouts) {
    const CutGraph cut = cut_at_opaque(graph);
    TASO_ASSIGN(LoweredGraph lowered, locals.local().executed.lower(cut.graph, layouts));
    lowered = fused_for(std::move(lowered), *library, nullptr, &locals.local().fusions);
    MemoryPlan plan = plan_memory(lowered, library->backend() ? MemoryOf::device : MemoryOf::host);
    return std::pair(std::move(lowered), std::move(plan));
  }

  /// The description of a kernel that computes `node`, or converts what it makes. `infos`: of Local.
  Expected<std::shared_ptr<const KernelInfo>> info_of(const PlannedKernel& kernel, NodeId node, const Graph& graph,
                                                      std::vector<std::shared_ptr<const KernelInfo>>& infos) {
    if (infos.size() <= kernel.number) infos.resize(std::max<std::size_t>(kernel.number + 1, 2 * infos.size()));
    std::shared_ptr<const KernelInfo>& info = infos[kernel.number];
    if (info) return info;
    TASO_ASSIGN(info, describe(kernel, graph.node(node), graph, library->registry()));
    const std::lock_guard lock(mutex);
    requests.emplace(info->hash, kernel.request);
    return info;
  }

  /// The same of a kernel that has no number: it was made for this graph.
  Expected<std::shared_ptr<const KernelInfo>> info_of(const PlannedKernel& kernel, NodeId node, const Graph& graph) {
    {
      const std::lock_guard lock(mutex);
      if (const auto known = fused.find(kernel.key_hash); known != fused.end()) return known->second;
    }
    TASO_ASSIGN(std::shared_ptr<const KernelInfo> info, describe(kernel, graph.node(node), graph, library->registry()));
    const std::lock_guard lock(mutex);
    requests.emplace(info->hash, kernel.request);
    return fused.emplace(info->hash, std::move(info)).first->second;
  }

  /// The launches of a run, with what is fused as one. `layouts`: null by rule.
  [[nodiscard]] Expected<std::vector<Launch>> fused_launches(const Graph& graph, const LayoutAssignment* layouts) {
    Local& local = locals.local();
    TASO_ASSIGN(LoweredGraph lowered, local.lowering.lower(graph, layouts));
    const Hash128 identity = identity_of(lowered);
    // Of a device it may have turned out meanwhile that it does not run a kernel.
    const bool may_know = library->backend() == nullptr;
    if (may_know && identity == local.last_lowered) return local.last_launches;
    lowered = fused_for(std::move(lowered), *library, nullptr, &local.fusions);
    std::vector<Launch> launches;
    launches.reserve(lowered.steps.size());
    for (const LoweredStep& step : lowered.steps) {
      TASO_ASSIGN(std::shared_ptr<const KernelInfo> info, info_of(*step.kernel, step.node, graph));
      launches.push_back({std::move(info), step.node});
    }
    local.last_lowered = identity;
    local.last_launches = launches;
    return launches;
  }

  /// A run of a graph, kernel by kernel: the requests, in order, and what they took.
  struct Profiled {
    std::vector<KernelRequest> requests;
    std::vector<KernelProfile> launches;
  };
  [[nodiscard]] Expected<Profiled> profile(const Graph& graph, std::shared_ptr<const LayoutAssignment> layouts,
                                           int runs) const {
    TASO_RETURN_IF_ERROR(unless_cancelled());
    ExecutorOptions of_executor = executor_options();
    of_executor.layouts = std::move(layouts);
    of_executor.side_by_side = false;
    TASO_ASSIGN(Executor executor, Executor::create(cut_at_opaque(graph).graph, *library, of_executor));
    Profiled profiled;
    TASO_ASSIGN(profiled.launches, executor.profile(executor.random_inputs(input_seed), runs));
    for (const LoweredStep& step : executor.lowered().steps) profiled.requests.push_back(step.kernel->request);
    return profiled;
  }

  /// Samples of some of `graphs` for a comparison: SampleInTurn of optimizer/paired_times.h.
  [[nodiscard]] Expected<std::vector<std::vector<double>>> sample(std::span<const TimedGraph> graphs,
                                                                  const PairedTimes& paired,
                                                                  std::span<const std::size_t> of) {
    ExecutorOptions with = executor_options();
    with.weights = std::make_shared<WeightStore>();
    with.streams = streams();
    with.step_costs = step_costs;
    std::vector<Executor> executors;
    std::vector<std::vector<HostTensor>> inputs;
    for (const std::size_t place : paired.executors()) {
      TASO_RETURN_IF_ERROR(unless_cancelled());
      const TimedGraph& timed = graphs[of[place]];
      const CutGraph cut = cut_at_opaque(*timed.graph);
      with.layouts = timed.layouts;
      if (with.step_costs) {
        TASO_ASSIGN([[maybe_unused]] const std::size_t measured, measure_step_costs(cut.graph, *library, with));
      }
      TASO_ASSIGN(Executor executor, Executor::create(cut.graph, *library, with));
      inputs.push_back(executor.random_inputs(input_seed));
      executors.push_back(std::move(executor));
    }
    std::vector<Executor*> order;
    std::vector<std::span<const HostTensor>> feeds;
    for (std::size_t i = 0; i < executors.size(); ++i) {
      order.push_back(&executors[i]);
      feeds.emplace_back(inputs[i]);
    }
    WholeOptions whole;
    whole.maximum_rounds = static_cast<int>(paired.most_rounds());
    if (paired.is_final()) whole.time_limit_s = seconds_of_final;
    whole.thread_time = options.threads == 1 && !library->backend();
    whole.cancelled = options.cancelled;
    whole.after_round = [&](const auto& samples, auto& goes_on) { paired.after_round(samples, goes_on); };
    TASO_ASSIGN(auto samples, sample_interleaved(order, feeds, whole));
    TASO_RETURN_IF_ERROR(unless_cancelled());  // else too few samples to decide, and to be recorded
    return samples;
  }

  KernelTimer& kernel_timer() {
    if (!timer) {
      MeasureOptions measure;
      measure.cancelled = options.cancelled;
      measure.companions = options.companions;
      timer = std::make_unique<KernelTimer>(*library, std::move(measure));
    }
    return *timer;
  }

  const KernelLibrary* library;
  RuntimeTargetOptions options;
  int cached_tenths = 0;
  std::string identity;
  tbb::enumerable_thread_specific<Local> locals;
  mutable std::mutex mutex;
  std::unordered_map<Hash128, KernelRequest> requests;  ///< What measure() builds; guarded by `mutex`.
  /// Of launches that fusing has made; guarded by `mutex`.
  std::unordered_map<Hash128, std::shared_ptr<const KernelInfo>> fused;
  std::unique_ptr<KernelTimer> timer;
  std::shared_ptr<StepCosts> step_costs;
  std::shared_ptr<std::vector<std::string>> fallbacks = std::make_shared<std::vector<std::string>>();
};

double weight_bytes(const Graph& graph) {
  // Equal weights, constants or computed, have equal hashes.
  std::vector<Hash128> hashes(graph.id_bound());
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (!node.weight_only) continue;
    Hasher hasher;
    hasher.add(node.label);
    for (const Value& input : node.inputs) hasher.add(hashes[input.node]).add(std::uint64_t{input.port});
    hashes[id] = hasher.finish();
  }
  double bytes = 0;
  std::unordered_set<Hash128> seen;
  for (NodeId id = 0; id < graph.id_bound(); ++id) {
    if (!graph.contains(id) || graph.node(id).weight_only) continue;
    for (Value input : graph.node(id).inputs) {
      if (!graph.node(input.node).weight_only) continue;
      // Kernels and files have the numbers that are repeated.
      while (graph.node(input.node).is_op("broadcast")) input = graph.node(input.node).inputs[0];
      if (!graph.type(input).known) continue;
      const Hash128 hash = Hasher().add(hashes[input.node]).add(std::uint64_t{input.port}).finish();
      if (seen.insert(hash).second) bytes += static_cast<double>(graph.type(input).bytes());
    }
  }
  return bytes;
}

double working_set_bytes(const Graph& graph, const Target& target) {
  const Expected<double> peak = target.peak_bytes(graph, nullptr);
  return weight_bytes(graph) + (peak ? *peak : 0.0);
}

RuntimeTarget::RuntimeTarget(const KernelLibrary& library, RuntimeTargetOptions options)
    : state_(std::make_unique<State>(library, std::move(options))) {
  state_->identity =
      fmt::format("{}; threads={}{}", library.device(), state_->options.threads,
                  state_->options.counting ? "; counting" : "");  // kernel costs do not depend on the rule
  if (state_->options.float_storage != ElementType::f32)
    state_->identity += fmt::format("; floats={}", to_string(state_->options.float_storage));
  if (state_->options.companions > 0) state_->identity += fmt::format("; beside={}", state_->options.companions);
}

RuntimeTarget::~RuntimeTarget() = default;

const std::string& RuntimeTarget::identity() const { return state_->identity; }

Expected<KernelPlan> RuntimeTarget::plan(const Graph& graph) const {
  State::Local& local = state_->locals.local();
  KernelPlan plan;
  if (fuses()) {
    TASO_ASSIGN(plan.launches, state_->fused_launches(graph, nullptr));
    plan.fused = true;
    return plan;
  }
  TASO_ASSIGN(const std::vector<LoweredLaunch> launches, local.lowering.launches(graph));
  plan.launches.reserve(launches.size());
  for (const LoweredLaunch& launch : launches) {
    TASO_ASSIGN(std::shared_ptr<const KernelInfo> info,
                state_->info_of(*launch.kernel, launch.node, graph, local.lowered));
    plan.launches.push_back({std::move(info), launch.node});
  }
  return plan;
}

Expected<KernelPlan> RuntimeTarget::open_plan(const Graph& graph) const {
  if (state_->options.counting) return plan(graph);
  State::Local& local = state_->locals.local();
  auto open = std::make_shared<OpenPlan>();
  TASO_ASSIGN(open->space, local.spaces.of(graph));
  const LayoutSpace& space = open->space;
  open->kernels.reserve(space.kernels.size());
  for (std::size_t i = 0; i < space.kernels.size(); ++i) {
    TASO_ASSIGN(std::shared_ptr<const KernelInfo> info,
                state_->info_of(*space.kernels[i], space.nodes[i], graph, local.of_spaces));
    open->kernels.push_back(std::move(info));
  }
  KernelPlan plan;
  plan.open = std::move(open);
  return plan;
}

bool RuntimeTarget::fuses() const {
  return state_->library->backend() != nullptr ||
         (state_->library->set() == KernelSet::cpu && !state_->options.counting);
}

Status RuntimeTarget::fuse(const Graph& graph, KernelPlan& plan) const {
  TASO_CHECK(plan.layouts, "a plan whose layouts are open");
  TASO_ASSIGN(plan.launches, state_->fused_launches(graph, plan.layouts.get()));
  plan.fused = true;
  return {};
}

bool RuntimeTarget::may_cost_nothing(const KernelInfo& kernel) const {
  return fuses() && state_->library->may_cost_nothing(state_->request_of(kernel));
}

Expected<double> RuntimeTarget::peak_bytes(const Graph& graph, const LayoutAssignment* layouts) const {
  TASO_ASSIGN(const auto memory, state_->memory_of(graph, layouts));
  return static_cast<double>(memory.second.bytes);
}

Expected<double> RuntimeTarget::measure(const KernelInfo& kernel) {
  TASO_ASSIGN(const Measurement measurement, state_->kernel_timer().measure(state_->request_of(kernel)));
  return measurement.median_us * 1e-6;
}

Expected<double> RuntimeTarget::least_seconds(const KernelInfo& kernel) {
  TASO_ASSIGN(const double least_us, state_->kernel_timer().least_us(state_->request_of(kernel)));
  return least_us * 1e-6;
}

std::vector<std::string> RuntimeTarget::declined(const KernelPlan& plan) const {
  std::vector<std::string> operators;
  if (!state_->library->backend()) return operators;
  for (const Launch& launch : plan.launches)
    if (!state_->library->create_on_device(state_->request_of(*launch.kernel)).kernel)
      operators.push_back(launch.kernel->op);
  return operators;
}

int RuntimeTarget::cached_tenths(double bytes) {
  if (const std::shared_ptr<Backend>& backend = state_->library->backend()) return taso::cached_tenths(*backend, bytes);
  return taso::cached_tenths(static_cast<std::size_t>(bytes));
}

void RuntimeTarget::set_cached_tenths(int tenths) {
  state_->locals.clear();
  state_->cached_tenths = tenths;
}

void RuntimeTarget::set_step_costs(std::shared_ptr<StepCosts> costs) { state_->step_costs = std::move(costs); }

Expected<std::map<std::string, double>> RuntimeTarget::profile(const TimedGraph& graph) {
  TASO_ASSIGN(auto profiled, state_->profile(*graph.graph, graph.layouts, profiled_runs));
  std::map<std::string, std::pair<double, double>> sums;  // seconds and launches
  for (std::size_t i = 0; i < profiled.launches.size(); ++i) {
    KernelRequest& request = profiled.requests[i];
    request.cached_tenths = state_->cached_tenths;
    auto& [seconds, count] = sums[request.key()];
    seconds += profiled.launches[i].median_us * 1e-6;
    ++count;
  }
  std::map<std::string, double> means;
  for (const auto& [key, sum] : sums) means[key] = sum.first / sum.second;
  return means;
}

Expected<GraphTimes> RuntimeTarget::measure_graphs(std::span<const TimedGraph> graphs) {
  std::vector<char> is_reference;
  for (const TimedGraph& timed : graphs) is_reference.push_back(timed.reference ? 1 : 0);
  // Without a gain the baseline is chosen, which is the first one.
  return compare_in_turn(std::move(is_reference), 0, [&](const PairedTimes& paired, std::span<const std::size_t> of) {
    return state_->sample(graphs, paired, of);
  });
}

std::string RuntimeTarget::conditions() const {
  return state_->streams() > 1 ? fmt::format("streams={}", state_->streams()) : "";
}

std::vector<std::string> RuntimeTarget::fallbacks() const { return *state_->fallbacks; }

std::string RuntimeTarget::layouts_of(const KernelInfo& kernel) const {
  return layouts_text(state_->request_of(kernel));
}

Expected<std::vector<double>> RuntimeTarget::memory_in_use(const Graph& graph, const LayoutAssignment* layouts) const {
  TASO_ASSIGN(const auto memory, state_->memory_of(graph, layouts));
  const auto& [lowered, plan] = memory;
  // What begins to be in use at each step, less what has ceased to be; then the sums.
  std::vector<double> bytes(lowered.steps.size() + 2);
  for (TensorIndex i = 0; i < plan.places.size(); ++i) {
    const BufferLifetime& lifetime = plan.lifetimes[i];
    if (plan.places[i].root != i || !plan.is_used(i)) continue;
    bytes[lifetime.first] += static_cast<double>(lifetime.bytes);
    bytes[lifetime.last + 1] -= static_cast<double>(lifetime.bytes);
  }
  for (std::size_t i = 1; i < bytes.size(); ++i) bytes[i] += bytes[i - 1];
  bytes.resize(lowered.steps.size());
  return bytes;
}

Expected<std::vector<TimedLaunch>> RuntimeTarget::time_launches(const Graph& graph,
                                                                std::shared_ptr<const LayoutAssignment> layouts,
                                                                int runs) const {
  TASO_ASSIGN(const auto profiled, state_->profile(graph, std::move(layouts), runs));
  std::vector<TimedLaunch> launches;
  for (std::size_t i = 0; i < profiled.launches.size(); ++i) {
    const KernelProfile& launch = profiled.launches[i];
    launches.push_back({launch.node, launch.op, layouts_text(profiled.requests[i]), launch.implementation,
                        launch.median_us * 1e-6, launch.fused});
  }
  return launches;
}

}  // namespace taso
