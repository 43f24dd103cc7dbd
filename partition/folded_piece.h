/// Applications of an operator to any number of inputs or outputs, of which strategies speak of two. Private to the
/// folder.
///
/// By its law an associative operator of a, b, c is that of a and of (that of b, c), and a coassociative one that makes
/// a, b, c makes a and, of the rest, b and c. So a cut of such an operator is one of an operator of two, and where that
/// cuts the second one, a cut of the operator of the others along the same axis.
#pragma once

#include <optional>

#include "operators/registry.h"
#include "partition/operator_piece.h"

namespace taso {

/// A piece as two.
struct FoldedPiece {
  OperatorPiece two;   ///< To the first one and `rest`.
  OperatorPiece rest;  ///< To the others; what it reads and makes as a whole is the second input or output of `two`.
  bool of_inputs = false;
};

/// Nothing for an operator without such a law, or of two or less.
[[nodiscard]] std::optional<FoldedPiece> fold(const OperatorPiece& piece, const OperatorRegistry& registry);

/// The part of the folded piece of which `two` is the part of FoldedPiece::two; `rest` is that of FoldedPiece::rest.
[[nodiscard]] OperatorPiece unfold(const OperatorPiece& piece, const FoldedPiece& folded, OperatorPiece two,
                                   const OperatorPiece& rest, const OperatorRegistry& registry);

/// Along which axis, counted from the front, and where `rest` must be cut for a part of `two`.
struct RestCut {
  std::size_t axis = 0;
  std::int64_t point = 0, extent = 0;  ///< 0 <= point <= extent: one of the parts may have no elements.
};
/// Nothing where the part has all of it.
[[nodiscard]] std::optional<RestCut> cut_of_rest(const FoldedPiece& folded, const OperatorPiece& part, bool second);

/// A part of an operator of one input or output, which makes what it is given, or a part without elements of any.
[[nodiscard]] OperatorPiece plain_part(const OperatorPiece& rest, const RestCut& cut, bool second,
                                       const OperatorRegistry& registry);

}  // namespace taso
