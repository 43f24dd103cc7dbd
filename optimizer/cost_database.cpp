#include "optimizer/cost_database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "support/file.h"

namespace taso {
namespace {

constexpr int application_id = 0x7461736f;  // "taso"
constexpr int schema_version = 1;
constexpr int busy_milliseconds = 20'000;
constexpr std::string_view text_header = "# taso costs 1";
constexpr std::string_view sqlite_header = "SQLite format 3";

bool is_cost(double value) { return std::isfinite(value) && value >= 0; }

/// Tabs, line ends and backslashes as \t, \n, \r and \\, so that a field stays on its line.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) switch (c) {
      case '\t':
        result += "\\t";
        break;
      case '\n':
        result += "\\n";
        break;
      case '\r':
        result += "\\r";
        break;
      case '\\':
        result += "\\\\";
        break;
      default:
        result += c;
    }
  return result;
}

std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      result += text[i];
      continue;
    }
    const char c = text[++i];
    result += c == 't' ? '\t' : c == 'n' ? '\n' : c == 'r' ? '\r' : c;
  }
  return result;
}

}  // namespace

/// An open SQLite file and its prepared statements.
struct CostDatabase::Connection {
  sqlite3* handle = nullptr;
  bool writable = false;

  Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { sqlite3_close(handle); }

  Status execute(const char* sql, const std::string& path) const {
    const int code = sqlite3_exec(handle, sql, nullptr, nullptr, nullptr);
    return code == SQLITE_OK ? Status{} : Status{failure(code, path)};
  }

  [[nodiscard]] Error failure(int code, const std::string& path) const {
    switch (code & 0xff) {
      case SQLITE_NOTADB:
        return bad_input("not a cost database; give another file with --costs", {path});
      case SQLITE_CORRUPT:
        return bad_input("the cost database is damaged; delete it, the costs will be measured again", {path});
      case SQLITE_BUSY:
        return bad_input("the cost database is locked by another process", {path});
      default:
        return bad_input(fmt::format("cost database: {}", sqlite3_errmsg(handle)), {path});
    }
  }

