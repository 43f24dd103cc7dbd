/// The shipped operators, loaded once.
#pragma once

#include "operators/registry.h"

namespace taso::fuzz {

inline const OperatorRegistry& registry() {
  static const OperatorRegistry loaded = [] {
    auto result = OperatorRegistry::load(TASO_SOURCE_DIR "/specs/operators");
    TASO_CHECK(result.ok(), result.ok() ? "" : result.error().to_string());
    return std::move(*result);
  }();
  return loaded;
}

}  // namespace taso::fuzz
