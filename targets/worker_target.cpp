#include "targets/worker_target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "operators/node_maps.h"
#include "optimizer/paired_times.h"
#include "runtime/input_bounds.h"
#include "runtime/measure.h"
#include "targets/gauge.h"
#include "targets/part_file.h"
#include "targets/runtime_parts.h"

namespace taso {
namespace {

/// Raised with every change of what is measured of a part, and how.
constexpr int generation = 3;
/// Of so many kernels one finds out at most what they take inside of a graph.
constexpr std::size_t most_profiled = 64;
/// So many parts are measured in one request.
constexpr std::size_t most_together = 16;
/// All parts of a request so often, one after the other, each by so many runs; the least of the medians counts, as what
/// disturbs makes runs longer. Where the gauge says that all passes were disturbed, there are more, after pauses, as
/// long as they are not too many, in one request and in all.
constexpr int passes = 2, most_passes = 12;
constexpr MeasureRequest one_pass{.runs = 6, .warm_up = 2};
constexpr auto pause = std::chrono::milliseconds(250);
constexpr int most_pauses = 160;
/// So often the gauge is run to begin with, so that it knows what is calm.
constexpr int first_gauges = 12;
/// Runs of whole graphs: in requests that take about so long, and below so many seconds in blocks, as WholeOptions has
/// it.
constexpr double request_seconds = 3, block_below = 25e-3;
constexpr int block_runs = 4, most_rounds_of_request = 32;
/// Weights of this share of the last-level cache stay in it (as Backend's cached_tenths has it).
constexpr double stays_cached = 0.7;
/// So many bytes are streamed to empty the caches, as for our own kernels (runtime/measure.h).
constexpr std::int64_t evicted_bytes = std::int64_t{64} << 20;
/// Whole graphs are run so long at most, first all of them and then those of the final, once there are enough rounds to
/// decide anything.
constexpr double seconds_of_graphs = 30, seconds_of_final = 60;
constexpr std::size_t fewest_rounds_of_graphs = 11;

/// Removes files at the end of a scope.
struct Files {
  std::vector<ModelRun> runs;
  ~Files() {
    std::error_code error;
    for (const ModelRun& run : runs) {
      std::filesystem::remove(run.file, error);
      std::filesystem::remove(run.file + ".data", error);
    }
  }
};

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

/// The first part of each kernel; of too many kernels of those that probably take the most time.
std::vector<std::size_t> to_profile(const std::vector<std::shared_ptr<const KernelInfo>>& kernels) {
  std::vector<std::size_t> firsts;
  std::map<Hash128, double> seconds;
  for (std::size_t part = 0; part < kernels.size(); ++part) {
    const auto [place, fresh] = seconds.try_emplace(kernels[part]->hash, 0.0);
    if (fresh) firsts.push_back(part);
    place->second += estimated_seconds(kernels[part]->flops, kernels[part]->bytes);
  }
  std::stable_sort(firsts.begin(), firsts.end(), [&](std::size_t a, std::size_t b) {
    return seconds.at(kernels[a]->hash) > seconds.at(kernels[b]->hash);
  });
  if (firsts.size() > most_profiled) firsts.resize(most_profiled);
  return firsts;
}

Error runtime_failure(std::string message) { return {ErrorCode::device_unavailable, std::move(message), {}}; }

}  // namespace

/// A folder of temporary files.
class WorkerFolder {
 public:
  static Expected<std::unique_ptr<WorkerFolder>> make() {
    std::error_code error;
    std::string path = (std::filesystem::temp_directory_path(error) / "taso-worker-XXXXXX").string();
    if (error || ::mkdtemp(path.data()) == nullptr)
      return bad_input(fmt::format("cannot make a folder of temporary files: {}", std::strerror(errno)), {path});
    return std::unique_ptr<WorkerFolder>(new WorkerFolder(std::move(path)));
  }
  WorkerFolder(const WorkerFolder&) = delete;
  WorkerFolder& operator=(const WorkerFolder&) = delete;
  ~WorkerFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  /// A name that no file had before.
  [[nodiscard]] std::string next() { return fmt::format("{}/{}.onnx", path_, count_++); }

 private:
  explicit WorkerFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
  std::size_t count_ = 0;
};

struct WorkerTarget::State {
  State(Worker started, const Model& original, const OperatorRegistry& operators, const RuntimeTarget& placing)
      : worker(std::move(started)), model(&original), registry(&operators), allowing(operators), host(&placing) {}

