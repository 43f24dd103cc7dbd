#include "onnx_io/symbolic_export.h"

#include <algorithm>
#include <limits>
#include <set>

#include "onnx_io/in_quotes.h"

namespace taso {
namespace {

using Integers = std::vector<std::int64_t>;

std::string describe(const onnx::NodeProto& node) {
  return "node " + (node.name().empty() ? "of output " + in_quotes(node.output(0)) : in_quotes(node.name())) + " (" +
         node.op_type() + ")";
}

/// A list of extents that a node reads, as it is to be in the file; nothing: it is computed when the model runs.
struct Use {
  std::string node;  ///< Its first output.
  int input = 0;     ///< Position.
  std::optional<Integers> list;
};

/// factor * symbol + offset, or the offset alone.
struct Affine {
  std::optional<std::size_t> symbol;
  std::int64_t factor = 0, offset = 0;
};

/// How nodes compute a constant that is another at every size.
struct Computed {
  enum class Kind : std::uint8_t {
    list,      ///< Its elements are `terms`; of rank 1, or 0.
    repeated,  ///< One element; its shape is `terms`.
    range,     ///< start, start + step, ...; its shape is `terms`, and `limit` is where it ends.
  };
  Kind kind = Kind::list;
  std::vector<Affine> terms;
  std::int64_t start = 0, step = 0;
  Affine limit;
};

class SymbolicExporter {
 public:
  /// `exports`: without weights, one for each of `sized`.
  SymbolicExporter(const Document& document, std::span<const SizedExport> sized, std::span<const ExportedGraph> exports)
      : document_(document), sized_(sized), exports_(exports) {
    for (const ExportedGraph& exported : exports_) {
      constants_.emplace_back();
      for (const WrittenConstant& constant : exported.constants)
        if (constant.data) constants_.back().emplace(constant.name, constant.data.get());
    }
  }

  /// Finds what differs between the exports; an error if it is more than lists that can be replaced.
  Status compare() {
    for (std::size_t k = 1; k < exports_.size(); ++k) {
      TASO_RETURN_IF_ERROR(compare_nodes(k));
      TASO_RETURN_IF_ERROR(compare_constants(k));
    }
    for (const std::string& name : differing_) TASO_RETURN_IF_ERROR(replace(name));
    return {};
  }

  /// Puts the lists into an export at the first size.
  void apply(ExportedGraph& exported) {
    for (const WrittenConstant& constant : exported.constants) taken_.insert(constant.name);
    for (const onnx::NodeProto& node : exported.nodes) {
      taken_.insert(node.name());
      taken_.insert(node.output().begin(), node.output().end());
    }
    for (const auto& [name, uses] : uses_) {
      std::size_t readers = 0;
      for (const onnx::NodeProto& node : exported.nodes)
        readers += static_cast<std::size_t>(std::count(node.input().begin(), node.input().end(), name));
      // One list keeps the name, the computed one if there is one, unless something else reads what had it.
      const bool computed = std::any_of(uses.begin(), uses.end(), [](const Use& use) { return !use.list; });
      std::map<std::optional<Integers>, std::string> names;
      if (readers == uses.size()) {
        const std::optional<Integers> first = computed ? std::nullopt : uses[0].list;
        names.emplace(first, name);
        write(exported, name, first, name);
      }
      for (const Use& use : uses) {
        const auto [place, added] = names.try_emplace(use.list);
        if (added) {
          place->second = fresh_name(name);
          write(exported, place->second, use.list, name);
        }
        if (place->second != name) set_input(exported, use, place->second);
      }
    }
    exported.nodes.insert(exported.nodes.begin(), new_nodes_.begin(), new_nodes_.end());
    exported.originals.insert(exported.originals.begin(), new_nodes_.size(), -1);
  }

 private:
  [[nodiscard]] Error wrong(const std::string& what, std::size_t k) const {
    return Error{ErrorCode::not_proved,
                 what + " (" + to_string(*sized_[0].sizes) + "; " + to_string(*sized_[k].sizes) + ")",
                 {.file = document_.path()}};
  }

