// The attack on the verifier: mutants of true rules, and whether one is proved and false.
//
//   attack_rules [--seed S] [--first I] [--count N] [--until-proved N] [--threads N] [--full-every K] [--from FILE]...
//                [--expect-falsehood] [--quiet]
//   attack_rules --rules FILE... | --judge FILE
//
// Mutant number i depends on the seed and i alone (rule_mutator.h). Mutants that say the same up to names, or what a
// shipped rule says, are one. Each is given to the proof for all sizes alone, without the small instances that would
// hide a mistake of it, and one of K (8) to the whole verifier, as taso-verify does. What is proved is judged
// (rule_judge.h) at instances about every number that the mutant names. A false one is made as small as it can be while
// it is still proved and false, and printed as a rule with the instance. Nothing depends on time: equal arguments give
// equal output, at any --threads.
//
// --from FILE takes the rules of files as what is mutated, instead of all that the project knows to be true. --rules
// FILE attacks the rules of a file as they stand instead. --judge FILE asks whether the judge sees that every rule of a
// file that is not expected to be proved is false: the test of the test. Exit code: 0 nothing false is proved; 1
// something is (with --expect-falsehood the other way round), or is not seen; 2 wrong command line or input.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/attack/common.h"
#include "tests/attack/rule_judge.h"
#include "tests/attack/rule_mutator.h"
#include "verifier/verify.h"

namespace taso::testing {
namespace {

// Mutants that are verified at a time.
constexpr std::size_t batch = 256;
// Attempts to make a false rule smaller.
constexpr std::size_t max_shrinking = 400;

struct Arguments {
  std::uint64_t seed = 1;
  std::size_t first = 0, count = 1000, until_proved = 0, threads = 2, full_every = 8;
  bool quiet = false, expect_falsehood = false;
  std::vector<std::string> from, rules;
  std::string judged;
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    const auto value = [&]() -> std::string {
      if (++i == argc) stop(option + " wants a value");
      return argv[i];
    };
    const auto number = [&] { return number_argument(option, value()); };
    if (option == "--seed")
      arguments.seed = number();
    else if (option == "--first")
      arguments.first = number();
    else if (option == "--count")
      arguments.count = number();
    else if (option == "--until-proved")
      arguments.until_proved = number();
    else if (option == "--threads")
      arguments.threads = std::max<std::size_t>(1, number());
    else if (option == "--from")
      arguments.from.push_back(value());
    else if (option == "--rules")
      arguments.rules.push_back(value());
    else if (option == "--full-every")
      arguments.full_every = std::max<std::size_t>(1, number());
    else if (option == "--judge")
      arguments.judged = value();
    else if (option == "--quiet")
      arguments.quiet = true;
    else if (option == "--expect-falsehood")
      arguments.expect_falsehood = true;
    else
      stop("unknown option " + option);
  }
  return arguments;
}

// What a mutant turned out to be.
struct Outcome {
  VerdictKind kind = VerdictKind::unknown;
  Judgement judgement;
};

class Attack {
 public:
  explicit Attack(const Arguments& arguments) : arguments_(arguments) {
    const std::string source = TASO_SOURCE_DIR;
    const OperatorRegistry shipped = must(OperatorRegistry::load(source + "/specs/operators"));
    registry_ = must(OperatorRegistry::load(source + "/tests/attack/operators", &shipped));
    VerifierOptions alone;
    alone.axioms = alone.bounded = false;
    const std::vector<Substitution> axioms = must(load_axioms(source + "/specs/axioms", registry_));
    unbounded_.emplace_back(registry_, axioms, alone);
    whole_.emplace_back(registry_, axioms, VerifierOptions{});
    while (whole_.size() < arguments.threads) {
      unbounded_.push_back(unbounded_[0].sharing_copy());
      whole_.push_back(whole_[0].sharing_copy());
    }
  }

  int run() {
    if (!arguments_.judged.empty()) return judge_file();
    return arguments_.rules.empty() ? attack_mutants() : attack_files();
  }

 private:
  // Equal for rules that are equal up to names and order.
  [[nodiscard]] std::string text_of(Substitution rule) const {
    rule.name = "rule";
    rule.is_axiom = false;
    rule.proofs.clear();
    rule.numeric_class.reset();
    rule.expect.reset();
    return to_string(canonical(rule, registry_), registry_);
  }

  // True statements of the project.
  std::vector<Substitution> true_rules() {
    const std::string source = TASO_SOURCE_DIR;
    std::vector<Substitution> rules;
    const auto add = [&](std::vector<Substitution> more) {
      for (Substitution& rule : more)
        if (!rule.expect || rule.expect == "proved") rules.push_back(std::move(rule));
    };
    for (const char* file : {"/specs/rules/default.rules", "/tests/attack/seeds.rules", "/tests/data/verify/true.rules",
                             "/tests/data/verify/unbounded.rules", "/tests/data/rewrite/sound.rules"})
      add(must(load_rules(source + file, registry_)));
    add(must(load_axioms(source + "/specs/axioms", registry_)));
    for (const Substitution& rule : rules) seen_.insert(text_of(rule));
    if (!arguments_.from.empty()) rules.clear();
    for (const std::string& file : arguments_.from) add(must(load_rules(file, registry_)));
    return rules;
  }

