// taso-verify: proves or refutes rewrite rules, axioms and declared laws of operators.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "operators/registry.h"
#include "support/file.h"
#include "tools/common.h"
#include "tools/verify_axioms.h"
#include "verifier/verify.h"

namespace {

using namespace taso;         // NOLINT(google-build-using-namespace)
using namespace taso::tools;  // NOLINT(google-build-using-namespace)
namespace fs = std::filesystem;

constexpr const char* program = "taso-verify";

struct Arguments {
  CommonOptions common;
  std::vector<std::string> inputs;
  std::string axioms;
  std::string dump_smt2;
  VerifierOptions verifier;
  AxiomArguments axiom_modes;
};

/// A statement to verify.
struct Task {
  Substitution rule;
  bool lemma = false;  ///< A rule in an axiom file: it must follow from the axioms alone.
};

bool has_extension(const fs::path& path, const char* extension) { return path.extension() == extension; }

/// The files that an input stands for: itself, or what a folder holds, in name order.
Expected<std::vector<fs::path>> files_of(const std::string& input) {
  std::error_code error;
  if (!fs::exists(input, error)) return bad_input("no such file or folder", {.file = input});
  if (!fs::is_directory(input, error)) return std::vector<fs::path>{input};
  std::vector<fs::path> files;
  for (fs::recursive_directory_iterator it(input, error), end; !error && it != end; it.increment(error))
    for (const char* extension : {".op", ".axioms", ".rules"})
      if (it->is_regular_file() && has_extension(it->path(), extension)) files.push_back(it->path());
  if (error) return bad_input("cannot read folder: " + error.message(), {.file = input});
  if (files.empty()) return bad_input("the folder holds no .op, .axioms or .rules file", {.file = input});
  std::sort(files.begin(), files.end());
  return files;
}

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

/// Everything that is read before the first proof.
struct Inputs {
  OperatorRegistry registry;
  std::vector<Substitution> axioms;
  std::vector<Task> tasks;
};

Expected<Inputs> read_inputs(const Arguments& arguments) {
  std::vector<fs::path> files;
  for (const std::string& input : arguments.inputs) {
    TASO_ASSIGN(const std::vector<fs::path> found, files_of(input));
    for (const fs::path& file : found) {
      if (has_extension(file, ".pb"))
        return bad_input("rule files in TASO's protobuf format are not read; convert them to .rules text",
                         {.file = file.string()});
      if (!has_extension(file, ".op") && !has_extension(file, ".axioms") && !has_extension(file, ".rules"))
        return bad_input("unknown kind of file; expected .rules, .axioms or .op", {.file = file.string()});
      files.push_back(file);
    }
  }
  Inputs result;
  TASO_ASSIGN(result.registry, OperatorRegistry::load(arguments.common.specs + "/operators"));
  // Operator files that are not part of the specifications extend them.
  for (const fs::path& file : files) {
    if (!has_extension(file, ".op")) continue;
    const fs::path twin = fs::path(arguments.common.specs) / "operators" / file.filename();
    if (same_file(file, twin)) continue;
    TASO_ASSIGN(const std::string text, read_file(file.string()));
    TASO_ASSIGN(result.registry, OperatorRegistry::parse(text, file.string(), &result.registry));
  }
  const std::string axiom_path = arguments.axioms.empty() ? arguments.common.specs + "/axioms" : arguments.axioms;
  TASO_ASSIGN(result.axioms, load_axioms(axiom_path, result.registry));
  std::set<std::string> names;
  for (const Substitution& axiom : result.axioms) names.insert(axiom.name);
  const std::vector<Substitution> laws = Verifier::declared_laws(result.registry);
  for (const fs::path& file : files) {
    if (has_extension(file, ".op")) {
      for (const Substitution& law : laws)
        if (same_file(law.where.file, file)) result.tasks.push_back({law, false});
      continue;
    }
    TASO_ASSIGN(const std::vector<Substitution> rules, load_rules(file.string(), result.registry));
    for (const Substitution& rule : rules) {
      const bool axiom_file = has_extension(file, ".axioms");
      result.tasks.push_back({rule, axiom_file && !rule.is_axiom});
      if (axiom_file && names.insert(rule.name).second) result.axioms.push_back(rule);
    }
  }
  return result;
}

std::string indented(const std::string& text) {
  std::string result = "    ";
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) result += "    ";
  }
  if (!result.empty() && result.back() != '\n') result += '\n';
  return result;
}

