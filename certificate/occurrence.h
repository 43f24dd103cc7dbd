/// Whether a rule's source occurs where a certificate says that it does.
#pragma once

#include <cstdint>
#include <limits>

#include "graph/rewrite.h"

namespace taso {

/// Success if the source of `rule` occurs in `graph` at `match`: operators, attributes and edges are those of the
/// source with the match's values for its variables, up to the order of operands of commutative operators, for some
/// adjacent operands of an associative operator at an output, and for some adjacent outputs of a split. That the
/// conditions hold and that the target fits is for apply() to say. Shares nothing with the search for matches; any
/// match whatever may be asked for. bad_input says what does not fit.
[[nodiscard]] Status check_occurrence(const Graph& graph, const Substitution& rule, const Match& match,
                                      const OperatorCatalog& catalog);

/// Stands in a match for an element of a list that the match does not say; an integer that it does not say is absent.
inline constexpr std::int64_t unknown_size = std::numeric_limits<std::int64_t>::min();

/// Takes the values of integers and of lists out of a match; how long lists are stays.
void forget_sizes(Match& match);
/// `match` with the integers that it does not say read from the nodes that it names. Whether the source occurs there is
/// for check_occurrence() to say.
[[nodiscard]] Match with_sizes_of(const Graph& graph, const Substitution& rule, const Match& match,
                                  const OperatorCatalog& catalog);

}  // namespace taso
