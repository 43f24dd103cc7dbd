/// The values that a search tries for one variable of a partial instance.
///
/// A proposal only has to include every value with which the instance can be well-typed within the domain; type
/// inference decides. Answers that depend on the operator's own operands and attributes alone are remembered under
/// these.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "verifier/candidates.h"
#include "verifier/partial_instance.h"

namespace taso {

class Proposals {
 public:
  Proposals(PartialInstance& partial, const Domain& domain);

  /// Types of a variable that is an input of this operator; the list stays where it is.
  const std::vector<std::uint32_t>& types_for(const NodeState& state, const Side& side, std::size_t input);
  /// Types of a variable of which nothing else is known.
  std::vector<std::uint32_t> any_types(std::uint32_t variable);
  /// If an attribute is the shape of the only result of this operator and something determines that: the shapes it can
  /// be.
  std::optional<std::vector<std::uint32_t>> shapes_wanted(const NodeState& state, const Side& side,
                                                          std::uint32_t variable);
  /// Values of an attribute variable at an operator whose inputs are known.
  std::vector<std::uint32_t> values_for(const NodeState& state, const Side& side, std::uint32_t variable);

  /// Whether the variable is a list of any length, such as a shape.
  [[nodiscard]] bool is_free_list(std::uint32_t variable) const;
  /// Whether it is a list that is 0 by default: such follow from the other lists of an operator.
  [[nodiscard]] bool is_pads(std::uint32_t variable) const;

 private:
  using Integers = std::vector<std::int64_t>;
  // How an attribute variable is used first: directly as an attribute, or inside an expression.
  struct Use {
    const OperatorDefinition* definition = nullptr;
    const AttributeSpec* spec = nullptr;
    bool direct = false;
  };

  void find_uses();
  void find_shaping_variables();
  const Key& node_key(const NodeState& state, const Side& side, std::uint32_t question);
  const Key& shapes_key(const NodeState& state, const Side& side, std::uint32_t question);
  [[nodiscard]] bool wide() const { return partial_.extents_within(domain_.wide_extents); }
  std::vector<std::uint32_t> interned(std::uint32_t variable, const std::vector<Shape>& shapes);
  [[nodiscard]] std::vector<Shape> shapes_of(const NodeState& state, const Side& side, std::size_t input) const;
  [[nodiscard]] std::vector<AttributeValue> new_values(const NodeState& state, const Side& side, std::uint32_t v) const;
  [[nodiscard]] std::vector<AttributeValue> lists_of_length(const NodeState& state, const Side& side, std::uint32_t v,
                                                            std::size_t length) const;
  [[nodiscard]] std::vector<AttributeValue> lists_per_axis(const TensorType* input, const Use& use) const;
  [[nodiscard]] std::vector<AttributeValue> free_lists(const TensorType* input) const;
  [[nodiscard]] std::vector<AttributeValue> lists_of_other_operators() const;
  std::vector<std::uint32_t> well_typed(const NodeState& state, const Side& side, std::uint32_t v,
                                        const std::vector<AttributeValue>& values);
  [[nodiscard]] std::vector<Integers> same_lists(const NodeState& state, const Side& side, std::uint32_t v) const;
  [[nodiscard]] bool is_list_variable(std::uint32_t v) const;

  PartialInstance& partial_;
  Domain domain_;
  std::vector<Use> uses_;
  std::vector<bool> integers_;                // tensor variables that hold indices
  std::vector<std::vector<bool>> ranks_;      // allowed ranks of each tensor variable
  std::vector<ExpressionVariables> shaping_;  // per node: variables of attributes that its axis lists name
  std::vector<Shape> universe_;
  KeyMap<std::vector<std::uint32_t>> types_, values_;
  KeyMap<bool> accepted_;  // values with which an operator is well-typed
  Key key_;
};

}  // namespace taso
