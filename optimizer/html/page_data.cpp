#include "optimizer/html/page_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "optimizer/html/graph_drawing.h"

namespace taso {
namespace {

using nlohmann::json;

/// Longer texts lose their middle.
constexpr std::size_t longest_text = 96;
/// Names of nodes that are told of one application.
constexpr std::size_t most_names = 6;

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

/// The text without its middle, if it is long; whole characters.
std::string shortened(const std::string& text) {
  if (text.size() <= longest_text) return text;
  std::size_t head = longest_text / 2, tail = text.size() - longest_text / 2;
  while (head > 0 && continues_character(text[head])) --head;
  while (tail < text.size() && continues_character(text[tail])) ++tail;
  return text.substr(0, head) + "\u2026" + text.substr(tail);
}

/// An object of empty lists.
json columns_of(std::initializer_list<const char*> names) {
  json columns;
  for (const char* name : names) columns[name] = json::array();
  return columns;
}

/// Four digits.
json short_number(double value) { return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr); }

json short_microseconds(const std::optional<double>& seconds) {
  return seconds ? short_number(*seconds * 1e6) : json(nullptr);
}

/// Texts by numbers.
class Strings {
 public:
  Strings() { number(""); }
  std::size_t number(const std::string& text) {
    const auto [place, fresh] = numbers_.emplace(shortened(text), numbers_.size());
    if (fresh) texts_.push_back(place->first);
    return place->second;
  }
  [[nodiscard]] const json& texts() const { return texts_; }