  Status compare_nodes(std::size_t k) const {
    const auto& first = exports_[0].nodes;
    const auto& other = exports_[k].nodes;
    for (std::size_t i = 0; i < std::min(first.size(), other.size()); ++i)
      if (exports_[0].originals[i] != exports_[k].originals[i] ||
          first[i].SerializeAsString() != other[i].SerializeAsString())
        return wrong(describe(first[i]) + " is another at other sizes", k);
    if (first.size() != other.size()) return wrong("there are other nodes at other sizes", k);
    return {};
  }

  Status compare_constants(std::size_t k) {
    const auto &first = exports_[0].constants, &other = exports_[k].constants;
    if (exports_[0].weights != exports_[k].weights) return wrong("a computed weight is another at other sizes", k);
    const auto same_place = [](const WrittenConstant& a, const WrittenConstant& b) {
      return a.name == b.name && a.document_index == b.document_index;
    };
    if (!std::ranges::equal(first, other, same_place)) return wrong("there are other constants at other sizes", k);
    for (std::size_t i = 0; i < first.size(); ++i)
      if (first[i].data && first[i].data->identity() != other[i].data->identity()) differing_.insert(first[i].name);
    return {};
  }

  /// Finds lists for all that read a constant which depends on the sizes.
  Status replace(const std::string& name) {
    for (const auto& output : document_.graph().output())
      if (output.name() == name) return wrong("graph output " + in_quotes(name) + " depends on the sizes", 1);
    const std::vector<const ConstantData*> values = values_of(name);
    for (const ConstantData* data : values)
      if (data == nullptr || data->type().element != values[0]->type().element ||
          data->type().shape.size() != values[0]->type().shape.size())
        return wrong("tensor " + in_quotes(name) + " depends on the sizes", 1);
    for (std::size_t i = 0; i < exports_[0].nodes.size(); ++i) {
      const onnx::NodeProto& node = exports_[0].nodes[i];
      const int original = exports_[0].originals[i];
      if (original >= 0) {
        const auto& captures = document_.captures(original);
        if (std::count(captures.begin(), captures.end(), name) > 0)
          return wrong(describe(node) + " reads " + in_quotes(name) + " in a subgraph, which depends on the sizes", 1);
      }
      for (int position = 0; position < node.input_size(); ++position) {
        if (node.input(position) != name) continue;
        // A slice ends where its input ends; the sizes of a split that stands in its place may not fit at all.
        if (original < 0 && node.op_type() == "Split")
          return wrong(describe(node) + " would have pieces that depend on the sizes", 1);
        const std::optional<Integers> list = list_for(node, position, name);
        if (node.output_size() == 0 || (!list && !find_form(name)))
          return wrong(describe(node) + " reads " + in_quotes(name) + ", which depends on the sizes", 1);
        uses_[name].push_back({node.output(0), position, list});
      }
    }
    return {};
  }

  // ---------------------------------------------------------------------------------- lists that are computed

  /// Finds how a constant follows from the extents of graph inputs.
  bool find_form(const std::string& name) {
    if (computed_.contains(name)) return true;
    Computed form;
    if (const std::vector<Integers> lists = integers_of(name); !lists.empty()) {
      if (auto terms = affine_terms(lists)) {
        form.terms = std::move(*terms);
        computed_.emplace(name, std::move(form));
        return true;
      }
    }
    const std::vector<const ConstantData*> values = values_of(name);
    std::vector<Integers> shapes;
    for (const ConstantData* data : values) shapes.push_back(data->type().shape);
    auto terms = affine_terms(shapes);
    if (!terms) return false;
    form.terms = std::move(*terms);
    if (is_repeated(values) && document_.opset() >= 9) {
      form.kind = Computed::Kind::repeated;
    } else if (is_range(values, form) && document_.opset() >= 11) {
      form.kind = Computed::Kind::range;
    } else {
      return false;
    }
    computed_.emplace(name, std::move(form));
    return true;
  }

  /// All elements at all sizes are equal.
  static bool is_repeated(const std::vector<const ConstantData*>& values) {
    const auto size = static_cast<std::size_t>(size_of(values[0]->type().element));
    std::vector<std::byte> first;
    for (const ConstantData* data : values) {
      const std::vector<std::byte> bytes = data->to_bytes();
      if (size == 0 || bytes.size() < size) return false;
      if (first.empty()) first.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      for (std::size_t at = 0; at < bytes.size(); at += size)
        if (!std::equal(first.begin(), first.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at))) return false;
    }
    return true;
  }

