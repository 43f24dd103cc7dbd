#include "generator/generator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <unordered_set>

#include "generator/journal.h"
#include "generator/parallel.h"
#include "generator/prune.h"
#include "verifier/instances.h"
#include "verifier/numeric_class.h"

namespace taso {
namespace {

/// Schwartz-Zippel with a union bound over all pairs of values: a polynomial of degree at most 2^n, n operators, times
/// the random coefficients of the fingerprint vanishes at a random point of GF(p) with probability at most (2^n + 1) /
/// p, at independent points with that power. Variables of an ordered group take fewer values.
double error_bound(const std::vector<LevelCounts>& levels, std::size_t points, const ProfileGroup& group) {
  double values = 0;
  for (const LevelCounts& level : levels) values += static_cast<double>(level.terms + level.classes);
  const double degree = std::exp2(static_cast<double>(levels.size()) + group.max_weight_ops) + 1;
  const double pairs = values * values / 2;
  return std::min(1.0, pairs * std::pow(degree / std::exp2(group.ordered ? FieldRing::ordered_bits : 61),
                                        static_cast<double>(points)));
}

/// "merge", "share", "fold", "fuse", "cancel" or "exchange": what a rule does to the program.
std::string kind_of(const GeneralRule& rule) {
  const Pattern& source = rule.rule.source;
  const Pattern& target = rule.rule.target;
  if (target.nodes.empty()) return "cancel";
  if (source.outputs.size() > 1) {
    if (target.outputs[0].is_variable) return "cancel";
    // Outputs of one operator, on either side, or of several that share work.
    auto of_one = [](const Pattern& side) {
      return std::all_of(side.outputs.begin(), side.outputs.end(), [&](const PatternValue& output) {
        return !output.is_variable && output.index == side.outputs[0].index;
      });
    };
    return of_one(source) || of_one(target) ? "merge" : "share";
  }
  if (rule.target_ops < rule.source_ops) return rule.target_weight_ops > rule.source_weight_ops ? "fold" : "fuse";
  return "exchange";
}

std::string name_of(const GeneralRule& rule, const OperatorCatalog& catalog) {
  // The operators of the source that run, outermost last.
  std::string name = kind_of(rule);
  std::vector<bool> runs;
  std::string last;
  (void)catalog;
  for (const PatternNode& node : rule.rule.source.nodes) {
    bool running = false;
    for (const PatternValue& input : node.inputs)
      running = running || (input.is_variable ? !rule.is_weight[input.index] : runs[input.index]);
    runs.push_back(running);
    if (!running || node.op == last) continue;
    last = node.op;
    name += "_" + node.op;
  }
  return name;
}

/// What happened to one candidate.
struct Outcome {
  enum class Kind : std::uint8_t { kept, not_expressible, derived, not_general, refuted, unknown };
  Kind kind = Kind::not_general;
  GeneralRule rule;
  std::string why;
  std::size_t order = 0;                 ///< Of the candidate.
  std::optional<Derivation> derivation;  ///< Kind derived.
};

class Run {
 public:
  Run(const Profile& profile, const OperatorRegistry& registry, const GeneratorOptions& options)
      : profile_(profile), registry_(registry), options_(options), kept_rules_(registry, options.prune) {}

  Expected<Generation> run() {
    TASO_RETURN_IF_ERROR(open_journal());
    for (const ProfileGroup& group : profile_.groups) TASO_RETURN_IF_ERROR(run_group(group));
    drop_instances();
    sort_rules();
    explain_skipped();
    finish_pruned();
    name_rules();
    generation_.outliers = float_outliers(generation_.rules, registry_, options_.seed);
    return std::move(generation_);
  }

 private:
  /// Of a candidate of which no derivation was sought.
  static constexpr std::size_t none_tried = static_cast<std::size_t>(-1);

  void report(const std::string& what, std::size_t done, std::size_t total) const {
    if (options_.progress) options_.progress(what, done, total);
  }

