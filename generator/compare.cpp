#include "generator/compare.h"

#include <algorithm>
#include <utility>

#include "support/random.h"

namespace taso {
namespace {

constexpr std::uint32_t ill_typed_term = static_cast<std::uint32_t>(-1);
constexpr std::size_t max_variables = 16;
/// Beyond, what is remembered is forgotten.
constexpr std::size_t max_applications = 20'000, max_terms = 100'000, max_remembered_elements = 4'000'000;

void append(std::string& key, std::uint64_t number) {
  // Nearly all numbers are small.
  for (; number >= 0x80; number >>= 7) key.push_back(static_cast<char>(number | 0x80));
  key.push_back(static_cast<char>(number));
}

void append(std::string& key, std::int64_t number) {
  append(key, (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number >> 63));
}

void append(std::string& key, const AttributeValue& value) {
  key.push_back(static_cast<char>('a' + value.index()));
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    append(key, *integer);
  } else if (const auto* real = std::get_if<double>(&value)) {
    key.append(reinterpret_cast<const char*>(real), sizeof *real);
  } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    append(key, static_cast<std::uint64_t>(list->size()));
    for (const std::int64_t element : *list) append(key, element);
  } else {
    key += std::get<SymbolValue>(value).name;
    key.push_back('\0');
  }
}

}  // namespace

InstanceComparer::InstanceComparer(const OperatorRegistry& registry, std::uint64_t seed, std::int64_t max_elements,
                                   bool ordered)
    : registry_(registry), ring_(seed, ordered), max_elements_(max_elements) {
  Random random(seed, "elements");
  random_.resize(max_variables * static_cast<std::size_t>(max_elements));
  for (Mod61& element : random_) element = ring_.element(random.next());
}

TypedApplication& InstanceComparer::look_up(const std::string& op, NamedAttributes attributes,
                                            std::span<const Shape* const> arguments) {
  key_.assign(op);
  key_.push_back('\0');
  for (const auto& [name, value] : attributes) append(key_, value);
  for (const Shape* shape : arguments) {
    append(key_, static_cast<std::uint64_t>(shape->size()));
    for (const std::int64_t extent : *shape) append(key_, extent);
  }
  const auto known = applications_.find(std::string_view(key_));
  if (known != applications_.end()) return known->second;
  TypedApplication& made = applications_[key_];
  Attributes given;
  const OperatorSignature* signature = registry_.signature(op);
  for (const auto& [name, value] : attributes) {
    const auto* integer = std::get_if<std::int64_t>(&value);
    bool real = false;
    if (integer != nullptr && signature != nullptr)
      for (const AttributeSignature& declared : signature->attributes)
        real = real || (declared.name == name && declared.kind == AttributeKind::real);
    given.set(name, real ? AttributeValue(static_cast<double>(*integer)) : value);
  }
  auto complete = registry_.complete(op, given);
  if (!complete) return made;
  std::vector<TensorType> types;
  for (const Shape* shape : arguments) types.push_back({ElementType::f32, *shape, true});
  auto outputs = registry_.infer(op, *complete, types);
  if (!outputs) return made;
  made.typed = made.small = true;
  for (TensorType& type : *outputs) {
    made.small = made.small && type.elements() <= max_elements_;
    made.outputs.push_back(std::move(type.shape));
  }
  made.op = op;
  made.attributes = std::move(complete).value();
  return made;
}

const TypedApplication& InstanceComparer::apply(const std::string& op, NamedAttributes attributes,
                                                std::span<const Shape* const> arguments) {
  forget_if_large();
  return look_up(op, attributes, arguments);
}

void InstanceComparer::forget_if_large() {
  if (applications_.size() <= max_applications && terms_.size() <= max_terms && term_ids_.size() <= 2 * max_terms &&
      elements_ <= max_remembered_elements)
    return;
  term_ids_.clear();
  terms_.clear();
  values_.clear();
  shapes_of_variables_.clear();
  elements_ = 0;
  if (applications_.size() > max_applications) applications_.clear();
}

InstanceComparer::ValueId InstanceComparer::variable(std::size_t number, const Shape& shape) {
  key_.assign(1, '\1');
  append(key_, static_cast<std::uint64_t>(number));
  for (const std::int64_t extent : shape) append(key_, extent);
  const auto [it, inserted] = term_ids_.try_emplace(key_, static_cast<TermId>(terms_.size()));
  if (inserted) {
    Term term;
    term.first = static_cast<ValueId>(values_.size());
    term.state = Term::State::evaluated;
    Value value;
    value.term = it->second;
    value.shape = &(shapes_of_variables_[key_] = shape);
    value.tensor.shape = shape;
    const Mod61* first = random_.data() + (number % max_variables) * static_cast<std::size_t>(max_elements_);
    value.tensor.elements.assign(first, first + volume(shape));
    elements_ += value.tensor.elements.size();
    terms_.push_back(std::move(term));
    values_.push_back(std::move(value));
  }
  return terms_[it->second].first;
}

