#include "tools/verify_strategies.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>
#include <thread>

#include "partition/strategy.h"
#include "support/text_output.h"
#include "tools/verify_reports.h"

namespace taso::tools {
namespace {

/// What is derived of one operator, and the verdicts on its rules, strategies first.
struct Examined {
  OperatorStrategies strategies;
  std::vector<PartialPassage> passages;
  std::vector<VerifyTask> tasks;
  std::vector<Verdict> verdicts;
};

void verify_all(std::vector<Examined>& operators, const Verifier& first, const CommonOptions& common) {
  std::vector<std::pair<Examined*, std::size_t>> tasks;
  for (Examined& one : operators)
    for (std::size_t i = 0; i < one.tasks.size(); ++i) tasks.emplace_back(&one, i);
  std::atomic<std::size_t> next = 0, done = 0;
  std::mutex mutex;
  ProgressLine line(common.quiet);
  auto work = [&] {
    Verifier verifier = first.sharing_copy();
    for (std::size_t i = next++; i < tasks.size() && !interrupted(); i = next++) {
      auto& [one, number] = tasks[i];
      one->verdicts[number] = verifier.verify(one->tasks[number].rule);
      const std::lock_guard lock(mutex);
      line.show(fmt::format("verified {} of {}: {}", ++done, tasks.size(), one->tasks[number].rule.name));
    }
  };
  const auto wanted =
      common.threads > 0 ? static_cast<unsigned>(common.threads) : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < std::min<std::size_t>(wanted, tasks.size()); ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  line.clear();
}

std::string report(const std::string& op, const Examined& one, const OperatorRegistry& registry) {
  std::string text = fmt::format("{}: {} strateg{}", op, one.strategies.strategies.size(),
                                 one.strategies.strategies.size() == 1 ? "y" : "ies");
  if (!one.passages.empty())
    text += fmt::format(", {} passage{} of partial results", one.passages.size(), one.passages.size() == 1 ? "" : "s");
  text += "\n";
  for (std::size_t i = 0; i < one.tasks.size(); ++i) {
    text += text_report({&one.tasks[i], one.verdicts[i]});
    text += indented(to_string(one.tasks[i].rule, registry));
  }
  for (const UncutVariable& variable : one.strategies.uncut)
    text += fmt::format("none     {} ({}): {}\n", variable.variable, variable.reduction ? "reduction" : "output",
                        variable.reason);
  return text;
}

}  // namespace

Expected<int> run_strategies(const OperatorRegistry& registry, const CommonOptions& common,
                             const VerifierOptions& options, const StrategyArguments& arguments, bool print) {
  std::vector<std::string> names = arguments.operators.empty() ? registry.names() : arguments.operators;
  for (const std::string& name : names)
    if (registry.find(name) == nullptr)
      return Error{ErrorCode::usage, "--operator: there is no operator '" + name + "'", {}};
  std::vector<Examined> operators(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    Examined& one = operators[i];
    one.strategies = derive_strategies(registry, names[i]);
    one.passages = derive_passages(registry, names[i]);
    for (const PartitionStrategy& strategy : one.strategies.strategies) one.tasks.push_back({strategy.rule, false, ""});
    for (const PartialPassage& passage : one.passages) one.tasks.push_back({passage.rule, false, ""});
    one.verdicts.resize(one.tasks.size());
  }
  VerifierOptions own = options;
  own.axioms = false;
  own.infer = false;
  verify_all(operators, Verifier(registry, {}, own), common);
  if (interrupted()) return Error{ErrorCode::interrupted, "interrupted; nothing was reported", {}};
  std::size_t proved = 0, all = 0, uncut = 0;
  std::string text, stored = "# Generated; do not edit.\n# command: scripts/make-strategies\n";
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += report(names[i], operators[i], registry);
    uncut += operators[i].strategies.uncut.size();
    for (std::size_t t = 0; t < operators[i].tasks.size(); ++t) {
      ++all;
      if (operators[i].verdicts[t].kind != VerdictKind::proved) continue;
      ++proved;
      stored += "\n" + to_string(stored_form(operators[i].tasks[t].rule, operators[i].verdicts[t], registry), registry);
    }
  }
  text += fmt::format("{} operators: {} strategies and passages, {} proved; {} variables have none\n", names.size(),
                      all, proved, uncut);
  if (print) std::fputs(text.c_str(), stdout);
  if (!arguments.store.empty()) TASO_RETURN_IF_ERROR(write_text(arguments.store, stored));
  return proved == all ? 0 : static_cast<int>(ErrorCode::not_proved);
}

}  // namespace taso::tools
