#include "onnx_io/symbolic_export.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <tuple>

#include "onnx_io/in_quotes.h"
#include "onnx_io/joined_moves.h"
#include "support/one_line.h"

namespace taso {
namespace {

using Integers = std::vector<std::int64_t>;

std::string describe(const onnx::NodeProto& node) {
  return "node " + (node.name().empty() ? "of output " + in_quotes(node.output(0)) : in_quotes(node.name())) + " (" +
         node.op_type() + ")";
}

/// The names that nodes in the subgraphs of a node read, their own ones included.
std::set<std::string> read_in_subgraphs(const onnx::NodeProto& node) {
  std::set<std::string> names;
  const auto read = [&](const onnx::GraphProto& graph) {
    for (const onnx::NodeProto& inner : graph.node()) {
      names.insert(inner.input().begin(), inner.input().end());
      names.merge(read_in_subgraphs(inner));
    }
    for (const onnx::ValueInfoProto& output : graph.output()) names.insert(output.name());
  };
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) read(attribute.g());
    for (const onnx::GraphProto& graph : attribute.graphs()) read(graph);
  }
  return names;
}

/// A list of extents that a node reads, as it is to be in the file; nothing: it is computed when the model runs.
struct Use {
  std::string node;  ///< Its first output.
  int input = 0;     ///< Position.
  std::optional<Integers> list;
};

class SymbolicExporter {
 public:
  /// `exported`: the graph for all sizes, its integers names of sizes.
  SymbolicExporter(const Document& document, const SymbolicExport& all, ExportedGraph& exported)
      : document_(document), all_(all), exported_(exported) {
    for (const WrittenConstant& constant : exported.constants)
      if (constant.data) constants_.emplace(constant.name, constant.data);
  }

  /// Whether the export at a sample is this one with the numbers of the sample; else why not.
  [[nodiscard]] Status compare(const ExportedGraph& there, const SizedExport& sample) const {
    Constants constants;
    for (const WrittenConstant& constant : there.constants)
      if (constant.data) constants.emplace(constant.name, constant.data);
    for (std::size_t i = 0; i < std::min(exported_.nodes.size(), there.nodes.size()); ++i)
      if (!is_at(exported_.nodes[i], there.nodes[i], constants, sample))
        return wrong(describe(exported_.nodes[i]) + " is another at some sizes");
    if (exported_.nodes.size() != there.nodes.size()) return wrong("there are other nodes at some sizes");
    if (exported_.weights != there.weights) return wrong("a computed weight is another at some sizes");
    return {};
  }

  /// Finds the lists that the nodes read; an error if there is no form for all sizes.
  Status find_lists() {
    for (const auto& output : document_.graph().output())
      if (const ConstantForm* form = form_of(output.name()); form != nullptr && !keep(output.name(), *form))
        return wrong("graph output " + in_quotes(output.name()) + " depends on the sizes");
    for (std::size_t i = 0; i < exported_.nodes.size(); ++i) {
      const onnx::NodeProto& node = exported_.nodes[i];
      for (const std::string& name : read_in_subgraphs(node))
        if (const ConstantForm* form = form_of(name); form != nullptr && !keep(name, *form))
          return wrong(describe(node) + " reads " + in_quotes(name) + " in a subgraph, which depends on the sizes");
      for (int position = 0; position < node.input_size(); ++position) {
        const std::string& name = node.input(position);
        const ConstantForm* form = form_of(name);
        if (form == nullptr) continue;
        const std::optional<Integers> list = list_for(node, position, *form);
        if (node.output_size() == 0 || (!list && !can_compute(*form)))
          return wrong(describe(node) + " reads " + in_quotes(name) + ", which depends on the sizes");
        // The model's own nodes do with a 0 what they did before.
        if (!list && exported_.made.contains(node.output(0)) && is_reshape_of(node, position) &&
            may_have_zero(form->elements)) {
          const bool says_more = std::ranges::any_of(form->elements, [](std::int64_t size) { return size < 1; });
          if (document_.opset() < 14 || says_more)
            return wrong(describe(node) + " would copy an extent where one of " + in_quotes(name) + " is 0");
          keeping_zeros_.insert(i);
        }
        uses_[name].push_back({node.output(0), position, list});
      }
    }
    return {};
  }

