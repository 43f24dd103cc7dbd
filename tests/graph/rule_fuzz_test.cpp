// Every rule on random small graphs: what it makes of a graph must compute the same. Values are compared over
// GF(2^61-1); where they differ there, over doubles, because a rule may rest on facts (relu is idempotent) that the
// field's random oracles do not share. Matches are also those that a certificate may name (certificate/occurrence.h),
// and what it may name is a match: changed ones that are believed give equal graphs, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "certificate/occurrence.h"
#include "graph/graph_text.h"
#include "graph/rewrite.h"
#include "operators/evaluate.h"
#include "operators/registry.h"
#include "support/random.h"
#include "tests/graph/same_matches.h"
#include "tests/support/shipped.h"

namespace taso {
namespace {

using test::registry;

template <class Ring>
using Tensors = std::vector<RingTensor<typename Ring::Element>>;

template <class Ring>
Tensors<Ring> random_inputs(const Graph& graph, Ring& ring, std::uint64_t seed) {
  Random random(seed, "inputs");
  Tensors<Ring> inputs;
  for (const NodeId id : graph.inputs()) {
    const TensorType& type = graph.node(id).outputs[0];
    RingTensor<typename Ring::Element> tensor;
    tensor.shape = type.shape;
    for (std::int64_t i = 0; i < type.elements(); ++i) {
      if (type.element == ElementType::f32)
        tensor.elements.push_back(ring.number((static_cast<double>(random.below(4096)) - 1500.5) / 1024.0));
      else
        tensor.integers.push_back(static_cast<std::int64_t>(random.below(2)));
    }
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

bool close(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::abs(a - b) <= 1e-7 * std::max({1.0, std::abs(a), std::abs(b)});
}
bool close(Mod61 a, Mod61 b) { return a == b; }

enum class Agreement { equal, different, undefined };

template <class Ring>
Agreement compare(const Graph& a, const Graph& b, Ring ring, std::uint64_t seed) {
  Ring other = ring;
  const auto inputs = random_inputs(a, ring, seed);
  const auto left = evaluate(a, registry(), ring, inputs);
  const auto right = evaluate(b, registry(), other, inputs);
  if (!left || !right || !ring.status() || !other.status()) return Agreement::undefined;
  if (left->size() != right->size()) return Agreement::different;
  for (std::size_t i = 0; i < left->size(); ++i) {
    if ((*left)[i].shape != (*right)[i].shape || (*left)[i].integers != (*right)[i].integers ||
        (*left)[i].elements.size() != (*right)[i].elements.size())
      return Agreement::different;
    for (std::size_t k = 0; k < (*left)[i].elements.size(); ++k)
      if (!close((*left)[i].elements[k], (*right)[i].elements[k])) return Agreement::different;
  }
  return Agreement::equal;
}

Agreement compare(const Graph& a, const Graph& b, std::uint64_t seed) {
  if (compare(a, b, FieldRing(seed), seed) == Agreement::equal) return Agreement::equal;
  return compare(a, b, DoubleRing(), seed);
}

// Random instances of the source of a rule.
class Instances {
 public:
  explicit Instances(std::uint64_t seed) : random_(seed, "instances") {}

  // Types and attribute values under which the source is well-typed: node by node, each by trial.
  std::optional<Graph> draw(const Substitution& rule) {
    std::vector<std::optional<TensorType>> types(rule.tensor_variables.size());
    std::vector<std::optional<AttributeValue>> attributes(rule.attribute_variables.size());
    extents_ = {1, 2, static_cast<std::int64_t>(random_.below(4)), static_cast<std::int64_t>(2 + random_.below(3))};
    std::vector<std::vector<TensorType>> made;
    for (const PatternNode& node : rule.source.nodes) {
      std::optional<std::vector<TensorType>> outputs;
      for (int trial = 0; trial < 400 && !outputs; ++trial) {
        if (--budget_ < 0) return std::nullopt;
        auto trial_types = types;
        auto trial_attributes = attributes;
        outputs = try_node(node, made, trial_types, trial_attributes);
        if (!outputs) continue;
        types = std::move(trial_types);
        attributes = std::move(trial_attributes);
      }
      if (!outputs) return std::nullopt;
      made.push_back(std::move(*outputs));
    }
    Bindings bindings;
    std::vector<TensorType> known;
    known.reserve(types.size());
    for (const auto& type : types) known.push_back(type.value_or(TensorType{}));
    for (const TensorType& type : known) bindings.tensors.push_back(&type);
    bindings.attributes = attributes;
    for (const Condition& condition : rule.conditions) {
      const Expected<bool> holding = holds(condition, bindings);
      if (!holding || !*holding) return std::nullopt;
    }
    return surround(rule, known, attributes);
  }

 private:
  std::optional<std::vector<TensorType>> try_node(const PatternNode& node,
                                                  const std::vector<std::vector<TensorType>>& made,
                                                  std::vector<std::optional<TensorType>>& types,
                                                  std::vector<std::optional<AttributeValue>>& attributes) {
    // Shapes like those at hand are the most likely to fit.
    std::vector<Shape> models;
    for (const PatternValue& input : node.inputs) {
      if (input.is_variable && types[input.index]) models.push_back(types[input.index]->shape);
      if (!input.is_variable) {
        if (input.port >= made[input.index].size()) return std::nullopt;
        models.push_back(made[input.index][input.port].shape);
      }
    }
    std::vector<TensorType> inputs;
    for (const PatternValue& input : node.inputs) {
      if (!input.is_variable) {
        inputs.push_back(made[input.index][input.port]);
        continue;
      }
      if (!types[input.index]) {
        TensorType type;
        if (node.op == "gather" && inputs.size() == 1) type.element = ElementType::i64;
        type.shape = shape(models);
        models.push_back(type.shape);
        types[input.index] = type;
      }
      inputs.push_back(*types[input.index]);
    }
    const OperatorSignature& signature = *registry().signature(node.op);
    const Shape& model = inputs.empty() ? Shape{} : inputs[0].shape;
    for (const auto& [name, value] : node.attributes) {
      const auto declared = std::find_if(signature.attributes.begin(), signature.attributes.end(),
                                         [&, key = name](const AttributeSignature& a) { return a.name == key; });
      if (value.kind == AttributeExpression::Kind::variable && !attributes[value.index])
        attributes[value.index] = attribute(*declared, model);
      if (value.kind == AttributeExpression::Kind::list)
        for (const AttributeExpression& element : value.operands)
          if (element.kind == AttributeExpression::Kind::variable && !attributes[element.index])
            attributes[element.index] = static_cast<std::int64_t>(random_.below(3));
    }
    Bindings bindings;
    for (const auto& type : types) bindings.tensors.push_back(type ? &*type : nullptr);
    bindings.attributes = attributes;
    const auto evaluated = evaluate_attributes(node, bindings, registry());
    if (!evaluated) return std::nullopt;
    const auto complete = registry().complete(node.op, *evaluated);
    if (!complete) return std::nullopt;
    auto outputs = registry().infer(node.op, *complete, inputs);
    if (!outputs) return std::nullopt;
    for (const TensorType& type : *outputs)
      if (type.elements() > 4096) return std::nullopt;
    return std::move(*outputs);
  }

  std::int64_t extent() { return extents_[random_.below(extents_.size())]; }

  Shape shape(const std::vector<Shape>& models) {
    Shape result;
    if (!models.empty() && random_.below(3) != 0) {
      result = models[random_.below(models.size())];
      if (random_.below(3) == 0 && !result.empty()) result.pop_back();
      if (random_.below(2) == 0)
        for (std::int64_t& e : result)
          if (random_.below(2) == 0) e = extent();
      return result;
    }
    result.resize(random_.below(5));
    for (std::int64_t& e : result) e = extent();
    return result;
  }

  AttributeValue attribute(const AttributeSignature& declared, const Shape& model) {
    switch (declared.kind) {
      case AttributeKind::integer:
        return -1 - static_cast<std::int64_t>(random_.below(4));
      case AttributeKind::real:
        return static_cast<double>(random_.below(8)) / 4.0 - 0.5;
      case AttributeKind::symbol: {
        static const std::vector<std::string> names = {"identity", "relu", "tanh", "sigmoid", "gelu"};
        return SymbolValue{names[random_.below(names.size())]};
      }
      case AttributeKind::integers:
        break;
    }
    std::vector<std::int64_t> list;
    if (declared.default_value && random_.below(2) == 0) return *declared.default_value;
    switch (random_.below(5)) {
      case 0:  // A permutation.
        list.resize(model.size());
        std::iota(list.begin(), list.end(), 0);
        for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[random_.below(i)]);
        break;
      case 1:  // Axes.
        for (auto axis = -static_cast<std::int64_t>(model.size()); axis < 0; ++axis)
          if (random_.below(2) == 0) list.push_back(axis);
        break;
      case 2:  // A shape like the operand's.
        list = shape({model});
        if (random_.below(2) == 0) list.insert(list.begin(), extent());
        break;
      case 3:  // Pieces of an extent.
        if (!model.empty()) {
          std::int64_t left = model[random_.below(model.size())];
          for (std::size_t pieces = 1 + random_.below(3); pieces > 1 && left > 0; --pieces) {
            list.push_back(static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(left) + 1)));
            left -= list.back();
          }
          list.push_back(left);
        }
        break;
      default:  // Strides, pads, windows.
        list.resize(declared.default_value ? std::get<std::vector<std::int64_t>>(*declared.default_value).size()
                                           : 2 + 2 * random_.below(2));
        for (std::int64_t& e : list) e = static_cast<std::int64_t>(random_.below(3));
    }
    return list;
  }

