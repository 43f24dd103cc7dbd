#include "tests/optimizer/random_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/verifier/draws.h"

namespace taso::testing {
namespace {

constexpr double max_magnitude = 1000;  // Of sample values.
constexpr std::size_t most_axes = 5;
constexpr int max_inputs = 8;
constexpr int attribute_trials = 60;

std::size_t fixed_axes(const InputSpec& input) {
  return static_cast<std::size_t>(std::count_if(
      input.axes.begin(), input.axes.end(), [](const AxisSpec& axis) { return axis.kind != AxisSpec::Kind::rest; }));
}

bool takes_rank(const InputSpec& input, std::size_t rank) {
  const std::size_t fixed = fixed_axes(input);
  return fixed == input.axes.size() ? rank == fixed : rank >= fixed;
}

}  // namespace

GraphGenerator::GraphGenerator(const OperatorRegistry& registry, std::uint64_t seed, const GraphDrawOptions& options)
    : registry_(registry), options_(options), random_(seed, "graph"), seed_(seed) {
  // Operators on integers and truth values have tests of their own: no rule and no strategy speaks of them.
  for (const std::string& name : registry.names())
    if (const OperatorDefinition& definition = *registry.find(name); definition.over_reals || definition.moves)
      operators_.push_back(name);
  // Rules add channels that are 0 before the activation and unread after it: where that has no value at 0, as log has
  // none, an infinity times 0 comes out, and only the optimizer's check finds it.
  for (const auto& [name, function] : registry.functions())
    if (function.arity == 1 && (function.real == nullptr || std::isfinite(function.real(0))))
      functions_.push_back(name);
  palette_ = options.extents;
  if (!palette_.empty()) return;
  palette_ = {1, between(2, 5)};
  if (chance(70)) palette_.push_back(between(2, 6));
  if (chance(30)) palette_.push_back(4);
  if (chance(12)) palette_.push_back(0);
}

std::int64_t GraphGenerator::between(std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(high - low + 1)));
}

Value GraphGenerator::leaf(const Shape& shape, bool integers) {
  RingTensor<double> sample;
  sample.shape = shape;
  const auto count = static_cast<std::size_t>(volume(shape));
  NodeId id = 0;
  const bool constant = chance(40) || inputs_.size() >= max_inputs;
  if (integers) {
    // With one index each way within range of every axis that is not empty.
    for (std::size_t i = 0; i < count; ++i) sample.integers.push_back(between(-options_.indices, options_.indices - 1));
  } else {
    const bool repeated = constant && chance(20), positive = chance(20);
    static constexpr float numbers[] = {0.0F, 1.0F, 0.5F, -2.0F};
    const float number = numbers[below(std::size(numbers))];
    for (std::size_t i = 0; i < count; ++i) {
      const auto drawn = static_cast<float>(random_.uniform() * (positive ? 1 : 2) - (positive ? 0 : 1));
      sample.elements.push_back(static_cast<double>(repeated ? number : drawn));
    }
  }
  if (constant) {
    if (integers) {
      id = graph_.add_constant(ConstantData::of_integers(shape, sample.integers));
    } else {
      const std::vector<float> floats(sample.elements.begin(), sample.elements.end());
      id = graph_.add_constant(ConstantData::of_floats(shape, floats));
    }
  } else {
    const std::string name = "x" + std::to_string(inputs_.size());
    id = graph_.add_input(name, {integers ? ElementType::i64 : ElementType::f32, shape, true});
    inputs_.emplace(name, sample);
  }
  samples_[id].push_back(std::move(sample));
  if (!integers) values_.push_back({id, 0});
  return {id, 0};
}

bool GraphGenerator::accept(NodeId id, std::vector<RingTensor<double>> outputs) {
  for (std::uint32_t port = 0; port < outputs.size(); ++port) values_.push_back({id, port});
  samples_[id] = std::move(outputs);
  return true;
}

std::optional<NodeId> GraphGenerator::apply(const std::string& op, const Attributes& attributes,
                                            const std::vector<Value>& inputs) {
  std::vector<TensorType> types;
  std::vector<const RingTensor<double>*> operands;
  for (const Value& input : inputs) {
    types.push_back(graph_.type(input));
    operands.push_back(&samples_.at(input.node)[input.port]);
  }
  const auto complete = registry_.complete(op, attributes);
  if (!complete) return std::nullopt;
  const auto outputs = registry_.infer(op, *complete, types);
  if (!outputs || outputs->empty()) return std::nullopt;
  for (const TensorType& type : *outputs)
    if (type.elements() > options_.most_elements || type.shape.size() > most_axes) return std::nullopt;
  const auto instance = OperatorInstance::create(registry_, op, *complete, types);
  if (!instance || instance->work().flops > options_.most_work) return std::nullopt;
  DoubleRing ring;
  auto results = evaluate(*instance, ring, operands);
  if (!results) return std::nullopt;
  for (const RingTensor<double>& result : *results)
    for (const double element : result.elements)
      if (!std::isfinite(element) || std::abs(element) > max_magnitude) return std::nullopt;
  const auto id = add_op(graph_, registry_, op, attributes, inputs);
  if (!id) return std::nullopt;
  accept(*id, std::move(*results));
  return *id;
}

