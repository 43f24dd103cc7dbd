/// Rules that say what a cut makes of an operator. Private to the folder.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "partition/cut.h"
#include "partition/strategy.h"
#include "support/status.h"

namespace taso {

/// The strategy of a cut, with its rule; `name` is that of the rule.
[[nodiscard]] Expected<PartitionStrategy> make_strategy(const OperatorRegistry& registry, VariableCut cut,
                                                        const std::string& name);

/// The source `op(inputs; attributes)` of a rule: attributes are variables, named after them.
[[nodiscard]] Substitution whole_operator(const OperatorDefinition& definition);

/// Leaves out attribute variables that nothing names, and numbers the others as a parser does, where the source has the
/// operator of `definition` alone; `moved[v]` is the new number of variable v.
void compact_variables(Substitution& rule, const OperatorDefinition& definition, std::vector<std::uint32_t>& moved);

/// Adds a node to a pattern, or finds the equal one; attributes need not be in order.
[[nodiscard]] PatternValue add_node(Pattern& pattern, PatternNode node, std::uint32_t port = 0);

}  // namespace taso