  /// Notes which operators of other domains the model has.
  [[nodiscard]] Status note_domains() {
    std::set<std::string> known, domains;
    for (const auto& mapping : registry->node_maps().all()) known.insert(mapping->domain);
    for (const OriginalNode& node : model->original_nodes()) {
      types_of_model.emplace(node.domain, node.op_type);
      if (!node.domain.empty() && known.contains(node.domain)) domains.insert(node.domain);
    }
    for (const std::string& domain : domains) {
      TASO_ASSIGN(allowing, allow_domain(domain, model->path(), allowing));
    }
    return {};
  }

  /// Whether weights of a graph do not stay in the caches from run to run. Of one that is as large as the cache little
  /// does, as each run reads all of it. What rules merge and what stays by itself of the same weight counts twice. A
  /// part that is searched by itself, and what a loop repeats, has no fewer weights around it than the model.
  [[nodiscard]] bool is_cold(const Graph& graph) const { return is_cold_model || outgrows(graph); }
  [[nodiscard]] bool outgrows(const Graph& graph) const {
    return cache > 0 && weight_bytes(graph) > stays_cached * cache;
  }

  /// The domains, besides ONNX's own, of operators in which a part is written: those that maps know its operators in
  /// and that the result's file may have, as it is allowed or the model has such nodes.
  [[nodiscard]] std::set<std::string> domains_of(const Graph& part) const {
    std::set<std::string> domains;
    for (NodeId id = 0; id < part.id_bound(); ++id) {
      if (!part.contains(id)) continue;
      for (const auto& mapping : registry->node_maps().of_operator(part.node(id).op))
        if (!mapping->domain.empty() && (registry->node_maps().allows(mapping->domain) ||
                                         types_of_model.contains({mapping->domain, mapping->type})))
          domains.insert(mapping->domain);
    }
    return domains;
  }

  [[nodiscard]] static bool reads_weights(const StandalonePart& part) {
    return std::find(part.roles.begin(), part.roles.end(), StandalonePart::Role::weight) != part.roles.end();
  }

  /// A part that a plan has named.
  struct Part {
    std::shared_ptr<const StandalonePart> alone;
    std::shared_ptr<const KernelInfo> kernel;
    int copies = 1;
    bool cold = false;         ///< The caches are emptied before it runs, of its weights.
    bool has_domains = false;  ///< domains_of is not empty.
    std::size_t plan = 0;      ///< The first plan that named it.
  };

  /// The part's kernel, described once. `cold`: whether its weights are, if it reads any.
  [[nodiscard]] Expected<std::shared_ptr<const KernelInfo>> kernel_of(const Graph& graph, const RuntimePart& part,
                                                                      bool cold, std::size_t plan) {
    const Hash128 signature = Hasher().add(signature_of(graph, part)).add(std::uint64_t{cold ? 1U : 0U}).finish();
    const std::lock_guard lock(mutex);
    if (const auto known = kernels.find(signature); known != kernels.end()) return known->second;
    TASO_ASSIGN(StandalonePart made, standalone(graph, part, *registry));
    const int copies = copies_of(made);
    cold = cold && reads_weights(made);
    const std::set<std::string> domains = domains_of(made.graph);
    KernelInfo info;
    info.key = fmt::format("opset {}: {}{}{}", model->opset(), made.text,
                           copies > 1 ? fmt::format(" ; {} copies", copies) : "", cold ? " ; evicted" : "");
    if (!domains.empty()) info.key += fmt::format(" ; of {}", fmt::join(domains, ", "));
    info.hash = hash_text(info.key);
    info.op = made.op;
    info.flops = made.flops;
    info.bytes = made.bytes;
    auto kernel = std::make_shared<const KernelInfo>(std::move(info));
    kernels.emplace(signature, kernel);
    const auto alone = std::make_shared<const StandalonePart>(std::move(made));
    if (parts.try_emplace(kernel->hash, Part{alone, kernel, copies, cold, !domains.empty(), plan}).second)
      waiting.push_back(kernel->hash);
    return kernel;
  }

  /// A part, and others of its plan of which nothing is known.
  [[nodiscard]] std::vector<Part> to_measure(const KernelInfo& kernel) {
    const std::lock_guard lock(mutex);
    const auto first = parts.find(kernel.hash);
    TASO_CHECK(first != parts.end(), "a part that no plan has named: " + kernel.key);
    std::vector<Part> together{first->second};
    std::vector<Hash128> left;
    for (const Hash128& hash : waiting) {
      if (hash == kernel.hash) continue;
      const Part& part = parts.at(hash);
      if (part.plan != first->second.plan || together.size() == most_together) {
        left.push_back(hash);
      } else if (!is_recorded || !is_recorded(*part.kernel)) {
        together.push_back(part);
      }
    }
    waiting = std::move(left);
    return together;
  }

