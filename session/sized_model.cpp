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

/// Extents other than a first axis are multiples of the first of these, or, where a model does not exist at such (a
/// table of 77 positions), of the second.
constexpr std::array<std::int64_t, 2> size_units = {32, 8};

/// The n-th of 4, 3, 5, 7, 9, ... times the unit.
std::int64_t multiple_of(std::int64_t unit, std::size_t n) {
  return n == 0 ? 4 * unit : unit * (2 * static_cast<std::int64_t>(n) + 1);
}

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
                                const SymbolRanges& ranges, std::int64_t unit) {
  SymbolSizes sizes;
  std::size_t batches = 0, others = 0;
  for (const Symbol& symbol : symbols) {
    const auto chosen = given.find(symbol.name);
    std::int64_t size = chosen != given.end() ? chosen->second
                        : symbol.axis == 0    ? prime(batches++)
                                              : multiple_of(unit, others++);
    if (const auto range = ranges.find(symbol.name); range != ranges.end())
      size = std::clamp(size, range->second.least, range->second.most.value_or(std::max(size, range->second.least)));
    sizes[symbol.name] = size;
  }
  return sizes;
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
  // Not every model exists at the usual sizes.
  std::vector<SymbolSizes> choices = {choose_symbol_sizes(result.model_->symbols(), given, symbolic->ranges())};
  choices.push_back(choose_symbol_sizes(result.model_->symbols(), given, symbolic->ranges(), 8));
  // Nor at all samples, where these have other extents than it computes.
  if (given.empty()) choices.insert(choices.end(), symbolic->samples().begin(), symbolic->samples().end());
  for (const SymbolSizes& sizes : choices) {
    Expected<Model> model = symbolic->at(sizes);
    if (!model) {
      if (result.problem_.empty()) result.problem_ = model.error().message;
      continue;
    }
    result.problem_.clear();
    if (working_operators(model->graph()) <= working_operators(result.model_->graph())) {
      result.problem_ = "no more of it is understood at all sizes";
      for (const CarriedNode& carried : model->carried_nodes())
        if (carried.reason.find("at all sizes") != std::string::npos) {
          result.problem_ += ": " + carried.reason;
          break;
        }
      return result;
    }
    result.model_ = std::move(*model);
    result.sizes_ = sizes;
    result.symbolic_ = std::move(*symbolic);
    return result;
  }
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
