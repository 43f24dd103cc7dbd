/// Where an element of a tensor is read: an index per axis, and of a composite axis one per digit, before anything is
/// made of them. Lowering flattens them (operators/lower.cpp), proofs take them as they are
/// (verifier/unbounded/elaborate.cpp).
#pragma once

#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "operators/definition.h"
#include "operators/indirect_coordinate.h"
#include "operators/size_interpreter.h"

namespace taso {

template <class Number>
struct IndexPlace {
  /// An index that lies in [0, extent) wherever the place exists.
  struct Digit {
    Number index;
    Number extent;
    const Expression* coordinate = nullptr;  ///< What says the index.
  };
  /// The digits of an axis, outermost first: one, but for a composite axis. None where a tensor of integers says the
  /// index: `read` is the place in it (operators/indirect_coordinate.h).
  struct Axis {
    absl::InlinedVector<Digit, 1> digits;
    const Expression* read = nullptr;
    Number places{};    ///< Of `read`: how many there are.
    Number offset{};    ///< Of `read`: what is taken away.
    bool whole = true;  ///< Of `read`: its places are those of the axis.
  };
  std::vector<Axis> axes;
};

/// The place that a read names with a coordinate for each axis (it is not flat) of a tensor of these axes and extents.
/// Nothing where the interpreter failed.
template <class Interpreter>
[[nodiscard]] std::optional<IndexPlace<typename Interpreter::Number>> index_place(
    Interpreter& interpreter, const Expression& read, std::span<const AxisSpec> axes,
    std::span<const typename Interpreter::Number> shape) {
  using Place = IndexPlace<typename Interpreter::Number>;
  Place result;
  std::size_t covered = 0;  // axes of the tensor so far
  for (std::size_t i = 0; i < read.operands.size(); ++i) {
    const Expression& coordinate = read.operands[i];
    if (coordinate.sort == Sort::integer_read) {
      const IndirectCoordinate indirect = indirect_coordinate(coordinate);
      typename Place::Axis axis;
      axis.read = indirect.read;
      axis.places = indirect.places != nullptr ? interpreter.scalar(*indirect.places) : shape[covered];
      axis.whole = indirect.places == nullptr && indirect.offset == nullptr;
      if (indirect.offset != nullptr) axis.offset = interpreter.scalar(*indirect.offset);
      result.axes.push_back(std::move(axis));
      ++covered;
      continue;
    }
    if (coordinate.kind == Expression::Kind::tuple) {
      typename Place::Axis axis;
      for (std::size_t f = 0; f < coordinate.operands.size(); ++f) {
        const Expression& digit = coordinate.operands[f];
        auto index = interpreter.scalar(digit);
        axis.digits.push_back({std::move(index), interpreter.scalar(axes[i].factors[f]), &digit});
      }
      result.axes.push_back(std::move(axis));
      ++covered;
      continue;
    }
    const auto indices = interpreter.value(coordinate);
    const std::size_t length =
        axes[i].kind == AxisSpec::Kind::rest ? interpreter.value(axes[i].factors[0]).components.size() : 1;
    if (interpreter.domain().failed()) return std::nullopt;
    if (indices.components.size() != length || covered + length > shape.size()) {
      interpreter.domain().fail(coordinate, "as a coordinate of '" + read.name + "' has " +
                                                std::to_string(indices.components.size()) + " components for " +
                                                std::to_string(length) + " axes");
      return std::nullopt;
    }
    for (const auto& index : indices.components)
      result.axes.push_back({{{index, shape[covered++], &coordinate}}, nullptr});
  }
  if (interpreter.domain().failed()) return std::nullopt;
  return result;
}

}  // namespace taso