 private:
  std::unordered_map<std::string, std::size_t> numbers_;
  json texts_ = json::array();
};

std::string types_text(const std::vector<TensorType>& types) {
  std::string text;
  for (const TensorType& type : types)
    text += (text.empty() ? "" : ", ") + (type.known ? to_string(type) : std::string("unknown"));
  return text;
}

std::string name_of(std::int32_t origin, const ReportContext& context) {
  return origin >= 0 && static_cast<std::size_t>(origin) < context.node_names.size()
             ? context.node_names[static_cast<std::size_t>(origin)]
             : "";
}

/// One of the two graphs, drawn.
struct Side {
  explicit Side(const ReportedGraph& graph) : reported(&graph), drawing(draw_graph(*graph.graph)) {
    for (std::size_t i = 0; i < drawing.boxes.size(); ++i) boxes[drawing.boxes[i].node] = i;
  }
  const ReportedGraph* reported;
  GraphDrawing drawing;
  std::unordered_map<NodeId, std::size_t> boxes;    ///< By node.
  std::unordered_map<NodeId, std::size_t> regions;  ///< By node, from 1.
};

json reads_of(const GraphDrawing::Box& box, std::size_t number) {
  if (box.reads.size() == 1) return number - box.reads[0];
  json reads = json::array();
  for (const std::size_t read : box.reads) reads.push_back(number - read);
  return reads;
}

/// The box of the same node in the other graph, from 1. A node that reads something else there is the same.
std::size_t twin_of(NodeId id, const Side& side, const Side& other) {
  const auto place = other.boxes.find(id);
  if (place == other.boxes.end() || side.regions.contains(id) || other.regions.contains(id)) return 0;
  return place->second + 1;
}

json boxes_json(const Side& side, const Side& other, const ReportContext& context, Strings& strings) {
  json columns =
      columns_of({"layer", "left", "reads", "kind", "label", "types", "attributes", "name", "region", "twin"});
  for (std::size_t i = 0; i < side.drawing.boxes.size(); ++i) {
    const GraphDrawing::Box& box = side.drawing.boxes[i];
    const Node& node = side.reported->graph->node(box.node);
    const bool is_input = node.kind == NodeKind::input;
    const auto region = side.regions.find(box.node);
    columns["layer"].push_back(box.layer);
    columns["left"].push_back(box.left);
    columns["reads"].push_back(reads_of(box, i));
    columns["kind"].push_back(is_input ? 0 : node.kind == NodeKind::opaque ? 2 : 1);
    columns["label"].push_back(strings.number(is_input ? node.name : node.op));
    columns["types"].push_back(strings.number(types_text(node.outputs)));
    columns["attributes"].push_back(strings.number(to_string(node.attributes)));
    columns["name"].push_back(strings.number(name_of(node.origin, context)));
    columns["region"].push_back(region == side.regions.end() ? 0 : region->second);
    columns["twin"].push_back(twin_of(box.node, side, other));
  }
  return columns;
}

/// Where a region would be that has no box on this side.
json around_json(const Side& side, const std::vector<ChangedRegion>& regions) {
  std::unordered_set<std::size_t> here;
  for (const auto& [node, region] : side.regions) here.insert(region);
  json all = json::array();
  for (std::size_t i = 0; i < regions.size(); ++i) {
    if (here.contains(i + 1)) continue;
    json one = json::array({i + 1});
    for (const NodeId id : regions[i].around)
      if (const auto box = side.boxes.find(id); box != side.boxes.end()) one.push_back(box->second);
    if (one.size() > 1) all.push_back(std::move(one));
  }
  return all;
}

void add_launches(const Side& side, Strings& strings, json& graph) {
  json launches = columns_of({"box", "kernel", "measured"});
  std::map<json, std::size_t> kernels;
  json list = json::array();
  for (const ProfiledLaunch& launch : side.reported->run.launches) {
    const auto box = side.boxes.find(launch.node);
    if (box == side.boxes.end()) continue;
    const json kernel = {
        strings.number(launch.op),         strings.number(launch.layouts),    strings.number(launch.implementation),
        short_number(launch.flops * 1e-6), short_number(launch.bytes * 1e-6), short_microseconds(launch.predicted)};
    const auto [place, fresh] = kernels.emplace(kernel, kernels.size());
    if (fresh) list.push_back(kernel);
    launches["box"].push_back(box->second);
    launches["kernel"].push_back(place->second);
    launches["measured"].push_back(short_microseconds(launch.measured));
  }
  graph["kernels"] = std::move(list);
  graph["launches"] = std::move(launches);
}

json graph_json(const Side& side, const Side& other, const HtmlReport& report, Strings& strings) {
  json graph;
  graph["boxes"] = boxes_json(side, other, *report.context, strings);
  graph["width"] = side.drawing.width;
  graph["layers"] = side.drawing.layers;
  graph["around"] = around_json(side, report.regions);
  graph["lanes"] = json::array();
  for (std::size_t i = 0; i < side.drawing.boxes.size(); ++i) {
    if (side.drawing.boxes[i].lane.empty()) continue;
    json lane = side.drawing.boxes[i].lane;
    lane.insert(lane.begin(), i);
    graph["lanes"].push_back(std::move(lane));
  }
  graph["outputs"] = json::array();
  for (const Value& output : side.reported->graph->outputs())
    if (const auto box = side.boxes.find(output.node); box != side.boxes.end()) graph["outputs"].push_back(box->second);
  add_launches(side, strings, graph);
  return graph;
}

json applications_json(const HtmlReport& report, Strings& strings) {
  const std::vector<RuleApplication>& applications = report.result->applications;
  std::vector<std::size_t> regions(applications.size(), 0);
  for (std::size_t i = 0; i < report.regions.size(); ++i)
    for (const std::size_t number : report.regions[i].applications) regions.at(number) = i + 1;
  json columns = columns_of({"rule", "place", "names", "region", "before", "after"});
  for (std::size_t i = 0; i < applications.size(); ++i) {
    const RuleApplication& application = applications[i];
    std::string operators;
    for (const std::string& op : application.operators) operators += (operators.empty() ? "" : ", ") + op;
    json names = json::array();
    for (const std::int32_t origin : application.origins) {
      const std::string name = name_of(origin, *report.context);
      if (!name.empty() && names.size() < most_names) names.push_back(strings.number(name));
    }
    columns["rule"].push_back(strings.number(application.rule));
    columns["place"].push_back(strings.number(operators));
    columns["names"].push_back(std::move(names));
    columns["region"].push_back(regions[i]);
    columns["before"].push_back(short_number(application.cost_before));
    columns["after"].push_back(short_number(application.cost_after));
  }
  return columns;
}

}  // namespace

std::string page_data(const HtmlReport& report) {
  Side original(report.original), optimized(report.optimized);
  for (std::size_t i = 0; i < report.regions.size(); ++i) {
    for (const NodeId id : report.regions[i].before) original.regions[id] = i + 1;
    for (const NodeId id : report.regions[i].after) optimized.regions[id] = i + 1;
  }
  Strings strings;
  json data;
  data["regions"] = report.regions.size();
  data["baseline"] = report.result->baseline_applications;
  data["unit"] = tells_costs(*report.result) ? json(cost_unit(report.result->cost_model)) : json(nullptr);
  data["box"] = {GraphDrawing::box_width, GraphDrawing::box_height, GraphDrawing::layer_height};
  data["graphs"] = {graph_json(original, optimized, report, strings), graph_json(optimized, original, report, strings)};
  data["applications"] = applications_json(report, strings);
  data["carried"] = json::array();
  for (const CarriedOperator& carried : report.carried)
    data["carried"].push_back({shortened(carried.op), carried.reason});
  data["strings"] = strings.texts();
  // Names come from files and need not be UTF-8; and nothing in a script element may look like its end.
  std::string text = data.dump(-1, ' ', false, json::error_handler_t::replace);
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 6) text.replace(at, 1, "\\u003c");
  return text;
}

}  // namespace taso
