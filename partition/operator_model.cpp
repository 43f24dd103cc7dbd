#include "partition/operator_model.h"

#include <algorithm>

#include "partition/definition_uses.h"
#include "partition/model_builder.h"

namespace taso {
namespace {

using Kind = Expression::Kind;
using Form = AttributeExpression::Kind;

AttributeExpression dimension_of(std::uint32_t tensor, const AttributeExpression& axis) {
  AttributeExpression result;
  result.kind = Form::dimension;
  result.index = tensor;
  if (axis.kind == Form::literal)
    result.axis = std::get<std::int64_t>(axis.literal);
  else
    result.operands.push_back(axis);
  return result;
}

}  // namespace

SizePolynomial OperatorModelBuilder::scalar(const Expression& e) {
  ModelInterpreter interpreter(registry_.size_functions(), scope_, RuleDomain(model_.atoms));
  SizePolynomial result = interpreter.scalar(e);
  if (interpreter.domain().failed()) note(interpreter.domain().reason());
  return result;
}

ModelInterpreter::Value OperatorModelBuilder::vector(const Expression& e) {
  ModelInterpreter interpreter(registry_.size_functions(), scope_, RuleDomain(model_.atoms));
  ModelInterpreter::Value result = interpreter.value(e);
  if (interpreter.domain().failed()) note(interpreter.domain().reason());
  return result;
}

std::uint32_t OperatorModelBuilder::new_variable(const std::string& wanted) {
  std::string name = wanted;
  auto& names = model_.attribute_variables;
  const auto taken = [&] {
    return std::find(names.begin(), names.end(), name) != names.end() || registry_.is_function(name) ||
           std::any_of(definition_.inputs.begin(), definition_.inputs.end(),
                       [&](const InputSpec& input) { return input.name == name; });
  };
  for (int number = 2; taken(); ++number) name = wanted + std::to_string(number);
  names.push_back(name);
  return static_cast<std::uint32_t>(names.size() - 1);
}

void OperatorModelBuilder::bind_attribute(const AttributeSpec& attribute) {
  ModelAttribute result;
  result.name = attribute.name;
  ModelInterpreter::Value value;
  if (attribute.kind != AttributeKind::integers) {
    result.value = variable_expression(new_variable(attribute.name));
    if (attribute.kind == AttributeKind::integer) {
      result.list = {model_.atoms.of(result.value)};
      value = ModelInterpreter::Value::of(result.list[0]);
    }
  } else {
    const ListUse use = use_of_list(definition_, attribute);
    const std::size_t length =
        use == ListUse::fixed ? static_cast<std::size_t>(attribute.length->integer) : choice_.lists.at(attribute.name);
    result.value.kind = Form::list;
    value.vector = true;
    result.names_axes = use == ListUse::axes || use == ListUse::permutation;
    for (std::size_t i = 0; i < length; ++i) {
      const AttributeExpression element = variable_expression(new_variable(attribute.name + "_" + std::to_string(i)));
      result.value.operands.push_back(element);
      result.list.push_back(model_.atoms.of(element));
      const auto number = static_cast<std::int64_t>(i);
      value.components.push_back(use == ListUse::axes ? SizePolynomial(number - static_cast<std::int64_t>(length))
                                 : use == ListUse::permutation ? SizePolynomial(number)
                                                               : result.list.back());
    }
  }
  if (attribute.kind == AttributeKind::integer || attribute.kind == AttributeKind::integers)
    scope_.bind(attribute.name, value);
  model_.attributes.push_back(std::move(result));
}

// `require strides >= 1`, alone or in a conjunction: what is known of the sign of attributes.
void OperatorModelBuilder::learn_signs(const Expression& e) {
  if (e.kind == Kind::conjunction)
    for (const Expression& operand : e.operands) learn_signs(operand);
  if ((e.kind != Kind::greater_equal && e.kind != Kind::greater) || e.operands[0].kind != Kind::name) return;
  const auto bound = e.operands[1].kind == Kind::integer ? std::optional(e.operands[1].integer) : std::nullopt;
  const auto attribute = std::find_if(model_.attributes.begin(), model_.attributes.end(),
                                      [&](const ModelAttribute& a) { return a.name == e.operands[0].name; });
  if (!bound || attribute == model_.attributes.end()) return;
  const std::int64_t least = *bound + (e.kind == Kind::greater ? 1 : 0);
  for (const SizePolynomial& element : attribute->list) {
    if (least >= 1) model_.positive.insert(*element.single_atom());
    if (least >= 0) model_.nonnegative.insert(*element.single_atom());
  }
}

// How many axes an entry has in the model.
std::optional<std::size_t> OperatorModelBuilder::model_length(const AxisSpec& axis) const {
  if (axis.kind != AxisSpec::Kind::rest) return 1;
  const auto chosen = choice_.rests.find(axis.factors[0].name);
  if (chosen != choice_.rests.end()) return chosen->second;
  std::size_t named = 0;
  for (const ModelAttribute& attribute : model_.attributes)
    if (attribute.names_axes) named = attribute.list.size();
  return named + 1;  // those that are named, and one that is not
}

// How many axes it has, as a rule says it.
std::optional<SizePolynomial> OperatorModelBuilder::rule_length(const AxisSpec& axis) {
  if (axis.kind != AxisSpec::Kind::rest) return SizePolynomial(1);
  const Expression& extents = axis.factors[0];
  const auto known = lengths_.find(extents.name);
  if (extents.kind == Kind::name && known != lengths_.end()) return known->second;
  if (axis.length) {
    SizePolynomial length = scalar(*axis.length);
    if (extents.kind == Kind::name) lengths_[extents.name] = length;
    return length;
  }
  return std::nullopt;
}

// The lengths of the rests of an input: one of them may follow from its rank.
void OperatorModelBuilder::align(std::size_t input, std::uint32_t tensor) {
  const InputSpec& spec = definition_.inputs[input];
  AttributeExpression rank;
  rank.kind = Form::rank;
  rank.index = tensor;
  SizePolynomial others;
  const AxisSpec* unknown = nullptr;
  std::size_t numbers = 0;
  bool open = false;
  for (const AxisSpec& axis : spec.axes) {
    const bool rest = axis.kind == AxisSpec::Kind::rest;
    const bool number = !rest || choice_.rests.contains(axis.factors[0].name);
    open = open || !number;
    numbers += *model_length(axis);
    if (rest && number) {
      lengths_[axis.factors[0].name] = SizePolynomial(static_cast<std::int64_t>(*model_length(axis)));
      others = others + lengths_[axis.factors[0].name];
    } else if (const std::optional<SizePolynomial> length = rule_length(axis)) {
      others = others + *length;
    } else {
      unknown = &axis;
    }
  }
  if (unknown != nullptr) lengths_[unknown->factors[0].name] = model_.atoms.of(rank) - others;
  const bool rest = std::any_of(spec.axes.begin(), spec.axes.end(),
                                [](const AxisSpec& axis) { return axis.kind == AxisSpec::Kind::rest; });
  if (rest && !open)
    model_.conditions.push_back(
        {Condition::Relation::equal, rank, integer_expression(static_cast<std::int64_t>(numbers))});
}

bool OperatorModelBuilder::is_rest(const std::string& name) const {
  const std::vector<std::string> rests = rests_of(definition_);
  return std::find(rests.begin(), rests.end(), name) != rests.end();
}

// The axes of an entry whose extents are these: `trailing` axes stand right of it.
std::vector<ModelAxis> OperatorModelBuilder::axes_of(const AxisSpec& axis, const ModelInterpreter::Value& extents,
                                                     const SizePolynomial& trailing, bool input) {
  std::vector<ModelAxis> result;
  const std::size_t count = extents.components.size();
  const std::string name = axis.kind == AxisSpec::Kind::rest ? axis.factors[0].name : "";
  const auto origin = origins_.find(name);
  const std::string rest = origin != origins_.end() ? origin->second : name;
  const ModelAttribute* naming = nullptr;
  for (const ModelAttribute& attribute : model_.attributes)
    if (attribute.names_axes) naming = &attribute;
  for (std::size_t i = 0; i < count; ++i) {
    ModelAxis one;
    one.extent = extents.components[i];
    one.factors = {one.extent};
    const SizePolynomial inner(static_cast<std::int64_t>(count - i));
    one.number = SizePolynomial() - trailing - inner;
    if (!name.empty() && naming != nullptr && choice_.rests.contains(rest)) {
      // A permutation names the axes of what is permuted.
      if (input) one.number = naming->list[i] - SizePolynomial(static_cast<std::int64_t>(count));
    } else if (!name.empty() && naming != nullptr && i > 0) {
      one.number = naming->list[i - 1];
    } else if (!name.empty() && !choice_.rests.contains(rest) && is_rest(rest)) {
      one.rest = rest;
      one.number = generic_number(rest, trailing);
    }
    result.push_back(std::move(one));
  }
  return result;
}

// The number of any axis of an open rest in a tensor: the variable numbers it where the rest was first met.
SizePolynomial OperatorModelBuilder::generic_number(const std::string& rest, const SizePolynomial& trailing) {
  auto known = model_.rests.find(rest);
  if (known == model_.rests.end()) {
    const std::uint32_t variable = new_variable("c");
    known = model_.rests
                .emplace(rest, ModelRest{variable, SizePolynomial() - trailing - lengths_[rest],
                                         SizePolynomial(-1) - trailing})
                .first;
    rest_trailing_[rest] = trailing;
  }
  return model_.atoms.of(variable_expression(known->second.variable)) + rest_trailing_[rest] - trailing;
}

// The axes of an input tensor, named and compared as its specification says.
bool OperatorModelBuilder::input(std::size_t number, const SizeStep& step, std::uint32_t tensor) {
  const InputSpec& spec = definition_.inputs[number];
  ModelTensor& result = model_.tensors[tensor];
  if (step.entry == SizeStep::align) {
    align(number, tensor);
    entries_[tensor].resize(spec.axes.size());
    return obstacle_.empty();
  }
  const AxisSpec& axis = spec.axes[step.entry];
  SizePolynomial trailing;
  for (std::size_t e = step.entry + 1; e < spec.axes.size(); ++e) {
    const std::optional<SizePolynomial> length = rule_length(spec.axes[e]);
    if (!length) return note("the number of axes behind " + to_text(axis) + " is not known");
    trailing = trailing + *length;
  }
  ModelInterpreter::Value unknown;
  unknown.vector = true;
  unknown.components.resize(*model_length(axis));
  std::vector<ModelAxis> axes = axes_of(axis, unknown, trailing, true);
  for (ModelAxis& one : axes) {
    const std::optional<AttributeExpression> place = model_.atoms.expression(one.number);
    if (!place) return note("an axis has no number");
    one.extent = model_.atoms.of(dimension_of(tensor, *place));
    model_.positive.insert(*one.extent.single_atom());
    one.factors = {one.extent};
  }
  entries_[tensor][step.entry] = axes;
  bind_entry(axis, step, entries_[tensor][step.entry]);
  result.axes.clear();
  for (const std::vector<ModelAxis>& entry : entries_[tensor])
    result.axes.insert(result.axes.end(), entry.begin(), entry.end());
  return obstacle_.empty();
}

// What an entry says of the extents of its axes.
void OperatorModelBuilder::bind_entry(const AxisSpec& axis, const SizeStep& step, std::vector<ModelAxis>& axes) {
  const Expression& first = axis.factors[0];
  const auto known = [&](const std::string& name) { return std::as_const(scope_).find(name) != nullptr; };
  if (axis.kind == AxisSpec::Kind::rest) {
    if (known(first.name)) {
      const ModelInterpreter::Value& value = *std::as_const(scope_).find(first.name);
      for (std::size_t i = 0; i < axes.size() && i < value.components.size(); ++i)
        axes[i].extent = value.components[i], axes[i].factors = {axes[i].extent};
    } else {
      ModelInterpreter::Value value;
      value.vector = true;
      for (const ModelAxis& one : axes) value.components.push_back(one.extent);
      scope_.bind(first.name, std::move(value));
    }
    return;
  }
  ModelAxis& one = axes[0];
  if (first.kind == Kind::piece && axis.kind == AxisSpec::Kind::size) {
    if (!known(first.name)) scope_.bind(first.name, ModelInterpreter::Value::of(ModelInterpreter::Value::Components()));
    scope_.find(first.name)->components.push_back(one.extent);
    return;
  }
  const bool finds = step.unknown && !known(axis.factors[*step.unknown].name);
  if (finds && axis.factors.size() == 1) {
    scope_.bind(first.name, ModelInterpreter::Value::of(one.extent));
    return;
  }
  const SizePolynomial extent = one.extent;
  if (finds) find_factor(axis.factors[*step.unknown].name, axis, extent);
  one.factors.clear();
  one.extent = SizePolynomial(1);
  for (const Expression& factor : axis.factors) {
    one.factors.push_back(scalar(factor));
    one.extent = one.extent * one.factors.back();
  }
}

// A factor that is found by division is a variable whose value is given, with what it is as a condition; or 1.
void OperatorModelBuilder::find_factor(const std::string& name, const AxisSpec& axis, const SizePolynomial& extent) {
  SizePolynomial rest(1);
  for (const Expression& factor : axis.factors)
    if (factor.kind != Kind::name || factor.name != name) rest = rest * scalar(factor);
  if (rest == SizePolynomial(1)) {
    scope_.bind(name, ModelInterpreter::Value::of(extent));
  } else if (choice_.unit == name) {
    scope_.bind(name, ModelInterpreter::Value::of(SizePolynomial(1)));
    const auto left = model_.atoms.expression(extent), right = model_.atoms.expression(rest);
    if (left && right) model_.conditions.push_back({Condition::Relation::equal, *left, *right});
  } else {
    const std::uint32_t variable = new_variable(name);
    const SizePolynomial factor = model_.atoms.of(variable_expression(variable));
    model_.positive.insert(*factor.single_atom());
    model_.factors.push_back({name, variable, rest, extent});
    scope_.bind(name, ModelInterpreter::Value::of(factor));
  }
}

bool OperatorModelBuilder::note(const std::string& obstacle) {
  if (obstacle_.empty()) obstacle_ = obstacle;
  return false;
}

Expected<OperatorModel> make_model(const OperatorRegistry& registry, const OperatorDefinition& definition,
                                   const ModelChoice& choice) {
  return OperatorModelBuilder(registry, definition, choice).build();
}

}  // namespace taso
