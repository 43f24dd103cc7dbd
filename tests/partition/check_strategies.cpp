/// check_strategies [COUNT [SEED [-v]]]: verifies COUNT (default 300) strategies of the shipped operators that are
/// changed in one place, and prints a table (markdown) of those that are proved, with the reason why they are true,
/// which is computed from what their pieces are at instances; -v: their rules, too. Refuted are the others by numbers,
/// or by types: a strategy says that its pieces are well-typed wherever its conditions hold. Exit code 5 if one is
/// neither refuted nor proved, or proved without a reason.

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "partition/strategy.h"
#include "support/random.h"
#include "tests/partition/strategy_mutations.h"
#include "tests/partition/strategy_reasons.h"
#include "verifier/verify.h"

int main(int argc, char** argv) {
  using namespace taso;  // NOLINT(google-build-using-namespace)
  const std::size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 300;
  const auto registry = OperatorRegistry::load(TASO_SOURCE_DIR "/specs/operators");
  if (!registry) return registry.error().exit_code();
  std::vector<test::StrategyMutation> all;
  for (const std::string& op : registry->names())
    for (const PartitionStrategy& strategy : derive_strategies(*registry, op).strategies)
      for (test::StrategyMutation& mutation : test::strategy_mutations(strategy.rule, *registry))
        all.push_back(std::move(mutation));
  Random random(argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1, "mutations of strategies");
  for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[random.below(i)]);
  VerifierOptions options;
  options.axioms = false;
  Verifier verifier(*registry, {}, options);
  std::size_t counts[3] = {0, 0, 0}, ill_typed = 0, unexplained = 0;
  const std::size_t examined = std::min(count, all.size());
  std::puts("| changed strategy | verdict | why (instances) |\n|---|---|---|");
  for (std::size_t i = 0; i < examined; ++i) {
    const Verdict verdict = verifier.verify(all[i].rule);
    if (test::is_refuted_by_types(verdict)) {
      ++ill_typed;
      continue;
    }
    ++counts[static_cast<std::size_t>(verdict.kind)];
    if (verdict.kind == VerdictKind::refuted) continue;
    std::string why = verdict.reason;
    if (verdict.kind == VerdictKind::proved) {
      const test::StrategyReasons reasons = test::strategy_reasons(all[i].rule, all[i].changed, *registry);
      why = reasons.text() + (reasons.unexplained.empty() ? "" : " first at " + reasons.unexplained);
      unexplained += reasons.explained() ? 0 : 1;
    }
    std::printf("| %s | %s | %s |\n", all[i].what.c_str(), to_string(verdict.kind), why.c_str());
    if (argc > 3) std::printf("%s", to_string(all[i].rule, *registry).c_str());
  }
  std::printf(
      "\n%zu of %zu changed strategies: %zu refuted by numbers, %zu by types, %zu proved (%zu without a reason), %zu "
      "unknown\n",
      examined, all.size(), counts[1], ill_typed, counts[0], unexplained, counts[2]);
  return counts[2] + unexplained == 0 ? 0 : 5;
}
