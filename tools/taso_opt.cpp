// taso-opt: optimizes an ONNX model. See docs/optimizing.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "certificate/certificate.h"
#include "certificate/occurrence.h"
#include "graph/unmet.h"
#include "onnx_io/external_files.h"
#include "onnx_io/model.h"
#include "operators/registry.h"
#include "optimizer/cost_database.h"
#include "optimizer/cost_model.h"
#include "optimizer/html_report.h"
#include "optimizer/optimize.h"
#include "optimizer/report.h"
#include "optimizer/runtime_target.h"
#include "rule_io/translate.h"
#include "runtime/kernel.h"
#include "support/file.h"
#include "support/text_output.h"
#include "tools/common.h"
#include "tools/costs.h"
#include "tools/device.h"
#include "tools/files.h"
#include "tools/proved_specs.h"
#include "tools/sizes.h"
#include "tools/specs.h"

namespace taso {
namespace {

constexpr const char* program_name = "taso-opt";

struct Options {
  tools::CommonOptions common;
  tools::FileOptions files;
  tools::DeviceOptions device;
  std::string model, output, cost = "time", rounding = "reassoc", costs, record, html, strategy = "joint",
                             method = "backtracking", rule_layouts = "channels-last";
  std::vector<std::string> rules, baseline_rules, disabled_rules, input_shapes, assumed, ranges;
  int kernel_threads = 1;
  SearchOptions search;
  std::size_t max_rule_size = OptimizeOptions{}.max_rule_size, reranked = OptimizeOptions{}.timed_candidates;
  double time_limit = 0, memory_limit_mb = 512;
  CheckOptions check;
  std::optional<double> check_rtol;
  bool no_check = false, no_measure = false, require_proofs = false, fail_if_no_gain = false, external_data = false,
       explain = false, no_certificate = false;
};

/// The options that name files.
void declare_files(CLI::App& app, Options& options) {
  tools::FileOptions& files = options.files;
  files.reads(app, "model", options.model, "The ONNX model", "MODEL")->required();
  files.writes(app, "-o,--output", options.output, "Where the optimized model goes; may be the model itself", "MODEL")
      ->required();
  files.reads(app, "--rules", options.rules,
              "Rule file, instead of the shipped rules: rule text, or .pb of the original TASO; repeatable. The proof "
              "marks in it are believed: taso-verify FILE checks them");
  files.reads(app, "--baseline-rules", options.baseline_rules,
              "Rule file for the baseline (default: as --rules): to compare rules for the search; repeatable");
  files.reads(app, "--device-properties", options.device.properties,
              "With --no-measure: plan for the device that FILE describes (taso-run --print-device writes it)");
  tools::add_cost_option(app, files, options.costs,
                         "Database of measured costs (default: " + default_cost_database_path() +
                             "; with --no-measure also the files of costs/ of the specifications)");
  files.writes(app, "--record", options.record, "Write the costs that were used as text, for --costs elsewhere");
  files.writes(app, "--html", options.html, "Write the report as an HTML page, with both graphs drawn, to FILE");
}

void declare(CLI::App& app, Options& options) {
  tools::add_common_options(app, options.files, options.common, {".op", ".rules", ".costs"});
  declare_files(app, options);
  app.add_flag("--require-proofs", options.require_proofs, "Refuse rules without a proof mark (exit code 3)");
  app.add_option("--disable-rule", options.disabled_rules, "Leave out the rule NAME; repeatable")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  app.add_option("--max-rule-size", options.max_rule_size,
                 "Search with rules of at most so many operators on the source side; the baseline uses all rules")
      ->check(tools::whole_number(1, 1000));
  tools::add_device_options(app, options.device, "Target: cpu");
  app.add_option("--threads", options.kernel_threads, "Threads that the kernels will run with")
      ->check(tools::whole_number(1, 1024))
      ->capture_default_str();
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
  app.add_option("--beam-width", options.search.beam_width, "Graphs expanded of each step of a beam search")
      ->check(tools::whole_number(1))
      ->capture_default_str();
  app.add_option("--alpha", options.search.alpha, "Graphs costlier than this times the best are dropped (at least 1)")
      ->check(tools::real_number(1, 1e6))
      ->capture_default_str();
  app.add_option("--steps", options.search.max_steps, "Most graphs to expand")
      ->check(tools::whole_number())
      ->capture_default_str();
  app.add_option("--restarts", options.search.restarts,
                 "So often the search starts again from the best graph at most, as long as that pays (0: never)")
      ->check(tools::whole_number(0, 1000))
      ->capture_default_str();
  app.add_option("--part-size", options.search.part_size,
                 "Graphs of more than three times so many operators are searched in parts of about so many (0: never)")
      ->check(tools::whole_number(0))
      ->capture_default_str();
  app.add_option("--patience", options.search.patience, "Stop after so many expansions without improvement")
      ->check(tools::whole_number())
      ->capture_default_str();
  app.add_option(
         "--rerank", options.reranked,
         "With --cost time: the K cheapest graphs are timed whole, beside original, baseline and the one of fewest "
         "launches (0: costs decide)")
      ->type_name("K")
      ->check(tools::whole_number(0, 1000))
      ->default_str(std::to_string(options.reranked));
  app.add_option("--time-limit", options.time_limit, "Seconds of search; results then depend on the machine's speed")
      ->check(tools::real_number(0, 1e9, true))
      ->type_name("S");
  app.add_option("--memory-limit", options.memory_limit_mb, "MB of graphs kept by the search")
      ->check(tools::real_number(1, 1e9))
      ->capture_default_str();
  app.add_flag("--no-measure", options.no_measure, "Use recorded costs only; a missing one is an error (exit code 7)");
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
  app.add_flag("--no-check", options.no_check, "Do not execute original and result on random inputs");
  app.add_option("--check-rtol", options.check_rtol,
                 "Allowed difference relative to the largest magnitude (default: 1e-4 with --math fp32, 5e-3 with "
                 "tf32, 2e-2 with fp16, 0.16 with bf16)")
      ->check(tools::real_number(0));
  app.add_option("--check-atol", options.check.atol, "Allowed absolute difference besides")
      ->check(tools::real_number(0))
      ->capture_default_str();
  app.add_flag("--explain", options.explain, "List every application of a rule");
  app.add_flag("--fail-if-no-gain", options.fail_if_no_gain, "Exit with code 5 if the baseline is not improved");
  app.add_flag("--no-certificate", options.no_certificate,
               "Do not write OUT.taso.json, which taso-verify --certificate checks");
  app.add_flag("--save-as-external-data", options.external_data, "Put weights of at least 1024 bytes into OUT.data");
}

/// The rules of a file. Those of the original TASO that have no counterpart are left out, with a warning.
Expected<std::vector<Substitution>> load_rule_file(const std::string& file, const OperatorRegistry& registry,
                                                   bool quiet) {
  if (std::filesystem::path(file).extension() != ".pb") return load_rules(file, registry);
  TASO_ASSIGN(std::vector<rule_io::TranslatedRule> translated, rule_io::load_taso_rules(file, registry));
  std::vector<Substitution> rules;
  for (rule_io::TranslatedRule& rule : translated)
    if (rule.problem.empty()) rules.push_back(std::move(rule.rule));
  if (rules.size() < translated.size() && !quiet)
    tools::warn(program_name,
                fmt::format("{}: {} of {} rules have no counterpart and are left out; taso-verify says why", file,
                            translated.size() - rules.size(), translated.size()));
  return rules;
}

/// The rules of all files that are not disabled.
Expected<std::vector<Substitution>> load_all_rules(const std::vector<std::string>& files, const Options& options,
                                                   const OperatorRegistry& registry) {
  std::vector<Substitution> rules;
  std::size_t unproved = 0;
  for (const std::string& file : files) {
    TASO_ASSIGN(std::vector<Substitution> loaded, load_rule_file(file, registry, options.common.quiet));
    for (Substitution& rule : loaded) {
      if (rule.is_axiom) continue;
      const bool proved = carries_proof(rule, registry);
      if (!proved && options.require_proofs)
        return bad_input(fmt::format("rule '{}' carries {}, which --require-proofs asks for; taso-verify --store "
                                     "writes proved rules with their conditions",
                                     rule.name, rule.proofs.empty() ? "no proof" : "no proof of what it says now"),
                         {file});
      if (!proved) ++unproved;
      rules.push_back(std::move(rule));
    }
  }
  if (unproved > 0 && !options.common.quiet)
    tools::warn(program_name, fmt::format("{} of {} rules carry no proof of what they say; taso-verify proves rules",
                                          unproved, rules.size()));
  return rules;
}

/// The rules of the search, and those of the baseline if they are others.
struct RuleSets {
  std::vector<Substitution> search;
  std::optional<std::vector<Substitution>> baseline;
};

Expected<RuleSets> load_rule_sets(const Options& options, const OperatorRegistry& registry) {
  std::vector<std::string> files = options.rules;
  if (files.empty()) {
    TASO_ASSIGN(files, tools::rule_files(options.common));
  }
  RuleSets sets;
  TASO_ASSIGN(sets.search, load_all_rules(files, options, registry));
  if (!options.baseline_rules.empty()) {
    TASO_ASSIGN(sets.baseline, load_all_rules(options.baseline_rules, options, registry));
  }
  std::vector<std::vector<Substitution>*> all = {&sets.search};
  if (sets.baseline) all.push_back(&*sets.baseline);
  for (const std::string& name : options.disabled_rules) {
    std::size_t erased = 0;
    for (auto* rules : all)
      erased += std::erase_if(*rules, [&](const Substitution& rule) { return rule.name == name; });
    if (erased == 0)
      return Error{ErrorCode::usage, fmt::format("--disable-rule {}: there is no rule of this name", name), {}};
  }
  // Files may use a name twice, for one rule or for two: reports and certificates tell them apart.
  std::set<std::string> names;
  for (auto* rules : all)
    for (Substitution& rule : *rules) {
      const std::string given = rule.name;
      for (int n = 2; !names.insert(rule.name).second; ++n) rule.name = fmt::format("{}_{}", given, n);
    }
  return sets;
}

/// The costs of a file: those of the target, or, of a device that is only described, those that serve to plan for it.
Expected<CostDatabase> open_cost_file(const std::string& path, const Target& target, CostDatabase::Mode mode,
                                      bool described, bool quiet) {
  TASO_ASSIGN(CostDatabase database, CostDatabase::open(path, target.identity(), mode));
  if (!described || !database.entries().empty()) return database;
  TASO_ASSIGN(const std::vector<std::string> devices, database.devices());
  for (const std::string& device : devices) {
    if (!tools::serves(device, target.identity())) continue;
    if (!quiet) tools::warn(program_name, fmt::format("{}: costs are those of '{}'", path, device));
    return CostDatabase::open(path, device, mode);
  }
  return database;
}

/// The file that holds measured costs, or memory where none is needed or the default place cannot be used.
Expected<CostDatabase> open_costs(const Options& options, const Target& target, bool needed, bool described) {
  const auto mode = options.no_measure ? CostDatabase::Mode::read_only : CostDatabase::Mode::read_write;
  const auto open = [&](const std::string& path) {
    return open_cost_file(path, target, mode, described, options.common.quiet);
  };
  if (!options.costs.empty()) return open(options.costs);
  const std::string path = default_cost_database_path();
  std::error_code error;
  if (needed && !path.empty() && (!options.no_measure || std::filesystem::exists(path, error))) {
    Expected<CostDatabase> database = open(path);
    if (database && (!options.no_measure || !database->entries().empty())) return database;
    if (!database) tools::warn(program_name, database.error().to_string() + "; costs are measured for this run only");
  }
  // Costs of devices that not everyone has are part of the specifications.
  if (needed && options.no_measure) {
    TASO_ASSIGN(const std::vector<std::string> files, tools::cost_files(options.common));
    for (const std::string& file : files) {
      TASO_ASSIGN(CostDatabase database, open(file));
      if (!database.entries().empty()) return database;
    }
  }
  return CostDatabase::in_memory(target.identity());
}

std::vector<CertificateStep> steps_of(const std::vector<RuleApplication>& applications) {
  std::vector<CertificateStep> steps;
  for (const RuleApplication& application : applications) steps.push_back({application.rule, application.match});
  return steps;
}

/// What was done to the model, for taso-verify --certificate.
Expected<Certificate> make_certificate(const OptimizeResult& result, const std::vector<const RuleIndex*>& rules,
                                       FileIdentity original, const ImportOptions& import,
                                       const tools::SizedModel& sized, const SizedGraph& all_sizes,
                                       const std::string& output, bool external_data) {
  Certificate certificate;
  certificate.original = std::move(original);
  TASO_ASSIGN(certificate.optimized, identify_file(output));
  if (external_data) {
    TASO_ASSIGN(certificate.external_data, identify_file(output + ".data"));
  }
  certificate.input_shapes = import.input_shapes;
  if (sized.symbolic()) certificate.symbols = sized.symbolic()->ranges();
  certificate.steps = sized.symbolic() ? all_sizes.steps : steps_of(result.applications);
  std::set<std::string> used;
  for (const RuleApplication& application : result.applications) used.insert(application.rule);
  for (const RuleIndex* index : rules)
    for (const Substitution& rule : index->rules())
      if (used.contains(rule.name)) certificate.rules.push_back(to_string(rule, index->catalog()));
  return certificate;
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

/// Repeats the steps of a search at all sizes, and remembers at which places they do not hold.
class AllSizes {
 public:
  AllSizes(const tools::SizedModel& model, const std::vector<const RuleIndex*>& rule_sets,
           const OperatorRegistry& registry)
      : model_(model), registry_(registry) {
    for (const RuleIndex* index : rule_sets) rules_.insert(rules_.end(), index->rules().begin(), index->rules().end());
  }

  [[nodiscard]] Expected<SizedGraph> repeat(const std::vector<RuleApplication>& applications,
                                            std::size_t* failed = nullptr) const {
    std::vector<CertificateStep> steps = steps_of(applications);
    for (CertificateStep& step : steps) forget_sizes(step.match);
    std::map<std::string, std::size_t> uses;
    return model_.symbolic()->repeat(rules_, steps, uses, failed);
  }

  OptimizeOptions::AtAllSizes check(const std::vector<RuleApplication>& applications) {
    using AtAllSizes = OptimizeOptions::AtAllSizes;
    std::size_t failed = applications.size();
    const Expected<SizedGraph> graph = repeat(applications, &failed);
    if (graph) return model_.symbolic()->can_save(*graph) ? AtAllSizes::holds : AtAllSizes::fails;
    if (failed >= applications.size()) return AtAllSizes::fails;
    // The graph in which the step was taken.
    Graph before = model_.model().graph();
    normalize(before, registry_);
    for (std::size_t i = 0; i < failed; ++i) {
      Expected<Graph> next = apply(before, *rule(applications[i]), applications[i].match, registry_);
      if (!next) return AtAllSizes::fails;
      before = std::move(*next);
    }
    const bool added = refused_.add(before, *rule(applications[failed]), applications[failed].match,
                                    graph.error().message.substr(graph.error().message.find(": ") + 2));
    return added ? AtAllSizes::refused : AtAllSizes::fails;
  }

  [[nodiscard]] const tools::RefusedPlaces& refused() const { return refused_; }

 private:
  [[nodiscard]] const Substitution* rule(const RuleApplication& application) const {
    return &*std::find_if(rules_.begin(), rules_.end(),
                          [&](const Substitution& rule) { return rule.name == application.rule; });
  }

  const tools::SizedModel& model_;
  const OperatorRegistry& registry_;
  std::vector<Substitution> rules_;
  tools::RefusedPlaces refused_;
};

/// Says for which sizes the result is, and checks it at a second size.
Expected<OptimizeResult> check_at_another_size(OptimizeResult result, const tools::SizedModel& sized,
                                               const SizedGraph& graph, const AllSizes& all_sizes,
                                               const KernelLibrary& library, std::optional<CheckOptions> options) {
  const std::string ranges = to_string(sized.symbolic()->ranges());
  result.notes.push_back(fmt::format("symbolic extents are kept: the result is for {}; costs are those at {}",
                                     ranges.empty() ? "all sizes" : ranges, to_string(sized.sizes())));
  for (const std::string& reason : all_sizes.refused().reasons())
    result.notes.push_back("not done, as it does not hold at all sizes: " + reason);
  if (!options || result.choice == Choice::original || result.search.stop == StopReason::interrupted) return result;
  TASO_ASSIGN(const SizedGraph original, all_sizes.repeat({}));
  options->inputs = 1;
  // The smallest sample: the check is to take little time.
  const std::vector<SymbolSizes>& sizes = sized.symbolic()->samples();
  const auto elements = [&](const SymbolSizes& at) {
    double product = 1;
    for (const auto& [name, size] : at) product *= static_cast<double>(size);
    return product;
  };
  std::optional<std::pair<std::size_t, std::size_t>> smallest;  // As a position in each of the two graphs' samples.
  for (std::size_t i = 0; i < graph.numbers.size(); ++i)
    for (std::size_t j = 0; j < original.numbers.size(); ++j)
      if (graph.numbers[i] == original.numbers[j] &&
          (!smallest || elements(sizes[graph.numbers[i]]) < elements(sizes[graph.numbers[smallest->first]])))
        smallest.emplace(i, j);
  if (!smallest) return result;
  const std::string at = to_string(sizes[graph.numbers[smallest->first]]);
  TASO_ASSIGN(const CheckReport report,
              check(original.samples[smallest->second], graph.samples[smallest->first], library, *options));
  if (!report.passed) return Error{ErrorCode::check_failed, fmt::format("at {}: {}", at, report.failure()), {}};
  result.notes.push_back(fmt::format("check at {}: {}", at, report.summary()));
  return result;
}

/// Claims what goes beside the optimized model, and what lies beside the original. The value is the certificate's file;
/// empty: there is none.
Expected<std::string> claim_sidecars(Options& options) {
  tools::FileClaims& claims = options.files.claims();
  const std::string original_data = "external data of MODEL";
  for (const std::string& file : external_data_of_model(options.model))
    TASO_RETURN_IF_ERROR(claims.reads(original_data, file));
  TASO_ASSIGN(const OutputFile output, find_output(options.output));
  if (output.written_through) return std::string();
  const bool in_place = place_of(options.output) == place_of(options.model);
  TASO_RETURN_IF_ERROR(
      claims.writes("external data of --output", options.output + ".data", in_place ? original_data : ""));
  if (options.no_certificate) return std::string();
  const std::string certificate = certificate_path(options.output);
  TASO_RETURN_IF_ERROR(claims.writes("certificate of --output", certificate));
  TASO_RETURN_IF_ERROR(claims.can_write());
  return certificate;
}

/// The exit code of a run without errors.
Expected<int> run(Options& options) {
  const auto start = std::chrono::steady_clock::now();
  TASO_ASSIGN(const CostFormula formula, parse_cost_formula(options.cost));
  TASO_ASSIGN(const Rounding rounding, parse_rounding(options.rounding));
  TASO_ASSIGN(const Strategy strategy, parse_strategy(options.strategy));
  ImportOptions import;
  for (const std::string& text : options.input_shapes) {
    auto name_and_shape = parse_input_shape(text);
    if (!name_and_shape) return Error{ErrorCode::usage, "--input-shape: " + name_and_shape.error().message, {}};
    import.input_shapes.insert(std::move(*name_and_shape));
  }
  SymbolSizes assumed;
  for (const std::string& text : options.assumed) {
    auto symbol_and_size = tools::parse_symbol_size(text);
    if (!symbol_and_size) return Error{ErrorCode::usage, "--assume: " + symbol_and_size.error().message, {}};
    assumed.insert(std::move(*symbol_and_size));
  }
  SymbolRanges ranges;
  for (const std::string& text : options.ranges) {
    auto symbol_and_range = parse_range(text);
    if (!symbol_and_range) return Error{ErrorCode::usage, "--range: " + symbol_and_range.error().message, {}};
    if (!ranges.insert(std::move(*symbol_and_range)).second)
      return Error{ErrorCode::usage, "--range " + text + ": the symbol has a range already", {}};
  }
  if (options.output == "-")
    return Error{ErrorCode::usage, "--output: stdout cannot hold a model; give a file name", {}};
  TASO_ASSIGN(const std::string certificate_file, claim_sidecars(options));
  tools::end_on_interrupt(program_name);

  TASO_ASSIGN(const OperatorRegistry registry, tools::load_proved_operators(options.common));
  TASO_ASSIGN(const tools::Device device, tools::open_device(options.device, registry, false));
  if (!device.can_run() && !options.no_measure)
    return Error{
        ErrorCode::usage, "--device-properties: a device that is not there cannot be measured; give --no-measure", {}};
  TASO_ASSIGN(RuleSets sets, load_rule_sets(options, registry));
  const std::size_t rule_count = sets.search.size();
  const RuleIndex rules(std::move(sets.search), registry);
  std::optional<RuleIndex> baseline_rules;
  if (sets.baseline) baseline_rules.emplace(std::move(*sets.baseline), registry);
  std::vector<const RuleIndex*> rule_sets = {&rules};
  if (baseline_rules) rule_sets.push_back(&*baseline_rules);
  FileIdentity original;
  if (!certificate_file.empty()) {
    TASO_ASSIGN(original, identify_file(options.model));
  }
  TASO_ASSIGN(const tools::SizedModel sized, tools::SizedModel::load(options.model, registry, import, assumed, ranges));
  const Model& model = sized.model();
  if (!options.common.quiet) {
    for (const std::string& warning : model.warnings()) tools::warn(program_name, warning);
    for (const TensorDeclaration& input : model.inputs())
      if (!input.type.known && input.has_shape)
        tools::warn(program_name,
                    fmt::format("the shape of input '{}' is symbolic, so what depends on it is carried through; "
                                "--input-shape {}:D,D,.. makes it concrete{}",
                                input.name, input.name, sized.problem().empty() ? "" : "; " + sized.problem()));
    if (options.common.verbosity > 0)
      for (const OpaqueSummary& opaque : model.opaque_operators())
        fmt::print(stderr, "carried: {} x {}: {}\n", opaque.count, opaque.op, opaque.reason);
    if (options.common.verbosity > 0 && sized.symbolic())
      for (const std::string& node : sized.symbolic()->untouched())
        fmt::print(stderr, "not touched, as it does not hold at all sizes: {}\n", node);
  }

  const KernelLibrary& library = device.library;
  RuntimeTarget target(library, {.threads = options.kernel_threads,
                                 .counting = !formula.uses_time(),
                                 .row_major = options.rule_layouts == "row-major",
                                 .float_storage = device.float_storage,
                                 .cancelled = [] { return tools::interrupted().load(); }});
  TASO_ASSIGN(CostDatabase database, open_costs(options, target, formula.uses_time(), !device.can_run()));
  MeasuredCosts measured(target, database, !options.no_measure);
  if (formula.uses_time()) {
    TASO_ASSIGN(const int tenths, measured.cached_tenths(working_set_bytes(model.graph(), target)));
    target.set_cached_tenths(tenths);
  }
  const std::unique_ptr<CostModel> cost_model = make_cost_model(formula, measured);

  std::atomic<std::size_t> unwritable{0};
  tools::ProgressLine progress(options.common.quiet);
  OptimizeOptions optimize_options;
  optimize_options.rounding = rounding;
  optimize_options.max_rule_size = options.max_rule_size;
  optimize_options.timed_candidates = options.reranked;
  optimize_options.strategy = strategy;
  optimize_options.baseline_rules = rule_sets.back();
  optimize_options.search = options.search;
  optimize_options.search.method = options.method == "beam" ? SearchMethod::beam : SearchMethod::backtracking;
  optimize_options.search.threads = options.common.threads;
  optimize_options.search.interrupt = &tools::interrupted();
  optimize_options.search.memory_limit = static_cast<std::size_t>(options.memory_limit_mb * 1e6);
  if (options.time_limit > 0) optimize_options.search.time_limit = options.time_limit;
  optimize_options.search.progress = [&](const SearchProgress& state) {
    progress.show(
        fmt::format("search: {} steps, {} candidates, {} queued, {} kernels measured, cost {:.6g} -> {:.6g}, "
                    "{:.0f} s",
                    state.steps, state.candidates, state.queued, measured.measured(), state.start_cost, state.best_cost,
                    state.seconds));
  };
  optimize_options.writable = [&](const RewriteResult& rewrite) {
    std::vector<NodeId> nodes = rewrite.added;
    nodes.insert(nodes.end(), rewrite.changed.begin(), rewrite.changed.end());
    const bool writable = model.can_save(rewrite.graph, nodes);
    if (!writable) unwritable.fetch_add(1, std::memory_order_relaxed);
    return writable;
  };
  AllSizes all_sizes(sized, rule_sets, registry);
  if (sized.symbolic()) {
    optimize_options.applicable = [&](const Graph& graph, const Substitution& rule, const Match& match) {
      return !all_sizes.refused().contains(graph, rule, match);
    };
    optimize_options.at_all_sizes = [&](const std::vector<RuleApplication>& applications) {
      return all_sizes.check(applications);
    };
  }
  if (options.no_check) {
    optimize_options.check.reset();
  } else {
    options.check.seed = options.common.seed;
    options.check.threads = options.kernel_threads;
    options.check.float_storage = device.float_storage;
    options.check.rtol = options.check_rtol.value_or(device.can_run() ? tools::tolerance_of(options.device.math).maximum
                                                                      : CheckOptions{}.rtol);
    for (const TensorDeclaration& output : model.outputs()) options.check.output_names.push_back(output.name);
    optimize_options.check = options.check;
  }
  tools::catch_interrupts();
  Expected<OptimizeResult> optimized = optimize(model.graph(), rules, library, measured, *cost_model, optimize_options);
  SizedGraph sized_graph;
  if (optimized && sized.symbolic()) {
    TASO_ASSIGN(sized_graph, all_sizes.repeat(optimized->applications));
    optimized =
        check_at_another_size(std::move(*optimized), sized, sized_graph, all_sizes, library, optimize_options.check);
  }
  progress.clear();
  if (!optimized) {
    if (!options.common.json.empty())
      TASO_RETURN_IF_ERROR(write_text(options.common.json, error_json(optimized.error(), options.model)));
    return optimized.error();
  }
  const OptimizeResult& result = *optimized;

  if (!options.record.empty()) TASO_RETURN_IF_ERROR(write_text(options.record, export_text(measured.used())));
  SaveOptions save_options;
  save_options.external_data = options.external_data;
  SaveReport saved;
  if (sized.symbolic()) {
    TASO_ASSIGN(saved, sized.symbolic()->save(sized_graph, options.output, save_options));
  } else {
    TASO_ASSIGN(saved, model.save(result.graph, options.output, save_options));
  }
  if (!certificate_file.empty()) {
    TASO_ASSIGN(const Certificate certificate, make_certificate(result, rule_sets, std::move(original), import, sized,
                                                                sized_graph, options.output, saved.external_data));
    TASO_RETURN_IF_ERROR(write_text(certificate_file, to_json(certificate)));
  }

  ReportContext context;
  context.model = options.model;
  context.output = options.output;
  for (const OriginalNode& node : model.original_nodes())
    context.node_names.push_back(node.name.empty() ? node.op_type : node.name);
  context.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  context.rules = rule_count;
  context.numeric_classes = options.rounding;
  context.costs = database.path();
  context.measured_kernels = measured.measured();
  if (!options.common.json.empty()) TASO_RETURN_IF_ERROR(write_text(options.common.json, report_json(result, context)));
  if (!options.html.empty()) {
    Graph imported = model.graph();
    normalize(imported, registry);
    const bool open = strategy != Strategy::graph;
    TASO_ASSIGN(const PricedGraph before, price_nodes(imported, measured, *cost_model, open));
    TASO_ASSIGN(const PricedGraph after, price_nodes(result.graph, measured, *cost_model, open));
    TASO_RETURN_IF_ERROR(write_text(options.html, report_html(result, context, before, after, formula.uses_time())));
  }
  if (!options.common.quiet && !options.files.claims().uses_stdout()) {
    fmt::print("{}", report_text(result, context));
    if (options.explain) {
      fmt::print("\n{}", explain_text(result, context));
      for (const UnmetCondition& unmet : unmet_conditions(result.graph, rules.rules(), registry))
        fmt::print("{} was not applied at {} {} of the result: nothing tells that {} holds there\n", unmet.rule,
                   unmet.places, unmet.places == 1 ? "place" : "places", unmet.condition);
    }
  }
  if (options.common.verbosity > 0 && unwritable > 0)
    fmt::print(stderr, "{} rewrites were left out: ONNX opset {} has no form for their result\n", unwritable.load(),
               model.opset());
  if (options.external_data && !saved.external_data && !options.common.quiet)
    tools::warn(program_name, fmt::format("no weight has {} bytes, so all stay in the model: there is no {}.data",
                                          save_options.external_minimum, options.output));
  if (options.common.verbosity > 0)
    fmt::print(stderr, "wrote {} nodes ({} unchanged), {} folded constants, {:.1f} MB of weights in {:.1f} s\n",
               saved.nodes, saved.verbatim_nodes, saved.folded_constants,
               static_cast<double>(saved.weight_bytes) * 1e-6, context.seconds);
  if (result.search.stop == StopReason::interrupted) return static_cast<int>(ErrorCode::interrupted);
  if (options.fail_if_no_gain && !result.gain) {
    tools::warn(program_name, verdict(result));
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