  /// Puts the lists into the export; an error if one is read before it is known.
  Status write_lists() {
    for (const WrittenConstant& constant : exported_.constants) taken_.insert(constant.name);
    for (const onnx::NodeProto& node : exported_.nodes) {
      taken_.insert(node.name());
      taken_.insert(node.output().begin(), node.output().end());
    }
    for (const auto& [name, uses] : uses_) {
      // One list keeps the name, the computed one if there is one.
      const bool computed =
          kept_.contains(name) || std::any_of(uses.begin(), uses.end(), [](const Use& use) { return !use.list; });
      const std::optional<Integers> first = computed ? std::nullopt : uses.at(0).list;
      std::map<std::optional<Integers>, std::string> names = {{first, write(name, first, name)}};
      if (kept_.contains(name) && names.at(first) != name) add_node("Identity", {names.at(first)}, name);
      for (const Use& use : uses) {
        const auto [place, added] = names.try_emplace(use.list);
        if (added) place->second = write(fresh_name(name), use.list, name);
        if (place->second != name) set_input(use, place->second);
      }
    }
    for (const std::size_t i : keeping_zeros_) {
      auto& attribute = *exported_.nodes[i].add_attribute();
      attribute.set_name("allowzero");
      attribute.set_type(onnx::AttributeProto::INT);
      attribute.set_i(1);
    }
    std::erase_if(exported_.constants, [&](const WrittenConstant& constant) {  // that nothing reads
      return constant.data && all_.integers.constants->form_of(*constant.data) != nullptr;
    });
    exported_.nodes.insert(exported_.nodes.begin(), new_nodes_.begin(), new_nodes_.end());
    exported_.originals.insert(exported_.originals.begin(), new_nodes_.size(), -1);
    return put_in_order();
  }

 private:
  using Constants = std::map<std::string, std::shared_ptr<const ConstantData>>;

  [[nodiscard]] Error wrong(const std::string& what) const {
    return Error{ErrorCode::not_proved, one_line(what), {.file = document_.path()}};
  }

  /// The contents of a constant of the model; null if it is none.
  static const ConstantData* find(const Constants& written, const Document& document, const ImportedModel& imported,
                                  const std::string& name) {
    if (const auto place = written.find(name); place != written.end()) return place->second.get();
    const int tensor = document.find(name);
    if (tensor < 0 || !imported.constants[static_cast<std::size_t>(tensor)]) return nullptr;
    return imported.constants[static_cast<std::size_t>(tensor)]->data.get();
  }

  /// The form of a new constant that is another at every size; null of anything else.
  [[nodiscard]] const ConstantForm* form_of(const std::string& name) const {
    const auto place = constants_.find(name);
    return place == constants_.end() ? nullptr : all_.integers.constants->form_of(*place->second);
  }

  /// A constant that keeps its name, which others than the nodes read, is computed under it. False: it has no form.
  [[nodiscard]] bool keep(const std::string& name, const ConstantForm& form) {
    const bool words = form.kind == ConstantForm::Kind::repeated || form.type.element == ElementType::i64;
    if (!words || !can_compute(form)) return false;
    kept_.insert(name);
    uses_[name];
    return true;
  }

  /// Whether a node is `there` at a sample: the same but for names of constants, which are equal there.
  [[nodiscard]] bool is_at(const onnx::NodeProto& node, const onnx::NodeProto& there, const Constants& constants,
                           const SizedExport& sample) const {
    if (node.input_size() != there.input_size()) return false;
    bool same_names = true;
    for (int i = 0; i < node.input_size(); ++i) {
      const std::string &name = node.input(i), &other = there.input(i);
      same_names = same_names && name == other;
      if (name.empty() && other.empty()) continue;
      const ConstantData* mine = find(constants_, document_, *all_.imported, name);
      const ConstantData* its = find(constants, document_, *sample.imported, other);
      if (mine == nullptr && its == nullptr && name == other) continue;
      if (mine == nullptr || its == nullptr) return false;
      if (mine->identity() == its->identity()) continue;
      const ConstantForm* form = all_.integers.constants->form_of(*mine);
      if (form == nullptr || !all_.integers.constants->is_at(*form, *its, sample.sample)) return false;
    }
    if (same_names) return node.SerializeAsString() == there.SerializeAsString();
    onnx::NodeProto a = node, b = there;
    a.clear_input();
    b.clear_input();
    return a.SerializeAsString() == b.SerializeAsString();
  }

