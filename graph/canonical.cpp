#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "graph/pattern.h"

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;

constexpr std::size_t none = static_cast<std::size_t>(-1);
// Orders of outputs and operands that are tried at most.
constexpr std::size_t max_orders = 5000;

std::string tensor_name(std::size_t index) {
  static constexpr const char* letters[] = {"x", "y", "z", "u", "v", "w"};
  constexpr std::size_t count = std::size(letters);
  return index < count ? letters[index] : "x" + std::to_string(index - count + 1);
}

// Constant parts become literals.
AttributeExpression folded(AttributeExpression value) {
  bool constant = !value.operands.empty() && value.kind != Kind::dimension;
  for (AttributeExpression& operand : value.operands) {
    operand = folded(std::move(operand));
    constant = constant && operand.kind == Kind::literal;
  }
  if (value.kind == Kind::list && value.operands.empty()) constant = true;
  if (value.kind == Kind::dimension && value.operands.size() == 1 && value.operands[0].kind == Kind::literal)
    if (const auto* axis = std::get_if<std::int64_t>(&value.operands[0].literal)) {
      value.axis = *axis;
      value.operands.clear();
    }
  if (!constant) return value;
  const Expected<AttributeValue> literal = evaluate(value, Bindings{});
  if (!literal) return value;
  AttributeExpression result;
  result.literal = *literal;
  return result;
}

// Rebuilds a rule with nodes and variables numbered in order of first use.
class Renamer {
 public:
  explicit Renamer(const Substitution& rule, const OperatorCatalog* catalog)
      : rule_(rule),
        catalog_(catalog),
        tensors_(rule.tensor_variables.size(), none),
        attributes_(rule.attribute_variables.size(), none) {}

  // `order` lists the outputs; bit i of `swaps` exchanges the operands of the i-th commutative node of the source.
  Substitution rename(const std::vector<std::size_t>& order, std::uint64_t swaps) {
    result_.name = rule_.name;
    result_.is_axiom = rule_.is_axiom;
    result_.proofs = rule_.proofs;
    result_.numeric_class = rule_.numeric_class;
    result_.expect = rule_.expect;
    result_.where = rule_.where;
    side(rule_.source, result_.source, order, swaps, false);
    // Variables that no operator of the source reads keep their order after the others.
    for (std::uint32_t i = 0; i < tensors_.size(); ++i) tensor(i);
    side(rule_.target, result_.target, order, 0, true);
    for (const Condition& condition : rule_.conditions) {
      Condition copy = condition;
      copy.left = expression(condition.left);
      copy.right = expression(condition.right);
      if (std::find(result_.conditions.begin(), result_.conditions.end(), copy) == result_.conditions.end())
        result_.conditions.push_back(std::move(copy));
    }
    if (catalog_ != nullptr) {
      auto text = [&](const Condition& condition) {
        Substitution alone;
        alone.tensor_variables = result_.tensor_variables;
        alone.attribute_variables = result_.attribute_variables;
        alone.conditions = {condition};
        return to_string(alone, *catalog_);
      };
      std::stable_sort(result_.conditions.begin(), result_.conditions.end(),
                       [&](const Condition& a, const Condition& b) { return text(a) < text(b); });
    }
    return std::move(result_);
  }

 private:
  void side(const Pattern& from, Pattern& to, const std::vector<std::size_t>& order, std::uint64_t swaps,
            bool sort_operands) {
    from_ = &from;
    to_ = &to;
    swaps_ = swaps;
    sort_operands_ = sort_operands && catalog_ != nullptr;
    nodes_.assign(from.nodes.size(), none);
    for (const std::size_t output : order) to.outputs.push_back(value(from.outputs[output]));
  }

