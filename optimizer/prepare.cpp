#include "optimizer/prepare.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include "optimizer/baseline.h"

namespace taso {
namespace {

/// The rules of the search: those that may be used and are not too large.
std::vector<Substitution> rules_for_search(const RuleIndex& rules, const OptimizeOptions& options) {
  std::vector<Substitution> allowed = allowed_rules(rules.rules(), options.rounding, false);
  std::erase_if(allowed, [&](const Substitution& r) { return r.source.nodes.size() > options.max_rule_size; });
  return allowed;
}

bool makes_f16(const Graph& graph, const Match& match) {
  return std::any_of(match.nodes.begin(), match.nodes.end(), [&](NodeId id) {
    const std::vector<TensorType>& outputs = graph.node(id).outputs;
    return std::any_of(outputs.begin(), outputs.end(),
                       [](const TensorType& type) { return type.element == ElementType::f16; });
  });
}

/// Whether the target multiplies or divides by a matched number that takes many f16 out of the normal range: weights of
/// 0.002 stay in it when they are scaled by 1 / 32.
bool scales_beyond_f16(const Substitution& rule, const Match& match) {
  constexpr double most = 32;
  return std::any_of(rule.target.nodes.begin(), rule.target.nodes.end(), [&](const PatternNode& node) {
    if (node.op != "fill") return false;
    return std::any_of(node.attributes.begin(), node.attributes.end(), [&](const auto& attribute) {
      if (attribute.second.kind != AttributeExpression::Kind::variable) return false;
      const std::optional<AttributeValue>& value = match.attributes[attribute.second.index];
      const double* number = value ? std::get_if<double>(&*value) : nullptr;
      return number != nullptr && *number != 0 && (std::abs(*number) > most || std::abs(*number) < 1 / most);
    });
  });
}

/// The baseline of a graph, made again as long as a step of it is newly refused.
Expected<Baseline> baseline_at_all_sizes(const Graph& original, const RuleIndex& rules,
                                         const OperatorRegistry& registry, const OptimizeOptions& options,
                                         std::vector<std::string>& notes) {
  using AtAllSizes = OptimizeOptions::AtAllSizes;
  const RuleIndex allowed(allowed_rules(rules.rules(), options.rounding, true), rules.catalog());
  const MatchFilter applicable = baseline_filter(options);
  for (int round = 0; round < most_rounds; ++round) {
    TASO_ASSIGN(Baseline baseline,
                make_baseline(original, allowed, registry, options.writable, options.search.stop, applicable));
    const AtAllSizes holds = at_all_sizes(baseline.applications, options);
    if (holds == AtAllSizes::holds) return baseline;
    if (holds == AtAllSizes::fails) break;
  }
  notes.emplace_back("the baseline is the original: what makes it does not hold at all sizes");
  return Baseline{original, {}};
}

}  // namespace

const char* to_string(Rounding rounding) {
  switch (rounding) {
    case Rounding::exact:
      return "exact";
    case Rounding::reassoc:
      return "reassoc";
    case Rounding::fast:
      return "fast";
  }
  return "?";
}

std::vector<Substitution> allowed_rules(const std::vector<Substitution>& rules, Rounding rounding, bool for_baseline) {
  std::vector<Substitution> allowed;
  for (const Substitution& rule : rules) {
    const NumericClass numeric_class = rule.numeric_class.value_or(NumericClass::reassociation);
    const bool permitted =
        rounding == Rounding::fast || numeric_class == NumericClass::exact ||
        (rounding == Rounding::reassoc && (for_baseline || numeric_class != NumericClass::distribution));
    if (permitted && !rule.is_axiom) allowed.push_back(rule);
  }
  return allowed;
}

bool may_leave_f16(const Substitution& rule, Rounding rounding) {
  return rounding != Rounding::fast && rule.numeric_class != NumericClass::exact;
}

MatchFilter baseline_filter(const OptimizeOptions& options) {
  return [rounding = options.rounding, applicable = options.applicable](const Graph& graph, const Substitution& rule,
                                                                        const Match& match) {
    if (applicable && !applicable(graph, rule, match)) return false;
    return !may_leave_f16(rule, rounding) || !scales_beyond_f16(rule, match) || !makes_f16(graph, match);
  };
}

MatchFilter search_filter(const OptimizeOptions& options) {
  return [rounding = options.rounding, applicable = options.applicable](const Graph& graph, const Substitution& rule,
                                                                        const Match& match) {
    if (applicable && !applicable(graph, rule, match)) return false;
    return !may_leave_f16(rule, rounding) || !makes_f16(graph, match);
  };
}

OptimizeOptions::AtAllSizes at_all_sizes(const std::vector<RuleApplication>& applications,
                                         const OptimizeOptions& options) {
  return options.at_all_sizes ? options.at_all_sizes(applications) : OptimizeOptions::AtAllSizes::holds;
}

Expected<Prepared> prepare(const Graph& original, const RuleIndex& rules, const OperatorRegistry& registry,
                           const GraphPlanner& planner, const OptimizeOptions& options,
                           std::vector<std::string>& notes) {
  Graph start = original;
  normalize(start, rules.catalog());
  const RuleIndex& for_baseline = options.baseline_rules != nullptr ? *options.baseline_rules : rules;
  TASO_ASSIGN(Baseline baseline, baseline_at_all_sizes(start, for_baseline, registry, options, notes));
  Prepared prepared{{"original", {}, {}, {}},
                    {"baseline", {}, std::move(baseline.applications), {}},
                    RuleIndex(rules_for_search(rules, options), rules.catalog())};
  TASO_ASSIGN(prepared.original.planned, planner.plan(std::move(start)));
  TASO_RETURN_IF_ERROR(planner.summarize(prepared.original.planned));
  Expected<PlannedGraph> folded = planner.plan(std::move(baseline.graph));
  Status priced = folded ? planner.summarize(*folded) : Status(folded.error());
  if (priced) {
    prepared.baseline.planned = std::move(*folded);
    return prepared;
  }
  // The device has run the original: then that is what the others are compared with.
  if (priced.error().code != ErrorCode::device_unavailable) return priced.error();
  notes.push_back("the baseline is the original: " + priced.error().message);
  prepared.baseline.planned = prepared.original.planned;
  prepared.baseline.applications.clear();
  return prepared;
}

}  // namespace taso
