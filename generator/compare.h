/// The two sides of a rule at concrete instances: are they typed, and are they equal over GF(2^61-1)?
///
/// Random tests ask this of many rules that are made of the same terms, at the same few hundred shapes. So everything
/// is remembered: applications are typed and lowered once per operator, attributes and argument shapes, and a term is
/// evaluated once, whatever rule or form it is met in. For that the i-th variable of a rule has the same random
/// elements wherever it has the same shape. Nothing is evaluated before both sides are known to be typed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/pattern.h"
#include "operators/evaluate.h"
#include "operators/registry.h"

namespace taso {

/// An operator with attributes applied to tensors of given shapes.
struct TypedApplication {
  bool typed = false;
  bool small = false;  ///< No output has more elements than the limit.
  std::string op;
  Attributes attributes;
  std::vector<Shape> outputs;
  std::optional<OperatorInstance> instance;  ///< Made when it is evaluated first.
};

/// How the sides of a rule compare at one instance.
enum class Comparison : std::uint8_t {
  ill_typed,  ///< One side is not typed, is too large or divides by zero, or the types of the outputs differ.
  equal,
  different,
};

/// Not thread-safe: one object per thread. Nothing that it remembers changes an answer.
class InstanceComparer {
 public:
  using NamedAttributes = std::span<const std::pair<std::string, AttributeValue>>;

  /// `ordered`: functions and extrema by order (FieldRing).
  InstanceComparer(const OperatorRegistry& registry, std::uint64_t seed, std::int64_t max_elements,
                   bool ordered = false);

  /// Compares the sides of a rule; conditions are not looked at.
  [[nodiscard]] Comparison compare(const Substitution& rule, const std::vector<TensorType>& types,
                                   const std::vector<std::optional<AttributeValue>>& attributes);
  /// One application. Valid until the next call.
  [[nodiscard]] const TypedApplication& apply(const std::string& op, NamedAttributes attributes,
                                              std::span<const Shape* const> arguments);

 private:
  using ValueId = std::uint32_t;
  using TermId = std::uint32_t;
  struct TransparentHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  template <class Value>
  using ByKey = std::unordered_map<std::string, Value, TransparentHash, std::equal_to<>>;
  /// An operator applied to values; or a variable, without an application.
  struct Term {
    enum class State : std::uint8_t { unevaluated, evaluated, undefined };
    TypedApplication* application = nullptr;
    std::vector<ValueId> inputs;
    ValueId first = 0;  ///< The first output.
    State state = State::unevaluated;
  };
  struct Value {
    TermId term = 0;
    const Shape* shape = nullptr;
    RingTensor<Mod61> tensor;
  };

  TypedApplication& look_up(const std::string& op, NamedAttributes attributes, std::span<const Shape* const> arguments);
  [[nodiscard]] ValueId variable(std::size_t number, const Shape& shape);
  /// The values of a pattern's outputs; false if it is ill-typed.
  bool type(const Pattern& pattern, const Bindings& bindings, const std::vector<ValueId>& variables,
            std::vector<ValueId>& outputs);
  /// False where a division by zero occurs.
  bool evaluate_term(TermId term);
  void forget_if_large();

  const OperatorRegistry& registry_;
  FieldRing ring_;
  std::int64_t max_elements_;
  std::vector<Mod61> random_;  ///< Elements of variables: a stretch for each.
  ByKey<TypedApplication> applications_;
  ByKey<TermId> term_ids_;  ///< By operator, attributes and input values; ill_typed_ if it has no type.
  std::vector<Term> terms_;
  std::vector<Value> values_;
  std::size_t elements_ = 0;  ///< Of all values.
  ByKey<Shape> shapes_of_variables_;
  std::string key_;
  std::vector<std::pair<std::string, AttributeValue>> attributes_;
};

}  // namespace taso