  PatternValue value(const PatternValue& old) {
    if (old.is_variable) return {true, tensor(old.index), 0};
    if (nodes_[old.index] == none) {
      const PatternNode& node = from_->nodes[old.index];
      PatternNode copy;
      copy.op = node.op;
      std::vector<PatternValue> inputs = node.inputs;
      if (catalog_ != nullptr && inputs.size() == 2 && catalog_->is_commutative(node.op)) {
        const auto position = std::count_if(
            from_->nodes.begin(), from_->nodes.begin() + old.index,
            [&](const PatternNode& other) { return other.inputs.size() == 2 && catalog_->is_commutative(other.op); });
        if (position < 64 && ((swaps_ >> position) & 1) != 0) std::swap(inputs[0], inputs[1]);
      }
      std::vector<std::pair<std::string, PatternValue>> operands;
      for (const PatternValue& input : inputs) {
        const PatternValue renamed = value(input);
        operands.emplace_back(sort_operands_ ? term_text(renamed) : "", renamed);
      }
      if (sort_operands_ && operands.size() == 2 && catalog_->is_commutative(node.op) &&
          operands[1].first < operands[0].first)
        std::swap(operands[0], operands[1]);
      for (const auto& [text, operand] : operands) copy.inputs.push_back(operand);
      for (const auto& [name, attribute] : node.attributes)
        copy.attributes.emplace_back(name, expression(attribute, name));
      const auto same = std::find(to_->nodes.begin(), to_->nodes.end(), copy);
      nodes_[old.index] = static_cast<std::size_t>(same - to_->nodes.begin());
      if (same == to_->nodes.end()) to_->nodes.push_back(std::move(copy));
    }
    return {false, static_cast<std::uint32_t>(nodes_[old.index]), old.port};
  }

  std::string term_text(const PatternValue& output) const {
    Substitution alone;
    alone.tensor_variables = result_.tensor_variables;
    alone.attribute_variables = result_.attribute_variables;
    alone.source.nodes = to_->nodes;
    alone.source.outputs = {output};
    return to_string(alone, *catalog_);
  }

  std::uint32_t tensor(std::uint32_t old) {
    if (tensors_[old] == none) {
      tensors_[old] = result_.tensor_variables.size();
      result_.tensor_variables.push_back(tensor_name(tensors_[old]));
    }
    return static_cast<std::uint32_t>(tensors_[old]);
  }

  // An attribute variable is named after the first attribute that it stands for.
  std::uint32_t attribute(std::uint32_t old, const std::string& place) {
    if (attributes_[old] == none) {
      attributes_[old] = result_.attribute_variables.size();
      const std::string letter = place.empty() ? "n" : place.substr(0, 1);
      std::string name = letter;
      auto taken = [&] {
        const auto& names = result_.attribute_variables;
        return std::find(names.begin(), names.end(), name) != names.end();
      };
      for (int number = 2; taken(); ++number) name = letter + std::to_string(number);
      result_.attribute_variables.push_back(name);
    }
    return static_cast<std::uint32_t>(attributes_[old]);
  }

  AttributeExpression expression(const AttributeExpression& old, const std::string& place = "") {
    return folded(renamed(old, place));
  }

  AttributeExpression renamed(const AttributeExpression& old, const std::string& place) {
    AttributeExpression copy = old;
    if (old.kind == Kind::variable) copy.index = attribute(old.index, place);
    if (old.names_tensor()) copy.index = tensor(old.index);
    for (AttributeExpression& operand : copy.operands) operand = renamed(operand, place);
    return copy;
  }

  const Substitution& rule_;
  const OperatorCatalog* catalog_;
  Substitution result_;
  std::vector<std::size_t> tensors_, attributes_, nodes_;  // New numbers, or none.
  const Pattern* from_ = nullptr;
  Pattern* to_ = nullptr;
  std::uint64_t swaps_ = 0;
  bool sort_operands_ = false;
};

}  // namespace

Substitution canonical(const Substitution& rule) {
  std::vector<std::size_t> order(rule.source.outputs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return Renamer(rule, nullptr).rename(order, 0);
}

Substitution canonical(const Substitution& rule, const OperatorCatalog& catalog) {
  std::vector<std::size_t> order(rule.source.outputs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto commutative = std::count_if(
      rule.source.nodes.begin(), rule.source.nodes.end(),
      [&](const PatternNode& node) { return node.inputs.size() == 2 && catalog.is_commutative(node.op); });
  std::optional<Substitution> best;
  std::string best_text;
  std::size_t tried = 0;
  do {
    for (std::uint64_t swaps = 0; swaps < (std::uint64_t{1} << std::min<std::ptrdiff_t>(commutative, 10)); ++swaps) {
      if (++tried > max_orders) break;
      Substitution candidate = Renamer(rule, &catalog).rename(order, swaps);
      std::string text = to_string(candidate, catalog);
      if (!best || text < best_text) {
        best = std::move(candidate);
        best_text = std::move(text);
      }
    }
  } while (tried <= max_orders && std::next_permutation(order.begin(), order.end()));
  return std::move(*best);
}

}  // namespace taso
