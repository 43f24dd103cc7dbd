#include "partition/plan_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "partition/plan_statement.h"

namespace taso {
namespace {

constexpr double cost_tolerance = 1e-9, byte_tolerance = 1e-12;
/// Bounds are sums in another order, and of prices of memory.
constexpr double exact_tolerance = 1e-6;

/// Compares figures one by one, and remembers the first that is wrong.
class FigureCheck {
 public:
  FigureCheck(const PlanDocument& document, const PartitionPlan& plan) : document_(document), plan_(plan) {}

  Expected<std::size_t> run() {
    for (std::size_t i = 0; i < plan_.nodes.size(); ++i) numbers_[plan_.nodes[i].node] = i;
    check_nodes();
    check_transfers();
    check_sums();
    check_others();
    if (error_) return *error_;
    return compared_;
  }

 private:
  void refuse(const std::string& place, int line, const std::string& message) {
    if (!error_) error_ = Error{ErrorCode::not_proved, place + ": " + message, {document_.file, line}};
  }

  void compare(const std::string& place, int line, double stated, double counted, double tolerance) {
    ++compared_;
    const double most = std::max(std::abs(stated), std::abs(counted));
    if (std::abs(stated - counted) <= tolerance * most) return;
    refuse(place, line, fmt::format("{} is stated, but it is {}", stated, counted));
  }

  void check_nodes() {
    const std::vector<MovedForNode> moved = moved_by_node(plan_);
    for (std::size_t i = 0; i < plan_.nodes.size() && !error_; ++i) {
      const StatedNode& stated = document_.nodes[i];
      const std::string place = fmt::format("nodes[{}].", i);
      if (document_.cost != PlanCost::time)
        compare(place + "cost", stated.line, stated.cost, plan_.nodes[i].compute_seconds, cost_tolerance);
      compare(place + "bytes_in", stated.line, stated.bytes_in, moved[i].in.bytes, byte_tolerance);
      compare(place + "bytes_out", stated.line, stated.bytes_out, moved[i].out.bytes, byte_tolerance);
      compare(place + "memory", stated.line, stated.memory, plan_.nodes[i].memory, byte_tolerance);
    }
  }

  [[nodiscard]] std::string described(std::size_t from, std::uint32_t output, std::optional<std::size_t> to) const {
    return fmt::format("output {} of node {} to {}", output, from,
                       to ? fmt::format("node {}", *to) : std::string("where it is kept"));
  }

  void check_transfers() {
    for (std::size_t i = 0; i < std::max(plan_.transfers.size(), document_.transfers.size()) && !error_; ++i) {
      const std::string place = fmt::format("transfers[{}]", i);
      std::string counted = "nothing else moves";
      if (i < plan_.transfers.size()) {
        const PlannedTransfer& one = plan_.transfers[i];
        counted = described(numbers_.at(one.value.node), one.value.port,
                            one.reader ? std::optional(numbers_.at(*one.reader)) : std::nullopt);
      }
      if (i >= document_.transfers.size())
        return refuse("transfers", 0, fmt::format("{} are listed, but {} moves, too", i, counted));
      const StatedTransfer& stated = document_.transfers[i];
      const std::string said = described(stated.from, stated.output, stated.to);
      if (said != counted)
        return refuse(place, stated.line,
                      i < plan_.transfers.size() ? fmt::format("{}, but what moves next is {}", said, counted)
                                                 : fmt::format("{}, but {}", said, counted));
      const Transfer& moved = plan_.transfers[i].transfer;
      name(place + ".from", stated.line, stated.from_name, stated.from);
      if (stated.to) name(place + ".to", stated.line, stated.to_name, *stated.to);
      compare(place + ".bytes", stated.line, stated.bytes, moved.bytes, byte_tolerance);
      compare(place + ".cost", stated.line, stated.cost, moved.seconds, cost_tolerance);
    }
  }

