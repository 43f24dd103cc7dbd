#include "verifier/declarations.h"

#include <algorithm>
#include <optional>

namespace taso {
namespace {

// Neither axioms nor declared laws are used for a proof of one.
VerifierOptions from_definitions() {
  VerifierOptions options;
  options.axioms = false;
  return options;
}

// One line of a text of several.
std::string joined_lines(const std::string& text) {
  std::string result;
  for (const char c : text)
    if (c != '\n')
      result += c;
    else if (!result.empty() && result.back() != ' ')
      result += "; ";
  return result;
}

// Why a statement is not believed as it stands.
std::optional<std::string> doubt(Verifier& verifier, const Substitution& statement) {
  const Verdict verdict = verifier.verify(statement);
  if (verdict.kind == VerdictKind::refuted && verdict.counterexample)
    return "is false: " + joined_lines(verdict.counterexample->text);
  if (verdict.kind != VerdictKind::proved) return "is not proved: " + joined_lines(verdict.reason);
  // Limits of ranks are those of every proof. Other conditions would have to be said.
  for (const Condition& condition : verdict.added)
    if (condition.of_elements()) return "holds only if " + to_string(condition, statement);
  return std::nullopt;
}

}  // namespace

Status prove_declared_laws(const OperatorRegistry& registry, const OperatorRegistry& known) {
  std::optional<Verifier> verifier;
  for (const Substitution& law : Verifier::declared_laws(registry)) {
    const std::string op = law.name.substr(0, law.name.find('.'));
    if (known.find(op) != nullptr) continue;
    if (!verifier) verifier.emplace(registry, std::vector<Substitution>{}, from_definitions());
    if (const auto why = doubt(*verifier, law))
      return bad_input("the declared law " + law.name + " " + *why, law.where);
  }
  return {};
}

std::vector<const FunctionDefinition*> trusted_functions(const OperatorRegistry& registry,
                                                         const OperatorRegistry& known) {
  std::vector<const FunctionDefinition*> result;
  for (const auto& [name, function] : registry.functions())
    if (function.is_primitive() && function.declares_anything() && known.find_function(name) == nullptr)
      result.push_back(&function);
  return result;
}

BelievedAxioms proved_axioms(const OperatorRegistry& registry, const std::vector<Substitution>& axioms) {
  BelievedAxioms result;
  Verifier verifier(registry, {}, from_definitions());
  for (const Substitution& axiom : axioms) {
    const std::optional<std::string> why = axiom.is_axiom ? doubt(verifier, axiom) : std::nullopt;
    if (why)
      result.not_proved.push_back({axiom.name, bad_input("axiom " + axiom.name + " " + *why, axiom.where)});
    else
      result.axioms.push_back(axiom);
  }
  return result;
}

}  // namespace taso
