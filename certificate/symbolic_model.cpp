#include "certificate/symbolic_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "certificate/occurrence.h"
#include "certificate/replay.h"
#include "support/hash.h"
#include "support/random.h"

namespace taso {
namespace {

using Integers = std::vector<std::int64_t>;

/// At so many sizes a model is imported, where it exists at so many; at no fewer than the least.
constexpr std::size_t wanted_samples = 14, least_samples = 4;
/// Attempts to find one sample.
constexpr std::size_t sample_attempts = 8;
/// Far sizes, each tried for each symbol.
constexpr std::int64_t far_sizes[] = {700, 3000, 20000};

Error unproved(std::string message) { return Error{ErrorCode::not_proved, std::move(message), {}}; }

/// Sizes that are tried: of first axes (batches) and of others, which are multiples of `unit`.
struct Scale {
  std::int64_t batch_most, least, most, unit;
};
/// Not every model exists at every size: tables of positions end, networks of several scales need multiples.
constexpr Scale symbol_scales[] = {{40, 3, 120, 1}, {40, 40, 400, 1}, {12, 64, 512, 32}, {12, 8, 76, 8}};

/// Chooses sizes within the ranges; different symbols have different sizes where there are enough.
SymbolSizes draw_sizes(const std::vector<Symbol>& symbols, const SymbolRanges& ranges, const Scale& scale,
                       Random& random) {
  SymbolSizes sizes;
  for (const Symbol& symbol : symbols) {
    const SizeRange& range = ranges.at(symbol.name);
    const bool batch = symbol.axis == 0;
    std::int64_t least = std::max(range.least, batch ? std::int64_t{2} : scale.least);
    std::int64_t most = std::min(range.most.value_or(INT64_MAX / 4), batch ? scale.batch_most : scale.most);
    if (least > most) {
      least = range.least;
      most = range.most.value_or(range.least + 200);
      most = std::min(most, least + 400);
    }
    const std::int64_t unit = batch ? 1 : scale.unit;
    std::int64_t size = least;
    for (int attempt = 0; attempt < 20; ++attempt) {
      size = least + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - least + 1)));
      const std::int64_t rounded = size / unit * unit;
      if (rounded >= least) size = rounded;
      if (std::none_of(sizes.begin(), sizes.end(), [&](const auto& other) { return other.second == size; })) break;
    }
    sizes[symbol.name] = size;
  }
  return sizes;
}

/// Operators that are understood and computed at run time.
std::size_t working_operators(const Graph& graph) {
  std::size_t count = 0;
  for (NodeId id = 0; id < graph.id_bound(); ++id)
    if (graph.contains(id) && graph.node(id).kind == NodeKind::op && !graph.node(id).weight_only) ++count;
  return count;
}

/// Why two graphs are not the same nodes up to extents; empty if they are.
std::string difference(const Graph& a, const Graph& b) {
  if (a.id_bound() != b.id_bound() || a.inputs() != b.inputs() || a.outputs() != b.outputs())
    return "there are other nodes";
  for (NodeId id = 0; id < a.id_bound(); ++id) {
    const std::string place = "node " + std::to_string(id);
    if (a.contains(id) != b.contains(id)) return place + " is not there";
    if (!a.contains(id)) continue;
    const Node &x = a.node(id), &y = b.node(id);
    bool same = x.kind == y.kind && x.op == y.op && x.name == y.name && x.inputs == y.inputs &&
                x.outputs.size() == y.outputs.size();
    for (std::size_t port = 0; same && port < x.outputs.size(); ++port)
      same = x.outputs[port].known == y.outputs[port].known && x.outputs[port].element == y.outputs[port].element &&
             x.outputs[port].shape.size() == y.outputs[port].shape.size();
    if (!same) return place + (x.op.empty() ? "" : " (" + x.op + ")") + " is another";
  }
  return "";
}

/// Makes the graph for all sizes from the graphs at the samples, node by node, with the same numbers.
class Unifier {
 public:
  Unifier(std::span<const Graph> samples, SymbolicSizes& sizes, const SymbolicCatalog& catalog, bool fit_opaque,
          const SymbolicCatalog::Impossible& impossible)
      : samples_(samples),
        sizes_(sizes),
        catalog_(catalog),
        fit_opaque_(fit_opaque),
        impossible_(impossible),
        first_(samples[0]) {}

