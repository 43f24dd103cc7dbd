#include "session/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "operators/node_maps.h"
#include "optimizer/baseline.h"
#include "optimizer/changed_regions.h"
#include "optimizer/check.h"
#include "optimizer/cost_database.h"
#include "optimizer/html/html_report.h"
#include "optimizer/run_profile.h"
#include "optimizer/runtime_target.h"
#include "runtime/backend.h"
#include "runtime/measure.h"
#include "session/all_sizes.h"
#include "session/plan_choice.h"
#include "session/plan_costs.h"
#include "session/plan_file.h"
#include "session/plan_page.h"
#include "session/plan_text.h"
#include "session/sized_model.h"
#include "support/text_output.h"
#include "targets/worker_target.h"

namespace taso {
namespace {

/// So often a graph is run for the times of its kernels in the HTML report.
constexpr int profiled_runs = 10;

/// Kernels run there: not so on a device that is only described.
bool can_run(const KernelLibrary& library) { return !library.backend() || library.backend()->can_run(); }

RuntimeTargetOptions target_options(const SessionOptions& options) {
  RuntimeTargetOptions target = piece_target(options);
  target.counting = !options.cost.uses_time();
  target.streams = options.streams;
  target.cancelled = [stop = options.optimize.search.stop] { return stop.raised(); };
  return target;
}

/// The operators that are carried, each with the reason of the first node that has one of its own, or else of the
/// first.
std::vector<CarriedOperator> carried_operators(const Model& model) {
  std::vector<CarriedOperator> operators;
  std::map<std::string, std::size_t> places;
  std::set<std::string> explained;
  for (const CarriedNode& node : model.carried_nodes()) {
    const auto [place, fresh] = places.emplace(node.op, operators.size());
    if (fresh) operators.push_back({node.op, 0, node.reason});
    CarriedOperator& one = operators[place->second];
    ++one.count;
    if (node.behind.empty() && explained.insert(node.op).second) one.reason = node.reason;
  }
  return operators;
}

/// The rules that were used, in the model or in subgraphs, in the spelling of rule files.
std::vector<std::string> used_rules(const RuleSets& rules, const std::vector<RuleApplication>& applications,
                                    const std::vector<std::string>& in_bodies) {
  std::set<std::string> used(in_bodies.begin(), in_bodies.end());
  for (const RuleApplication& application : applications) used.insert(application.rule);
  std::vector<std::string> texts;
  for (const Substitution& rule : rules.all())
    if (used.contains(rule.name)) texts.push_back(to_string(rule, rules.search.catalog()));
  return texts;
}

/// Operators that are computed at run time.
std::size_t count_operators(const Graph& graph) {
  std::size_t count = 0;
  for (const NodeId id : graph.topological_order())
    if (const Node& node = graph.node(id); !node.weight_only && node.kind != NodeKind::input) ++count;
  return count;
}

/// What goes on.
std::string phase_text(const OptimizeProgress::State& state, std::size_t measured, std::size_t tried) {
  using Phase = OptimizeProgress::Phase;
  const std::string kernels = fmt::format("{} kernels measured, {} tried", measured, tried);
  switch (state.phase) {
    case Phase::pricing:
      return "pricing the model: " + kernels;
    case Phase::searching: {
      const SearchProgress& search = state.search;
      const double gain = search.start_cost > 0 ? 100 * (1 - search.best_cost / search.start_cost) : 0;
      return fmt::format("search {}: {} steps of at most {}, {} candidates, {} queued, cost down {:.1f} %, {}",
                         state.searches, search.steps, state.max_steps, search.candidates, search.queued, gain,
                         kernels);
    }
    case Phase::timing:
      return fmt::format("timing {} graphs whole", state.graphs);
    case Phase::checking:
      return "checking the result";
    case Phase::planning:
      return "planning for several devices";
    case Phase::writing:
      return "writing";
  }
  return "";
}

}  // namespace

ImportOptions import_options(const SessionOptions& options) {
  ImportOptions import;
  import.input_shapes = options.input_shapes;
  return import;
}

RuntimeTargetOptions piece_target(const SessionOptions& options) {
  return {.threads = options.threads,
          .counting = false,
          .companions = options.devices ? ranks_of_host(options.devices->mesh) - 1 : 0,
          .row_major = options.row_major,
          .float_storage = options.float_storage,
          .cancelled = {}};
}

struct Session::State {
  State(SessionOptions o, const OperatorRegistry& r, const KernelLibrary& l, RuleSets loaded, MessageSink sink)
      : options(std::move(o)),
        registry(r),
        library(l),
        message(std::move(sink)),
        rules(std::move(loaded)),
        fusing_rules(allowed_rules(rules.for_baseline().rules(), options.optimize.rounding, true), r),
        target(l, target_options(options)) {}

