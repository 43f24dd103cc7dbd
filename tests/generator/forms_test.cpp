// The parts of generalisation: comparing sides at instances, conditions that exclude failures, the order of forms.
#include "generator/forms.h"

#include <gtest/gtest.h>

#include "tests/support/shipped.h"

namespace taso {
namespace {

using test::registry;

Substitution rule(const std::string& text) {
  const auto read = parse_rules("rule r: " + text, "text", registry());
  EXPECT_TRUE(read.ok()) << read.error().to_string();
  return read->front();
}

std::vector<TensorType> types(const std::vector<Shape>& shapes) {
  std::vector<TensorType> result;
  result.reserve(shapes.size());
  for (const Shape& shape : shapes) result.push_back({ElementType::f32, shape, true});
  return result;
}

TEST(Comparer, TellsEqualDifferentAndIllTyped) {
  InstanceComparer comparer(registry(), 1, 100);
  struct Case {
    const char* text;
    std::vector<Shape> shapes;
    std::vector<std::optional<AttributeValue>> attributes;
    Comparison expected;
  };
  using Integers = std::vector<std::int64_t>;
  const std::vector<Case> cases = {
      {"add(x, y) => add(y, x)", {{2, 3}, {2, 3}}, {}, Comparison::equal},
      {"sub(x, y) => sub(y, x)", {{2, 3}, {2, 3}}, {}, Comparison::different},
      {"add(x, y) => add(y, x)", {{2, 3}, {3, 2}}, {}, Comparison::ill_typed},
      {"matmul(x, y) => matmul(y, x)", {{2, 3}, {3, 2}}, {}, Comparison::ill_typed},
      {"matmul(x, y) => matmul(y, x)", {{2, 2}, {2, 2}}, {}, Comparison::different},
      {"relu(x) => x", {{4}}, {}, Comparison::different},
      {"transpose(transpose(x; perm=p); perm=p) => x", {{2, 2, 2}}, {Integers{1, 0, 2}}, Comparison::equal},
      {"transpose(transpose(x; perm=p); perm=p) => x", {{2, 2, 2}}, {Integers{1, 2, 0}}, Comparison::different},
      {"transpose(transpose(x; perm=p); perm=p) => x", {{2, 2}}, {Integers{1, 2, 0}}, Comparison::ill_typed},
      {"concat(s.1, s.0; axis=a) => x where s = split(x; axis=a, sizes=z)",
       {{1, 4}},
       {std::int64_t{-1}, Integers{2, 2}},
       Comparison::different},
      {"concat(s.0, s.1; axis=a) => x where s = split(x; axis=a, sizes=z)",
       {{1, 4}},
       {std::int64_t{-1}, Integers{4}},
       Comparison::ill_typed},
      {"matmul(x, y) => matmul(x, y)", {{20, 1}, {1, 20}}, {}, Comparison::ill_typed},  // too large
      // The target divides by zero where the source does not; the source does.
      {"relu(x) => div(relu(x), sub(x, x))", {{2}}, {}, Comparison::different},
      {"div(relu(x), sub(x, x)) => relu(x)", {{2}}, {}, Comparison::ill_typed},
  };
  for (int round = 0; round < 2; ++round)
    for (const Case& one : cases) {
      SCOPED_TRACE(one.text);
      EXPECT_EQ(comparer.compare(rule(one.text), types(one.shapes), one.attributes), one.expected);
    }
}

// What is remembered changes no answer, also after it was forgotten.
TEST(Comparer, AnswersAlikeAfterManyInstances) {
  InstanceComparer comparer(registry(), 1, 3000);
  const Substitution right = rule("matmul(x, add(y, z)) => add(matmul(x, y), matmul(x, z))");
  const Substitution wrong = rule("matmul(x, add(y, z)) => add(matmul(x, y), matmul(x, y))");
  for (int round = 0; round < 3; ++round)
    for (std::int64_t m = 1; m < 16; ++m)
      for (std::int64_t k = 1; k < 16; ++k)
        for (std::int64_t n = 1; n < 16; ++n) {
          const auto shapes = types({{m, k}, {k, n}, {k, n}});
          ASSERT_EQ(comparer.compare(right, shapes, {}), Comparison::equal);
          ASSERT_EQ(comparer.compare(wrong, shapes, {}), Comparison::different);
        }
}

TestedSample tested(const std::vector<Shape>& shapes, bool equal, bool declared = false) {
  return {{types(shapes), {}, declared}, equal};
}

std::string texts(const std::vector<Condition>& conditions) {
  Substitution alone = rule("matmul(x, y) => matmul(x, y)");
  alone.conditions = conditions;
  const std::string text = to_string(alone, registry());
  const auto at = text.find("  if ");
  return at == std::string::npos ? "" : text.substr(at + 5, text.size() - at - 6);
}

TEST(Conditions, ExcludeAllFailuresAndAsLittleAsPossible) {
  // x [a, b], y [b, a] in every assignment.
  const std::vector<std::vector<Shape>> shapes = {{{2, 3}, {4, 5}}, {{3, 2}, {5, 4}}};
  const std::vector<Condition> atoms = shape_atoms(shapes);
  EXPECT_EQ(texts(atoms), "dim(x, -1) == dim(y, -2), dim(x, -2) == dim(y, -1), rank(x) == 2, rank(y) == 2");
  std::vector<Condition> chosen;
  EXPECT_TRUE(exclude_failures(atoms, {tested({{2, 3}, {3, 2}}, true, true)}, chosen));
  EXPECT_TRUE(chosen.empty()) << "nothing failed";
  // The failures violate the first two; a success violates the second.
  EXPECT_TRUE(exclude_failures(atoms,
                               {tested({{2, 3}, {4, 1}}, false), tested({{2, 3}, {5, 3}}, false),
                                tested({{2, 3}, {3, 7}}, true), tested({{2, 3}, {3, 2}}, true, true)},
                               chosen));
  EXPECT_EQ(texts(chosen), "dim(x, -1) == dim(y, -2)");
  EXPECT_EQ(texts(implied_conditions(atoms, {tested({{2, 3}, {3, 7}}, true)}, chosen)), "rank(x) == 2, rank(y) == 2");
  chosen.clear();
  EXPECT_FALSE(exclude_failures(atoms, {tested({{2, 3}, {3, 2}}, false)}, chosen)) << "all hold at the failure";
  chosen.clear();
  EXPECT_FALSE(exclude_failures(atoms, {tested({{2, 3}, {4, 1}}, false, true)}, chosen)) << "the failure is declared";
}

struct Candidates {
  explicit Candidates(const std::string& text) {
    auto parsed = parse_profile("profile p\ngroup g\n" + text, "file", registry());
    EXPECT_TRUE(parsed.ok()) << parsed.error().to_string();
    profile = std::move(parsed).value();
    BankOptions options;
    options.max_ops = profile.groups[0].max_ops;
    bank = std::make_unique<Bank>(profile.groups[0], registry(), options);
    EXPECT_TRUE(bank->run().ok());
    CandidateCounts counts;
    drafts = make_candidates(*bank, counts);
  }
  Profile profile;
  std::unique_ptr<Bank> bank;
  std::vector<Draft> drafts;
};

// Two convolutions that read concatenated channels: equal to a sum only where there is one group.
TEST(Forms, ComeWithFewestConditionsFirst) {
  Candidates candidates(R"(
  max_ops 3
  extent n: 1, 2
  extent c1: 2, 1
  extent c2: 1, 3
  extent h: 3, 4
  extent o: 3, 2
  activation x [n, c1, h, h]
  activation y [n, c2, h, h]
  activation k [o, c1, 1, 1]
  activation l [o, c2, 1, 1]
  apply conv2d(input, input) pads=[0, 0, 0, 0]
  apply conv2d(activation, activation) pads=[0, 0, 0, 0]
  apply add(activation, activation)
  apply concat(input, input) axis=-3
)");
  FormOptions options;
  InstanceComparer comparer(registry(), options.seed, options.max_elements);
  FormFinder finder(*candidates.bank, comparer, options);
  std::size_t with_conditions = 0;
  for (const Draft& draft : candidates.drafts) {
    if (draft.source.nodes.back().op == draft.target.nodes.back().op) continue;
    FormFinder::Forms forms(finder, draft);
    std::size_t conditions = 0;
    while (const auto form = forms.next()) {
      EXPECT_GE(form->rule.conditions.size(), conditions);
      conditions = form->rule.conditions.size();
      with_conditions += conditions > 0 ? 1 : 0;
    }
  }
  EXPECT_GE(with_conditions, 1u);
}

// One literal stands for all axes; a counterexample leads to a condition.
TEST(Forms, LiteralsBecomeVariablesAndFailuresConditions) {
  Candidates candidates(R"(
  max_ops 2
  extent m: 4, 5
  extent j: 2, 3
  extent k: 3, 1
  activation x [m, j]
  activation y [m, k]
  apply relu(activation)
  apply concat(input, input) axis=-1
  apply concat(activation, activation) axis=-1
)");
  FormOptions options;
  InstanceComparer comparer(registry(), options.seed, options.max_elements);
  FormFinder finder(*candidates.bank, comparer, options);
  bool found = false;
  for (const Draft& draft : candidates.drafts) {
    if (draft.source.ops < 2) continue;
    FormFinder::Forms forms(finder, draft);
    const auto form = forms.next();
    ASSERT_TRUE(form.has_value());
    EXPECT_TRUE(form->rule.conditions.empty());
    ASSERT_EQ(form->rule.attribute_variables.size(), 1u);
    found = true;
    // As if a proof had failed where x has rank 3.
    Counterexample failure;
    failure.variables = types({{1, 4, 2}, {1, 4, 3}});
    failure.attributes = {std::int64_t{-1}};
    const auto refined = forms.refine(*form, {failure});
    ASSERT_TRUE(refined.has_value());
    EXPECT_EQ(refined->rule.conditions.size(), 1u);
    EXPECT_FALSE(satisfied(refined->rule.conditions[0], {failure.variables, failure.attributes, false}));
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace taso
