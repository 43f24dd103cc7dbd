/// What the small example programs share.
#pragma once

#include <cstdio>
#include <string>

#include "support/status.h"

namespace taso::examples {

/// A folder of specs/ in the source tree.
inline std::string specs(const std::string& folder) { return std::string(TASO_SOURCE_DIR) + "/specs/" + folder; }

/// Prints an error, if there is one; the exit code of main.
inline int exit_code(const Status& status) {
  if (status) return 0;
  std::fprintf(stderr, "error: %s\n", status.error().to_string().c_str());
  return status.error().exit_code();
}

}  // namespace taso::examples