  Expected<Graph> run(std::vector<std::string>& untouched) {
    for (NodeId id = 0; id < first_.id_bound(); ++id) {
      if (!first_.contains(id)) {
        Node nothing;
        nothing.kind = NodeKind::opaque;
        graph_.erase(graph_.add(std::move(nothing)));
        continue;
      }
      for (const Value& input : first_.node(id).inputs)
        if (input.node >= id) return internal_error("an imported node reads a later one");
      Node node = first_.node(id);
      if (node.kind == NodeKind::op) {
        if (const Status typed = unify(id, node); !typed) {
          untouched.push_back(fmt::format("node {} ({}): {}", id, node.op, typed.error().message));
          node = untouchable(id);
        }
      } else {
        unify_outputs(id, node);
        if (node.kind == NodeKind::constant && differs(id)) {
          // Told from all others by its number; what it holds no step looks at.
          const std::int64_t mark[] = {-1, static_cast<std::int64_t>(id)};
          node.constant = ConstantData::of_integers({2}, mark);
        }
      }
      graph_.add(std::move(node));
    }
    graph_.set_outputs(first_.outputs());
    return std::move(graph_);
  }

 private:
  [[nodiscard]] bool differs(NodeId id) const {
    return std::any_of(samples_.begin(), samples_.end(), [&](const Graph& sample) {
      return sample.node(id).constant->identity() != first_.node(id).constant->identity();
    });
  }

  /// Sizes near a node: the extents of what it reads.
  [[nodiscard]] Integers near(const Node& node) const {
    Integers result;
    for (const Value& input : node.inputs) {
      const Shape& shape = graph_.type(input).shape;
      result.insert(result.end(), shape.begin(), shape.end());
    }
    return result;
  }

  /// The attributes and types of an operator for all sizes.
  Status unify(NodeId id, Node& node) {
    const Integers close = near(node);
    Attributes attributes;
    for (const auto& [name, value] : node.attributes.entries()) {
      std::vector<Integers> lists;
      for (const Graph& sample : samples_) {
        const AttributeValue* other = sample.node(id).attributes.find(name);
        if (other == nullptr || other->index() != value.index()) return bad_input(name + " is another at other sizes");
        if (const auto* list = std::get_if<Integers>(other))
          lists.push_back(*list);
        else if (const auto* integer = std::get_if<std::int64_t>(other))
          lists.push_back({*integer});
        else if (*other != value)
          return bad_input(name + " is another at other sizes");
        if (!lists.empty() && lists.back().size() != lists[0].size())
          return bad_input(name + " is longer at other sizes");
      }
      if (lists.empty()) {
        attributes.set(name, value);
        continue;
      }
      Integers unified;
      for (std::size_t i = 0; i < lists[0].size(); ++i) {
        Integers values;
        for (const Integers& list : lists) values.push_back(list[i]);
        const auto size = sizes_.fit(values, close);
        if (!size) return bad_input(name + " is no polynomial of the symbolic extents");
        unified.push_back(*size);
      }
      if (std::holds_alternative<Integers>(value))
        attributes.set(name, std::move(unified));
      else
        attributes.set(name, unified[0]);
    }
    std::vector<TensorType> inputs;
    for (const Value& input : node.inputs) inputs.push_back(graph_.type(input));
    TASO_ASSIGN(std::vector<TensorType> outputs, catalog_.infer_of_model(node.op, attributes, inputs, impossible_));
    for (std::size_t k = 0; k < samples_.size(); ++k)
      for (std::size_t port = 0; port < node.outputs.size(); ++port)
        if (outputs.size() != node.outputs.size() ||
            catalog_.at(outputs[port], k) != samples_[k].node(id).outputs[port])
          return bad_input("its type is another at a sample");
    node.attributes = std::move(attributes);
    node.outputs = std::move(outputs);
    return {};
  }