// The names of sizes that an operand's shape determines; where an operand ends in several open lists of axes, or an
// extent has several factors, one of the ways.
void GraphGenerator::learn(const InputSpec& input, const Shape& shape, Sizes& sizes) {
  std::size_t spare = shape.size() - fixed_axes(input), place = 0;
  for (std::size_t i = 0; i < input.axes.size(); ++i) {
    const AxisSpec& axis = input.axes[i];
    if (axis.kind == AxisSpec::Kind::rest) {
      const bool last = std::none_of(input.axes.begin() + static_cast<std::ptrdiff_t>(i) + 1, input.axes.end(),
                                     [](const AxisSpec& other) { return other.kind == AxisSpec::Kind::rest; });
      const std::size_t length = last ? spare : below(spare + 1);
      spare -= length;
      const auto begin = shape.begin() + static_cast<std::ptrdiff_t>(place);
      sizes.try_emplace(axis.factors[0].name, begin, begin + static_cast<std::ptrdiff_t>(length));
      place += length;
      continue;
    }
    std::int64_t left = shape[place++];
    for (std::size_t f = 0; f < axis.factors.size(); ++f) {
      if (axis.factors[f].kind != Expression::Kind::name) continue;
      std::int64_t value = left;
      if (const auto known = sizes.find(axis.factors[f].name); known != sizes.end() && known->second.size() == 1) {
        value = known->second[0];
      } else if (f + 1 < axis.factors.size()) {
        Integers divisors = {1};
        for (std::int64_t d = 2; d <= left; ++d)
          if (left % d == 0) divisors.push_back(d);
        value = chance(50) ? 1 : divisors[below(divisors.size())];
      }
      sizes.try_emplace(axis.factors[f].name, Integers{value});
      if (value > 0) left /= value;
    }
  }
}

std::optional<Shape> GraphGenerator::propose(const InputSpec& input, Sizes sizes) {
  Shape shape;
  for (const AxisSpec& axis : input.axes) {
    if (axis.kind == AxisSpec::Kind::rest) {
      const std::string& name = axis.factors[0].name;
      if (const auto known = sizes.find(name); known == sizes.end()) {
        Integers rest(below(3));
        for (std::int64_t& e : rest) e = extent();
        sizes.emplace(name, rest);
      }
      const Integers& rest = sizes.at(name);
      shape.insert(shape.end(), rest.begin(), rest.end());
      continue;
    }
    std::int64_t product = 1;
    for (const Expression& factor : axis.factors) {
      std::int64_t value = factor.kind == Expression::Kind::integer ? factor.integer : extent();
      if (factor.kind == Expression::Kind::name)
        if (const auto known = sizes.try_emplace(factor.name, Integers{value}).first; known->second.size() == 1)
          value = known->second[0];
      product *= value;
    }
    shape.push_back(product);
  }
  if (shape.size() > most_axes || !is_reasonable(shape) || volume(shape) > options_.most_elements) return std::nullopt;
  return shape;
}

Value GraphGenerator::of_shape(const Shape& wanted) {
  std::vector<Value> fitting;
  for (const Value& value : values_)
    if (shape(value) == wanted) fitting.push_back(value);
  if (!fitting.empty() && chance(75)) return fitting[below(fitting.size())];
  if (!wanted.empty() && registry_.defines("broadcast") && chance(35)) {
    Shape part(wanted.begin() + static_cast<std::ptrdiff_t>(below(wanted.size() + 1)), wanted.end());
    for (std::int64_t& e : part)
      if (chance(40)) e = 1;
    if (const auto made = apply("broadcast", {{"shape", wanted}}, {leaf(part, false)})) return {*made, 0};
  }
  return leaf(wanted, false);
}

Value GraphGenerator::operand(const InputSpec& input, const Sizes& sizes, bool first) {
  if (input.integers()) {
    Shape small(below(3));
    for (std::int64_t& e : small) e = extent();
    return leaf(small, true);
  }
  if (first || chance(15)) {
    // The last values are the likeliest, so that graphs become deep.
    for (int trial = 0; trial < 12 && !values_.empty(); ++trial) {
      const std::size_t back = chance(50) ? below(std::min<std::size_t>(4, values_.size())) : below(values_.size());
      const Value value = values_[values_.size() - 1 - back];
      if (takes_rank(input, shape(value).size())) return value;
    }
  }
  const std::optional<Shape> proposed = propose(input, sizes);
  return of_shape(proposed ? *proposed : Shape{});
}

