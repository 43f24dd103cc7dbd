// The shipped operators, loaded once for a test program.
#pragma once

#include "operators/registry.h"

namespace taso {

inline const OperatorRegistry& registry() {
  static const auto loaded = OperatorRegistry::load(TASO_SOURCE_DIR "/specs/operators");
  return loaded.value();
}

}  // namespace taso
