#include "session/model_plan.h"

#include <memory>
#include <optional>
#include <utility>

#include "graph/rewrite.h"
#include "session/rule_report.h"
#include "session/sized_model.h"

namespace taso {

Expected<ModelPlan> plan_model(const SessionOptions& options, const OperatorRegistry& registry,
                               const KernelLibrary* library, const MessageSink& message) {
  TASO_CHECK(options.devices.has_value(), "a plan for no devices");
  ModelPlan result;
  TASO_ASSIGN(result.model, identify_file(options.model));
  const ImportOptions import{.input_shapes = options.input_shapes, .symbol_sizes = {}, .absent_weights = true};
  TASO_ASSIGN(const SizedModel sized,
              SizedModel::load(options.model, registry, import, options.assumed, options.ranges));
  describe(sized, message);
  Graph graph = sized.model().graph();
  normalize(graph, registry);
  std::unique_ptr<PieceTimes> times;
  PlanRequest request = *options.devices;
  if (options.devices->cost == PlanCost::time) {
    TASO_CHECK(library != nullptr, "times of no device");
    TASO_RETURN_IF_ERROR(open_choices(options.costs, *library, {}));
    TASO_ASSIGN(times, PieceTimes::open(*library, piece_target(options), options.costs, message));
    TASO_RETURN_IF_ERROR(times->expect_model(graph));
    TASO_ASSIGN(request.mesh, times->mesh(request, options.costs));
  }
  std::optional<RuleIndex> fusing;
  if (times) {
    TASO_ASSIGN(const RuleSets rules, load_rule_sets(options.rules, registry, {}));
    fusing.emplace(allowed_rules(rules.for_baseline().rules(), options.optimize.rounding, true), registry);
  }
  TASO_ASSIGN(result.plan, plan_for_devices(std::move(graph), node_names(sized.model()), request, registry, times.get(),
                                            fusing ? &*fusing : nullptr));
  result.plan.sizes = sized.sizes();
  result.plan.input_shapes = options.input_shapes;
  return result;
}

}  // namespace taso