  /// The elements at each size are start, start + step, ..., and so many that `limit` follows.
  [[nodiscard]] bool is_range(const std::vector<const ConstantData*>& values, Computed& form) const {
    std::vector<Integers> limits;
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (values[k]->type().element != ElementType::i64) return false;
      const Integers all = values[k]->to_integers();
      if (all.size() < 2) return false;
      const std::int64_t start = all[0], step = all[1] - all[0];
      if (k == 0) {
        form.start = start;
        form.step = step;
      }
      if (step == 0 || start != form.start || step != form.step) return false;
      for (std::size_t i = 0; i < all.size(); ++i)
        if (all[i] != start + step * static_cast<std::int64_t>(i)) return false;
      limits.push_back({start + step * static_cast<std::int64_t>(all.size())});
    }
    const std::optional<Affine> limit = affine(limits, 0);
    if (limit) form.limit = *limit;
    return limit.has_value();
  }

  /// Each entry of lists of equal length as a * symbol + b.
  [[nodiscard]] std::optional<std::vector<Affine>> affine_terms(const std::vector<Integers>& lists) const {
    std::vector<Affine> terms;
    for (std::size_t i = 0; i < lists[0].size(); ++i) {
      const std::optional<Affine> term = affine(lists, i);
      if (!term) return std::nullopt;
      terms.push_back(*term);
    }
    return terms;
  }

  /// Entry `i` of all lists as a * symbol + b: told by two sizes, and true at the others.
  [[nodiscard]] std::optional<Affine> affine(const std::vector<Integers>& lists, std::size_t i) const {
    if (equal_at(lists, i)) return Affine{std::nullopt, 0, lists[0][i]};
    const std::vector<Symbol>& symbols = sized_[0].imported->symbols;
    for (std::size_t s = 0; s < symbols.size(); ++s) {
      const auto size = [&](std::size_t k) { return sized_[k].sizes->at(symbols[s].name); };
      std::size_t other = 1;  // A size at which the symbol is another.
      while (other < lists.size() && size(other) == size(0)) ++other;
      if (other == lists.size() || (lists[other][i] - lists[0][i]) % (size(other) - size(0)) != 0) continue;
      Affine term{s, (lists[other][i] - lists[0][i]) / (size(other) - size(0)), 0};
      term.offset = lists[0][i] - term.factor * size(0);
      bool fits = lists.size() > 2;  // two sizes fit anything
      for (std::size_t k = 0; k < lists.size(); ++k) fits = fits && lists[k][i] == term.factor * size(k) + term.offset;
      if (fits) return term;
    }
    return std::nullopt;
  }

  /// Adds nodes that compute the constant `source` under `name`.
  void compute(ExportedGraph& exported, const std::string& name, const std::string& source) {
    const Computed& form = computed_.at(source);
    const TensorType& type = values_of(source)[0]->type();
    switch (form.kind) {
      case Computed::Kind::list:
        compute_list(exported, name, form.terms, type.shape.empty());
        return;
      case Computed::Kind::repeated: {
        const std::string shape = compute_list(exported, fresh_name(name), form.terms, false);
        add_node("ConstantOfShape", {shape}, name);
        auto& attribute = *new_nodes_.back().add_attribute();
        attribute.set_name("value");
        attribute.set_type(onnx::AttributeProto::TENSOR);
        attribute.mutable_t()->set_data_type(data_type_of(type.element));
        attribute.mutable_t()->add_dims(1);
        attribute.mutable_t()->set_raw_data(values_of(source)[0]->to_bytes().data(),
                                            static_cast<std::size_t>(size_of(type.element)));
        return;
      }
      case Computed::Kind::range: {
        const std::string start = add_constant(exported, {}, {form.start}),
                          step = add_constant(exported, {}, {form.step});
        const std::string limit = compute_list(exported, fresh_name(name), {form.limit}, true);
        const bool flat = type.shape.size() == 1;
        const std::string all = add_node("Range", {start, limit, step}, flat ? name : "");
        if (!flat) add_node("Reshape", {all, compute_list(exported, fresh_name(name), form.terms, false)}, name);
        return;
      }
    }
  }

