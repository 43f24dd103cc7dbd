/// The operators as a document for readers, generated from their definitions.
#pragma once

#include <string>

#include "operators/registry.h"

namespace taso {

/// Markdown: for every operator, in alphabetical order, its signature, documentation, laws, numbered constraints and
/// equations; then the scalar functions.
[[nodiscard]] std::string document_operators(const OperatorRegistry& registry);

}  // namespace taso
