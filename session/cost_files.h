/// Where the measured costs of a session are recorded.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "optimizer/cost_database.h"
#include "optimizer/recorded_choices.h"
#include "optimizer/recorded_step_costs.h"
#include "runtime/kernel.h"
#include "session/message.h"
#include "support/status.h"

namespace taso {

/// Which costs are used.
struct CostFiles {
  std::string file;  ///< As for CostDatabase::open; empty: default_cost_database_path(), if it is of use.
  /// With `recorded_only`: files that come with the specifications, tried in turn where `file` is empty and the default
  /// one has no costs of the device.
  std::vector<std::string> shipped;
  bool recorded_only = false;  ///< Nothing is measured: a cost that is not recorded is an error of code cost_missing.
};

/// The costs of the device of that identity. `needed`: costs are times; else only a named file is opened. `described`:
/// the device is not there, so that costs of one that differs in versions alone serve, with a warning. In memory where
/// there is no file. Fails as CostDatabase::open does; but not because of the default file, of which a message tells.
[[nodiscard]] Expected<CostDatabase> open_costs(const CostFiles& files, const std::string& identity, bool needed,
                                                bool described, const MessageSink& message);

/// The choices of engines for the device of the library's backend, which from now on reads and keeps them there: in the
/// files where costs are. Null without a backend. Fails as open_costs does.
[[nodiscard]] Expected<std::shared_ptr<RecordedChoices>> open_choices(const CostFiles& files,
                                                                      const KernelLibrary& library,
                                                                      const MessageSink& message);

/// What steps cost on several streams of that device, kept in the same files. Null without a backend. Fails as
/// open_costs does.
[[nodiscard]] Expected<std::shared_ptr<RecordedStepCosts>> open_step_costs(const CostFiles& files,
                                                                           const KernelLibrary& library);

}  // namespace taso
