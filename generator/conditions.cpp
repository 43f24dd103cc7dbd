#include "generator/conditions.h"

#include <algorithm>
#include <utility>

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;

Condition equation(AttributeExpression left, AttributeExpression right) {
  Condition result;
  result.left = std::move(left);
  result.right = std::move(right);
  return result;
}

/// The integer that an expression is, if that takes no more than a look: most atoms are of such.
std::optional<std::int64_t> simple_value(const AttributeExpression& expression, const Sample& sample, bool& known) {
  known = true;
  if (expression.kind == Kind::literal && std::holds_alternative<std::int64_t>(expression.literal))
    return std::get<std::int64_t>(expression.literal);
  if (expression.kind == Kind::rank) return static_cast<std::int64_t>(sample.types[expression.index].shape.size());
  if (expression.kind == Kind::dimension && expression.operands.empty()) {
    const Shape& shape = sample.types[expression.index].shape;
    const auto rank = static_cast<std::int64_t>(shape.size());
    if (expression.axis >= 0 || expression.axis < -rank) return std::nullopt;
    return shape[static_cast<std::size_t>(rank + expression.axis)];
  }
  known = false;
  return std::nullopt;
}

/// Atoms that some declared success violates are none.
void keep_true_atoms(std::vector<Condition>& atoms, const std::vector<TestedSample>& tested) {
  std::erase_if(atoms, [&](const Condition& atom) {
    return std::any_of(tested.begin(), tested.end(), [&](const TestedSample& one) {
      return one.equal && one.sample.declared && !satisfied(atom, one.sample);
    });
  });
}

}  // namespace

AttributeExpression literal_of(AttributeValue value) {
  AttributeExpression result;
  result.literal = std::move(value);
  return result;
}

AttributeExpression dimension_of(std::size_t tensor, std::int64_t axis) {
  AttributeExpression result;
  result.kind = Kind::dimension;
  result.index = static_cast<std::uint32_t>(tensor);
  result.axis = axis;
  return result;
}

std::vector<Condition> shape_atoms(const std::vector<std::vector<Shape>>& shapes) {
  std::vector<Condition> atoms;
  auto at = [&](std::size_t tensor, std::int64_t axis, std::size_t assignment) {
    const Shape& shape = shapes[tensor][assignment];
    return shape[shape.size() - static_cast<std::size_t>(-axis)];
  };
  for (std::size_t u = 0; u < shapes.size(); ++u) {
    const std::size_t assignments = shapes[u].size();
    const auto rank = static_cast<std::int64_t>(shapes[u][0].size());
    for (std::int64_t i = -1; i >= -rank; --i) {
      bool one = true;
      for (std::size_t k = 0; k < assignments; ++k) one = one && at(u, i, k) == 1;
      if (!one)
        for (std::size_t v = u + 1; v < shapes.size(); ++v) {
          const auto other_rank = static_cast<std::int64_t>(shapes[v][0].size());
          for (std::int64_t j = -1; j >= -other_rank; --j) {
            bool equal = true;
            for (std::size_t k = 0; equal && k < assignments; ++k) equal = at(u, i, k) == at(v, j, k);
            if (equal) atoms.push_back(equation(dimension_of(u, i), dimension_of(v, j)));
          }
        }
      if (one) atoms.push_back(equation(dimension_of(u, i), literal_of(std::int64_t{1})));
    }
    AttributeExpression rank_of;
    rank_of.kind = Kind::rank;
    rank_of.index = static_cast<std::uint32_t>(u);
    atoms.push_back(equation(std::move(rank_of), literal_of(rank)));
  }
  return atoms;
}

bool satisfied(const Condition& condition, const Sample& sample) {
  if (condition.of_elements()) return true;  // samples are types and attributes
  if (condition.relation == Condition::Relation::equal) {
    bool left_known = false, right_known = false;
    const auto left = simple_value(condition.left, sample, left_known);
    const auto right = simple_value(condition.right, sample, right_known);
    if (left_known && right_known) return left && right && *left == *right;
  }
  Bindings bindings;
  for (const TensorType& type : sample.types) bindings.tensors.push_back(&type);
  bindings.attributes = sample.attributes;
  const auto result = holds(condition, bindings);
  return result.ok() && *result;
}

bool all_satisfied(const std::vector<Condition>& conditions, const Sample& sample) {
  return std::all_of(conditions.begin(), conditions.end(),
                     [&](const Condition& condition) { return satisfied(condition, sample); });
}

bool exclude_failures(std::vector<Condition> atoms, const std::vector<TestedSample>& tested,
                      std::vector<Condition>& chosen) {
  std::vector<const Sample*> good, bad;
  for (const TestedSample& one : tested) (one.equal ? good : bad).push_back(&one.sample);
  if (std::any_of(bad.begin(), bad.end(), [](const Sample* sample) { return sample->declared; })) return false;
  if (bad.empty()) return true;
  keep_true_atoms(atoms, tested);
  while (!bad.empty()) {
    const Condition* best = nullptr;
    std::size_t best_excluded = 0, best_kept = 0;
    for (const Condition& atom : atoms) {
      std::size_t excluded = 0, kept = 0;
      for (const Sample* sample : bad) excluded += satisfied(atom, *sample) ? 0 : 1;
      if (excluded == 0 || excluded < best_excluded) continue;
      for (const Sample* sample : good) kept += satisfied(atom, *sample) ? 1 : 0;
      if (excluded > best_excluded || kept > best_kept) {
        best = &atom;
        best_excluded = excluded;
        best_kept = kept;
      }
    }
    if (best == nullptr || chosen.size() >= 3) return false;
    chosen.push_back(*best);
    const Condition& atom = chosen.back();
    std::erase_if(bad, [&](const Sample* sample) { return !satisfied(atom, *sample); });
    std::erase_if(good, [&](const Sample* sample) { return !satisfied(atom, *sample); });
  }
  return true;
}

std::vector<Condition> implied_conditions(std::vector<Condition> atoms, const std::vector<TestedSample>& tested,
                                          const std::vector<Condition>& chosen) {
  keep_true_atoms(atoms, tested);
  std::erase_if(atoms,
                [&](const Condition& atom) { return std::find(chosen.begin(), chosen.end(), atom) != chosen.end(); });
  for (const TestedSample& one : tested) {
    if (!one.equal || !all_satisfied(chosen, one.sample)) continue;
    std::erase_if(atoms, [&](const Condition& atom) { return !satisfied(atom, one.sample); });
  }
  return atoms;
}

}  // namespace taso