  // What the proof for all sizes says, and, if `whole`, the verifier; the judgement is of both.
  Outcome examine(std::size_t worker, const Substitution& rule, bool whole, LoweredCache& cache) {
    const JudgeOptions options{.seed = arguments_.seed};
    Verdict verdict = unbounded_[worker].verify(rule);
    Outcome outcome{verdict.kind, {}};
    const bool proved = verdict.kind == VerdictKind::proved;
    if (proved) outcome.judgement = judge(registry_, stored_form(rule, verdict, registry_), options, cache);
    if (outcome.judgement.falsehood || !whole) return outcome;
    verdict = whole_[worker].verify(rule);
    if (!proved) outcome.kind = verdict.kind;
    if (verdict.kind != VerdictKind::proved) return outcome;
    const Judgement again = judge(registry_, stored_form(rule, verdict, registry_), options, cache);
    outcome.judgement.instances = std::max(outcome.judgement.instances, again.instances);
    outcome.judgement.falsehood = again.falsehood;
    return outcome;
  }

  std::vector<Outcome> examine_all(const std::vector<Substitution>& rules) {
    std::vector<Outcome> outcomes(rules.size());
    std::atomic<std::size_t> next = 0;
    std::vector<std::thread> threads;
    for (std::size_t worker = 0; worker < whole_.size(); ++worker)
      threads.emplace_back([&, worker] {
        LoweredCache cache(registry_);
        for (std::size_t i = next++; i < rules.size(); i = next++) try {
            outcomes[i] = examine(worker, rules[i], i % arguments_.full_every == 0, cache);
          } catch (const std::bad_alloc&) {
            stop("memory is exhausted by\n" + to_string(rules[i], registry_));
          }
      });
    for (std::thread& thread : threads) thread.join();
    return outcomes;
  }

  // Rules with something left out.
  std::vector<Substitution> smaller(const Substitution& rule) {
    std::vector<Substitution> result;
    const auto add = [&](const Substitution& changed) {
      const auto parsed = parse_rules(to_string(changed, registry_), "smaller", registry_);
      if (parsed && parsed->size() == 1) result.push_back(parsed->front());
    };
    for (std::size_t c = 0; c < rule.conditions.size(); ++c) {
      Substitution changed = rule;
      changed.conditions.erase(changed.conditions.begin() + static_cast<std::ptrdiff_t>(c));
      add(changed);
    }
    for (std::size_t i = 0; rule.source.outputs.size() > 1 && i < rule.source.outputs.size(); ++i) {
      Substitution changed = rule;
      changed.source.outputs.erase(changed.source.outputs.begin() + static_cast<std::ptrdiff_t>(i));
      changed.target.outputs.erase(changed.target.outputs.begin() + static_cast<std::ptrdiff_t>(i));
      add(changed);
    }
    for (const bool source : {true, false}) {
      const Pattern& pattern = source ? rule.source : rule.target;
      for (std::uint32_t n = 0; n < pattern.nodes.size(); ++n) {
        if (pattern.nodes[n].inputs.empty()) continue;
        // An operator left out, here and where the other side has it, too.
        Substitution changed = rule;
        for (Pattern* both : {&changed.source, &changed.target}) {
          for (std::uint32_t m = 0; m < both->nodes.size(); ++m)
            if (both->nodes[m].op == pattern.nodes[n].op) skip(*both, m);
        }
        add(changed);
        changed = rule;
        skip(source ? changed.source : changed.target, n);
        add(changed);
      }
      for (std::size_t n = 0; n < pattern.nodes.size(); ++n)
        for (std::size_t a = 0; a < pattern.nodes[n].attributes.size(); ++a)
          for (const AttributeExpression& operand : pattern.nodes[n].attributes[a].second.operands) {
            Substitution changed = rule;
            (source ? changed.source : changed.target).nodes[n].attributes[a].second = operand;
            add(changed);
          }
    }
    return result;
  }

  // Whoever reads an operator reads its first operand instead.
  static void skip(Pattern& pattern, std::uint32_t node) {
    const PatternValue instead = pattern.nodes[node].inputs[0];
    const auto replace = [&](PatternValue& value) {
      if (!value.is_variable && value.index == node) value = instead;
    };
    for (PatternNode& user : pattern.nodes)
      for (PatternValue& value : user.inputs) replace(value);
    for (PatternValue& value : pattern.outputs) replace(value);
  }

