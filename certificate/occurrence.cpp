#include "certificate/occurrence.h"

#include <algorithm>
#include <deque>
#include <map>
#include <string>

#include "graph/size_arithmetic.h"
#include "graph/uniform.h"

namespace taso {
namespace {

// The check of one match.
class Occurrence {
 public:
  Occurrence(const Graph& graph, const Substitution& rule, const Match& match, const OperatorCatalog& catalog)
      : graph_(graph), rule_(rule), match_(match), catalog_(catalog) {}

  Status run() {
    TASO_RETURN_IF_ERROR(check_places());
    bindings_.attributes = match_.attributes;
    for (const Value& value : match_.variables) bindings_.tensors.push_back(&graph_.type(value));
    for (std::uint32_t p = 0; p < rule_.source.nodes.size(); ++p)
      if (match_.port_begin[p] >= 0) TASO_RETURN_IF_ERROR(bind_pieces(p));
    for (std::uint32_t p = 0; p < rule_.source.nodes.size(); ++p) {
      TASO_RETURN_IF_ERROR(check_attributes(p));
      TASO_RETURN_IF_ERROR(check_operands(p));
    }
    for (const PatternValue& output : rule_.source.outputs)
      if (!output.is_variable && value_of(output).port >= graph_.node(value_of(output).node).outputs.size())
        return wrong("node " + std::to_string(value_of(output).node) + " has no output " +
                     std::to_string(value_of(output).port));
    return {};
  }

 private:
  [[nodiscard]] Error wrong(const std::string& what) const { return bad_input(rule_.name + ": " + what); }

  [[nodiscard]] const Node& node(std::uint32_t p) const { return graph_.node(match_.nodes[p]); }
  [[nodiscard]] std::string place(std::uint32_t p) const {
    return "node " + std::to_string(match_.nodes[p]) + " (" + node(p).op + ")";
  }

  // What a value of the source stands for.
  [[nodiscard]] Value value_of(const PatternValue& value) const {
    if (value.is_variable) return match_.variables[value.index];
    return {match_.nodes[value.index],
            value.port + static_cast<std::uint32_t>(std::max(match_.port_begin[value.index], 0))};
  }

  // Everything that the match names exists and has the operator that it should have.
  Status check_places() const {
    const std::size_t nodes = rule_.source.nodes.size();
    if (match_.variables.size() != rule_.tensor_variables.size() ||
        match_.attributes.size() != rule_.attribute_variables.size() || match_.nodes.size() != nodes ||
        match_.operand_begin.size() != nodes || match_.port_begin.size() != nodes)
      return wrong("the match has other numbers of variables, attributes or nodes");
    for (const Value& value : match_.variables)
      if (!graph_.contains(value.node) || value.port >= graph_.node(value.node).outputs.size())
        return wrong("there is no output " + std::to_string(value.port) + " of a node " + std::to_string(value.node));
    for (const Value& value : match_.variables)
      if (!graph_.type(value).known) return wrong("the type of node " + std::to_string(value.node) + " is not known");
    for (std::uint32_t p = 0; p < nodes; ++p) {
      if (!graph_.contains(match_.nodes[p])) return wrong("there is no node " + std::to_string(match_.nodes[p]));
      if (is_fill(p)) continue;
      if (!node(p).is_op(rule_.source.nodes[p].op)) return wrong(place(p) + " is not a " + rule_.source.nodes[p].op);
      for (const TensorType& type : node(p).outputs)
        if (!type.known) return wrong("the type of " + place(p) + " is not known");
    }
    return {};
  }

  // Whether a node stands for a filling operator of the source.
  [[nodiscard]] bool is_fill(std::uint32_t p) const {
    return as_fill(graph_, {match_.nodes[p], 0}, rule_.source.nodes[p].op, catalog_).has_value();
  }

  [[nodiscard]] std::size_t uses_of(const PatternValue& value) const {
    std::size_t uses = 0;
    for (const PatternNode& other : rule_.source.nodes)
      uses += static_cast<std::size_t>(std::count(other.inputs.begin(), other.inputs.end(), value));
    return uses + static_cast<std::size_t>(std::count(rule_.source.outputs.begin(), rule_.source.outputs.end(), value));
  }

