#include "certificate/symbolic_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "certificate/occurrence.h"
#include "certificate/replay.h"
#include "certificate/sampled_graphs.h"
#include "support/hash.h"
#include "support/one_line.h"
#include "support/random.h"

namespace taso {
namespace {

using Integers = std::vector<std::int64_t>;

/// At so many sizes a model is imported, where it exists at so many; at no fewer than the least.
constexpr std::size_t wanted_samples = 14, least_samples = 4;
/// Attempts to find one sample.
constexpr std::size_t sample_attempts = 8;
/// So many more for each free extent.
constexpr std::size_t samples_of_freedom = 4;
/// Attempts to find free extents of a sample.
constexpr std::size_t freedom_attempts = 3;
/// What is added to a free extent at a sample.
struct FreedomScale {
  std::int64_t least, count;
};
constexpr FreedomScale freedom_scales[] = {{1, 8}, {9, 90}, {100, 2000}, {-3, 3}};
/// Times that a model is read again because nodes compute integers that are not known.
constexpr std::size_t most_readings = 16;
/// Far sizes, each tried for each symbol, as are the smallest ones.
constexpr std::int64_t far_sizes[] = {700, 3000, 20000};

Error unproved(std::string message) { return Error{ErrorCode::not_proved, one_line(std::move(message)), {}}; }

/// Sizes that are tried: of first axes (batches) and of others, which are multiples of `unit`.
struct Scale {
  std::int64_t batch_most, least, most, unit;
};
/// Ranges of fewer sizes are narrow.
constexpr std::int64_t narrow_range = 16;
/// Not every model exists at every size: tables of positions end, networks of several scales need multiples, and those
/// that read sound some hundreds.
constexpr Scale symbol_scales[] = {{40, 3, 120, 1}, {40, 40, 400, 1},  {12, 64, 512, 32},
                                   {12, 8, 76, 8},  {6, 900, 9000, 1}, {8, 1, 12, 1}};
/// The last one is for models that exist at none of the others.
constexpr std::size_t usual_scales = std::size(symbol_scales) - 1;

/// Chooses sizes within the ranges; different symbols have different sizes where there are enough.
SymbolSizes draw_sizes(const std::vector<Symbol>& symbols, const SymbolRanges& ranges, const Scale& scale,
                       Random& random) {
  SymbolSizes sizes;
  for (const Symbol& symbol : symbols) {
    const SizeRange& range = ranges.at(symbol.name);
    const bool batch = symbol.axis == 0;
    // Of a narrow range, all sizes; of others, those at which most models exist and are what they are elsewhere.
    const bool narrow = range.most && *range.most - range.least < narrow_range;
    std::int64_t least = narrow ? range.least : std::max(range.least, batch ? std::int64_t{2} : scale.least);
    std::int64_t most = std::min(range.most.value_or(INT64_MAX / 4), std::max(batch ? scale.batch_most : scale.most,
                                                                              narrow ? range.least + narrow_range : 0));
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

/// Whether any node may divide extents, or integers that follow from them.
bool rounds_extents(const Model& model) {
  static const std::set<std::string> some = {"AveragePool", "Conv",    "ConvTranspose", "Div",
                                             "LpPool",      "MaxPool", "Resize",        "Upsample"};
  const std::vector<OriginalNode>& nodes = model.original_nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const OriginalNode& node) { return node.domain.empty() && some.contains(node.op_type); });
}

}  // namespace

struct SymbolicModel::State {
  const OperatorRegistry* registry = nullptr;
  FreeExtents free_extents;  ///< Of the model.
  SymbolRanges ranges;
  std::vector<SymbolSizes> sizes;  ///< Of the samples.
  std::vector<Model> models;       ///< At the samples.
  std::vector<Graph> graphs;       ///< The same in normal form.
  std::unique_ptr<SymbolicSizes> symbolic;
  std::unique_ptr<SymbolicCatalog> catalog;
  Model at_all;  ///< For all sizes.
  Graph graph;   ///< The same in normal form.
  std::vector<std::string> untouched;

