#include <algorithm>

#include "operators/definition.h"
#include "operators/plain_reads.h"
#include "operators/unparse.h"

namespace taso {
namespace {

using Kind = Expression::Kind;

/// Whether `e` is a scalar function of sizes, real attributes, elements at `place` and those of tensors without axes.
bool reads_only_at(const Expression& e, const std::vector<Expression>& place) {
  if (e.sort == Sort::integer) return true;
  switch (e.kind) {
    case Kind::real:
    case Kind::name:
      return true;
    case Kind::read:
      return e.piece == nullptr && !e.flat && e.fallback == nullptr &&
             (e.operands.empty() || std::equal(e.operands.begin(), e.operands.end(), place.begin(), place.end(),
                                               [](const Expression& a, const Expression& b) {
                                                 return a.kind == Kind::name && b.kind == Kind::name &&
                                                        a.name == b.name && a.rest == b.rest;
                                               }));
    case Kind::call:
    case Kind::negate:
    case Kind::add:
    case Kind::subtract:
    case Kind::multiply:
    case Kind::divide:
      return std::all_of(e.operands.begin(), e.operands.end(),
                         [&](const Expression& operand) { return reads_only_at(operand, place); });
    default:
      return false;
  }
}

/// Whether `e` is an element of an input, or a number.
bool is_moved(const Expression& e) {
  if (e.sort == Sort::integer || e.number()) return true;
  switch (e.kind) {
    case Kind::name:
      return e.sort == Sort::real;  // An attribute.
    case Kind::read:
      return e.sort != Sort::integer_read && e.sort != Sort::truth_read &&
             (e.fallback == nullptr || (e.fallback->kind != Kind::read && is_moved(*e.fallback)));
    case Kind::conditional:
      return is_moved(e.operands[1]) && is_moved(e.operands[2]);
    default:
      return false;
  }
}

/// Whether a function is called that is none of reals.
bool calls_machine_functions(const Expression& e) {
  const auto is_none_of_reals = [](const Expression& value) {
    return value.sort == Sort::integer_read || value.sort == Sort::truth_read || value.sort == Sort::any_read;
  };
  if (e.kind == Kind::call &&
      (is_none_of_reals(e) ||
       (e.sort == Sort::real && std::any_of(e.operands.begin(), e.operands.end(), is_none_of_reals))))
    return true;
  return (e.fallback != nullptr && calls_machine_functions(*e.fallback)) ||
         std::any_of(e.operands.begin(), e.operands.end(), calls_machine_functions);
}

/// Whether every input has the axes of the output, each of which is one size or rest, or is a scalar, one has the axes,
/// and an element is computed from those at its place.
bool reads_at_place(const OperatorDefinition& definition) {
  if (definition.inputs.empty() || definition.variadic() || definition.several_outputs()) return false;
  if (definition.equations.size() != 1 || !definition.equations[0].ranges.empty()) return false;
  const std::string axes = to_text(definition.output.axes);
  bool whole = false;
  for (const InputSpec& input : definition.inputs) {
    if (!input.axes.empty() && to_text(input.axes) != axes) return false;
    whole = whole || to_text(input.axes) == axes;
  }
  return whole && reads_only_at(definition.equations[0].value, definition.equations[0].coordinates);
}

}  // namespace

bool only_moves(const OperatorDefinition& definition) {
  const bool of_data = std::any_of(definition.inputs.begin(), definition.inputs.end(), [](const InputSpec& input) {
    return input.domain == ElementDomain::real || input.domain == ElementDomain::any;
  });
  return of_data && definition.output.domain == ElementDomain::real && definition.intermediates.empty() &&
         std::all_of(definition.inputs.begin(), definition.inputs.end(),
                     [](const InputSpec& input) { return input.domain != ElementDomain::boolean; }) &&
         std::all_of(definition.equations.begin(), definition.equations.end(),
                     [](const Equation& equation) { return is_moved(equation.value); });
}

bool is_over_reals(const OperatorDefinition& definition) {
  return definition.output.domain == ElementDomain::real &&
         std::all_of(definition.inputs.begin(), definition.inputs.end(),
                     [](const InputSpec& input) {
                       return input.domain == ElementDomain::real || input.domain == ElementDomain::integer;
                     }) &&
         std::all_of(definition.intermediates.begin(), definition.intermediates.end(),
                     [](const IntermediateSpec& tensor) { return tensor.domain == ElementDomain::real; }) &&
         std::none_of(definition.equations.begin(), definition.equations.end(),
                      [](const Equation& equation) { return calls_machine_functions(equation.value); });
}

bool is_elementwise(const OperatorDefinition& definition) {
  const auto is_real = [](const auto& tensor) { return tensor.domain == ElementDomain::real; };
  return is_real(definition.output) && std::all_of(definition.inputs.begin(), definition.inputs.end(), is_real) &&
         reads_at_place(definition);
}

bool reads_at_place_alone(const OperatorDefinition& definition) {
  // The extents of other axes have names, which a formula may use.
  const std::vector<AxisSpec>& axes = definition.output.axes;
  return axes.size() == 1 && axes[0].kind == AxisSpec::Kind::rest && reads_at_place(definition);
}

std::vector<AxisFact> axis_facts(const OperatorDefinition& definition) {
  std::vector<AxisFact> facts;
  if (definition.variadic() || definition.several_outputs()) return facts;
  const std::vector<AxisSpec>& output = definition.output.axes;
  // The spelling of an axis is its extent: a name has one value throughout a definition.
  auto spelling = [](const AxisSpec& axis) {
    return to_text(axis.factors[0]) + (axis.kind == AxisSpec::Kind::rest ? ".." : to_text(axis));
  };
  for (std::size_t i = 0; i < definition.inputs.size(); ++i) {
    const std::vector<AxisSpec>& input = definition.inputs[i].axes;
    // Positions from the end are known up to the first rest on either side.
    for (std::size_t o = 0; o < output.size(); ++o) {
      const AxisSpec& axis = output[output.size() - 1 - o];
      for (std::size_t a = 0; a < input.size(); ++a) {
        const AxisSpec& candidate = input[input.size() - 1 - a];
        if (spelling(candidate) == spelling(axis)) {
          AxisFact fact{-1 - static_cast<int>(o), i, -1 - static_cast<int>(a), axis.kind == AxisSpec::Kind::rest};
          if (fact.and_outer) {
            // It reaches outwards as long as the remaining entries are the same, up to the end of one side.
            bool same = true;
            for (std::size_t k = 0; o + k < output.size() && a + k < input.size(); ++k)
              same = same && spelling(output[output.size() - 1 - o - k]) == spelling(input[input.size() - 1 - a - k]);
            if (same) facts.push_back(fact);
          } else {
            facts.push_back(fact);
          }
        }
        if (candidate.kind == AxisSpec::Kind::rest) break;
      }
      if (axis.kind == AxisSpec::Kind::rest) break;
    }
  }
  return facts;
}

}  // namespace taso
