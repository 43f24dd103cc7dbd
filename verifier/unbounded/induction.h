/// What the states of the two sides' recurrences have to do with one another, proved by induction over the steps.
///
/// A *relation* says that a state of one side is, at every step and everywhere, a form over states of the other side at
/// the same step: h[t, b, j] is g[t, b, j], or g1[t, b, j] where b < n and g2[t, b - n, j] elsewhere, or the sum of two
/// states. Candidates are read off the forms that are to be equal; what makes them true is the proof alone:
///
///   first step:   the step of the state is the form with the steps of its states in place of them, both at step 0;
///   other steps:  the same at a step t of which nothing is known but 1 <= t < the number of steps, where the relations
///                 are supposed at step t - 1 and nowhere else.
///
/// The relations of all tensors of a recurrence are proved together. The form must read its states inside of them, and
/// their numbers of steps must be equal.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "verifier/unbounded/elaborate.h"
#include "verifier/unbounded/normal_form.h"
#include "verifier/unbounded/states.h"

namespace taso::unbounded {

class Induction {
 public:
  /// The facts are those of the elements that are compared. `steps`: comparisons of summands that are left.
  Induction(const OperatorRegistry& registry, const Typing& typing, const Facts& facts, States& states,
            const SharedValues* shared, std::size_t& steps)
      : registry_(registry), typing_(typing), facts_(facts), states_(states), shared_(shared), steps_(steps) {}

  /// Proves relations between states that two forms read, and puts them to use: afterwards they are written with the
  /// states of one side, as far as relations were found. False if none was.
  bool relate(NormalForm& a, NormalForm& b);

 private:
  /// State `state`, at indices `at`, is `form`.
  struct Relation {
    std::uint32_t state = 0;
    std::vector<SymbolId> at;
    NormalForm form;
  };
  using Relations = std::vector<Relation>;

  [[nodiscard]] std::vector<Relations> candidates(const NormalForm& a, const NormalForm& b);
  /// The relation that what a form is under the guards of a summand, one read of a state at indices that are variables,
  /// it is everywhere.
  [[nodiscard]] std::optional<Relation> as_relation(const Term& read, const NormalForm& form);
  /// The relation that a state is the sum of those in which the summands of another form differ from that of a form.
  [[nodiscard]] std::optional<Relation> as_sum(const NormalForm& one, const NormalForm& sum);
  [[nodiscard]] std::optional<Relation> as_pair(std::uint32_t state, std::uint32_t other);
  /// The same for the other tensors of the recurrence.
  [[nodiscard]] Relations with_others(const Relation& relation);
  [[nodiscard]] std::vector<std::uint32_t> carried(std::uint32_t state);

  [[nodiscard]] bool prove(const Relations& relations);
  [[nodiscard]] bool prove_step(const Relations& relations, const Relation& relation, bool first);
  /// Whether a form reads states inside of them only, at a step, and of recurrences of so many steps.
  [[nodiscard]] bool inside(const NormalForm& form, Facts& facts, std::vector<Atom>& context, const Polynomial& step,
                            const Polynomial& count);
  /// New variables for the indices of a state.
  [[nodiscard]] std::vector<SymbolId> variables(std::uint32_t state);

  const OperatorRegistry& registry_;
  const Typing& typing_;
  const Facts& facts_;
  States& states_;
  const SharedValues* shared_;
  std::size_t& steps_;
  Relations proved_;
};

}  // namespace taso::unbounded
