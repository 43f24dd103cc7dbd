#include "tools/verify_gradients.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "gradients/table.h"
#include "tools/proved_specs.h"
#include "verifier/gradients.h"

namespace taso::tools {
namespace {

namespace fs = std::filesystem;

const char* word(GradientVerdict::Kind kind) {
  switch (kind) {
    case GradientVerdict::Kind::holds:
      return "holds";
    case GradientVerdict::Kind::refuted:
      return "refuted";
    case GradientVerdict::Kind::unknown:
      return "unknown";
  }
  return "?";
}

/// The verdicts on all derivatives, then on the entries of all operators, by name.
std::vector<GradientVerdict> check_all(const OperatorRegistry& registry, const GradientTable& table,
                                       const CommonOptions& common) {
  std::vector<const OperatorGradients*> operators;
  for (const auto& [name, gradients] : table.operators()) operators.push_back(&gradients);
  std::vector<std::vector<GradientVerdict>> found(operators.size());
  GradientCheckOptions options;
  options.seed = common.seed;
  std::atomic<std::size_t> next = 0;
  auto work = [&] {
    for (std::size_t i = next++; i < operators.size() && !interrupted(); i = next++)
      found[i] = check_gradients(registry, table, operators[i]->op, options);
  };
  const auto wanted =
      common.threads > 0 ? static_cast<unsigned>(common.threads) : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (unsigned t = 1; t < std::min<std::size_t>(wanted, operators.size()); ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  std::vector<GradientVerdict> all;
  for (const auto& [name, derivative] : table.derivatives())
    for (GradientVerdict& verdict : check_derivatives(registry, derivative)) all.push_back(std::move(verdict));
  for (std::vector<GradientVerdict>& of_operator : found)
    for (GradientVerdict& verdict : of_operator) all.push_back(std::move(verdict));
  return all;
}

std::string report(const GradientVerdict& verdict) {
  const std::string line = fmt::format("{:<8} {}", word(verdict.kind), verdict.name);
  if (verdict.kind == GradientVerdict::Kind::holds) return fmt::format("{} ({} instances)\n", line, verdict.instances);
  return fmt::format("{} ({}:{}:{}): {}\n", line, verdict.where.file, verdict.where.line, verdict.where.column,
                     verdict.reason);
}

/// The operators whose gradients no table gives, as one line.
std::string without(const OperatorRegistry& registry, const GradientTable& table) {
  std::string names;
  for (const std::string& name : registry.names())
    if (table.find(name) == nullptr && !registry.find(name)->inputs.empty())
      names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "" : "without gradients: " + names + "\n";
}

}  // namespace

Expected<int> run_gradients(const CommonOptions& common, const std::vector<std::string>& tables, bool print) {
  CommonOptions all = common;
  const std::string shipped = (fs::path(common.specs) / "gradients").string();
  std::error_code error;
  if (fs::is_directory(fs::path(shipped) / "operators", error) &&
      std::find(all.added_specs.begin(), all.added_specs.end(), shipped) == all.added_specs.end())
    all.added_specs.insert(all.added_specs.begin(), shipped);
  TASO_ASSIGN(const OperatorRegistry registry, load_proved_operators(all));
  GradientTable table;
  for (const std::string& path : tables.empty() ? std::vector<std::string>{shipped} : tables) {
    TASO_ASSIGN(table, GradientTable::load(path, registry, &table));
  }
  const std::vector<GradientVerdict> verdicts = check_all(registry, table, common);
  if (interrupted()) return Error{ErrorCode::interrupted, "interrupted; nothing was reported", {}};
  std::size_t counts[3] = {0, 0, 0};
  std::string text;
  for (const GradientVerdict& verdict : verdicts) {
    ++counts[static_cast<std::size_t>(verdict.kind)];
    if (print || verdict.kind != GradientVerdict::Kind::holds) text += report(verdict);
  }
  if (print) text += without(registry, table);
  if (print)
    text +=
        fmt::format("{} entries: {} hold, {} refuted, {} unknown\n", verdicts.size(), counts[0], counts[1], counts[2]);
  std::fputs(text.c_str(), stdout);
  return counts[0] == verdicts.size() ? 0 : static_cast<int>(ErrorCode::not_proved);
}

}  // namespace taso::tools