  [[nodiscard]] Status open_costs();
  [[nodiscard]] Status open_runtime();
  [[nodiscard]] Target& measured_target() { return runtime ? static_cast<Target&>(*runtime) : target; }
  void keep_original_unless_faster(OptimizeResult& result) const;
  [[nodiscard]] Status open_piece_times();
  [[nodiscard]] Expected<std::optional<ReachedGraph>> choose_for_devices(const std::vector<ReachedGraph>& graphs,
                                                                         const OptimizeOptions& with);
  [[nodiscard]] Status plan_result(SessionResult& result);
  [[nodiscard]] Status check_written_out(const SessionResult& result);
  [[nodiscard]] CheckOptions check_options(const Model& model) const;
  [[nodiscard]] std::vector<CostDatabase::Entry> used_costs() const;
  [[nodiscard]] OptimizeOptions optimize_options(const Model& model, std::atomic<std::size_t>& unwritable) const;
  [[nodiscard]] OptimizeOptions optimize_options(std::atomic<std::size_t>& unwritable, AllSizes* all_sizes) const;
  [[nodiscard]] Status optimize_bodies(SessionResult& result, std::vector<std::string>& notes);
  [[nodiscard]] Expected<std::vector<BodySteps>> optimize_bodies_of(Model& model, SessionResult& result,
                                                                    std::vector<std::string>& notes);
  [[nodiscard]] Status keep_sizes(const AllSizes& all_sizes, const std::optional<CheckOptions>& check,
                                  SessionResult& result) const;
  [[nodiscard]] Expected<SaveReport> save(const SessionResult& result) const;
  [[nodiscard]] Status write_certificate(const SessionResult& result, bool external_data) const;
  [[nodiscard]] std::vector<std::string> node_names() const { return taso::node_names(sized.model()); }
  [[nodiscard]] ReportContext report_context() const;
  [[nodiscard]] Status write_html(const SessionResult& result, const ReportContext& context);

