#include "tools/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "certificate/replay.h"

namespace taso::tools {
namespace {

/// At so many sizes a model is looked at; at the last only if it exists there.
constexpr std::size_t kSizes = 4;

/// The n-th of 2, 3, 5, 7, 11, ...
std::int64_t prime(std::size_t n) {
  for (std::int64_t candidate = 2;; ++candidate) {
    bool is_prime = true;
    for (std::int64_t d = 2; d * d <= candidate; ++d) is_prime = is_prime && candidate % d != 0;
    if (is_prime && n-- == 0) return candidate;
  }
}

/// Extents other than a first axis are multiples of the first of these, or, where a model does not exist at such (a
/// table of 77 positions), of the second.
constexpr std::array<std::int64_t, 2> kUnits = {32, 8};

/// The n-th of 4, 3, 5, 7, 9, ... times the unit.
std::int64_t multiple_of(std::int64_t unit, std::size_t n) {
  return n == 0 ? 4 * unit : unit * (2 * static_cast<std::int64_t>(n) + 1);
}

bool is_odd_one(std::size_t k) { return k + 1 == kSizes; }

/// Operators that are understood and computed at run time.
std::size_t working_operators(const Graph& graph) {
  std::size_t count = 0;
  for (NodeId id = 0; id < graph.id_bound(); ++id)
    if (graph.contains(id) && graph.node(id).kind == NodeKind::op && !graph.node(id).weight_only) ++count;
  return count;
}

/// Whether two graphs have the same nodes, but for extents.
bool same_form(const Graph& a, const Graph& b) {
  if (a.id_bound() != b.id_bound() || a.inputs() != b.inputs() || a.outputs() != b.outputs()) return false;
  for (NodeId id = 0; id < a.id_bound(); ++id) {
    if (a.contains(id) != b.contains(id)) return false;
    if (!a.contains(id)) continue;
    const Node &x = a.node(id), &y = b.node(id);
    if (x.kind != y.kind || x.op != y.op || x.name != y.name || x.inputs != y.inputs ||
        x.outputs.size() != y.outputs.size() || x.weight_only != y.weight_only)
      return false;
    for (std::size_t port = 0; port < x.outputs.size(); ++port)
      if (x.outputs[port].known != y.outputs[port].known || x.outputs[port].element != y.outputs[port].element)
        return false;
  }
  return true;
}

Graph in_normal_form(const Model& model, const OperatorRegistry& registry) {
  Graph graph = model.graph();
  normalize(graph, registry);
  return graph;
}

}  // namespace

Expected<std::pair<std::string, std::int64_t>> parse_symbol_size(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  std::int64_t size = 0;
  const char* end = text.data() + text.size();
  if (equals != std::string::npos && equals > 0) {
    const auto [next, failure] = std::from_chars(text.data() + equals + 1, end, size);
    if (failure == std::errc() && next == end && size >= 1 && is_reasonable(Shape{size}))
      return std::pair(text.substr(0, equals), size);
  }
  return Error{ErrorCode::usage, "\"" + text + "\" is not SYMBOL=N with N at least 1", {}};
}

std::vector<SymbolSizes> choose_symbol_sizes(const std::vector<Symbol>& symbols, const SymbolSizes& given,
                                             std::int64_t unit) {
  std::vector<SymbolSizes> all(kSizes);
  std::size_t batches = 0, others = 0;
  for (std::size_t k = 0; k < kSizes; ++k)
    for (std::size_t j = 0; j < symbols.size(); ++j) {
      const auto chosen = given.find(symbols[j].name);
      if (chosen == given.end()) {
        all[k][symbols[j].name] =
            symbols[j].axis == 0 ? prime(batches++) : multiple_of(unit, others++) + (is_odd_one(k) ? 1 : 0);
        continue;
      }
      // What divides the size that was given may have to divide every size.
      std::int64_t divisor = 1;
      while (divisor < 32 && chosen->second % (2 * divisor) == 0) divisor *= 2;
      all[k][symbols[j].name] =
          chosen->second +
          (k == 0 ? 0 : divisor * static_cast<std::int64_t>(k * (2 * j + 1) + (k - 1) * symbols.size())) +
          (is_odd_one(k) ? 1 : 0);
    }
  return all;
}

Expected<SizedModel> SizedModel::load(const std::string& path, const OperatorRegistry& registry,
                                      const ImportOptions& import, const SymbolSizes& given) {
  SizedModel result;
  result.registry_ = &registry;
  TASO_ASSIGN(Model plain, Model::load(path, registry, import));
  const std::vector<Symbol> symbols = plain.symbols();
  for (const auto& [name, size] : given)
    if (std::none_of(symbols.begin(), symbols.end(), [&](const Symbol& symbol) { return symbol.name == name; })) {
      std::string names;
      for (const Symbol& symbol : symbols) names += (names.empty() ? "" : ", ") + symbol.name;
      return Error{ErrorCode::usage,
                   fmt::format("--assume {}={}: the model's inputs have no symbolic extent '{}'; they have {}", name,
                               size, name, names.empty() ? "none" : names),
                   {.file = path}};
    }
  // The sizes at which most is understood.
  const bool units_matter = std::any_of(symbols.begin(), symbols.end(), [&](const Symbol& symbol) {
    return symbol.axis > 0 && !given.contains(symbol.name);
  });
  std::size_t most = working_operators(plain.graph());
  for (const std::int64_t unit : kUnits) {
    if (symbols.empty() || (unit != kUnits[0] && !units_matter)) break;
    SizedModel attempt;
    attempt.registry_ = &registry;
    attempt.take_sizes(choose_symbol_sizes(symbols, given, unit), path, import);
    if (attempt.sizes_.empty()) {
      if (result.problem_.empty()) result.problem_ = attempt.problem_;
      continue;
    }
    const std::size_t understood = working_operators(attempt.model().graph());
    if (understood <= most) continue;
    most = understood;
    result = std::move(attempt);
  }
  if (!result.sizes_.empty()) return result;
  result.sizes_.clear();
  result.models_ = {std::move(plain)};
  return result;
}

void SizedModel::take_sizes(std::vector<SymbolSizes> sizes, const std::string& path, const ImportOptions& import) {
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    ImportOptions sized = import;
    sized.symbol_sizes = sizes[k];
    Expected<Model> model = Model::load(path, *registry_, sized);
    if (!model && is_odd_one(k)) break;
    if (!model) {
      problem_ = fmt::format("at {}: {}", to_string(sizes[k]), model.error().message);
      return;
    }
    if (k > 0 && !same_form(models_[0].graph(), model->graph())) {
      problem_ = fmt::format("the model has another form at {} than at {}", to_string(sizes[k]), to_string(sizes[0]));
      return;
    }
    models_.push_back(std::move(*model));
  }
  sizes.resize(models_.size());
  const Expected<std::vector<Graph>> graphs = repeat({}, {});
  const Status written = graphs ? can_save(*graphs) : Status(graphs.error());
  if (written)
    sizes_ = std::move(sizes);
  else
    problem_ = written.error().message;
}

