#include <algorithm>

#include "operators/indirect_coordinate.h"
#include "partition/definition_uses.h"
#include "partition/model_builder.h"

namespace taso {
namespace {

using Kind = Expression::Kind;

std::vector<SizePolynomial> flattened(const std::vector<std::vector<SizePolynomial>>& digits) {
  std::vector<SizePolynomial> result;
  for (const std::vector<SizePolynomial>& axis : digits) result.insert(result.end(), axis.begin(), axis.end());
  return result;
}

}  // namespace

Expected<OperatorModel> OperatorModelBuilder::build() {
  for (const AttributeSpec& attribute : definition_.attributes) bind_attribute(attribute);
  for (const ModelAttribute& attribute : model_.attributes)
    lengths_[attribute.name] = SizePolynomial(static_cast<std::int64_t>(attribute.list.size()));
  for (const SizeStatement& statement : definition_.statements)
    if (statement.name.empty()) learn_signs(statement.value);
  const std::size_t tensors = definition_.variadic() ? 2 : definition_.inputs.size();
  for (std::size_t t = 0; t < tensors; ++t)
    model_.tensors.push_back(
        {definition_.variadic() ? definition_.inputs[0].name + std::to_string(t) : definition_.inputs[t].name, {}});
  const std::size_t rounds = definition_.variadic() ? tensors : 1;
  for (std::size_t round = 0; round < rounds && obstacle_.empty(); ++round)
    for (const SizeStep& step : definition_.solution)
      if (obstacle_.empty() && !input(step.input, step, static_cast<std::uint32_t>(step.input + round))) break;
  if (obstacle_.empty()) statements();
  std::size_t count = 1;
  if (definition_.output.count && obstacle_.empty()) {
    const std::optional<std::int64_t> number = scalar(*definition_.output.count).constant();
    if (!number || *number < 1) note("the number of outputs is not known");
    count = static_cast<std::size_t>(number.value_or(1));
  }
  for (output_ = 0; output_ < count && obstacle_.empty(); ++output_) {
    const std::size_t mark = scope_.size();
    if (definition_.several_outputs())
      scope_.bind(definition_.output.piece,
                  ModelInterpreter::Value::of(SizePolynomial(static_cast<std::int64_t>(output_))));
    model_.outputs.push_back(output_axes());
    for (const Equation& one : definition_.equations)
      if (one.target == "out" && obstacle_.empty()) equation(one);
    scope_.shrink(mark);
  }
  if (!obstacle_.empty()) return bad_input(obstacle_);
  return std::move(model_);
}

void OperatorModelBuilder::statements() {
  for (const SizeStatement& statement : definition_.statements) {
    if (statement.name.empty() || !obstacle_.empty()) continue;
    ModelInterpreter::Value value = vector(statement.value);
    // A size that cannot be said is an index of which nothing is known: what it is used for cannot be said, either.
    if (!obstacle_.empty())
      for (SizePolynomial& component : value.components) component = model_.atoms.new_index(statement.name);
    obstacle_.clear();
    if (value.vector) {
      lengths_[statement.name] = SizePolynomial(static_cast<std::int64_t>(value.components.size()));
      std::set<std::string> names;
      const auto collect = [&](const auto& self, const Expression& e) -> void {
        names.insert(e.name);
        for (const Expression& operand : e.operands) self(self, operand);
      };
      collect(collect, statement.value);
      for (const std::string& rest : rests_of(definition_))
        if (names.contains(rest)) {
          origins_[statement.name] = rest;
          if (!choice_.rests.contains(rest)) lengths_[statement.name] = lengths_[rest];
        }
    }
    scope_.bind(statement.name, std::move(value));
  }
}

std::vector<ModelAxis> OperatorModelBuilder::output_axes() {
  std::vector<ModelAxis> result;
  const std::vector<AxisSpec>& axes = definition_.output.axes;
  for (std::size_t e = 0; e < axes.size(); ++e) {
    SizePolynomial trailing;
    for (std::size_t right = e + 1; right < axes.size(); ++right) {
      const std::optional<SizePolynomial> length = rule_length(axes[right]);
      if (!length) note("the number of axes of the output is not known");
      trailing = trailing + length.value_or(SizePolynomial());
    }
    if (axes[e].kind == AxisSpec::Kind::rest) {
      const std::vector<ModelAxis> some = axes_of(axes[e], vector(axes[e].factors[0]), trailing, false);
      result.insert(result.end(), some.begin(), some.end());
      continue;
    }
    ModelAxis one;
    one.number = SizePolynomial(-1) - trailing;
    one.extent = SizePolynomial(1);
    for (const Expression& factor : axes[e].factors) {
      one.factors.push_back(scalar(factor));
      one.extent = one.extent * one.factors.back();
    }
    result.push_back(std::move(one));
  }
  return result;
}

void OperatorModelBuilder::equation(const Equation& equation) {
  // An equation for every tensor of a variadic input.
  const bool pieces = definition_.variadic() && !definition_.several_outputs();
  for (std::size_t k = 0; k < (pieces ? model_.tensors.size() : 1); ++k) {
    const std::size_t mark = scope_.size();
    if (pieces)
      scope_.bind(definition_.inputs[0].piece,
                  ModelInterpreter::Value::of(SizePolynomial(static_cast<std::int64_t>(k))));
    bind_output(equation);
    if (obstacle_.empty()) walk(equation.value, {});
    scope_.shrink(mark);
  }
}

SegmentRow& OperatorModelBuilder::row_of(std::size_t axis, bool of_outputs) {
  const auto known = std::find_if(model_.rows.begin(), model_.rows.end(), [&](const SegmentRow& row) {
    return row.axis == axis && row.of_outputs == of_outputs;
  });
  return known != model_.rows.end() ? *known : model_.rows.emplace_back(SegmentRow{axis, of_outputs, {}});
}

// A coordinate with a declared variable: an offset plus it is a segment of the axis. Variables from `first` on are
// those of the equation's ranges.
void OperatorModelBuilder::bind_segment(const Expression& coordinate, const Equation& equation, std::size_t axis,
                                        std::size_t first) {
  const SizePolynomial place = scalar(coordinate);
  for (std::size_t v = first; v < first + equation.ranges.size() && v < model_.variables.size(); ++v) {
    ModelVariable& variable = model_.variables[v];
    const SizePolynomial offset = place - SizePolynomial::atom(variable.index);
    const bool plain =
        !model_.atoms.mentions(offset, [&](SizeAtomId id) { return model_.atoms[id].kind == SizeAtom::Kind::index; });
    if (!plain || definition_.several_outputs() || !model_.atoms.mentions(place, variable.index)) continue;
    SegmentRow& row = row_of(axis, false);
    row.segments.push_back({v, offset, variable.extent});
    variable.row = static_cast<std::size_t>(&row - model_.rows.data());
    variable.axis = axis;
    variable.obstacle.clear();
  }
}

void OperatorModelBuilder::bind_output(const Equation& equation) {
  const std::size_t first = model_.variables.size();
  for (const Expression::Range& range : equation.ranges) open(range, "", "its elements do not stand side by side");
  std::size_t axis = 0;
  const std::vector<ModelAxis>& axes = model_.outputs.back();
  for (std::size_t i = 0; i < equation.coordinates.size(); ++i) {
    const Expression& e = equation.coordinates[i];
    const bool rest = definition_.output.axes[i].kind == AxisSpec::Kind::rest;
    const bool declared = std::any_of(equation.ranges.begin(), equation.ranges.end(),
                                      [&](const Expression::Range& range) { return range.name == e.name; });
    if (e.kind == Kind::name && rest) {
      const std::size_t count = vector(definition_.output.axes[i].factors[0]).components.size();
      ModelInterpreter::Value value;
      value.vector = true;
      for (std::size_t c = 0; c < count; ++c, ++axis)
        value.components.push_back(output_variable(e.name, axis, 0, axes[axis].extent));
      scope_.bind(e.name, std::move(value));
    } else if (e.kind == Kind::name && !declared) {
      scope_.bind(e.name, ModelInterpreter::Value::of(output_variable(e.name, axis, 0, axes[axis].extent)));
      ++axis;
    } else if (e.kind == Kind::tuple) {
      for (std::size_t d = 0; d < e.operands.size(); ++d)
        scope_.bind(e.operands[d].name,
                    ModelInterpreter::Value::of(output_variable(e.operands[d].name, axis, d, axes[axis].factors[d])));
      ++axis;
    } else {
      bind_segment(e, equation, axis, first);
      ++axis;
    }
    if (axis > axes.size()) note("the coordinates of the output are not understood");
  }
}

SizePolynomial OperatorModelBuilder::new_index(ModelVariable variable) {
  // A variable with one value is that value.
  if (variable.extent == SizePolynomial(1)) return SizePolynomial();
  const SizePolynomial index = model_.atoms.new_index(variable.name);
  variable.index = *index.single_atom();
  model_.nonnegative.insert(variable.index);
  model_.variables.push_back(std::move(variable));
  return index;
}

SizePolynomial OperatorModelBuilder::output_variable(const std::string& name, std::size_t axis, std::size_t digit,
                                                     const SizePolynomial& extent) {
  const auto known = outputs_.find({axis, digit});
  if (known == outputs_.end()) {
    const SizePolynomial index = new_index(
        {.name = name, .index = 0, .extent = extent, .reducer = "", .obstacle = "", .axis = axis, .digit = digit});
    if (!index.is_zero()) outputs_[{axis, digit}] = model_.variables.size() - 1;
    return index;
  }
  const ModelVariable variable = model_.variables[known->second];
  if (variable.extent == extent || output_ == 0) return SizePolynomial::atom(variable.index);
  // It has another extent in each output.
  SegmentRow& row = row_of(axis, true);
  const std::size_t number = static_cast<std::size_t>(&row - model_.rows.data());
  if (row.segments.empty()) {
    row.segments.push_back({known->second, SizePolynomial(), variable.extent});
    model_.variables[known->second].row = number;
  }
  const SizePolynomial offset = row.segments.back().offset + row.segments.back().extent;
  const SizePolynomial index = new_index({.name = name,
                                          .index = 0,
                                          .extent = extent,
                                          .reducer = "",
                                          .obstacle = digit > 0 ? "it has another extent in each output" : "",
                                          .axis = axis,
                                          .digit = digit,
                                          .row = number});
  if (!index.is_zero()) row.segments.push_back({model_.variables.size() - 1, offset, extent});
  return index;
}

void OperatorModelBuilder::open(const Expression::Range& range, const std::string& reducer,
                                const std::string& obstacle) {
  ModelInterpreter::Value extents = vector(*range.extent);
  ModelInterpreter::Value value;
  value.vector = range.rest;
  for (const SizePolynomial& extent : extents.components)
    value.components.push_back(
        new_index({.name = range.name, .index = 0, .extent = extent, .reducer = reducer, .obstacle = obstacle}));
  scope_.bind(range.name, std::move(value));
}

void OperatorModelBuilder::walk(const Expression& e, const Context& context) {
  if (!obstacle_.empty() || e.kind == Kind::infinity) return;
  if (e.kind == Kind::negate && e.operands[0].kind == Kind::infinity) return;
  if (e.sort == Sort::integer && e.kind != Kind::integer) {
    model_.sizes.push_back({scalar(e), to_text(e)});
    return;
  }
  switch (e.kind) {
    case Kind::negate:
      walk(e.operands[0], context.linear("parts of it would be negated before they are combined"));
      return;
    case Kind::add:
    case Kind::subtract:
      for (const Expression& operand : e.operands)
        walk(operand, context.below("something would be added to parts of it before they are combined"));
      return;
    case Kind::multiply:
      for (const Expression& operand : e.operands)
        walk(operand, context.linear("parts of it would be multiplied before they are combined"));
      return;
    case Kind::divide:
      walk(e.operands[0], context.linear("parts of it would be divided before they are combined"));
      walk(e.operands[1], context.below("something would be divided by parts of it before they are combined"));
      return;
    case Kind::call:
      return walk_call(e, context);
    case Kind::conditional:
      compare(e.operands[0]);
      for (std::size_t i : {1, 2})
        walk(e.operands[i], context.below("parts of it would stand under an if before they are combined"));
      return;
    case Kind::read:
    case Kind::valid:
      return walk_read(e.kind == Kind::valid ? e.operands[0] : e, context);
    case Kind::reduce:
      return walk_reduction(e, context);
    default:
      return;  // literals, real attributes, parameters
  }
}

void OperatorModelBuilder::walk_call(const Expression& e, const Context& context) {
  for (const Expression& operand : e.operands)
    walk(operand, context.below("parts of it would go through " + e.name + " before they are combined"));
}

void OperatorModelBuilder::compare(const Expression& e) {
  switch (e.kind) {
    case Kind::equal:
    case Kind::not_equal:
    case Kind::less:
    case Kind::less_equal:
    case Kind::greater:
    case Kind::greater_equal: {
      const ModelInterpreter::Value left = vector(e.operands[0]), right = vector(e.operands[1]);
      const std::size_t count = std::max(left.components.size(), right.components.size());
      for (std::size_t i = 0; i < count; ++i) model_.comparisons.push_back({left.at(i) - right.at(i), to_text(e)});
      return;
    }
    default:
      for (const Expression& operand : e.operands) compare(operand);
  }
}

void OperatorModelBuilder::walk_reduction(const Expression& e, const Context& context) {
  const std::size_t mark = scope_.size();
  const bool sum = e.name == "sum";
  for (const Expression::Range& range : e.ranges) open(range, e.name, sum ? context.of_sums : context.of_others);
  const std::string inside = "parts of it would go through another " + e.name + " before they are combined";
  walk(e.operands[0], sum ? context.linear(inside) : context.below(inside));
  scope_.shrink(mark);
}

/// The coordinate `axis` of a read, which an input of integers says: an index of the sum over the axis.
SizePolynomial OperatorModelBuilder::indirect(const Expression& e, std::size_t axis, const Context& context) {
  const IndirectCoordinate parts = indirect_coordinate(e.operands[axis]);
  const auto input = std::find_if(definition_.inputs.begin(), definition_.inputs.end(),
                                  [&](const InputSpec& spec) { return spec.name == e.name; });
  if (input == definition_.inputs.end()) {
    note(to_text(e) + " is not understood");
    return {};
  }
  const Expression& extent = input->axes[axis].factors[0];
  const auto is_zero = [](const Expression& value) {
    return (value.kind == Kind::integer && value.integer == 0) || (value.kind == Kind::real && value.real == 0);
  };
  std::string obstacle = context.of_sums;
  if (parts.places == nullptr)
    obstacle = "nothing tells a piece which part of the axis it has";
  else if (e.fallback == nullptr || !is_zero(*e.fallback))
    obstacle = "what is read outside of a piece is not 0";
  const std::size_t number = model_.variables.size();
  const SizePolynomial index = new_index(
      {.name = to_text(extent), .index = 0, .extent = scalar(extent), .reducer = "sum", .obstacle = obstacle});
  if (!index.is_zero() && parts.places != nullptr)
    model_.indirect.push_back({number, scalar(*parts.places),
                               parts.offset != nullptr ? scalar(*parts.offset) : SizePolynomial(),
                               to_text(e.operands[axis])});
  return index;
}

std::vector<std::vector<SizePolynomial>> OperatorModelBuilder::coordinates_of(const Expression& e,
                                                                              const Context& context) {
  std::vector<std::vector<SizePolynomial>> result;
  for (std::size_t i = 0; i < e.operands.size(); ++i) {
    const Expression& coordinate = e.operands[i];
    if (coordinate.sort == Sort::integer_read) {
      walk_read(*indirect_coordinate(coordinate).read, {});
      result.push_back({indirect(e, i, context)});
    } else if (coordinate.kind == Kind::tuple) {
      std::vector<SizePolynomial> digits;
      for (const Expression& digit : coordinate.operands) digits.push_back(scalar(digit));
      result.push_back(std::move(digits));
    } else {
      for (const SizePolynomial& component : vector(coordinate).components) result.push_back({component});
    }
  }
  return result;
}

void OperatorModelBuilder::walk_read(const Expression& e, const Context& context) {
  if (e.fallback != nullptr)
    walk(*e.fallback, context.below("parts of it would stand behind an or before they are combined"));
  for (std::size_t input = 0; input < definition_.inputs.size(); ++input) {
    if (definition_.inputs[input].name != e.name) continue;
    std::size_t tensor = input;
    if (e.piece != nullptr) tensor += static_cast<std::size_t>(scalar(*e.piece).constant().value_or(0));
    return read_input(e, tensor, context);
  }
  unfold(e, context);
}

void OperatorModelBuilder::read_input(const Expression& e, std::size_t tensor, const Context& context) {
  ModelRead read;
  read.tensor = tensor;
  read.may_leave = e.fallback != nullptr;
  if (e.flat) {
    read.flat = scalar(e.operands[0]);
  } else {
    read.coordinates = coordinates_of(e, context);
    if (read.coordinates.size() != model_.tensors[tensor].axes.size()) {
      note(to_text(e) + " is not understood");
      return;
    }
  }
  model_.reads.push_back(std::move(read));
}

// An element of an intermediate is what its equation says.
void OperatorModelBuilder::unfold(const Expression& e, const Context& context) {
  const Equation* equation = nullptr;
  for (const Equation& one : definition_.equations) {
    if (one.target != e.name) continue;
    if (equation != nullptr) note(e.name + " has several equations");
    equation = &one;
  }
  const IntermediateSpec* spec = definition_.find_intermediate(e.name);
  if (equation == nullptr || spec == nullptr || e.flat || !equation->ranges.empty()) {
    note(to_text(e) + " is not understood");
    return;
  }
  const std::vector<std::vector<SizePolynomial>> digits = coordinates_of(e, context);
  const std::vector<SizePolynomial> place = flattened(digits);
  for (const Unfolded& outer : unfolding_)
    if (outer.name == e.name) {
      model_.steps.push_back({outer.coordinates, place});
      return;
    }
  if (unfolding_.size() > 20) {
    note("intermediates nest too deep");
    return;
  }
  const std::size_t mark = scope_.size();
  std::size_t at = 0;
  for (std::size_t i = 0; i < equation->coordinates.size() && obstacle_.empty(); ++i) {
    const Expression& name = equation->coordinates[i];
    const auto next = [&]() {
      return at < place.size() ? place[at++] : (note(e.name + " is not understood"), SizePolynomial());
    };
    if (name.kind == Kind::tuple) {
      for (const Expression& digit : name.operands) scope_.bind(digit.name, ModelInterpreter::Value::of(next()));
    } else if (name.kind == Kind::name && spec->axes[i].kind == AxisSpec::Kind::rest) {
      ModelInterpreter::Value value;
      value.vector = true;
      const std::size_t count = vector(spec->axes[i].factors[0]).components.size();
      for (std::size_t c = 0; c < count; ++c) value.components.push_back(next());
      scope_.bind(name.name, std::move(value));
    } else if (name.kind == Kind::name) {
      scope_.bind(name.name, ModelInterpreter::Value::of(next()));
    } else {
      note("the equation of " + e.name + " is not understood");
    }
  }
  unfolding_.push_back({e.name, place});
  walk(equation->value, context);
  unfolding_.pop_back();
  scope_.shrink(mark);
}

}  // namespace taso