  /// The node under a name that no operator has. Equal nodes stay equal: their attributes are those at all samples.
  Node untouchable(NodeId id) {
    Node node = first_.node(id);
    node.op = "untouched " + node.op;
    Integers all;
    for (const Graph& sample : samples_)
      for (const auto& [name, value] : sample.node(id).attributes.entries()) {
        if (const auto* list = std::get_if<Integers>(&value)) all.insert(all.end(), list->begin(), list->end());
        if (const auto* integer = std::get_if<std::int64_t>(&value)) all.push_back(*integer);
      }
    node.attributes.set("samples", std::move(all));
    for (const NodeId other : untouchable_)
      if (graph_.node(other).op == node.op && graph_.node(other).inputs == node.inputs &&
          graph_.node(other).attributes == node.attributes) {
        node.outputs = graph_.node(other).outputs;
        return node;
      }
    unify_outputs(id, node);
    untouchable_.push_back(id);
    return node;
  }

  /// The types of what is no operator here: polynomials where there are such, else symbols of their own. What opaque
  /// nodes compute is taken to have elements (docs/optimizing.md).
  void unify_outputs(NodeId id, Node& node) {
    const Integers close = near(node);
    for (std::size_t port = 0; port < node.outputs.size(); ++port) {
      if (!node.outputs[port].known) continue;
      for (std::size_t axis = 0; axis < node.outputs[port].shape.size(); ++axis) {
        Integers values;
        for (const Graph& sample : samples_) values.push_back(sample.node(id).outputs[port].shape[axis]);
        const bool varies = std::any_of(values.begin(), values.end(), [&](std::int64_t v) { return v != values[0]; });
        const bool opaque = node.kind == NodeKind::opaque || node.kind == NodeKind::op;
        const bool may_fit = fit_opaque_ || !varies || !opaque;
        auto size = may_fit ? sizes_.fit(values, close) : std::nullopt;
        if (size && opaque && !sizes_.follows(Condition::Relation::less, 0, *size)) size.reset();
        node.outputs[port].shape[axis] =
            size ? *size : sizes_.unknown(fmt::format("extent {} of node {}", axis, id), std::move(values));
      }
    }
  }

  std::span<const Graph> samples_;
  SymbolicSizes& sizes_;
  const SymbolicCatalog& catalog_;
  bool fit_opaque_;
  const SymbolicCatalog::Impossible& impossible_;
  const Graph& first_;
  std::vector<NodeId> untouchable_;
  Graph graph_;
};

}  // namespace

Expected<Graph> graph_for_all_sizes(std::span<const Graph> samples, SymbolicSizes& sizes,
                                    const SymbolicCatalog& catalog, bool fit_opaque,
                                    const SymbolicCatalog::Impossible& impossible,
                                    std::vector<std::string>& untouched) {
  for (const Graph& sample : samples)
    if (const std::string other = difference(samples[0], sample); !other.empty()) return unproved(other);
  TASO_ASSIGN(Graph graph, Unifier(samples, sizes, catalog, fit_opaque, impossible).run(untouched));
  normalize(graph, catalog);
  return graph;
}

struct SymbolicModel::State {
  const OperatorRegistry* registry = nullptr;
  SymbolRanges ranges;
  std::vector<SymbolSizes> sizes;  ///< Of the samples.
  std::vector<Model> models;       ///< At the samples.
  std::vector<Graph> graphs;       ///< The same in normal form.
  std::unique_ptr<SymbolicSizes> symbolic;
  std::unique_ptr<SymbolicCatalog> catalog;
  Graph graph;  ///< For all sizes, in normal form.
  std::vector<std::string> untouched;
  /// The model has no other form at far sizes.
  bool one_form = true;

  Status choose_ranges(const Model& model, const SymbolRanges& given);
  Status find_samples(const Model& model);
  void find_far_samples(const Model& model, Random& random);
  /// Whether the graph for all sizes is, at sample k, the graph `there`.
  [[nodiscard]] Status compare(const Graph& all, const Graph& there, std::size_t k) const;
};

