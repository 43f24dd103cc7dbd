// Example 5: a new operator is one text.
//
// Nothing is recompiled: the text below gives the operator its types, its values, its costs and its proofs. (As a
// file in specs/operators the programs know it; see docs/adding-an-operator.md.)
#include <cstdio>

#include "examples/program.h"
#include "graph/graph_text.h"
#include "operators/registry.h"
#include "runtime/executor.h"
#include "verifier/verify.h"

using namespace taso;

namespace {

// The mean of two tensors.
constexpr const char* operator_text = R"(
operator midpoint(x[E..], y[E..]) -> [E..]
  law commutative
  out[e..] = 0.5 * (x[e..] + y[e..])
)";

constexpr const char* rule_text = R"(
rule midpoint_with_itself:
  midpoint(x, x) => x
)";

Status run() {
  TASO_ASSIGN(const OperatorRegistry known, OperatorRegistry::load(examples::specs("operators")));
  TASO_ASSIGN(const OperatorRegistry registry, OperatorRegistry::parse(operator_text, "midpoint.op", &known));

  // It has types and a kernel: the evaluation of its definition, as long as nobody writes a faster one.
  TASO_ASSIGN(const Graph graph,
              parse_graph("input x f32[3]\ninput y f32[3]\noutput midpoint(x, y)\n", "example", registry));
  const KernelLibrary library(registry);
  TASO_ASSIGN(Executor executor, Executor::create(graph, library));
  std::vector<HostTensor> inputs;
  inputs.push_back(HostTensor::of_floats({3}, std::vector<float>{1, 2, 3}));
  inputs.push_back(HostTensor::of_floats({3}, std::vector<float>{3, 2, 0}));
  TASO_ASSIGN(const std::vector<HostTensor> outputs, executor.run(inputs));
  const auto values = outputs[0].floats();
  std::printf("midpoint([1 2 3], [3 2 0]) = [%g %g %g]\n", values[0], values[1], values[2]);
  if (values[0] != 2 || values[1] != 2 || values[2] != 1.5F) return internal_error("the midpoint is wrong");

  // And rules about it can be checked at all small shapes. No axiom speaks of it yet, so only this proof is asked for.
  TASO_ASSIGN(const std::vector<Substitution> rules, parse_rules(rule_text, "example", registry));
  Verifier verifier(registry, {}, {.axioms = false});
  const Verdict verdict = verifier.verify(rules[0]);
  std::printf("%s: %s at %zu instances\n", rules[0].name.c_str(), verdict.by_bounded ? "holds" : "fails",
              verdict.instances);
  if (!verdict.by_bounded) return internal_error("not proved: " + verdict.reason);
  return {};
}

}  // namespace

int main() { return examples::exit_code(run()); }
