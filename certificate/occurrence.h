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

}  // namespace taso
