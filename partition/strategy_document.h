/// docs/strategies.md: what the definitions of operators give, and what of it is proved.
#pragma once

#include <string>

#include "partition/proved_strategies.h"

namespace taso {

/// The document, in Markdown.
[[nodiscard]] std::string document_strategies(const OperatorRegistry& registry, const ProvedStrategies& proved);

}  // namespace taso
