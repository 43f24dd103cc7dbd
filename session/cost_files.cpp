#include "session/cost_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "runtime/backend.h"

namespace taso {
namespace {

/// The parts of an identity that are no versions of others: the device's name, math mode, threads, storage, and our own
/// kernels' generation.
std::string without_versions(const std::string& identity) {
  std::string kept;
  std::size_t start = 0;
  for (bool first = true; start < identity.size(); first = false) {
    const std::size_t end = std::min(identity.find("; ", start), identity.size());
    std::string part = identity.substr(start, end - start);
    start = end + 2;
    if (first) part = part.substr(0, part.find(" ("));
    const bool setting = part.find('=') != std::string::npos || part == "counting" || part.starts_with("taso ") ||
                         part == to_string(MathMode::strict) || part == to_string(MathMode::tf32);
    if (first || setting) kept += part + "; ";
  }
  return kept;
}

/// Whether costs recorded under the identity `recorded` serve to plan for the described device of the identity
/// `described`: equal but for a remark in brackets after the device's name, and versions of drivers and libraries,
/// which the machine that plans need not have.
bool serves(const std::string& recorded, const std::string& described) {
  return without_versions(recorded) == without_versions(described);
}

/// The costs of a file: those of the device, or, of one that is only described, those that serve to plan for it.
Expected<CostDatabase> open_file(const std::string& path, const std::string& identity, CostDatabase::Mode mode,
                                 bool described, const MessageSink& message) {
  TASO_ASSIGN(CostDatabase database, CostDatabase::open(path, identity, mode));
  if (!described || !database.entries().empty()) return database;
  TASO_ASSIGN(const std::vector<std::string> devices, database.devices());
  const auto device = std::find_if(devices.begin(), devices.end(),
                                   [&](const std::string& recorded) { return serves(recorded, identity); });
  if (device == devices.end()) return database;
  if (message) message(MessageLevel::warning, fmt::format("{}: costs are those of '{}'", path, *device));
  return CostDatabase::open(path, *device, mode);
}

}  // namespace

Expected<CostDatabase> open_costs(const CostFiles& files, const std::string& identity, bool needed, bool described,
                                  const MessageSink& message) {
  const auto mode = files.recorded_only ? CostDatabase::Mode::read_only : CostDatabase::Mode::read_write;
  const auto open = [&](const std::string& path) { return open_file(path, identity, mode, described, message); };
  if (!files.file.empty()) return open(files.file);
  if (!needed) return CostDatabase::in_memory(identity);
  const std::string path = default_cost_database_path();
  std::error_code error;
  if (!path.empty() && (!files.recorded_only || std::filesystem::exists(path, error))) {
    Expected<CostDatabase> database = open(path);
    if (database && (!files.recorded_only || !database->entries().empty())) return database;
    if (!database && message)
      message(MessageLevel::important, database.error().to_string() + "; costs are measured for this run only");
  }
  // Costs of devices that not everyone has are part of the specifications.
  if (files.recorded_only)
    for (const std::string& file : files.shipped) {
      TASO_ASSIGN(CostDatabase database, open(file));
      if (!database.entries().empty()) return database;
    }
  return CostDatabase::in_memory(identity);
}

Expected<std::shared_ptr<RecordedChoices>> open_choices(const CostFiles& files, const KernelLibrary& library,
                                                        const MessageSink& message) {
  const std::shared_ptr<Backend>& backend = library.backend();
  if (!backend) return std::shared_ptr<RecordedChoices>();
  TASO_ASSIGN(CostDatabase database, open_costs(files, backend->identity(), true, !backend->can_run(), message));
  auto choices = std::make_shared<RecordedChoices>(std::move(database));
  backend->use_choices(choices);
  return choices;
}

Expected<std::shared_ptr<RecordedStepCosts>> open_step_costs(const CostFiles& files, const KernelLibrary& library) {
  const std::shared_ptr<Backend>& backend = library.backend();
  if (!backend) return std::shared_ptr<RecordedStepCosts>();
  TASO_ASSIGN(CostDatabase database, open_costs(files, backend->identity(), true, !backend->can_run(), {}));
  return std::make_shared<RecordedStepCosts>(std::move(database));
}

}  // namespace taso
