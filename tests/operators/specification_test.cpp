/// Specification files: what is refused and with which message, what is known of an operator after loading, and that no
/// text whatever crashes the parser.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "operators/evaluate.h"
#include "support/random.h"
#include "tests/support/cases.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

/// Specifications that are refused: specification_errors/*.cases.
///
///   error LINE:COLUMN: MESSAGE   0:0: no place in the text
///   on [2, 3] [4]                operator f is applied to inputs of these shapes: then inference or lowering is what
///   fails text:                        the specification
const test::CaseKeys& error_keys() {
  using test::CaseCount;
  using test::CaseValue;
  static const test::CaseKeys keys = {{"error", CaseValue::words, CaseCount::once},
                                      {"on", CaseValue::words, CaseCount::optional},
                                      // No operator or function is known besides.
                                      {"alone", CaseValue::none, CaseCount::optional},
                                      {"text", CaseValue::section, CaseCount::once}};
  return keys;
}

/// "[2, 3] [4]": floats of these shapes.
std::vector<TensorType> types_of(const std::string& shapes) {
  std::vector<TensorType> types;
  std::istringstream text(shapes);
  Shape shape;
  for (char letter = 0; text >> letter;) {
    if (letter == '[') {
      shape.clear();
    } else if (letter == ']') {
      types.push_back({ElementType::f32, shape, true});
    } else if (letter != ',') {
      text.putback(letter);
      std::int64_t extent = 0;
      text >> extent;
      EXPECT_FALSE(text.fail()) << shapes;
      shape.push_back(extent);
    }
  }
  return types;
}

std::string placed(const Error& error) {
  std::string text = std::to_string(error.where.line) + ":" + std::to_string(error.where.column) + ": " + error.message;
  const std::string folder = TASO_SOURCE_DIR "/specs/operators/";
  for (std::size_t at = 0; (at = text.find(folder)) != std::string::npos;) text.replace(at, folder.size(), "SPECS/");
  return text;
}

TEST(Specification, ErrorsNamePlaceAndCause) {
  const std::vector<test::TextCase> cases = test::load_cases("tests/operators/specification_errors", error_keys());
  ASSERT_GT(cases.size(), 100U);
  for (const test::TextCase& c : cases) {
    SCOPED_TRACE(c.place());
    const std::string& text = c.text("text");
    const Expected<OperatorRegistry> registry =
        OperatorRegistry::parse(text, "f.op", c.has("alone") ? nullptr : &test::registry());
    if (!c.has("on")) {
      ASSERT_FALSE(registry.ok()) << text;
      EXPECT_EQ(placed(registry.error()), c.text("error"));
      EXPECT_EQ(registry.error().code, ErrorCode::bad_input);
      continue;
    }
    ASSERT_TRUE(registry.ok()) << registry.error().to_string();
    const Expected<OperatorInstance> instance = OperatorInstance::create(*registry, "f", {}, types_of(c.text("on")));
    ASSERT_FALSE(instance.ok()) << text;
    EXPECT_EQ(placed(instance.error()), c.text("error"));
  }
}

TEST(Specification, FunctionsMayStandBehindOperators) {
  const auto registry = OperatorRegistry::parse(
      "operator one(x[D..]) -> [D..]\n  \"x.\"\n  out[I..] = x[I..]\nfunction one_less(x) = x - 1\n", "test.op",
      &test::registry());
  EXPECT_TRUE(registry) << registry.error().to_string();
}

TEST(Specification, FoldersThatHoldNothing) {
  const Expected<OperatorRegistry> absent = OperatorRegistry::load("/nonexistent/folder");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.error().to_string(),
            "/nonexistent/folder: cannot read the folder of operator specifications: No such file or directory");
  const std::filesystem::path empty = std::filesystem::path(::testing::TempDir()) / "taso_no_specifications";
  std::filesystem::create_directories(empty);
  const Expected<OperatorRegistry> nothing = OperatorRegistry::load(empty.string());
  ASSERT_FALSE(nothing.ok());
  EXPECT_EQ(nothing.error().message, "no operator specification (*.op) in this folder");
  std::filesystem::remove(empty);
}

