#include "certificate/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "certificate/occurrence.h"
#include "onnx_io/model.h"
#include "support/file.h"

namespace taso {
namespace {

Error not_proved(std::string message, const std::string& file = "") {
  return Error{ErrorCode::not_proved, std::move(message), {.file = file}};
}

/// Whether a file is the one that the certificate names.
Status check_identity(const FileIdentity& named, const std::string& path) {
  TASO_ASSIGN(const FileIdentity found, identify_file(path));
  if (found.bytes == named.bytes && found.hash == named.hash) return {};
  return not_proved(fmt::format("not the file that the certificate names ({} bytes, hash {}; here are {}, {})",
                                named.bytes, named.hash.to_string(), found.bytes, found.hash.to_string()),
                    path);
}

Status check_equal(const std::string& written, const std::string& path) {
  TASO_ASSIGN(const auto expected, MappedFile::open(written));
  TASO_ASSIGN(const auto found, MappedFile::open(path));
  if (std::ranges::equal(expected->bytes(), found->bytes())) return {};
  return not_proved("the steps lead to another file", path);
}

Expected<std::vector<Substitution>> parse_used_rules(const Certificate& certificate, const OperatorRegistry& registry) {
  std::vector<Substitution> rules;
  for (std::size_t i = 0; i < certificate.rules.size(); ++i) {
    TASO_ASSIGN(std::vector<Substitution> parsed,
                parse_rules(certificate.rules[i], fmt::format("rules[{}] of the certificate", i), registry));
    if (parsed.size() != 1 || parsed[0].is_axiom)
      return bad_input(fmt::format("rules[{}] of the certificate: expected one rule", i));
    for (const Substitution& other : rules)
      if (other.name == parsed[0].name)
        return bad_input(fmt::format("rules[{}] of the certificate: a second rule '{}'", i, other.name));
    rules.push_back(std::move(parsed[0]));
  }
  return rules;
}

}  // namespace

Expected<Replay> replay(const Certificate& certificate, const std::string& original, const std::string& optimized,
                        const OperatorRegistry& registry, const std::string& temporary) {
  TASO_RETURN_IF_ERROR(check_identity(certificate.original, original));
  TASO_RETURN_IF_ERROR(check_identity(certificate.optimized, optimized));
  if (certificate.external_data) TASO_RETURN_IF_ERROR(check_identity(*certificate.external_data, optimized + ".data"));
  TASO_ASSIGN(std::vector<Substitution> rules, parse_used_rules(certificate, registry));

  ImportOptions import;
  import.input_shapes = certificate.input_shapes;
  TASO_ASSIGN(const Model model, Model::load(original, registry, import));
  Graph graph = model.graph();
  normalize(graph, registry);
  Replay result;
  for (std::size_t i = 0; i < certificate.steps.size(); ++i) {
    const CertificateStep& step = certificate.steps[i];
    const auto rule =
        std::find_if(rules.begin(), rules.end(), [&](const Substitution& r) { return r.name == step.rule; });
    if (rule == rules.end()) return not_proved(fmt::format("step {}: the certificate has no rule '{}'", i, step.rule));
    if (const Status occurs = check_occurrence(graph, *rule, step.match, registry); !occurs)
      return not_proved(fmt::format("step {}: {}", i, occurs.error().message));
    Expected<Graph> next = apply(graph, *rule, step.match, registry);
    if (!next) return not_proved(fmt::format("step {}: {}", i, next.error().message));
    graph = std::move(*next);
    ++result.uses[step.rule];
  }
  for (Substitution& rule : rules)
    if (result.uses.contains(rule.name)) result.rules.push_back(std::move(rule));

  // The name of the data file stands in the model, so the repeated one has the same name.
  const std::string repeated = (std::filesystem::path(temporary) / certificate.optimized.name).string();
  SaveOptions save;
  save.external_data = certificate.external_data.has_value();
  TASO_ASSIGN(const SaveReport saved, model.save(graph, repeated, save));
  TASO_RETURN_IF_ERROR(check_equal(repeated, optimized));
  if (saved.external_data != certificate.external_data.has_value())
    return not_proved("the certificate does not say where the weights of the result are");
  if (saved.external_data) TASO_RETURN_IF_ERROR(check_equal(repeated + ".data", optimized + ".data"));
  return result;
}

}  // namespace taso