  Status choose_ranges(const Model& model, const SymbolRanges& given);
  Status find_samples(const Model& model);
  void find_far_samples(const Model& model, Random& random);
  Expected<Model> sample(const Model& model, const SymbolSizes& drawn, Random& random) const;
  /// The model at one of the sizes that are tried.
  [[nodiscard]] Expected<Model> first_sample(const Model& model) const;
  [[nodiscard]] std::size_t wanted() const;
  /// The symbols of free extents, behind the others.
  Status add_free_extents(std::vector<SampledSymbol>& symbols) const;
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
    // A name with a comma or a quotation mark is quoted as in JSON.
    std::size_t name = 0;
    if (text[0] == '"')
      for (name = 1; name < text.size() && text[name] != '"'; ++name) name += text[name] == '\\' ? 1 : 0;
    const std::size_t end = text.find(", ", std::min(name, text.size()));
    const std::string written = text.substr(0, end);
    TASO_ASSIGN(auto entry, parse_range(written));
    if (written[0] == '"') {
      const auto quoted = nlohmann::json::parse(entry.first, nullptr, false);
      if (!quoted.is_string())
        return bad_input("the entry " + std::string(ranges_key) + " of the metadata: " + written);
      entry.first = quoted.get<std::string>();
    }
    if (ranges.contains(entry.first)) TASO_RETURN_IF_ERROR(restrict(entry.first, entry.second));
    text = end == std::string::npos ? "" : text.substr(end + 2);
  }
  return {};
}

/// The model at some sizes. Its free extents are others than those that it has there, more often longer: what is cut
/// from them is there then.
Expected<Model> SymbolicModel::State::sample(const Model& model, const SymbolSizes& drawn, Random& random) const {
  if (free_extents.empty()) return model.with_sizes(drawn);
  for (std::size_t attempt = 1;; ++attempt) {
    FreeExtents others = free_extents;
    for (auto& [tensor, axes] : others)
      for (auto& [axis, more] : axes) {
        const FreedomScale& scale = freedom_scales[random.below(std::size(freedom_scales))];
        more = scale.least + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(scale.count)));
      }
    Expected<Model> sized = model.with_sizes(drawn, std::move(others));
    if (sized || attempt == freedom_attempts) return sized;
  }
}

std::size_t SymbolicModel::State::wanted() const {
  std::size_t count = wanted_samples;
  for (const auto& [tensor, axes] : free_extents) count += samples_of_freedom * axes.size();
  return count;
}

Expected<Model> SymbolicModel::State::first_sample(const Model& model) const {
  Random random(1);
  Expected<Model> sized = unproved("");
  for (std::size_t scale = 0; scale < std::size(symbol_scales) && !sized; ++scale)
    sized = model.with_sizes(draw_sizes(model.symbols(), ranges, symbol_scales[scale], random));
  return sized;
}

Status SymbolicModel::State::find_samples(const Model& model) {
  TASO_ASSIGN(const FileIdentity file, identify_file(model.path()));
  Hasher hasher;
  hasher.add(file.hash).add(to_string(ranges));
  Random random(hasher.finish().low);
  std::string problem;
  // The first sample is one at which most is understood: others must have its form.
  std::size_t scale = 0, most = 0;
  for (std::size_t tried = 0; tried < 2 * usual_scales || (models.empty() && tried < 4 * usual_scales); ++tried) {
    const std::size_t tried_scale = tried < 2 * usual_scales ? tried % usual_scales : usual_scales;
    SymbolSizes drawn = draw_sizes(model.symbols(), ranges, symbol_scales[tried_scale], random);
    Expected<Model> sized = sample(model, drawn, random);
    if (!sized) {
      if (problem.empty()) problem = fmt::format("at {}: {}", to_string(drawn), sized.error().message);
      continue;
    }
    const std::size_t understood = working_operators(sized->graph());
    if (!models.empty() && understood <= most) continue;
    most = understood;
    scale = tried_scale;
    models.assign(1, std::move(*sized));
    sizes.assign(1, std::move(drawn));
  }
  if (models.empty()) return unproved(problem);
  for (std::size_t failures = 0; sizes.size() < wanted() && failures < sample_attempts * least_samples;) {
    SymbolSizes drawn = draw_sizes(model.symbols(), ranges, symbol_scales[scale], random);
    std::string wrong;
    if (!drawn.empty() && std::find(sizes.begin(), sizes.end(), drawn) != sizes.end()) {
      wrong = "there are few sizes";
    } else if (Expected<Model> sized = sample(model, drawn, random); !sized) {
      wrong = sized.error().message;
    } else {
      wrong = structural_difference(models[0].graph(), sized->graph());
      if (wrong.empty()) models.push_back(std::move(*sized));
    }
    if (wrong.empty()) {
      sizes.push_back(std::move(drawn));
      continue;
    }
    if (problem.empty()) problem = fmt::format("at {}: {}", to_string(drawn), wrong);
    ++failures;
    if (scale < usual_scales) scale = (scale + 1) % usual_scales;
  }
  // Narrow ranges have few sizes.
  double possible = 1;
  for (const auto& [name, range] : ranges)
    possible *= range.most ? static_cast<double>(*range.most - range.least) + 1 : static_cast<double>(least_samples);
  if (static_cast<double>(sizes.size()) < std::min(possible, static_cast<double>(least_samples)))
    return unproved(problem);
  find_far_samples(model, random);
  // What is one number at all samples, or two, tells nothing of others.
  for (const auto& [name, range] : ranges) {
    std::set<std::int64_t> values;
    for (const SymbolSizes& sample : sizes) values.insert(sample.at(name));
    const std::int64_t largest = range.most.value_or(INT64_MAX);
    const auto wanted = static_cast<std::size_t>(std::min<std::int64_t>(largest - range.least, least_samples - 1)) + 1;
    if (values.size() < wanted)
      return unproved(
          fmt::format("{} sizes of {} were found at which the model exists and has one form, of {} that are "
                      "needed{}{}",
                      values.size(), name, wanted, problem.empty() ? "" : "; ", problem));
  }
  return {};
}

