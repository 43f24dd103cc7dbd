/// The shipped specifications, loaded once for a test program, and the value of an Expected.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>

#include "operators/registry.h"

namespace taso::test {

/// The value of an Expected; without one an exception with its message, which ends the test.
template <class T>
T value_of(Expected<T> expected) {
  if (!expected) throw std::runtime_error(expected.error().to_string());
  return std::move(expected).value();
}

/// Where specs/ and tests/data/ lie: where the test was built or, if it runs on another machine, where
/// $TASO_TEST_SOURCES says.
inline std::string source_folder() {
  const char* given = std::getenv("TASO_TEST_SOURCES");
  return given != nullptr ? given : TASO_SOURCE_DIR;
}

/// The operators of specs/operators.
inline const OperatorRegistry& registry() {
  static const OperatorRegistry loaded = value_of(OperatorRegistry::load(source_folder() + "/specs/operators"));
  return loaded;
}

}  // namespace taso::test
