#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/pattern.h"
#include "support/random.h"
#include "tests/graph/fake_catalog.h"

namespace taso {
namespace {

using testing::HasSubstr;

constexpr const char* rules_text = R"(
# Rules that together use the whole language.
rule merge: matmul(x, w1), matmul(x, w2) => s.0, s.1
  where s = split(matmul(x, concat(w1, w2; axis=-1)); axis=-1, sizes=[dim(w1, -1), dim(w2, -1)])
  if rank(w1) == 2, dim(w2, -1) > 0, dim(x, -1) != dim(x, -2) + 1
  proof axioms, bounded 3
  class exact
axiom add_commutes: add(x, y) = add(y, x)
axiom shared: relu(t) = add(t, t) where t = tanh(s.1), s = split(x; axis=-1, sizes=[1, 2])
rule activation: relu(matmul_bias_act(x, w, b)) => matmul_bias_act(x, w, b; act=relu) class exact expect proved
rule any_activation: matmul_bias_act(x, w, b; act=f) => matmul_bias_act(relu(x), w, b; act=f) expect refuted
rule clips: clip(x; min=0.5, max=m) => clip(clip(x; min=0, max=m); min=-1.5e-3, max=m * 2.0 - (1.0 - m)) expect unknown
rule any_axis: split(concat(x, y; axis=a); axis=a, sizes=[dim(x, a), dim(y, a)]).1 => y
rule any_sizes: relu(split(x; axis=a, sizes=n).2) => split(relu(x); axis=a, sizes=n).2
rule arithmetic: conv2d(x, w; strides=[s, t], pads=p)
  => conv2d(x, w; strides=[s, t], pads=(p + [1, 1, 1, 1]) * 2 // 2 - [p[0], 0 - s, t * 2 // 2, s - (t - 1)])
  if s <= t, [0, 0, 0, 0] <= p, p >= -1
rule nothing_read: relu(ones(; shape=s)) => ones(; shape=s)
rule limits: clip(x; min=-inf, max=inf) => x
rule pieces: relu(x) => concat(relu(t.0), relu(t.1); axis=a)
  where t = split(x; axis=a, sizes=[m, dim(x, a) - m])
  for a, m if a < 0, 0 < m, m < dim(x, a)
)";

std::vector<Substitution> parsed_rules(const std::string& text) {
  const FakeCatalog catalog;
  Expected<std::vector<Substitution>> rules = parse_rules(text, "test.rules", catalog);
  EXPECT_TRUE(rules.ok()) << rules.error().to_string() << "\n" << text;
  return rules ? *rules : std::vector<Substitution>();
}

void expect_same(const Substitution& a, const Substitution& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.is_axiom, b.is_axiom);
  EXPECT_EQ(a.tensor_variables, b.tensor_variables);
  EXPECT_EQ(a.attribute_variables, b.attribute_variables);
  EXPECT_TRUE(a.source == b.source);
  EXPECT_TRUE(a.target == b.target);
  EXPECT_TRUE(a.conditions == b.conditions);
  EXPECT_EQ(a.proofs, b.proofs);
  EXPECT_EQ(a.numeric_class, b.numeric_class);
  EXPECT_EQ(a.expect, b.expect);
}

TEST(RuleText, PrintsWhatParsesBack) {
  const FakeCatalog catalog;
  const std::vector<Substitution> rules = parsed_rules(rules_text);
  ASSERT_EQ(rules.size(), 12u);
  for (const Substitution& rule : rules) {
    const std::string text = to_string(rule, catalog);
    const std::vector<Substitution> again = parsed_rules(text);
    ASSERT_EQ(again.size(), 1u);
    expect_same(rule, again[0]);
    EXPECT_EQ(to_string(again[0], catalog), text);
    for (const Substitution& named : {canonical(rule), canonical(rule, catalog)}) {
      const std::string canonical_text = to_string(named, catalog);
      const std::vector<Substitution> back = parsed_rules(canonical_text);
      ASSERT_EQ(back.size(), 1u);
      EXPECT_EQ(to_string(canonical(back[0]), catalog), canonical_text);
    }
  }
}

TEST(RuleText, ReadsAllClauses) {
  const std::vector<Substitution> rules = parsed_rules(rules_text);
  ASSERT_EQ(rules.size(), 12u);
  EXPECT_EQ(rules[0].proofs, (std::vector<std::string>{"axioms", "bounded 3"}));
  EXPECT_EQ(rules[0].numeric_class, NumericClass::exact);
  EXPECT_EQ(rules[0].conditions.size(), 3u);
  EXPECT_EQ(rules[0].tensor_variables, (std::vector<std::string>{"x", "w1", "w2"}));
  EXPECT_EQ(rules[0].source.nodes.size(), 2u);
  EXPECT_EQ(rules[0].target.nodes.size(), 3u);  // The split is one node with two outputs.
  EXPECT_TRUE(rules[1].is_axiom);
  EXPECT_EQ(rules[2].target.nodes.size(), 3u);
  EXPECT_EQ(rules[3].expect, "proved");
  EXPECT_EQ(rules[0].where.line, 3);
  EXPECT_TRUE(std::get<SymbolValue>(rules[3].target.nodes[0].attributes[0].second.literal) == SymbolValue{"relu"});
}

struct WrongRule {
  const char* text;
  const char* message;
};

class RuleErrors : public testing::TestWithParam<WrongRule> {};

TEST_P(RuleErrors, SaysWhatIsWrong) {
  const FakeCatalog catalog;
  const auto rules = parse_rules(GetParam().text, "f.rules", catalog);
  ASSERT_FALSE(rules.ok()) << GetParam().text;
  EXPECT_EQ(rules.error().code, ErrorCode::bad_input);
  EXPECT_THAT(rules.error().to_string(), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, RuleErrors,
    testing::Values(
        WrongRule{"rule r: relu(x) => foo(x)", "f.rules:1:20: unknown operator 'foo'"},
        WrongRule{"rule r:\n  relu(x, y) => x", "f.rules:2:3: relu reads 1 tensor, here are 2"},
        WrongRule{"rule r: concat(; axis=-1) => concat(; axis=-1)", "concat reads at least 1 tensor, here are 0"},
        WrongRule{"rule r: relu(x) => y", "f.rules:1:20: tensor 'y' of the target does not occur in the source"},
        WrongRule{"axiom r: relu(x) = y", "tensor 'y' of the target does not occur in the source"},
        WrongRule{"rule r: x => relu(x)", "an output of the source must be computed by an operator, 'x' is a variable"},
        WrongRule{"rule r: relu(x) => x rule r: tanh(x) => x", "f.rules:1:22: there is a rule 'r' already, at line 1"},
        WrongRule{"rule r: relu(x), tanh(x) => x", "the left side has 2 outputs, the right side 1"},
        WrongRule{"rule r: clip(x; min=a) => clip(x; min=b)", "attribute variable 'b' is not bound by the source"},
        WrongRule{"rule r: clip(x; min=a, max=1) => x for a",
                  "f.rules:1:40: 'a' has a value already: it occurs in the source or stands behind 'for' twice"},
        WrongRule{"rule r: relu(x) => x for m, m if m == 1", "'m' has a value already"},
        WrongRule{"rule r: relu(x) => x for m", "f.rules:1:26: 'm' is declared by 'for' but not used"},
        WrongRule{"rule r: relu(x) => x for relu", "'relu' is a word of the language or a function"},
        WrongRule{"rule r: relu(x) => x for if", "'if' is a word of the language or a function"},
        WrongRule{"axiom r: relu(x) = tanh(x) for m if m == 1", "only a rule has variables that are given"},
        WrongRule{"rule r: relu(x) => clip(x; min=m, max=n) for m if m == 1", "'n' is not bound by the source"},
        WrongRule{"rule r: clip(x; min=a + 1) => x",
                  "attribute variable 'a' is not bound by the source: it must stand alone"},
        WrongRule{
            "rule r: clip(x; min=value(y)) => x",
            "value(...) is for maps of nodes; in a rule, fill(; shape=s, value=e) binds the number of a constant"},
        WrongRule{"rule r: relu(x) => x if a == 1", "attribute variable 'a' is not bound by the source"},
        WrongRule{"rule r: relu(x) => x if dim(y, -1) == 1", "tensor 'y' does not occur in the source"},
        WrongRule{"rule r: split(x; axis=-1, sizes=[dim(y, -1), 1]).0 => x", "tensor 'y' does not occur in the source"},
        WrongRule{"rule r: relu(s) => x where s = tanh(x) if rank(s) == 1", "the shape of 's' is not at hand"},
        WrongRule{"rule r: relu(x) => x if dim(x, 0) == 1", "an axis is counted from the end: -1 is the last; found 0"},
        WrongRule{"rule r: relu(x) => x if relu == 1.5 + relu",
                  "arithmetic between a real number and the name of a function"},
        WrongRule{"rule r: split(x; axis=-1, sizes=[1, 2]).2 => x", "split has 2 outputs, no output 2"},
        WrongRule{"rule r: relu(x).1 => x", "relu has 1 output, no output 1"},
        WrongRule{"rule r: split(x; axis=-1, sizes=[1, 2]) => x", "split has 2 outputs, choose one: .0, .1, ..."},
        WrongRule{"rule r: split(x; axis=-1, sizes=n) => x", "split has several outputs, choose one: .0, .1, ..."},
        WrongRule{"rule r: relu(x.1) => x", "'x' is one tensor, there is no output 1"},
        WrongRule{"rule r: relu(t) => x where t = tanh(t)", "'t' is defined by itself"},
        WrongRule{"rule r: relu(t) => x where t = tanh(s), s = relu(t)", "'t' is defined by itself"},
        WrongRule{"rule r: relu(x) => x where t = tanh(x)", "f.rules:1:28: 't' is named by 'where' but not used"},
        WrongRule{"rule r: relu(t) => t where t = tanh(x), t = tanh(x)", "'t' is named twice"},
        WrongRule{"rule r: relu(where) => where", "'where' is a word of the language"},
        WrongRule{"rule rule: relu(x) => x", "'rule' is a word of the language"},
        WrongRule{"rule r: relu(x; foo=1) => x", "relu has no attribute 'foo'; it has none"},
        WrongRule{"rule r: clip(x; mn=1.0) => x", "attribute min of clip is missing"},
        WrongRule{"rule r: clip(x; min=1.0, mx=1.0) => x", "clip has no attribute 'mx'; it has min, max"},
        WrongRule{"rule r: clip(x; min=1.0, min=2.0) => x", "attribute min of clip is given twice"},
        WrongRule{"rule r: clip(x; min=[1]) => x",
                  "attribute min of clip must be a real number, this is a list of integers"},
        WrongRule{"rule r: concat(x, x; axis=relu) => x",
                  "attribute axis of concat must be an integer, this is the name of a"},
        WrongRule{"rule r: concat(clip(x; min=a); axis=a) => x",
                  "attribute variable 'a' is a real number elsewhere, here it must be an integer"},
        WrongRule{"rule r: split(x; axis=a, sizes=[1, 2.5]).0 => x", "an element of a list must be an integer"},
        WrongRule{"rule r: split(x; axis=a, sizes=n).0 => concat(x; axis=a[0])",
                  "only a list has elements, this is an integer"},
        WrongRule{"rule r: relu(x) => x class fast",
                  "expected exact, reassociation, accumulation or distribution, found 'fast'"},
        WrongRule{"rule r: relu(x) => x expect yes", "expected proved, refuted or unknown, found 'yes'"},
        WrongRule{"rule r: relu(x) => x if rank(x)", "expected one of == != < <= > >=, found the end of the file"},
        WrongRule{"rule r: relu(x) => x, then", "the left side has 1 outputs, the right side 2"},
        WrongRule{"rule r: relu(x) => x then",
                  "expected 'where', 'for', 'if', 'proof', 'class', 'expect' or the next rule, found 'then'"},
        WrongRule{"rule r: relu(x) = x", "expected '=>' after the source, found '='"},
        WrongRule{"axiom r: relu(x) => x", "expected '=' between the sides of an axiom, found '=>'"},
        WrongRule{"rule r relu(x) => x", "expected ':' after the name, found 'relu'"},
        WrongRule{"relu(x) => x", "expected 'rule NAME:' or 'axiom NAME:', found 'relu'"},
        WrongRule{"rule r: relu(x => x", "expected ')' or ',' in relu(...), found '=>'"},
        WrongRule{"rule r: relu(x) => x if rank(x) == 99999999999999999999", "does not fit 64 bits"},
        WrongRule{"rule r: clip(x; min=1e999) => x", "real number 1e999 is out of range"},
        WrongRule{"rule r: relu(x).99999999999 => x", "output number 99999999999 is out of range"}));

TEST(RuleText, RefusesWhatIsNestedTooDeep) {
  const FakeCatalog catalog;
  std::string deep_term = "x", deep_list = "1", deep_sum = "1", deep_sign = "x";
  for (int i = 0; i < 5000; ++i) {
    deep_term = "relu(" + deep_term + ")";
    deep_list = "[" + deep_list + "]";
    deep_sum += "+1";
    deep_sign = "- " + deep_sign;
  }
  for (const std::string& text :
       {"rule r: " + deep_term + " => x", "rule r: relu(x) => x if " + deep_list + " == 1",
        "rule r: relu(x) => x if " + deep_sum + " == 1", "rule r: relu(x) => x if " + deep_sign + " == 1"}) {
    const auto rules = parse_rules(text, "f", catalog);
    ASSERT_FALSE(rules.ok());
    EXPECT_THAT(rules.error().message, HasSubstr("nested more than"));
  }
}

TEST(RuleText, SharingDoesNotExplode) {
  std::string text = "rule r: t0 => x where t60 = relu(x)";
  for (int i = 0; i < 60; ++i)
    text += ", t" + std::to_string(i) + " = add(t" + std::to_string(i + 1) + ", t" + std::to_string(i + 1) + ")";
  const std::vector<Substitution> rules = parsed_rules(text);
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_EQ(rules[0].source.nodes.size(), 61u);
  const FakeCatalog catalog;
  expect_same(parsed_rules(to_string(rules[0], catalog))[0], rules[0]);
}

// Any edit of a rule file is either a rule file or an error with a place; it never crashes.
TEST(RuleText, SurvivesMutation) {
  const FakeCatalog catalog;
  Random random(1, "rule mutation");
  const std::string alphabet = " \n()[],;=.:-+*/<>!xws012abcruleifwhere\"#\x01";
  for (int round = 0; round < 3000; ++round) {
    std::string text = rules_text;
    const std::size_t begin = random.below(text.size());
    text = text.substr(begin / 2, 200 + random.below(600));
    for (std::uint64_t edit = random.below(6); edit > 0; --edit) {
      if (text.empty()) break;
      const std::size_t at = random.below(text.size());
      switch (random.below(3)) {
        case 0:
          text.erase(at, 1 + random.below(8));
          break;
        case 1:
          text.insert(at, 1, alphabet[random.below(alphabet.size())]);
          break;
        default:
          text[at] = alphabet[random.below(alphabet.size())];
      }
    }
    const auto rules = parse_rules(text, "f.rules", catalog);
    if (!rules) {
      EXPECT_EQ(rules.error().code, ErrorCode::bad_input) << rules.error().to_string();
      EXPECT_GT(rules.error().where.line, 0) << rules.error().to_string();
      continue;
    }
    for (const Substitution& rule : *rules) {
      const auto again = parse_rules(to_string(rule, catalog), "again", catalog);
      ASSERT_TRUE(again.ok()) << again.error().to_string() << "\n" << to_string(rule, catalog);
      expect_same((*again)[0], rule);
    }
  }
}

TEST(Canonical, NamesOrdersAndFoldsAlike) {
  const FakeCatalog catalog;
  auto text = [&](const std::string& rule) {
    return to_string(canonical(parsed_rules("rule r: " + rule)[0], catalog), catalog);
  };
  EXPECT_EQ(text("add(a, relu(b)) => add(relu(b), a)"), text("add(relu(q), x) => add(x, relu(q))"));
  EXPECT_EQ(text("relu(a), tanh(b) => tanh(b), relu(a)"), text("tanh(x), relu(y) => relu(y), tanh(x)"));
  EXPECT_EQ(text("matmul(x, v), matmul(x, w) => s.0, s.1 where s = split(matmul(x, concat(v, w; axis=-1)); axis=-1, "
                 "sizes=[dim(v, -1), dim(w, -1)])"),
            text("matmul(x, w), matmul(x, v) => s.1, s.0 where s = split(matmul(x, concat(v, w; axis=-1)); axis=-1, "
                 "sizes=[dim(v, -1), dim(w, -1)])"));
  EXPECT_EQ(text("clip(x; min=1.0 + 1.0, max=b) => x"), text("clip(z; min=2.0, max=h) => z"));
  EXPECT_EQ(text("relu(x) => x if rank(x) == 1, dim(x, -1) == 2"),
            text("relu(x) => x if dim(x, -1) == 2, rank(x) == 1"));
  EXPECT_NE(text("sub(x, y) => sub(y, x)"), text("sub(x, y) => sub(x, y)"));
  EXPECT_EQ(text("sub(b, a) => add(a, b)"), "rule r:\n  sub(x, y) => add(x, y)\n");
  EXPECT_EQ(to_string(canonical(parsed_rules("rule r: sub(b, a) => add(a, b)")[0]), catalog),
            "rule r:\n  sub(x, y) => add(y, x)\n");
}

TEST(Evaluate, ComputesAttributes) {
  const auto rule = parsed_rules("rule r: split(x; axis=a, sizes=n).0 => x if a == 1")[0];
  const TensorType type = {ElementType::f32, {2, 3, 5}, true};
  Bindings bindings;
  bindings.tensors = {&type};
  bindings.attributes = {AttributeValue(std::int64_t{-2}), AttributeValue(std::vector<std::int64_t>{7, -9})};
  auto condition = [&](const std::string& text) {
    return holds(parsed_rules("rule r: split(x; axis=a, sizes=n).0 => x if " + text)[0].conditions[0], bindings);
  };
  for (const char* yes : {"dim(x, -1) == 5",
                          "dim(x, a) == 3",
                          "dim(x, a - 1) == 2",
                          "rank(x) == 3",
                          "n[1] == -9",
                          "n[-1] == -9",
                          "n[-2] == 7",
                          "n + 1 == [8, -8]",
                          "n - n == [0, 0]",
                          "n // 2 == [3, -5]",
                          "n * [2, 0] == [14, 0]",
                          "a // -1 == 2",
                          "a < 0",
                          "n <= [7, -9]",
                          "n < 8",
                          "-10 < n",
                          "n != [7, 9]",
                          "1.5 + 1 == 2.5",
                          "1 == 1.0",
                          "0.5 < 1",
                          "2 - 3 - 4 == -5",
                          "[] == []",
                          "2 * 3 + 4 == 10",
                          "2 * (3 + 4) == 14",
                          "- n[0] == -7",
                          "relu == relu",
                          "relu != identity"}) {
    const Expected<bool> result = condition(yes);
    EXPECT_TRUE(result && *result) << yes << (result ? "" : result.error().message);
  }
  for (const char* no : {"dim(x, -1) == 4", "n < 7", "a >= 0", "n == [7]", "relu == identity"}) {
    const Expected<bool> result = condition(no);
    EXPECT_TRUE(result && !*result) << no;
  }
  const std::vector<WrongRule> failing = {
      {"dim(x, -4) == 1", "a tensor of type f32[2, 3, 5] has no axis -4"},
      {"n[2] == 1", "[7, -9] has no element 2"},
      {"n[-3] == 1", "[7, -9] has no element -3"},
      {"n + [1] == n", "the lists have different lengths"},
      {"a // (a + 2) == 1", "division of -2 by zero"},
      {"n < [1]", "cannot be ordered"},
      {"9223372036854775807 + rank(x) == 1", "does not fit 64 bits"},
      {"-9223372036854775808 // (a + 1) == 1", "does not fit 64 bits"},
      {"9223372036854775807 * a == 1", "does not fit 64 bits"},
  };
  for (const WrongRule& wrong : failing) {
    const Expected<bool> result = condition(wrong.text);
    ASSERT_FALSE(result.ok()) << wrong.text;
    EXPECT_THAT(result.error().message, HasSubstr(wrong.message)) << wrong.text;
  }
}

TEST(Instantiate, BuildsGraphsOfBothSides) {
  const FakeCatalog catalog;
  const auto rule = parsed_rules(rules_text)[0];
  const std::vector<TensorType> types = {
      {ElementType::f32, {2, 3}, true}, {ElementType::f32, {3, 4}, true}, {ElementType::f32, {3, 5}, true}};
  const Expected<Graph> source = instantiate(rule, rule.source, types, {}, catalog);
  const Expected<Graph> target = instantiate(rule, rule.target, types, {}, catalog);
  ASSERT_TRUE(source.ok() && target.ok());
  ASSERT_EQ(source->outputs().size(), 2u);
  EXPECT_EQ(source->type(source->outputs()[1]), target->type(target->outputs()[1]));
  EXPECT_EQ(source->inputs().size(), 3u);
  std::vector<TensorType> wrong = types;
  wrong[2].shape = {4, 5};
  EXPECT_FALSE(instantiate(rule, rule.source, wrong, {}, catalog).ok());
  wrong.pop_back();
  EXPECT_FALSE(instantiate(rule, rule.source, wrong, {}, catalog).ok());
}

}  // namespace
}  // namespace taso