  Status run_group(const ProfileGroup& group) {
    GroupStatistics statistics;
    statistics.name = group.name;
    BankOptions bank_options;
    bank_options.max_ops = options_.max_ops;
    bank_options.seed = options_.seed;
    bank_options.threads = options_.threads;
    bank_options.max_terms = options_.max_terms;
    bank_options.scale = options_.scale;
    bank_options.progress = [&](std::uint64_t done, std::uint64_t total) {
      report(group.name + ": terms", static_cast<std::size_t>(done), static_cast<std::size_t>(std::max(done, total)));
    };
    bank_options.estimate = [&](const LevelEstimate& estimate) {
      if (options_.estimate) options_.estimate(group.name, estimate);
    };
    report(group.name + ": terms", 0, 0);
    Bank bank(group, registry_, bank_options);
    TASO_RETURN_IF_ERROR(bank.run());
    // Deeper terms may be those that apply it.
    if (options_.never_applied && options_.max_ops >= group.max_ops)
      for (const std::size_t op : bank.never_applied()) options_.never_applied(group, group.operators[op]);
    statistics.worlds = group.worlds;
    statistics.points = Bank::points;
    statistics.levels = bank.levels();
    statistics.error_bound = error_bound(bank.levels(), Bank::points, group);
    if (!bank.complete() || options_.counts_only) {
      generation_.complete = false;
      generation_.groups.push_back(std::move(statistics));
      return {};
    }
    const std::vector<Draft> drafts = make_candidates(bank, statistics.candidates);

    make_finders(bank);
    prepare_verifiers();
    std::vector<Candidate> candidates = distinct_candidates(drafts, statistics);
    const std::size_t total = candidates.size();
    statistics.distinct = total;
    report(group.name + ": candidates", 0, total);
    // What is decided in one round depends on earlier rounds only: the number of threads changes nothing.
    for (std::size_t settled = 0; settled < total;) {
      settled += round(std::span(candidates).subspan(settled), statistics);
      if (journal_) TASO_RETURN_IF_ERROR(journal_->status());
      report(group.name + ": candidates", settled, total);
    }
    generation_.groups.push_back(std::move(statistics));
    return {};
  }

  /// A candidate that is neither kept nor dropped yet.
  struct Candidate {
    const Draft* draft = nullptr;
    std::unique_ptr<GeneralRule> literal;  ///< Made when it is its turn.
    Hash128 operators;                     ///< Of both sides: candidates with the same may well derive each other.
    std::size_t order = 0;                 ///< Its place among the candidates of all groups.
    std::size_t underived_by = 0;          ///< So many kept rules do not derive it.
    std::unique_ptr<Outcome> outcome;      ///< If it is known before its turn.
  };

  /// Drops candidates that are equal to another up to names, or cannot pay.
  std::vector<Candidate> distinct_candidates(const std::vector<Draft>& drafts, GroupStatistics& statistics) {
    struct Facts {
      bool expressible = false, pays = false, reflexive = false, permutation = false, useful = false;
      Hash128 text, merged, operators;
    };
    std::vector<Facts> facts(drafts.size());
    constexpr std::size_t grain = 64;
    parallel_ranges(options_.threads, drafts.size(), grain, [&](std::size_t begin, std::size_t end, unsigned thread) {
      for (std::size_t i = begin; i < end; ++i) {
        const auto literal = finders_[thread].literal_form(drafts[i]);
        if (!literal) continue;
        Facts& fact = facts[i];
        fact.expressible = true;
        fact.pays = !drafts[i].joint || runs_fewer(*literal);
        if (!fact.pays) continue;
        const std::string text = key_of(literal->rule);
        // The two sides are one: x + y = y + x.
        Substitution reflexive = literal->rule;
        reflexive.target = reflexive.source;
        const std::string source = key_of(reflexive);
        fact.reflexive = text == source;
        fact.text = hash_text(text);
        const std::string shape = shape_of(literal->rule.target);
        fact.permutation = shape == shape_of(literal->rule.source);
        fact.merged = hash_text(source + shape);
        fact.useful = is_useful(*literal);
        std::vector<std::string> operators;
        for (const Pattern* side : {&literal->rule.source, &literal->rule.target})
          for (const PatternNode& node : side->nodes) operators.push_back(node.op);
        std::sort(operators.begin(), operators.end());
        Hasher hasher;
        for (const std::string& op : operators) hasher.add(op);
        fact.operators = hasher.finish();
      }
    });
    std::vector<Candidate> result;
    for (std::size_t i = 0; i < drafts.size(); ++i) {
      const Facts& fact = facts[i];
      if (!fact.expressible) {
        ++statistics.not_expressible;
        continue;
      }
      if (!fact.pays) {
        ++statistics.skipped;
        continue;
      }
      if (!seen_.insert(fact.text).second || fact.reflexive) continue;
      // One order of the operands of a merged operator is enough.
      // Rules that only exchange variables generate a group of permutations: none of them stands for all.
      const bool first = fact.permutation || merged_.insert(fact.merged).second;
      if (!first || !fact.useful) {
        ++statistics.skipped;
        if (options_.explain_skipped)
          skipped_.emplace_back(*finders_[0].literal_form(drafts[i]), generation_.groups.size());
        continue;
      }
      result.push_back({&drafts[i], nullptr, fact.operators, candidates_++, none_tried, nullptr});
    }
    return result;
  }

