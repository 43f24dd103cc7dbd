#include "verifier/verify.h"

#include <algorithm>
#include <utility>

#include "verifier/bounded.h"
#include "verifier/magnitude.h"
#include "verifier/numeric_class.h"
#include "verifier/rule_conditions.h"
#include "verifier/theory/theory.h"
#include "verifier/unbounded/domains.h"
#include "verifier/unbounded/prove.h"

namespace taso {

namespace {

// Lowered operators that a verifier remembers from rule to rule.
constexpr std::size_t max_cached = 40'000;
// Assignments of shapes that are all tried for a rule that is proved for all sizes.
constexpr std::size_t confirming_candidates = 400;
// Instances of such a rule whose canonical forms are compared.
constexpr std::size_t confirming_canonical = 12;
// Scalar operations of both sides of an instance of a rule that has no smaller one.
constexpr double large_work = 4e6;

// Whether a number that the source asks for of a constant is none of the 32-bit floats: the constant is the nearest
// one, so that the sides differ by a rounding.
bool rounds_constants(const Substitution& rule, const OperatorCatalog& catalog) {
  return std::any_of(rule.source.nodes.begin(), rule.source.nodes.end(), [&](const PatternNode& node) {
    const OperatorSignature* const signature = catalog.signature(node.op);
    return signature != nullptr && !signature->fill_value.empty() &&
           std::any_of(node.attributes.begin(), node.attributes.end(), [&](const auto& attribute) {
             const auto* number = std::get_if<double>(&attribute.second.literal);
             return attribute.first == signature->fill_value && number != nullptr &&
                    attribute.second.kind == AttributeExpression::Kind::literal &&
                    static_cast<double>(static_cast<float>(*number)) != *number;
           });
  });
}

// An operator of a rule that computes with integers or truth values: what provers know is of reals.
const PatternNode* find_beyond_reals(const Substitution& rule, const OperatorRegistry& registry) {
  for (const Pattern* side : {&rule.source, &rule.target})
    for (const PatternNode& node : side->nodes)
      if (const OperatorDefinition* definition = registry.find(node.op);
          definition != nullptr && !definition->over_reals)
        return &node;
  return nullptr;
}

// An attribute variable for which a rule's conditions and those that its proof adds leave no number.
std::optional<std::string> attribute_without_value(const Substitution& rule, const std::vector<Condition>& added) {
  Substitution stored = rule;
  stored.conditions.insert(stored.conditions.end(), added.begin(), added.end());
  for (const std::string& name : rule.attribute_variables)
    if (unbounded::declared_sign_of_attribute(stored, name) == unbounded::SignSet{false, false, false}) return name;
  return std::nullopt;
}

}  // namespace

struct Verifier::State {
  // What verifiers of several threads share: it is the same for all, and costly to find.
  struct Shared {
    explicit Shared(const OperatorRegistry& registry)
        : cache(registry, max_cached), facts(std::make_shared<ShapeFactsTable>(registry)) {}
    LoweredCache cache;
    std::shared_ptr<ShapeFactsTable> facts;
  };

  State(const OperatorRegistry& the_registry, std::vector<Substitution> the_axioms, VerifierOptions the_options,
        std::shared_ptr<Shared> the_shared)
      : registry(the_registry), axioms(std::move(the_axioms)), options(the_options), shared(std::move(the_shared)) {}

  // The theory is built when it is first asked for: bounded validation alone does not need it.
  Theory& theory() {
    if (theory_ == nullptr) theory_ = std::make_unique<Theory>(registry, axioms, options.rlimit, shared->facts);
    return *theory_;
  }

  const OperatorRegistry& registry;
  std::vector<Substitution> axioms;
  VerifierOptions options;
  std::shared_ptr<Shared> shared;

