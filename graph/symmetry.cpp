#include "graph/symmetry.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;

constexpr std::uint32_t unset = static_cast<std::uint32_t>(-1);
constexpr std::size_t max_outputs = 5;
constexpr std::size_t max_commutative = 6;

std::string text_of(const AttributeExpression& value, const RuleSymmetry& map) {
  std::string text = std::to_string(static_cast<int>(value.kind));
  switch (value.kind) {
    case Kind::literal:
      text += ":" + to_string(value.literal);
      break;
    case Kind::variable:
      text += ":" + std::to_string(map.attributes[value.index]);
      break;
    case Kind::dimension:
    case Kind::rank:
    case Kind::elements:
      text += ":" + std::to_string(map.tensors[value.index]);
      break;
    case Kind::length:
    case Kind::list:
    case Kind::element:
    case Kind::add:
    case Kind::subtract:
    case Kind::multiply:
    case Kind::floor_divide:
      break;
  }
  text += "@" + std::to_string(value.axis) + "(";
  for (const AttributeExpression& operand : value.operands) text += text_of(operand, map) + ",";
  return text + ")";
}

std::vector<std::string> condition_texts(const Substitution& rule, const RuleSymmetry& map) {
  std::vector<std::string> texts;
  for (const Condition& condition : rule.conditions) {
    std::string left = text_of(condition.left, map), right = text_of(condition.right, map);
    const bool ordered =
        condition.relation == Condition::Relation::less || condition.relation == Condition::Relation::less_equal;
    if (!ordered && right < left) std::swap(left, right);
    std::string text = std::to_string(static_cast<int>(condition.relation));
    text += left;
    text += right;
    texts.push_back(std::move(text));
  }
  std::sort(texts.begin(), texts.end());
  return texts;
}

// Text of a target value in which the operands of commutative operators and concatenations have no order, and an output
// of a split is named by its size.
class Unordered {
 public:
  Unordered(const Pattern& pattern, const OperatorCatalog& catalog, const RuleSymmetry& map) : map_(map) {
    for (const PatternNode& node : pattern.nodes) {
      std::vector<std::string> operands;
      for (const PatternValue& input : node.inputs) operands.push_back(text(input));
      if (catalog.is_commutative(node.op) || catalog.is_associative(node.op))
        std::sort(operands.begin(), operands.end());
      std::vector<std::string> sizes;
      std::string line = node.op + "(";
      for (const std::string& operand : operands) line += operand + ",";
      const PieceAttributes* const pieces = catalog.pieces(node.op);
      for (const auto& [name, value] : node.attributes) {
        if (pieces != nullptr && name == pieces->sizes && value.kind == Kind::list) {
          for (const AttributeExpression& size : value.operands) sizes.push_back(text_of(size, map));
          std::vector<std::string> sorted = sizes;
          std::sort(sorted.begin(), sorted.end());
          line += "sizes:";
          for (const std::string& size : sorted) line += size + ",";
        } else {
          line += name + "=" + text_of(value, map) + ",";
        }
      }
      nodes_.push_back(line + ")");
      sizes_.push_back(std::move(sizes));
    }
  }

  [[nodiscard]] std::string text(const PatternValue& value) const {
    if (value.is_variable) return "v" + std::to_string(map_.tensors[value.index]);
    const auto& sizes = sizes_[value.index];
    return nodes_[value.index] + "." + (value.port < sizes.size() ? sizes[value.port] : std::to_string(value.port));
  }

 private:
  const RuleSymmetry& map_;
  std::vector<std::string> nodes_;
  std::vector<std::vector<std::string>> sizes_;
};

// Follows the source from its outputs, in their order and in another one, and pairs what corresponds.
class Pairing {
 public:
  Pairing(const Substitution& rule, const OperatorCatalog& catalog, std::uint64_t swaps)
      : rule_(rule), catalog_(catalog), swaps_(swaps) {
    map_.nodes.assign(rule.source.nodes.size(), unset);
    map_.tensors.assign(rule.tensor_variables.size(), unset);
    map_.attributes.assign(rule.attribute_variables.size(), unset);
  }

