#include "verifier/landmarks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace taso {
namespace {

using Kind = AttributeExpression::Kind;

// Where a quotient is searched for its first change.
constexpr std::int64_t horizon = std::int64_t{1} << 20;
// Ranks that instances can have: elements are as many as 2 to this power.
constexpr std::int64_t largest_rank = 10;
constexpr std::int64_t ordinary_rank = 4;

// The quantities that an expression depends on: extents, ranks, attributes and elements of lists.
bool is_quantity(const AttributeExpression& expression) {
  return expression.kind == Kind::variable || expression.kind == Kind::dimension || expression.kind == Kind::rank ||
         ((expression.kind == Kind::element || expression.kind == Kind::length) &&
          expression.operands[0].kind == Kind::variable);
}

void collect_quantities(const AttributeExpression& expression, std::vector<const AttributeExpression*>& found) {
  if (is_quantity(expression)) {
    if (std::none_of(found.begin(), found.end(), [&](const auto* other) { return *other == expression; }))
      found.push_back(&expression);
    return;
  }
  for (const AttributeExpression& operand : expression.operands) collect_quantities(operand, found);
}

bool counts_axes(const AttributeExpression& expression) {
  return expression.kind == Kind::rank || expression.kind == Kind::length;
}

std::optional<std::int64_t> floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) return std::nullopt;
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

// The value where one quantity has a value and all others another one; nothing for lists and reals.
std::optional<std::int64_t> value_of(const AttributeExpression& expression, const AttributeExpression& quantity,
                                     std::int64_t value, std::int64_t others) {
  if (is_quantity(expression)) return expression == quantity ? value : others;
  if (expression.kind == Kind::literal) {
    const auto* integer = std::get_if<std::int64_t>(&expression.literal);
    return integer != nullptr ? std::optional(*integer) : std::nullopt;
  }
  if (expression.kind == Kind::list || expression.kind == Kind::element || expression.operands.size() != 2)
    return std::nullopt;
  const auto a = value_of(expression.operands[0], quantity, value, others);
  const auto b = value_of(expression.operands[1], quantity, value, others);
  std::int64_t result = 0;
  if (!a || !b) return std::nullopt;
  switch (expression.kind) {
    case Kind::add:
      return __builtin_add_overflow(*a, *b, &result) ? std::nullopt : std::optional(result);
    case Kind::subtract:
      return __builtin_sub_overflow(*a, *b, &result) ? std::nullopt : std::optional(result);
    case Kind::multiply:
      return __builtin_mul_overflow(*a, *b, &result) ? std::nullopt : std::optional(result);
    case Kind::floor_divide:
      return floor_divide(*a, *b);
    default:
      return std::nullopt;
  }
}

// Collects the landmarks of one rule.
class LandmarkFinder {
 public:
  LandmarkFinder(const OperatorRegistry& registry, std::int64_t covered) : registry_(registry), covered_(covered) {}

  void add(const Pattern& pattern) {
    for (const PatternNode& node : pattern.nodes) {
      for (const auto& [name, expression] : node.attributes) add(expression);
      if (const OperatorDefinition* definition = registry_.find(node.op)) add(*definition);
    }
  }

  void add(const Condition& condition) {
    if (!condition.compares()) return;
    // What a number of axes is compared with is no size.
    if (!counts_axes(condition.left) && !counts_axes(condition.right)) {
      add(condition.left);
      add(condition.right);
    }
    // Where the relation begins or ceases to hold: the sign of the difference changes.
    AttributeExpression difference;
    difference.kind = Kind::subtract;
    difference.operands = {condition.left, condition.right};
    add_changes(difference, [](std::int64_t value) { return std::int64_t{value > 0} - std::int64_t{value < 0}; });
  }

  [[nodiscard]] Landmarks take() const {
    Landmarks result;
    for (const std::int64_t size : sizes_)
      if (size > covered_) result.sizes.push_back(size);
    for (const std::int64_t rank : ranks_)
      if (rank > ordinary_rank && rank <= largest_rank) result.ranks.push_back(static_cast<std::size_t>(rank));
    result.reals.assign(reals_.begin(), reals_.end());
    return result;
  }

 private:
  void add(const AttributeExpression& expression) {
    if (expression.kind == Kind::literal) {
      if (const auto* integer = std::get_if<std::int64_t>(&expression.literal)) add_size(*integer);
      if (const auto* real = std::get_if<double>(&expression.literal)) add_real(*real);
      if (const auto* list = std::get_if<std::vector<std::int64_t>>(&expression.literal))
        for (const std::int64_t element : *list) add_size(element);
    }
    if (expression.kind == Kind::floor_divide) add_changes(expression, [](std::int64_t value) { return value; });
    for (const AttributeExpression& operand : expression.operands) add(operand);
  }