 private:
  std::unique_ptr<Theory> theory_;
};

Verifier::Verifier(const OperatorRegistry& registry, std::vector<Substitution> axioms, VerifierOptions options)
    : state_(std::make_unique<State>(registry, std::move(axioms), options, std::make_shared<State::Shared>(registry))) {
}
Verifier::Verifier(std::unique_ptr<State> state) : state_(std::move(state)) {}
Verifier::~Verifier() = default;
Verifier::Verifier(Verifier&&) noexcept = default;
Verifier& Verifier::operator=(Verifier&&) noexcept = default;

Verifier Verifier::sharing_copy() const {
  return Verifier(std::make_unique<State>(state_->registry, state_->axioms, state_->options, state_->shared));
}

Verifier Verifier::sharing_copy(std::vector<Substitution> axioms) const {
  return Verifier(std::make_unique<State>(state_->registry, std::move(axioms), state_->options, state_->shared));
}

// Asks the provers about one rule. What they say becomes evidence, with the words for a person beside it. Nothing here
// but decide() concludes anything from it, also where what is asked next depends on what is decided so far.
class Verifier::Examination {
 public:
  Examination(State& state, const Substitution& rule, bool brief)
      : state_(state),
        options_(state.options),
        rule_(rule),
        brief_(brief),
        unbounded_(state.registry, rule, unbounded_options()) {}

  Verdict run() {
    evidence_.same_outputs =
        !rule_.source.outputs.empty() && rule_.source.outputs.size() == rule_.target.outputs.size();
    if (!evidence_.same_outputs) return verdict();
    // Nothing is asked: evidence of nothing proves nothing.
    if (const PatternNode* node = find_beyond_reals(rule_, state_.registry)) {
      evidence_.unbounded = Evidence::Unbounded::not_proved;
      unbounded_reason_ = node->op + " computes with integers or truth values, and proofs are of reals";
      return verdict();
    }
    evidence_.rounds_attributes = computes_attributes(state_.registry, rule_);
    // An axiom speaks of where both sides are defined.
    evidence_.asks_of_values = !rule_.is_axiom && !always_defined(state_.registry, rule_.target);
    if (options_.unbounded) note(unbounded_.prove());
    if (options_.bounded)
      examine_instances();
    else
      ask_solver();
    if (!decide(evidence_).settled) {
      ask_axioms();
      find_conditions();
      const bool proved = decide(evidence_).kind == VerdictKind::proved;
      // Sides that are equal by laws of functions only, or up to the rounding of a constant, are computed differently.
      if (proved && ((options_.bounded && !verdict_.numeric_class) || rounds_constants(rule_, state_.registry)))
        verdict_.numeric_class = NumericClass::distribution;
      if (options_.bounded && options_.landmarks && (proved || !brief_)) compare_at_landmarks(proved);
    }
    return verdict();
  }

 private:
  // What a few instances refute is not worth a long proof.
  UnboundedOptions unbounded_options() {
    UnboundedOptions options;
    options.check_instances = !options_.bounded;
    if (options_.bounded)
      options.refuted = [this] {
        if (!first_round_)
          first_round_ = search_first_round(state_.registry, rule_, instance_options(), state_.shared->cache);
        return first_round_->refuted;
      };
    return options;
  }

  [[nodiscard]] bool unbounded() const { return evidence_.unbounded == Evidence::Unbounded::proved; }

  void add_implicit(const ImplicitCondition& condition) {
    if (std::find(verdict_.implicit.begin(), verdict_.implicit.end(), condition) == verdict_.implicit.end())
      verdict_.implicit.push_back(condition);
  }

  void note(const UnboundedOutcome& outcome) {
    evidence_.unbounded = !outcome.proved      ? Evidence::Unbounded::not_proved
                          : outcome.cases == 0 ? Evidence::Unbounded::of_nothing
                                               : Evidence::Unbounded::proved;
    if (!unbounded()) {
      unbounded_reason_ = outcome.proved ? "vacuous: no element was compared" : outcome.reason;
      verdict_.needs = outcome.inferred;
      return;
    }
    verdict_.max_rank = outcome.max_rank;
    verdict_.added = outcome.added;
    for (const ImplicitCondition& condition : outcome.conditions) add_implicit(condition);
    if (outcome.divided) add_implicit({ImplicitCondition::Kind::nonzero_divisors});
  }