void SymbolicModel::State::find_far_samples(const Model& model, Random& random) {
  for (const auto& [name, range] : ranges) {
    std::vector<std::int64_t> tried = {range.least, range.least + 1};
    for (const std::int64_t far : far_sizes)
      tried.push_back(far + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(far / 4))));
    for (const std::int64_t size : tried) {
      SymbolSizes drawn = sizes[random.below(least_samples) % sizes.size()];
      drawn[name] = std::clamp(size, range.least, range.most.value_or(std::max(size, range.least)));
      if (std::find(sizes.begin(), sizes.end(), drawn) != sizes.end()) continue;
      Expected<Model> sized = sample(model, drawn, random);
      if (!sized || !structural_difference(models[0].graph(), sized->graph()).empty()) continue;
      models.push_back(std::move(*sized));
      sizes.push_back(std::move(drawn));
    }
  }
}

Status SymbolicModel::State::add_free_extents(std::vector<SampledSymbol>& symbols) const {
  const std::vector<FreeExtent>& free = models[0].size_decisions().free;
  // What others are made of may have none.
  const bool any_open = std::ranges::any_of(free, [](const FreeExtent& extent) { return extent.open; });
  for (std::size_t i = 0; i < free.size(); ++i) {
    SampledSymbol symbol{free[i].symbol, {.least = any_open ? 0 : 1, .most = {}}, {}};
    std::set<std::int64_t> added;
    for (const Model& model : models) {
      const SizeDecisions& decisions = model.size_decisions();
      if (decisions.free.size() != free.size() || decisions.free[i].value != free[i].value ||
          decisions.free[i].axis != free[i].axis)
        return unproved(fmt::format("{} is no extent at some sizes", free[i].symbol));
      symbol.samples.push_back(decisions.imported->type(free[i].value).shape.at(free[i].axis));
      added.insert(decisions.free[i].more);
    }
    // Else it is told from no formula, or not from the one that the node has for it.
    if (added.size() < least_samples ||
        std::set<std::int64_t>(symbol.samples.begin(), symbol.samples.end()).size() < least_samples)
      return unproved(
          fmt::format("few sizes of {} were found at which the model exists and has one form", symbol.name));
    symbols.push_back(std::move(symbol));
  }
  return {};
}

Status SymbolicModel::State::compare(const Graph& all, const Graph& there, std::size_t k) const {
  for (NodeId id = 0; id < all.id_bound(); ++id) {
    if (!all.contains(id)) continue;
    const Node& node = all.node(id);
    if (node.kind != NodeKind::op && node.kind != NodeKind::opaque) continue;
    const bool defined = node.kind == NodeKind::op && catalog->defines(node.op);
    bool same = there.contains(id) && there.node(id).inputs == node.inputs;
    if (same && defined)
      same = there.node(id).op == node.op && catalog->at(node.attributes, k) == there.node(id).attributes;
    for (std::size_t port = 0; same && defined && port < node.outputs.size(); ++port)
      same = catalog->at(node.outputs[port], k) == there.node(id).outputs[port];
    if (same) continue;
    const std::string name =
        node.origin >= 0 ? models[0].describe_node(node.origin) : fmt::format("node {} of the graph", id);
    return unproved(fmt::format("{} ({}) is another at {}", name, node.op, to_string(sizes[k])));
  }
  if (there.outputs() != all.outputs())
    return unproved(fmt::format("the outputs are others at {}", to_string(sizes[k])));
  return {};
}