  /// Makes a new file ours. Several processes may be doing so at once, which SQLite answers with "busy" at once where a
  /// file changes to WAL: try again until it is done, by whomever.
  [[nodiscard]] Status initialize(const std::string& path) const {
    const std::string schema = fmt::format(
        "BEGIN IMMEDIATE; PRAGMA application_id = {}; PRAGMA user_version = {};"
        "CREATE TABLE IF NOT EXISTS costs (device TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL,"
        " value REAL NOT NULL, PRIMARY KEY (device, kind, key)) WITHOUT ROWID; COMMIT",
        application_id, schema_version);
    const auto start = std::chrono::steady_clock::now();
    for (;;) {
      int code = sqlite3_exec(handle, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
      if (code == SQLITE_OK) code = sqlite3_exec(handle, schema.c_str(), nullptr, nullptr, nullptr);
      if (code == SQLITE_OK) return {};
      if (sqlite3_get_autocommit(handle) == 0) sqlite3_exec(handle, "ROLLBACK", nullptr, nullptr, nullptr);
      const bool busy = (code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED;
      if (!busy || std::chrono::steady_clock::now() - start > std::chrono::milliseconds(busy_milliseconds))
        return failure(code, path);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  /// A statement with texts as its first parameters; null if it cannot be prepared.
  [[nodiscard]] sqlite3_stmt* bound(const char* sql, const std::array<std::string_view, 3>& texts) const {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(handle, sql, -1, &statement, nullptr) != SQLITE_OK) return nullptr;
    int parameter = 0;
    for (const std::string_view text : texts)
      sqlite3_bind_text(statement, ++parameter, text.data(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    return statement;
  }

  /// The single integer that a query yields.
  [[nodiscard]] Expected<std::int64_t> integer(const char* sql, const std::string& path) const {
    sqlite3_stmt* statement = nullptr;
    int code = sqlite3_prepare_v2(handle, sql, -1, &statement, nullptr);
    if (code != SQLITE_OK) return failure(code, path);
    code = sqlite3_step(statement);
    const std::int64_t value = code == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    if (code != SQLITE_ROW && code != SQLITE_DONE) return failure(code, path);
    return value;
  }
};

CostDatabase::CostDatabase() = default;
CostDatabase::CostDatabase(CostDatabase&&) noexcept = default;
CostDatabase& CostDatabase::operator=(CostDatabase&&) noexcept = default;
CostDatabase::~CostDatabase() = default;

CostDatabase CostDatabase::in_memory(std::string device) {
  CostDatabase database;
  database.device_ = std::move(device);
  return database;
}

Expected<CostDatabase> CostDatabase::open(const std::string& path, std::string device, Mode mode) {
  CostDatabase database;
  database.device_ = std::move(device);
  database.path_ = path;

  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  if (exists && !std::filesystem::is_regular_file(path, error))
    return bad_input("not a file; expected a cost database", {path});
  if (!exists && mode == Mode::read_only) return bad_input("there is no cost database of this name", {path});
  if (exists) {
    std::string head(sqlite_header.size(), '\0');
    std::ifstream stream(path, std::ios::binary);
    if (!stream) return bad_input("cannot be read", {path});
    stream.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(stream.gcount()));
    if (head.starts_with(text_header)) {
      TASO_ASSIGN(const std::string text, read_file(path));
      TASO_ASSIGN(const std::vector<Entry> entries, import_text(text, path));
      for (const Entry& entry : entries) {
        database.devices_in_text_.insert(entry.device);
        if (entry.device == database.device_) database.costs_[{entry.kind, entry.key}] = entry.value;
      }
      return database;
    }
    if (!head.empty() && head != sqlite_header)
      return bad_input("not a cost database (neither SQLite nor exported text); give another file with --costs",
                       {path});
    if (head.empty() && mode == Mode::read_only) return bad_input("the cost database is empty", {path});
  } else {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, error);
    if (error) return bad_input("cannot create its folder: " + error.message(), {path});
  }

  auto connection = std::make_unique<Connection>();
  connection->writable = mode == Mode::read_write;
  const int flags = connection->writable ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  int code = sqlite3_open_v2(path.c_str(), &connection->handle, flags, nullptr);
  if (code != SQLITE_OK) return connection->failure(code, path);
  sqlite3_busy_timeout(connection->handle, busy_milliseconds);
  if (!connection->writable && !connection->integer("PRAGMA schema_version", path)) {
    // A WAL file in a folder that cannot be written: read it as it lies there.
    sqlite3_close(connection->handle);
    connection->handle = nullptr;
    std::string uri = "file:";
    for (const char c : std::filesystem::absolute(path).string())
      uri +=
          c == '?' || c == '#' || c == '%' ? fmt::format("%{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
    code = sqlite3_open_v2((uri + "?immutable=1").c_str(), &connection->handle, flags | SQLITE_OPEN_URI, nullptr);
    if (code != SQLITE_OK) return connection->failure(code, path);
  }

  // Tables first: whoever creates the file sets both in one transaction, so a file with tables has its id by then.
  TASO_ASSIGN(const std::int64_t tables, connection->integer("SELECT count(*) FROM sqlite_schema", path));
  TASO_ASSIGN(std::int64_t application, connection->integer("PRAGMA application_id", path));
  if (tables == 0 && application == 0 && connection->writable) {
    TASO_RETURN_IF_ERROR(connection->initialize(path));
    application = application_id;
  }
  if (application != application_id)
    return bad_input("a SQLite file of another program, not a cost database; give another file with --costs", {path});
  TASO_ASSIGN(const std::int64_t version, connection->integer("PRAGMA user_version", path));
  if (version != schema_version)
    return bad_input(fmt::format("cost database of version {}; this program reads version {}", version, schema_version),
                     {path});
  if (connection->writable) TASO_RETURN_IF_ERROR(connection->execute("PRAGMA synchronous = NORMAL", path));
  database.connection_ = std::move(connection);
  TASO_RETURN_IF_ERROR(database.load());
  return database;
}

Status CostDatabase::load() {
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(connection_->handle, "SELECT kind, key, value FROM costs WHERE device = ?1", -1,
                                &statement, nullptr);
  if (code != SQLITE_OK) return connection_->failure(code, path_);
  sqlite3_bind_text(statement, 1, device_.data(), static_cast<int>(device_.size()), SQLITE_TRANSIENT);
  auto text = [&](int column) {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
    return std::string(data == nullptr ? "" : data, static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
  };
  bool valid = true;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    const double value = sqlite3_column_double(statement, 2);
    valid = valid && is_cost(value) && sqlite3_column_type(statement, 2) == SQLITE_FLOAT;
    costs_[{text(0), text(1)}] = value;
  }
  sqlite3_finalize(statement);
  if (code != SQLITE_DONE) return connection_->failure(code, path_);
  if (!valid) return connection_->failure(SQLITE_CORRUPT, path_);
  return {};
}

Expected<std::vector<std::string>> CostDatabase::devices() const {
  if (!connection_) return std::vector<std::string>(devices_in_text_.begin(), devices_in_text_.end());
  sqlite3_stmt* statement = nullptr;
  int code = sqlite3_prepare_v2(connection_->handle, "SELECT DISTINCT device FROM costs ORDER BY device", -1,
                                &statement, nullptr);
  if (code != SQLITE_OK) return connection_->failure(code, path_);
  std::vector<std::string> devices;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
    const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
    devices.emplace_back(data == nullptr ? "" : data, static_cast<std::size_t>(sqlite3_column_bytes(statement, 0)));
  }
  sqlite3_finalize(statement);
  if (code != SQLITE_DONE) return connection_->failure(code, path_);
  return devices;
}

std::optional<double> CostDatabase::find(std::string_view kind, std::string_view key) const {
  const auto place = costs_.find(std::pair<std::string, std::string>(kind, key));
  if (place == costs_.end()) return std::nullopt;
  return place->second;
}

Expected<double> CostDatabase::record(std::string_view kind, std::string_view key, double value) {
  TASO_CHECK(is_cost(value), "a cost is a finite number of at least 0");
  if (connection_ != nullptr && connection_->writable) {
    const std::array<std::string_view, 3> place{device_, kind, key};
    sqlite3_stmt* insert = connection_->bound("INSERT OR IGNORE INTO costs VALUES (?1, ?2, ?3, ?4)", place);
    if (insert == nullptr) return connection_->failure(sqlite3_errcode(connection_->handle), path_);
    sqlite3_bind_double(insert, 4, value);
    int code = sqlite3_step(insert);
    sqlite3_finalize(insert);
    if (code != SQLITE_DONE) return connection_->failure(code, path_);
    sqlite3_stmt* select =
        connection_->bound("SELECT value FROM costs WHERE device = ?1 AND kind = ?2 AND key = ?3", place);
    if (select == nullptr) return connection_->failure(sqlite3_errcode(connection_->handle), path_);
    code = sqlite3_step(select);
    if (code == SQLITE_ROW) value = sqlite3_column_double(select, 0);
    sqlite3_finalize(select);
    if (code != SQLITE_ROW) return connection_->failure(code, path_);
  }
  return costs_.emplace(std::pair<std::string, std::string>(kind, key), value).first->second;
}

Status CostDatabase::replace(std::string_view kind, std::string_view key, double value) {
  TASO_CHECK(is_cost(value), "a cost is a finite number of at least 0");
  if (connection_ != nullptr && connection_->writable) {
    sqlite3_stmt* insert =
        connection_->bound("INSERT OR REPLACE INTO costs VALUES (?1, ?2, ?3, ?4)", {device_, kind, key});
    if (insert == nullptr) return connection_->failure(sqlite3_errcode(connection_->handle), path_);
    sqlite3_bind_double(insert, 4, value);
    const int code = sqlite3_step(insert);
    sqlite3_finalize(insert);
    if (code != SQLITE_DONE) return connection_->failure(code, path_);
  }
  costs_.insert_or_assign(std::pair<std::string, std::string>(kind, key), value);
  return {};
}

std::vector<CostDatabase::Entry> CostDatabase::entries() const {
  std::vector<Entry> result;
  for (const auto& [kind_and_key, value] : costs_)
    result.push_back({device_, kind_and_key.first, kind_and_key.second, value});
  return result;
}

std::string export_text(const std::vector<CostDatabase::Entry>& entries) {
  std::string text = std::string(text_header) + "\n";
  for (const CostDatabase::Entry& entry : entries)
    text +=
        fmt::format("{}\t{}\t{}\t{}\n", escaped(entry.device), escaped(entry.kind), escaped(entry.key), entry.value);
  return text;
}

Expected<std::vector<CostDatabase::Entry>> import_text(std::string_view text, const std::string& file) {
  std::vector<CostDatabase::Entry> entries;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (number == 1) {
      if (line != text_header)
        return bad_input(fmt::format("expected the header '{}', found '{}'", text_header, line.substr(0, 40)),
                         {file, number});
      continue;
    }
    if (line.empty() || line.front() == '#') continue;
    std::vector<std::string_view> fields;
    for (std::string_view rest = line;;) {
      const std::size_t tab = rest.find('\t');
      fields.push_back(rest.substr(0, tab));
      if (tab == std::string_view::npos) break;
      rest.remove_prefix(tab + 1);
    }
    if (fields.size() != 4)
      return bad_input(fmt::format("expected device, kind, key and value separated by tabs, found {} field{}",
                                   fields.size(), fields.size() == 1 ? "" : "s"),
                       {file, number});
    double value = 0;
    const auto [rest, status] = std::from_chars(fields[3].data(), fields[3].data() + fields[3].size(), value);
    if (status != std::errc{} || rest != fields[3].data() + fields[3].size() || !is_cost(value))
      return bad_input(fmt::format("expected a cost of at least 0, found '{}'", fields[3]), {file, number});
    entries.push_back({unescaped(fields[0]), unescaped(fields[1]), unescaped(fields[2]), value});
  }
  if (number == 0) return bad_input(fmt::format("expected the header '{}', found an empty file", text_header), {file});
  return entries;
}

std::string default_cost_database_path() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/')
    return std::string(cache) + "/taso/costs.sqlite";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::string(home) + "/.cache/taso/costs.sqlite";
  return {};
}

}  // namespace taso