  // Questions to Z3 are for what no instance refutes.
  void ask_solver() {
    if (!options_.unbounded || unbounded()) return;
    (void)unbounded_.prove_with_solver();
    note(options_.infer ? unbounded_.infer() : unbounded_.prove());
  }

  [[nodiscard]] InstanceOptions instance_options() const {
    InstanceOptions instances{.bound = options_.bound,
                              .seed = options_.seed,
                              .max_instances = options_.max_instances,
                              .max_work = options_.max_work,
                              .search_both_ways = !unbounded(),
                              .rare = options_.rare};
    if (unbounded() && !options_.full) {
      instances.max_instances = std::min(options_.max_instances, options_.confirming_instances);
      instances.max_candidates = confirming_candidates;
      instances.max_canonical = confirming_canonical;
      instances.search = instances.rare = false;
    } else if (brief_) {
      instances.search_rounds = 1;
      instances.max_instances = std::min(options_.max_instances, options_.confirming_instances);
      instances.rare = false;
    }
    return instances;
  }

  static Evidence::Instances evidence_of(const BoundedOutcome& outcome) {
    switch (outcome.kind) {
      case BoundedOutcome::Kind::agrees:
        return Evidence::Instances::agree;
      case BoundedOutcome::Kind::differs:
        return outcome.counterexample->of_types() ? Evidence::Instances::types_differ
                                                  : Evidence::Instances::numbers_differ;
      case BoundedOutcome::Kind::forms_differ:
        return Evidence::Instances::forms_differ;
      case BoundedOutcome::Kind::vacuous:
        return Evidence::Instances::none;
      case BoundedOutcome::Kind::undecided:
        break;
    }
    return Evidence::Instances::undecided;
  }

  void examine_instances() {
    const BoundedOutcome outcome =
        validate_bounded(state_.registry, rule_, instance_options(), state_.shared->cache, first_round_);
    verdict_.instances = outcome.instances;
    verdict_.complete = outcome.complete;
    verdict_.ill_typed_target = outcome.ill_typed_target;
    evidence_.instances = evidence_of(outcome);
    instances_reason_ = outcome.reason;
    counterexample_ = outcome.counterexample;
    if (evidence_.instances != Evidence::Instances::numbers_differ) ask_solver();
    if (decide(evidence_).kind == VerdictKind::refuted && !unbounded() && options_.unbounded && options_.infer) {
      const Instance difference{counterexample_->variables, counterexample_->attributes};
      note(unbounded_.infer(counterexample_->of_types() ? nullptr : &difference));
    }
    if (unbounded())
      for (const TypedInstance& typed : outcome.typed)
        if (note_uncovered(typed.instance)) break;
    if (decide(evidence_).settled || outcome.kind != BoundedOutcome::Kind::agrees) return;
    evidence_.asks_of_values = evidence_.asks_of_values || (outcome.divides_more && !rule_.is_axiom);
    verdict_.numeric_class = derive_numeric_class(outcome.typed);
    if (evidence_.rounds_attributes) verdict_.numeric_class = NumericClass::distribution;
    if (*verdict_.numeric_class != NumericClass::exact)
      if (const std::optional<Growth> growth = find_growth(outcome.typed)) verdict_.may_overflow = growth->op;
    if (outcome.ill_typed_target > 0) add_implicit({ImplicitCondition::Kind::well_typed_target});
    if (outcome.divided) add_implicit({ImplicitCondition::Kind::nonzero_divisors});
    if (outcome.undefined) add_implicit({ImplicitCondition::Kind::defined_source});
  }

