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

// The ways in which two lists of axes have as many elements: from the front on, axes are equal, or one is the product
// of several of the other list.
void find_equal_elements(const Polynomials& a, std::size_t i, const Polynomials& b, std::size_t j, Equalities& so_far,
                         std::vector<Equalities>& ways) {
  if (i == a.size() && j == b.size()) ways.push_back(so_far);
  if (i == a.size() || j == b.size()) return;
  const auto go_on = [&](std::size_t i_end, std::size_t j_end) {
    const auto part = [](const Polynomials& sizes, std::size_t begin, std::size_t end) {
      return product(
          {sizes.begin() + static_cast<std::ptrdiff_t>(begin), sizes.begin() + static_cast<std::ptrdiff_t>(end)});
    };
    so_far.emplace_back(part(a, i, i_end), part(b, j, j_end));
    find_equal_elements(a, i_end, b, j_end, so_far, ways);
    so_far.pop_back();
  };
  for (std::size_t end = j + 1; end <= b.size(); ++end) go_on(i + 1, end);
  for (std::size_t end = i + 2; end <= a.size(); ++end) go_on(end, j + 1);
}

std::vector<Equalities> equal_elements(const Polynomials& a, const Polynomials& b) {
  std::vector<Equalities> ways;
  Equalities so_far;
  find_equal_elements(a, 0, b, 0, so_far, ways);
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
  for (Equalities& equalities : equal_elements(output, input))
    if (equalities.size() < longer.size()) ways.push_back({std::move(equalities), SizePolynomial(1), false});
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
