#include "tools/verify_reports.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "support/hash.h"
#include "support/markup.h"
#include "tools/verify_missing.h"

namespace taso::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string joined(const std::vector<std::string>& parts) { return fmt::format("{}", fmt::join(parts, ", ")); }

std::vector<std::string> texts(const std::vector<Condition>& conditions, const Substitution& rule) {
  std::vector<std::string> result;
  for (const Condition& condition : conditions) result.push_back(to_string(condition, rule));
  return result;
}
std::vector<std::string> texts(const std::vector<ImplicitCondition>& conditions) {
  std::vector<std::string> result;
  for (const ImplicitCondition& condition : conditions) result.push_back(to_string(condition));
  return result;
}

/// What a file format with one encoding may hold: other bytes become U+FFFD.
std::string utf8(std::string_view text) {
  const std::string dumped = Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
  return Json::parse(dumped).get<std::string>();
}

/// The statement is not as it should be: what a reader of a build log is told, first in one line.
struct Complaint {
  const char* rule;   ///< Of the SARIF log.
  const char* level;  ///< "error" or "warning", in SARIF and on GitHub.
  std::string summary;
  std::string details;  ///< Perhaps empty.
};

Complaint complaint(const VerifyResult& result) {
  const Substitution& rule = result.task->rule;
  const Verdict& verdict = result.verdict;
  Complaint what;
  if (rule.expect) {
    what = {"unexpected-verdict", "error",
            fmt::format("{} is {}, expected {}", rule.name, to_string(verdict.kind), *rule.expect), ""};
  } else if (verdict.kind == VerdictKind::refuted) {
    what = {"refuted", "error", rule.name + " is false", ""};
  } else {
    what = {"not-proved", "warning", rule.name + " is not proved", ""};
  }
  if (!verdict.reason.empty()) what.summary += ": " + verdict.reason;
  if (verdict.counterexample) what.details = verdict.counterexample->text;
  return what;
}

std::string xml(std::string_view text) { return escape_markup(utf8(text)); }

/// A path as other programs know it: relative to the folder that this one runs in, if it lies there.
std::filesystem::path shown_path(const std::string& path) {
  std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
  std::error_code error;
  const std::filesystem::path here = std::filesystem::current_path(error);
  if (error || !normal.is_absolute()) return normal;
  const std::filesystem::path inside = normal.lexically_relative(here);
  return inside.empty() || *inside.begin() == ".." ? normal : inside;
}

/// A path as a URI reference.
std::string uri(const std::string& path) {
  const std::filesystem::path shown = shown_path(path);
  std::string result = shown.is_absolute() ? "file://" : "";
  for (const char c : shown.generic_string()) {
    if (std::string_view("-._~/").find(c) != std::string_view::npos || (c >= '0' && c <= '9') ||
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
      result += c;
    else
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

/// A statement that stands in a file, not on the command line.
bool in_file(const SourceLocation& where) { return !where.file.empty() && where.file != "--rule"; }

std::string escaped(std::string_view text, bool property) {
  std::string result;
  for (const char c : text) {
    if (c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ',')))
      result += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result;
}

std::string annotation(std::string_view level, const SourceLocation& where, std::string_view title,
                       std::string_view message) {
  std::string properties;
  auto add = [&](std::string_view name, std::string_view value) {
    properties += fmt::format("{}{}={}", properties.empty() ? " " : ",", name, escaped(value, true));
  };
  if (in_file(where)) add("file", shown_path(where.file).generic_string());
  if (in_file(where) && where.line > 0) add("line", std::to_string(where.line));
  if (in_file(where) && where.column > 0) add("col", std::to_string(where.column));
  add("title", title);
  return fmt::format("::{}{}::{}\n", level, properties, escaped(message, false));
}

Json to_json(const VerifyResult& result) {
  const Substitution& rule = result.task->rule;
  const Verdict& verdict = result.verdict;
  Json json;
  json["name"] = rule.name;
  json["file"] = rule.where.file;
  json["line"] = nullptr;
  if (rule.where.line > 0) json["line"] = rule.where.line;
  json["verdict"] = to_string(verdict.kind);
  json["proofs"] = verdict.proofs;
  json["conditions"] = texts(verdict.conditions, rule);
  json["added"] = texts(verdict.added, rule);
  json["implicit"] = texts(verdict.implicit);
  json["needs"] = texts(verdict.needs, rule);
  json["class"] = nullptr;
  if (verdict.numeric_class) json["class"] = to_string(*verdict.numeric_class);
  json["may_overflow_fp16"] = nullptr;
  if (verdict.may_overflow) json["may_overflow_fp16"] = *verdict.may_overflow;
  json["counterexample"] = nullptr;
  if (verdict.counterexample) json["counterexample"] = verdict.counterexample->text;
  json["reason"] = verdict.reason;
  json["instances"] = verdict.instances;
  json["complete"] = verdict.complete;
  json["ill_typed_target"] = verdict.ill_typed_target;
  if (rule.expect) json["expected"] = *rule.expect;
  return json;
}

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

Json to_json(const MissingFindings& findings, const OperatorCatalog& catalog) {
  Json json;
  json["statements"] = Json::array();
  for (const MissingRule& rule : findings.report.rules) {
    Json one;
    one["name"] = utf8(findings.rules[rule.rule].name);
    one["under"] = findings.under(rule.rule);
    one["identities"] = Json::array();
    for (const std::size_t identity : rule.identities)
      one["identities"].push_back(findings.report.identities[identity].axiom.name);
    one["reason"] = rule.reason;
    json["statements"].push_back(std::move(one));
  }
  json["identities"] = Json::array();
  for (const MissingIdentity& identity : findings.report.identities) {
    Json one;
    one["name"] = identity.axiom.name;
    one["axiom"] = to_string(identity.axiom, catalog);
    one["origin"] = utf8(identity.origin);
    one["generalises"] = identity.generalises;
    one["adds"] = identity.adds;
    one["used_for"] = Json::array();
    for (const std::size_t rule : identity.rules) one["used_for"].push_back(utf8(findings.rules[rule].name));
    json["identities"].push_back(std::move(one));
  }
  return json;
}

}  // namespace

std::string indented(const std::string& text) {
  std::string result = "    ";
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    if (text[i] == '\n' && i + 1 < text.size()) result += "    ";
  }
  if (result.back() != '\n') result += '\n';
  return result;
}

