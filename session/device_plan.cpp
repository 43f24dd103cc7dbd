#include "session/device_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "partition/plan_baselines.h"
#include "partition/proved_strategies.h"

namespace taso {
namespace {

std::string duration(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.2f} us", seconds * 1e6) : fmt::format("{:.3f} ms", seconds * 1e3);
}

std::string name_of(const Graph& graph, NodeId id, const std::vector<std::string>& node_names) {
  const Node& node = graph.node(id);
  if (node.origin >= 0 && static_cast<std::size_t>(node.origin) < node_names.size())
    return node_names[static_cast<std::size_t>(node.origin)];
  return node.kind == NodeKind::opaque ? node.name : fmt::format("{} {}", node.op, id);
}

/// What moves on the way to a node, and from where it is made to where it is kept.
std::map<NodeId, Transfer> transfers_by_node(const PartitionPlan& plan) {
  std::map<NodeId, Transfer> sums;
  for (const PlannedTransfer& moved : plan.transfers) sums[moved.reader.value_or(moved.value.node)] += moved.transfer;
  return sums;
}

bool repeats(const NodeConfiguration& configuration) {
  return std::all_of(configuration.axes.begin(), configuration.axes.end(),
                     [](const AxisUse& use) { return use.kind == AxisUse::Kind::repeat; });
}

nlohmann::json use_json(const AxisUse& use) {
  switch (use.kind) {
    case AxisUse::Kind::cut: {
      nlohmann::json cut{{"use", "cut"}, {"variable", use.variable}};
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

nlohmann::json sums_json(const PartitionPlan& plan) {
  return {{"seconds", plan.seconds},
          {"compute_seconds", plan.compute_seconds},
          {"transfer_seconds", plan.transfer_seconds},
          {"transfer_bytes", plan.transfer_bytes},
          {"weight_bytes", plan.weight_bytes}};
}

}  // namespace

Expected<DevicePlan> plan_for_devices(const Graph& graph, const PlanRequest& request,
                                      const OperatorRegistry& registry) {
  TASO_ASSIGN(const ProvedStrategies proved, ProvedStrategies::load(request.strategy_files, registry));
  StrategyTable strategies(
      registry, [&](std::string_view op) { return proved.of(op); },
      [&](std::string_view op) { return proved.passages_of(op); });
  DevicePlan result{graph, request.topology, {}, {}};
  Planner planner(result.graph, request.mesh, strategies, {});
  TASO_ASSIGN(result.plan, planner.plan());
  for (const auto& [name, allowed] :
       {std::pair("all repeated", only_repeat()), std::pair("data parallel", only_data_parallel(result.graph))}) {
    TASO_ASSIGN(PartitionPlan other, planner.plan(allowed));
    result.others.emplace_back(name, std::move(other));
  }
  return result;
}

std::string plan_text(const DevicePlan& device_plan, const std::vector<std::string>& node_names) {
  const PartitionPlan& plan = device_plan.plan;
  std::string text = fmt::format("\nplan for {} devices, mesh {} of {}; costs by the rates that the topology states\n",
                                 plan.mesh.devices(), plan.mesh.to_string(), device_plan.topology);
  text += fmt::format("{:<32} {:<20} {:<28} {:>12} {:>12} {:>12}\n", "node", "operator", "mesh axes", "compute",
                      "moving", "bytes");
  const std::map<NodeId, Transfer> moved = transfers_by_node(plan);
  std::size_t left_out = 0;
  for (const PlannedNode& node : plan.nodes) {
    const auto transfer = moved.find(node.node);
    if (repeats(node.configuration) && transfer == moved.end()) {
      ++left_out;
      continue;
    }
    const Transfer sum = transfer == moved.end() ? Transfer{} : transfer->second;
    text +=
        fmt::format("{:<32} {:<20} {:<28} {:>12} {:>12} {:>12.0f}\n", name_of(device_plan.graph, node.node, node_names),
                    device_plan.graph.node(node.node).op, node.configuration.to_string(),
                    duration(node.compute_seconds), duration(sum.seconds), sum.bytes);
  }
  if (left_out > 0) text += fmt::format("{} more are repeated on all devices, and nothing moves for them\n", left_out);
  const auto row = [](const std::string& name, const PartitionPlan& one) {
    return fmt::format("{:<16} {:>12} = compute {} + moving {}; {:.2f} MB moved, {:.2f} MB of weights on a device\n",
                       name, duration(one.seconds), duration(one.compute_seconds), duration(one.transfer_seconds),
                       one.transfer_bytes * 1e-6, one.weight_bytes * 1e-6);
  };
  text += row("this plan", plan);
  for (const auto& [name, other] : device_plan.others) text += row(name, other);
  if (plan.weight_bytes > static_cast<double>(plan.mesh.device.memory))
    text += fmt::format("the weights alone do not fit: a device of this topology has {:.2f} MB\n",
                        static_cast<double>(plan.mesh.device.memory) * 1e-6);
  if (!plan.complete) text += "not every way to use the mesh was looked at: some operators have too many\n";
  if (!plan.exact)
    return text + fmt::format("no plan takes less than {}: a table was too large\n", duration(plan.lower_bound));
  return text + fmt::format("no plan of these {} takes less\n", plan.complete ? "strategies" : "ways");
}

std::string plan_json(const DevicePlan& device_plan, const FileIdentity& model,
                      const std::vector<std::string>& node_names) {
  using nlohmann::json;
  const PartitionPlan& plan = device_plan.plan;
  json document{{"format", "taso partition plan"}, {"version", 1}};
  document["model"] = {{"file", model.name}, {"bytes", model.bytes}, {"hash", model.hash.to_string()}};
  document["topology"] = device_plan.topology;
  document["mesh"] = json::array();
  for (const MeshAxis& axis : plan.mesh.axes)
    document["mesh"].push_back(
        {{"size", axis.size}, {"link", axis.link}, {"bandwidth", axis.bandwidth}, {"latency", axis.latency}});
  document["costs"] = "rates of the topology";
  document["plan"] = sums_json(plan);
  document["plan"]["exact"] = plan.exact;
  document["plan"]["complete"] = plan.complete;
  document["plan"]["weights_fit"] = plan.weight_bytes <= static_cast<double>(plan.mesh.device.memory);
  document["plan"]["lower_bound"] = plan.lower_bound;
  document["others"] = json::object();
  for (const auto& [name, other] : device_plan.others) document["others"][name] = sums_json(other);
  document["nodes"] = json::array();
  for (const PlannedNode& node : plan.nodes) {
    json uses = json::array();
    for (const AxisUse& use : node.configuration.axes) uses.push_back(use_json(use));
    document["nodes"].push_back({{"name", name_of(device_plan.graph, node.node, node_names)},
                                 {"op", device_plan.graph.node(node.node).op},
                                 {"axes", uses},
                                 {"seconds", node.compute_seconds}});
  }
  document["transfers"] = json::array();
  for (const PlannedTransfer& moved : plan.transfers) {
    json one{{"from", name_of(device_plan.graph, moved.value.node, node_names)},
             {"output", moved.value.port},
             {"bytes", moved.transfer.bytes},
             {"seconds", moved.transfer.seconds}};
    one["to"] = moved.reader ? json(name_of(device_plan.graph, *moved.reader, node_names)) : json(nullptr);
    document["transfers"].push_back(std::move(one));
  }
  // Names come from files and need not be UTF-8.
  return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string plan_path(const std::string& model) {
  return std::filesystem::path(model).replace_extension(".plan.json").string();
}

}  // namespace taso
