#include "generator/prune.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

namespace taso {

int running_operators(const Graph& graph, const std::vector<bool>& is_weight) {
  std::vector<char> runs(graph.id_bound(), 0);
  for (std::size_t i = 0; i < graph.inputs().size(); ++i)
    runs[graph.inputs()[i]] = i < is_weight.size() && is_weight[i] ? 0 : 1;
  int count = 0;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::op) continue;
    for (const Value& input : node.inputs) runs[id] = runs[id] || runs[input.node] ? 1 : 0;
    count += runs[id];
  }
  return count;
}

RuleBasis::RuleBasis(const OperatorCatalog& catalog, int max_steps) : catalog_(&catalog), max_steps_(max_steps) {}

namespace {

/// The rule read from right to left, if its target binds everything that the source needs.
std::optional<Substitution> reversed(const Substitution& rule) {
  if (rule.target.nodes.empty() || rule.target.outputs[0].is_variable) return std::nullopt;
  std::vector<bool> tensors(rule.tensor_variables.size()), attributes(rule.attribute_variables.size());
  for (const PatternNode& node : rule.target.nodes) {
    for (const PatternValue& input : node.inputs)
      if (input.is_variable) tensors[input.index] = true;
    for (const auto& [name, value] : node.attributes) {
      if (value.kind == AttributeExpression::Kind::variable)
        attributes[value.index] = true;
      else if (value.kind != AttributeExpression::Kind::literal)
        return std::nullopt;
    }
  }
  if (std::find(tensors.begin(), tensors.end(), false) != tensors.end() ||
      std::find(attributes.begin(), attributes.end(), false) != attributes.end())
    return std::nullopt;
  Substitution result = rule;
  std::swap(result.source, result.target);
  return canonical(result);
}

}  // namespace

void RuleBasis::add(const GeneralRule& rule) {
  forward_.push_back(rule.rule);
  both_.push_back(rule.rule);
  if (rule.target_ops < rule.source_ops)
    if (auto back = reversed(rule.rule)) both_.push_back(std::move(*back));
  forward_index_ = std::make_shared<RuleIndex>(forward_, *catalog_);
  both_index_ = std::make_shared<RuleIndex>(both_, *catalog_);
}

bool RuleBasis::derives(const GeneralRule& rule) const {
  auto source = instantiate(rule.rule, rule.rule.source, rule.example_types, rule.example_attributes, *catalog_);
  auto target = instantiate(rule.rule, rule.rule.target, rule.example_types, rule.example_attributes, *catalog_);
  if (!source || !target) return false;
  normalize(*source, *catalog_);
  normalize(*target, *catalog_);
  if (source->equals(*target)) return true;
  const std::shared_ptr<const RuleIndex>& index = rule.target_ops < rule.source_ops ? forward_index_ : both_index_;
  if (index == nullptr) return false;
  const int bound = std::max(running_operators(*source, rule.is_weight), running_operators(*target, rule.is_weight));
  const std::size_t node_bound = std::max(source->size(), target->size()) + 2;
  constexpr std::size_t max_graphs = 400;
  std::unordered_set<Hash128> seen{source->structural_hash()};
  std::vector<Graph> frontier;
  frontier.push_back(std::move(*source));
  for (int step = 0; step < max_steps_; ++step) {
    std::vector<Graph> next;
    for (const Graph& graph : frontier)
      for (const auto& [number, match] : index->find_all(graph)) {
        auto rewritten = apply(graph, index->rules()[number], match, *catalog_);
        if (!rewritten) continue;
        if (rewritten->equals(*target)) return true;
        if (seen.size() > max_graphs || rewritten->size() > node_bound ||
            running_operators(*rewritten, rule.is_weight) > bound || !seen.insert(rewritten->structural_hash()).second)
          continue;
        next.push_back(std::move(*rewritten));
      }
    frontier = std::move(next);
  }
  return false;
}

}  // namespace taso