GraphGenerator::Integers GraphGenerator::integer_list(const AttributeSpec& spec, const Shape& like) {
  Integers list;
  if (spec.length && spec.length->kind == Expression::Kind::integer) {
    // Strides, pads, windows: near the default if there is one.
    const auto* usual = spec.default_value ? std::get_if<Integers>(&*spec.default_value) : nullptr;
    const std::int64_t base = usual != nullptr && !usual->empty() ? (*usual)[0] : between(0, 1);
    list.resize(static_cast<std::size_t>(spec.length->integer));
    for (std::int64_t& e : list) e = chance(50) ? base : base + between(0, 2);
    return list;
  }
  switch (below(9)) {
    case 0:  // A permutation.
      list.resize(like.size());
      std::iota(list.begin(), list.end(), 0);
      for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
      return list;
    case 1:  // Axes from the end.
      for (std::size_t i = like.size(); i > 0; --i)
        if (chance(50)) list.push_back(-static_cast<std::int64_t>(i));
      return list;
    case 2: {  // An extent in parts, some of them empty.
      std::int64_t left = like.empty() ? 2 : like[below(like.size())];
      for (std::size_t parts = 1 + below(3); parts > 1; --parts) {
        list.push_back(between(chance(10) ? 0 : std::min<std::int64_t>(1, left), left));
        left -= list.back();
      }
      list.push_back(left);
      return list;
    }
    case 3:  // The shape with axes that are 1 made larger, and axes in front.
      list = like;
      for (std::int64_t& e : list)
        if (e == 1 && chance(60)) e = extent();
      while (list.size() < most_axes && chance(40)) list.insert(list.begin(), extent());
      return list;
    case 4:  // As many elements: axes merged, extents of 1 added.
      list = like;
      for (std::size_t i = list.size(); i > 1; --i)
        if (chance(40)) {
          list[i - 2] *= list[i - 1];
          list.erase(list.begin() + static_cast<std::ptrdiff_t>(i) - 1);
        }
      if (list.size() < most_axes && chance(50))
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(below(list.size() + 1)), 1);
      return list;
    case 5:  // Another order of the extents.
      list = like;
      for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
      return list;
    case 6:  // Positions in the shape, or extents of parts of it.
      for (const std::int64_t e : like) list.push_back(e == 0 ? 0 : between(0, e - 1));
      return list;
    case 7:
      for (const std::int64_t e : like) list.push_back(chance(60) ? e : between(0, e));
      return list;
    default:  // A small number for each axis.
      for (std::size_t i = 0; i < like.size(); ++i) list.push_back(chance(50) ? 1 : between(-1, 2));
      return list;
  }
}

AttributeValue GraphGenerator::attribute(const AttributeSpec& spec, const Shape& like) {
  if (spec.default_value && chance(25)) return *spec.default_value;
  switch (spec.kind) {
    case AttributeKind::integer:
      return chance(60) ? between(-static_cast<std::int64_t>(std::max<std::size_t>(like.size(), 1)), -1)
                        : between(0, 4);
    case AttributeKind::real: {
      static constexpr double numbers[] = {0.0, 0.25, 0.5, 1.0, 2.0, -1.0};
      return numbers[below(std::size(numbers))];
    }
    case AttributeKind::symbol:
      return SymbolValue{functions_[below(functions_.size())]};
    case AttributeKind::integers:
      break;
  }
  return integer_list(spec, like);
}

bool GraphGenerator::grow_opaque() {
  if (values_.empty()) return false;
  Node node;
  node.kind = NodeKind::opaque;
  node.op = "test::Carried";
  node.name = "node:carried" + std::to_string(opaque_++);
  std::vector<RingTensor<double>> outputs;
  for (std::size_t i = 0; i <= below(2); ++i) node.inputs.push_back(values_[below(values_.size())]);
  for (const Value& input : node.inputs) {
    node.outputs.push_back({ElementType::f32, shape(input), true});
    RingTensor<double> sample;
    sample.shape = shape(input);
    for (std::int64_t k = 0; k < volume(sample.shape); ++k)
      sample.elements.push_back(static_cast<double>(static_cast<float>(random_.uniform() * 2 - 1)));
    inputs_.emplace(node.name + ":out" + std::to_string(outputs.size()), sample);
    outputs.push_back(std::move(sample));
  }
  return accept(graph_.add(std::move(node)), std::move(outputs));
}

bool GraphGenerator::grow() {
  if (chance(options_.opaque_percent)) return grow_opaque();
  return grow(operators_[below(operators_.size())]);
}

