#include "verifier/exhaustive.h"

#include "verifier/solver_ring.h"

namespace taso {

ExhaustiveOutcome validate_exhaustively(const OperatorRegistry& registry, const Substitution& statement,
                                        LoweredCache& cache, const ExhaustiveOptions& options) {
  ExhaustiveOutcome outcome;
  Enumeration enumeration(registry, statement, cache,
                          {.domain = options.domain,
                           .seed = options.seed,
                           .max_instances = 2 * options.max_obligations,
                           .max_steps = options.max_obligations == 0 ? 0 : 400'000 + 8 * options.max_obligations,
                           .thin_above = options.max_obligations,
                           .families = true});
  Random sample = random_for(registry, statement, options.seed, "sample");
  bool defined = false;
  enumeration.run([&] {
    ++outcome.obligations;
    const Enumeration::Field field = enumeration.field_agreement();
    const bool early = outcome.obligations <= options.first_canonical || (!defined && outcome.obligations < 2'000);
    const bool again = options.canonical_every > 0 && sample.below(options.canonical_every) == 0;
    const bool smt = options.smt_every > 0 && sample.below(options.smt_every) == 0;
    const bool agrees = field == Enumeration::Field::equal;
    (agrees ? outcome.by_field : outcome.by_polynomials) += 1;
    if (agrees && !early && !again && !smt) return true;
    TypeCheck check = check_types(registry, statement, enumeration.instance());
    if (!check.typed) {
      outcome.reason = "type inference and enumeration disagree";
      return false;
    }
    if (!agrees || early || again) {
      InstanceOutcome examined = examine_instance(registry, statement, *check.typed, options.seed);
      defined = defined || examined.defined;
      if (examined.kind != BoundedOutcome::Kind::agrees) {
        outcome.kind = examined.kind;
        outcome.reason = std::move(examined.reason);
        outcome.counterexample = std::move(examined.counterexample);
        return false;
      }
      if (agrees) ++outcome.cross_checked;
    }
    if (smt && check.typed->source.work() + check.typed->target.work() <= static_cast<double>(options.max_smt_work)) {
      switch (smt_agreement(*check.typed, options.seed)) {
        case smt::Answer::unsatisfiable:
          ++outcome.smt_checked;
          break;
        case smt::Answer::unknown:
          ++outcome.smt_unknown;
          break;
        case smt::Answer::satisfiable:
          outcome.reason = "Z3 finds numbers at which the sides differ, canonical forms are equal";
          return false;
      }
    }
    return true;
  });
  outcome.complete = enumeration.complete();
  outcome.estimate = enumeration.estimate();
  if (outcome.counterexample || !outcome.reason.empty()) return outcome;
  if (outcome.obligations == 0)
    outcome.reason = "vacuous: no well-typed instance within the domain";
  else if (!defined)
    outcome.reason = "vacuous: the source has no defined element at any instance";
  else
    outcome.kind = BoundedOutcome::Kind::agrees;
  return outcome;
}

}  // namespace taso