std::string joined(const std::vector<std::string>& parts) { return fmt::format("{}", fmt::join(parts, ", ")); }

bool as_expected(const Substitution& rule, const Verdict& verdict) {
  return rule.expect ? *rule.expect == to_string(verdict.kind) : verdict.kind == VerdictKind::proved;
}

/// One statement's report, a line and what a person needs to see below it.
std::string report(const Substitution& rule, const Verdict& verdict) {
  std::string text = fmt::format("{:8} {}", to_string(verdict.kind), rule.name);
  std::vector<std::string> facts = verdict.proofs;
  if (verdict.numeric_class && verdict.kind == VerdictKind::proved)
    facts.emplace_back(to_string(*verdict.numeric_class));
  if (verdict.may_overflow && verdict.kind == VerdictKind::proved)
    facts.push_back("may overflow fp16 in " + *verdict.may_overflow);
  if (verdict.instances > 0)
    facts.push_back(fmt::format("{}{} instances", verdict.complete ? "all " : "", verdict.instances));
  if (!facts.empty()) text += " (" + joined(facts) + ")";
  text += "\n";
  if (rule.expect && !as_expected(rule, verdict)) text += fmt::format("    expected: {}\n", *rule.expect);
  if (!verdict.conditions.empty() && verdict.kind == VerdictKind::proved)
    text += "    if " + joined(verdict.conditions) + "\n";
  if (!verdict.reason.empty()) text += indented(verdict.reason);
  if (verdict.counterexample) text += indented(verdict.counterexample->text);
  return text;
}

nlohmann::ordered_json to_json(const Substitution& rule, const Verdict& verdict) {
  nlohmann::ordered_json json;
  json["name"] = rule.name;
  json["verdict"] = to_string(verdict.kind);
  json["proofs"] = verdict.proofs;
  json["conditions"] = verdict.conditions;
  json["class"] = nullptr;
  if (verdict.numeric_class) json["class"] = to_string(*verdict.numeric_class);
  json["may_overflow_fp16"] = nullptr;
  if (verdict.may_overflow) json["may_overflow_fp16"] = *verdict.may_overflow;
  json["counterexample"] = nullptr;
  if (verdict.counterexample) json["counterexample"] = verdict.counterexample->text;
  json["reason"] = verdict.reason;
  json["instances"] = verdict.instances;
  json["complete"] = verdict.complete;
  json["ill_typed_target"] = verdict.ill_typed_target;
  if (rule.expect) json["expected"] = *rule.expect;
  return json;
}

/// A file name made of a rule's name.
std::string file_name(const std::string& rule, std::size_t number) {
  std::string name;
  for (const char c : rule) name += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' ? c : '_';
  return fmt::format("{:04}_{}.smt2", number, name);
}