  /// Takes the first candidates of one size: drops those that the kept rules derive; generalises and proves a few of
  /// the others, no two of them with the same operators, since one of these often derives the other. Returns how many
  /// were settled; these come first then.
  std::size_t round(std::span<Candidate> candidates, GroupStatistics& statistics) {
    constexpr std::size_t looked_at = 48, chosen_at_most = 16;
    auto size_of = [](const Candidate& candidate) { return candidate.draft->source.ops + candidate.draft->target.ops; };
    std::size_t count = 1;
    while (count < std::min(looked_at, candidates.size()) && size_of(candidates[count]) == size_of(candidates[0]))
      ++count;
    std::vector<std::optional<Derivation>> derivations(count);
    const std::size_t rules = kept_rules_.size();
    parallel_for(options_.threads, count, [&](std::size_t i, unsigned thread) {
      Candidate& candidate = candidates[i];
      make_literal(candidate, thread);
      if (candidate.underived_by != rules) derivations[i] = kept_rules_.derive(*candidate.literal);
      candidate.underived_by = rules;
    });
    std::vector<std::size_t> chosen;
    std::vector<bool> done(count, false);
    for (std::size_t i = 0; i < count; ++i) {
      if (derivations[i]) {
        Outcome outcome;
        outcome.kind = Outcome::Kind::derived;
        outcome.rule = std::move(*candidates[i].literal);
        outcome.derivation = std::move(derivations[i]);
        settle(outcome, statistics);
        done[i] = true;
      } else if (chosen.size() < chosen_at_most && std::none_of(chosen.begin(), chosen.end(), [&](std::size_t other) {
                   return candidates[other].operators == candidates[i].operators;
                 })) {
        chosen.push_back(i);
        done[i] = true;
      }
    }
    find_outcomes(candidates, chosen, done);
    for (const std::size_t i : chosen) {
      Outcome outcome = std::move(*candidates[i].outcome);
      outcome.order = candidates[i].order;
      settle(outcome, statistics);
    }
    std::vector<Candidate> left;
    for (std::size_t i = 0; i < count; ++i)
      if (!done[i]) left.push_back(std::move(candidates[i]));
    const std::size_t settled = count - left.size();
    for (std::size_t i = 0; i < settled; ++i) candidates[i] = {};
    std::move(left.begin(), left.end(), candidates.begin() + static_cast<std::ptrdiff_t>(settled));
    return settled;
  }

  void make_literal(Candidate& candidate, unsigned thread) {
    if (!candidate.literal)
      candidate.literal = std::make_unique<GeneralRule>(*finders_[thread].literal_form(*candidate.draft));
  }

  /// The outcomes of the chosen candidates; and, on threads that would be idle, of some whose turn may come: an outcome
  /// depends on nothing but the candidate. Proofs are too long for this.
  void find_outcomes(std::span<Candidate> candidates, const std::vector<std::size_t>& chosen,
                     const std::vector<bool>& done) {
    std::vector<std::size_t> wanted;
    for (const std::size_t i : chosen)
      if (!candidates[i].outcome) wanted.push_back(i);
    const std::size_t threads = std::max(1u, options_.threads);
    if (!options_.verify && !wanted.empty()) {
      const std::size_t tasks = (wanted.size() + threads - 1) / threads * threads;
      for (std::size_t i = 0; i < candidates.size() && wanted.size() < tasks; ++i)
        if ((i >= done.size() || !done[i]) && !candidates[i].outcome) wanted.push_back(i);
    }
    parallel_for(options_.threads, wanted.size(), [&](std::size_t i, unsigned thread) {
      Candidate& candidate = candidates[wanted[i]];
      make_literal(candidate, thread);
      candidate.outcome = std::make_unique<Outcome>(outcome_of(candidate, thread));
    });
  }

  std::string key_of(const Substitution& rule) const {
    Substitution plain = canonical(rule, registry_);
    plain.name = "r";
    plain.proofs.clear();
    plain.numeric_class.reset();
    return to_string(plain, registry_);
  }

