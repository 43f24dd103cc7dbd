// Every operator against OPERATOR.cases of its folder: types, values over several rings, work, and of shipped operators
// one failing case for every numbered constraint.
//
//   apply op(x, y; attribute=value)
//   input x [2] = 1 2         shape and elements; without '=' only the type counts; "x i64 [2]" gives another type
//   output [2] = 4 6          what comes out; one line for each output
//   also integer, field       the result is the same over the exact integers, and modulo 2^61-1
//   flops 2                   the work
//   bytes 16 8                bytes read and written
//   error MESSAGE             instead of outputs
#include "tests/support/cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "graph/graph_text.h"
#include "graph/reals.h"
#include "graph/words.h"
#include "operators/element_evaluator.h"
#include "operators/evaluate.h"
#include "operators/unfold.h"
#include "support/lexer.h"
#include "tests/support/graphs.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

struct Tensor {
  std::string name;
  TensorType type;
  std::optional<std::vector<double>> elements;
  std::vector<std::int64_t> words;  ///< The elements, exactly, where they are integers or truth values.
};

/// Cases, and the operators that they are of.
struct Folder {
  std::string cases;
  const OperatorRegistry* registry;
};

/// The shipped operators, and those of folders that are added to them, in specifications of their own.
const std::vector<Folder>& folders() {
  static const std::vector<OperatorRegistry> added = [] {
    std::vector<OperatorRegistry> result;
    for (const std::string folder : {"tests/data/composition", "tests/data/recurrences", "specs/gradients"})
      result.push_back(
          OperatorRegistry::load(std::string(TASO_SOURCE_DIR) + "/" + folder + "/operators", &test::registry())
              .value());
    return result;
  }();
  static const std::vector<Folder> all = {{"tests/operators/cases", &test::registry()},
                                          {"tests/data/composition/cases", &added[0]},
                                          {"tests/data/recurrences/cases", &added[1]},
                                          {"tests/gradients/cases", &added[2]}};
  return all;
}

struct Case {
  test::TextCase source;
  const OperatorRegistry* registry = nullptr;
  std::string op;
  std::vector<std::string> arguments;
  Attributes attributes;
  std::vector<Tensor> inputs, outputs;
  std::set<std::string> also;
  std::optional<double> flops, bytes_read, bytes_written;
  std::optional<std::string> error;
};

const test::CaseKeys& operator_keys() {
  using test::CaseCount;
  using test::CaseValue;
  static const test::CaseKeys keys = {
      {"apply", CaseValue::words, CaseCount::once},      {"input", CaseValue::words, CaseCount::repeated},
      {"output", CaseValue::words, CaseCount::repeated}, {"also", CaseValue::words, CaseCount::optional},
      {"flops", CaseValue::number, CaseCount::optional}, {"bytes", CaseValue::words, CaseCount::optional},
      {"error", CaseValue::words, CaseCount::optional}};
  return keys;
}

/// op(x, y; a=1, b=[1, 2], c=relu)
void parse_application(const std::string& text, Case& c) {
  TokenCursor cursor(tokenize(text, c.source.file).value());
  c.op = cursor.expect_identifier("an operator").value();
  ASSERT_TRUE(cursor.accept("("));
  while (!cursor.at(";") && !cursor.at(")")) {
    c.arguments.push_back(cursor.expect_identifier("an input").value());
    cursor.accept(",");
  }
  if (cursor.accept(";")) {
    do {
      const std::string name = cursor.expect_identifier("an attribute").value();
      ASSERT_TRUE(cursor.accept("="));
      if (cursor.accept("[")) {
        std::vector<std::int64_t> list;
        while (!cursor.accept("]")) {
          list.push_back(cursor.expect_integer("an integer").value());
          cursor.accept(",");
        }
        c.attributes.set(name, list);
      } else if (cursor.peek().kind == TokenKind::identifier) {
        c.attributes.set(name, SymbolValue{cursor.next().text});
      } else if (cursor.peek(cursor.at("-") ? 1 : 0).kind == TokenKind::real) {
        const double sign = cursor.accept("-") ? -1 : 1;
        c.attributes.set(name, sign * std::strtod(cursor.next().text.c_str(), nullptr));
      } else {
        c.attributes.set(name, cursor.expect_integer("a value").value());
      }
    } while (cursor.accept(","));
  }
  ASSERT_TRUE(cursor.accept(")"));
}

