/// Orders of elimination, and what they would cost, from the structure of a problem alone: no table is looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "elimination/elimination.h"

namespace taso {

/// Which variables share a factor.
struct InteractionGraph {
  std::vector<std::uint32_t> sizes;                                   ///< Per variable: its number of values.
  std::vector<std::vector<EliminationProblem::Variable>> neighbours;  ///< Per variable: the others, ascending.
};

/// The graph of a problem.
[[nodiscard]] InteractionGraph interaction_graph(const EliminationProblem& problem);

/// How the next variable is chosen. Ties go to the variable of lowest number.
enum class OrderRule {
  smallest_table,  ///< The product of its neighbours' sizes is least, then their number: what minimize() does.
  min_degree,      ///< It has the fewest neighbours: PaSE's GenerateSeq (Elango 2021, Fig. 3).
  min_fill,        ///< Its elimination joins the fewest pairs of variables.
  breadth_first,   ///< In the order of a breadth-first search from variable 0: PaSE, section III-A.
};

/// An order and the sizes of what elimination in this order makes. Real numbers: products may be astronomical.
struct EliminationOrder {
  std::vector<EliminationProblem::Variable> variables;
  std::size_t width = 0;            ///< Largest number of neighbours at elimination: M of PaSE.
  double largest_table = 0;         ///< Most entries of a table: the largest product of neighbours' sizes, K^M.
  double largest_combinations = 0;  ///< With the variable itself: K^(M+1), what PaSE bounds its work by.
  double combinations = 0;          ///< Of all variables: what is looked at in all.
};

/// The order that a rule gives, neighbours of an eliminated variable becoming neighbours of each other.
[[nodiscard]] EliminationOrder elimination_order(const InteractionGraph& graph, OrderRule rule);

}  // namespace taso
