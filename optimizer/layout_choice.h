/// The layouts of least cost: an open plan becomes an elimination problem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "elimination/elimination.h"
#include "optimizer/cost_database.h"
#include "optimizer/target.h"
#include "support/status.h"

namespace taso {

/// What choosing layouts took, over many graphs.
struct LayoutStatistics {
  std::size_t problems = 0;  ///< Graphs whose layouts were chosen.
  std::size_t solved = 0;    ///< Eliminations run: several for a graph where costs had to be measured, and for moves.
  std::size_t parts_solved = 0, parts_reused = 0;  ///< See EliminationCache.
  std::size_t inexact = 0;                         ///< Problems with a table beyond the bound.
  double largest_gap = 0;                          ///< Of those: largest (cost - lower bound) / cost.
  std::size_t width = 0;                           ///< Largest number of neighbours at elimination.
  std::size_t largest_table = 0;                   ///< Entries.
  /// See layout_moves.h: moves that were tried, and made; how often not all of them were tried.
  std::size_t moves_tried = 0, moves_kept = 0, moves_ended = 0;
  double seconds = 0;  ///< In building and solving, of all threads; not in measuring.

  void add(const LayoutStatistics& other);
};

/// A kernel's price: known, or the least it may turn out to be. Prices are not negative.
struct Price {
  double value = 0;
  bool known = true;
};

struct PriceList {
  std::function<Price(const KernelInfo&)> look_up;
  /// Makes a price known (by measuring), if not at once, then when asked again: until then it may be a larger least
  /// value.
  std::function<Expected<Price>(const KernelInfo&)> find_out;
};

/// Models need tables of a few hundred entries. Candidates that take a dense block apart would need more than they are
/// worth, as thousands of them are tried: theirs may not be the best layouts (LayoutStatistics::inexact).
inline constexpr EliminationOptions layout_elimination{.maximum_table = 1024};

/// The best layouts of an open plan at prices that are not all known. As long as no price becomes known, the next
/// choice of layouts goes on from there.
struct LayoutAttempt {
  std::vector<double> prices;         ///< Per kernel of the open plan.
  std::size_t maximum_table = 0;      ///< Of the elimination.
  std::vector<std::uint32_t> chosen;  ///< Values of the variables of its space.
  bool exact = true;                  ///< As in EliminationResult.
  double lower_bound = 0;
};

/// A configuration that a node has to work in: a variable of the space that has choices, and the number of one.
struct ForcedChoice {
  std::uint32_t variable = 0, value = 0;
  bool operator==(const ForcedChoice&) const = default;
};

/// Chooses layouts of least total price and fills in `plan.launches` and `plan.layouts`. Prices that are not known
/// count as their least value; those that the choice then rests on are found out, and the choice is made again, until
/// it rests on known ones only: the optimum, though most prices may never be asked for. Returns the price; if it is not
/// below `limit`, any number from `limit` up, and the layouts stay open. So they do where a price cannot be found out,
/// an error; what was chosen up to there is kept in `plan.attempt`. Parts of the graph that were met before, at equal
/// prices, come from `cache`. With forced choices, no attempt may have been made without them; if these do not go
/// together, the layouts stay open, and the price is infinite.
[[nodiscard]] Expected<double> choose_layouts(KernelPlan& plan, const PriceList& prices, double limit,
                                              EliminationCache& cache, LayoutStatistics& statistics,
                                              const EliminationOptions& options = layout_elimination,
                                              std::span<const ForcedChoice> forced = {});

/// The layouts in which a graph is run by someone who has recorded costs but does not measure: as the search with the
/// same costs chose them, with what moves gain.
struct RecordedLayouts {
  bool priced = false;                              ///< Whether all kernels of the best layouts have recorded costs.
  std::shared_ptr<const LayoutAssignment> layouts;  ///< Null: the runtime's rule, as the best or for want of costs.
};
[[nodiscard]] Expected<RecordedLayouts> recorded_layouts(const Graph& graph, const Target& target,
                                                         const CostDatabase& costs);

/// The elimination problem of a space with a price per kernel. Variables of one value are left out: `variables` gives
/// the problem's variable per variable of the space, or none.
struct LayoutProblem {
  static constexpr EliminationProblem::Variable none = ~EliminationProblem::Variable{0};
  EliminationProblem problem;
  std::vector<EliminationProblem::Variable> variables;
};
[[nodiscard]] LayoutProblem layout_problem(const LayoutSpace& space, const std::vector<double>& prices);

}  // namespace taso
