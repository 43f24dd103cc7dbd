#include "session/sized_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace taso {
namespace {

/// The n-th of 2, 3, 5, 7, 11, ...
std::int64_t prime(std::size_t n) {
  for (std::int64_t candidate = 2;; ++candidate) {
    bool is_prime = true;
    for (std::int64_t d = 2; d * d <= candidate; ++d) is_prime = is_prime && candidate % d != 0;
    if (is_prime && n-- == 0) return candidate;
  }
}

/// Tried in this order: not every model exists at multiples of 32 (a table of 77 positions), and an extent grows with
/// the number of symbols before it, so that a tensor of several grows beyond any memory. At last sizes repeat.
constexpr std::array<SizeScale, 4> size_scales = {{{32}, {8}, {1}, {1, 4}}};

/// The n-th of 4, 3, 5, 7, 9, ... times the unit.
std::int64_t multiple_of(std::int64_t unit, std::size_t n) {
  return n == 0 ? 4 * unit : unit * (2 * static_cast<std::int64_t>(n) + 1);
}

/// A model at sizes that were tried.
struct TriedModel {
  SymbolSizes sizes;
  Model model;
  std::int64_t elements;  ///< elements_at_once of it.
};

/// Operators that are understood and computed at run time.
std::size_t working_operators(const Graph& graph) {
  std::size_t count = 0;
  for (NodeId id = 0; id < graph.id_bound(); ++id)
    if (graph.contains(id) && graph.node(id).kind == NodeKind::op && !graph.node(id).weight_only) ++count;
  return count;
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

SymbolSizes choose_symbol_sizes(const std::vector<Symbol>& symbols, const SymbolSizes& given,
                                const SymbolRanges& ranges, const SizeScale& scale) {
  SymbolSizes sizes;
  std::size_t batches = 0, others = 0;
  for (const Symbol& symbol : symbols) {
    const auto chosen = given.find(symbol.name);
    std::int64_t size = chosen != given.end() ? chosen->second
                        : symbol.axis == 0    ? prime(batches++ % scale.different)
                                              : multiple_of(scale.unit, others++ % scale.different);
    if (const auto range = ranges.find(symbol.name); range != ranges.end())
      size = std::clamp(size, range->second.least, range->second.most.value_or(std::max(size, range->second.least)));
    sizes[symbol.name] = size;
  }
  return sizes;
}

std::int64_t elements_at_once(const Graph& graph) {
  std::int64_t given = 0, largest = 0;
  for (NodeId id = 0; id < graph.id_bound(); ++id) {
    if (!graph.contains(id)) continue;
    const Node& node = graph.node(id);
    if (node.kind == NodeKind::constant || node.weight_only) continue;
    for (const TensorType& type : node.outputs) {
      if (!type.known) continue;
      largest = std::max(largest, type.elements());
      if (node.kind != NodeKind::op) given += type.elements();
    }
  }
  return std::max(given, largest);
}

namespace {

/// Whether the sizes that a user gave are sizes of symbols, within their ranges.
Status check_given(const Model& model, const SymbolSizes& given, const SymbolRanges& ranges) {
  const std::vector<Symbol>& symbols = model.symbols();
  for (const auto& [name, size] : given) {
    if (std::none_of(symbols.begin(), symbols.end(), [&](const Symbol& symbol) { return symbol.name == name; })) {
      std::string names;
      for (const Symbol& symbol : symbols) names += (names.empty() ? "" : ", ") + symbol.name;
      return Error{ErrorCode::usage,
                   fmt::format("--assume {}={}: the model's inputs have no symbolic extent '{}'; they have {}", name,
                               size, name, names.empty() ? "none" : names),
                   {.file = model.path()}};
    }
    const auto range = ranges.find(name);
    if (range != ranges.end() &&
        (size < range->second.least || size > range->second.most.value_or(std::max(size, range->second.least))))
      return Error{
          ErrorCode::usage,
          fmt::format("--assume {}={}: --range {} leaves this size out", name, size, to_string(SymbolRanges{*range})),
          {.file = model.path()}};
  }
  return {};
}

}  // namespace

Expected<SizedModel> SizedModel::load(const std::string& path, const OperatorRegistry& registry,
                                      const ImportOptions& import, const SymbolSizes& given,
                                      const SymbolRanges& ranges) {
  TASO_ASSIGN(Model model, Model::load(path, registry, import));
  return of(std::move(model), registry, given, ranges);
}

Expected<SizedModel> SizedModel::of(Model read, const OperatorRegistry& registry, const SymbolSizes& given,
                                    const SymbolRanges& ranges) {
  SizedModel result;
  result.model_ = std::move(read);
  TASO_RETURN_IF_ERROR(check_given(*result.model_, given, ranges));
  if (result.model_->symbols().empty() && ranges.empty() && result.model_->open_extents().empty()) return result;
  Expected<SymbolicModel> symbolic = SymbolicModel::load(*result.model_, registry, ranges);
  if (!symbolic && symbolic.error().code == ErrorCode::usage) return symbolic.error();
  if (!symbolic) {
    result.problem_ = symbolic.error().message;
    return result;
  }
  std::vector<SymbolSizes> choices;
  for (const SizeScale& scale : size_scales)
    choices.push_back(choose_symbol_sizes(result.model_->symbols(), given, symbolic->ranges(), scale));
  choices.erase(std::unique(choices.begin(), choices.end()), choices.end());
  // Not every model exists at these, nor at all samples, where these have other extents than it computes.
  const std::size_t usual = choices.size();
  if (given.empty()) choices.insert(choices.end(), symbolic->samples().begin(), symbolic->samples().end());
  std::vector<TriedModel> tried;
  for (std::size_t i = 0; i < choices.size() && (i != usual || tried.empty()); ++i) {
    Expected<Model> model = symbolic->at(choices[i]);
    if (!model) {
      if (result.problem_.empty()) result.problem_ = model.error().message;
      continue;
    }
    const std::int64_t elements = elements_at_once(model->graph());
    tried.push_back({choices[i], std::move(*model), elements});
    if (elements <= most_elements) break;
  }
  if (tried.empty()) return result;
  result.problem_.clear();
  // Where much is moved at any sizes, smaller ones do not help.
  const auto by_elements = [](const TriedModel& a, const TriedModel& b) { return a.elements < b.elements; };
  const std::int64_t least = std::min_element(tried.begin(), tried.end(), by_elements)->elements;
  TriedModel& chosen = *std::find_if(tried.begin(), tried.end(), [&](const TriedModel& one) {
    return one.elements <= std::max(most_elements, 2 * least);
  });
  if (working_operators(chosen.model.graph()) <= working_operators(result.model_->graph())) {
    result.problem_ = "no more of it is understood at all sizes";
    for (const CarriedNode& carried : chosen.model.carried_nodes())
      if (carried.reason.find("at all sizes") != std::string::npos) {
        result.problem_ += ": " + carried.reason;
        break;
      }
    return result;
  }
  result.model_ = std::move(chosen.model);
  result.sizes_ = std::move(chosen.sizes);
  result.symbolic_ = std::move(*symbolic);
  return result;
}

void describe(const SizedModel& sized, const MessageSink& message) {
  if (!message) return;
  const Model& model = sized.model();
  for (const std::string& warning : model.warnings()) message(MessageLevel::warning, warning);
  for (const TensorDeclaration& input : model.inputs())
    if (!input.type.known && input.has_shape)
      message(MessageLevel::warning,
              fmt::format("the shape of input '{}' is symbolic, so what depends on it is carried through; "
                          "--input-shape {}:D,D,.. makes it concrete{}",
                          input.name, input.name, sized.problem().empty() ? "" : "; " + sized.problem()));
  const Coverage coverage = model.coverage();
  if (const std::string warning = coverage_warning(coverage); !warning.empty()) message(MessageLevel::warning, warning);
  for (const CarriedCause& cause : coverage.causes)
    message(MessageLevel::detail, fmt::format("carried: {}", to_string(cause)));
  if (sized.symbolic())
    for (const std::string& node : sized.symbolic()->untouched())
      message(MessageLevel::detail, fmt::format("not touched, as it does not hold at all sizes: {}", node));
}

}  // namespace taso