  /// Moves nodes that compute lists of free extents behind the nodes that have these.
  Status put_in_order() {
    const std::vector<FreeExtent>& free = all_.imported->decisions.free;
    const auto is_read = [&](const FreeExtent& extent) { return shapes_.contains(extent.tensor); };
    if (std::ranges::none_of(free, is_read)) return {};
    const std::vector<onnx::NodeProto> nodes = std::move(exported_.nodes);
    const std::vector<int> originals = std::move(exported_.originals);
    std::map<std::string, std::size_t> makers;
    for (std::size_t i = 0; i < nodes.size(); ++i)
      for (const std::string& name : nodes[i].output()) makers.emplace(name, i);
    for (const FreeExtent& extent : free)
      if (is_read(extent) && !makers.contains(extent.tensor))
        return wrong("extents of " + in_quotes(extent.tensor) + " are read, which is no longer computed");
    enum class State : std::uint8_t { waiting, begun, done };
    std::vector<State> states(nodes.size(), State::waiting);
    const auto awaited = [&](const onnx::NodeProto& node) {
      std::set<std::string> names = read_in_subgraphs(node);
      names.insert(node.input().begin(), node.input().end());
      for (const std::string& name : names)
        if (const auto maker = makers.find(name); maker != makers.end() && states[maker->second] != State::done)
          return std::optional(maker->second);
      return std::optional<std::size_t>();
    };
    exported_.nodes.clear();
    exported_.originals.clear();
    // Others keep their order; the new ones, which are the first, stand before what reads them, or behind all.
    for (std::size_t place = 0; place < nodes.size(); ++place) {
      std::vector<std::size_t> stack = {(place + new_nodes_.size()) % nodes.size()};
      while (!stack.empty()) {
        const std::size_t i = stack.back();
        if (const auto before = states[i] == State::done ? std::nullopt : awaited(nodes[i])) {
          if (states[*before] == State::begun || *before == i)
            return wrong(describe(nodes[*before]) + " would be read before the extents that it is made of are known");
          states[i] = State::begun;
          stack.push_back(*before);
          continue;
        }
        stack.pop_back();
        if (states[i] == State::done) continue;
        states[i] = State::done;
        exported_.nodes.push_back(nodes[i]);
        exported_.originals.push_back(originals[i]);
      }
    }
    return {};
  }

  // ---------------------------------------------------------------------------------- lists that are computed

  [[nodiscard]] bool can_compute(const Integers& sizes) const {
    return std::all_of(sizes.begin(), sizes.end(), [&](std::int64_t size) {
      return all_.integers.constants->is_number(size) || all_.integers.sizes->terms(size);
    });
  }

  [[nodiscard]] bool can_compute(const ConstantForm& form) const {
    switch (form.kind) {
      case ConstantForm::Kind::list:
        return can_compute(form.elements);
      case ConstantForm::Kind::repeated:
        return can_compute(form.type.shape) && document_.opset() >= 9;
      case ConstantForm::Kind::count:
        return can_compute(form.type.shape) && can_compute(Integers{form.start}) && document_.opset() >= 11;
      case ConstantForm::Kind::unknown:
        break;
    }
    return false;
  }

  /// Adds nodes that compute a constant, under `name` if it has none yet; gives its name.
  std::string compute(const std::string& name, const ConstantForm& form) {
    switch (form.kind) {
      case ConstantForm::Kind::unknown:
        break;
      case ConstantForm::Kind::list:
        return compute_list(name, form.elements, form.type.shape.empty());
      case ConstantForm::Kind::repeated: {
        const std::string shape = compute_list(fresh_name(name), form.type.shape, false);
        add_node("ConstantOfShape", {shape}, name);
        auto& attribute = *new_nodes_.back().add_attribute();
        attribute.set_name("value");
        attribute.set_type(onnx::AttributeProto::TENSOR);
        attribute.mutable_t()->set_data_type(data_type_of(form.type.element));
        attribute.mutable_t()->add_dims(1);
        attribute.mutable_t()->set_raw_data(form.element.data(), form.element.size());
        break;
      }
      case ConstantForm::Kind::count: {
        const std::size_t before = new_nodes_.size();
        const std::string all = compute_count(form);
        if (form.type.shape.size() == 1) return named(all, name, before);
        const auto axes = axes_of_ones(form.type.shape);
        if (axes)
          unsqueeze(all, *axes, name);
        else
          add_node("Reshape", {all, compute_list(fresh_name(name), form.type.shape, false)}, name);
        break;
      }
    }
    return name;
  }

