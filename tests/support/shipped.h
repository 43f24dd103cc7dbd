/// The shipped specifications, loaded once for a test program, and the value of an Expected.
#pragma once

#include <stdexcept>
#include <utility>

#include "operators/registry.h"

namespace taso::test {

/// The value of an Expected; without one an exception with its message, which ends the test.
template <class T>
T value_of(Expected<T> expected) {
  if (!expected) throw std::runtime_error(expected.error().to_string());
  return std::move(expected).value();
}

/// The operators of specs/operators.
inline const OperatorRegistry& registry() {
  static const OperatorRegistry loaded = value_of(OperatorRegistry::load(TASO_SOURCE_DIR "/specs/operators"));
  return loaded;
}

}  // namespace taso::test
