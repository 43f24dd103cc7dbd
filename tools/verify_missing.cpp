#include "tools/verify_missing.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "support/text_output.h"

namespace taso::tools {
namespace {

unsigned thread_count(const CommonOptions& common) {
  return common.threads > 0 ? static_cast<unsigned>(common.threads) : std::max(1U, std::thread::hardware_concurrency());
}

/// The statement that is true, if one is: the rule, or the rule under the conditions that it needs.
std::optional<Substitution> true_statement(const VerifyResult& result) {
  const Verdict& verdict = result.verdict;
  if (result.task->rule.is_axiom || !result.task->problem.empty()) return std::nullopt;
  Substitution rule = result.task->rule;
  if (verdict.kind == VerdictKind::proved || (verdict.kind == VerdictKind::unknown && verdict.by_bounded)) return rule;
  if (verdict.needs.empty()) return std::nullopt;
  rule.conditions.insert(rule.conditions.end(), verdict.needs.begin(), verdict.needs.end());
  return rule;
}

std::string commented(const std::string& text) {
  std::string result = "# ";
  for (const char c : text) result += c == '\n' ? std::string("\n# ") : std::string(1, c);
  return result + "\n";
}

std::string plural(std::size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

}  // namespace

std::string MissingFindings::under(std::size_t rule) const {
  std::string text;
  for (const Condition& condition : narrowed[rule])
    text += (text.empty() ? "" : ", ") + to_string(condition, rules[rule]);
  return text;
}

Expected<MissingFindings> find_missing(const VerifyInputs& inputs, const std::vector<VerifyResult>& results,
                                       const CommonOptions& common, const VerifierOptions& options) {
  MissingFindings findings;
  Verifier verifier(inputs.registry, inputs.axioms, options);
  for (const VerifyResult& result : results) {
    if (result.verdict.by_axioms) continue;
    std::optional<Substitution> statement = true_statement(result);
    if (!statement) continue;
    const bool narrowed = statement->conditions.size() > result.task->rule.conditions.size();
    if (narrowed && verifier.follows_from_axioms(*statement)) continue;
    findings.narrowed.push_back(narrowed ? result.verdict.needs : std::vector<Condition>{});
    findings.rules.push_back(std::move(*statement));
    if (interrupted()) break;
  }
  MissingOptions missing;
  missing.rlimit = options.rlimit / 2;
  missing.threads = thread_count(common);
  missing.stop = [] { return interrupted().load(); };
  ProgressLine line(common.quiet);
  missing.progress = [&](const std::string& what, std::size_t done, std::size_t total) {
    line.show(fmt::format("missing properties: {} {} of {}", what, done, total));
  };
  findings.report = find_missing_axioms(inputs.registry, inputs.axioms, findings.rules, missing);
  line.clear();
  if (interrupted()) return Error{ErrorCode::interrupted, "interrupted; nothing was reported", {}};
  return findings;
}

std::string missing_text(const MissingFindings& findings, const OperatorCatalog& catalog) {
  const MissingReport& report = findings.report;
  const auto closed = static_cast<std::size_t>(std::count_if(
      report.rules.begin(), report.rules.end(), [](const MissingRule& rule) { return !rule.identities.empty(); }));
  std::string text = fmt::format(
      "# {} true and not entailed by the axioms; {} would add {}\n", plural(findings.rules.size(), "statement"),
      plural(report.identities.size(), "identit" + std::string(report.identities.size() == 1 ? "y" : "ie")), closed);
  for (const MissingIdentity& identity : report.identities) {
    std::string rules;
    for (const std::size_t rule : identity.rules) rules += (rules.empty() ? "" : ", ") + findings.rules[rule].name;
    text += "\n" +
            commented(fmt::format("{}; adds {}; used for {}", identity.origin, plural(identity.adds, "rule"), rules)) +
            to_string(identity.axiom, catalog);
  }
  for (const MissingRule& rule : report.rules)
    if (rule.identities.empty()) text += "\n" + commented(findings.rules[rule.rule].name + ": " + rule.reason);
  for (std::size_t rule = 0; rule < findings.rules.size(); ++rule)
    if (!findings.narrowed[rule].empty())
      text += "\n" + commented(findings.rules[rule].name + " is true only if " + findings.under(rule));
  return text;
}

Expected<int> run_generalise(const VerifyInputs& inputs, const CommonOptions& common, const VerifierOptions& options,
                             const std::string& path) {
  struct Done {
    Generalisation general;
    Verdict verdict;
  };
  const std::size_t total = inputs.tasks.size();
  std::vector<Done> done(total);
  std::atomic<std::size_t> next = 0;
  std::size_t finished = 0;
  std::mutex mutex;
  ProgressLine line(common.quiet);
  const Verifier first(inputs.registry, inputs.axioms, options);
  auto work = [&] {
    Verifier verifier = first.sharing_copy();
    for (std::size_t i = next++; i < total && !interrupted(); i = next++) {
      const VerifyTask& task = inputs.tasks[i];
      Done& here = done[i];
      here.general.rule = task.rule;
      here.general.reason = task.problem;
      if (task.problem.empty()) {
        here.general = generalise(inputs.registry, task.rule);
        if (here.general.proved) here.verdict = verifier.verify(here.general.rule);
        // Numbers have the last word.
        if (here.general.proved && here.verdict.kind != VerdictKind::proved && !here.general.steps.empty()) {
          here.general.rule = task.rule;
          here.general.steps.clear();
          here.verdict = verifier.verify(task.rule);
        }
      }
      const std::lock_guard lock(mutex);
      line.show(fmt::format("generalised {} of {}: {}", ++finished, total, task.rule.name));
    }
  };
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < std::min<std::size_t>(thread_count(common), total); ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  line.clear();
  if (interrupted()) return Error{ErrorCode::interrupted, "interrupted; nothing was written", {}};
  std::string text = "# Written by taso-verify --generalise. A rule without a proof stands as it was.\n";
  std::size_t changed = 0, open = 0;
  for (std::size_t i = 0; i < total; ++i) {
    Done& one = done[i];
    text += "\n";
    const bool proved = one.general.proved && one.verdict.kind == VerdictKind::proved;
    if (!proved) {
      ++open;
      const std::string why = one.general.proved ? one.verdict.reason : one.general.reason;
      text += commented("not proved for all sizes: " + why);
      if (!inputs.tasks[i].problem.empty()) continue;
    }
    for (const std::string& step : one.general.steps) text += commented(step);
    changed += one.general.steps.empty() ? 0 : 1;
    if (proved && !one.general.rule.is_axiom) {
      one.general.rule = stored_form(one.general.rule, one.verdict, inputs.registry);
      one.general.rule.expect.reset();
    }
    text += to_string(one.general.rule, inputs.registry);
  }
  TASO_RETURN_IF_ERROR(write_text(path, text));
  if (!common.quiet && path != "-")
    std::fputs(fmt::format("{}: {} more general, {} not proved\n", plural(total, "statement"), changed, open).c_str(),
               stdout);
  return open == 0 ? 0 : static_cast<int>(ErrorCode::not_proved);
}

}  // namespace taso::tools
