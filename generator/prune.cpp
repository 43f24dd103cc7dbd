#include "generator/prune.h"

#include <algorithm>
#include <utility>

namespace taso {

bool must_stand(const GeneralRule& rule) {
  return rule.target_ops < rule.source_ops || rule.rule.source.outputs.size() > 1;
}

std::optional<Derivation> KeptRules::derive(const GeneralRule& rule, std::optional<std::uint32_t> without,
                                            int max_steps, int extra_ops) const {
  auto source = instantiate(rule.rule, rule.rule.source, rule.example_types, rule.example_attributes, *catalog_);
  auto target = instantiate(rule.rule, rule.rule.target, rule.example_types, rule.example_attributes, *catalog_);
  if (!source || !target) return std::nullopt;
  DerivationLimits limits;
  limits.max_steps = max_steps > 0 ? max_steps : options_.max_steps;
  limits.max_graphs = options_.max_graphs;
  limits.directions = must_stand(rule) ? Directions::as_they_stand : Directions::lowering_backwards;
  limits.extra_ops = extra_ops;
  limits.extra_nodes += static_cast<std::size_t>(extra_ops);
  limits.without = without;
  return basis_.derive(std::move(source).value(), std::move(target).value(), rule.is_weight, limits);
}

bool KeptRules::replace(std::uint32_t number, const GeneralRule& rule, const std::string& group) {
  auto own = derive(rule, number, 1);
  if (!own) return false;
  std::vector<std::pair<std::size_t, Derivation>> others;
  for (std::size_t i = 0; i < dropped_.size(); ++i) {
    const auto& steps = dropped_[i].derivation.steps;
    if (std::none_of(steps.begin(), steps.end(), [&](const DerivationStep& step) { return step.rule == number; }))
      continue;
    // One application of the rule becomes one of another, so as many steps will do.
    auto other = derive(dropped_[i].rule, number);
    if (!other) return false;
    others.emplace_back(i, std::move(*other));
  }
  for (auto& [i, derivation] : others) dropped_[i].derivation = std::move(derivation);
  basis_.remove(number);
  drop({rule, group, std::move(*own)});
  return true;
}

std::vector<PrunedRule> KeptRules::take_dropped(const std::vector<std::uint32_t>& renumber) {
  for (PrunedRule& rule : dropped_)
    for (DerivationStep& step : rule.derivation.steps) step.rule = renumber.at(step.rule);
  return std::exchange(dropped_, {});
}

}  // namespace taso