bool GraphGenerator::grow(const std::string& op) {
  const OperatorDefinition& definition = *registry_.find(op);
  std::vector<Value> inputs;
  Sizes sizes;
  if (definition.variadic()) {
    // Operands that differ in one axis, or not at all.
    inputs.push_back(operand(definition.inputs[0], sizes, true));
    const Shape like = shape(inputs[0]);
    const std::size_t axis = like.empty() ? 0 : below(like.size());
    for (std::size_t count = below(4); count > 0; --count) {
      Shape other = like;
      if (!other.empty() && chance(50)) other[axis] = extent();
      inputs.push_back(chance(20) ? inputs[0] : of_shape(other));
    }
  } else {
    for (std::size_t i = 0; i < definition.inputs.size(); ++i) {
      const InputSpec& input = definition.inputs[i];
      inputs.push_back(operand(input, sizes, i == 0));
      if (!takes_rank(input, shape(inputs.back()).size())) return false;
      learn(input, shape(inputs.back()), sizes);
    }
  }
  std::vector<TensorType> types;
  for (const Value& input : inputs) types.push_back(graph_.type(input));
  const Shape like = types.empty() ? Shape{extent(), extent()} : types[0].shape;
  for (int trial = 0; trial < (definition.attributes.empty() ? 1 : attribute_trials); ++trial) {
    Attributes attributes;
    for (const AttributeSpec& spec : definition.attributes) attributes.set(spec.name, attribute(spec, like));
    const auto complete = registry_.complete(op, attributes);
    if (!complete || !registry_.accepts(op, *complete, types)) continue;
    if (apply(op, attributes, inputs)) return true;
  }
  return false;
}

bool GraphGenerator::kept_if(const std::function<bool()>& attempt) {
  const Graph before = graph_;
  const auto values = values_;
  const auto samples = samples_;
  const auto inputs = inputs_;
  if (attempt()) return true;
  graph_ = before;
  values_ = values;
  samples_ = samples;
  inputs_ = inputs;
  return false;
}

bool GraphGenerator::plant(const Substitution& rule, const Draw& draw) {
  std::vector<Value> variables;
  for (const TensorType& type : draw.variables)  // mostly different tensors
    variables.push_back(type.element != ElementType::f32 || chance(65)
                            ? leaf(type.shape, type.element != ElementType::f32)
                            : of_shape(type.shape));
  Bindings bindings;
  for (const TensorType& type : draw.variables) bindings.tensors.push_back(&type);
  bindings.attributes = draw.attributes;
  std::vector<NodeId> nodes;
  for (const PatternNode& node : rule.source.nodes) {
    const auto attributes = evaluate_attributes(node, bindings, registry_);
    const auto operands = resolve_inputs(graph_, node, variables, nodes);
    if (!attributes || !operands) return false;
    const auto made = apply(node.op, *attributes, *operands);
    if (!made) return false;
    nodes.push_back(*made);
  }
  return true;
}

bool GraphGenerator::plant(const Substitution& rule) {
  RuleDraws draws(registry_, rule, seed_);
  for (int trial = 0; trial < 12; ++trial) {
    const std::optional<Draw> draw = draws.next(3000);
    if (!draw) return false;
    const bool usable = std::all_of(draw->attributes.begin(), draw->attributes.end(), [&](const auto& value) {
      const auto* symbol = value ? std::get_if<SymbolValue>(&*value) : nullptr;
      return symbol == nullptr || std::find(functions_.begin(), functions_.end(), symbol->name) != functions_.end();
    });
    if (usable && kept_if([&] { return plant(rule, *draw); })) return planted_ = true;
  }
  return false;
}

void GraphGenerator::grow_by(int operators) {
  if (values_.empty())
    for (int i = 0; i < 3; ++i) {
      Shape shape(below(5));
      for (std::int64_t& e : shape) e = extent();
      leaf(volume(shape) > options_.most_elements ? Shape{} : shape, false);
    }
  for (int made = 0, tried = 0; made < operators && tried < 60 * operators; ++tried) made += grow() ? 1 : 0;
}

bool GraphGenerator::grow_by_one(const std::string& op) {
  for (int trial = 0; trial < 60; ++trial)
    if (kept_if([&] { return grow(op); })) return true;
  return false;
}

RandomGraph GraphGenerator::finish(int operators) {
  grow_by(operators);
  const auto consumers = graph_.consumers();
  std::vector<Value> outputs;
  for (const Value& value : values_) {
    const Node& node = graph_.node(value.node);
    if (node.kind == NodeKind::op && (consumers[value.node].empty() || chance(15))) outputs.push_back(value);
  }
  graph_.set_outputs(outputs);
  graph_.remove_dead();
  return {std::move(graph_), std::move(inputs_), planted_};
}

}  // namespace taso::testing
