#include "tools/planned_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "graph/rewrite.h"
#include "partition/plan_check.h"

namespace taso::tools {
namespace {

/// Whether the plan has a size for every symbolic extent of the model, and for no other; or for none.
Status check_symbols(const PlanDocument& document, const Model& model) {
  const auto refused = [&](const std::string& what) {
    return Error{ErrorCode::not_proved, "symbols: " + what, {document.file}};
  };
  for (const Symbol& symbol : model.symbols())
    if (!document.symbols.contains(symbol.name))
      return refused(fmt::format("nothing is said of '{}', a symbolic extent of the model", symbol.name));
  for (const auto& [name, size] : document.symbols)
    if (std::none_of(model.symbols().begin(), model.symbols().end(),
                     [&](const Symbol& symbol) { return symbol.name == name; }))
      return refused(fmt::format("'{}' is no symbolic extent of the model", name));
  return {};
}

}  // namespace

std::string model_path(const PlanDocument& document, const std::string& given) {
  return given.empty() ? (std::filesystem::path(document.file).parent_path() / document.model.name).string() : given;
}

Expected<PlannedModel> load_planned_model(const PlanDocument& document, const std::string& path,
                                          const OperatorRegistry& registry, bool absent_weights) {
  TASO_RETURN_IF_ERROR(check_model_of_plan(document, path));
  ImportOptions options{.input_shapes = document.input_shapes, .symbol_sizes = {}, .absent_weights = absent_weights};
  TASO_ASSIGN(Model model, Model::load(path, registry, options));
  if (!document.symbols.empty()) {
    TASO_RETURN_IF_ERROR(check_symbols(document, model));
    options.symbol_sizes = document.symbols;
    TASO_ASSIGN(model, Model::load(path, registry, options));
  }
  Graph graph = model.graph();
  normalize(graph, registry);
  return PlannedModel{std::move(model), std::move(graph)};
}

}  // namespace taso::tools
