#include "session/plan_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "optimizer/html/page.h"
#include "session/plan_text.h"
#include "support/byte_size.h"
#include "support/markup.h"

namespace taso {
namespace {

/// An element of a time line.
struct Span {
  bool moves = false;
  double begin = 0, length = 0;
  std::string title;
};

/// What devices do one after the other: costs of a plan are added, so all do the same at a time.
std::vector<Span> spans_of(const DevicePlan& device_plan) {
  const PartitionPlan& plan = device_plan.plan;
  const CostUnit unit = unit_of(device_plan.cost);
  std::vector<Span> spans;
  double now = 0;
  const auto add = [&](bool moves, double length, const std::string& what) {
    if (length <= 0) return;
    spans.push_back({moves, now, length, fmt::format("{}: {}", what, amount_text(length, unit))});
    now += length;
  };
  const std::vector<MovedForNode> moved = moved_by_node(plan);
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const std::string name = planned_name(device_plan, plan.nodes[i].node);
    add(true, moved[i].in.seconds, "to " + name);
    add(false, plan.nodes[i].compute_seconds, name + " " + plan.nodes[i].configuration.to_string());
    add(true, moved[i].out.seconds, "from " + name);
  }
  return spans;
}

std::string time_line(const DevicePlan& plan) {
  constexpr double width = 1200, lane = 26;
  const std::vector<Span> spans = spans_of(plan);
  const double scale = plan.plan.seconds > 0 ? width / plan.plan.seconds : 0;
  std::string text = fmt::format(
      "<figure><figcaption>Time line <small>all devices, {} in all; above computing, below "
      "moving</small></figcaption>\n"
      "<svg class=\"timeline\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"time line of the plan\">\n",
      amount_text(plan.plan.seconds, unit_of(plan.cost)), width, 2 * lane);
  for (const Span& span : spans)
    text += fmt::format(
        "<rect class=\"{}\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\"><title>{}</title></rect>\n",
        span.moves ? "moving" : "computing", span.begin * scale, span.moves ? lane : 0.0,
        std::max(span.length * scale, 0.3), lane - 2, escape_markup(span.title));
  return text + "</svg></figure>\n";
}

/// The axes of a tensor along which devices hold different ranges.
std::vector<std::size_t> cut_axes(const Placement& placement) {
  std::vector<std::size_t> axes;
  for (std::size_t axis = 0; !placement.boxes.empty() && axis < placement.boxes[0].size(); ++axis)
    if (std::any_of(placement.boxes.begin(), placement.boxes.end(),
                    [&](const IndexBox& box) { return box[axis] != placement.boxes[0][axis]; }))
      axes.push_back(axis);
  return axes;
}

std::string box_text(const IndexBox& box) {
  std::vector<std::string> ranges;
  ranges.reserve(box.size());
  for (const IndexRange& range : box) ranges.push_back(fmt::format("{}:{}", range.begin, range.end));
  return fmt::format("[{}]", fmt::join(ranges, ", "));
}

/// A tensor as a rectangle, in which each part that some devices hold has its place along the first two axes that are
/// cut (from top to bottom, from left to right), and its colour; what is partial is hatched by its border.
std::string tensor_drawing(const Placement& placement, const Shape& shape) {
  constexpr double width = 84, height = 48;
  const std::vector<std::size_t> axes = cut_axes(placement);
  std::map<IndexBox, std::vector<std::size_t>> holders;
  for (std::size_t device = 0; device < placement.boxes.size(); ++device)
    holders[placement.boxes[device]].push_back(device);
  std::string text = fmt::format("<svg class=\"tensor{}\" viewBox=\"-1 -1 {} {}\" role=\"img\">",
                                 placement.partial.empty() ? "" : " partial", width + 2, height + 2);
  std::size_t number = 0;
  for (const auto& [box, devices] : holders) {
    const auto span = [&](std::size_t place, double length) {
      if (place >= axes.size()) return std::pair(0.0, length);
      const IndexRange& range = box[axes[place]];
      const double unit = length / static_cast<double>(std::max<std::int64_t>(shape[axes[place]], 1));
      return std::pair(unit * static_cast<double>(range.begin), unit * static_cast<double>(range.size()));
    };
    const auto [top, tall] = span(0, height);
    const auto [left, wide] = span(1, width);
    text += fmt::format(
        "<rect style=\"fill:hsl({} var(--tint))\" x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\"><title>"
        "{} {} of {}{}</title></rect>",
        360 * number++ / holders.size(), left, top, wide, tall, devices.size() == 1 ? "device" : "devices",
        fmt::join(devices, ", "), box_text(box),
        placement.partial.empty() ? "" : fmt::format(", partial ({})", placement.reducer));
  }
  return text + "</svg>";
}

std::string html_table_of_tensors(const DevicePlan& device_plan) {
  std::string text =
      "<table class=\"tensors\"><tr><th>node</th><th>operator</th><th>mesh axes</th><th>made</th><th>compute</th>"
      "<th>moving</th><th>bytes in</th><th>bytes out</th><th>memory</th></tr>\n";
  const CostUnit unit = unit_of(device_plan.cost);
  const std::vector<MovedForNode> moved = moved_by_node(device_plan.plan);
  for (std::size_t i = 0; i < device_plan.plan.nodes.size(); ++i) {
    const PlannedNode& planned = device_plan.plan.nodes[i];
    const Node& node = device_plan.graph.node(planned.node);
    std::string drawings;
    for (std::size_t port = 0; port < node.outputs.size(); ++port)
      if (node.outputs[port].known)
        drawings += tensor_drawing(planned.configuration.makes[port], node.outputs[port].shape);
    text += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.0f}</td><td>{:.0f}</td><td>{}"
        "</td></tr>\n",
        escape_markup(planned_name(device_plan, planned.node)), escape_markup(node.op),
        escape_markup(planned.configuration.to_string()), drawings, amount_text(planned.compute_seconds, unit),
        amount_text(moved[i].in.seconds + moved[i].out.seconds, unit), moved[i].in.bytes, moved[i].out.bytes,
        byte_size_text(planned.memory, true));
  }
  return text + "</table>\n";
}

