#include "tests/runtime/backend/kind.h"

namespace taso::testing {

BackendKind backend_kind() { return {.name = "host"}; }

}  // namespace taso::testing