  // The source over inputs that may be weights or computed, with outputs that may be used in several ways.
  std::optional<Graph> surround(const Substitution& rule, const std::vector<TensorType>& types,
                                const std::vector<std::optional<AttributeValue>>& attributes) {
    const auto source = instantiate(rule, rule.source, types, attributes, registry());
    if (!source) return std::nullopt;
    Graph graph;
    std::vector<Value> inputs;
    for (std::size_t i = 0; i < types.size(); ++i) {
      Value value;
      if (random_.below(4) == 0 && types[i].element == ElementType::f32) {
        std::vector<float> values(static_cast<std::size_t>(types[i].elements()));
        for (float& v : values) v = (static_cast<float>(random_.below(64)) - 20.5f) / 32.0f;
        value = {graph.add_constant(ConstantData::of_floats(types[i].shape, values)), 0};
      } else {
        value = {graph.add_input("x" + std::to_string(i), types[i]), 0};
        if (random_.below(3) == 0 && types[i].element == ElementType::f32)
          value = {add_op(graph, registry(), "tanh", {}, {value}).value(), 0};
      }
      inputs.push_back(value);
    }
    std::vector<NodeId> nodes;
    for (const PatternNode& node : rule.source.nodes) {
      Bindings bindings;
      for (const TensorType& type : types) bindings.tensors.push_back(&type);
      bindings.attributes = attributes;
      nodes.push_back(add_op(graph, registry(), node.op, evaluate_attributes(node, bindings, registry()).value(),
                             resolve_inputs(graph, node, inputs, nodes).value())
                          .value());
    }
    PatternNode outputs;
    outputs.inputs = rule.source.outputs;
    const std::vector<Value> results = resolve_inputs(graph, outputs, inputs, nodes).value();
    for (const Value& value : results) {
      graph.add_output(value);
      if (random_.below(2) == 0) graph.add_output({add_op(graph, registry(), "sigmoid", {}, {value}).value(), 0});
      if (random_.below(2) == 0 && !graph.type(value).shape.empty())
        graph.add_output(
            {add_op(graph, registry(), "concat", {{"axis", std::int64_t{-1}}}, {value, value, value}).value(), 0});
    }
    return graph;
  }

