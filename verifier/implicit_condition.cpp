#include "verifier/implicit_condition.h"

namespace taso {

std::string to_string(const ImplicitCondition& condition) {
  switch (condition.kind) {
    case ImplicitCondition::Kind::of_target:
      return condition.what;
    case ImplicitCondition::Kind::well_typed_target:
      return "the target is well-typed, with results of the source's shapes";
    case ImplicitCondition::Kind::nonzero_divisors:
      return "divisors are not zero";
    case ImplicitCondition::Kind::defined_source:
      return "no element of the source is infinite or undefined";
  }
  return "?";
}

}  // namespace taso