  using Sum = std::vector<SizeTerm>;  // Of products.

  [[nodiscard]] Sum terms_of(std::int64_t size) const {
    return all_.integers.constants->is_number(size) ? Sum{{size, {}}} : all_.integers.sizes->terms(size).value();
  }
  [[nodiscard]] std::vector<Sum> terms_of_each(const Integers& sizes) const {
    std::vector<Sum> result;
    for (const std::int64_t size : sizes) result.push_back(terms_of(size));
    return result;
  }

  /// Adds nodes that count, in one dimension.
  const std::string& compute_count(const ConstantForm& form) {
    const auto is_one = [](std::int64_t extent) { return extent == 1; };
    Integers longer;  // What has the same elements is one.
    std::remove_copy_if(form.type.shape.begin(), form.type.shape.end(), std::back_inserter(longer), is_one);
    std::string& count = counts_[{form.start, form.step, longer}];
    if (count.empty()) {
      const std::string step = add_constant({}, {form.step});
      const std::string start = all_.integers.constants->is_number(form.start) ? add_constant({}, {form.start})
                                                                               : compute(terms_of(form.start), true);
      count = add_node("Range", {start, compute(limit_of(form), true), step});
    }
    return count;
  }

  /// The axes of extent 1, if these are all but one.
  static std::optional<Integers> axes_of_ones(const Shape& shape) {
    Integers axes;
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      if (shape[axis] == 1) axes.push_back(static_cast<std::int64_t>(axis));
    return axes.size() + 1 == shape.size() ? std::optional(axes) : std::nullopt;
  }

  void unsqueeze(const std::string& input, const Integers& axes, const std::string& output) {
    const bool as_input = document_.opset() >= 13;
    std::vector<std::string> inputs = {input};
    if (as_input) inputs.push_back(add_constant({static_cast<std::int64_t>(axes.size())}, axes));
    add_node("Unsqueeze", inputs, output);
    if (as_input) return;
    auto& attribute = *new_nodes_.back().add_attribute();
    attribute.set_name("axes");
    attribute.set_type(onnx::AttributeProto::INTS);
    for (const std::int64_t axis : axes) attribute.add_ints(axis);
  }

  /// Where a count ends: start + step * the number of its elements.
  [[nodiscard]] Sum limit_of(const ConstantForm& form) const {
    Sum product = {{form.step, {}}};
    for (const Sum& extent : terms_of_each(form.type.shape)) {
      Sum longer;
      for (const SizeTerm& a : product)
        for (const SizeTerm& b : extent) {
          longer.push_back({a.number * b.number, a.factors});
          longer.back().factors.insert(longer.back().factors.end(), b.factors.begin(), b.factors.end());
        }
      product = std::move(longer);
    }
    const Sum start = terms_of(form.start);
    product.insert(product.end(), start.begin(), start.end());
    return product;
  }

  /// Adds nodes that compute a list of integers, or a scalar, under `name` if it has none yet; gives its name.
  std::string compute_list(const std::string& name, const Integers& sizes, bool scalar) {
    std::string& known = lists_[{sizes, scalar}];
    if (!known.empty()) return known;
    const std::size_t before = new_nodes_.size();
    const std::vector<std::string> parts = parts_of(terms_of_each(sizes), scalar);
    if (parts.size() == 1) return known = named(parts[0], name, before);
    known = add_node("Concat", parts, name);
    auto& axis = *new_nodes_.back().add_attribute();
    axis.set_name("axis");
    axis.set_type(onnx::AttributeProto::INT);
    axis.set_i(0);
    return known;
  }

