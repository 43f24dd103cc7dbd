/// Where the costs of a plan for several devices come from: rates of the topology, counts, or times of the kernels that
/// run on a device.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operators/registry.h"
#include "optimizer/cost_database.h"
#include "optimizer/cost_model.h"
#include "optimizer/runtime_target.h"
#include "partition/mesh.h"
#include "partition/piece_costs.h"
#include "runtime/kernel.h"
#include "session/cost_files.h"
#include "session/message.h"
#include "support/status.h"

namespace taso {

struct PlanRequest;  // session/device_plan.h

/// As --plan-cost spells it: roofline, time, flops, bytes. Fails (usage) otherwise.
[[nodiscard]] Expected<PlanCost> parse_plan_cost(std::string_view text);

/// Times of pieces of operators: of the kernels that a target launches for an operator by itself, with the layouts of
/// the target's rule and without conversions between layouts, which depend on neighbours. Not for several threads at
/// once.
class PieceTimes {
 public:
  /// Opens the costs of the device where the library's kernels run, which is referred to. Fails as open_costs does;
  /// where files.recorded_only, a time that is not recorded is an error of code cost_missing.
  [[nodiscard]] static Expected<std::unique_ptr<PieceTimes>> open(const KernelLibrary& library,
                                                                  const RuntimeTargetOptions& options,
                                                                  const CostFiles& files, const MessageSink& message);

  /// From now on kernels cost what they do while this model is run over and over: as much of it as the last-level cache
  /// keeps, which all ranks share, comes from there (MeasuredCosts::cached_tenths).
  [[nodiscard]] Status expect_model(const Graph& graph);
  /// Refers to this.
  [[nodiscard]] PieceCost cost();
  /// Where they are recorded.
  [[nodiscard]] MeasuredCosts& costs() { return *measured_; }
  /// The mesh of a request, with times of its transfers if they are recorded. Fails as measured_transfers does.
  [[nodiscard]] Expected<Mesh> mesh(const PlanRequest& request, const CostFiles& files);
  /// The kernels of a graph, with layouts by the target's rule.
  [[nodiscard]] Expected<KernelPlan> plan(const Graph& graph) const { return target_.plan(graph); }
  /// Of one of them.
  [[nodiscard]] Expected<double> seconds(const KernelInfo& kernel) { return measured_->seconds(kernel); }
  /// Every time handed out so far, ordered.
  [[nodiscard]] std::vector<CostDatabase::Entry> used() const;

 private:
  PieceTimes(const KernelLibrary& library, const RuntimeTargetOptions& options);
  [[nodiscard]] Expected<double> seconds(const OperatorPiece& piece, const std::vector<bool>& weights);

  RuntimeTarget target_;
  std::optional<CostDatabase> database_;
  std::optional<MeasuredCosts> measured_;
  std::vector<CostDatabase::Entry> transfers_;  ///< That were used.
  const OperatorRegistry& registry_;
  std::string rank_;  ///< The device, as ranks name it (MeasuredRanks).
};

/// The cost of pieces on a mesh. `times`: of PlanCost::time, where it must be given (TASO_CHECK); referred to.
[[nodiscard]] PieceCost piece_cost(PlanCost cost, const Mesh& mesh, const OperatorRegistry& registry,
                                   PieceTimes* times);

}  // namespace taso
