/// The shipped specifications, loaded once per test program.
#pragma once

#include "operators/registry.h"

namespace taso::testing {

inline const OperatorRegistry& shipped() {
  static const OperatorRegistry registry = [] {
    Expected<OperatorRegistry> loaded = OperatorRegistry::load(TASO_SOURCE_DIR "/specs/operators");
    TASO_CHECK(loaded.ok(), loaded.ok() ? "" : loaded.error().to_string());
    return std::move(loaded).value();
  }();
  return registry;
}

}  // namespace taso::testing
