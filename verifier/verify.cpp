#include "verifier/verify.h"

#include <algorithm>
#include <utility>

#include "verifier/bounded.h"
#include "verifier/magnitude.h"
#include "verifier/numeric_class.h"
#include "verifier/rule_conditions.h"
#include "verifier/theory.h"
#include "verifier/unbounded/domains.h"
#include "verifier/unbounded/prove.h"

namespace taso {

const char* to_string(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::proved:
      return "proved";
    case VerdictKind::refuted:
      return "refuted";
    case VerdictKind::unknown:
      return "unknown";
  }
  return "?";
}

namespace {

// Lowered operators that a verifier remembers from rule to rule.
constexpr std::size_t max_cached = 40'000;
// Assignments of shapes that are all tried for a rule that is proved for all sizes.
constexpr std::size_t confirming_candidates = 400;
// Instances of such a rule whose canonical forms are compared.
constexpr std::size_t confirming_canonical = 12;

std::vector<std::string> texts(const std::vector<Condition>& conditions, const Substitution& rule) {
  std::vector<std::string> result;
  for (const Condition& condition : conditions) result.push_back(to_string(condition, rule));
  return result;
}

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

// Why no number is left for some attribute variable under a rule's conditions and those that its proof adds; else
// empty.
std::string contradiction(const Substitution& rule, const std::vector<Condition>& added) {
  Substitution stored = rule;
  stored.conditions.insert(stored.conditions.end(), added.begin(), added.end());
  for (const std::string& name : rule.attribute_variables)
    if (unbounded::declared_sign_of_attribute(stored, name) == unbounded::SignSet{false, false, false})
      return "vacuous: the target is defined under conditions only that leave no value for " + name;
  return "";
}

// A proof is of real numbers.
constexpr const char* rounded_away =
    "the two sides are equal over the real numbers, but what the rule computes from real attributes is rounded, and "
    "they "
    "differ at a concrete instance";

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

Verifier Verifier::sibling() const {
  return Verifier(std::make_unique<State>(state_->registry, state_->axioms, state_->options, state_->shared));
}

Verifier Verifier::sibling(std::vector<Substitution> axioms) const {
  return Verifier(std::make_unique<State>(state_->registry, std::move(axioms), state_->options, state_->shared));
}

Verdict Verifier::verify(const Substitution& rule, bool brief) {
  const VerifierOptions& options = state_->options;
  Verdict verdict;
  if (rule.source.outputs.empty() || rule.source.outputs.size() != rule.target.outputs.size()) {
    verdict.reason = "the two sides have different numbers of outputs";
    return verdict;
  }
  auto add_implicit = [&](const std::string& condition) {
    if (std::find(verdict.implicit.begin(), verdict.implicit.end(), condition) == verdict.implicit.end())
      verdict.implicit.push_back(condition);
  };
  std::string unbounded_reason;
  bool divides_more = false;
  UnboundedProver unbounded(state_->registry, rule);
  auto note_unbounded = [&](const UnboundedOutcome& outcome) {
    verdict.by_unbounded = outcome.proved;
    if (outcome.proved) {
      verdict.max_rank = outcome.max_rank;
      verdict.added = outcome.added;
      for (const std::string& condition : outcome.conditions) add_implicit(condition);
      if (outcome.divided) add_implicit("divisors are not zero");
      return;
    }
    unbounded_reason = outcome.reason;
    verdict.needs = outcome.inferred;
    verdict.needs_text = texts(outcome.inferred, rule);
  };
  // Questions to Z3 are for what no instance refutes.
  auto go_on_with_solver = [&] {
    if (!options.unbounded || verdict.by_unbounded) return;
    (void)unbounded.prove_with_solver();
    note_unbounded(options.infer ? unbounded.infer() : unbounded.prove());
  };
  if (options.unbounded) note_unbounded(unbounded.prove());
  if (!options.bounded) go_on_with_solver();
  if (options.bounded) {
    InstanceOptions instances{.bound = options.bound,
                              .seed = options.seed,
                              .max_instances = options.max_instances,
                              .max_work = options.max_work,
                              .search_both_ways = !verdict.by_unbounded,
                              .rare = options.rare};
    if (verdict.by_unbounded && !options.full) {
      instances.max_instances = std::min(options.max_instances, options.confirming_instances);
      instances.max_candidates = confirming_candidates;
      instances.max_canonical = confirming_canonical;
      instances.search = instances.rare = false;
    } else if (brief) {
      instances.search_rounds = 1;
      instances.max_instances = std::min(options.max_instances, options.confirming_instances);
      instances.rare = false;
    }
    const BoundedOutcome outcome = validate_bounded(state_->registry, rule, instances, state_->shared->cache);
    verdict.instances = outcome.instances;
    verdict.complete = outcome.complete;
    verdict.ill_typed_target = outcome.ill_typed_target;
    const bool differs = outcome.kind == BoundedOutcome::Kind::differs;
    if (!differs || outcome.counterexample->of_types()) go_on_with_solver();
    // A proof for all sizes speaks of instances at which the types agree: it found one.
    const bool elsewhere = differs && verdict.by_unbounded && outcome.counterexample->of_types();
    if (differs && verdict.by_unbounded && !elsewhere && computes_attributes(state_->registry, rule)) {
      // The proof is of real numbers, and what a match computes from attributes are floats.
      verdict.by_unbounded = false;
      verdict.kind = VerdictKind::refuted;
      verdict.counterexample = outcome.counterexample;
      verdict.reason = rounded_away;
      return verdict;
    }
    if (differs && verdict.by_unbounded && !elsewhere) {
      // Two of our own proofs contradict each other: neither is believed.
      verdict.by_unbounded = false;
      verdict.reason = "internal error: proved for all sizes, and yet the two sides differ at an instance";
      return verdict;
    }
    if (differs && !elsewhere) {
      if (options.unbounded && options.infer) {
        const Instance difference{outcome.counterexample->variables, outcome.counterexample->attributes};
        note_unbounded(unbounded.infer(outcome.counterexample->of_types() ? nullptr : &difference));
      }
      verdict.kind = VerdictKind::refuted;
      verdict.counterexample = outcome.counterexample;
      verdict.reason = "the two sides differ at a concrete instance";
      return verdict;
    }
    if (verdict.by_unbounded)
      for (const TypedInstance& typed : outcome.typed) {
        if (!unbounded.misses(typed.instance)) continue;
        verdict.by_unbounded = false;
        verdict.reason = readings_differ + to_string(rule, typed.instance);
        return verdict;
      }
    divides_more = outcome.divides_more && !rule.is_axiom;
    if (outcome.kind == BoundedOutcome::Kind::agrees) {
      verdict.by_bounded = true;
      verdict.numeric_class = derive_numeric_class(outcome.typed);
      if (computes_attributes(state_->registry, rule)) verdict.numeric_class = NumericClass::distribution;
      if (*verdict.numeric_class != NumericClass::exact)
        if (const std::optional<Growth> growth = find_growth(outcome.typed)) verdict.may_overflow = growth->op;
      if (outcome.ill_typed_target > 0) add_implicit(well_typed_target);
      if (outcome.divided) add_implicit("divisors are not zero");
      if (outcome.undefined) add_implicit("no element of the source is infinite or undefined");
    } else {
      verdict.reason = elsewhere ? "the outputs have the same types at no examined instance" : outcome.reason;
    }
  }
  if (options.axioms && !rule.is_axiom && (verdict.by_unbounded ? options.axioms_always : !brief)) {
    const Entailment entailment = state_->theory().entails(rule, {.brief = verdict.by_unbounded && !options.full});
    verdict.by_axioms = entailment.proved;
    if (!entailment.proved) verdict.reason += (verdict.reason.empty() ? "" : "; ") + entailment.reason;
  }
  if (!unbounded_reason.empty())
    verdict.reason += (verdict.reason.empty() ? "" : "; ") + ("not proved for all sizes: " + unbounded_reason);
  if (verdict.by_unbounded) verdict.proofs.emplace_back("unbounded");
  if (verdict.by_axioms) verdict.proofs.emplace_back("axioms");
  if (verdict.by_bounded) verdict.proofs.push_back("bounded " + std::to_string(options.bound));
  // What follows from axioms rests on instances, and these are of small ranks; axioms themselves are proved up to some
  // rank only.
  const bool by_axioms_alone = !verdict.by_unbounded && verdict.by_axioms && verdict.by_bounded;
  if (!verdict.by_unbounded) verdict.added = rank_limits(state_->registry, rule, max_instance_rank);
  const std::vector<Condition> finite = finiteness(state_->registry, rule);
  verdict.added.insert(verdict.added.end(), finite.begin(), finite.end());
  const std::string undefined = by_axioms_alone ? undefined_target(rule, divides_more, verdict.added) : "";
  verdict.conditions = texts(rule.conditions, rule);
  for (std::string& condition : texts(verdict.added, rule)) verdict.conditions.push_back(std::move(condition));
  std::string impossible = contradiction(rule, verdict.added);
  if (const std::optional<double> number = number_beyond_floats(rule))
    impossible = "the target has the number " + to_string(AttributeValue(*number)) + ", which no 32-bit float can hold";
  if (!impossible.empty()) {
    verdict.reason = impossible;
  } else if (!undefined.empty()) {
    verdict.reason = undefined + (unbounded_reason.empty() ? "" : "; not proved for all sizes: " + unbounded_reason);
  } else if (verdict.by_unbounded || by_axioms_alone) {
    verdict.kind = VerdictKind::proved;
    verdict.reason.clear();
    // Sides that are equal by laws of functions only, or up to the rounding of a constant, are computed differently.
    if ((options.bounded && !verdict.numeric_class) || rounds_constants(rule, state_->registry))
      verdict.numeric_class = NumericClass::distribution;
  }
  if (options.bounded && options.landmarks && (verdict.kind == VerdictKind::proved || !brief))
    compare_at_landmarks(rule, unbounded, verdict);
  return verdict;
}

// Axioms speak of where both sides are defined, and tell nothing of where the target is.
std::string Verifier::undefined_target(const Substitution& rule, bool divides_more, std::vector<Condition>& added) {
  if (rule.is_axiom || (!divides_more && always_defined(state_->registry, rule.target))) return "";
  UnboundedOptions small;
  small.max_rank = small.least_rank = max_instance_rank;
  const UnboundedOutcome outcome = prove_target_defined(state_->registry, rule, small);
  if (!outcome.proved)
    return "the target divides, takes a maximum, reads at an index that a tensor holds or calls a function that is not "
           "defined everywhere, and nothing tells that it is defined wherever the source is (" +
           outcome.reason + ")";
  for (const Condition& condition : outcome.added)
    if (std::find(added.begin(), added.end(), condition) == added.end()) added.push_back(condition);
  return "";
}

// Small instances do not meet the numbers that a rule names.
void Verifier::compare_at_landmarks(const Substitution& rule, const UnboundedProver& unbounded, Verdict& verdict) {
  Substitution stored = rule;  // what is proved has more conditions
  if (verdict.kind == VerdictKind::proved)
    stored.conditions.insert(stored.conditions.end(), verdict.added.begin(), verdict.added.end());
  LandmarkOutcome outcome =
      examine_landmarks(state_->registry, stored, {.seed = state_->options.seed}, state_->shared->cache);
  verdict.landmark_instances = outcome.instances.size();
  const auto missed = std::find_if(outcome.instances.begin(), outcome.instances.end(), [&](const Instance& instance) {
    return verdict.by_unbounded && unbounded.misses(instance);
  });
  if (!outcome.counterexample && missed == outcome.instances.end()) return;
  verdict.by_axioms = verdict.by_bounded = false;
  verdict.proofs.clear();
  if (verdict.by_unbounded && outcome.counterexample && computes_attributes(state_->registry, rule)) {
    verdict.by_unbounded = false;
    verdict.kind = VerdictKind::refuted;
    verdict.counterexample = std::move(outcome.counterexample);
    verdict.reason = rounded_away;
  } else if (verdict.by_unbounded) {
    // Two of our own proofs contradict each other: neither is believed.
    verdict.kind = VerdictKind::unknown;
    verdict.by_unbounded = false;
    verdict.reason = outcome.counterexample
                         ? "internal error: proved for all sizes, and yet the two sides differ at " + outcome.where
                         : readings_differ + to_string(rule, *missed);
  } else {
    verdict.kind = VerdictKind::refuted;
    verdict.counterexample = std::move(outcome.counterexample);
    verdict.reason = "the two sides differ at a concrete instance";
  }
}

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
