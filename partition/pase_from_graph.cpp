#include "partition/pase_from_graph.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "partition/products_apart.h"

namespace taso {
namespace {

/// What a variable does to one operand.
struct OperandUse {
  std::size_t axis = 0;
  bool window = false;       ///< Pieces may overlap, or leave something out.
  std::int64_t covered = 0;  ///< Then: what one index reads of the axis.
};

/// An index variable of an operator at given shapes.
struct DomainVariable {
  std::int64_t extent = 0;
  std::optional<std::size_t> output_axis;
  std::string reducer;
  std::map<std::size_t, OperandUse> operands;  ///< By number.
};

std::optional<std::int64_t> integer_of(const AttributeExpression& e, const Bindings& bindings) {
  const Expected<AttributeValue> value = evaluate(e, bindings);
  const auto* number = value ? std::get_if<std::int64_t>(&*value) : nullptr;
  return number == nullptr ? std::nullopt : std::optional(*number);
}

DomainVariable variable_of(const OperatorPiece& whole, const PieceCut& cut) {
  DomainVariable variable{cut.extent, cut.output_axis, cut.strategy->reducer, {}};
  Bindings bindings;
  for (const TensorType& type : whole.inputs) bindings.tensors.push_back(&type);
  bindings.attributes = cut.attributes;
  for (const InputCut& input : cut.strategy->inputs) {
    OperandUse use;
    // Index m - 1 begins where a second piece from m - 1 on does, and ends where a first piece before m does.
    bindings.attributes[cut.strategy->cut] = std::int64_t{1};
    const auto axis = integer_of(input.axis, bindings), begin = integer_of(input.second_begin, bindings);
    bindings.attributes[cut.strategy->cut] = std::int64_t{2};
    const auto end = integer_of(input.first_end, bindings);
    if (!axis || !begin || !end) continue;
    use.axis = static_cast<std::size_t>(static_cast<std::int64_t>(whole.inputs[input.input].shape.size()) + *axis);
    use.window = input.first_end != input.second_begin;
    use.covered = *end - *begin;
    variable.operands.emplace(input.input, use);
  }
  return variable;
}

/// The variables of an operator, those of the output by its axes first; each once, though several strategies cut it.
std::vector<DomainVariable> variables_of(const OperatorPiece& whole, StrategyTable& strategies) {
  std::vector<DomainVariable> variables;
  std::set<std::string> names;
  for (const PieceCut& cut : cuts_of(whole, strategies))
    if (names.insert(cut.name).second) variables.push_back(variable_of(whole, cut));
  const auto place = [](const DomainVariable& v) { return v.output_axis.value_or(static_cast<std::size_t>(-1)); };
  std::stable_sort(variables.begin(), variables.end(),
                   [&](const DomainVariable& a, const DomainVariable& b) { return place(a) < place(b); });
  return variables;
}

std::vector<std::int64_t> extents_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

PaseAxes axes_up_to(std::size_t rank) {
  PaseAxes axes;
  for (std::size_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

std::vector<PaseAxes> each_axis(std::size_t rank) {
  std::vector<PaseAxes> axes;
  for (std::size_t axis = 0; axis < rank; ++axis) axes.push_back({axis});
  return axes;
}

class PaseReader {
 public:
  PaseReader(const Graph& graph, StrategyTable& strategies, const PaseReading& reading)
      : graph_(graph), strategies_(strategies), reading_(reading), consumers_(graph.consumers()) {
    made_.cutoff = reading.cutoff;
  }

  Expected<PaseGraph> read() {
    for (const NodeId id : graph_.topological_order()) {
      const Node& node = graph_.node(id);
      if (node.weight_only || node.kind == NodeKind::input) continue;
      if (node.kind != NodeKind::op) return unknown(id, "it is not understood");
      TASO_RETURN_IF_ERROR(read_node(id));
    }
    if (reading_.loss)
      for (const Value& output : graph_.outputs()) add_loss(output);
    return std::move(made_);
  }

 private:
  /// Where a value of the graph is: an output of a layer.
  struct Place {
    std::uint32_t layer = 0, output = 0;
  };

  Error unknown(NodeId id, const std::string& reason) const {
    const Node& node = graph_.node(id);
    const std::string name = node.name.empty() ? "" : " \"" + node.name + "\"";
    return bad_input("node" + name + " (" + node.op + ") is no layer of PaSE: " + reason);
  }

  /// Operands that are no weights.
  std::vector<std::size_t> activations(const Node& node) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (!graph_.node(node.inputs[i].node).weight_only) found.push_back(i);
    return found;
  }

  Status read_node(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.outputs.size() != 1) return unknown(id, "it has several outputs");
    for (const Value& input : node.inputs)
      if (!graph_.type(input).known) return unknown(id, "its shapes are not known");
    const OperatorPiece whole = all_of(graph_, id);
    const std::vector<std::size_t> given = activations(node);
    if (strategies_.registry().is_associative(node.op)) return add_concat(id, given);
    const OperatorSignature* const signature = strategies_.registry().signature(node.op);
    if (signature != nullptr && signature->copies) return add_reshape(id);
    const std::vector<DomainVariable> variables = variables_of(whole, strategies_);
    const auto sums = [](const DomainVariable& v) { return v.reducer == "sum" && v.operands.size() > 1; };
    if (std::any_of(variables.begin(), variables.end(), sums)) return add_product(id, variables);
    if (is_elementwise(node, given, variables)) return add_elementwise(id, given);
    if (given.size() == 1) return add_reduction(id, given[0], variables);
    return unknown(
        id, "it is neither a product nor element-wise, and reads " + std::to_string(given.size()) + " activations");
  }

  /// All activations have the output's shape, and each of its axes is cut in each of them.
  bool is_elementwise(const Node& node, const std::vector<std::size_t>& given,
                      const std::vector<DomainVariable>& variables) const {
    const Shape& shape = node.outputs[0].shape;
    std::size_t cut = 0;
    for (const DomainVariable& variable : variables) {
      if (!variable.output_axis) return false;
      ++cut;
      for (const std::size_t i : given) {
        const auto use = variable.operands.find(i);
        if (use == variable.operands.end() || use->second.axis != *variable.output_axis || use->second.window)
          return false;
      }
    }
    const auto split = std::count_if(shape.begin(), shape.end(), [](std::int64_t extent) { return extent > 1; });
    return cut == static_cast<std::size_t>(split) && std::all_of(given.begin(), given.end(), [&](std::size_t i) {
             return graph_.type(node.inputs[i]).shape == shape;
           });
  }

  PaseLayer& add_layer(const std::string& type, std::vector<std::int64_t> domain, PaseWork work) {
    PaseLayer& layer = made_.layers.emplace_back();
    layer.type = type;
    layer.domain = std::move(domain);
    layer.work = std::move(work);
    return layer;
  }
  std::uint32_t last() const { return static_cast<std::uint32_t>(made_.layers.size() - 1); }

  /// An operand of the last layer.
  void add_input(Value value, std::vector<PaseAxes> axes) {
    PaseLayer& layer = made_.layers.back();
    layer.inputs.push_back({extents_of(graph_.type(value).shape), std::move(axes)});
    const auto from = places_.find(value);
    if (from != places_.end())
      made_.edges.push_back(
          {from->second.layer, from->second.output, last(), static_cast<std::uint32_t>(layer.inputs.size() - 1)});
  }
  void set_output(Value value, std::vector<PaseAxes> axes) {
    PaseLayer& layer = made_.layers.back();
    layer.outputs.push_back({extents_of(graph_.type(value).shape), std::move(axes)});
    places_[value] = {last(), static_cast<std::uint32_t>(layer.outputs.size() - 1)};
  }

  Status add_product(NodeId id, const std::vector<DomainVariable>& variables) {
    const Node& node = graph_.node(id);
    const auto sum = std::find_if(variables.begin(), variables.end(),
                                  [](const DomainVariable& v) { return v.reducer == "sum" && v.operands.size() > 1; });
    const std::size_t first = sum->operands.begin()->first, second = std::next(sum->operands.begin())->first;
    PaseProduct product;
    std::vector<std::int64_t> domain;
    PaseAxes pinned;
    for (const DomainVariable& variable : variables) {
      const std::size_t axis = domain.size();
      domain.push_back(variable.extent);
      const bool in_first = variable.operands.contains(first), in_second = variable.operands.contains(second);
      const bool in_output = variable.output_axis.has_value();
      if (!in_output && variable.reducer != "sum") return unknown(id, "it combines parts by " + variable.reducer);
      PaseAxes& role = !in_output              ? product.k
                       : in_first && in_second ? product.batch
                       : in_first              ? product.m
                                               : product.n;
      role.push_back(axis);
      if (in_output && std::any_of(variable.operands.begin(), variable.operands.end(),
                                   [](const auto& use) { return use.second.window; }))
        pinned.push_back(axis);
    }
    PaseLayer& layer = add_layer(node.op, domain, product);
    layer.pinned = pinned;
    for (const std::size_t i : activations(node)) add_input(node.inputs[i], operand_axes(node, i, variables));
    set_output({id, 0}, output_axes(node, variables));
    return {};
  }

  /// The variable of each axis of an operand; of an axis that several index, the one of the output.
  std::vector<PaseAxes> operand_axes(const Node& node, std::size_t input,
                                     const std::vector<DomainVariable>& variables) const {
    std::vector<PaseAxes> axes(graph_.type(node.inputs[input]).shape.size());
    for (std::size_t v = 0; v < variables.size(); ++v) {
      const auto use = variables[v].operands.find(input);
      if (use != variables[v].operands.end() && axes[use->second.axis].empty()) axes[use->second.axis] = {v};
    }
    return axes;
  }
  static std::vector<PaseAxes> output_axes(const Node& node, const std::vector<DomainVariable>& variables) {
    std::vector<PaseAxes> axes(node.outputs[0].shape.size());
    for (std::size_t v = 0; v < variables.size(); ++v)
      if (variables[v].output_axis) axes[*variables[v].output_axis].push_back(v);
    return axes;
  }

  Status add_elementwise(NodeId id, const std::vector<std::size_t>& given) {
    const Node& node = graph_.node(id);
    const bool weighted = given.size() < node.inputs.size();
    const auto before = given.size() == 1 ? places_.find(node.inputs[given[0]]) : places_.end();
    if (before != places_.end() && only_reader(node.inputs[given[0]])) {
      PaseLayer& layer = made_.layers[before->second.layer];
      const bool follows_product = std::holds_alternative<PaseProduct>(layer.work);
      // A weight that is multiplied with: partial sums of the activation pass, those of both operands do not.
      if (!weighted || !follows_product || passes_all(node)) {
        if (!weighted) count_pointwise(layer.work);
        places_[{id, 0}] = before->second;
        return {};
      }
    }
    const Shape& shape = node.outputs[0].shape;
    const bool scales = weighted && !passes_all(node);
    add_layer(node.op, extents_of(shape), scales ? PaseWork(PaseNorm{0}) : PaseWork(PaseElementwise{}));
    for (const std::size_t i : given) add_input(node.inputs[i], each_axis(shape.size()));
    set_output({id, 0}, each_axis(shape.size()));
    return {};
  }

  bool only_reader(Value value) const {
    const auto& outputs = graph_.outputs();
    return consumers_[value.node].size() == 1 && std::find(outputs.begin(), outputs.end(), value) == outputs.end();
  }
  /// Partial sums of all operands together pass: it adds.
  bool passes_all(const Node& node) const {
    const OperatorSignature* const signature = strategies_.registry().signature(node.op);
    if (signature == nullptr) return false;
    const auto& passages = strategies_.passages_of(node.op);
    return std::any_of(passages.begin(), passages.end(), [&](const PartialPassage& passage) {
      return passage.reducer == "sum" && passage.inputs.size() == node.inputs.size();
    });
  }
  static void count_pointwise(PaseWork& work) {
    if (auto* const product = std::get_if<PaseProduct>(&work)) ++product->pointwise;
    if (auto* const elementwise = std::get_if<PaseElementwise>(&work)) ++elementwise->pointwise;
  }

  /// One activation, of which each output element reads several: windows, a mean, or what needs all of an axis.
  Status add_reduction(NodeId id, std::size_t input, const std::vector<DomainVariable>& variables) {
    const Node& node = graph_.node(id);
    const Shape &from = graph_.type(node.inputs[input]).shape, &to = node.outputs[0].shape;
    std::vector<bool> cut(from.size(), false);
    std::vector<std::int64_t> windows(from.size(), 0);
    bool moves = false;
    for (const DomainVariable& variable : variables) {
      const auto use = variable.operands.find(input);
      if (!variable.output_axis || use == variable.operands.end()) continue;
      cut[use->second.axis] = true;
      if (use->second.window) moves = true, windows[use->second.axis] = use->second.covered;
    }
    PaseAxes whole;
    for (std::size_t axis = 0; axis < from.size(); ++axis)
      if (!cut[axis] && from[axis] > 1) whole.push_back(axis);
    if (from.size() == to.size() && from.size() == 4 && moves) {
      add_layer(node.op, extents_of(to), PasePooling{extents_of(from), windows[2], windows[3]});
      add_input(node.inputs[input], each_axis(4));
      set_output({id, 0}, each_axis(4));
      return {};
    }
    if (from == to && whole.size() == 1) {
      const bool weighted = node.inputs.size() > 1;
      add_layer(node.op, extents_of(from), weighted ? PaseWork(PaseNorm{whole[0]}) : PaseWork(PaseSoftmax{whole[0]}));
      add_input(node.inputs[input], each_axis(from.size()));
      set_output({id, 0}, each_axis(from.size()));
      return {};
    }
    if (whole.empty() || volume(to) >= volume(from)) return unknown(id, "what it reads of its input is not understood");
    add_layer(node.op, extents_of(from), PaseMean{whole});
    add_input(node.inputs[input], each_axis(from.size()));
    std::vector<PaseAxes> axes(to.size());
    for (const DomainVariable& variable : variables)
      if (variable.output_axis && variable.operands.contains(input))
        axes[*variable.output_axis] = {variable.operands.at(input).axis};
    set_output({id, 0}, std::move(axes));
    return {};
  }

  Status add_concat(NodeId id, const std::vector<std::size_t>& given) {
    const Node& node = graph_.node(id);
    const Shape& to = node.outputs[0].shape;
    PaseAxes joined;
    for (std::size_t axis = 0; axis < to.size(); ++axis)
      if (graph_.type(node.inputs[0]).shape[axis] != to[axis]) joined.push_back(axis);
    std::vector<std::int64_t> domain = extents_of(to);
    for (const std::size_t axis : joined) domain[axis] = 1;
    add_layer(node.op, std::move(domain), PaseMove{});
    for (const std::size_t i : given) add_input(node.inputs[i], each_axis(to.size()));
    set_output({id, 0}, each_axis(to.size()));
    return {};
  }

  /// What copies elements: nothing where only axes of extent 1 come or go; other changes go through a flat tensor.
  Status add_reshape(NodeId id) {
    const Node& node = graph_.node(id);
    const Value input = node.inputs[0];
    const Shape &from = graph_.type(input).shape, &to = node.outputs[0].shape;
    if (volume(from) != volume(to)) return unknown(id, "it repeats or leaves out elements");
    const auto without_ones = [](const Shape& shape) {
      std::vector<std::int64_t> kept = extents_of(shape);
      std::erase(kept, 1);
      return kept;
    };
    const auto before = places_.find(input);
    if (without_ones(from) == without_ones(to)) {
      if (before == places_.end()) return {};
      PaseLayer& layer = made_.layers[before->second.layer];
      const PaseTensor written = layer.outputs[before->second.output];
      std::vector<PaseAxes> axes(to.size());
      std::size_t at = 0;
      for (std::size_t axis = 0; axis < to.size(); ++axis) {
        if (to[axis] == 1) continue;
        while (from[at] == 1) ++at;
        axes[axis] = written.axes[at++];
      }
      layer.outputs.push_back({extents_of(to), std::move(axes)});
      places_[{id, 0}] = {before->second.layer, static_cast<std::uint32_t>(layer.outputs.size() - 1)};
      return {};
    }
    add_layer("Ravel", extents_of(from), PaseMove{}).contiguous = true;
    add_input(input, each_axis(from.size()));
    made_.layers.back().outputs.push_back({{volume(from)}, {axes_up_to(from.size())}});
    const std::uint32_t ravel = last();
    PaseLayer& unravel = add_layer("Unravel", extents_of(to), PaseMove{});
    unravel.contiguous = true;
    unravel.inputs.push_back({{volume(to)}, {axes_up_to(to.size())}});
    made_.edges.push_back({ravel, 0, last(), 0});
    set_output({id, 0}, each_axis(to.size()));
    return {};
  }

  void add_loss(Value output) {
    const Shape& shape = graph_.type(output).shape;
    add_layer("SoftmaxCrossEntropy", extents_of(shape), PaseCrossEntropy{});
    add_input(output, each_axis(shape.size()));
    made_.layers.back().outputs.push_back({extents_of(shape), each_axis(shape.size())});
  }

  const Graph& graph_;
  StrategyTable& strategies_;
  const PaseReading& reading_;
  std::vector<std::vector<std::pair<NodeId, std::uint32_t>>> consumers_;
  PaseGraph made_;
  std::map<Value, Place> places_;
};

}  // namespace

Expected<PaseGraph> pase_from_graph(const Graph& graph, StrategyTable& strategies, const PaseReading& reading) {
  TASO_ASSIGN(const Graph apart, products_apart(graph, strategies));
  return PaseReader(apart, strategies, reading).read();
}

}  // namespace taso
