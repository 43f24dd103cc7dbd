#include <algorithm>

#include "operators/definition.h"
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

}  // namespace

bool is_elementwise(const OperatorDefinition& definition) {
  if (definition.inputs.empty() || definition.variadic() || definition.several_outputs()) return false;
  if (definition.equations.size() != 1 || !definition.equations[0].ranges.empty()) return false;
  // Every input has the axes of the output, each of which is one size or rest, or is a scalar; one has the axes.
  const std::string axes = to_text(definition.output.axes);
  bool whole = false;
  for (const InputSpec& input : definition.inputs) {
    if (input.integers || (!input.axes.empty() && to_text(input.axes) != axes)) return false;
    whole = whole || to_text(input.axes) == axes;
  }
  if (!whole) return false;
  return reads_only_at(definition.equations[0].value, definition.equations[0].coordinates);
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
