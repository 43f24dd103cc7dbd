#include "tools/files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <system_error>

#include "support/file.h"

namespace taso::tools {
namespace {

namespace fs = std::filesystem;

Error usage(std::string message) { return {ErrorCode::usage, std::move(message), {}}; }

/// Where "-" writes to. Not the place of what stdout is redirected to: that may be /dev/null, which holds any number.
FilePlace place_of_stdout() {
  FilePlace place;
  place.below = "-";
  return place;
}

bool is_null_device(const FilePlace& place) { return place.is_device && place == place_of("/dev/null"); }

/// The place of an output: stdout by any name is "-".
FilePlace place_of_output(const std::string& path) {
  if (path == "-") return place_of_stdout();
  const FilePlace place = place_of(path);
  return place == place_of_descriptor(STDOUT_FILENO) && !is_null_device(place) ? place_of_stdout() : place;
}

bool ends_in(const std::string& path, const std::vector<std::string>& extensions) {
  const std::string extension = fs::path(path).extension().string();
  return std::find(extensions.begin(), extensions.end(), extension) != extensions.end();
}

/// The folder that a file lies in, links followed.
FilePlace folder_of(const std::string& path) {
  fs::path folder = fs::path(path).parent_path();
  return place_of(folder.empty() ? "." : folder.string());
}

std::string file_in(const std::string& value, const std::string& type) {
  return type.find('=') == std::string::npos ? value : value.substr(value.rfind('=') + 1);
}

/// The words of a type name such as NAME=FILE.
bool names_a_file(const std::string& type) {
  for (const char* word : {"FILE", "DIR", "MODEL", "OTHER", "INPUT", "PATH"})
    if (type.find(word) != std::string::npos) return true;
  return false;
}

}  // namespace

Status FileClaims::reads(const std::string& what, const std::string& path) {
  return add({what, path, place_of(path), Use::read, "", {}});
}

Status FileClaims::reads_all(const std::string& what, const std::string& path,
                             const std::vector<std::string>& extensions) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return reads(what, path);
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::error_code unknown;
    if (it->is_directory(unknown) || !ends_in(it->path().string(), extensions)) continue;
    TASO_RETURN_IF_ERROR(reads(what, it->path().string()));
  }
  return {};  // a folder that cannot be read is an error of its reader
}

Status FileClaims::writes(const std::string& what, const std::string& path, const std::string& itself) {
  if (path.empty()) return usage(fmt::format("{}: the file name is empty", what));
  return add({what, path, place_of_output(path), Use::written, itself, {}});
}

Status FileClaims::updates(const std::string& what, const std::string& path) {
  return add({what, path, place_of(path), Use::updated, "", {}});
}

Status FileClaims::fills(const std::string& what, const std::string& folder,
                         const std::vector<std::string>& extensions) {
  if (folder.empty()) return usage(fmt::format("{}: the folder's name is empty", what));
  TASO_RETURN_IF_ERROR(add({what, folder, place_of(folder), Use::folder, "", extensions}));
  std::error_code error;
  // What lies in it may have other names elsewhere.
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (ends_in(it->path().string(), extensions)) TASO_RETURN_IF_ERROR(updates(what, it->path().string()));
  return {};
}

Status FileClaims::can_write() const {
  std::error_code error;
  for (const Claim& claim : claims_) {
    if (claim.use == Use::folder && fs::exists(claim.path, error) && !fs::is_directory(claim.path, error))
      return bad_input("it is a file; expected a folder", {.file = claim.path});
    if (claim.use == Use::written && claim.path != "-") TASO_RETURN_IF_ERROR(find_output(claim.path));
  }
  return {};
}

bool FileClaims::uses_stdout() const {
  return std::any_of(claims_.begin(), claims_.end(),
                     [](const Claim& claim) { return claim.place == place_of_stdout(); });
}

bool FileClaims::clash(const Claim& a, const Claim& b) {
  const auto owns = [](const Claim& folder, const Claim& file) {
    return folder.use == Use::folder && file.use != Use::folder && file.what != folder.what &&
           ends_in(file.path, folder.extensions) && folder_of(file.path) == folder.place;
  };
  if (owns(a, b) || owns(b, a)) return true;
  if (a.place != b.place || is_null_device(a.place)) return false;
  if (a.use == b.use && (a.use == Use::read || a.use == Use::folder)) return false;
  // Both are read and kept by one and the same option.
  if (a.use == Use::updated && b.use == Use::updated && a.what == b.what) return false;
  return !(a.itself == b.what && !a.itself.empty()) && !(b.itself == a.what && !b.itself.empty());
}

