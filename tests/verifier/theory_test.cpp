// What the proof from axioms is prepared with: terms that both sides share, facts of shapes; and its options.

#include "verifier/theory/theory.h"

#include <thread>

#include "operators/rank_range.h"
#include "tests/verifier/fixture.h"
#include "verifier/axiom_report.h"
#include "verifier/common_terms.h"
#include "verifier/shape_facts.h"

namespace taso {
namespace {

using testing::parse;
using testing::registry;

Substitution rule(const std::string& text) { return parse("rule r: " + text + "\n").at(0); }

TEST(SameTerm, GoesByOperatorsAttributesOperandsAndPorts) {
  const Substitution r = rule(
      "add(relu(x), relu(y)), s.0, s.1 => relu(x), t.0, t.1\n"
      "  where s = split(x; axis=-1, sizes=z), t = split(x; axis=-2, sizes=z)");
  auto node = [](const Pattern& pattern, const std::string& op, std::size_t which) {
    for (std::uint32_t i = 0; i < pattern.nodes.size(); ++i)
      if (pattern.nodes[i].op == op && which-- == 0) return i;
    return UINT32_MAX;
  };
  const std::uint32_t first = node(r.source, "relu", 0), second = node(r.source, "relu", 1);
  ASSERT_NE(second, UINT32_MAX);
  const PatternValue target{false, node(r.target, "relu", 0), 0};
  EXPECT_TRUE(same_term(r.source, {false, first, 0}, r.target, target));
  EXPECT_FALSE(same_term(r.source, {false, second, 0}, r.target, target));  // another operand
  EXPECT_FALSE(same_term(r.source, {true, 0, 0}, r.target, target));
  const std::uint32_t split = node(r.source, "split", 0);
  EXPECT_TRUE(same_term(r.source, {false, split, 1}, r.source, {false, split, 1}));
  EXPECT_FALSE(same_term(r.source, {false, split, 0}, r.source, {false, split, 1}));
  EXPECT_FALSE(same_term(r.source, {false, split, 0}, r.target, {false, node(r.target, "split", 0), 0}));  // axis
}

TEST(CommonTerms, AreReplacedByVariables) {
  const auto smaller = without_common_terms(
      rule("relu(concat(x, matmul(y, z); axis=-1)) => concat(relu(x), relu(matmul(y, z)); axis=-1)"));
  ASSERT_TRUE(smaller);
  EXPECT_EQ(smaller->source.nodes.size(), 2U);
  EXPECT_EQ(smaller->target.nodes.size(), 3U);
  for (const Pattern* pattern : {&smaller->source, &smaller->target})
    for (const PatternNode& node : pattern->nodes) EXPECT_NE(node.op, "matmul");
  // One variable for both occurrences.
  EXPECT_EQ(smaller->tensor_variables.size(), 4U);
}

TEST(CommonTerms, LargestOnly) {
  const auto smaller =
      without_common_terms(rule("neg(tanh(relu(x))) => sub(tanh(relu(x)), add(relu(x), tanh(relu(x))))"));
  ASSERT_TRUE(smaller);
  // tanh(relu(x)) and, alone, relu(x).
  EXPECT_EQ(smaller->tensor_variables.size(), 3U);
  EXPECT_EQ(smaller->source.nodes.size(), 1U);
  EXPECT_EQ(smaller->target.nodes.size(), 2U);
}

TEST(CommonTerms, NothingWhereNothingIsShared) {
  EXPECT_FALSE(without_common_terms(rule("add(x, y) => add(y, x)")));
  EXPECT_FALSE(without_common_terms(rule("relu(matmul(x, y)) => matmul(relu(x), y)")));
}

TEST(CommonTerms, ProofNeedsNoAxiomsOfThem) {
  // Nothing is known of matmul here; what follows from the rest does.
  Theory theory(registry(), parse("axiom a: add(x, y) = add(y, x)\n"), 200'000);
  EXPECT_TRUE(theory.entails(rule("add(matmul(x, y), z) => add(z, matmul(x, y))")).proved);
  EXPECT_FALSE(theory.entails(rule("add(matmul(x, y), z) => add(z, matmul(y, x))")).proved);
}

// What an application supposes is satisfiable at every rank that the definition admits.
void expect_consistent(Theory& theory, const OperatorRegistry& operators, const OperatorDefinition& definition) {
  const std::size_t operands = definition.variadic() ? 2 : definition.inputs.size();
  std::string inputs, attributes, outputs = definition.several_outputs() ? ".0" : "";
  for (std::size_t i = 0; i < operands; ++i) inputs += (i == 0 ? "x" : ", x") + std::to_string(i);
  for (const AttributeSpec& attribute : definition.attributes)
    attributes += (attributes.empty() ? "; " : ", ") + attribute.name + "=" +
                  (definition.several_outputs() && attribute.kind == AttributeKind::integers ? "[m0, m1]"
                                                                                             : "v_" + attribute.name);
  const std::string term = definition.name + "(" + inputs + attributes + ")" + outputs;
  for (std::size_t i = 0; i < operands; ++i) {
    const RankRange ranks = rank_range(definition.inputs[definition.variadic() ? 0 : i].axes);
    for (std::size_t rank = ranks.least; rank <= (ranks.only ? ranks.least : 7); ++rank) {
      const std::string text =
          "rule r: " + term + " => " + term + " if rank(x" + std::to_string(i) + ") == " + std::to_string(rank) + "\n";
      const auto rules = parse_rules(text, "test.rules", operators);
      ASSERT_TRUE(rules) << text << rules.error().to_string();
      EXPECT_FALSE(theory.contradicts(rules->at(0))) << text;
    }
  }
}

TEST(Consistency, OfWhatEveryOperatorSupposesAtEveryRank) {
  Theory theory(registry(), {}, 60'000);
  for (const std::string& name : registry().names()) expect_consistent(theory, registry(), *registry().find(name));
}

TEST(Consistency, OfOperatorsOfTomorrow) {
  const auto extended = OperatorRegistry::parse(
      "operator three(x[A.., C..(2), n], y[C..]) -> [A.., n]\n  \"A rest of known length.\"\n"
      "  out[I.., i] = sum(K.. < C) x[I.., K.., i] * y[K..]\n"
      "operator inner(x[A.., n], y[A.., n, m]) -> [A.., m]\n  \"One rest at two places.\"\n"
      "  out[I.., j] = sum(t < n) x[I.., t] * y[I.., t, j]\n",
      "test.op", &registry());
  ASSERT_TRUE(extended) << extended.error().to_string();
  Theory theory(*extended, {}, 60'000);
  for (const char* name : {"three", "inner"}) expect_consistent(theory, *extended, *extended->find(name));
}

TEST(Consistency, ContradictionsProveNothing) {
  Theory theory(registry(), {}, 200'000);
  const Substitution no_such = rule("relu(matmul(x, y)) => tanh(matmul(x, y)) if rank(x) == 1");
  EXPECT_TRUE(theory.contradicts(no_such));
  const Entailment entailment = theory.entails(no_such);
  EXPECT_FALSE(entailment.proved);
  EXPECT_THAT(entailment.reason, ::testing::HasSubstr("contradict each other"));
  for (const char* text : {"relu(matmul(x, y)) => tanh(matmul(x, y)) if rank(x) == 2",
                           "relu(softmax(x; axis=-1)) => tanh(softmax(x; axis=-1)) if rank(x) == 1",
                           "relu(gather(x, i; axis=-1)) => tanh(gather(x, i; axis=-1)) if rank(x) == 1"})
    EXPECT_FALSE(theory.entails(rule(text)).proved) << text;
}

TEST(EntailmentOptions, BriefSaysNoWhereThereIsNoProof) {
  Theory theory(registry(), parse("axiom a: add(x, y) = add(y, x)\n"), 200'000);
  EXPECT_TRUE(theory.entails(rule("add(x, y) => add(y, x)"), {.brief = true}).proved);
  const Entailment no = theory.entails(rule("sub(x, y) => sub(y, x)"), {.brief = true});
  EXPECT_FALSE(no.proved);
  EXPECT_NE(no.reason, "");
}

// An axiom without what is recorded of it.
Substitution unrecorded(Substitution axiom) {
  axiom.facts.clear();
  return axiom;
}

TEST(ShapeFactsTable, ThreadsFindTheSame) {
  std::vector<Substitution> axioms;
  for (std::size_t i = 0; i < testing::axioms().size(); i += 12) axioms.push_back(unrecorded(testing::axioms()[i]));
  std::vector<const Substitution*> some;
  for (const Substitution& axiom : axioms) some.push_back(&axiom);
  ShapeFactsTable table(registry()), alone(registry());
  std::vector<std::vector<const ShapeFacts*>> found(3);
  std::vector<std::thread> threads;
  for (auto& result : found) threads.emplace_back([&] { result = table.of(some); });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < some.size(); ++i) {
    EXPECT_EQ(found[0][i], found[1][i]);
    EXPECT_EQ(found[0][i], &table.of(*some[i]));
    EXPECT_EQ(found[2][i]->result_shapes, alone.of(*some[i]).result_shapes) << some[i]->name;
    EXPECT_EQ(found[2][i]->may_differ, alone.of(*some[i]).may_differ) << some[i]->name;
  }
}

// The record stands for the search: what it says is what is found.
TEST(ShapeFacts, ShippedRecordIsUpToDate) {
  ShapeFactsTable table(registry());
  for (const Substitution& axiom : testing::axioms()) {
    if (!axiom.is_axiom) continue;
    const std::optional<ShapeFacts> recorded = table.recorded(axiom);
    ASSERT_TRUE(recorded) << axiom.name << ": run taso-verify specs/axioms --record-facts";
    const ShapeFacts found = table.of(unrecorded(axiom));
    EXPECT_EQ(recorded->result_shapes, found.result_shapes) << axiom.name;
    EXPECT_EQ(recorded->may_differ, found.may_differ) << axiom.name;
    EXPECT_EQ(table.line(axiom, *recorded), axiom.facts);
  }
}

// Its uses are examined anew by taso-verify --report; here, of a few.
TEST(ShapeFacts, ShippedRecordGuardsWhatMayBeIllTyped) {
  ShapeFactsTable table(registry());
  LoweredCache cache(registry());
  for (std::size_t i = 0; i < testing::axioms().size(); i += 31) {
    const Substitution& axiom = testing::axioms()[i];
    if (!axiom.is_axiom) continue;
    const auto use = unguarded_use(registry(), axiom, table.of(axiom), cache);
    EXPECT_FALSE(use) << axiom.name << (use->left_to_right ? " from left to right at " : " from right to left at ")
                      << use->types;
  }
}

TEST(ShapeFacts, AnotherAxiomHasNoUseForARecord) {
  const auto parsed = testing::parse("axiom a: add(x, y) = add(y, x)\naxiom b: mul(x, y) = mul(y, x)\n");
  ShapeFactsTable table(registry());
  Substitution axiom = parsed[0];
  EXPECT_FALSE(table.recorded(axiom));
  axiom.facts = table.line(axiom, table.examine(axiom, 20));
  ASSERT_TRUE(table.recorded(axiom));
  EXPECT_EQ(table.recorded(axiom)->may_be_ill_typed[0], std::vector<bool>{false});
  Substitution other = parsed[1];
  other.facts = axiom.facts;
  EXPECT_FALSE(table.recorded(other));
  // Without a record every use asks for types.
  EXPECT_EQ(table.of(other).may_be_ill_typed[0], std::vector<bool>{true});
  EXPECT_EQ(table.of(other).may_be_ill_typed[1], std::vector<bool>{true});
}

TEST(ShapeFacts, LinesAreReadAsTheyAreWritten) {
  const Substitution axiom = testing::parse("axiom a: reshape(add(x, y); shape=s) = add(reshape(x; shape=s), y)")[0];
  ShapeFactsTable table(registry());
  ShapeFacts facts;
  facts.may_differ = true;
  facts.result_shapes = {{0}};
  facts.may_be_ill_typed[0] = {true};
  facts.may_be_ill_typed[1] = {false};
  Substitution recorded = axiom;
  recorded.facts = table.line(axiom, facts);
  EXPECT_THAT(recorded.facts, ::testing::EndsWith(" differ shape=0:0 ill-typed=left:0"));
  EXPECT_EQ(table.recorded(recorded), facts);
  const auto lines = read_shape_facts("# a comment\n\n" + recorded.facts + "\n", "a.facts");
  ASSERT_TRUE(lines);
  EXPECT_EQ(lines->at("a"), recorded.facts);
}

TEST(ShapeFacts, WrongLinesAreRefused) {
  const std::string key(32, '0');
  const std::vector<std::string> wrong = {"a",
                                          "a 12",
                                          "a " + std::string(32, 'g'),
                                          "a " + key + " differs",
                                          "a " + key + " shape=0",
                                          "a " + key + " shape=0:x",
                                          "a " + key + " ill-typed=up:0",
                                          "a " + key + " ill-typed=left:",
                                          "a " + key + "\na " + key};
  for (const std::string& line : wrong) {
    const auto lines = read_shape_facts("# a comment\n" + line + "\n", "a.facts");
    ASSERT_FALSE(lines) << line;
    EXPECT_THAT(lines.error().to_string(), ::testing::StartsWith("a.facts:")) << line;
  }
}

}  // namespace
}  // namespace taso
