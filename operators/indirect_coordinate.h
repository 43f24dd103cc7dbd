/// Coordinates that an input of integers says: `index[Q..]`, or `index[Q..] % n - e`. The element is one of n places
/// (without n: of the axis that is read), a negative one counts from their end, one outside of [-n, n) is an error. The
/// coordinate is the place less e, and may lie outside of the tensor.
#pragma once

#include "operators/definition.h"

namespace taso {

struct IndirectCoordinate {
  const Expression* read = nullptr;    ///< Of the input of integers.
  const Expression* places = nullptr;  ///< n; null: the extent of the axis.
  const Expression* offset = nullptr;  ///< e; null: 0.
};

/// The parts of a coordinate of that form; `read` is what stands innermost, whatever it is.
[[nodiscard]] inline IndirectCoordinate indirect_coordinate(const Expression& e) {
  IndirectCoordinate result;
  result.read = &e;
  if (result.read->kind == Expression::Kind::subtract) {
    result.offset = &result.read->operands[1];
    result.read = &result.read->operands[0];
  }
  if (result.read->kind == Expression::Kind::modulo) {
    result.places = &result.read->operands[1];
    result.read = &result.read->operands[0];
  }
  return result;
}

}  // namespace taso
