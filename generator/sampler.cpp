#include "generator/sampler.h"

#include <algorithm>
#include <array>
#include <utility>

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;

std::int64_t draw_between(Random& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

AttributeValue random_value(const ProfileSymbol& symbol, Random& random) {
  const AttributeValue& example = symbol.values[random.below(symbol.values.size())];
  if (std::holds_alternative<std::int64_t>(example)) return draw_between(random, symbol.low, symbol.high);
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&example)) {
    std::vector<std::int64_t> result;
    for (std::size_t i = 0; i < list->size(); ++i) result.push_back(draw_between(random, symbol.low, symbol.high));
    return result;
  }
  if (std::holds_alternative<SymbolValue>(example))
    return SymbolValue{symbol.choices[random.below(symbol.choices.size())]};
  return example;
}

}  // namespace

bool mentions_symbol(const AttributeExpression& expression) {
  return expression.kind == Kind::variable ||
         std::any_of(expression.operands.begin(), expression.operands.end(), mentions_symbol);
}

bool draw_symbols(const ProfileGroup& group, Random& random, Extents extents, Symbols& symbols) {
  symbols.clear();
  const auto common = static_cast<std::int64_t>(extents == Extents::alike ? 2 + random.below(2) : 0);
  for (const ProfileSymbol& symbol : group.symbols) {
    if (symbol.definition) {
      auto value = evaluate_symbolic(*symbol.definition, symbols);
      if (!value) return false;
      if (symbol.is_extent && std::get<std::int64_t>(*value) < 1) return false;
      symbols.emplace_back(std::move(value).value());
    } else {
      symbols.emplace_back(random_value(symbol, random));
      if (extents == Extents::grouped && symbol.is_extent && symbol.low <= 1)
        symbols.back() = std::array<std::int64_t, 5>{1, 2, 3, 4, 6}[random.below(symbol.high < 4 ? 3 : 5)];
      if (extents == Extents::alike && symbol.is_extent && symbol.low <= common && common <= symbol.high)
        symbols.back() = common;
    }
  }
  return true;
}

std::optional<TensorType> type_of(const Bank& bank, InstanceComparer& comparer, ClassId id, const Symbols& symbols) {
  const ValueClass& value = bank.classes()[id];
  if (value.is_input) {
    auto shape = evaluate_symbolic(bank.group().inputs[value.index].shape, symbols);
    if (!shape) return std::nullopt;
    TensorType type{ElementType::f32, std::get<std::vector<std::int64_t>>(*shape), true};
    for (const std::int64_t extent : type.shape)
      if (extent < 1) return std::nullopt;
    return type;
  }
  const Term& term = bank.terms()[value.index];
  std::vector<TensorType> arguments;
  for (const ClassId argument : term.inputs()) {
    auto type = type_of(bank, comparer, argument, symbols);
    if (!type) return std::nullopt;
    arguments.push_back(std::move(*type));
  }
  const ProfileOperator& op = bank.group().operators[term.op];
  std::vector<std::pair<std::string, AttributeValue>> attributes;
  for (const auto& [name, expression] : op.attributes) {
    auto number = evaluate_symbolic(expression, symbols);
    if (!number) return std::nullopt;
    attributes.emplace_back(name, std::move(number).value());
  }
  std::vector<const Shape*> shapes;
  for (const TensorType& type : arguments) shapes.push_back(&type.shape);
  const TypedApplication& application = comparer.apply(op.op, attributes, shapes);
  if (!application.typed || value.port >= application.outputs.size()) return std::nullopt;
  return TensorType{ElementType::f32, application.outputs[value.port], true};
}

AssignmentPool::AssignmentPool(const Bank& bank, InstanceComparer& comparer, std::uint64_t seed)
    : bank_(bank), comparer_(comparer) {
  constexpr int draws = 256;
  // Small instances show as much as large ones: of a few, the one with the smallest inputs is taken.
  constexpr int trials = 3;
  Random random(seed, "assignments");
  auto elements = [&](const Symbols& symbols) {
    std::int64_t sum = 0;
    for (const ProfileInput& input : bank.group().inputs)
      if (const auto shape = evaluate_symbolic(input.shape, symbols))
        sum += volume(std::get<std::vector<std::int64_t>>(*shape));
    return sum;
  };
  for (const bool grouped : {false, true})
    for (int i = 0; i < draws; ++i) {
      std::optional<Symbols> smallest;
      for (int trial = 0; trial < trials; ++trial) {
        Symbols symbols;
        const Extents extents = grouped ? Extents::grouped : i % 4 == 0 ? Extents::alike : Extents::any;
        if (draw_symbols(bank.group(), random, extents, symbols) &&
            (!smallest || elements(symbols) < elements(*smallest)))
          smallest = std::move(symbols);
      }
      if (smallest) assignments_[grouped ? 1 : 0].push_back(std::move(*smallest));
    }
}

const std::vector<std::optional<TensorType>>& AssignmentPool::types(ClassId id, bool grouped) {
  constexpr std::size_t max_classes = 1000;
  auto& known = types_[grouped ? 1 : 0];
  if (const auto it = known.find(id); it != known.end()) return it->second;
  if (known.size() > max_classes) known.clear();
  auto& types = known[id];
  for (const Symbols& symbols : assignments(grouped)) types.push_back(type_of(bank_, comparer_, id, symbols));
  return types;
}

