// check_rules: judges the verifier by random evaluation, at any length.
//
//   check_rules draws COUNT FILE...          no proved rule may fail at COUNT draws of shapes, attributes and numbers
//   check_rules mutations PER_RULE FILE...   statements changed in one place: what is proved must hold at draws
//   check_rules neighbours FILE...           every statement without each of its conditions, with its verdict, as rules
//
// FILE is a .rules or .axioms file, a folder of .axioms files, or a .pb file of the original TASO, whose refuted rules
// are drawn under the condition that the verifier infers. Exit code 0: as it should be; 1: not; 2: wrong command line.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "rule_io/translate.h"
#include "tests/verifier/draws.h"
#include "tests/verifier/mutations.h"
#include "verifier/verify.h"

namespace {

using namespace taso;           // NOLINT(google-build-using-namespace)
using namespace taso::testing;  // NOLINT(google-build-using-namespace)

constexpr std::uint64_t seed = 1;
// Draws that judge one mutation, and attempts to find each.
constexpr std::size_t draws_per_mutation = 60, attempts_per_draw = 1500;

// Calls work(worker, i) for every i below count, on all cores.
void in_parallel(std::size_t count, const std::function<void(std::size_t worker, std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < std::max(1U, std::thread::hardware_concurrency()); ++t)
    threads.emplace_back([&, t] {
      for (std::size_t i = next++; i < count; i = next++) work(t, i);
    });
  for (std::thread& thread : threads) thread.join();
}

[[noreturn]] void stop(const std::string& message) {
  std::fprintf(stderr, "check_rules: %s\n", message.c_str());
  std::exit(2);
}

std::vector<Substitution> load(const std::string& path, const OperatorRegistry& registry) {
  if (path.ends_with(".pb")) {
    auto rules = rule_io::load_taso_rules(path, registry);
    if (!rules) stop(rules.error().to_string());
    std::vector<Substitution> result;
    for (rule_io::TranslatedRule& rule : *rules)
      if (rule.problem.empty()) result.push_back(std::move(rule.rule));
    return result;
  }
  auto rules = path.ends_with(".rules") ? load_rules(path, registry) : load_axioms(path, registry);
  if (!rules) stop(rules.error().to_string());
  return std::move(*rules);
}

struct Loaded {
  OperatorRegistry registry;
  std::vector<Substitution> axioms, rules;
};

// One verifier for each thread.
std::vector<Verifier> verifiers(const Loaded& loaded, const VerifierOptions& options) {
  std::vector<Verifier> result;
  result.emplace_back(loaded.registry, loaded.axioms, options);
  for (unsigned t = 1; t < std::thread::hardware_concurrency(); ++t) result.push_back(result[0].sharing_copy());
  return result;
}

int check_draws(const Loaded& loaded, std::size_t count) {
  // Most rules are proved for all sizes, and then the other proofs need not be waited for.
  VerifierOptions alone;
  alone.axioms = alone.bounded = false;
  VerifierOptions options;
  options.infer = true;
  std::vector<Verifier> unbounded = verifiers(loaded, alone), workers = verifiers(loaded, options);
  std::vector<DrawCounts> counts(loaded.rules.size());
  std::vector<std::string> lines(loaded.rules.size());
  std::atomic<std::size_t> proved = 0, conditional = 0, failed = 0;
  in_parallel(loaded.rules.size(), [&](std::size_t worker, std::size_t i) {
    Substitution rule = loaded.rules[i];
    Verdict verdict = unbounded[worker].verify(rule);
    if (verdict.kind != VerdictKind::proved) verdict = workers[worker].verify(rule);
    const char* state = "proved";
    if (verdict.kind == VerdictKind::proved) {
      ++proved;
    } else if (!verdict.needs.empty()) {
      ++conditional;
      state = "proved under a further condition";
      rule.conditions.insert(rule.conditions.end(), verdict.needs.begin(), verdict.needs.end());
    } else {
      lines[i] = rule.name + ": " + to_string(verdict.kind) + "\n";
      return;
    }
    counts[i] = draw_rule(loaded.registry, rule, count, seed);
    const DrawCounts& c = counts[i];
    if (!c.difference.empty()) ++failed;
    lines[i] = rule.name + ": " + state + "; " + std::to_string(c.draws) + " draws, " + std::to_string(c.distinct) +
               " distinct, " + std::to_string(c.grouped) + " grouped, " + std::to_string(c.broadcast) + " repeated" +
               (c.difference.empty() ? "" : "; FAILS at " + c.difference) + "\n";
  });
  DrawCounts sum;
  std::size_t least = count, few = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    std::fputs(lines[i].c_str(), stdout);
    const DrawCounts& c = counts[i];
    if (c.draws == 0) continue;
    sum.draws += c.draws;
    sum.distinct += c.distinct;
    sum.grouped += c.grouped;
    sum.broadcast += c.broadcast;
    sum.field += c.field;
    sum.numbers += c.numbers;
    sum.undefined += c.undefined;
    least = std::min(least, c.draws);
    few += c.draws < count ? 1U : 0U;
  }
  std::printf(
      "%zu rules: %zu proved, %zu proved under a further condition; %zu draws (%zu distinct, %zu grouped, %zu with a "
      "repeated tensor; %zu equal in the field, %zu in numbers, %zu undefined); least of a rule %zu, %zu rules with "
      "fewer "
      "than %zu; %zu fail\n",
      loaded.rules.size(), proved.load(), conditional.load(), sum.draws, sum.distinct, sum.grouped, sum.broadcast,
      sum.field, sum.numbers, sum.undefined, least, few, count, failed.load());
  return failed == 0 ? 0 : 1;
}