  SessionOptions options;
  const OperatorRegistry& registry;
  const KernelLibrary& library;
  MessageSink message;
  RuleSets rules;
  RuleIndex fusing_rules;  ///< Those by which a model that is read is fused before it runs.
  FileIdentity original;   ///< Of the model's file as it was read; for the certificate.
  SizedModel sized;
  RuntimeTarget target;
  std::unique_ptr<WorkerTarget> runtime;     ///< Where the result is for one: what is measured instead of `target`.
  std::shared_ptr<RecordedChoices> choices;  ///< Null without a backend.
  std::optional<CostDatabase> database;
  std::optional<MeasuredCosts> measured;
  std::unique_ptr<PieceTimes> piece_times;  ///< Null: no plan needs them.
  PlanChoice choice;                        ///< Of the graph for several devices, once there was one.
  OptimizeProgress progress;
  std::unique_ptr<CostModel> cost_model;
};

/// Starts the worker of the runtime that the result is for, if it is for one.
Status Session::State::open_runtime() {
  if (!options.worker) return {};
  WorkerOptions worker = *options.worker;
  worker.threads = options.threads;
  worker.cancelled = [stop = options.optimize.search.stop] { return stop.raised(); };
  worker.report = [this](const std::string& text) {
    if (message) message(MessageLevel::important, text);
  };
  const std::string device = library.device();
  WorkerTargetOptions of_worker{std::move(worker), device.substr(0, device.find(';')),
                                static_cast<double>(last_level_cache_bytes())};
  TASO_ASSIGN(runtime, WorkerTarget::open(std::move(of_worker), sized.model(), registry, target));
  return {};
}

/// Of a runtime that is not ours only whole graphs that it runs show what is faster: what they do not show to be faster
/// than the original does not take its place.
void Session::State::keep_original_unless_faster(OptimizeResult& result) const {
  if (!runtime || result.choice == Choice::original || result.chosen_anew || !options.cost.uses_time() ||
      options.optimize.timed_candidates == 0)
    return;
  const std::optional<double>&now = result.result.measured_seconds, &before = result.original.measured_seconds;
  const auto noise = [&] { return result.choice == Choice::baseline ? result.noise_of_references : *result.noise; };
  if (result.noise && now && before && *now < *before * (1 - noise())) return;
  constexpr std::string_view untimed = "graphs were not timed whole", who_decides = ", the predicted costs decide";
  for (std::string& note : result.notes)
    if (note.starts_with(std::string(untimed) + std::string(who_decides)))
      note.erase(untimed.size(), who_decides.size());
  result.notes.emplace_back(result.noise ? "nothing is faster than the original beyond the noise: it stays"
                                         : "nothing was shown to be faster than the original: it stays");
  result.graph = sized.model().graph();
  normalize(result.graph, registry);
  result.choice = Choice::original;
  result.gain = false;
  result.applications.clear();
  result.baseline_applications = 0;
  result.result = result.original;
  result.graph_cost = result.original.cost;
  result.chosen_layouts = nullptr;
  result.check.reset();
}

Status Session::State::open_costs() {
  const bool timed = options.cost.uses_time();
  TASO_RETURN_IF_ERROR(open_runtime());
  TASO_ASSIGN(choices, open_choices(options.costs, library, {}));  // costs have the same messages
  if (options.streams > 1 && can_run(library)) {
    TASO_ASSIGN(std::shared_ptr<RecordedStepCosts> of_steps, open_step_costs(options.costs, library));
    target.set_step_costs(std::move(of_steps));
  }
  TASO_ASSIGN(database,
              taso::open_costs(options.costs, measured_target().identity(), timed, !can_run(library), message));
  measured.emplace(measured_target(), *database, !options.costs.recorded_only);
  if (runtime) {
    runtime->set_recorded(
        [this](const KernelInfo& kernel) { return database->find("kernel", kernel.key).has_value(); });
    constexpr std::string_view kind = "gauge", key = "least us";
    runtime->set_gauge(database->find(kind, key).value_or(0),
                       [this, kind, key](double least_us) { (void)database->replace(kind, key, least_us); });
  }
  if (timed && !runtime) {
    TASO_ASSIGN(const int tenths, measured->cached_tenths(working_set_bytes(sized.model().graph(), target)));
    target.set_cached_tenths(tenths);
  }
  cost_model = make_cost_model(options.cost, *measured);
  return {};
}

/// The options of the search in a model or a subgraph. Both arguments are referred to.
OptimizeOptions Session::State::optimize_options(const Model& model, std::atomic<std::size_t>& unwritable) const {
  OptimizeOptions result = options.optimize;
  result.baseline_rules = &rules.for_baseline();
  result.writable = [&model, &unwritable](const RewriteResult& rewrite) {
    std::vector<NodeId> nodes = rewrite.added;
    nodes.insert(nodes.end(), rewrite.changed.begin(), rewrite.changed.end());
    const bool writable = model.can_save(rewrite.graph, nodes);
    if (!writable) unwritable.fetch_add(1, std::memory_order_relaxed);
    return writable;
  };
  // A runtime that is not ours reads the file, and fuses what it will, itself.
  if (!runtime)
    result.as_run = [this, &model](const Graph& graph) -> Expected<Graph> {
      TASO_ASSIGN(const Model written, model.read_again(graph));
      Graph read = written.graph();
      normalize(read, registry);
      TASO_ASSIGN(Baseline fused, make_baseline(read, fusing_rules, registry, {}, options.optimize.search.stop));
      return std::move(fused.graph);
    };
  if (result.check) result.check = check_options(model);
  return result;
}

/// The options of the search in the model. Both arguments are referred to; `all_sizes` is null where sizes are numbers.
OptimizeOptions Session::State::optimize_options(std::atomic<std::size_t>& unwritable, AllSizes* all_sizes) const {
  OptimizeOptions result = optimize_options(sized.model(), unwritable);
  if (all_sizes != nullptr) {
    result.applicable = [all_sizes](const Graph& graph, const Substitution& rule, const Match& match) {
      return !all_sizes->refused().contains(graph, rule, match);
    };
    result.at_all_sizes = [all_sizes](const std::vector<RuleApplication>& applications) {
      return all_sizes->check(applications);
    };
  }
  if (options.devices && options.devices->search == PlanSearch::partition) result.search.max_steps = 0;
  if (options.devices && options.devices->search != PlanSearch::sequential) result.rules_to_choose = rules.plans;
  return result;
}

/// Optimizes the subgraphs of a model, those inside of them first, and puts what is better in their place.
Expected<std::vector<BodySteps>> Session::State::optimize_bodies_of(Model& model, SessionResult& result,
                                                                    std::vector<std::string>& notes) {
  std::vector<BodySteps> changed;
  for (const BodyPlace& place : model.bodies()) {
    const std::string name = model.describe_body(place);
    Expected<Model> body = model.body(place);
    if (!body) {
      notes.push_back(fmt::format("{} stays as it is: {}", name, body.error().message));
      continue;
    }
    BodySteps done{place.node, place.attribute, {}, {}};
    TASO_ASSIGN(done.bodies, optimize_bodies_of(*body, result, notes));
    std::atomic<std::size_t> unwritable{0};
    OptimizeOptions with = optimize_options(*body, unwritable);
    with.progress = &progress;
    TASO_ASSIGN(const OptimizeResult optimized,
                taso::optimize(body->graph(), rules.search, library, *measured, *cost_model, with));
    TASO_ASSIGN(std::optional<Model> next, model.with_body(place, *body, optimized.graph));
    if (!next) continue;
    done.steps = steps_of(optimized.applications);
    for (const RuleApplication& application : optimized.applications)
      result.rules_in_bodies.push_back(application.rule);
    result.unwritable += unwritable;
    notes.push_back(fmt::format("{}: {} operators instead of {}", name, count_operators(optimized.graph),
                                count_operators(body->graph())));
    changed.push_back(std::move(done));
    model = std::move(*next);
  }
  return changed;
}

/// Optimizes subgraphs of nodes of control flow. What they read from outside has sizes where it has them at all.
Status Session::State::optimize_bodies(SessionResult& result, std::vector<std::string>& notes) {
  if (sized.model().bodies().empty()) return {};
  if (runtime) {
    notes.emplace_back("subgraphs of control flow stay as they are: of another runtime, none is timed by itself");
    return {};
  }
  Model model = sized.model();
  if (sized.symbolic()) {
    TASO_ASSIGN(model, model.without_sizes());
  }
  TASO_ASSIGN(result.bodies, optimize_bodies_of(model, result, notes));
  std::sort(result.rules_in_bodies.begin(), result.rules_in_bodies.end());
  const auto repeated = std::unique(result.rules_in_bodies.begin(), result.rules_in_bodies.end());
  result.rules_in_bodies.erase(repeated, result.rules_in_bodies.end());
  if (result.bodies.empty()) return {};
  TASO_ASSIGN(sized, SizedModel::of(std::move(model), registry, options.assumed, options.ranges));
  return {};
}

/// Repeats at all sizes what was done at one, and checks it at another one.
Status Session::State::keep_sizes(const AllSizes& all_sizes, const std::optional<CheckOptions>& check,
                                  SessionResult& result) const {
  OptimizeResult& optimized = result.optimized;
  TASO_ASSIGN(result.at_all_sizes, all_sizes.repeat(optimized.applications));
  for (std::string& note : all_sizes.notes()) optimized.notes.push_back(std::move(note));
  if (!check || optimized.choice == Choice::original || optimized.search.stop == StopReason::interrupted) return {};
  TASO_ASSIGN(std::string note, all_sizes.check_at_another_size(result.at_all_sizes, library, *check));
  if (!note.empty()) optimized.notes.push_back(std::move(note));
  return {};
}

Status Session::State::open_piece_times() {
  if (piece_times != nullptr || options.devices->cost != PlanCost::time) return {};
  TASO_ASSIGN(piece_times, PieceTimes::open(library, piece_target(options), options.costs, message));
  TASO_RETURN_IF_ERROR(piece_times->expect_model(sized.model().graph()));
  TASO_ASSIGN(options.devices->mesh, piece_times->mesh(*options.devices, options.costs));
  return {};
}

/// The graph that is planned instead of the one that is best on one device.
Expected<std::optional<ReachedGraph>> Session::State::choose_for_devices(const std::vector<ReachedGraph>& graphs,
                                                                         const OptimizeOptions& with) {
  const PlanRequest& request = *options.devices;
  if (request.interrupted != nullptr && *request.interrupted) return std::optional<ReachedGraph>();
  progress.enter(OptimizeProgress::Phase::planning);
  TASO_RETURN_IF_ERROR(open_piece_times());
  ExecutorOptions executor;
  executor.threads = options.threads;
  executor.channels_last = !options.row_major;
  TASO_ASSIGN(choice, choose_plan(graphs, {sized.model(), rules, fusing_rules, library, request, with, executor,
                                           piece_times.get()}));
  return std::exchange(choice.graph, std::nullopt);
}

Status Session::State::plan_result(SessionResult& result) {
  PlanRequest request = *options.devices;
  if (!choice.fastest.empty()) {
    request.take = choice.fastest;
    request.take_is_fastest = true;
  }
  const auto interrupted = [&] { return request.interrupted != nullptr && *request.interrupted; };
  if (interrupted()) return {};
  progress.enter(OptimizeProgress::Phase::planning);
  TASO_RETURN_IF_ERROR(open_piece_times());
  // A plan is of the file that is written, by whoever reads it.
  TASO_ASSIGN(result.written, sized.model().read_again(result.optimized.graph));
  Graph graph = result.written->graph();
  normalize(graph, registry);
  Expected<DevicePlan> plan = plan_for_devices(std::move(graph), taso::node_names(*result.written), request, registry,
                                               piece_times.get(), piece_times ? &fusing_rules : nullptr);
  // Whoever interrupts wants what there is.
  if (!plan && interrupted()) return {};
  TASO_ASSIGN(result.plan, std::move(plan));
  result.plan->sizes = sized.sizes();
  result.plan->searched = report_of(choice, request.search, *result.plan);
  std::vector<PlanExport> forms;
  for (const auto& [form, path] : options.outputs.exports) forms.push_back(form);
  TASO_ASSIGN(result.exports, export_plans(forms, result.plan->graph, result.plan->plan, *result.written,
                                           request.strategy_files, registry));
  return check_written_out(result);
}

/// Runs what a plan is written out as beside the result.
Status Session::State::check_written_out(const SessionResult& result) {
  if (!options.optimize.check) return {};
  progress.enter(OptimizeProgress::Phase::checking);
  const auto compare = [&](const std::string& what, const std::optional<Graph>& graph) -> Status {
    if (!graph) return {};
    TASO_ASSIGN(const CheckReport report, check(result.plan->graph, *graph, library, check_options(sized.model())));
    return report.passed ? Status()
                         : Status(Error{ErrorCode::check_failed, "the plan as " + what + ": " + report.failure(), {}});
  };
  TASO_RETURN_IF_ERROR(compare("one model", result.plan->expanded));
  for (const ExportedPlan& exported : result.exports)
    TASO_RETURN_IF_ERROR(compare(std::string(to_string(exported.form)), exported.together));
  return {};
}

/// Of graphs of the model.
CheckOptions Session::State::check_options(const Model& model) const {
  CheckOptions check = *options.optimize.check;
  check.threads = options.threads;
  check.float_storage = options.float_storage;
  check.node_names = taso::node_names(model);
  for (const TensorDeclaration& output : model.outputs()) check.output_names.push_back(output.name);
  return check;
}

std::vector<CostDatabase::Entry> Session::State::used_costs() const {
  std::vector<CostDatabase::Entry> used = measured->used();
  const auto add = [&](const std::vector<CostDatabase::Entry>& more) {
    used.insert(used.end(), more.begin(), more.end());
  };
  if (piece_times) add(piece_times->used());
  if (choices) add(choices->used());
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  return used;
}

Expected<SaveReport> Session::State::save(const SessionResult& result) const {
  SaveOptions save_options;
  save_options.external_data = options.outputs.external_data;
  const std::string& file = options.outputs.model;
  return sized.symbolic() ? sized.symbolic()->save(result.at_all_sizes, file, save_options)
                          : sized.model().save(result.optimized.graph, file, save_options);
}

/// What was done to the model, for taso-verify --certificate.
Status Session::State::write_certificate(const SessionResult& result, bool external_data) const {
  Certificate certificate;
  certificate.original = original;
  TASO_ASSIGN(certificate.optimized, identify_file(options.outputs.model));
  if (external_data) {
    TASO_ASSIGN(certificate.external_data, identify_file(options.outputs.model + ".data"));
  }
  if (result.plan && !options.outputs.plan.empty()) {
    TASO_ASSIGN(certificate.plan, identify_file(options.outputs.plan));
  }
  certificate.input_shapes = options.input_shapes;
  const auto& domains = registry.node_maps().allowed_domains();
  certificate.allowed_domains.assign(domains.begin(), domains.end());
  if (sized.symbolic()) certificate.symbols = sized.symbolic()->ranges();
  certificate.bodies = result.bodies;
  certificate.steps = sized.symbolic() ? result.at_all_sizes.steps : steps_of(result.optimized.applications);
  certificate.rules = used_rules(rules, result.optimized.applications, result.rules_in_bodies);
  return write_text(options.outputs.certificate, to_json(certificate));
}

ReportContext Session::State::report_context() const {
  ReportContext context;
  context.model = options.model;
  context.output = options.outputs.model;
  context.node_names = node_names();
  context.coverage = sized.model().coverage();
  context.ill_typed_nodes = sized.model().ill_typed_nodes().size();
  context.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - options.start).count();
  context.rules = rules.search.rules().size();
  context.numeric_classes = to_string(options.optimize.rounding);
  context.costs = database->path();
  context.measured_kernels = measured->measured();
  if (choices) context.tuning = choices->tuning();
  return context;
}