  /// Adds nodes that compute a list of integers, or a scalar; gives its name.
  std::string compute_list(ExportedGraph& exported, const std::string& name, const std::vector<Affine>& terms,
                           bool scalar) {
    const auto constant = [&](const Integers& values) {
      return add_constant(exported, scalar ? Shape{} : Shape{static_cast<std::int64_t>(values.size())}, values);
    };
    std::vector<std::string> parts;
    Integers fixed;
    const auto end_fixed = [&] {
      if (!fixed.empty()) parts.push_back(constant(fixed));
      fixed.clear();
    };
    for (const Affine& term : terms) {
      if (!term.symbol) {
        fixed.push_back(term.offset);
        continue;
      }
      end_fixed();
      const Symbol& symbol = sized_[0].imported->symbols[*term.symbol];
      std::string part =
          add_node("Gather", {shape_of_input(symbol.input), constant({static_cast<std::int64_t>(symbol.axis)})});
      if (term.factor != 1) part = add_node("Mul", {part, constant({term.factor})});
      if (term.offset != 0) part = add_node("Add", {part, constant({term.offset})});
      parts.push_back(part);
    }
    end_fixed();
    add_node(parts.size() == 1 ? "Identity" : "Concat", parts, name);
    if (parts.size() == 1) return name;
    auto& axis = *new_nodes_.back().add_attribute();
    axis.set_name("axis");
    axis.set_type(onnx::AttributeProto::INT);
    axis.set_i(0);
    return name;
  }

  std::string add_constant(ExportedGraph& exported, const Shape& shape, const Integers& values) {
    const std::string name = fresh_name("taso_constant");
    exported.constants.push_back({name, -1, ConstantData::of_integers(shape, values)});
    return name;
  }

  const std::string& shape_of_input(const std::string& input) {
    std::string& name = shapes_[input];
    if (name.empty()) name = add_node("Shape", {input});
    return name;
  }

  std::string add_node(const std::string& op_type, const std::vector<std::string>& inputs, std::string output = "") {
    if (output.empty()) output = fresh_name("taso_" + op_type);
    onnx::NodeProto node;
    node.set_op_type(op_type);
    node.set_name(fresh_name("taso_" + op_type));
    for (const std::string& input : inputs) node.add_input(input);
    node.add_output(output);
    new_nodes_.push_back(std::move(node));
    return output;
  }

  // ------------------------------------------------------------------------- lists that nodes find by themselves

  [[nodiscard]] std::optional<Integers> list_for(const onnx::NodeProto& node, int position,
                                                 const std::string& name) const {
    if (!is_default_domain(node.domain())) return std::nullopt;
    const std::vector<Integers> lists = integers_of(name);
    if (lists.empty()) return std::nullopt;
    if (node.op_type() == "Reshape" && position == 1) return list_of_reshape(node, lists);
    if (node.op_type() == "Expand" && position == 1) return list_of_expand(node, lists);
    if (node.op_type() == "Slice" && position == 2) return list_of_slice(node, lists);
    return std::nullopt;
  }

  [[nodiscard]] std::optional<Integers> list_of_reshape(const onnx::NodeProto& node,
                                                        const std::vector<Integers>& lists) const {
    for (const auto& attribute : node.attribute())
      if (attribute.name() == "allowzero" && attribute.i() != 0) return std::nullopt;
    const std::vector<Shape> inputs = shapes_of(node.input(0));
    Integers list = lists[0];
    bool rest = false, copied = false;
    for (std::size_t axis = 0; axis < list.size(); ++axis) {
      if (equal_at(lists, axis)) {
        if (list[axis] <= 0) return std::nullopt;
        continue;
      }
      if (!inputs.empty() && agree(lists, axis, inputs, axis)) {
        list[axis] = 0;
        copied = true;
      } else {
        if (rest) return std::nullopt;
        rest = true;
        list[axis] = -1;
      }
    }
    // Of a copied extent of 0 the rest does not follow: then the list is computed.
    if (rest && copied) return std::nullopt;
    return list;
  }

