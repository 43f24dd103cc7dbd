/// Which types and attribute values the variables of one operator application can have when others are known.
///
/// Input types are solved from the operator's axis lists: a name that occurs in a known input has its value, a product
/// with one unknown factor determines it, one with two gives every divisor, a rest of unknown length every length.
/// What remains open runs over all extents within the bounds. Whether a candidate is well-typed is always
/// decided by type inference afterwards; candidates only have to include all that are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/pattern.h"
#include "operators/registry.h"

namespace taso {

/// What is enumerated.
struct Domain {
  std::int64_t bound = 4;         ///< Largest extent of an axis; axes that are sizes of kernels have it, too.
  std::int64_t composite = 4;     ///< Largest extent of an axis that is a product, as groups times channels.
  std::size_t max_rank = 4;       ///< Largest rank where the definition leaves it open.
  std::int64_t wide_extents = 2;  ///< Lists of attributes have all their values, and dilations are tried, up to here.
  bool attributes = true;         ///< False: lists of attributes have their default values where there are any.
};

/// Values of the names of sizes (one number) and of rests (their extents, under ".." and the name).
using NamedSizes = std::map<std::string, std::vector<std::int64_t>>;

/// Every assignment of names under which an input with this axis list has the given shape, beyond `known`.
[[nodiscard]] std::vector<NamedSizes> solve_sizes(const InputSpec& input, const Shape& shape, const NamedSizes& known);

/// Every shape within the domain that an input can have; names that are not in `known` are open.
[[nodiscard]] std::vector<Shape> propose_shapes(const InputSpec& input, const NamedSizes& known, const Domain& domain);

/// Every shape of rank up to max_rank with extents 1 to bound.
[[nodiscard]] std::vector<Shape> all_shapes(const Domain& domain);

/// What an attribute is to the windows of an operator: the calls of the size function `window` (extent, kernel, stride,
/// dilation, begin, end) in its definition.
enum class WindowRole : std::uint8_t { none, stride, dilation, pads };
[[nodiscard]] WindowRole window_role(const OperatorDefinition& definition, const std::string& attribute);

/// Whether the definition requires the attribute to be a permutation.
[[nodiscard]] bool must_be_permutation(const OperatorDefinition& definition, const std::string& attribute);

/// The pads under which a window has one position per `stride` cells of the image ("SAME", the odd cell at the end),
/// for the operators whose output sizes are given by the size function `window`; nothing for others.
[[nodiscard]] std::optional<std::vector<std::int64_t>> same_pads(const OperatorDefinition& definition,
                                                                 const std::string& attribute, const NamedSizes& sizes,
                                                                 const Attributes& attributes);

}  // namespace taso