  /// Measures parts, into `seconds` or `refused`.
  [[nodiscard]] Status measure(const std::vector<Part>& together) {
    std::vector<ToRun> models;
    for (const Part& part : together) models.push_back({part.alone.get(), part.copies, part.cold, part.has_domains});
    TASO_ASSIGN(const std::vector<Run> runs, run(models));
    for (std::size_t i = 0; i < together.size(); ++i) {
      const Hash128& hash = together[i].kernel->hash;
      if (runs[i].refusal.empty())
        seconds[hash] = runs[i].seconds;
      else
        refused[hash] = runs[i].refusal;
    }
    return {};
  }

  /// A model of so many copies of a part, and what came of it: seconds of one, or why it did not run.
  struct ToRun {
    const StandalonePart* part = nullptr;
    int copies = 1;
    bool cold = false, has_domains = false;
  };
  struct Run {
    double seconds = 0;
    std::string refusal;
  };
  /// The runs `written` of models in files, in the same order.
  [[nodiscard]] Status measure_in_passes(const std::vector<ModelRun>& files, const std::vector<std::size_t>& written,
                                         const std::vector<ToRun>& models, std::vector<Run>& runs) {
    TASO_RETURN_IF_ERROR(prepare_gauge());
    std::vector<std::size_t> running(written.size());  // places in `files`
    std::iota(running.begin(), running.end(), std::size_t{0});
    bool calm = false;
    for (int made = 0; made < passes || (!calm && made < most_passes && pauses < most_pauses); ++made) {
      if (running.empty()) break;
      if (made >= passes) rest();
      std::vector<ModelRun> pass;
      for (const std::size_t i : running) pass.push_back(files[i]);
      pass.push_back(gauge->model());
      TASO_ASSIGN(const std::vector<ModelTimes> times, worker.measure(pass, one_pass));
      note_gauge(times.back(), calm);
      std::vector<std::size_t> still_running;
      for (std::size_t i = 0; i < running.size(); ++i) {
        Run& run = runs[written[running[i]]];
        if (!times[i].refusal.empty()) {  // It is not asked again; what it took in a pass before counts.
          if (run.seconds == 0) run.refusal = times[i].refusal;
          continue;
        }
        const double seconds = median_of(times[i].seconds) / models[written[running[i]]].copies;
        run.seconds = run.seconds == 0 ? seconds : std::min(run.seconds, seconds);
        still_running.push_back(running[i]);
      }
      running = std::move(still_running);
    }
    return {};
  }

  /// Takes what the gauge took in a pass. A processor that was never calm, in all pauses, is slower than it was.
  void note_gauge(const ModelTimes& times, bool& calm) {
    const double before = gauge->least_us();
    const bool now = gauge->is_calm(times);
    calm = calm || now;
    was_calm = was_calm || now;
    if (!was_calm && pauses == most_pauses) gauge->forget();
    if (save_gauge && gauge->least_us() != before) save_gauge(gauge->least_us());
  }

  void rest() {
    ++pauses;
    std::this_thread::sleep_for(pause);
  }

  /// Makes the gauge. If nothing is known of it, it runs a few times, so that one disturbance does not last for all.
  [[nodiscard]] Status prepare_gauge() {
    if (gauge) return {};
    TASO_ASSIGN(Gauge made, Gauge::make(folder->next(), known_gauge_us));
    gauge = std::move(made);
    if (known_gauge_us > 0) return {};
    std::vector<double> before;
    bool calm = false;
    for (int i = 0; i < first_gauges; ++i) {
      TASO_ASSIGN(const std::vector<ModelTimes> times, worker.measure({&gauge->model(), 1}, one_pass));
      note_gauge(times[0], calm);
      // To the last digit: no clock says so, but one that does not run.
      if (times[0].seconds == before) break;
      before = times[0].seconds;
      std::this_thread::sleep_for(pause);
    }
    return {};
  }