  [[nodiscard]] std::optional<Integers> list_of_expand(const onnx::NodeProto& node,
                                                       const std::vector<Integers>& lists) const {
    const std::vector<Shape> inputs = shapes_of(node.input(0));
    if (inputs.empty() || inputs[0].size() > lists[0].size()) return std::nullopt;
    const std::size_t more = lists[0].size() - inputs[0].size();
    Integers list = lists[0];
    for (std::size_t axis = 0; axis < list.size(); ++axis) {
      if (equal_at(lists, axis)) continue;
      if (axis < more || !agree(lists, axis, inputs, axis - more)) return std::nullopt;
      list[axis] = 1;
    }
    return list;
  }

  [[nodiscard]] std::optional<Integers> list_of_slice(const onnx::NodeProto& node,
                                                      const std::vector<Integers>& lists) const {
    const std::vector<Shape> inputs = shapes_of(node.input(0));
    if (inputs.empty()) return std::nullopt;
    Integers axes;
    if (node.input_size() > 3 && !node.input(3).empty()) {
      const std::vector<Integers> all = integers_of(node.input(3));
      if (all.empty() || std::any_of(all.begin(), all.end(), [&](const Integers& other) { return other != all[0]; }))
        return std::nullopt;
      axes = all[0];
    } else {
      for (std::size_t axis = 0; axis < lists[0].size(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
    }
    if (axes.size() != lists[0].size()) return std::nullopt;
    Integers list = lists[0];
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (equal_at(lists, i)) continue;
      const auto rank = static_cast<std::int64_t>(inputs[0].size());
      const std::int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
      if (axis < 0 || axis >= rank || !agree(lists, i, inputs, static_cast<std::size_t>(axis))) return std::nullopt;
      list[i] = std::numeric_limits<std::int64_t>::max();
    }
    return list;
  }

  static bool equal_at(const std::vector<Integers>& lists, std::size_t i) {
    return std::all_of(lists.begin(), lists.end(), [&](const Integers& list) { return list[i] == lists[0][i]; });
  }

  /// Entry `i` of each list is the extent of `axis` of the input.
  static bool agree(const std::vector<Integers>& lists, std::size_t i, const std::vector<Shape>& inputs,
                    std::size_t axis) {
    for (std::size_t k = 0; k < lists.size(); ++k)
      if (axis >= inputs[k].size() || lists[k][i] != inputs[k][axis]) return false;
    return true;
  }

  /// The shapes of a tensor at all sizes, of equal rank; empty if they are not known.
  [[nodiscard]] std::vector<Shape> shapes_of(const std::string& name) const {
    std::vector<Shape> shapes;
    for (const ExportedGraph& exported : exports_) {
      const auto type = exported.types.find(name);
      if (type == exported.types.end() || !type->second.known) return {};
      shapes.push_back(type->second.shape);
      if (shapes.back().size() != shapes[0].size()) return {};
    }
    return shapes;
  }

  /// The contents of a constant at all sizes; null where it is none.
  [[nodiscard]] std::vector<const ConstantData*> values_of(const std::string& name) const {
    std::vector<const ConstantData*> values;
    for (std::size_t k = 0; k < exports_.size(); ++k) {
      const auto written = constants_[k].find(name);
      const int tensor = document_.find(name);
      values.push_back(nullptr);
      if (written != constants_[k].end())
        values.back() = written->second;
      else if (tensor >= 0 && sized_[k].imported->constants[static_cast<std::size_t>(tensor)])
        values.back() = sized_[k].imported->constants[static_cast<std::size_t>(tensor)]->data.get();
    }
    return values;
  }

  /// The same as lists of equal length; empty if they are not such.
  [[nodiscard]] std::vector<Integers> integers_of(const std::string& name) const {
    std::vector<Integers> lists;
    for (const ConstantData* data : values_of(name)) {
      if (data == nullptr || data->type().element != ElementType::i64 || data->type().shape.size() > 1) return {};
      lists.push_back(data->to_integers());
      if (lists.back().size() != lists[0].size()) return {};
    }
    return lists;
  }

  std::string fresh_name(const std::string& base) {
    for (int n = 0;; ++n) {
      std::string name = base + "_" + std::to_string(n);
      if (!document_.all_names().contains(name) && taken_.insert(name).second) return name;
    }
  }

  /// The node that `use` names reads another constant, and is no longer the user's, byte for byte.
  static void set_input(ExportedGraph& exported, const Use& use, const std::string& name) {
    for (std::size_t i = 0; i < exported.nodes.size(); ++i) {
      onnx::NodeProto& node = exported.nodes[i];
      if (node.output_size() == 0 || node.output(0) != use.node) continue;
      node.set_input(use.input, name);
      exported.verbatim_nodes -= exported.originals[i] >= 0 ? 1 : 0;
      exported.originals[i] = -1;
    }
  }

  /// Defines `name` as a list, or as what the differing constant `source` is at each size.
  void write(ExportedGraph& exported, const std::string& name, const std::optional<Integers>& list,
             const std::string& source) {
    if (!list) {
      std::erase_if(exported.constants, [&](const WrittenConstant& constant) { return constant.name == name; });
      return compute(exported, name, source);
    }
    const auto data = ConstantData::of_integers({static_cast<std::int64_t>(list->size())}, *list);
    for (WrittenConstant& constant : exported.constants)
      if (constant.name == name) {
        constant.data = data;
        return;
      }
    exported.constants.push_back({name, -1, data});
  }

  const Document& document_;
  std::span<const SizedExport> sized_;
  std::span<const ExportedGraph> exports_;
  std::vector<std::map<std::string, const ConstantData*>> constants_;  // New ones of each export, by name.
  std::set<std::string> differing_;
  std::map<std::string, std::vector<Use>> uses_;
  std::map<std::string, Computed> computed_;
  std::set<std::string> taken_;                // Names of constants and of nodes' outputs.
  std::map<std::string, std::string> shapes_;  // Of graph inputs.
  std::vector<onnx::NodeProto> new_nodes_;
};

/// Per node id: weight-only nodes that are not the same at all sizes, in themselves or in what they read.
std::vector<bool> varying_weights(std::span<const SizedExport> sized) {
  const Graph& first = *sized[0].graph;
  std::vector<bool> varying(first.id_bound(), false);
  for (const NodeId id : first.topological_order()) {
    const Node& node = first.node(id);
    if (!node.weight_only) continue;
    for (const SizedExport& other : sized)
      varying[id] = varying[id] || !other.graph->contains(id) || other.graph->node(id).label != node.label;
    for (const Value& input : node.inputs) varying[id] = varying[id] || varying[input.node];
  }
  return varying;
}

}  // namespace

