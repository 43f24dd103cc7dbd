#include "session/plan_file.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "session/plan_text.h"

namespace taso {
namespace {

using nlohmann::json;

json use_json(const AxisUse& use) {
  switch (use.kind) {
    case AxisUse::Kind::cut: {
      json cut{{"use", "cut"}, {"variable", use.variable}};
      if (!use.reducer.empty()) cut["reducer"] = use.reducer;
      return cut;
    }
    case AxisUse::Kind::partial:
      return {{"use", "partial"}, {"inputs", use.inputs}, {"reducer", use.reducer}};
    case AxisUse::Kind::repeat:
      break;
  }
  return {{"use", "repeat"}};
}

json sums_json(const PartitionPlan& plan) {
  return {{"cost", plan.seconds},
          {"compute", plan.compute_seconds},
          {"transfer", plan.transfer_seconds},
          {"transfer_bytes", plan.transfer_bytes},
          {"weight_bytes", plan.weight_bytes},
          {"memory", plan.memory}};
}

json mesh_json(const Mesh& mesh) {
  json axes = json::array();
  for (const MeshAxis& axis : mesh.axes)
    axes.push_back(
        {{"size", axis.size}, {"link", axis.link}, {"bandwidth", axis.bandwidth}, {"latency", axis.latency}});
  return axes;
}

std::string_view unit_name(CostUnit unit) {
  switch (unit) {
    case CostUnit::seconds:
      break;
    case CostUnit::flops:
      return "flops";
    case CostUnit::bytes:
      return "bytes";
  }
  return "seconds";
}

}  // namespace

std::string plan_json(const DevicePlan& device_plan, const FileIdentity& model) {
  const PartitionPlan& plan = device_plan.plan;
  json document{{"format", "taso partition plan"}, {"version", 2}};
  document["model"] = {{"file", model.name}, {"bytes", model.bytes}, {"hash", model.hash.to_string()}};
  document["topology"] = device_plan.topology;
  document["mesh"] = mesh_json(device_plan.mesh);
  document["symbols"] = device_plan.sizes;
  document["costs"] = source_of(device_plan.cost);
  document["unit"] = unit_name(unit_of(device_plan.cost));
  document["partition"] = device_plan.method == PlanMethod::exact ? "exact" : "recursive";
  document["memory_per_device"] = device_plan.memory ? json(*device_plan.memory) : json(nullptr);
  document["plan"] = sums_json(plan);
  document["plan"]["exact"] = plan.exact;
  document["plan"]["complete"] = plan.complete;
  document["plan"]["stopped"] = plan.stopped;
  document["plan"]["lower_bound"] = plan.lower_bound;
  document["others"] = json::object();
  for (const NamedPlan& other : all_plans(device_plan))
    if (other.plan != &plan)
      document["others"][std::string(other.name)] =
          other.plan != nullptr ? sums_json(*other.plan) : json{{"missing", other.missing}};
  document["nodes"] = json::array();
  const std::vector<MovedForNode> moved = moved_by_node(plan);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlannedNode& node = plan.nodes[i];
    json uses = json::array();
    for (const AxisUse& use : node.configuration.axes) uses.push_back(use_json(use));
    document["nodes"].push_back({{"name", planned_name(device_plan, node.node)},
                                 {"op", device_plan.graph.node(node.node).op},
                                 {"axes", uses},
                                 {"cost", node.compute_seconds},
                                 {"bytes_in", moved[i].in.bytes},
                                 {"bytes_out", moved[i].out.bytes},
                                 {"memory", node.memory}});
  }
  std::map<NodeId, std::size_t> numbers;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) numbers[plan.nodes[i].node] = i;
  const auto number_of = [&](NodeId id) {
    const auto number = numbers.find(id);
    return number == numbers.end() ? json(nullptr) : json(number->second);
  };
  document["transfers"] = json::array();
  for (const PlannedTransfer& one : plan.transfers)
    document["transfers"].push_back({{"from", planned_name(device_plan, one.value.node)},
                                     {"from_number", number_of(one.value.node)},
                                     {"to_number", one.reader ? number_of(*one.reader) : json(nullptr)},
                                     {"output", one.value.port},
                                     {"to", one.reader ? json(planned_name(device_plan, *one.reader)) : json(nullptr)},
                                     {"bytes", one.transfer.bytes},
                                     {"cost", one.transfer.seconds}});
  // Names come from files and need not be UTF-8.
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string plan_path(const std::string& model) {
  return std::filesystem::path(model).replace_extension(".plan.json").string();
}

std::string expanded_path(const std::string& model) {
  return std::filesystem::path(model).replace_extension(".expanded.onnx").string();
}

}  // namespace taso