TEST(Specification, DeclaredLawsAndFacts) {
  const OperatorRegistry& registry = test::registry();
  EXPECT_TRUE(registry.is_commutative("add") && registry.is_commutative("mul"));
  EXPECT_FALSE(registry.is_commutative("sub") || registry.is_commutative("nosuch"));
  EXPECT_TRUE(registry.is_associative("concat"));
  EXPECT_FALSE(registry.is_associative("add"));
  ASSERT_NE(registry.pieces("split"), nullptr);
  EXPECT_EQ(registry.pieces("split")->sizes, "sizes");
  EXPECT_EQ(registry.pieces("split")->axis, "axis");
  EXPECT_EQ(registry.pieces("concat"), nullptr);
  EXPECT_TRUE(registry.is_function("relu") && registry.is_function("identity"));
  EXPECT_FALSE(registry.is_function("pow")) << "an attribute names a function of one parameter";
  EXPECT_FALSE(registry.is_function("window"));
  const FunctionDefinition& relu = *registry.find_function("relu");
  EXPECT_TRUE(relu.zero_at_zero && relu.monotone && relu.idempotent && !relu.definition);
  const FunctionDefinition& gelu = *registry.find_function("gelu");
  EXPECT_TRUE(gelu.zero_at_zero && !gelu.monotone && gelu.definition);
}

/// A declared fact is a promise to provers: the real functions keep it on a grid.
// A domain is where a function has values: no more, no less.
TEST(Specification, DomainsOfFunctionsAreTried) {
  const std::string no_value = " has no value at x = ", has_value = " has a value at x = ";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"log(x)", "'log'" + no_value + "0.0, which its domain does not exclude; 'on_positive' would"},
      {"log(x): on_nonnegative", "'log'" + no_value + "0.0, which its domain does not exclude; 'on_positive' would"},
      {"log(x): on_nonzero", "'log'" + no_value + "-0.1, which its domain does not exclude; 'on_positive' would"},
      {"log(x): on_positive", ""},
      {"sqrt(x)", "'sqrt'" + no_value + "-0.1, which its domain does not exclude; 'on_nonnegative' would"},
      {"sqrt(x): on_nonzero", "'sqrt'" + has_value + "0.0, which its domain excludes"},
      {"sqrt(x): on_positive", "'sqrt'" + has_value + "0.0, which its domain excludes"},
      {"sqrt(x): on_nonnegative", ""},
      {"abs(x): on_nonzero", "'abs'" + has_value + "0.0, which its domain excludes"},
      {"abs(x)", ""},
      {"same(x) = x : on_positive", "'same'" + has_value + "0.0, which its domain excludes"},
      {"inverse(x) = 1 / x : on_positive", "'inverse'" + has_value + "-0.1, which its domain excludes"},
      {"inverse(x) = 1 / x : on_nonzero", ""},
      {"pow(x, y): on_positive", ""},
      {"atan2(x, y)", ""},
  };
  for (const auto& [text, message] : cases) {
    SCOPED_TRACE(text);
    const auto registry = OperatorRegistry::parse("function " + text + "\n", "f.op");
    EXPECT_EQ(registry ? "" : registry.error().message, message);
  }
  for (const char* text : {"pow(x, y)", "pow(x, y): on_nonzero", "pow(x, y): on_nonnegative"}) {
    const auto registry = OperatorRegistry::parse("function " + std::string(text) + "\n", "f.op");
    ASSERT_FALSE(registry) << text;
    EXPECT_THAT(registry.error().message,
                ::testing::HasSubstr("which its domain does not exclude; 'on_positive' would"));
  }
}

