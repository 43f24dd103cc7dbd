#include "certificate/certificate.h"

#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "certificate/occurrence.h"

namespace taso {
namespace {

using nlohmann::ordered_json;

constexpr const char* format_name = "taso-certificate";
constexpr int format_version = 2;

ordered_json to_json(const FileIdentity& file) {
  return {{"file", file.name}, {"bytes", file.bytes}, {"hash", file.hash.to_string()}};
}

// Integers and lists as they are, null for what is not said; {"real": TEXT} and {"function": NAME} otherwise.
ordered_json to_json(const std::optional<AttributeValue>& value) {
  if (!value) return nullptr;
  if (const auto* integer = std::get_if<std::int64_t>(&*value)) return *integer;
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&*value)) {
    ordered_json json = ordered_json::array();
    for (const std::int64_t element : *list)
      json.push_back(element == unknown_size ? ordered_json() : ordered_json(element));
    return json;
  }
  if (const auto* symbol = std::get_if<SymbolValue>(&*value)) return {{"function", symbol->name}};
  char text[64];
  const auto [end, error] = std::to_chars(text, text + sizeof text, std::get<double>(*value));
  return {{"real", std::string(text, end)}};
}

/// No tensor has more elements (is_reasonable in graph/tensor_type.h).
constexpr std::int64_t max_extent = std::int64_t{1} << 40;