  /// Runs models in requests of a few.
  [[nodiscard]] Expected<std::vector<Run>> run(const std::vector<ToRun>& models) {
    std::vector<Run> runs(models.size());
    for (std::size_t first = 0; first < models.size(); first += most_together) {
      Files files;
      std::vector<std::size_t> written;
      for (std::size_t i = first; i < std::min(first + most_together, models.size()); ++i) {
        const ToRun& one = models[i];
        const OperatorRegistry& operators = one.has_domains ? allowing : *registry;
        Expected<ModelRun> file = write_part(*one.part, one.copies, model->opset(), operators, folder->next());
        if (file) {
          if (one.cold) file->evict = evicted_bytes;
          files.runs.push_back(std::move(*file));
          written.push_back(i);
        } else {
          runs[i].refusal = file.error().message;
        }
      }
      TASO_RETURN_IF_ERROR(measure_in_passes(files.runs, written, models, runs));
    }
    return runs;
  }

  /// What a whole graph is fed.
  [[nodiscard]] Expected<std::vector<ModelInput>> inputs_of(const Graph& graph) const {
    const std::vector<std::int64_t> bounds = input_bounds_of(graph, *registry);
    std::vector<ModelInput> inputs;
    const std::vector<TensorDeclaration>& declared = model->inputs();
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      const NodeId id = graph.inputs()[i];
      const TensorType& type = graph.node(id).outputs[0];
      if (!type.known || type_name(type.element).empty())
        return runtime_failure(
            fmt::format("input \"{}\" is of a type or shape that no random input is made of", declared[i].name));
      inputs.push_back({declared[i].name, type, 0, bounds[i]});
    }
    return inputs;
  }

  /// Writes a graph to the folder.
  [[nodiscard]] Status write(const Graph& graph, Files& written) {
    ModelRun run{folder->next(), {}, 0};
    TASO_ASSIGN(run.inputs, inputs_of(graph));
    written.runs.push_back(run);
    TASO_ASSIGN([[maybe_unused]] const SaveReport report, model->save(graph, run.file));
    return {};
  }

  /// WorkerTarget::refusal.
  [[nodiscard]] Expected<std::optional<GraphRefusal>> refusal(const TimedGraph& timed) {
    Files written;
    TASO_RETURN_IF_ERROR(write(*timed.graph, written));
    return worker.refusal(written.runs[0]);
  }

  /// Samples of some of `graphs` for a comparison: SampleInTurn of optimizer/paired_times.h.
  [[nodiscard]] Expected<std::vector<std::vector<double>>> sample(std::span<const TimedGraph> graphs,
                                                                  const PairedTimes& paired,
                                                                  std::span<const std::size_t> of) {
    Files written;
    for (const std::size_t place : of) TASO_RETURN_IF_ERROR(write(*graphs[place].graph, written));
    std::vector<ModelRun> runs;  // A file that stands there twice is opened twice.
    for (const std::size_t place : paired.executors()) runs.push_back(written.runs[place]);
    return sample(runs, paired);
  }

  [[nodiscard]] Expected<std::vector<std::vector<double>>> sample(const std::vector<ModelRun>& runs,
                                                                  const PairedTimes& paired) {
    const std::size_t count = runs.size();
    const double most_seconds = paired.is_final() ? seconds_of_final : seconds_of_graphs;
    std::vector<std::vector<double>> samples(count);
    std::vector<char> goes_on(count, 1);
    // The first request opens the models and says how long they take.
    InterleaveRequest request{.rounds = 1, .warm_up = 2, .block = 1};
    double spent = 0;
    for (bool probing = true; samples[0].size() < paired.most_rounds(); probing = false) {
      std::vector<ModelRun> running;
      std::vector<std::size_t> numbers;
      for (std::size_t i = 0; i < count; ++i)
        if (goes_on[i] != 0) {
          running.push_back(runs[i]);
          numbers.push_back(i);
        }
      if (running.empty() || (spent > most_seconds && samples[0].size() >= fewest_rounds_of_graphs)) break;
      TASO_ASSIGN(const std::vector<ModelTimes> times, worker.interleave(running, request));
      double round = 0, fastest = times[0].seconds.empty() ? 0 : times[0].seconds[0];
      for (const ModelTimes& one : times) {
        if (!one.refusal.empty()) return runtime_failure("the runtime does not run a graph: " + one.refusal);
        round += one.seconds.back();
        fastest = std::min(fastest, one.seconds.back());
      }
      spent += round * request.rounds * (request.block > 1 ? request.block + 1 : 1);
      for (int r = 0; !probing && r < request.rounds; ++r) {
        for (std::size_t i = 0; i < numbers.size(); ++i)
          if (goes_on[numbers[i]] != 0)
            samples[numbers[i]].push_back(times[i].seconds[static_cast<std::size_t>(r)] * 1e6);
        paired.after_round(samples, goes_on);
        if (std::find(goes_on.begin(), goes_on.end(), 1) == goes_on.end()) return samples;
      }
      if (probing && fastest < block_below) request.block = block_runs;
      request.warm_up = 0;
      const double of_round = round * (request.block > 1 ? request.block + 1 : 1);
      const auto left = static_cast<int>(paired.most_rounds() - samples[0].size());
      request.rounds =
          std::clamp(static_cast<int>(request_seconds / of_round), 1, std::min(most_rounds_of_request, left));
    }
    return samples;
  }

