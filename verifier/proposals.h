/// The values that a search tries for one variable of a partial instance.
///
/// A proposal only has to include every value with which the instance can be well-typed within the domain; type
/// inference decides. Answers that depend on the operator's own operands and attributes alone are remembered under
/// these.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "verifier/candidates.h"
#include "verifier/partial_instance.h"

namespace taso {

class Proposals {
 public:
  Proposals(PartialInstance& partial, const Domain& domain, LoweredCache& cache);

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

  // The attributes of a node that its axis lists name, and their variables.
  struct Shaping {
    std::set<std::string> names;
    ExpressionVariables variables;
  };

  void find_uses();
  void find_shaping_variables();
  const Key& node_key(const NodeState& state, const Side& side, std::uint32_t question);
  const Key& shapes_key(const NodeState& state, const Side& side, std::uint32_t question);
  [[nodiscard]] bool wide() const { return partial_.extents_within(domain_.wide_extents); }
  void add_type(std::uint32_t variable, const Shape& shape, std::vector<std::uint32_t>& types);
  [[nodiscard]] std::vector<Shape> shapes_of(const NodeState& state, const Side& side, std::size_t input) const;
  [[nodiscard]] std::vector<AttributeValue> new_values(const NodeState& state, const Side& side, std::uint32_t v);
  [[nodiscard]] std::vector<AttributeValue> lists_of_length(const NodeState& state, const Side& side, std::uint32_t v,
                                                            std::size_t length);
  [[nodiscard]] std::vector<AttributeValue> lists_per_axis(const TensorType* input, const Use& use) const;
  [[nodiscard]] std::vector<AttributeValue> free_lists(const TensorType* input) const;
  [[nodiscard]] std::vector<AttributeValue> lists_of_other_operators() const;
  [[nodiscard]] bool in_universe(const Integers& list) const;
  [[nodiscard]] std::vector<AttributeValue> well_typed(const NodeState& state, const Side& side, std::uint32_t v,
                                                       std::vector<AttributeValue> values) const;
  void append_inputs(const NodeState& state, const Side& side, std::optional<std::size_t> except,
                     std::string& key) const;
  [[nodiscard]] static const std::string* own_attribute(const NodeState& state, std::uint32_t v);
  [[nodiscard]] bool append_attribute(const NodeState& state, std::size_t attribute, std::string& key) const;
  [[nodiscard]] std::optional<std::string> shared_key(const NodeState& state, const Side& side, std::uint32_t v) const;
  [[nodiscard]] std::vector<Integers> same_lists(const NodeState& state, const Side& side, std::uint32_t v);
  [[nodiscard]] bool is_list_variable(std::uint32_t v) const;

  PartialInstance& partial_;
  Domain domain_;
  SharedMemory<LoweredCache::Values>& shared_;
  std::string domain_key_;  // the domain as bytes
  std::vector<Use> uses_;
  std::vector<bool> integers_;            // tensor variables that hold indices
  std::vector<std::vector<bool>> ranks_;  // allowed ranks of each tensor variable
  std::vector<Shaping> shaping_;          // per node
  std::vector<Shape> universe_;
  KeyMap<std::vector<std::uint32_t>> types_, values_;
  KeyMap<std::vector<NamedSizes>> sizes_;
  Key key_;
};

}  // namespace taso