std::string html_table_of_plans(const DevicePlan& device_plan) {
  const CostUnit unit = unit_of(device_plan.cost);
  std::string text =
      "<table><tr><th>plan</th><th>cost</th><th>compute</th><th>moving</th><th>bytes moved</th><th>weights</th>"
      "<th>memory</th></tr>\n";
  for (const NamedPlan& one : all_plans(device_plan))
    text +=
        one.plan == nullptr
            ? fmt::format("<tr><td>{}</td><td colspan=\"6\">none: {}</td></tr>\n", one.name, escape_markup(one.missing))
            : fmt::format(
                  "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.0f}</td><td>{}</td><td>{}{}</td></tr>\n",
                  one.name, amount_text(one.plan->seconds, unit), amount_text(one.plan->compute_seconds, unit),
                  amount_text(one.plan->transfer_seconds, unit), one.plan->transfer_bytes,
                  byte_size_text(one.plan->weight_bytes, true), byte_size_text(one.plan->memory, true),
                  device_plan.memory && one.plan->memory > *device_plan.memory ? ", does not fit" : "");
  return text + "</table>\n";
}

}  // namespace

std::string plan_section(const DevicePlan& plan) {
  return fmt::format("<section><h2>Plan for {} devices</h2>\n<p class=\"facts\">mesh {} of {}; costs by {}. {}</p>\n",
                     plan.mesh.devices(), plan.mesh.to_string(), escape_markup(plan.topology),
                     escape_markup(source_of(plan.cost, plan.mesh)),
                     escape_markup(plan_quality(plan) + search_text(plan))) +
         html_table_of_plans(plan) + time_line(plan) +
         "<details><summary>Operators and their tensors, with the parts that devices hold</summary>\n" +
         html_table_of_tensors(plan) + "</details></section>\n";
}

std::string plan_page(const DevicePlan& plan, const std::string& model) {
  return page_begin(model) + fmt::format("<header><h1>{}</h1></header>\n<main>\n", escape_markup(model)) +
         plan_section(plan) + "</main>\n</body></html>\n";
}

}  // namespace taso
