#include "tests/runtime/backend/kind.h"

namespace taso::testing {

BackendKind backend_kind() { return {.name = "faulty", .is_faulty = true}; }

}  // namespace taso::testing