Status SymbolicModel::State::choose_ranges(const Model& model, const SymbolRanges& given) {
  for (const Symbol& symbol : model.symbols()) ranges[symbol.name] = {};
  const auto restrict = [&](const std::string& name, const SizeRange& range) -> Status {
    const auto known = ranges.find(name);
    if (known == ranges.end()) {
      std::string names;
      for (const Symbol& symbol : model.symbols()) names += (names.empty() ? "" : ", ") + symbol.name;
      return Error{ErrorCode::usage,
                   fmt::format("--range {}: the model's inputs have no symbolic extent '{}'; they have {}",
                               to_string(SymbolRanges{{name, range}}), name, names.empty() ? "none" : names),
                   {.file = model.path()}};
    }
    SizeRange& all = known->second;
    all.least = std::max(all.least, range.least);
    if (range.most) all.most = std::min(*range.most, all.most.value_or(*range.most));
    if (all.most && *all.most < all.least)
      return Error{ErrorCode::usage,
                   fmt::format("--range {}: the model was optimized for another range, and no size is in both",
                               to_string(SymbolRanges{{name, range}})),
                   {.file = model.path()}};
    return {};
  };
  for (const auto& [name, range] : given) TASO_RETURN_IF_ERROR(restrict(name, range));
  // What the model was optimized for before.
  std::string text = model.metadata(ranges_key);
  while (!text.empty()) {
    const std::size_t end = text.find(", ");
    TASO_ASSIGN(const auto entry, parse_range(text.substr(0, end)));
    if (ranges.contains(entry.first)) TASO_RETURN_IF_ERROR(restrict(entry.first, entry.second));
    text = end == std::string::npos ? "" : text.substr(end + 2);
  }
  return {};
}

Status SymbolicModel::State::find_samples(const Model& model) {
  TASO_ASSIGN(const FileIdentity file, identify_file(model.path()));
  Hasher hasher;
  hasher.add(file.hash).add(to_string(ranges));
  Random random(hasher.finish().low);
  std::string problem;
  // The first sample is one at which most is understood: others must have its form.
  std::size_t scale = 0, most = 0;
  for (std::size_t tried = 0; tried < 2 * std::size(symbol_scales); ++tried) {
    SymbolSizes drawn = draw_sizes(model.symbols(), ranges, symbol_scales[tried % std::size(symbol_scales)], random);
    Expected<Model> sized = model.with_sizes(drawn);
    if (!sized) {
      if (problem.empty()) problem = fmt::format("at {}: {}", to_string(drawn), sized.error().message);
      continue;
    }
    const std::size_t understood = working_operators(sized->graph());
    if (!models.empty() && understood <= most) continue;
    most = understood;
    scale = tried % std::size(symbol_scales);
    models.assign(1, std::move(*sized));
    sizes.assign(1, std::move(drawn));
  }
  if (models.empty()) return unproved(problem);
  for (std::size_t failures = 0; sizes.size() < wanted_samples && failures < sample_attempts * least_samples;) {
    SymbolSizes drawn = draw_sizes(model.symbols(), ranges, symbol_scales[scale], random);
    std::string wrong;
    if (std::find(sizes.begin(), sizes.end(), drawn) != sizes.end()) {
      wrong = "there are few sizes";
    } else if (Expected<Model> sized = model.with_sizes(drawn); !sized) {
      wrong = sized.error().message;
    } else {
      wrong = difference(models[0].graph(), sized->graph());
      if (wrong.empty()) models.push_back(std::move(*sized));
    }
    if (wrong.empty()) {
      sizes.push_back(std::move(drawn));
      continue;
    }
    if (problem.empty()) problem = fmt::format("at {}: {}", to_string(drawn), wrong);
    ++failures;
    scale = (scale + 1) % std::size(symbol_scales);
  }
  // Narrow ranges have few sizes.
  double possible = 1;
  for (const auto& [name, range] : ranges)
    possible *= range.most ? static_cast<double>(*range.most - range.least) + 1 : static_cast<double>(least_samples);
  if (static_cast<double>(sizes.size()) < std::min(possible, static_cast<double>(least_samples)))
    return unproved(problem);
  find_far_samples(model, random);
  return {};
}

void SymbolicModel::State::find_far_samples(const Model& model, Random& random) {
  for (const auto& [name, range] : ranges)
    for (const std::int64_t far : far_sizes) {
      SymbolSizes drawn = sizes[random.below(least_samples) % sizes.size()];
      const std::int64_t size = far + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(far / 4)));
      drawn[name] = std::clamp(size, range.least, range.most.value_or(std::max(size, range.least)));
      if (std::find(sizes.begin(), sizes.end(), drawn) != sizes.end()) continue;
      Expected<Model> sized = model.with_sizes(drawn);
      if (!sized) continue;
      if (!difference(models[0].graph(), sized->graph()).empty()) {
        one_form = false;
        continue;
      }
      models.push_back(std::move(*sized));
      sizes.push_back(std::move(drawn));
    }
}

