#include "session/plan_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "support/byte_size.h"

namespace taso {
namespace {

bool repeats(const NodeConfiguration& configuration) {
  return std::all_of(configuration.axes.begin(), configuration.axes.end(),
                     [](const AxisUse& use) { return use.kind == AxisUse::Kind::repeat; });
}

std::string table_of_nodes(const DevicePlan& device_plan) {
  const PartitionPlan& plan = device_plan.plan;
  const CostUnit unit = unit_of(device_plan.cost);
  std::string text = fmt::format("{:<32} {:<20} {:<28} {:>12} {:>12} {:>12} {:>12} {:>10}\n", "node", "operator",
                                 "mesh axes", "compute", "moving", "bytes in", "bytes out", "memory");
  const std::vector<MovedForNode> moved = moved_by_node(plan);
  std::size_t left_out = 0;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlannedNode& node = plan.nodes[i];
    const auto& [in, out] = moved[i];
    if (repeats(node.configuration) && in.bytes == 0 && out.bytes == 0) {
      ++left_out;
      continue;
    }
    text += fmt::format(
        "{:<32} {:<20} {:<28} {:>12} {:>12} {:>12.0f} {:>12.0f} {:>10}\n", planned_name(device_plan, node.node),
        device_plan.graph.node(node.node).op, node.configuration.to_string(), amount_text(node.compute_seconds, unit),
        amount_text(in.seconds + out.seconds, unit), in.bytes, out.bytes, byte_size_text(node.memory, true));
  }
  if (left_out > 0) text += fmt::format("{} more are repeated on all devices, and nothing moves for them\n", left_out);
  return text;
}

std::string table_of_plans(const DevicePlan& device_plan) {
  const CostUnit unit = unit_of(device_plan.cost);
  const bool steps = device_plan.plan.step_seconds.has_value();
  std::string text =
      fmt::format("\n{:<18} {:>12} {:>12} {:>12} {:>12} {:>12} {:>10}{}\n", "plan", "cost", "compute", "moving",
                  "bytes moved", "weights", "memory", steps ? fmt::format(" {:>12}", "step") : "");
  for (const NamedPlan& one : all_plans(device_plan)) {
    if (one.plan == nullptr) {
      text += fmt::format("{:<18} none: {}\n", one.name, one.missing);
      continue;
    }
    const bool fits = !device_plan.memory || one.plan->memory <= *device_plan.memory;
    const std::string step = !steps ? ""
                             : !one.plan->step_seconds
                                 ? fmt::format(" {:>12}", "")
                                 : fmt::format(" {:>12}", amount_text(*one.plan->step_seconds, unit));
    text += fmt::format("{:<18} {:>12} {:>12} {:>12} {:>12.0f} {:>12} {:>10}{}{}\n", one.name,
                        amount_text(one.plan->seconds, unit), amount_text(one.plan->compute_seconds, unit),
                        amount_text(one.plan->transfer_seconds, unit), one.plan->transfer_bytes,
                        byte_size_text(one.plan->weight_bytes, true), byte_size_text(one.plan->memory, true), step,
                        fits ? "" : ", does not fit");
  }
  return text;
}

/// "0.12 us more (1.5 %)".
std::string more(double cost, double than, CostUnit unit) {
  return fmt::format("{} {} ({:.3g} %)", amount_text(std::abs(cost - than), unit), cost < than ? "less" : "more",
                     than > 0 ? 100 * std::abs(cost - than) / than : 0.0);
}

/// What the exact plan does otherwise.
std::string other_uses(const DevicePlan& device_plan) {
  if (!device_plan.exact) return "";
  std::string text;
  std::map<NodeId, const NodeConfiguration*> exact;
  for (const PlannedNode& node : device_plan.exact->nodes) exact[node.node] = &node.configuration;
  for (const PlannedNode& node : device_plan.plan.nodes)
    if (const NodeConfiguration& other = *exact.at(node.node); other.axes != node.configuration.axes)
      text += fmt::format("{}: {}; all axes at once: {}\n", planned_name(device_plan, node.node),
                          node.configuration.to_string(), other.to_string());
  return text.empty() ? "the plan of all axes at once cuts every operator as this one does\n" : text;
}

}  // namespace

std::string amount_text(double amount, CostUnit unit) {
  switch (unit) {
    case CostUnit::seconds:
      break;
    case CostUnit::flops:
      return fmt::format("{:.4g} MFLOP", amount * 1e-6);
    case CostUnit::bytes:
      return fmt::format("{:.4g} MB", amount * 1e-6);
  }
  return amount < 1e-3 ? fmt::format("{:.2f} us", amount * 1e6) : fmt::format("{:.3f} ms", amount * 1e3);
}