  /// Lists whose concatenation is a list: numbers that follow each other are one, as are extents of an input.
  std::vector<std::string> parts_of(const std::vector<Sum>& list, bool scalar) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < list.size();) {
      std::size_t end = i;
      Integers fixed;
      for (; end < list.size() && is_fixed(list[end]); ++end) fixed.push_back(number_of(list[end]));
      if (end > i) {
        parts.push_back(add_constant(scalar ? Shape{} : Shape{static_cast<std::int64_t>(fixed.size())}, fixed));
      } else if (const auto run = extents_from(list, i); run && !scalar) {
        parts.push_back(extents_of(*run));
        end = i + run->count;
      } else {
        parts.push_back(compute(list[i], scalar));
        end = i + 1;
      }
      i = end;
    }
    return parts;
  }
  static bool is_fixed(const Sum& sum) {
    return std::all_of(sum.begin(), sum.end(), [](const SizeTerm& term) { return term.factors.empty(); });
  }

  /// Some extents of an input, one beside the other.
  struct ExtentRun {
    std::string input;
    std::size_t axis = 0, count = 0, rank = 0;
    auto operator<=>(const ExtentRun&) const = default;
  };
  /// The longest run of two extents or more that stands in a list from a place on.
  [[nodiscard]] std::optional<ExtentRun> extents_from(const std::vector<Sum>& list, std::size_t begin) const {
    std::optional<ExtentRun> longest;
    for (const TensorDeclaration& input : all_.imported->inputs)
      for (std::size_t axis = 0; axis < input.extents.size(); ++axis) {
        ExtentRun run{input.name, axis, 0, input.extents.size()};
        const auto continues = [&](const Sum& sum) {
          const std::string& symbol = input.extents[axis + run.count].symbol;
          return sum.size() == 1 && sum[0].number == 1 && sum[0].factors.size() == 1 && !symbol.empty() &&
                 sum[0].factors[0].symbol == symbol;
        };
        while (begin + run.count < list.size() && axis + run.count < input.extents.size() &&
               continues(list[begin + run.count]))
          ++run.count;
        if (run.count > 1 && (!longest || run.count > longest->count)) longest = run;
      }
    return longest;
  }
  const std::string& extents_of(const ExtentRun& run) {
    if (run.count == run.rank) return shape_of(run.input);
    std::string& extents = runs_[run];
    Integers axes;
    for (std::size_t i = 0; i < run.count; ++i) axes.push_back(static_cast<std::int64_t>(run.axis + i));
    const Shape shape = {static_cast<std::int64_t>(run.count)};
    if (extents.empty()) extents = add_node("Gather", {shape_of(run.input), add_constant(shape, axes)});
    return extents;
  }

  /// What a new node computes gets another name, if it was added after the first `before`, as the last one.
  std::string named(const std::string& part, const std::string& name, std::size_t before) {
    if (new_nodes_.size() == before || new_nodes_.back().output(0) != part) return part;
    const std::string old = part;
    new_nodes_.back().set_output(0, name);
    const auto rename = [&](auto& names) {
      for (auto& [key, known] : names)
        if (known == old) known = name;
    };
    rename(shapes_);
    rename(extents_);
    rename(quotients_);
    rename(runs_);
    rename(counts_);
    rename(combined_);
    return name;
  }

  /// The summand that is a number.
  static std::int64_t number_of(const Sum& sum) {
    std::int64_t number = 0;
    for (const SizeTerm& term : sum)
      if (term.factors.empty()) number += term.number;
    return number;
  }

  /// Adds nodes that compute one integer, as a list of one or a scalar.
  std::string compute(const Sum& sum, bool scalar) {
    const auto constant = [&](std::int64_t value) -> const std::string& {
      std::string& known = numbers_[{value, scalar}];
      if (known.empty()) known = add_constant(scalar ? Shape{} : Shape{1}, {value});
      return known;
    };
    std::string total;
    for (const SizeTerm& term : sum) {
      if (term.factors.empty()) continue;
      std::string part;
      for (const SizeFactor& factor : term.factors) {
        const std::string& size =
            factor.symbol.empty() ? quotient_of(factor, scalar) : extent_of(factor.symbol, scalar);
        part = part.empty() ? size : combined("Mul", part, size);
      }
      if (term.number != 1) part = combined("Mul", part, constant(term.number));
      total = total.empty() ? part : combined("Add", total, part);
    }
    const std::int64_t number = number_of(sum);
    if (total.empty()) return constant(number);
    return number == 0 ? total : combined("Add", total, constant(number));
  }

  /// The sum or product of two integers.
  std::string combined(const std::string& type, const std::string& a, const std::string& b) {
    std::string& known = combined_[{type, a, b}];
    if (known.empty()) known = add_node(type, {a, b});
    return known;
  }

  const std::string& quotient_of(const SizeFactor& factor, bool scalar) {
    std::string& quotient = quotients_[{factor.dividend, factor.divisor, scalar}];
    if (quotient.empty())
      quotient =
          add_node("Div", {compute(terms_of(factor.dividend), scalar), compute(terms_of(factor.divisor), scalar)});
    return quotient;
  }

  /// A symbol, read from the graph input, or the tensor, that has it, as a list of one or a scalar.
  const std::string& extent_of(const std::string& name, bool scalar) {
    std::string& extent = extents_[{name, scalar}];
    if (!extent.empty()) return extent;
    const auto [tensor, place] = place_of(name);
    const std::string axis = add_constant(scalar ? Shape{} : Shape{1}, {static_cast<std::int64_t>(place)});
    extent = add_node("Gather", {shape_of(tensor), axis});
    return extent;
  }

  /// The graph input, or the tensor with a free extent, that has a symbol, and the axis.
  [[nodiscard]] std::pair<std::string, std::size_t> place_of(const std::string& name) const {
    const std::vector<Symbol>& symbols = all_.imported->symbols;
    const auto symbol = std::ranges::find(symbols, name, &Symbol::name);
    if (symbol != symbols.end()) return {symbol->input, symbol->axis};
    const std::vector<FreeExtent>& free = all_.imported->decisions.free;
    const auto extent = std::ranges::find(free, name, &FreeExtent::symbol);
    TASO_CHECK(extent != free.end(), "a symbol that nothing has");
    return {extent->tensor, extent->axis};
  }

  std::string add_constant(const Shape& shape, const Integers& values) {
    const std::string name = fresh_name("taso_constant");
    exported_.constants.push_back({name, -1, ConstantData::of_integers(shape, values)});
    return name;
  }

  const std::string& shape_of(const std::string& tensor) {
    std::string& name = shapes_[tensor];
    if (name.empty()) name = add_node("Shape", {tensor});
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
                                                 const ConstantForm& form) const {
    if (!is_default_domain(node.domain()) || form.kind != ConstantForm::Kind::list) return std::nullopt;
    const auto type = exported_.types.find(node.input(0));
    if (type == exported_.types.end() || !type->second.known) return std::nullopt;
    const Shape& input = type->second.shape;
    if (node.op_type() == "Reshape" && position == 1) return list_of_reshape(node, form.elements, input);
    if (node.op_type() == "Expand" && position == 1) return list_of_expand(form.elements, input);
    if (node.op_type() == "Slice" && position == 2) return list_of_slice(node, form.elements, input);
    return std::nullopt;
  }

  static bool is_reshape_of(const onnx::NodeProto& node, int position) {
    return is_default_domain(node.domain()) && node.op_type() == "Reshape" && position == 1;
  }
  /// Whether one of the sizes may be 0 (and is not the number 0, by which an extent is copied).
  [[nodiscard]] bool may_have_zero(const Integers& sizes) const {
    return std::ranges::any_of(sizes, [&](std::int64_t size) {
      return !all_.integers.constants->is_number(size) &&
             !all_.integers.sizes->follows(Condition::Relation::less_equal, 1, size);
    });
  }

  [[nodiscard]] bool is_equal(std::int64_t a, std::int64_t b) const {
    return a == b || all_.integers.sizes->follows(Condition::Relation::equal, a, b);
  }

  [[nodiscard]] std::optional<Integers> list_of_reshape(const onnx::NodeProto& node, Integers list,
                                                        const Shape& input) const {
    for (const auto& attribute : node.attribute())
      if (attribute.name() == "allowzero" && attribute.i() != 0) return std::nullopt;
    bool rest = false, copied = false;
    // An axis that the list itself leaves to the rest is one here, too, whatever is copied.
    const bool left = std::count(list.begin(), list.end(), -1) == 1;
    for (std::size_t axis = 0; axis < list.size(); ++axis) {
      if (all_.integers.constants->is_number(list[axis])) {
        if (list[axis] <= 0 && !(left && list[axis] == -1)) return std::nullopt;
        continue;
      }
      if (axis < input.size() && is_equal(list[axis], input[axis])) {
        list[axis] = 0;
        copied = true;
      } else {
        // Of an extent of 0 the rest does not follow.
        if (rest || left || !all_.integers.sizes->follows(Condition::Relation::less_equal, 1, list[axis]))
          return std::nullopt;
        rest = true;
        list[axis] = -1;
      }
    }
    // Of a copied extent of 0 the rest does not follow: then the list is computed.
    if (rest && copied) return std::nullopt;
    return list;
  }

  [[nodiscard]] std::optional<Integers> list_of_expand(Integers list, const Shape& input) const {
    if (input.size() > list.size()) return std::nullopt;
    const std::size_t more = list.size() - input.size();
    for (std::size_t axis = 0; axis < list.size(); ++axis) {
      if (all_.integers.constants->is_number(list[axis])) continue;
      if (axis < more || !is_equal(list[axis], input[axis - more])) return std::nullopt;
      list[axis] = 1;
    }
    return list;
  }

  [[nodiscard]] std::optional<Integers> list_of_slice(const onnx::NodeProto& node, Integers list,
                                                      const Shape& input) const {
    Integers axes;
    if (node.input_size() > 3 && !node.input(3).empty()) {
      const ConstantData* data = find(constants_, document_, *all_.imported, node.input(3));
      if (data == nullptr || data->type().element != ElementType::i64) return std::nullopt;
      axes = data->to_integers();
    } else {
      for (std::size_t axis = 0; axis < list.size(); ++axis) axes.push_back(static_cast<std::int64_t>(axis));
    }
    if (axes.size() != list.size()) return std::nullopt;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (all_.integers.constants->is_number(list[i])) continue;
      const auto rank = static_cast<std::int64_t>(input.size());
      const std::int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
      if (axis < 0 || axis >= rank || !is_equal(list[i], input[static_cast<std::size_t>(axis)])) return std::nullopt;
      list[i] = std::numeric_limits<std::int64_t>::max();
    }
    return list;
  }

  std::string fresh_name(const std::string& base) {
    for (int n = 0;; ++n) {
      std::string name = base + "_" + std::to_string(n);
      if (!document_.all_names().contains(name) && taken_.insert(name).second) return name;
    }
  }

  /// The node that `use` names reads another constant, and is no longer the user's, byte for byte.
  void set_input(const Use& use, const std::string& name) {
    for (std::size_t i = 0; i < exported_.nodes.size(); ++i) {
      onnx::NodeProto& node = exported_.nodes[i];
      if (node.output_size() == 0 || node.output(0) != use.node) continue;
      node.set_input(use.input, name);
      exported_.verbatim_nodes -= exported_.originals[i] >= 0 ? 1 : 0;
      exported_.originals[i] = -1;
    }
  }

  /// Defines a list, or what the differing constant `source` is at each size, under `name` if it has none yet; gives
  /// its name.
  std::string write(const std::string& name, const std::optional<Integers>& list, const std::string& source) {
    if (!list) {
      std::erase_if(exported_.constants, [&](const WrittenConstant& constant) { return constant.name == name; });
      std::string& computed = computed_[constants_.at(source)->identity()];
      if (computed.empty()) computed = compute(name, *form_of(source));
      return computed;
    }
    const auto data = ConstantData::of_integers({static_cast<std::int64_t>(list->size())}, *list);
    for (WrittenConstant& constant : exported_.constants)
      if (constant.name == name) {
        constant.data = data;
        return name;
      }
    exported_.constants.push_back({name, -1, data});
    return name;
  }

  const Document& document_;
  const SymbolicExport& all_;
  ExportedGraph& exported_;
  Constants constants_;  // New ones, by name.
  std::map<std::string, std::vector<Use>> uses_;
  std::set<std::string> kept_;                 // Names that stay: graph outputs, and what subgraphs read.
  std::set<std::string> taken_;                // Names of constants and of nodes' outputs.
  std::map<std::string, std::string> shapes_;  // Of graph inputs, and of tensors.
  std::map<std::pair<std::string, bool>, std::string> extents_;  // Symbols, by name; as scalars or as lists.
  std::map<std::tuple<std::int64_t, std::int64_t, bool>, std::string> quotients_;  // By dividend and divisor.
  std::map<ExtentRun, std::string> runs_;
  std::map<std::tuple<std::int64_t, std::int64_t, Integers>, std::string> counts_;     // By start, step and extents.
  std::map<std::tuple<std::string, std::string, std::string>, std::string> combined_;  // By operator and operands.
  std::map<std::pair<std::int64_t, bool>, std::string> numbers_;                       // As scalars or as lists.
  std::map<std::pair<Integers, bool>, std::string> lists_;
  std::map<Hash128, std::string> computed_;  // Constants, by what they are at all sizes.
  std::vector<onnx::NodeProto> new_nodes_;
  std::set<std::size_t> keeping_zeros_;  // Reshapes among the exported nodes whose lists may have 0, and mean it.
};

