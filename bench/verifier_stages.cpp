// What each stage of verification costs: processor time per stage over all rules of the given files, one thread.
// bench/verifier.md has the figures.
//
//   verifier_stages [--unbounded] [--slowest N] FILE...        (.rules, .pb, .axioms, folders)
//
// --unbounded: that stage alone; --slowest: also the rules that take most.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "tools/specs.h"
#include "tools/verify_inputs.h"
#include "verifier/bounded.h"
#include "verifier/magnitude.h"
#include "verifier/numeric_class.h"
#include "verifier/theory/theory.h"
#include "verifier/unbounded/prove.h"

namespace {

using namespace taso;

/// Processor time of one stage, per rule.
class Stage {
 public:
  explicit Stage(std::string name) : name_(std::move(name)) {}

  template <class Work>
  void measure(const std::string& rule, Work&& work) {
    const std::clock_t start = std::clock();
    work();
    times_.emplace_back(1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, rule);
  }

  void print(std::size_t slowest) const {
    if (times_.empty()) return;
    std::vector<std::pair<double, std::string>> sorted = times_;
    std::sort(sorted.rbegin(), sorted.rend());
    double sum = 0;
    for (const auto& [time, rule] : sorted) sum += time;
    std::printf("| %s | %zu | %.0f | %.2f | %.2f | %.1f (%s) |\n", name_.c_str(), sorted.size(), sum,
                sum / static_cast<double>(sorted.size()), sorted[sorted.size() / 2].first, sorted[0].first,
                sorted[0].second.c_str());
    for (std::size_t i = 0; i < std::min(slowest, sorted.size()); ++i)
      std::printf("| - %s | | %.1f | | | |\n", sorted[i].second.c_str(), sorted[i].first);
  }

 private:
  std::string name_;
  std::vector<std::pair<double, std::string>> times_;
};

}  // namespace

int main(int argc, char** argv) {
  tools::CommonOptions common;
  common.specs = tools::default_specs();
  tools::VerifySources sources;
  bool unbounded_only = false;
  std::size_t slowest = 0;
  for (int i = 1; i < argc; ++i) {
    if (argv[i] == std::string("--unbounded"))
      unbounded_only = true;
    else if (argv[i] == std::string("--slowest") && i + 1 < argc)
      slowest = std::strtoul(argv[++i], nullptr, 10);
    else
      sources.inputs.emplace_back(argv[i]);
  }
  const Expected<tools::VerifyInputs> inputs = tools::read_verify_inputs(common, sources);
  if (!inputs) {
    std::fprintf(stderr, "verifier_stages: %s\n", inputs.error().to_string().c_str());
    return static_cast<int>(inputs.error().code);
  }
  Stage unbounded("unbounded"), conditions("unbounded, with conditions (where it fails)"),
      search("search for a difference"), instances("instances"), comparison("canonical forms"),
      numeric("numeric class"), magnitude("magnitude"), axioms("axioms");
  const OperatorRegistry& registry = inputs->registry;
  Theory theory(registry, inputs->axioms, VerifierOptions{}.rlimit);
  LoweredCache cache(registry, 40'000);
  const VerifierOptions options;
  for (const tools::VerifyTask& task : inputs->tasks) {
    const Substitution& rule = task.rule;
    if (!task.problem.empty()) continue;
    bool proved = false;
    unbounded.measure(rule.name, [&] { proved = prove_unbounded(registry, rule).proved; });
    if (!proved) conditions.measure(rule.name, [&] { (void)prove_unbounded(registry, rule, {.infer = true}); });
    if (unbounded_only) continue;
    search.measure(rule.name, [&] {
      (void)validate_bounded(registry, rule, {.max_instances = 1, .search = true, .rare = false}, cache);
    });
    InstanceSet set;
    instances.measure(rule.name, [&] {
      set =
          find_instances(registry, rule, {.max_instances = options.max_instances, .max_work = options.max_work}, cache);
    });
    comparison.measure(rule.name, [&] {
      for (const TypedInstance& typed : set.instances) (void)examine_instance(registry, rule, typed, options.seed);
    });
    if (proved) numeric.measure(rule.name, [&] { (void)derive_numeric_class(set.instances); });
    if (proved) magnitude.measure(rule.name, [&] { (void)find_growth(set.instances); });
    if (proved && !rule.is_axiom) axioms.measure(rule.name, [&] { (void)theory.entails(rule, {.brief = true}); });
  }
  std::printf("| stage | rules | ms in all | ms a rule | median | most |\n|---|---|---|---|---|---|\n");
  for (const Stage* stage : {&unbounded, &conditions, &search, &instances, &comparison, &numeric, &magnitude, &axioms})
    stage->print(slowest);
  return 0;
}