TEST(Specification, FactsOfFunctionsHold) {
  std::string text;
  for (const auto& [name, function] : test::registry().functions())
    if (function.arity == 1 && function.is_real())
      text += "operator apply_" + name + "(x[n]) -> [n]\n  out[i] = " + name + "(x[i])\n";
  const OperatorRegistry registry = OperatorRegistry::parse(text, "apply.op", &test::registry()).value();
  RingTensor<double> grid;
  for (int i = 0; i <= 400; ++i) grid.elements.push_back((i - 200) / 16.0);
  grid.shape = {static_cast<std::int64_t>(grid.elements.size())};
  const std::vector<TensorType> types = {{ElementType::f32, grid.shape, true}};
  auto apply = [&](const std::string& name, const RingTensor<double>& x) {
    const OperatorInstance instance = OperatorInstance::create(registry, "apply_" + name, {}, types).value();
    DoubleRing ring;
    const RingTensor<double>* pointer = &x;
    return evaluate(instance, ring, std::span<const RingTensor<double>* const>(&pointer, 1)).value()[0];
  };
  for (const auto& [name, function] : test::registry().functions()) {
    if (function.arity != 1 || !function.is_real()) continue;
    SCOPED_TRACE(name);
    const RingTensor<double> y = apply(name, grid);
    EXPECT_TRUE(!function.zero_at_zero || y.elements[200] == 0);
    if (function.monotone) {
      for (std::size_t i = 1; i < y.elements.size(); ++i)
        EXPECT_FALSE(y.elements[i] < y.elements[i - 1]) << "at " << grid.elements[i];
    }
    if (function.idempotent) {
      const RingTensor<double> again = apply(name, y);
      EXPECT_EQ(again.elements, y.elements);
    }
  }
}

TEST(Specification, SignatureForTheGraphLayer) {
  const OperatorRegistry& registry = test::registry();
  EXPECT_EQ(registry.signature("nosuch"), nullptr);
  const OperatorSignature& conv = *registry.signature("conv2d_bias_act");
  EXPECT_EQ(conv.min_inputs, 3U);
  EXPECT_EQ(conv.max_inputs, 3U);
  ASSERT_EQ(conv.attributes.size(), 4U);
  EXPECT_EQ(conv.attributes[3].name, "act");
  EXPECT_EQ(conv.attributes[3].kind, AttributeKind::symbol);
  EXPECT_EQ(conv.attributes[3].default_value, AttributeValue(SymbolValue{"identity"}));
  const OperatorSignature& concat = *registry.signature("concat");
  EXPECT_EQ(concat.min_inputs, 1U);
  EXPECT_EQ(concat.max_inputs, OperatorSignature::unlimited);
  EXPECT_FALSE(concat.attributes[0].default_value.has_value());
}

TEST(Specification, UnknownOperator) {
  EXPECT_EQ(test::registry().complete("nosuch", {}).error().message, "unknown operator 'nosuch'");
  EXPECT_EQ(test::registry().infer("nosuch", {}, {}).error().message, "unknown operator 'nosuch'");
  EXPECT_EQ(test::registry().work("nosuch", {}, {}).error().message, "unknown operator 'nosuch'");
}

TEST(Specification, UnknownShapesAreRefused) {
  const TensorType unknown{ElementType::f32, {}, false};
  EXPECT_EQ(test::registry().infer("relu", {}, std::vector<TensorType>{unknown}).error().message,
            "relu: the shape of x is not known");
}

TEST(Specification, ElementTypeOfOutputs) {
  const std::vector<TensorType> inputs = {{ElementType::f16, {4, 2}, true}, {ElementType::i32, {3}, true}};
  const auto outputs = test::registry().infer("gather", {{"axis", std::int64_t{-2}}}, inputs).value();
  EXPECT_EQ(outputs[0], (TensorType{ElementType::f16, {3, 2}, true}));
}

TEST(AxisFacts, FollowFromTheSpelling) {
  auto facts = [](const char* op) { return axis_facts(*test::registry().find(op)); };
  EXPECT_EQ(facts("relu"), (std::vector<AxisFact>{{-1, 0, -1, true}}));
  EXPECT_EQ(facts("add"), (std::vector<AxisFact>{{-1, 0, -1, true}, {-1, 1, -1, true}}));
  EXPECT_EQ(facts("matmul"),
            (std::vector<AxisFact>{{-2, 0, -2, false}, {-3, 0, -3, true}, {-1, 1, -1, false}, {-3, 1, -3, true}}));
  EXPECT_EQ(facts("conv2d"), (std::vector<AxisFact>{{-4, 0, -4, false}, {-3, 1, -4, false}}));
  EXPECT_EQ(facts("concat"), std::vector<AxisFact>());
}