/// [NAME] [TYPE] [extents] = elements
Tensor parse_tensor(const std::string& line) {
  Tensor tensor;
  std::istringstream words(line.substr(0, line.find('[')));
  std::string type;
  words >> tensor.name >> type;
  // An output has no name.
  if (type.empty() && element_type_named(tensor.name)) std::swap(type, tensor.name);
  if (!type.empty()) tensor.type.element = element_type_named(type).value();
  const std::size_t open = line.find('['), close = line.find(']');
  std::string extents = line.substr(open + 1, close - open - 1);
  for (char& letter : extents)
    if (letter == ',') letter = ' ';
  std::istringstream numbers(extents);
  for (std::int64_t extent = 0; numbers >> extent;) tensor.type.shape.push_back(extent);
  const std::size_t equals = line.find('=', close);
  if (equals != std::string::npos) {
    tensor.elements.emplace();
    std::istringstream values(line.substr(equals + 1));
    for (std::string value; values >> value;) {
      tensor.elements->push_back(std::strtod(value.c_str(), nullptr));
      if (!is_word(tensor.type.element)) continue;
      tensor.words.push_back(value.starts_with("-")
                                 ? std::strtoll(value.c_str(), nullptr, 10)
                                 : static_cast<std::int64_t>(std::strtoull(value.c_str(), nullptr, 10)));
    }
  }
  return tensor;
}

Case parse_case(const test::TextCase& text) {
  Case c;
  c.source = text;
  parse_application(text.text("apply"), c);
  for (const std::string& line : text.all("input")) c.inputs.push_back(parse_tensor(line));
  for (const std::string& line : text.all("output")) c.outputs.push_back(parse_tensor(line));
  for (std::string word : test::words_of(text.text("also"))) {
    if (word.ends_with(',')) word.pop_back();
    EXPECT_THAT(word, ::testing::AnyOf("integer", "field")) << text.place();
    c.also.insert(word);
  }
  if (text.has("flops")) c.flops = text.number("flops");
  if (text.has("bytes")) {
    const std::vector<std::string> bytes = test::words_of(text.text("bytes"));
    EXPECT_EQ(bytes.size(), 2U) << text.place();
    c.bytes_read = std::stod(bytes.front());
    c.bytes_written = std::stod(bytes.back());
  }
  if (text.has("error")) c.error = text.text("error");
  EXPECT_NE(c.error.has_value(), !c.outputs.empty()) << text.place() << ": a case has outputs or an error";
  return c;
}

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> result;
    for (const Folder& folder : folders())
      for (const test::TextCase& text : test::load_cases(folder.cases, operator_keys())) {
        result.push_back(parse_case(text));
        result.back().registry = folder.registry;
      }
    return result;
  }();
  return cases;
}

class OperatorCases : public ::testing::TestWithParam<std::size_t> {
 protected:
  const Case& current() const { return all_cases()[GetParam()]; }

  std::vector<TensorType> types() const {
    std::vector<TensorType> result;
    for (const std::string& argument : current().arguments)
      for (const Tensor& input : current().inputs)
        if (input.name == argument) result.push_back(input.type);
    EXPECT_EQ(result.size(), current().arguments.size()) << "an input is not given";
    return result;
  }

  bool has_values() const {
    for (const Tensor& input : current().inputs)
      if (!input.elements) return false;
    return true;
  }

  template <class Ring>
  Expected<std::vector<RingTensor<typename Ring::Element>>> run(const OperatorInstance& instance, Ring& ring) const {
    using Element = typename Ring::Element;
    const std::vector<RingTensor<Element>> given = tensors(ring);
    std::vector<const RingTensor<Element>*> pointers;
    pointers.reserve(given.size());
    for (const auto& tensor : given) pointers.push_back(&tensor);
    return evaluate(instance, ring, std::span<const RingTensor<Element>* const>(pointers));
  }