Expected<std::vector<Hash128>> export_forms(const Document& document, std::span<const SizedExport> sized,
                                            const OperatorRegistry& registry) {
  const ExportMode mode{.verbatim = true, .fold = false, .varying = varying_weights(sized)};
  std::vector<Hash128> forms;
  for (const SizedExport& one : sized) {
    TASO_ASSIGN(const ExportedGraph exported, export_graph(document, *one.imported, *one.graph, registry, mode));
    Hasher hasher;
    for (const onnx::NodeProto& node : exported.nodes) hasher.add(node.SerializeAsString());
    for (const int original : exported.originals) hasher.add(static_cast<std::int64_t>(original));
    for (const WrittenConstant& constant : exported.constants)
      hasher.add(constant.name).add(static_cast<std::int64_t>(constant.document_index));
    for (const auto& [name, weight] : exported.weights) hasher.add(name).add(weight);
    forms.push_back(hasher.finish());
  }
  return forms;
}

Expected<ExportedGraph> export_at_all_sizes(const Document& document, std::span<const SizedExport> sized,
                                            const OperatorRegistry& registry, bool verbatim, bool fold) {
  ExportMode mode{.verbatim = verbatim, .fold = false, .varying = varying_weights(sized)};
  std::vector<ExportedGraph> exports;
  for (const SizedExport& one : sized) {
    TASO_ASSIGN(ExportedGraph exported, export_graph(document, *one.imported, *one.graph, registry, mode));
    exports.push_back(std::move(exported));
  }
  SymbolicExporter exporter(document, sized, exports);
  TASO_RETURN_IF_ERROR(exporter.compare());
  ExportedGraph result = exports[0];
  if (fold) {
    mode.fold = true;
    TASO_ASSIGN(result, export_graph(document, *sized[0].imported, *sized[0].graph, registry, mode));
  }
  exporter.apply(result);
  return result;
}

}  // namespace taso
