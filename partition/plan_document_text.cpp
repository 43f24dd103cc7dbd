// The text of a plan's file. Nodes, what is kept, and transfers stand in a line each: files are read by people, too,
// and compared.
#include <nlohmann/json.hpp>

#include "partition/plan_document.h"

namespace taso {
namespace {

using nlohmann::ordered_json;

ordered_json to_json(const AxisUse& use) {
  switch (use.kind) {
    case AxisUse::Kind::cut: {
      ordered_json cut{{"use", "cut"}, {"variable", use.variable}};
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

ordered_json to_json(const std::vector<AxisUse>& axes) {
  ordered_json uses = ordered_json::array();
  for (const AxisUse& use : axes) uses.push_back(to_json(use));
  return uses;
}

ordered_json to_json(const StatedSums& sums) {
  ordered_json json{{"cost", sums.cost},
                    {"compute", sums.compute},
                    {"transfer", sums.transfer},
                    {"transfer_bytes", sums.transfer_bytes},
                    {"weight_bytes", sums.weight_bytes},
                    {"memory", sums.memory}};
  if (sums.step) json["step"] = *sums.step;
  return json;
}

ordered_json to_json(const TimeTable& table) {
  ordered_json points = ordered_json::array();
  for (const TimeTable::Point& point : table.points())
    points.push_back(ordered_json::array({point.bytes, point.seconds}));
  return points;
}

ordered_json to_json(const MeshAxis& axis) {
  ordered_json json{{"size", axis.size}, {"link", axis.link}, {"bandwidth", axis.bandwidth}, {"latency", axis.latency}};
  for (const CollectiveKind& kind : collective_kinds)
    if (axis.times.measured()) json["times"][kind.name] = to_json(axis.times.*kind.table);
  return json;
}

ordered_json to_json(const StatedNode& node) {
  ordered_json cuts = ordered_json::array();
  for (const CutPoints& cut : node.cuts)
    cuts.push_back({{"variable", cut.variable}, {"extent", cut.extent}, {"points", cut.points}});
  return {{"name", node.name},           {"op", node.op},
          {"axes", to_json(node.axes)},  {"cuts", cuts},
          {"cost", node.cost},           {"bytes_in", node.bytes_in},
          {"bytes_out", node.bytes_out}, {"memory", node.memory}};
}

ordered_json to_json(const StatedKept& kept) {
  ordered_json json{{"node_number", kept.node}, {"output", kept.output}};
  switch (kept.as) {
    case KeptAs::Kind::made:
      json["as"] = "made";
      break;
    case KeptAs::Kind::read:
      json["as"] = "read";
      json["reader_number"] = kept.reader;
      json["operand"] = kept.operand;
      break;
    case KeptAs::Kind::everywhere:
      json["as"] = "everywhere";
      break;
  }
  if (kept.axes) json["axes"] = to_json(*kept.axes);
  return json;
}

ordered_json to_json(const StatedTransfer& transfer) {
  return {{"from", transfer.from_name},
          {"from_number", transfer.from},
          {"output", transfer.output},
          {"to", transfer.to ? ordered_json(transfer.to_name) : ordered_json(nullptr)},
          {"to_number", transfer.to ? ordered_json(*transfer.to) : ordered_json(nullptr)},
          {"bytes", transfer.bytes},
          {"cost", transfer.cost}};
}

std::string text_of(const ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

/// A list as a member, one element a line.
template <class Element>
std::string lines(const char* name, const std::vector<Element>& elements) {
  std::string text = std::string(",\n  \"") + name + "\": [";
  for (std::size_t i = 0; i < elements.size(); ++i)
    text += (i == 0 ? "\n    " : ",\n    ") + text_of(to_json(elements[i]), -1);
  return text + (elements.empty() ? "]" : "\n  ]");
}

ordered_json head_of(const PlanDocument& document) {
  ordered_json json{{"format", "taso partition plan"}, {"version", 3}};
  json["model"] = {
      {"file", document.model.name}, {"bytes", document.model.bytes}, {"hash", document.model.hash.to_string()}};
  json["input_shapes"] = document.input_shapes;
  json["symbols"] = document.symbols;
  json["topology"] = document.topology;
  const DeviceRates& device = document.mesh.device;
  json["device"] = {{"memory", device.memory}, {"flops", device.flops}, {"memory_bandwidth", device.memory_bandwidth}};
  json["mesh"] = ordered_json::array();
  for (const MeshAxis& axis : document.mesh.axes) json["mesh"].push_back(to_json(axis));
  if (document.mesh.measured())
    json["measured"] = {{"transport", document.mesh.transport}, {"copy", to_json(document.mesh.copy)}};
  json["costs"] = name_of(document.cost);
  json["unit"] = name_of(unit_of(document.cost));
  json["partition"] = document.method == PlanMethod::exact ? "exact" : "recursive";
  json["memory_per_device"] =
      document.memory_per_device ? ordered_json(*document.memory_per_device) : ordered_json(nullptr);
  json["plan"] = to_json(document.sums);
  json["plan"]["lower_bound"] = document.lower_bound;
  json["plan"]["exact"] = document.exact;
  json["plan"]["complete"] = document.complete;
  json["plan"]["stopped"] = document.stopped;
  json["others"] = ordered_json::object();
  for (const auto& [name, other] : document.others)
    json["others"][name] = other.sums ? to_json(*other.sums) : ordered_json{{"missing", other.missing}};
  return json;
}

}  // namespace

std::string to_json(const PlanDocument& document) {
  std::string text = text_of(head_of(document), 2);
  text.erase(text.rfind("\n}"));
  return text + lines("nodes", document.nodes) + lines("kept", document.kept) + lines("transfers", document.transfers) +
         "\n}\n";
}

std::string json_spelling(const std::string& text) {
  return nlohmann::json::parse(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))
      .get<std::string>();
}

}  // namespace taso
