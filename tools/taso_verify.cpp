// taso-verify: proves or refutes rewrite rules, axioms and declared laws of operators.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/file.h"
#include "support/text_output.h"
#include "tools/common.h"
#include "tools/files.h"
#include "tools/proved_specs.h"
#include "tools/verify_axioms.h"
#include "tools/verify_certificate.h"
#include "tools/verify_gradients.h"
#include "tools/verify_inputs.h"
#include "tools/verify_missing.h"
#include "tools/verify_plan.h"
#include "tools/verify_reports.h"
#include "tools/verify_strategies.h"
#include "verifier/definitions.h"
#include "verifier/verify.h"

namespace {

using namespace taso;         // NOLINT(google-build-using-namespace)
using namespace taso::tools;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;

constexpr const char* program = "taso-verify";

struct Arguments {
  CommonOptions common;
  FileOptions files;
  VerifySources sources;
  std::string dump_smt2, junit, sarif, translation, generalised, stored;
  bool github = false, missing_axioms = false;
  VerifierOptions verifier;
  AxiomArguments axiom_modes;
  bool record_facts = false;
  StrategyArguments strategies;
  bool gradients = false;
  CertificateArguments certificate;
  PlanArguments plan;
};

/// Where --dump-smt2 writes the goals of a rule.
std::string goal_file(const std::string& folder, const std::string& rule, std::size_t number) {
  std::string name;
  for (const char c : rule) name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' ? c : '_';
  return (fs::path(folder) / fmt::format("{:04}_{}.smt2", number, name)).string();
}

/// Definitions of .op files; one that does not work is an error.
Expected<TriedDefinitions> try_definitions(const VerifyInputs& inputs, const VerifierOptions& options) {
  TriedDefinitions tried;
  for (const std::string& op : inputs.operators) {
    if (interrupted()) break;
    TASO_ASSIGN(const std::size_t count,
                try_definition(inputs.registry, op, {.bound = options.bound, .seed = options.seed}));
    tried.applications += count;
    if (count > 0)
      ++tried.operators;
    else
      tried.untried.push_back(op);
  }
  return tried;
}

/// The verdicts on all statements, in their order.
Expected<std::vector<VerifyResult>> verify_all(const Arguments& arguments, const VerifyInputs& inputs) {
  std::vector<Substitution> proper;  // without lemmas
  for (const Substitution& axiom : inputs.axioms)
    if (axiom.is_axiom) proper.push_back(axiom);
  const std::size_t total = inputs.tasks.size();
  std::vector<VerifyResult> results;
  for (const VerifyTask& task : inputs.tasks) results.push_back({&task, {}});
  std::atomic<std::size_t> next = 0, done = 0;
  std::mutex mutex;
  ProgressLine line(arguments.common.quiet);
  Status dumped;
  const Verifier first(inputs.registry, inputs.axioms, arguments.verifier);
  auto work = [&] {
    Verifier verifier = first.sharing_copy(), from_axioms = first.sharing_copy(proper);
    for (std::size_t i = next++; i < total && !interrupted(); i = next++) {
      const VerifyTask& task = inputs.tasks[i];
      Verifier& chosen = task.lemma ? from_axioms : verifier;
      std::string smt2;
      if (task.problem.empty()) {
        results[i].verdict = chosen.verify(task.rule);
        if (!arguments.dump_smt2.empty() && !task.rule.is_axiom) smt2 = chosen.smt2(task.rule);
      } else {
        results[i].verdict.reason = task.problem;
      }
      const std::size_t finished = ++done;
      const std::lock_guard lock(mutex);
      line.show(fmt::format("verified {} of {}: {}", finished, total, task.rule.name));
      if (smt2.empty()) continue;
      const Status status = write_file_atomically(goal_file(arguments.dump_smt2, task.rule.name, i), smt2);
      if (!status && dumped) dumped = status;
    }
  };
  if (!arguments.dump_smt2.empty()) {
    std::error_code error;
    fs::create_directories(arguments.dump_smt2, error);
    if (error) return bad_input("cannot make the folder: " + error.message(), {.file = arguments.dump_smt2});
  }
  const auto wanted = arguments.common.threads > 0 ? static_cast<unsigned>(arguments.common.threads)
                                                   : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < std::min<std::size_t>(wanted, total); ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  line.clear();
  if (interrupted()) return Error{ErrorCode::interrupted, "interrupted; nothing was reported", {}};
  TASO_RETURN_IF_ERROR(dumped);
  return results;
}

/// What is said of them, a line for each.
std::string definitions_text(const TriedDefinitions& definitions) {
  std::string text;
  if (definitions.operators > 0)
    text += fmt::format("definitions that work for all small applications tried ({}): {}\n", definitions.applications,
                        definitions.operators);
  if (!definitions.untried.empty())
    text += fmt::format("definitions that were not tried: {}\n", fmt::join(definitions.untried, ", "));
  return text;
}

/// Writes every report that was asked for.
Status write_reports(const Arguments& arguments, const std::vector<VerifyResult>& results, std::size_t wrong,
                     const TriedDefinitions& definitions, const MissingFindings* missing,
                     const OperatorCatalog& catalog) {
  const bool stdout_taken = arguments.files.claims().uses_stdout();
  std::size_t counts[3] = {0, 0, 0};
  for (const VerifyResult& result : results) {
    ++counts[static_cast<std::size_t>(result.verdict.kind)];
    if (!stdout_taken && !(result.as_expected() && arguments.common.quiet))
      std::fputs(text_report(result).c_str(), stdout);
  }
  if (!stdout_taken && !arguments.common.quiet)
    std::fputs(fmt::format("{} statements: {} proved, {} refuted, {} unknown{}\n", results.size(), counts[0], counts[1],
                           counts[2], wrong == 0 ? "" : fmt::format("; {} not as they should be", wrong))
                   .c_str(),
               stdout);
  if (!stdout_taken && !arguments.common.quiet) std::fputs(definitions_text(definitions).c_str(), stdout);
  if (missing != nullptr && !stdout_taken) std::fputs(("\n" + missing_text(*missing, catalog)).c_str(), stdout);
  if (arguments.github) std::fputs(github_annotations(results).c_str(), stdout_taken ? stderr : stdout);
  const ReportContext context{TASO_VERSION, arguments.verifier, definitions, missing, &catalog};
  if (!arguments.common.json.empty())
    TASO_RETURN_IF_ERROR(write_text(arguments.common.json, json_report(results, context)));
  if (!arguments.junit.empty()) TASO_RETURN_IF_ERROR(write_text(arguments.junit, junit_report(results)));
  if (!arguments.sarif.empty()) TASO_RETURN_IF_ERROR(write_text(arguments.sarif, sarif_report(results, context)));
  return {};
}

/// --store: the proved rules as taso-opt is to use them.
std::string stored_rules(const std::vector<VerifyResult>& results, const OperatorCatalog& catalog) {
  std::string text = "# Written by taso-verify --store.\n";
  for (const VerifyResult& result : results) {
    if (result.verdict.kind != VerdictKind::proved || result.task->rule.is_axiom) continue;
    Substitution stored = stored_form(result.task->rule, result.verdict, catalog);
    stored.expect.reset();
    text += "\n" + to_string(stored, catalog);
  }
  return text;
}

/// --translate: the rules of a .pb file as text.
Expected<int> translate(const Arguments& arguments) {
  if (arguments.sources.inputs.size() != 1 || !arguments.sources.rules.empty())
    return Error{ErrorCode::usage, "--translate takes one .pb file", {}};
  TASO_ASSIGN(const OperatorRegistry registry, load_proved_operators(arguments.common, program));
  std::vector<std::string> problems;
  TASO_ASSIGN(const std::string text, translated_rules(arguments.sources.inputs[0], registry, problems));
  TASO_RETURN_IF_ERROR(write_text(arguments.translation, text));
  for (const std::string& problem : problems) warn(program, problem);
  return problems.empty() ? 0 : static_cast<int>(ErrorCode::not_proved);
}

/// --strategies: of all operators, or of those that inputs name.
Expected<int> strategies(Arguments& arguments) {
  TASO_ASSIGN(const OperatorRegistry registry, load_proved_operators(arguments.common, program));
  arguments.strategies.store = arguments.stored;
  return run_strategies(registry, arguments.common, arguments.verifier, arguments.strategies,
                        !arguments.common.quiet && !arguments.files.claims().uses_stdout());
}

/// Claims what --dump-smt2 will write.
Status claim_goals(Arguments& arguments, const VerifyInputs& inputs) {
  if (arguments.dump_smt2.empty()) return {};
  for (std::size_t i = 0; i < inputs.tasks.size(); ++i)
    TASO_RETURN_IF_ERROR(
        arguments.files.claims().writes("--dump-smt2", goal_file(arguments.dump_smt2, inputs.tasks[i].rule.name, i)));
  return {};
}

/// Claims the records of shapes beside axiom files: they are read, or with --record-facts written.
Status claim_facts(Arguments& arguments, const VerifyInputs& inputs) {
  std::set<std::string> files;
  for (const Substitution& axiom : inputs.axioms) files.insert(axiom.where.file);
  for (const VerifyTask& task : inputs.tasks) files.insert(task.rule.where.file);
  FileClaims& claims = arguments.files.claims();
  for (const std::string& file : files) {
    if (fs::path(file).extension() != ".axioms") continue;
    const std::string facts = shape_facts_file(file);
    TASO_RETURN_IF_ERROR(arguments.record_facts ? claims.updates("--record-facts", facts)
                                                : claims.reads("the record of " + file, facts));
  }
  return {};
}

/// --plan: checks it, and says so.
Status check_plan(Arguments& arguments) {
  TASO_ASSIGN(const OperatorRegistry registry, load_proved_operators(arguments.common, program));
  TASO_ASSIGN(const std::string text, verify_plan(arguments.plan, arguments.common, registry));
  if (!arguments.common.quiet && !arguments.files.claims().uses_stdout()) std::fputs(text.c_str(), stdout);
  return {};
}

/// With --plan and --original, the certificate is that beside the model of the plan.
Status find_certificate(Arguments& arguments) {
  CertificateArguments& certificate = arguments.certificate;
  if (arguments.plan.plan.empty() || certificate.original.empty() || !certificate.certificate.empty()) return {};
  const std::string model = model_of_plan(arguments.plan);
  if (model.empty()) return {};             // What is wrong with the plan is said where it is read.
  arguments.verifier.axioms_always = true;  // as for a certificate that is named
  certificate.optimized = model;
  certificate.certificate = certificate_path(model);
  if (std::error_code error; !fs::exists(certificate.certificate, error))
    return bad_input("there is no certificate of the model; name it by --certificate, or leave --original out",
                     {.file = certificate.certificate});
  return arguments.files.claims().reads("the certificate of the model", certificate.certificate);
}

/// Whether there are rules, axioms or a certificate to be proved besides a plan.
bool has_statements(const Arguments& arguments) {
  return !arguments.sources.inputs.empty() || !arguments.sources.rules.empty() ||
         !arguments.certificate.certificate.empty();
}

Expected<int> run(Arguments& arguments) {
  if (!arguments.translation.empty()) return translate(arguments);
  if (arguments.strategies.print) return strategies(arguments);
  if (arguments.gradients) return run_gradients(arguments.common, arguments.sources.inputs, !arguments.common.quiet);
  TASO_RETURN_IF_ERROR(find_certificate(arguments));
  TASO_RETURN_IF_ERROR(claim_models(arguments.files.claims(), arguments.certificate));
  TASO_RETURN_IF_ERROR(claim_models_of_plan(arguments.files.claims(), arguments.plan));
  if (!arguments.plan.plan.empty()) {
    TASO_RETURN_IF_ERROR(check_plan(arguments));
    if (!has_statements(arguments)) return 0;
  }
  TASO_ASSIGN(VerifyInputs inputs, read_verify_inputs(arguments.common, arguments.sources));
  TASO_RETURN_IF_ERROR(claim_facts(arguments, inputs));
  TASO_RETURN_IF_ERROR(claim_goals(arguments, inputs));
  if (!arguments.certificate.certificate.empty()) {
    TASO_ASSIGN(const Replay replay, replay_certificate(arguments.certificate, inputs));
    if (!arguments.common.quiet && !arguments.files.claims().uses_stdout())
      std::fputs(certificate_text(replay, arguments.certificate).c_str(), stdout);
  }
  if (arguments.axiom_modes.exhaustive || arguments.axiom_modes.report) {
    std::vector<Substitution> statements;
    for (const VerifyTask& task : inputs.tasks) statements.push_back(task.rule);
    return run_axiom_modes(inputs.registry, statements, inputs.axioms, arguments.common, arguments.axiom_modes);
  }
  if (arguments.record_facts) {
    std::vector<Substitution> statements;
    for (const VerifyTask& task : inputs.tasks) statements.push_back(task.rule);
    return record_shape_facts(inputs.registry, statements, arguments.common);
  }
  if (!arguments.generalised.empty())
    return run_generalise(inputs, arguments.common, arguments.verifier, arguments.generalised);
  TASO_ASSIGN(const TriedDefinitions definitions, try_definitions(inputs, arguments.verifier));
  TASO_ASSIGN(const std::vector<VerifyResult> results, verify_all(arguments, inputs));
  if (!arguments.certificate.certificate.empty()) {
    std::vector<Substitution> proved;
    for (const VerifyResult& result : results)
      if (result.verdict.kind == VerdictKind::proved && !result.verdict.added.empty() &&
          result.task->rule.where.file == arguments.certificate.certificate)
        proved.push_back(stored_form(result.task->rule, result.verdict, inputs.registry));
    TASO_RETURN_IF_ERROR(replay_under_conditions(arguments.certificate, proved, inputs.registry));
  }
  const auto wrong = static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(), [](const VerifyResult& result) { return !result.as_expected(); }));
  std::optional<MissingFindings> missing;
  if (arguments.missing_axioms) {
    TASO_ASSIGN(missing, find_missing(inputs, results, arguments.common, arguments.verifier));
  }
  if (!arguments.stored.empty())
    TASO_RETURN_IF_ERROR(write_text(arguments.stored, stored_rules(results, inputs.registry)));
  TASO_RETURN_IF_ERROR(
      write_reports(arguments, results, wrong, definitions, missing ? &*missing : nullptr, inputs.registry));
  return wrong == 0 && (!missing || missing->rules.empty()) ? 0 : static_cast<int>(ErrorCode::not_proved);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Proves or refutes rewrite rules (.rules, and .pb of the original TASO), axioms (.axioms) and declared laws of "
      "operators (.op). A rule is proved for all sizes from the definitions of its operators, or when Z3 derives it "
      "from the axioms and both its sides have equal canonical polynomials at small shapes; a refuted one comes with "
      "numbers at which the sides differ, and with a condition under which it holds if a simple one is found.",
      program};
  Arguments arguments;
  arguments.common.seed = 1;
  arguments.verifier.infer = true;
  const char* actions = std::getenv("GITHUB_ACTIONS");
  arguments.github = actions != nullptr && std::string(actions) == "true";
  FileOptions& files = arguments.files;
  files.declare(app.add_option("INPUT", arguments.sources.inputs, "rule, axiom and operator files, or folders of them")
                    ->type_name("INPUT"),
                [&](FileClaims& claims, const std::string& name) -> Status {
                  for (const std::string& input : arguments.sources.inputs)
                    TASO_RETURN_IF_ERROR(claims.reads_all(name, input, {".op", ".axioms", ".rules", ".grad"}));
                  return {};
                });
  app.add_option("--rule", arguments.sources.rules, "a rule as text: 'add(x, y) => add(y, x)' (repeatable)")
      ->type_name("RULE")
      ->allow_extra_args(false);
  files.declare(app.add_option("--axioms", arguments.sources.axioms,
                               "axiom file or folder (default: axioms of the specifications)")
                    ->type_name("PATH"),
                [&](FileClaims& claims, const std::string& name) {
                  return claims.reads_all(name, arguments.sources.axioms, {".axioms"});
                });
  app.add_option("--bound", arguments.verifier.bound, "largest extent in the bounded proof, 1 to 6 (default: 3)")
      ->check(CLI::Range(1, 6));
  app.add_option("--instances", arguments.verifier.max_instances,
                 "largest number of instances of the bounded proof (default: 160)")
      ->check(CLI::Range(1, 1000000));
  app.add_flag("--full", arguments.verifier.full,
               "treat rules that are proved for all sizes like all others: as many instances (default: 40), and a "
               "second proof, from the axioms, with all the time that this may take");
  app.add_option("--rlimit", arguments.verifier.rlimit, "resource units of Z3 for each goal (default: 2000000)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{4'000'000'000}));
  files.writes(app, "--translate", arguments.translation,
               "write the rules of a .pb file as rule text to FILE (-: stdout), and verify nothing");
  app.add_flag(
      "--missing-axioms", arguments.missing_axioms,
      "also look for identities that, as axioms, would prove the true rules which do not follow from the axioms");
  files.writes(
      app, "--store", arguments.stored,
      "write the proved rules to FILE as they were proved: with all conditions, marks of proof and numeric class",
      "FILE");
  files.writes(app, "--generalise", arguments.generalised,
               "write the rules with concrete attributes generalised as far as they are proved for all sizes to FILE "
               "(-: stdout), and report nothing else");
  files.reads(app, "--certificate", arguments.certificate.certificate,
              "a certificate of taso-opt (OUT.taso.json): repeat it from the original model to the optimized one, and "
              "prove its rules");
  files.reads(app, "--original", arguments.certificate.original,
              "with --certificate: the original model (default: the file that it names, in its folder); with --plan: "
              "from which the model of the plan must come by the certificate beside it",
              "MODEL");
  files.reads(app, "--optimized", arguments.certificate.optimized,
              "with --certificate or --plan: the optimized model (default: the file that it names, in its folder)",
              "MODEL");
  files.reads(app, "--plan", arguments.plan.plan,
              "a plan of taso-opt for several devices (OUT.plan.json): check that it is one of the optimized model, "
              "follows from proved strategies, and costs and takes what it states");
  files.reads(app, "--expanded", arguments.plan.expanded,
              "with --plan: the plan written out (OUT.expanded.onnx), checked to be that", "MODEL");
  app.add_flag(
      "--strategies", arguments.strategies.print,
      "derive the partition strategies of the operators, prove each, and report nothing else; exit code 5 if one "
      "is not proved");
  app.add_option("--operator", arguments.strategies.operators, "with --strategies: of this operator alone (repeatable)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_flag("--gradients", arguments.gradients,
               "check the entries of tables of gradients (INPUT: .grad files or folders; default: those of the "
               "specifications) against the definitions of the operators, in exact arithmetic (derivatives of "
               "primitive functions to 1e-8), and "
               "report nothing else; exit code 5 if one does not hold");
  app.add_flag("--record-facts", arguments.record_facts,
               "write what instances say of the shapes of axioms beside their files, X.facts for X.axioms, and report "
               "nothing else");
  files.writes(app, "--junit", arguments.junit, "write the verdicts as JUnit XML to FILE");
  files.writes(app, "--sarif", arguments.sarif, "write what is not proved as SARIF 2.1.0 to FILE");
  app.add_flag("--github", arguments.github,
               "print annotations of GitHub Actions (default where GITHUB_ACTIONS is 'true')");
  files.fills(app, "--dump-smt2", arguments.dump_smt2, "folder to write the goals given to Z3 to, one file a rule");
  app.add_flag("--exhaustive", arguments.axiom_modes.exhaustive,
               "instead of proofs: bounded validation at every instance with extents up to 4");
  app.add_flag("--report", arguments.axiom_modes.report,
               "the same, and of axioms: directions, redundancy, consistency of the set");
  app.add_option("--obligations", arguments.axiom_modes.obligations,
                 "with --exhaustive: instances of one statement, about; of more a random part (default: 40000; 0: all)")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1'000'000'000}));
  app.add_option("--exhaustive-bound", arguments.axiom_modes.bound,
                 "with --exhaustive: largest extent, 1 to 6 (default: 4)")
      ->check(CLI::Range(1, 6));
  files.reads(app, "--falsehoods", arguments.axiom_modes.falsehoods,
              "with --report: rule file of false statements that must not follow from the axioms");
  add_common_options(app, files, arguments.common, {".op", ".map", ".axioms"});
  if (const auto exit_code = parse_command_line(app, files, argc, argv)) return *exit_code;
  if (arguments.certificate.certificate.empty() && arguments.plan.plan.empty() &&
      (!arguments.certificate.original.empty() || !arguments.certificate.optimized.empty()))
    return fail(program, {ErrorCode::usage, "--original and --optimized belong to a --certificate or a --plan", {}});
  if (arguments.plan.plan.empty() && !arguments.plan.expanded.empty())
    return fail(program, {ErrorCode::usage, "--expanded belongs to a --plan", {}});
  arguments.plan.model = arguments.certificate.optimized;
  arguments.certificate.plan = arguments.plan.plan;
  if (arguments.sources.inputs.empty() && arguments.sources.rules.empty() &&
      arguments.certificate.certificate.empty() && arguments.plan.plan.empty() && !arguments.strategies.print &&
      !arguments.gradients)
    return fail(program,
                {ErrorCode::usage,
                 "nothing to verify: name a file, a folder, a --rule, a --certificate or a --plan (see --help)",
                 {}});
  if (arguments.common.specs.empty()) arguments.common.specs = default_specs();
  arguments.verifier.seed = arguments.common.seed;
  arguments.verifier.axioms_always =
      arguments.verifier.full || arguments.missing_axioms || !arguments.certificate.certificate.empty();
  catch_interrupts();
  const Expected<int> result = run(arguments);
  if (result) return *result;
  if (arguments.github) std::fputs(github_annotation(result.error()).c_str(), stdout);
  return fail(program, result.error());
}