// Extents that depend on elements are symbols of their own, where more is understood so: all, or else those alone that
// need no others.
Expected<SymbolicModel> SymbolicModel::load(const Model& model, const OperatorRegistry& registry,
                                            const SymbolRanges& ranges) {
  TASO_ASSIGN(const std::vector<FreeExtents> open, open_extents_of(model, ranges));
  if (open.empty()) return load_without_open(model, registry, ranges);
  Expected<SymbolicModel> with = unproved("");
  for (std::size_t stage = open.size(); stage-- > 0 && !with;) {
    const Expected<Model> opened = model.with_open_extents(open[stage]);
    Expected<SymbolicModel> less =
        opened ? load_without_open(*opened, registry, ranges) : Expected<SymbolicModel>(opened.error());
    if (less || stage + 1 == open.size() || less.error().code == ErrorCode::usage) with = std::move(less);
    if (!with && with.error().code == ErrorCode::usage) break;
  }
  if (model.symbols().empty() || (!with && with.error().code == ErrorCode::usage)) return with;
  Expected<SymbolicModel> without = load_without_open(model, registry, ranges);
  const auto understood = [](const SymbolicModel& all) {
    return working_operators(all.state_->models[0].graph()) - all.untouched().size();
  };
  return with && (!without || understood(*with) > understood(*without)) ? std::move(with) : std::move(without);
}

// Behind a tensor whose extents are free may be others that depend on elements.
Expected<std::vector<FreeExtents>> SymbolicModel::open_extents_of(const Model& model, const SymbolRanges& ranges) {
  State state;
  TASO_RETURN_IF_ERROR(state.choose_ranges(model, ranges));
  std::vector<FreeExtents> stages;
  FreeExtents all, refused;
  const auto at_first_sample = [&](const FreeExtents& extents) -> Expected<Model> {
    TASO_ASSIGN(const Model read, model.with_open_extents(extents));
    return state.first_sample(read);
  };
  Expected<Model> sized = at_first_sample(all);
  for (std::size_t times = 0; sized && times < most_readings; ++times) {
    if (!all.empty() && (stages.empty() || stages.back() != all)) stages.push_back(all);
    FreeExtents open = sized->open_extents(), with = all;
    std::erase_if(open, [&](const auto& one) { return refused.contains(one.first); });
    if (open.empty()) break;
    with.insert(open.begin(), open.end());
    Expected<Model> next = at_first_sample(with);
    // The model need not exist at the numbers that stand for all of these: then each is tried by itself.
    for (auto one = open.begin(); !next && one != open.end(); ++one) {
      with = all;
      with.insert(*one);
      Expected<Model> alone = at_first_sample(with);
      if (!alone) {
        refused.insert(*one);
        continue;
      }
      all = std::move(with);
      sized = std::move(alone);
    }
    if (!next) continue;
    all = std::move(with);
    sized = std::move(next);
  }
  if (!all.empty() && (stages.empty() || stages.back() != all)) stages.push_back(all);
  return stages;
}

// Extents of which nothing is known, and from which integers follow, are symbols of their own; where the model cannot
// be taken at all sizes so, nodes that compute such integers are carried, and the model is read again.
Expected<SymbolicModel> SymbolicModel::load_without_open(const Model& model, const OperatorRegistry& registry,
                                                         const SymbolRanges& ranges) {
  Expected<SymbolicModel> free = load_in_some_way(model, registry, ranges, true);
  if (free || free.error().code != ErrorCode::not_proved) return free;
  return load_in_some_way(model, registry, ranges, false);
}

