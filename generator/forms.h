/// From a candidate at the profile's attribute values to a rule for all of them.
///
/// Attributes that the profile gives by symbols become attribute variables (in the source) and expressions over them
/// and over dim() (in the target): equal values in every world are taken to be one thing. Attributes that
/// are literals in the profile (axis=-3, dilations=[1,1]) become variables too where the rule survives it. A
/// rule is tested at random shapes and attributes, also such as the profile does not declare (other ranks, grouped
/// channels, extents of 1); where it fails, the weakest condition out of a few kinds is added that excludes all
/// failures: dim(x, i) == dim(y, j), dim(x, i) == 1, rank(x) == r.
///
/// A form of a candidate is a set of literals that become variables. Forms are tested when they are asked for: the one
/// with fewest conditions is wanted first, and an instance at which one form was tested is an instance of every other
/// in which the literals that it changes are open, so that most forms are known to be wrong, or to need a condition,
/// without a test.
///
/// Testing is not proving: the verifier has the last word.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "generator/candidates.h"
#include "generator/compare.h"
#include "generator/conditions.h"
#include "graph/pattern.h"
#include "verifier/verify.h"

namespace taso {

struct FormOptions {
  std::uint64_t seed = 1;
  int attempts = 4000;     ///< Random instances drawn per form of a rule.
  int enough = 150;        ///< Well-typed instances after which testing stops; twice as many if one failed.
  int enough_again = 100;  ///< The same with changed attributes, where other forms of the rule were tested before.
  /// Well-typed instances with one extent multiplied after which the search for groups stops; likewise.
  int enough_grouped = 150;
  std::int64_t max_elements = 3000;
};

/// A rule with the facts that pruning and statistics need.
struct GeneralRule {
  Substitution rule;
  int source_ops = 0, target_ops = 0;
  int source_weight_ops = 0, target_weight_ops = 0;
  std::vector<bool> is_weight;            ///< Per tensor variable: declared as a weight in the profile.
  std::vector<TensorType> example_types;  ///< Of the tensor variables, in the first world.
  std::vector<std::optional<AttributeValue>> example_attributes;
  std::uint32_t opened = 0;  ///< The set of literals that became variables.
};

/// Generalises the candidates of one group. Not thread-safe: one object per thread. What it remembers changes no
/// answer.
class FormFinder {
 public:
  /// The comparer must have been made with the same largest number of elements; it may serve several groups.
  FormFinder(Bank& bank, InstanceComparer& comparer, FormOptions options);

  /// The rule in the profile's own words: all literals kept, no test. Empty if an attribute of the target cannot be
  /// expressed by the source.
  [[nodiscard]] std::optional<GeneralRule> literal_form(const Draft& draft);

  class Forms;

 private:
  struct Form;
  struct Group;
  [[nodiscard]] std::vector<Group> literal_groups(const Draft& draft) const;
  /// The form in which the literals in the set are variables.
  [[nodiscard]] std::optional<Form> make_form(const Draft& draft, const std::vector<Group>& groups,
                                              std::uint32_t general);
  [[nodiscard]] std::optional<AttributeExpression> express(const AttributeExpression& expression, const Form& form,
                                                           const std::vector<std::uint32_t>& near,
                                                           std::size_t bound_variables) const;
  using Values = std::vector<AttributeValue>;
  [[nodiscard]] std::shared_ptr<const Values> values_of(const AttributeExpression& expression, const Form& form) const;
  void remember_values(const AttributeExpression& expression);
  [[nodiscard]] const std::vector<std::optional<TensorType>>& types_of(ClassId id);

  Bank& bank_;
  InstanceComparer& comparer_;
  FormOptions options_;
  AssignmentPool pool_;
  /// Values of the symbols: the worlds, and more at random. Two sizes are one if they are equal in all of these.
  std::vector<Symbols> assignments_;
  /// Per expression of the profile: its values at all assignments; null if it has none at one.
  std::unordered_map<const AttributeExpression*, std::shared_ptr<const Values>> values_;
  std::unordered_map<ClassId, std::vector<std::optional<TensorType>>> types_;  ///< Per assignment.
};

/// The forms of one candidate, tested as they are asked for.
class FormFinder::Forms {
 public:
  Forms(FormFinder& finder, const Draft& draft);
  ~Forms();
  Forms(const Forms&) = delete;
  Forms& operator=(const Forms&) = delete;
  /// The next form that survives testing: fewest conditions first, then most general. Empty if there is none left.
  [[nodiscard]] std::optional<GeneralRule> next();
  /// A form with more conditions, which exclude these instances at which it is known to fail; empty if there are none.
  [[nodiscard]] std::optional<GeneralRule> refine(const GeneralRule& form, const std::vector<Counterexample>& failures);
  /// Conditions that held at every instance at which the form applied: they cost no generality as far as tests tell,
  /// and may be what a proof lacks.
  [[nodiscard]] std::vector<Condition> implied(const GeneralRule& form);

 private:
  struct Entry;
  struct Known;
  bool test(Entry& entry);
  [[nodiscard]] const std::vector<Condition>& atoms(Entry& entry);
  [[nodiscard]] Sample sample_of(const Known& known, const Form& form) const;
  void remember(const TestedSample& tested, const Form& form);
  [[nodiscard]] Entry& entry_of(const GeneralRule& form);

  FormFinder& finder_;
  const Draft& draft_;
  std::vector<Group> groups_;
  std::vector<Entry> entries_;  ///< Most general first.
  std::vector<Known> known_;
  bool sampled_ = false;  ///< Some form was tested to the end.
};

}  // namespace taso
