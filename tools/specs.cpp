#include "tools/specs.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "support/reversed.h"

namespace taso::tools {
namespace {

namespace fs = std::filesystem;

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// The files of a subfolder of every added folder.
Expected<std::vector<std::string>> added_files(const CommonOptions& options, const std::string& subfolder,
                                               const std::string& extension) {
  std::vector<std::string> result;
  for (const std::string& folder : options.added_specs) {
    if (!is_folder(folder + "/" + subfolder)) continue;
    TASO_ASSIGN(std::vector<std::string> files, files_in(folder + "/" + subfolder, {extension}));
    std::move(files.begin(), files.end(), std::back_inserter(result));
  }
  return result;
}

}  // namespace

Expected<std::vector<std::string>> files_in(const std::string& folder, const std::vector<std::string>& extensions) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code unknown;
    if (it->is_regular_file(unknown) &&
        std::find(extensions.begin(), extensions.end(), it->path().extension().string()) != extensions.end())
      files.push_back(it->path().string());
  }
  if (error) return bad_input("cannot read folder: " + error.message(), {.file = folder});
  std::sort(files.begin(), files.end());
  return files;
}

Expected<OperatorRegistry> load_operators(const CommonOptions& options) {
  TASO_ASSIGN(OperatorRegistry registry, OperatorRegistry::load(options.specs + "/operators"));
  for (const std::string& folder : options.added_specs) {
    if (!is_folder(folder)) return bad_input("no such folder", {.file = folder});
    const std::string operators = folder + "/operators", maps = folder + "/onnx";
    if (is_folder(operators)) {
      TASO_ASSIGN(registry, OperatorRegistry::load(operators, &registry));
    } else if (is_folder(maps)) {
      TASO_ASSIGN(registry, OperatorRegistry::load_maps(maps, registry));
    }
  }
  return registry;
}

Expected<std::vector<std::string>> axiom_files(const CommonOptions& options) {
  TASO_ASSIGN(std::vector<std::string> files, files_in(options.specs + "/axioms", {".axioms"}));
  TASO_ASSIGN(std::vector<std::string> added, added_files(options, "axioms", ".axioms"));
  std::move(added.begin(), added.end(), std::back_inserter(files));
  return files;
}

Expected<std::vector<std::string>> rule_files(const CommonOptions& options) {
  std::vector<std::string> files = {options.specs + "/rules/default.rules"};
  TASO_ASSIGN(std::vector<std::string> added, added_files(options, "rules", ".rules"));
  std::move(added.begin(), added.end(), std::back_inserter(files));
  return files;
}

Expected<std::vector<std::string>> simplify_rule_files(const CommonOptions& options) {
  std::vector<std::string> files;
  const std::string folder = options.specs + "/simplify_rules";
  if (is_folder(folder)) {
    TASO_ASSIGN(files, files_in(folder, {".rules"}));
  }
  TASO_ASSIGN(std::vector<std::string> added, added_files(options, "simplify_rules", ".rules"));
  std::move(added.begin(), added.end(), std::back_inserter(files));
  return files;
}

std::vector<std::string> target_rule_files(const CommonOptions& options, const std::vector<std::string>& domains) {
  std::vector<std::string> folders = {options.specs}, names = {"target_rules/default"}, files;
  folders.insert(folders.end(), options.added_specs.begin(), options.added_specs.end());
  for (const std::string& domain : domains) names.push_back("target_rules/" + domain);
  names.emplace_back("plan_rules/cutting");
  for (const std::string& folder : folders)
    for (const std::string& name : names) {
      const std::string file = folder + "/" + name + ".rules";
      std::error_code error;
      if (std::filesystem::is_regular_file(file, error)) files.push_back(file);
    }
  return files;
}

Expected<std::vector<std::string>> plan_rule_files(const CommonOptions& options) {
  TASO_ASSIGN(std::vector<std::string> files, files_in(options.specs + "/plan_rules", {".rules"}));
  TASO_ASSIGN(std::vector<std::string> added, added_files(options, "plan_rules", ".rules"));
  std::move(added.begin(), added.end(), std::back_inserter(files));
  return files;
}

Expected<std::vector<std::string>> strategy_files(const CommonOptions& options) {
  TASO_ASSIGN(std::vector<std::string> files, files_in(options.specs + "/strategies", {".rules"}));
  TASO_ASSIGN(std::vector<std::string> added, added_files(options, "strategies", ".rules"));
  std::move(added.begin(), added.end(), std::back_inserter(files));
  return files;
}

Expected<std::vector<std::string>> cost_files(const CommonOptions& options) {
  std::vector<std::string> folders = {options.specs};
  folders.insert(folders.end(), options.added_specs.begin(), options.added_specs.end());
  std::vector<std::string> result;
  for (const std::string& folder : reversed(folders)) {
    if (!is_folder(folder + "/costs")) continue;
    TASO_ASSIGN(std::vector<std::string> files, files_in(folder + "/costs", {".costs"}));
    std::move(files.begin(), files.end(), std::back_inserter(result));
  }
  return result;
}

std::string profile_file(const CommonOptions& options, const std::string& profile) {
  if (profile.find_first_of("/.") != std::string::npos) return profile;
  const std::string file = "/profiles/" + profile + ".profile";
  for (const std::string& folder : reversed(options.added_specs)) {
    std::error_code error;
    if (fs::exists(folder + file, error)) return folder + file;
  }
  return options.specs + file;
}

}  // namespace taso::tools
