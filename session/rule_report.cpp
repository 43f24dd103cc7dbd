#include "session/rule_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "graph/near_miss.h"
#include "graph/rewrite.h"
#include "onnx_io/original_names.h"
#include "optimizer/baseline.h"
#include "session/rule_sets.h"
#include "session/sized_model.h"
#include "support/nearest_word.h"

namespace taso {
namespace {

/// What people call values of a model's graph.
class ValueNames {
 public:
  ValueNames(const Graph& graph, const Model& model) : graph_(graph), model_(model) {}

  [[nodiscard]] std::string operator()(Value value) const {
    const Node& node = graph_.node(value.node);
    switch (node.kind) {
      case NodeKind::input:
        return fmt::format("the input '{}'", node.name);
      case NodeKind::constant:
        return fmt::format("a constant {}", to_string(node.outputs.at(value.port)));
      case NodeKind::op:
        return node.op + original(node);
      case NodeKind::opaque:
        return fmt::format("the carried {}{}", node.op, original(node));
    }
    return "?";
  }

 private:
  [[nodiscard]] std::string original(const Node& node) const {
    const std::string name = original_name(node, model_.original_nodes());
    return name.empty() ? "" : " " + name;
  }

  const Graph& graph_;
  const Model& model_;
};

Expected<const Substitution*> find_rule(const std::vector<Substitution>& rules, const std::string& name) {
  std::vector<std::string> names;
  for (const Substitution& rule : rules) {
    if (rule.name == name) return &rule;
    names.push_back(rule.name);
  }
  const std::string nearest = nearest_word(name, names);
  return Error{ErrorCode::usage,
               fmt::format("--why {}: there is no rule of this name{}", name,
                           nearest.empty() ? "" : "; did you mean " + nearest + "?"),
               {}};
}

/// Why a rule is not among those that the options allow.
std::string why_unused(const Substitution& rule, const OptimizeOptions& options) {
  const auto allowed = [&](bool for_baseline) {
    return !allowed_rules({rule}, options.rounding, for_baseline).empty();
  };
  const NumericClass numeric_class = rule.numeric_class.value_or(NumericClass::reassociation);
  if (!allowed(true))
    return fmt::format("its class is {}, which --fp {} leaves out", to_string(numeric_class),
                       to_string(options.rounding));
  if (!allowed(false))
    return fmt::format("its class is {}, which --fp {} leaves to the baseline", to_string(numeric_class),
                       to_string(options.rounding));
  if (rule.source.nodes.size() > options.max_rule_size)
    return fmt::format("it has {} operators, --max-rule-size allows {}", rule.source.nodes.size(),
                       options.max_rule_size);
  return "";
}

bool has_f16(const Graph& graph) {
  const std::vector<NodeId> order = graph.topological_order();
  return std::any_of(order.begin(), order.end(), [&](NodeId id) {
    const std::vector<TensorType>& outputs = graph.node(id).outputs;
    return std::any_of(outputs.begin(), outputs.end(),
                       [](const TensorType& type) { return type.element == ElementType::f16; });
  });
}

}  // namespace

Expected<RuleReport> report_on_rule(const SessionOptions& options, const std::string& name, std::size_t most,
                                    const OperatorRegistry& registry, const MessageSink& message) {
  TASO_ASSIGN(const RuleSets rules, load_rule_sets(options.rules, registry, message));
  const std::vector<Substitution> all = rules.all();
  TASO_ASSIGN(const Substitution* const rule, find_rule(all, name));
  TASO_ASSIGN(const SizedModel sized,
              SizedModel::load(options.model, registry, import_options(options), options.assumed, options.ranges));
  const Model& model = sized.model();
  if (message)
    for (const std::string& warning : model.warnings()) message(MessageLevel::warning, warning);
  Graph graph = model.graph();
  normalize(graph, registry);

  RuleReport report;
  report.model = options.model;
  report.rule = name;
  report.unused = why_unused(*rule, options.optimize);
  report.not_in_f16 = has_f16(graph) && may_leave_f16(*rule, options.optimize.rounding);
  const ValueNames names(graph, model);
  RuleOccurrences found = find_occurrences(graph, *rule, registry, names);
  report.operators = found.operators;
  report.matches = found.matches;
  report.absent = std::move(found.absent);
  report.near_misses = found.near_misses.size();
  for (NearMiss& miss : found.near_misses) {
    if (report.best.size() == most) break;
    report.best.push_back({{}, std::move(miss.obstacle)});
    for (const NodeId id : miss.nodes) report.best.back().nodes.push_back(names({id, 0}));
  }
  const RuleIndex of_baseline(allowed_rules(rules.for_baseline().rules(), options.optimize.rounding, true), registry);
  const RewriteFilter writable = [&](const RewriteResult& rewrite) {
    std::vector<NodeId> nodes = rewrite.added;
    nodes.insert(nodes.end(), rewrite.changed.begin(), rewrite.changed.end());
    return model.can_save(rewrite.graph, nodes);
  };
  TASO_ASSIGN(const Baseline baseline, make_baseline(graph, of_baseline, registry, writable));
  report.baseline_matches =
      find_occurrences(baseline.graph, *rule, registry, ValueNames(baseline.graph, model)).matches;
  return report;
}

std::string to_text(const RuleReport& report) {
  const auto times = [](std::size_t count) {
    return count == 1 ? std::string("once") : fmt::format("{} times", count);
  };
  const auto matches = [&](std::size_t count) {
    return count == 0 ? std::string("does not match") : "matches " + times(count);
  };
  std::string text = fmt::format("{} {} in {} as imported; in the baseline, where the search starts, it {}\n",
                                 report.rule, matches(report.matches), report.model, matches(report.baseline_matches));
  if (!report.unused.empty()) text += fmt::format("it is not used in the search: {}\n", report.unused);
  if (report.unused.empty() && report.not_in_f16)
    text += "at values in f16, whose range it may leave, it is used with --fp fast only\n";
  for (const std::string& op : report.absent) text += fmt::format("the model has no {}\n", op);
  if (report.near_misses == 0) return text;
  text += report.near_misses > report.best.size()
              ? fmt::format("the {} nearest of {} other places:\n", report.best.size(), report.near_misses)
              : "other places, the nearest first:\n";
  for (const RuleMiss& miss : report.best)
    text += fmt::format("  {} of {} operators ({}): {}\n", miss.nodes.size(), report.operators,
                        fmt::join(miss.nodes, ", "), miss.obstacle);
  return text;
}

std::string to_json(const RuleReport& report) {
  nlohmann::ordered_json json{{"model", report.model},
                              {"rule", report.rule},
                              {"operators", report.operators},
                              {"matches", report.matches},
                              {"baseline_matches", report.baseline_matches},
                              {"unused", report.unused},
                              {"not_in_f16", report.not_in_f16},
                              {"absent", report.absent},
                              {"near_misses", report.near_misses},
                              {"best", nlohmann::ordered_json::array()}};
  for (const RuleMiss& miss : report.best) json["best"].push_back({{"nodes", miss.nodes}, {"obstacle", miss.obstacle}});
  return json.dump(2) + "\n";
}

}  // namespace taso