  bool pair(const PatternValue& a, const PatternValue& b) {
    if (a.is_variable != b.is_variable || a.port != b.port) return false;
    if (a.is_variable) return assign(map_.tensors, a.index, b.index);
    if (map_.nodes[a.index] != unset) return map_.nodes[a.index] == b.index;
    if (!assign(map_.nodes, a.index, b.index)) return false;
    const PatternNode& left = rule_.source.nodes[a.index];
    const PatternNode& right = rule_.source.nodes[b.index];
    if (left.op != right.op || left.inputs.size() != right.inputs.size() ||
        left.attributes.size() != right.attributes.size())
      return false;
    for (std::size_t i = 0; i < left.attributes.size(); ++i)
      if (left.attributes[i].first != right.attributes[i].first ||
          !pair(left.attributes[i].second, right.attributes[i].second))
        return false;
    std::vector<PatternValue> inputs = right.inputs;
    if (inputs.size() == 2 && catalog_.is_commutative(left.op)) {
      if ((swaps_ & 1) != 0) std::swap(inputs[0], inputs[1]);
      swaps_ >>= 1;
    }
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (!pair(left.inputs[i], inputs[i])) return false;
    return true;
  }

  // The symmetry if everything is paired and all expressions agree under it.
  [[nodiscard]] std::optional<RuleSymmetry> finish() const {
    for (const auto* part : {&map_.nodes, &map_.tensors, &map_.attributes})
      if (std::find(part->begin(), part->end(), unset) != part->end()) return std::nullopt;
    RuleSymmetry identity = map_;
    for (auto* part : {&identity.nodes, &identity.tensors, &identity.attributes})
      std::iota(part->begin(), part->end(), std::uint32_t{0});
    if (identity == map_) return std::nullopt;
    for (std::size_t i = 0; i < rule_.source.nodes.size(); ++i)
      for (std::size_t k = 0; k < rule_.source.nodes[i].attributes.size(); ++k)
        if (text_of(rule_.source.nodes[i].attributes[k].second, map_) !=
            text_of(rule_.source.nodes[map_.nodes[i]].attributes[k].second, identity))
          return std::nullopt;
    if (condition_texts(rule_, map_) != condition_texts(rule_, identity)) return std::nullopt;
    return map_;
  }

 private:
  static bool assign(std::vector<std::uint32_t>& map, std::uint32_t from, std::uint32_t to) {
    if (map[from] != unset) return map[from] == to;
    if (std::find(map.begin(), map.end(), to) != map.end()) return false;
    map[from] = to;
    return true;
  }

  // Pairs the variables that are bound here; whole expressions are compared in finish().
  bool pair(const AttributeExpression& a, const AttributeExpression& b) {
    if (a.kind != b.kind) return false;
    if (a.kind == Kind::variable) return assign(map_.attributes, a.index, b.index);
    if (a.kind == Kind::list) {
      if (a.operands.size() != b.operands.size()) return false;
      for (std::size_t i = 0; i < a.operands.size(); ++i)
        if (a.operands[i].kind == Kind::variable && !pair(a.operands[i], b.operands[i])) return false;
    }
    return true;
  }

  const Substitution& rule_;
  const OperatorCatalog& catalog_;
  std::uint64_t swaps_;
  RuleSymmetry map_;
};

}  // namespace

std::vector<RuleSymmetry> find_symmetries(const Substitution& rule, const OperatorCatalog& catalog) {
  std::vector<RuleSymmetry> result;
  const std::size_t outputs = rule.source.outputs.size();
  const auto commutative = static_cast<std::size_t>(std::count_if(
      rule.source.nodes.begin(), rule.source.nodes.end(),
      [&](const PatternNode& node) { return node.inputs.size() == 2 && catalog.is_commutative(node.op); }));
  if (outputs > max_outputs || commutative > max_commutative) return result;
  RuleSymmetry identity;
  identity.nodes.resize(rule.source.nodes.size());
  identity.tensors.resize(rule.tensor_variables.size());
  identity.attributes.resize(rule.attribute_variables.size());
  for (auto* part : {&identity.nodes, &identity.tensors, &identity.attributes})
    std::iota(part->begin(), part->end(), std::uint32_t{0});
  const Unordered plain(rule.target, catalog, identity);
  std::vector<std::size_t> order(outputs);
  std::iota(order.begin(), order.end(), std::size_t{0});
  do {
    for (std::uint64_t swaps = 0; swaps < (std::uint64_t{1} << commutative); ++swaps) {
      Pairing pairing(rule, catalog, swaps);
      bool fits = true;
      for (std::size_t i = 0; fits && i < outputs; ++i)
        fits = pairing.pair(rule.source.outputs[i], rule.source.outputs[order[i]]);
      if (!fits) continue;
      const std::optional<RuleSymmetry> symmetry = pairing.finish();
      if (!symmetry || std::find(result.begin(), result.end(), *symmetry) != result.end()) continue;
      const Unordered renamed(rule.target, catalog, *symmetry);
      for (std::size_t i = 0; fits && i < outputs; ++i)
        fits = renamed.text(rule.target.outputs[i]) == plain.text(rule.target.outputs[order[i]]);
      if (fits) result.push_back(*symmetry);
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return result;
}

}  // namespace taso
