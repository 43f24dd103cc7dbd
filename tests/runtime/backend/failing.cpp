#include "tests/runtime/backend/kind.h"

namespace taso::testing {

BackendKind backend_kind() { return {.name = "failing", .fuses = true, .is_failing = true}; }

}  // namespace taso::testing