  Worker worker;
  const Model* model;
  const OperatorRegistry* registry;
  OperatorRegistry allowing;  ///< The same, with the domains of the model's nodes allowed.
  std::set<std::pair<std::string, std::string>> types_of_model;  ///< Domain and type of the model's nodes.
  const RuntimeTarget* host;
  std::function<bool(const KernelInfo&)> is_recorded;
  std::unique_ptr<WorkerFolder> folder;
  std::string identity;
  bool is_cold_model = false;  ///< What rewrites begin with outgrows the cache.
  double cache = 0;            ///< Bytes of the processor's last-level cache; 0: not known, or of another device.
  std::optional<Gauge> gauge;  ///< Once something was measured.
  int pauses = 0;              ///< Made so far.
  bool was_calm = false;       ///< In any pass.
  double known_gauge_us = 0;   ///< Of other runs.
  std::function<void(double)> save_gauge;
  std::mutex mutex;  ///< Of what plans name.
  std::size_t plans = 0;
  std::unordered_map<Hash128, std::shared_ptr<const KernelInfo>> kernels;  ///< By signature.
  std::unordered_map<Hash128, Part> parts;                                 ///< By the hash of the key.
  std::vector<Hash128> waiting;                                            ///< Named, and not measured; in order.
  std::unordered_map<Hash128, double> seconds;                             ///< Measured along with others, too.
  std::unordered_map<Hash128, std::string> refused;                        ///< And why.
};

WorkerTarget::WorkerTarget(std::unique_ptr<State> state) : state_(std::move(state)) {}
WorkerTarget::~WorkerTarget() = default;

Expected<std::unique_ptr<WorkerTarget>> WorkerTarget::open(WorkerTargetOptions options, const Model& model,
                                                           const OperatorRegistry& registry,
                                                           const RuntimeTarget& host) {
  TASO_ASSIGN(Worker worker, Worker::open(std::move(options.worker)));
  auto state = std::make_unique<State>(std::move(worker), model, registry, host);
  TASO_ASSIGN(state->folder, WorkerFolder::make());
  const WorkerHello& hello = state->worker.hello();
  const WorkerSetting& setting = state->worker.setting();
  const bool elsewhere = !setting.device.empty();
  state->identity = fmt::format("{} {}; {}{}; threads={}; parts {}", hello.runtime, hello.version,
                                setting.provider.empty() ? "" : setting.provider + "; ",
                                elsewhere ? setting.device + "; " + options.processor : options.processor,
                                state->worker.options().threads, generation);
  if (!elsewhere) state->cache = options.cache_bytes;
  TASO_RETURN_IF_ERROR(state->note_domains());
  state->is_cold_model = state->outgrows(model.graph());
  return std::unique_ptr<WorkerTarget>(new WorkerTarget(std::move(state)));
}

const std::string& WorkerTarget::identity() const { return state_->identity; }

Expected<KernelPlan> WorkerTarget::plan(const Graph& graph) const {
  std::size_t number = 0;
  {
    const std::lock_guard lock(state_->mutex);
    number = ++state_->plans;
  }
  KernelPlan plan;
  const bool cold = state_->is_cold(graph);
  for (const RuntimePart& part : parts_of(graph, *state_->registry)) {
    TASO_ASSIGN(std::shared_ptr<const KernelInfo> kernel, state_->kernel_of(graph, part, cold, number));
    plan.launches.push_back({std::move(kernel), part.nodes.back()});
  }
  return plan;
}

Expected<double> WorkerTarget::peak_bytes(const Graph& graph, const LayoutAssignment* /*layouts*/) const {
  return state_->host->peak_bytes(graph, nullptr);
}