bool VerifyResult::as_expected() const {
  return task->rule.expect ? *task->rule.expect == to_string(verdict.kind) : verdict.kind == VerdictKind::proved;
}

std::string text_report(const VerifyResult& result) {
  const Substitution& rule = result.task->rule;
  const Verdict& verdict = result.verdict;
  std::string text = fmt::format("{:8} {}", to_string(verdict.kind), rule.name);
  std::vector<std::string> facts = verdict.proofs;
  if (verdict.numeric_class && verdict.kind == VerdictKind::proved)
    facts.emplace_back(to_string(*verdict.numeric_class));
  if (verdict.may_overflow && verdict.kind == VerdictKind::proved)
    facts.push_back("may overflow fp16 in " + *verdict.may_overflow);
  if (verdict.instances > 0)
    facts.push_back(fmt::format("{}{} instances", verdict.complete ? "all " : "", verdict.instances));
  if (!facts.empty()) text += " (" + joined(facts) + ")";
  text += "\n";
  if (rule.expect && !result.as_expected()) text += fmt::format("    expected: {}\n", *rule.expect);
  if (verdict.kind == VerdictKind::proved) {
    if (!rule.conditions.empty()) text += "    if " + joined(texts(rule.conditions, rule)) + "\n";
    if (!verdict.added.empty())
      text += "    under conditions that the rule must have: if " + joined(texts(verdict.added, rule)) + "\n";
    if (!verdict.implicit.empty()) text += "    where " + joined(texts(verdict.implicit)) + "\n";
  }
  if (!verdict.needs.empty())
    text += "    proved for all sizes under the further condition " + joined(texts(verdict.needs, rule)) + "\n";
  if (!verdict.reason.empty()) text += indented(verdict.reason);
  if (verdict.counterexample) text += indented(verdict.counterexample->text);
  return text;
}

std::string json_report(const std::vector<VerifyResult>& results, const ReportContext& context) {
  Json json;
  json["rules"] = Json::array();
  std::size_t counts[3] = {0, 0, 0};
  for (const VerifyResult& result : results) {
    ++counts[static_cast<std::size_t>(result.verdict.kind)];
    json["rules"].push_back(to_json(result));
  }
  json["proved"] = counts[0];
  json["refuted"] = counts[1];
  json["unknown"] = counts[2];
  json["definitions"] = {{"operators", context.definitions.operators},
                         {"applications", context.definitions.applications},
                         {"untried", context.definitions.untried}};
  json["bound"] = context.options.bound;
  json["seed"] = context.options.seed;
  if (context.missing != nullptr) json["missing"] = to_json(*context.missing, *context.catalog);
  return dump(json);
}

