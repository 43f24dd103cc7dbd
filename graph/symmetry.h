/// Symmetries of substitutions: exchanges of roles that give the same rewrite again.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/pattern.h"

namespace taso {

/// A renaming of a substitution's parts that maps its source to itself, and its target to itself up to the order of
/// what is concatenated and split again.
struct RuleSymmetry {
  std::vector<std::uint32_t> nodes;       ///< Source node i takes the role of nodes[i].
  std::vector<std::uint32_t> tensors;     ///< Tensor variable i takes the role of tensors[i].
  std::vector<std::uint32_t> attributes;  ///< Likewise.
  bool operator==(const RuleSymmetry&) const = default;
};

/// All symmetries but the identity. Rules with very many outputs or commutative operators are taken to have none.
[[nodiscard]] std::vector<RuleSymmetry> find_symmetries(const Substitution& rule, const OperatorCatalog& catalog);

}  // namespace taso
