#include <algorithm>

#include "partition/cut.h"

namespace taso {
namespace {

using Polynomials = std::vector<SizePolynomial>;
using Equalities = std::vector<std::pair<SizePolynomial, SizePolynomial>>;

SizePolynomial product(const Polynomials& sizes) {
  SizePolynomial result(1);
  for (const SizePolynomial& size : sizes) result = result * size;
  return result;
}

Polynomials extents(const std::vector<ModelAxis>& axes, std::size_t begin, std::size_t end) {
  Polynomials result;
  for (std::size_t i = begin; i < end; ++i) result.push_back(axes[i].extent);
  return result;
}

// The ways in which two lists of axes have as many elements.
std::vector<Equalities> equal_elements(const Polynomials& a, const Polynomials& b) {
  std::vector<Equalities> ways;
  if (a.size() == b.size()) {
    Equalities pairs;
    for (std::size_t i = 0; i < a.size(); ++i) pairs.emplace_back(a[i], b[i]);
    ways.push_back(std::move(pairs));
  } else if (a.size() == 1 && !b.empty()) {
    ways.push_back({{a[0], product(b)}});
  } else if (b.size() == 1 && !a.empty()) {
    ways.push_back({{product(a), b[0]}});
  }
  return ways;
}

// A way in which one list has `times` as many elements as the other one.
struct Multiple {
  Equalities equalities;
  SizePolynomial times = SizePolynomial(1);
  bool of_output = false;  // The output has more elements behind its axis.
};

std::vector<Multiple> multiples(const Polynomials& output, const Polynomials& input) {
  std::vector<Multiple> ways;
  const bool of_output = output.size() > input.size();
  const Polynomials &longer = of_output ? output : input, &shorter = of_output ? input : output;
  const std::size_t more = longer.size() - shorter.size();
  Multiple trailing;
  trailing.of_output = of_output;
  trailing.times = product(Polynomials(longer.begin(), longer.begin() + static_cast<std::ptrdiff_t>(more)));
  for (std::size_t i = 0; i < shorter.size(); ++i) trailing.equalities.emplace_back(shorter[i], longer[more + i]);
  ways.push_back(std::move(trailing));
  if (shorter.size() == 1 && longer.size() > 1)
    ways.push_back({{{shorter[0], product(longer)}}, SizePolynomial(1), false});
  return ways;
}

}  // namespace

CutResult cut_of_position(const OperatorModel& model, std::size_t number) {
  CutResult result;
  const ModelVariable& variable = model.variables[number];
  if (model.reads.size() != 1 || !variable.reducer.empty())
    return {{}, "positions are read in several ways", false, {}};
  const std::vector<ModelAxis>& output = model.outputs[0];
  SizePolynomial position;
  for (std::size_t a = 0; a < output.size(); ++a) {
    SizePolynomial index;
    for (const ModelVariable& other : model.variables)
      if (other.reducer.empty() && other.axis == a) index = SizePolynomial::atom(other.index);
    position = position * output[a].extent + index;
  }
  if (position != *model.reads[0].flat) return {{}, "the position that is read is not that of the output", false, {}};
  const std::size_t tensor = model.reads[0].tensor;
  const std::vector<ModelAxis>& input = model.tensors[tensor].axes;
  const std::optional<SizeAtomId> attribute = output[variable.axis].extent.single_atom();
  if (!attribute) return {{}, "nothing tells a piece the extent of its part", false, {}};
  for (std::size_t b = 0; b < input.size(); ++b)
    for (const Equalities& before : equal_elements(extents(output, 0, variable.axis), extents(input, 0, b)))
      for (const Multiple& behind :
           multiples(extents(output, variable.axis + 1, output.size()), extents(input, b + 1, input.size()))) {
        VariableCut cut;
        cut.model = model;
        cut.variable = number;
        cut.point = static_cast<std::uint32_t>(cut.model.attribute_variables.size());
        cut.model.attribute_variables.emplace_back("m");
        const SizePolynomial point = cut.model.atoms.of(variable_expression(cut.point));
        // Where the input has more elements behind its axis, each step along it is several along that of the output.
        const bool by_input = !behind.of_output && behind.times != SizePolynomial(1);
        const SizePolynomial in_output = by_input ? behind.times * point : point;
        const SizePolynomial in_input = by_input ? point : behind.times * point;
        cut.extent = by_input ? input[b].extent : output[variable.axis].extent;
        cut.axes.push_back(AxisCut::at(tensor, b, in_input, input[b].extent));
        cut.attributes[*attribute] = {in_output, output[variable.axis].extent - in_output};
        bool said = true;
        const auto require = [&](Condition::Relation relation, const SizePolynomial& left,
                                 const SizePolynomial& right) {
          const auto x = cut.model.atoms.expression(left), y = cut.model.atoms.expression(right);
          said = said && x && y;
          if (x && y && left != right) cut.conditions.push_back({relation, *x, *y});
        };
        for (const Equalities* equalities : {&before, &behind.equalities})
          for (const auto& [left, right] : *equalities) require(Condition::Relation::equal, left, right);
        require(Condition::Relation::less, SizePolynomial(), point);
        require(Condition::Relation::less, point, cut.extent);
        if (said) result.cuts.push_back(std::move(cut));
      }
  if (result.cuts.empty()) result.obstacle = "no axis of the input begins where it does";
  return result;
}

}  // namespace taso