  /// A side without the names of its variables: operators, how they are nested, literal attributes. Siblings can be
  /// merged in any order, so that of a target with several outputs the operators count, in no order.
  static std::string shape_of(const Pattern& side) {
    const bool merged = side.outputs.size() > 1;
    std::vector<std::string> nodes;
    for (const PatternNode& node : side.nodes) {
      std::string text = node.op + "(";
      for (const PatternValue& input : node.inputs)
        if (!merged) text += input.is_variable ? "_," : nodes[input.index] + ",";
      for (const auto& [name, value] : node.attributes)
        if (value.kind == AttributeExpression::Kind::literal) text += " " + name + "=" + to_string(value.literal);
      nodes.push_back(text + ")");
    }
    std::string result;
    if (merged) {
      std::sort(nodes.begin(), nodes.end());
      for (const std::string& node : nodes) result += "; " + node;
    } else {
      const PatternValue& output = side.outputs[0];
      result = output.is_variable ? "_" : nodes[output.index];
    }
    return result;
  }

  /// Whether the target of a rule runs fewer operators than the source where concatenations of concatenations are one.
  bool runs_fewer(const GeneralRule& rule) const {
    int ops[2];
    for (int side = 0; side < 2; ++side) {
      auto graph = instantiate(rule.rule, side == 0 ? rule.rule.source : rule.rule.target, rule.example_types,
                               rule.example_attributes, registry_);
      TASO_CHECK(graph.ok(), "a rule has an instance in the profile");
      normalize(*graph, registry_);
      ops[side] = running_operators(*graph, rule.is_weight);
    }
    return ops[1] < ops[0];
  }

  /// Whether a rule can be a step to something cheaper. One that exchanges operators without lowering their number must
  /// use each variable once on each side, and change more than attributes.
  static bool is_useful(const GeneralRule& rule) {
    const Substitution& substitution = rule.rule;
    if (substitution.source.outputs.size() > 1 || rule.target_ops < rule.source_ops) return true;
    for (const Pattern* side : {&substitution.source, &substitution.target}) {
      std::vector<int> uses(substitution.tensor_variables.size(), 0);
      for (const PatternNode& node : side->nodes)
        for (const PatternValue& input : node.inputs)
          if (input.is_variable) ++uses[input.index];
      if (std::any_of(uses.begin(), uses.end(), [](int count) { return count != 1; })) return false;
    }
    if (substitution.source.nodes.size() != substitution.target.nodes.size()) return true;
    // Which of two weights of one type an operator reads is no matter of cost.
    const auto costs_the_same = [&rule](const PatternValue& left, const PatternValue& right) {
      return left == right ||
             (left.is_variable && right.is_variable && rule.is_weight[left.index] && rule.is_weight[right.index] &&
              rule.example_types[left.index] == rule.example_types[right.index]);
    };
    for (std::size_t i = 0; i < substitution.source.nodes.size(); ++i) {
      const PatternNode& left = substitution.source.nodes[i];
      const PatternNode& right = substitution.target.nodes[i];
      if (left.op != right.op ||
          !std::equal(left.inputs.begin(), left.inputs.end(), right.inputs.begin(), right.inputs.end(), costs_the_same))
        return true;
    }
    return substitution.source.outputs != substitution.target.outputs;
  }

  void make_finders(Bank& bank) {
    FormOptions options;
    options.seed = options_.seed;
    auto& comparers = comparers_[bank.group().ordered ? 1 : 0];
    while (comparers.size() < std::max(1u, options_.threads))
      comparers.push_back(
          std::make_unique<InstanceComparer>(registry_, options_.seed, options.max_elements, bank.group().ordered));
    finders_.clear();
    for (const auto& comparer : comparers) finders_.emplace_back(bank, *comparer, options);
  }

  void prepare_verifiers() {
    if (!options_.verify || !verifiers_.empty()) return;
    verifiers_.push_back(std::make_unique<Verifier>(registry_, options_.axioms, options_.verifier));
    while (verifiers_.size() < std::max(1u, options_.threads))
      verifiers_.push_back(std::make_unique<Verifier>(verifiers_[0]->sharing_copy()));
  }

  /// Where there are checkpoints, outcomes are kept with them.
  Status open_journal() {
    if (options_.scale.checkpoint.empty() || options_.scale.send || options_.counts_only) return {};
    Hasher inputs;
    inputs.add(options_.inputs).add(profile_.name).add(options_.seed).add(options_.verify ? 1 : 0);
    TASO_ASSIGN(journal_, Journal::open(options_.scale.checkpoint + "/outcomes.journal", inputs.finish()));
    return {};
  }

