/// A definition at concrete attributes and shapes: stages of loops over affine offsets.
///
/// Each stage fills (part of) one tensor. Its loop variables are numbered; the first `outer.size()` of them run over
/// the stage's own elements, the others belong to reductions. Everything that depends on them is a *form*, an affine
/// function with known coefficients, so that an evaluator keeps one running number per form and adds steps[v] when
/// variable v advances. Variables of extent 1 do not exist, and adjacent loops that every form sees as one are one.
///
/// A recurrence has two stages for each of its tensors: one for its first step, at which initial values stand for what
/// was before, and one for all other steps.
#pragma once

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/tensor_type.h"
#include "operators/definition.h"

namespace taso {

/// base + sum of coefficient * variable; terms sorted by variable, coefficients not 0.
struct Affine {
  std::int64_t base = 0;
  absl::InlinedVector<std::pair<std::uint32_t, std::int64_t>, 1> terms;
  [[nodiscard]] bool is_constant() const { return terms.empty(); }
  bool operator==(const Affine&) const = default;
};

/// One read: element `offset` of a buffer, if every guard's form lies in [0, extent), and every indirect coordinate
/// inside.
struct LoweredAccess {
  struct Guard {
    std::uint32_t form = 0;
    std::int64_t extent = 0;
  };
  /// A coordinate that is read from an input of integers: adds stride * index to the offset; a negative index counts
  /// from the end; outside [-extent, extent) is an error. The coordinate is the index less `offset`; where that is not
  /// in [0, size), the element lies outside.
  struct Indirect {
    std::uint32_t buffer = 0;
    std::uint32_t form = 0;
    std::int64_t stride = 0;
    std::int64_t extent = 0;
    std::int64_t offset = 0;
    std::int64_t size = 0;
    /// Whether an index that is none of the errors lies outside.
    [[nodiscard]] bool may_leave() const { return offset > 0 || extent - offset > size; }
  };
  std::uint32_t buffer = 0;
  std::uint32_t offset = 0;  ///< A form.
  absl::InlinedVector<Guard, 2> guards;
  std::vector<Indirect> indirect;
  /// Whether it may lie outside of the buffer.
  [[nodiscard]] bool may_leave() const {
    return !guards.empty() ||
           std::any_of(indirect.begin(), indirect.end(), [](const Indirect& index) { return index.may_leave(); });
  }
};

struct LoweredNode {
  enum class Kind : std::uint8_t {
    number,  ///< `number`.
    read,    ///< accesses[access]; outside the tensor operands[0], if there is one.
    valid,   ///< 1 where accesses[access] is inside, else 0.
    slot,    ///< The value of `slot`, bound further out.
    bind,    ///< slot = operands[0]; the value is operands[1].
    add,
    subtract,
    multiply,
    divide,
    negate,
    call,  ///< function(operands...), a primitive.
    maximum,
    minimum,      ///< Of the set of operands.
    infinity,     ///< The value of an empty max (`number` < 0) or min.
    conditional,  ///< operands[0] (a condition), then operands[1], else operands[2].
    test,         ///< A condition: form `access` compared with 0 by `comparison`.
    all_of,
    any_of,
    none_of,  ///< Conditions on conditions.
    reduce,   ///< `reduction` of operands[0] over `loops`.
  };
  enum class Comparison : std::uint8_t { equal, not_equal, less, less_equal };
  enum class Reduction : std::uint8_t { sum, product, maximum, minimum };

  Kind kind = Kind::number;
  double number = 0;
  std::uint32_t access = 0;
  std::uint32_t slot = 0;
  std::vector<std::uint32_t> operands;
  const FunctionDefinition* function = nullptr;
  Comparison comparison = Comparison::equal;
  Reduction reduction = Reduction::sum;
  std::vector<std::uint32_t> loops;  ///< Of a reduction.
  bool leave_out = false;            ///< Of a max or min of a read: elements outside the tensor are left out.
  /// Of a sum of products of plain reads (zero outside): the accesses that are multiplied; otherwise empty.
  std::vector<std::uint32_t> factors;
};

struct LoweredStage {
  std::uint32_t buffer = 0;           ///< The buffer that is written.
  std::vector<std::int64_t> extents;  ///< Per loop variable.
  std::vector<std::uint32_t> outer;   ///< The stage's own loops, outermost first.
  std::vector<Affine> forms;
  /// Per loop variable: (form, coefficient), each coefficient not 0.
  std::vector<absl::InlinedVector<std::pair<std::uint32_t, std::int64_t>, 4>> steps;
  std::uint32_t write = 0;  ///< The form of the element written.
  std::vector<LoweredAccess> accesses;
  std::vector<LoweredNode> nodes;
  std::uint32_t root = 0;
  std::uint32_t slots = 0;
  bool empty = false;  ///< No element to write.
  /// Of a recurrence: its number, and the loop variable that counts its steps, which is none of `outer`. A run of the
  /// stage is one step. Stages of one recurrence stand together, and all of them take a step before one takes the next.
  struct Steps {
    std::uint32_t recurrence = 0;
    std::uint32_t variable = 0;
  };
  std::optional<Steps> steps_of = std::nullopt;
  /// Reductions with `factors` that stand in no other reduction: an evaluator may compute them for a whole run of the
  /// innermost own loop at once.
  std::vector<std::uint32_t> rows;
};

struct LoweredBody {
  std::string op;
  bool over_reals = true;  ///< OperatorDefinition::over_reals.
  bool moves = false;      ///< OperatorDefinition::moves.
  /// Buffers are numbered: inputs, then intermediates, then outputs.
  std::size_t inputs = 0;
  std::vector<Shape> intermediates;
  std::vector<Shape> outputs;
  std::vector<LoweredStage> stages;  ///< In order of evaluation.
  /// Per stage, of a body that several operators make together: which of them it is of. Empty: there is one.
  std::vector<std::uint32_t> parts;
};

}  // namespace taso
