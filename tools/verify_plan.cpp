#include "tools/verify_plan.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "onnx_io/external_files.h"
#include "onnx_io/model.h"
#include "partition/expansion_check.h"
#include "partition/plan_check.h"
#include "partition/plan_document.h"
#include "partition/proved_strategies.h"
#include "partition/restore_plan.h"
#include "tools/planned_model.h"
#include "tools/specs.h"

namespace taso::tools {
namespace {

namespace fs = std::filesystem;

Status check_expanded(const PlanArguments& arguments, const Graph& graph, const PartitionPlan& plan,
                      const OperatorRegistry& registry, StrategyTable& strategies) {
  ImportOptions options;
  options.pieces = true;
  TASO_ASSIGN(const Model expanded, Model::load(arguments.expanded, registry, options));
  PlannedUses uses;
  for (const PlannedNode& node : plan.nodes) uses[node.node] = node.configuration.axes;
  Status checked = check_expansion(graph, expanded.graph(), plan.mesh, uses, strategies);
  if (checked || checked.error().code != ErrorCode::not_proved) return checked;
  Error error = checked.error();
  error.where.file = arguments.expanded;
  return error;
}

std::size_t count_cuts(const PlanDocument& document) {
  std::size_t cuts = 0;
  for (const StatedNode& node : document.nodes)
    for (const CutPoints& cut : node.cuts) cuts += cut.points.size();
  return cuts;
}

}  // namespace

std::string model_of_plan(const PlanArguments& arguments) {
  if (!arguments.model.empty()) return arguments.model;
  const Expected<PlanDocument> document = load_plan_document(arguments.plan);
  return document ? model_path(*document, arguments.model) : "";
}

Status claim_models_of_plan(FileClaims& claims, const PlanArguments& arguments) {
  if (arguments.plan.empty()) return {};
  for (const auto& [what, model] :
       {std::pair("the model of the plan", model_of_plan(arguments)), {"the plan as one model", arguments.expanded}}) {
    if (model.empty()) continue;
    TASO_RETURN_IF_ERROR(claims.reads(what, model));
    for (const std::string& file : external_data_of_model(model))
      TASO_RETURN_IF_ERROR(claims.reads(std::string("external data of ") + what, file));
  }
  return {};
}

Expected<std::string> verify_plan(const PlanArguments& arguments, const CommonOptions& common,
                                  const OperatorRegistry& registry) {
  TASO_ASSIGN(const PlanDocument document, load_plan_document(arguments.plan));
  const std::string path = model_path(document, arguments.model);
  if (std::error_code error; arguments.model.empty() && !fs::exists(path, error))
    return bad_input("the model of the plan is not there; name it by --optimized", {.file = path});
  TASO_ASSIGN(const PlannedModel planned, load_planned_model(document, path, registry, true));
  const Graph& graph = planned.graph;
  TASO_ASSIGN(const std::vector<std::string> files, strategy_files(common));
  TASO_ASSIGN(const ProvedStrategies proved, ProvedStrategies::load(files, registry));
  StrategyTable strategies(
      registry, [&proved](std::string_view op) { return proved.of(op); },
      [&proved](std::string_view op) { return proved.passages_of(op); });
  TASO_ASSIGN(const PartitionPlan plan, restore_plan(document, graph, node_names(planned.model), strategies));
  TASO_ASSIGN(const std::size_t figures, check_figures(document, plan));
  if (!arguments.expanded.empty()) TASO_RETURN_IF_ERROR(check_expanded(arguments, graph, plan, registry, strategies));
  std::string measured;
  for (const std::string& figure : measured_figures(document))
    measured += fmt::format("{}: measured when the plan was made, not checked: {}\n", arguments.plan, figure);
  return fmt::format(
      "{}: a plan of {} for {} devices: {} operators in pieces of proved strategies, {} cut points, {} kept "
      "placements, {} transfers; {} figures counted anew{}\n{}",
      arguments.plan, path, document.mesh.devices(), plan.nodes.size(), count_cuts(document), document.kept.size(),
      plan.transfers.size(), figures,
      arguments.expanded.empty() ? "" : fmt::format("; {} is that plan written out", arguments.expanded), measured);
}

}  // namespace taso::tools
