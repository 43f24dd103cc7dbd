/// check_strategies [COUNT [SEED]]: verifies COUNT (default 300) strategies of the shipped operators that are changed
/// in one place, and prints those that are not refuted: by numbers, or since the pieces are ill-typed wherever the
/// whole is well-typed. Exit code 5 if one is neither refuted nor proved.

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "partition/strategy.h"
#include "support/random.h"
#include "tests/partition/strategy_mutations.h"
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
  std::size_t counts[3] = {0, 0, 0}, ill_typed = 0;
  const std::size_t examined = std::min(count, all.size());
  for (std::size_t i = 0; i < examined; ++i) {
    const Verdict verdict = verifier.verify(all[i].rule);
    if (test::is_refuted_by_types(verdict)) {
      ++ill_typed;
      continue;
    }
    ++counts[static_cast<std::size_t>(verdict.kind)];
    if (verdict.kind == VerdictKind::refuted) continue;
    std::printf("%s: %s %s\n%s", to_string(verdict.kind), all[i].what.c_str(), verdict.reason.c_str(),
                to_string(all[i].rule, *registry).c_str());
  }
  std::printf("%zu of %zu changed strategies: %zu proved, %zu refuted by numbers, %zu by types, %zu unknown\n",
              examined, all.size(), counts[0], counts[1], ill_typed, counts[2]);
  return counts[2] == 0 ? 0 : 5;
}
