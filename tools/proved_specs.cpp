#include "tools/proved_specs.h"

#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tools/specs.h"

namespace taso::tools {
namespace {

Expected<std::vector<Substitution>> axioms_of(const CommonOptions& options, const OperatorRegistry& registry) {
  TASO_ASSIGN(const std::vector<std::string> files, axiom_files(options));
  std::vector<Substitution> axioms;
  for (const std::string& file : files) {
    TASO_ASSIGN(std::vector<Substitution> more, load_axioms(file, registry));
    std::move(more.begin(), more.end(), std::back_inserter(axioms));
  }
  return axioms;
}

// The shipped folder alone.
CommonOptions without_added(CommonOptions options) {
  options.added_specs.clear();
  return options;
}

}  // namespace

void warn_of_trusted_functions(const OperatorRegistry& registry, const OperatorRegistry& known, const char* program) {
  for (const FunctionDefinition* function : trusted_functions(registry, known))
    warn(program, bad_input("what is declared of '" + function->name +
                                "' is tried on numbers, not proved; proofs that use it rest on it",
                            function->where)
                      .to_string());
}

Expected<OperatorRegistry> load_proved_operators(const CommonOptions& options, const char* program) {
  TASO_ASSIGN(OperatorRegistry registry, load_operators(options));
  if (options.added_specs.empty()) return registry;
  TASO_ASSIGN(const OperatorRegistry shipped, load_operators(without_added(options)));
  TASO_RETURN_IF_ERROR(prove_declared_laws(registry, shipped));
  if (program != nullptr) warn_of_trusted_functions(registry, shipped, program);
  return registry;
}

Expected<BelievedAxioms> load_believed_axioms(const CommonOptions& options, const OperatorRegistry& registry,
                                              const char* program) {
  BelievedAxioms result;
  TASO_ASSIGN(result.axioms, axioms_of(without_added(options), registry));
  if (options.added_specs.empty()) return result;
  TASO_ASSIGN(const std::vector<Substitution> all, axioms_of(options, registry));
  BelievedAxioms added =
      proved_axioms(registry, {all.begin() + static_cast<std::ptrdiff_t>(result.axioms.size()), all.end()});
  for (const auto& [name, why] : added.not_proved) warn(program, why.to_string() + "; it is not used");
  std::move(added.axioms.begin(), added.axioms.end(), std::back_inserter(result.axioms));
  result.not_proved = std::move(added.not_proved);
  return result;
}

}  // namespace taso::tools
