/// Whether definitions work wherever signatures let operators be applied.
///
/// Types follow from a signature alone. That a definition reads nothing outside of its inputs without `or`, computes
/// every element of its outputs once, and has affine indices is seen when it is lowered for certain extents
/// (operators/lower.h), so that one that works at no size is not noticed before a model needs it. Here it is lowered
/// for many small well-typed applications. What works at all of them is tried, not proved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "operators/registry.h"
#include "support/status.h"

namespace taso {

struct DefinitionTrialOptions {
  std::int64_t bound = 3;           ///< Largest extent; extents that are products may have one more.
  std::uint64_t seed = 1;           ///< Of the applications that are tried where there are too many.
  std::size_t max_instances = 500;  ///< About so many.
};

/// Tries small well-typed applications of an operator; of a variadic one with two inputs. Their number, or why the
/// definition does not work for one of them, at the place of it. None are tried where elements of all inputs may be but
/// truth values, or of types that are no numbers.
[[nodiscard]] Expected<std::size_t> try_definition(const OperatorRegistry& registry, const std::string& op,
                                                   const DefinitionTrialOptions& options = {});

}  // namespace taso
