#include "session/rule_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <utility>

#include "rule_io/translate.h"

namespace taso {
namespace {

/// The rules of a file. Those of the original TASO that have no counterpart are left out, with a warning.
Expected<std::vector<Substitution>> load_rule_file(const std::string& file, const OperatorRegistry& registry,
                                                   const MessageSink& message) {
  if (std::filesystem::path(file).extension() != ".pb") return load_rules(file, registry);
  TASO_ASSIGN(std::vector<rule_io::TranslatedRule> translated, rule_io::load_taso_rules(file, registry));
  std::vector<Substitution> rules;
  for (rule_io::TranslatedRule& rule : translated)
    if (rule.problem.empty()) rules.push_back(std::move(rule.rule));
  if (rules.size() < translated.size() && message)
    message(MessageLevel::warning,
            fmt::format("{}: {} of {} rules have no counterpart and are left out; taso-verify says why", file,
                        translated.size() - rules.size(), translated.size()));
  return rules;
}

/// "a, b, c and 4 more"
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() <= most ? text : fmt::format("{} and {} more", text, names.size() - most);
}

/// The rules of all files that are not disabled.
Expected<std::vector<Substitution>> load_all_rules(const std::vector<std::string>& files, const RuleOptions& options,
                                                   const OperatorRegistry& registry, const MessageSink& message) {
  std::vector<Substitution> rules;
  std::vector<std::string> unproved;
  for (const std::string& file : files) {
    TASO_ASSIGN(std::vector<Substitution> loaded, load_rule_file(file, registry, message));
    for (Substitution& rule : loaded) {
      if (rule.is_axiom) continue;
      const bool proved = carries_proof(rule, registry);
      if (!proved && options.require_proofs)
        return bad_input(fmt::format("rule '{}' carries {}, which --require-proofs asks for; taso-verify --store "
                                     "writes proved rules with their conditions",
                                     rule.name, rule.proofs.empty() ? "no proof" : "no proof of what it says now"),
                         {file});
      if (!proved) unproved.push_back(rule.name);
      rules.push_back(std::move(rule));
    }
  }
  if (!unproved.empty() && message)
    message(MessageLevel::warning,
            fmt::format("{} of {} rules carry no proof of what they say ({}); taso-verify proves "
                        "rules",
                        unproved.size(), rules.size(), some_of(unproved)));
  return rules;
}

/// Takes disabled rules out of all sets.
Status disable(const std::vector<std::string>& names, const std::vector<std::vector<Substitution>*>& sets) {
  for (const std::string& name : names) {
    std::size_t erased = 0;
    for (auto* rules : sets)
      erased += std::erase_if(*rules, [&](const Substitution& rule) { return rule.name == name; });
    if (erased == 0)
      return Error{ErrorCode::usage, fmt::format("--disable-rule {}: there is no rule of this name", name), {}};
  }
  return {};
}

/// Files may use a name twice, for one rule or for two: reports and certificates tell them apart.
void make_names_unique(const std::vector<std::vector<Substitution>*>& sets) {
  std::set<std::string> names;
  for (auto* rules : sets)
    for (Substitution& rule : *rules) {
      const std::string given = rule.name;
      for (int n = 2; !names.insert(rule.name).second; ++n) rule.name = fmt::format("{}_{}", given, n);
    }
}

}  // namespace

std::vector<Substitution> RuleSets::all() const {
  std::vector<Substitution> rules = search.rules();
  if (baseline) rules.insert(rules.end(), baseline->rules().begin(), baseline->rules().end());
  rules.insert(rules.end(), plans.begin(), plans.end());
  return rules;
}

Expected<RuleSets> load_rule_sets(const RuleOptions& options, const OperatorRegistry& registry,
                                  const MessageSink& message) {
  TASO_ASSIGN(std::vector<Substitution> search, load_all_rules(options.simplify_files, options, registry, message));
  TASO_ASSIGN(std::vector<Substitution> given, load_all_rules(options.files, options, registry, message));
  std::move(given.begin(), given.end(), std::back_inserter(search));
  TASO_ASSIGN(std::vector<Substitution> baseline, load_all_rules(options.baseline_files, options, registry, message));
  TASO_ASSIGN(std::vector<Substitution> plans, load_all_rules(options.plan_files, options, registry, message));
  const std::vector<std::vector<Substitution>*> sets = {&search, &baseline, &plans};
  TASO_RETURN_IF_ERROR(disable(options.disabled, sets));
  make_names_unique(sets);
  RuleSets result{RuleIndex(std::move(search), registry), std::nullopt, std::move(plans)};
  if (!options.baseline_files.empty()) result.baseline.emplace(std::move(baseline), registry);
  return result;
}

}  // namespace taso