/// Per node id: weight-only nodes that are not the same at all sizes, in themselves or in what they read.
std::vector<bool> varying_weights(const SymbolicExport& all) {
  std::vector<bool> varying(all.graph->id_bound(), false);
  const auto is_number = [&](std::int64_t size) { return all.integers.sizes->is_number(size); };
  for (const NodeId id : all.graph->topological_order()) {
    const Node& node = all.graph->node(id);
    if (!node.weight_only) continue;
    varying[id] = node.constant != nullptr && all.integers.constants->form_of(*node.constant) != nullptr;
    for (const TensorType& type : node.outputs)
      varying[id] = varying[id] || !std::all_of(type.shape.begin(), type.shape.end(), is_number);
    for (const auto& [name, value] : node.attributes.entries()) {
      if (const auto* list = std::get_if<Integers>(&value))
        varying[id] = varying[id] || !std::all_of(list->begin(), list->end(), is_number);
      else if (const auto* integer = std::get_if<std::int64_t>(&value))
        varying[id] = varying[id] || !is_number(*integer);
    }
    for (const Value& input : node.inputs) varying[id] = varying[id] || varying[input.node];
  }
  return varying;
}

}  // namespace

ImportedModel import_at_all_sizes(std::span<const ImportedModel* const> samples, const Graph& graph,
                                  SymbolicConstants& constants) {
  ImportedModel all = *samples[0];
  all.graph = graph;
  for (std::size_t tensor = 0; tensor < all.constants.size(); ++tensor) {
    if (!all.constants[tensor]) continue;
    std::vector<SymbolicConstants::Data> data;
    for (const ImportedModel* sample : samples)
      if (sample->constants[tensor]) data.push_back(sample->constants[tensor]->data);
    if (data.size() == samples.size()) all.constants[tensor]->data = constants.unify(data);
  }
  return all;
}

