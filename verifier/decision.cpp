#include "verifier/decision.h"

namespace taso {
namespace {

Decision settled(VerdictKind kind, Reason reason) { return {kind, {reason}, true}; }

// Whether the proof for all sizes was sought in vain.
bool failed(Evidence::Unbounded unbounded) {
  return unbounded == Evidence::Unbounded::not_proved || unbounded == Evidence::Unbounded::of_nothing;
}

}  // namespace

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

bool asks_for_domain(const Evidence& evidence) {
  return evidence.asks_of_values && evidence.axioms == Evidence::Axioms::derived &&
         evidence.unbounded != Evidence::Unbounded::proved &&
         (evidence.instances == Evidence::Instances::agree || evidence.instances == Evidence::Instances::not_examined);
}

Decision decide(const Evidence& e) {
  const bool unbounded = e.unbounded == Evidence::Unbounded::proved;
  if (!e.same_outputs) return settled(VerdictKind::unknown, Reason::different_outputs);

  // Numbers come before proofs. Axioms may be false, so that a difference refutes what follows from them; the proof for
  // all sizes rests on nothing but definitions, so that one of the two is an error of ours, unless what the proof takes
  // for real numbers is rounded.
  if (e.instances == Evidence::Instances::numbers_differ || e.landmarks == Evidence::Landmarks::numbers_differ) {
    if (!unbounded) return settled(VerdictKind::refuted, Reason::differ);
    return e.rounds_attributes ? settled(VerdictKind::refuted, Reason::differ_by_rounding)
                               : settled(VerdictKind::unknown, Reason::contradiction);
  }
  // The proof for all sizes speaks of instances at which the types agree, and has found one.
  if (e.instances == Evidence::Instances::types_differ && !unbounded)
    return settled(VerdictKind::refuted, Reason::differ);
  if (unbounded && e.uncovered) return settled(VerdictKind::unknown, Reason::uncovered);

  if (e.beyond_floats) return {VerdictKind::unknown, {Reason::beyond_floats}, false};
  if (e.contradictory) return {VerdictKind::unknown, {Reason::contradictory}, false};
  // Axioms speak of where both sides are defined, and tell nothing of where the target is.
  if (e.definedness == Evidence::Definedness::not_shown ||
      (asks_for_domain(e) && e.definedness != Evidence::Definedness::shown)) {
    Decision result{VerdictKind::unknown, {Reason::target_undefined}, false};
    if (failed(e.unbounded)) result.reasons.push_back(Reason::not_unbounded);
    return result;
  }
  const bool by_axioms = e.axioms == Evidence::Axioms::derived && e.instances == Evidence::Instances::agree;
  if (unbounded || by_axioms) return {VerdictKind::proved, {}, false};

  Decision result;
  if (e.instances != Evidence::Instances::not_examined && e.instances != Evidence::Instances::agree)
    result.reasons.push_back(Reason::instances_undecided);
  if (e.axioms == Evidence::Axioms::not_derived) result.reasons.push_back(Reason::not_derived);
  if (failed(e.unbounded)) result.reasons.push_back(Reason::not_unbounded);
  if (result.reasons.empty()) result.reasons.push_back(Reason::too_little_asked);
  return result;
}

}  // namespace taso