  /// What the case gives, in the order of the arguments.
  template <class Ring>
  std::vector<RingTensor<typename Ring::Element>> tensors(Ring& ring) const {
    using Element = typename Ring::Element;
    std::vector<RingTensor<Element>> tensors;
    for (const std::string& argument : current().arguments)
      for (const Tensor& input : current().inputs) {
        if (input.name != argument) continue;
        RingTensor<Element> tensor;
        tensor.shape = input.type.shape;
        tensor.integers = input.words;
        if (!is_word(input.type.element))
          for (const double value : *input.elements) tensor.elements.push_back(ring.number(value));
        tensors.push_back(std::move(tensor));
      }
    return tensors;
  }
};

TEST_P(OperatorCases, Agree) {
  const Case& c = current();
  SCOPED_TRACE(c.source.place() + " " + c.source.name);
  const OperatorRegistry& registry = *c.registry;
  ASSERT_TRUE(registry.defines(c.op));
  EXPECT_EQ(c.op + ".cases", std::filesystem::path(c.source.file).filename());
  const Expected<Attributes> complete = registry.complete(c.op, c.attributes);
  if (c.error && !complete) {
    EXPECT_EQ(complete.error().message, *c.error);
    EXPECT_EQ(complete.error().code, ErrorCode::bad_input);
    return;
  }
  ASSERT_TRUE(complete.ok()) << complete.error().to_string();
  EXPECT_EQ(registry.complete(c.op, *complete).value(), *complete) << "complete() is idempotent";
  const Expected<std::vector<TensorType>> inferred = registry.infer(c.op, *complete, types());
  if (c.error && !inferred) {
    EXPECT_EQ(inferred.error().message, *c.error);
    EXPECT_EQ(inferred.error().code, ErrorCode::bad_input);
    EXPECT_FALSE(OperatorInstance::create(registry, c.op, *complete, types()).ok());
    return;
  }
  ASSERT_TRUE(inferred.ok()) << inferred.error().to_string();
  const Expected<OperatorInstance> instance = OperatorInstance::create(registry, c.op, *complete, types());
  ASSERT_TRUE(instance.ok()) << instance.error().to_string();
  EXPECT_EQ(instance->output_types(), *inferred);
  if (c.error) {
    DoubleRing ring;
    const auto result = run(*instance, ring);
    ASSERT_FALSE(result.ok()) << "expected: " << *c.error;
    EXPECT_EQ(result.error().message, *c.error);
    return;
  }
  ASSERT_EQ(inferred->size(), c.outputs.size());
  EXPECT_EQ(registry.output_count(c.op, *complete), c.outputs.size());
  for (std::size_t i = 0; i < c.outputs.size(); ++i) EXPECT_EQ((*inferred)[i], c.outputs[i].type);
  EXPECT_EQ(instance->work().flops, c.flops.value_or(instance->work().flops));
  EXPECT_EQ(instance->work().bytes_read, c.bytes_read.value_or(instance->work().bytes_read));
  EXPECT_EQ(instance->work().bytes_written, c.bytes_written.value_or(instance->work().bytes_written));
  if (!has_values()) return;

  DoubleRing doubles;
  const auto result = run(*instance, doubles);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  for (std::size_t i = 0; i < c.outputs.size(); ++i) {
    if (is_word(c.outputs[i].type.element)) {
      EXPECT_EQ((*result)[i].integers, c.outputs[i].words) << "output " << i;
      EXPECT_TRUE((*result)[i].elements.empty()) << "output " << i;
      continue;
    }
    ASSERT_EQ((*result)[i].elements.size(), c.outputs[i].elements->size());
    for (std::size_t j = 0; j < c.outputs[i].elements->size(); ++j) {
      const double expected = (*c.outputs[i].elements)[j], actual = (*result)[i].elements[j];
      // Some expectations were computed in single precision.
      const double tolerance = std::isinf(expected) ? 0 : 2e-7 + 2e-6 * std::fabs(expected);
      EXPECT_TRUE(actual == expected || std::fabs(actual - expected) <= tolerance)
          << "output " << i << " element " << j << " is " << actual << ", expected " << expected;
    }
  }
  if (c.also.empty()) return;
  IntegerRing integers;
  const auto whole = run(*instance, integers);
  ASSERT_TRUE(whole.ok()) << whole.error().to_string();
  for (std::size_t i = 0; i < c.outputs.size(); ++i)
    for (std::size_t j = 0; j < c.outputs[i].elements->size(); ++j)
      EXPECT_EQ(static_cast<double>((*whole)[i].elements[j]), (*c.outputs[i].elements)[j])
          << "over the integers, output " << i << " element " << j;
  if (!c.also.contains("field")) return;
  FieldRing field(1);
  const auto residues = run(*instance, field);
  ASSERT_TRUE(residues.ok()) << residues.error().to_string();
  for (std::size_t i = 0; i < c.outputs.size(); ++i)
    for (std::size_t j = 0; j < c.outputs[i].elements->size(); ++j)
      EXPECT_EQ((*residues)[i].elements[j], Mod61(static_cast<std::int64_t>((*whole)[i].elements[j])))
          << "over GF(2^61-1), output " << i << " element " << j;
}