/// Every fact holds wherever inference succeeds: the cases above are spelled out, this is the meaning.
TEST(AxisFacts, HoldForShapes) {
  const OperatorRegistry& registry = test::registry();
  Random random(3);
  int checked = 0;
  for (const std::string& name : registry.names()) {
    const OperatorDefinition& definition = *registry.find(name);
    const std::vector<AxisFact> facts = axis_facts(definition);
    const Expected<Attributes> attributes = registry.complete(name, {});
    if (facts.empty() || !attributes) continue;
    for (int round = 0; round < 600; ++round) {
      std::vector<TensorType> inputs(definition.inputs.size());
      const std::uint64_t rank = random.below(5);
      for (TensorType& input : inputs) {
        const std::uint64_t own = random.below(2) == 0 ? rank : random.below(5);
        for (std::uint64_t i = 0; i < own; ++i) input.shape.push_back(1 + static_cast<std::int64_t>(random.below(2)));
      }
      const auto outputs = registry.infer(name, *attributes, inputs);
      if (!outputs) continue;
      ++checked;
      const auto output_rank = static_cast<int>((*outputs)[0].shape.size());
      for (const AxisFact& fact : facts) {
        const Shape& shape = inputs[fact.input].shape;
        const auto input_rank = static_cast<int>(shape.size());
        for (int i = 0; i == 0 || fact.and_outer; ++i) {
          const int o = output_rank + fact.output_axis - i, a = input_rank + fact.input_axis - i;
          if (o < 0 || a < 0) break;
          EXPECT_EQ((*outputs)[0].shape[static_cast<std::size_t>(o)], shape[static_cast<std::size_t>(a)])
              << name << " input " << fact.input << " axis " << fact.input_axis << " round " << round;
        }
      }
    }
  }
  EXPECT_GT(checked, 500);
}

/// Texts that are almost specifications: the shipped files with bytes and whole tokens exchanged, repeated and dropped.
TEST(Specification, MutatedTextsAreRefusedOrWork) {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(TASO_SOURCE_DIR "/specs/operators")) {
    std::ifstream file(entry.path());
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::sort(texts.begin(), texts.end());
  std::ifstream functions_file(TASO_SOURCE_DIR "/specs/operators/functions.op");
  const std::string functions_text{std::istreambuf_iterator<char>(functions_file), std::istreambuf_iterator<char>()};
  const OperatorRegistry functions = OperatorRegistry::parse(functions_text, "functions.op").value();
  Random random(1);
  int accepted = 0, refused = 0;
  auto some = [&](const std::string& text) { return text.empty() ? 0 : random.below(text.size()); };
  for (int round = 0; round < 1000; ++round) {
    // One operator of a file, then a few mutations.
    const std::string& whole = texts[random.below(texts.size())];
    const std::size_t begin = whole.find("operator ", some(whole));
    std::string text = begin == std::string::npos ? whole : whole.substr(begin, whole.find("\n\n", begin) - begin);
    for (std::uint64_t count = 1 + random.below(3); count > 0 && !text.empty(); --count) {
      const std::size_t at = some(text), length = random.below(6);
      switch (random.below(5)) {
        case 0:
          text.erase(at, length);
          break;
        case 1:
          text.insert(at, text.substr(some(text), length));
          break;
        case 2:
          text[at] = "[](){}.,;:=+-*/%<>&|!\"#0129aknxI \n"[random.below(35)];
          break;
        case 3:
          text.insert(at, std::string(1, static_cast<char>(random.below(256))));
          break;
        default:
          text.resize(at);
          break;
      }
    }
    const Expected<OperatorRegistry> registry = OperatorRegistry::parse(text, "mutant.op", &functions);
    if (!registry) {
      ++refused;
      EXPECT_FALSE(registry.error().message.empty());
      continue;
    }
    ++accepted;
    // What is accepted can be applied, or says why not.
    for (const std::string& name : registry->names()) {
      const OperatorDefinition& definition = *registry->find(name);
      Attributes attributes;
      for (const AttributeSpec& attribute : definition.attributes) {
        if (attribute.default_value) continue;
        if (attribute.kind == AttributeKind::integer) attributes.set(attribute.name, std::int64_t{-1});
        if (attribute.kind == AttributeKind::real) attributes.set(attribute.name, 0.5);
        if (attribute.kind == AttributeKind::symbol) attributes.set(attribute.name, SymbolValue{"relu"});
        if (attribute.kind == AttributeKind::integers) attributes.set(attribute.name, std::vector<std::int64_t>{1, 2});
      }
      for (std::int64_t rank = 0; rank <= 4; ++rank) {
        std::vector<TensorType> inputs;
        std::vector<RingTensor<double>> tensors;
        for (const InputSpec& input : definition.inputs) {
          inputs.push_back(
              {input.integers() ? ElementType::i64 : ElementType::f32, Shape(static_cast<std::size_t>(rank), 2), true});
          tensors.push_back({inputs.back().shape, std::vector<double>(static_cast<std::size_t>(1) << rank, 0.5),
                             std::vector<std::int64_t>(static_cast<std::size_t>(1) << rank, 1)});
        }
        const Expected<OperatorInstance> instance = OperatorInstance::create(*registry, name, attributes, inputs);
        if (!instance) continue;
        std::vector<const RingTensor<double>*> pointers;
        pointers.reserve(tensors.size());
        for (const auto& tensor : tensors) pointers.push_back(&tensor);
        double elements = 0;
        for (const TensorType& type : instance->output_types()) elements += static_cast<double>(type.elements());
        if (elements > 1e5 || instance->work().flops > 1e6) continue;
        DoubleRing ring;
        const auto result = evaluate(*instance, ring, std::span<const RingTensor<double>* const>(pointers));
        EXPECT_TRUE(result.ok() || !result.error().message.empty());
      }
    }
  }
  EXPECT_GT(accepted, 50);
  EXPECT_GT(refused, 50);
}