// Most quotients of extents are numbers, or have a form in files. Where one has none and it does not help that the
// nodes that compute it are carried, what divides extents, or asks for those behind windows, is.
Expected<SymbolicModel> SymbolicModel::load_in_some_way(const Model& model, const OperatorRegistry& registry,
                                                        const SymbolRanges& ranges, bool free_extents) {
  NotKnown not_known;
  Expected<SymbolicModel> first = load_as_it_is(model, registry, ranges, not_known);
  if (first || first.error().code != ErrorCode::not_proved) return first;
  Model read = model;
  FreeExtents extents = model.free_extents();
  const std::size_t given = extents.size();
  for (std::size_t times = 0; times < most_readings; ++times) {
    const std::size_t before = extents.size();
    if (free_extents) extents.merge(not_known.extents);
    // What is not known may be in the way of the graph, though no integer follows from it.
    if (free_extents && extents.size() == before && not_known.integers.empty()) extents.merge(not_known.all_extents);
    if (extents.size() > before) {
      TASO_ASSIGN(read, read.with_free_extents(extents));
    } else if (!not_known.integers.empty()) {
      TASO_ASSIGN(read, read.with_unfolded(not_known.integers));
    } else {
      break;
    }
    not_known = {};
    Expected<SymbolicModel> next = load_as_it_is(read, registry, ranges, not_known);
    if (next) return next;
  }
  if (extents.size() > given || !rounds_extents(model)) return first;
  TASO_ASSIGN(const Model without, model.with_quotients(false));
  Expected<SymbolicModel> less = load_as_it_is(without, registry, ranges, not_known);
  return less ? std::move(less) : std::move(first);
}

Expected<SymbolicModel> SymbolicModel::load_as_it_is(const Model& model, const OperatorRegistry& registry,
                                                     const SymbolRanges& ranges, NotKnown& not_known) {
  auto state = std::make_shared<State>();
  state->registry = &registry;
  TASO_RETURN_IF_ERROR(state->choose_ranges(model, ranges));
  state->free_extents = model.free_extents();
  if (state->ranges.empty() && state->free_extents.empty())
    return unproved("the model's inputs have no symbolic extents");
  TASO_RETURN_IF_ERROR(state->find_samples(model));

  std::vector<SampledSymbol> symbols;
  for (const auto& [name, range] : state->ranges) {
    symbols.push_back({name, range, {}});
    for (const SymbolSizes& sizes : state->sizes) symbols.back().samples.push_back(sizes.at(name));
  }
  TASO_RETURN_IF_ERROR(state->add_free_extents(symbols));
  if (symbols.empty()) return unproved("no extent depends on others, or on elements");
  state->symbolic = std::make_unique<SymbolicSizes>(symbols);
  state->catalog = std::make_unique<SymbolicCatalog>(registry, *state->symbolic);
  for (const Model& sample : state->models) state->graphs.push_back(sample.graph());
  std::vector<SampledGraph> sampled;
  for (const Model& sample : state->models) sampled.push_back({&sample.graph(), &sample.size_decisions()});
  std::shared_ptr<SymbolicConstants> constants;
  TASO_ASSIGN(state->graph,
              graph_for_all_sizes(sampled, *state->symbolic, *state->catalog, constants, state->untouched, not_known));
  state->at_all = Model::at_all_sizes(state->models, state->graph, *state->symbolic, std::move(constants));
  normalize(state->graph, *state->catalog);
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
  if (const std::string other = structural_difference(state_->models[0].graph(), model->graph()); !other.empty())
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
    all.push_back({&state_->models[graph.numbers[i]], &graph.samples[i], graph.numbers[i]});
  return all;
}

Status SymbolicModel::can_save(const SizedGraph& graph) const {
  return state_->at_all.can_save_at_all_sizes(graph.graph, sized(graph));
}

Expected<SaveReport> SymbolicModel::save(const SizedGraph& graph, const std::string& path,
                                         const SaveOptions& options) const {
  SaveOptions with_ranges = options;
  if (const std::string text = to_string(state_->ranges); !text.empty()) with_ranges.metadata[ranges_key] = text;
  return state_->at_all.save_at_all_sizes(graph.graph, sized(graph), path, with_ranges);
}

std::string to_string(const SymbolRanges& ranges) {
  std::string text;
  for (const auto& [name, range] : ranges) {
    if (range == SizeRange{}) continue;
    const bool plain = name.find_first_of("\",\\") == std::string::npos;
    text += fmt::format("{}{}={}:{}", text.empty() ? "" : ", ", plain ? name : nlohmann::json(name).dump(), range.least,
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
