// Example 2: a rewrite rule is proved, and a wrong one refuted.
//
// A rule holds for all shapes and attributes under which both sides are well-typed. Two independent proofs are made: Z3
// derives it from the axioms (specs/axioms), and both sides have the same polynomials at many small shapes.
#include <cstdio>

#include "examples/program.h"
#include "verifier/verify.h"

using namespace taso;

namespace {

constexpr const char* rules_text = R"(
# Two products of one matrix become one product with both weights side by side.
rule merge_products:
  matmul(x, v), matmul(x, w) => s.0, s.1
  where s = split(matmul(x, concat(v, w; axis=-1)); axis=-1, sizes=[dim(v, -1), dim(w, -1)])

# The same with the results exchanged.
rule merge_products_wrongly:
  matmul(x, v), matmul(x, w) => s.1, s.0
  where s = split(matmul(x, concat(v, w; axis=-1)); axis=-1, sizes=[dim(v, -1), dim(w, -1)])
)";

Status run() {
  TASO_ASSIGN(const OperatorRegistry registry, OperatorRegistry::load(examples::specs("operators")));
  TASO_ASSIGN(std::vector<Substitution> axioms, load_axioms(examples::specs("axioms"), registry));
  TASO_ASSIGN(const std::vector<Substitution> rules, parse_rules(rules_text, "example", registry));
  Verifier verifier(registry, std::move(axioms));
  for (const Substitution& rule : rules) {
    const Verdict verdict = verifier.verify(rule);
    std::printf("%s: %s\n", rule.name.c_str(), to_string(verdict.kind));
    for (const std::string& proof : verdict.proofs) std::printf("  proof: %s\n", proof.c_str());
    for (const Condition& condition : verdict.conditions)
      std::printf("  under: %s\n", to_string(condition, rule).c_str());
    if (verdict.counterexample) std::printf("%s\n", verdict.counterexample->text.c_str());
    const bool wrong = rule.name == "merge_products_wrongly";
    if (verdict.kind != (wrong ? VerdictKind::refuted : VerdictKind::proved))
      return internal_error(rule.name + " was not decided as it should be: " + verdict.reason);
  }
  return {};
}

}  // namespace

int main() { return examples::exit_code(run()); }