// Single elements are those of the whole, over every ring: the same numbers are added in the same order, but for sums
// over a window of which the whole leaves out what lies outside.
TEST_P(OperatorCases, SingleElementsAgree) {
  const Case& c = current();
  if (c.error || !has_values()) return;
  SCOPED_TRACE(c.source.place() + " " + c.source.name);
  const OperatorRegistry& registry = *c.registry;
  Graph graph;
  std::vector<std::vector<double>> reals;
  std::vector<std::vector<std::int64_t>> integers;
  std::vector<Value> values;
  DoubleRing ring;
  for (const RingTensor<double>& tensor : tensors(ring)) {
    reals.push_back(tensor.elements);
    integers.push_back(tensor.integers);
  }
  std::vector<TensorElements> elements;
  std::vector<TensorType> whole_types = types();
  for (std::size_t i = 0; i < whole_types.size(); ++i) {
    const bool real = is_real(whole_types[i].element);
    const TensorType type{real ? ElementType::f64 : ElementType::i64, whole_types[i].shape, true};
    elements.push_back(
        {type, real ? std::as_bytes(std::span(reals[i])) : std::as_bytes(std::span(integers[i])), false});
    values.push_back({graph.add_input("in" + std::to_string(i), whole_types[i]), 0});
  }
  const Expected<NodeId> node = add_op(graph, registry, c.op, c.attributes, values);
  ASSERT_TRUE(node.ok()) << node.error().to_string();
  const OperatorInstance instance =
      OperatorInstance::create(registry, c.op, graph.node(*node).attributes, whole_types).value();
  const auto whole = run(instance, ring);
  ASSERT_TRUE(whole.ok()) << whole.error().to_string();
  if (!registry.find(c.op)->over_reals) {
    // Of reals alone.
    ElementEvaluator<DoubleRing> evaluator(graph, registry, ring, elements);
    if (is_word(graph.type({*node, 0}).element) || whole->at(0).elements.empty()) return;
    const Expected<double> element = evaluator.at({*node, 0}, 0);
    ASSERT_FALSE(element.ok());
    EXPECT_EQ(element.error().message, c.op + " computes with integers or truth values");
    return;
  }
  ElementEvaluator<DoubleRing> evaluator(graph, registry, ring, elements);
  for (std::uint32_t port = 0; port < whole->size(); ++port)
    for (std::size_t k = (*whole)[port].elements.size(); k-- > 0;) {
      const Expected<double> element = evaluator.at({*node, port}, static_cast<std::int64_t>(k));
      ASSERT_TRUE(element.ok()) << element.error().to_string();
      const double expected = (*whole)[port].elements[k];
      EXPECT_TRUE(*element == expected || std::abs(*element - expected) <= 1e-12 * std::abs(expected))
          << "output " << port << " element " << k << " is " << *element << ", expected " << expected;
    }
}