Status Session::State::write_html(const SessionResult& session_result, const ReportContext& context) {
  const OptimizeResult& result = session_result.optimized;
  Graph imported = sized.model().graph();
  normalize(imported, registry);
  // Graphs are run where their times count, may be measured, and are not what the user has interrupted.
  const bool runs =
      cost_model->uses_time() && measured->may_measure() && can_run(library) && !options.optimize.search.stop.raised();
  const ProfileOptions profile{.choose_layouts = result.strategy != Strategy::graph, .runs = runs ? profiled_runs : 0};
  HtmlReport report;
  report.result = &result;
  report.context = &context;
  report.original.graph = &imported;
  TASO_ASSIGN(report.original.run, profile_run(imported, target, *measured, *cost_model, profile));
  report.optimized.graph = &result.graph;
  TASO_ASSIGN(report.optimized.run, profile_run(result.graph, target, *measured, *cost_model, profile));
  TASO_ASSIGN(report.regions, changed_regions(imported, result.graph, rules.all(), result.applications, registry));
  report.carried = carried_operators(sized.model());
  if (session_result.plan) report.plan = plan_section(*session_result.plan);
  return write_text(options.outputs.html, report_html(report));
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Expected<Session> Session::open(SessionOptions options, const OperatorRegistry& registry, const KernelLibrary& library,
                                const MessageSink& message) {
  TASO_ASSIGN(RuleSets rules, load_rule_sets(options.rules, registry, message));
  auto state = std::make_unique<State>(std::move(options), registry, library, std::move(rules), message);
  const SessionOptions& kept = state->options;
  if (!kept.outputs.certificate.empty()) {
    TASO_ASSIGN(state->original, identify_file(kept.model));
  }
  TASO_ASSIGN(state->sized, SizedModel::load(kept.model, registry, import_options(kept), kept.assumed, kept.ranges));
  describe(state->sized, message);
  if (kept.devices && (kept.devices->expanded || !kept.outputs.exports.empty()) && state->sized.symbolic())
    return Error{ErrorCode::usage,
                 fmt::format("--emit {}: a plan is for one size of symbolic extents; give them with --input-shape",
                             kept.devices->expanded ? "onnx" : to_string(kept.outputs.exports.begin()->first)),
                 {}};
  TASO_RETURN_IF_ERROR(state->open_costs());
  return Session(std::move(state));
}

Expected<SessionResult> Session::optimize() {
  State& state = *state_;
  SessionResult result;
  std::vector<std::string> notes;
  TASO_RETURN_IF_ERROR(state.optimize_bodies(result, notes));
  std::atomic<std::size_t> unwritable{0};
  std::optional<AllSizes> all_sizes;
  if (state.sized.symbolic()) all_sizes.emplace(state.sized, state.rules.all(), state.registry);
  OptimizeOptions options = state.optimize_options(unwritable, all_sizes ? &*all_sizes : nullptr);
  options.progress = &state.progress;
  if (state.options.devices &&
      (state.options.devices->search != PlanSearch::sequential || state.options.devices->times_plans()))
    options.choose_anew = [&](const std::vector<ReachedGraph>& graphs) {
      return state.choose_for_devices(graphs, options);
    };
  TASO_ASSIGN(result.optimized, taso::optimize(state.sized.model().graph(), state.rules.search, state.library,
                                               *state.measured, *state.cost_model, options));
  state.keep_original_unless_faster(result.optimized);
  result.unwritable += unwritable;
  for (std::string& note : notes) result.optimized.notes.push_back(std::move(note));
  if (std::string warning = coverage_warning(state.sized.model().coverage()); !warning.empty())
    result.optimized.notes.push_back(std::move(warning));
  if (all_sizes) TASO_RETURN_IF_ERROR(state.keep_sizes(*all_sizes, options.check, result));
  if (state.options.devices) TASO_RETURN_IF_ERROR(state.plan_result(result));
  return result;
}

Expected<SessionFiles> Session::write(const SessionResult& result) {
  State& state = *state_;
  state.progress.enter(OptimizeProgress::Phase::writing);
  const SessionOutputs& outputs = state.options.outputs;
  SessionFiles files;
  if (!outputs.costs.empty()) TASO_RETURN_IF_ERROR(write_text(outputs.costs, export_text(state.used_costs())));
  TASO_ASSIGN(files.model, state.save(result));
  if (result.plan && !outputs.plan.empty()) {
    TASO_ASSIGN(const FileIdentity model, identify_file(outputs.model));
    TASO_RETURN_IF_ERROR(write_text(outputs.plan, plan_json(*result.plan, model)));
  }
  if (result.plan && result.plan->expanded && !outputs.expanded.empty()) {
    SaveOptions save_options;
    save_options.external_data = outputs.external_data;
    save_options.verbatim = false;  // Pieces are read as such.
    TASO_ASSIGN(files.expanded, result.written->save(*result.plan->expanded, outputs.expanded, save_options));
  }
  for (const ExportedPlan& exported : result.exports) {
    TASO_ASSIGN(const std::int64_t annotated,
                write_export(exported, *result.written, outputs.exports.at(exported.form), outputs.external_data));
    files.annotated_tensors += annotated;
  }
  if (!outputs.certificate.empty()) TASO_RETURN_IF_ERROR(state.write_certificate(result, files.model.external_data));
  files.context = state.report_context();
  if (result.plan) files.context.plan = result.plan->searched;
  if (!outputs.json.empty())
    TASO_RETURN_IF_ERROR(write_text(outputs.json, report_json(result.optimized, files.context)));
  if (!outputs.html.empty()) TASO_RETURN_IF_ERROR(state.write_html(result, files.context));
  return files;
}

Status Session::write_error(const Error& error) const {
  const std::string& json = state_->options.outputs.json;
  return json.empty() ? Status() : write_text(json, error_json(error, state_->options.model));
}

const Model& Session::model() const { return state_->sized.model(); }

const RuleSets& Session::rules() const { return state_->rules; }

std::string Session::progress() const {
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - state_->options.start;
  const StopSignal& stop = state_->options.optimize.search.stop;
  std::string time = fmt::format("{:.0f} s", seconds.count());
  if (stop.deadline) {
    const std::chrono::duration<double> limit = *stop.deadline - state_->options.start;
    time = fmt::format("{:.0f} of {:.0f} s", seconds.count(), limit.count());
  }
  return time + ": " + phase_text(state_->progress.state(), state_->measured->measured(), state_->measured->tried());
}

}  // namespace taso
