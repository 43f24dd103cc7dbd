// What follows from definitions about the dependence of outputs on inputs, as a table (dependence.cases) and in
// numbers.
//
//   operators:             more operators than those of specs/operators
//   graph:                 its one output is the application in question; operands are named as in the definition
//   in x: linear           what holds in this input, or in these together: "in x, y: affine, maxima"
//   always x: affine       the same for all attributes, where that is less
//   true x: maxima         what holds, too, and is not found
//   determines x           the outputs determine this input
//   determines_shifted x   the outputs determine it but for a shift
//
// Every input of reals, and all of them together, have a line `in`. A linear function is affine; one that preserves
// maxima is nondecreasing; neither is said twice. What numbers do not refute is claimed, or stands behind `true`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/graph_text.h"
#include "tests/operators/trait_judge.h"
#include "tests/optimizer/random_graph.h"
#include "tests/support/cases.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using Inputs = std::vector<std::size_t>;

const test::CaseKeys& keys() {
  using test::CaseCount;
  using test::CaseValue;
  static const test::CaseKeys keys = {{"operators", CaseValue::section, CaseCount::optional},
                                      {"graph", CaseValue::section, CaseCount::once},
                                      {"in", CaseValue::words, CaseCount::repeated},
                                      {"always", CaseValue::words, CaseCount::repeated},
                                      {"true", CaseValue::words, CaseCount::repeated},
                                      {"determines", CaseValue::words, CaseCount::optional},
                                      {"determines_shifted", CaseValue::words, CaseCount::optional}};
  return keys;
}

/// In the words of the table.
std::string text_of(const Dependence& d) {
  std::string text;
  auto add = [&](bool holds, const char* word) {
    if (holds) text += (text.empty() ? "" : ", ") + std::string(word);
  };
  add(d.linear, "linear");
  add(d.affine && !d.linear, "affine");
  add(d.preserves_maxima, "maxima");
  add(d.nondecreasing && !d.preserves_maxima, "nondecreasing");
  add(d.nonincreasing, "nonincreasing");
  return text.empty() ? "nothing" : text;
}

Dependence dependence_of(const std::set<std::string>& words) {
  return {.linear = words.contains("linear"),
          .affine = words.contains("linear") || words.contains("affine"),
          .nondecreasing = words.contains("maxima") || words.contains("nondecreasing"),
          .nonincreasing = words.contains("nonincreasing"),
          .preserves_maxima = words.contains("maxima")};
}

Dependence both(const Dependence& a, const Dependence& b) {
  return {.linear = a.linear || b.linear,
          .affine = a.affine || b.affine,
          .nondecreasing = a.nondecreasing || b.nondecreasing,
          .nonincreasing = a.nonincreasing || b.nonincreasing,
          .preserves_maxima = a.preserves_maxima || b.preserves_maxima};
}

/// "x, y".
std::string names_of(const OperatorDefinition& definition, const Inputs& inputs) {
  std::string text;
  for (const std::size_t input : inputs) text += (text.empty() ? "" : ", ") + definition.inputs[input].name;
  return text;
}

/// Names in front of a colon, as text, and the words behind it.
std::map<std::string, Dependence> claims_of(const test::TextCase& one, const char* key) {
  std::map<std::string, Dependence> claims;
  for (const std::string& line : one.all(key)) {
    const std::size_t colon = line.find(':');
    EXPECT_NE(colon, std::string::npos) << one.place() << ": " << line;
    if (colon == std::string::npos) continue;
    std::set<std::string> words;
    for (std::string word : test::words_of(line.substr(colon + 1))) {
      if (word.ends_with(',')) word.pop_back();
      EXPECT_THAT(word, ::testing::AnyOf("linear", "affine", "maxima", "nondecreasing", "nonincreasing", "nothing"))
          << one.place();
      words.insert(word);
    }
    claims.emplace(line.substr(0, colon), dependence_of(words));
  }
  return claims;
}

std::vector<std::string> names_behind(const test::TextCase& one, const char* key) {
  std::vector<std::string> names = test::words_of(one.text(key));
  for (std::string& name : names)
    if (name.ends_with(',')) name.pop_back();
  return names;
}

std::vector<Inputs> all_sets(const OperatorDefinition& definition) {
  std::vector<Inputs> sets;
  for (std::size_t bits = 1; bits < (std::size_t{1} << definition.inputs.size()); ++bits) {
    Inputs set;
    for (std::size_t i = 0; i < definition.inputs.size(); ++i)
      if ((bits >> i & 1) != 0) set.push_back(i);
    sets.push_back(std::move(set));
  }
  return sets;
}

OperatorRegistry registry_of(const test::TextCase& one) {
  if (!one.has("operators")) return test::registry();
  return test::value_of(OperatorRegistry::parse(one.placed("operators"), one.file, &test::registry()));
}

struct Application {
  std::string op;
  Attributes attributes;
  std::vector<TensorType> types;
};