TEST(Specification, NestingIsBounded) {
  const std::string deep(5000, '(');
  EXPECT_EQ(OperatorRegistry::parse("function f(x) = " + deep, "f.op").error().message,
            "expression nested deeper than 100");
  EXPECT_EQ(OperatorRegistry::parse("function f(x) = " + std::string(5000, '-'), "f.op").error().message,
            "expression nested deeper than 100");
  std::string sum = "x";
  for (int i = 0; i < 2000; ++i) sum += " + x";
  EXPECT_EQ(OperatorRegistry::parse("function f(x) = " + sum, "f.op").error().message,
            "an expression of more than 1000 operators");
}

TEST(TypingText, TellsWhatTypesDependOn) {
  auto text = [](const std::string& requirement, const std::string& value, const std::string& sizes) {
    const auto registry =
        OperatorRegistry::parse("operator twice(x[n, B..]) -> [m, B..]\n  \"A test.\"\n  require " + requirement +
                                    " \"too large\"\n  let m = doubled(n)\n  out[i, I..] = " + value + "\n" + sizes,
                                "test.op");
    EXPECT_TRUE(registry) << (registry ? "" : registry.error().to_string());
    return registry ? registry->typing_text("twice") : "";
  };
  const std::string sizes = "size doubled(a) = 2*a\n", given = text("n <= 9", "x[i // 2, I..]", sizes);
  EXPECT_NE(given, "");
  EXPECT_EQ(given, text("n <= 9", "x[0, I..]", sizes)) << "values are not types";
  EXPECT_EQ(given, text("n <= 9", "x[i // 2, I..]", sizes + "size other(a) = a + 1\n")) << "it is not used";
  EXPECT_NE(given, text("n <= 8", "x[i // 2, I..]", sizes));
  EXPECT_NE(given, text("n <= 9", "x[i // 2, I..]", "size doubled(a) = 2*a + 1\n"));
  EXPECT_NE(given, text("n <= 9", "x[i // 2, I..]", "size doubled(a) = same(a)\nsize same(a) = 2*a\n"));
  EXPECT_EQ(test::registry().typing_text("no_such_operator"), "");
}

}  // namespace
}  // namespace taso