  // Some adjacent outputs of a longer split of a variable that nothing else of the source reads: these pieces together
  // are what the variable stands for.
  Status bind_pieces(std::uint32_t p) {
    const PatternNode& pattern = rule_.source.nodes[p];
    const PieceAttributes* const names = catalog_.pieces(pattern.op);
    if (names == nullptr || pattern.inputs.size() != 1 || !pattern.inputs[0].is_variable ||
        uses_of(pattern.inputs[0]) != 1)
      return wrong(place(p) + " cannot be matched in part");
    const auto* sizes_of_node = node(p).attributes.find(names->sizes);
    const auto* axis = node(p).attributes.find(names->axis);
    const auto* sizes = sizes_of_node == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(sizes_of_node);
    const auto* axis_number = axis == nullptr ? nullptr : std::get_if<std::int64_t>(axis);
    const auto expression = std::find_if(pattern.attributes.begin(), pattern.attributes.end(),
                                         [&](const auto& a) { return a.first == names->sizes; });
    if (sizes == nullptr || axis_number == nullptr || expression == pattern.attributes.end() ||
        node(p).inputs.size() != 1 || node(p).inputs[0] != value_of(pattern.inputs[0]))
      return wrong(place(p) + " cannot be matched in part");
    // How many pieces: told by the variable, or by the length of the list.
    std::size_t pieces = expression->second.operands.size();
    if (expression->second.kind == AttributeExpression::Kind::literal ||
        expression->second.kind == AttributeExpression::Kind::variable) {
      const std::optional<AttributeValue> value = expression->second.kind == AttributeExpression::Kind::literal
                                                      ? std::optional(expression->second.literal)
                                                      : match_.attributes[expression->second.index];
      const auto* list = value ? std::get_if<std::vector<std::int64_t>>(&*value) : nullptr;
      if (list == nullptr) return wrong("the sizes of a split are not a list");
      pieces = list->size();
    } else if (expression->second.kind != AttributeExpression::Kind::list) {
      return wrong(place(p) + " cannot be matched in part");
    }
    const auto begin = static_cast<std::size_t>(match_.port_begin[p]);
    if (pieces < 2 || begin + pieces > sizes->size()) return wrong(place(p) + " has no such pieces");
    TensorType type = graph_.type(node(p).inputs[0]);
    const std::int64_t from_front = static_cast<std::int64_t>(type.shape.size()) + *axis_number;
    if (from_front < 0 || from_front >= static_cast<std::int64_t>(type.shape.size()))
      return wrong(place(p) + " has no such axis");
    part_[p].assign(sizes->begin() + static_cast<std::ptrdiff_t>(begin),
                    sizes->begin() + static_cast<std::ptrdiff_t>(begin + pieces));
    const Expected<std::int64_t> together = sum_of_sizes(part_[p], sizes_of(catalog_));
    if (!together) return wrong(together.error().message);
    type.shape[static_cast<std::size_t>(from_front)] = *together;
    types_.push_back(std::move(type));
    bindings_.tensors[pattern.inputs[0].index] = &types_.back();
    return {};
  }

  Status check_attributes(std::uint32_t p) const {
    const Expected<Attributes> expected =
        evaluate_attributes(rule_.source.nodes[p], bindings_, catalog_, sizes_of(catalog_));
    if (!expected) return wrong("attributes of " + place(p) + ": " + expected.error().message);
    if (is_fill(p)) {
      const Attributes held = *as_fill(graph_, {match_.nodes[p], 0}, rule_.source.nodes[p].op, catalog_);
      for (std::size_t i = 0; i < held.entries().size(); ++i)
        if (!same_rounded(expected->entries()[i].second, held.entries()[i].second, node(p).outputs[0].element))
          return wrong(place(p) + " is not " + rule_.source.nodes[p].op + " with " + to_string(*expected));
      return {};
    }
    Attributes actual = node(p).attributes;
    if (const auto part = part_.find(p); part != part_.end()) actual.set("sizes", part->second);
    if (*expected != actual)
      return wrong(place(p) + " has other attributes (" + to_string(actual, sizes_of(catalog_)) + "; the rule says " +
                   to_string(*expected, sizes_of(catalog_)) + ")");
    return {};
  }