  /// What becomes of a candidate by itself, from the journal if it is there.
  Outcome outcome_of(const Candidate& candidate, unsigned thread) {
    if (!journal_) return consider(*candidate.draft, *candidate.literal, thread);
    const Hash128 key = Hasher()
                            .add(std::uint64_t{generation_.groups.size()})
                            .add(to_string(candidate.literal->rule, registry_))
                            .finish();
    Outcome outcome;
    if (const JournalEntry* const known = journal_->find(key)) {
      outcome.kind = static_cast<Outcome::Kind>(known->kind);
      outcome.rule = known->rule;
      outcome.why = known->why;
      return outcome;
    }
    outcome = consider(*candidate.draft, *candidate.literal, thread);
    journal_->add(key, {static_cast<std::uint8_t>(outcome.kind), outcome.rule, outcome.why});
    return outcome;
  }

  /// Generalises and proves a candidate: what does not depend on others.
  Outcome consider(const Draft& draft, const GeneralRule& literal, unsigned thread) {
    Outcome outcome;
    outcome.rule = literal;
    outcome.why = "fails at other shapes or attributes";
    FormFinder::Forms forms(finders_[thread], draft);
    // From the most general form to the least; one that the verifier refutes comes back with a condition that excludes
    // the counterexample, after those that need fewer conditions. The proof from axioms takes long where it fails: it
    // is tried when no form is proved without it.
    struct Attempt {
      GeneralRule form;
      std::vector<Counterexample> failures;
    };
    std::optional<GeneralRule> fresh = forms.next();
    std::vector<Attempt> refined;
    std::vector<std::pair<GeneralRule, std::string>> unknown;  // with the reason
    constexpr std::size_t max_attempts = 16;
    constexpr std::size_t max_failures = 4;
    for (std::size_t tried = 0; tried < max_attempts; ++tried) {
      const auto again = std::min_element(refined.begin(), refined.end(), [](const Attempt& a, const Attempt& b) {
        return a.form.rule.conditions.size() < b.form.rule.conditions.size();
      });
      Attempt attempt;
      if (fresh && (again == refined.end() || fresh->rule.conditions.size() <= again->form.rule.conditions.size())) {
        attempt.form = std::move(*fresh);
        fresh.reset();
      } else if (again != refined.end()) {
        attempt = std::move(*again);
        refined.erase(again);
      } else {
        break;
      }
      outcome.rule = attempt.form;
      if (!options_.verify) {
        outcome.kind = Outcome::Kind::kept;
        return outcome;
      }
      Verifier& verifier = *verifiers_[thread];
      Verdict verdict = verifier.verify(attempt.form.rule, true);
      if (verdict.kind == VerdictKind::unknown)
        if (auto stronger = with_implied(attempt.form.rule, forms.implied(attempt.form), verifier)) {
          verdict = verifier.verify(*stronger);
          outcome.rule.rule = std::move(*stronger);
        }
      if (keep_if_proved(outcome, verdict)) return outcome;
      outcome.kind = verdict.kind == VerdictKind::refuted ? Outcome::Kind::refuted : Outcome::Kind::unknown;
      outcome.why = verdict.reason;
      if (verdict.kind == VerdictKind::unknown) unknown.emplace_back(attempt.form, verdict.reason);
      if (verdict.counterexample) {
        outcome.why += "\n" + verdict.counterexample->text;
        attempt.failures.push_back(*verdict.counterexample);
        if (attempt.failures.size() <= max_failures)
          if (auto better = forms.refine(attempt.form, attempt.failures))
            refined.push_back({std::move(*better), std::move(attempt.failures)});
      }
      if (!fresh) fresh = forms.next();
    }
    for (auto& [form, reason] : unknown) {
      outcome.rule = std::move(form);
      outcome.kind = Outcome::Kind::unknown;
      outcome.why = std::move(reason);
      // All that is left is the proof from axioms; what it proves is examined at length.
      std::string not_entailed;
      if (!verifiers_[thread]->follows_from_axioms(outcome.rule.rule, &not_entailed)) {
        outcome.why += "; " + not_entailed;
        continue;
      }
      const Verdict verdict = verifiers_[thread]->verify(outcome.rule.rule);
      if (keep_if_proved(outcome, verdict)) return outcome;
      if (verdict.kind == VerdictKind::refuted) outcome.kind = Outcome::Kind::refuted;
      outcome.why = verdict.reason;
    }
    return outcome;
  }