// What draws say of a statement.
enum class Judgement : std::uint8_t { holds, fails, open };
constexpr std::array judgements = {"holds at all draws", "fails at a draw", "no draw"};

Judgement judge(const OperatorRegistry& registry, const Substitution& rule, std::string& text) {
  RuleDraws draws(registry, rule, seed);
  bool evaluated = false;
  for (std::size_t i = 0; i < draws_per_mutation; ++i) {
    const std::optional<Draw> draw = draws.next(attempts_per_draw);
    if (!draw) break;
    const Expected<DrawnGraphs> graphs = drawn_graphs(registry, rule, *draw);
    if (!graphs) continue;
    const Agreement agreement = evaluate_at(registry, *graphs, *draw, seed + i);
    if (agreement == Agreement::different) {
      text = text_of(rule, *draw);
      return Judgement::fails;
    }
    evaluated = evaluated || agreement != Agreement::undefined;
  }
  return evaluated ? Judgement::holds : Judgement::open;
}

int check_mutations(const Loaded& loaded, std::size_t per_rule) {
  std::vector<Verifier> workers = verifiers(loaded, {});
  using Table = std::array<std::array<std::size_t, 3>, 3>;  // by verdict and judgement
  std::array<Table, mutation_kinds> tables{};
  std::vector<std::string> findings(loaded.rules.size());
  std::size_t wrong = 0;
  std::mutex mutex;
  in_parallel(loaded.rules.size(), [&](std::size_t worker, std::size_t i) {
    for (const Mutation& mutation : some_mutations(loaded.rules[i], loaded.registry, per_rule, seed)) {
      const Verdict verdict = workers[worker].verify(mutation.rule);
      std::string text;
      const Judgement judgement = judge(loaded.registry, mutation.rule, text);
      const std::lock_guard lock(mutex);
      ++tables[static_cast<std::size_t>(mutation.kind)][static_cast<std::size_t>(verdict.kind)]
              [static_cast<std::size_t>(judgement)];
      if (verdict.kind == VerdictKind::proved && judgement == Judgement::fails) {
        ++wrong;
        findings[i] += "PROVED AND FALSE: " + mutation.what + "\n" + to_string(mutation.rule, loaded.registry) +
                       "  at " + text + "\n";
      }
    }
  });
  for (const std::string& finding : findings) std::fputs(finding.c_str(), stdout);
  Table sum{};
  std::printf("%-10s %9s %9s %9s %9s\n", "changed", "mutations", "refuted", "unknown", "proved");
  for (std::size_t k = 0; k <= mutation_kinds; ++k) {
    std::array<std::size_t, 3> verdicts{};
    for (std::size_t v = 0; v < 3; ++v)
      for (std::size_t j = 0; j < 3; ++j) {
        if (k < mutation_kinds) sum[v][j] += tables[k][v][j];
        verdicts[v] += k < mutation_kinds ? tables[k][v][j] : sum[v][j];
      }
    std::printf("%-10s %9zu %9zu %9zu %9zu\n", k < mutation_kinds ? to_string(static_cast<MutationKind>(k)) : "all",
                verdicts[0] + verdicts[1] + verdicts[2], verdicts[static_cast<std::size_t>(VerdictKind::refuted)],
                verdicts[static_cast<std::size_t>(VerdictKind::unknown)],
                verdicts[static_cast<std::size_t>(VerdictKind::proved)]);
  }
  for (const VerdictKind kind : {VerdictKind::proved, VerdictKind::refuted, VerdictKind::unknown})
    for (std::size_t j = 0; j < 3; ++j)
      std::printf("%s, and %s: %zu\n", to_string(kind), judgements[j], sum[static_cast<std::size_t>(kind)][j]);
  return wrong == 0 ? 0 : 1;
}