  // The values of each quantity at which what is seen of an expression first differs from what it is at small sizes.
  template <class View>
  void add_changes(const AttributeExpression& expression, View view) {
    std::vector<const AttributeExpression*> quantities;
    collect_quantities(expression, quantities);
    for (const AttributeExpression* quantity : quantities)
      for (const std::int64_t others : {1, 2}) {
        const auto seen = [&](std::int64_t value) -> std::optional<std::int64_t> {
          const auto at = value_of(expression, *quantity, value, others);
          return at ? std::optional(view(*at)) : std::nullopt;
        };
        const auto first = seen(others);
        std::int64_t same = others, other = others;
        while (other < horizon && seen(other) == first) same = std::exchange(other, other * 2);
        if (seen(other) == first) continue;
        while (other - same > 1) {
          const std::int64_t middle = same + (other - same) / 2;
          (seen(middle) == first ? same : other) = middle;
        }
        if (quantity->kind == Kind::rank || quantity->kind == Kind::length)
          ranks_.insert({other - 1, other, other + 1});
        else
          sizes_.insert({other - 1, other, other + 1});
      }
  }

  void add_size(std::int64_t number) {
    if (number > horizon * 64 || number < -horizon * 64) return;
    const std::int64_t size = std::abs(number);
    // What is covered needs no neighbours: 3 is not the number at which things change because a kernel is 3 x 3.
    if (size > covered_) sizes_.insert({size - 1, size, size + 1});
    if (size > ordinary_rank) ranks_.insert({size - 1, size, size + 1});
    if (size > covered_) add_real(static_cast<double>(number));
  }

  void add_real(double number) {
    if (!std::isfinite(number) || std::abs(number) > 1e9) return;
    reals_.insert({number - 1, number - 0.5, number, number + 0.5, number + 1});
  }

  void add(const OperatorDefinition& definition) {
    if (!operators_.insert(definition.name).second) return;
    for (const SizeStatement& statement : definition.statements) add(statement.value);
    for (const InputSpec& input : definition.inputs) add(input.axes);
    add(definition.output.axes);
    for (const Equation& equation : definition.equations) {
      for (const Expression& coordinate : equation.coordinates) add(coordinate);
      for (const Expression::Range& range : equation.ranges) add(*range.extent);
      add(equation.value);
    }
  }

  void add(const std::vector<AxisSpec>& axes) {
    for (const AxisSpec& axis : axes) {
      for (const Expression& factor : axis.factors) add(factor);
      if (axis.length) add(*axis.length);
    }
  }

  void add(const Expression& expression) {
    if (expression.kind == Expression::Kind::integer) {
      if (expression.sort == Sort::real)
        add_real(static_cast<double>(expression.integer));
      else
        add_size(expression.integer);
    }
    if (expression.kind == Expression::Kind::real) add_real(expression.real);
    if (expression.kind == Expression::Kind::call && functions_.insert(expression.name).second) {
      if (const FunctionDefinition* function = registry_.find_function(expression.name);
          function != nullptr && function->definition)
        add(*function->definition);
      const auto size = registry_.size_functions().find(expression.name);
      if (size != registry_.size_functions().end()) add(size->second.definition);
    }
    for (const Expression& operand : expression.operands) add(operand);
    if (expression.piece) add(*expression.piece);
    if (expression.fallback) add(*expression.fallback);
    for (const Expression::Range& range : expression.ranges) add(*range.extent);
  }

  const OperatorRegistry& registry_;
  std::int64_t covered_;
  std::set<std::string> operators_, functions_;
  std::set<std::int64_t> sizes_, ranks_;
  std::set<double> reals_;
};

}  // namespace

Landmarks find_landmarks(const OperatorRegistry& registry, const Substitution& rule, std::int64_t covered) {
  LandmarkFinder search(registry, covered);
  search.add(rule.source);
  search.add(rule.target);
  for (const Condition& condition : rule.conditions) search.add(condition);
  return search.take();
}

void add_room(const Substitution& rule, Landmarks& landmarks) {
  // The largest number of each attribute of an operator.
  std::vector<std::int64_t> numbers;
  for (const PatternNode& node : rule.source.nodes)
    for (const auto& [name, expression] : node.attributes) {
      std::int64_t largest = 0;
      const auto visit = [&](const AttributeExpression& e, const auto& self) -> void {
        if (e.kind == Kind::literal) {
          if (const auto* integer = std::get_if<std::int64_t>(&e.literal)) largest = std::max(largest, *integer);
          if (const auto* list = std::get_if<std::vector<std::int64_t>>(&e.literal))
            for (const std::int64_t element : *list) largest = std::max(largest, element);
        }
        for (const AttributeExpression& operand : e.operands) self(operand, self);
      };
      visit(expression, visit);
      if (largest > 1 && largest <= horizon) numbers.push_back(largest);
    }
  if (numbers.empty()) return;
  std::sort(numbers.rbegin(), numbers.rend());
  const std::int64_t sum = std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
  landmarks.sizes.push_back(sum);
  if (numbers.size() > 1) landmarks.sizes.push_back(sum + numbers[0] * numbers[1]);
  std::sort(landmarks.sizes.begin(), landmarks.sizes.end());
  landmarks.sizes.erase(std::unique(landmarks.sizes.begin(), landmarks.sizes.end()), landmarks.sizes.end());
}

}  // namespace taso