  Status check_operands(std::uint32_t p) const {
    const PatternNode& pattern = rule_.source.nodes[p];
    if (is_fill(p)) return {};
    const std::vector<Value>& inputs = node(p).inputs;
    std::vector<Value> expected;
    for (const PatternValue& input : pattern.inputs) expected.push_back(value_of(input));
    if (match_.operand_begin[p] >= 0) {
      const PatternValue output{false, p, 0};
      const bool is_output = std::count(rule_.source.outputs.begin(), rule_.source.outputs.end(), output) == 1;
      if (!catalog_.is_associative(pattern.op) || !is_output || uses_of(output) != 1)
        return wrong(place(p) + " cannot be matched in part");
      const auto begin = static_cast<std::size_t>(match_.operand_begin[p]);
      if (begin + expected.size() > inputs.size() ||
          !std::equal(expected.begin(), expected.end(), inputs.begin() + static_cast<std::ptrdiff_t>(begin)))
        return wrong(place(p) + " has other operands there");
      return {};
    }
    const auto stands = [&](std::size_t operand, std::size_t input) {
      const PatternValue& said = pattern.inputs[operand];
      return inputs[input] == expected[operand] ||
             (!said.is_variable &&
              same_fill(graph_, inputs[input], expected[operand], rule_.source.nodes[said.index].op, catalog_));
    };
    bool same = inputs.size() == expected.size();
    for (std::size_t i = 0; same && i < inputs.size(); ++i) same = stands(i, i);
    if (same) return {};
    if (catalog_.is_commutative(pattern.op) && inputs.size() == 2 && expected.size() == 2 && stands(0, 1) &&
        stands(1, 0))
      return {};
    return wrong(place(p) + " has other operands");
  }

  const Graph& graph_;
  const Substitution& rule_;
  const Match& match_;
  const OperatorCatalog& catalog_;
  Bindings bindings_;
  std::deque<TensorType> types_;                             // of pieces together; addresses stay
  std::map<std::uint32_t, std::vector<std::int64_t>> part_;  // sizes of the pieces, per node of the source
};

}  // namespace

void forget_sizes(Match& match) {
  for (std::optional<AttributeValue>& value : match.attributes) {
    if (!value) continue;
    if (auto* list = std::get_if<std::vector<std::int64_t>>(&*value))
      std::fill(list->begin(), list->end(), unknown_size);
    else if (std::holds_alternative<std::int64_t>(*value))
      value.reset();
  }
}

Match with_sizes_of(const Graph& graph, const Substitution& rule, const Match& match, const OperatorCatalog& catalog) {
  using Kind = AttributeExpression::Kind;
  using Integers = std::vector<std::int64_t>;
  Match result = match;
  const auto bind = [&](const AttributeExpression& variable, const AttributeValue& value) {
    if (variable.index >= result.attributes.size()) return;
    std::optional<AttributeValue>& slot = result.attributes[variable.index];
    auto* known = slot ? std::get_if<Integers>(&*slot) : nullptr;
    const auto* list = std::get_if<Integers>(&value);
    if (!slot) {
      slot = value;
    } else if (known != nullptr && list != nullptr && known->size() == list->size()) {
      for (std::size_t i = 0; i < list->size(); ++i)
        if ((*known)[i] == unknown_size) (*known)[i] = (*list)[i];
    }
  };
  for (std::size_t p = 0; p < rule.source.nodes.size() && p < match.nodes.size(); ++p) {
    if (!graph.contains(match.nodes[p])) continue;
    const Node& node = graph.node(match.nodes[p]);
    const std::optional<Attributes> held =
        node.outputs.empty() ? std::nullopt : as_fill(graph, {match.nodes[p], 0}, rule.source.nodes[p].op, catalog);
    const Attributes& attributes = held ? *held : node.attributes;
    const std::int32_t window = p < match.port_begin.size() ? match.port_begin[p] : -1;
    for (const auto& [name, expression] : rule.source.nodes[p].attributes) {
      const AttributeValue* whole = attributes.find(name);
      if (whole == nullptr) continue;
      AttributeValue value = *whole;
      const auto* list = std::get_if<Integers>(whole);
      if (window >= 0 && name == "sizes" && list != nullptr) {
        // Some adjacent outputs of a longer split: as many as the step says.
        std::size_t pieces = expression.operands.size();
        if (expression.kind == Kind::variable && expression.index < match.attributes.size() &&
            match.attributes[expression.index])
          if (const auto* part = std::get_if<Integers>(&*match.attributes[expression.index])) pieces = part->size();
        const auto begin = static_cast<std::size_t>(window);
        if (begin + pieces > list->size()) continue;
        value = Integers(list->begin() + window, list->begin() + window + static_cast<std::ptrdiff_t>(pieces));
      }
      if (expression.kind == Kind::variable) bind(expression, value);
      const auto* elements = std::get_if<Integers>(&value);
      if (expression.kind != Kind::list || elements == nullptr || elements->size() != expression.operands.size())
        continue;
      for (std::size_t i = 0; i < elements->size(); ++i)
        if (expression.operands[i].kind == Kind::variable) bind(expression.operands[i], (*elements)[i]);
    }
  }
  return result;
}

Status check_occurrence(const Graph& graph, const Substitution& rule, const Match& match,
                        const OperatorCatalog& catalog) {
  return Occurrence(graph, rule, match, catalog).run();
}

}  // namespace taso
