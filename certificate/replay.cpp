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

namespace {

/// Whether the value of an expression may follow from extents.
bool reads_extents(const AttributeExpression& expression) {
  using Kind = AttributeExpression::Kind;
  return expression.kind == Kind::dimension || expression.kind == Kind::variable ||
         std::any_of(expression.operands.begin(), expression.operands.end(), reads_extents);
}

/// Whether a rule is for extents of some magnitude only: what holds at a few sizes says nothing of others then.
bool is_for_some_extents(const Substitution& rule) {
  return std::any_of(rule.conditions.begin(), rule.conditions.end(), [](const Condition& condition) {
    return condition.relation != Condition::Relation::equal &&
           (reads_extents(condition.left) || reads_extents(condition.right));
  });
}

}  // namespace

Expected<Graph> repeat_steps(Graph graph, const std::vector<Substitution>& rules,
                             const std::vector<CertificateStep>& steps, const OperatorCatalog& catalog, bool anew,
                             std::map<std::string, std::size_t>& uses) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const CertificateStep& step = steps[i];
    const auto rule =
        std::find_if(rules.begin(), rules.end(), [&](const Substitution& r) { return r.name == step.rule; });
    if (rule == rules.end()) return not_proved(fmt::format("step {}: the certificate has no rule '{}'", i, step.rule));
    if (anew && is_for_some_extents(*rule))
      return not_proved(fmt::format("step {}: {} has a condition on the magnitude of extents", i, rule->name));
    const Match match = anew ? match_at_same_place(graph, *rule, step.match) : step.match;
    if (const Status occurs = check_occurrence(graph, *rule, match, catalog); !occurs)
      return not_proved(fmt::format("step {}: {}", i, occurs.error().message));
    Expected<Graph> next = apply(graph, *rule, match, catalog);
    if (!next) return not_proved(fmt::format("step {}: {}", i, next.error().message));
    graph = std::move(*next);
    ++uses[step.rule];
  }
  return graph;
}

Expected<Replay> replay(const Certificate& certificate, const std::string& original, const std::string& optimized,
                        const OperatorRegistry& registry, const std::string& temporary) {
  TASO_RETURN_IF_ERROR(check_identity(certificate.original, original));
  TASO_RETURN_IF_ERROR(check_identity(certificate.optimized, optimized));
  if (certificate.external_data) TASO_RETURN_IF_ERROR(check_identity(*certificate.external_data, optimized + ".data"));
  TASO_ASSIGN(std::vector<Substitution> rules, parse_used_rules(certificate, registry));

  // Once as the model is, or once for each of several sizes.
  std::vector<SymbolSizes> all_sizes = certificate.symbol_sizes;
  if (all_sizes.empty()) all_sizes.emplace_back();
  Replay result;
  std::vector<Model> models;
  std::vector<Graph> graphs;
  for (const SymbolSizes& sizes : all_sizes) {
    ImportOptions import;
    import.input_shapes = certificate.input_shapes;
    import.symbol_sizes = sizes;
    TASO_ASSIGN(Model model, Model::load(original, registry, import));
    for (const auto& [name, size] : sizes)
      if (std::none_of(model.symbols().begin(), model.symbols().end(), [&](const Symbol& s) { return s.name == name; }))
        return not_proved(fmt::format("the certificate gives a size of '{}', which no input has", name), original);
    Graph graph = model.graph();
    normalize(graph, registry);
    result.uses.clear();
    TASO_ASSIGN(graph,
                repeat_steps(std::move(graph), rules, certificate.steps, registry, !graphs.empty(), result.uses));
    models.push_back(std::move(model));
    graphs.push_back(std::move(graph));
  }
  for (Substitution& rule : rules)
    if (result.uses.contains(rule.name)) result.rules.push_back(std::move(rule));

  // The name of the data file stands in the model, so the repeated one has the same name.
  const std::string repeated = (std::filesystem::path(temporary) / certificate.optimized.name).string();
  SaveOptions save;
  save.external_data = certificate.external_data.has_value();
  SaveReport saved;
  if (certificate.symbol_sizes.empty()) {
    TASO_ASSIGN(saved, models[0].save(graphs[0], repeated, save));
  } else {
    std::vector<Model::Sized> sized;
    for (std::size_t k = 0; k < models.size(); ++k) sized.push_back({&models[k], &graphs[k]});
    TASO_ASSIGN(saved, Model::save_at_all_sizes(sized, repeated, save));
  }
  TASO_RETURN_IF_ERROR(check_equal(repeated, optimized));
  if (saved.external_data != certificate.external_data.has_value())
    return not_proved("the certificate does not say where the weights of the result are");
  if (saved.external_data) TASO_RETURN_IF_ERROR(check_equal(repeated + ".data", optimized + ".data"));
  return result;
}

}  // namespace taso
