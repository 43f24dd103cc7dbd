// Checks a derivation step by step, without the search that found it: each rule is read from its text, applied to the
// graph on one side of the step, and must give the graph on the other; both graphs are evaluated at random points of a
// field.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "generator/derive.h"
#include "operators/evaluate.h"
#include "operators/registry.h"
#include "support/random.h"

namespace taso {

/// The values of a graph's outputs for inputs that are the same for the same seed; empty if it cannot be evaluated.
inline std::vector<std::vector<Mod61>> values_of(const Graph& graph, const OperatorRegistry& registry,
                                                 std::uint64_t seed) {
  std::vector<RingTensor<Mod61>> inputs;
  Random random(seed, "replay");
  for (const NodeId id : graph.inputs()) {
    RingTensor<Mod61> tensor;
    tensor.shape = graph.node(id).outputs[0].shape;
    tensor.elements.resize(static_cast<std::size_t>(graph.node(id).outputs[0].elements()));
    for (Mod61& element : tensor.elements) element = Mod61::from_bits(random.next());
    inputs.push_back(std::move(tensor));
  }
  FieldRing ring(seed);
  const auto outputs = evaluate(graph, registry, ring, inputs);
  std::vector<std::vector<Mod61>> result;
  if (!outputs.ok() || !ring.status()) return result;
  for (const auto& output : *outputs) result.push_back(output.elements);
  return result;
}

/// `rules` are the texts of the rules that the steps name; `as_they_stand`: every step must be one that an optimizer
/// can go.
inline void replay(const Derivation& derivation, Graph source, Graph target, const std::vector<std::string>& rules,
                   const OperatorRegistry& registry, bool as_they_stand) {
  normalize_operands(source, registry);
  normalize_operands(target, registry);
  ASSERT_TRUE(derivation.source.equals(source));
  const auto expected = values_of(source, registry, 7);
  ASSERT_FALSE(expected.empty());
  const Graph* before = &derivation.source;
  for (const DerivationStep& step : derivation.steps) {
    ASSERT_LT(step.rule, rules.size());
    auto rule = parse_rules(rules[step.rule], "rule", registry);
    ASSERT_TRUE(rule.ok()) << rule.error().to_string();
    auto gives = [&](const Substitution& one, const Graph& from, const Graph& to) {
      const RuleIndex index({one}, registry);
      const auto matches = index.find(from, 0);
      return std::any_of(matches.begin(), matches.end(), [&](const Match& match) {
        auto result = apply(from, one, match, registry);
        if (!result.ok()) return false;
        normalize_operands(*result, registry);
        return result->equals(to);
      });
    };
    const Graph& left = step.backwards ? step.after : *before;
    const Graph& right = step.backwards ? *before : step.after;
    bool shown = gives(rule->front(), left, right);
    if (!shown && !as_they_stand) {
      std::vector<Substitution> forms = merged_instances(rule->front(), registry);
      forms.push_back(rule->front());
      for (const Substitution& form : forms) {
        const auto back = reversed(form);
        shown = shown || gives(form, left, right) || (back.has_value() && gives(*back, right, left));
      }
    }
    EXPECT_TRUE(shown) << rules[step.rule] << (step.backwards ? "used backwards" : "used forwards");
    EXPECT_FALSE(as_they_stand && step.backwards);
    EXPECT_EQ(values_of(step.after, registry, 7), expected);
    before = &step.after;
  }
  EXPECT_TRUE(before->equals(target));
}

}  // namespace taso