bool DraftSampler::draw(Sample& sample, Wanted wanted) {
  random_ = Random(seed_ + ++draws_ * 0xd1342543de82ef95ULL);
  const std::uint64_t kind = wanted == Wanted::grouped ? 4 : wanted == Wanted::changed ? 1 : random_.below(8);
  sample.declared = kind == 0;
  const bool grouped = kind >= 4;
  const std::vector<Symbols>& assignments = pool_.assignments(grouped);
  if (assignments.empty()) return false;
  const std::size_t row = random_.below(assignments.size());
  const Symbols& symbols = assignments[row];
  sample.types.clear();
  for (const ClassId id : draft_.variables) {
    const std::optional<TensorType>& type = pool_.types(id, grouped)[row];
    if (!type) return false;
    sample.types.push_back(*type);
  }
  sample.attributes.clear();
  for (const AttributeExpression& base : bases_) {
    auto value = evaluate_symbolic(base, symbols);
    if (!value) return false;
    sample.attributes.emplace_back(std::move(value).value());
  }
  if (sample.declared) return true;
  if (grouped) return multiply_one(sample.types);
  // Literals of the profile are the same in every sample otherwise, and derived values are always as derived.
  for (std::size_t i = 0; i < bases_.size(); ++i) {
    const bool derived =
        bases_[i].kind == Kind::variable && bank_.group().symbols[bases_[i].index].definition.has_value();
    if ((derived || !mentions_symbol(bases_[i])) && random_.below(2) == 0) change(*sample.attributes[i]);
  }
  for (std::uint64_t i = 0, count = random_.below(3); i < count; ++i) mutate(sample);
  return true;
}

std::int64_t DraftSampler::between(std::int64_t low, std::int64_t high) { return draw_between(random_, low, high); }

/// Multiplies one extent of one tensor, or of all tensors of its shape; all extents and factors take their turn.
bool DraftSampler::multiply_one(std::vector<TensorType>& types) {
  std::size_t axes = 0;
  for (const TensorType& type : types) axes += type.shape.size();
  if (axes == 0) return false;
  std::size_t axis = turn_ / 6 % axes;
  const auto factor = static_cast<std::int64_t>(2 + turn_ % 3);
  const bool alike = turn_ / 3 % 2 == 1;
  ++turn_;
  std::size_t chosen = 0;
  while (axis >= types[chosen].shape.size()) axis -= types[chosen++].shape.size();
  const Shape before = types[chosen].shape;
  for (std::size_t i = 0; i < types.size(); ++i)
    if (i == chosen || (alike && types[i].shape == before)) types[i].shape[axis] *= factor;
  return true;
}

void DraftSampler::mutate(Sample& sample) {
  auto& types = sample.types;
  auto& attributes = sample.attributes;
  const std::uint64_t kind = random_.below(attributes.empty() ? 4 : 6);
  if (kind <= 1) {  // one extent of one tensor, or of all tensors that have the same one there
    Shape& shape = types[random_.below(types.size())].shape;
    if (shape.empty()) return;
    const std::size_t axis = random_.below(shape.size());
    const std::int64_t old = shape[axis];
    const std::int64_t fresh = kind == 0 ? between(1, 4) : old * between(2, 3);
    if (random_.below(2) == 0) {
      shape[axis] = fresh;
    } else {
      for (TensorType& type : types)
        for (std::int64_t& extent : type.shape)
          if (extent == old) extent = fresh;
    }
  } else if (kind == 2) {  // another rank: an outer axis more or less, for one tensor or for all
    const bool all = random_.below(3) != 0;
    const bool more = random_.below(2) == 0;
    const std::int64_t extent = between(1, 3);
    const std::size_t only = random_.below(types.size());
    for (std::size_t i = 0; i < types.size(); ++i) {
      Shape& shape = types[i].shape;
      if (!all && i != only) continue;
      if (more && shape.size() < 5)
        shape.insert(shape.begin(), extent);
      else if (!more && !shape.empty())
        shape.erase(shape.begin());
    }
  } else if (kind == 3) {  // grouped channels, divisible extents
    for (TensorType& type : types)
      for (std::int64_t& extent : type.shape)
        if (random_.below(3) == 0 && extent < 4) extent *= 2;
  } else {
    change(*attributes[random_.below(attributes.size())]);
  }
}

void DraftSampler::change(AttributeValue& value) {
  if (auto* integer = std::get_if<std::int64_t>(&value)) {
    *integer = between(*integer < 0 ? -4 : 0, *integer < 0 ? -1 : 4);
  } else if (auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    if (list->empty()) return;
    const std::uint64_t kind = random_.below(3);
    std::int64_t& one = (*list)[random_.below(list->size())];
    std::int64_t& other = (*list)[random_.below(list->size())];
    if (kind == 0) {
      one = between(0, 3);
    } else if (kind == 1) {
      // The same sum: paddings that move an image without changing its extents.
      if (one < 1) return;
      --one;
      ++other;
    } else {
      // A permutation stays one.
      std::swap(one, other);
    }
  } else if (auto* symbol = std::get_if<SymbolValue>(&value)) {
    std::vector<std::string> functions;
    for (const auto& [name, definition] : bank_.registry().functions())
      if (definition.arity == 1 && definition.is_real()) functions.push_back(name);
    symbol->name = functions[random_.below(functions.size())];
  } else if (auto* real = std::get_if<double>(&value)) {
    *real = static_cast<double>(between(-4, 4)) / 2;
  }
}

}  // namespace taso
