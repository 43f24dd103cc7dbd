#include "session/coverage_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "optimizer/report.h"
#include "session/sized_model.h"

namespace taso {
namespace {

namespace fs = std::filesystem;

Expected<std::vector<std::string>> models_below(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error))
    if (entry->path().extension() == ".onnx") found.push_back(entry->path().string());
  if (error) return bad_input("the folder cannot be read: " + error.message(), {folder});
  if (found.empty()) return bad_input("the folder has no file *.onnx", {folder});
  std::sort(found.begin(), found.end());
  return found;
}

std::string model_text(const ModelCoverage& model, std::size_t causes) {
  if (!model.error.empty()) return model.error + "\n";
  const Coverage& coverage = model.coverage;
  std::string text = fmt::format(
      "{}: {} nodes in the file; of those that compute at run time {} of {} understood, {} open", model.path,
      model.nodes, coverage.understood, coverage.understood + coverage.carried, open_share_text(coverage));
  if (model.fixed_nodes > 0) text += fmt::format("; {} of these not at all sizes", model.fixed_nodes);
  if (!model.sizes.empty()) text += fmt::format(" (at {})", model.sizes);
  text += "\n";
  if (!model.problem.empty()) text += "  symbolic extents: " + model.problem + "\n";
  const std::size_t shown = std::min(causes, coverage.causes.size());
  for (std::size_t i = 0; i < shown; ++i) text += "  " + to_string(coverage.causes[i]) + "\n";
  if (shown < coverage.causes.size()) text += fmt::format("  and {} more\n", coverage.causes.size() - shown);
  return text;
}

}  // namespace

Expected<std::vector<std::string>> models_of(const std::vector<std::string>& paths) {
  std::vector<std::string> models;
  for (const std::string& path : paths) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored)) {
      models.push_back(path);
      continue;
    }
    TASO_ASSIGN(std::vector<std::string> found, models_below(path));
    models.insert(models.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
  }
  return models;
}

ModelCoverage coverage_of_model(const std::string& path, const OperatorRegistry& registry, const ImportOptions& import,
                                const SymbolSizes& sizes, const SymbolRanges& ranges) {
  ModelCoverage result;
  result.path = path;
  const Expected<SizedModel> sized = SizedModel::load(path, registry, import, sizes, ranges);
  if (!sized) {
    result.error = sized.error().to_string();
    return result;
  }
  result.nodes = static_cast<std::int64_t>(sized->model().original_nodes().size());
  result.coverage = sized->model().coverage();
  if (!sized->sizes().empty()) result.sizes = to_string(sized->sizes());
  result.problem = sized->problem();
  if (sized->symbolic()) result.fixed_nodes = static_cast<std::int64_t>(sized->symbolic()->untouched().size());
  return result;
}

std::string to_text(const std::vector<ModelCoverage>& models, std::size_t causes) {
  std::string text;
  std::int64_t understood = 0, computing = 0, unread = 0;
  for (const ModelCoverage& model : models) {
    text += model_text(model, causes);
    unread += model.error.empty() ? 0 : 1;
    understood += model.coverage.understood;
    computing += model.coverage.understood + model.coverage.carried;
  }
  if (models.size() < 2) return text;
  text += fmt::format("{} models: {} of {} nodes understood", models.size(), understood, computing);
  if (unread > 0) text += fmt::format("; {} cannot be read", unread);
  return text + "\n";
}

std::string to_json(const std::vector<ModelCoverage>& models) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const ModelCoverage& model : models) {
    nlohmann::ordered_json entry{{"model", model.path}};
    if (!model.error.empty()) {
      entry["error"] = model.error;
      all.push_back(std::move(entry));
      continue;
    }
    entry["file_nodes"] = model.nodes;
    entry["coverage"] = nlohmann::ordered_json::parse(coverage_json(model.coverage));
    entry["sizes"] = model.sizes;
    entry["symbolic_problem"] = model.problem;
    entry["not_at_all_sizes"] = model.fixed_nodes;
    all.push_back(std::move(entry));
  }
  return all.dump(2) + "\n";
}

}  // namespace taso