const Target& WorkerTarget::for_launches() const { return *state_->host; }

Expected<double> WorkerTarget::measure(const KernelInfo& kernel) {
  const auto known = [&]() -> std::optional<Expected<double>> {
    if (const auto place = state_->seconds.find(kernel.hash); place != state_->seconds.end()) return place->second;
    if (const auto place = state_->refused.find(kernel.hash); place != state_->refused.end())
      return runtime_failure(
          fmt::format("{} does not run '{}': {}", state_->worker.hello().runtime, kernel.key, place->second));
    return std::nullopt;
  };
  if (const auto result = known()) return *result;
  TASO_RETURN_IF_ERROR(state_->measure(state_->to_measure(kernel)));
  return *known();
}

Expected<std::map<std::string, double>> WorkerTarget::profile(const TimedGraph& graph) {
  State& state = *state_;
  const bool cold = state.is_cold(*graph.graph);
  const std::vector<RuntimePart> parts = parts_of(*graph.graph, *state.registry);
  const std::vector<RuntimePiece> pieces = pieces_of(*graph.graph, parts);
  std::vector<std::shared_ptr<const KernelInfo>> kernels;
  for (const RuntimePart& part : parts) {
    TASO_ASSIGN(std::shared_ptr<const KernelInfo> kernel, state.kernel_of(*graph.graph, part, cold, 0));
    kernels.push_back(std::move(kernel));
  }
  // Of each kernel the first part that it computes, with the parts of the piece around that.
  std::map<Hash128, std::size_t> places;  ///< Of kernels among the models.
  std::vector<State::ToRun> models;
  const auto add_alone = [&](std::size_t part) {
    if (!places.emplace(kernels[part]->hash, models.size()).second) return;
    const std::lock_guard lock(state.mutex);
    const State::Part& known = state.parts.at(kernels[part]->hash);
    models.push_back({known.alone.get(), known.copies, known.cold, known.has_domains});
  };
  const std::vector<std::size_t> profiled = to_profile(kernels);
  for (const std::size_t part : profiled)
    for (const std::size_t one : pieces[part].parts) add_alone(one);
  std::vector<StandalonePart> of_pieces;
  for (const std::size_t part : profiled) {
    TASO_ASSIGN(StandalonePart piece, standalone(*graph.graph, pieces[part], *state.registry));
    of_pieces.push_back(std::move(piece));
  }
  const std::size_t first_piece = models.size();
  for (const StandalonePart& piece : of_pieces)
    models.push_back(
        {&piece, copies_of(piece), cold && State::reads_weights(piece), !state.domains_of(piece.graph).empty()});
  TASO_ASSIGN(const std::vector<State::Run> runs, state.run(models));
  std::map<std::string, double> inside;
  for (std::size_t i = 0; i < profiled.size(); ++i) {
    const State::Run& piece = runs[first_piece + i];
    double apart = 0;
    bool all = piece.refusal.empty();
    for (const std::size_t part : pieces[profiled[i]].parts) {
      const State::Run& one = runs[places.at(kernels[part]->hash)];
      all = all && one.refusal.empty();
      apart += one.seconds;
    }
    const KernelInfo& kernel = *kernels[profiled[i]];
    if (all) inside[kernel.key] = runs[places.at(kernel.hash)].seconds * piece.seconds / apart;
  }
  return inside;
}

Expected<GraphTimes> WorkerTarget::measure_graphs(std::span<const TimedGraph> graphs) {
  std::vector<char> is_reference;
  for (const TimedGraph& timed : graphs) is_reference.push_back(timed.reference ? 1 : 0);
  // Without a gain the original is chosen (Session), which is the last of the references.
  std::size_t original = 0;
  for (std::size_t i = 0; i < is_reference.size(); ++i)
    if (is_reference[i] != 0) original = i;
  return compare_in_turn(
      std::move(is_reference), original,
      [&](const PairedTimes& paired, std::span<const std::size_t> of) { return state_->sample(graphs, paired, of); });
}

Expected<std::optional<GraphRefusal>> WorkerTarget::refusal(const TimedGraph& graph) { return state_->refusal(graph); }

void WorkerTarget::set_gauge(double least_us, std::function<void(double)> save) {
  state_->known_gauge_us = least_us;
  state_->save_gauge = std::move(save);
}

void WorkerTarget::set_recorded(std::function<bool(const KernelInfo&)> is_recorded) {
  state_->is_recorded = std::move(is_recorded);
}

}  // namespace taso