Status SymbolicModel::State::compare(const Graph& all, const Graph& there, std::size_t k) const {
  for (NodeId id = 0; id < all.id_bound(); ++id) {
    if (!all.contains(id)) continue;
    const Node& node = all.node(id);
    if (node.kind != NodeKind::op || !catalog->defines(node.op)) continue;
    bool same = there.contains(id) && there.node(id).op == node.op && there.node(id).inputs == node.inputs &&
                catalog->at(node.attributes, k) == there.node(id).attributes;
    for (std::size_t port = 0; same && port < node.outputs.size(); ++port)
      same = catalog->at(node.outputs[port], k) == there.node(id).outputs[port];
    if (!same) return unproved(fmt::format("node {} ({}) is another at {}", id, node.op, to_string(sizes[k])));
  }
  if (there.outputs() != all.outputs())
    return unproved(fmt::format("the outputs are others at {}", to_string(sizes[k])));
  return {};
}

Expected<SymbolicModel> SymbolicModel::load(const Model& model, const OperatorRegistry& registry,
                                            const SymbolRanges& ranges) {
  auto state = std::make_shared<State>();
  state->registry = &registry;
  TASO_RETURN_IF_ERROR(state->choose_ranges(model, ranges));
  if (state->ranges.empty()) return unproved("the model's inputs have no symbolic extents");
  TASO_RETURN_IF_ERROR(state->find_samples(model));

  std::vector<SampledSymbol> symbols;
  for (const auto& [name, range] : state->ranges) {
    symbols.push_back({name, range, {}});
    for (const SymbolSizes& sizes : state->sizes) symbols.back().samples.push_back(sizes.at(name));
  }
  state->symbolic = std::make_unique<SymbolicSizes>(symbols);
  state->catalog = std::make_unique<SymbolicCatalog>(registry, *state->symbolic);
  for (const Model& sample : state->models) state->graphs.push_back(sample.graph());
  const auto impossible = [&](const std::vector<std::int64_t>& values) {
    SymbolSizes sizes;
    for (std::size_t i = 0; i < values.size(); ++i) sizes[symbols[i].name] = values[i];
    return !model.with_sizes(std::move(sizes)).ok();
  };
  TASO_ASSIGN(state->graph, graph_for_all_sizes(state->graphs, *state->symbolic, *state->catalog, state->one_form,
                                                impossible, state->untouched));
  for (Graph& graph : state->graphs) normalize(graph, registry);
  SymbolicModel result;
  result.state_ = std::move(state);
  std::map<std::string, std::size_t> uses;
  TASO_ASSIGN(const SizedGraph unchanged, result.repeat({}, {}, uses));
  TASO_RETURN_IF_ERROR(result.can_save(unchanged));
  return result;
}

const SymbolRanges& SymbolicModel::ranges() const { return state_->ranges; }
const std::vector<SymbolSizes>& SymbolicModel::samples() const { return state_->sizes; }
const std::vector<std::string>& SymbolicModel::untouched() const { return state_->untouched; }

Expected<Model> SymbolicModel::at(const SymbolSizes& sizes) const {
  Expected<Model> model = state_->models[0].with_sizes(sizes);
  if (!model) return unproved(fmt::format("at {}: {}", to_string(sizes), model.error().message));
  if (const std::string other = difference(state_->models[0].graph(), model->graph()); !other.empty())
    return unproved(fmt::format("the model has another form at {} than at {}: {}", to_string(sizes),
                                to_string(state_->sizes[0]), other));
  return model;
}