  /// The name of a node, as the list of nodes has it, which is that of the model.
  void name(const std::string& place, int line, const std::string& stated, std::size_t number) {
    ++compared_;
    if (stated != document_.nodes[number].name)
      refuse(place, line, fmt::format("'{}', but node {} is '{}'", stated, number, document_.nodes[number].name));
  }

  void check_sums() {
    const StatedSums& stated = document_.sums;
    compare("plan.compute", 0, stated.compute, plan_.compute_seconds, cost_tolerance);
    compare("plan.transfer", 0, stated.transfer, plan_.transfer_seconds, cost_tolerance);
    compare("plan.cost", 0, stated.cost, plan_.seconds, cost_tolerance);
    compare("plan.transfer_bytes", 0, stated.transfer_bytes, plan_.transfer_bytes, byte_tolerance);
    compare("plan.weight_bytes", 0, stated.weight_bytes, plan_.weight_bytes, byte_tolerance);
    compare("plan.memory", 0, stated.memory, plan_.memory, byte_tolerance);
    ++compared_;
    if (document_.lower_bound > stated.cost * (1 + cost_tolerance))
      refuse("plan.lower_bound", 0, fmt::format("{}, but this plan costs {}", document_.lower_bound, stated.cost));
    ++compared_;
    if (document_.exact && document_.lower_bound < stated.cost * (1 - exact_tolerance))
      refuse("plan.exact", 0,
             fmt::format("no plan is said to cost less than {}, but only that none costs less than {}", stated.cost,
                         document_.lower_bound));
    if (!document_.memory_per_device) return;
    ++compared_;
    if (stated.memory > *document_.memory_per_device)
      refuse("memory_per_device", 0,
             fmt::format("{}, but the plan takes {}", *document_.memory_per_device, stated.memory));
  }

  void check_others() {
    for (const auto& [other, stated] : document_.others)
      if (stated.sums)
        compare(fmt::format("others.\"{}\".cost", other), 0, stated.sums->cost,
                stated.sums->compute + stated.sums->transfer, cost_tolerance);
  }

  const PlanDocument& document_;
  const PartitionPlan& plan_;
  std::map<NodeId, std::size_t> numbers_;
  std::size_t compared_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Expected<std::size_t> check_figures(const PlanDocument& document, const PartitionPlan& plan) {
  return FigureCheck(document, plan).run();
}

std::vector<std::string> measured_figures(const PlanDocument& document) {
  std::vector<std::string> figures;
  if (document.cost == PlanCost::time)
    figures.push_back(fmt::format("what {} operators cost, by times of kernels", document.nodes.size()));
  if (document.mesh.measured())
    figures.push_back(
        fmt::format("the times of messages ({}) by which transfers are counted", document.mesh.transport));
  std::size_t steps = document.sums.step ? 1 : 0;
  for (const auto& [name, other] : document.others) steps += other.sums && other.sums->step ? 1 : 0;
  if (steps > 0)
    figures.push_back(fmt::format("the seconds of a step ({}), by times of kernels and messages",
                                  steps == 1 ? std::string("of this plan") : fmt::format("of {} plans", steps)));
  return figures;
}

Status check_model_of_plan(const PlanDocument& document, const std::string& model) {
  TASO_ASSIGN(const FileIdentity found, identify_file(model));
  const FileIdentity& named = document.model;
  const auto other = [&](const std::string& what) {
    return bad_input(fmt::format("not the model of the plan {}: {}", document.file, what), {model});
  };
  if (json_spelling(found.name) != named.name) return other(fmt::format("that is called '{}'", named.name));
  if (found.bytes != named.bytes) return other(fmt::format("that has {} bytes, this one {}", named.bytes, found.bytes));
  if (found.hash != named.hash)
    return other(fmt::format("that has the hash {}, this one {}", named.hash.to_string(), found.hash.to_string()));
  return {};
}

}  // namespace taso