bool InstanceComparer::type(const Pattern& pattern, const Bindings& bindings, const std::vector<ValueId>& variables,
                            std::vector<ValueId>& outputs) {
  std::vector<TermId> term_at;  // per node of the pattern
  auto value_of = [&](const PatternValue& value) -> std::optional<ValueId> {
    if (value.is_variable) return variables[value.index];
    const Term& term = terms_[term_at[value.index]];
    if (value.port >= term.application->outputs.size()) return std::nullopt;
    return term.first + value.port;
  };
  std::vector<ValueId> inputs;
  for (const PatternNode& node : pattern.nodes) {
    attributes_.resize(node.attributes.size());
    for (std::size_t i = 0; i < attributes_.size(); ++i) {
      attributes_[i].first = node.attributes[i].first;
      const AttributeExpression& expression = node.attributes[i].second;
      if (expression.kind == AttributeExpression::Kind::literal) {
        attributes_[i].second = expression.literal;
        continue;
      }
      auto value = evaluate(expression, bindings);
      if (!value) return false;
      attributes_[i].second = std::move(value).value();
    }
    inputs.clear();
    for (const PatternValue& input : node.inputs) {
      const auto value = value_of(input);
      if (!value) return false;
      inputs.push_back(*value);
    }
    key_.assign(node.op);
    key_.push_back('\0');
    for (const auto& [name, value] : attributes_) append(key_, value);
    for (const ValueId input : inputs) append(key_, static_cast<std::uint64_t>(input));
    const auto [it, inserted] = term_ids_.try_emplace(key_, ill_typed_term);
    if (inserted) {
      std::vector<const Shape*> arguments;
      for (const ValueId input : inputs) arguments.push_back(values_[input].shape);
      TypedApplication& application = look_up(node.op, attributes_, arguments);
      if (application.small) {
        it->second = static_cast<TermId>(terms_.size());
        Term term;
        term.application = &application;
        term.inputs = inputs;
        term.first = static_cast<ValueId>(values_.size());
        for (const Shape& shape : application.outputs) values_.push_back({it->second, &shape, {}});
        terms_.push_back(std::move(term));
      }
    }
    if (it->second == ill_typed_term) return false;
    term_at.push_back(it->second);
  }
  for (const PatternValue& output : pattern.outputs) {
    const auto value = value_of(output);
    if (!value) return false;
    outputs.push_back(*value);
  }
  return true;
}

bool InstanceComparer::evaluate_term(TermId id) {
  if (terms_[id].state != Term::State::unevaluated) return terms_[id].state == Term::State::evaluated;
  terms_[id].state = Term::State::undefined;
  std::vector<const RingTensor<Mod61>*> inputs;
  for (const ValueId input : terms_[id].inputs) {
    if (!evaluate_term(values_[input].term)) return false;
    inputs.push_back(&values_[input].tensor);
  }
  TypedApplication& application = *terms_[id].application;
  if (!application.instance) {
    std::vector<TensorType> types;
    for (const ValueId input : terms_[id].inputs) types.push_back({ElementType::f32, *values_[input].shape, true});
    auto made = OperatorInstance::create(registry_, application.op, application.attributes, types);
    if (!made) return false;
    application.instance = std::move(made).value();
  }
  FieldRing ring = ring_;
  auto outputs = evaluate(*application.instance, ring, std::span<const RingTensor<Mod61>* const>(inputs));
  if (!outputs || !ring.status()) return false;
  for (std::size_t port = 0; port < outputs->size(); ++port) {
    elements_ += (*outputs)[port].elements.size();
    values_[terms_[id].first + port].tensor = std::move((*outputs)[port]);
  }
  terms_[id].state = Term::State::evaluated;
  return true;
}

Comparison InstanceComparer::compare(const Substitution& rule, const std::vector<TensorType>& types,
                                     const std::vector<std::optional<AttributeValue>>& attributes) {
  forget_if_large();
  Bindings bindings;
  std::vector<ValueId> variables;
  for (const TensorType& type : types)
    if (type.elements() > max_elements_) return Comparison::ill_typed;
  for (const TensorType& type : types) {
    bindings.tensors.push_back(&type);
    variables.push_back(variable(variables.size(), type.shape));
  }
  bindings.attributes = attributes;
  std::vector<ValueId> left, right;
  if (!type(rule.source, bindings, variables, left) || !type(rule.target, bindings, variables, right))
    return Comparison::ill_typed;
  for (std::size_t i = 0; i < left.size(); ++i)
    if (*values_[left[i]].shape != *values_[right[i]].shape) return Comparison::ill_typed;
  for (const ValueId value : left)
    if (!evaluate_term(values_[value].term)) return Comparison::ill_typed;
  // The target may divide by zero where the source does not.
  for (const ValueId value : right)
    if (!evaluate_term(values_[value].term)) return Comparison::different;
  for (std::size_t i = 0; i < left.size(); ++i)
    if (left[i] != right[i] && values_[left[i]].tensor.elements != values_[right[i]].tensor.elements)
      return Comparison::different;
  return Comparison::equal;
}

}  // namespace taso
