#include "session/plan_file.h"

#include <filesystem>

#include "partition/plan_statement.h"
#include "session/plan_text.h"

namespace taso {
PlanDocument document_of(const DevicePlan& device_plan, const FileIdentity& model) {
  const PartitionPlan& plan = device_plan.plan;
  PlanDocument document;
  document.model = model;
  document.input_shapes = device_plan.input_shapes;
  document.symbols = device_plan.sizes;
  document.topology = device_plan.topology;
  document.mesh = device_plan.mesh;
  document.cost = device_plan.cost;
  document.method = device_plan.method;
  document.memory_per_device = device_plan.memory;
  state_plan(device_plan.graph, device_plan.node_names, plan, device_plan.cuts, document);
  for (const NamedPlan& other : all_plans(device_plan)) {
    if (other.plan == &plan) continue;
    StatedAlternative& stated = document.others[std::string(other.name)];
    stated.missing = other.missing;
    if (other.plan != nullptr) stated.sums = stated_sums(*other.plan);
  }
  return document;
}

std::string plan_json(const DevicePlan& plan, const FileIdentity& model) { return to_json(document_of(plan, model)); }

std::string plan_path(const std::string& model) {
  return std::filesystem::path(model).replace_extension(".plan.json").string();
}

std::string expanded_path(const std::string& model) {
  return std::filesystem::path(model).replace_extension(".expanded.onnx").string();
}

}  // namespace taso