  Random random_;
  int budget_ = 20000;  // Trials left.
  std::vector<std::int64_t> extents_;
};

// A match with one thing changed.
Match mutated(const Graph& graph, Match match, Random& random) {
  auto any_node = [&] { return static_cast<NodeId>(random.below(graph.id_bound())); };
  switch (random.below(5)) {
    case 0:
      if (!match.variables.empty())
        match.variables[random.below(match.variables.size())] = {any_node(),
                                                                 static_cast<std::uint32_t>(random.below(2))};
      break;
    case 1:
      if (!match.nodes.empty()) match.nodes[random.below(match.nodes.size())] = any_node();
      break;
    case 2:
      if (!match.attributes.empty()) {
        auto& value = match.attributes[random.below(match.attributes.size())];
        if (!value || random.below(8) == 0) {
          value.reset();
        } else if (auto* integer = std::get_if<std::int64_t>(&*value)) {
          *integer += random.below(2) == 0 ? 1 : -1;
        } else if (auto* list = std::get_if<std::vector<std::int64_t>>(&*value); list != nullptr && !list->empty()) {
          (*list)[random.below(list->size())] += random.below(2) == 0 ? 1 : -1;
        } else if (auto* real = std::get_if<double>(&*value)) {
          *real += 0.25;
        } else {
          value = SymbolValue{"sigmoid"};
        }
      }
      break;
    case 3:
      if (!match.operand_begin.empty())
        match.operand_begin[random.below(match.operand_begin.size())] = static_cast<std::int32_t>(random.below(4)) - 1;
      break;
    default:
      if (!match.port_begin.empty())
        match.port_begin[random.below(match.port_begin.size())] = static_cast<std::int32_t>(random.below(4)) - 1;
  }
  return match;
}

struct Outcome {
  int applied = 0;
  int believed = 0, refused = 0;  // Changed matches.
  std::string broken;             // A description of the first failure.
};

// Asks whether a rule occurs at matches like a true one; where it is believed to, it must apply well. What went wrong,
// if anything.
std::string believe_changed(const Graph& graph, const Substitution& rule, const Match& match, Random& random,
                            std::uint64_t seed, Outcome& outcome) {
  for (int change = 0; change < 8; ++change) {
    const Match other = mutated(graph, match, random);
    if (!check_occurrence(graph, rule, other, registry())) {
      ++outcome.refused;
      continue;
    }
    ++outcome.believed;
    const auto result = apply(graph, rule, other, registry());
    if (!result) continue;
    if (result->validate() && compare(graph, *result, seed) != Agreement::different) continue;
    return rule.name + " does not occur as believed in\n" + to_text(graph) + "which becomes\n" + to_text(*result);
  }
  return "";
}

// Applies a rule at all its matches in random instances of its source.
Outcome exercise(const RuleIndex& index, std::uint32_t number, std::uint64_t seed, int wanted) {
  const Substitution& rule = index.rules()[number];
  Outcome outcome;
  Instances instances(seed);
  Random changes(seed, "changes");
  for (int trial = 0; trial < (outcome.applied == 0 ? 2000 : 400) && outcome.applied < wanted; ++trial) {
    const std::optional<Graph> drawn = instances.draw(rule);
    if (!drawn) continue;
    Graph graph = *drawn;
    normalize(graph, registry());
    if (compare(*drawn, graph, seed) == Agreement::different) {
      outcome.broken = "the normal form of\n" + to_text(*drawn) + "is\n" + to_text(graph);
      return outcome;
    }
    int matches = 0;
    for (const Match& match : index.find(graph, number)) {
      if (++matches > 3) break;
      if (const Status occurs = check_occurrence(graph, rule, match, registry()); !occurs) {
        outcome.broken = rule.name + " is not believed to occur (" + occurs.error().message + ") in\n" + to_text(graph);
        return outcome;
      }
      const auto result = apply(graph, rule, match, registry());
      if (!result) continue;
      const Status valid = result->validate();
      const Agreement agreement =
          valid ? compare(graph, *result, seed + static_cast<std::uint64_t>(trial)) : Agreement::different;
      if (agreement == Agreement::undefined) continue;
      ++outcome.applied;
      if (agreement == Agreement::equal) {
        outcome.broken = believe_changed(graph, rule, match, changes, seed, outcome);
        if (!outcome.broken.empty()) return outcome;
        continue;
      }
      outcome.broken = rule.name + " is wrong\n" + to_text(graph) + "becomes\n" + to_text(*result) +
                       (valid ? "" : valid.error().message);
      return outcome;
    }
  }
  return outcome;
}

std::vector<std::string> rule_files() {
  std::vector<std::string> files = {TASO_SOURCE_DIR "/tests/data/rewrite/sound.rules"};
  const std::filesystem::path shipped = TASO_SOURCE_DIR "/specs/rules";
  if (std::filesystem::is_directory(shipped))
    for (const auto& entry : std::filesystem::directory_iterator(shipped))
      if (entry.path().extension() == ".rules") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

class RuleFiles : public testing::TestWithParam<std::string> {};

TEST_P(RuleFiles, RulesKeepValues) {
  auto rules = load_rules(GetParam(), registry());
  ASSERT_TRUE(rules.ok()) << rules.error().to_string();
  const RuleIndex index(*rules, registry());
  ASSERT_FALSE(index.rules().empty());
  std::vector<std::string> never;
  int believed = 0, refused = 0;
  for (std::uint32_t i = 0; i < index.rules().size(); ++i) {
    const Outcome outcome = exercise(index, i, 1000 + i, 5);
    believed += outcome.believed;
    refused += outcome.refused;
    EXPECT_EQ(outcome.broken, "");
    if (outcome.applied == 0) never.push_back(index.rules()[i].name);
  }
  EXPECT_GT(believed, 0);
  EXPECT_GT(refused, 50);
  // A few sources may be too special to be met by chance.
  EXPECT_LE(never.size(), index.rules().size() / 4) << "never applied: " << testing::PrintToString(never);
}

INSTANTIATE_TEST_SUITE_P(All, RuleFiles, testing::ValuesIn(rule_files()));

// The test of the test: wrong rules are told by name.
TEST(RuleFuzz, FindsWrongRules) {
  const auto rules = parse_rules(
      "rule order: matmul(x, w1), matmul(x, w2) => s.0, s.1\n"
      "  where s = split(matmul(x, concat(w2, w1; axis=-1)); axis=-1, sizes=[dim(w1, -1), dim(w2, -1)])\n"
      "rule max_is_not_linear: relu(add(x, y)) => add(relu(x), relu(y))\n"
      "rule padded_average: avg_pool2d_include(x; kernel=[2, 2], strides=s, pads=[1, 0, 1, 0]) "
      "=> avg_pool2d_exclude(x; kernel=[2, 2], strides=s, pads=[1, 0, 1, 0])\n"
      "rule sides: sub(x, y) => sub(y, x)\n",
      "wrong.rules", registry());
  ASSERT_TRUE(rules.ok()) << rules.error().to_string();
  const RuleIndex index(*rules, registry());
  for (std::uint32_t i = 0; i < index.rules().size(); ++i)
    EXPECT_THAT(exercise(index, i, 5 + i, 40).broken, testing::HasSubstr(index.rules()[i].name + " is wrong"));
}

// Walks: all rules on random graphs, one application after another.
TEST(RuleFuzz, RandomWalksKeepValues) {
  std::vector<Substitution> rules;
  for (const std::string& file : rule_files()) {
    auto loaded = load_rules(file, registry());
    ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
    for (Substitution& rule : *loaded)
      if (!rule.is_axiom) rules.push_back(std::move(rule));
  }
  const RuleIndex index(std::move(rules), registry());
  Random random(11, "walks");
  int steps = 0;
  for (int round = 0; round < 100; ++round) {
    Graph graph;
    std::vector<Value> values;
    values.reserve(6);
    const std::int64_t n = 1 + static_cast<std::int64_t>(random.below(3));
    for (int i = 0; i < 3; ++i)
      values.push_back({graph.add_input("x" + std::to_string(i), {ElementType::f32, {n, n}, true}), 0});
    std::vector<float> contents(static_cast<std::size_t>(n * n));
    for (int i = 0; i < 3; ++i) {
      for (float& v : contents) v = (static_cast<float>(random.below(64)) - 20.0f) / 32.0f;
      values.push_back({graph.add_constant(ConstantData::of_floats({n, n}, contents)), 0});
    }
    std::uint64_t wanted = 10 + random.below(16);
    for (int attempt = 0; attempt < 300 && wanted > 0; ++attempt) {
      static const std::vector<std::string> binary = {"add", "add", "mul", "matmul", "matmul", "concat", "concat"};
      static const std::vector<std::string> unary = {"relu", "relu", "split", "split", "transpose"};
      const bool two = random.below(2) == 0;
      const std::string& op = two ? binary[random.below(binary.size())] : unary[random.below(unary.size())];
      std::vector<Value> inputs = {values[random.below(values.size())]};
      if (two) inputs.push_back(values[random.below(values.size())]);
      if (op == "concat" && random.below(2) == 0) inputs.push_back(values[random.below(values.size())]);
      Attributes attributes;
      const Shape& shape = graph.type(inputs[0]).shape;
      if (op == "concat" || op == "split") attributes.set("axis", -1 - static_cast<std::int64_t>(random.below(2)));
      if (op == "split") {
        const std::int64_t extent = shape[static_cast<std::size_t>(2 + attributes.integer("axis"))];
        const auto first = static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(extent) + 1));
        std::vector<std::int64_t> sizes = {first, extent - first};
        if (sizes[1] > 1 && random.below(2) == 0) sizes = {first, 1, extent - first - 1};
        attributes.set("sizes", sizes);
      }
      if (op == "transpose") attributes.set("perm", std::vector<std::int64_t>{1, 0});
      const auto id = add_op(graph, registry(), op, attributes, inputs);
      if (!id || graph.type({*id, 0}).elements() > 200) continue;
      --wanted;
      for (std::uint32_t port = 0; port < graph.node(*id).outputs.size(); ++port) values.push_back({*id, port});
    }
    const auto consumers = graph.consumers();
    for (const Value& value : values)
      if (consumers[value.node].empty()) graph.add_output(value);
    const Graph original = graph;
    normalize(graph, registry());
    ASSERT_NE(compare(original, graph, 7), Agreement::different) << to_text(original) << "normal form\n"
                                                                 << to_text(graph);
    MatchList list;
    for (int step = 0; step < 8; ++step) {
      const auto matches = index.find_all(graph);
      if (round % 2 == 0 || step % 3 == 0) list = index.update(list, graph);  // after one step, or after several
      const MatchList now = index.update(list, graph);
      ASSERT_EQ(wrong_match(index, now, graph), "");
      if (matches.empty()) break;
      const auto& [rule, match] = matches[random.below(matches.size())];
      const Status occurs = check_occurrence(graph, index.rules()[rule], match, registry());
      ASSERT_TRUE(occurs) << occurs.error().message << " in\n" << to_text(graph);
      Outcome outcome;
      EXPECT_EQ(believe_changed(graph, index.rules()[rule], match, random, 7, outcome), "");
      const auto result = apply_with_changes(graph, index.rules()[rule], match, registry(), &now.consumers());
      const auto without = apply(graph, index.rules()[rule], match, registry());
      ASSERT_EQ(result.ok(), without.ok());
      if (!result) continue;
      ASSERT_EQ(to_string(result->graph), to_string(*without));
      ASSERT_TRUE(result->graph.validate().ok());
      Graph again = result->graph;
      normalize(again, registry());
      ASSERT_TRUE(again.equals(result->graph)) << index.rules()[rule].name << " leaves\n"
                                               << to_text(result->graph) << "whose normal form is\n"
                                               << to_text(again);
      ASSERT_EQ(again.structural_hash(), result->graph.structural_hash());
      ASSERT_NE(compare(original, result->graph, 7), Agreement::different) << index.rules()[rule].name << " turns\n"
                                                                           << to_text(graph) << "into\n"
                                                                           << to_text(result->graph);
      // The reported difference is the difference.
      for (const NodeId id : result->added) ASSERT_TRUE(!graph.contains(id) && result->graph.contains(id));
      for (const NodeId id : result->removed) ASSERT_TRUE(graph.contains(id) && !result->graph.contains(id));
      std::size_t count = graph.size() + result->added.size() - result->removed.size();
      ASSERT_EQ(count, result->graph.size());
      for (NodeId id = 0; id < graph.id_bound(); ++id) {
        if (!graph.contains(id) || !result->graph.contains(id)) continue;
        const Node& before = graph.node(id);
        const Node& after = result->graph.node(id);
        const bool differs = before.inputs != after.inputs || before.weight_only != after.weight_only;
        ASSERT_TRUE(!differs || std::binary_search(result->changed.begin(), result->changed.end(), id));
      }
      graph = result->graph;
      ++steps;
    }
  }
  EXPECT_GT(steps, 100);
}

}  // namespace
}  // namespace taso