  // A false rule that is proved, with everything left out that need not be there.
  void report(Substitution rule, std::string falsehood) {
    LoweredCache cache(registry_);
    std::size_t left = max_shrinking;
    for (bool progress = true; progress;) {
      progress = false;
      for (const Substitution& candidate : smaller(rule)) {
        if (to_string(candidate, registry_).size() >= to_string(rule, registry_).size() || left-- == 0) break;
        const Outcome outcome = examine(0, candidate, true, cache);
        if (!outcome.judgement.falsehood) continue;
        rule = candidate;
        falsehood = *outcome.judgement.falsehood;
        progress = true;
        break;
      }
      if (left == 0) break;
    }
    std::printf("PROVED AND FALSE\n%s%s\n\n", to_string(rule, registry_).c_str(), falsehood.c_str());
    std::fflush(stdout);
  }

  void count(const Outcome& outcome, const Substitution& rule) {
    ++verdicts_[static_cast<std::size_t>(outcome.kind)];
    instances_ += outcome.judgement.instances;
    if (outcome.kind == VerdictKind::proved && outcome.judgement.instances == 0) ++not_judged_;
    if (!outcome.judgement.falsehood) return;
    ++false_;
    if (!arguments_.quiet) report(rule, *outcome.judgement.falsehood);
  }

  [[nodiscard]] int finish(std::size_t made) const {
    const auto number = [&](VerdictKind kind) { return verdicts_[static_cast<std::size_t>(kind)]; };
    std::printf(
        "%zu mutants, %zu of them different: %zu proved, %zu refuted, %zu unknown; %zu instances compared, "
        "%zu proved without one; %zu proved and false\n",
        made, number(VerdictKind::proved) + number(VerdictKind::refuted) + number(VerdictKind::unknown),
        number(VerdictKind::proved), number(VerdictKind::refuted), number(VerdictKind::unknown), instances_,
        not_judged_, false_);
    return (false_ == 0) != arguments_.expect_falsehood ? 0 : 1;
  }

  int attack_mutants() {
    const RuleMutator mutator(registry_, true_rules());
    std::size_t made = arguments_.first;
    const auto enough = [&] {
      if (arguments_.expect_falsehood && false_ > 0) return true;
      if (arguments_.until_proved > 0)
        return verdicts_[static_cast<std::size_t>(VerdictKind::proved)] >= arguments_.until_proved;
      return made >= arguments_.first + arguments_.count;
    };
    while (!enough()) {
      std::vector<Substitution> rules;
      for (std::size_t i = 0; i < batch; ++i) {
        if (arguments_.until_proved == 0 && made >= arguments_.first + arguments_.count) break;
        const std::optional<Substitution> rule = mutator.mutant(arguments_.seed, made++);
        if (rule && seen_.insert(text_of(*rule)).second) rules.push_back(*rule);
      }
      const std::vector<Outcome> outcomes = examine_all(rules);
      for (std::size_t i = 0; i < rules.size() && !(arguments_.expect_falsehood && false_ > 0); ++i)
        count(outcomes[i], rules[i]);
      if (!arguments_.quiet && made % (16 * batch) == 0) {
        std::fprintf(stderr, "%zu mutants, %zu proved, %zu of them false\n", made,
                     verdicts_[static_cast<std::size_t>(VerdictKind::proved)], false_);
      }
    }
    return finish(made - arguments_.first);
  }

  int attack_files() {
    std::vector<Substitution> rules;
    for (const std::string& file : arguments_.rules)
      for (Substitution& rule : must(load_rules(file, registry_))) rules.push_back(std::move(rule));
    arguments_.full_every = 1;
    const std::vector<Outcome> outcomes = examine_all(rules);
    for (std::size_t i = 0; i < rules.size(); ++i) count(outcomes[i], rules[i]);
    return finish(rules.size());
  }

  int judge_file() {
    std::size_t overlooked = 0;
    LoweredCache cache(registry_);
    for (Substitution& rule : must(load_rules(arguments_.judged, registry_))) {
      if (rule.expect == "proved") continue;
      rule.numeric_class = NumericClass::exact;
      if (judge(registry_, rule, {.seed = arguments_.seed}, cache).falsehood) continue;
      ++overlooked;
      std::printf("NOT SEEN TO BE FALSE\n%s\n", to_string(rule, registry_).c_str());
    }
    return overlooked == 0 ? 0 : 1;
  }

  Arguments arguments_;
  OperatorRegistry registry_;
  std::vector<Verifier> unbounded_, whole_;  // one for each thread
  std::set<std::string> seen_;
  std::size_t verdicts_[3] = {};
  std::size_t instances_ = 0, not_judged_ = 0, false_ = 0;
};

}  // namespace
}  // namespace taso::testing

int main(int argc, char** argv) { return taso::testing::Attack(taso::testing::parse(argc, argv)).run(); }