  /// Writes the proofs down.
  bool keep_if_proved(Outcome& outcome, const Verdict& verdict) const {
    if (verdict.kind != VerdictKind::proved) return false;
    outcome.kind = Outcome::Kind::kept;
    outcome.rule.rule = stored_form(outcome.rule.rule, verdict, registry_);
    // No instance is small enough for the verifier (eight groups in one): the profile's own is.
    if (!verdict.numeric_class) outcome.rule.rule.numeric_class = class_at_example(outcome.rule);
    return true;
  }

  std::optional<NumericClass> class_at_example(const GeneralRule& rule) const {
    TypeCheck check = check_types(registry_, rule.rule, {rule.example_types, rule.example_attributes});
    if (!check.typed) return std::nullopt;
    std::vector<TypedInstance> instances;
    instances.push_back(std::move(*check.typed));
    return derive_numeric_class(instances);
  }

  /// The rule with as few of the implied conditions as let it follow from the axioms; empty if all of them do not.
  static std::optional<Substitution> with_implied(const Substitution& form, std::vector<Condition> added,
                                                  Verifier& verifier) {
    if (added.empty()) return std::nullopt;
    auto strengthened = [&] {
      Substitution rule = form;
      rule.conditions.insert(rule.conditions.end(), added.begin(), added.end());
      return rule;
    };
    if (!verifier.follows_from_axioms(strengthened())) return std::nullopt;
    for (std::size_t i = added.size(); i-- > 0;) {
      const Condition left_out = added[i];
      added.erase(added.begin() + static_cast<std::ptrdiff_t>(i));
      if (!verifier.follows_from_axioms(strengthened()))
        added.insert(added.begin() + static_cast<std::ptrdiff_t>(i), left_out);
    }
    return strengthened();
  }

  /// Takes the outcomes of a round in order; a rule may have become superfluous by one before it.
  void settle(Outcome& outcome, GroupStatistics& statistics) {
    if (outcome.kind == Outcome::Kind::kept) {
      if (!kept_.insert(key_of(outcome.rule.rule)).second) {  // the rule itself, from another group
        ++statistics.derived;
        return;
      }
      outcome.derivation = kept_rules_.derive(outcome.rule);
      if (outcome.derivation) outcome.kind = Outcome::Kind::derived;
    }
    switch (outcome.kind) {
      case Outcome::Kind::kept:
        ++statistics.kept;
        numbers_.push_back(kept_rules_.keep(outcome.rule));
        generation_.rules.push_back(std::move(outcome.rule));
        group_of_.push_back(statistics.name);
        orders_.push_back(outcome.order);
        return;
      case Outcome::Kind::derived:
        ++statistics.derived;
        kept_rules_.drop({std::move(outcome.rule), statistics.name, std::move(*outcome.derivation)});
        return;
      case Outcome::Kind::not_expressible:
        ++statistics.not_expressible;
        return;
      case Outcome::Kind::not_general:
        ++statistics.not_general;
        break;
      case Outcome::Kind::refuted:
        ++statistics.refuted;
        break;
      case Outcome::Kind::unknown:
        ++statistics.unknown;
        break;
    }
    if (options_.dropped) options_.dropped(to_string(outcome.rule.rule, registry_), outcome.why);
  }

  /// Drops rules that one application of another rule, which may have been found later, replaces.
  void drop_instances() {
    std::vector<GeneralRule>& rules = generation_.rules;
    for (std::size_t i = 0; i < rules.size();) {
      if (!kept_rules_.replace(numbers_[i], rules[i], group_of_[i])) {
        ++i;
        continue;
      }
      for (GroupStatistics& group : generation_.groups)
        if (group.name == group_of_[i]) {
          --group.kept;
          ++group.derived;
        }
      const auto at = static_cast<std::ptrdiff_t>(i);
      rules.erase(rules.begin() + at);
      group_of_.erase(group_of_.begin() + at);
      numbers_.erase(numbers_.begin() + at);
      orders_.erase(orders_.begin() + at);
    }
  }

  /// Rules come in the order of the candidates, whatever the order in which these were settled.
  void sort_rules() {
    std::vector<std::size_t> order(orders_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return orders_[a] < orders_[b]; });
    std::vector<GeneralRule> rules;
    std::vector<std::uint32_t> numbers;
    for (const std::size_t i : order) {
      rules.push_back(std::move(generation_.rules[i]));
      numbers.push_back(numbers_[i]);
    }
    generation_.rules = std::move(rules);
    numbers_ = std::move(numbers);
  }

