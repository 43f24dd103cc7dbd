/// From a candidate at the profile's attribute values to a rule for all of them.
///
/// Attributes that the profile gives by symbols become attribute variables (in the source) and expressions over them
/// and over dim() (in the target): equal values in every world are taken to be one thing. Attributes that
/// are literals in the profile (axis=-3, dilations=[1,1]) become variables too where the rule survives it. A
/// rule is tested at random shapes and attributes, also such as the profile does not declare (other ranks, grouped
/// channels, extents of 1); where it fails, the weakest condition out of a few kinds is added that excludes all
/// failures: dim(x, i) == dim(y, j), dim(x, i) == 1, rank(x) == r.
///
/// Testing is not proving: the verifier has the last word.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "generator/candidates.h"
#include "graph/pattern.h"
#include "verifier/verify.h"

namespace taso {

struct GeneralizeOptions {
  std::uint64_t seed = 1;
  int attempts = 4000;  ///< Random instances drawn per form of a rule.
  int enough = 300;     ///< Well-typed instances after which testing stops.
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
  /// Conditions that held at every instance at which the rule applied: they cost no generality as far as tests tell,
  /// and may be what a proof lacks.
  std::vector<Condition> implied;
  std::uint32_t generalized = 0;  ///< The set of literals that became variables.
};

class Generalizer {
 public:
  Generalizer(Bank& bank, GeneralizeOptions options) : bank_(bank), options_(options) {}

  /// The rule in the profile's own words: all literals kept, no test. Empty if an attribute of the target cannot be
  /// expressed by the source.
  [[nodiscard]] std::optional<GeneralRule> literal_form(const Draft& draft);
  /// Forms of the rule from the most general that survived testing to the least; empty if none did.
  [[nodiscard]] std::vector<GeneralRule> general_forms(const Draft& draft);
  /// A form with more conditions, which exclude these instances at which it is known to fail; empty if there are none.
  [[nodiscard]] std::optional<GeneralRule> refine(const Draft& draft, const GeneralRule& form,
                                                  const std::vector<Counterexample>& failures);

 private:
  struct Form;
  struct Sample;
  struct Group;
  [[nodiscard]] std::vector<Group> literal_groups(const Draft& draft) const;
  [[nodiscard]] std::optional<Form> make_form(const Draft& draft, const std::vector<Group>& general);
  [[nodiscard]] std::optional<AttributeExpression> express(const AttributeExpression& expression, const Form& form,
                                                           const std::vector<std::uint32_t>& near,
                                                           std::size_t bound_variables) const;
  [[nodiscard]] bool test(const Draft& draft, Form& form, const std::vector<Counterexample>& failures);

  Bank& bank_;
  GeneralizeOptions options_;
};

}  // namespace taso
