#include <algorithm>
#include <map>
#include <set>

#include "graph/pattern.h"

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;

constexpr std::size_t line_width = 118;

// Binding strength: 1 sums, 2 products, 3 everything else.
int strength(Kind kind) {
  switch (kind) {
    case Kind::add:
    case Kind::subtract:
      return 1;
    case Kind::multiply:
    case Kind::floor_divide:
      return 2;
    case Kind::literal:
    case Kind::variable:
    case Kind::dimension:
    case Kind::rank:
    case Kind::length:
    case Kind::elements:
    case Kind::list:
    case Kind::element:
      break;
  }
  return 3;
}

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) text += (i == 0 ? "" : separator) + parts[i];
  return text;
}

class RulePrinter {
 public:
  RulePrinter(const Substitution& rule, const OperatorCatalog* catalog) : rule_(rule), catalog_(catalog) {
    taken_.insert(rule.tensor_variables.begin(), rule.tensor_variables.end());
    taken_.insert(rule.attribute_variables.begin(), rule.attribute_variables.end());
  }

  std::string print() {
    const std::string source = side(rule_.source), target = side(rule_.target);
    std::string text = std::string(rule_.is_axiom ? "axiom " : "rule ") + rule_.name + ":\n  " + source;
    const std::string arrow = rule_.is_axiom ? "= " : "=> ";
    text += source.size() + target.size() + 6 > line_width ? "\n    " : " ";
    text += arrow + target + "\n";
    if (!definitions_.empty()) text += "  where " + joined(definitions_, ",\n        ") + "\n";
    std::vector<std::string> given;
    for (const std::uint32_t variable : given_variables(rule_)) given.push_back(rule_.attribute_variables[variable]);
    if (!given.empty()) text += "  for " + joined(given, ", ") + "\n";
    std::vector<std::string> conditions;
    for (const Condition& one : rule_.conditions) conditions.push_back(condition(one));
    if (!conditions.empty()) text += "  if " + joined(conditions, ", ") + "\n";
    if (!rule_.proofs.empty()) text += "  proof " + joined(rule_.proofs, ", ") + "\n";
    if (rule_.numeric_class) text += std::string("  class ") + to_string(*rule_.numeric_class) + "\n";
    if (rule_.expect) text += "  expect " + *rule_.expect + "\n";
    return text;
  }

  std::string condition(const Condition& one) const {
    const std::string left = expression(one.left, 0);
    return one.compares() ? left + relation(one.relation) + expression(one.right, 0)
                          : relation(one.relation) + ("(" + left + ")");
  }

 private:
  static const char* relation(Condition::Relation relation) {
    switch (relation) {
      case Condition::Relation::equal:
        return " == ";
      case Condition::Relation::not_equal:
        return " != ";
      case Condition::Relation::less:
        return " < ";
      case Condition::Relation::less_equal:
        return " <= ";
      case Condition::Relation::positive:
        return "positive";
      case Condition::Relation::nonnegative:
        return "nonnegative";
      case Condition::Relation::nonzero:
        return "nonzero";
      case Condition::Relation::finite:
        return "finite";
    }
    return " ? ";
  }

  // Shared nodes get a name by `where`, all others are written in place.
  std::string side(const Pattern& pattern) {
    std::vector<int> uses(pattern.nodes.size(), 0);
    auto count = [&](const std::vector<PatternValue>& values) {
      for (const PatternValue& value : values)
        if (!value.is_variable) ++uses[value.index];
    };
    for (const PatternNode& node : pattern.nodes) count(node.inputs);
    count(pattern.outputs);
    pattern_ = &pattern;
    texts_.assign(pattern.nodes.size(), "");
    for (std::size_t i = 0; i < pattern.nodes.size(); ++i) {
      texts_[i] = term(pattern.nodes[i]);
      if (uses[i] > 1) {
        const std::string name = fresh_name();
        definitions_.push_back(name + " = " + texts_[i]);
        texts_[i] = name;
      }
    }
    std::vector<std::string> outputs;
    for (const PatternValue& output : pattern.outputs) outputs.push_back(value_text(output));
    return joined(outputs, ", ");
  }