  /// Derivations of what was left out as not useful, by all kept rules in both directions.
  void explain_skipped() {
    constexpr int max_steps = 6;
    for (auto& [rule, group] : skipped_) {
      GroupStatistics& statistics = generation_.groups[group];
      bool found = false;
      for (const int extra_ops : {0, 1}) {
        auto derivation = kept_rules_.derive(rule, std::nullopt, max_steps, extra_ops);
        if (!derivation) continue;
        kept_rules_.drop({std::move(rule), statistics.name, std::move(*derivation), extra_ops > 0});
        statistics.skipped_costlier += extra_ops > 0 ? 1 : 0;
        found = true;
        break;
      }
      if (found) continue;
      ++statistics.skipped_underived;
      if (options_.dropped) options_.dropped(to_string(rule.rule, registry_), "not useful, and not derived");
    }
  }

  void finish_pruned() {
    std::vector<std::uint32_t> renumber;
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      renumber.resize(std::max<std::size_t>(renumber.size(), numbers_[i] + std::size_t{1}));
      renumber[numbers_[i]] = static_cast<std::uint32_t>(i);
    }
    generation_.pruned = kept_rules_.take_dropped(renumber);
  }

  void name_rules() {
    std::map<std::string, int> used;
    for (GeneralRule& rule : generation_.rules) {
      const std::string base = name_of(rule, registry_);
      rule.rule.name = base + "_" + std::to_string(++used[base]);
    }
  }

  const Profile& profile_;
  const OperatorRegistry& registry_;
  const GeneratorOptions& options_;
  KeptRules kept_rules_;
  Generation generation_;
  std::vector<std::string> group_of_;                         ///< Per rule.
  std::vector<std::size_t> orders_;                           ///< Per rule: its candidate.
  std::size_t candidates_ = 0;                                ///< Of all groups so far.
  std::vector<std::uint32_t> numbers_;                        ///< Per rule: its number in kept_rules_.
  std::vector<std::pair<GeneralRule, std::size_t>> skipped_;  ///< With the group's index.
  std::unordered_set<Hash128> seen_, merged_;                 ///< Of all groups.
  std::unordered_set<std::string> kept_;
  // Per thread.
  std::vector<std::unique_ptr<Verifier>> verifiers_;
  std::unique_ptr<Journal> journal_;
  std::array<std::vector<std::unique_ptr<InstanceComparer>>, 2> comparers_;  ///< Of ordered groups the second.
  std::vector<FormFinder> finders_;
};

}  // namespace

Expected<Generation> generate(const Profile& profile, const OperatorRegistry& registry,
                              const GeneratorOptions& options) {
  return Run(profile, registry, options).run();
}

std::string rule_file(const Generation& generation, const Profile& profile, const GeneratorOptions& options,
                      const std::string& command, const OperatorCatalog& catalog) {
  std::string text = "# Generated; do not edit.\n# command: " + command + "\n";
  text += fmt::format("# profile {}, up to {} operators, seed {}: {} rules{}\n", profile.name, options.max_ops,
                      options.seed, generation.rules.size(), options.verify ? ", all proved" : ", not proved");
  for (const GeneralRule& rule : generation.rules) {
    Substitution stored = rule.rule;
    seal_proofs(stored, catalog);
    text += "\n" + to_string(stored, catalog);
  }
  return text;
}