Expected<std::vector<Graph>> SizedModel::repeat(const std::vector<Substitution>& rules,
                                                const std::vector<CertificateStep>& steps) const {
  std::vector<Graph> graphs;
  std::map<std::string, std::size_t> uses;
  for (const Model& model : models_) {
    TASO_ASSIGN(Graph graph,
                repeat_steps(in_normal_form(model, *registry_), rules, steps, *registry_, !graphs.empty(), uses));
    if (!graphs.empty() && !same_form(graphs[0], graph))
      return Error{ErrorCode::not_proved, "the steps lead to another form at another size", {}};
    graphs.push_back(std::move(graph));
  }
  return graphs;
}

std::vector<Model::Sized> SizedModel::sized(const std::vector<Graph>& graphs) const {
  std::vector<Model::Sized> result;
  for (std::size_t k = 0; k < models_.size(); ++k) result.push_back({&models_[k], &graphs[k]});
  return result;
}

Status SizedModel::can_save(const std::vector<Graph>& graphs) const {
  return Model::can_save_at_all_sizes(sized(graphs));
}

Expected<SaveReport> SizedModel::save(const std::vector<Graph>& graphs, const std::string& path,
                                      const SaveOptions& options) const {
  return Model::save_at_all_sizes(sized(graphs), path, options);
}

}  // namespace taso::tools