Application application_of(const Graph& graph, const Node& node) {
  Application application{node.op, node.attributes, {}};
  for (const Value input : node.inputs) application.types.push_back(graph.type(input));
  return application;
}

class Traits : public ::testing::TestWithParam<test::TextCase> {};

TEST_P(Traits, FollowFromTheDefinitionAndHoldInNumbers) {
  const test::TextCase& one = GetParam();
  SCOPED_TRACE(one.place());
  const OperatorRegistry registry = registry_of(one);
  const Graph graph = test::value_of(parse_graph(one.placed("graph"), one.file, registry));
  ASSERT_EQ(graph.outputs().size(), 1U);
  const Application application = application_of(graph, graph.node(graph.outputs()[0].node));
  const OperatorDefinition& definition = *registry.find(application.op);
  test::TraitJudge judge(registry, application.op, application.attributes, application.types, 1);

  const auto in = claims_of(one, "in"), always = claims_of(one, "always"), also_true = claims_of(one, "true");
  std::set<std::string> known, needed;
  Inputs reals;
  for (std::size_t i = 0; i < definition.inputs.size(); ++i)
    if (!definition.inputs[i].integers()) reals.push_back(i);
  for (const std::size_t i : reals) needed.insert(definition.inputs[i].name);
  needed.insert(names_of(definition, reals));
  for (const Inputs& inputs : all_sets(definition)) {
    const std::string names = names_of(definition, inputs);
    known.insert(names);
    const Dependence found = dependence(registry, application.op, inputs, &application.attributes);
    const Dependence for_all = dependence(registry, application.op, inputs);
    const Dependence left = judge.not_refuted(inputs, 60);
    if (const auto claimed = in.find(names); claimed != in.end()) {
      EXPECT_EQ(text_of(found), text_of(claimed->second)) << "in " << names;
      const auto less = always.find(names);
      EXPECT_EQ(text_of(for_all), text_of(less == always.end() ? found : less->second)) << "always " << names;
      const auto more = also_true.find(names);
      EXPECT_EQ(text_of(left), text_of(more == also_true.end() ? found : both(found, more->second)))
          << names << ": what numbers do not refute";
    } else {
      EXPECT_FALSE(needed.contains(names)) << "there is no line: in " << names << ": " << text_of(found);
    }
    // What is claimed for all attributes holds for these, and nothing that is claimed is refuted.
    EXPECT_EQ(both(found, for_all), found) << names;
    EXPECT_EQ(both(found, left), left) << names << ": " << text_of(found) << "; not refuted: " << text_of(left);
  }
  for (const auto* claims : {&in, &always, &also_true})
    for (const auto& [names, claim] : *claims) EXPECT_TRUE(known.contains(names)) << "no inputs are " << names;

  const std::vector<std::string> determined = names_behind(one, "determines"),
                                 shifted = names_behind(one, "determines_shifted");
  for (std::size_t tensor = 0; tensor < application.types.size(); ++tensor) {
    const InputSpec& input = definition.inputs[judge.input_of(tensor)];
    const bool all = std::find(determined.begin(), determined.end(), input.name) != determined.end();
    const bool some = std::find(shifted.begin(), shifted.end(), input.name) != shifted.end();
    const Injectivity expected = all ? Injectivity::injective : some ? Injectivity::up_to_shift : Injectivity::none;
    EXPECT_EQ(injectivity(judge.instance(), tensor, registry), expected) << input.name;
    EXPECT_FALSE(judge.refutes(tensor, expected, 60)) << input.name;
    // A claim of all would be found false.
    if (some) {
      EXPECT_TRUE(judge.refutes(tensor, Injectivity::injective, 60)) << input.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, Traits,
                         ::testing::ValuesIn(test::load_cases("tests/operators/dependence.cases", keys())),
                         test::case_name);

TEST(TraitCoverage, EveryOperatorHasACase) {
  std::set<std::string> seen;
  for (const test::TextCase& one : test::load_cases("tests/operators/dependence.cases", keys())) {
    const OperatorRegistry registry = registry_of(one);
    const Graph graph = test::value_of(parse_graph(one.placed("graph"), one.file, registry));
    seen.insert(graph.node(graph.outputs()[0].node).op);
  }
  for (const std::string& name : test::registry().names())
    if (const OperatorDefinition& definition = *test::registry().find(name);
        definition.over_reals && !definition.inputs.empty()) {
      EXPECT_TRUE(seen.contains(name)) << name;
    }
}

/// A type that an input may have.
TensorType type_of(ElementDomain domain) {
  switch (domain) {
    case ElementDomain::integer:
      return {ElementType::i64, {2, 3}, true};
    case ElementDomain::boolean:
      return {ElementType::boolean, {2, 3}, true};
    case ElementDomain::real:
    case ElementDomain::any:
      break;
  }
  return {ElementType::f32, {2, 3}, true};
}

TEST(TraitCoverage, NothingFollowsOfIntegersAndTruthValues) {
  const OperatorRegistry& registry = test::registry();
  int count = 0;
  for (const std::string& name : registry.names()) {
    const OperatorDefinition& definition = *registry.find(name);
    if (definition.over_reals) continue;
    ++count;
    Attributes attributes;
    for (const AttributeSpec& attribute : definition.attributes) {
      if (attribute.element_type) attributes.set(attribute.name, SymbolValue{"f64"});
      if (attribute.name == "axis") attributes.set(attribute.name, std::int64_t{-1});
    }
    std::vector<TensorType> types;
    for (const InputSpec& input : definition.inputs) {
      types.push_back(type_of(input.domain));
      if (input.axes.empty()) types.back().shape.clear();
      if (input.axes.size() == 1 && input.axes[0].kind == AxisSpec::Kind::size) types.back().shape = {3};
    }
    const auto complete = registry.complete(name, attributes);
    ASSERT_TRUE(complete.ok()) << complete.error().to_string();
    const auto instance = OperatorInstance::create(registry, name, *complete, types);
    ASSERT_TRUE(instance.ok()) << instance.error().to_string();
    for (const Inputs& inputs : all_sets(definition))
      EXPECT_EQ(dependence(registry, name, inputs), Dependence{}) << name;
    for (std::size_t i = 0; i < types.size(); ++i)
      EXPECT_EQ(injectivity(*instance, i, registry), Injectivity::none) << name << " " << i;
  }
  EXPECT_GE(count, 35);
}

// Applications at random shapes and attributes.
TEST(TraitNumbers, NoClaimIsRefuted) {
  const OperatorRegistry& registry = test::registry();
  std::map<std::string, int> claims;
  std::set<std::string> met;
  const auto judge_all = [&](const Graph& graph, std::uint64_t seed) {
    for (const NodeId id : graph.topological_order()) {
      const Node& node = graph.node(id);
      if (node.kind != NodeKind::op || node.inputs.empty()) continue;
      const Application application = application_of(graph, node);
      met.insert(node.op);
      test::TraitJudge judge(registry, node.op, application.attributes, application.types, seed);
      SCOPED_TRACE(to_string(graph) + node.op + "(" + to_string(application.attributes) + ")");
      for (const Inputs& inputs : all_sets(*registry.find(node.op))) {
        const Dependence found = dependence(registry, node.op, inputs, &application.attributes);
        if (found == Dependence{}) continue;
        const Dependence left = judge.not_refuted(inputs, 8);
        ASSERT_EQ(both(found, left), left) << text_of(found) << "; not refuted: " << text_of(left);
        ++claims[text_of(found)];
      }
      for (std::size_t tensor = 0; tensor < application.types.size(); ++tensor) {
        const Injectivity found = injectivity(judge.instance(), tensor, registry);
        ASSERT_FALSE(judge.refutes(tensor, found, 8)) << "tensor " << tensor;
        if (found != Injectivity::none) ++claims["injectivity " + std::to_string(static_cast<int>(found))];
      }
    }
  };
  for (std::uint64_t seed = 0; seed < 120; ++seed)
    judge_all(testing::GraphGenerator(registry, seed).finish(12).graph, seed);
  // What takes many operands is drawn rarely.
  for (const std::string& name : registry.names())
    for (std::uint64_t seed = 0; seed < 60 && !met.contains(name); ++seed) {
      testing::GraphGenerator generator(registry, seed);
      if (generator.grow_by_one(name)) judge_all(generator.finish(0).graph, seed);
    }
  for (const std::string& name : registry.names())
    if (!registry.find(name)->inputs.empty() && (registry.find(name)->over_reals || registry.find(name)->moves)) {
      EXPECT_TRUE(met.contains(name)) << name;
    }
  EXPECT_GE(claims["linear"], 50);
  EXPECT_GE(claims["injectivity 2"], 50);
}

// What is not injective would be found out if it were claimed to be.
TEST(TraitNumbers, FalseInjectivityIsRefuted) {
  const std::vector<TensorType> type = {{ElementType::f32, {2, 3}, true}};
  const std::vector<std::pair<std::string, Attributes>> applications = {
      {"abs", {}},
      {"relu", {}},
      {"reduce_max", {{"axes", std::vector<std::int64_t>{-1}}}},
      {"slice",
       {{"starts", std::vector<std::int64_t>{0, 1}},
        {"sizes", std::vector<std::int64_t>{2, 2}},
        {"steps", std::vector<std::int64_t>{1, 1}}}},
      {"softmax", {{"axis", std::int64_t{-1}}}}};
  for (const auto& [op, attributes] : applications)
    EXPECT_TRUE(test::TraitJudge(test::registry(), op, attributes, type, 1).refutes(0, Injectivity::injective, 60))
        << op;
}

TEST(InjectiveFunctions, FollowFromLaws) {
  EXPECT_THAT(injective_functions(test::registry()), ::testing::ElementsAre("exp", "log", "sigmoid", "sqrt", "tanh"));
}

}  // namespace
}  // namespace taso