int write_neighbours(const Loaded& loaded) {
  VerifierOptions options;
  options.axioms = false;
  std::vector<Verifier> workers = verifiers(loaded, options);
  std::vector<std::string> texts(loaded.rules.size());
  in_parallel(loaded.rules.size(), [&](std::size_t worker, std::size_t i) {
    for (std::size_t c = 0; c < loaded.rules[i].conditions.size(); ++c) {
      Substitution rule = loaded.rules[i];
      rule.conditions.erase(rule.conditions.begin() + static_cast<std::ptrdiff_t>(c));
      rule.name += "_without_" + std::to_string(c + 1);
      rule.proofs.clear();
      rule.numeric_class.reset();
      rule.expect = to_string(workers[worker].verify(rule).kind);
      texts[i] += "\n" + to_string(rule, loaded.registry);
    }
  });
  for (const std::string& text : texts) std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::string mode = arguments.empty() ? "" : arguments[0];
  const std::size_t first_file = mode == "neighbours" ? 1 : 2;
  if ((mode != "draws" && mode != "mutations" && mode != "neighbours") || arguments.size() <= first_file)
    stop("expected: draws COUNT FILE... | mutations PER_RULE FILE... | neighbours FILE...");
  Loaded loaded;
  auto registry = OperatorRegistry::load(TASO_SOURCE_DIR "/specs/operators");
  if (!registry) stop(registry.error().to_string());
  loaded.registry = std::move(*registry);
  auto axioms = load_axioms(TASO_SOURCE_DIR "/specs/axioms", loaded.registry);
  if (!axioms) stop(axioms.error().to_string());
  loaded.axioms = std::move(*axioms);
  for (std::size_t i = first_file; i < arguments.size(); ++i)
    for (Substitution& rule : load(arguments[i], loaded.registry)) loaded.rules.push_back(std::move(rule));
  if (mode == "neighbours") return write_neighbours(loaded);
  const std::size_t count = std::strtoull(arguments[1].c_str(), nullptr, 10);
  if (count == 0) stop("expected a number above 0, here is '" + arguments[1] + "'");
  return mode == "draws" ? check_draws(loaded, count) : check_mutations(loaded, count);
}
