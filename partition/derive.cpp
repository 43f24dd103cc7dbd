#include <algorithm>
#include <set>

#include "partition/cut.h"
#include "partition/rule_builder.h"
#include "partition/strategy.h"

namespace taso {
namespace {

using Kind = Expression::Kind;

/// Collects what the models of an operator give.
class Derivation {
 public:
  Derivation(const OperatorRegistry& registry, const OperatorDefinition& definition)
      : registry_(registry), definition_(definition) {}

  OperatorStrategies run() {
    std::string not_understood;
    bool understood = false;
    for (const ModelChoice& choice : model_choices(definition_)) {
      const Expected<OperatorModel> model = make_model(registry_, definition_, choice);
      if (!model) {
        if (not_understood.empty()) not_understood = model.error().message;
        continue;
      }
      understood = true;
      for (std::size_t v = 0; v < model->variables.size(); ++v) {
        const std::optional<std::string> unit = cut(*model, v);
        if (!unit) continue;
        ModelChoice special = choice;
        special.unit = unit;
        const Expected<OperatorModel> other = make_model(registry_, definition_, special);
        for (std::size_t w = 0; other && w < other->variables.size(); ++w)
          if (other->variables[w].name == model->variables[v].name) (void)cut(*other, w);
      }
    }
    if (!understood) result_.uncut.push_back({"*", false, "the definition is not understood: " + not_understood});
    for (const UncutVariable& variable : uncut_)
      if (!cut_names_.contains(variable.variable) && !is_listed(variable.variable)) result_.uncut.push_back(variable);
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool is_listed(const std::string& variable) const {
    return std::any_of(result_.uncut.begin(), result_.uncut.end(),
                       [&](const UncutVariable& other) { return other.variable == variable; });
  }

  /// Adds the strategies of a variable, or why there is none; the factor that would have to be 1 for one.
  std::optional<std::string> cut(const OperatorModel& model, std::size_t v) {
    std::vector<RemainderCase> cases = {RemainderCase::index};
    if (has_remainder(model, v)) cases.push_back(RemainderCase::zero);
    std::optional<std::string> unit;
    for (const RemainderCase remainders : cases) {
      CutResult cut = cut_variable(model, v, remainders);
      if (cut.cuts.empty()) uncut(model.variables[v], cut.obstacle);
      for (VariableCut& one : cut.cuts) add(std::move(one));
      unit = cut.unit;
    }
    return unit;
  }

  void uncut(const ModelVariable& variable, const std::string& reason) {
    uncut_.push_back({variable.name, !variable.reducer.empty(), reason});
  }

  void add(VariableCut cut) {
    const ModelVariable variable = cut.model.variables[cut.variable];
    const std::string base = definition_.name + "_cut_" + variable.name;
    std::string name = base;
    for (int number = 2; names_.contains(name); ++number) name = base + "_" + std::to_string(number);
    Expected<PartitionStrategy> strategy = make_strategy(registry_, std::move(cut), name);
    if (!strategy) return uncut(variable, strategy.error().message);
    cut_names_.insert(variable.name);
    // The same again, without something that the other one asks for or with it. Where each asks for something else,
    // they are for other axes.
    const auto asks_more = [](const Substitution& one, const Substitution& other) {
      return std::all_of(other.conditions.begin(), other.conditions.end(), [&](const Condition& condition) {
        return std::find(one.conditions.begin(), one.conditions.end(), condition) != one.conditions.end();
      });
    };
    const auto same =
        std::find_if(result_.strategies.begin(), result_.strategies.end(), [&](const PartitionStrategy& other) {
          return other.rule.source == strategy->rule.source && other.rule.target == strategy->rule.target &&
                 other.rule.attribute_variables == strategy->rule.attribute_variables &&
                 (asks_more(other.rule, strategy->rule) || asks_more(strategy->rule, other.rule));
        });
    if (same != result_.strategies.end()) {
      if (strategy->rule.conditions.size() < same->rule.conditions.size()) {
        strategy->rule.name = same->rule.name;
        *same = std::move(*strategy);
      }
      return;
    }
    names_.insert(name);
    result_.strategies.push_back(std::move(*strategy));
  }

  const OperatorRegistry& registry_;
  const OperatorDefinition& definition_;
  OperatorStrategies result_;
  std::vector<UncutVariable> uncut_;
  std::set<std::string> names_, cut_names_;
};

}  // namespace

OperatorStrategies derive_strategies(const OperatorRegistry& registry, std::string_view op) {
  const OperatorDefinition* definition = registry.find(op);
  TASO_CHECK(definition != nullptr, "the strategies of an operator that the registry lacks are asked for");
  if (!definition->over_reals) {
    OperatorStrategies none;
    none.uncut.push_back({"*", false, "it computes with integers or truth values, and proofs are of reals"});
    return none;
  }
  return Derivation(registry, *definition).run();
}

std::string combining_operator(const OperatorRegistry& registry, std::string_view reducer) {
  for (const std::string& name : registry.names()) {
    const OperatorDefinition& definition = *registry.find(name);
    if (!definition.elementwise || !definition.commutative || definition.equations.size() != 1 ||
        !definition.attributes.empty() || definition.inputs.size() != 2)
      continue;
    const Expression& value = definition.equations[0].value;
    const bool plain =
        value.operands.size() == 2 && value.operands[0].kind == Kind::read && value.operands[1].kind == Kind::read;
    const bool fits = (reducer == "sum" && value.kind == Kind::add) ||
                      (reducer == "prod" && value.kind == Kind::multiply) ||
                      ((reducer == "max" || reducer == "min") && value.kind == Kind::call && value.name == reducer);
    if (plain && fits) return name;
  }
  return "";
}

}  // namespace taso
