#include "targets/worker_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

namespace taso {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t input_seed = 1;
/// Texts of a worker that reports and keys of costs hold are cut here.
constexpr std::size_t longest_text = 200;

Error wrong(std::string message) { return {ErrorCode::device_unavailable, std::move(message), {}}; }

/// Text that fits into a line of a report.
std::string plain(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == ';') c = ' ';
  return text.substr(0, longest_text);
}

/// A member that is text; nothing if it is none.
std::optional<std::string> text_of(const Json& object, const char* name) {
  const auto member = object.find(name);
  if (member == object.end() || !member->is_string()) return std::nullopt;
  return plain(member->get<std::string>());
}

Json models_json(std::span<const ModelRun> models) {
  Json list = Json::array();
  for (const ModelRun& model : models) {
    Json inputs = Json::array();
    for (const ModelInput& input : model.inputs)
      inputs.push_back({{"name", input.name},
                        {"type", type_name(input.type.element)},
                        {"shape", input.type.shape},
                        {"low", input.low},
                        {"high", input.high}});
    list.push_back({{"file", model.file}, {"inputs", inputs}, {"evict", model.evict}});
  }
  return list;
}

std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// A line that is an object; of an answer, the one to the request `id`.
Expected<Json> parse_object(const std::string& line, std::optional<int> id) {
  Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return wrong(fmt::format("it wrote what is no JSON object: '{}'", plain(line.substr(0, 60))));
  if (!id) return json;
  const auto number = json.find("id");
  if (number == json.end() || !number->is_number_integer() || *number != *id)
    return wrong(fmt::format("it did not answer request {} but '{}'", *id, plain(line.substr(0, 60))));
  if (const auto error = text_of(json, "error")) return wrong("it says: " + *error);
  return json;
}

Expected<ModelTimes> times_of(const Json& json, std::size_t model, std::size_t samples) {
  ModelTimes times;
  if (!json.is_object()) return wrong(fmt::format("its result for model {} is no object", model));
  if (const auto error = text_of(json, "error")) {
    times.refusal = error->empty() ? "no reason given" : *error;
    return times;
  }
  const auto seconds = json.find("seconds");
  if (seconds == json.end() || !seconds->is_array())
    return wrong(fmt::format("its result for model {} has neither seconds nor an error", model));
  if (seconds->size() != samples)
    return wrong(fmt::format("it gave {} times of model {}, not {}", seconds->size(), model, samples));
  for (const Json& value : *seconds) {
    if (!value.is_number())
      return wrong(fmt::format("a time of model {} is no number: {}", model, plain(value.dump())));
    const double number = value.get<double>();
    if (!std::isfinite(number) || number <= 0)
      return wrong(fmt::format("a time of model {} cannot be: {} s", model, number));
    times.seconds.push_back(number);
  }
  return times;
}

}  // namespace

std::string type_name(ElementType element) {
  switch (element) {
    case ElementType::f32:
      return "float32";
    case ElementType::f64:
      return "float64";
    case ElementType::f16:
      return "float16";
    case ElementType::i8:
      return "int8";
    case ElementType::i16:
      return "int16";
    case ElementType::i32:
      return "int32";
    case ElementType::i64:
      return "int64";
    case ElementType::u8:
      return "uint8";
    case ElementType::u16:
      return "uint16";
    case ElementType::u32:
      return "uint32";
    case ElementType::u64:
      return "uint64";
    case ElementType::boolean:
      return "bool";
    case ElementType::bf16:
    case ElementType::other:
      return "";
  }
  return "";
}

std::string configure_line(int id, int threads, const std::string& provider) {
  return line_of({{"do", "configure"}, {"id", id}, {"threads", threads}, {"provider", provider}});
}

std::string measure_line(int id, std::span<const ModelRun> models, const MeasureRequest& request) {
  return line_of({{"do", "measure"},
                  {"id", id},
                  {"models", models_json(models)},
                  {"seed", input_seed},
                  {"runs", request.runs},
                  {"warm_up", request.warm_up}});
}

std::string interleave_line(int id, std::span<const ModelRun> models, const InterleaveRequest& request) {
  return line_of({{"do", "interleave"},
                  {"id", id},
                  {"models", models_json(models)},
                  {"seed", input_seed},
                  {"rounds", request.rounds},
                  {"warm_up", request.warm_up},
                  {"block", request.block}});
}

std::string stop_line() { return R"({"do":"stop"})"; }

Expected<WorkerHello> parse_hello(const std::string& line) {
  TASO_ASSIGN(const Json json, parse_object(line, std::nullopt));
  const auto version = json.find("taso_worker");
  if (version == json.end() || !version->is_number_integer())
    return wrong("its first line does not state the version of the protocol as \"taso_worker\"");
  if (*version != worker_protocol)
    return wrong(fmt::format("it speaks version {} of the protocol, not {}", version->dump(), worker_protocol));
  WorkerHello hello;
  const auto runtime = text_of(json, "runtime"), number = text_of(json, "version");
  if (!runtime || runtime->empty() || !number || number->empty())
    return wrong("its first line does not state \"runtime\" and \"version\"");
  hello.runtime = *runtime;
  hello.version = *number;
  const auto providers = json.find("providers");
  if (providers == json.end()) return hello;
  if (!providers->is_array()) return wrong("its \"providers\" are no list");
  for (const Json& provider : *providers)
    if (provider.is_string()) hello.providers.push_back(plain(provider.get<std::string>()));
  return hello;
}

Expected<WorkerSetting> parse_setting(const std::string& line, int id) {
  TASO_ASSIGN(const Json json, parse_object(line, id));
  WorkerSetting setting;
  setting.provider = text_of(json, "provider").value_or("");
  setting.device = text_of(json, "device").value_or("");
  return setting;
}

Expected<std::vector<ModelTimes>> parse_times(const std::string& line, int id, std::size_t models, std::size_t samples,
                                              double wall) {
  TASO_ASSIGN(const Json json, parse_object(line, id));
  const auto results = json.find("results");
  if (results == json.end() || !results->is_array()) return wrong("its answer has no list \"results\"");
  if (results->size() != models)
    return wrong(fmt::format("it gave results of {} models, not of {}", results->size(), models));
  std::vector<ModelTimes> all;
  double sum = 0;
  for (std::size_t i = 0; i < models; ++i) {
    TASO_ASSIGN(ModelTimes times, times_of((*results)[i], i, samples));
    for (const double seconds : times.seconds) sum += seconds;
    all.push_back(std::move(times));
  }
  if (sum > wall) return wrong(fmt::format("its times are {:.3g} s together, of the {:.3g} s that it took", sum, wall));
  return all;
}

}  // namespace taso
