/// --costs of taso-opt and taso-run: the database of measured costs.
#pragma once

#include <string>

#include "tools/files.h"

namespace taso::tools {

/// Adds --costs. The file that it names, or that is the default, is kept from run to run, with what SQLite puts beside
/// it.
void add_cost_option(CLI::App& app, FileOptions& files, std::string& path, const std::string& help);

}  // namespace taso::tools