// Reads a JSON tree and remembers the first thing that is wrong, with its place.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  [[nodiscard]] bool failed() const { return error_.has_value(); }
  [[nodiscard]] Error error() const { return *error_; }

  void wrong(const std::string& place, const std::string& expected) {
    if (!error_) error_ = bad_input(place + ": expected " + expected, {.file = file_});
  }

  // The member of an object; null if it is missing.
  const ordered_json& member(const ordered_json& object, const std::string& place, const char* name) {
    static const ordered_json nothing;
    const auto found = object.is_object() ? object.find(name) : object.end();
    if (!object.is_object() || found == object.end()) {
      wrong(place, "an object with '" + std::string(name) + "'");
      return nothing;
    }
    return *found;
  }
  std::string text(const ordered_json& json, const std::string& place) {
    if (json.is_string()) return json.get<std::string>();
    wrong(place, "a text");
    return "";
  }
  std::int64_t integer(const ordered_json& json, const std::string& place, std::int64_t least, std::int64_t most) {
    const bool fits =
        json.is_number_integer() && (!json.is_number_unsigned() || json.get<std::uint64_t>() <= max_integer);
    const std::int64_t value = fits ? json.get<std::int64_t>() : 0;
    if (!fits || value < least || value > most)
      wrong(place, "an integer from " + std::to_string(least) + " to " + std::to_string(most));
    return value;
  }
  const ordered_json& array(const ordered_json& json, const std::string& place) {
    static const ordered_json nothing = ordered_json::array();
    if (json.is_array()) return json;
    wrong(place, "a list");
    return nothing;
  }
  std::vector<std::int64_t> integers(const ordered_json& json, const std::string& place, std::int64_t least,
                                     std::int64_t most) {
    std::vector<std::int64_t> result;
    for (const ordered_json& entry : array(json, place)) result.push_back(integer(entry, place, least, most));
    return result;
  }

  // [least, most], most null where there is no bound.
  SizeRange range(const ordered_json& json, const std::string& place) {
    SizeRange result;
    if (array(json, place).size() != 2) {
      wrong(place, "a list of the least size and the largest one, or null");
      return result;
    }
    result.least = integer(json[0], place, 1, max_extent);
    if (!json[1].is_null()) result.most = integer(json[1], place, result.least, max_extent);
    return result;
  }

  FileIdentity file(const ordered_json& json, const std::string& place) {
    FileIdentity result;
    result.name = text(member(json, place, "file"), place + ".file");
    if (result.name.empty() || result.name.find('/') != std::string::npos)
      wrong(place + ".file", "the name of a file, without a folder");
    result.bytes = static_cast<std::uint64_t>(
        integer(member(json, place, "bytes"), place + ".bytes", 0, std::numeric_limits<std::int64_t>::max()));
    const std::string hash = text(member(json, place, "hash"), place + ".hash");
    const std::optional<Hash128> digits = hash_from_text(hash);
    if (!digits) wrong(place + ".hash", "32 hexadecimal digits");
    result.hash = digits.value_or(Hash128());
    return result;
  }

  std::optional<AttributeValue> attribute(const ordered_json& json, const std::string& place) {
    if (json.is_null()) return std::nullopt;
    if (json.is_number_integer()) return AttributeValue(integer(json, place, min_integer, max_integer));
    if (json.is_array()) {
      std::vector<std::int64_t> list;
      for (const ordered_json& entry : json)
        list.push_back(entry.is_null() ? unknown_size : integer(entry, place, min_integer + 1, max_integer));
      return AttributeValue(std::move(list));
    }
    if (json.is_object() && json.size() == 1 && json.contains("function"))
      return AttributeValue(SymbolValue{text(json["function"], place + ".function")});
    if (json.is_object() && json.size() == 1 && json.contains("real")) {
      const std::string number = text(json["real"], place + ".real");
      double value = 0;
      const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
      if (error == std::errc() && end == number.data() + number.size() && !number.empty()) return AttributeValue(value);
      wrong(place + ".real", "a number as text");
      return std::nullopt;
    }
    wrong(place, "null, an integer, a list of integers and nulls, {\"real\": TEXT} or {\"function\": NAME}");
    return std::nullopt;
  }

  CertificateStep step(const ordered_json& json, const std::string& place) {
    CertificateStep result;
    result.rule = text(member(json, place, "rule"), place + ".rule");
    const std::string variables = place + ".variables";
    for (const ordered_json& value : array(member(json, place, "variables"), variables)) {
      const std::vector<std::int64_t> pair = integers(value, variables, 0, std::numeric_limits<std::int32_t>::max());
      if (pair.size() != 2) {
        wrong(variables, "pairs of a node and an output");
        break;
      }
      result.match.variables.push_back({static_cast<NodeId>(pair[0]), static_cast<std::uint32_t>(pair[1])});
    }
    for (const ordered_json& value : array(member(json, place, "attributes"), place + ".attributes"))
      result.match.attributes.push_back(attribute(value, place + ".attributes"));
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    for (const std::int64_t id : integers(member(json, place, "nodes"), place + ".nodes", 0, most))
      result.match.nodes.push_back(static_cast<NodeId>(id));
    for (const std::int64_t begin : integers(member(json, place, "operand_begin"), place + ".operand_begin", -1, most))
      result.match.operand_begin.push_back(static_cast<std::int32_t>(begin));
    for (const std::int64_t begin : integers(member(json, place, "port_begin"), place + ".port_begin", -1, most))
      result.match.port_begin.push_back(static_cast<std::int32_t>(begin));
    return result;
  }

  std::vector<CertificateStep> steps(const ordered_json& json, const std::string& place) {
    std::vector<CertificateStep> result;
    for (const ordered_json& one : array(json, place)) {
      if (failed()) break;
      result.push_back(step(one, place + "[" + std::to_string(result.size()) + "]"));
    }
    return result;
  }

  /// `depth`: in how many subgraphs these are.
  std::vector<BodySteps> bodies(const ordered_json& json, const std::string& place, int depth = 0) {
    constexpr int deepest = 100;  // As models nest at most.
    std::vector<BodySteps> result;
    if (depth == deepest) {
      wrong(place, "at most 100 subgraphs in each other");
      return result;
    }
    for (const ordered_json& one : array(json, place)) {
      if (failed()) break;
      const std::string at = place + "[" + std::to_string(result.size()) + "]";
      BodySteps body;
      body.node = text(member(one, at, "node"), at + ".node");
      body.attribute = text(member(one, at, "attribute"), at + ".attribute");
      if (one.is_object() && one.contains("bodies")) body.bodies = bodies(one["bodies"], at + ".bodies", depth + 1);
      body.steps = steps(member(one, at, "steps"), at + ".steps");
      result.push_back(std::move(body));
    }
    return result;
  }

 private:
  static constexpr std::int64_t max_integer = std::numeric_limits<std::int64_t>::max();
  static constexpr std::int64_t min_integer = std::numeric_limits<std::int64_t>::min();

  std::string file_;
  std::optional<Error> error_;
};

}  // namespace

