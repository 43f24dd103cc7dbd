/// Bounded validation at full breadth: every instance of a statement within a domain (verifier/candidates.h).
///
/// One instance of one statement is one obligation. Each is decided at a random point of GF(2^61-1) with scalar
/// functions and extrema as random oracles: if the sides differ as functions they agree there with probability below
/// d * 2^-61 (d the degree; Schwartz-Zippel), whatever the instance. Where the points differ or do not exist (an
/// identity that needs a fact about a function, a result without a value) canonical polynomials decide. A seeded sample
/// of the others, and the first ones of every statement, is decided by canonical polynomials as well, and a
/// smaller one by Z3 in real arithmetic: all must agree.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "verifier/bounded.h"
#include "verifier/enumerate.h"
#include "verifier/verify.h"

namespace taso {

struct ExhaustiveOptions {
  Domain domain;
  std::uint64_t seed = 1;
  std::size_t max_obligations = 40'000;  ///< Of one statement, about; of more a random part is examined. 0: all.
  std::size_t first_canonical = 32;      ///< So many instances of every statement, the smallest, in both ways.
  std::size_t canonical_every = 1'000;   ///< And one of so many of the others (0: none).
  std::size_t smt_every = 20'000;        ///< One of so many also by Z3 (0: none), where it is small.
  std::size_t max_smt_work = 600;        ///< Scalar operations of an instance that Z3 is asked.
};

struct ExhaustiveOutcome {
  BoundedOutcome::Kind kind = BoundedOutcome::Kind::undecided;
  std::string reason;                            ///< If undecided; or why Z3 disagrees.
  std::optional<Counterexample> counterexample;  ///< If refuted.
  std::size_t obligations = 0;
  std::size_t by_field = 0;        ///< Decided at the points of the field.
  std::size_t by_polynomials = 0;  ///< Decided by canonical polynomials alone.
  std::size_t cross_checked = 0;   ///< Decided at the points, and again by canonical polynomials.
  std::size_t smt_checked = 0;     ///< Decided again by Z3.
  std::size_t smt_unknown = 0;     ///< Z3 gave no answer.
  bool complete = false;           ///< These are all instances of the domain.
  double estimate = 0;             ///< How many there are, roughly, if not.
};

/// Examines all instances, stopping at the first at which the two sides differ.
[[nodiscard]] ExhaustiveOutcome validate_exhaustively(const OperatorRegistry& registry, const Substitution& statement,
                                                      LoweredCache& cache, const ExhaustiveOptions& options);

}  // namespace taso
