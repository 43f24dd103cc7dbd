/// Measured costs on disk, shared by all runs on a machine and carried to other machines as text.
///
/// SQLite in WAL mode, one table keyed by (device, kind, key). Several processes may use one file at a time: the first
/// value recorded for a key stays, everyone reads it back. All rows of the device in use are held in memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/status.h"

namespace taso {

class CostDatabase {
 public:
  enum class Mode : std::uint8_t { read_only, read_write };

  /// One recorded cost. `kind` is "kernel" (seconds of one launch), "least" (the same of a kernel of which no more is
  /// known than that it is not faster), "graph" and "plan" (seconds of a whole graph, and of a plan run by
  /// several ranks), "engine", "tuning" and "failed" (recorded_choices.h), "step" and "concurrency"
  /// (recorded_step_costs.h), "noise", "finalist" (which of them, from 1; 0: none), "noise of final" and "date" (of
  /// those timed together: 20261126), "refused" (1: a whole graph does not run there), "gauge" (microseconds,
  /// targets/gauge.h), or "cache" (tenths of a working set that stay in the last-level cache).
  struct Entry {
    std::string device, kind, key;
    double value = 0;
    auto operator<=>(const Entry&) const = default;
  };

  /// Opens the costs of `device` in the file at `path`: a SQLite file of ours (created, with its folder, in mode
  /// read_write if missing) or a text file written by export_text, whose costs are then held in memory only.
  /// bad_input if the file is neither, is damaged, or cannot be opened.
  [[nodiscard]] static Expected<CostDatabase> open(const std::string& path, std::string device, Mode mode);
  /// A database that lives in memory only.
  [[nodiscard]] static CostDatabase in_memory(std::string device);

  CostDatabase(CostDatabase&&) noexcept;
  CostDatabase& operator=(CostDatabase&&) noexcept;
  ~CostDatabase();

  [[nodiscard]] const std::string& device() const { return device_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::optional<double> find(std::string_view kind, std::string_view key) const;
  /// Records a cost and returns the value that now stands for the key: another process may have been first.
  [[nodiscard]] Expected<double> record(std::string_view kind, std::string_view key, double value);
  /// Records a cost in the place of one that is there.
  [[nodiscard]] Status replace(std::string_view kind, std::string_view key, double value);
  /// All devices that the file has costs of, ordered.
  [[nodiscard]] Expected<std::vector<std::string>> devices() const;
  /// All costs of the device, ordered by kind and key.
  [[nodiscard]] std::vector<Entry> entries() const;

 private:
  struct Connection;
  CostDatabase();
  [[nodiscard]] Status load();
  std::string device_, path_;
  std::map<std::pair<std::string, std::string>, double, std::less<>> costs_;
  std::set<std::string> devices_in_text_;
  std::unique_ptr<Connection> connection_;  ///< Null for memory and text.
};

/// Costs as text, one a line: device, kind, key and value separated by tabs, after a header line.
[[nodiscard]] std::string export_text(const std::vector<CostDatabase::Entry>& entries);
/// The inverse of export_text; errors name file and line.
[[nodiscard]] Expected<std::vector<CostDatabase::Entry>> import_text(std::string_view text, const std::string& file);

/// $XDG_CACHE_HOME/taso/costs.sqlite, or ~/.cache/taso/costs.sqlite; empty if neither folder is known.
[[nodiscard]] std::string default_cost_database_path();

}  // namespace taso
