/// Plans that are decided one mesh axis after the other, as Tofu does (Wang, Huang, Li 2019, section 5.2).
///
/// A step decides for all operators what they use one axis for, with what the steps before decided fixed: it is the
/// exact plan (partition/planner.h) on the axes up to this one, among the configurations that agree with the decisions
/// before. Pieces of one step are what the next one cuts: what a piece fetches along an earlier axis, the next step
/// divides like what the piece has. Axes are decided in their order, slowest links first (Tofu's Theorem 2: earlier
/// steps move less). Each step looks at as many ways per operator as it has for one axis, so that time grows with the
/// number of axes, not with the number of ways to combine them.
///
/// Under the assumptions of Tofu's proof the plan is optimal. They do not hold where an operator reads an operand whole
/// that is not cut (that does not become smaller with every step), nor with halos; so the result is an upper bound.
#pragma once

#include <cstdint>
#include <vector>

#include "partition/planner.h"

namespace taso {

/// The prime factors of a number of devices, largest first: Tofu's k1 >= k2 >= ... Empty of 1. At least 1 (TASO_CHECK).
[[nodiscard]] std::vector<std::int64_t> recursion_steps(std::int64_t devices);

/// The mesh with every axis as axes of prime sizes, largest first, over the same link: the steps of a recursion that
/// cuts in as small steps as there are.
[[nodiscard]] Mesh with_prime_axes(const Mesh& mesh);

/// The plan that deciding axis by axis leads to, on all axes of the mesh. `lower_bound` is 0 and `exact` false (but on
/// at most one axis, where the plan is the exact one): the exact plan says how far it is off. `decisions` and `ways`
/// are those of all steps together. `options.decided` must be empty (TASO_CHECK).
[[nodiscard]] Expected<PartitionPlan> plan_recursively(const Graph& graph, const Mesh& mesh, StrategyTable& strategies,
                                                       const PlannerOptions& options = {});

}  // namespace taso