Expected<SizedGraph> SymbolicModel::repeat(const std::vector<Substitution>& rules,
                                           const std::vector<CertificateStep>& steps,
                                           std::map<std::string, std::size_t>& uses, std::size_t* failed) const {
  SizedGraph result;
  std::vector<Match> taken;
  TASO_ASSIGN(result.graph, repeat_steps(state_->graph, rules, steps, *state_->catalog, uses, &taken, failed));
  // What the certificate says: integers that are numbers.
  result.steps = steps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    result.steps[i].match = std::move(taken[i]);
    for (std::optional<AttributeValue>& value : result.steps[i].match.attributes) {
      if (!value) continue;
      if (auto* list = std::get_if<Integers>(&*value)) {
        for (std::int64_t& element : *list)
          if (!state_->symbolic->is_number(element)) element = unknown_size;
      } else if (const auto* integer = std::get_if<std::int64_t>(&*value);
                 integer != nullptr && !state_->symbolic->is_number(*integer)) {
        value.reset();
      }
    }
  }
  Status problem;
  for (std::size_t k = 0; k < state_->graphs.size(); ++k) {
    std::map<std::string, std::size_t> again;
    std::vector<Match> there;
    Expected<Graph> graph = repeat_steps(state_->graphs[k], rules, result.steps, *state_->registry, again, &there);
    const Status same =
        graph ? state_->compare(result.graph, *graph, k)
              : Status(unproved(fmt::format("at {}: {}", to_string(state_->sizes[k]), graph.error().message)));
    if (same) {
      result.samples.push_back(std::move(*graph));
      result.numbers.push_back(k);
    } else if (problem) {
      problem = same;
    }
  }
  // A size that is a number of the model by chance makes equal nodes of different ones; most sizes do not.
  if (2 * result.samples.size() < state_->graphs.size()) return problem.error();
  return result;
}

std::vector<Model::Sized> SymbolicModel::sized(const SizedGraph& graph) const {
  std::vector<Model::Sized> all;
  for (std::size_t i = 0; i < graph.samples.size(); ++i)
    all.push_back({&state_->models[graph.numbers[i]], &graph.samples[i]});
  // Where a size is a number of the model by chance, constants that differ elsewhere are one, and the file is another.
  const Expected<std::vector<Hash128>> forms = Model::forms_at_sizes(all);
  if (!forms) return all;
  std::map<Hash128, std::size_t> counts;
  for (const Hash128& form : *forms) ++counts[form];
  for (std::size_t first = 0; first < all.size(); ++first) {
    if (2 * counts[(*forms)[first]] <= all.size()) continue;
    std::vector<Model::Sized> alike;
    for (std::size_t i = 0; i < all.size(); ++i)
      if ((*forms)[i] == (*forms)[first]) alike.push_back(all[i]);
    return alike;
  }
  return all;
}

Status SymbolicModel::can_save(const SizedGraph& graph) const { return Model::can_save_at_all_sizes(sized(graph)); }

Expected<SaveReport> SymbolicModel::save(const SizedGraph& graph, const std::string& path,
                                         const SaveOptions& options) const {
  SaveOptions with_ranges = options;
  if (const std::string text = to_string(state_->ranges); !text.empty()) with_ranges.metadata[ranges_key] = text;
  return Model::save_at_all_sizes(sized(graph), path, with_ranges);
}

std::string to_string(const SymbolRanges& ranges) {
  std::string text;
  for (const auto& [name, range] : ranges) {
    if (range == SizeRange{}) continue;
    text += fmt::format("{}{}={}:{}", text.empty() ? "" : ", ", name, range.least,
                        range.most ? std::to_string(*range.most) : "");
  }
  return text;
}

Expected<std::pair<std::string, SizeRange>> parse_range(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  const std::size_t colon = equals == std::string::npos ? equals : text.find(':', equals);
  SizeRange range;
  bool fits = equals != std::string::npos && equals > 0 && colon != std::string::npos;
  const auto number = [&](std::size_t begin, std::size_t end, std::int64_t& value) {
    const auto [next, failure] = std::from_chars(text.data() + begin, text.data() + end, value);
    fits = fits && failure == std::errc() && next == text.data() + end && value >= 1 && is_reasonable(Shape{value});
  };
  if (fits && colon > equals + 1) number(equals + 1, colon, range.least);
  if (fits && colon + 1 < text.size()) number(colon + 1, text.size(), range.most.emplace(0));
  if (fits && (!range.most || range.least <= *range.most)) return std::pair(text.substr(0, equals), range);
  return Error{ErrorCode::usage,
               "\"" + text + "\" is not SYMBOL=LEAST:MOST with sizes of at least 1 (either may be left out)",
               {}};
}

}  // namespace taso
