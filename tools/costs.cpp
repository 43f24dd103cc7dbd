#include "tools/costs.h"

#include <CLI/CLI.hpp>

#include "optimizer/cost_database.h"

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

}  // namespace taso::tools