Error FileClaims::error_of(const Claim& earlier, const Claim& later) {
  // The output is what has to be another file; of two, the one that came later.
  const bool later_is_output = later.use != Use::read && (later.use != Use::updated || earlier.use != Use::written);
  const Claim& output = later_is_output ? later : earlier;
  const Claim& other = later_is_output ? earlier : later;
  const std::string place = fmt::format("{} {}", output.what, output.path.empty() ? "''" : output.path);
  if (output.place == place_of_stdout())
    return usage(fmt::format("{}: stdout already holds the output of {}; give a file name", place, other.what));
  const char* does = other.use == Use::read      ? "is read"
                     : other.use == Use::written ? "is written"
                     : other.use == Use::updated ? "is kept from run to run"
                                                 : "is a folder or belongs to it";
  return usage(
      fmt::format("{}: this file {}: {} {}; an output must be neither an input nor another output, give another name",
                  place, does, other.what, other.path));
}

Status FileClaims::add(Claim claim) {
  for (const Claim& earlier : claims_)
    if (clash(earlier, claim)) return error_of(earlier, claim);
  claims_.push_back(std::move(claim));
  return {};
}

CLI::Option* FileOptions::reads(CLI::App& app, const std::string& names, std::string& value, const std::string& help,
                                const std::string& type) {
  return declare(
      app.add_option(names, value, help)->type_name(type),
      [&value, type](FileClaims& claims, const std::string& name) { return claims.reads(name, file_in(value, type)); });
}

CLI::Option* FileOptions::reads(CLI::App& app, const std::string& names, std::vector<std::string>& values,
                                const std::string& help, const std::string& type) {
  return declare(app.add_option(names, values, help)->type_name(type)->expected(1)->take_all(),
                 [&values, type](FileClaims& claims, const std::string& name) -> Status {
                   for (const std::string& value : values)
                     TASO_RETURN_IF_ERROR(claims.reads(name, file_in(value, type)));
                   return {};
                 });
}

CLI::Option* FileOptions::writes(CLI::App& app, const std::string& names, std::string& value, const std::string& help,
                                 const std::string& itself) {
  return declare(
      app.add_option(names, value, help)->type_name("FILE"),
      [&value, itself](FileClaims& claims, const std::string& name) { return claims.writes(name, value, itself); });
}

CLI::Option* FileOptions::updates(CLI::App& app, const std::string& names, std::string& value,
                                  const std::string& help) {
  return declare(app.add_option(names, value, help)->type_name("FILE"),
                 [&value](FileClaims& claims, const std::string& name) { return claims.updates(name, value); });
}

CLI::Option* FileOptions::fills(CLI::App& app, const std::string& names, std::string& value, const std::string& help,
                                const std::vector<std::string>& extensions) {
  return declare(app.add_option(names, value, help)->type_name("DIR"),
                 [&value, extensions](FileClaims& claims, const std::string& name) {
                   return claims.fills(name, value, extensions);
                 });
}

CLI::Option* FileOptions::declare(CLI::Option* option, std::function<Status(FileClaims&, const std::string&)> claim,
                                  bool always) {
  declared_.push_back({option, std::move(claim), always});
  return option;
}

bool FileOptions::is_declared(const CLI::Option* option) const {
  return std::any_of(declared_.begin(), declared_.end(),
                     [&](const Declared& declared) { return declared.option == option; });
}

Status FileOptions::claim_all() {
  for (const Declared& declared : declared_)
    if (declared.always || declared.option->count() > 0)
      TASO_RETURN_IF_ERROR(declared.claim(claims_, option_name(*declared.option)));
  return claims_.can_write();
}

std::string option_name(const CLI::Option& option) {
  return option.get_lnames().empty() ? option.get_type_name() : "--" + option.get_lnames().front();
}

std::string undeclared_option(const CLI::App& app, const FileOptions& files) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag
    const std::string type = option->get_type_name();
    if (type == "TEXT") return option_name(*option) + " has no type name of its own: is its value a file?";
    if (names_a_file(type) && !files.is_declared(option))
      return option_name(*option) + " names a file and does not say what is done with it";
  }
  return {};
}

}  // namespace taso::tools
