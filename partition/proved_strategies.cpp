#include "partition/proved_strategies.h"

namespace taso {

Expected<ProvedStrategies> ProvedStrategies::load(const std::vector<std::string>& files,
                                                  const OperatorRegistry& registry) {
  ProvedStrategies result;
  result.registry_ = &registry;
  for (const std::string& file : files) {
    TASO_ASSIGN(std::vector<Substitution> rules, load_rules(file, registry));
    for (Substitution& rule : rules) {
      const SourceLocation where = rule.where;
      const std::string name = rule.name;
      if (!result.rules_.emplace(name, std::move(rule)).second)
        return bad_input("there is a strategy '" + name + "' in another file already", where);
    }
  }
  return result;
}

const Substitution* ProvedStrategies::find(const Substitution& derived) const {
  const auto place = rules_.find(derived.name);
  if (place == rules_.end() || !carries_proof(place->second, *registry_)) return nullptr;
  // The proof may have added conditions behind those that were derived.
  Substitution plain = place->second;
  plain.proofs.clear();
  plain.numeric_class.reset();
  if (plain.conditions.size() < derived.conditions.size()) return nullptr;
  plain.conditions.resize(derived.conditions.size());
  return to_string(plain, *registry_) == to_string(derived, *registry_) ? &place->second : nullptr;
}

std::vector<PartitionStrategy> ProvedStrategies::of(std::string_view op) const {
  std::vector<PartitionStrategy> result;
  for (PartitionStrategy& strategy : derive_strategies(*registry_, op).strategies)
    if (const Substitution* proved = find(strategy.rule)) {
      strategy.rule.conditions = proved->conditions;
      strategy.rule.proofs = proved->proofs;
      strategy.rule.numeric_class = proved->numeric_class;
      result.push_back(std::move(strategy));
    }
  return result;
}

std::vector<PartialPassage> ProvedStrategies::passages_of(std::string_view op) const {
  std::vector<PartialPassage> result;
  for (PartialPassage& passage : derive_passages(*registry_, op))
    if (const Substitution* proved = find(passage.rule)) {
      passage.rule.conditions = proved->conditions;
      passage.rule.proofs = proved->proofs;
      passage.rule.numeric_class = proved->numeric_class;
      result.push_back(std::move(passage));
    }
  return result;
}

}  // namespace taso
