/// Random evaluation of rules: the judge of what the provers say, which shares nothing with them.
///
/// A draw is a set of shapes and attribute values at which both sides of a rule are well-typed, with outputs of equal
/// types, and its conditions hold: just what a proof speaks of. Both sides become graphs (graph/pattern.h), which the
/// evaluator runs on random inputs: first over GF(2^61-1), where equal results mean equal functions up to a
/// negligible probability; where they differ (a function or an extremum may have facts that a random oracle has not),
/// over doubles with the real functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/pattern.h"
#include "operators/evaluate.h"
#include "operators/registry.h"
#include "support/random.h"

namespace taso::testing {

/// Types of a rule's tensor variables and values of its attribute variables.
struct Draw {
  std::vector<TensorType> variables;
  std::vector<std::optional<AttributeValue>> attributes;
  /// What the rule asks of elements: variables, and positive, nonnegative or nonzero.
  std::vector<std::pair<std::uint32_t, Condition::Relation>> elements = {};
};

/// Draws of one rule; the same for the same seed.
class RuleDraws {
 public:
  RuleDraws(const OperatorRegistry& registry, const Substitution& rule, std::uint64_t seed);

  /// The next draw; nothing if none was found in so many attempts.
  [[nodiscard]] std::optional<Draw> next(std::size_t attempts = 4000);

 private:
  using Integers = std::vector<std::int64_t>;
  struct Use;

  std::optional<Draw> attempt();
  bool assign(const PatternNode& node, std::vector<std::vector<TensorType>>& types);
  bool well_typed(const Pattern& pattern, std::vector<TensorType>& outputs) const;
  [[nodiscard]] Bindings bindings() const;
  const TensorType* type_of(const PatternValue& value, const std::vector<std::vector<TensorType>>& types) const;
  void learn(const InputSpec& input, const Shape& shape, std::map<std::string, Integers>& sizes);
  Shape propose_shape(std::uint32_t variable, const InputSpec& input, std::map<std::string, Integers>& sizes);
  AttributeValue propose_attribute(std::uint32_t variable, const std::vector<const TensorType*>& operands);
  std::size_t some_rank(std::uint32_t variable);
  std::int64_t extent();
  std::int64_t between(std::int64_t low, std::int64_t high);
  bool chance(int percent);

  const OperatorRegistry& registry_;
  const Substitution& rule_;
  Random random_;
  std::vector<std::vector<std::size_t>> ranks_;  // that the operators reading a variable allow
  std::vector<bool> integers_;                   // variables that hold indices
  std::vector<Use> uses_;                        // of attribute variables
  std::vector<std::string> functions_;
  // Of the attempt:
  Integers palette_;             // extents to choose from: few, so that they often agree
  std::size_t common_rank_ = 2;  // of most variables that may have it
  Draw draw_;
  std::vector<bool> known_;
  std::vector<Shape> shapes_;  // of all tensors so far
};

/// How a variable of attributes is used.
struct RuleDraws::Use {
  AttributeKind kind = AttributeKind::integer;
  std::size_t length = 0;   // of a list, if the operator says so
  std::int64_t usual = -1;  // the elements of the list that is the default
  bool known = false;
};

/// What an evaluation at one draw says.
enum class Agreement : std::uint8_t {
  field,      ///< Equal over GF(2^61-1).
  numbers,    ///< Equal over doubles at all inputs that were tried, where these are finite.
  different,  ///< Different numbers.
  undefined,  ///< No result at all: a divisor is zero everywhere, an index out of range.
};

/// Both sides at a draw.
struct DrawnGraphs {
  Graph source, target;
};
[[nodiscard]] Expected<DrawnGraphs> drawn_graphs(const OperatorRegistry& registry, const Substitution& rule,
                                                 const Draw& draw);

/// The same if the conditions hold, both sides are well-typed and their outputs have equal types: if it is a draw.
[[nodiscard]] std::optional<DrawnGraphs> legal_graphs(const OperatorRegistry& registry, const Substitution& rule,
                                                      const Draw& draw);

/// Evaluates both sides at random inputs.
[[nodiscard]] Agreement evaluate_at(const OperatorRegistry& registry, const DrawnGraphs& graphs, const Draw& draw,
                                    std::uint64_t seed);

/// "x: f32[1, 2]; p = [0, 1]; ", for a person.
[[nodiscard]] std::string text_of(const Substitution& rule, const Draw& draw);

/// Whether the two sides differ over doubles at given inputs.
[[nodiscard]] bool differs_in_numbers(const Graph& source, const Graph& target, const OperatorRegistry& registry,
                                      const std::vector<RingTensor<double>>& inputs);

/// Random inputs for a draw: small integers, halves of them, or normal numbers.
[[nodiscard]] std::vector<RingTensor<double>> random_inputs(const Draw& draw, Random& random, int style);

/// The outcome of many draws of one rule.
struct DrawCounts {
  std::size_t draws = 0;      ///< That were evaluated.
  std::size_t distinct = 0;   ///< Different shapes and attributes among them.
  std::size_t grouped = 0;    ///< With a kernel that sees a part of the channels.
  std::size_t broadcast = 0;  ///< With a tensor that is repeated.
  std::size_t field = 0, numbers = 0, undefined = 0;
  std::string difference;  ///< The first draw at which the sides differ; then nothing was drawn after it.
};

/// Evaluates up to `count` draws, fewer where too few are found.
[[nodiscard]] DrawCounts draw_rule(const OperatorRegistry& registry, const Substitution& rule, std::size_t count,
                                   std::uint64_t seed);

}  // namespace taso::testing