TEST(ElementEvaluator, ComputesWhatIsAskedForAndNoMore) {
  const Graph graph = test::graph_of("input x f32[100, 50]\noutput relu(matmul(x, transpose(x; perm=[1, 0])))\n");
  std::vector<float> floats(5000);
  for (std::size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(i % 7) - 3;
  const TensorElements x{{ElementType::f32, {100, 50}, true}, std::as_bytes(std::span(floats)), false};
  DoubleRing ring;
  ElementEvaluator<DoubleRing> evaluator(graph, test::registry(), ring, std::span(&x, 1));
  double expected = 0;
  for (std::size_t i = 0; i < 50; ++i)
    expected += static_cast<double>(floats[3 * 50 + i]) * static_cast<double>(floats[8 * 50 + i]);
  EXPECT_EQ(evaluator.at(graph.outputs()[0], 308).value(), std::max(0.0, expected));
  EXPECT_EQ(evaluator.reads(), 2 + 50 * 3)
      << "itself, relu's operand; of each product x and a transposed x, which reads x";
  EXPECT_EQ(evaluator.at(graph.outputs()[0], 308).value(), std::max(0.0, expected));
  EXPECT_EQ(evaluator.reads(), 3 + 50 * 3) << "it is known";
  evaluator.allow(10);
  const auto more = evaluator.at(graph.outputs()[0], 309);
  ASSERT_FALSE(more.ok());
  EXPECT_TRUE(evaluator.exhausted());
  EXPECT_EQ(more.error().message, "more elements are read than allowed");
  evaluator.allow(1000);
  EXPECT_TRUE(evaluator.at(graph.outputs()[0], 309).ok());
}

// Integers that operators copy say places as those of an input do.
TEST(ElementEvaluator, LooksUpIntegersThatAreCopied) {
  const Graph graph = test::graph_of(
      "input x f32[4, 2]\ninput i i64[2, 3]\ns = split(transpose(i; perm=[1, 0]); axis=-2, sizes=[1, 2])\n"
      "output gather(x, s.1; axis=-2)\n");
  const std::vector<float> floats = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<std::int64_t> integers = {0, 1, 2, 3, -1, -2};
  const TensorElements inputs[] = {{{ElementType::f32, {4, 2}, true}, std::as_bytes(std::span(floats)), false},
                                   {{ElementType::i64, {2, 3}, true}, std::as_bytes(std::span(integers)), false}};
  DoubleRing ring;
  ElementEvaluator<DoubleRing> evaluator(graph, test::registry(), ring, inputs);
  const std::vector<double> expected = {2, 3, 6, 7, 4, 5, 4, 5};  // Rows 1, -1, 2, -2.
  for (std::size_t k = 0; k < expected.size(); ++k)
    EXPECT_EQ(evaluator.at(graph.outputs()[0], static_cast<std::int64_t>(k)).value(), expected[k]) << k;
  const std::vector<RingTensor<double>> whole = {{{4, 2}, {floats.begin(), floats.end()}, {}}, {{2, 3}, {}, integers}};
  EXPECT_EQ(evaluate(graph, test::registry(), ring, whole).value()[0].elements, expected);
}

// A graph of other operators computes the same. Those that have none are listed: windows, reads outside of a tensor or
// through indices, choices, several equations for one tensor, recurrences.
TEST_P(OperatorCases, UnfoldedAgree) {
  static const std::set<std::string> without = {"avg_pool2d_exclude",
                                                "avg_pool2d_include",
                                                "concat",
                                                "conv2d",
                                                "conv2d_data_gradient",
                                                "conv2d_kernel_gradient",
                                                "conv_identity",
                                                "cumsum",
                                                "enlarge",
                                                "gather",
                                                "gather_elements",
                                                "grouped_conv2d_data_gradient",
                                                "grouped_conv2d_kernel_gradient",
                                                "lrn",
                                                "matrix_identity",
                                                "max_pool2d",
                                                "max_pool2d_padded_gradient",
                                                "pad",
                                                "pad_channels",
                                                "reduce_prod",
                                                "regroup",
                                                "remainder",
                                                "rotary_embedding"};
  const Case& c = current();
  if (c.error) return;
  SCOPED_TRACE(c.source.place() + " " + c.source.name);
  const OperatorRegistry& registry = *c.registry;
  const Attributes attributes = registry.complete(c.op, c.attributes).value();
  const Expected<Graph> graph = unfold(registry, c.op, attributes, types(), [](std::string_view) { return true; });
  if (!graph) {
    std::vector<TensorType> all = types();
    for (const Tensor& output : c.outputs) all.push_back(output.type);
    const bool empty = std::any_of(all.begin(), all.end(), [](const auto& type) { return type.elements() == 0; });
    const auto& tensors = registry.find(c.op)->intermediates;
    const bool steps =
        std::any_of(tensors.begin(), tensors.end(), [](const auto& tensor) { return tensor.recurrence; });
    EXPECT_TRUE(empty || steps || !registry.find(c.op)->over_reals || without.contains(c.op)) << graph.error().message;
    return;
  }
  EXPECT_TRUE(graph->validate().ok());
  if (!has_values()) return;
  DoubleRing ring;
  const auto outputs = evaluate(*graph, registry, ring, tensors(ring));
  ASSERT_TRUE(outputs.ok()) << outputs.error().to_string();
  ASSERT_EQ(outputs->size(), c.outputs.size());
  for (std::size_t i = 0; i < c.outputs.size(); ++i) {
    EXPECT_EQ((*outputs)[i].shape, c.outputs[i].type.shape);
    EXPECT_EQ((*outputs)[i].integers, c.outputs[i].words);
    if (is_word(c.outputs[i].type.element)) continue;
    for (std::size_t k = 0; c.outputs[i].elements && k < c.outputs[i].elements->size(); ++k) {
      const double expected = (*c.outputs[i].elements)[k];
      EXPECT_NEAR((*outputs)[i].elements[k], expected, 1e-6 * std::max(1.0, std::abs(expected))) << to_text(*graph);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, OperatorCases, ::testing::Range(std::size_t{0}, all_cases().size()),
                         [](const auto& place) {
                           return test::case_name({all_cases()[place.param].source, place.index});
                         });

TEST(OperatorCoverage, EveryOperatorHasValues) {
  std::set<std::string> seen;
  for (const Case& c : all_cases())
    if (!c.error && !c.outputs.empty() && c.outputs[0].elements) seen.insert(c.op);
  for (const Folder& folder : folders())
    for (const std::string& name : folder.registry->names()) EXPECT_TRUE(seen.contains(name)) << name;
}

TEST(OperatorCoverage, EveryConstraintFailsOnce) {
  std::set<std::string> seen;
  for (const Case& c : all_cases())
    if (c.error) seen.insert(c.error->substr(0, c.error->find(':')));
  for (const std::string& name : test::registry().names()) {
    const OperatorDefinition& definition = *test::registry().find(name);
    auto expect = [&](int constraint) {
      const std::string label = name + " C" + std::to_string(constraint);
      EXPECT_TRUE(seen.contains(label)) << "no failing case for " << label;
    };
    std::set<std::string> bound;
    for (std::size_t i = 0; i < definition.inputs.size(); ++i) {
      // The first tensor of any shape fits.
      const std::vector<AxisSpec>& axes = definition.inputs[i].axes;
      const bool any = axes.size() == 1 && axes[0].kind == AxisSpec::Kind::rest && !axes[0].length &&
                       bound.insert(axes[0].factors[0].name).second;
      if (!any) expect(static_cast<int>(i) + 1);
    }
    for (const AttributeSpec& attribute : definition.attributes)
      if (attribute.constraint != 0) expect(attribute.constraint);
    for (const SizeStatement& statement : definition.statements)
      if (statement.constraint != 0) expect(statement.constraint);
  }
}

}  // namespace
}  // namespace taso