  // Whether no case of the proof for all sizes speaks of an instance that it should speak of.
  bool note_uncovered(const Instance& instance) {
    if (!unbounded_.misses(instance)) return false;
    evidence_.uncovered = true;
    where_ = to_string(rule_, instance);
    return true;
  }

  void ask_axioms() {
    if (!options_.axioms || rule_.is_axiom || (unbounded() ? !options_.axioms_always : brief_)) return;
    const Entailment entailment = state_.theory().entails(rule_, {.brief = unbounded() && !options_.full});
    evidence_.axioms = entailment.proved ? Evidence::Axioms::derived : Evidence::Axioms::not_derived;
    axioms_reason_ = entailment.reason;
  }

  // What must be a part of the rule, and whether that leaves anything.
  void find_conditions() {
    // What follows from axioms rests on instances, and these are of small ranks; axioms themselves are proved up to
    // some rank only.
    if (!unbounded()) verdict_.added = rank_limits(state_.registry, rule_, max_instance_rank);
    const std::vector<Condition> finite = finiteness(state_.registry, rule_);
    verdict_.added.insert(verdict_.added.end(), finite.begin(), finite.end());
    if (asks_for_domain(evidence_))
      prove_defined(prove_target_defined);
    else if (!unbounded() && !rule_.is_axiom && decide(evidence_).kind == VerdictKind::proved &&
             !always_applicable(state_.registry, rule_))
      prove_defined(prove_target_applicable);
    verdict_.conditions = rule_.conditions;
    verdict_.conditions.insert(verdict_.conditions.end(), verdict_.added.begin(), verdict_.added.end());
    without_value_ = attribute_without_value(rule_, verdict_.added);
    evidence_.contradictory = without_value_.has_value();
    beyond_floats_ = number_beyond_floats(rule_);
    evidence_.beyond_floats = beyond_floats_.has_value();
  }

  template <class Prover>
  void prove_defined(const Prover& prover) {
    UnboundedOptions small;
    small.max_rank = small.least_rank = max_instance_rank;
    const UnboundedOutcome outcome = prover(state_.registry, rule_, small);
    evidence_.definedness = outcome.proved ? Evidence::Definedness::shown : Evidence::Definedness::not_shown;
    definedness_reason_ = outcome.reason;
    if (!outcome.proved) return;
    for (const Condition& condition : outcome.added)
      if (std::find(verdict_.added.begin(), verdict_.added.end(), condition) == verdict_.added.end())
        verdict_.added.push_back(condition);
  }

  // Small instances do not meet the numbers that a rule names.
  void compare_at_landmarks(bool proved) {
    Substitution stored = rule_;  // what is proved has more conditions
    if (proved) stored.conditions = verdict_.conditions;
    LandmarkOptions options{.seed = options_.seed};
    LandmarkOutcome outcome = examine_landmarks(state_.registry, stored, options, state_.shared->cache);
    // A rule that has large instances alone is compared at one of them: no verdict shall rest on one prover.
    if (verdict_.instances == 0 && outcome.instances.empty()) {
      options.samples_per_landmark = 160;
      options.instances_per_landmark = 1;
      options.max_work = options.total_work = large_work;
      options.with_room = true;
      outcome = examine_landmarks(state_.registry, stored, options, state_.shared->cache);
    }
    verdict_.landmark_instances = outcome.instances.size();
    if (unbounded())
      for (const Instance& instance : outcome.instances)
        if (note_uncovered(instance)) break;
    evidence_.landmarks = outcome.counterexample ? Evidence::Landmarks::numbers_differ : Evidence::Landmarks::agree;
    if (!outcome.counterexample) return;
    counterexample_ = std::move(outcome.counterexample);
    where_ = outcome.where;
  }

