#include "session/transfer_costs.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "optimizer/collective_costs.h"

namespace taso {
namespace {

/// The file to look into, if there is one.
std::optional<std::string> file_of(const CostFiles& files) {
  if (!files.file.empty()) return files.file;
  const std::string path = default_cost_database_path();
  std::error_code error;
  if (path.empty() || !std::filesystem::exists(path, error)) return std::nullopt;
  return path;
}

class Reader {
 public:
  Reader(const CostDatabase& database, MeasuredTransfers& result) : database_(database), result_(result) {}

  Expected<TimeTable> table(const std::string& kind, int group, const std::string& link) {
    const MeasuredCollective collective{kind, group, link};
    TASO_ASSIGN(const auto recorded, recorded_collective(database_, collective));
    std::vector<TimeTable::Point> points;
    for (const auto& [bytes, seconds] : recorded) {
      points.push_back({bytes, seconds});
      result_.used.push_back(recorded_entry(database_, collective, bytes, seconds));
    }
    return TimeTable::of(std::move(points));
  }

  /// False where something is not recorded.
  Expected<bool> fill() {
    Mesh& mesh = result_.mesh;
    TASO_ASSIGN(mesh.copy, table("copy", 1, ""));
    bool all = !mesh.copy.empty();
    for (MeshAxis& axis : mesh.axes)
      for (const CollectiveKind& kind : collective_kinds) {
        TASO_ASSIGN(axis.times.*kind.table, table(kind.name, static_cast<int>(axis.size), axis.link));
        all = all && !(axis.times.*kind.table).empty();
      }
    return all;
  }

 private:
  const CostDatabase& database_;
  MeasuredTransfers& result_;
};

}  // namespace

Expected<MeasuredTransfers> measured_transfers(const Mesh& mesh, const CostFiles& files, const std::string& device,
                                               const std::string& transport) {
  const std::optional<std::string> path = file_of(files);
  std::vector<std::string> wanted{transport};
  if (transport == "none" || mesh.axes.empty()) wanted.clear();
  if (transport == "any") wanted = {"mpi", "threads"};
  std::error_code error;
  std::vector<std::string> devices;
  if (path && !wanted.empty() && std::filesystem::exists(*path, error)) {
    TASO_ASSIGN(const CostDatabase database, CostDatabase::open(*path, device, CostDatabase::Mode::read_only));
    TASO_ASSIGN(devices, database.devices());
  }
  for (const std::string& name : wanted)
    for (auto identity = devices.rbegin(); identity != devices.rend(); ++identity) {
      const std::optional<MeasuredRanks> ranks = measured_ranks(*identity);
      if (!ranks || ranks->device != device || ranks->ranks != mesh.devices() || ranks->transport != name) continue;
      TASO_ASSIGN(const CostDatabase database, CostDatabase::open(*path, *identity, CostDatabase::Mode::read_only));
      MeasuredTransfers result{mesh, {}};
      TASO_ASSIGN(const bool all, Reader(database, result).fill());
      if (!all) continue;
      result.mesh.transport = fmt::format("{}; {}", ranks->transport, ranks->version);
      return result;
    }
  if (transport == "any" || wanted.empty()) return MeasuredTransfers{mesh, {}};
  return Error{ErrorCode::cost_missing,
               fmt::format("--transport {0}: nothing is recorded of {1} ranks of {2} that communicate so; measure it: "
                           "{3}taso-run --measure-links FILE --measure-collectives{4}",
                           transport, mesh.devices(), device,
                           transport == "mpi" ? fmt::format("mpirun -np {} ", mesh.devices()) : "",
                           transport == "mpi" ? "" : fmt::format(" --ranks {}", mesh.devices())),
               {path.value_or("")}};
}

}  // namespace taso
