#include "tests/partition/strategy_mutations.h"

#include <algorithm>

namespace taso::test {
namespace {

using Form = AttributeExpression::Kind;

AttributeExpression number(std::int64_t value) {
  AttributeExpression result;
  result.literal = value;
  return result;
}

AttributeExpression moved(const AttributeExpression& e, std::int64_t by) {
  if (e.kind == Form::literal)
    if (const auto* value = std::get_if<std::int64_t>(&e.literal)) return number(*value + by);
  AttributeExpression result;
  result.kind = Form::add;
  result.operands = {e, number(by)};
  return result;
}

class Mutator {
 public:
  Mutator(const Substitution& rule, const OperatorRegistry& registry) : rule_(rule), registry_(registry) {}

  std::vector<StrategyMutation> run() {
    const std::string op = rule_.source.nodes[0].op;
    for (std::size_t n = 0; n < rule_.target.nodes.size(); ++n) {
      const PatternNode& node = rule_.target.nodes[n];
      if (node.op == "split") split(n);
      if (node.op == op) piece(n);
      if (node.op == "concat") {
        for (const std::int64_t by : {-1, 1})
          with(n, "parts lie along another axis", [&](PatternNode& m) { shift(m, "axis", by); });
      } else if (node.op != "split" && node.op != op) {
        for (const char* other : {"add", "mul", "maximum", "sub"})
          if (node.op != other)
            with(n, std::string("parts are combined by ") + other, [&](PatternNode& m) { m.op = other; });
      }
    }
    return std::move(result_);
  }

 private:
  static AttributeExpression* find(PatternNode& node, const std::string& name) {
    for (auto& [attribute, value] : node.attributes)
      if (attribute == name) return &value;
    return nullptr;
  }
  static void shift(PatternNode& node, const std::string& name, std::int64_t by) {
    if (AttributeExpression* value = find(node, name)) *value = moved(*value, by);
  }

  // A cut of an input: a place further, or along another axis.
  void split(std::size_t n) {
    for (const std::int64_t by : {-1, 1}) {
      with(n, std::string("a piece ends ") + (by > 0 ? "a place later" : "a place earlier"), [&](PatternNode& m) {
        AttributeExpression* sizes = find(m, "sizes");
        if (sizes->kind != Form::list || sizes->operands.size() != 2) return;
        sizes->operands[0] = moved(sizes->operands[0], by);
        sizes->operands[1] = moved(sizes->operands[1], -by);
      });
      with(n, "an input is cut along another axis", [&](PatternNode& m) { shift(m, "axis", by); });
    }
    // The other part of it.
    for (std::size_t user = 0; user < rule_.target.nodes.size(); ++user)
      for (std::size_t i = 0; i < rule_.target.nodes[user].inputs.size(); ++i)
        if (const PatternValue value = rule_.target.nodes[user].inputs[i]; !value.is_variable && value.index == n)
          with(user, "a piece reads the other part", [&](PatternNode& m) { m.inputs[i].port = 1 - value.port; });
  }

  // A piece with an attribute of the whole, or with all of an input.
  void piece(std::size_t n) {
    const PatternNode& whole = rule_.source.nodes[0];
    for (std::size_t a = 0; a < whole.attributes.size(); ++a)
      if (rule_.target.nodes[n].attributes[a].second != whole.attributes[a].second)
        with(n, whole.attributes[a].first + " is that of the whole",
             [&](PatternNode& m) { m.attributes[a].second = whole.attributes[a].second; });
    for (std::size_t i = 0; i < whole.inputs.size(); ++i)
      if (rule_.target.nodes[n].inputs[i] != whole.inputs[i])
        with(n, "an input is read whole", [&](PatternNode& m) { m.inputs[i] = whole.inputs[i]; });
  }

  template <class Change>
  void with(std::size_t node, const std::string& what, const Change& change) {
    Substitution mutant = rule_;
    change(mutant.target.nodes[node]);
    // As it is written: nodes that became equal are one, what nothing reads is gone.
    mutant.name = rule_.name + "_" + std::to_string(result_.size());
    const auto again = parse_rules(to_string(mutant, registry_), "mutant", registry_);
    if (!again.ok()) return;
    const auto same = [&](const Substitution& other) {
      return other.source == (*again)[0].source && other.target == (*again)[0].target;
    };
    if (same(rule_) ||
        std::any_of(result_.begin(), result_.end(), [&](const StrategyMutation& m) { return same(m.rule); }))
      return;
    result_.push_back({rule_.name + ": " + what + " (" + rule_.target.nodes[node].op + " " + std::to_string(node) + ")",
                       (*again)[0], rule_.name});
  }

  const Substitution& rule_;
  const OperatorRegistry& registry_;
  std::vector<StrategyMutation> result_;
};

}  // namespace

std::vector<StrategyMutation> strategy_mutations(const Substitution& rule, const OperatorRegistry& registry) {
  return Mutator(rule, registry).run();
}

}  // namespace taso::test
