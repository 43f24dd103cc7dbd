#include "operators/plain_reads.h"

#include <algorithm>
#include <map>
#include <string>

#include "operators/unparse.h"

namespace taso {
namespace {

using Kind = Expression::Kind;

// What index variables range over, as it is spelled; vectors of variables and single ones apart.
class Ranges {
 public:
  void add(const std::string& variable, bool rest, const Expression& extent) {
    spelling_[variable] = spelled(rest, extent);
  }

  // That the coordinates of an equation are variables which range over the axes of what it writes.
  bool add(const std::vector<Expression>& coordinates, const std::vector<AxisSpec>& axes) {
    if (coordinates.size() != axes.size()) return false;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const std::vector<Expression>* variables = variables_of(coordinates[a], axes[a]);
      if (variables == nullptr) {
        if (!is_variable(coordinates[a], axes[a])) return false;
        add(coordinates[a].name, coordinates[a].rest, axes[a].factors[0]);
        continue;
      }
      for (std::size_t f = 0; f < variables->size(); ++f) {
        if ((*variables)[f].kind != Kind::name || (*variables)[f].rest) return false;
        add((*variables)[f].name, false, axes[a].factors[f]);
      }
    }
    return true;
  }

  // Whether coordinates lie inside of these axes.
  [[nodiscard]] bool within(const std::vector<Expression>& coordinates, const std::vector<AxisSpec>& axes) const {
    if (coordinates.size() != axes.size()) return false;
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const std::vector<Expression>* variables = variables_of(coordinates[a], axes[a]);
      if (variables == nullptr) {
        if (!is_variable(coordinates[a], axes[a]) || !ranges_over(coordinates[a], axes[a].factors[0])) return false;
        continue;
      }
      for (std::size_t f = 0; f < variables->size(); ++f)
        if ((*variables)[f].rest || !ranges_over((*variables)[f], axes[a].factors[f])) return false;
    }
    return true;
  }

 private:
  static std::string spelled(bool rest, const Expression& extent) { return (rest ? ".." : "") + to_text(extent); }

  // The variables of a composite axis; null for other axes.
  static const std::vector<Expression>* variables_of(const Expression& coordinate, const AxisSpec& axis) {
    const bool pairs = axis.kind == AxisSpec::Kind::composite && coordinate.kind == Kind::tuple &&
                       coordinate.operands.size() == axis.factors.size();
    return pairs ? &coordinate.operands : nullptr;
  }
  static bool is_variable(const Expression& coordinate, const AxisSpec& axis) {
    return coordinate.kind == Kind::name && axis.kind != AxisSpec::Kind::composite &&
           coordinate.rest == (axis.kind == AxisSpec::Kind::rest);
  }
  [[nodiscard]] bool ranges_over(const Expression& variable, const Expression& extent) const {
    const auto known = spelling_.find(variable.name);
    return variable.kind == Kind::name && known != spelling_.end() && known->second == spelled(variable.rest, extent);
  }

  std::map<std::string, std::string> spelling_;
};

// What may have no value though it reads nothing: a quotient, an element of a list.
bool is_partial(const Expression& e) {
  return e.kind == Kind::floor_divide || e.kind == Kind::modulo || e.kind == Kind::element || e.kind == Kind::piece ||
         (e.kind == Kind::call && e.builtin != SizeBuiltin::none);
}

bool reads_within(const OperatorDefinition& definition, const Expression& e, const Ranges& ranges) {
  if (is_partial(e)) return false;
  Ranges inner = ranges;
  for (const Expression::Range& range : e.ranges) {
    if (!reads_within(definition, *range.extent, ranges)) return false;
    inner.add(range.name, range.rest, *range.extent);
  }
  if (e.kind == Kind::read && e.fallback == nullptr) {
    const auto input = std::find_if(definition.inputs.begin(), definition.inputs.end(),
                                    [&](const InputSpec& spec) { return spec.name == e.name; });
    return input != definition.inputs.end() && e.piece == nullptr && !e.flat && ranges.within(e.operands, input->axes);
  }
  const auto part = [&](const Expression& operand) { return reads_within(definition, operand, inner); };
  return std::all_of(e.operands.begin(), e.operands.end(), part) && (e.piece == nullptr || part(*e.piece)) &&
         (e.fallback == nullptr || part(*e.fallback));
}

}  // namespace

bool reads_plainly(const OperatorDefinition& definition) {
  if (!definition.intermediates.empty() || definition.equations.size() != 1 || definition.several_outputs())
    return false;
  const Equation& equation = definition.equations[0];
  Ranges ranges;
  return equation.ranges.empty() && ranges.add(equation.coordinates, definition.output.axes) &&
         reads_within(definition, equation.value, ranges);
}

}  // namespace taso