std::string statistics_text(const Generation& generation) {
  std::string text =
      "group                        ops       terms     classes        hits   evaluated\n"
      "--------------------------------------------------------------------------------\n";
  for (const GroupStatistics& group : generation.groups)
    for (std::size_t level = 0; level < group.levels.size(); ++level)
      text += fmt::format("{:<26}{:>6}{:>12}{:>12}{:>12}{:>12}\n", level == 0 ? group.name : "", level,
                          group.levels[level].terms, group.levels[level].classes, group.levels[level].hits,
                          group.levels[level].evaluated);
  GroupStatistics sum;
  double error = 0;
  for (const GroupStatistics& group : generation.groups) {
    sum.candidates.initial += group.candidates.initial;
    sum.candidates.after_renaming += group.candidates.after_renaming;
    sum.candidates.after_subgraph += group.candidates.after_subgraph;
    sum.distinct += group.distinct;
    sum.skipped += group.skipped;
    sum.not_expressible += group.not_expressible;
    sum.derived += group.derived;
    sum.not_general += group.not_general;
    sum.refuted += group.refuted;
    sum.unknown += group.unknown;
    sum.kept += group.kept;
    error += group.error_bound;
  }
  const std::string bound = fmt::format("probability of a wrong fingerprint match anywhere: at most {:.1e}\n", error);
  if (!generation.complete) return text + "\n" + bound;
  text +=
      "\npruning                          remaining   "
      "reduction\n------------------------------------------------------\n";
  auto row = [&](const char* what, std::uint64_t count) {
    text += fmt::format("{:<30}{:>12}{:>11.1f}x\n", what, count,
                        count == 0 ? 0.0 : static_cast<double>(sum.candidates.initial) / static_cast<double>(count));
  };
  row("initial", sum.candidates.initial);
  row("input tensor renaming", sum.candidates.after_renaming);
  row("common subgraph", sum.candidates.after_subgraph);
  row("equal text", sum.distinct + sum.skipped);
  row("cannot pay", sum.distinct);
  row("not derived from smaller rules", sum.distinct - sum.derived);
  row("general and proved", sum.kept);
  text += fmt::format("\n{} not expressible, {} not general, {} refuted, {} unknown\n", sum.not_expressible,
                      sum.not_general, sum.refuted, sum.unknown);
  text += fmt::format("float test at inputs in [-1, 1]: {} of {} rules differ by more than {:.0e}\n",
                      generation.outliers.size(), generation.rules.size(), float_threshold);
  for (const FloatOutlier& outlier : generation.outliers) {
    const Substitution& rule = generation.rules[outlier.rule].rule;
    text += fmt::format("  {:<40} {:<14} {:.1e}\n", rule.name,
                        rule.numeric_class ? to_string(*rule.numeric_class) : "not proved", outlier.difference);
  }
  return text + bound;
}

std::string statistics_json(const Generation& generation, const Profile& profile, const GeneratorOptions& options) {
  std::string text =
      fmt::format("{{\n  \"profile\": \"{}\", \"max_ops\": {}, \"seed\": {}, \"verified\": {}, \"rules\": {},\n",
                  profile.name, options.max_ops, options.seed, options.verify, generation.rules.size());
  text += "  \"groups\": [";
  for (std::size_t i = 0; i < generation.groups.size(); ++i) {
    const GroupStatistics& group = generation.groups[i];
    text += fmt::format("{}\n    {{\"name\": \"{}\", \"worlds\": {}, \"points\": {}, \"levels\": [", i == 0 ? "" : ",",
                        group.name, group.worlds, group.points);
    for (std::size_t level = 0; level < group.levels.size(); ++level)
      text += fmt::format("{}{{\"ops\": {}, \"terms\": {}, \"classes\": {}, \"hits\": {}, \"evaluated\": {}}}",
                          level == 0 ? "" : ", ", level, group.levels[level].terms, group.levels[level].classes,
                          group.levels[level].hits, group.levels[level].evaluated);
    text += fmt::format(
        "],\n     \"initial\": {}, \"joint\": {}, \"after_renaming\": {}, \"after_common_subgraph\": {}, \"skipped\": "
        "{}, "
        "\"distinct\": {}, "
        "\"not_expressible\": {}, \"derived\": {}, \"not_general\": {}, \"refuted\": {}, \"unknown\": {}, \"kept\": "
        "{}, "
        "\"error_bound\": {:.3e}}}",
        group.candidates.initial, group.candidates.joint, group.candidates.after_renaming,
        group.candidates.after_subgraph, group.skipped, group.distinct, group.not_expressible, group.derived,
        group.not_general, group.refuted, group.unknown, group.kept, group.error_bound);
  }
  text += "\n  ],\n  \"float_outliers\": [";
  for (std::size_t i = 0; i < generation.outliers.size(); ++i) {
    const Substitution& rule = generation.rules[generation.outliers[i].rule].rule;
    const double difference = generation.outliers[i].difference;
    text += fmt::format("{}\n    {{\"rule\": \"{}\", \"class\": {}, \"difference\": {}}}", i == 0 ? "" : ",", rule.name,
                        rule.numeric_class ? fmt::format("\"{}\"", to_string(*rule.numeric_class)) : "null",
                        std::isfinite(difference) ? fmt::format("{:.3e}", difference) : "null");
  }
  text += generation.outliers.empty() ? "]\n}\n" : "\n  ]\n}\n";
  return text;
}

}  // namespace taso