  std::string fresh_name() {
    for (int number = 1;; ++number)
      for (const char* letter : {"s", "t", "r", "q"}) {
        std::string name = number == 1 ? letter : letter + std::to_string(number);
        if (taken_.insert(name).second) return name;
      }
  }

  std::string value_text(const PatternValue& value) const {
    if (value.is_variable) return rule_.tensor_variables[value.index];
    // An output is chosen where there may be several.
    const PatternNode& node = pattern_->nodes[value.index];
    const bool several = value.port > 0 || catalog_->pieces(node.op) != nullptr || outputs_of(node) > 1;
    return texts_[value.index] + (several ? "." + std::to_string(value.port) : "");
  }

  std::size_t outputs_of(const PatternNode& node) const {
    Attributes attributes;
    for (const auto& [name, value] : node.attributes)
      if (value.kind == Kind::literal) attributes.set(name, value.literal);
    return catalog_->output_count(node.op, attributes);
  }

  std::string term(const PatternNode& node) const {
    std::vector<std::string> inputs, attributes;
    for (const PatternValue& input : node.inputs) inputs.push_back(value_text(input));
    const OperatorSignature* signature = catalog_->signature(node.op);
    // In declared order; those with their default value are left out.
    auto print = [&](const std::string& name, const std::optional<AttributeValue>& default_value) {
      const auto given = std::find_if(node.attributes.begin(), node.attributes.end(),
                                      [&](const auto& attribute) { return attribute.first == name; });
      if (given == node.attributes.end()) return;
      if (default_value && given->second.kind == Kind::literal && given->second.literal == *default_value) return;
      attributes.push_back(name + "=" + expression(given->second, 0));
    };
    if (signature != nullptr)
      for (const AttributeSignature& declared : signature->attributes) print(declared.name, declared.default_value);
    else
      for (const auto& [name, value] : node.attributes) print(name, std::nullopt);
    return node.op + "(" + joined(inputs, ", ") + (attributes.empty() ? "" : "; " + joined(attributes, ", ")) + ")";
  }

  std::string expression(const AttributeExpression& value, int outer) const {
    switch (value.kind) {
      case Kind::literal:
        return to_string(value.literal);
      case Kind::variable:
        return rule_.attribute_variables[value.index];
      case Kind::dimension:
        return "dim(" + rule_.tensor_variables[value.index] + ", " +
               (value.operands.empty() ? std::to_string(value.axis) : expression(value.operands[0], 0)) + ")";
      case Kind::rank:
        return "rank(" + rule_.tensor_variables[value.index] + ")";
      case Kind::length:
        return "length(" + expression(value.operands[0], 0) + ")";
      case Kind::elements:
        return rule_.tensor_variables[value.index];
      case Kind::list: {
        std::vector<std::string> elements;
        for (const AttributeExpression& element : value.operands) elements.push_back(expression(element, 0));
        return "[" + joined(elements, ", ") + "]";
      }
      case Kind::element:
        return expression(value.operands[0], 3) + "[" + std::to_string(value.axis) + "]";
      case Kind::add:
      case Kind::subtract:
      case Kind::multiply:
      case Kind::floor_divide:
        break;
    }
    const int own = strength(value.kind);
    const char* symbol = value.kind == Kind::add        ? " + "
                         : value.kind == Kind::subtract ? " - "
                         : value.kind == Kind::multiply ? " * "
                                                        : " // ";
    std::string text = expression(value.operands[0], own) + symbol + expression(value.operands[1], own + 1);
    return own < outer ? "(" + text + ")" : text;
  }

  const Substitution& rule_;
  const OperatorCatalog* catalog_;  // Null where conditions alone are written.
  const Pattern* pattern_ = nullptr;
  std::set<std::string> taken_;
  std::vector<std::string> texts_;        // Of the nodes of the side being printed.
  std::vector<std::string> definitions_;  // "s = split(...)".
};

}  // namespace

std::string to_string(const Substitution& rule, const OperatorCatalog& catalog) {
  return RulePrinter(rule, &catalog).print();
}

std::string to_string(const Condition& condition, const Substitution& rule) {
  return RulePrinter(rule, nullptr).condition(condition);
}

}  // namespace taso
