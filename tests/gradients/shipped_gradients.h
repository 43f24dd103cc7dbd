/// The shipped gradients, loaded once for a test program.
#pragma once

#include <string>

#include "gradients/table.h"
#include "tests/support/shipped.h"

namespace taso::test {

/// The shipped operators, with those of gradients.
inline const OperatorRegistry& gradient_registry() {
  static const OperatorRegistry loaded =
      value_of(OperatorRegistry::load(TASO_SOURCE_DIR "/specs/gradients/operators", &registry()));
  return loaded;
}

/// The shipped tables.
inline const GradientTable& gradient_table() {
  static const GradientTable loaded =
      value_of(GradientTable::load(TASO_SOURCE_DIR "/specs/gradients", gradient_registry()));
  return loaded;
}

}  // namespace taso::test
