// taso-opt: optimizes an ONNX model. See docs/optimizing.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "certificate/certificate.h"
#include "certificate/symbolic_model.h"
#include "graph/unmet.h"
#include "onnx_io/external_files.h"
#include "onnx_io/model.h"
#include "operators/node_maps.h"
#include "operators/registry.h"
#include "optimizer/cost_database.h"
#include "optimizer/cost_model.h"
#include "optimizer/optimize.h"
#include "optimizer/report.h"
#include "partition/topology.h"
#include "session/coverage_report.h"
#include "session/model_plan.h"
#include "session/plan_export.h"
#include "session/plan_file.h"
#include "session/plan_page.h"
#include "session/plan_text.h"
#include "session/rule_report.h"
#include "session/session.h"
#include "session/sized_model.h"
#include "support/byte_size.h"
#include "support/file.h"
#include "support/text_output.h"
#include "tools/common.h"
#include "tools/costs.h"
#include "tools/device.h"
#include "tools/files.h"
#include "tools/proved_specs.h"
#include "tools/specs.h"
#include "tools/worker_device.h"

namespace taso {
namespace {

constexpr const char* program_name = "taso-opt";

struct Options {
  tools::CommonOptions common;
  tools::FileOptions files;
  tools::DeviceOptions device;
  tools::WorkerDeviceOptions worker;
  SessionOptions session;
  // Texts, from which values of the session are made.
  std::string cost = "time", rounding = "reassoc", strategy = "joint", method = "backtracking",
              rule_layouts = "channels-last";
  std::vector<std::string> input_shapes, assumed, ranges;
  std::string why;                      // A rule; empty: the model is optimized.
  std::vector<std::string> covered;     // Models and folders; empty: likewise.
  std::optional<std::int64_t> devices;  // For how many the result is planned.
  std::string topology, mesh, memory_per_device, partition = "exact", plan_search = "joint", plan_cost = "roofline",
                                                 transport = "any", take_plan;
  std::vector<std::string> emit;             // Forms of the plan.
  std::vector<std::string> allowed_domains;  // Whose operators the worker's runtime is known to have.
  std::size_t timed_plans = PlanRequest().timed_plans;
  std::optional<std::size_t> streams;
  double time_limit = 0, memory_limit_mb = 512;
  std::optional<double> check_rtol;
  std::string check = "sampled";
  bool no_check = false, fail_if_no_gain = false, explain = false, no_certificate = false;
  const CLI::Option *beam_width = nullptr, *rerank = nullptr, *plan_search_option = nullptr, *rerank_plans = nullptr,
                    *transport_option = nullptr;
  std::vector<const CLI::Option*> of_plans;  // Of no use without --devices or --topology.
};

/// The options that name files.
void declare_files(CLI::App& app, Options& options) {
  tools::FileOptions& files = options.files;
  files.reads(app, "model", options.session.model, "The ONNX model; required but with --coverage", "MODEL");
  files.reads(app, "--topology", options.topology,
              "The devices and their links (docs/topologies.md); implies --devices", "FILE");
  files.writes(
      app, "-o,--output", options.session.outputs.model,
      "Where the optimized model goes; may be the model itself; required but with --why, --plan-only and --coverage",
      "MODEL");
  files.writes(
      app, "--plan-only", options.session.outputs.plan,
      "Optimize nothing; plan the model as it is for --devices, and write only that to FILE. Weights whose data "
      "is not there are taken as shapes");
  files.reads(
      app, "--rules", options.session.rules.files,
      "Rule file, instead of the shipped rules, but those that simplify: rule text, or .pb of the original TASO; "
      "repeatable. The proof marks in it are believed: taso-verify FILE checks them");
  files.reads(app, "--baseline-rules", options.session.rules.baseline_files,
              "Rule file for the baseline (default: as --rules): to compare rules for the search; repeatable");
  files.reads(app, "--device-properties", options.device.properties,
              "With --no-measure: plan for the device that FILE describes (taso-run --print-device writes it)");
  tools::add_cost_option(app, files, options.session.costs.file,
                         "Database of measured costs (default: " + default_cost_database_path() +
                             "; with --no-measure also the files of costs/ of the specifications)");
  files.writes(app, "--record", options.session.outputs.costs,
               "Write the costs that were used as text, for --costs elsewhere");
  files.writes(
      app, "--html", options.session.outputs.html,
      "Write the report as one HTML page to FILE: what changed, where each rule was applied, and both graphs to look "
      "through");
}

/// The options of plans for several devices.
void declare_plans(CLI::App& app, Options& options) {
  options.of_plans = {
      app.add_option("--mesh", options.mesh,
                     "The mesh of --devices, slowest links first: 2x4 (default: as the topology's levels)")
          ->type_name("AxB"),
      app.add_option("--memory-per-device", options.memory_per_device,
                     "Plans keep to so much memory of each device (80GB, 512MiB), or to no limit: none (default: what "
                     "the topology says)")
          ->type_name("SIZE|none"),
      app.add_option("--partition", options.partition,
                     "exact: the plan of least cost; recursive: one mesh axis after the other, as Tofu does")
          ->check(CLI::IsMember({"exact", "recursive"}))
          ->capture_default_str(),
      options.plan_search_option =
          app.add_option("--plan-search", options.plan_search,
                         "joint: graphs are searched by what their plans cost; sequential: the graph that is best on "
                         "one device, then its plan; partition: the plan of the model as it is")
              ->check(CLI::IsMember({"joint", "sequential", "partition"}))
              ->capture_default_str(),
      app.add_option(
             "--plan-cost", options.plan_cost,
             "What operators of a plan cost: roofline (the rates that the topology states), time (of kernels on "
             "--device, recorded or measured), flops, bytes")
          ->check(CLI::IsMember({"roofline", "time", "flops", "bytes"}))
          ->capture_default_str(),
      options.rerank_plans = app.add_option("--rerank-plans", options.timed_plans,
                                            "With --plan-cost time: the K plans of least cost are run whole, with "
                                            "one device beside them, if there are as many processors as ranks; the "
                                            "fastest is written (0: costs decide)")
                                 ->type_name("K")
                                 ->capture_default_str(),
      app.add_option("--take-plan", options.take_plan,
                     "Take this of the other plans, as the table of plans calls it: \"data parallel\"; to compare what "
                     "they take when they run")
          ->type_name("NAME"),
      options.transport_option =
          app.add_option("--transport", options.transport,
                         "With --plan-cost time: transfers cost what taso-run --measure-collectives has recorded of "
                         "ranks that communicate by mpi or threads; any: by what is recorded of these, or else as the "
                         "topology states; none: as it states")
              ->check(CLI::IsMember({"any", "mpi", "threads", "none"}))
              ->capture_default_str(),
      app.add_option("--emit", options.emit,
                     "Write the plan, too, as; repeatable. onnx: one ordinary model OUT.expanded.onnx, in which the "
                     "pieces of all devices stand one beside the other; sharding: the model with ONNX's sharding "
                     "annotations, OUT.sharding.onnx; ort-ranks, tensorrt-ranks: a model per rank with the collectives "
                     "of ONNX Runtime or TensorRT, in the folder OUT.ort or OUT.tensorrt; jax: a script that runs it "
                     "on host devices of JAX, in the folder OUT.jax")
          ->type_name("FORM")
          ->expected(1)
          ->take_all()
          ->check(CLI::IsMember({"onnx", "sharding", "ort-ranks", "tensorrt-ranks", "jax"}))};
}

void declare(CLI::App& app, Options& options) {
  tools::add_common_options(app, options.files, options.common, {".op", ".map", ".rules", ".costs"});
  declare_files(app, options);
  OptimizeOptions& optimize = options.session.optimize;
  app.add_flag("--require-proofs", options.session.rules.require_proofs,
               "Refuse rules without a proof mark (exit code 3)");
  app.add_option("--disable-rule", options.session.rules.disabled, "Leave out the rule NAME; repeatable")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  app.add_option("--max-rule-size", optimize.max_rule_size,
                 "Search with rules of at most so many operators on the source side; the baseline uses all rules")
      ->check(tools::whole_number(1, 1000));
  tools::add_device_options(app, options.device,
                            "Target: cpu, or a runtime that a worker drives (docs/adding-a-target.md): ort, "
                            "ort:PROVIDER, openvino, worker:PROGRAM");
  tools::add_worker_options(app, options.worker);
  app.add_option("--allow-domain", options.allowed_domains,
                 "The runtime of --device has operators of this domain (com.microsoft): the result may have some, too; "
                 "repeatable")
      ->type_name("DOMAIN");
  app.add_option("--threads", options.session.threads, "Threads that the kernels will run with")
      ->check(tools::whole_number(1, 1024))
      ->capture_default_str();
  tools::add_streams_option(app, options.streams,
                            "Graphs are timed whole, as taso-run runs them, on at most so many streams of a backend");
  app.add_option("--cost", options.cost, "time, flops, bytes, launches, memory, or a sum such as time+0.1*bytes")
      ->type_name("FORMULA")
      ->capture_default_str();
  app.add_option("--strategy", options.strategy,
                 "joint: graph and layouts together; graph, layout: only the one; sequential: one after the other")
      ->check(CLI::IsMember({"joint", "graph", "layout", "sequential"}))
      ->capture_default_str();
  app.add_option("--rule-layouts", options.rule_layouts,
                 "Layouts where they are not chosen: channels-last (convolutions), or row-major (as in the file)")
      ->check(CLI::IsMember({"channels-last", "row-major"}))
      ->capture_default_str();
  app.add_option("--search", options.method,
                 "backtracking: the cheapest graph is expanded first; beam: step by step, the cheapest of each")
      ->check(CLI::IsMember({"backtracking", "beam"}))
      ->capture_default_str();
  options.beam_width =
      app.add_option("--beam-width", optimize.search.beam_width, "Graphs expanded of each step of a beam search")
          ->check(tools::whole_number(1))
          ->capture_default_str();
  app.add_option("--alpha", optimize.search.alpha, "Graphs costlier than this times the best are dropped (at least 1)")
      ->check(tools::real_number(1, 1e6))
      ->capture_default_str();
  app.add_option("--steps", optimize.search.max_steps, "Most graphs to expand")
      ->check(tools::whole_number())
      ->capture_default_str();
  app.add_option("--restarts", optimize.search.restarts,
                 "So often the search starts again from the best graph at most, as long as that pays (0: never)")
      ->check(tools::whole_number(0, 1000))
      ->capture_default_str();
  app.add_option("--part-size", optimize.search.part_size,
                 "Graphs of more than three times so many operators are searched in parts of about so many (0: never)")
      ->check(tools::whole_number(0))
      ->capture_default_str();
  app.add_option("--patience", optimize.search.patience, "Stop after so many expansions without improvement")
      ->check(tools::whole_number())
      ->capture_default_str();
  options.rerank =
      app.add_option(
             "--rerank", optimize.timed_candidates,
             "With --cost time: the K cheapest graphs are timed whole, beside original, baseline, the one of fewest "
             "launches and up to three without a rule of the cheapest (0: costs decide)")
          ->type_name("K")
          ->check(tools::whole_number(0, 1000))
          ->default_str(std::to_string(optimize.timed_candidates));
  app.add_option("--time-limit", options.time_limit,
                 "Seconds for measuring, searching and timing together: then the best so far is checked and written; "
                 "with --devices as many again for planning; results depend on the machine's speed")
      ->check(tools::real_number(0, 1e9, true))
      ->type_name("S");
  app.add_option("--memory-limit", options.memory_limit_mb, "MB of graphs kept by the search")
      ->check(tools::real_number(1, 1e9))
      ->capture_default_str();
  app.add_flag("--no-measure", options.session.costs.recorded_only,
               "Use recorded costs only; a missing one is an error (exit code 7)");
  app.add_option(
      "--devices", options.devices,
      "Plan the result for so many devices, and write the plan to OUT.plan.json: how every operator is cut, and "
      "what moves between devices, by the rates of the shipped topology of that size or of --topology");
  declare_plans(app, options);
  app.add_option("--fp", options.rounding, "exact, reassoc or fast: how far rules may change rounding")
      ->check(CLI::IsMember({"exact", "reassoc", "fast"}))
      ->capture_default_str();
  app.add_option("--input-shape", options.input_shapes,
                 "NAME:D,D,.. makes a symbolic shape concrete; extents that the model declares stay; repeatable")
      ->type_name("NAME:D,..")
      ->expected(1)
      ->take_all();
  app.add_option("--assume", options.assumed,
                 "SYMBOL=N: the size of a symbolic extent for which costs count (default: 2, 3, .. for a first axis, "
                 "128, 96, .. for others); the result is for all sizes; repeatable")
      ->type_name("SYMBOL=N")
      ->expected(1)
      ->take_all();
  app.add_option(
         "--range", options.ranges,
         "SYMBOL=LEAST:MOST: the sizes of a symbolic extent for which the result is (default: 1 and more; either "
         "may be left out); the model's metadata then says so; repeatable")
      ->type_name("SYMBOL=L:M")
      ->expected(1)
      ->take_all();
  app.add_option("--check", options.check,
                 "How what rules have rewritten is checked: some elements of each place, or all (slow), in double "
                 "precision: sampled, full")
      ->check(CLI::IsMember({"sampled", "full"}))
      ->capture_default_str();
  app.add_flag("--no-check", options.no_check, "Do not execute original and result on random inputs");
  app.add_option("--check-rtol", options.check_rtol,
                 "Allowed difference relative to the largest magnitude (default: 1e-4 with --math fp32, 5e-3 with "
                 "tf32, 2e-2 with fp16, 0.16 with bf16)")
      ->check(tools::real_number(0));
  app.add_option("--check-atol", optimize.check->atol, "Allowed absolute difference besides")
      ->check(tools::real_number(0))
      ->capture_default_str();
  app.add_flag("--explain", options.explain,
               "List every application of a rule; with --devices also what the next best cut of each operator would "
               "cost");
  app.add_option("--why", options.why,
                 "Optimize nothing; say how often RULE matches, where it nearly does, and what is missing there")
      ->type_name("RULE");
  options.files.declare(app.add_option("--coverage", options.covered,
                                       "Optimize nothing; say how much of each model, and of the models *.onnx in each "
                                       "folder, is understood, and what is in the way of the rest")
                            ->type_name("MODEL|FOLDER")
                            ->expected(1, -1),
                        [&options](tools::FileClaims& claims, const std::string& name) -> Status {
                          for (const std::string& path : options.covered)
                            TASO_RETURN_IF_ERROR(claims.reads_all(name, path, {".onnx"}));
                          return {};
                        });
  app.add_flag("--fail-if-no-gain", options.fail_if_no_gain, "Exit with code 5 if the baseline is not improved");
  app.add_flag("--no-certificate", options.no_certificate,
               "Do not write OUT.taso.json, which taso-verify --certificate checks");
  app.add_flag("--save-as-external-data", options.session.outputs.external_data,
               "Put weights of at least 1024 bytes into OUT.data");
}

Expected<Rounding> parse_rounding(const std::string& text) {
  for (const Rounding rounding : {Rounding::exact, Rounding::reassoc, Rounding::fast})
    if (text == to_string(rounding)) return rounding;
  return Error{ErrorCode::usage, fmt::format("--fp {}: expected exact, reassoc or fast", text), {}};
}

Expected<Strategy> parse_strategy(const std::string& text) {
  for (const Strategy strategy : {Strategy::joint, Strategy::graph, Strategy::layout, Strategy::sequential})
    if (text == to_string(strategy)) return strategy;
  return Error{ErrorCode::usage, fmt::format("--strategy {}: expected joint, graph, layout or sequential", text), {}};
}

bool plans_for_devices(const Options& options) { return options.devices || !options.topology.empty(); }

/// Claims what --emit writes beside the optimized model.
Status claim_exports(Options& options) {
  tools::FileClaims& claims = options.files.claims();
  for (const std::string& form : options.emit) {
    const std::optional<PlanExport> other = parse_plan_export(form);
    const std::string path =
        other ? export_path(*other, options.session.outputs.model) : expanded_path(options.session.outputs.model);
    std::string& known = other ? options.session.outputs.exports[*other] : options.session.outputs.expanded;
    if (!std::exchange(known, path).empty()) continue;  // The form is given twice.
    const std::string what = "plan of --output as " + (other ? form : std::string("a model"));
    if (other && is_folder(*other)) {
      TASO_RETURN_IF_ERROR(claims.fills(what, path, {".onnx", ".data", ".npy", ".py"}));
      continue;
    }
    TASO_RETURN_IF_ERROR(claims.writes(what, path));
    TASO_RETURN_IF_ERROR(claims.writes("external data of the " + what, path + ".data"));
  }
  return {};
}

/// Claims what goes beside the optimized model, and what lies beside the original. The value is the certificate's file;
/// empty: there is none.
Expected<std::string> claim_sidecars(Options& options) {
  tools::FileClaims& claims = options.files.claims();
  const std::string original_data = "external data of MODEL";
  for (const std::string& file : external_data_of_model(options.session.model))
    TASO_RETURN_IF_ERROR(claims.reads(original_data, file));
  TASO_ASSIGN(const OutputFile output, find_output(options.session.outputs.model));
  if (output.written_through) return std::string();
  const bool in_place = place_of(options.session.outputs.model) == place_of(options.session.model);
  TASO_RETURN_IF_ERROR(claims.writes("external data of --output", options.session.outputs.model + ".data",
                                     in_place ? original_data : ""));
  if (plans_for_devices(options)) {
    options.session.outputs.plan = plan_path(options.session.outputs.model);
    TASO_RETURN_IF_ERROR(claims.writes("plan of --output", options.session.outputs.plan));
  }
  TASO_RETURN_IF_ERROR(claim_exports(options));
  if (options.no_certificate) {
    TASO_RETURN_IF_ERROR(claims.can_write());
    return std::string();
  }
  const std::string certificate = certificate_path(options.session.outputs.model);
  TASO_RETURN_IF_ERROR(claims.writes("certificate of --output", certificate));
  TASO_RETURN_IF_ERROR(claims.can_write());
  return certificate;
}

/// The limit to which plans keep.
Expected<std::optional<double>> memory_per_device(const Options& options, const Topology& topology) {
  if (options.memory_per_device.empty()) return std::optional(static_cast<double>(topology.device.memory));
  if (options.memory_per_device == "none") return std::optional<double>();
  const Expected<double> size = parse_byte_size(options.memory_per_device);
  if (!size) return Error{ErrorCode::usage, "--memory-per-device: " + size.error().message, {}};
  return std::optional(*size);
}

/// The devices for which the result is planned, if it is.
Expected<std::optional<PlanRequest>> plan_request(const Options& options) {
  if (!plans_for_devices(options)) return std::optional<PlanRequest>();
  Topology topology;
  if (options.topology.empty()) {
    TASO_ASSIGN(topology, topology_of(*options.devices, options.common.specs + "/devices"));
  } else {
    TASO_ASSIGN(topology, load_topology(options.topology));
    if (options.devices && *options.devices != topology.devices())
      return Error{
          ErrorCode::usage,
          fmt::format("--devices: {} has {} devices, not {}", options.topology, topology.devices(), *options.devices),
          {}};
  }
  PlanRequest request;
  request.topology = topology.name;
  if (options.mesh.empty()) {
    request.mesh = default_mesh(topology);
  } else {
    TASO_ASSIGN(request.mesh, parse_mesh(options.mesh, topology));
  }
  TASO_ASSIGN(request.memory, memory_per_device(options, topology));
  TASO_ASSIGN(request.cost, parse_plan_cost(options.plan_cost));
  if (options.transport_option->count() > 0 && request.cost != PlanCost::time)
    return Error{
        ErrorCode::usage,
        fmt::format("--transport: with --plan-cost {} nothing is measured; give --plan-cost time", options.plan_cost),
        {}};
  request.transport = options.transport;
  request.take = options.take_plan;
  TASO_ASSIGN(request.search, parse_plan_search(options.plan_search));
  TASO_ASSIGN(request.strategy_files, tools::strategy_files(options.common));
  request.method = options.partition == "exact" ? PlanMethod::exact : PlanMethod::recursive;
  request.timed_plans = options.timed_plans;
  request.alternatives = options.explain;
  request.expanded = std::find(options.emit.begin(), options.emit.end(), "onnx") != options.emit.end();
  request.interrupted = &tools::interrupted();
  if (options.time_limit > 0)
    request.time_limit =
        std::chrono::duration_cast<StopSignal::Clock::duration>(std::chrono::duration<double>(options.time_limit));
  return std::optional(std::move(request));
}

/// What only makes sense where plans are run.
Status check_timed_plans(const Options& options) {
  if (options.rerank_plans->count() == 0 || options.timed_plans == 0) return {};
  const auto wrong = [](const std::string& why) { return Error{ErrorCode::usage, "--rerank-plans: " + why, {}}; };
  if (!options.session.outputs.plan.empty()) return wrong("with --plan-only nothing is run; leave it out");
  if (options.plan_cost != "time")
    return wrong(fmt::format("with --plan-cost {} no plan is run; give --rerank-plans 0 or --plan-cost time",
                             options.plan_cost));
  return {};
}

/// What does not go with --coverage.
Status check_purpose_of_coverage(const Options& options) {
  const SessionOutputs& outputs = options.session.outputs;
  for (const auto& [name, value] : {std::pair("MODEL", &options.session.model), std::pair("--output", &outputs.model),
                                    std::pair("--plan-only", &outputs.plan), std::pair("--record", &outputs.costs),
                                    std::pair("--html", &outputs.html), std::pair("--why", &options.why)})
    if (!value->empty())
      return Error{ErrorCode::usage,
                   fmt::format("{}: --coverage names the models and optimizes nothing; leave it out", name),
                   {}};
  return {};
}

/// Either the model is optimized, or a rule is looked for in it, or it is planned as it is.
Status check_purpose(const Options& options) {
  const SessionOutputs& outputs = options.session.outputs;
  const bool plans_only = !outputs.plan.empty();
  if (!options.covered.empty()) return check_purpose_of_coverage(options);
  if (options.session.model.empty()) return Error{ErrorCode::usage, "MODEL is required (see --help)", {}};
  if (!plans_for_devices(options))
    for (const CLI::Option* option : options.of_plans)
      if (option->count() > 0)
        return Error{ErrorCode::usage, option->get_name() + ": give --devices or --topology, too", {}};
  TASO_RETURN_IF_ERROR(check_timed_plans(options));
  TASO_RETURN_IF_ERROR(tools::check_streams(options.streams, options.device));
  if (plans_only && !options.why.empty())
    return Error{ErrorCode::usage, "--plan-only: --why looks for a rule; leave one out", {}};
  if (plans_only && !plans_for_devices(options))
    return Error{ErrorCode::usage, "--plan-only: give --devices or --topology, too", {}};
  if (!plans_only && options.why.empty())
    return outputs.model.empty() ? Status(Error{ErrorCode::usage, "--output is required (see --help)", {}}) : Status();
  for (const auto& [name, file] : {std::pair("--output", &outputs.model), std::pair("--record", &outputs.costs),
                                   std::pair("--html", plans_only ? nullptr : &outputs.html)})
    if (file != nullptr && !file->empty())
      return Error{ErrorCode::usage,
                   fmt::format("{}: {} optimizes nothing; leave it out", name, plans_only ? "--plan-only" : "--why"),
                   {}};
  if (plans_only && options.plan_search_option->count() > 0)
    return Error{ErrorCode::usage, "--plan-search: --plan-only optimizes nothing; leave it out", {}};
  if (plans_only && !options.emit.empty())
    return Error{ErrorCode::usage, "--emit: --plan-only writes the plan alone; give --output instead", {}};
  if (plans_only && !options.common.json.empty())
    return Error{ErrorCode::usage, "--json: the plan of --plan-only is JSON itself; leave it out", {}};
  return {};
}

/// Makes values of the texts of a command line.
Status read_texts(Options& options) {
  SessionOptions& session = options.session;
  OptimizeOptions& optimize = session.optimize;
  TASO_ASSIGN(session.cost, parse_cost_formula(options.cost));
  if (options.beam_width->count() > 0 && options.method != "beam")
    return Error{
        ErrorCode::usage, fmt::format("--beam-width: --search {} has no beam; give --search beam", options.method), {}};
  if (options.rerank->count() > 0 && optimize.timed_candidates > 0 && !session.cost.uses_time())
    return Error{
        ErrorCode::usage,
        fmt::format("--rerank: with --cost {} no graph is timed; give --rerank 0 or a cost with time", options.cost),
        {}};
  TASO_ASSIGN(optimize.rounding, parse_rounding(options.rounding));
  TASO_ASSIGN(optimize.strategy, parse_strategy(options.strategy));
  for (const std::string& text : options.input_shapes) {
    auto name_and_shape = parse_input_shape(text);
    if (!name_and_shape) return Error{ErrorCode::usage, "--input-shape: " + name_and_shape.error().message, {}};
    session.input_shapes.insert(std::move(*name_and_shape));
  }
  for (const std::string& text : options.assumed) {
    auto symbol_and_size = parse_symbol_size(text);
    if (!symbol_and_size) return Error{ErrorCode::usage, "--assume: " + symbol_and_size.error().message, {}};
    session.assumed.insert(std::move(*symbol_and_size));
  }
  for (const std::string& text : options.ranges) {
    auto symbol_and_range = parse_range(text);
    if (!symbol_and_range) return Error{ErrorCode::usage, "--range: " + symbol_and_range.error().message, {}};
    if (!session.ranges.insert(std::move(*symbol_and_range)).second)
      return Error{ErrorCode::usage, "--range " + text + ": the symbol has a range already", {}};
  }
  if (session.outputs.model == "-")
    return Error{ErrorCode::usage, "--output: stdout cannot hold a model; give a file name", {}};
  session.outputs.json = options.common.json;
  session.row_major = options.rule_layouts == "row-major";
  optimize.search.method = options.method == "beam" ? SearchMethod::beam : SearchMethod::backtracking;
  optimize.search.threads = options.common.threads;
  optimize.search.stop.flag = &tools::interrupted();
  optimize.search.memory_limit = static_cast<std::size_t>(options.memory_limit_mb * 1e6);
  if (options.time_limit > 0)
    optimize.search.stop.deadline = session.start + std::chrono::duration_cast<StopSignal::Clock::duration>(
                                                        std::chrono::duration<double>(options.time_limit));
  return {};
}

/// Without --rules: those of the folders of specifications. Rules that simplify are used in any case.
Status find_rule_files(Options& options) {
  std::vector<std::string>& files = options.session.rules.files;
  TASO_ASSIGN(options.session.rules.simplify_files, tools::simplify_rule_files(options.common));
  if (!files.empty()) return {};
  TASO_ASSIGN(files, tools::rule_files(options.common));
  if (options.session.worker) {
    const std::vector<std::string> spellings = tools::target_rule_files(options.common, options.allowed_domains);
    files.insert(files.end(), spellings.begin(), spellings.end());
  }
  if (plans_for_devices(options) && options.plan_search == "joint") {
    TASO_ASSIGN(options.session.rules.plan_files, tools::plan_rule_files(options.common));
    std::erase_if(options.session.rules.plan_files,
                  [&](const std::string& file) { return std::find(files.begin(), files.end(), file) != files.end(); });
  }
  return {};
}

/// Finds the worker that --device names, if it names one. Then the processor's kernels run the check.
Status find_worker(Options& options) {
  const std::string device = options.device.device;
  TASO_ASSIGN(options.session.worker, tools::worker_of(device, options.worker));
  if (!options.session.worker) {
    if (options.worker.python.empty()) return {};
    return Error{
        ErrorCode::usage, fmt::format("--worker-python: of no use with --device {}, which has no worker", device), {}};
  }
  const auto refuse = [&](const char* option, const char* reason) {
    return Error{ErrorCode::usage, fmt::format("{}: {} with --device {}; leave it out", option, reason, device), {}};
  };
  if (options.device.math != "fp32") return refuse("--math", "a worker's runtime computes as the file says: of no use");
  if (!options.device.properties.empty()) return refuse("--device-properties", "of no use");
  if (options.device.engines != "few") return refuse("--engines", "of no use");
  if (options.device.precompiled) return refuse("--precompiled-kernels", "of no use");
  if (options.streams) return refuse("--streams", "a runtime places its kernels itself: not");
  if (!options.session.outputs.html.empty()) return refuse("--html", "the page draws this program's own kernels: not");
  if (plans_for_devices(options) && options.plan_cost == "time")
    return refuse("--plan-cost time", "plans count this program's own kernels: not");
  options.device.device = "cpu";
  return {};
}

/// Lets results have operators of the domains of --allow-domain.
Status allow_domains(const Options& options, OperatorRegistry& registry) {
  for (const std::string& domain : options.allowed_domains) {
    if (!options.session.worker)
      return Error{ErrorCode::usage,
                   fmt::format("--allow-domain {}: of no use with --device {}; give it with a runtime that has such "
                               "operators, --device ort",
                               domain, options.device.device),
                   {}};
    Expected<OperatorRegistry> allowing = allow_domain(domain, "--allow-domain", registry);
    if (!allowing) return Error{ErrorCode::usage, "--allow-domain: " + allowing.error().message, {}};
    registry = *std::move(allowing);
  }
  return {};
}

/// Sets where costs of the device are from, `timed`: of kernels.
Status find_costs(Options& options, const tools::Device& device, bool timed) {
  SessionOptions& session = options.session;
  if (!device.can_run() && !session.costs.recorded_only)
    return Error{
        ErrorCode::usage, "--device-properties: a device that is not there cannot be measured; give --no-measure", {}};
  session.float_storage = device.float_storage;
  session.streams = tools::streams_of(options.streams, device);
  if (session.costs.recorded_only && session.costs.file.empty() && timed) {
    TASO_ASSIGN(session.costs.shipped, tools::cost_files(options.common));
  }
  return {};
}

/// Sets what depends on the device, and on the folders of specifications.
Status complete(Options& options, const tools::Device& device) {
  SessionOptions& session = options.session;
  TASO_RETURN_IF_ERROR(find_costs(options, device, session.cost.uses_time() || options.plan_cost == "time"));
  std::optional<CheckOptions>& check = session.optimize.check;
  check->seed = options.common.seed;
  if (device.can_run()) check->rtol = tools::tolerance_of(options.device.math).maximum;
  check->rtol = options.check_rtol.value_or(check->rtol);
  check->rtol_by_type = !options.check_rtol;
  check->region_rtol = options.check_rtol.value_or(0);
  check->full = options.check == "full";
  if (options.no_check) check.reset();
  return find_rule_files(options);
}

void print_message(const tools::CommonOptions& common, MessageLevel level, const std::string& text) {
  if (level == MessageLevel::detail) {
    if (common.verbosity > 0 && !common.quiet) fmt::print(stderr, "{}\n", text);
  } else if (level == MessageLevel::important || !common.quiet) {
    tools::warn(program_name, text);
  }
}

void print_report(const Options& options, const Session& session, const OptimizeResult& result,
                  const ReportContext& context) {
  fmt::print("{}", report_text(result, context));
  if (!options.explain) return;
  fmt::print("\n{}", explain_text(result, context));
  const RuleIndex& rules = session.rules().search;
  for (const UnmetCondition& unmet : unmet_conditions(result.graph, rules.rules(), rules.catalog()))
    fmt::print("{} was not applied at {} {} of the result: nothing tells that {} holds there\n", unmet.rule,
               unmet.places, unmet.places == 1 ? "place" : "places", unmet.condition);
}

/// Which operators of the result ONNX does not have, and how they stand in the file.
void print_remarks_on_functions(const SaveReport& report) {
  if (!report.functions.empty())
    fmt::print(stderr, "{}: note: ONNX does not have {}: the file defines {} as {} of the model{}\n", program_name,
               fmt::join(report.functions, ", "), report.functions.size() == 1 ? "it" : "them",
               report.functions.size() == 1 ? "a function" : "functions",
               report.raised_ir_version == 0
                   ? ""
                   : fmt::format(", for which its IR version {} was raised", report.raised_ir_version));
  for (const auto& [op, reason] : report.without_function)
    tools::warn(
        program_name,
        fmt::format("only programs with these specifications can run {} of the result, which ONNX does not have: {}",
                    op, reason));
}

/// What is worth a line on stderr after all is written.
void print_remarks(const Options& options, const Session& session, const SessionResult& result,
                   const SessionFiles& files) {
  const SessionOutputs& outputs = options.session.outputs;
  const bool verbose = options.common.verbosity > 0;
  if (verbose && result.unwritable > 0)
    fmt::print(stderr, "{} rewrites were left out: ONNX opset {} has no form for their result\n", result.unwritable,
               session.model().opset());
  if (outputs.external_data && !files.model.external_data && !options.common.quiet)
    tools::warn(program_name, fmt::format("no weight has {} bytes, so all stay in the model: there is no {}.data",
                                          SaveOptions{}.external_minimum, outputs.model));
  if (!options.common.quiet) print_remarks_on_functions(files.model);
  for (const ExportedPlan& exported : result.exports)
    if (!exported.remark.empty() && !options.common.quiet)
      fmt::print(stderr, "{}: note: {}\n", program_name, exported.remark);
  if (verbose)
    fmt::print(stderr, "wrote {} nodes ({} unchanged), {} folded constants, {:.1f} MB of weights in {:.1f} s\n",
               files.model.nodes, files.model.verbatim_nodes, files.model.folded_constants,
               static_cast<double>(files.model.weight_bytes) * 1e-6, files.context.seconds);
}

/// Looks for the rule of --why.
Status explain_rule(Options& options) {
  constexpr std::size_t most = 10;  // Places that are named.
  TASO_ASSIGN(OperatorRegistry registry, tools::load_proved_operators(options.common, program_name));
  TASO_RETURN_IF_ERROR(find_worker(options));  // Its target rules are known, too.
  TASO_RETURN_IF_ERROR(allow_domains(options, registry));
  TASO_RETURN_IF_ERROR(find_rule_files(options));
  const auto message = [&](MessageLevel level, const std::string& text) { print_message(options.common, level, text); };
  TASO_ASSIGN(const RuleReport report, report_on_rule(options.session, options.why, most, registry, message));
  if (!options.common.json.empty()) TASO_RETURN_IF_ERROR(write_text(options.common.json, to_json(report)));
  if (!options.files.claims().uses_stdout()) fmt::print("{}", to_text(report));
  return {};
}

/// Says what is understood of the models of --coverage. The exit code is that of the first one that cannot be read.
Expected<int> print_coverage(Options& options) {
  constexpr std::size_t some = 3;  // Causes that are named without --verbose.
  TASO_RETURN_IF_ERROR(read_texts(options));
  TASO_ASSIGN(const OperatorRegistry registry, tools::load_proved_operators(options.common, program_name));
  TASO_ASSIGN(const std::vector<std::string> paths, models_of(options.covered));
  const bool prints = !options.files.claims().uses_stdout() && !options.common.quiet;
  const std::size_t causes = options.common.verbosity > 0 ? std::numeric_limits<std::size_t>::max() : some;
  const ImportOptions import = import_options(options.session);
  std::vector<ModelCoverage> models;
  for (const std::string& path : paths)
    models.push_back(coverage_of_model(path, registry, import, options.session.assumed, options.session.ranges));
  if (!options.common.json.empty()) TASO_RETURN_IF_ERROR(write_text(options.common.json, to_json(models)));
  if (prints) fmt::print("{}", to_text(models, causes));
  const bool unread = std::any_of(models.begin(), models.end(), [](const auto& model) { return !model.error.empty(); });
  return unread ? static_cast<int>(ErrorCode::bad_input) : 0;
}

/// Prints a plan, if anything is printed.
void print_plan(const Options& options, const DevicePlan& plan) {
  if (options.common.quiet || options.files.claims().uses_stdout()) return;
  fmt::print("{}", plan_text(plan));
  if (options.explain) fmt::print("{}", plan_reasons(plan));
}

/// Plans the model of --plan-only as it is.
Status plan_as_it_is(Options& options) {
  const std::string& file = options.session.outputs.plan;
  for (const std::string& data : external_data_of_model(options.session.model))
    TASO_RETURN_IF_ERROR(options.files.claims().reads("external data of MODEL", data));
  TASO_RETURN_IF_ERROR(options.files.claims().can_write());
  TASO_ASSIGN(const OperatorRegistry registry, tools::load_proved_operators(options.common, program_name));
  TASO_ASSIGN(options.session.devices, plan_request(options));
  const auto message = [&](MessageLevel level, const std::string& text) { print_message(options.common, level, text); };
  std::optional<tools::Device> device;
  if (options.session.devices->cost == PlanCost::time) {
    TASO_ASSIGN(device, tools::open_device(options.device, registry, false, options.session.costs.file));
    TASO_RETURN_IF_ERROR(find_costs(options, *device, true));
    TASO_RETURN_IF_ERROR(find_rule_files(options));
  }
  TASO_ASSIGN(const ModelPlan planned,
              plan_model(options.session, registry, device ? &device->library : nullptr, message));
  TASO_RETURN_IF_ERROR(write_text(file, plan_json(planned.plan, planned.model)));
  if (const std::string& html = options.session.outputs.html; !html.empty())
    TASO_RETURN_IF_ERROR(write_text(html, plan_page(planned.plan, options.session.model)));
  print_plan(options, planned.plan);
  return {};
}

/// The exit code of a run without errors.
Expected<int> run(Options& options) {
  TASO_RETURN_IF_ERROR(check_purpose(options));
  if (!options.covered.empty()) return print_coverage(options);
  TASO_RETURN_IF_ERROR(read_texts(options));
  if (!options.why.empty()) {
    TASO_RETURN_IF_ERROR(explain_rule(options));
    return 0;
  }
  if (!options.session.outputs.plan.empty()) {
    TASO_RETURN_IF_ERROR(plan_as_it_is(options));
    return 0;
  }
  TASO_ASSIGN(options.session.outputs.certificate, claim_sidecars(options));
  tools::end_on_interrupt(program_name);

  TASO_ASSIGN(OperatorRegistry registry, tools::load_proved_operators(options.common, program_name));
  TASO_RETURN_IF_ERROR(find_worker(options));
  TASO_RETURN_IF_ERROR(allow_domains(options, registry));
  const std::string& costs = options.session.costs.file;
  Expected<tools::Device> opened = tools::open_device(options.device, registry, false, costs);
  if (!opened && opened.error().message.ends_with("(this build has no such backend)"))  // perhaps a runtime was meant
    return Error{opened.error().code,
                 opened.error().message + "; runtimes that have a worker: " + tools::worker_names(),
                 opened.error().where};
  if (!opened) return opened.error();
  const tools::Device device = *std::move(opened);
  const tools::RemarksAtEnd remarks(device, options.common);
  TASO_RETURN_IF_ERROR(complete(options, device));
  TASO_ASSIGN(options.session.devices, plan_request(options));
  const auto message = [&](MessageLevel level, const std::string& text) { print_message(options.common, level, text); };
  TASO_ASSIGN(Session session, Session::open(options.session, registry, device.library, message));

  tools::catch_interrupts();
  tools::TickingLine progress(options.common.quiet, [&] { return session.progress(); });
  const Expected<SessionResult> result = session.optimize();
  if (!result) {
    progress.stop();
    TASO_RETURN_IF_ERROR(session.write_error(result.error()));
    return result.error();
  }
  const Expected<SessionFiles> written = session.write(*result);
  progress.stop();
  TASO_ASSIGN(const SessionFiles files, written);

  const OptimizeResult& optimized = result->optimized;
  if (!options.common.quiet && !options.files.claims().uses_stdout())
    print_report(options, session, optimized, files.context);
  if (result->plan) {
    print_plan(options, *result->plan);
  } else if (plans_for_devices(options)) {
    tools::warn(program_name, "interrupted before there was a plan for several devices: none is written");
  }
  print_remarks(options, session, *result, files);
  if (optimized.search.stop == StopReason::interrupted || tools::interrupted())
    return static_cast<int>(ErrorCode::interrupted);
  if (options.fail_if_no_gain && !optimized.gain) {
    tools::warn(program_name, verdict(optimized));
    return static_cast<int>(ErrorCode::not_proved);
  }
  return 0;
}

}  // namespace
}  // namespace taso

int main(int argc, char** argv) {
  CLI::App app("Optimizes an ONNX model: the result computes the same, faster, or what any runtime would make of it.",
               taso::program_name);
  taso::Options options;
  taso::declare(app, options);
  if (const auto code = taso::tools::parse_command_line(app, options.files, argc, argv)) return *code;
  const taso::Expected<int> code = taso::run(options);
  return code ? *code : taso::tools::fail(taso::program_name, code.error());
}