Expected<ExportedGraph> export_at_all_sizes(const Document& document, const SymbolicExport& all,
                                            std::span<const SizedExport> samples, const OperatorRegistry& registry,
                                            bool verbatim, bool fold) {
  ExportMode mode{.verbatim = verbatim, .fold = false, .varying = varying_weights(all), .symbolic = &all.integers};
  mode.join_moves = false;
  const JoinedMoves moves = verbatim ? moves_to_join(document, *all.graph) : JoinedMoves{};
  const Graph joined = with_joined_moves(*all.graph, moves);
  Expected<ExportedGraph> written = export_graph(document, *all.imported, joined, registry, mode);
  if (!written) return Error{ErrorCode::not_proved, written.error().message, {.file = document.path()}};
  ExportedGraph& exported = *written;
  SymbolicExporter exporter(document, all, exported);
  TASO_RETURN_IF_ERROR(exporter.find_lists());
  // Where a size is a number of the model by chance, constants that differ elsewhere are one.
  Status problem;
  std::size_t alike = 0;
  for (const SizedExport& sample : samples) {
    ExportMode there = mode;
    there.symbolic = nullptr;
    const Graph graph = with_joined_moves(*sample.graph, moves);
    const Expected<ExportedGraph> one = export_graph(document, *sample.imported, graph, registry, there);
    const Status same = one ? exporter.compare(*one, sample) : Status(one.error());
    alike += same ? 1 : 0;
    if (!same && problem) problem = same;
  }
  if (2 * alike < samples.size()) return problem.error();
  if (!fold) {
    TASO_RETURN_IF_ERROR(exporter.write_lists());
    return written;
  }
  // Names are others where weights are computed.
  mode.fold = true;
  TASO_ASSIGN(ExportedGraph folded, export_graph(document, *all.imported, joined, registry, mode));
  SymbolicExporter of_folded(document, all, folded);
  TASO_RETURN_IF_ERROR(of_folded.find_lists());
  TASO_RETURN_IF_ERROR(of_folded.write_lists());
  return folded;
}

}  // namespace taso
