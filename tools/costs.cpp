#include "tools/costs.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <system_error>
#include <utility>

#include "optimizer/cost_database.h"
#include "runtime/backend.h"
#include "tools/common.h"

namespace taso::tools {

void add_cost_option(CLI::App& app, FileOptions& files, std::string& path, const std::string& help) {
  files.declare(
      app.add_option("--costs", path, help)->type_name("FILE"),
      [&path](FileClaims& claims, const std::string& name) -> Status {
        const std::string database = path.empty() ? default_cost_database_path() : path;
        if (database.empty()) return {};
        for (const char* suffix : {"", "-wal", "-shm", "-journal"})
          TASO_RETURN_IF_ERROR(claims.updates(name, database + suffix));
        return {};
      },
      true);
}

Expected<std::shared_ptr<RecordedChoices>> keep_choices(const KernelLibrary& library, const std::string& path,
                                                        std::string_view program) {
  const std::shared_ptr<Backend>& backend = library.backend();
  const std::string file = path.empty() ? default_cost_database_path() : path;
  if (!backend || file.empty()) return std::shared_ptr<RecordedChoices>();
  Expected<CostDatabase> database = CostDatabase::open(file, backend->identity(), CostDatabase::Mode::read_write);
  if (!database) {
    if (!path.empty()) return database.error();
    warn(program, database.error().to_string() + "; engines are chosen for this run only");
    return std::shared_ptr<RecordedChoices>();
  }
  auto choices = std::make_shared<RecordedChoices>(std::move(*database));
  backend->use_choices(choices);
  return choices;
}

Expected<std::shared_ptr<RecordedStepCosts>> keep_step_costs(const KernelLibrary& library, const std::string& path,
                                                             CostDatabase::Mode mode, std::string_view program) {
  const std::shared_ptr<Backend>& backend = library.backend();
  if (!backend) return std::shared_ptr<RecordedStepCosts>();
  const std::string file = path.empty() ? default_cost_database_path() : path;
  std::error_code error;
  const bool is_there =
      !file.empty() && (mode == CostDatabase::Mode::read_write || std::filesystem::exists(file, error));
  if (!is_there && path.empty())
    return std::make_shared<RecordedStepCosts>(CostDatabase::in_memory(backend->identity()));
  Expected<CostDatabase> database = CostDatabase::open(file, backend->identity(), mode);
  if (database) return std::make_shared<RecordedStepCosts>(std::move(*database));
  if (!path.empty()) return database.error();
  warn(program, database.error().to_string() + "; costs of steps are those of this run only");
  return std::make_shared<RecordedStepCosts>(CostDatabase::in_memory(backend->identity()));
}

}  // namespace taso::tools