std::string junit_report(const std::vector<VerifyResult>& results) {
  // Statements of one file stand together: files are verified one after the other.
  std::string suites;
  std::size_t all_failures = 0;
  for (std::size_t begin = 0; begin < results.size();) {
    const std::string& file = results[begin].task->rule.where.file;
    std::string cases;
    std::size_t end = begin, failures = 0;
    for (; end < results.size() && results[end].task->rule.where.file == file; ++end) {
      const VerifyResult& result = results[end];
      const Substitution& rule = result.task->rule;
      cases += fmt::format("    <testcase name=\"{}\" classname=\"{}\" time=\"0\"", xml(rule.name), xml(file));
      if (in_file(rule.where)) cases += fmt::format(" file=\"{}\"", xml(file));
      if (in_file(rule.where) && rule.where.line > 0) cases += fmt::format(" line=\"{}\"", rule.where.line);
      if (result.as_expected()) {
        cases += "/>\n";
        continue;
      }
      ++failures;
      const Complaint what = complaint(result);
      cases += fmt::format(">\n      <failure message=\"{}\" type=\"{}\">{}</failure>\n    </testcase>\n",
                           xml(what.summary), what.rule, xml(what.details));
    }
    suites +=
        fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"0\" time=\"0\">\n",
                    xml(file), end - begin, failures) +
        cases + "  </testsuite>\n";
    all_failures += failures;
    begin = end;
  }
  return fmt::format(
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"taso-verify\" tests=\"{}\" "
             "failures=\"{}\" errors=\"0\" time=\"0\">\n",
             results.size(), all_failures) +
         suites + "</testsuites>\n";
}

std::string sarif_report(const std::vector<VerifyResult>& results, const ReportContext& context) {
  struct Kind {
    const char *id, *name, *text, *level;
  };
  static constexpr Kind kinds[] = {
      {"refuted", "Refuted", "There are numbers at which the two sides of the rule differ.", "error"},
      {"not-proved", "NotProved", "The rule is neither proved nor refuted; it is not to be relied on.", "warning"},
      {"unexpected-verdict", "UnexpectedVerdict", "The verdict is not the one that the statement names by 'expect'.",
       "error"}};
  Json driver;
  driver["name"] = "taso-verify";
  driver["version"] = context.version;
  driver["rules"] = Json::array();
  for (const Kind& kind : kinds)
    driver["rules"].push_back({{"id", kind.id},
                               {"name", kind.name},
                               {"shortDescription", {{"text", kind.text}}},
                               {"defaultConfiguration", {{"level", kind.level}}}});
  Json list = Json::array();
  for (const VerifyResult& result : results) {
    if (result.as_expected()) continue;
    const Substitution& rule = result.task->rule;
    const Complaint what = complaint(result);
    Json json;
    json["ruleId"] = what.rule;
    for (std::size_t i = 0; i < std::size(kinds); ++i)
      if (std::string_view(what.rule) == kinds[i].id) json["ruleIndex"] = i;
    json["level"] = what.level;
    json["message"]["text"] = what.details.empty() ? what.summary : what.summary + "\n" + what.details;
    Json location = Json::object();
    if (in_file(rule.where)) {
      location["physicalLocation"]["artifactLocation"]["uri"] = uri(rule.where.file);
      // A binary file has no lines; a viewer shows its beginning.
      location["physicalLocation"]["region"]["startLine"] = std::max(1, rule.where.line);
      if (rule.where.column > 0) location["physicalLocation"]["region"]["startColumn"] = rule.where.column;
    }
    location["logicalLocations"] = Json::array({{{"name", rule.name}, {"kind", "declaration"}}});
    json["locations"] = Json::array({location});
    // The same statement is the same finding when lines above it change.
    json["partialFingerprints"]["tasoStatement/v1"] =
        hash_text(uri(rule.where.file) + "\n" + rule.name + "\n" + what.rule).to_string();
    list.push_back(std::move(json));
  }
  Json run;
  run["tool"]["driver"] = std::move(driver);
  run["results"] = std::move(list);
  run["columnKind"] = "utf16CodeUnits";
  Json json;
  json["$schema"] = "https://json.schemastore.org/sarif-2.1.0.json";
  json["version"] = "2.1.0";
  json["runs"] = Json::array({run});
  return dump(json);
}

std::string github_annotations(const std::vector<VerifyResult>& results) {
  std::string text;
  for (const VerifyResult& result : results) {
    if (result.as_expected()) continue;
    const Complaint what = complaint(result);
    text += annotation(what.level, result.task->rule.where, what.rule,
                       what.details.empty() ? what.summary : what.summary + "\n" + what.details);
  }
  return text;
}

std::string github_annotation(const Error& error) {
  return annotation("error", error.where, "taso-verify", in_file(error.where) ? error.message : error.to_string());
}

}  // namespace taso::tools
