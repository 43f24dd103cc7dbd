/// --costs of taso-opt and taso-run: the database of measured costs.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "optimizer/recorded_choices.h"
#include "optimizer/recorded_step_costs.h"
#include "runtime/kernel.h"
#include "support/status.h"
#include "tools/files.h"

namespace taso::tools {

/// Adds --costs. The file that it names, or that is the default, is kept from run to run, with what SQLite puts beside
/// it.
void add_cost_option(CLI::App& app, FileOptions& files, std::string& path, const std::string& help);

/// Choices of engines for the device of the library's backend, from now on read from and kept in the database at
/// `path`, or, if that is empty, in the default one. Null without a backend or a database. A default database that
/// cannot be opened is no error: `program` warns, and choices are those of the process.
[[nodiscard]] Expected<std::shared_ptr<RecordedChoices>> keep_choices(const KernelLibrary& library,
                                                                      const std::string& path,
                                                                      std::string_view program);

/// Costs of steps for streams of the device of the library's backend, in the same database; where there is none, in
/// memory. Null without a backend.
[[nodiscard]] Expected<std::shared_ptr<RecordedStepCosts>> keep_step_costs(const KernelLibrary& library,
                                                                           const std::string& path,
                                                                           CostDatabase::Mode mode,
                                                                           std::string_view program);

}  // namespace taso::tools