namespace {

ordered_json to_json(const CertificateStep& step) {
  ordered_json one;
  one["rule"] = step.rule;
  one["variables"] = ordered_json::array();
  for (const Value& value : step.match.variables)
    one["variables"].push_back(ordered_json::array({value.node, value.port}));
  one["attributes"] = ordered_json::array();
  for (const auto& value : step.match.attributes) one["attributes"].push_back(to_json(value));
  one["nodes"] = step.match.nodes;
  one["operand_begin"] = step.match.operand_begin;
  one["port_begin"] = step.match.port_begin;
  return one;
}

ordered_json to_json(const std::vector<BodySteps>& bodies) {
  ordered_json list = ordered_json::array();
  for (const BodySteps& body : bodies) {
    ordered_json one;
    one["node"] = body.node;
    one["attribute"] = body.attribute;
    if (!body.bodies.empty()) one["bodies"] = to_json(body.bodies);
    one["steps"] = ordered_json::array();
    for (const CertificateStep& step : body.steps) one["steps"].push_back(to_json(step));
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

std::string to_json(const Certificate& certificate) {
  ordered_json json;
  json["format"] = format_name;
  json["version"] = format_version;
  json["original"] = to_json(certificate.original);
  json["optimized"] = to_json(certificate.optimized);
  json["external_data"] = nullptr;
  if (certificate.external_data) json["external_data"] = to_json(*certificate.external_data);
  if (certificate.plan) json["plan"] = to_json(*certificate.plan);
  json["input_shapes"] = ordered_json::object();
  for (const auto& [name, shape] : certificate.input_shapes) json["input_shapes"][name] = shape;
  if (!certificate.allowed_domains.empty()) json["allowed_domains"] = certificate.allowed_domains;
  json["symbols"] = nullptr;
  if (certificate.symbols) {
    json["symbols"] = ordered_json::object();
    for (const auto& [name, range] : *certificate.symbols)
      json["symbols"][name] = {range.least, range.most ? ordered_json(*range.most) : ordered_json()};
  }
  if (!certificate.bodies.empty()) json["bodies"] = to_json(certificate.bodies);
  json["rules"] = certificate.rules;
  // A step a line: certificates are read by people, too, and compared.
  std::string text = json.dump(2, ' ', false, ordered_json::error_handler_t::replace);
  text.erase(text.rfind("\n}"));
  text += ",\n  \"steps\": [";
  for (std::size_t i = 0; i < certificate.steps.size(); ++i)
    text += (i == 0 ? "\n    " : ",\n    ") + to_json(certificate.steps[i]).dump();
  return text + (certificate.steps.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

Expected<Certificate> parse_certificate(std::string_view text, const std::string& file) {
  const ordered_json json = ordered_json::parse(text, nullptr, false);
  if (json.is_discarded()) return bad_input("this is not JSON; expected a certificate of taso-opt", {.file = file});
  if (!json.is_object() || json.value("format", ordered_json()) != format_name)
    return bad_input("this is not a certificate of taso-opt (\"format\": \"taso-certificate\")", {.file = file});
  if (json.value("version", ordered_json()) != format_version)
    return bad_input("a certificate of another version; this program reads version 2, which taso-opt writes now",
                     {.file = file});
  Reader reader(file);
  Certificate result;
  result.original = reader.file(reader.member(json, "certificate", "original"), "original");
  result.optimized = reader.file(reader.member(json, "certificate", "optimized"), "optimized");
  if (const ordered_json& data = reader.member(json, "certificate", "external_data"); !data.is_null())
    result.external_data = reader.file(data, "external_data");
  if (const auto plan = json.find("plan"); plan != json.end()) result.plan = reader.file(*plan, "plan");
  const ordered_json& shapes = reader.member(json, "certificate", "input_shapes");
  if (!shapes.is_object()) reader.wrong("input_shapes", "an object");
  if (shapes.is_object())
    for (const auto& [name, shape] : shapes.items())
      result.input_shapes[name] =
          reader.integers(shape, "input_shapes." + name, 0, std::numeric_limits<std::int64_t>::max());
  if (const auto domains = json.find("allowed_domains"); domains != json.end())
    for (const ordered_json& domain : reader.array(*domains, "allowed_domains"))
      result.allowed_domains.push_back(
          reader.text(domain, "allowed_domains[" + std::to_string(result.allowed_domains.size()) + "]"));
  if (const ordered_json& symbols = reader.member(json, "certificate", "symbols"); !symbols.is_null()) {
    result.symbols.emplace();
    if (!symbols.is_object()) reader.wrong("symbols", "null or an object");
    if (symbols.is_object())
      for (const auto& [name, range] : symbols.items())
        (*result.symbols)[name] = reader.range(range, "symbols." + name);
  }
  for (const ordered_json& rule : reader.array(reader.member(json, "certificate", "rules"), "rules"))
    result.rules.push_back(reader.text(rule, "rules[" + std::to_string(result.rules.size()) + "]"));
  if (const auto bodies = json.find("bodies"); bodies != json.end()) result.bodies = reader.bodies(*bodies, "bodies");
  result.steps = reader.steps(reader.member(json, "certificate", "steps"), "steps");
  if (reader.failed()) return reader.error();
  return result;
}

std::string certificate_path(const std::string& model) {
  std::filesystem::path path(model);
  if (path.extension() == ".onnx") path.replace_extension();
  return path.string() + ".taso.json";
}

}  // namespace taso