Expected<int> run(const Arguments& arguments) {
  TASO_ASSIGN(const Inputs inputs, read_inputs(arguments));
  if (arguments.axiom_modes.exhaustive || arguments.axiom_modes.report) {
    std::vector<Substitution> statements;
    for (const Task& task : inputs.tasks) statements.push_back(task.rule);
    return run_axiom_modes(inputs.registry, statements, inputs.axioms, arguments.common, arguments.axiom_modes);
  }
  std::vector<Substitution> proper;  // without lemmas
  for (const Substitution& axiom : inputs.axioms)
    if (axiom.is_axiom) proper.push_back(axiom);
  const std::size_t total = inputs.tasks.size();
  std::vector<Verdict> verdicts(total);
  std::atomic<std::size_t> next = 0, done = 0;
  std::mutex mutex;
  ProgressLine line(arguments.common.quiet);
  Status dumped;
  auto work = [&] {
    Verifier verifier(inputs.registry, inputs.axioms, arguments.verifier);
    Verifier from_axioms(inputs.registry, proper, arguments.verifier);
    for (std::size_t i = next++; i < total && !interrupted(); i = next++) {
      const Task& task = inputs.tasks[i];
      Verifier& chosen = task.lemma ? from_axioms : verifier;
      verdicts[i] = chosen.verify(task.rule);
      const std::size_t finished = ++done;
      const std::string smt2 =
          arguments.dump_smt2.empty() || task.rule.is_axiom ? std::string() : chosen.smt2(task.rule);
      const std::lock_guard lock(mutex);
      line.show(fmt::format("verified {} of {}: {}", finished, total, task.rule.name));
      if (!smt2.empty()) {
        const Status status =
            write_file_atomically((fs::path(arguments.dump_smt2) / file_name(task.rule.name, i)).string(), smt2);
        if (!status && dumped) dumped = status;
      }
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

  std::size_t counts[3] = {0, 0, 0}, wrong = 0;
  nlohmann::ordered_json rules = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < total; ++i) {
    const Substitution& rule = inputs.tasks[i].rule;
    ++counts[static_cast<std::size_t>(verdicts[i].kind)];
    const bool fine = as_expected(rule, verdicts[i]);
    if (!fine) ++wrong;
    rules.push_back(to_json(rule, verdicts[i]));
    if (arguments.common.json == "-" || (fine && arguments.common.quiet)) continue;
    std::fputs(report(rule, verdicts[i]).c_str(), stdout);
  }
  if (arguments.common.json != "-" && !arguments.common.quiet)
    std::fputs(fmt::format("{} statements: {} proved, {} refuted, {} unknown{}\n", total, counts[0], counts[1],
                           counts[2], wrong == 0 ? "" : fmt::format("; {} not as they should be", wrong))
                   .c_str(),
               stdout);
  if (!arguments.common.json.empty()) {
    nlohmann::ordered_json json;
    json["rules"] = std::move(rules);
    json["proved"] = counts[0];
    json["refuted"] = counts[1];
    json["unknown"] = counts[2];
    json["bound"] = arguments.verifier.bound;
    json["seed"] = arguments.verifier.seed;
    TASO_RETURN_IF_ERROR(write_text(arguments.common.json, json.dump(2) + "\n"));
  }
  return wrong == 0 ? 0 : static_cast<int>(ErrorCode::not_proved);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{
      "Proves or refutes rewrite rules (.rules), axioms (.axioms) and declared laws of operators (.op). A rule is "
      "proved "
      "when Z3 derives it from the axioms and both its sides have equal canonical polynomials at small shapes; a "
      "refuted one comes with numbers at which the sides differ.",
      program};
  Arguments arguments;
  arguments.common.seed = 1;
  app.add_option("INPUT", arguments.inputs, "rule, axiom and operator files, or folders of them")->required();
  app.add_option("--axioms", arguments.axioms, "axiom file or folder (default: axioms of the specifications)");
  app.add_option("--bound", arguments.verifier.bound, "largest extent in the bounded proof, 1 to 6 (default: 3)")
      ->check(CLI::Range(1, 6));
  app.add_option("--instances", arguments.verifier.max_instances,
                 "largest number of instances of the bounded proof (default: 160)")
      ->check(CLI::Range(1, 1000000));
  app.add_option("--rlimit", arguments.verifier.rlimit, "resource units of Z3 for each goal (default: 2000000)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{4'000'000'000}));
  app.add_option("--dump-smt2", arguments.dump_smt2, "folder to write the goals given to Z3 to, one file a rule");
  app.add_flag("--exhaustive", arguments.axiom_modes.exhaustive,
               "instead of proofs: bounded validation at every instance with extents up to 4");
  app.add_flag("--report", arguments.axiom_modes.report,
               "the same, and of axioms: directions, redundancy, consistency of the set");
  app.add_option("--obligations", arguments.axiom_modes.obligations,
                 "with --exhaustive: instances of one statement, about; of more a random part (default: 20000)")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000}));
  app.add_option("--exhaustive-bound", arguments.axiom_modes.bound,
                 "with --exhaustive: largest extent, 1 to 6 (default: 4)")
      ->check(CLI::Range(1, 6));
  app.add_option("--falsehoods", arguments.axiom_modes.falsehoods,
                 "with --report: rule file of false statements that must not follow from the axioms");
  add_common_options(app, arguments.common);
  if (const auto exit_code = parse_command_line(app, argc, argv)) return *exit_code;
  if (arguments.common.specs.empty()) arguments.common.specs = default_specs();
  arguments.verifier.seed = arguments.common.seed;
  catch_interrupts();
  const Expected<int> result = run(arguments);
  return result ? *result : fail(program, result.error());
}
