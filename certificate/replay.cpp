#include "certificate/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "certificate/occurrence.h"
#include "certificate/symbolic_model.h"
#include "onnx_io/difference.h"
#include "onnx_io/model.h"
#include "operators/node_maps.h"
#include "support/file.h"
#include "support/one_line.h"

namespace taso {
namespace {

Error not_proved(std::string message, const std::string& file = "") {
  return Error{ErrorCode::not_proved, one_line(std::move(message)), {.file = file}};
}

/// Whether a file is the one that the certificate names; `option` names another.
Status check_identity(const FileIdentity& named, const std::string& path, const char* option) {
  TASO_ASSIGN(const FileIdentity found, identify_file(path));
  if (found.bytes == named.bytes && found.hash == named.hash) return {};
  return not_proved(fmt::format("not the file that the certificate names as {} ({} bytes, hash {}; here are {}, {}); "
                                "{} names another",
                                option == std::string_view("--original") ? "the original" : "the result", named.bytes,
                                named.hash.to_string(), found.bytes, found.hash.to_string(), option),
                    path);
}

std::string names_of(const SymbolRanges& ranges) {
  std::string names;
  for (const auto& [name, range] : ranges) names += (names.empty() ? "" : ", ") + name;
  return names.empty() ? "none" : names;
}

/// Whether what the steps lead to, `written`, is the file `path`; `data` is what both are followed by in the names of
/// the files that are compared: nothing, or ".data".
Status check_equal(const std::string& written, const std::string& path, const std::string& data = "") {
  TASO_ASSIGN(const auto expected, MappedFile::open(written + data));
  TASO_ASSIGN(const auto found, MappedFile::open(path + data));
  if (std::ranges::equal(expected->bytes(), found->bytes())) return {};
  TASO_ASSIGN(const std::string place, first_difference(written, path));
  return not_proved("the steps lead to another file: it differs in " + place, path + data);
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

Expected<Graph> repeat_steps(Graph graph, const std::vector<Substitution>& rules,
                             const std::vector<CertificateStep>& steps, const OperatorCatalog& catalog,
                             std::map<std::string, std::size_t>& uses, std::vector<Match>* taken, std::size_t* failed) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const CertificateStep& step = steps[i];
    if (failed != nullptr) *failed = i;
    const auto rule =
        std::find_if(rules.begin(), rules.end(), [&](const Substitution& r) { return r.name == step.rule; });
    if (rule == rules.end()) return not_proved(fmt::format("step {}: the certificate has no rule '{}'", i, step.rule));
    const Match match = taken != nullptr ? with_sizes_of(graph, *rule, step.match, catalog) : step.match;
    if (const Status occurs = check_occurrence(graph, *rule, match, catalog); !occurs)
      return not_proved(fmt::format("step {}: {}", i, occurs.error().message));
    Expected<Graph> next = apply(graph, *rule, match, catalog);
    if (!next) return not_proved(fmt::format("step {}: {}", i, next.error().message));
    graph = std::move(*next);
    if (taken != nullptr) taken->push_back(match);
    ++uses[step.rule];
  }
  return graph;
}

Expected<Model> repeat_in_bodies(Model model, const std::vector<BodySteps>& bodies,
                                 const std::vector<Substitution>& rules, const OperatorRegistry& registry,
                                 std::map<std::string, std::size_t>& uses) {
  for (const BodySteps& steps : bodies) {
    const BodyPlace place{steps.node, steps.attribute};
    const auto within = [&](const Error& error) {
      return not_proved(fmt::format("in {}: {}", model.describe_body(place), error.message), model.path());
    };
    Expected<Model> body = model.body(place);
    if (!body) return within(body.error());
    body = repeat_in_bodies(std::move(*body), steps.bodies, rules, registry, uses);
    if (!body) return within(body.error());
    Graph graph = body->graph();
    normalize(graph, registry);
    Expected<Graph> repeated = repeat_steps(std::move(graph), rules, steps.steps, registry, uses);
    if (!repeated) return within(repeated.error());
    TASO_ASSIGN(std::optional<Model> changed, model.with_body(place, *body, *repeated));
    if (!changed) return not_proved(fmt::format("{} is what it was", model.describe_body(place)), model.path());
    model = std::move(*changed);
  }
  return model;
}

namespace {

/// Repeats the steps with the numbers of the model, and writes the result.
Expected<SaveReport> repeat_as_it_is(const Certificate& certificate, const Model& model,
                                     const std::vector<Substitution>& rules, const OperatorRegistry& registry,
                                     const std::string& path, const SaveOptions& options, Replay& result) {
  Graph graph = model.graph();
  normalize(graph, registry);
  TASO_ASSIGN(graph, repeat_steps(std::move(graph), rules, certificate.steps, registry, result.uses));
  return model.save(graph, path, options);
}

/// The same at all sizes.
Expected<SaveReport> repeat_at_all_sizes(const Certificate& certificate, const Model& model,
                                         const std::vector<Substitution>& rules, const OperatorRegistry& registry,
                                         const std::string& path, const SaveOptions& options, Replay& result) {
  Expected<SymbolicModel> symbolic = SymbolicModel::load(model, registry, *certificate.symbols);
  if (!symbolic) return not_proved(symbolic.error().message, model.path());
  if (symbolic->ranges() != *certificate.symbols)
    return not_proved(fmt::format("the certificate names the symbolic extents {}, the model has {}",
                                  names_of(*certificate.symbols), names_of(symbolic->ranges())),
                      model.path());
  TASO_ASSIGN(const SizedGraph graph, symbolic->repeat(rules, certificate.steps, result.uses));
  return symbolic->save(graph, path, options);
}

}  // namespace

Expected<Replay> replay(const Certificate& certificate, const std::string& original, const std::string& optimized,
                        const OperatorRegistry& operators, const std::string& temporary) {
  TASO_RETURN_IF_ERROR(check_identity(certificate.original, original, "--original"));
  TASO_RETURN_IF_ERROR(check_identity(certificate.optimized, optimized, "--optimized"));
  if (certificate.external_data)
    TASO_RETURN_IF_ERROR(check_identity(*certificate.external_data, optimized + ".data", "--optimized"));
  OperatorRegistry registry = operators;
  for (const std::string& domain : certificate.allowed_domains) {
    Expected<OperatorRegistry> allowing = allow_domain(domain, certificate.optimized.name, registry);
    if (!allowing)
      return not_proved(
          fmt::format("the certificate allows operators of the domain '{}', of which no map here has any", domain),
          optimized);
    registry = *std::move(allowing);
  }
  TASO_ASSIGN(std::vector<Substitution> rules, parse_used_rules(certificate, registry));
  ImportOptions import;
  import.input_shapes = certificate.input_shapes;
  TASO_ASSIGN(Model model, Model::load(original, registry, import));

  Replay result;
  TASO_ASSIGN(model, repeat_in_bodies(std::move(model), certificate.bodies, rules, registry, result.uses));
  result.symbols = certificate.symbols;
  result.allowed_domains = certificate.allowed_domains;
  // The name of the data file stands in the model, so the repeated one has the same name.
  const std::string repeated = (std::filesystem::path(temporary) / certificate.optimized.name).string();
  SaveOptions save;
  save.external_data = certificate.external_data.has_value();
  const auto repeat = certificate.symbols ? repeat_at_all_sizes : repeat_as_it_is;
  TASO_ASSIGN(const SaveReport saved, repeat(certificate, model, rules, registry, repeated, save, result));
  for (Substitution& rule : rules)
    if (result.uses.contains(rule.name)) result.rules.push_back(std::move(rule));

  TASO_RETURN_IF_ERROR(check_equal(repeated, optimized));
  if (saved.external_data != certificate.external_data.has_value())
    return not_proved("the certificate does not say where the weights of the result are");
  if (saved.external_data) TASO_RETURN_IF_ERROR(check_equal(repeated, optimized, ".data"));
  return result;
}

}  // namespace taso
