/// Arithmetic on the integers of a graph where these are not numbers but stand for something else.
///
/// Extents and integer attributes of a graph are 64-bit integers. In a graph for all sizes of a model's symbolic
/// extents some of them are names of polynomials in the symbols (verifier/symbolic_sizes.h). Rules are matched and
/// applied in it like in any other graph, since equal integers mean equal sizes; but sums, products, quotients and
/// comparisons of them are for the one who gave the names. What is not decided at all sizes counts as not so.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/pattern.h"
#include "support/status.h"

namespace taso {

class SizeArithmetic {
 public:
  enum class Operation : std::uint8_t { add, subtract, multiply, floor_divide };

  virtual ~SizeArithmetic() = default;
  /// a op b; an error says why there is no such size.
  [[nodiscard]] virtual Expected<std::int64_t> combine(Operation operation, std::int64_t a, std::int64_t b) const = 0;
  /// Whether the relation holds at all sizes. False says nothing of its negation.
  [[nodiscard]] virtual bool follows(Condition::Relation relation, std::int64_t a, std::int64_t b) const = 0;
  /// Whether an extent is 0 wherever another one is.
  [[nodiscard]] virtual bool is_zero_where(std::int64_t extent, std::int64_t other) const = 0;
  /// Whether the integer is the number that it seems to be.
  [[nodiscard]] virtual bool is_number(std::int64_t size) const = 0;
  /// What a person reads: "2*height + 1".
  [[nodiscard]] virtual std::string to_string(std::int64_t size) const = 0;
};

/// A symbol, or a quotient of two sizes, rounded down: one that is not negative, by one that is positive.
struct SizeFactor {
  std::string symbol;  ///< Of a quotient: empty.
  std::int64_t dividend = 0, divisor = 1;
};
/// A product of such factors, each as often as it occurs, times a number.
struct SizeTerm {
  std::int64_t number = 1;
  std::vector<SizeFactor> factors;
};

/// Such arithmetic where the values of all sizes are known at a few samples.
class SampledSizes : public SizeArithmetic {
 public:
  [[nodiscard]] virtual std::size_t sample_count() const = 0;
  /// The value at a sample; nothing beyond 64 bits, and for an integer that is neither a number nor a name.
  [[nodiscard]] virtual std::optional<std::int64_t> at(std::int64_t size, std::size_t sample) const = 0;
  /// The size that has these values at the samples; nothing where they do not determine it. Sizes of `near` are more
  /// likely to occur in it.
  [[nodiscard]] virtual std::optional<std::int64_t> fit(std::span<const std::int64_t> values,
                                                        std::span<const std::int64_t> near) const = 0;
  /// A size as a sum of products of the model's symbols, and of quotients of such sizes; nothing if it is none.
  [[nodiscard]] virtual std::optional<std::vector<SizeTerm>> terms(std::int64_t size) const = 0;
};

/// A catalog of operators over such integers: apply() and check_occurrence() (certificate/occurrence.h) ask it for
/// their arithmetic. With any other catalog integers are numbers.
class SizedCatalog : public OperatorCatalog {
 public:
  [[nodiscard]] virtual const SizeArithmetic& sizes() const = 0;
};
/// The arithmetic of a catalog; null: integers are numbers.
[[nodiscard]] const SizeArithmetic* sizes_of(const OperatorCatalog& catalog);

/// evaluate(), holds() and evaluate_attributes() of graph/pattern.h over sizes; `sizes` null: over numbers.
[[nodiscard]] Expected<AttributeValue> evaluate(const AttributeExpression& expression, const Bindings& bindings,
                                                const SizeArithmetic* sizes);
[[nodiscard]] Expected<bool> holds(const Condition& condition, const Bindings& bindings, const SizeArithmetic* sizes);
[[nodiscard]] Expected<Attributes> evaluate_attributes(const PatternNode& node, const Bindings& bindings,
                                                       const OperatorCatalog& catalog, const SizeArithmetic* sizes);

/// The sum of sizes; `sizes` null: of numbers.
[[nodiscard]] Expected<std::int64_t> sum_of_sizes(std::span<const std::int64_t> list, const SizeArithmetic* sizes);
/// "f32[batch, 2*height]"; `sizes` null: as to_string.
[[nodiscard]] std::string to_string(const TensorType& type, const SizeArithmetic* sizes);
/// "axis=-1, sizes=[batch, 4]"; `sizes` null: as to_string.
[[nodiscard]] std::string to_string(const Attributes& attributes, const SizeArithmetic* sizes);

}  // namespace taso
