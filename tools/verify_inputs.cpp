#include "tools/verify_inputs.h"

#include <filesystem>
#include <set>
#include <utility>

#include "rule_io/translate.h"
#include "support/file.h"
#include "tools/proved_specs.h"
#include "tools/specs.h"
#include "verifier/verify.h"

namespace taso::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* program = "taso-verify";

bool has_extension(const fs::path& path, const char* extension) { return path.extension() == extension; }

/// The files that an input stands for: itself, or what a folder holds, in name order.
Expected<std::vector<std::string>> files_of(const std::string& input) {
  std::error_code error;
  if (!fs::exists(input, error)) return bad_input("no such file or folder", {.file = input});
  if (!fs::is_directory(input, error)) {
    for (const char* extension : {".rules", ".axioms", ".op", ".pb"})
      if (has_extension(input, extension)) return std::vector<std::string>{input};
    return bad_input("unknown kind of file; expected .rules, .axioms, .op, or .pb of the original TASO",
                     {.file = input});
  }
  TASO_ASSIGN(std::vector<std::string> files, files_in(input, {".op", ".axioms", ".rules"}));
  if (files.empty()) return bad_input("the folder holds no .op, .axioms or .rules file", {.file = input});
  return files;
}

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  return fs::equivalent(a, b, error) && !error;
}

/// The operators of the specifications, extended by operator files that are not part of them.
Expected<OperatorRegistry> read_operators(const CommonOptions& options, const std::vector<std::string>& files) {
  TASO_ASSIGN(OperatorRegistry registry, load_proved_operators(options, program));
  const OperatorRegistry folders = registry;
  std::vector<fs::path> known = {options.specs};
  known.insert(known.end(), options.added_specs.begin(), options.added_specs.end());
  for (const std::string& file : files) {
    if (!has_extension(file, ".op")) continue;
    bool loaded = false;
    for (const fs::path& folder : known)
      loaded = loaded || same_file(file, folder / "operators" / fs::path(file).filename());
    if (loaded) continue;
    TASO_ASSIGN(const std::string text, read_file(file));
    TASO_ASSIGN(registry, OperatorRegistry::parse(text, file, &registry));
  }
  warn_of_trusted_functions(registry, folders, program);
  return registry;
}

Expected<BelievedAxioms> read_axioms(const CommonOptions& options, const std::string& path,
                                     const OperatorRegistry& registry) {
  if (path.empty()) return load_believed_axioms(options, registry, program);
  BelievedAxioms named;
  TASO_ASSIGN(named.axioms, load_axioms(path, registry));
  return named;
}

}  // namespace

Expected<std::vector<Substitution>> parse_rule_argument(const std::string& text, std::size_t number,
                                                        const OperatorCatalog& catalog) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const auto starts_with = [&](std::string_view word) {
    return begin != std::string::npos && text.compare(begin, word.size(), word) == 0;
  };
  const bool whole = starts_with("rule ") || starts_with("axiom ");
  // The name stands on a line of its own, so that columns are those of the argument.
  const std::string statement = whole ? text : "rule rule_" + std::to_string(number) + ":\n" + text;
  const std::string place = "--rule";
  Expected<std::vector<Substitution>> rules = parse_rules(statement, place, catalog);
  const int added = whole ? 0 : 1;
  if (!rules) {
    Error error = rules.error();
    if (error.where.line > added) error.where.line -= added;
    return error;
  }
  if (rules->empty()) return bad_input("no rule; expected 'SOURCE => TARGET'", {.file = place});
  for (Substitution& rule : *rules)
    if (!whole) rule.where.line = 1;
  return rules;
}

Expected<VerifyInputs> read_verify_inputs(const CommonOptions& options, const VerifySources& sources) {
  std::vector<std::string> files;
  for (const std::string& input : sources.inputs) {
    TASO_ASSIGN(const std::vector<std::string> found, files_of(input));
    files.insert(files.end(), found.begin(), found.end());
  }
  VerifyInputs result;
  TASO_ASSIGN(result.registry, read_operators(options, files));
  TASO_ASSIGN(BelievedAxioms believed, read_axioms(options, sources.axioms, result.registry));
  result.axioms = std::move(believed.axioms);
  std::set<std::string> names;
  for (const Substitution& axiom : result.axioms) names.insert(axiom.name);
  for (const BelievedAxioms::Doubted& doubted : believed.not_proved) names.insert(doubted.name);
  const std::vector<Substitution> laws = Verifier::declared_laws(result.registry);
  for (const std::string& file : files) {
    if (has_extension(file, ".op")) {
      for (const Substitution& law : laws)
        if (same_file(law.where.file, file)) result.tasks.push_back({law, false, ""});
      for (const std::string& op : result.registry.names())
        if (same_file(result.registry.find(op)->where.file, file)) result.operators.push_back(op);
    } else if (has_extension(file, ".pb")) {
      TASO_ASSIGN(std::vector<rule_io::TranslatedRule> rules, rule_io::load_taso_rules(file, result.registry));
      for (rule_io::TranslatedRule& rule : rules)
        result.tasks.push_back({std::move(rule.rule), false, std::move(rule.problem)});
    } else {
      TASO_ASSIGN(const std::vector<Substitution> rules, has_extension(file, ".axioms")
                                                             ? load_axioms(file, result.registry)
                                                             : load_rules(file, result.registry));
      for (const Substitution& rule : rules) {
        const bool axiom_file = has_extension(file, ".axioms");
        result.tasks.push_back({rule, axiom_file && !rule.is_axiom, ""});
        if (axiom_file && names.insert(rule.name).second) result.axioms.push_back(rule);
      }
    }
  }
  for (std::size_t i = 0; i < sources.rules.size(); ++i) {
    TASO_ASSIGN(std::vector<Substitution> rules, parse_rule_argument(sources.rules[i], i + 1, result.registry));
    for (Substitution& rule : rules) result.tasks.push_back({std::move(rule), false, ""});
  }
  std::sort(result.operators.begin(), result.operators.end());
  return result;
}

Expected<std::string> translated_rules(const std::string& path, const OperatorCatalog& catalog,
                                       std::vector<std::string>& problems) {
  if (!has_extension(path, ".pb")) return bad_input("only .pb files of the original TASO are translated", {path});
  TASO_ASSIGN(const std::vector<rule_io::TranslatedRule> rules, rule_io::load_taso_rules(path, catalog));
  std::string text =
      "# The rules of " + fs::path(path).filename().string() +
      ", a file of the original TASO, as taso-verify reads them. taso_N is rule N of the file, from 0.\n";
  for (const rule_io::TranslatedRule& rule : rules) {
    if (rule.problem.empty()) {
      text += "\n" + to_string(rule.rule, catalog);
      continue;
    }
    text += "\n# " + rule.rule.name + " cannot be told: " + rule.problem + "\n";
    problems.push_back(rule.rule.name + ": " + rule.problem);
  }
  return text;
}

}  // namespace taso::tools
