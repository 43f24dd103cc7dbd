/// Whether the figures that a plan's file states are those that follow from what it does.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "partition/plan_document.h"
#include "partition/planner.h"
#include "support/status.h"

namespace taso {

/// Compares every figure of a document that can be counted with that of the plan which restore_plan made of it: per
/// node what computing costs (but times of kernels, which are measured), bytes that move and memory; every transfer
/// with its bytes and what it costs on the mesh; and the sums, which must add up in the document, too. Costs agree
/// within 1e-9 of themselves, bytes within 1e-12. The number of figures that were compared; or an error of code
/// not_proved with the line and the place of the first wrong one, and both values.
///
/// What nobody can count without looking for plans is only looked at as far as it can be: the lower bound is not above
/// the cost, and equals it where no plan is said to cost less, the memory of a device suffices, and the sums of other
/// plans add up.
[[nodiscard]] Expected<std::size_t> check_figures(const PlanDocument& document, const PartitionPlan& plan);

/// What a document states that only a measurement tells, so that nobody can count it: nothing, where costs follow from
/// rates. In words, for a list: "the seconds of a step (of this plan), by times of kernels and messages".
[[nodiscard]] std::vector<std::string> measured_figures(const PlanDocument& document);

/// Whether the model's file, with all its bytes, is the one that the document names. bad_input if not, or if it cannot
/// be read.
[[nodiscard]] Status check_model_of_plan(const PlanDocument& document, const std::string& model);

}  // namespace taso