std::string planned_name(const DevicePlan& plan, NodeId id) { return planned_name(plan.graph, plan.node_names, id); }

std::string_view name_of_unit(CostUnit unit) {
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

std::vector<NamedPlan> all_plans(const DevicePlan& plan) {
  std::vector<NamedPlan> list{{"this plan", &plan.plan, {}}};
  if (plan.exact) list.push_back({plan.is_chosen() ? "least cost" : "all axes at once", &*plan.exact, {}});
  for (const OtherPlan& other : plan.others)
    list.push_back({other.name, other.plan ? &*other.plan : nullptr, other.missing});
  return list;
}

std::string plan_quality(const DevicePlan& device_plan) {
  const PartitionPlan& plan = device_plan.plan;
  const CostUnit unit = unit_of(device_plan.cost);
  std::string text;
  if (device_plan.is_chosen() && device_plan.taken_by == DevicePlan::TakenBy::time)
    text += fmt::format("run whole, the plan \"{}\" was faster than that of least cost: this is it\n",
                        device_plan.taken_from);
  else if (device_plan.is_chosen())
    text += fmt::format("this is the plan \"{}\", as was asked for\n", device_plan.taken_from);
  else if (!device_plan.taken_from.empty())
    text += fmt::format("the search for a plan that fits found none that is better than this one, the plan \"{}\"\n",
                        device_plan.taken_from);
  if (plan.stopped) text += "planning ended early: there may be better plans\n";
  if (!plan.complete) text += "not every way to use the mesh was looked at: some operators have too many\n";
  if (!device_plan.is_chosen() && device_plan.exact && device_plan.exact->seconds > 0)
    text += fmt::format("decided axis by axis: {:.3f} times what the plan of all axes at once takes\n",
                        plan.seconds / device_plan.exact->seconds);
  const std::string fitting =
      device_plan.memory ? fmt::format(" that fits {} per device", byte_size_text(*device_plan.memory, false)) : "";
  if (plan.exact)
    return text + fmt::format("no plan of these {}{} takes less\n", plan.complete ? "strategies" : "ways", fitting);
  if (plan.lower_bound > 0)
    text += fmt::format("no plan{} takes less than {}, {:.3g} % less than this one\n", fitting,
                        amount_text(plan.lower_bound, unit), 100 * (1 - plan.lower_bound / plan.seconds));
  return text;
}

std::optional<double> cost_of_repeating(const DevicePlan& plan) {
  for (const OtherPlan& other : plan.others)
    if (other.name == "all repeated" && other.plan) return other.plan->seconds;
  return std::nullopt;
}

namespace {

/// "a x 2, b"
std::string counted_rules(const std::map<std::string, int>& rules, int sign) {
  std::string text;
  for (const auto& [rule, count] : rules)
    if (count * sign > 0)
      text += (text.empty() ? "" : ", ") + rule + (count * sign > 1 ? fmt::format(" x {}", count * sign) : "");
  return text;
}

std::string difference_text(const PlanSearchReport& report) {
  if (report.rules.empty()) return "";
  const std::string more = counted_rules(report.rules, 1), fewer = counted_rules(report.rules, -1);
  std::string text;
  if (!more.empty()) text += "rules beyond those of the graph for one device: " + more + "\n";
  if (!fewer.empty()) text += "rules of the graph for one device that are left out: " + fewer + "\n";
  return text;
}

std::string joint_text(const PlanSearchReport& report, CostUnit unit) {
  std::string text = report.sequential
                         ? "the graph that is best on one device: plan of " + amount_text(*report.sequential, unit)
                         : std::string("the graph that is best on one device: no plan fits");
  if (report.partition) text += "; the model as it is: " + amount_text(*report.partition, unit);
  text += fmt::format("; {} graphs were looked at{}\n", report.graphs, report.stopped ? ", then time was up" : "");
  if (report.sequential && report.cost < *report.sequential)
    text += fmt::format("searched together: {:.3g} % less\n", 100 * (1 - report.cost / *report.sequential));
  else if (report.sequential)
    text += "searched together: no other graph has a cheaper plan\n";
  return text + difference_text(report);
}

}  // namespace

namespace {

/// What ran whole, and whether one device is faster.
std::string timing_text(const PlanSearchReport& report) {
  if (!report.not_timed.empty()) return "plans were not run whole: " + report.not_timed + "\n";
  if (!report.timed) return "";
  const PlanTimes& times = *report.timed;
  const auto time = [](double seconds) { return amount_text(seconds, CostUnit::seconds); };
  std::string text = fmt::format(
      "\nrun whole on this machine, ranks as threads of one process{}\n{:<44} {:>12} {:>12}\n",
      times.date == 0 ? "" : fmt::format(" (recorded on {})", date_text(times.date)), "", "predicted", "measured");
  for (std::size_t i = 0; i < times.plans.size(); ++i)
    text += fmt::format("{:<44} {:>12} {:>12}\n", times.plans[i].name + (i == times.chosen ? " (this plan)" : ""),
                        time(times.plans[i].predicted), time(times.plans[i].seconds));
  for (const PlanTimes::OneDevice& one : times.one_device)
    text += fmt::format("{:<44} {:>12} {:>12}\n",
                        fmt::format("one device, {} thread{}", one.threads, one.threads == 1 ? "" : "s"), "",
                        time(one.seconds));
  text +=
      fmt::format("differences below {:.1f} % are noise: so much may two runs of one plan differ\n", times.noise * 100);
  const double plan = times.plans[times.chosen].seconds;
  const auto best = std::min_element(times.one_device.begin(), times.one_device.end(),
                                     [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
  const std::string one = fmt::format("one device with {} thread{}", best->threads, best->threads == 1 ? "" : "s");
  if (best->seconds < plan * (1 - times.noise))
    return text + fmt::format("{} is faster than this plan: {}, the plan {}\n", one, time(best->seconds), time(plan));
  if (best->seconds <= plan * (1 + times.noise))
    return text + fmt::format("{} takes as long as this plan, as far as the noise lets one see\n", one);
  return text + fmt::format("this plan is {:.3g} times as fast as {}\n", best->seconds / plan, one);
}

/// The same by costs.
std::string one_device_text(const PlanSearchReport& report, CostUnit unit) {
  const std::string one = amount_text(*report.one_device, unit);
  if (report.cost < *report.one_device * (1 - 1e-9))
    return fmt::format("one device: {} by the same costs, {:.3g} times the plan\n", one,
                       *report.one_device / report.cost);
  return fmt::format("one device is {}: {} by the same costs\n",
                     report.cost > *report.one_device * (1 + 1e-9) ? "faster than this plan" : "as fast", one);
}

}  // namespace

std::string search_text(const DevicePlan& plan) {
  if (!plan.searched) return "";
  const PlanSearchReport& report = *plan.searched;
  const CostUnit unit = unit_of(plan.cost);
  std::string text = plan.searched->search == to_string(PlanSearch::joint) ? joint_text(report, unit) : "";
  if (report.one_device && *report.one_device > 0 && plan.mesh.devices() > 1) text += one_device_text(report, unit);
  return text + timing_text(report);
}

std::string plan_text(const DevicePlan& plan) {
  return fmt::format("\nplan for {} {}, mesh {} of {}; costs by {}{}\n", plan.mesh.devices(),
                     plan.mesh.devices() == 1 ? "device" : "devices", plan.mesh.to_string(), plan.topology,
                     source_of(plan.cost, plan.mesh), plan.sizes.empty() ? "" : "; for " + to_string(plan.sizes)) +
         table_of_nodes(plan) + table_of_plans(plan) + plan_quality(plan) + search_text(plan);
}

std::string plan_reasons(const DevicePlan& plan) {
  std::string text = "\nwhy it is cut so\n";
  if (plan.method == PlanMethod::recursive) return text + other_uses(plan);
  std::map<NodeId, const NodeConfiguration*> uses;
  for (const PlannedNode& node : plan.plan.nodes) uses[node.node] = &node.configuration;
  const CostUnit unit = unit_of(plan.cost);
  for (const PlanAlternative& other : plan.alternatives) {
    text += fmt::format("{}{}: {}; ", planned_name(plan, other.node),
                        other.equal > 1 ? fmt::format(" and {} like it", other.equal - 1) : "",
                        uses.at(other.node)->to_string());
    text += !other.plan ? std::string("there is no other way\n")
                        : fmt::format("next best {}: the plan would take {}{}\n", other.configuration.to_string(),
                                      more(other.plan->seconds, plan.plan.seconds, unit),
                                      plan.memory && other.plan->memory > *plan.memory ? ", and does not fit" : "");
  }
  if (!plan.taken_from.empty())
    return text + fmt::format("this is the plan \"{}\": what else {} was not looked for\n", plan.taken_from,
                              plan.is_chosen() ? "there is" : "fits");
  if (plan.alternatives.empty()) text += plan.plan.stopped ? "there was no time to find out\n" : "nothing is cut\n";
  return text;
}

}  // namespace taso
