/// SoyBean's tilings of tensors over two devices, and the ways in which an operator computes without communication.
///
/// Source: M. Wang, C. Huang, J. Li, "Unifying Data, Model and Hybrid Parallelism in Deep Learning via Tensor Tiling",
/// 2018, sections 4.1, 4.2.1 and 4.5. A tensor is cut into halves along an axis (R and C of a matrix, P_d in general)
/// or replicated (r). The aligned forms of an operator are the cuts of its proved strategies in the middle: of a matrix
/// product those of its rows, R x r = R, its columns, r x C = C, and its reduction, C x R = red. Nothing here knows of
/// operators.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "partition/operator_piece.h"

namespace taso {

/// A tensor on two devices.
struct BasicTiling {
  enum class Kind : std::uint8_t {
    cut,         ///< Each has a half along `axis`.
    replicated,  ///< Each has all: r.
    reduced,     ///< Each has a partial result of all of it: red. Never that of a tensor, only of what is computed.
  };
  Kind kind = Kind::replicated;
  std::size_t axis = 0;  ///< Of a cut, from the front.
  auto operator<=>(const BasicTiling&) const = default;
  /// "R" and "C" of a matrix, else "P1", "P2", ...; "r"; "red".
  [[nodiscard]] std::string to_string(std::size_t rank) const;
};

/// T^1: the axes of even extent, then r.
[[nodiscard]] std::vector<BasicTiling> basic_tilings(const Shape& shape);

/// Halved along the axis of a cut, which is even (TASO_CHECK); else as it is.
[[nodiscard]] Shape half_of(Shape shape, const BasicTiling& tiling);

/// Bytes that both devices together receive so that what they have as `from` they have as `to`: what they need less
/// what they have ("ghost area"), of a tensor of so many bytes. `to` is red only where `from` is (TASO_CHECK).
[[nodiscard]] double conversion_bytes(const BasicTiling& from, const BasicTiling& to, double bytes);

/// A way in which two devices compute an operator from what they have, half of the work each.
struct AlignedForm {
  std::string variable;  ///< That is cut (PieceCut::name); empty where both devices compute all of it.
  std::vector<BasicTiling> inputs, outputs;
  OperatorPiece first, second;  ///< What each of the devices computes; equal but for their places.
};

/// The aligned forms of an operator application: the cuts of its strategies whose two parts have equal types and whose
/// operands are each cut into halves or read whole; a halo is neither. What only copies elements may also be repeated,
/// since nothing is computed twice; so may what has no other form.
[[nodiscard]] std::vector<AlignedForm> aligned_forms(const OperatorPiece& piece, StrategyTable& strategies);

}  // namespace taso