  [[nodiscard]] std::string text(Reason reason) const {
    switch (reason) {
      case Reason::different_outputs:
        return "the two sides have different numbers of outputs";
      case Reason::differ:
        return "the two sides differ at a concrete instance";
      case Reason::differ_by_rounding:
        // A proof is of real numbers, and what a match computes from attributes are floats.
        return "the two sides are equal over the real numbers, but what the rule computes from real attributes is "
               "rounded, and they differ at a concrete instance";
      case Reason::contradiction:
        return "internal error: proved for all sizes, and yet the two sides differ at " +
               (where_.empty() ? "an instance" : where_);
      case Reason::uncovered:
        return readings_differ + where_;
      case Reason::beyond_floats:
        return "the target has the number " + to_string(AttributeValue(*beyond_floats_)) +
               ", which no 32-bit float can hold";
      case Reason::contradictory:
        return "vacuous: the target is defined under conditions only that leave no value for " + *without_value_;
      case Reason::target_undefined:
        return "the target divides, takes a maximum, reads at an index that a tensor holds or calls a function that "
               "is not defined everywhere, and nothing tells that it is defined wherever the source is (" +
               definedness_reason_ + ")";
      case Reason::instances_undecided:
        return instances_reason_;
      case Reason::not_derived:
        return axioms_reason_;
      case Reason::not_unbounded:
        return unbounded_reason_.empty() ? "" : "not proved for all sizes: " + unbounded_reason_;
      case Reason::too_little_asked:
        return "the proofs that were asked for do not suffice";
    }
    return "";
  }

  // The verdict on all that is known by now, in words.
  Verdict verdict() {
    const Decision decision = decide(evidence_);
    verdict_.kind = decision.kind;
    for (const Reason reason : decision.reasons) {
      const std::string words = text(reason);
      if (!words.empty()) verdict_.reason += (verdict_.reason.empty() ? "" : "; ") + words;
    }
    if (decision.kind == VerdictKind::refuted) verdict_.counterexample = std::move(counterexample_);
    verdict_.by_unbounded = !decision.settled && unbounded();
    verdict_.by_axioms = !decision.settled && evidence_.axioms == Evidence::Axioms::derived;
    verdict_.by_bounded = !decision.settled && evidence_.instances == Evidence::Instances::agree;
    if (verdict_.by_unbounded) verdict_.proofs.emplace_back("unbounded");
    if (verdict_.by_axioms) verdict_.proofs.emplace_back("axioms");
    if (verdict_.by_bounded) verdict_.proofs.push_back("bounded " + std::to_string(options_.bound));
    return std::move(verdict_);
  }

  State& state_;
  const VerifierOptions& options_;
  const Substitution& rule_;
  const bool brief_;
  std::optional<FirstRound> first_round_;
  UnboundedProver unbounded_;
  Evidence evidence_;
  Verdict verdict_;
  // What a person is told of the evidence.
  std::string unbounded_reason_, instances_reason_, axioms_reason_, definedness_reason_;
  std::optional<Counterexample> counterexample_;
  std::string where_;  // the instance that contradicts a proof, if it is not the one of the counterexample
  std::optional<std::string> without_value_;
  std::optional<double> beyond_floats_;
};

Verdict Verifier::verify(const Substitution& rule, bool brief) { return Examination(*state_, rule, brief).run(); }

Substitution stored_form(const Substitution& rule, const Verdict& verdict, const OperatorCatalog& catalog) {
  Substitution stored = rule;  // what is proved has more conditions
  if (verdict.kind == VerdictKind::proved)
    stored.conditions.insert(stored.conditions.end(), verdict.added.begin(), verdict.added.end());
  stored.proofs = verdict.proofs;
  stored.numeric_class = verdict.numeric_class;
  seal_proofs(stored, catalog);
  return stored;
}

bool Verifier::follows_from_axioms(const Substitution& rule, std::string* reason) {
  const Entailment entailment = state_->theory().entails(rule);
  if (reason != nullptr) *reason = entailment.reason;
  return entailment.proved;
}

const std::vector<std::string>& Verifier::theory_problems() { return state_->theory().problems(); }

std::string Verifier::smt2(const Substitution& rule) { return state_->theory().smt2(rule); }

}  // namespace taso
