/// Whether a rule's source occurs where a certificate says that it does.
#pragma once

#include "graph/rewrite.h"

namespace taso {

/// Success if the source of `rule` occurs in `graph` at `match`: operators, attributes and edges are those of the
/// source with the match's values for its variables, up to the order of operands of commutative operators, for some
/// adjacent operands of an associative operator at an output, and for some adjacent outputs of a split. That the
/// conditions hold and that the target fits is for apply() to say. Shares nothing with the search for matches; any
/// match whatever may be asked for. bad_input says what does not fit.
[[nodiscard]] Status check_occurrence(const Graph& graph, const Substitution& rule, const Match& match,
                                      const OperatorCatalog& catalog);

/// `match` with the values of the rule's attribute variables read anew from the nodes that it names: the match at the
/// same place of a graph that differs from the first in extents. Whether the source occurs there is for
/// check_occurrence() to say; what cannot be read keeps its value.
[[nodiscard]] Match match_at_same_place(const Graph& graph, const Substitution& rule, const Match& match);

}  // namespace taso
